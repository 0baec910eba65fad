"""Drift as one SQL query: what ``clf.drift`` says of columns, by period."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from steelyard.evaluation.shares import grouped_values
from steelyard.exceptions import ParameterError
from steelyard.export.plan import Grouping
from steelyard.export.reading import plan_of
from steelyard.export.sql import check_length
from steelyard.export.sql_dialect import Dialect, dialect_of
from steelyard.export.sql_query import Terms
from steelyard.export.sql_statement import Statement, wrapped
from steelyard.monitoring.drift import DriftMonitor

if TYPE_CHECKING:
    from steelyard.classifiers.base.estimator import BaseNB

__all__ = ["drift_sql"]

RESULTS = ("psi", "missing", "unseen", "out_of_range")


def drift_sql(
    clf: BaseNB, dialect: str = "duckdb", table: str = "data", by: str | None = None
) -> str:
    """Return a query of the drift of columns, as ``clf.drift`` computes it.

    Parameters
    ----------
    clf : BaseNB
        A fitted classifier.
    dialect : str, default="duckdb"
        The database, one of those in ``steelyard.export.DIALECTS``.
    table : str, default="data"
        The table of new rows, with a schema or without.
    by : str, default=None
        The column of periods, of which each value is one.

    Returns
    -------
    str
        A query with a row for each period and column: ``period``, ``column_name``,
        ``n_rows``, the population stability index ``psi`` against the rows of
        training, and the shares ``missing``, ``unseen`` and ``out_of_range``. An
        index is NULL where training kept no histogram. That of a period of fewer than
        200 rows is of more groups than in ``clf.drift``.

    Examples
    --------
    >>> import sqlite3, steelyard as sy
    >>> clf = sy.NaiveBayes().fit([["a"], ["b"]] * 50, ["no", "yes"] * 50)
    >>> with sqlite3.connect(":memory:") as base:
    ...     _ = base.execute("CREATE TABLE data AS SELECT 'a' AS x0 UNION SELECT 'c'")
    ...     _, name, n_rows, psi, *shares = base.execute(
    ...         drift_sql(clf, "sqlite")
    ...     ).fetchone()
    >>> name, n_rows, round(psi, 3), shares
    ('x0', 2, 2.453, [0.0, 0.5, 0.0])
    """
    plan, database, monitor = plan_of(clf), dialect_of(dialect), DriftMonitor(clf)
    keep = [] if by is None else [by]
    texts = [*keep, table, *plan.texts()]
    source = ".".join(map(database.identifier, table.split(".")))
    to = Statement(database, source, keep, texts, is_single=True)
    reader = Terms(plan, to, None, False)
    compared = sorted({*range(monitor.schema.n_columns)} - {*monitor.schema.left_out})
    columns = [_Column(j, monitor, reader) for j in compared]
    if not columns:
        raise ParameterError("The model reads no column: there is nothing to compare.")
    outputs = [pair for column in columns for pair in column.cells()]
    coded, counts = f"{to.prefix}coded", f"{to.prefix}counts"
    (head,) = to.select(outputs, as_stage=coded)
    period = database.text("all rows") if by is None else database.identifier(by)
    n_sums = sum(len([*column.sums()]) for column in columns)
    if database.max_columns is not None and n_sums > database.max_columns - 10:
        raise ParameterError(
            f"The query adds up {n_sums} numbers of each period, and tables of "
            f"{database.name} have at most {database.max_columns} columns. Use "
            "'duckdb', or clf.drift."
        )
    sums = [f"COUNT(*) AS {to.prefix}rows"]
    sums += [f"SUM({what}) AS {name}" for c in columns for what, name in c.sums()]
    lines = ",\n    ".join([f"{period} AS {to.prefix}period", *sums])
    groups = "" if by is None else f"\n  GROUP BY {period}"
    names = [database.identifier(name) for name in ("period", "column_name", "n_rows")]
    parts = []
    for column in columns:
        what = [f"{to.prefix}period", database.text(column.name), f"{to.prefix}rows"]
        shares = zip(
            [*names, *map(database.identifier, RESULTS)],
            [*what, *column.results()],
            strict=True,
        )
        listed = ", ".join(f"{expression} AS {name}" for name, expression in shares)
        parts.append(f"SELECT {listed} FROM {counts}")
    text = "\nUNION ALL ".join(parts)
    stage = f"{counts} AS (\n  SELECT\n    {lines}\n  FROM {coded}{groups}\n)"
    query = wrapped(f"{head},\n{stage}\n{text}", database.quoted)
    check_length(query, database)
    return query


@dataclass
class _Column:
    """Counts of a column in SQL, and what is computed of them."""

    position: int
    monitor: DriftMonitor
    reader: Terms

    def __post_init__(self) -> None:
        j, monitor = self.position, self.monitor
        self.to: Statement = self.reader.to
        self.dialect: Dialect = self.to.dialect
        self.feature: Any = monitor.schema.features[j]
        self.column = self.reader.plan.columns[j]
        self.name = self.column.name
        self.is_category = self.column.kind == "category"
        before, edges = monitor.histogram_before(j)
        gone = monitor.missing_before(j)
        self.counts_missing = gone is not None
        total = 0.0 if before is None else float(np.sum(before)) + (gone or 0.0)
        self.before: list[float] = []
        """Rows of training by group, those with a missing cell last."""
        groups: list[list[int]] = []
        if before is not None and total > 0.0:
            values = [*before, 0.0] if self.is_category else list(before)
            groups = grouped_values(
                values, total, not self.is_category or self.feature.ordered
            )
            self.before = [sum(values[k] for k in group) for group in groups]
            self.before += [] if gone is None else [gone]
        of = {k: g for g, group in enumerate(groups, start=1) for k in group}
        n = len(self.column.values) if self.is_category else len(edges) + 1
        self.unseen = of.get(n, 0)
        """The group of values never seen."""
        missing = len(groups) + 1
        if gone is None:
            # They are counted as the value in their place, in a histogram not at all.
            coded = self.feature.is_coded and not monitor.by_bars[j]
            missing = of.get(self.feature.missing_code - 1, -1) if coded else -1
        self.grouping = Grouping(
            j,
            self.column.values if self.is_category else (),
            () if self.is_category else tuple(edges),
            tuple(of.get(k, 1) for k in range(n)),
            missing,
            len(groups) + 2,
        )

    def named(self, what: str) -> str:
        """Return the name of a number of this column."""
        return f"{self.to.prefix}{what}_{self.position}"

    def cells(self) -> Iterator[tuple[str, str]]:
        """Yield what is computed of each cell, and its name."""
        cell = self.reader.cell(self.position)
        yield self.reader.group(self.grouping), self.named("group")
        yield f"CASE WHEN {cell} IS NULL THEN 1 ELSE 0 END", self.named("missing")
        where = self.monitor.ranges[self.position]
        if not self.is_category and where is not None:
            low, high = map(self.dialect.number, (where.low, where.high))
            test = f"{cell} < {low} OR {cell} > {high}"
            yield f"CASE WHEN {test} THEN 1 ELSE 0 END", self.named("beyond")

    def sums(self) -> Iterator[tuple[str, str]]:
        """Yield what is added up in each period, and its name."""
        quoted = self.dialect.identifier
        group = quoted(self.named("group"))
        yield quoted(self.named("missing")), self.named("missing")
        if self.is_category:
            test = f"CASE WHEN {group} = 0 THEN 1 ELSE 0 END"
            yield test, self.named("unseen")
        elif self.monitor.ranges[self.position] is not None:
            yield quoted(self.named("beyond")), self.named("beyond")
        for g in range(1, len(self.before) + 1):
            same = f"= {g}"
            if self.is_category and g == self.unseen:
                same = f"IN (0, {g})"
            yield f"CASE WHEN {group} {same} THEN 1 ELSE 0 END", self.named(f"n{g}")

    def results(self) -> Iterator[str]:
        """Yield the index, and shares of missing, unseen and out-of-range cells."""
        yield self.index() if self.before else "NULL"
        names = [name for _, name in self.sums()]
        for what in ("missing", "unseen", "beyond"):
            name = self.named(what)
            yield self.share(name) if name in names else self.dialect.number(0.0)

    def share(self, name: str, of: str = "") -> str:
        real, rows = self.dialect.real, of or f"{self.to.prefix}rows"
        return f"CAST({name} AS {real}) / CAST({rows} AS {real})"

    def index(self) -> str:
        """Write the population stability index: see ``stability_index``."""
        number, total, parts = self.dialect.number, sum(self.before), []
        rows = f"{self.to.prefix}rows"
        if not self.counts_missing and self.grouping.missing < 0:
            rows = f"({rows} - {self.named('missing')})"
        log = "LOG" if self.dialect.name == "sqlserver" else "ln"
        for g, weight in enumerate(self.before, start=1):
            name = self.named(f"n{g}")
            half = f"{number(0.5)} / CAST({rows} AS {self.dialect.real})"
            now = f"CASE WHEN {name} > 0 THEN {self.share(name, rows)} ELSE {half} END"
            usual = number((weight or 0.5) / total)
            part = f"(({now}) - {usual}) * {log}(({now}) / {usual})"
            if not weight:
                part = f"CASE WHEN {name} > 0 THEN {part} ELSE {number(0.0)} END"
            parts.append(part)
        return self.to.sum(parts)
