"""The parsing behind `read_arff`: header, rows, then one column at a time."""

from __future__ import annotations

import difflib
import re
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from steelyard.exceptions import TableError

_BLANKS = " \t"
_NUMERIC_TYPES = ("numeric", "real", "integer")

# A dense data line that holds one of these cannot simply be split at commas.
_SPECIAL = re.compile(r"""['"{}%\t]""")

_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
# After a cell: a comma, the end of the line, a tab, or blanks before a comment
# or an instance weight.
_STOP = r"[ \t]*(?:,[ \t]*|$)|[ ]*\t[ \t]*|[ \t]+(?=[%{])"
_CELL = re.compile(rf"({_QUOTED}|(?!['\"])[^,\t]*?)({_STOP})")
_SPARSE_CELL = re.compile(
    rf"[ \t]*(\d+)[ \t]+({_QUOTED}|(?!['\"])[^,}}]*?)[ \t]*([,}}])"
)
_NO_CELLS = re.compile(r"\{[ \t]*\}")
_WEIGHT = re.compile(r"\{[ \t]*([^{}]*?)[ \t]*\}")
_COMMENT = re.compile(r"[ \t]*(?:%.*)?")
_NAME = re.compile(rf"({_QUOTED}|[^ \t{{'\"][^ \t{{]*)")
_DECLARED = re.compile(rf"[ \t]*({_QUOTED}|(?!['\"])[^,{{}}]*?)[ \t]*([,}}])")
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|[0-3][0-7]{2}|[0-7]{1,2}|.)")
_ESCAPED = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))


class ArffError(TableError):
    """An ARFF file could not be read: where, and what to do about it.

    Lines are counted from 1; None where the whole file is at fault.
    """

    def __init__(self, path: str, line: int | None, problem: str) -> None:
        self.path = path
        self.line = line
        self.problem = problem
        super().__init__(path, line, problem)

    def __str__(self) -> str:
        where = self.path if self.line is None else f"{self.path}, line {self.line}"
        return f"{where}: {self.problem}"


class ArffReader:
    """One pass over one file; keeps what error messages need.

    After `read`, `relation`, `names`, `declared`, `columns` and `weights` hold
    what `steelyard.io.arff.ArffData` describes.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.relation = ""
        self.names: list[str] = []
        self.declared: list[tuple[str, ...] | None] = []
        self.numeric: list[bool] = []
        self.columns: list[NDArray[Any]] = []
        self.weights: NDArray[np.float64] | None = None
        # The line that is read, and the line of each row, counted from 1.
        self._line: int | None = None
        self._lines: list[int] = []

    def read(self, text: str) -> None:
        """Read the text of a file, or raise ArffError."""
        # Only these end a line: str.splitlines would also cut at form feeds
        # and Unicode separators, which may stand inside a value.
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        start = self._header(lines)
        rows = []
        for i, line in enumerate(lines[start:], start + 1):
            row = line.strip(_BLANKS)
            if row and row[0] != "%":
                rows.append(row)
                self._lines.append(i)
        joined = ",".join(rows)
        if not rows:
            cells: list[list[Any]] = [[] for _ in self.names]
        elif _SPECIAL.search(joined) is None:
            cells = self._split_in_bulk(rows, joined)
        else:
            cells = self._split_by_row(rows)
        self.columns = [
            self._numbers(j, column) if self.numeric[j] else self._labels(j, column)
            for j, column in enumerate(cells)
        ]

    def _fail(self, problem: str) -> NoReturn:
        raise ArffError(self.path, self._line, problem) from None

    # The header.

    def _header(self, lines: list[str]) -> int:
        """Read declarations; return the number of lines up to and with @data."""
        has_relation = False
        for number, raw in enumerate(lines, 1):
            self._line = number
            line = raw.strip(_BLANKS)
            if not line or line[0] == "%":
                continue
            keyword, *tail = line.split(maxsplit=1)
            rest = tail[0] if tail else ""
            match keyword.lower():
                case "@relation":
                    self.relation = self._name(rest, "@relation")[0]
                    has_relation = True
                case "@attribute":
                    self._attribute(rest)
                case "@data":
                    if not (has_relation and self.names):
                        lacking = "@attribute" if has_relation else "@relation"
                        self._fail(f"@data comes before any {lacking} line.")
                    return number
                case _:
                    self._fail(
                        "expected @relation, @attribute or @data, "
                        f"got {_excerpt(line)}. Is this an ARFF file?"
                    )
        self._line = None
        self._fail("the file has no @data line: it is empty, cut off or not ARFF.")

    def _name(self, text: str, keyword: str) -> tuple[str, str]:
        """Return the leading name, unquoted, and what follows it."""
        match = _NAME.match(text)
        if not text:
            self._fail(f"{keyword} without a name.")
        if match is None:
            self._fail(
                f"{keyword} has a name that cannot be read, {_excerpt(text)}. "
                "A quoted name needs its closing quote."
            )
        return _unquoted(match[1]), text[match.end() :].strip(_BLANKS)

    def _attribute(self, text: str) -> None:
        name, kind = self._name(text, "@attribute")
        if name in self.names:
            self._fail(f"the attribute {name!r} is declared twice. Rename one of them.")
        word, _, rest = kind.partition("%")[0].replace("\t", " ").partition(" ")
        word = word.lower()
        values: tuple[str, ...] | None = None
        if kind.startswith("{"):
            values, rest = self._values(name, kind)
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
        self.names.append(name)
        self.declared.append(values)
        self.numeric.append(word in _NUMERIC_TYPES)

    def _values(self, name: str, text: str) -> tuple[tuple[str, ...], str]:
        """Return the values declared between braces and what follows them."""
        if empty := _NO_CELLS.match(text):
            return (), text[empty.end() :]
        values: dict[str, None] = {}
        position, end = 1, ","
        while end == ",":
            match = _DECLARED.match(text, position)
            if match is None or not match[1]:
                self._fail(
                    f"the values of {name!r} cannot be read near "
                    f"{_excerpt(text[position:])}. Write them as {{a, b, 'c d'}} on "
                    "one line, with quotes around blanks, commas and braces."
                )
            value = _unquoted(match[1])
            if value in values:
                self._fail(f"{name!r} declares the value {value!r} twice.")
            values[value] = None
            position, end = match.end(), match[2]
        return tuple(values), text[position:]

    # The data section.

    def _split_in_bulk(self, rows: list[str], joined: str) -> list[list[Any]]:
        """Return raw columns of rows that hold nothing but cells and commas."""
        d = len(self.names)
        for i, row in enumerate(rows):
            self._line = self._lines[i]
            self._check_length(row.count(",") + 1)
        cells: list[Any] = joined.split(",")
        if " " in joined:
            cells = [cell.strip(_BLANKS) for cell in cells]
        if "" in cells:
            self._line = self._lines[cells.index("") // d]
            self._cell("")
        if "?" in cells:
            cells = [None if cell == "?" else cell for cell in cells]
        return [cells[j::d] for j in range(d)]

    def _split_by_row(self, rows: list[str]) -> list[list[Any]]:
        """Return raw columns, None for a missing cell, and note instance weights."""
        table, weights = [], []
        for i, row in enumerate(rows):
            self._line, weight = self._lines[i], None
            if row[0] == "{":
                cells, weight = self._sparse_row(row)
            elif _SPECIAL.search(row):
                cells, weight = self._dense_row(row)
            else:
                cells = [self._cell(cell.strip(_BLANKS)) for cell in row.split(",")]
            self._check_length(len(cells))
            table.append(cells)
            weights.append(weight)
        if any(weight is not None for weight in weights):
            self.weights = np.array([1.0 if w is None else w for w in weights])
        return [list(column) for column in zip(*table, strict=True)]

    def _dense_row(self, row: str) -> tuple[list[str | None], float | None]:
        cells: list[str | None] = []
        position, more = 0, True
        while more or position < len(row):
            if row.startswith(("%", "{"), position):
                return cells, self._weight(row, position)
            match = _CELL.match(row, position)
            if match is None:
                self._fail(
                    "a quote is not closed, or text follows it, near "
                    f"{_excerpt(row[position:])}. Inside quotes write \\' and \\\"."
                )
            cells.append(self._cell(match[1]))
            position = match.end()
            more = "," in match[2] or "\t" in match[2]
        return cells, None

    def _sparse_row(self, row: str) -> tuple[list[str | None], float | None]:
        listed: dict[int, str | None] = {}
        match = _NO_CELLS.match(row)
        position = 1 if match is None else match.end()
        while match is None or match[0][-1] == ",":
            match = _SPARSE_CELL.match(row, position)
            if match is None:
                self._fail(
                    f"cannot read this sparse row near {_excerpt(row[position:])}. "
                    "Write it as {position value, position value}, quoting blanks and "
                    "commas."
                )
            index = int(match[1])
            if index >= len(self.names):
                self._fail(
                    f"position {index} in a sparse row, but positions end at "
                    f"{len(self.names) - 1} (the first attribute is 0)."
                )
            if index in listed:
                self._fail(f"position {index} is listed twice in a sparse row.")
            listed[index] = self._cell(match[2])
            position = match.end()
        cells = [
            listed[j] if j in listed else self._default(j)
            for j in range(len(self.names))
        ]
        position += len(row[position:]) - len(row[position:].lstrip(", \t"))
        return cells, self._weight(row, position)

    def _default(self, j: int) -> str:
        """Return what an unlisted cell of a sparse row stands for."""
        if self.numeric[j]:
            return "0"
        values = self.declared[j]
        if not values:
            self._fail(
                f"a sparse row leaves out {self.names[j]!r}, which has no first "
                "declared value to stand in. List it, with ? if it is missing."
            )
        return values[0]

    def _weight(self, row: str, position: int) -> float | None:
        """Return the weight in braces at the end of a row, if there is one."""
        match = _WEIGHT.match(row, position)
        end = position if match is None else match.end()
        if not _COMMENT.fullmatch(row, end):
            self._fail(f"unexpected text at the end: {_excerpt(row[end:])}.")
        if match is None:
            return None
        weight = _number(match[1])
        if weight is None or not 0 <= weight < np.inf:
            self._fail(
                f"the instance weight {{{match[1]}}} is not a number in [0, inf). "
                "Quote a value that holds braces."
            )
        return weight

    def _cell(self, token: str) -> str | None:
        """Return the text of a cell as written, None for an unquoted ``?``."""
        if not token:
            self._fail("an empty field. Write ? for a missing value, '' for no text.")
        return None if token == "?" else _unquoted(token)

    def _check_length(self, n_cells: int) -> None:
        if n_cells != len(self.names):
            self._fail(
                f"{n_cells} fields, but {len(self.names)} attributes are declared. "
                "A value that holds a comma must be quoted."
            )

    # One column at a time.

    def _numbers(self, j: int, cells: list[str | None]) -> NDArray[np.float64]:
        texts = ["nan" if cell is None else cell for cell in cells]
        try:
            # float() would read 1_000 as a thousand.
            if "_" not in "".join(texts):
                return np.fromiter(map(float, texts), np.float64, len(texts))
        except ValueError:
            pass
        i = next(i for i, text in enumerate(texts) if _number(text) is None)
        self._line = self._lines[i]
        self._fail(
            f"{_excerpt(texts[i])} is not a number, but {self.names[j]!r} is "
            "numeric. Write ? for a missing value."
        )

    def _labels(self, j: int, cells: list[str | None]) -> NDArray[Any]:
        column = np.empty(len(cells), dtype=object)
        values = self.declared[j]
        if values is None:
            column[:] = cells
            return column
        # Every row shares the declared string, so a cell costs one pointer.
        known: dict[str | None, str | None] = {v: v for v in (None, *values)}
        try:
            column[:] = [known[cell] for cell in cells]
        except KeyError as error:
            cell = error.args[0]
            self._line = self._lines[cells.index(cell)]
            near = difflib.get_close_matches(cell, values, n=1)
            hint = f" The nearest declared value is {near[0]!r}." if near else ""
            self._fail(
                f"{_excerpt(cell)} is not among the {len(values)} declared values of "
                f"{self.names[j]!r}.{hint} Declare it, or write ? for a missing value."
            )
        return column


def _unquoted(token: str) -> str:
    """Remove quotes and resolve the escapes between them."""
    if token[:1] not in ("'", '"'):
        return token
    inner = token[1:-1]
    return _ESCAPE.sub(_resolve, inner) if "\\" in inner else inner


def _resolve(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] == "u" and len(code) > 1:
        return chr(int(code[1:], 16))
    if code[0] in "01234567":
        return chr(int(code, 8))
    return _ESCAPED.get(code, code)


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
