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
    "sqlite": "needs the function `exp`, which most builds have, unless "
    "`probabilities=False`. Empty text is missing, and text that reads as a number is "
    "one, as after an import; other text in a numeric column is an error that quotes "
    "it",
    "postgres": "the query starts with `SET jit = off`, for the session: long "
    "expressions take minutes to compile and seconds to run. A view cannot set it",
    "spark": "run it with `spark.sql`, without the semicolon",
    "mysql": "as `mariadb`, with `VALUES ROW`",
    "clickhouse": "the query raises three session limits on query length",
    **dict.fromkeys(
        ("bigquery", "snowflake", "sqlserver", "redshift"),
        "no fences between stages: many classes may be slow",
    ),
    "oracle": "`''` means missing: models with that value are refused",
}


def facts(dialect: Dialect) -> str:
    """Return the peculiarities of a database."""
    notes = [NOTES[dialect.name]] if dialect.name in NOTES else []
    if dialect.banned:
        notes.append("probabilities are called `p_class`")
    if dialect.folds_case:
        notes.append("names that differ only in case are the same")
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
