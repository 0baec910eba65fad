"""Sizes and times of exported queries: ``python studies/sql_sizes.py [adult letter]``.

Needs the data sets in STEELYARD_DATA, DuckDB, and PostgreSQL where it is installed.
"""

from __future__ import annotations

import re
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import duckdb
import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
from postgres import Server, copy

import steelyard as sy
from steelyard import export
from steelyard.export.sql import sql_statements
from steelyard.lab.data.datasets import load_dataset

N_ROWS = 200_000


def cats() -> tuple[Any, Any]:
    """Six columns, three of them with 4,300, 3,000 and 900 values."""
    rng = np.random.default_rng(0)
    n, sizes = 60_000, {"shop": 4300, "item": 3000, "city": 900, "day": 12, "kind": 8}
    codes, odds = {}, rng.normal(size=n)
    X = {"x": odds}
    for name, k in sizes.items():
        p = 1.0 / np.arange(1, k + 1) ** 0.8
        codes[name] = rng.choice(k, n, p=p / p.sum())
        odds = odds + 0.5 * rng.normal(size=k)[codes[name]]
        X[name] = np.array([f"{name} {v}" for v in range(k)], dtype=object)[codes[name]]
    odds = odds + rng.normal(size=(12, 8))[codes["day"], codes["kind"]]
    return pd.DataFrame(X), np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), "y", "n")


def fitted(name: str) -> tuple[Any, Any]:
    """Return a model of a set, and its rows; the model is kept: fits take a minute."""
    if name == "cats":
        X, y = cats()
    else:
        data = load_dataset(name)
        X, y = data.table, data.target
    kept = Path(tempfile.gettempdir()) / f"sql_sizes_{sy.__version__}_{name}.json"
    if not kept.exists():
        sy.ShrinkageNB().fit(X, y).save(kept)
    return sy.load(kept).set_params(n_jobs=1), X


def seconds(run: Callable[[], Any]) -> float:
    """Processor time of the second of two runs."""
    run()
    start = process_time()
    run()
    return process_time() - start


def report(name: str) -> str:
    """Return a line of the table."""
    clf, X = fitted(name)
    repeats = -(-N_ROWS // len(X))
    many = pd.concat([X] * repeats, ignore_index=True)[:N_ROWS]
    in_numpy = seconds(lambda: clf.predict_proba(many))
    with duckdb.connect(config={"threads": 1}) as base:
        base.register("given", many)
        base.execute("CREATE TABLE data AS SELECT * FROM given")
        query = export.to_sql(clf)
        in_duckdb = seconds(lambda: base.execute(query).fetchnumpy())
        base.execute("CREATE OR REPLACE TABLE data AS SELECT * FROM given LIMIT 1")
        once = seconds(lambda: base.execute(query).fetchnumpy())
    with sqlite3.connect(":memory:") as lite:
        many[:20_000].to_sql("data", lite, index=False)
        *before, text = sql_statements(clf, export.SQLOptions("sqlite"))
        for statement in before:
            lite.execute(statement)
        in_sqlite = seconds(lambda: lite.execute(text).fetchall()) / 20_000 * N_ROWS
    shares = [in_numpy, in_duckdb, in_sqlite]
    cells = [f"{1e6 * s / N_ROWS:.1f}" for s in shares]
    cells += [f"{once:.2f}", f"{in_duckdb / in_numpy:.0f}", in_postgres(clf, many)]
    size = f"{len(query) / 1000:,.0f}"
    short = f"{len(export.to_sql(clf, decimals=6)) / 1000:,.0f}"
    return f"| {name} | {size} | {short} | {' | '.join(cells)} |"


def in_postgres(clf: Any, X: Any) -> str:
    """Return processor seconds of PostgreSQL, as it tells them itself."""
    kinds = {name: "float8" if X[name].dtype.kind in "fiu" else "text" for name in X}
    columns = ", ".join(f'"{name}" {kind}' for name, kind in kinds.items())
    rows = X.astype(object).where(X.notna(), None).to_numpy().tolist()
    try:
        server = Server(seconds=1200)
    except FileNotFoundError:
        return ""
    with server:
        server.execute(f"CREATE TABLE data ({columns});\n{copy('data', rows)}")
        _, _, query = export.to_sql(clf, "postgres").partition("SET jit = off;\n")
        text = "SET jit = off; SET log_statement_stats = on;\n"
        server.execute(f"{text}CREATE TABLE scored AS {query}")
        log = (server.folder / "log").read_text(encoding="utf-8")
    used = re.findall(r"([\d.]+) s user, ([\d.]+) s system, [\d.]+ s elapsed", log)
    return f"{sum(map(float, used[-1])):.1f}"


if __name__ == "__main__":
    print(
        "| set | kB | kB, 6 decimals | predict_proba, µs a row | DuckDB | SQLite "
        "| DuckDB, one row, s | DuckDB / predict_proba | PostgreSQL, 200,000 rows, s |"
    )
    print("| --- " * 9 + "|")
    for name in sys.argv[1:] or ["adult", "letter", "cats"]:
        print(report(name), flush=True)
