"""The settings of an encoder, resolved against the columns of a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from steelyard.exceptions import ParameterError
from steelyard.table.discretizers import (
    Discretizer,
    EqualFrequencyDiscretizer,
    EqualWidthDiscretizer,
    MDLDiscretizer,
)
from steelyard.table.frames import Column

__all__ = [
    "NUMERIC",
    "categorical_positions",
    "column_positions",
    "treatment_of",
    "treatments",
]

NUMERIC: dict[str, Discretizer | str] = {
    "mdl": MDLDiscretizer(),
    "mdl-better": MDLDiscretizer(better_encoding=True),
    "kononenko": MDLDiscretizer(criterion="kononenko"),
    "equal-width": EqualWidthDiscretizer(),
    "equal-width-merged": EqualWidthDiscretizer(empty="merge"),
    "equal-frequency": EqualFrequencyDiscretizer(),
    "gaussian": "gaussian",
    "gaussian-weka": "gaussian-weka",
    "gaussian-relative": "gaussian-relative",
    "linear": "linear",
}

Treatment = Discretizer | str


def column_positions(
    chosen: Any, n_columns: int, names: list[str] | None, setting: str
) -> Iterator[int]:
    """Resolve names or positions to positions."""
    for item in chosen:
        if isinstance(item, str):
            if names is None or item not in names:
                raise ParameterError(
                    f"`{setting}` names {item!r}, which is not a column. "
                    + (
                        f"Columns: {', '.join(names[:8])}"
                        + (", …" if len(names) > 8 else "")
                        if names
                        else "The table has no column names; use positions."
                    )
                )
            yield names.index(item)
        else:
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


def categorical_positions(
    setting: Any, columns: Sequence[Column], names: list[str] | None
) -> set[int]:
    """Say which columns hold categories."""
    if isinstance(setting, str) and setting == "all":
        return set(range(len(columns)))
    automatic = setting is None or (isinstance(setting, str) and setting == "auto")
    if automatic:
        chosen: set[int] = set()
    elif isinstance(setting, (str, bytes)) or not isinstance(setting, Iterable):
        raise ParameterError(
            "The 'categorical_features' parameter must be 'auto', 'all' or a list of "
            f"names or positions. Got {setting!r} instead."
        )
    else:
        items = list(setting)
        if items and all(isinstance(item, (bool, np.bool_)) for item in items):
            if len(items) != len(columns):
                raise ParameterError(
                    f"The mask in `categorical_features` has {len(items)} entries for "
                    f"{len(columns)} columns."
                )
            items = np.flatnonzero(items).tolist()
        found = column_positions(items, len(columns), names, "categorical_features")
        chosen = set(found)
    # Text cannot be anything else. A column of unknown type with nothing in it is taken
    # as `numeric` says, until text turns up.
    chosen.update(
        column.position
        for column in columns
        if column.storage == "text"
        or (column.storage == "booleans" and automatic)
        or column.declared is not None
    )
    return chosen


def treatments(
    setting: Any,
    columns: Sequence[Column],
    names: list[str] | None,
    categorical: set[int],
) -> list[tuple[Treatment, ...]]:
    """Decide for every column in which ways it would be seen as a numeric one."""
    resolved = _resolve(setting, columns, names, categorical)
    ids = [(j, names[j] if names is not None else None) for j in range(len(columns))]
    used = [t for j, ways in enumerate(resolved) if j not in categorical for t in ways]
    for treatment in {id(t): t for t in used if isinstance(t, Discretizer)}.values():
        treatment.check_parameters()
        treatment.check_columns(ids)
    return resolved


def _resolve(
    setting: Any,
    columns: Sequence[Column],
    names: list[str] | None,
    categorical: set[int],
) -> list[tuple[Treatment, ...]]:
    if not isinstance(setting, Mapping):
        return [_ways(setting)] * len(columns)
    treatments = [_ways("mdl")] * len(columns)
    for key, value in setting.items():
        (position,) = column_positions([key], len(columns), names, "numeric")
        if columns[position].storage == "text":
            raise ParameterError(
                f"`numeric` names {key!r}, but that column holds text."
            )
        treatments[position] = _ways(value)
        # Named here, it is numeric: a column of booleans or one with nothing in it.
        categorical.discard(position)
    return treatments


def treatment_of(
    setting: Any, position: int, names: list[str] | None, n_columns: int
) -> tuple[Treatment, ...]:
    """Decide in which ways one column would be seen as a numeric one."""
    if not isinstance(setting, Mapping):
        return _ways(setting)
    places = column_positions(setting, n_columns, names, "numeric")
    by_place = dict(zip(places, setting.values(), strict=True))
    return _ways(by_place.get(position, "mdl"))


def _ways(setting: Any) -> tuple[Treatment, ...]:
    """Several treatments of one column are several views of it."""
    if isinstance(setting, (list, tuple)) and setting:
        return tuple(_treatment(one) for one in setting)
    return (_treatment(setting),)


def _treatment(setting: Any) -> Treatment:
    if isinstance(setting, Discretizer):
        return setting
    if isinstance(setting, str) and setting in NUMERIC:
        return NUMERIC[setting]
    allowed = ", ".join(repr(name) for name in NUMERIC)
    raise ParameterError(
        f"The 'numeric' parameter must be one of {allowed}, a discretizer, a tuple of "
        f"these for several views, or a mapping from columns to these. Got "
        f"{setting!r} instead."
    )
