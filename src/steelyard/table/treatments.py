"""How each column is treated by the settings of an encoder.

A treatment is the kind of an attribute, and for numbers the discretizers that cut them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard._common.text import did_you_mean
from steelyard.exceptions import ParameterError
from steelyard.table.discretizers.base import Discretizer
from steelyard.table.discretizers.mdl import MDLDiscretizer
from steelyard.table.discretizers.unsupervised import (
    EqualFrequencyDiscretizer,
    EqualWidthDiscretizer,
    FixedEdgesDiscretizer,
    GridDiscretizer,
)
from steelyard.table.schema import Kind

if TYPE_CHECKING:
    from steelyard.table.columns import TableColumn
    from steelyard.table.summary.chunked_column import ChunkedColumn

DISCRETIZERS = (
    EqualFrequencyDiscretizer,
    EqualWidthDiscretizer,
    FixedEdgesDiscretizer,
    GridDiscretizer,
    MDLDiscretizer,
)
"""Every discretizer that a setting may name."""


@dataclass(frozen=True)
class Treatment:
    """The kind of attribute that a column becomes, and what cuts its numbers."""

    kind: Kind
    discretizers: tuple[Discretizer, ...] = ()
    """If there are several, the column is cut at all of their cut points."""

    @property
    def uses_labels(self) -> bool:
        """Whether cut points depend on the classes of rows."""
        return any([discretizer.supervised for discretizer in self.discretizers])

    @property
    def reads_numbers(self) -> bool:
        """Whether single numbers decide, and not only their range."""
        reads = [discretizer.reads for discretizer in self.discretizers]
        return self.kind == "gaussian-weka" or "order" in reads or "numbers" in reads


_CATEGORIES = Treatment("categorical")
_DEFAULT = Treatment("binned", (MDLDiscretizer(),))
_BY_NAME = {
    "mdl": _DEFAULT,
    "mdl-better": Treatment("binned", (MDLDiscretizer(better_encoding=True),)),
    "kononenko": Treatment("binned", (MDLDiscretizer(criterion="kononenko"),)),
    "equal-width": Treatment("binned", (EqualWidthDiscretizer(),)),
    "equal-width-merged": Treatment("binned", (EqualWidthDiscretizer(empty="merge"),)),
    "equal-frequency": Treatment("binned", (EqualFrequencyDiscretizer(),)),
    "grid": Treatment("binned", (GridDiscretizer(),)),
    "gaussian": Treatment("gaussian"),
    "gaussian-weka": Treatment("gaussian-weka"),
    "gaussian-relative": Treatment("gaussian-relative"),
    "linear": Treatment("linear"),
}
_BUILT_IN = {_CATEGORIES, *_BY_NAME.values()}


def treatments(
    categorical_features: Any,
    numeric: Any,
    columns: Sequence[TableColumn] | Sequence[ChunkedColumn],
    names: list[str] | None,
) -> list[Treatment]:
    """Decide how every column is treated."""
    categorical = _categorical_positions(categorical_features, columns, names)
    by_column = numeric_treatments(numeric, len(columns), names)
    if isinstance(numeric, Mapping):
        named = column_positions(numeric, len(columns), names, "numeric")
        for key, position in zip(numeric, named, strict=True):
            if columns[position].storage == "text":
                raise ParameterError(
                    f"`numeric` names {key!r}, but that column holds text."
                )
            # Named here, it is numeric: a column of booleans or of missing values.
            categorical.discard(position)
    for position in categorical:
        by_column[position] = _CATEGORIES
    ids = list(enumerate(names or [None] * len(columns)))
    for treatment in dict.fromkeys(by_column):
        for discretizer in treatment.discretizers if treatment not in _BUILT_IN else ():
            discretizer.check_parameters()
            discretizer.check_columns(ids)
    return by_column


def numeric_treatments(
    numeric: Any, n_columns: int, names: list[str] | None
) -> list[Treatment]:
    """Return how every column would be treated as a numeric one."""
    if not isinstance(numeric, Mapping):
        return [_treatment(numeric)] * n_columns
    by_column = [_DEFAULT] * n_columns
    positions = column_positions(numeric, n_columns, names, "numeric")
    for position, setting in zip(positions, numeric.values(), strict=True):
        by_column[position] = _treatment(setting)
    return by_column


def _treatment(setting: Any) -> Treatment:
    """Return the treatment that a setting names, joined if it names several."""
    if isinstance(setting, str) and setting in _BY_NAME:
        return _BY_NAME[setting]
    if isinstance(setting, Discretizer):
        return Treatment("binned", (setting,))
    if isinstance(setting, (list, tuple)) and setting:
        parts = list(map(_treatment, setting))
        uncut = [part.kind for part in parts if not part.discretizers]
        if uncut and len(parts) > 1:
            raise ParameterError(
                f"The 'numeric' parameter joins {uncut[0]!r} with other treatments, "
                "and it has no cut points. Use it alone, or join discretizers such as "
                "('mdl', 'equal-frequency')."
            )
        cutting = [discretizer for part in parts for discretizer in part.discretizers]
        return Treatment(parts[0].kind, tuple(cutting))
    allowed = ", ".join(map(repr, _BY_NAME))
    raise ParameterError(
        f"The 'numeric' parameter must be one of {allowed}, a discretizer, a tuple of "
        f"discretizers, or a mapping from columns to these. Got {setting!r} instead."
    )


def _categorical_positions(
    setting: Any,
    columns: Sequence[TableColumn] | Sequence[ChunkedColumn],
    names: list[str] | None,
) -> set[int]:
    """Return the columns of categories."""
    if isinstance(setting, str) and setting == "all":
        return set(range(len(columns)))
    automatic = setting is None or (isinstance(setting, str) and setting == "auto")
    categorical = [] if automatic else _chosen_positions(setting, len(columns), names)
    # Text cannot be anything else. A column of unknown type with nothing in it is taken
    # as `numeric` says, until text turns up.
    for column in columns:
        is_text = column.storage == "text"
        is_flag = column.storage == "booleans" and automatic
        if is_text or is_flag or column.declared is not None:
            categorical.append(column.position)
    return set(categorical)


def _chosen_positions(
    setting: Any, n_columns: int, names: list[str] | None
) -> list[int]:
    """Resolve a list of names or positions, or a mask, of categorical columns."""
    items = list(setting)
    if items and all(isinstance(item, (bool, np.bool_)) for item in items):
        if len(items) != n_columns:
            raise ParameterError(
                f"The mask in `categorical_features` has {len(items)} entries for "
                f"{n_columns} columns."
            )
        items = np.flatnonzero(items).tolist()
    return list(column_positions(items, n_columns, names, "categorical_features"))


def column_positions(
    chosen: Any, n_columns: int, names: list[str] | None, setting: str
) -> Iterator[int]:
    """Resolve names or positions to positions."""
    for item in chosen:
        if isinstance(item, str):
            yield _position_of(item, names, setting)
            continue
        if not isinstance(item, Integral) or isinstance(item, (bool, np.bool_)):
            raise ParameterError(
                f"`{setting}` must name columns by name (str) or position (int). "
                f"Got {item!r} instead."
            )
        position = int(item)
        if not -n_columns <= position < n_columns:
            raise ParameterError(
                f"`{setting}` names column {position}, but there are "
                f"{n_columns} columns (0 to {n_columns - 1})."
            )
        yield position % n_columns


def _position_of(name: str, names: list[str] | None, setting: str) -> int:
    if names is not None and name in names:
        return names.index(name)
    hint = "The table has no column names; use positions."
    if names:
        hint = f"Columns: {', '.join(names[:8])}{', …' if len(names) > 8 else ''}."
        hint += did_you_mean(name, names)
    raise ParameterError(f"`{setting}` names {name!r}, which is not a column. {hint}")
