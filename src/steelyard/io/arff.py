"""ARFF files, Weka's: header, rows, then one column at a time.

Rows without quotes, braces, tabs and comments are split at their commas, others token
by token.
"""

from __future__ import annotations

import gzip
import math
import re
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from steelyard._common.text import did_you_mean
from steelyard.exceptions import TableError

if TYPE_CHECKING:
    import pandas

_BLANKS = " \t"
# A row that has one of these cannot simply be split at commas.
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
_NAME = re.compile(rf"({_QUOTED}|[^ \t{{'\"][^ \t{{]*)[ \t]*")
_WEIGHT = re.compile(r"\{[ \t]*([^{}]*?)[ \t]*\}")
_COMMENT = re.compile(r"[ \t]*(?:%.*)?")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|([0-3][0-7]{2}|[0-7]{1,2})|(.))")
_ESCAPED = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))


class ArffError(TableError):
    """An ARFF file could not be read: where, and what to do about it.

    Lines are counted from 1; None if the whole file is at fault.
    """

    def __init__(self, path: str, line: int | None, problem: str) -> None:
        self.path, self.line, self.problem = path, line, problem
        super().__init__(path, line, problem)

    def __str__(self) -> str:
        where = self.path if self.line is None else f"{self.path}, line {self.line}"
        return f"{where}: {self.problem}"


def parse_arff(
    raw: bytes, name: str, encoding: str = "utf-8"
) -> tuple[str, pandas.DataFrame, bool]:
    """Return name and table of an ARFF file, and whether rows state a weight.

    Nominal columns are categories as declared. In a sparse row an unlisted numeric cell
    is 0, and an unlisted nominal cell is the first declared value. An unquoted ``?`` is
    a missing value; a quoted one is text. Bytes may be compressed with gzip; messages
    call the file ``name``.
    """
    if raw.startswith(b"\x1f\x8b"):
        try:
            raw = gzip.decompress(raw)
        except (EOFError, OSError, zlib.error) as error:
            problem = f"the gzip data are truncated or damaged ({error})."
            raise ArffError(name, None, f"{problem} Fetch the file again.") from error
    try:
        text = raw.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        problem = f"the byte 0x{raw[error.start]:02x} at offset {error.start} is not "
        advice = 'Give the file\'s encoding, for example `encoding="latin-1"`.'
        raise ArffError(name, line, f"{problem}{encoding} text. {advice}") from error
    return _Reader(name).read(text)


class _Reader:
    """One pass over one file; keeps what error messages need."""

    def __init__(self, path: str) -> None:
        self._path, self._relation = path, ""
        self._line: int | None = None
        # By name: its values, float, or str.
        self._kinds: dict[str, Any] = {}
        self._has_weights = False

    def read(self, text: str) -> tuple[str, pandas.DataFrame, bool]:
        """Return the contents of a file."""
        import pandas as pd

        # Only these end a line: str.splitlines would also cut at form feeds
        # and Unicode separators, which may be inside a value.
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        stripped = ((i, line.strip(_BLANKS)) for i, line in enumerate(lines, 1))
        written = ((i, line) for i, line in stripped if line and line[0] != "%")
        for self._line, line in written:
            if self._is_last_declaration(line):
                break
        else:
            self._line = None
            self._fail("the file has no @data line: it is empty, cut off or not ARFF.")
        n, places = len(self._kinds), list[int]()
        table: list[str | None] = []
        for self._line, line in written:
            cells = self._row(line)
            if len(cells) != n:
                problem = f"{len(cells)} fields, but {n} attributes are declared."
                self._fail(f"{problem} A value that holds a comma must be quoted.")
            places.append(self._line)
            table += cells
        columns = {
            name: self._column(name, table[j::n], places)
            for j, name in enumerate(self._kinds)
        }
        return self._relation, pd.DataFrame(columns), self._has_weights

    def _fail(self, problem: str) -> NoReturn:
        raise ArffError(self._path, self._line, problem) from None

    def _is_last_declaration(self, line: str) -> bool:
        """Read one line of the header; return whether it is the last."""
        keyword, *tail = line.split(maxsplit=1)
        if keyword.lower() == "@data":
            if not self._relation or not self._kinds:
                lacking = "attribute" if self._relation else "relation"
                self._fail(f"@data comes before any @{lacking} line.")
            return True
        if keyword.lower() not in ("@relation", "@attribute"):
            expected = "expected @relation, @attribute or @data"
            self._fail(f"{expected}, got {_excerpt(line)}. Is this an ARFF file?")
        if not tail:
            self._fail(f"{keyword} without a name.")
        match = _NAME.match(tail[0])
        if match is None:
            self._fail(
                f"{keyword} has a name that cannot be read, {_excerpt(tail[0])}. "
                "A quoted name needs its closing quote."
            )
        if keyword.lower() == "@relation":
            self._relation = _unquoted(match[1])
        else:
            self._attribute(_unquoted(match[1]), tail[0][match.end() :])
        return False

    def _attribute(self, name: str, kind: str) -> None:
        if name in self._kinds:
            self._fail(f"the attribute {name!r} is declared twice. Rename one of them.")
        word, _, rest = kind.partition("%")[0].replace("\t", " ").partition(" ")
        match word.lower():
            case _ if kind.startswith("{"):
                problem = f"the values of {name!r} cannot be read"
                remedy = "Write them as {a, b, 'c d'} on one line, with quotes around "
                tokens, rest = self._tokens(
                    _DECLARED, kind, problem, f"{remedy}blanks, commas and braces."
                )
                self._kinds[name] = values = tuple(_unquoted(t[1]) for t in tokens)
                if len(set(values)) < len(values):
                    twice = _repeated(values)
                    self._fail(f"{name!r} declares the value {twice!r} twice.")
            case "numeric" | "real" | "integer":
                self._kinds[name] = float
            case "string":
                self._kinds[name] = str
            case "date" | "relational":
                self._fail(
                    f"the attribute {name!r} is of type {word.upper()}, which is not "
                    "supported. Remove it, or turn it into numbers or text first."
                )
            case _:
                self._fail(
                    f"the attribute {name!r} has the type {_excerpt(kind)}. Known "
                    "types: NUMERIC, REAL, INTEGER, STRING and {value, value, ...}; "
                    "quote a name that contains blanks."
                )
        if not _COMMENT.fullmatch(rest):
            problem = f"unexpected text after the type of {name!r}: {_excerpt(rest)}."
            self._fail(f"{problem} Attribute weights are not supported.")

    def _tokens(
        self, pattern: re.Pattern[str], text: str, problem: str, remedy: str
    ) -> tuple[list[re.Match[str]], str]:
        """Return the tokens of a row, or of a list in braces, and what follows."""
        if empty := _NO_ENTRIES.match(text):
            return [], text[empty.end() :]
        tokens: list[re.Match[str]] = []
        position, continues = int(text[0] == "{"), True
        while continues:
            token = pattern.match(text, position)
            if token is None:
                self._fail(f"{problem} near {_excerpt(text[position:])}. {remedy}")
            tokens.append(token)
            position, continues = token.end(), token["more"] is not None
        return tokens, text[position:]

    def _row(self, row: str) -> list[str | None]:
        """Return the cells of a row, None for a missing one."""
        if _SPECIAL.search(row) is None:
            plain = row.split(",")
            return self._cells([cell.strip(_BLANKS) for cell in plain])
        if row[0] == "{":
            cells, rest = self._sparse_row(row)
        else:
            problem = "a quote is not closed, or text follows it,"
            remedy = "Inside quotes write \\' and \\\"."
            matches, rest = self._tokens(_CELL, row, problem, remedy)
            cells = self._cells([match[1] for match in matches])
        rest = rest.lstrip(", \t")
        match = _WEIGHT.match(rest)
        end = 0 if match is None else match.end()
        if not _COMMENT.fullmatch(rest, end):
            self._fail(f"unexpected text at the end: {_excerpt(rest[end:])}.")
        if match is not None:
            self._has_weights = True
            weight = _number(match[1])
            if weight is None or not 0 <= weight < math.inf:
                self._fail(
                    f"the instance weight {{{match[1]}}} is not a number in [0, inf). "
                    "Quote a value that holds braces."
                )
        return cells

    def _sparse_row(self, row: str) -> tuple[list[str | None], str]:
        remedy = "Write it as {position value, position value}, quoting blanks and "
        problem = "cannot read this sparse row"
        tokens, rest = self._tokens(_SPARSE, row, problem, f"{remedy}commas.")
        places, n = [int(token[1]) for token in tokens], len(self._kinds)
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
        for j, (name, kind) in enumerate(self._kinds.items()):
            if j not in listed and (kind is str or not kind):
                self._fail(
                    f"a sparse row leaves out {name!r}, which has no first declared "
                    "value to stand in. List it, with ? if it is missing."
                )
        others = ["0" if kind is float else kind[0] for kind in self._kinds.values()]
        return [listed.get(j, other) for j, other in enumerate(others)], rest

    def _cells(self, tokens: list[str]) -> list[str | None]:
        """Return cells without quotes."""
        if "" in tokens:
            self._fail("an empty field. Write ? for a missing value, '' for no text.")
        return [None if token == "?" else _unquoted(token) for token in tokens]

    def _column(self, name: str, cells: list[str | None], places: list[int]) -> Any:
        """Return a column of a frame; ``places`` are the lines of its cells."""
        import pandas as pd

        kind = self._kinds[name]
        if kind is float:
            numbers = [math.nan if cell is None else _number(cell) for cell in cells]
            if None in numbers:
                k = numbers.index(None)
                self._line = places[k]
                problem = f"{_excerpt(str(cells[k]))} is not a number, but {name!r} is "
                self._fail(f"{problem}numeric. Write ? for a missing value.")
            return np.array(numbers, dtype=np.float64)
        if kind is str:
            return np.array(cells, dtype=object)
        wrong = {*cells}.difference(kind, [None])
        if wrong:
            k = next(k for k, cell in enumerate(cells) if cell in wrong)
            cell, self._line = str(cells[k]), places[k]
            self._fail(
                f"{_excerpt(cell)} is not among the {len(kind)} declared values of "
                f"{name!r}.{did_you_mean(cell, kind)} Declare it, or write ? for a "
                "missing value."
            )
        return pd.Categorical(cells, list(kind))


def _repeated(entries: Sequence[Any]) -> Any:
    """Return the first of the entries that was there before."""
    return next(entry for k, entry in enumerate(entries) if entry in entries[:k])


def _unquoted(token: str) -> str:
    """Remove quotes and resolve the escapes between them."""
    return token if token[0] not in "'\"" else _ESCAPE.sub(_resolve, token[1:-1])


def _resolve(match: re.Match[str]) -> str:
    hexadecimal, octal, letter = match.groups()
    if letter is None:
        return chr(int(hexadecimal, 16) if hexadecimal else int(octal, 8))
    return _ESCAPED.get(letter, letter)


def _number(text: str) -> float | None:
    """Return a number, None if the text is not one."""
    try:
        # float() would read 1_000 as a thousand.
        return None if "_" in text else float(text)
    except ValueError:
        return None


def _excerpt(text: str) -> str:
    """Quote the beginning of a text."""
    return repr(text if len(text) <= 40 else text[:37] + "...")
