"""NewRows: tables beside what a model knows of its columns, chunk by chunk.

Of training rows it knows hashes, few enough for a model file. The smallest hashes stand
for all rows: of new rows whose hash is as small, those that are among them were learned
from, and their share is that of all (Bar-Yossef et al., 2002, count distinct rows in
the same way).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.allowed import HASH_BYTES, MAX_HASHES
from steelyard._common.text import listed
from steelyard.exceptions import ColumnError
from steelyard.notices.notice import (
    ColumnCheck,
    Notice,
    all_notices,
    column_checks,
    column_notices,
)
from steelyard.table.by_schema import ColumnCells, Look
from steelyard.table.codes import comparable
from steelyard.table.columns import TableColumn
from steelyard.table.dates import date_of_part
from steelyard.table.frames import Table, as_series, as_table, names_for
from steelyard.table.schema import TableSchema

Hashes = NDArray[np.uint64]

_BITS = 8 * HASH_BYTES
# Odd numbers of 64 random bits, of the finaliser of MurmurHash3.
_FACTORS = np.array([0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53], np.uint64)
_HALF = np.uint64(33)
# Columns that are hashed.
_COLUMNS = 256
BY_CHANCE = 0.1
"""Such a share of rows may be equal to others without a word."""


@dataclass(frozen=True, eq=False)
class RowHashes:
    """The smallest hashes of rows, and of how many rows they are."""

    hashes: Hashes
    """Different ones, increasing; those of all rows where they are fewer than 256."""

    n_rows: int
    """Rows of the table."""

    n_hashed: int
    """Rows that were hashed: all of a table that is not long."""

    repeated: float
    """Share of those rows that occur more than once."""

    @property
    def limit(self) -> int:
        """Hashes below it are here if their rows are."""
        if len(self.hashes) < MAX_HASHES:
            return 1 << _BITS
        return int(self.hashes[-1]) + 1

    def count(self, hashes: Hashes) -> tuple[int, int]:
        """Return how many rows could be found here, and how many are."""
        below = hashes[hashes < np.uint64(self.limit)]
        return len(below), int(np.isin(below, self.hashes).sum())

    def seen_share(self, n_below: int, n_found: int) -> tuple[float, float]:
        """Return the share of rows that were learned from, and what chance gives.

        Other rows are equal to rows of training as often as those are to each other.
        Of a long table, of which some rows were hashed, that is taken off, and two
        standard errors of both shares are left to chance.
        """
        found, scale = n_found / n_below, self.n_rows / self.n_hashed
        if self.n_hashed == self.n_rows:
            return found, BY_CHANCE + self.repeated
        error = 2.0 * math.sqrt(found / n_below + self._error**2)
        share = min(1.0, scale * (found - self.repeated))
        return share, BY_CHANCE + scale * error

    def repeated_by_chance(self, n_rows: int) -> float:
        """Return the share of so many other rows that may occur more than once."""
        likely = min(self.repeated + 2.0 * self._error, 1.0 - 1e-9)
        n_others = max(n_rows / self.n_hashed, 1.0)
        return BY_CHANCE - math.expm1(n_others * math.log1p(-likely))

    @property
    def _error(self) -> float:
        """Standard error of ``repeated``, that of a number of pairs of rows."""
        n_pairs = self.repeated * self.n_hashed / 2.0
        return math.sqrt(n_pairs + 1.0) / self.n_hashed


def sketch_of(hashes: Hashes, n_rows: int) -> tuple[RowHashes, int]:
    """Return the sketch of rows, and how many of them occur more than once."""
    kept, counts = np.unique(hashes, return_counts=True)
    n_repeated = int(counts[counts > 1].sum())
    share = n_repeated / len(hashes)
    return RowHashes(kept[:MAX_HASHES], n_rows, len(hashes), share), n_repeated


def new_hashes(columns: Sequence[TableColumn], schema: TableSchema) -> Hashes:
    """Hash the rows of new columns, as those of training were."""

    def content(j: int, column: TableColumn) -> NDArray[Any]:
        cells, feature = ColumnCells(column), schema.features[j]
        if feature.kind == "categorical":
            return cells.encoded(feature)
        return cells.encoded(feature) if column.cells == "text" else cells.numbers

    return row_hashes(content(j, column) for j, column in enumerate(columns))


def row_hashes(contents: Iterable[NDArray[Any]]) -> Hashes:
    """Hash rows by what a model reads of each column, shape (n,); below 2^48.

    Of categories that is the code, of numbers the number: the hash is the same whatever
    library a table is of, and in whatever order its columns. Of a wide table the first
    columns tell rows apart.
    """
    keys: Any = None
    for content, factor in zip(contents, islice(_factors(), _COLUMNS), strict=False):
        if content.dtype.kind == "f":
            bits = comparable(content).view(np.uint64)
            # The last bits of most numbers are zero.
            bits ^= bits >> _HALF
            bits *= factor
        else:
            bits = content.astype(np.uint64) * factor
        keys = bits if keys is None else np.add(keys, bits, out=keys)
    for factor in _FACTORS:
        keys ^= keys >> _HALF
        keys *= factor
    return keys >> np.uint64(64 - _BITS)


def _factors() -> Iterator[np.uint64]:
    """Yield an odd number of 64 random bits for each column."""
    state = 0
    while True:
        # The sequence of SplitMix64.
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = state
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            z = (z ^ (z >> shift)) * factor % 2**64
        yield np.uint64((z ^ (z >> 31)) | 1)


# Fewer rows tell nothing about the share that was learned from.
_MIN_ROWS = 5


class NewRows:
    """What is odd about new rows, which may come in chunks.

    Parameters
    ----------
    fitted : classifier
        A fitted one.
    """

    def __init__(self, fitted: Any) -> None:
        schema, counts = fitted.encoder_.schema_, getattr(fitted, "counts_", None)
        self._schema = schema.without_interactions
        totals, by_code = [1.0], [1.0] * schema.n_codes
        # Codes of a method that selects columns may be others than those counted.
        if counts is not None and counts.schema.n_codes == schema.n_codes:
            totals, by_code = counts.by_class.tolist(), counts.by_code.ravel().tolist()
        training = fitted.training_
        self.columns = column_checks(schema, training.ranges, totals, by_code)
        classes = fitted.classes_.tolist()
        self._classes = {
            *classes,
            *map(str, classes),
            *(str(c).strip() for c in classes),
        }
        self._sketch: RowHashes | None = training.row_hashes
        self._others: dict[Notice, None] = {}
        self._n_rows = self._n_below = self._n_found = 0
        self._hashes: list[Any] = []
        self._unknown: dict[Any, int] = {}

    def watch(self, table: Table) -> Look:
        """Return what looks at some more rows while they are encoded."""
        self._n_rows += table.n_rows
        self._matched(table)
        return lambda j, cells, codes: _add_cells(self.columns[j], cells, codes)

    def add(self, X: Any, y: Any = None) -> None:
        """Look at some more rows; with labels as rows to evaluate on."""
        table = as_table(X)
        self._n_rows += table.n_rows
        columns = self._matched(table)
        for check, column in zip(self.columns, columns, strict=True):
            if column is not None:
                self._add_column(check, column)
        if y is None:
            return
        labels = as_series(y).factor()
        for label, n in zip(labels.values, labels.counts()[0], strict=True):
            if n and not {label, str(label), str(label).strip()} & self._classes:
                self._unknown[label] = self._unknown.get(label, 0) + n
        if None not in columns:
            self._add_hashes([column for column in columns if column is not None])

    def notices(self) -> list[Notice]:
        """Return what is odd about all rows so far, worst first."""
        others = [*self._others, *self._unknown_classes(), *self._learned_rows()]
        return all_notices(self.columns, others)

    def _matched(self, table: Table) -> list[TableColumn | None]:
        """Return the columns in the model's order, None for those that it lacks."""
        expected = self._schema.names
        if expected is not None and self._schema.left_out:
            table = table.with_empty(expected[j] for j in self._schema.left_out)
        if expected is None or table.names is None:
            some: list[TableColumn | None] = list(table.columns[: len(self.columns)])
            return some + [None] * (len(self.columns) - len(some))
        advice = "leave them out (`X[clf.feature_names_in_]`)"
        names = names_for(table, expected)
        # Nobody named the parts of dates: the column that held dates is not missing.
        lacking = (name for name in expected if name not in names)
        parts = {name for name in lacking if date_of_part(name) in names}
        named = [name for name in expected if name not in parts]
        notices, found = column_notices(names, named, advice)
        self._others |= dict.fromkeys(notices)
        columns = {str(column.name): column for column in table.columns}
        by_name = {**table.parts, **columns}
        return [by_name.get(found.get(name, ""), None) for name in expected]

    def _add_column(self, check: ColumnCheck, column: TableColumn) -> None:
        try:
            _add_cells(check, ColumnCells(column))
        except ColumnError as error:
            text = str(error).removeprefix(f"{column.label} ").split(". ")[0]
            notice = Notice("other-kind", text, check.name, advice="predict refuses it")
            self._others[notice] = None
        column.release()

    def _add_hashes(self, columns: list[TableColumn]) -> None:
        try:
            hashes = new_hashes(columns, self._schema)
        except ColumnError:
            return
        self._hashes.append(hashes)
        if self._sketch is not None:
            n_below, n_found = self._sketch.count(hashes)
            self._n_below += n_below
            self._n_found += n_found

    def _unknown_classes(self) -> list[Notice]:
        if not self._unknown:
            return []
        n, shown = sum(self._unknown.values()), listed(map(repr, self._unknown), 4)
        text = f"{n:,} of {self._n_rows:,} labels are not classes of the model: {shown}"
        return [Notice("unknown-class", text, None, n, "counted as wrong")]

    def _learned_rows(self) -> list[Notice]:
        found: list[Notice] = []
        if not self._hashes:
            return found
        n_rows, sketch = self._n_rows, self._sketch
        new, n_repeated = sketch_of(np.concatenate(self._hashes), n_rows)
        if sketch is not None and self._n_below >= _MIN_ROWS:
            share, by_chance = sketch.seen_share(self._n_below, self._n_found)
            if share > by_chance:
                n = round(share * n_rows)
                about = "" if self._n_below == n_rows else "about "
                text = f"{about}{n:,} of {n_rows:,} rows are rows that the model has "
                text += "learned from: measures are too good"
                advice = "evaluate on other rows, or by folds"
                found.append(Notice("seen-rows", text, None, n, "", advice))
        usual = sketch.repeated_by_chance(n_rows) if sketch else BY_CHANCE
        if new.repeated > usual:
            text = f"{n_repeated:,} of {n_rows:,} rows occur more than once"
            found.append(Notice("repeated-rows", text, None, n_repeated))
        return found


def _add_cells(check: ColumnCheck, cells: ColumnCells, codes: Any = None) -> None:
    """Look at the cells of a column, whose codes may tell that all are known."""
    feature = check.feature
    if feature.left_out:
        return
    if feature.kind != "categorical":
        if cells.column.cells == "text":
            cells.encoded(feature)
        else:
            _add_numbers(check, cells)
    elif codes is not None and codes.all():
        missing = feature.missing_code
        n_missing = int(np.count_nonzero(codes == missing)) if missing else 0
        check.add_values(len(codes), n_missing, {})
    else:
        _add_values(check, cells)


def _add_values(check: ColumnCheck, cells: ColumnCells) -> None:
    """Count categories, as the model reads them."""
    codes = check.feature.codes(cells.as_fitted(check.feature).values)
    counts, n_missing = cells.factor.counts()
    unseen = {
        value: n
        for value, n, code in zip(cells.factor.values, counts, codes, strict=True)
        if n and not code
    }
    check.add_values(len(cells.factor.indices), n_missing, unseen)


def _add_numbers(check: ColumnCheck, cells: ColumnCells) -> None:
    """Count numbers, and those beyond the ends of training."""
    low, high = check.ends or (-np.inf, np.inf)
    # Whole numbers of a small range were counted to encode them.
    if (narrow := vars(cells).get("narrow")) is not None:
        counts, n_missing = narrow.counts()
        held, counts = np.array(narrow.values, float), np.array(counts)
        held, counts = held[counts > 0], counts[counts > 0]
        n_beyond = int(counts[(held < low) | (held > high)].sum())
        ends = float(held.min(initial=np.inf)), float(held.max(initial=-np.inf))
        check.add_numbers(len(narrow.indices), n_missing, *ends, n_beyond)
        return
    for numbers, n_known, least, most in cells.blocks[1]:
        n_beyond = int(np.count_nonzero(numbers < low)) if least < low else 0
        n_beyond += int(np.count_nonzero(numbers > high)) if most > high else 0
        check.add_numbers(len(numbers), len(numbers) - n_known, least, most, n_beyond)
