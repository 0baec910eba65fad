"""NewRows: tables beside what a model knows of its columns, chunk by chunk."""

from __future__ import annotations

from typing import Any

import numpy as np

from steelyard._common.text import listed
from steelyard.exceptions import ColumnError
from steelyard.notices.new_rows import (
    ColumnCheck,
    all_notices,
    column_checks,
    column_notices,
)
from steelyard.notices.notice import Notice
from steelyard.notices.row_sketch import RowHashes, new_hashes, sketch_of
from steelyard.table.by_schema import ColumnCells
from steelyard.table.columns import TableColumn
from steelyard.table.factors import Factor
from steelyard.table.frames import Table, as_series, as_table

# Fewer rows tell nothing about the share that was learned from; and such a share of
# rows may be equal to others by chance.
_LEAST_ROWS, _BY_CHANCE = 5, 0.1


class NewRows:
    """What is odd about new rows, which may come in chunks.

    Parameters
    ----------
    fitted : classifier
        A fitted one.
    """

    def __init__(self, fitted: Any) -> None:
        schema, counts = fitted.encoder_.schema_, getattr(fitted, "counts_", None)
        self._schema = schema.without_pairs
        totals, by_code = [1.0], [1.0] * schema.n_codes
        # Codes of a method that selects columns may be others than those counted.
        if counts is not None and counts.schema.n_codes == schema.n_codes:
            totals, by_code = counts.by_class.tolist(), counts.by_code.ravel().tolist()
        ranges = getattr(fitted, "ranges_", None)
        self.columns = column_checks(schema, ranges, totals, by_code)
        classes = fitted.classes_.tolist()
        self._classes = {*classes, *map(str, classes)}
        self._sketch: RowHashes | None = getattr(fitted, "row_sketch_", None)
        self._others: dict[Notice, None] = {}
        self._n_rows = self._n_below = self._n_found = 0
        self._hashes: list[Any] = []
        self._unknown: dict[Any, int] = {}

    def add(self, X: Any, y: Any = None) -> None:
        """Look at some more rows; with labels as rows to evaluate on."""
        table = as_table(X)
        self._n_rows += table.n_rows
        columns = self._matched(table)
        for check, column in zip(self.columns, columns, strict=True):
            if column is not None and not check.feature.left_out:
                self._add_column(check, column)
        if y is None:
            return
        for label, n in zip(*_counted(as_series(y).factor()), strict=True):
            if n and not {label, str(label)} & self._classes:
                self._unknown[label] = self._unknown.get(label, 0) + int(n)
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
        advice = "X[clf.feature_names_in_] leaves them out"
        notices, found = column_notices(table.names, expected, advice)
        self._others |= dict.fromkeys(notices)
        by_name = dict(zip(table.names, table.columns, strict=True))
        return [by_name.get(found.get(name, ""), None) for name in expected]

    def _add_column(self, check: ColumnCheck, column: TableColumn) -> None:
        cells = ColumnCells(column)
        try:
            if check.feature.kind == "categorical":
                _add_values(check, cells)
            elif column.cells == "text":
                cells.encoded(check.feature)
            else:
                _add_numbers(check, cells.numbers)
        except ColumnError as error:
            text = str(error).removeprefix(f"{column.label} ").split(". ")[0]
            notice = Notice("other-kind", text, check.name, cure="predict refuses it")
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
        usual = _BY_CHANCE if sketch is None else _BY_CHANCE + sketch.repeated
        if sketch is not None and self._n_below >= _LEAST_ROWS:
            share = sketch.seen_share(self._n_below, self._n_found)
            if share > usual:
                n = round(share * n_rows)
                about = "" if self._n_below == n_rows else "about "
                text = f"{about}{n:,} of {n_rows:,} rows are rows that the model has "
                text += "learned from: measures are too good"
                cure = "evaluate on other rows, or by folds"
                found.append(Notice("seen-rows", text, None, n, "", cure))
        if new.repeated > usual:
            text = f"{n_repeated:,} of {n_rows:,} rows occur more than once"
            found.append(Notice("repeated-rows", text, None, n_repeated))
        return found


def _add_values(check: ColumnCheck, cells: ColumnCells) -> None:
    """Count categories, as the model reads them."""
    as_read, known = cells.as_fitted(check.feature).values, check.feature.code_of
    unseen = {
        value: n
        for value, n, read in zip(*_counted(cells.factor), as_read, strict=True)
        if n and read not in known
    }
    indices = cells.factor.indices
    check.add_values(len(indices), int((indices < 0).sum()), unseen)


def _counted(factor: Factor) -> tuple[list[Any], list[int]]:
    """Return the values of a column, and how many cells hold each."""
    places, n_values = factor.indices + np.int64(1), len(factor.values)
    return factor.values, np.bincount(places, minlength=n_values + 1)[1:].tolist()


def _add_numbers(check: ColumnCheck, numbers: Any) -> None:
    known = numbers[~np.isnan(numbers)]
    low, high = check.ends or (-np.inf, np.inf)
    least, most = known.min(initial=np.inf), known.max(initial=-np.inf)
    n_beyond = 0
    if least < low or most > high:
        n_beyond = int(((known < low) | (known > high)).sum())
    n_missing = len(numbers) - len(known)
    check.add_numbers(len(numbers), n_missing, float(least), float(most), n_beyond)
