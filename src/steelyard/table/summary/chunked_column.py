"""The summary of a column that comes in chunks; summaries add up."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from steelyard._common.arrays import Floats, Ints
from steelyard.exceptions import ColumnError
from steelyard.table.columns import TableColumn, column_label
from steelyard.table.discretizers.base import Discretizer
from steelyard.table.encoding import bins_of
from steelyard.table.factors import EXACT, CellKind, Factor, is_missing
from steelyard.table.identifiers import numbering
from steelyard.table.learning import LabelledRows, settled_mean
from steelyard.table.ranges import NumberRange, weighed_range
from steelyard.table.schema import FeatureSchema
from steelyard.table.summary.number_cells import (
    CellsByValue,
    NumberCells,
    Numbers,
    most_cells,
)

MAX_VALUES = 1_000_000
"""Most values of a categorical column."""

# Types of columns without an observed cell, the least informative first.
_STORAGES: list[CellKind] = ["nothing", "booleans", "numbers", "text"]

# Cells of a chunk among which an example is looked for.
_LOOKED_AT = 64


@dataclass(frozen=True)
class Content:
    """What the chunks of a column contained; by default there were none."""

    storage: CellKind = "nothing"
    cells: CellKind = "nothing"
    is_category: bool = True
    is_integer: bool = False
    declared: frozenset[Any] | None = None
    """Values of category and enum types; empty if they do not count."""

    order: tuple[Any, ...] | None = None
    """Values of an ordered type, if all chunks agree."""

    place: str = field(default="", compare=False)
    example: Any = field(default=None, compare=False)

    def merged(self, other: Content, label: str) -> Content:
        """Return the union of both; text and numbers are refused."""
        with_cells = [c for c in (self, other) if c.cells != "nothing"]
        declared = self.declared
        if other.declared is not None:
            declared = other.declared | (declared or frozenset())
        if len(with_cells) < 2:
            # A chunk of missing cells only yields to one that has others.
            most = max(
                with_cells or (self, other), key=lambda c: _STORAGES.index(c.storage)
            )
            same = [c for c in with_cells or (self, other) if c.storage == most.storage]
            is_category = all(c.is_category for c in same)
            declared = declared if is_category else None
            return replace(most, is_category=is_category, declared=declared)
        if (self.cells == "text") != (other.cells == "text"):
            raise ColumnError(
                f"{label} holds {self.cells} in {self.place} ({self.example!r}) and "
                f"{other.cells} in {other.place} ({other.example!r}). Give all its "
                "cells one type."
            )
        cells: CellKind = self.cells if self.cells == other.cells else "numbers"
        is_category = self.is_category and other.is_category
        return replace(
            self,
            storage=cells,
            cells=cells,
            is_category=is_category,
            is_integer=self.is_integer and other.is_integer,
            declared=declared if is_category else None,
            order=self.order if self.order == other.order else None,
        )


class Values:
    """The values of a categorical column, and their weight by class if asked for."""

    def __init__(self, n_classes: int) -> None:
        self.index: dict[Any, int] = {}
        self.mass: Floats = np.zeros((0, n_classes))
        self.has_fractions = self.has_large = False

    def add(self, factor: Factor, rows: LabelledRows, is_weighed: bool) -> Floats:
        """Take in the cells of a chunk, and return the weight of missing ones."""
        if not is_weighed:
            held, n_missing = factor.held()
            self.merge(held, None)
            if not n_missing:
                return np.zeros(rows.n_classes)
            return rows.totals(factor.indices < 0)
        mass, missing = factor.mass(rows.labels, rows.weights, rows.n_classes)
        kept = np.flatnonzero(mass.any(axis=1)).tolist()
        self.merge([factor.values[k] for k in kept], mass[kept])
        return missing

    def merge(self, values: list[Any], mass: Floats | None) -> None:
        """Add values, each with its weight by class."""
        index = self.index
        places = [index.setdefault(value, len(index)) for value in values]
        if values and not isinstance(values[0], (str, bool)):
            self.has_fractions |= any(isinstance(v, float) for v in values)
            self.has_large |= any(isinstance(v, int) and abs(v) > EXACT for v in values)
        if mass is not None:
            new_rows = np.zeros((len(index) - len(self.mass), mass.shape[1]))
            self.mass = np.concatenate([self.mass, new_rows])
            # Category types may list a value twice.
            np.add.at(self.mass, places, mass)

    def check(self, label: str) -> None:
        """Refuse too many values, and values that are equal as float64."""
        if len(self.index) > MAX_VALUES:
            raise ColumnError(
                f"{label} has more than {MAX_VALUES:,} different values. Leave it "
                "out, or merge its values first."
            )
        if self.has_fractions and self.has_large:
            raise ColumnError(
                f"{label} holds whole numbers above 2^53 in some chunks and numbers "
                "with fractions in others. They cannot be compared exactly. Turn the "
                "column into text."
            )

    def as_numbers(self) -> tuple[Floats, LabelledRows]:
        """Return numbers or booleans as numbers, one for each value and class."""
        value, label = np.nonzero(self.mass)
        numbers = np.array(list(self.index), dtype=np.float64)[value]
        weights, n_classes = self.mass[value, label], self.mass.shape[1]
        labels = label.astype(np.uint32)
        return numbers, LabelledRows(len(labels), labels, weights, n_classes)


class ChunkedColumn:
    """The contents of chunks of a column; the summaries of two add up.

    Cells of numbers, the weight of each category and values that types declare are kept
    if they are asked for.
    """

    # Of all rows: the weight of each class, and a factor on it.
    _by_class, _factors = np.zeros(1), np.ones(1)

    def __init__(
        self,
        position: int,
        name: str | None,
        n_classes: int,
        *,
        has_cells: bool,
        has_weights: bool,
        has_declared: bool,
    ) -> None:
        self.position, self.name, self._has_cells = position, name, has_cells
        self._has_weights, self._has_declared = has_weights, has_declared
        self.label = column_label(position, name)
        self._hold(Content())
        self.missing: Floats = np.zeros(n_classes)
        """Weight of missing cells by class, shape (K,)."""
        self.values = Values(n_classes)
        self.numbers: Numbers | None = None

    def _hold(self, content: Content) -> None:
        self.content = content
        self.storage, self.cells = content.storage, content.cells
        self.is_category, self.is_integer = content.is_category, content.is_integer
        self.declared = None if content.declared is None else list(content.declared)
        self.order = content.order

    def take_in(
        self, column: TableColumn, rows: LabelledRows, is_category: bool, place: str
    ) -> None:
        """Take in the cells of a chunk."""
        declared = None
        if column.declared is not None:
            declared = frozenset(column.declared if self._has_declared else ())
        content = Content(
            column.storage,
            column.cells,
            is_category,
            column.is_integer,
            declared,
            column.order,
        )
        if content.cells != self.cells:
            content = replace(content, place=place, example=_example_of(column))
        self._widen(content)
        self.missing = self.missing + self._added(column, rows)
        self.values.check(self.label)

    def _added(self, column: TableColumn, rows: LabelledRows) -> Floats:
        """Add the cells of a chunk, and return the weight of missing ones by class."""
        if column.cells == "nothing":
            return rows.totals()
        if self.is_category:
            is_weighed = self._has_weights or column.cells != "text"
            return self.values.add(column.finite_factor, rows, is_weighed)
        if column.narrow_factor is None:
            numbers = column.finite_numbers
            return self._numbers().add(numbers, rows, column.is_integer)
        values = Values(rows.n_classes)
        missing = values.add(column.narrow_factor, rows, is_weighed=True)
        self._add_values(values)
        return missing

    def merge(self, other: ChunkedColumn) -> None:
        """Add another summary, of the same classes."""
        self._widen(other.content)
        self.missing = self.missing + other.missing
        if other.numbers is not None:
            self._numbers().merge(other.numbers)
        values = other.values
        if not self.is_category:
            self._add_values(values)
            return
        self.values.merge(list(values.index), values.mass if len(values.mass) else None)
        self.values.has_fractions |= values.has_fractions
        self.values.has_large |= values.has_large
        self.values.check(self.label)

    def with_classes(self, positions: Ints, n_classes: int) -> ChunkedColumn:
        """Return the same among more classes, at these positions."""
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

    def _widen(self, content: Content) -> None:
        """Take in the contents of a chunk; categories may turn out to be numbers."""
        self._hold(self.content.merged(content, self.label))
        if not self.is_category:
            values, self.values = self.values, Values(len(self.missing))
            self._add_values(values)

    def _add_values(self, values: Values) -> None:
        """Take in categories of numbers or booleans as the numbers they are."""
        if values.index:
            self._numbers().add(*values.as_numbers(), is_integer=False)

    def _numbers(self) -> Numbers:
        if self.numbers is None:
            self.numbers = Numbers(len(self.missing), self._has_cells)
        return self.numbers

    # --------------------------------------------------------- what the rules ask for

    def refine(self, finer: CellsByValue, replaced: Floats) -> None:
        """Take in finer cells, in place of those that begin at some numbers."""
        if self.numbers is not None:
            self.numbers.finer = finer, replaced

    def weighed(self, by_class: Floats, factors: Floats | None) -> ChunkedColumn:
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
        """The values of a categorical column; if one is a float, all are."""
        values = list(self.values.index)
        if self.cells != "numbers":
            return values
        return list(map(float if self.values.has_fractions else int, values))

    def weights_by_code(self, feature: FeatureSchema) -> Floats:
        """Return the weight of each category, shape (n_codes,)."""
        mass = self.by_code(feature)
        assert mass is not None
        return (mass * self._factors).sum(axis=1)

    def by_code(self, feature: FeatureSchema) -> Floats | None:
        """Return the weight of cells by code and class, None if it is not known.

        Densities need another reading, and so do bins that cut through cells.
        """
        mass = np.zeros((feature.n_codes, len(self.missing)))
        if feature.kind == "categorical":
            codes = feature.codes([*self.values.index])
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

    def numbering(self, where: NumberRange, n_rows: int) -> str | None:
        """Return how whole numbers number the rows, None if they do not.

        That many numbers all differ is known only if they run on without a gap.
        """
        numbers = self.numbers
        if numbers is None or self.some_missing or not self.is_integer:
            return None
        cells = numbers.by_value()
        is_name = cells is not None and cells.is_exact and len(cells.low) == n_rows
        return numbering(where, n_rows) if is_name or numbers.is_running else None

    def n_whole_numbers(self) -> int:
        """Return how many different whole numbers there are, 0 if not known."""
        cells = None if self.numbers is None else self.numbers.by_value()
        is_known = cells is not None and cells.is_exact and self.is_integer
        return len(cells.low) if cells is not None and is_known else 0

    def mean(self) -> float:
        """Return the mean of the numbers."""
        assert self.numbers is not None
        with_cells = (self._by_class - self.missing) * self._factors
        mean = (self.numbers.sums * self._factors).sum() / with_cells.sum()
        cells = self._cells(None)
        return settled_mean(mean, np.concatenate([cells.low, cells.high]))

    def edges(self, discretizer: Discretizer, fill: float | None) -> Floats:
        """Return the cut points of the numbers, missing ones filled in."""
        return self._cells(fill).edges(discretizer, (self.position, self.name))

    def distinct(self, fill: float | None) -> Floats:
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
        """Return where the numbers lie, with quartiles if cells were kept."""
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


def _example_of(column: TableColumn) -> Any:
    """Return one of the first cells that is not missing, for a message."""
    some = column.take(np.arange(min(len(column), _LOOKED_AT))).objects()
    return next((value for value in some if not is_missing(value)), None)


def spread(by_class: Floats, positions: Ints, n_classes: int) -> Floats:
    """Return numbers by class among more classes, at these positions."""
    out = np.zeros((*by_class.shape[:-1], n_classes))
    out[..., positions] = by_class
    return out
