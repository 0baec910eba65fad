"""What a schema needs to know of one column, from any number of chunks of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.exceptions import ColumnError
from steelyard.kernels import prefixes
from steelyard.table.cells import factor_of, numbers_of
from steelyard.table.cells_by_value import CellsByValue
from steelyard.table.columns import Column
from steelyard.table.content import Content, Needs, Rows, describe, example_of
from steelyard.table.factors import EXACT, Cells, Factor

_Floats = NDArray[np.float64]

MOST_VALUES = 1_000_000
"""Most values of a categorical column."""

_NO_WEIGHTS = np.empty(0)


class Values:
    """The values of a categorical column, and their weight by class where it counts."""

    def __init__(self, n_classes: int) -> None:
        self.index: dict[Any, int] = {}
        self.mass: _Floats = np.zeros((0, n_classes))
        self.has_fractions = self.has_large = False

    def add(self, factor: Factor, rows: Rows, is_weighed: bool, label: str) -> _Floats:
        """Take in the cells of a chunk, and return the weight of missing ones."""
        n_classes = rows.n_classes
        if not is_weighed:
            held, n_missing = factor.held()
            self.merge(held, None, label)
            return rows.totals(factor.indices < 0) if n_missing else np.zeros(n_classes)
        mass, missing = factor.mass(rows.labels, rows.weights, n_classes)
        kept = np.flatnonzero(mass.any(axis=1)).tolist()
        self.merge([factor.values[k] for k in kept], mass[kept], label)
        return missing

    def merge(self, values: list[Any], mass: _Floats | None, label: str) -> None:
        """Add values, each with its weight by class."""
        index = self.index
        places = [index.setdefault(value, len(index)) for value in values]
        if len(index) > MOST_VALUES:
            raise ColumnError(
                f"{label} has more than {MOST_VALUES:,} different values. Leave it "
                "out, or merge its values first."
            )
        self._refuse_rounding(values, label)
        if mass is not None:
            more = np.zeros((len(index) - len(self.mass), mass.shape[1]))
            self.mass = np.concatenate([self.mass, more])
            # Category types may list a value twice.
            np.add.at(self.mass, places, mass)

    def _refuse_rounding(self, values: list[Any], label: str) -> None:
        if not values or isinstance(values[0], (str, bool)):
            return
        self.has_fractions |= any(isinstance(v, float) for v in values)
        self.has_large |= any(isinstance(v, int) and abs(v) > EXACT for v in values)
        if self.has_fractions and self.has_large:
            raise ColumnError(
                f"{label} holds whole numbers above 2^53 in some chunks and numbers "
                "with fractions in others, which cannot be told apart from them. Turn "
                "the column into text."
            )

    def by_value(self) -> dict[Any, tuple[float, ...]]:
        """Return the weight of each value by class, in no order."""
        mass = self.mass.tolist() or [[]] * len(self.index)
        return {v: tuple(mass[k]) for v, k in self.index.items()}

    def as_integers(self) -> None:
        """Turn booleans into the numbers 0 and 1."""
        self.index = {int(value): k for value, k in self.index.items()}

    def plain(self) -> list[Any]:
        """Return the values; if one has a fraction, all are floats."""
        values = list(self.index)
        return list(map(float, values)) if self.has_fractions else values


class Numbers:
    """The numbers of a column: range, sums by class and, where asked for, cells."""

    def __init__(self, n_classes: int, has_cells: bool) -> None:
        self.low: _Floats = np.full(n_classes, np.inf)
        self.high: _Floats = np.full(n_classes, -np.inf)
        self.sums: _Floats = np.zeros(n_classes)
        self.cells = CellsByValue(n_classes) if has_cells else None
        self.running: tuple[int, int, int] | None = (0, 0, 0)
        """Number, sum and sum of squares (mod 2^64) of numbers that may be a running
        number; None if they cannot."""

    def add(self, numbers: _Floats, rows: Rows, is_integer: bool) -> _Floats:
        """Take in numbers, and return the weight of missing ones (NaN) by class."""
        weights = _NO_WEIGHTS if rows.weights is None else rows.weights
        low, high = np.full_like(self.low, np.inf), np.full_like(self.low, -np.inf)
        missing = np.zeros_like(low)
        prefixes.measure(numbers, rows.labels, weights, low, high, missing, self.sums)
        self.low, self.high = np.minimum(self.low, low), np.maximum(self.high, high)
        if self.cells is not None:
            self.cells.add(numbers, rows.labels, rows.weights)
        # A running number has no number twice, in no chunk.
        spread = high.max() - low.min()
        if not is_integer or missing.any() or spread < len(numbers) - 1:
            self.running = None
        if self.running is not None:
            whole = numbers.astype(np.int64).view(np.uint64)
            self.running = _added(
                self.running, (len(whole), int(whole.sum()), int((whole * whole).sum()))
            )
        return missing

    def add_narrow(self, factor: Factor, rows: Rows) -> _Floats:
        """Take in many whole numbers of few values; see ``add``."""
        mass, missing = factor.mass(rows.labels, rows.weights, rows.n_classes)
        numbers = np.array(factor.values, dtype=np.float64)
        held = np.where(mass > 0, numbers[:, None], np.nan)
        self.low = np.fmin(self.low, np.fmin.reduce(held, axis=0))
        self.high = np.fmax(self.high, np.fmax.reduce(held, axis=0))
        self.sums = self.sums + numbers @ mass
        if self.cells is not None:
            value, label = np.nonzero(mass)
            weights = mass[value, label]
            self.cells.add(numbers[value], label.astype(np.uint32), weights)
        # Numbers repeat, so none of them runs.
        self.running = None
        return missing

    def merge(self, other: Numbers) -> None:
        """Take in the numbers of other rows, of the same classes."""
        self.low = np.minimum(self.low, other.low)
        self.high = np.maximum(self.high, other.high)
        self.sums = self.sums + other.sums
        if self.cells is not None and other.cells is not None:
            self.cells = self.cells + other.cells
        if self.running is not None and other.running is not None:
            self.running = _added(self.running, other.running)
        else:
            self.running = None

    def holds_same(self, other: Numbers) -> bool:
        """Compare what both hold."""
        return (
            self.is_running == other.is_running
            and np.array_equal(self.low, other.low)
            and np.array_equal(self.high, other.high)
            and np.array_equal(self.sums, other.sums)
            and self.cells == other.cells
        )

    @property
    def is_running(self) -> bool:
        """Whether the numbers are a, a + 1, a + 2, … in some order.

        The sum and the sum of squares of others agree with those by chance alone.
        """
        if self.running is None or self.running[0] < 1:
            return False
        n, first = self.running[0], int(self.low.min())
        if self.high.max() - self.low.min() != n - 1:
            return False
        ramp, squares = n * (n - 1) // 2, (n - 1) * n * (2 * n - 1) // 6
        total = n * first + ramp
        return self.running[1:] == _wrapped(
            total, n * first * first + 2 * first * ramp + squares
        )


class ColumnSummary:
    """What a schema needs to know of one column; summaries of chunks add up."""

    def __init__(self, position: int, name: str | None, n_classes: int) -> None:
        self.position, self.name = position, name
        self.content: Content | None = None
        self.missing: _Floats = np.zeros(n_classes)
        """Weight of missing cells by class, shape (K,)."""
        self.values = Values(n_classes)
        self.numbers: Numbers | None = None

    @property
    def label(self) -> str:
        """How messages call this column."""
        return f"Column {self.position if self.name is None else repr(self.name)}"

    @property
    def some_missing(self) -> bool:
        """Whether any cell is missing."""
        return bool(self.missing.any())

    @property
    def known(self) -> Content:
        """What the column holds; nothing, before anything was read."""
        return self.content or Content("nothing", "nothing", is_category=False)

    @property
    def storage(self) -> Cells:
        """What the type of the column can hold."""
        return self.known.storage

    @property
    def declared(self) -> list[Any] | None:
        """Values declared by a category or enum type."""
        declared = self.known.declared
        return None if declared is None else list(declared)

    def take_in(
        self, column: Column, is_category: bool, rows: Rows, needs: Needs, place: str
    ) -> None:
        """Take in the cells of a chunk."""
        content = describe(column, is_category, needs)
        if content.cells != self.known.cells:
            content = replace(
                content, place=place, example=example_of(column, len(rows.labels))
            )
        self._widen(content, rows.n_classes, needs)
        self.missing = self.missing + self._added(column, content, rows, needs)

    def _added(
        self, column: Column, content: Content, rows: Rows, needs: Needs
    ) -> _Floats:
        """Take in the known cells, and return the weight of the others by class."""
        if content.cells == "nothing":
            return rows.totals()
        if not self.known.is_category:
            numbers = self._numbers(rows.n_classes, needs)
            narrow = column.narrow_factor()
            if narrow is not None:
                return numbers.add_narrow(narrow, rows)
            return numbers.add(numbers_of(column), rows, content.is_integer)
        factor = factor_of(column)
        if self.known.cells == "numbers" and content.cells == "booleans":
            factor = Factor(factor.indices, list(map(int, factor.values)))
        is_weighed = needs.weights or content.cells != "text"
        return self.values.add(factor, rows, is_weighed, self.label)

    def merge(self, other: ColumnSummary, needs: Needs) -> None:
        """Take in what another summary holds, of the same classes."""
        n_classes = self.values.mass.shape[1]
        if other.content is not None:
            self._widen(other.content, n_classes, needs)
        self.missing = self.missing + other.missing
        if other.numbers is not None:
            self._numbers(n_classes, needs).merge(other.numbers)
        values = other.values
        if not self.known.is_category:
            self._add_values(values, needs)
            return
        held = list(values.index)
        if self.known.cells == "numbers" and other.known.cells == "booleans":
            held = list(map(int, held))
        self.values.merge(held, values.mass if len(values.mass) else None, self.label)
        self.values.has_fractions |= values.has_fractions

    def __eq__(self, other: object) -> bool:
        """Compare what both hold, not where they found it."""
        if not isinstance(other, ColumnSummary):
            return NotImplemented
        a, b = self.numbers, other.numbers
        return (
            self.known == other.known
            and np.array_equal(self.missing, other.missing)
            and self.values.by_value() == other.values.by_value()
            and (a == b if a is None or b is None else a.holds_same(b))
        )

    __hash__ = None  # type: ignore[assignment]

    def with_classes(
        self, positions: NDArray[np.int64], n_classes: int
    ) -> ColumnSummary:
        """Return the same among more classes: where each class has gone."""
        out = ColumnSummary(self.position, self.name, n_classes)
        out.content = self.content
        out.missing = _spread(self.missing, positions, n_classes)
        out.values.index = dict(self.values.index)
        out.values.has_fractions = self.values.has_fractions
        out.values.has_large = self.values.has_large
        out.values.mass = _spread(self.values.mass, positions, n_classes)
        if self.numbers is not None:
            old, new = self.numbers, Numbers(n_classes, has_cells=False)
            new.running = old.running
            new.low[positions], new.high[positions] = old.low, old.high
            new.sums = _spread(old.sums, positions, n_classes)
            if old.cells is not None:
                new.cells = old.cells.with_classes(positions, n_classes)
            out.numbers = new
        return out

    def _widen(self, content: Content, n_classes: int, needs: Needs) -> None:
        """Make room for what a chunk holds."""
        old = self.known
        if self.content is not None:
            content = self.content.merged(content, self.label)
        self.content = content
        if not content.is_category:
            values, self.values = self.values, Values(n_classes)
            self._add_values(values, needs)
        elif old.cells == "booleans" and content.cells == "numbers":
            self.values.as_integers()

    def _add_values(self, values: Values, needs: Needs) -> None:
        """Take in categories of numbers or booleans as the numbers they are."""
        if not values.index:
            return
        held, label = np.nonzero(values.mass)
        numbers = np.array(list(values.index), dtype=np.float64)[held]
        weights = values.mass[held, label]
        n_classes = values.mass.shape[1]
        rows = Rows(label.astype(np.uint32), weights, n_classes)
        self._numbers(n_classes, needs).add(numbers, rows, is_integer=False)

    def _numbers(self, n_classes: int, needs: Needs) -> Numbers:
        if self.numbers is None:
            self.numbers = Numbers(n_classes, needs.cells)
        return self.numbers


def _wrapped(*numbers: int) -> tuple[int, ...]:
    return tuple(number % (1 << 64) for number in numbers)


def _added(a: tuple[int, int, int], b: tuple[int, int, int]) -> tuple[int, int, int]:
    total, squares = _wrapped(a[1] + b[1], a[2] + b[2])
    return a[0] + b[0], total, squares


def _spread(by_class: _Floats, positions: NDArray[np.int64], n_classes: int) -> _Floats:
    out = np.zeros((*by_class.shape[:-1], n_classes))
    out[..., positions] = by_class
    return out
