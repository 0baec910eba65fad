"""Numbers as people write them: decimal commas, thousands, currencies, units.

Counts of the cells of a column add up over blocks and files, so that a column is judged
by all its cells. With the standard library alone.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from steelyard._common.text import counted, listed
from steelyard.io.dates import DateTally, date_note
from steelyard.io.dialect import CURRENCY, DECIMALS, GROUPS, UNIT, Marks

_BLANK_WORDS = frozenset(
    "- -- --- . .. ? unknown unk missing none nil na n/a n.a. n.a nan null #n/a #na "
    "#value! #div/0!".split()
)
"""Words for a missing number in any column, in lower case."""

# Text among numbers is missing if it is rare, of few kinds, and the numbers are a
# measurement: 0, 1, 2 and 3+ are categories.
_MAX_TEXT_SHARE, _MAX_TEXT_KINDS, _MAX_TINY_TEXT_SHARE = 0.1, 5, 0.01
_MIN_MEASURED = 10

# The first cells suffice to distinguish text from numbers in nearly all columns.
_FIRST_CELLS = 200

# Distinct texts that are no numbers, counted separately.
_MAX_TEXTS = 10_000

_CURRENCY = re.compile(CURRENCY)
ANY_UNIT = "any unit"


class Number(NamedTuple):
    """A number, and how it was written."""

    value: float
    sign: str = ""
    """A currency, percent sign or unit."""

    form: str = ""
    """A mark of thousands, ``()`` for brackets of a negative number, D exponents."""


@dataclass
class Tally:
    """Counts of numbers in the cells of a column, read with one decimal mark."""

    n_numbers: int = 0
    distinct: set[float] = field(default_factory=set)
    """Some of the numbers: enough to call the column a measurement."""

    wrong: Counter[str] = field(default_factory=Counter)
    """Cells that are no numbers, and how often they occur."""

    signs: Counter[str] = field(default_factory=Counter)
    """Currency and percent signs, and units."""

    forms: Counter[str] = field(default_factory=Counter)
    """Marks of thousands, brackets and D exponents."""

    def add(self, counts: Mapping[str, int], parsed: Mapping[str, Number]) -> None:
        """Count texts; those that are numbers are in ``parsed``."""
        for text, n in counts.items():
            number = parsed.get(text)
            if number is None:
                is_counted = text in self.wrong or len(self.wrong) < _MAX_TEXTS
                self.wrong[text if is_counted else "…"] += n
                continue
            self.n_numbers += n
            if number.sign:
                self.signs[number.sign] += n
            if number.form:
                self.forms[number.form] += n
            self.add_distinct([number.value])

    def add_distinct(self, numbers: Iterable[float]) -> None:
        """Note some of the numbers."""
        if len(self.distinct) < _MIN_MEASURED:
            self.distinct.update(numbers)

    def is_numeric(self) -> bool:
        """Whether all cells but a few are numbers."""
        if not self.n_numbers or not self._are_comparable():
            return False
        others = {text: n for text, n in self.wrong.items() if not is_blank(text)}
        if not others:
            return True
        share = sum(others.values()) / (self.n_numbers + self.wrong.total())
        is_few = share <= _MAX_TEXT_SHARE and len(others) <= _MAX_TEXT_KINDS
        is_measured = len(self.distinct) >= _MIN_MEASURED
        return is_measured and (is_few or share <= _MAX_TINY_TEXT_SHARE)

    @property
    def unit(self) -> str:
        """The common unit of all numbers, empty if there is none."""
        return next((s for s in self.signs if _CURRENCY.fullmatch(s) is None), "")

    def _are_comparable(self) -> bool:
        """Whether numbers have one unit: not dollars and euros, nor percent and shares.

        Numbers that are all in brackets are names, and so are few with a letter.
        """
        if len(self.signs) > 1 or self.forms["()"] == self.n_numbers:
            return False
        if self.unit not in ("", "%") and len(self.distinct) < _MIN_MEASURED:
            return False
        return not self.unit or self.signs[self.unit] == self.n_numbers

    def notes(self, name: str) -> list[str]:
        """Return notes on what was left out and what was treated as missing."""
        notes = [f"{name}: numbers, {sign!r} left out" for sign in self.signs]
        if self.forms["()"]:
            notes.append(f"{name}: numbers, negative if in brackets")
        if self.forms["D"]:
            notes.append(f"{name}: numbers, with exponents after D")
        return [*notes, exceptions(name, self.wrong)] if self.wrong else notes


@dataclass
class ColumnTally:
    """Counts of the cells of a column of a text file, by which its kind is decided."""

    decimal: str
    thousands: str
    others: str = ".,"
    """Decimal marks that the column may have in place of that of the file."""

    marks: Marks = field(default_factory=Marks)
    has_text: bool = False
    """Whether a cell is no plain number."""

    are_whole: bool = True
    """Whether all plain numbers are whole."""

    is_large: bool = False
    """Whether a whole number is so large that a float may not be the same."""

    width: int | None = None
    """How many digits all cells have; 0 if that differs, or some are none."""

    has_leading_zeros: bool = False
    dates: DateTally = field(default_factory=DateTally)
    n_first: int = 0
    """How many of the first cells were seen, and how many are numbers."""

    first_numbers: Counter[str] = field(default_factory=Counter)
    by_mark: dict[str, Tally] = field(init=False)

    def __post_init__(self) -> None:
        self.by_mark = {mark: Tally() for mark in (self.decimal, *self.others)}

    def add_numbers(self, n: int, some: Iterable[float], are_whole: bool) -> None:
        """Count plain numbers, whole ones or with decimal marks."""
        self.are_whole &= are_whole
        marks = self.by_mark if are_whole else [self.decimal]
        some = list(some)
        for mark in marks:
            self.by_mark[mark].n_numbers += n
            self.by_mark[mark].add_distinct(some)
        self.marks.n_known += n
        self.marks.n_like += n
        self._add_first(n, dict.fromkeys(marks, n))

    def add_texts(self, counts: Mapping[str, int], first: Sequence[str]) -> None:
        """Count texts; ``first`` are those of the first rows, in order."""
        self.has_text = True
        self.marks.add(counts)
        if self.dates.is_possible:
            self.dates.add(counts, is_blank)
        for text in counts:
            if self.width == 0:
                break
            is_digits = text.isascii() and text.isdigit()
            if is_digits or not is_blank(text):
                self.add_width(len(text) if is_digits else 0, text.startswith("0"))
        first, n_numbers = first[: max(_FIRST_CELLS - self.n_first, 0)], {}
        for mark, tally in self.by_mark.items():
            parsed = read_numbers(counts, mark, self.thousands, ANY_UNIT)
            n_numbers[mark] = sum(text in parsed for text in first)
            tally.add(counts, parsed)
        self._add_first(len(first), n_numbers)

    def add_width(self, width: int, is_zero_first: bool) -> None:
        """Note how many digits cells have, 0 if they differ."""
        self.width = width if self.width in (None, width) else 0
        self.has_leading_zeros |= is_zero_first

    def _add_first(self, n: int, numbers: Mapping[str, int]) -> None:
        room = max(_FIRST_CELLS - self.n_first, 0)
        self.n_first += min(n, room)
        for mark, count in numbers.items():
            self.first_numbers[mark] += min(count, room)

    @property
    def are_names(self) -> bool:
        """Whether most of the first cells are text: the others need not be counted."""
        is_enough = self.n_first >= _FIRST_CELLS and not self.dates.is_possible
        return is_enough and 2 * max(self.first_numbers.values()) < self.n_first

    @property
    def mark(self) -> str:
        """The decimal mark of the column.

        It is not that of the file if a cell needs the other one, and none that of the
        file, or if most cells are numbers with the other one alone: parts of a file may
        come from another program.
        """
        other = next((m for m in self.by_mark if m != self.decimal), self.decimal)
        usual, others = self.by_mark[self.decimal], self.by_mark[other]
        n_cells = usual.n_numbers + usual.wrong.total()
        is_other = 2 * usual.n_numbers < n_cells and others.n_numbers > usual.n_numbers
        return other if is_other or self.marks.certain == {other} else self.decimal

    @property
    def tally(self) -> Tally:
        """The counts with that mark."""
        return self.by_mark[self.mark]

    def notes(self, name: str, decimal: str, order: str | None) -> list[str]:
        """Return notes on how cells are read, in a file with some decimal mark.

        ``order`` is that of days and months in a column of dates.
        """
        if self.are_codes:
            n_digits = f"all cells have {self.width} digits, and some begin with 0"
            return [f"{name}: names, since {n_digits}"]
        if order is not None:
            return [date_note(name, order, self.dates.has_time)]
        if not self.has_text or not self.is_numeric():
            return []
        if self.mark == decimal:
            return self.tally.notes(name)
        note = f"{name}: numbers, with decimal {DECIMALS[self.mark]}"
        return [note, *self.tally.notes(name)]

    @property
    def are_codes(self) -> bool:
        """Whether cells are codes of digits, such as zip codes.

        All have one length, and some begin with a zero, which numbers would lose.
        """
        return (self.width or 0) > 1 and self.has_leading_zeros

    def is_numeric(self) -> bool:
        """Whether the column is numeric."""
        if self.are_codes:
            return False
        is_text = 2 * self.first_numbers[self.mark] < self.n_first
        return not is_text and self.tally.is_numeric()


def column_reading(
    columns: Mapping[str, ColumnTally], orders: Mapping[str, str | None], decimal: str
) -> dict[str, dict[str, str]]:
    """Return what a model keeps of how columns are read, in files with a decimal mark.

    ``orders`` are those of days and months in columns of dates.
    """
    numbers = {n: t for n, t in columns.items() if t.has_text and t.is_numeric()}
    return {
        "decimals": {n: t.mark for n, t in numbers.items() if t.mark != decimal},
        "dates": {name: order for name, order in orders.items() if order},
        "units": {n: t.tally.unit for n, t in numbers.items() if t.tally.unit},
    }


def exceptions(name: str, wrong: Counter[str], what: str = "numbers") -> str:
    """Return a note on the cells in a column of numbers or dates that are no such.

    >>> exceptions("mass", Counter({"unknown": 3, "n/a": 1}))
    "mass: numbers, except 4 cells: 'unknown' (3), 'n/a' (1); treated as missing"
    """
    texts = [f"{text!r} ({count})" for text, count in wrong.most_common(5)]
    cells = f"{counted(wrong.total(), 'cell')}: {listed(texts, 4)}"
    return f"{name}: {what}, except {cells}; treated as missing"


def is_blank(text: str) -> bool:
    """Whether a text means a missing number in any column."""
    return text.lower() in _BLANK_WORDS


def read_numbers(
    texts: Iterable[str], decimal: str = ".", thousands: str = "", unit: str = ""
) -> dict[str, Number]:
    """Read texts as numbers, whatever thousands separators they have.

    `thousands` is the separator to allow; empty for all, ``"none"`` for none. `unit`
    may follow the number; ``ANY_UNIT`` allows all.

    >>> numbers = read_numbers(["1.250,5 €", "3,75 €", "much"], ",")
    >>> {text: number.value for text, number in numbers.items()}
    {'1.250,5 €': 1250.5, '3,75 €': 3.75}
    """
    pattern, parsed = _pattern(decimal, thousands, unit), {}
    for text in texts:
        is_bracketed = text.startswith("(") and text.endswith(")")
        inner = text[1:-1] if is_bracketed else text
        if match := pattern.fullmatch(inner):
            parsed[text] = _number(match, inner, decimal, is_bracketed)
        elif text.lower().lstrip("+-") in ("inf", "infinity"):
            parsed[text] = Number(float(text))  # tables refuse it with a message
    return parsed


def _number(
    match: re.Match[str], text: str, decimal: str, is_bracketed: bool
) -> Number:
    digits, form = match["grouped"] or match["plain"], "()" if is_bracketed else ""
    before = text.split(digits)[0]
    if match["grouped"]:
        digits, form = digits.replace(match["mark"], ""), form or match["mark"]
    elif match["fortran"]:
        digits, form = digits.lower().replace("d", "e"), form or "D"
    value = float(digits.replace(decimal, "."))
    is_negative = "-" in before or text.startswith("\u2212")
    sign = match["before"] or match["after"] or ""
    return Number(-value if is_negative != is_bracketed else value, sign, form)


@functools.lru_cache
def _pattern(decimal: str, thousands: str, unit: str) -> re.Pattern[str]:
    d = re.escape(decimal)
    marks = GROUPS + ("." if decimal == "," else ",") if not thousands else thousands
    mark = "(?!)" if thousands == "none" else f"[{re.escape(marks)}]"
    grouped = rf"[1-9]\d{{0,2}}(?P<mark>{mark})\d{{3}}(?:(?P=mark)\d{{3}})*(?:{d}\d*)?"
    plain = rf"(?:\d+(?:{d}\d*)?|{d}\d+)(?:[eE][-+]?\d+)?"
    # Without a decimal mark it may be a code.
    fortran = rf"\d*{d}\d*[dD][-+]?\d+"
    units = UNIT if unit == ANY_UNIT else re.escape(unit) or "(?!)"
    return re.compile(
        rf"[-+\u2212]?\s*(?P<before>{CURRENCY})?\s*[-+]?"
        rf"(?:(?P<grouped>{grouped})|(?P<plain>(?P<fortran>{fortran})|{plain}))"
        rf"\s*(?P<after>{CURRENCY}|%|{units})?"
    )
