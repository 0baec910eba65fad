"""The weight of each class by the values of a number, in bounded memory.

All cells of a column are prefixes, of the same length, of the bits of its numbers: the
longest prefixes of which there are not too many. That length is a property of the set
of numbers, so that nothing depends on their order, and the cells of two sets merge.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.kernels import prefixes
from steelyard.kernels.cuts import midpoints
from steelyard.table.discretizers.base import ColumnId, Discretizer

_Floats = NDArray[np.float64]
_Keys = NDArray[np.uint64]

_Table = tuple[_Keys, _Floats, int]
"""Smallest and largest key of each cell, its weight by class, and the shift."""

# Most cells of a column, with up to so many classes and beyond.
_MOST_CELLS = 1 << 16
_MANY_CLASSES = 32
_FEWER_CELLS = 1 << 14

# Cells of a table to begin with, and by how much it grows. In the end it holds a few
# more than it may keep, so that prefixes are not shortened at every other number.
_FIRST_CELLS = 1 << 8
_GROWTH = 8
_SLACK = 1.25

# A cell with more than this share of the weight is read again, if it has many values.
_HEAVY = 1 / 2048

_NO_WEIGHTS = np.empty(0)


def most_cells(n_classes: int) -> int:
    """Return how many cells a column may have, and so how many values exactly."""
    return _MOST_CELLS if n_classes <= _MANY_CLASSES else _FEWER_CELLS


@dataclass(frozen=True)
class Cells:
    """Neighbouring numbers taken together: where each cell lies and what it weighs."""

    low: _Floats
    """Smallest number of each cell, increasing, shape (m,)."""

    high: _Floats
    """Largest number of each cell, shape (m,)."""

    mass: _Floats
    """Weight by class, shape (m, K)."""

    @property
    def is_exact(self) -> bool:
        """Whether every cell is a single number."""
        return bool((self.low == self.high).all())

    def scaled(self, factors: _Floats | None) -> Cells:
        """Multiply the weight of each class; cells without any are left out."""
        if factors is None:
            return self
        mass = self.mass * factors
        kept = mass.any(axis=1)
        return Cells(self.low[kept], self.high[kept], mass[kept])

    def with_number(self, number: float, mass: _Floats) -> Cells:
        """Add the weight of one number, shape (K,)."""
        k = int(np.searchsorted(self.high, number))
        if k < len(self.low) and self.low[k] <= number:
            by_cell = self.mass.copy()
            by_cell[k] += mass
            return Cells(self.low, self.high, by_cell)
        return Cells(
            np.insert(self.low, k, number),
            np.insert(self.high, k, number),
            np.insert(self.mass, k, mass, axis=0),
        )

    def heavy(self) -> tuple[_Floats, _Floats]:
        """Range of each cell to be read again: much weight, several numbers."""
        total = self.mass.sum(axis=1)
        chosen = (total > _HEAVY * total.sum()) & (self.low < self.high)
        return self.low[chosen], self.high[chosen]

    def split(self, finer: Cells) -> Cells:
        """Put finer cells in the place of the heavy ones."""
        kept = ~np.isin(self.low, self.heavy()[0])
        parts = Cells(self.low[kept], self.high[kept], self.mass[kept]), finer
        low, high, mass = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("low", "high", "mass")
        )
        order = np.argsort(low)
        return Cells(low[order], high[order], mass[order])

    def edges(self, discretizer: Discretizer, column: ColumnId) -> _Floats:
        """Find cut points, which lie between cells; exact where the cells are.

        A discretizer that looks at the order of numbers alone gets numbers of cells,
        any other the ends of each cell, with half its weight.
        """
        cell, label = np.nonzero(self.mass)
        weights, n_classes = self.mass[cell, label], self.mass.shape[1]

        def found(values: _Floats, times: int = 1) -> _Floats:
            return discretizer.known_edges(
                values,
                np.tile(label.astype(np.uint32), times),
                n_classes,
                np.tile(weights / times, times),
                column=column,
            )

        if self.is_exact:
            return found(self.low[cell])
        if discretizer.reads != "order":
            return found(np.concatenate([self.low[cell], self.high[cell]]), times=2)
        left = np.floor(found(cell.astype(np.float64))).astype(np.int64)
        return midpoints(self.high[left], self.low[left + 1])


class CellsByValue:
    """Cells that numbers are added to; they add up.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    """

    _bounds: _Keys
    _mass: _Floats
    _slots: NDArray[np.int32]
    _n_cells: int
    _shift: int

    def __init__(self, n_classes: int) -> None:
        self._set(np.empty((0, 2), dtype=np.uint64), np.empty((0, n_classes)), 0)

    def add(
        self, numbers: _Floats, labels: NDArray[np.uint32], weights: _Floats | None
    ) -> None:
        """Take in numbers (NaN are left out) with their classes and weights."""
        bits = numbers.view(np.uint64)
        weights = _NO_WEIGHTS if weights is None else weights
        row = 0
        while True:
            row, self._n_cells = prefixes.add_numbers(
                bits,
                labels,
                weights,
                row,
                self._shift,
                self._slots,
                self._bounds,
                self._mass,
                self._n_cells,
            )
            if row == len(bits):
                return
            if len(self._bounds) < self._room:
                self._set(*self._held())
            else:
                self._settle()

    @property
    def shift(self) -> int:
        """How many bits of a key a cell leaves open."""
        return self._settle()[2]

    @property
    def n_cells(self) -> int:
        """How many cells there are."""
        return len(self._settle()[0])

    def with_classes(
        self, positions: NDArray[np.int64], n_classes: int
    ) -> CellsByValue:
        """Return the same cells among more classes: where each class has gone."""
        bounds, old, shift = self._held()
        mass = np.zeros((len(bounds), n_classes))
        mass[:, positions] = old
        out = CellsByValue(n_classes)
        out._set(*_merged(bounds, mass, shift))
        return out

    def __add__(self, other: CellsByValue) -> CellsByValue:
        """Merge with the cells of other numbers."""
        a, b = self._held(), other._held()
        bounds, mass = (np.concatenate(pair) for pair in zip(a[:2], b[:2], strict=True))
        out = CellsByValue(mass.shape[1])
        out._set(*_merged(bounds, mass, max(a[2], b[2])))
        return out

    def __eq__(self, other: object) -> bool:
        """Compare what the cells hold."""
        if not isinstance(other, CellsByValue):
            return NotImplemented
        a, b = self.cells(), other.cells()
        return self.shift == other.shift and all(
            np.array_equal(x, y)
            for x, y in ((a.low, b.low), (a.high, b.high), (a.mass, b.mass))
        )

    __hash__ = None  # type: ignore[assignment]

    def cells(self) -> Cells:
        """Return the cells in increasing order."""
        bounds, mass, _ = self._settle()
        order = np.argsort(bounds[:, 0])
        low, high = map(prefixes.numbers_of_keys, bounds[order].T)
        return Cells(low, high, mass[order])

    def _held(self) -> _Table:
        """Return the cells of the table, of which there may be a few too many."""
        n = self._n_cells
        return self._bounds[:n], self._mass[:n], self._shift

    def _settle(self) -> _Table:
        """Shorten prefixes if there are too many, and return the cells."""
        if self._n_cells > most_cells(self._mass.shape[1]):
            self._set(*_merged(*self._held()))
        return self._held()

    def _set(self, bounds: _Keys, mass: _Floats, shift: int) -> None:
        """Make a table with these cells and room for more."""
        n, n_classes = mass.shape
        self._room = int(_SLACK * most_cells(n_classes))
        size = _FIRST_CELLS
        while size <= n:
            size *= _GROWTH
        size = min(size, self._room)
        self._n_cells, self._shift = n, shift
        self._bounds = np.empty((size, 2), dtype=np.uint64)
        self._mass = np.empty((size, n_classes))
        self._bounds[:n], self._mass[:n] = bounds, mass
        self._slots = np.empty(1 << int(1.5 * size).bit_length(), dtype=np.int32)
        prefixes.place_cells(self._bounds, n, shift, self._slots)


def _merged(bounds: _Keys, mass: _Floats, shift: int) -> _Table:
    """Take cells together that have the same prefix, as short as need be."""
    order = np.argsort(bounds[:, 0], kind="stable")
    bounds, mass = bounds[order], mass[order]
    shift = _shortest_shift(bounds[:, 0], shift, most_cells(mass.shape[1]))
    is_new = np.ones(len(bounds), dtype=bool)
    is_new[1:] = np.diff(bounds[:, 0] >> np.uint64(shift)) != 0
    first = np.flatnonzero(is_new)
    if len(first) == len(bounds):
        return bounds, mass, shift
    high = np.maximum.reduceat(bounds[:, 1], first)
    merged = np.stack([bounds[first, 0], high], axis=1)
    return merged, np.add.reduceat(mass, first, axis=0), shift


def _shortest_shift(keys: _Keys, shift: int, most: int) -> int:
    """Return the least shift, from one on, that leaves few enough prefixes.

    keys are sorted
    """
    while np.count_nonzero(np.diff(keys >> np.uint64(shift))) >= most:
        shift += 1
    return shift
