"""Counts of a summary: what a second reading would count is often known already."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from steelyard.table.cells import bins_of
from steelyard.table.cells_by_value import Cells
from steelyard.table.column_summary import ColumnSummary
from steelyard.table.schema import FeatureSchema, TableSchema
from steelyard.table.summary import Summary

_Floats = NDArray[np.float64]


def counts_by_code(summary: Summary, schema: TableSchema) -> _Floats | None:
    """Return the weight of each code within each class, shape (V, K), if it is known.

    The schema is that of the summary, whose rows were taken in with ``counts=True``.
    Densities need another reading, and so do bins that cut through cells of numbers.
    """
    parts = []
    for j, feature in zip(schema.columns, schema.features, strict=True):
        column = summary.columns[j]
        mass = _by_code(column, feature, summary.cells(j))
        if mass is None:
            return None
        # A missing cell may be filled in with the code of a value.
        mass[feature.missing_code] += column.missing
        parts.append(mass)
    return np.concatenate(parts)


def _by_code(
    column: ColumnSummary, feature: FeatureSchema, cells: Cells | None
) -> _Floats | None:
    """Return the weight of the known cells of a column by code, None if unknown."""
    if not feature.is_coded:
        return None
    mass = np.zeros((feature.n_codes, len(column.missing)))
    if feature.kind == "categorical":
        values = column.values
        codes = [feature.code_of[value] for value in values.index]
        np.add.at(mass, codes, values.mass)
        return mass
    if column.numbers is None:
        return mass
    if cells is None:
        return None
    low, high = bins_of(feature, cells.low), bins_of(feature, cells.high)
    if not np.array_equal(low, high):
        return None
    np.add.at(mass, low, cells.mass)
    return mass
