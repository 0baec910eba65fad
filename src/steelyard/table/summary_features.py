"""From the summary of a column to the schema of an attribute."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from steelyard.exceptions import ColumnError
from steelyard.table.cells_by_value import Cells, most_cells
from steelyard.table.column_summary import ColumnSummary, Numbers
from steelyard.table.discretizers import Discretizer
from steelyard.table.identifiers import MIN_ROWS, RUNNING_NUMBER, too_many_values
from steelyard.table.learning import grid_step
from steelyard.table.ranges import NumberRange, weighed_range
from steelyard.table.schema import FeatureSchema, sort_values
from steelyard.table.treatments import Treatment

_Floats = NDArray[np.float64]
_Weights = tuple[_Floats, _Floats | None]
"""Weight of the known cells of each class, and the factor on it."""


def category_feature(
    column: ColumnSummary, missing: str, cardinality: str, factors: _Floats | None
) -> FeatureSchema:
    """Return the schema of a categorical column."""
    values = column.values.plain()
    declared = column.declared or [] if cardinality == "declared" else []
    feature = FeatureSchema(
        column.name,
        "categorical",
        column.known.cells,
        values=sort_values([*values, *declared]),
        missing_is_value=missing == "value" and column.some_missing,
    )
    if missing != "impute" or not values:
        return feature
    totals = np.zeros(feature.n_codes)
    mass = column.values.mass
    codes = [feature.code_of[value] for value in values]
    totals[codes] = (mass if factors is None else mass * factors).sum(axis=1)
    return replace(feature, fill=1 + int(np.argmax(totals[1:])))


def number_feature(
    column: ColumnSummary,
    treatment: Treatment,
    missing: str,
    weights: _Weights,
    known: Cells | None,
) -> FeatureSchema:
    """Return the schema of a numeric column under one treatment."""
    numbers, cells = column.numbers, column.known.cells
    feature = FeatureSchema(column.name, treatment.kind, cells)
    if numbers is None or cells == "nothing":
        return replace(feature, step=0.01 if feature.kind == "gaussian-weka" else 0.0)
    fill = _mean(numbers, *weights) if missing == "impute" else None
    by_value = _cells(column, numbers, fill, weights[1], known)
    if not isinstance(treatment, Discretizer):
        step = 0.0
        if feature.kind == "gaussian-weka":
            step = _step(column, by_value)
        return replace(feature, fill=fill, step=step)
    edges = by_value.edges(treatment, (column.position, column.name))
    return replace(
        feature,
        edges=tuple(edges.tolist()),
        missing_is_value=missing == "value" and column.some_missing,
        fill=None if fill is None else 1 + int(np.searchsorted(edges, fill)),
    )


def number_range(column: ColumnSummary, factors: _Floats | None) -> NumberRange | None:
    """Return where the numbers of a column lie; quartiles where cells were kept."""
    numbers, content = column.numbers, column.known
    if numbers is None or content.is_category or content.cells == "nothing":
        return None
    ends = float(numbers.low.min()), float(numbers.high.max())
    if numbers.cells is None:
        return NumberRange(*ends)
    cells = numbers.cells.cells().scaled(factors)
    mass = cells.mass.sum(axis=1)
    middle = cells.low + (cells.high - cells.low) / 2.0
    return weighed_range(*ends, middle, mass, float(mass.sum()))


def suspect(column: ColumnSummary, n_rows: int) -> str | None:
    """Say what makes a column look like an identifier, None for other columns."""
    content = column.known
    n_values = len(column.values.index)
    if content.cells == "text":
        return too_many_values(n_rows, n_values)
    if n_rows < MIN_ROWS or column.some_missing or not content.is_integer:
        return None
    if content.is_category:
        values = column.values.index
        is_running = n_values == n_rows and max(values) - min(values) == n_rows - 1
    else:
        is_running = column.numbers is not None and column.numbers.is_running
    return RUNNING_NUMBER if is_running else None


def _mean(numbers: Numbers, known: _Floats, factors: _Floats | None) -> float:
    if factors is None:
        return float(numbers.sums.sum() / known.sum())
    return float((numbers.sums * factors).sum() / (known * factors).sum())


def _cells(
    column: ColumnSummary,
    numbers: Numbers,
    fill: float | None,
    factors: _Floats | None,
    known: Cells | None,
) -> Cells:
    """Return the cells of a column as a discretizer has to see them."""
    if known is None:
        # Only the ends of the range are asked for, if anything.
        counted = numbers.low <= numbers.high
        if factors is not None:
            counted &= factors > 0
        ends = np.unique([numbers.low[counted], numbers.high[counted]])
        return Cells(ends, ends, np.ones((len(ends), 1)))
    if fill is not None and column.some_missing:
        known = known.with_number(fill, column.missing)
    return known.scaled(factors)


def _step(column: ColumnSummary, cells: Cells) -> float:
    if not cells.is_exact:
        most = most_cells(cells.mass.shape[1])
        raise ColumnError(
            f"{column.label} has more than {most:,} different numbers, and "
            "'gaussian-weka' needs to know how many there are. Use 'gaussian', or load "
            "the table into memory."
        )
    return grid_step(cells.low)
