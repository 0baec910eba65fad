"""How text files are written, detected from their first lines.

Separator and quote are those under which the lines have as many cells as the line of
names. The decimal mark is the one that numbers cannot do without: ``3,75`` and
``0,125`` have a decimal comma, ``1,250`` alone may be either. With the standard library
alone, so that small files are read at once.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from steelyard.exceptions import ParameterError

MISSING_VALUES = ("NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "<NA>", "?")
"""Cells that are missing in every column, besides empty ones."""

LATIN = "cp1252"
"""The usual encoding of text that is not UTF-8."""

HEAD = 2**18
"""Bytes that separator, quote and decimal mark are detected from."""

USUAL = {"csv": ",", "tsv": "\t", "txt": " "}
"""Default separators of the formats, if lines do not show one."""

_CURRENCIES = ("EUR", "USD", "GBP", "CHF", "JPY", "INR")
CURRENCY = rf"[$€£¥₹]|(?:{'|'.join(_CURRENCIES)})"
UNIT = r"[A-Za-zµμ°Ω][A-Za-zµμΩ/]{0,7}[23²³]?"
"""Letters behind numbers."""

GROUPS = " \u00a0\u202f'\u2019"
"""Thousands separators, besides the comma or point that is not the decimal mark."""

_NUMBER_LIKE = re.compile(
    rf"[-+\u2212]?\d[\d.,{GROUPS}]*(?:[eEdD][-+]?\d+)?|[-+]?[.,]\d+"
)
_SIGNS = re.compile(
    rf"^\(?[-+\u2212]?(?:{CURRENCY})?\s*|\s*(?:{CURRENCY}|%|(?<=[\d. ]){UNIT})?\)?$"
)
# A later one of equal merit gives way: commas are in names of columns too.
_SEPARATORS = ("\t", ";", "|", ",")
_BOMS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_NAMES = {"\t": "tabs", ";": "semicolons", "|": "vertical bars", ",": "commas"}
_NAMES[" "] = "blanks"
DECIMALS = {".": "points", ",": "commas"}
# What Excel writes and reads above the names.
_SEPARATOR_LINE = re.compile(r"\ufeff?\"?sep=(.)\"?\s*")

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
# Nobody states amounts of money to three decimals.
_MAYBE_MONEY = re.compile(r"[1-9]\d{0,2}\.\d{3}")
# Programs write whole numbers so in columns with missing cells, whatever the mark.
_WHOLE = re.compile(r"\d+\.0")

# Rows that are examined, and lines above them.
_MAX_ROWS, _MAX_TITLES = 500, 50
# Share of the rows below titles, or with row names, that have the usual width.
_MIN_REGULAR_SHARE = 0.9
_CELL_NUMBER = re.compile(r"[-+\u2212(]?[\d.,' ]*\d[\d.,%)]*")


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
    skip: int = 0
    """Lines, or rows of a sheet, above the table."""

    comment: str = ""
    """First characters of lines that are left out."""

    no_header: bool = False
    """Whether there are no names of columns."""

    sheet: str = ""
    """The sheet of a spreadsheet, the first if empty."""

    @property
    def empty(self) -> tuple[str, ...]:
        """Cells that are missing in every column."""
        return ("", *self.missing_values)

    @property
    def reading(self) -> dict[str, Any]:
        """The part that a model keeps."""
        names = ("separator", "decimal", "thousands", "missing_values")
        return {name: getattr(self, name) for name in names}

    def in_words(
        self,
        asked: Mapping[str, Any] = {},
        usual: str = ",",
        like: Mapping[str, Any] = {},
    ) -> str:
        """Describe what differs from a plain CSV file and was not given by options.

        That includes a decimal mark that differs from the file of a model (`like`).

        >>> CsvDialect(";", ",").in_words()
        'cells between semicolons, decimal commas'
        """
        words = {
            "separator": f"cells between {_NAMES.get(self.separator, self.separator)}",
            "decimal": f"decimal {DECIMALS[self.decimal]}",
            "quote": "texts in single quotes",
            "encoding": f"encoding {self.encoding}",
        }
        plain = CsvDialect(separator=usual if usual != " " else ",")
        of_model = like.get("decimal", self.decimal)
        if of_model != self.decimal:
            words["decimal"] += f" (the file of the model had {DECIMALS[of_model]})"
            plain = replace(plain, decimal=of_model)
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
    skip: int | None = None,
    comment: str | None = None,
    no_header: bool = False,
    sheet: str | None = None,
) -> dict[str, Any]:
    """Return the checked options of a file; ``tab`` and ``none`` are names of marks."""
    if skip is not None and (type(skip) is not int or skip < 0):
        raise ParameterError(f"`skip` must be a number of lines. Got {skip!r}.")
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
    if marks["decimal"] is None:
        marks["decimal"] = {".": ",", ",": "."}.get(marks["thousands"] or "")
    if encoding is not None:
        try:
            encoding = codecs.lookup(encoding).name
        except LookupError:
            raise ParameterError(f"There is no encoding {encoding!r}.") from None
    missing = None if missing_values is None else tuple(missing_values)
    top = {"skip": skip, "comment": comment or None, "no_header": no_header or None}
    marks |= {"encoding": encoding, "sheet": sheet or None}
    return {**marks, "missing_values": missing, **top}


def missing_words(
    words: Iterable[str] | None,
) -> tuple[list[str] | None, dict[str, list[str]]]:
    """Return words for missing cells of all columns, and those of single columns.

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
    """Return the codec of a file; that of UTF-8 drops a byte-order mark."""
    return "utf-8-sig" if encoding == "utf-8" else encoding


def find_encoding(head: bytes) -> str:
    """Return UTF-8 if the bytes are valid, else Windows-1252.

    Files from Western Europe that are not UTF-8 nearly always are; Latin-1 has the same
    letters.
    """
    if head[:2] in _BOMS:
        return _BOMS[head[:2]]
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return LATIN
    return "utf-8"


def find_dialect(
    head: bytes,
    asked: Mapping[str, Any],
    usual: str = ",",
    like: Mapping[str, Any] = {},
) -> CsvDialect:
    """Detect how the cells of a file are written, from its first ``HEAD`` bytes.

    `asked` are options from ``asked_dialect``, `usual` is the separator if lines do not
    show one, and `like` describes the file of a model: numbers are written as there if
    the lines leave it open.
    """
    fields = {name: value for name, value in asked.items() if value is not None}
    fields.setdefault("encoding", find_encoding(head))
    fields.setdefault("missing_values", like.get("missing_values", MISSING_VALUES))
    lines, separator = first_lines(head, CsvDialect(**fields)), asked.get("separator")
    if separator is None and lines and (line := _SEPARATOR_LINE.fullmatch(lines[0])):
        separator = line[1]
    tops = {
        (sep, quote): top_of(
            lines, CsvDialect(**fields | {"separator": sep, "quote": quote})
        )
        for sep in _candidates(separator, usual, lines)
        for quote in _quotes(lines, sep)
    }
    merits = {pair: _merit(*top) for pair, top in tops.items()}
    sep, quote = max(merits, key=lambda pair: merits[pair])
    if merits[sep, quote][0] == 0 and separator is None:
        # One column, or irregular lines: errors are those of the usual separator.
        sep, quote = like.get("separator", usual if usual != " " else ","), '"'
    if asked.get("decimal") is None:
        _, rows = tops.get((sep, quote), (Top(), []))
        first = 0 if fields.get("no_header") else 1
        below = rows[first : first + _MAX_ROWS - 1]
        marks = _marks_of(below, {"", *fields["missing_values"]})
        mark = like.get("decimal")
        # That of a model's file is a guess if separators differ.
        if like.get("separator", sep) == sep:
            fields["decimal"] = decimal_of(marks, sep, of_model=mark)
        else:
            fields["decimal"] = decimal_of(marks, sep, guess=mark or ".")
    return CsvDialect(**fields | {"separator": sep, "quote": quote})


def first_lines(head: bytes, dialect: CsvDialect) -> list[str]:
    """Return the first lines of a file, those to skip and comments left out."""
    text = head.decode(codec_of(dialect.encoding), "ignore")
    lines = list(io.StringIO(text, newline=""))
    if len(head) >= HEAD and len(lines) > 2:
        # The last line was cut.
        lines.pop()
    lines = lines[dialect.skip :]
    comment = dialect.comment
    return [x for x in lines if not x.startswith(comment)] if comment else lines


def _candidates(separator: str | None, expected: str, lines: list[str]) -> list[str]:
    if separator is not None:
        return [separator]
    if expected == " ":
        return [*_SEPARATORS, expected]
    if expected != "," and lines and expected in lines[0]:
        return [expected]
    return list(_SEPARATORS)


def _quotes(lines: list[str], separator: str) -> tuple[str, ...]:
    """Return single quotes too if they open cells and no cell has double ones."""
    text = "".join(lines)
    opens = text.startswith("'") or f"{separator}'" in text or "\n'" in text
    return ('"', "'") if opens and '"' not in text else ('"',)


def _merit(top: Top, rows: list[list[str]]) -> tuple[float, int, int]:
    """Return the share of rows with as many cells as names, names, and bare cells."""
    header, *below = rows[: _MAX_ROWS + 1] or [[]]
    n_cells = len(header) + top.has_row_names
    if n_cells < 2:
        return 0.0, 0, 0
    fit = sum(len(row) == n_cells for row in below)
    # Quotes that were taken for letters are left in the cells.
    n_quoted = sum(cell[:1] == "'" == cell[-1:] for row in below for cell in row)
    return (round(fit / len(below), 1) if below else 1.0), n_cells, -n_quoted


@dataclass
class Marks:
    """Evidence of the decimal mark in the cells of one column."""

    n_known: int = 0
    n_like: int = 0
    """Cells that look like numbers, with whatever marks."""

    certain: set[str] = field(default_factory=set)
    """Marks that a cell cannot do without as decimal marks."""

    is_maybe: bool = False
    """Whether a comma in a cell, or a point in an amount of money, may be either."""

    def add(self, counts: Mapping[str, int]) -> None:
        """Count texts."""
        for text, n in counts.items():
            self.n_known += n
            if text[:1].isalpha() and not text.startswith(_CURRENCIES):
                continue
            number = _SIGNS.sub("", text)
            if _NUMBER_LIKE.fullmatch(number):
                self.n_like += n
                if not _WHOLE.fullmatch(number):
                    of_cell = (m for m, c in _CERTAIN.items() if c.fullmatch(number))
                    self.certain.update(of_cell)
                is_money = re.search(CURRENCY, text) is not None
                maybe = [_MAYBE, _MAYBE_MONEY] if is_money else [_MAYBE]
                self.is_maybe |= any(mark.fullmatch(number) for mark in maybe)

    @property
    def are_numbers(self) -> bool:
        """Whether enough cells are numbers for the column to vote."""
        return self.n_known > 0 and self.n_like >= 0.6 * self.n_known


def decimal_of(
    columns: Iterable[Marks],
    separator: str,
    guess: str = ".",
    of_model: str | None = None,
) -> str:
    """Return the decimal mark of more columns of numbers.

    If no column needs one, it is that of a model's file, if there is a model.
    """
    numbers = [marks for marks in columns if marks.are_numbers]
    votes = Counter(mark for marks in numbers for mark in marks.certain)
    if not votes and of_model is not None:
        return of_model
    if not votes:
        # If commas are for decimals, cells are between semicolons.
        is_maybe = any(marks.is_maybe for marks in numbers)
        return "," if is_maybe and separator == ";" else guess
    return "," if votes[","] > votes["."] else "."


def decimal_in(column: str, dialect: CsvDialect, like: Mapping[str, Any]) -> str:
    """Return the decimal mark of a column of a file, as it is in a model's file."""
    is_alike = like.get("decimal", ".") == dialect.decimal
    decimals = like.get("decimals", {}) if is_alike else {}
    return str(decimals.get(column, dialect.decimal))


def _marks_of(rows: list[list[str]], empty: Set[str]) -> Iterator[Marks]:
    """Yield the evidence of each column of some rows."""
    for k in range(max(map(len, rows), default=0)):
        cells = Counter(row[k].strip() for row in rows if k < len(row))
        marks = Marks()
        marks.add({cell: n for cell, n in cells.items() if cell not in empty})
        yield marks


# ----------------------------------------------------------------- lines above a table


@dataclass(frozen=True)
class Top:
    """The lines above the names of columns, and whether rows have names too."""

    n_lines: int = 0
    """How many lines, blank ones and titles."""

    titles: tuple[str, ...] = ()
    has_row_names: bool = False
    """Whether rows begin with a name that has no column, as R writes them."""

    def in_words(self) -> str:
        """Return a note on the lines that are left out.

        >>> Top(2, ("Penguins", "by island")).in_words()
        "2 lines above the header are skipped, 'Penguins' first"
        """
        n, first = len(self.titles), self.titles[0][:40]
        return (
            f"a line above the header is skipped, {first!r}"
            if n == 1
            else f"{n} lines above the header are skipped, {first!r} first"
        )


def top_of(lines: list[str], dialect: CsvDialect) -> tuple[Top, list[list[str]]]:
    """Return the lines above the names, and some rows from the names on.

    With lines to skip given, no others are taken as titles.
    """
    n_before = int(bool(lines) and _SEPARATOR_LINE.fullmatch(lines[0]) is not None)
    rows, starts, line = [], [], n_before
    reader = csv.reader(
        lines[n_before:],
        delimiter=dialect.separator,
        quotechar=dialect.quote,
        skipinitialspace=True,
    )
    with suppress(csv.Error):
        for row in islice(reader, _MAX_ROWS + _MAX_TITLES):
            if any(map(str.strip, row)):
                rows.append(row)
                starts.append(line)
            line = n_before + reader.line_num
    if not rows:
        return Top(n_before), []
    may_skip = not dialect.skip and not dialect.no_header
    n_titles = first_names(rows) if may_skip else 0
    titles = (dialect.separator.join(filter(None, row)) for row in rows[:n_titles])
    below = rows[n_titles:]
    has_row_names = may_skip and _have_row_names(below)
    top = Top(starts[n_titles], tuple(map(str.strip, titles)), has_row_names)
    return top, below


def first_names(rows: Sequence[Sequence[Any]]) -> int:
    """Return how many of the first rows are titles: narrow, with names below them."""
    if len(rows) < 3:
        return 0
    width, _ = max(Counter(map(len, rows)).items(), key=lambda e: (e[1], e[0]))
    for k, row in enumerate(rows[:_MAX_TITLES]):
        if _is_title(row, width):
            continue
        below = rows[k + 1 :]
        is_regular = _share_of(below, width) >= _MIN_REGULAR_SHARE
        return k if k and len(row) == width and is_regular and _are_names(row) else 0
    return 0


def _is_title(row: Sequence[Any], width: int) -> bool:
    n_filled = sum(_is_filled(cell) for cell in row)
    is_narrow = len(row) < width - 1 or (len(row) < width and n_filled == 1)
    is_narrow |= len(row) < width and not _are_names(row)
    is_narrow |= len(row) != width and str(row[0]).startswith("#")
    # Names of groups of columns are above some of them.
    is_narrow |= n_filled <= width // 2 and width > 2 and not _has_numbers(row)
    return is_narrow or (n_filled <= 1 and width > 2)


def _is_filled(cell: Any) -> bool:
    return cell is not None and bool(str(cell).strip())


def _are_names(row: Sequence[Any]) -> bool:
    """Whether cells may be names of columns: filled, distinct, and no numbers."""
    texts = [str(cell).strip() for cell in row if _is_filled(cell)]
    are_distinct = len(set(texts)) == len(texts)
    return len(texts) > len(row) // 2 and are_distinct and not _has_numbers(row)


def _has_numbers(row: Sequence[Any]) -> bool:
    return any(_CELL_NUMBER.fullmatch(str(cell).strip()) for cell in row)


def _have_row_names(rows: Sequence[list[str]]) -> bool:
    """Whether rows begin with a name that has no column, as R writes them."""
    n, below = len(rows[0]) + 1, rows[1:_MAX_ROWS]
    if not below or _share_of(below, n) < _MIN_REGULAR_SHARE:
        return False
    full = [row for row in below if len(row) == n]
    first = {row[0].strip() for row in full}
    # Otherwise lines end with a separator.
    return len(first) == len(full) and any(row[-1].strip() for row in full)


def _share_of(rows: Sequence[Sequence[Any]], width: int) -> float:
    return sum(len(row) == width for row in rows) / max(len(rows), 1)
