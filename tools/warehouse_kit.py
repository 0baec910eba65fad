"""Write what checks a model in a warehouse: ``python tools/warehouse_kit.py FOLDER``.

For each database that tests do not run there is a folder of statements: a sample with
its expected answers, a view, a function, and queries that compare. With an account it
takes some minutes: see the README that is written beside them.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import steelyard as sy
from steelyard import export
from steelyard.export.sql import fields_of
from steelyard.export.sql_dialect import DIALECTS, Dialect

DATABASES = ("bigquery", "snowflake", "sqlserver", "oracle")
N_ROWS = 200

# How a function is called for each row of a table, with names of its columns.
CALLS = {
    "bigquery": "SELECT s.id, f.* FROM {sample} s, UNNEST([{function}({cells})]) f",
    "snowflake": "SELECT s.id, f.* FROM {sample} s, TABLE({function}({cells})) f",
    "sqlserver": "SELECT s.id, f.* FROM {sample} s CROSS APPLY {function}({cells}) f",
    "duckdb": "SELECT s.id, f.* FROM {sample} s, {function}({cells}) f",
}
CALLS["postgres"] = CALLS["duckdb"]

README = """# Does a model answer in {engine} as in Python?

Written by `python tools/warehouse_kit.py`, with steelyard {version}. {n} rows with
missing cells, values never seen, cut points and their neighbours, quotes and accents.

1. Choose a schema (a dataset) that may be thrown away{schema}.
2. Run `1_load.sql`: the tables `steelyard_sample` and `steelyard_expected`.
3. Run `2_view.sql`: the view `steelyard_scored`.
{function}{last}. Run `{check}`: one row for each of them. `n_rows` has to be {n},
   `other_classes` 0, and differences 1e-12 or less. Anything else is a bug: please
   report the row with the version of the database.
{next}. Drop the tables, the view and the function again.
"""


def table(n: int = N_ROWS, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    """Return text with quotes, long categories, numbers, truth values and dates."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    texts = np.array(["it's", 'a "b"', "Ärger", "ärger", "back\\slash", "two\nlines"])
    dates = pd.Timestamp("1969-06-01") + pd.to_timedelta(rng.integers(0, 9**9, n), "s")
    X = pd.DataFrame(
        {
            "colour": texts[(y + rng.integers(0, 3, n)) % 6].astype(object),
            "the town's name": [f"town {k}" for k in (rng.integers(0, 60, n) + y)],
            "size": np.round(y + rng.normal(size=n), 2),
            "is new": rng.random(n) < 0.2 + 0.3 * (y % 2),
            "grade": rng.integers(0, 30, n) + 4 * y,
            "when": dates,
        }
    )
    return X, np.array(["no", "yes", "can't say"])[y]


def model() -> Any:
    """Return a fitted classifier of the table."""
    X, y = table(600)
    X.loc[::9, "size"], X.loc[::13, "colour"] = np.nan, None
    categories = ["colour", "the town's name", "is new", "grade"]
    clf = sy.NaiveBayes(categorical_features=categories, missing="value")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clf.fit(X, y)


def sample(clf: Any) -> pd.DataFrame:
    """Return rows with missing cells, values never seen, and edges of intervals."""
    X, _ = table(seed=1)
    rng = np.random.default_rng(2)
    feature = next(f for f in clf.encoder_.schema_.features if f.name == "size")
    near = [np.nextafter(e, s * np.inf) for e in feature.edges for s in (1, -1)]
    X.loc[::5, "size"] = rng.choice([*feature.edges, *near, -1e300, 1e300], N_ROWS // 5)
    X.loc[3::7, "size"] = np.nan
    X.loc[4::9, "colour"], X.loc[5::9, "colour"] = None, "it's "
    X.loc[6::11, "the town's name"] = "TOWN 1"
    X = X.astype({"is new": object, "grade": "Int64"})
    X.loc[7::13, "is new"], X.loc[8::13, "grade"] = None, 99
    X.loc[9::17, "when"] = pd.NaT
    return X


def value(cell: Any, kind: str, ways: Dialect) -> str:
    """Write a cell as a value of a type."""
    if pd.isna(cell):
        return "NULL"
    if isinstance(cell, pd.Timestamp):
        text = cell.isoformat(" ", "seconds")
        if ways.name == "sqlite":
            return f"'{text}'"
        is_plain = kind == "TIMESTAMP"
        return f"TIMESTAMP '{text}'" if is_plain else f"CAST('{text}' AS {kind})"
    return ways.value(cell)


class Kit:
    """The files of a database, for some schema."""

    def __init__(self, dialect: str, schema: str = "") -> None:
        self.ways, self.clf = DIALECTS[dialect], model()
        self.schema = [schema] if schema else []
        self.rows = sample(self.clf)
        self.id = self.ways.identifier("id")
        self.shares = [f"p({label})" for label in self.clf.classes_]
        self.columns = dict(fields_of(export.plan_of(self.clf), self.ways))

    def named(self, table: str) -> str:
        """Return a quoted name of a table, a view or a function."""
        return ".".join(map(self.ways.identifier, [*self.schema, table]))

    def load(self) -> str:
        """Write statements that make the sample and its expected answers."""
        ways, rows = self.ways, self.rows
        proba, labels = self.clf.predict_proba(rows), self.clf.predict(rows)
        answers = pd.DataFrame(proba, columns=self.shares)
        answers.insert(0, "prediction", labels)
        kinds = [ways.types[0], *[ways.real] * len(self.shares)]
        of_answers = dict(zip(answers, kinds, strict=True))
        return "".join(
            self._table(f"steelyard_{name}", frame, kinds)
            for name, frame, kinds in (
                ("sample", rows, self.columns),
                ("expected", answers, of_answers),
            )
        )

    def _table(self, name: str, frame: pd.DataFrame, kinds: dict[str, str]) -> str:
        ways, table = self.ways, self.named(name)
        names = [self.id, *(ways.identifier(ways.result(c)) for c in kinds)]
        types = [ways.types[2], *kinds.values()]
        fields = ",\n  ".join(map(" ".join, zip(names, types, strict=True)))
        cells = frame[list(kinds)].astype(object).itertuples()
        lines = []
        for i, *row in cells:
            of = zip(row, types[1:], strict=True)
            written = (value(cell, kind, ways) for cell, kind in of)
            lines.append(f"({', '.join([str(i), *written])})")
        if ways.name == "oracle":
            inserts = [f"INSERT INTO {table} VALUES {line};" for line in lines]
        else:
            inserts = [f"INSERT INTO {table} VALUES\n" + ",\n".join(lines) + ";"]
        return "\n".join([f"CREATE TABLE {table} (\n  {fields}\n);", *inserts, ""])

    def view(self) -> str:
        """Write the statement of the view."""
        return export.to_sql(
            self.clf,
            self.ways.name,
            [*self.schema, "steelyard_sample"],
            keep=["id"],
            as_view=[*self.schema, "steelyard_scored"],
        )

    def function(self) -> str:
        """Write the statement of the function, none if there are no functions."""
        if not self.ways.function:
            return ""
        name = [*self.schema, "steelyard_score"]
        return export.to_sql(self.clf, self.ways.name, as_function=name)

    def check(self) -> str:
        """Write queries that compare, one for the view and one for the function."""
        sources = [self.named("steelyard_scored")]
        if self.ways.function:
            used = dict(fields_of(export.plan_of(self.clf), self.ways, used=True))
            cells = (f"s.{self.ways.identifier(name)}" for name in used)
            call = CALLS[self.ways.name].replace("s.id", f"s.{self.id}")
            parts = {
                "sample": self.named("steelyard_sample"),
                "function": self.named("steelyard_score"),
                "cells": ", ".join(cells),
            }
            sources.append(f"({call.format(**parts)})")
        return "\n".join(map(self._compare, sources))

    def _compare(self, source: str) -> str:
        quoted = self.ways.identifier
        names = [quoted(self.ways.result(name)) for name in self.shares]
        away = [f"MAX(ABS(a.{name} - e.{name}))" for name in names]
        lines = ",\n  ".join(
            f"{what} AS difference_{k}" for k, what in enumerate(away, start=1)
        )
        best = quoted("prediction")
        other = f"SUM(CASE WHEN a.{best} = e.{best} THEN 0 ELSE 1 END) AS other_classes"
        return (
            f"SELECT\n  COUNT(*) AS n_rows,\n  {other},\n  {lines}\nFROM {source} a\n"
            f"JOIN {self.named('steelyard_expected')} e ON a.{self.id} = e.{self.id};\n"
        )

    def readme(self) -> str:
        """Write what to do, step by step."""
        parts = {"function": "", "last": "4", "check": "3_check.sql", "next": "5"}
        if self.ways.function:
            parts["function"] = (
                "4. Run `3_function.sql`: the function `steelyard_score`.\n"
            )
            parts |= {"last": "5", "check": "4_check.sql", "next": "6"}
        where = f", called `{self.schema[0]}`" if self.schema else ""
        return README.format(
            engine=self.ways.engine,
            version=sy.__version__,
            n=len(self.rows),
            schema=where,
            **parts,
        )

    def files(self) -> dict[str, str]:
        """Return all files by name, those of SQL in their order."""
        parts = {"load": self.load(), "view": self.view(), "function": self.function()}
        parts["check"] = self.check()
        named = [(name, text) for name, text in parts.items() if text]
        files = {f"{k}_{name}.sql": text for k, (name, text) in enumerate(named, 1)}
        return {**files, "README.md": self.readme()}


def main() -> None:
    """Write a folder for each database."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--schema", default="", help="schema, or dataset of BigQuery")
    arguments = parser.parse_args()
    for dialect in DATABASES:
        folder = arguments.folder / dialect
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in Kit(dialect, arguments.schema).files().items():
            (folder / name).write_text(text, encoding="utf-8")
        print(f"written: {folder}")


if __name__ == "__main__":
    main()
