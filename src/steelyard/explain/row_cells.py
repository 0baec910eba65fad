"""Encoded rows that can be read and changed cell by cell, and their neighbours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, Ints
from steelyard._common.text import six_digits, text_table
from steelyard.explain.shared import PlainData
from steelyard.table.codes import CodeBlock, Codes, by_width, code_dtype
from steelyard.table.columns import TableColumn
from steelyard.table.encoding import encode_numbers
from steelyard.table.schema import FeatureSchema, TableSchema

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
        schema, coded = self.schema, self.schema.without_interactions.coded.tolist()
        most = max((schema.features[j].n_codes for j in coded), default=1)
        groups = [(code_dtype(most), coded)] if coded else []
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
        return RowCells(self.schema, self.codes[i : i + 1], self.numbers[i : i + 1])

    def repeated(self, n: int) -> RowCells:
        """Return one row n times."""
        rows = np.repeat(self.codes, n, axis=0), np.repeat(self.numbers, n, axis=0)
        return RowCells(self.schema, *rows)

    def joined(self) -> RowCells:
        """Return the same cells with codes of interactions made from them."""
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
        rows, feature = self.repeated(len(numbers)), self.schema.features[column]
        cells = rows.codes if feature.is_coded else rows.numbers
        cells[:, column] = encode_numbers(feature, numbers)
        return rows.joined()

    def label(self, i: int, j: int) -> str:
        """Name the value of a cell."""
        if self.schema.features[j].is_coded:
            return self.schema.describe(j, int(self.codes[i, j]))
        return self.number_label(j, float(self.numbers[i, j]))

    def number_label(
        self, j: int, number: float, write: Callable[[float], str] = six_digits
    ) -> str:
        """Write a number of a column, by ``write`` if it is no date."""
        if np.isnan(number):
            return "(missing)"
        return self.schema.writer(j, write)(number)


def describe_cells(
    cells: RowCells, columns: list[TableColumn]
) -> tuple[list[list[str]], NDArray[np.bool_]]:
    """Name every cell as the user gave it; return which are missing as well.

    Unlike codes, the columns distinguish a missing cell from a value never seen, and
    from the value that is imputed for it. A cell of fine bins is named by its number,
    an interaction by the groups of its two cells; it is missing if one of them is.
    """
    schema = cells.schema
    labels: list[list[str]] = [[] for _ in cells.codes]
    missing = np.zeros((len(cells.codes), len(schema)), dtype=bool)
    for j, column in enumerate(columns):
        feature = schema.features[j]
        for i, value in enumerate(raw_values(feature, column)):
            label = cells.label(i, j)
            missing[i, j] = value is None
            if feature.left_out:
                label = "(dropped)"
            elif value is None:
                imputed = "" if feature.fill is None else f", taken as {label}"
                label = f"(missing{imputed})"
            elif feature.is_fine:
                label = cells.number_label(j, float(value))
            elif feature.is_coded and cells.codes[i, j] == 0:
                label = f"{value} (unseen)"
            labels[i].append(label)
    for j in range(schema.n_columns, len(schema)):
        sides = [side.feature for side in schema.features[j].sides]
        missing[:, j] = missing[:, sides].any(axis=1)
        for i, of_row in enumerate(labels):
            of_row.append(cells.label(i, j))
    return labels, missing


def raw_values(feature: FeatureSchema, column: TableColumn) -> list[Any]:
    """Return cells as they were given, None if they are missing."""
    if feature.kind == "categorical" or column.cells == "text":
        factor = column.finite_factor
        values = list(factor.values)
        return [None if k < 0 else values[k] for k in factor.indices.tolist()]
    numbers = column.finite_numbers
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
        n_hidden = len(self.rows) - len(lines)
        return shown + (f"\n… and {n_hidden} more" if n_hidden > 0 else "")


def neighbours_of(model: Any, codes: Codes) -> tuple[Neighbours, ...]:
    """Return the training rows that a lazy model weighs for each query."""
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
