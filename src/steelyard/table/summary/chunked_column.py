"""The summary of a column that comes in chunks; what they hold adds up."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.exceptions import ColumnError
from steelyard.table.cells import bins_of
from steelyard.table.discretizers import Discretizer
from steelyard.table.factors import Factor, is_missing
from steelyard.table.schema import FeatureSchema
from steelyard.table.summary.chunk_contents import (
    Content,
    Needs,
    Numbers,
    Values,
    spread,
)
from steelyard.table.summary.column_summary import ColumnSummary, are_running
from steelyard.table.summary.number_cells import CellsByValue, NumberCells, most_cells
from steelyard.table.summary.ranges import NumberRange, weighed_range
from steelyard.table.summary.whole_column import WholeColumn

_Floats = NDArray[np.float64]

# Cells of a chunk among which an example is looked for.
_LOOKED_AT = 64


class ChunkedColumn(ColumnSummary):
    """What chunks of a column hold; the summaries of two add up."""

    # Of all rows: the weight of each class, and a factor on it.
    _by_class, _factors = np.zeros(1), np.ones(1)

    def __init__(self, position: int, name: str | None, n_classes: int) -> None:
        self.position, self.name = position, name
        self.label = f"Column {position if name is None else repr(name)}"
        self._hold(Content())
        self.missing: _Floats = np.zeros(n_classes)
        """Weight of missing cells by class, shape (K,)."""
        self.values = Values(n_classes)
        self.numbers: Numbers | None = None

    def _hold(self, content: Content) -> None:
        self.content = content
        self.storage, self.cells = content.storage, content.cells
        self.is_category, self.is_integer = content.is_category, content.is_integer
        self.declared = None if content.declared is None else list(content.declared)

    def take_in(self, chunk: WholeColumn, needs: Needs, place: str) -> None:
        """Take in the cells of a chunk."""
        declared = None
        if chunk.declared is not None:
            declared = frozenset(chunk.declared if needs.declared else ())
        content = Content(
            chunk.storage, chunk.cells, chunk.is_category, chunk.is_integer, declared
        )
        if content.cells != self.cells:
            content = replace(content, place=place, example=_example_of(chunk))
        self._widen(content, needs)
        self.missing = self.missing + self._added(chunk, needs)

    def _added(self, chunk: WholeColumn, needs: Needs) -> _Floats:
        """Take in the known cells, and return the weight of the others by class."""
        rows = chunk.rows
        if chunk.cells == "nothing":
            return rows.totals()
        if not self.is_category:
            narrow = chunk.column.narrow_factor()
            if narrow is None:
                numbers = self._numbers(needs)
                return numbers.add(chunk.numbers, rows, chunk.is_integer)
            values = Values(rows.n_classes)
            missing = values.add(narrow, rows, is_weighed=True)
            self._add_values(values, needs)
            return missing
        factor = chunk.factor
        if self.cells == "numbers" and chunk.cells == "booleans":
            factor = Factor(factor.indices, list(map(int, factor.values)))
        is_weighed = needs.weights or chunk.cells != "text"
        missing = self.values.add(factor, rows, is_weighed)
        self.values.check(self.label)
        return missing

    def merge(self, other: ChunkedColumn, needs: Needs) -> None:
        """Take in what another summary holds, of the same classes."""
        self._widen(other.content, needs)
        self.missing = self.missing + other.missing
        if other.numbers is not None:
            self._numbers(needs).merge(other.numbers)
        values = other.values
        if not self.is_category:
            self._add_values(values, needs)
            return
        held = list(values.index)
        if self.cells == "numbers" and other.cells == "booleans":
            held = list(map(int, held))
        self.values.merge(held, values.mass if len(values.mass) else None)
        self.values.has_fractions |= values.has_fractions
        self.values.check(self.label)

    def with_classes(
        self, positions: NDArray[np.int64], n_classes: int
    ) -> ChunkedColumn:
        """Return the same among more classes: where each class has gone."""
        out = copy(self)
        out.missing = spread(self.missing, positions, n_classes)
        out.values = copy(self.values)
        out.values.index = dict(self.values.index)
        out.values.mass = spread(self.values.mass, positions, n_classes)
        if self.numbers is not None:
            out.numbers = copy(self.numbers)
            out.numbers.sums = spread(self.numbers.sums, positions, n_classes)
            if self.numbers.cells is not None:
                cells = self.numbers.cells.with_classes(positions, n_classes)
                out.numbers.cells = cells
        return out

    def refine(self, finer: CellsByValue) -> None:
        """Take in what a second reading found in heavy cells of numbers."""
        if self.numbers is not None:
            self.numbers.finer = finer

    def _widen(self, content: Content, needs: Needs) -> None:
        """Make room for what a chunk holds."""
        was_boolean = self.cells == "booleans"
        self._hold(self.content.merged(content, self.label))
        values = self.values
        if not self.is_category:
            self.values = Values(len(self.missing))
            self._add_values(values, needs)
        elif was_boolean and self.cells == "numbers":
            values.index = {int(value): k for value, k in values.index.items()}

    def _add_values(self, values: Values, needs: Needs) -> None:
        """Take in categories of numbers or booleans as the numbers they are."""
        if values.index:
            self._numbers(needs).add(*values.rows(), is_integer=False)

    def _numbers(self, needs: Needs) -> Numbers:
        if self.numbers is None:
            self.numbers = Numbers(len(self.missing), needs.cells)
        return self.numbers

    # --------------------------------------------------------- what the rules ask for

    def weighed(self, by_class: _Floats, factors: _Floats | None) -> ChunkedColumn:
        """Return the column of rows of known weight, with factors on the classes."""
        out = copy(self)
        out._by_class = by_class
        if factors is not None:
            out._factors = factors
        return out

    @property
    def some_missing(self) -> bool:
        """Whether any cell is missing."""
        return bool(self.missing.any())

    @property
    def held(self) -> list[Any]:
        """The values that rows hold, of categories."""
        return self.values.plain()

    def weights_by_code(self, feature: FeatureSchema) -> _Floats:
        """Return the weight of each category, shape (n_codes,)."""
        mass = self.by_code(feature)
        assert mass is not None
        return (mass * self._factors).sum(axis=1)

    def by_code(self, feature: FeatureSchema) -> _Floats | None:
        """Return the weight of the known cells by code and class, None if unknown.

        Densities need another reading, and so do bins that cut through cells.
        """
        mass = np.zeros((feature.n_codes, len(self.missing)))
        if feature.kind == "categorical":
            codes = [feature.code_of[value] for value in self.values.index]
            np.add.at(mass, codes, self.values.mass)
            return mass
        if self.numbers is None and feature.is_coded:
            return mass
        cells = None if self.numbers is None else self.numbers.by_value()
        if cells is None or not feature.is_coded:
            return None
        low, high = bins_of(feature, cells.low), bins_of(feature, cells.high)
        np.add.at(mass, low, cells.mass)
        return mass if np.array_equal(low, high) else None

    def is_running(self, n_rows: int) -> bool:
        """Whether whole numbers are a, a + 1, a + 2, … in some order."""
        if self.is_category:
            return are_running(list(self.values.index), n_rows)
        return self.numbers is not None and self.numbers.is_running

    def mean(self) -> float:
        """Return the mean of the known numbers."""
        assert self.numbers is not None
        known = (self._by_class - self.missing) * self._factors
        return float((self.numbers.sums * self._factors).sum() / known.sum())

    def edges(self, discretizer: Discretizer, fill: float | None) -> _Floats:
        """Return the cut points of the numbers, missing ones filled in."""
        return self._cells(fill).edges(discretizer, (self.position, self.name))

    def distinct(self, fill: float | None) -> _Floats:
        """Return the different numbers, sorted, missing ones filled in."""
        cells = self._cells(fill)
        if not cells.is_exact:
            most = most_cells(cells.mass.shape[1])
            raise ColumnError(
                f"{self.label} has more than {most:,} different numbers, and "
                "'gaussian-weka' needs to know how many there are. Use 'gaussian', or "
                "load the table into memory."
            )
        return cells.low

    def known_range(self) -> NumberRange | None:
        """Return where the numbers lie; quartiles where cells were kept."""
        numbers = self.numbers
        if numbers is None or self.cells == "nothing":
            return None
        if numbers.cells is None:
            return NumberRange(numbers.low, numbers.high)
        cells = numbers.cells.cells()
        mass = (cells.mass * self._factors).sum(axis=1)
        middle = cells.low + (cells.high - cells.low) / 2.0
        ends = numbers.low, numbers.high
        return weighed_range(ends, middle, mass, float(mass.sum()))

    def _cells(self, fill: float | None) -> NumberCells:
        """Return the cells of numbers as a discretizer has to see them."""
        assert self.numbers is not None
        cells = self.numbers.by_value()
        if cells is None:
            # Only the ends of the range are asked for, if anything.
            ends = np.unique([self.numbers.low, self.numbers.high])
            return NumberCells(ends, ends, np.ones((len(ends), 1)))
        if fill is not None and self.some_missing:
            cells = cells.with_number(fill, self.missing)
        return replace(cells, mass=cells.mass * self._factors)


def _example_of(chunk: WholeColumn) -> Any:
    """Return one of the first known cells, for a message; None if there is none."""
    n = min(chunk.rows.n_rows, _LOOKED_AT)
    some = chunk.column.take(np.arange(n)).objects()
    return next((value for value in some if not is_missing(value)), None)
