"""How a database writes names, text, numbers, missing cells, tables and stages."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import nextafter, ulp
from pathlib import Path
from typing import Any, Literal

from steelyard._common.one_cell import DATE_FORM
from steelyard._common.text import did_you_mean
from steelyard.exceptions import ParameterError
from steelyard.export.plan import Column

__all__ = ["DIALECTS"]


@dataclass(frozen=True)
class Rows:
    """How a table of literals is written inside a query.

    ``head`` and ``tail`` may contain ``{alias}``, ``{fields}`` and ``{types}``. ``row``
    is for cells; so is ``first``, if the first row names the fields.
    """

    head: str
    row: str
    tail: str
    first: str = ""
    between: str = ","


VALUES = Rows("(VALUES", "({})", ") {alias} ({fields})")
WITH_VALUES = Rows(
    "(WITH {alias}({fields}) AS (VALUES", "({})", ") SELECT * FROM {alias}) {alias}"
)
UNION = Rows("(", "SELECT {}", ") {alias}", "SELECT {}", " UNION ALL")


@dataclass(frozen=True)
class Dialect:
    """How a database writes and reads."""

    name: str
    engine: str
    """What the database calls itself, and since which version queries run."""

    max_bytes: int | None = None
    """Longest statement, if that cannot be set."""

    real: str = "DOUBLE"
    """Type of double precision."""

    types: tuple[str, str, str] = ("TEXT", "BOOLEAN", "BIGINT")
    """Types of text, booleans and whole numbers."""

    number_form: str = "{e}"
    """A double: ``{r}`` has the digits, ``{e}`` has an exponent in any case."""

    bare_numbers: bool = False
    """Whether digits suffice if a type is known: compared, or below a first row."""

    quotes: str = '""'
    text_form: str = "'{}'"
    escapes: Literal["", "\\", "E", "all"] = ""
    """Backslashes are doubled, doubled after an E, or escape quotes and lines too."""

    booleans: tuple[str, str] = ("FALSE", "TRUE")
    not_nan: str = "{}"
    """A number that may be NaN, NULL if it is."""

    of_boolean: str = "{}"
    """A boolean that is cast to double precision."""

    of_text: str = "{}"
    """A cell of text, so that it is compared byte by byte."""

    of_key: str = "{}"
    """A text of a joined table of literals, so that it is compared so too."""

    end_of_text: str = ""
    """What follows text that is compared, if trailing blanks do not count."""

    real_keys: bool = False
    """Whether whole numbers are compared as doubles: joins take equal types alone."""

    rows: Rows = VALUES
    packed: str = ""
    """How a matrix of numbers is read from one text, ``{text}``: literals take longer
    to plan than to use. ``{names}`` are its columns, ``{alias}`` the table."""

    fence: str = ""
    """What ends a stage so that the optimiser does not copy its expressions."""

    largest: str = "greatest"
    smallest: str = "least"
    temporary: str = ""
    """Schema of temporary tables; without, long tables are inside the query too."""

    most_inline: int = 20_000
    """Rows of literals that a query may have inside; more become a temporary table."""

    max_columns: int | None = None
    max_name: int | None = None
    """Longest name, in bytes."""

    folds_case: bool = True
    """Whether names that differ only in case are the same."""

    takes_no_name: bool = False
    """Whether a column may be called ``""``."""

    escapes_names: bool = False
    basic_names: bool = False
    """Whether names have no characters beyond U+FFFF, such as emoji."""

    refused: str = ""
    """Characters that no name can have."""

    banned: str = ""
    """Characters that names of results cannot have; they become underscores."""

    empty_is_missing: bool = False

    settings: tuple[str, ...] = ()
    """Statements in front of a query."""

    view: str = "CREATE OR REPLACE VIEW {name} AS\n{query}"
    function: str = ""
    """How a function is created that returns a table; "" if there are none."""

    expression: str = ""
    """How a function that is one expression, ``{inner}``, uses ``{names}`` of others,
    ``{values}``; "copies" if it has no names. By default it is a query."""

    parameter: str = ""
    """How a parameter of a function is written, "$" by its number; by default as other
    names."""

    dates: Mapping[str, str] = field(default_factory=dict)
    """How dates are read: a moment of the clock ``t``, parts of it, their ``type``."""

    @property
    def date_type(self) -> str:
        """Type of a column of dates with times of the clock."""
        return self.dates.get("type", "TIMESTAMP")

    @property
    def quoted(self) -> str:
        """What is quoted, as a regular expression without groups."""
        first, last = map(re.escape, self.quotes)
        inner = r"[^'\\]|\\." if self.escapes == "all" else "[^']"
        return f"'(?:{inner}|'')*'|{first}[^{last}]*{last}"

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
        if any(character in name for character in self.refused):
            raise ParameterError(
                f"The name {name!r} has one of the characters {self.refused}, which "
                f"names in {self.name} cannot have. Rename the column or class."
            )
        if self.basic_names and max(name, default="") > "\uffff":
            raise ParameterError(
                f"The name {name!r} has a character beyond U+FFFF, such as an emoji, "
                f"which names in {self.name} cannot have. Rename the column or class."
            )
        first, last = tuple(self.quotes)
        name = name.replace("\\", "\\\\") if self.escapes_names else name
        return first + name.replace(last, 2 * last) + last

    def parameter_of(self, word: str, number: int) -> str:
        """Write a parameter of a function, which is called by a word or its number."""
        if self.parameter == "$":
            return f"${number}"
        return self.parameter.format(word) if self.parameter else self.identifier(word)

    def result(self, name: str) -> str:
        """Return a name of a result without characters that it cannot have."""
        if not self.banned:
            return name
        name = re.sub(r"^(\w+)\((.*)\)$", r"\1_\2", name, flags=re.DOTALL)
        return "".join("_" if c in self.banned else c for c in name)

    def text(self, value: str) -> str:
        """Quote a text."""
        self._check_text(value)
        if not value and self.empty_is_missing:
            raise ParameterError(
                f"'' is a value of the model, and {self.name} takes it for a missing "
                "cell. Replace it in the table, and fit again."
            )
        if self.escapes:
            value = value.replace("\\", "\\\\")
        if self.escapes == "all":
            for letter, written in (("'", "\\'"), ("\n", "\\n"), ("\r", "\\r")):
                value = value.replace(letter, written)
        else:
            value = value.replace("'", "''")
        mark = "E" if self.escapes == "E" and "\\" in value else ""
        return mark + self.text_form.format(value)

    def number(self, x: float, bare: bool = False) -> str:
        """Write a number as double precision, with all its digits."""
        digits = repr(x)
        if bare and self.bare_numbers:
            return digits
        in_full = digits if "e" in digits else f"{digits}e0"
        return self.number_form.format(r=digits, e=in_full)

    def value(self, value: Any, is_key: bool = False) -> str:
        """Write a class, or a value of a category that cells are compared with."""
        if isinstance(value, str):
            return self.text(value + self.end_of_text if is_key else value)
        if isinstance(value, bool):
            return self.booleans[value]
        if isinstance(value, int) and not (is_key and self.real_keys):
            return str(value)
        return self.number(float(value))

    def type_of(self, values: Sequence[Any]) -> str:
        """Return the type of a column of some values."""
        for kind, of in zip((str, bool), self.types, strict=False):
            if all(isinstance(value, kind) for value in values):
                return of
        if any(isinstance(value, float) for value in values):
            return self.real
        return self.types[2] if max(map(abs, values)) < 2**63 else "NUMERIC(38, 0)"

    def key_type(self, values: Sequence[Any]) -> str:
        """Return the type of values that cells are compared with."""
        kind = self.type_of(values)
        return self.real if self.real_keys and kind not in self.types[:2] else kind

    def cell(self, column: Column, table: str) -> str:
        """Read a cell of a table; numbers as double precision, NaN as missing."""
        name = f"{table}.{self.identifier(column.name)}"
        if column.kind == "number":
            if column.cells == "booleans":
                name = self.of_boolean.format(name)
            return self.not_nan.format(f"CAST({name} AS {self.real})")
        if column.cells == "numbers":
            cast = f"CAST({name} AS {self.real})"
            return self.not_nan.format(cast if self.real_keys else name)
        return self.of_text.format(name) if column.cells == "text" else name

    def moment(self, date: str, table: str, let: Callable[[str, str], str]) -> str:
        """Read a cell of a column of dates; ``let`` names what is used often."""
        parts = {"{}": f"{table}.{self.identifier(date)}", "{form}": DATE_FORM}
        parts["{about}"] = self.text(f"not a date in column {date}: ")
        text = self.dates["t"]
        return re.sub(r"{\w*}", lambda place: parts[place[0]], text)

    def part_of_date(self, part: str, moment: str) -> str:
        """Read a part of a moment, as the number or category it is."""
        return self.dates[part].replace("{t}", moment)

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


# A power of two that all SQLite reads as it is.
_EXACT = 1 << 52


class SQLite(Dialect):
    """NaN is stored as NULL, and imported files have text in all cells.

    Other databases refuse to cast text that is no number; SQLite takes it for 0. Here
    only a failing function ends a query, and its message contains the text.
    """

    def number(self, x: float, bare: bool = False) -> str:
        """Write a number; as a fraction if SQLite may take its digits for another.

        It rounds digits to 64 bits before it rounds them to a double.
        """
        digits = super().number(x, bare)
        away = abs(Fraction(digits) - Fraction(x)) / Fraction(ulp(nextafter(x, 0.0)))
        top, bottom = x.as_integer_ratio()
        if away < Fraction(499, 1000) or bottom == 1:
            return digits
        parts = [str(top)]
        while bottom > 1:
            parts.append(f"{min(bottom, _EXACT)}.0")
            bottom //= min(bottom, _EXACT)
        return f"({' / '.join(parts)})"

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
        return self._or_refused(tests, f"not a number in column {column.name}", name)

    def moment(self, date: str, table: str, let: Callable[[str, str], str]) -> str:
        """Read text as a moment, as in ``DATE_FORM``; empty text is missing.

        Functions of dates take far more: now, times, numbers, and days that are not.
        """
        cell = let(f"{table}.{self.identifier(date)}", date)
        text = let(f"CASE WHEN typeof({cell}) = 'text' THEN trim({cell}) END", date)
        zone = let(f"ltrim(substr({text}, 11), 'T 0123456789:.')", f"{date} zone")
        clock = f"substr({text}, 11, length({text}) - 10 - length({zone}))"
        clock, day = let(clock, f"{date} clock"), f"substr({text}, 1, 10)"
        minutes, seconds = "[T ][0-2][0-9]:[0-5][0-9]", ":[0-5][0-9]"
        clocks = [f"{clock} = ''", f"{clock} GLOB '{minutes}'"]
        clocks.append(f"{clock} GLOB '{minutes}{seconds}'")
        fraction = f"substr({clock}, 11) NOT GLOB '*[^0-9]*'"
        clocks.append(f"{clock} GLOB '{minutes}{seconds}.[0-9]*' AND {fraction}")
        zones = [f"{zone} IN ('', 'Z')"]
        for end in ("", "[0-5][0-9]", ":[0-5][0-9]"):
            zones.append(f"{zone} GLOB '[-+][01][0-9]{end}'")
        tests = [
            f"{day} GLOB '{4 * '[0-9]'}-[0-9][0-9]-[0-9][0-9]'",
            f"{day} >= '0001' AND date({day}, '+0 days') = {day}",
            f"substr({clock}, 2) < '24' AND ({' OR '.join(clocks)})",
            f"({' OR '.join(zones)})",
        ]
        rest = f"substr(' 00:00:00.000000', length({clock}) + 1)"
        whole = f"{day} || ' ' || substr({clock} || {rest}, 2, 15)"
        cases = [
            f"WHEN {cell} = '' THEN NULL",
            f"WHEN {' AND '.join(tests)} THEN {whole}",
        ]
        return self._or_refused(cases, f"not a date in column {date}", cell)

    def _or_refused(self, tests: list[str], problem: str, name: str) -> str:
        """Write a CASE of tests, after which any text that is left ends the query."""
        about = self.text(f"{problem}: ")
        last = f"WHEN {name} IS NOT NULL THEN json_extract('{{}}', {about} || {name})"
        return f"CASE {' '.join([*tests, last])} END"


_ROWS = {"values": VALUES, "with values": WITH_VALUES, "union": UNION}


def _of_facts(name: str, facts: dict[str, Any]) -> Dialect:
    """Return a dialect of what is written of it, and of the one it is like."""
    given = {**facts.get(facts[name].get("like"), {}), **facts[name]}
    rows = given.pop("rows", "values")
    fields: dict[str, Any] = {
        key: tuple(fact) if isinstance(fact, list) else fact
        for key, fact in given.items()
        if key not in ("like", "also")
    }
    fields["rows"] = Rows(**rows) if isinstance(rows, dict) else _ROWS[rows]
    return (SQLite if name == "sqlite" else Dialect)(name, **fields)


_FACTS = tomllib.loads(Path(__file__).with_name("dialects.toml").read_text("utf-8"))
DIALECTS = {name: _of_facts(name, _FACTS) for name in _FACTS}
"""Dialects by name, from ``dialects.toml``."""

_ALSO = {also: name for name in _FACTS for also in _FACTS[name].get("also", ())}


def dialect_of(name: str) -> Dialect:
    """Return a dialect by its name."""
    of_name = _ALSO.get(name, name)
    if of_name not in DIALECTS:
        hint = did_you_mean(name, [*DIALECTS, *_ALSO])
        raise ParameterError(
            f"There is no dialect {name!r}.{hint} Known: {', '.join(DIALECTS)}."
        )
    return DIALECTS[of_name]
