"""How text files are written, found out from their first lines.

Separator and quote are those under which the lines have as many cells as the line of
names. The decimal mark is the one that numbers cannot do without: ``3,75`` and
``0,125`` have a decimal comma, ``1,250`` alone may be either. With the standard library
alone, so that small files are read at once.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from steelyard.exceptions import ParameterError

MISSING_VALUES = ("NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "<NA>", "?")
"""Cells that are missing in every column, besides empty ones."""

LATIN = "cp1252"
"""What text that is not UTF-8 nearly always is."""

HEAD = 2**18
"""Bytes that are looked at for separator, quote and decimal mark."""

CURRENCY = r"[$€£¥₹]|(?:EUR|USD|GBP|CHF|JPY|INR)"
GROUPS = " \u00a0\u202f'\u2019"
"""Thousands separators, besides the comma or point that is not the decimal mark."""

_NUMBER_LIKE = re.compile(
    rf"[-+\u2212]?\d[\d.,{GROUPS}]*(?:[eE][-+]?\d+)?|[-+]?[.,]\d+"
)
_SIGNS = re.compile(rf"^(?:{CURRENCY})\s*|\s*(?:{CURRENCY}|%)$|^[-+\u2212]")
_MOST_ROWS = 500
# A later one of equal merit gives way: commas are in names of columns too.
_SEPARATORS = ("\t", ";", "|", ",")
_BOMS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_NAMES = {"\t": "tabs", ";": "semicolons", "|": "vertical bars", ",": "commas"}

# A comma with anything but three digits after it, or after a leading zero, or after a
# point or four digits, separates no thousands. The same of a point.
_CERTAIN = {
    mark: re.compile(
        rf"(?:\d*{m}(?:\d\d?|\d{{4,}})|0{m}\d+|\d{{4,}}{m}\d+"
        rf"|\d{{1,3}}(?:{other}\d{{3}})+{m}\d+|\d{{1,3}}(?:{other}\d{{3}}){{2,}})"
    )
    for mark, m, other in ((",", ",", r"\."), (".", r"\.", ","))
}
_MAYBE = re.compile(r"[1-9]\d{0,2},\d{3}")


@dataclass(frozen=True)
class CsvDialect:
    """How cells of text files are written."""

    separator: str = ","
    decimal: str = "."
    thousands: str = ""
    """The thousands separator; empty for any, ``"none"`` for none."""

    encoding: str = "utf-8"
    quote: str = '"'
    missing_values: tuple[str, ...] = MISSING_VALUES

    @property
    def empty(self) -> tuple[str, ...]:
        """Cells that are missing in every column."""
        return ("", *self.missing_values)

    def in_words(self, asked: Mapping[str, Any] = {}, usual: str = ",") -> str:
        """Say what was found other than in a plain CSV file, and not asked for.

        Examples
        --------
        >>> CsvDialect(";", ",").in_words()
        'cells between semicolons, decimal commas'
        """
        words = {
            "separator": f"cells between {_NAMES.get(self.separator, self.separator)}",
            "decimal": "decimal commas",
            "quote": "texts in single quotes",
            "encoding": f"encoding {self.encoding}",
        }
        plain = CsvDialect(separator=usual)
        return ", ".join(
            text
            for name, text in words.items()
            if getattr(self, name) != getattr(plain, name) and asked.get(name) is None
        )


def asked_dialect(
    *,
    separator: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    encoding: str | None = None,
    missing_values: Iterable[str] | None = None,
) -> dict[str, Any]:
    """Return what was said about a file; ``tab`` and ``none`` are words for marks."""
    words = {"\\t": "\t", "tab": "\t", "comma": ",", "point": ".", "space": " "}
    marks = {"separator": separator, "decimal": decimal, "thousands": thousands}
    for option, mark in marks.items():
        marks[option] = mark = words.get(mark or "", mark)
        is_none = option == "thousands" and mark == "none"
        if mark is not None and len(mark) != 1 and not is_none:
            problem = f"`{option}` must be one character. Got {mark!r}."
            raise ParameterError(problem)
    if marks["decimal"] not in (None, ",", "."):
        problem = f"`decimal` must be , or . and not {marks['decimal']!r}."
        raise ParameterError(problem)
    if marks["decimal"] and marks["decimal"] == marks["thousands"]:
        raise ParameterError("`decimal` and `thousands` must differ.")
    if encoding is not None:
        try:
            encoding = codecs.lookup(encoding).name
        except LookupError:
            raise ParameterError(f"There is no encoding {encoding!r}.") from None
    missing = None if missing_values is None else tuple(missing_values)
    return {**marks, "encoding": encoding, "missing_values": missing}


def missing_words(
    words: Iterable[str] | None,
) -> tuple[list[str] | None, dict[str, list[str]]]:
    """Return words for missing cells of all columns, and those of single columns.

    Examples
    --------
    >>> missing_words(["-", "age=-999", "age=999"])
    (['-'], {'age': ['-999', '999']})
    >>> missing_words(["age=-999"])
    (None, {'age': ['-999']})
    """
    if words is None:
        return None, {}
    plain: list[str] = []
    by_column: dict[str, list[str]] = {}
    for word in words:
        name, _, value = word.rpartition("=")
        if name and value:
            by_column.setdefault(name, []).append(value)
        else:
            plain.append(word)
    return plain if plain or not by_column else None, by_column


def codec_of(encoding: str) -> str:
    """Return what decodes a file: a byte-order mark is no part of the first name."""
    return "utf-8-sig" if encoding == "utf-8" else encoding


def find_encoding(head: bytes) -> str:
    """Return UTF-8 where bytes are, else Windows-1252, in which many files are.

    Files from Western Europe that are no UTF-8 are nearly always this, of which Latin-1
    is a part as far as letters go.
    """
    if head[:2] in _BOMS:
        return _BOMS[head[:2]]
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return LATIN
    return "utf-8"


def find_dialect(head: bytes, asked: Mapping[str, Any], usual: str = ",") -> CsvDialect:
    """Find out how the cells of a file are written, from its first ``HEAD`` bytes.

    `asked` is what was said, as ``asked_dialect`` has it, and `usual` the separator
    where lines do not tell.
    """
    found = {name: value for name, value in asked.items() if value is not None}
    found["encoding"] = asked.get("encoding") or find_encoding(head)
    lines = _lines(head, codec_of(found["encoding"]))
    merits = {
        (sep, quote): _merit(_rows(lines, sep, quote))
        for sep in _candidates(asked.get("separator"), usual, lines)
        for quote in _quotes(lines, sep)
    }
    sep, quote = max(merits, key=lambda pair: merits[pair])
    if merits[sep, quote][0] == 0 and asked.get("separator") is None:
        # One column, or lines that do not agree: errors are those of the usual.
        sep, quote = usual, '"'
    if asked.get("decimal") is None:
        rows = list(islice(_rows(lines, sep, quote), 1, _MOST_ROWS))
        found["decimal"] = decimal_of(_marks(rows), sep)
    return CsvDialect(**{**found, "separator": sep, "quote": quote})


def _lines(head: bytes, codec: str) -> list[str]:
    lines = head.decode(codec, "ignore").splitlines(keepends=True)
    if len(head) >= HEAD and len(lines) > 2:
        # The last line was cut.
        lines.pop()
    return lines


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


@dataclass
class Marks:
    """What the numbers of a column tell about the decimal mark."""

    n_known: int = 0
    n_like: int = 0
    """Cells that look like numbers, with whatever marks."""

    certain: set[str] = field(default_factory=set)
    """Marks that a cell cannot do without as decimal marks."""

    is_maybe: bool = False
    """Whether a comma in a cell may be either."""

    def add(self, counts: Mapping[str, int]) -> None:
        """Count texts."""
        for text, n in counts.items():
            number = _SIGNS.sub("", text)
            self.n_known += n
            if _NUMBER_LIKE.fullmatch(number):
                self.n_like += n
                self.certain |= {m for m, c in _CERTAIN.items() if c.fullmatch(number)}
                self.is_maybe |= _MAYBE.fullmatch(number) is not None

    @property
    def are_numbers(self) -> bool:
        """Whether the column has a say."""
        return self.n_known > 0 and self.n_like >= 0.6 * self.n_known


def decimal_of(columns: Iterable[Marks], separator: str, guess: str = ".") -> str:
    """Return the mark that more columns of numbers cannot do without."""
    numbers = [marks for marks in columns if marks.are_numbers]
    votes = Counter(mark for marks in numbers for mark in marks.certain)
    if not votes:
        # Where commas are for decimals, cells are between semicolons.
        is_maybe = any(marks.is_maybe for marks in numbers)
        return "," if is_maybe and separator == ";" else guess
    return "," if votes[","] > votes["."] else "."


def _marks(rows: list[list[str]]) -> Iterator[Marks]:
    """Yield what each column of some rows tells."""
    for k in range(max(map(len, rows), default=0)):
        cells = Counter(row[k].strip() for row in rows if k < len(row))
        marks = Marks()
        marks.add({cell: n for cell, n in cells.items() if cell})
        yield marks
