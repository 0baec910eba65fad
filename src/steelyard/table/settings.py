"""The settings of an encoder, resolved against the columns of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from steelyard.exceptions import ParameterError
from steelyard.table.columns import Column
from steelyard.table.discretizers import (
    Discretizer,
    EqualFrequencyDiscretizer,
    EqualWidthDiscretizer,
    MDLDiscretizer,
)

__all__ = ["NUMERIC", "categorical_positions", "treatments"]

NUMERIC: dict[str, Discretizer | str] = {
    "mdl": MDLDiscretizer(),
    "mdl-better": MDLDiscretizer(better_encoding=True),
    "kononenko": MDLDiscretizer(criterion="kononenko"),
    "equal-width": EqualWidthDiscretizer(),
    "equal-width-merged": EqualWidthDiscretizer(empty="merge"),
    "equal-frequency": EqualFrequencyDiscretizer(),
    "gaussian": "gaussian",
    "gaussian-weka": "gaussian-weka",
}


def _positions(
    chosen: Any, columns: Sequence[Column], names: list[str] | None, setting: str
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
            position = int(item)
            if not -len(columns) <= position < len(columns):
                raise ParameterError(
                    f"`{setting}` names column {position}, but there are "
                    f"{len(columns)} columns (0 to {len(columns) - 1})."
                )
            yield position % len(columns)


def categorical_positions(
    setting: Any, columns: Sequence[Column], names: list[str] | None
) -> set[int]:
    """Say which columns hold categories."""
    if isinstance(setting, str) and setting == "all":
        return set(range(len(columns)))
    if setting is None or (isinstance(setting, str) and setting == "auto"):
        chosen: set[int] = set()
    elif isinstance(setting, str):
        raise ParameterError(
            "The 'categorical_features' parameter must be 'auto', 'all' or a list of "
            f"names or positions. Got {setting!r} instead."
        )
    else:
        items = np.asarray(setting)
        if items.dtype == bool:
            if items.shape != (len(columns),):
                raise ParameterError(
                    f"The mask in `categorical_features` has {items.size} entries for "
                    f"{len(columns)} columns."
                )
            items = np.flatnonzero(items)
        chosen = set(_positions(items.tolist(), columns, names, "categorical_features"))
    # Text cannot be anything else, and neither can a column with nothing in it.
    chosen.update(
        column.position
        for column in columns
        if column.cells in ("text", "nothing")
        or (column.cells == "booleans" and not isinstance(setting, (list, tuple)))
        or column.declared is not None
    )
    return chosen


def treatments(
    setting: Any,
    columns: Sequence[Column],
    names: list[str] | None,
    categorical: set[int],
) -> list[Discretizer | str]:
    """Decide for every column how it would be treated as a numeric one."""
    if not isinstance(setting, Mapping):
        return [_treatment(setting)] * len(columns)
    treatments: list[Discretizer | str] = [NUMERIC["mdl"]] * len(columns)
    for key, value in setting.items():
        (position,) = _positions([key], columns, names, "numeric")
        if columns[position].cells == "text":
            raise ParameterError(
                f"`numeric` names {key!r}, but that column holds text."
            )
        treatments[position] = _treatment(value)
        # Named here, it is numeric: a column of booleans or one with nothing in it.
        categorical.discard(position)
    return treatments


def _treatment(setting: Any) -> Discretizer | str:
    if isinstance(setting, Discretizer):
        return setting
    if isinstance(setting, str) and setting in NUMERIC:
        return NUMERIC[setting]
    allowed = ", ".join(repr(name) for name in NUMERIC)
    raise ParameterError(
        f"The 'numeric' parameter must be one of {allowed}, a discretizer, or a "
        f"mapping from columns to these. Got {setting!r} instead."
    )
