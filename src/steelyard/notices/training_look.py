"""What several rules ask of training rows, each of it found once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from steelyard._common.arrays import Floats, Ints, evenly
from steelyard._common.text import listed
from steelyard.model.training import SAMPLE, TrainingSet
from steelyard.proba.counts import Counts
from steelyard.table.codes import FeatureTable
from steelyard.table.frames import Table
from steelyard.table.summary.ranges import NumberRange

FEW = 512
"""Rows of a column that stand for all of them where they are compared."""


@dataclass
class TrainingLook:
    """Training rows, and what several rules ask of them."""

    training: TrainingSet
    """All rows, or some of a long table."""

    counts: Counts
    n_table: int
    """Rows of the whole table."""

    _numbers: dict[int, Floats] = field(default_factory=dict)

    @cached_property
    def table(self) -> Table | None:
        """The columns, where they are in memory."""
        table, place = self.training.table, self.training.place
        return table if isinstance(table, Table) and place.is_here else None

    @cached_property
    def views(self) -> list[list[int]]:
        """Attributes of each column of the table."""
        schema = self.counts.schema
        views: list[list[int]] = [[] for _ in range(schema.n_columns)]
        for j in range(schema.n_plain):
            views[schema.columns[j]].append(j)
        return views

    @cached_property
    def names(self) -> list[str]:
        """Names of the columns."""
        schema = self.counts.schema
        return schema.names or [f"x{j}" for j in range(schema.n_columns)]

    @cached_property
    def total(self) -> float:
        """Weight of all rows."""
        return self.counts.total

    @property
    def n_rows(self) -> int:
        """Rows as they are said, the weight of all where they have weights."""
        return round(self.total)

    @cached_property
    def ranges(self) -> list[NumberRange | None]:
        """Where the numbers of each column lie."""
        known = getattr(self.training.encoder, "ranges_", None)
        return [None] * len(self.views) if known is None else known

    def n_missing(self, column: int) -> float:
        """Return the weight of the missing cells of a column."""
        first, where = self.views[column][0], self.ranges[column]
        if self.counts.schema.features[first].is_coded:
            return float(self.of_code(first)[0])
        return self.total - (0.0 if where is None else where.weight)

    def numbers(self, column: int, rows: Ints | None) -> Floats:
        """Return the numbers of a column in memory, in some rows."""
        assert self.table is not None
        if self.table.matrix is None:
            if column not in self._numbers:
                self._numbers[column] = self.table.columns[column].numbers()
            numbers = self._numbers[column]
            return numbers if rows is None else numbers[rows]
        chosen = slice(None) if rows is None else rows
        return self.table.matrix[chosen, column].astype(np.float64)

    @cached_property
    def by_code(self) -> Floats:
        """Weight of each code."""
        return self.counts.by_code.sum(axis=1)

    def of_code(self, j: int) -> Floats:
        """Return the weight of each code of an attribute, that of missing first."""
        offsets = self.counts.schema.offsets
        return self.by_code[offsets[j] : offsets[j + 1]]

    @cached_property
    def known(self) -> tuple[Floats, Ints, Floats]:
        """Of each attribute the weight of known cells, their codes, and right rows.

        A row is right where its class is the most frequent one of its code.
        """
        of_class = self.counts.by_code.copy()
        of_class[self.counts.schema.first_codes] = 0.0
        table = FeatureTable(of_class, self.counts.schema.offsets)
        rows = of_class.sum(axis=1)
        is_used, most = (rows > 0.0).astype(np.int64), of_class.max(axis=1)
        return table.collect(rows), table.collect(is_used), table.collect(most)

    def sampled(self, column: int, most: int = SAMPLE) -> Floats:
        """Return some of the known numbers of a column."""
        numbers = self.numbers(column, evenly(self.training.n_rows, most))
        return numbers[~np.isnan(numbers)]

    def n_values(self, column: int, n_codes: int) -> int:
        """Return how many values a column of so many codes has, in some rows."""
        if self.table is None or self.ranges[column] is None:
            return n_codes
        return len(np.unique(self.sampled(column, FEW)))


def alike(values: Sequence[str]) -> list[list[str]]:
    """Return groups of texts that differ by blanks, or as people write in capitals.

    A capital within a word is meant: "hAd" is another vowel than "had".

    Examples
    --------
    >>> alike(["Adelie", "adelie", "hAd", "had", "a  b", "a b"])
    [['Adelie', 'adelie'], ['a  b', 'a b']]
    """
    groups: dict[str, list[str]] = {}
    for value in values:
        plain = " ".join(value.split())
        lower = plain.lower()
        usual = (lower, plain.upper(), plain.capitalize(), plain.title())
        groups.setdefault(lower if plain in usual else plain, []).append(value)
    return [group for group in groups.values() if len(group) > 1]


def quoted(names: Sequence[str]) -> str:
    """Return the first few names, in quotes."""
    return listed(map(repr, names), 4)
