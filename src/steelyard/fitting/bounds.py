"""Bounds of weights: one pair for all, one for each attribute, or by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.exceptions import ParameterError
from steelyard.table.schema import TableSchema


def attribute_bounds(
    setting: Any, schema: TableSchema
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return lower and upper bounds per attribute, each of shape (d,).

    The setting is None, one pair for all, a pair for each attribute, or a mapping from
    name or position to pair.
    """
    d = len(schema)
    pairs = np.tile([-np.inf, np.inf], (d, 1))
    if isinstance(setting, Mapping):
        for j, pair in by_position(setting, schema, "bounds"):
            pairs[j] = _pair(pair)
    elif setting is not None:
        pairs_given = np.asarray(setting, dtype=object)
        if pairs_given.shape == (2,):
            pairs[:] = _pair(setting)
        elif pairs_given.shape == (d, 2):
            pairs[:] = [_pair(pair) for pair in pairs_given.tolist()]
        else:
            raise ParameterError(
                "The 'bounds' parameter must be None, a pair (low, high), one pair for "
                f"each of the {d} attributes, or a mapping from attribute to pair. Got "
                f"{setting!r} instead."
            )
    return pairs[:, 0], pairs[:, 1]


def by_position(
    mapping: Mapping[Any, Any], schema: TableSchema, setting: str
) -> Iterator[tuple[int, Any]]:
    """Yield positions and values of a mapping from names or positions of attributes."""
    d, names = len(schema), schema.labels()
    for key, value in mapping.items():
        if isinstance(key, str) and key in names:
            yield names.index(key), value
        elif isinstance(key, Integral) and -d <= int(key) < d:
            yield int(key), value
        else:
            raise ParameterError(
                f"`{setting}` names {key!r}, which is no column. Columns: "
                f"{', '.join(names)}; or give positions from 0 to {d - 1}."
            )


def _pair(pair: Any) -> tuple[float, float]:
    """Return one pair of bounds as numbers, checked."""
    try:
        low, high = pair
        low = -np.inf if low is None else float(low)
        high = np.inf if high is None else float(high)
    except (TypeError, ValueError):
        raise ParameterError(
            f"Each of `bounds` must be a pair (low, high) of numbers, with None for "
            f"none. Got {pair!r} instead."
        ) from None
    if low > high:
        raise ParameterError(
            f"`bounds` has a lower bound above the upper one ({low:g} > {high:g}). "
            "Give them as (low, high)."
        )
    if not (low < np.inf and high > -np.inf):
        raise ParameterError(
            f"`bounds` leaves no finite weight between {low:g} and {high:g}. Use "
            "numbers, with None for no bound."
        )
    return low, high
