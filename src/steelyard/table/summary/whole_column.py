"""The summary of a column in memory: its cells, looked at when something is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.exceptions import ColumnError
from steelyard.table.cells import ColumnCells, check_cells, codes_of
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

_Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LabelledRows:
    """Classes and weights of rows, where there are any."""

    n_rows: int
    labels: Any = None
    """Positions among the classes, shape (n,)."""

    weights: _Floats | None = None
    n_classes: int = 0

    @cached_property
    def total(self) -> float:
        """Weight of all rows."""
        return float(self.n_rows if self.weights is None else self.weights.sum())

    @cached_property
    def sample(self) -> Any:
        """Rows whose quartiles stand for those of all."""
        return sampled(self.n_rows)

    def totals(self, chosen: Any = slice(None)) -> _Floats:
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

    def weights_by_code(self, feature: FeatureSchema) -> _Floats:
        """Return the weight of each category, shape (n_codes,)."""
        codes = codes_of(feature, self.factor)
        weights = self.rows.weights
        return np.bincount(codes, weights, feature.n_codes).astype(np.float64)

    @property
    def is_running(self) -> bool:
        """Whether whole numbers are a, a + 1, a + 2, … in some order."""
        n, spread = self.rows.n_rows, self.numbers.max() - self.numbers.min()
        return bool(spread == n - 1 and len(np.unique(self.numbers)) == n)

    def mean(self) -> float:
        """Return the mean of the known numbers."""
        known, weights = self._known, self.rows.weights
        weights = None if weights is None else weights[known]
        return float(np.average(self.numbers[known], weights=weights))

    def edges(self, discretizer: Discretizer, fill: float | None) -> _Floats:
        """Return the cut points of the numbers, missing ones filled in."""
        rows, place = self.rows, (self.position, self.name)
        return discretizer.known_edges(
            self._filled(fill), rows.labels, rows.n_classes, rows.weights, column=place
        )

    def distinct(self, fill: float | None) -> _Floats:
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

    def _filled(self, fill: float | None) -> _Floats:
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
    values = sort_values([*feature.values, *held()])
    fill = feature.fill
    if fill is not None:
        fill = 1 + values.index(feature.values[int(fill) - 1])
    return replace(feature, values=values, fill=fill)
