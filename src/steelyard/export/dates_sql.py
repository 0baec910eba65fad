"""Parts of dates as SQL expressions: a table has the column of dates alone."""

from __future__ import annotations

from steelyard.export.plan import Column
from steelyard.export.sql_dialect import Dialect

# A cell, {}, as a moment of the clock, {t}: dates, timestamps, or ISO text where the
# database casts that. Then parts of it. Days are a quotient of whole numbers, as in
# Python: the same bits. SQLite and Trino tell milliseconds, all others microseconds.
_MYSQL = {
    "type": "DATETIME(6)",
    "t": "CAST({} AS DATETIME(6))",
    "day": "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {t}) / 86400000000e0",
    "year": "YEAR({t}) + 0e0",
    "month": "MONTH({t})",
    "weekday": "WEEKDAY({t}) + 1",
    "hour": "HOUR({t}) + 0e0",
}
_PARTS: dict[str, dict[str, str]] = {
    "duckdb": {
        "t": "CAST({} AS TIMESTAMP)",
        "day": "CAST(epoch_us({t}) AS DOUBLE) / 86400000000e0",
        "year": "CAST(year({t}) AS DOUBLE)",
        "month": "month({t})",
        "weekday": "isodow({t})",
        "hour": "CAST(hour({t}) AS DOUBLE)",
    },
    "postgres": {
        "t": "CAST({} AS timestamp)",
        "day": "CAST(extract(epoch FROM {t}) * 1000000 AS float8)"
        " / '86400000000'::float8",
        "year": "CAST(extract(year FROM {t}) AS float8)",
        "month": "CAST(extract(month FROM {t}) AS integer)",
        "weekday": "CAST(extract(isodow FROM {t}) AS integer)",
        "hour": "CAST(extract(hour FROM {t}) AS float8)",
    },
    "sqlite": {
        "t": "{}",
        "day": "(CAST(strftime('%s', {t}) AS INTEGER) * 1000"
        " + CAST(substr(strftime('%f', {t}), 4) AS INTEGER)) / 86400000.0",
        "year": "CAST(strftime('%Y', {t}) AS REAL)",
        "month": "CAST(strftime('%m', {t}) AS INTEGER)",
        "weekday": "(CAST(strftime('%w', {t}) AS INTEGER) + 6) % 7 + 1",
        "hour": "CAST(strftime('%H', {t}) AS REAL)",
    },
    # Differences of timestamps are in the zone of the session, with its summer time.
    "spark": {
        "type": "TIMESTAMP_NTZ",
        "t": "CAST({} AS TIMESTAMP_NTZ)",
        "day": "CAST(datediff({t}, DATE '1970-01-01') * 86400000000L"
        " + hour({t}) * 3600000000L + minute({t}) * 60000000L"
        " + CAST(extract(SECOND FROM {t}) * 1000000 AS BIGINT) AS DOUBLE)"
        " / 86400000000D",
        "year": "CAST(year({t}) AS DOUBLE)",
        "month": "month({t})",
        "weekday": "weekday({t}) + 1",
        "hour": "CAST(hour({t}) AS DOUBLE)",
    },
    "bigquery": {
        "type": "DATETIME",
        "t": "CAST({} AS DATETIME)",
        "day": "CAST(DATETIME_DIFF({t}, DATETIME '1970-01-01', MICROSECOND) AS FLOAT64)"
        " / 86400000000e0",
        "year": "CAST(EXTRACT(YEAR FROM {t}) AS FLOAT64)",
        "month": "EXTRACT(MONTH FROM {t})",
        "weekday": "MOD(EXTRACT(DAYOFWEEK FROM {t}) + 5, 7) + 1",
        "hour": "CAST(EXTRACT(HOUR FROM {t}) AS FLOAT64)",
    },
    "snowflake": {
        "type": "TIMESTAMP_NTZ",
        "t": "CAST({} AS TIMESTAMP_NTZ)",
        "day": "CAST(DATE_PART(EPOCH_MICROSECOND, {t}) AS FLOAT) / 86400000000::FLOAT",
        "year": "CAST(YEAR({t}) AS FLOAT)",
        "month": "MONTH({t})",
        "weekday": "DAYOFWEEKISO({t})",
        "hour": "CAST(HOUR({t}) AS FLOAT)",
    },
    # Its number of a weekday depends on the language; 1900-01-01 was a Monday.
    "sqlserver": {
        "type": "DATETIME2(6)",
        "t": "CAST({} AS DATETIME2(6))",
        "day": "CAST(DATEDIFF_BIG(MICROSECOND, '1970-01-01', {t}) AS FLOAT)"
        " / 86400000000e0",
        "year": "CAST(YEAR({t}) AS FLOAT)",
        "month": "MONTH({t})",
        "weekday": "(DATEDIFF(DAY, '1900-01-01', {t}) % 7 + 7) % 7 + 1",
        "hour": "CAST(DATEPART(HOUR, {t}) AS FLOAT)",
    },
    "mysql": _MYSQL,
    "mariadb": _MYSQL,
    "clickhouse": {
        "type": "Nullable(DateTime64(6))",
        "t": "toDateTime64({}, 6)",
        "day": "toFloat64(toInt64(toDate32({t})) * 86400000000"
        " + toHour({t}) * 3600000000 + toMinute({t}) * 60000000 + toSecond({t}) *"
        " 1000000 + positiveModulo(toUnixTimestamp64Micro({t}), 1000000))"
        " / 86400000000e0",
        "year": "toFloat64(toYear({t}))",
        "month": "toFloat64(toMonth({t}))",
        "weekday": "toFloat64(toDayOfWeek({t}))",
        "hour": "toFloat64(toHour({t}))",
    },
    "redshift": {
        "t": "CAST({} AS timestamp)",
        "day": "CAST(DATEDIFF(microsecond, '1970-01-01'::timestamp, {t}) AS float8)"
        " / '86400000000'::float8",
        "year": "CAST(EXTRACT(year FROM {t}) AS float8)",
        "month": "CAST(EXTRACT(month FROM {t}) AS integer)",
        "weekday": "(CAST(EXTRACT(dow FROM {t}) AS integer) + 6) % 7 + 1",
        "hour": "CAST(EXTRACT(hour FROM {t}) AS float8)",
    },
    "oracle": {
        "t": "CAST({} AS TIMESTAMP)",
        "day": "CAST((TRUNC({t}) - DATE '1970-01-01') * 86400000000"
        " + EXTRACT(HOUR FROM {t}) * 3600000000 + EXTRACT(MINUTE FROM {t}) * 60000000"
        " + EXTRACT(SECOND FROM {t}) * 1000000 AS BINARY_DOUBLE) / 86400000000d",
        "year": "CAST(EXTRACT(YEAR FROM {t}) AS BINARY_DOUBLE)",
        "month": "EXTRACT(MONTH FROM {t})",
        "weekday": "TRUNC({t}) - TRUNC({t}, 'IW') + 1",
        "hour": "CAST(EXTRACT(HOUR FROM {t}) AS BINARY_DOUBLE)",
    },
    "trino": {
        "type": "TIMESTAMP(6)",
        "t": "CAST({} AS TIMESTAMP(6))",
        "day": "CAST(date_diff('millisecond', TIMESTAMP '1970-01-01 00:00:00', {t})"
        " AS DOUBLE) / 86400000e0",
        "year": "CAST(year({t}) AS DOUBLE)",
        "month": "month({t})",
        "weekday": "day_of_week({t})",
        "hour": "CAST(hour({t}) AS DOUBLE)",
    },
}


def date_type(dialect: Dialect) -> str:
    """Return the type of a column of dates with times of the clock."""
    return _PARTS[dialect.name].get("type", "TIMESTAMP")


def read_date(dialect: Dialect, column: Column, table: str) -> str:
    """Write a part of the dates of a column, as the number or category it is."""
    parts = _PARTS[dialect.name]
    name = f"{table}.{dialect.identifier(column.date)}"
    read = parts[column.part].replace("{t}", parts["t"].replace("{}", name))
    if dialect.name != "sqlite":
        return read
    # Functions of SQLite answer NULL where text is no date, and take numbers for days.
    is_date = f"typeof({name}) = 'text' AND julianday({name}) IS NOT NULL"
    where = dialect.text(f"not a date in column {column.date}: ")
    return (
        f"CASE WHEN {name} = '' THEN NULL WHEN {is_date} THEN {read} "
        f"WHEN {name} IS NOT NULL THEN json_extract('{{}}', {where} || {name}) END"
    )
