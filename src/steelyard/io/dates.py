"""Dates as people write them, and the order of day and month.

With the standard library alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_MONTH = rf"({'|'.join(_MONTHS)})[a-z]*\.?"
_TIME = re.compile(
    r"[T ]\s*(\d\d?):(\d\d)(?::(\d\d)(?:[.,](\d{1,6})\d*)?)?\s*([AP]M)?"
    r"\s*(?:Z|UTC|[-+]\d\d:?\d\d)?",
    re.IGNORECASE,
)
_YEAR_FIRST = re.compile(r"(\d{4})([-/.])(\d\d?)\2(\d\d?)")
_YEAR_LAST = re.compile(r"(\d\d?)([-/.])(\d\d?)\2(\d{4})|(\d\d)([-/.])(\d\d)\6(\d\d)")
_NAMED = re.compile(
    rf"(\d\d?)[-. ]+{_MONTH}[-, ]+(\d{{4}})|{_MONTH} +(\d\d?),? +(\d{{4}})",
    re.IGNORECASE,
)
# Years of two digits, as POSIX has them.
_CENTURY = 69

ORDERS = {"dmy": "day first", "mdy": "month first", "ymd": "year first"}
"""Orders of days, months and years."""


@dataclass(frozen=True)
class WrittenDate:
    """A date before it is known which of two numbers is the day."""

    year: int
    first: int
    second: int
    order: str
    """``"dmy"`` or ``"ymd"`` if the text leaves no doubt, else empty."""

    mark: str
    time: tuple[int, int, int, int] | None

    def read(self, order: str) -> datetime | None:
        """Return the date and time, None if there is no such day."""
        month, day = self.first, self.second
        if (self.order or order) == "dmy":
            month, day = day, month
        try:
            return datetime(self.year, month, day, *(self.time or ()))
        except ValueError:
            return None


def written_date(text: str) -> WrittenDate | None:
    """Return the parts of a date, with or without a time; None if the text is no date.

    >>> written_date("31.1.2024 14:30").read("dmy").isoformat()
    '2024-01-31T14:30:00'
    >>> written_date("Jan 31, 2024").read("").isoformat()
    '2024-01-31T00:00:00'
    """
    for pattern in (_YEAR_FIRST, _YEAR_LAST, _NAMED):
        if match := pattern.match(text):
            break
    else:
        return None
    rest, time = text[match.end() :], None
    if rest:
        if (clock := _TIME.fullmatch(rest)) is None:
            return None
        time = _time(clock)
    if pattern is _YEAR_FIRST:
        year, mark, first, second = match.groups()
        return WrittenDate(int(year), int(first), int(second), "ymd", mark, time)
    if pattern is _NAMED:
        day, name, year = (part for part in match.groups() if part is not None)
        if not day[0].isdigit():
            day, name = name, day
        month = _MONTHS.index(name.lower()) + 1
        return WrittenDate(int(year), month, int(day), "ymd", "", time)
    parts = [part for part in match.groups() if part is not None]
    year = int(parts[3])
    if len(parts[3]) == 2:
        year += 1900 if year >= _CENTURY else 2000
    return WrittenDate(year, int(parts[0]), int(parts[2]), "", parts[1], time)


def _time(clock: re.Match[str]) -> tuple[int, int, int, int]:
    hour = int(clock[1])
    if clock[5]:
        hour = hour % 12 + 12 * (clock[5].lower() == "pm")
    micro = (clock[4] or "").ljust(6, "0")
    return hour, int(clock[2]), int(clock[3] or 0), int(micro)


def read_date(text: str, order: str) -> datetime | None:
    """Return the date and time of a text, None if it is no date.

    >>> read_date("01/02/2024", "mdy").month, read_date("01/02/2024", "dmy").month
    (1, 2)
    """
    date = written_date(text)
    return None if date is None else date.read(order)


def date_note(name: str, order: str, has_time: bool) -> str:
    """Return a note on how a column of dates is read.

    >>> date_note("when", "dmy", False)
    'when: dates, day first, read as days, year, month and weekday'
    """
    last = "month, weekday and hour" if has_time else "month and weekday"
    return f"{name}: dates, {ORDERS[order]}, read as days, year, {last}"


@dataclass
class DateTally:
    """Counts of dates in the cells of a column; they add up over blocks and files."""

    n_dates: int = 0
    is_possible: bool = True
    """Whether all cells so far are dates, or words for missing ones."""

    has_time: bool = False
    largest: tuple[int, int] = (0, 0)
    """Largest first and second numbers, of which one is the day."""

    marks: frozenset[str] = frozenset()

    def add(self, counts: Mapping[str, int], is_blank: Callable[[str], bool]) -> None:
        """Count texts; stop at the first that is neither a date nor missing."""
        for text, n in counts.items():
            date = written_date(text)
            if date is None and is_blank(text):
                continue
            if date is None or not (date.read("dmy") or date.read("mdy")):
                self.is_possible = False
                return
            self.n_dates += n
            self.has_time |= date.time is not None
            if not date.order:
                first, second = self.largest
                self.largest = max(first, date.first), max(second, date.second)
                self.marks |= {date.mark}

    def order(self, usual: str) -> str | None:
        """Return the order of day and month, None if it varies or cells are no dates.

        Cells that leave it open have the usual one.
        """
        if not self.is_possible or not self.n_dates:
            return None
        if not self.marks:
            return "ymd"
        is_late = [number > 12 for number in self.largest]
        if all(is_late):
            return None
        if any(is_late):
            return "dmy" if is_late[0] else "mdy"
        return usual or ("mdy" if self.marks == {"/"} else "dmy")
