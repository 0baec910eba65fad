"""How databases write names, text, numbers, missing cells, and stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from steelyard._common.text import did_you_mean
from steelyard.exceptions import ParameterError
from steelyard.export.plan import Column


@dataclass(frozen=True)
class Dialect:
    """A database and its ways."""

    name: str
    fence: str
    """What ends a stage so that the optimiser does not copy its expressions."""

    largest: str
    smallest: str
    temporary: str
    """Schema of temporary tables."""

    real: str
    """Type of double precision."""

    max_columns: int | None = None
    max_name: int | None = None
    """Longest name, in bytes."""

    folds_case: bool = True
    """Whether names that differ only in case are the same."""

    takes_no_name: bool = False
    """Whether a column may be called ``""``."""

    settings: tuple[str, ...] = ()
    """Statements in front of a query."""

    def identifier(self, name: str) -> str:
        """Quote a name."""
        self._check_text(name)
        if not name and not self.takes_no_name:
            raise ParameterError(
                f"A column has no name, and {self.name} takes none without. Name it, "
                "and fit again."
            )
        if self.max_name is not None and len(name.encode("utf-8")) > self.max_name:
            raise ParameterError(
                f"The name {name!r} has more than {self.max_name} bytes, which "
                f"{self.name} would cut off. Rename the column or class."
            )
        return '"' + name.replace('"', '""') + '"'

    def text(self, value: str) -> str:
        """Quote a text."""
        self._check_text(value)
        return "'" + value.replace("'", "''") + "'"

    def number(self, x: float) -> str:
        """Write a number as double precision, with all its digits."""
        return repr(x)

    def edge(self, x: float) -> str:
        """Write a number that a column is compared with."""
        return self.number(x)

    def value(self, value: Any) -> str:
        """Write a value of a category, or a class."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        return str(value) if isinstance(value, int) else self.number(value)

    def type_of(self, values: Sequence[Any]) -> str:
        """Return the type of a column that holds some values."""
        if all(isinstance(value, str) for value in values):
            return "TEXT"
        if all(isinstance(value, bool) for value in values):
            return "BOOLEAN"
        if any(isinstance(value, float) for value in values):
            return self.real
        return "BIGINT" if max(map(abs, values)) < 2**63 else "NUMERIC(38, 0)"

    def cell(self, column: Column, table: str) -> str:
        """Read a cell of a table; numbers as double precision, NaN as missing."""
        name = f"{table}.{self.identifier(column.name)}"
        if column.kind == "number":
            return self._read_number(name, column.cells == "booleans")
        return self._read_value(name) if column.cells == "numbers" else name

    def _read_value(self, name: str) -> str:
        """Read a number that is a value of a category."""
        return name

    def _read_number(self, name: str, is_boolean: bool) -> str:
        return f"CAST({name} AS {self.real})"

    def _check_text(self, value: str) -> None:
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            broken = True
        else:
            broken = "\0" in value
        if broken:
            raise ParameterError(
                f"{value!r} holds a character that SQL text cannot hold. Replace it in "
                "the table, and fit again."
            )


class DuckDB(Dialect):
    """Decimal numbers without an exponent are DECIMAL there."""

    def number(self, x: float) -> str:
        """Write a number as DOUBLE."""
        digits = repr(x)
        return digits if "e" in digits else f"{digits}e0"

    def _read_number(self, name: str, is_boolean: bool) -> str:
        # NaN sorts above all numbers, and equals itself.
        return f"nullif(CAST({name} AS DOUBLE), 'NaN'::DOUBLE)"

    def _read_value(self, name: str) -> str:
        return f"nullif({name}, 'NaN'::DOUBLE)"


class SQLite(Dialect):
    """NaN is stored as NULL, and imported files have text in all cells.

    Other databases refuse text that is no number where they cast it; SQLite takes it
    for 0. Here only a failing function ends a query, and its message holds the text.
    """

    def cell(self, column: Column, table: str) -> str:
        """Read a cell: empty text is missing, and text that states a number is one."""
        name = f"{table}.{self.identifier(column.name)}"
        if column.cells not in ("numbers", "booleans"):
            return name
        tests = [f"WHEN {name} = '' THEN NULL"]
        if column.kind == "category" and column.cells == "booleans":
            tests += [
                f"WHEN lower(trim({name})) = '{word}' THEN {word.upper()}"
                for word in ("true", "false")
            ]
        # Compared with a number of some type, text that states one becomes a number;
        # any other is larger than all numbers.
        kind = "NUMERIC" if column.kind == "category" else self.real
        tests.append(f"WHEN {name} <= CAST(9e999 AS REAL) THEN CAST({name} AS {kind})")
        where = self.text(f"not a number in column {column.name}: ")
        tests.append(
            f"WHEN {name} IS NOT NULL THEN json_extract('{{}}', {where} || {name})"
        )
        return f"CASE {' '.join(tests)} END"


class PostgreSQL(Dialect):
    """Decimal numbers are NUMERIC there, which is exact and slow."""

    def number(self, x: float) -> str:
        """Write a number as float8."""
        return f"'{x!r}'::float8"

    def edge(self, x: float) -> str:
        """Write a number that a column is compared with; it is cast once."""
        return repr(x)

    def text(self, value: str) -> str:
        """Quote a text, whatever the server takes a backslash for."""
        quoted = super().text(value)
        return "E" + quoted.replace("\\", "\\\\") if "\\" in value else quoted

    def _read_number(self, name: str, is_boolean: bool) -> str:
        inner = f"CAST({name} AS integer)" if is_boolean else name
        return f"nullif(CAST({inner} AS float8), 'NaN')"

    def _read_value(self, name: str) -> str:
        return f"nullif({name}, 'NaN'::float8)"


DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        DuckDB("duckdb", "", "greatest", "least", "temp", "DOUBLE"),
        SQLite(
            "sqlite",
            " LIMIT -1",
            "max",
            "min",
            "temp",
            "REAL",
            2000,
            takes_no_name=True,
        ),
        PostgreSQL(
            "postgres",
            " OFFSET 0",
            "greatest",
            "least",
            "pg_temp",
            "float8",
            1600,
            63,
            folds_case=False,
            # Compiling long expressions takes it minutes, and running them seconds.
            settings=("SET jit = off;",),
        ),
    )
}


def dialect_of(name: str) -> Dialect:
    """Return a dialect by its name."""
    if name not in DIALECTS:
        hint = did_you_mean(name, DIALECTS)
        raise ParameterError(
            f"There is no dialect {name!r}.{hint} Known: {', '.join(DIALECTS)}."
        )
    return DIALECTS[name]
