"""A second reading of some columns, where cells of numbers are too heavy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.checks import check_weights
from steelyard.table.cells import numbers_of
from steelyard.table.cells_by_value import Cells, CellsByValue
from steelyard.table.frames import Table
from steelyard.table.labels import as_label_column, known_labels, weighted_rows

_Floats = NDArray[np.float64]
_Range = tuple[_Floats, _Floats]
"""Smallest and largest numbers of heavy cells."""


class Rereading:
    """Numbers of heavy cells in finer cells of their own; two of them add up."""

    def __init__(
        self, ranges: dict[int, _Range], names: list[str] | None, classes: NDArray[Any]
    ) -> None:
        self._ranges, self._names, self._classes = ranges, names, classes
        self._tables = {j: CellsByValue(len(classes)) for j in ranges}

    @property
    def columns(self) -> list[Any]:
        """The columns that are read: names, or positions where there are none."""
        return [j if self._names is None else self._names[j] for j in self._ranges]

    def take_in(self, table: Table, y: Any, weights: Any = None) -> None:
        """Add the rows of a chunk, which may be of these columns alone if named."""
        if weights is not None and not np.any(weights):
            return
        weights = check_weights(weights, table.n_rows)
        table, y, weights = weighted_rows(table, as_label_column(y), weights)
        labels = known_labels(y, self._classes)
        for j, (low, high) in self._ranges.items():
            k = j
            if self._names is not None and table.names is not None:
                k = table.names.index(self._names[j])
            numbers = numbers_of(table.columns[k])
            # NaN compares with nothing and is never inside.
            cell = np.searchsorted(low, numbers, side="right") - 1
            inside = (numbers >= low[0]) & (numbers <= high[np.maximum(cell, 0)])
            self._tables[j].add(numbers[inside], labels[inside], _some(weights, inside))

    def __add__(self, other: Rereading) -> Rereading:
        """Return what the rows of both give."""
        out = Rereading(self._ranges, self._names, self._classes)
        out._tables = {j: self._tables[j] + other._tables[j] for j in self._ranges}
        return out

    def cells(self, j: int) -> Cells | None:
        """Return the finer cells of a column, None if it was not read again."""
        return self._tables[j].cells() if j in self._tables else None


def _some(weights: _Floats | None, kept: NDArray[np.bool_]) -> _Floats | None:
    return None if weights is None else weights[kept]
