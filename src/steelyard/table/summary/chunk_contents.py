"""What chunks of a column hold: their type, values of categories, and numbers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.exceptions import ColumnError
from steelyard.kernels import prefixes
from steelyard.table.factors import EXACT, Cells, Factor
from steelyard.table.summary.number_cells import CellsByValue, NumberCells
from steelyard.table.summary.whole_column import LabelledRows

_Floats = NDArray[np.float64]

MOST_VALUES = 1_000_000
"""Most values of a categorical column."""

# From little to much that a type says of a column without a known cell.
_STORAGES: list[Cells] = ["nothing", "booleans", "numbers", "text"]

_NO_WEIGHTS = np.empty(0)


class Needs(NamedTuple):
    """What the settings ask of a column."""

    cells: bool
    """Whether cells of numbers are wanted."""

    weights: bool
    """Whether the weight of each category is wanted."""

    declared: bool
    """Whether values that types declare are wanted."""


@dataclass(frozen=True)
class Content:
    """What a column holds, as far as its chunks tell."""

    storage: Cells = "nothing"
    cells: Cells = "nothing"
    is_category: bool = False
    is_integer: bool = False
    declared: frozenset[Any] | None = None
    """Values of category and enum types; empty where they do not count."""

    place: str = field(default="", compare=False)
    example: Any = field(default=None, compare=False)

    def merged(self, other: Content, label: str) -> Content:
        """Return what both hold together; text and numbers are refused."""
        known = [part for part in (self, other) if part.cells != "nothing"]
        declared = _union(self.declared, other.declared)
        if len(known) < 2:
            # What has no known cell yields to what has one.
            most = max(known or (self, other), key=lambda c: _STORAGES.index(c.storage))
            same = [c for c in known or (self, other) if c.storage == most.storage]
            is_category = all(c.is_category for c in same)
            declared = declared if is_category else None
            return replace(most, is_category=is_category, declared=declared)
        if (self.cells == "text") != (other.cells == "text"):
            raise ColumnError(
                f"{label} holds {self.cells} in {self.place} ({self.example!r}) and "
                f"{other.cells} in {other.place} ({other.example!r}). Give all its "
                "cells one type."
            )
        cells: Cells = self.cells if self.cells == other.cells else "numbers"
        is_category = self.is_category and other.is_category
        return replace(
            self,
            storage=cells,
            cells=cells,
            is_category=is_category,
            is_integer=self.is_integer and other.is_integer,
            declared=declared if is_category else None,
        )


class Values:
    """The values of a categorical column, and their weight by class where it counts."""

    def __init__(self, n_classes: int) -> None:
        self.index: dict[Any, int] = {}
        self.mass: _Floats = np.zeros((0, n_classes))
        self.has_fractions = self.has_large = False

    def add(self, factor: Factor, rows: LabelledRows, is_weighed: bool) -> _Floats:
        """Take in the cells of a chunk, and return the weight of missing ones."""
        n_classes = rows.n_classes
        if not is_weighed:
            held, n_missing = factor.held()
            self.merge(held, None)
            return rows.totals(factor.indices < 0) if n_missing else np.zeros(n_classes)
        mass, missing = factor.mass(rows.labels, rows.weights, n_classes)
        kept = np.flatnonzero(mass.any(axis=1)).tolist()
        self.merge([factor.values[k] for k in kept], mass[kept])
        return missing

    def merge(self, values: list[Any], mass: _Floats | None) -> None:
        """Add values, each with its weight by class."""
        index = self.index
        places = [index.setdefault(value, len(index)) for value in values]
        if values and not isinstance(values[0], (str, bool)):
            self.has_fractions |= any(isinstance(v, float) for v in values)
            self.has_large |= any(isinstance(v, int) and abs(v) > EXACT for v in values)
        if mass is not None:
            more = np.zeros((len(index) - len(self.mass), mass.shape[1]))
            self.mass = np.concatenate([self.mass, more])
            # Category types may list a value twice.
            np.add.at(self.mass, places, mass)

    def check(self, label: str) -> None:
        """Refuse too many values, and those that cannot be told apart."""
        if len(self.index) > MOST_VALUES:
            raise ColumnError(
                f"{label} has more than {MOST_VALUES:,} different values. Leave it "
                "out, or merge its values first."
            )
        if self.has_fractions and self.has_large:
            raise ColumnError(
                f"{label} holds whole numbers above 2^53 in some chunks and numbers "
                "with fractions in others, which cannot be told apart from them. Turn "
                "the column into text."
            )

    def plain(self) -> list[Any]:
        """Return the values; if one has a fraction, all are floats."""
        values = list(self.index)
        return list(map(float, values)) if self.has_fractions else values

    def rows(self) -> tuple[_Floats, LabelledRows]:
        """Return numbers or booleans as numbers, one for each value and class."""
        value, label = np.nonzero(self.mass)
        numbers = np.array(list(self.index), dtype=np.float64)[value]
        weights, n_classes = self.mass[value, label], self.mass.shape[1]
        labels = label.astype(np.uint32)
        return numbers, LabelledRows(len(labels), labels, weights, n_classes)


class Numbers:
    """The numbers of a column: range, sums by class and, where asked for, cells."""

    low, high = np.inf, -np.inf
    finer: CellsByValue | None = None
    """What a second reading found in the heavy cells."""

    def __init__(self, n_classes: int, has_cells: bool) -> None:
        self.sums: _Floats = np.zeros(n_classes)
        self.cells = CellsByValue(n_classes) if has_cells else None
        self.running: tuple[int, int, int] | None = (0, 0, 0)
        """Number, sum and sum of squares (mod 2^64) of numbers that may be a running
        number; None if they cannot."""

    def add(self, numbers: _Floats, rows: LabelledRows, is_integer: bool) -> _Floats:
        """Take in numbers, and return the weight of missing ones (NaN) by class."""
        weights = _NO_WEIGHTS if rows.weights is None else rows.weights
        low, high = np.full(rows.n_classes, np.inf), np.full(rows.n_classes, -np.inf)
        missing = np.zeros_like(low)
        prefixes.measure(numbers, rows.labels, weights, low, high, missing, self.sums)
        lowest, highest = float(low.min()), float(high.max())
        self.low, self.high = min(self.low, lowest), max(self.high, highest)
        if self.cells is not None:
            self.cells.add(numbers, rows.labels, rows.weights)
        # A running number has no number twice, in no chunk.
        runs = is_integer and not missing.any() and highest - lowest >= len(numbers) - 1
        more = None
        if runs and self.running is not None:
            whole = numbers.astype(np.int64).view(np.uint64)
            more = len(whole), int(whole.sum()), int((whole * whole).sum())
        self.running = _added(self.running, more)
        return missing

    def merge(self, other: Numbers) -> None:
        """Take in the numbers of other rows, of the same classes."""
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.sums = self.sums + other.sums
        if self.cells is not None and other.cells is not None:
            self.cells = self.cells + other.cells
        self.running = _added(self.running, other.running)

    def by_value(self) -> NumberCells | None:
        """Return the cells, those read again in finer ones; None if none were kept."""
        cells = None if self.cells is None else self.cells.cells()
        if cells is None or self.finer is None:
            return cells
        return cells.split(self.finer.cells())

    @property
    def is_running(self) -> bool:
        """Whether the numbers are a, a + 1, a + 2, … in some order.

        The sum and the sum of squares of others agree with those by chance alone.
        """
        if self.running is None or self.running[0] < 1:
            return False
        n, first = self.running[0], int(self.low)
        if self.high - self.low != n - 1:
            return False
        ramp, squares = n * (n - 1) // 2, (n - 1) * n * (2 * n - 1) // 6
        total = n * first + ramp
        return self.running[1:] == _wrapped(
            total, n * first * first + 2 * first * ramp + squares
        )


def _union(a: frozenset[Any] | None, b: frozenset[Any] | None) -> frozenset[Any] | None:
    if a is None or b is None:
        return b if a is None else a
    return a if a == b else a | b


def _wrapped(*numbers: int) -> tuple[int, ...]:
    return tuple(number % (1 << 64) for number in numbers)


def _added(
    a: tuple[int, int, int] | None, b: tuple[int, int, int] | None
) -> tuple[int, int, int] | None:
    if a is None or b is None:
        return None
    total, squares = _wrapped(a[1] + b[1], a[2] + b[2])
    return a[0] + b[0], total, squares


def spread(by_class: _Floats, positions: NDArray[np.int64], n_classes: int) -> _Floats:
    """Return numbers by class among more classes: where each class has gone."""
    out = np.zeros((*by_class.shape[:-1], n_classes))
    out[..., positions] = by_class
    return out
