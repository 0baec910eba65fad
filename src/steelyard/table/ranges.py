"""Where the numbers of a column lie: ends, quartiles and bars.

Loaded with NumPy alone, for models that only predict.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard._common.allowed import N_BARS
from steelyard._common.arrays import Floats, Ints

Ends = tuple[float, float]
"""Smallest and largest number."""

_QUARTERS = np.array([0.25, 0.5, 0.75])

# Of more rows quartiles and bars are those of a sample, evenly spaced; ends are of all.
_MAX_SAMPLED = 4096


def evenly(n_rows: int, limit: int) -> Ints:
    """Return positions of at most ``limit`` rows, evenly spaced."""
    if n_rows <= limit:
        return np.arange(n_rows)
    return np.linspace(0, n_rows - 1, limit).astype(np.int64)


@dataclass(frozen=True)
class NumberRange:
    """Where the numbers of one column lie, missing ones left out.

    >>> import numpy as np
    >>> from steelyard.table.ranges import range_of
    >>> ages = range_of(np.array([1.0, 2.0, np.nan, 3.0, 9.0]))
    >>> ages.low, ages.quartiles, ages.high
    (1.0, (1.0, 2.0, 3.0), 9.0)
    """

    low: float
    high: float
    quartiles: tuple[float, ...] = ()
    """The three quartiles; empty if they are not known."""

    histogram: tuple[float, ...] = ()
    """Shares of the weight in bars of equal width from low to high; or empty."""

    weight: float = 0.0
    """Weight of the cells that are not missing."""

    @property
    def points(self) -> list[float]:
        """Ends and quartiles, increasing, none twice."""
        return sorted({self.low, *self.quartiles, self.high})

    @property
    def is_whole(self) -> bool:
        """Whether the column seems to have whole numbers: ends and quartiles do."""
        return bool(self.quartiles) and all(x == round(x) for x in self.points)

    @property
    def is_flag(self) -> bool:
        """Whether the numbers are 0 and 1, as bars and ends show."""
        ends = (self.low, self.high) == (0.0, 1.0)
        return ends and len(self.histogram) > 2 and not any(self.histogram[1:-1])

    def clipped(self, numbers: Floats) -> Floats:
        """Return the numbers that lie between the ends."""
        return numbers[(numbers >= self.low) & (numbers <= self.high)]

    def __add__(self, other: NumberRange) -> NumberRange:
        """Return the range of the numbers of both; quartiles are read off the bars."""
        low, high = min(self.low, other.low), max(self.high, other.high)
        weight = self.weight + other.weight
        if not (self.histogram and other.histogram) or not weight > 0.0:
            return NumberRange(low, high, weight=weight)
        ends = np.linspace(low, high, N_BARS + 1)
        both = [(of.weight / weight) * of._below(ends) for of in (self, other)]
        below = np.sum(both, axis=0)
        quartiles = np.interp(_QUARTERS, below, ends).tolist()
        bars = np.diff(below)
        # Numbers that are all the same have no separate bar.
        bars[0] += below[0]
        return NumberRange(low, high, tuple(quartiles), tuple(bars.tolist()), weight)

    def _below(self, numbers: Floats) -> Floats:
        """Return the share of the weight below some numbers, by the bars."""
        if self.low == self.high:
            return np.where(numbers >= self.low, 1.0, 0.0)
        ends = np.linspace(self.low, self.high, N_BARS + 1)
        upto = np.concatenate([[0.0], np.cumsum(self.histogram)])
        return np.asarray(np.interp(numbers, ends, upto))


def range_of(numbers: Floats, weights: Floats | None = None) -> NumberRange | None:
    """Return the range of numbers, NaN left out; None if there are no others."""
    present = ~np.isnan(numbers)
    if not present.all():
        numbers = numbers[present]
        weights = None if weights is None else weights[present]
    if not len(numbers):
        return None
    weight = float(len(numbers) if weights is None else weights.sum())
    ends, rows = (float(numbers.min()), float(numbers.max())), sampled(len(numbers))
    some = None if weights is None else weights[rows]
    return weighed_range(ends, numbers[rows], some, weight)


def sampled(n_rows: int) -> Any:
    """Return the rows whose quartiles and bars are taken for those of all."""
    return slice(None) if n_rows <= _MAX_SAMPLED else evenly(n_rows, _MAX_SAMPLED)


def weighed_range(
    ends: Ends, numbers: Floats, weights: Floats | None, weight: float
) -> NumberRange:
    """Return a range with the quartiles and bars of some numbers."""
    low, high = ends
    if weights is None:
        numbers, upto = np.sort(numbers), np.arange(1.0, len(numbers) + 1.0)
    else:
        if not weights.sum() > 0.0:
            return NumberRange(low, high, weight=weight)
        order = np.argsort(numbers, kind="stable")
        numbers, weights = numbers[order], weights[order]
        upto = np.cumsum(weights)
    places = np.searchsorted(upto, _QUARTERS * upto[-1]).clip(max=len(numbers) - 1)
    bars = counted_bars(ends, numbers, weights) / upto[-1]
    quartiles = tuple(numbers[places].tolist())
    return NumberRange(low, high, quartiles, tuple(bars.tolist()), weight)


def counted_bars(ends: Ends, numbers: Floats, weights: Floats | None = None) -> Floats:
    """Count numbers in bars of equal width; those beyond the ends in the outer ones."""
    low, high = ends
    # Halves first: the difference of the largest numbers is no number.
    width = high / 2.0 - low / 2.0
    share = (numbers / 2.0 - low / 2.0) / width if width > 0.0 else 0.0 * numbers
    bar = np.clip(share * N_BARS, 0, N_BARS - 1).astype(np.int64)
    return np.bincount(bar, weights, N_BARS).astype(np.float64)


def bar_edges(low: float, high: float) -> list[float]:
    """Return the largest number of each bar of a histogram but the last.

    >>> bar_edges(0.0, 20.0)[:2]
    [0.9999999999999999, 1.9999999999999998]
    """
    edges = []
    for k, guess in enumerate(np.linspace(low, high, N_BARS + 1)[1:-1]):
        edge = float(guess)
        while _bar(low, high, edge) > k:
            edge = float(np.nextafter(edge, -np.inf))
        while _bar(low, high, float(np.nextafter(edge, np.inf))) <= k:
            edge = float(np.nextafter(edge, np.inf))
        edges.append(edge)
    return edges


def _bar(low: float, high: float, number: float) -> int:
    return int(counted_bars((low, high), np.array([number])).argmax())


def added_ranges(
    before: Iterable[NumberRange | None], new: Iterable[NumberRange | None]
) -> list[Any]:
    """Return the ranges of columns after new rows."""
    both = zip(before, new, strict=True)
    return [a + b if a is not None and b is not None else a or b for a, b in both]
