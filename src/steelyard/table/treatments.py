"""The settings of an encoder, resolved against the columns of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Protocol

import numpy as np

from steelyard.exceptions import ParameterError
from steelyard.table.discretizers import (
    Discretizer,
    EqualFrequencyDiscretizer,
    EqualWidthDiscretizer,
    MDLDiscretizer,
)
from steelyard.table.factors import CellKind
from steelyard.table.schema import Kind


class Described(Protocol):
    """What decides on the treatment of a column: itself, or a summary of it."""

    position: int

    @property
    def declared(self) -> list[Any] | None:
        """Values declared by a category or enum type, None for other types."""

    @property
    def storage(self) -> CellKind:
        """What the type of the column can hold, "nothing" if it does not say."""


@dataclass(frozen=True)
class Uncut:
    """A treatment that makes no bins: categories, or numbers as they are."""

    kind: Kind
    supervised: ClassVar[bool] = False


Treatment = Discretizer | Uncut

_CATEGORIES: tuple[Treatment, ...] = (Uncut("categorical"),)
_NUMERIC: dict[str, Treatment] = {
    "mdl": MDLDiscretizer(),
    "mdl-better": MDLDiscretizer(better_encoding=True),
    "kononenko": MDLDiscretizer(criterion="kononenko"),
    "equal-width": EqualWidthDiscretizer(),
    "equal-width-merged": EqualWidthDiscretizer(empty="merge"),
    "equal-frequency": EqualFrequencyDiscretizer(),
    "gaussian": Uncut("gaussian"),
    "gaussian-weka": Uncut("gaussian-weka"),
    "gaussian-relative": Uncut("gaussian-relative"),
    "linear": Uncut("linear"),
}
_DEFAULT = "mdl"


class EncoderSettings(Protocol):
    """The settings of an encoder that decide on a schema."""

    categorical_features: Any
    numeric: Any
    missing: str
    cardinality: str
    keep_identifiers: bool


def treatments(
    settings: EncoderSettings, columns: Sequence[Described], names: list[str] | None
) -> list[tuple[Treatment, ...]]:
    """Decide how every column is treated; each treatment is a view of it."""
    numeric = settings.numeric
    categorical = _categorical_positions(settings.categorical_features, columns, names)
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
    used = {id(treatment): treatment for views in by_column for treatment in views}
    for treatment in used.values():
        if isinstance(treatment, Discretizer):
            treatment.check_parameters()
            treatment.check_columns(ids)
    return by_column


def numeric_treatments(
    numeric: Any, n_columns: int, names: list[str] | None
) -> list[tuple[Treatment, ...]]:
    """Say how every column would be treated as a numeric one."""
    if not isinstance(numeric, Mapping):
        return [_views(numeric)] * n_columns
    by_column = [_views(_DEFAULT)] * n_columns
    positions = column_positions(numeric, n_columns, names, "numeric")
    for position, setting in zip(positions, numeric.values(), strict=True):
        by_column[position] = _views(setting)
    return by_column


def _views(setting: Any) -> tuple[Treatment, ...]:
    """Several treatments of one column are several views of it."""
    several = isinstance(setting, (list, tuple)) and setting
    return tuple(map(_treatment, setting if several else (setting,)))


def _treatment(setting: Any) -> Treatment:
    if isinstance(setting, Discretizer):
        return setting
    if isinstance(setting, str) and setting in _NUMERIC:
        return _NUMERIC[setting]
    allowed = ", ".join(map(repr, _NUMERIC))
    raise ParameterError(
        f"The 'numeric' parameter must be one of {allowed}, a discretizer, a tuple of "
        f"these for several views, or a mapping from columns to these. Got "
        f"{setting!r} instead."
    )


def _categorical_positions(
    setting: Any, columns: Sequence[Described], names: list[str] | None
) -> set[int]:
    """Say which columns hold categories."""
    if isinstance(setting, str) and setting == "all":
        return set(range(len(columns)))
    automatic = setting is None or (isinstance(setting, str) and setting == "auto")
    categorical = set() if automatic else _chosen_positions(setting, columns, names)
    # Text cannot be anything else. A column of unknown type with nothing in it is taken
    # as `numeric` says, until text turns up.
    categorical.update(
        column.position
        for column in columns
        if column.storage == "text"
        or (column.storage == "booleans" and automatic)
        or column.declared is not None
    )
    return categorical


def _chosen_positions(
    setting: Any, columns: Sequence[Described], names: list[str] | None
) -> set[int]:
    """Resolve a list of names or positions, or a mask, of categorical columns."""
    items = list(setting)
    if items and all(isinstance(item, (bool, np.bool_)) for item in items):
        if len(items) != len(columns):
            raise ParameterError(
                f"The mask in `categorical_features` has {len(items)} entries for "
                f"{len(columns)} columns."
            )
        items = np.flatnonzero(items).tolist()
    return set(column_positions(items, len(columns), names, "categorical_features"))


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
        hint = f"Columns: {', '.join(names[:8])}{', …' if len(names) > 8 else ''}"
    raise ParameterError(f"`{setting}` names {name!r}, which is not a column. {hint}")
