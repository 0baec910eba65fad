"""The parsing behind `read_arff`: header, rows, then one column at a time."""

import difflib
import re
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from steelyard.experiments.data.arff_cells import (
    QUOTED,
    ArffError,
    excerpt,
    parse_cell,
    parse_number,
    unquoted,
)

__all__ = ["ArffReader"]

_BLANKS = " \t"
_NUMERIC_TYPES = ("numeric", "real", "integer")

# A dense data line that holds one of these cannot simply be split at commas.
_SPECIAL = re.compile(r"""['"{}%\t]""")

# After a cell: a comma, the end of the line, a tab, or blanks before a comment
# or an instance weight.
_STOP = r"[ \t]*(?:,[ \t]*|$)|[ ]*\t[ \t]*|[ \t]+(?=[%{])"
_CELL = re.compile(rf"({QUOTED}|(?!['\"])[^,\t]*?)({_STOP})")
_SPARSE_CELL = re.compile(
    rf"[ \t]*(\d+)[ \t]+({QUOTED}|(?!['\"])[^,}}]*?)[ \t]*([,}}])"
)
_WEIGHT = re.compile(r"\{[ \t]*([^{}]*?)[ \t]*\}")
_COMMENT = re.compile(r"[ \t]*(?:%.*)?")
_NAME = re.compile(rf"({QUOTED}|[^ \t{{'\"][^ \t{{]*)")
_DECLARED = re.compile(rf"[ \t]*({QUOTED}|(?!['\"])[^,{{}}]*?)[ \t]*([,}}])")


class ArffReader:
    """One pass over one file; keeps what error messages need.

    After `read`, `relation`, `names`, `declared`, `columns` and `weights` hold
    what `steelyard.experiments.data.arff.ArffData` describes.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.relation = ""
        self.names: list[str] = []
        self.declared: list[tuple[str, ...] | None] = []
        self.numeric: list[bool] = []
        self.columns: list[NDArray[Any]] = []
        self.weights: NDArray[np.float64] | None = None
        # The line of each row, counted from 1.
        self._lines: list[int] = []

    def read(self, text: str) -> None:
        """Read the text of a file, or raise ArffError."""
        # Only these end a line: str.splitlines would also cut at form feeds
        # and Unicode separators, which may stand inside a value.
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.split("\n")
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

    def _fail(self, line: int | None, problem: str) -> NoReturn:
        raise ArffError(self.path, line, problem)

    # The header.

    def _header(self, lines: list[str]) -> int:
        """Read declarations; return the number of lines up to and with @data."""
        has_relation = False
        for number, raw in enumerate(lines, 1):
            line = raw.strip(_BLANKS)
            if not line or line[0] == "%":
                continue
            keyword, *tail = line.split(maxsplit=1)
            rest = tail[0] if tail else ""
            match keyword.lower():
                case "@relation":
                    self.relation = self._name(rest, number, "@relation")[0]
                    has_relation = True
                case "@attribute":
                    self._attribute(rest, number)
                case "@data":
                    if not has_relation:
                        self._fail(number, "@data comes before any @relation line.")
                    if not self.names:
                        self._fail(number, "@data comes before any @attribute line.")
                    return number
                case _:
                    self._fail(
                        number,
                        "expected @relation, @attribute or @data, "
                        f"got {excerpt(line)}. Is this an ARFF file?",
                    )
        self._fail(
            None, "the file has no @data line: it is empty, cut off or not ARFF."
        )

    def _name(self, text: str, line: int, keyword: str) -> tuple[str, str]:
        """Return the leading name, unquoted, and what follows it."""
        match = _NAME.match(text)
        if match is None:
            if not text:
                self._fail(line, f"{keyword} without a name.")
            self._fail(
                line,
                f"{keyword} has a name that cannot be read, {excerpt(text)}. "
                "A quoted name needs its closing quote.",
            )
        return unquoted(match[1]), text[match.end() :].strip(_BLANKS)

    def _attribute(self, text: str, line: int) -> None:
        name, kind = self._name(text, line, "@attribute")
        if name in self.names:
            self._fail(
                line, f"the attribute {name!r} is declared twice. Rename one of them."
            )
        word, _, rest = kind.partition("%")[0].replace("\t", " ").partition(" ")
        word = word.lower()
        values: tuple[str, ...] | None = None
        if kind.startswith("{"):
            values, rest = self._values(name, kind, line)
        elif word in ("date", "relational"):
            self._fail(
                line,
                f"the attribute {name!r} is of type {word.upper()}, which is not "
                "supported. Remove it, or turn it into numbers or text first.",
            )
        elif word not in (*_NUMERIC_TYPES, "string"):
            self._fail(
                line,
                f"the attribute {name!r} has the type {excerpt(kind)}. Known types: "
                "NUMERIC, REAL, INTEGER, STRING and {value, value, ...}; "
                "quote a name that contains blanks.",
            )
        if not _COMMENT.fullmatch(rest):
            self._fail(
                line,
                f"unexpected text after the type of {name!r}: {excerpt(rest)}. "
                "Attribute weights are not supported.",
            )
        self.names.append(name)
        self.declared.append(values)
        self.numeric.append(word in _NUMERIC_TYPES)

    def _values(self, name: str, text: str, line: int) -> tuple[tuple[str, ...], str]:
        """Return the values declared between braces and what follows them."""
        if empty := re.match(r"\{[ \t]*\}", text):
            return (), text[empty.end() :]
        values: dict[str, None] = {}
        position, end = 1, ","
        while end == ",":
            match = _DECLARED.match(text, position)
            if match is None or not match[1]:
                self._fail(
                    line,
                    f"the values of {name!r} cannot be read near "
                    f"{excerpt(text[position:])}. Write them as {{a, b, 'c d'}} on "
                    "one line, with quotes around blanks, commas and braces.",
                )
            value = unquoted(match[1])
            if value in values:
                self._fail(line, f"{name!r} declares the value {value!r} twice.")
            values[value] = None
            position, end = match.end(), match[2]
        return tuple(values), text[position:]

    # The data section.

    def _split_in_bulk(self, rows: list[str], joined: str) -> list[list[Any]]:
        """Return raw columns of rows that hold nothing but cells and commas."""
        d = len(self.names)
        for i, row in enumerate(rows):
            if row.count(",") != d - 1:
                self._wrong_length(row.count(",") + 1, self._lines[i])
        cells: list[Any] = joined.split(",")
        if " " in joined:
            cells = [cell.strip(_BLANKS) for cell in cells]
        if "" in cells:
            self._empty(self._lines[cells.index("") // d])
        if "?" in cells:
            cells = [None if cell == "?" else cell for cell in cells]
        return [cells[j::d] for j in range(d)]

    def _split_by_row(self, rows: list[str]) -> list[list[Any]]:
        """Return raw columns, None for a missing cell, and note instance weights."""
        table = []
        weights: dict[int, float] = {}
        for i, (row, line) in enumerate(zip(rows, self._lines, strict=True)):
            weight = None
            if row[0] == "{":
                cells, weight = self._sparse_row(row, line)
            elif _SPECIAL.search(row):
                cells, weight = self._dense_row(row, line)
            else:
                cells = [
                    self._cell(cell.strip(_BLANKS), line) for cell in row.split(",")
                ]
            if len(cells) != len(self.names):
                self._wrong_length(len(cells), line)
            if weight is not None:
                weights[i] = weight
            table.append(cells)
        if weights:
            self.weights = np.array([weights.get(i, 1.0) for i in range(len(rows))])
        return [list(column) for column in zip(*table, strict=True)]

    def _dense_row(self, row: str, line: int) -> tuple[list[str | None], float | None]:
        cells: list[str | None] = []
        position, more = 0, True
        while more or position < len(row):
            if row.startswith(("%", "{"), position):
                return cells, self._weight(row, position, line)
            match = _CELL.match(row, position)
            if match is None:
                self._bad_quote(row, position, line)
            cells.append(self._cell(match[1], line))
            position = match.end()
            more = "," in match[2] or "\t" in match[2]
        return cells, None

    def _sparse_row(self, row: str, line: int) -> tuple[list[str | None], float | None]:
        listed: dict[int, str | None] = {}
        match = re.match(r"\{[ \t]*\}", row)
        position = 1 if match is None else match.end()
        while match is None or match[0][-1] == ",":
            match = _SPARSE_CELL.match(row, position)
            if match is None:
                self._fail(
                    line,
                    "cannot read this sparse row near "
                    f"{excerpt(row[position:])}. Write it as "
                    "{position value, position value}, quoting blanks and commas.",
                )
            index = int(match[1])
            if index >= len(self.names):
                self._fail(
                    line,
                    f"position {index} in a sparse row, but positions end at "
                    f"{len(self.names) - 1} (the first attribute is 0).",
                )
            if index in listed:
                self._fail(line, f"position {index} is listed twice in a sparse row.")
            listed[index] = self._cell(match[2], line)
            position = match.end()
        cells = [
            listed[j] if j in listed else self._default(j, line)
            for j in range(len(self.names))
        ]
        position += len(row[position:]) - len(row[position:].lstrip(", \t"))
        return cells, self._weight(row, position, line)

    def _default(self, j: int, line: int) -> str:
        """Return what an unlisted cell of a sparse row stands for."""
        if self.numeric[j]:
            return "0"
        values = self.declared[j]
        if not values:
            self._fail(
                line,
                f"a sparse row leaves out {self.names[j]!r}, which has no first "
                "declared value to stand in. List it, with ? if it is missing.",
            )
        return values[0]

    def _weight(self, row: str, position: int, line: int) -> float | None:
        """Return the weight in braces at the end of a row, if there is one."""
        match = _WEIGHT.match(row, position)
        end = position if match is None else match.end()
        if not _COMMENT.fullmatch(row, end):
            self._fail(line, f"unexpected text at the end: {excerpt(row[end:])}.")
        if match is None:
            return None
        weight = parse_number(match[1])
        if weight is None or not 0 <= weight < np.inf:
            self._fail(
                line,
                f"the instance weight {{{match[1]}}} is not a number in [0, inf). "
                "Quote a value that holds braces.",
            )
        return weight

    def _cell(self, token: str, line: int) -> str | None:
        if not token:
            self._empty(line)
        return parse_cell(token)

    # One column at a time.

    def _numbers(self, j: int, cells: list[str | None]) -> NDArray[np.float64]:
        texts = ["nan" if cell is None else cell for cell in cells]
        try:
            # float() would read 1_000 as a thousand.
            if "_" not in "".join(texts):
                return np.fromiter(map(float, texts), np.float64, len(texts))
        except ValueError:
            pass
        i = next(i for i, text in enumerate(texts) if parse_number(text) is None)
        self._fail(
            self._lines[i],
            f"{excerpt(texts[i])} is not a number, but {self.names[j]!r} is "
            "numeric. Write ? for a missing value.",
        )

    def _labels(self, j: int, cells: list[str | None]) -> NDArray[Any]:
        column = np.empty(len(cells), dtype=object)
        values = self.declared[j]
        if values is None:
            column[:] = cells
            return column
        # Every row shares the declared string, so a cell costs one pointer.
        known: dict[str | None, str | None] = {value: value for value in values}
        known[None] = None
        try:
            column[:] = [known[cell] for cell in cells]
        except KeyError as error:
            cell = error.args[0]
            near = difflib.get_close_matches(cell, values, n=1)
            hint = f" The nearest declared value is {near[0]!r}." if near else ""
            raise ArffError(
                self.path,
                self._lines[cells.index(cell)],
                f"{excerpt(cell)} is not among the {len(values)} declared values of "
                f"{self.names[j]!r}.{hint} Declare it, or write ? for a missing value.",
            ) from None
        return column

    # What several steps complain about.

    def _wrong_length(self, got: int, line: int) -> NoReturn:
        self._fail(
            line,
            f"{got} fields, but {len(self.names)} attributes are declared. "
            "A value that holds a comma must be quoted.",
        )

    def _empty(self, line: int) -> NoReturn:
        self._fail(line, "an empty field. Write ? for a missing value, '' for no text.")

    def _bad_quote(self, row: str, position: int, line: int) -> NoReturn:
        self._fail(
            line,
            f"a quote is not closed, or text follows it, near "
            f"{excerpt(row[position:])}. Inside quotes write \\' and \\\".",
        )
