"""Encoded rows that can be read, changed cell by cell, and the rows behind them.

A number is changed in the steps that its column has. Evidence of a row is what speaks
for one class against another.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, Ints
from steelyard._common.text import (
    as_plain,
    probability_text,
    sided_bars,
    signed,
    text_table,
)
from steelyard.explain.shared import PlainData, Tabular, percent
from steelyard.table.by_schema import ColumnCells, encode_numbers
from steelyard.table.codes import CodeBlock, Codes, by_width, code_dtype
from steelyard.table.columns import TableColumn
from steelyard.table.schema import FeatureSchema, TableSchema
from steelyard.table.summary.whole_column import NumberRange

# How many training rows are shown as text.
_MAX_NEIGHBOURS = 10


@dataclass(frozen=True)
class RowCells:
    """Rows of an encoded table as plain arrays."""

    schema: TableSchema
    codes: Ints
    """Codes by attribute, shape (n, d); 0 for Gaussian attributes."""

    numbers: Floats
    """Numbers by attribute, shape (n, d); NaN for attributes with codes."""

    @classmethod
    def of(cls, encoded: Codes) -> RowCells:
        """Take the cells out of an encoded table."""
        shape = (encoded.n_rows, len(encoded.schema))
        codes, numbers = np.zeros(shape, dtype=np.int64), np.full(shape, np.nan)
        for j in encoded.schema.coded.tolist():
            codes[:, j] = encoded.column(j)
        if encoded.n_numbers:
            numbers[:, encoded.schema.gaussian] = encoded.number_rows(slice(None))
        return cls(encoded.schema, codes, numbers)

    def encoded(self) -> Codes:
        """Return the cells as a table that models can score."""
        schema, own = self.schema, self.schema.without_interactions
        most = max((schema.features[j].n_codes for j in own.coded), default=1)
        groups = [(code_dtype(most), own.coded.tolist())] if len(own.coded) else []
        # Interactions in blocks as an encoder makes them: sums are equal bit by bit.
        groups += by_width(schema, np.flatnonzero(schema.is_interaction).tolist())
        blocks = []
        for dtype, positions in groups:
            values = np.asfortranarray(self.codes[:, positions].astype(dtype))
            blocks.append(CodeBlock(values, np.array(positions, dtype=np.int64)))
        numbers = np.ascontiguousarray(self.numbers[:, schema.gaussian])
        return Codes(schema, len(self.codes), tuple(blocks), numbers)

    def row(self, i: int) -> RowCells:
        """Return one row."""
        part = slice(i, i + 1)
        return RowCells(self.schema, self.codes[part], self.numbers[part])

    def joined(self) -> RowCells:
        """Return the same cells with the interactions that follow from them."""
        codes = self.codes.copy()
        for j in np.flatnonzero(self.schema.is_interaction):
            a, b = self.schema.features[j].sides
            first = np.asarray(a.groups)[codes[:, a.feature]]
            codes[:, j] = first * b.n_groups + np.asarray(b.groups)[codes[:, b.feature]]
        return replace(self, codes=codes)

    def takes_numbers(self, column: int) -> bool:
        """Whether a column is set by numbers, and not by codes alone."""
        feature = self.schema.features[column]
        return feature.is_fine or not feature.is_coded

    def with_numbers(self, column: int, numbers: Floats) -> RowCells:
        """Return one row once for each number that a column of it may have."""
        codes = np.repeat(self.codes, len(numbers), axis=0)
        cells = np.repeat(self.numbers, len(numbers), axis=0)
        feature = self.schema.features[column]
        encoded = encode_numbers(feature, numbers)
        (codes if feature.is_coded else cells)[:, column] = encoded
        return RowCells(self.schema, codes, cells).joined()

    def label(self, i: int, j: int) -> str:
        """Name the value of a cell."""
        if self.schema.features[j].is_coded:
            return self.schema.describe(j, int(self.codes[i, j]))
        return number_label(float(self.numbers[i, j]))


def number_label(number: float) -> str:
    """Write a number of a Gaussian attribute."""
    return "(missing)" if np.isnan(number) else f"{number:.6g}"


def describe_cells(
    cells: RowCells, columns: list[TableColumn]
) -> tuple[list[list[str]], NDArray[np.bool_]]:
    """Name every cell as the user gave it, and say which are missing.

    Unlike codes, the columns tell a missing cell from a value never seen, and from the
    value that is imputed for it. A cell of fine bins is named by its number,
    an interaction by the groups of its two cells; it is missing where one of them is.
    """
    schema = cells.schema
    labels: list[list[str]] = [[] for _ in cells.codes]
    missing = np.zeros((len(cells.codes), len(schema)), dtype=bool)
    for j, column in enumerate(columns):
        feature = schema.features[j]
        for i, value in enumerate(raw_values(feature, column)):
            label = cells.label(i, j)
            missing[i, j] = value is None
            if value is None:
                imputed = "" if feature.fill is None else f", taken as {label}"
                label = f"(missing{imputed})"
            elif feature.is_fine:
                label = number_label(float(value))
            elif feature.is_coded and cells.codes[i, j] == 0:
                label = (
                    f"{value} (left out)" if feature.left_out else f"{value} (unseen)"
                )
            labels[i].append(label)
    for j in range(schema.n_columns, len(schema)):
        sides = [side.feature for side in schema.features[j].sides]
        missing[:, j] = missing[:, sides].any(axis=1)
        for i, of_row in enumerate(labels):
            of_row.append(cells.label(i, j))
    return labels, missing


def raw_values(feature: FeatureSchema, column: TableColumn) -> list[Any]:
    """Cells as they were given, None where they are missing."""
    if feature.kind == "categorical" or column.cells == "text":
        factor = ColumnCells(column).factor
        values = list(factor.values)
        return [None if k < 0 else values[k] for k in factor.indices.tolist()]
    numbers = ColumnCells(column).numbers
    return [None if np.isnan(x) else x for x in numbers.tolist()]


@dataclass(frozen=True, repr=False)
class Neighbours(PlainData):
    """Training rows behind the model of one query, by falling weight."""

    rows: Ints
    """Positions among the training rows; rows of weight zero are not counted."""

    labels: NDArray[Any]
    distances: Floats
    weights: Floats

    def __repr__(self) -> str:
        """List the ten rows with the largest weight."""
        columns = (self.rows, self.labels, self.distances, self.weights)
        lines = [
            [str(row), str(label), f"{distance:.3f}", f"{weight:.3f}"]
            for row, label, distance, weight in zip(
                *(column[:_MAX_NEIGHBOURS] for column in columns), strict=True
            )
        ]
        headers = ["training row", "class", "distance", "weight"]
        shown = text_table(headers, lines, [True, False, True, True])
        more = len(self.rows) - len(lines)
        return shown + (f"\n… and {more} more" if more > 0 else "")


def neighbours_of(model: Any, codes: Codes) -> tuple[Neighbours, ...]:
    """Return the training rows that count for each query, if a model has kept them."""
    if not model.is_lazy:
        return ()
    by_query = []
    for i in range(codes.n_rows):
        distance, mass = model.row_weights(codes.take(np.array([i])))
        order = np.lexsort((np.arange(len(mass)), distance, -mass))
        kept = order[mass[order] > 0.0]
        labels = model.classes[model.y[kept]]
        by_query.append(Neighbours(kept, labels, distance[kept], mass[kept]))
    return tuple(by_query)


@dataclass(frozen=True)
class NumberSteps:
    """The numbers that a column may hold: between its ends, in steps of its digits."""

    where: NumberRange
    now: float
    """What the row holds; the middle of the column if that is unknown."""

    digits: int
    """Digits after the point."""

    @classmethod
    def of(cls, where: NumberRange, label: str) -> NumberSteps:
        """Return the steps of a column; the row holds what a label says."""
        try:
            now, known = float(label), [where.low, where.high, float(label)]
        except ValueError:
            now, known = float(np.median(where.points)), [where.low, where.high]
        texts = [f"{x:.9f}".rstrip("0") for x in known]
        digits = max(len(text.partition(".")[2]) for text in texts)
        # Numbers that were computed have as many as they need to be told apart.
        return cls(where, now, digits if digits < 5 else max(cls._finest(where), 0))

    @staticmethod
    def _finest(where: NumberRange) -> int:
        """Return digits of a number that tell a thousandth of the range apart."""
        wide = where.high - where.low or 1.0
        return int(np.ceil(3.0 - np.log10(wide))) if np.isfinite(wide) else 0

    def rounded(self, numbers: Floats, digits: int | None = None) -> Floats:
        """Return the nearest numbers that the column may hold, increasing."""
        digits = self.digits if digits is None else digits
        return self.where.clipped(np.unique(np.round(numbers, digits)))

    def nearest(self, found: Callable[[Floats], Floats]) -> float | None:
        """Return the number nearest to the present one of those that a search finds.

        First in coarse steps over the whole range, then finer ones on the way back.
        """
        best, digits = None, min(self.digits, self._finest(self.where))
        low, high = self.where.low, self.where.high
        while digits <= self.digits:
            step = 10.0**-digits
            numbers = np.arange(np.floor(low / step), np.ceil(high / step) + 1.0) * step
            numbers = found(self.rounded(numbers, digits))
            if not len(numbers):
                break
            best = float(numbers[np.argmin(np.abs(numbers - self.now))])
            low, high = sorted((best, best + np.sign(self.now - best) * step))
            digits += 1
        return best


@dataclass(frozen=True)
class EvidenceItem(PlainData):
    """What one attribute of a row says for one class against another."""

    attribute: str
    value: str
    amount: float
    """In log-odds; positive speaks for the class."""

    missing: bool
    title: str = ""
    """The attribute in words, where a file had labels of columns, or it was edited."""

    edited: bool = False
    """Whether it was changed by hand."""

    half_width: float | None = None
    """Of the 90 % interval of the amount, where it is known."""


@dataclass(frozen=True, repr=False)
class Evidence(Tabular):
    """Two classes of one row compared: the start and all items add up to log-odds."""

    target: str
    against: str
    probability: float
    """Posterior probability of the target."""

    prior: float
    """Where the sum begins: with the mean over the training rows, if it is known."""

    items: tuple[EvidenceItem, ...]
    """By falling size."""

    base_rate: float | None = None
    """Share of the target among the classes, where the sum begins with it."""

    is_centred: bool = False
    """Whether the sum begins with the mean over the training rows."""

    half_width: float | None = None
    """Of the 90 % interval of the sum, where it is known."""

    @property
    def start(self) -> tuple[str, str]:
        """What the sum begins with: a name, and the base rate if it is that."""
        if self.is_centred:
            return "average row", ""
        if self.base_rate is None:
            return "prior", ""
        return "base rate", percent(self.base_rate)

    @property
    def amounts(self) -> list[float]:
        """All that is added up: the start, then the items."""
        return [self.prior, *(item.amount for item in self.items)]

    @property
    def total(self) -> float:
        """Log-odds of the target against the other class."""
        return math.fsum(self.amounts)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        return {**super().to_dict(), "total": as_plain(self.total)}

    def layout(self) -> tuple[str, list[str], list[list[str]]]:
        """Return a title, names of columns and lines of texts with bars."""
        names = [self.start, *((i.title or i.attribute, i.value) for i in self.items)]
        drawn = zip(names, self.amounts, sided_bars(self.amounts), strict=True)
        lines = [[*name, signed(amount), bar] for name, amount, bar in drawn]
        lines.append(["sum", "", signed(self.total), ""])
        headers = ["attribute", "value", "evidence", ""]
        if self.half_width is not None:
            headers.insert(3, "± (90 %)")
            for line, half in zip(lines, self.half_widths, strict=True):
                line.insert(3, half)
        title = (
            f"{self.target} (probability {probability_text(self.probability)}) against "
            f"{self.against}: evidence in log-odds"
        )
        return title, headers, lines

    @property
    def half_widths(self) -> list[str]:
        """Half widths of intervals as text, of all that is added up and of the sum."""
        half = [None, *(item.half_width for item in self.items), self.half_width]
        return ["" if own is None else f"{own:.2f}" for own in half]

    def __repr__(self) -> str:
        """Lay the evidence out as text with bars."""
        title, headers, lines = self.layout()
        numeric = [False, False, *[True] * (len(headers) - 3), False]
        return f"{title}\n{text_table(headers, lines, numeric)}"
