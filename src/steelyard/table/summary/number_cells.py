"""The weight of each class by the values of a number, in bounded memory.

All cells of a column are prefixes, of the same length, of the bits of its numbers: the
longest prefixes of which there are not too many. That length is a property of the set
of numbers, so that nothing depends on their order, and the cells of two sets merge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, Ints
from steelyard.kernels import hashing
from steelyard.kernels.cuts import midpoints
from steelyard.table.discretizers.base import ColumnId, Discretizer
from steelyard.table.frames import Table
from steelyard.table.labels import known_labels
from steelyard.table.learning import LabelledRows
from steelyard.table.rows import chunk_rows

_Keys = NDArray[np.uint64]

Spans = tuple[Floats, Floats]
"""Smallest and largest numbers of some cells."""

_Table = tuple[_Keys, Floats, int]
"""Smallest and largest key of each cell, its weight by class, and the shift."""

# Cells of a column, with up to this many classes and with more.
_MAX_CELLS, _MANY_CLASSES, _MAX_CELLS_OF_MANY = 1 << 16, 32, 1 << 14

# Memory of the cells of a second reading: four million of two classes.
_MAX_REREAD_BYTES = 1 << 27

# Cells of a table to begin with, and by how much it grows. In the end it has a few
# more than it may keep, so that prefixes are not shortened at every other number.
_FIRST_CELLS = 1 << 8
_GROWTH = 8
_SLACK = 1.25

# A cell with more than this share of the weight is read again, if it has many values.
_MIN_HEAVY = 1 / 2048

# Cells on each side of a cut point that are read again: among their numbers is the best
# cut, mostly.
_MIN_NEAR = 4

_NO_WEIGHTS = np.empty(0)


def most_cells(n_classes: int, n_columns: int | None = None) -> int:
    """Return how many cells a column may have, and so how many values exactly.

    In a second reading ``n_columns`` columns share a memory.
    """
    least = _MAX_CELLS if n_classes <= _MANY_CLASSES else _MAX_CELLS_OF_MANY
    if n_columns is None:
        return least
    return max(least, _MAX_REREAD_BYTES // (n_columns * 8 * (2 + n_classes)))


@dataclass(frozen=True)
class NumberCells:
    """Neighbouring numbers taken together: where each cell lies and what it weighs."""

    low: Floats
    """Smallest number of each cell, increasing, shape (m,)."""

    high: Floats
    """Largest number of each cell, shape (m,)."""

    mass: Floats
    """Weight by class, shape (m, K)."""

    @property
    def is_exact(self) -> bool:
        """Whether every cell is a single number."""
        return bool((self.low == self.high).all())

    def with_number(self, number: float, mass: Floats) -> NumberCells:
        """Add the weight of one number, shape (K,)."""
        k = int(np.searchsorted(self.high, number))
        if k < len(self.low) and self.low[k] <= number:
            by_cell = self.mass.copy()
            by_cell[k] += mass
            return NumberCells(self.low, self.high, by_cell)
        return NumberCells(
            np.insert(self.low, k, number),
            np.insert(self.high, k, number),
            np.insert(self.mass, k, mass, axis=0),
        )

    def to_read_again(
        self, fixed: Sequence[float], searched: Sequence[float], limit: int
    ) -> Spans:
        """Return the ends of the cells to be read again, each of several numbers.

        All are if their numbers, and so their rows, are not more than ``limit``.

        They have much weight, or are near a cut point. Cut points that are searched by
        the classes may lie elsewhere: around them as many cells as there is room for.
        """
        total = self.mass.sum(axis=1)
        last, several, near = len(total) - 1, self.low < self.high, _MIN_NEAR

        def around(edges: Sequence[float], near: int) -> Ints:
            left = np.searchsorted(self.high, edges)[:, None]
            return np.clip(left + np.arange(-near, near), 0, last)

        heavy = total > _MIN_HEAVY * total.sum()
        heavy[around(fixed, near)] = True
        while True:
            wider = heavy.copy()
            wider[around(searched, near)] = True
            wider &= several
            # The finer table separates these numbers.
            is_too_wide = total[wider].sum() > limit
            if near == _MIN_NEAR or not is_too_wide:
                chosen = wider
            if is_too_wide or near > last:
                return self.low[chosen], self.high[chosen]
            near *= 2

    def split(self, finer: NumberCells, replaced: Floats) -> NumberCells:
        """Put finer cells in the place of those that begin at some numbers."""
        kept = ~np.isin(self.low, replaced)
        low = np.concatenate([self.low[kept], finer.low])
        high = np.concatenate([self.high[kept], finer.high])
        mass = np.concatenate([self.mass[kept], finer.mass])
        order = np.argsort(low)
        return NumberCells(low[order], high[order], mass[order])

    def edges(self, discretizer: Discretizer, column: ColumnId) -> Floats:
        """Find cut points, which lie between cells; exact where the cells are.

        A discretizer that looks at the order of numbers alone gets numbers of cells,
        any other the ends of each cell, with half its weight.
        """
        cell, label = np.nonzero(self.mass)
        weights, n_classes = self.mass[cell, label], self.mass.shape[1]

        def counted(values: Floats, times: int = 1) -> Floats:
            return discretizer.column_edges(
                values,
                np.tile(label.astype(np.uint32), times),
                n_classes,
                np.tile(weights / times, times),
                column=column,
            )

        if self.is_exact:
            return counted(self.low[cell])
        if discretizer.reads != "order":
            return counted(np.concatenate([self.low[cell], self.high[cell]]), times=2)
        left = np.floor(counted(cell.astype(np.float64))).astype(np.int64)
        return midpoints(self.high[left], self.low[left + 1])


class CellsByValue:
    """Cells that numbers are added to; they add up."""

    _bounds: _Keys
    _mass: Floats
    _slots: NDArray[np.int32]
    _n_cells: int
    _shift: int

    def __init__(self, n_classes: int, limit: int | None = None) -> None:
        self._limit = most_cells(n_classes) if limit is None else limit
        self._set(np.empty((0, 2), dtype=np.uint64), np.empty((0, n_classes)), 0)

    def add(
        self, numbers: Floats, labels: NDArray[np.uint32], weights: Floats | None
    ) -> None:
        """Take in numbers (NaN are left out) with their classes and weights."""
        bits = numbers.view(np.uint64)
        weights = _NO_WEIGHTS if weights is None else weights
        row = 0
        while True:
            row, self._n_cells = hashing.add_numbers(
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

    def with_classes(self, positions: Ints, n_classes: int) -> CellsByValue:
        """Return the same cells among more classes, at these positions."""
        bounds, old, shift = self._held()
        mass = np.zeros((len(bounds), n_classes))
        mass[:, positions] = old
        out = CellsByValue(n_classes)
        out._set(*_merged(bounds, mass, shift, out._limit))
        return out

    def __add__(self, other: CellsByValue) -> CellsByValue:
        """Merge with the cells of other numbers."""
        a, b = self._held(), other._held()
        bounds, mass = (np.concatenate(pair) for pair in zip(a[:2], b[:2], strict=True))
        out = CellsByValue(mass.shape[1], self._limit)
        out._set(*_merged(bounds, mass, max(a[2], b[2]), self._limit))
        return out

    def cells(self) -> NumberCells:
        """Return the cells in increasing order."""
        bounds, mass, _ = self._settle()
        order = np.argsort(bounds[:, 0])
        low, high = map(hashing.numbers_of_keys, bounds[order].T)
        return NumberCells(low, high, mass[order])

    def _held(self) -> _Table:
        """Return the cells of the table, of which there may be a few too many."""
        n = self._n_cells
        return self._bounds[:n], self._mass[:n], self._shift

    def _settle(self) -> _Table:
        """Shorten prefixes if there are too many, and return the cells."""
        if self._n_cells > self._limit:
            self._set(*_merged(*self._held(), self._limit))
        return self._held()

    def _set(self, bounds: _Keys, mass: Floats, shift: int) -> None:
        """Make a table with these cells and room for more."""
        n, n_classes = mass.shape
        self._room = int(_SLACK * self._limit)
        size = _FIRST_CELLS
        while size <= n:
            size *= _GROWTH
        size = min(size, self._room)
        self._n_cells, self._shift = n, shift
        self._bounds = np.empty((size, 2), dtype=np.uint64)
        self._mass = np.empty((size, n_classes))
        self._bounds[:n], self._mass[:n] = bounds, mass
        self._slots = np.empty(1 << int(1.5 * size).bit_length(), dtype=np.int32)
        hashing.place_cells(self._bounds, n, shift, self._slots)


def _merged(bounds: _Keys, mass: Floats, shift: int, limit: int) -> _Table:
    """Take cells together that have the same prefix, as short as need be."""
    order = np.argsort(bounds[:, 0], kind="stable")
    bounds, mass = bounds[order], mass[order]
    is_new = np.ones(len(bounds), dtype=bool)
    while np.count_nonzero(np.diff(bounds[:, 0] >> np.uint64(shift))) >= limit:
        shift += 1
    is_new[1:] = np.diff(bounds[:, 0] >> np.uint64(shift)) != 0
    first = np.flatnonzero(is_new)
    if len(first) == len(bounds):
        return bounds, mass, shift
    high = np.maximum.reduceat(bounds[:, 1], first)
    merged = np.stack([bounds[first, 0], high], axis=1)
    return merged, np.add.reduceat(mass, first, axis=0), shift


class Numbers:
    """The numbers of a column: range, sums by class and, if asked for, cells."""

    low, high = np.inf, -np.inf
    finer: tuple[CellsByValue, Floats] | None = None
    """Cells of a second reading, and where the cells begin that they replace."""

    def __init__(self, n_classes: int, has_cells: bool) -> None:
        self.sums: Floats = np.zeros(n_classes)
        self.cells = CellsByValue(n_classes) if has_cells else None
        self.running: NDArray[np.uint64] | None = np.zeros(3, dtype=np.uint64)
        """Number, sum and sum of squares (mod 2^64) of numbers that may be a running
        number; None if they cannot."""

    def add(self, numbers: Floats, rows: LabelledRows, is_integer: bool) -> Floats:
        """Take in numbers, and return the weight of missing ones (NaN) by class."""
        weights = np.empty(0) if rows.weights is None else rows.weights
        missing = np.zeros(rows.n_classes)
        by_class = missing, self.sums
        low, high = hashing.measure(numbers, rows.labels, weights, *by_class)
        self.low, self.high = min(self.low, low), max(self.high, high)
        if self.cells is not None:
            self.cells.add(numbers, rows.labels, rows.weights)
        # A running number has no number twice, in no chunk.
        if not is_integer or missing.any() or high - low < len(numbers) - 1:
            self.running = None
        if self.running is not None:
            whole = numbers.astype(np.int64).view(np.uint64)
            sums = [len(whole), whole.sum(), (whole * whole).sum()]
            self.running = self.running + np.array(sums, dtype=np.uint64)
        return missing

    def merge(self, other: Numbers) -> None:
        """Take in the numbers of other rows, of the same classes."""
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.sums = self.sums + other.sums
        if self.cells is not None and other.cells is not None:
            self.cells = self.cells + other.cells
        if self.running is not None and other.running is not None:
            self.running = self.running + other.running
        else:
            self.running = None

    def by_value(self) -> NumberCells | None:
        """Return the cells, finer if they were read again; None if none were kept."""
        cells = None if self.cells is None else self.cells.cells()
        if cells is None or self.finer is None:
            return cells
        return cells.split(self.finer[0].cells(), self.finer[1])

    @property
    def is_running(self) -> bool:
        """Whether the numbers are a, a + 1, a + 2, … in some order.

        The sum and the sum of squares of others agree with those by chance alone.
        """
        if self.running is None or not self.running[0]:
            return False
        n, first = int(self.running[0]), int(self.low)
        ramp, squares = n * (n - 1) // 2, (n - 1) * n * (2 * n - 1) // 6
        squares += n * first * first + 2 * first * ramp
        sums = [n, n * first + ramp, squares]
        is_ramp = self.running.tolist() == [number % (1 << 64) for number in sums]
        return is_ramp and self.high - self.low == n - 1


class Rereading:
    """Numbers of some cells in finer cells; two such tables add up."""

    def __init__(
        self, spans: dict[int, Spans], names: list[str] | None, classes: NDArray[Any]
    ) -> None:
        self._names, self._classes = names, classes
        self.spans = spans
        """Ranges of the cells of each column that are read."""
        limit = most_cells(len(classes), len(spans))
        self.tables = {j: CellsByValue(len(classes), limit) for j in spans}
        """The finer cells of each column that is read."""

    @property
    def columns(self) -> list[Any]:
        """The columns that are read: names, or positions if there are none."""
        return [j if self._names is None else self._names[j] for j in self.spans]

    def take_in(self, table: Table, y: Any, weights: Any = None) -> None:
        """Add the rows of a chunk, which may be of these columns alone if named."""
        rows = chunk_rows(table, y, weights)
        if rows is None:
            return
        table, y, weights = rows
        labels = known_labels(y, self._classes)
        for j, (low, high) in self.spans.items():
            k = j
            if self._names is not None and table.names is not None:
                k = table.names.index(self._names[j])
            numbers = table.columns[k].finite_numbers
            # NaN compares with nothing and is never inside.
            cell = np.searchsorted(low, numbers, side="right") - 1
            inside = (numbers >= low[0]) & (numbers <= high[np.maximum(cell, 0)])
            some = None if weights is None else weights[inside]
            self.tables[j].add(numbers[inside], labels[inside], some)

    def __add__(self, other: Rereading) -> Rereading:
        """Return what the rows of both give."""
        out = Rereading(self.spans, self._names, self._classes)
        out.tables = {j: self.tables[j] + other.tables[j] for j in self.spans}
        return out
