"""What is learned about a column: kind, values, cut points, fill for missing cells.

The rules are the same for a column in memory and one that comes in chunks. Both answer
the same questions, here by the cells.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from steelyard._common.allowed import MIN_STEP
from steelyard._common.arrays import Floats
from steelyard.exceptions import ColumnError
from steelyard.table.columns import TableColumn
from steelyard.table.discretizers.base import Discretizer, without_missing
from steelyard.table.encoding import check_cells, codes_of
from steelyard.table.identifiers import numbering, suspicion
from steelyard.table.ranges import (
    Ends,
    NumberRange,
    range_of,
    sampled,
    weighed_range,
)
from steelyard.table.schema import FeatureSchema, sort_values
from steelyard.table.treatments import Treatment

if TYPE_CHECKING:
    from steelyard.table.encoder import TableEncoder
    from steelyard.table.summary.chunked_column import ChunkedColumn

ColumnSummary: TypeAlias = "WholeColumn | ChunkedColumn"
"""A column that answers what the rules ask."""

# Weka's step of numbers that are all the same.
_ONLY_STEP = 0.01

# Sums in another order, or of copies of rows, differ by less, as a share.
_ROUNDING = 1e-13

# Share of whole numbers that are not missing in a column that numbers the rows.
_MIN_NUMBERED = 0.9


class LearnedColumn(NamedTuple):
    """What is learned about a column."""

    feature: FeatureSchema
    range: NumberRange | None
    suspect: str | None
    """What makes the column look like an identifier."""


def learned_column(
    column: ColumnSummary,
    treatment: Treatment,
    settings: TableEncoder,
    n_rows: int,
    left_out: Collection[int] | None = None,
    with_range: bool = True,
) -> LearnedColumn:
    """Learn the schema of a column of ``n_rows`` rows.

    If it is known which columns are left out, no identifiers are looked for, and the
    range of the numbers need not be computed.
    """
    has_range = with_range and not column.is_category
    where = column.known_range() if has_range else None
    suspect = suspicion(column, where, n_rows) if left_out is None else None
    is_dropped = suspect is not None and not settings.keep_identifiers
    if is_dropped or column.position in (left_out or ()):
        nothing = FeatureSchema(column.name, "categorical", "nothing", left_out=True)
        return LearnedColumn(nothing, None, suspect)
    if treatment.kind == "categorical":
        return LearnedColumn(_category(column, settings), where, suspect)
    feature = FeatureSchema(column.name, treatment.kind, column.cells)
    if column.cells == "nothing":
        # It is not known yet whether it will contain numbers. A column without observed
        # cells has no influence.
        step = _ONLY_STEP if treatment.kind == "gaussian-weka" else 0.0
        return LearnedColumn(replace(feature, step=step), where, suspect)
    fill = column.mean() if settings.missing == "impute" else None
    if treatment.kind == "binned":
        edges = []
        for discretizer in treatment.discretizers:
            edges.append(column.edges(discretizer, fill).tolist())
        feature = feature.cut_at(edges)
        feature = replace(
            feature,
            missing_is_value=settings.missing == "value" and column.some_missing,
            fill=None if fill is None else 1 + bisect_left(feature.edges, fill),
        )
    elif treatment.kind == "gaussian-weka":
        step = _grid_step(column.distinct(fill))
        feature = replace(feature, fill=fill, step=step)
    elif fill is not None:
        feature = replace(feature, fill=fill)
    return LearnedColumn(feature, where, suspect)


def _category(column: ColumnSummary, settings: TableEncoder) -> FeatureSchema:
    held = values = column.held
    if settings.cardinality == "declared":
        values = [*held, *(column.declared or [])]
    feature = FeatureSchema(
        column.name,
        "categorical",
        column.cells,
        sort_values(values, column.order),
        missing_is_value=settings.missing == "value" and column.some_missing,
        ordered=column.order is not None and bool(values),
    )
    if settings.missing != "impute" or not held:
        return feature
    weights = column.weights_by_code(feature)[1:]
    most = int(np.argmax(weights >= (1.0 - _ROUNDING) * weights.max()))
    return replace(feature, fill=1 + most)


def _grid_step(distinct: Floats) -> float:
    """Mean distance of distinct neighbours, Weka's precision of an attribute."""
    if distinct.size < 2:
        return _ONLY_STEP
    with np.errstate(over="ignore"):
        step = float((distinct[-1] - distinct[0]) / (distinct.size - 1))
    return step if step >= MIN_STEP and np.isfinite(step) else _ONLY_STEP


def settled_mean(mean: float, numbers: Floats) -> float:
    """Return a mean, or the number of a column that it is but for rounding."""
    nearest = numbers[np.abs(numbers - mean).argmin()]
    is_same = abs(nearest - mean) <= _ROUNDING * np.abs(numbers).max()
    return float(nearest if is_same else mean)


# --------------------------------------------------------------------- new categories


def grown(
    column: TableColumn,
    feature: FeatureSchema,
    missing: str,
    first_edges: Callable[[], Sequence[Sequence[float]]],
) -> FeatureSchema:
    """Return the schema of an attribute with the values of more rows taken in.

    ``first_edges`` returns the cut points, by each discretizer, of a binned column that
    was empty so far.
    """
    if feature.left_out:
        return feature
    check_cells(feature, column)
    if feature.kind != "categorical" and column.cells == "text":
        # So far all cells were missing, and now it turns out what the column contains.
        if feature.kind != "binned":
            raise ColumnError(
                f"{column.label} was empty in the rows so far and was taken as "
                "numbers (`numeric`), but now contains text. Name it in "
                "`categorical_features`."
            )
        feature = replace(feature, kind="categorical")
    is_category = feature.kind == "categorical"
    if feature.cells == "nothing" and column.cells != "nothing":
        if feature.kind == "binned":
            feature = feature.cut_at(first_edges())
        # All cells so far were missing: from now on that is a value among others.
        as_value = missing == "value" and feature.is_coded
        feature = replace(feature, cells=column.cells, missing_is_value=as_value)
    if missing == "value" and feature.is_coded and not feature.missing_is_value:
        # Of an empty column it is not known yet what else its cells will be.
        is_known = is_category or feature.cells != "nothing"
        if is_known and WholeColumn(column, is_category).some_missing:
            feature = replace(feature, missing_is_value=True)
    if not is_category:
        return feature
    factor = column.finite_factor
    return with_values(feature, factor.values, lambda: factor.held()[0])


def with_values(
    feature: FeatureSchema, listed: Iterable[Any], held: Callable[[], Iterable[Any]]
) -> FeatureSchema:
    """Return the schema of a categorical column with the values that occur.

    These are asked for only if some that are listed are new.
    """
    if all(feature.codes([*listed])):
        return feature
    order = feature.values if feature.ordered else None
    values = sort_values([*feature.values, *held()], order)
    fill = feature.fill
    if fill is not None:
        fill = 1 + values.index(feature.values[int(fill) - 1])
    return replace(feature, values=values, fill=fill)


# ------------------------------------------------------------------ a column in memory


@dataclass(frozen=True)
class LabelledRows:
    """Classes and weights of rows, if there are any."""

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
        """Rows whose quartiles are taken for those of all."""
        return sampled(self.n_rows)

    def totals(self, chosen: Any = slice(None)) -> Floats:
        """Return the weight of some rows by class, of all by default, shape (K,)."""
        weights = None if self.weights is None else self.weights[chosen]
        by_class = np.bincount(self.labels[chosen], weights, self.n_classes)
        return by_class.astype(np.float64)


class WholeColumn:
    """A column in memory, with the classes and weights of its rows.

    What is known already of the columns of a matrix is given, and not looked for: the
    values, none of them missing, or the smallest and the largest number, and those of
    sampled rows.
    """

    def __init__(
        self,
        column: TableColumn,
        is_category: bool,
        rows: LabelledRows | None = None,
        values: Sequence[Any] | None = None,
        ends: Ends | None = None,
        some: Floats | None = None,
    ) -> None:
        self.column, self.is_category = column, is_category
        self.rows = rows or LabelledRows(len(column))
        self.position, self.name = column.position, column.name
        self.cells, self.is_integer = column.cells, column.is_integer
        self.declared, self.order = column.declared, column.order
        self._values, self._ends, self._some = values, ends, some

    @cached_property
    def _is_present(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.column.finite_numbers)

    @property
    def some_missing(self) -> bool:
        """Whether any cell is missing."""
        if self._values is not None:
            return False
        if self.is_category:
            return self.column.finite_factor.some_missing
        return not self._is_present.all()

    @cached_property
    def held(self) -> Sequence[Any]:
        """The values of a categorical column."""
        if self._values is not None:
            return self._values
        return self.column.finite_factor.held()[0]

    def weights_by_code(self, feature: FeatureSchema) -> Floats:
        """Return the weight of each category, shape (n_codes,)."""
        codes = codes_of(feature, self.column.finite_factor)
        weights = self.rows.weights
        return np.bincount(codes, weights, feature.n_codes).astype(np.float64)

    def numbering(self, where: NumberRange, n_rows: int) -> str | None:
        """Return how whole numbers number the rows, None if they do not."""
        how = numbering(where, n_rows)
        # Whole numbers with missing ones among them are floats in many a frame.
        if how is None or not (
            self.is_integer or (self.some_missing and not self.column.is_date)
        ):
            return None
        present = self.column.finite_numbers[self._is_present]
        is_name = len(present) >= _MIN_NUMBERED * n_rows
        is_name = is_name and bool((present == present.round()).all())
        return how if is_name and len(np.unique(present)) == len(present) else None

    def n_whole_numbers(self) -> int:
        """Return how many different whole numbers there are, 0 if some are not."""
        present = self.column.finite_numbers[self._is_present]
        are_whole = not self.column.is_date and (present == present.round()).all()
        return len(np.unique(present)) if are_whole else 0

    def mean(self) -> float:
        """Return the mean of the numbers."""
        present, weights = self._is_present, self.rows.weights
        weights = None if weights is None else weights[present]
        numbers = self.column.finite_numbers[present]
        return settled_mean(np.average(numbers, weights=weights), numbers)

    def edges(self, discretizer: Discretizer, fill: float | None) -> Floats:
        """Return the cut points of the numbers, missing ones filled in."""
        rows, column = self.rows, (self.position, self.name)
        numbers, y, w = without_missing(self._filled(fill), rows.labels, rows.weights)
        return discretizer.column_edges(numbers, y, rows.n_classes, w, column=column)

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
            return range_of(self.column.finite_numbers, weights)
        some = None if weights is None else weights[self.rows.sample]
        return weighed_range(self._ends, self._some, some, self.rows.total)

    def _filled(self, fill: float | None) -> Floats:
        if fill is None or not self.some_missing:
            return self.column.finite_numbers
        return np.where(self._is_present, self.column.finite_numbers, fill)
