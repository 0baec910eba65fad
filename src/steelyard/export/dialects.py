"""Facts of the databases that queries are written for.

What was run, and what only parsed, is in ``docs/export.md``. A dialect more is a table
of facts here, and an engine in ``check`` or in the tests.
"""

from __future__ import annotations

from dataclasses import replace

from steelyard._common.text import did_you_mean
from steelyard.exceptions import ParameterError
from steelyard.export.sql_dialect import UNION, WITH_VALUES, Dialect, Rows, SQLite

_DUCKDB = Dialect(
    "duckdb",
    "DuckDB",
    not_nan="nullif({}, 'NaN'::DOUBLE)",
    packed="(SELECT {names} FROM (SELECT unnest('{text}'::DOUBLE[][]) AS row)) {alias}",
    temporary="temp",
    function="CREATE OR REPLACE MACRO {name}({names}) AS TABLE\n{query}",
)
_SQLITE = SQLite(
    "sqlite",
    "SQLite 3.35 or later",
    real="REAL",
    number_form="{r}",
    rows=WITH_VALUES,
    fence=" LIMIT -1",
    largest="max",
    smallest="min",
    temporary="temp",
    # It makes no index of literals, and reads them all for each row.
    most_inline=200,
    max_columns=2000,
    takes_no_name=True,
    view="DROP VIEW IF EXISTS {name};\nCREATE VIEW {name} AS\n{query}",
)
_POSTGRES = Dialect(
    "postgres",
    "PostgreSQL 12 or later",
    real="float8",
    # Without a type they are NUMERIC, which is exact and slow.
    number_form="'{r}'::float8",
    bare_numbers=True,
    escapes="E",
    not_nan="nullif({}, 'NaN'::float8)",
    of_boolean="CAST({} AS integer)",
    fence=" OFFSET 0",
    temporary="pg_temp",
    max_columns=1600,
    max_name=63,
    folds_case=False,
    # Compiling long expressions takes it minutes, and running them seconds.
    settings=("SET jit = off;",),
    function="CREATE OR REPLACE FUNCTION {name}({parameters})\nRETURNS TABLE ({returns}"
    ")\nLANGUAGE sql STABLE SET jit = off AS ${mark}$\n{query}\n${mark}$",
)
_SPARK = Dialect(
    "spark",
    "Spark 3.4 or later, Databricks",
    types=("STRING", "BOOLEAN", "BIGINT"),
    number_form="{r}D",
    quotes="``",
    escapes="all",
    not_nan="nullif({}, double('NaN'))",
    banned=" ,;{}()\n\t=",
    function="CREATE OR REPLACE FUNCTION {name}({parameters})\nRETURNS TABLE ({returns}"
    ")\nRETURN\n{query}",
)
_BIGQUERY = Dialect(
    "bigquery",
    "BigQuery",
    real="FLOAT64",
    types=("STRING", "BOOL", "INT64"),
    number_form="{r}",
    quotes="``",
    escapes="all",
    not_nan="CASE WHEN IS_NAN({0}) THEN NULL ELSE {0} END",
    of_boolean="CAST({} AS INT64)",
    rows=Rows("(SELECT * FROM UNNEST([", "({})", "])) {alias}", "STRUCT({})"),
    max_columns=10_000,
    refused="`\\",
    banned='!"$()*,./;?@[\\]^`{}~\n\r\t',
    function="CREATE OR REPLACE TABLE FUNCTION {name}({parameters}) AS (\n{query}\n)",
)
_SNOWFLAKE = Dialect(
    "snowflake",
    "Snowflake",
    real="FLOAT",
    types=("VARCHAR", "BOOLEAN", "NUMBER(38, 0)"),
    # Without a type they are NUMBER, and out of range where digits differ much.
    number_form="{r}::FLOAT",
    escapes="\\",
    not_nan="nullif({}, 'NaN'::FLOAT)",
    of_boolean="CAST({} AS INTEGER)",
    max_name=255,
    folds_case=False,
    function="CREATE OR REPLACE FUNCTION {name}({parameters})\nRETURNS TABLE ({returns}"
    ")\nAS $$\n{query}\n$$",
)
_SQLSERVER = Dialect(
    "sqlserver",
    "SQL Server 2022 or later, Azure SQL",
    real="FLOAT",
    types=("NVARCHAR(4000)", "BIT", "BIGINT"),
    quotes="[]",
    text_form="N'{}'",
    booleans=("0", "1"),
    # Compared without case by default, and in any case without trailing blanks.
    of_text="({} + N'|') COLLATE Latin1_General_100_BIN2",
    end_of_text="|",
    max_columns=1024,
    max_name=128,
    view="CREATE OR ALTER VIEW {name} AS\n{query}",
    function="CREATE OR ALTER FUNCTION {name}({parameters})\nRETURNS TABLE AS RETURN\n"
    "{query}",
    parameter="@{}",
)
_MYSQL = Dialect(
    "mysql",
    "MySQL 8.0.19 or later",
    types=("VARCHAR(500)", "BOOLEAN", "BIGINT"),
    quotes="``",
    escapes="\\",
    # Compared without case and trailing blanks otherwise.
    of_text="CAST(CONVERT({} USING utf8mb4) AS BINARY)",
    rows=replace(WITH_VALUES, row="ROW({})"),
    fence=" LIMIT 9223372036854775807",
    max_columns=4096,
    max_name=64,
)
_CLICKHOUSE = Dialect(
    "clickhouse",
    "ClickHouse 23 or later",
    real="Nullable(Float64)",
    types=("Nullable(String)", "Nullable(Bool)", "Nullable(Int64)"),
    quotes="``",
    escapes="\\",
    not_nan="if(isNaN({0}), NULL, {0})",
    real_keys=True,
    rows=Rows("values('{types}',", "({})", ") {alias}"),
    folds_case=False,
    escapes_names=True,
    settings=(
        "SET max_query_size = 100000000;",
        "SET max_ast_elements = 10000000;",
        "SET max_expanded_ast_elements = 10000000;",
    ),
)
_REDSHIFT = replace(
    _POSTGRES,
    name="redshift",
    engine="Redshift",
    types=("VARCHAR(MAX)", "BOOLEAN", "BIGINT"),
    escapes="\\",
    of_text="({} || '|')",
    end_of_text="|",
    rows=UNION,
    # It would bring all rows to the leader.
    fence="",
    temporary="",
    max_name=127,
    folds_case=True,
    settings=(),
    function="",
)
_ORACLE = Dialect(
    "oracle",
    "Oracle 12.2 or later",
    real="BINARY_DOUBLE",
    types=("VARCHAR2(4000)", "NUMBER(1)", "NUMBER(38)"),
    number_form="{r}d",
    booleans=("0", "1"),
    not_nan="nullif({}, BINARY_DOUBLE_NAN)",
    rows=replace(UNION, row="SELECT {} FROM DUAL", first="SELECT {} FROM DUAL"),
    fence=" WHERE ROWNUM >= 1",
    max_columns=1000,
    max_name=128,
    folds_case=False,
    refused='"',
    empty_is_missing=True,
)
_TRINO = Dialect(
    "trino",
    "Trino, Athena",
    types=("VARCHAR", "BOOLEAN", "BIGINT"),
    not_nan="CASE WHEN is_nan({0}) THEN NULL ELSE {0} END",
)

DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        _DUCKDB,
        _SQLITE,
        _POSTGRES,
        _SPARK,
        _BIGQUERY,
        _SNOWFLAKE,
        _SQLSERVER,
        _MYSQL,
        replace(
            _MYSQL, name="mariadb", engine="MariaDB 10.3 or later", rows=WITH_VALUES
        ),
        _CLICKHOUSE,
        _REDSHIFT,
        _ORACLE,
        _TRINO,
    )
}
_ALSO = {
    "postgresql": "postgres",
    "databricks": "spark",
    "mssql": "sqlserver",
    "tsql": "sqlserver",
    "athena": "trino",
    "presto": "trino",
}


def dialect_of(name: str) -> Dialect:
    """Return a dialect by its name."""
    known = _ALSO.get(name, name)
    if known not in DIALECTS:
        hint = did_you_mean(name, [*DIALECTS, *_ALSO])
        raise ParameterError(
            f"There is no dialect {name!r}.{hint} Known: {', '.join(DIALECTS)}."
        )
    return DIALECTS[known]
