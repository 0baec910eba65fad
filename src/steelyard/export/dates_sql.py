"""Parts of dates as SQL expressions: a table has the column of dates alone."""

from __future__ import annotations

from steelyard.exceptions import ParameterError
from steelyard.export.plan import Column
from steelyard.export.sql_dialect import Dialect

# {} is a cell, dates, timestamps, or ISO text. Days are a quotient of whole numbers,
# as in Python: the same bits. SQLite tells milliseconds, all others microseconds.
_PARTS: dict[str, dict[str, str]] = {
    "duckdb": {
        "day": "CAST(epoch_us(CAST({} AS TIMESTAMP)) AS DOUBLE) / 86400000000e0",
        "year": "CAST(year(CAST({} AS TIMESTAMP)) AS DOUBLE)",
        "month": "month(CAST({} AS TIMESTAMP))",
        "weekday": "isodow(CAST({} AS TIMESTAMP))",
        "hour": "CAST(hour(CAST({} AS TIMESTAMP)) AS DOUBLE)",
    },
    "postgres": {
        "day": "CAST(extract(epoch FROM CAST({} AS timestamp)) * 1000000 AS float8)"
        " / '86400000000'::float8",
        "year": "CAST(extract(year FROM CAST({} AS timestamp)) AS float8)",
        "month": "CAST(extract(month FROM CAST({} AS timestamp)) AS integer)",
        "weekday": "CAST(extract(isodow FROM CAST({} AS timestamp)) AS integer)",
        "hour": "CAST(extract(hour FROM CAST({} AS timestamp)) AS float8)",
    },
    "sqlite": {
        "day": "(CAST(strftime('%s', {}) AS INTEGER) * 1000"
        " + CAST(substr(strftime('%f', {}), 4) AS INTEGER)) / 86400000.0",
        "year": "CAST(strftime('%Y', {}) AS REAL)",
        "month": "CAST(strftime('%m', {}) AS INTEGER)",
        "weekday": "(CAST(strftime('%w', {}) AS INTEGER) + 6) % 7 + 1",
        "hour": "CAST(strftime('%H', {}) AS REAL)",
    },
}


def read_date(dialect: Dialect, column: Column, table: str) -> str:
    """Write a part of the dates of a column, as the number or category it is."""
    parts = _PARTS.get(dialect.name)
    if parts is None:
        raise ParameterError(
            f"Column {column.date!r} holds dates, whose parts are not written for "
            f"{dialect.name}. Known: {', '.join(_PARTS)}. Or fit without it, on "
            "columns of your own for year, month and weekday."
        )
    name = f"{table}.{dialect.identifier(column.date)}"
    read = parts[column.part].replace("{}", name)
    if dialect.name != "sqlite":
        return read
    # Functions of SQLite answer NULL where text is no date, and take numbers for days.
    is_date = f"typeof({name}) = 'text' AND julianday({name}) IS NOT NULL"
    where = dialect.text(f"not a date in column {column.date}: ")
    return (
        f"CASE WHEN {name} = '' THEN NULL WHEN {is_date} THEN {read} "
        f"WHEN {name} IS NOT NULL THEN json_extract('{{}}', {where} || {name}) END"
    )
