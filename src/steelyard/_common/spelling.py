"""How a text file is written, found out from its first lines.

Encoding, separator and quote are those under which the lines have as many cells as the
line of names. The decimal mark is the one that numbers cannot do without: ``3,75`` and
``0,125`` have a decimal comma, ``1,250`` alone may be either.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import IO

HEAD = 2**18
"""Bytes that are looked at for separator, quote and decimal mark."""

CURRENCY = r"[$€£¥₹]|(?:EUR|USD|GBP|CHF|JPY|INR)"
GROUPS = " \u00a0\u202f'\u2019"
"""Marks of thousands, besides the comma or point that is not the decimal mark."""

_NUMBER_LIKE = re.compile(
    rf"[-+\u2212]?\d[\d.,{GROUPS}]*(?:[eE][-+]?\d+)?|[-+]?[.,]\d+"
)
_SIGNS = re.compile(rf"^(?:{CURRENCY})\s*|\s*(?:{CURRENCY}|%)$|^[-+\u2212]")
_MOST_ROWS = 500
# A later one of equal merit gives way: commas are in names of columns too.
_SEPARATORS = ("\t", ";", "|", ",")
_MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_NAMES = {"\t": "tabs", ";": "semicolons", "|": "vertical bars", ",": "commas"}

# A comma with anything but three digits after it, or after a leading zero, or after a
# point or four digits, is no mark of thousands. The same of a point.
_CERTAIN = {
    mark: re.compile(
        rf"(?:\d*{m}(?:\d\d?|\d{{4,}})|0{m}\d+|\d{{4,}}{m}\d+"
        rf"|\d{{1,3}}(?:{other}\d{{3}})+{m}\d+|\d{{1,3}}(?:{other}\d{{3}}){{2,}})"
    )
    for mark, m, other in ((",", ",", r"\."), (".", r"\.", ","))
}
_MAYBE = re.compile(r"[1-9]\d{0,2},\d{3}")


@dataclass(frozen=True)
class Spelling:
    """How cells of a text file are written."""

    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    quote: str = '"'

    def in_words(self) -> str:
        """Say what is other than in a plain CSV file; nothing where nothing is.

        Examples
        --------
        >>> Spelling(";", ",").in_words()
        'cells between semicolons, decimal commas'
        """
        plain = Spelling()
        words = []
        if self.separator != plain.separator:
            words.append(f"cells between {_NAMES.get(self.separator, self.separator)}")
        if self.decimal != plain.decimal:
            words.append("decimal commas")
        if self.quote != plain.quote:
            words.append("texts in single quotes")
        if self.encoding != plain.encoding:
            words.append(f"encoding {self.encoding}")
        return ", ".join(words)


def find_encoding(head: bytes, rest: IO[bytes] | None = None) -> str:
    """Return UTF-8 where the bytes are, else Windows-1252, in which many files are.

    Files from Western Europe that are no UTF-8 are nearly always this, of which Latin-1
    is a part as far as letters go.
    """
    if head[:2] in _MARKS:
        return _MARKS[head[:2]]
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        decoder.decode(head)
        while rest is not None and (part := rest.read(2**20)):
            decoder.decode(part)
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def find_spelling(
    head: bytes,
    encoding: str,
    separator: str | None = None,
    decimal: str | None = None,
    expected: str = ",",
) -> Spelling:
    """Find out how cells are written, as far as it is not said.

    `head` are the first bytes of a file, and `expected` the separator where its lines
    do not tell.
    """
    text = head.decode("utf-8-sig" if encoding == "utf-8" else encoding, "ignore")
    lines = text.splitlines(keepends=True)
    if len(head) >= HEAD and len(lines) > 2:
        # The last line was cut.
        lines.pop()
    seps = _candidates(separator, expected, lines)
    merits = {
        (sep, quote): _merit(_rows(lines, sep, quote))
        for sep in seps
        for quote in _quotes(lines, sep)
    }
    sep, quote = max(merits, key=lambda pair: merits[pair])
    if merits[sep, quote][0] == 0 and separator is None:
        # One column, or lines that do not agree: errors are those of the usual.
        sep, quote = expected, '"'
    if decimal is None:
        rows = list(islice(_rows(lines, sep, quote), 1, _MOST_ROWS))
        decimal = _find_decimal(rows, sep)
    return Spelling(sep, decimal, encoding, quote)


def _candidates(separator: str | None, expected: str, lines: list[str]) -> list[str]:
    if separator is not None:
        return [separator]
    if expected != "," and lines and expected in lines[0]:
        return [expected]
    return list(_SEPARATORS)


def _quotes(lines: list[str], separator: str) -> tuple[str, ...]:
    """Return single quotes too where they open cells and nothing is in double ones."""
    text = "".join(lines)
    opens = text.startswith("'") or f"{separator}'" in text or "\n'" in text
    return ('"', "'") if opens and '"' not in text else ('"',)


def _rows(lines: list[str], separator: str, quote: str) -> Iterator[list[str]]:
    reader = csv.reader(
        iter(lines), delimiter=separator, quotechar=quote, skipinitialspace=True
    )
    try:
        yield from filter(None, reader)
    except csv.Error:
        return


def _merit(rows: Iterator[list[str]]) -> tuple[float, int, int]:
    """Return the share of rows with as many cells as names, names, and bare cells."""
    header = next(rows, [])
    if len(header) < 2:
        return 0.0, 0, 0
    part = list(islice(rows, _MOST_ROWS))
    fit = sum(len(row) == len(header) for row in part)
    # Quotes that were taken for letters are left in the cells.
    n_quoted = sum(cell[:1] == "'" == cell[-1:] for row in part for cell in row)
    return (round(fit / len(part), 1) if part else 1.0), len(header), -n_quoted


def _find_decimal(rows: list[list[str]], separator: str) -> str:
    """Return the mark that more columns of numbers cannot do without."""
    votes = {",": 0, ".": 0}
    n_maybe = 0
    for cells in _columns(rows):
        numbers = [_SIGNS.sub("", cell) for cell in cells]
        if sum(map(bool, map(_NUMBER_LIKE.fullmatch, numbers))) < 0.6 * len(numbers):
            continue
        for mark, certain in _CERTAIN.items():
            votes[mark] += any(map(certain.fullmatch, numbers))
        n_maybe += any(map(_MAYBE.fullmatch, numbers))
    if votes[","] == votes["."] == 0:
        # Where commas are for decimals, cells are between semicolons.
        return "," if n_maybe and separator == ";" else "."
    return "," if votes[","] > votes["."] else "."


def _columns(rows: Iterable[list[str]]) -> Iterator[list[str]]:
    """Yield the cells of each column that are not empty."""
    parts = list(rows)
    for k in range(max(map(len, parts), default=0)):
        cells = [row[k].strip() for row in parts if k < len(row)]
        if known := [cell for cell in cells if cell]:
            yield known
