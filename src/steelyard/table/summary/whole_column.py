"""A column in memory: its cells, its rows, and where its numbers lie.

Loaded with NumPy alone, for models that only predict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.allowed import N_BARS
from steelyard._common.arrays import Floats, Ints
from steelyard.exceptions import ColumnError
from steelyard.table.by_schema import ColumnCells, check_cells, codes_of
from steelyard.table.columns import TableColumn
from steelyard.table.schema import FeatureSchema, sort_values

if TYPE_CHECKING:
    from steelyard.table.discretizers.base import Discretizer


Ends = tuple[float, float]
"""Smallest and largest number."""

_QUARTERS = np.array([0.25, 0.5, 0.75])

# Quartiles and bars of more rows are those of so many, evenly spaced; ends are of all.
_SAMPLE = 4096

# Sums in another order, or of copies of rows, differ by less, as a share.
ROUNDING = 1e-13


def evenly(n_rows: int, most: int) -> Ints:
    """Return positions of rows, no more than so many."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.linspace(0, n_rows - 1, most).astype(np.int64)


@dataclass(frozen=True)
class NumberRange:
    """Where the known numbers of one column lie.

    Examples
    --------
    >>> import numpy as np
    >>> from steelyard.table.summary.whole_column import range_of
    >>> found = range_of(np.array([1.0, 2.0, np.nan, 3.0, 9.0]))
    >>> found.low, found.quartiles, found.high
    (1.0, (1.0, 2.0, 3.0), 9.0)
    """

    low: float
    high: float
    quartiles: tuple[float, ...] = ()
    """The three quartiles; empty where they are not known."""

    histogram: tuple[float, ...] = ()
    """Shares of the weight in bars of equal width from low to high; or empty."""

    weight: float = 0.0
    """Weight of the known cells."""

    @property
    def points(self) -> list[float]:
        """Ends and quartiles, increasing, none twice."""
        return sorted({self.low, *self.quartiles, self.high})

    @property
    def is_whole(self) -> bool:
        """Whether the column seems to hold whole numbers: ends and quartiles do."""
        return bool(self.quartiles) and all(x == round(x) for x in self.points)

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
        both = [(part.weight / weight) * part._below(ends) for part in (self, other)]
        below = np.sum(both, axis=0)
        quartiles = np.interp(_QUARTERS, below, ends).tolist()
        bars = np.diff(below)
        # Numbers that are all the same have no bar of their own.
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
    """Return the range of numbers, NaN left out; None where there are none."""
    known = ~np.isnan(numbers)
    if not known.all():
        numbers = numbers[known]
        weights = None if weights is None else weights[known]
    if not len(numbers):
        return None
    weight = float(len(numbers) if weights is None else weights.sum())
    ends, rows = (float(numbers.min()), float(numbers.max())), sampled(len(numbers))
    some = None if weights is None else weights[rows]
    return weighed_range(ends, numbers[rows], some, weight)


def sampled(n_rows: int) -> Any:
    """Return the rows whose quartiles and bars stand for those of all."""
    return slice(None) if n_rows <= _SAMPLE else evenly(n_rows, _SAMPLE)


def settled_mean(mean: float, numbers: Floats) -> float:
    """Return a mean, or the number of a column that it is but for rounding."""
    nearest = numbers[np.abs(numbers - mean).argmin()]
    is_same = abs(nearest - mean) <= ROUNDING * np.abs(numbers).max()
    return float(nearest if is_same else mean)


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


def added_ranges(
    before: Iterable[NumberRange | None], more: Iterable[NumberRange | None]
) -> list[Any]:
    """Return the ranges of columns after more rows."""
    both = zip(before, more, strict=True)
    return [a + b if a is not None and b is not None else a or b for a, b in both]


# Whole numbers that are all different are running numbers where so few are left out: a
# fold has those of most rows.
_MANY_ROWS, _DENSE, _DENSE_OF_FEW = 100, 2.0, 1.3
# Of few rows, numbers between these may be steps of a measurement, and these be years.
_STEPS, _YEARS = (2, 999), (1800, 2100)
_KNOWN = 0.9
# Numbers of so many digits that are all different are names, if they are no moments
# since 1970 in milli-, micro- or nanoseconds.
_LONG = 1e11
_MOMENTS = (9e11, 2.3e12)
_UNITS = (1.0, 1e3, 1e6)


def numbering(where: NumberRange, n_rows: int) -> str | None:
    """Say how whole numbers in some range name so many rows, if all are different.

    Examples
    --------
    >>> numbering(NumberRange(1, 150), 120), numbering(NumberRange(1, 500), 120)
    ('a running number', None)
    >>> numbering(NumberRange(1980, 2020), 41)  # years
    >>> numbering(NumberRange(4000123412340000, 4999123412340000), 50)
    'whole numbers of 16 digits, all different'
    """
    low, high, is_few = where.low, where.high, n_rows < _MANY_ROWS
    if not float(low).is_integer() or not float(high).is_integer():
        return None
    if high - low < (_DENSE_OF_FEW if is_few else _DENSE) * n_rows:
        is_measured = any(a <= low and high <= b for a, b in (_STEPS, _YEARS))
        return None if is_few and is_measured else "a running number"
    are_moments = any(
        _MOMENTS[0] <= low / unit and high / unit <= _MOMENTS[1] for unit in _UNITS
    )
    if low < _LONG or are_moments:
        return None
    return f"whole numbers of {len(str(int(high)))} digits, all different"


@dataclass(frozen=True)
class LabelledRows:
    """Classes and weights of rows, where there are any."""

    n_rows: int
    labels: Any = None
    """Positions among the classes, shape (n,)."""

    weights: Floats | None = None
    n_classes: int = 0

    @cached_property
    def total(self) -> float:
        """Weight of all rows."""
        return float(self.n_rows if self.weights is None else self.weights.sum())

    @cached_property
    def sample(self) -> Any:
        """Rows whose quartiles stand for those of all."""
        return sampled(self.n_rows)

    def totals(self, chosen: Any = slice(None)) -> Floats:
        """Return the weight of some rows by class, of all by default, shape (K,)."""
        weights = None if self.weights is None else self.weights[chosen]
        by_class = np.bincount(self.labels[chosen], weights, self.n_classes)
        return by_class.astype(np.float64)


class WholeColumn(ColumnCells):
    """A column in memory, with the classes and weights of its rows.

    What is known already of the columns of a matrix is given, and not looked for: the
    values, none of them missing, or the smallest and the largest number, and those of
    sampled rows.
    """

    def __init__(
        self,
        column: TableColumn,
        name: str | None,
        rows: LabelledRows,
        is_category: bool,
        values: Sequence[Any] | None = None,
        ends: Ends | None = None,
        some: Floats | None = None,
    ) -> None:
        super().__init__(column)
        self.position, self.name, self.label = column.position, name, column.label
        self.storage, self.cells = column.storage, column.cells
        self.declared, self.is_integer = column.declared, column.is_integer
        self.order = column.order
        self.rows, self.is_category = rows, is_category
        self._held, self._ends, self._some = values, ends, some
        self._is_known = values is not None

    @cached_property
    def _known(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.numbers)

    @property
    def some_missing(self) -> bool:
        """Whether any cell is missing."""
        if self._is_known:
            return False
        return self.factor.some_missing if self.is_category else not self._known.all()

    @property
    def held(self) -> Sequence[Any]:
        """The values that rows hold, of categories."""
        if self._held is None:
            self._held = self.factor.held()[0]
        return self._held

    def weights_by_code(self, feature: FeatureSchema) -> Floats:
        """Return the weight of each category, shape (n_codes,)."""
        codes = codes_of(feature, self.factor)
        weights = self.rows.weights
        return np.bincount(codes, weights, feature.n_codes).astype(np.float64)

    def numbering(self, where: NumberRange, n_rows: int) -> str | None:
        """Say how whole numbers name so many rows, None where they do not."""
        how = numbering(where, n_rows)
        # Whole numbers with missing ones among them are floats in many a frame.
        if how is None or not (
            self.is_integer or (self.some_missing and not self.column.is_date)
        ):
            return None
        known = self.numbers[self._known]
        is_name = len(known) >= _KNOWN * n_rows and (known == known.round()).all()
        return how if is_name and len(np.unique(known)) == len(known) else None

    def n_whole_numbers(self) -> int:
        """Return how many different whole numbers there are, 0 where some are not."""
        known = self.numbers[self._known]
        are_whole = not self.column.is_date and (known == known.round()).all()
        return len(np.unique(known)) if are_whole else 0

    def mean(self) -> float:
        """Return the mean of the known numbers."""
        known, weights = self._known, self.rows.weights
        weights = None if weights is None else weights[known]
        numbers = self.numbers[known]
        return settled_mean(np.average(numbers, weights=weights), numbers)

    def edges(self, discretizer: Discretizer, fill: float | None) -> Floats:
        """Return the cut points of the numbers, missing ones filled in."""
        rows, place = self.rows, (self.position, self.name)
        return discretizer.known_edges(
            self._filled(fill), rows.labels, rows.n_classes, rows.weights, column=place
        )

    def distinct(self, fill: float | None) -> Floats:
        """Return the different numbers, sorted, missing ones filled in."""
        numbers = self._filled(fill)
        return np.unique(numbers[~np.isnan(numbers)])

    def known_range(self) -> NumberRange | None:
        """Return where the numbers lie; quartiles are those of a sample."""
        weights = self.rows.weights
        # An infinite number is refused, and a missing one left out, among all.
        is_finite = self._ends is not None and np.isfinite(self._ends).all()
        if self._ends is None or self._some is None or not is_finite:
            return range_of(self.numbers, weights)
        some = None if weights is None else weights[self.rows.sample]
        return weighed_range(self._ends, self._some, some, self.rows.total)

    def _filled(self, fill: float | None) -> Floats:
        if fill is None or not self.some_missing:
            return self.numbers
        return np.where(self._known, self.numbers, fill)

    def grown(
        self,
        feature: FeatureSchema,
        missing: str,
        edges: Callable[[], Sequence[Sequence[float]]],
    ) -> FeatureSchema:
        """Return the schema of an attribute with the values of these rows taken in.

        ``edges`` gives the cut points of a binned column that was empty so far, by each
        discretizer.
        """
        if feature.left_out:
            return feature
        check_cells(feature, self.column)
        if feature.kind != "categorical" and self.cells == "text":
            # So far all cells were missing, and now it turns out what the column holds.
            if feature.kind != "binned":
                raise ColumnError(
                    f"{self.label} was empty in the rows so far and was taken as "
                    "numbers (`numeric`), and now holds text. Name it in "
                    "`categorical_features`."
                )
            feature = replace(feature, kind="categorical")
        if feature.cells == "nothing" and self.cells != "nothing":
            if feature.kind == "binned":
                feature = feature.cut_at(edges())
            # All cells so far were missing: from now on that is a value among others.
            as_value = missing == "value" and feature.is_coded
            feature = replace(feature, cells=self.cells, missing_is_value=as_value)
        self.is_category = feature.kind == "categorical"
        if missing == "value" and feature.is_coded and not feature.missing_is_value:
            # Of an empty column it is not known yet what missing cells are beside.
            is_known = self.is_category or feature.cells != "nothing"
            if is_known and self.some_missing:
                feature = replace(feature, missing_is_value=True)
        if not self.is_category:
            return feature
        return with_values(feature, self.factor.values, lambda: self.held)


def with_values(
    feature: FeatureSchema, listed: Iterable[Any], held: Callable[[], Iterable[Any]]
) -> FeatureSchema:
    """Return the schema of a categorical column with the values that rows hold.

    That is asked only where not all that are listed are known already.
    """
    if all(feature.codes([*listed])):
        return feature
    order = feature.values if feature.ordered else None
    values = sort_values([*feature.values, *held()], order)
    fill = feature.fill
    if fill is not None:
        fill = 1 + values.index(feature.values[int(fill) - 1])
    return replace(feature, values=values, fill=fill)
