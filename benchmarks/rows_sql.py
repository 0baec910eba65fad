"""Exported queries: DuckDB against predict_proba, PostgreSQL without its fences."""

from __future__ import annotations

import dataclasses
from functools import cache
from time import perf_counter
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.testing import assert_allclose

from benchmarks.data import labelled_codes, n_rows
from benchmarks.registry import Case, Seconds, Skip, at_least, at_most, row
from benchmarks.rows_chunks import N_COLUMNS, N_VALUES, NAMES, needed, on_cpu
from benchmarks.rows_export import fitted, table
from steelyard import NaiveBayes, export
from steelyard.export.sql_dialect import DIALECTS
from tools.postgres import Server, copy


@cache
def words(n: int) -> tuple[Any, Any]:
    """A table of Arrow with 50 columns of 10 texts, and labels."""
    pa = needed("pyarrow")
    codes, y = labelled_codes(n, N_COLUMNS, 2, N_VALUES)
    texts = pa.array([f"value {v}" for v in range(N_VALUES)])
    columns = [texts.take(pa.array(column)) for column in codes.T]
    return pa.table(dict(zip(NAMES, columns, strict=True))), y


# A general engine against our own kernel, which looks codes up in bytes: the ratio
# grows whenever the kernel gets quicker.
@row("SQL in DuckDB, NB 2,000,000 x 50, processor time", at_most(2.5), memory=False)
def _(scale: float) -> Case:
    duckdb = needed("duckdb")
    X, y = words(n_rows(2_000_000, scale))
    few = min(len(y), 20_000)
    clf = NaiveBayes(n_jobs=2).fit(X.slice(0, few), y[:few])
    connection = duckdb.connect()
    connection.execute("set threads = 2")
    connection.register("given", X)
    connection.execute("create table data as select * from given")
    query = export.to_sql(clf, "duckdb")

    def ours() -> Any:
        return connection.execute(query).fetchnumpy()

    def confirm() -> None:
        proba = np.column_stack([ours()[f"p({c})"] for c in clf.classes_])
        # Rows may come back in any order.
        expected = clf.predict_proba(X)
        assert_allclose(np.sort(proba[:, 0]), np.sort(expected[:, 0]), 0, 1e-12)

    others = {"predict_proba": on_cpu(lambda: clf.predict_proba(X))}
    return Case(on_cpu(ours), others, confirm=confirm)


@row(
    "SQL in PostgreSQL, NB, 3 classes, 20,000 rows, fenced stages",
    # One round in a fresh server: between 7.7 and 9.5 in four runs.
    at_least(7),
    rounds=1,
    memory=False,
    warm_up=False,
)
def _(scale: float) -> Case:
    clf = fitted("NB", 8)
    X, _ = table(n_rows(20_000, scale), 8, 3)
    fenced = export.to_sql(clf, "postgres")
    open_ = dataclasses.replace(DIALECTS["postgres"], fence="")
    with patch.dict(DIALECTS, postgres=open_):
        plain = export.to_sql(clf, "postgres")
    kinds = ["TEXT" if j % 2 else "DOUBLE PRECISION" for j in range(8)]
    columns = ", ".join(f"x{j} {kind}" for j, kind in enumerate(kinds))
    filled = f"CREATE TABLE data ({columns});\n{copy('data', X.to_numpy().tolist())}"

    def timed(query: str) -> Seconds:
        try:
            server = Server(seconds=600)
        except FileNotFoundError as error:
            raise Skip(str(error)) from None
        with server:
            server.execute(filled + "ANALYZE data;\n")
            start = perf_counter()
            server.execute(query)
            return Seconds(perf_counter() - start)

    return Case(lambda: timed(fenced), {"plain stages": lambda: timed(plain)})
