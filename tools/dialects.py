"""Write the table of databases in docs/export.md: ``python tools/dialects.py``."""

from __future__ import annotations

import re
from pathlib import Path

from steelyard.export.sql_dialect import DIALECTS, Dialect

PAGE = Path(__file__).parents[1] / "docs" / "export.md"

# Where tests/export/test_matrix.py runs each database, if it does.
RUN = {
    "duckdb": "run, in every test",
    "sqlite": "run, in every test",
    "postgres": "run (PostgreSQL 15)",
    "spark": "run (PySpark 4.3)",
    "mariadb": "run (MariaDB 10.11)",
    "clickhouse": "run (chdb 26.9)",
}
NOTES = {
    "sqlite": "needs the function `exp`, which most builds have; `probabilities=False` "
    "does without. Empty text is missing, and text that states a number is a number, "
    "as after an import; other text in a column of numbers ends the query with an "
    "error that holds it",
    "postgres": "`SET jit = off` stands in front of the query, for the session: "
    "compiling long expressions takes minutes, running them seconds. A view cannot "
    "set it",
    "spark": "run it with `spark.sql`, without the semicolon",
    "mysql": "as `mariadb`, with `VALUES ROW`",
    "clickhouse": "three settings of the session allow long queries",
    **dict.fromkeys(
        ("bigquery", "snowflake", "sqlserver", "redshift"),
        "stages have no fence: many classes may be slow",
    ),
    "oracle": "`''` is a missing cell: models with that value are refused",
}


def facts(dialect: Dialect) -> str:
    """Say what a database is particular about."""
    notes = [NOTES[dialect.name]] if dialect.name in NOTES else []
    if dialect.banned:
        notes.append("probabilities are called `p_class`")
    if dialect.folds_case:
        notes.append("names that differ only in case are one")
    if dialect.max_bytes:
        notes.append(f"statements of at most {dialect.max_bytes:,} bytes")
    if dialect.basic_names:
        notes.append("names without emoji")
    if dialect.max_columns:
        notes.append(f"at most {dialect.max_columns - 100:,} columns")
    if dialect.max_name:
        notes.append(f"names of at most {dialect.max_name} bytes")
    if dialect.function:
        notes.append("has `as_function`")
    return "; ".join(notes)


def table() -> str:
    """Return the table, as Markdown."""
    lines = ["| dialect | engine | checked | notes |", "| --- | --- | --- | --- |"]
    for name, dialect in DIALECTS.items():
        checked = RUN.get(name, "parsed (sqlglot)")
        lines.append(f"| `{name}` | {dialect.engine} | {checked} | {facts(dialect)} |")
    return "\n".join(lines) + "\n"


def filled(page: str) -> str:
    """Return a page with the table in it."""
    marks = r"(?s)(<!-- dialects -->\n).*?(<!-- end -->)"
    return re.sub(marks, lambda match: f"{match[1]}{table()}{match[2]}", page)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
