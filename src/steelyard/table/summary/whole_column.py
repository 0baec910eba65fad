"""A column in memory: its cells and its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats
from steelyard.exceptions import ColumnError
from steelyard.table.by_schema import ColumnCells, check_cells, codes_of
from steelyard.table.columns import TableColumn
from steelyard.table.discretizers import Discretizer
from steelyard.table.schema import FeatureSchema, sort_values
from steelyard.table.summary.ranges import (
    Ends,
    NumberRange,
    range_of,
    sampled,
    weighed_range,
)

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
    values, none of them missing, or the smallest and the largest number.
    """

    def __init__(
        self,
        column: TableColumn,
        name: str | None,
        rows: LabelledRows,
        is_category: bool,
        values: Sequence[Any] | None = None,
        ends: Ends | None = None,
    ) -> None:
        super().__init__(column)
        self.position, self.name, self.label = column.position, name, column.label
        self.storage, self.cells = column.storage, column.cells
        self.declared, self.is_integer = column.declared, column.is_integer
        self.order = column.order
        self.rows, self.is_category = rows, is_category
        self._held, self._ends = values, ends
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

    def mean(self) -> float:
        """Return the mean of the known numbers."""
        known, weights = self._known, self.rows.weights
        weights = None if weights is None else weights[known]
        return float(np.average(self.numbers[known], weights=weights))

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
        if self._ends is None or not np.isfinite(self._ends).all():
            return range_of(self.numbers, weights)
        rows = self.rows.sample
        numbers = self.column.take(rows).numbers()
        some = None if weights is None else weights[rows]
        return weighed_range(self._ends, numbers, some, self.rows.total)

    def _filled(self, fill: float | None) -> Floats:
        if fill is None or not self.some_missing:
            return self.numbers
        return np.where(self._known, self.numbers, fill)

    def grown(
        self,
        feature: FeatureSchema,
        missing: str,
        edges: Callable[[], tuple[float, ...]],
    ) -> FeatureSchema:
        """Return the schema of an attribute with the values of these rows taken in.

        ``edges`` gives the cut points of a binned column that was empty so far.
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
            cuts = edges() if feature.kind == "binned" else ()
            # All cells so far were missing: from now on that is a value among others.
            as_value = missing == "value" and feature.is_coded
            feature = replace(
                feature, cells=self.cells, edges=cuts, missing_is_value=as_value
            )
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
    if all(value in feature.code_of for value in listed):
        return feature
    order = feature.values if feature.ordered else None
    values = sort_values([*feature.values, *held()], order)
    fill = feature.fill
    if fill is not None:
        fill = 1 + values.index(feature.values[int(fill) - 1])
    return replace(feature, values=values, fill=fill)
