"""New rows compared with what a model keeps of its training rows, chunk by chunk.

Of training rows it keeps hashes, few enough for a model file. The smallest hashes are a
sample of all rows: of new rows whose hash is as small, those that are among them were
learned from, and their share is that of all (Bar-Yossef et al., 2002, count distinct
rows in the same way).
"""

from __future__ import annotations

import math
from collections import Counter
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
    unknown_cells_notice,
)
from steelyard.table.codes import Codes, comparable
from steelyard.table.columns import TableColumn
from steelyard.table.dates import date_of_part
from steelyard.table.encoding import Look, encode, factor_as_fitted
from steelyard.table.frames import Table, as_series, as_table, names_for
from steelyard.table.schema import TableSchema

Hashes = NDArray[np.uint64]

_BITS = 8 * HASH_BYTES
# Odd numbers of 64 random bits, of the finaliser of MurmurHash3.
_FACTORS = np.array([0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53], np.uint64)
_HALF = np.uint64(33)
_MAX_COLUMNS = 256
# Share of rows that may be equal to others without a notice.
_BY_CHANCE = 0.1
# Fewer rows are no evidence about the share that was learned from.
_MIN_ROWS = 5


@dataclass(frozen=True, eq=False)
class RowHashes:
    """The smallest hashes of rows, and the number of rows."""

    hashes: Hashes
    """Distinct and increasing; those of all rows if they are fewer than 256."""

    n_rows: int
    """Rows of the table."""

    n_hashed: int
    """Rows that were hashed: all of them, but some of a long table."""

    repeated: float
    """Share of those rows that occur more than once."""

    def count(self, hashes: Hashes) -> tuple[int, int]:
        """Count rows whose hash is as small as those here, and rows that are here."""
        if len(self.hashes) == MAX_HASHES:
            hashes = hashes[hashes <= self.hashes[-1]]
        return len(hashes), int(np.isin(hashes, self.hashes).sum())

    def seen_share(self, n_comparable: int, n_seen: int) -> tuple[float, float]:
        """Return the share of rows that were learned from, and the share by chance.

        Other rows are equal to rows of training as often as those are to each other.
        Of a long table, of which some rows were hashed, that is subtracted, and two
        standard errors of both shares are left to chance.
        """
        share, scale = n_seen / n_comparable, self.n_rows / self.n_hashed
        if self.n_hashed == self.n_rows:
            return share, _BY_CHANCE + self.repeated
        error = 2.0 * math.sqrt(share / n_comparable + self._error**2)
        share = min(1.0, scale * (share - self.repeated))
        return share, _BY_CHANCE + scale * error

    def repeated_by_chance(self, n_rows: int) -> float:
        """Return the share of other rows that may occur more than once."""
        likely = min(self.repeated + 2.0 * self._error, 1.0 - 1e-9)
        n_others = max(n_rows / self.n_hashed, 1.0)
        return _BY_CHANCE - math.expm1(n_others * math.log1p(-likely))

    @property
    def _error(self) -> float:
        """Standard error of ``repeated``, that of a number of pairs of rows."""
        n_pairs = self.repeated * self.n_hashed / 2.0
        return math.sqrt(n_pairs + 1.0) / self.n_hashed


def sketch_of(hashes: Hashes, n_rows: int) -> tuple[RowHashes, int]:
    """Return the smallest hashes, and how many rows occur more than once."""
    kept, counts = np.unique(hashes, return_counts=True)
    n_repeated = int(counts[counts > 1].sum())
    share = n_repeated / len(hashes)
    return RowHashes(kept[:MAX_HASHES], n_rows, len(hashes), share), n_repeated


def _new_hashes(columns: Sequence[TableColumn], schema: TableSchema) -> Hashes:
    """Hash the rows of new columns, as those of training were."""

    def content(j: int, column: TableColumn) -> NDArray[Any]:
        feature = schema.features[j]
        is_coded = feature.kind == "categorical" or column.cells == "text"
        return encode(column, feature) if is_coded else column.finite_numbers

    return row_hashes(content(j, column) for j, column in enumerate(columns))


def row_hashes(contents: Iterable[NDArray[Any]]) -> Hashes:
    """Hash rows by what a model reads of each column, shape (n,); below 2^48.

    Of categories that is the code, of numbers the number: the hash is the same whatever
    library a table is of, and in whatever order its columns. Of a wide table the first
    columns are hashed.
    """
    keys: Any = None
    factors = islice(_factors(), _MAX_COLUMNS)
    for content, factor in zip(contents, factors, strict=False):
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


class NewRows:
    """What is suspicious about new rows of a classifier, which may come in chunks."""

    def __init__(self, fitted: Any) -> None:
        schema, counts = fitted.encoder_.schema_, getattr(fitted, "counts_", None)
        self._schema = schema.without_interactions
        totals, by_code = [1.0], [1.0] * schema.n_codes
        # Codes of a method that selects columns may be others than those counted.
        if counts is not None and counts.schema.n_codes == schema.n_codes:
            totals, by_code = counts.by_class.tolist(), counts.by_code.ravel().tolist()
        training = fitted.training_
        moments = getattr(fitted.model_, "marginal", None)
        if getattr(fitted, "unknown", None) == "sum":
            moments = None
        odds = None if moments is None else moments.value_odds.tolist()
        self.columns = column_checks(schema, training.ranges, totals, by_code, odds)
        self._n_partly_known, self.averages = 0, moments is not None
        self._classes = {s for c in fitted.classes_.tolist() for s in _spellings(c)}
        self._learned: RowHashes | None = training.row_hashes
        self._others: dict[Notice, None] = {}
        self._n_rows = self._n_comparable = self._n_seen = 0
        self._hashes: list[Any] = []
        self._unknown_labels: Counter[Any] = Counter()

    def watch(self, table: Table) -> Look:
        """Return a function that examines rows while they are encoded."""
        self._n_rows += table.n_rows
        self._matched(table)
        return lambda j, column, codes: _add_cells(self.columns[j], column, codes)

    def add_codes(self, model: Any, codes: Codes) -> None:
        """Count rows with cells that a model averages over."""
        if self.averages:
            self._n_partly_known += len(model.partial_rows(codes))

    def add(self, X: Any, y: Any = None) -> None:
        """Examine further rows; with labels as rows to evaluate on."""
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
            if n and not _spellings(label) & self._classes:
                self._unknown_labels[label] += n
        if None not in columns:
            self._add_hashes([column for column in columns if column is not None])

    def notices(self) -> list[Notice]:
        """Return what is suspicious about all rows so far, worst first."""
        others = [*self._others, *self._unknown_classes(), *self._learned_rows()]
        others += unknown_cells_notice(self._n_partly_known, self._n_rows)
        return all_notices(self.columns, others)

    def _matched(self, table: Table) -> list[TableColumn | None]:
        """Return the columns in the model's order, None for those that it lacks."""
        expected = self._schema.names
        if expected is not None and self._schema.left_out:
            table = table.with_empty(expected[j] for j in self._schema.left_out)
        if expected is None or table.names is None:
            some: list[TableColumn | None] = list(table.columns[: len(self.columns)])
            return some + [None] * (len(self.columns) - len(some))
        advice = "drop them (`X[clf.feature_names_in_]`)"
        names = names_for(table, expected)
        # Nobody named the parts of dates: the column of dates is not missing.
        lacking = (name for name in expected if name not in names)
        parts = {name for name in lacking if date_of_part(name) in names}
        named = [name for name in expected if name not in parts]
        notices, matched = column_notices(names, named, advice, self.averages)
        self._others |= dict.fromkeys(notices)
        columns = {str(column.name): column for column in table.columns}
        by_name = {**table.parts, **columns}
        return [by_name.get(matched.get(name, ""), None) for name in expected]

    def _add_column(self, check: ColumnCheck, column: TableColumn) -> None:
        try:
            _add_cells(check, column)
        except ColumnError as error:
            text = str(error).removeprefix(f"{column.label} ").split(". ")[0]
            notice = Notice("other-kind", text, check.name, advice="predict refuses it")
            self._others[notice] = None
        column.release()

    def _add_hashes(self, columns: list[TableColumn]) -> None:
        try:
            hashes = _new_hashes(columns, self._schema)
        except ColumnError:
            return
        self._hashes.append(hashes)
        if self._learned is not None:
            n_comparable, n_seen = self._learned.count(hashes)
            self._n_comparable += n_comparable
            self._n_seen += n_seen

    def _unknown_classes(self) -> Iterator[Notice]:
        if labels := self._unknown_labels:
            n, shown = labels.total(), listed(map(repr, labels), 4)
            text = f"{n:,} of {self._n_rows:,} labels are not classes of the model: "
            yield Notice("unknown-class", text + shown, None, n, "counted as wrong")

    def _learned_rows(self) -> Iterator[Notice]:
        if not self._hashes:
            return
        n_rows, learned, by_chance = self._n_rows, self._learned, _BY_CHANCE
        new, n_repeated = sketch_of(np.concatenate(self._hashes), n_rows)
        if learned is not None:
            by_chance = learned.repeated_by_chance(n_rows)
            if self._n_comparable >= _MIN_ROWS:
                yield from self._seen_rows(learned)
        if new.repeated > by_chance:
            text = f"{n_repeated:,} of {n_rows:,} rows are duplicates"
            yield Notice("repeated-rows", text, None, n_repeated)

    def _seen_rows(self, learned: RowHashes) -> Iterator[Notice]:
        share, by_chance = learned.seen_share(self._n_comparable, self._n_seen)
        if share > by_chance:
            n = round(share * self._n_rows)
            about = "" if self._n_comparable == self._n_rows else "about "
            text = f"{about}{n:,} of {self._n_rows:,} rows were also in the training "
            text += "data: these figures are too optimistic"
            advice = "evaluate on other rows, or by cross-validation"
            yield Notice("seen-rows", text, None, n, "", advice)


def _spellings(label: Any) -> set[Any]:
    """Return a label, and its text with and without blanks at the ends."""
    return {label, str(label), str(label).strip()}


def _add_cells(check: ColumnCheck, column: TableColumn, codes: Any = None) -> None:
    """Count the cells of a column; codes may show that none is unseen."""
    feature = check.feature
    if feature.left_out:
        return
    if feature.kind != "categorical":
        if column.cells == "text":
            encode(column, feature)
        else:
            _add_numbers(check, column)
    elif codes is not None and codes.all():
        missing = feature.missing_code
        n_missing = int(np.count_nonzero(codes == missing)) if missing else 0
        check.add_values(len(codes), n_missing, {})
    else:
        _add_values(check, column)


def _add_values(check: ColumnCheck, column: TableColumn) -> None:
    """Count categories, as the model reads them."""
    codes = check.feature.codes(factor_as_fitted(column, check.feature).values)
    factor = column.finite_factor
    counts, n_missing = factor.counts()
    unseen = {
        value: n
        for value, n, code in zip(factor.values, counts, codes, strict=True)
        if n and not code
    }
    check.add_values(len(factor.indices), n_missing, unseen)


def _add_numbers(check: ColumnCheck, column: TableColumn) -> None:
    """Count numbers, and those beyond the ends of training."""
    low, high = check.ends or (-np.inf, np.inf)
    # Whole numbers of a small range were counted to encode them.
    if (narrow := vars(column).get("narrow_factor")) is not None:
        counts, n_missing = narrow.counts()
        # The least and the largest of them occur; those between may not.
        values = np.array(narrow.values, float)
        n_beyond = int(np.array(counts)[(values < low) | (values > high)].sum())
        ends = float(values.min()), float(values.max())
        check.add_numbers(len(narrow.indices), n_missing, *ends, n_beyond)
        return
    for numbers, n_present, least, most in column.number_blocks[1]:
        n_beyond = int(np.count_nonzero(numbers < low)) if least < low else 0
        n_beyond += int(np.count_nonzero(numbers > high)) if most > high else 0
        n_missing = len(numbers) - n_present
        check.add_numbers(len(numbers), n_missing, least, most, n_beyond)
