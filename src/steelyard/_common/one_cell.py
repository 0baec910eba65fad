"""What a single cell may be, and what is read from it: a code, or a contribution.

Numbers and the texts of numbers are one category, ``1``, ``1.0`` and ``"1"``: the same
file is text to one reader and numbers to another.
With the standard library alone: exported models contain this text.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from numbers import Real
from typing import Any

from steelyard.exceptions import ColumnError

INF = math.inf

_MISSING = ("NoneType", "NAType", "NaTType")

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)
_TRUTH = {"true": True, "false": False}


class _Unknown:
    """A cell of which nothing is known, not even that it is missing."""


DATE_TEXT = re.compile(r"\d{4}-\d\d-\d\d(?:[ T].*)?|\d\d?[./-]\d\d?[./-]\d{4}(?: .*)?")
"""Text that looks like a date."""

DATE_FORM = (
    r" *((?:[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)-[0-9]{2}-[0-9]{2}"
    r"(?:[T ](?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]+)?)?)?)"
    r"(?:Z|[-+][01][0-9](?::?[0-5][0-9])?)? *"
)
"""Text of a date in every export: a day, and a time, whose zone is left out."""

UNKNOWN: Any = _Unknown()


class CellsOf:
    """What cells of a column may be: ``Column`` of a plan, as plain data."""

    def __init__(
        self,
        name: str,
        kind: str,
        cells: str,
        date: str = "",
        part: str = "",
        texts: Iterable[tuple[float, str]] = (),
    ) -> None:
        self.name, self.kind, self.cells = name, kind, cells
        self.date, self.part = date, part
        self.text_of = dict(texts)

    def number(self, cell: Any) -> Any:
        """Return a cell as a float, None if it is missing."""
        if type(cell) is float and -INF < cell < INF:
            return cell
        if cell is UNKNOWN or self._is_missing(cell):
            return cell if cell is UNKNOWN else None
        if isinstance(cell, str) and self.cells == "nothing":
            return UNKNOWN  # all cells were missing at fit: a value never seen
        return self._float(cell)

    def value(self, cell: Any) -> Any:
        """Return a cell as a value that can be looked up, None if it is missing."""
        if cell is UNKNOWN or self._is_missing(cell):
            return cell if cell is UNKNOWN else None
        if isinstance(cell, str) and self.cells in ("text", "nothing"):
            return str(cell)
        if isinstance(cell, str):
            # A truth value is looked up as a number.
            cell = cell if (number := number_in(cell)) is None else number
        if self.cells == "text" and not (isinstance(cell, Real) and self.text_of):
            raise self._refused(cell, "text")
        # Whole numbers as they are: float64 cannot distinguish all of them.
        number = int(cell) if isinstance(cell, int) else self._float(cell)
        if self.cells != "text" or number is None:
            return number
        return self.text_of.get(number, UNKNOWN)

    def _is_missing(self, cell: Any) -> bool:
        return type(cell).__name__ in _MISSING or (
            isinstance(cell, (float, Decimal)) and cell != cell
        )

    def _float(self, cell: Any) -> float | None:
        if isinstance(cell, str) or not isinstance(cell, (Real, Decimal)):
            raise self._refused(cell, "numbers")
        try:
            number = float(cell)
        except OverflowError:
            number = INF
        if number != number:
            return None
        if not -INF < number < INF:
            raise ColumnError(
                f"Column {self.name!r} takes finite numbers, got {number}. Pass None "
                "if it is unknown."
            )
        return number

    def _refused(self, cell: Any, wanted: str) -> ColumnError:
        return ColumnError(
            f"Column {self.name!r} takes {wanted}, got {cell!r} "
            f"({type(cell).__name__}). Pass None if it is unknown."
        )


def date_parts(name: str, cell: Any) -> dict[str, Any] | None:
    """Return days since 1970-01-01 and the parts of a date, or of a text in ISO's form.

    None if the cell is missing, or a number. Times are those of the clock,
    in whatever time zone.

    >>> date_parts("when", "2024-01-05 12:00")
    {'day': 19727.5, 'year': 2024.0, 'month': 1, 'weekday': 5, 'hour': 12.0}
    """
    if isinstance(cell, str):
        match = re.fullmatch(DATE_FORM, cell)
        try:
            # Digits beyond microseconds are cut off, as in exports.
            cell = datetime.fromisoformat(match[1][:26] if match else "")
        except ValueError:
            raise ColumnError(
                f"Column {name!r} takes dates such as '2024-01-31' or "
                f"'2024-01-31T14:30', got {cell!r}. Pass None if it is unknown."
            ) from None
    if not isinstance(cell, date) or cell != cell:
        return None
    hour = getattr(cell, "hour", 0)
    if isinstance(cell, datetime):
        since = cell.replace(tzinfo=None) - datetime(1970, 1, 1)
    else:
        since = cell - date(1970, 1, 1)
    seconds = 86400 * since.days + since.seconds
    return {
        "day": float(1_000_000 * seconds + since.microseconds) / 86_400_000_000,
        "year": float(cell.year),
        "month": cell.month,
        "weekday": cell.isoweekday(),
        "hour": float(hour),
    }


Entry = Callable[[Any], Any]
"""From a cell to its code or contribution."""


def among_values(known: dict[Any, Any], unseen: Any, read: Entry) -> Entry:
    """Return the entry of a cell that is one of some values, or missing, which is None.

    ``read`` makes a value of a cell that is not plainly one.
    """

    def entry(cell: Any) -> Any:
        try:
            return known[cell]
        except (KeyError, TypeError):
            return known.get(read(cell), unseen)

    return entry


def by_spelling(known: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the entry of each text, by the text without blanks at its ends."""
    texts = sorted((v for v in known if isinstance(v, str)), key=len, reverse=True)
    return {text.strip(): known[text] for text in texts}


def one_spelling(values: Iterable[Any], before: Iterable[Any] = ()) -> list[Any]:
    """Return values, of those that differ by blanks at their ends the shortest.

    Those that were there before stay as they are.

    >>> one_spelling(["a ", "b ", "a"]), one_spelling(["a ", "b"], before=[" a"])
    (['a', 'b '], [' a', 'b'])
    """
    given, kept = [*values], [*dict.fromkeys(before)]
    if not any(isinstance(v, str) and v != v.strip() for v in (*given, *kept)):
        return list(dict.fromkeys([*kept, *given]))
    spelled = {value.strip() for value in kept}
    new: dict[str, str] = {}
    for value in sorted(given, key=lambda value: (len(value), value)):
        if value.strip() not in spelled:
            new.setdefault(value.strip(), value)
    return [*kept, *new.values()]


def in_intervals(
    edges: Sequence[float],
    entries: Sequence[Any],
    missing: Any,
    unseen: Any,
    read: Entry,
) -> Entry:
    """Return the entry of a number by the interval it is in, closed on the right.

    ``read`` makes a number of a cell that is not plainly one: None if it is missing.
    """

    def entry(cell: Any) -> Any:
        if type(cell) is not float or not -INF < cell < INF:
            cell = read(cell)
            if cell is None:
                return missing
            if cell is UNKNOWN:
                return unseen
        return entries[bisect_left(edges, cell)]

    return entry


def number_in(text: str) -> float | None:
    """Return the number or truth value that a text states, None if it is neither.

    >>> number_in("07"), number_in("1.50"), number_in("TRUE"), number_in("seven")
    (7, 1.5, True, None)
    """
    text = text.strip()
    if not _NUMBER.fullmatch(text):
        return _TRUTH.get(text.lower())
    number = float(text)
    if not math.isfinite(number):
        return None
    return int(text) if text.lstrip("+-").isdigit() else number


def texts_by_number(values: Iterable[str]) -> dict[float, str]:
    """Return the text of each number, if there is only one that is plain.

    Of several texts the plain one counts: ``"1"`` rather than ``"01"``.

    >>> texts_by_number(["01", "1", "2.0", "003", "03", "red"])
    {1: '1', 2.0: '2.0'}
    """
    by_number: dict[float, list[str]] = {}
    for text in values:
        number = number_in(text)
        if number is not None:
            by_number.setdefault(number, []).append(text)
    for number, texts in by_number.items():
        plain = str(int(number)) if int(number) == number else repr(number)
        by_number[number] = [plain] if plain in texts else texts
    return {number: texts[0] for number, texts in by_number.items() if len(texts) == 1}
