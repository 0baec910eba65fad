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
from steelyard.notices.row_sketch import (
    BY_CHANCE,
    RowHashes,
    new_hashes,
    sketch_of,
)
from steelyard.table.by_schema import ColumnCells, Look
from steelyard.table.columns import TableColumn
from steelyard.table.frames import Table, as_series, as_table

# Fewer rows tell nothing about the share that was learned from.
_LEAST_ROWS = 5


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
        self._classes = {
            *classes,
            *map(str, classes),
            *(str(c).strip() for c in classes),
        }
        self._sketch: RowHashes | None = getattr(fitted, "row_sketch_", None)
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
        advice = "X[clf.feature_names_in_] leaves them out"
        notices, found = column_notices(table.names, expected, advice)
        self._others |= dict.fromkeys(notices)
        by_name = dict(zip(table.names, table.columns, strict=True))
        return [by_name.get(found.get(name, ""), None) for name in expected]

    def _add_column(self, check: ColumnCheck, column: TableColumn) -> None:
        try:
            _add_cells(check, ColumnCells(column))
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
        if sketch is not None and self._n_below >= _LEAST_ROWS:
            share, by_chance = sketch.seen_share(self._n_below, self._n_found)
            if share > by_chance:
                n = round(share * n_rows)
                about = "" if self._n_below == n_rows else "about "
                text = f"{about}{n:,} of {n_rows:,} rows are rows that the model has "
                text += "learned from: measures are too good"
                cure = "evaluate on other rows, or by folds"
                found.append(Notice("seen-rows", text, None, n, "", cure))
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
        least, most = held.min(initial=np.inf), held.max(initial=-np.inf)
        check.add_numbers(len(narrow.indices), n_missing, least, most, n_beyond)
        return
    for numbers, n_known, least, most in cells.blocks[1]:
        n_beyond = int(np.count_nonzero(numbers < low)) if least < low else 0
        n_beyond += int(np.count_nonzero(numbers > high)) if most > high else 0
        check.add_numbers(len(numbers), len(numbers) - n_known, least, most, n_beyond)
