"""The parsing behind `read_arff`: header, rows, then one column at a time.

Rows without quotes, braces, tabs and comments are split at their commas, others token
by token.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from steelyard.exceptions import TableError

_BLANKS = " \t"
_NUMERIC_TYPES = ("numeric", "real", "integer")

# A row that holds one of these cannot simply be split at commas.
_SPECIAL = re.compile(r"""['"{}%\t]""")

_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
# A token and what follows it: a separator and more, or the end. The end of a row is
# that of the line, or where a comment or an instance weight begins.
_CELL = re.compile(
    rf"({_QUOTED}|(?!['\"])[^,\t]*?)"
    r"(?:(?:[ \t]*,|[ ]*\t)[ \t]*(?=[%{])|(?P<more>[ \t]*,[ \t]*|[ ]*\t[ \t]*)"
    r"|[ \t]*$|[ \t]+(?=[%{]))"
)
_BRACED = r"[ \t]*(?:(?P<more>,)|\})"
_DECLARED = re.compile(rf"[ \t]*+({_QUOTED}|(?!['\"])[^,{{}}]+?){_BRACED}")
_SPARSE = re.compile(rf"[ \t]*(\d+)[ \t]++({_QUOTED}|(?!['\"])[^,}}]*?){_BRACED}")
_NO_ENTRIES = re.compile(r"\{[ \t]*\}")
_NAME = re.compile(rf"({_QUOTED}|[^ \t{{'\"][^ \t{{]*)")
_WEIGHT = re.compile(r"\{[ \t]*([^{}]*?)[ \t]*\}")
_COMMENT = re.compile(r"[ \t]*(?:%.*)?")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|([0-3][0-7]{2}|[0-7]{1,2})|(.))")
_ESCAPED = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))


class ArffError(TableError):
    """An ARFF file could not be read: where, and what to do about it.

    Lines are counted from 1; None where the whole file is at fault.
    """

    def __init__(self, path: str, line: int | None, problem: str) -> None:
        self.path, self.line, self.problem = path, line, problem
        super().__init__(path, line, problem)

    def __str__(self) -> str:
        where = self.path if self.line is None else f"{self.path}, line {self.line}"
        return f"{where}: {self.problem}"


class ArffReader:
    """One pass over one file; keeps what error messages need."""

    def __init__(self, path: str) -> None:
        self._path = path
        # The line that is read, counted from 1.
        self._line: int | None = None
        self._relation: str | None = None
        self._names: list[str] = []
        self._declared: list[tuple[str, ...] | None] = []
        self._is_numeric: list[bool] = []

    def read(self, text: str) -> tuple[Any, ...]:
        """Return the fields of `ArffData` of the text of a file, or raise ArffError."""
        # Only these end a line: str.splitlines would also cut at form feeds
        # and Unicode separators, which may stand inside a value.
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        stripped = ((i, line.strip(_BLANKS)) for i, line in enumerate(lines, 1))
        written = ((i, line) for i, line in stripped if line and line[0] != "%")
        for self._line, line in written:
            if self._is_last_declaration(line):
                break
        else:
            self._line = None
            self._fail("the file has no @data line: it is empty, cut off or not ARFF.")
        n = len(self._names)
        places: list[int] = []
        table: list[str | None] = []
        weights: dict[int, float] = {}
        for self._line, line in written:
            cells, weight = self._row(line)
            if len(cells) != n:
                self._fail(
                    f"{len(cells)} fields, but {n} attributes are declared. "
                    "A value that holds a comma must be quoted."
                )
            if weight is not None:
                weights[len(places)] = weight
            places.append(self._line)
            table += cells
        columns = [self._column(j, table[j::n], places) for j in range(n)]
        row_weights = np.array([weights.get(i, 1.0) for i in range(len(places))])
        named = (self._relation, self._names, columns, self._declared)
        return *named, row_weights if weights else None

    def _fail(self, problem: str) -> NoReturn:
        raise ArffError(self._path, self._line, problem) from None

    # The header.

    def _is_last_declaration(self, line: str) -> bool:
        """Read one line of the header; return whether it is the last."""
        keyword, *tail = line.split(maxsplit=1)
        rest = tail[0] if tail else ""
        match keyword.lower():
            case "@relation":
                self._relation = self._name(rest, "@relation")[0]
            case "@attribute":
                self._attribute(*self._name(rest, "@attribute"))
            case "@data":
                if self._relation is None or not self._names:
                    lacking = "relation" if self._relation is None else "attribute"
                    self._fail(f"@data comes before any @{lacking} line.")
                return True
            case _:
                self._fail(
                    "expected @relation, @attribute or @data, "
                    f"got {_excerpt(line)}. Is this an ARFF file?"
                )
        return False

    def _name(self, text: str, keyword: str) -> tuple[str, str]:
        """Return the leading name, unquoted, and what follows it."""
        if not text:
            self._fail(f"{keyword} without a name.")
        match = _NAME.match(text)
        if match is None:
            self._fail(
                f"{keyword} has a name that cannot be read, {_excerpt(text)}. "
                "A quoted name needs its closing quote."
            )
        return _unquoted(match[1]), text[match.end() :].strip(_BLANKS)

    def _attribute(self, name: str, kind: str) -> None:
        if name in self._names:
            self._fail(f"the attribute {name!r} is declared twice. Rename one of them.")
        word, _, rest = kind.partition("%")[0].replace("\t", " ").partition(" ")
        word = word.lower()
        values: tuple[str, ...] | None = None
        if kind.startswith("{"):
            problem = f"the values of {name!r} cannot be read"
            remedy = "Write them as {a, b, 'c d'} on one line, with quotes around "
            tokens, rest = self._tokens(
                _DECLARED, kind, problem, f"{remedy}blanks, commas and braces."
            )
            values = tuple(_unquoted(token[1]) for token in tokens)
            if len(set(values)) < len(values):
                self._fail(f"{name!r} declares the value {_repeated(values)!r} twice.")
        elif word in ("date", "relational"):
            self._fail(
                f"the attribute {name!r} is of type {word.upper()}, which is not "
                "supported. Remove it, or turn it into numbers or text first."
            )
        elif word not in (*_NUMERIC_TYPES, "string"):
            self._fail(
                f"the attribute {name!r} has the type {_excerpt(kind)}. Known types: "
                "NUMERIC, REAL, INTEGER, STRING and {value, value, ...}; "
                "quote a name that contains blanks."
            )
        if not _COMMENT.fullmatch(rest):
            self._fail(
                f"unexpected text after the type of {name!r}: {_excerpt(rest)}. "
                "Attribute weights are not supported."
            )
        self._names.append(name)
        self._declared.append(values)
        self._is_numeric.append(word in _NUMERIC_TYPES)

    def _tokens(
        self, pattern: re.Pattern[str], text: str, problem: str, remedy: str
    ) -> tuple[list[re.Match[str]], str]:
        """Return the tokens of a row, or of a list in braces, and what follows."""
        if empty := _NO_ENTRIES.match(text):
            return [], text[empty.end() :]
        tokens: list[re.Match[str]] = []
        position, more = int(text[0] == "{"), True
        while more:
            token = pattern.match(text, position)
            if token is None:
                self._fail(f"{problem} near {_excerpt(text[position:])}. {remedy}")
            tokens.append(token)
            position, more = token.end(), token["more"] is not None
        return tokens, text[position:]

    # Rows.

    def _row(self, row: str) -> tuple[Sequence[str | None], float | None]:
        """Return the cells of a row, None for a missing one, and its weight if any."""
        if _SPECIAL.search(row) is None:
            tokens = row.split(",")
            if " " in row:
                tokens = [token.strip(_BLANKS) for token in tokens]
            return self._cells(tokens, is_plain=True), None
        if row[0] == "{":
            cells, rest = self._sparse_row(row)
        else:
            problem = "a quote is not closed, or text follows it,"
            remedy = "Inside quotes write \\' and \\\"."
            matches, rest = self._tokens(_CELL, row, problem, remedy)
            cells = self._cells([match[1] for match in matches])
        return cells, self._weight(rest.lstrip(", \t"))

    def _sparse_row(self, row: str) -> tuple[Sequence[str | None], str]:
        remedy = "Write it as {position value, position value}, quoting blanks and "
        problem = "cannot read this sparse row"
        tokens, rest = self._tokens(_SPARSE, row, problem, f"{remedy}commas.")
        places, n = [int(token[1]) for token in tokens], len(self._names)
        cells = self._cells([token[2] for token in tokens])
        listed = dict(zip(places, cells, strict=True))
        if len(listed) < len(places):
            twice = _repeated(places)
            self._fail(f"position {twice} is listed twice in a sparse row.")
        if max(listed, default=0) >= n:
            self._fail(
                f"position {max(listed)} in a sparse row, but positions end at {n - 1} "
                "(the first attribute is 0)."
            )
        return [listed[j] if j in listed else self._default(j) for j in range(n)], rest

    def _default(self, j: int) -> str:
        """Return what an unlisted cell of a sparse row stands for."""
        values = ("0",) if self._is_numeric[j] else self._declared[j]
        if not values:
            self._fail(
                f"a sparse row leaves out {self._names[j]!r}, which has no first "
                "declared value to stand in. List it, with ? if it is missing."
            )
        return values[0]

    def _weight(self, text: str) -> float | None:
        """Return the weight in braces at the end of a row, if there is one."""
        match = _WEIGHT.match(text)
        end = 0 if match is None else match.end()
        if not _COMMENT.fullmatch(text, end):
            self._fail(f"unexpected text at the end: {_excerpt(text[end:])}.")
        if match is None:
            return None
        weight = _number(match[1])
        if weight is None or not 0 <= weight < np.inf:
            self._fail(
                f"the instance weight {{{match[1]}}} is not a number in [0, inf). "
                "Quote a value that holds braces."
            )
        return weight

    def _cells(self, tokens: list[str], is_plain: bool = False) -> Sequence[str | None]:
        """Return cells without quotes, of which plain ones have none."""
        if "" in tokens:
            self._fail("an empty field. Write ? for a missing value, '' for no text.")
        if is_plain and "?" not in tokens:
            return tokens
        return [None if token == "?" else _unquoted(token) for token in tokens]

    # Columns.

    def _column(
        self, j: int, cells: list[str | None], places: list[int]
    ) -> NDArray[Any]:
        """Return a column as an array; ``places`` are the lines of its cells."""
        if self._is_numeric[j]:
            texts = ["nan" if cell is None else cell for cell in cells]
            try:
                # float() would read 1_000 as a thousand.
                if "_" not in "".join(texts):
                    return np.fromiter(map(float, texts), np.float64, len(texts))
            except ValueError:
                pass
            i = next(i for i, text in enumerate(texts) if _number(text) is None)
            self._line = places[i]
            self._fail(
                f"{_excerpt(texts[i])} is not a number, but {self._names[j]!r} is "
                "numeric. Write ? for a missing value."
            )
        column = np.empty(len(cells), dtype=object)
        values = self._declared[j]
        if values is None:
            column[:] = cells
            return column
        # Every row shares the declared string, so a cell costs one pointer.
        row_weights: dict[str | None, str | None] = {v: v for v in (None, *values)}
        try:
            column[:] = [row_weights[cell] for cell in cells]
        except KeyError as error:
            cell = error.args[0]
            self._line = places[cells.index(cell)]
            near = difflib.get_close_matches(cell, values, n=1)
            hint = f" The nearest declared value is {near[0]!r}." if near else ""
            self._fail(
                f"{_excerpt(cell)} is not among the {len(values)} declared values of "
                f"{self._names[j]!r}.{hint} Declare it, or write ? for a missing value."
            )
        return column


def _repeated(entries: Sequence[Any]) -> Any:
    """Return the first of the entries that was there before."""
    return next(entry for k, entry in enumerate(entries) if entry in entries[:k])


def _unquoted(token: str) -> str:
    """Remove quotes and resolve the escapes between them."""
    if token[0] not in "'\"":
        return token
    inner = token[1:-1]
    return _ESCAPE.sub(_resolve, inner) if "\\" in inner else inner


def _resolve(match: re.Match[str]) -> str:
    hexadecimal, octal, letter = match.groups()
    if letter is None:
        return chr(int(hexadecimal, 16) if hexadecimal else int(octal, 8))
    return _ESCAPED.get(letter, letter)


def _number(text: str) -> float | None:
    """Return a number, None where the text is not one."""
    try:
        # float() would read 1_000 as a thousand.
        return None if "_" in text else float(text)
    except ValueError:
        return None


def _excerpt(text: str, width: int = 40) -> str:
    """Quote the beginning of a text."""
    return repr(text if len(text) <= width else text[: width - 3] + "...")
