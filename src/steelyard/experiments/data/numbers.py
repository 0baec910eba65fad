"""Numbers as people write them: decimal commas, thousands, currencies, percent."""

from __future__ import annotations

import functools
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard._common.spelling import CURRENCY, GROUPS
from steelyard._common.text import counted

if TYPE_CHECKING:
    import pandas

_BLANK_WORDS = frozenset(
    "- -- --- . .. ? unknown unk missing none nil na n/a n.a. n.a nan null #n/a #na "
    "#value! #div/0!".split()
)
"""Words that say in any column that a number is not known, in lower case."""

# Text among numbers is taken as missing where it is rare, of few kinds, and the numbers
# are a measurement: 0, 1, 2 and 3+ are categories.
_FEW_CELLS, _FEW_KINDS, _VERY_FEW_CELLS = 0.1, 5, 0.01
_MANY_NUMBERS = 10


@dataclass(frozen=True)
class Parsed:
    """The numbers of a column, and what else is in it."""

    values: pandas.Series
    """A number for each cell, missing where there is none."""

    wrong: Counter[str]
    """Cells that are no numbers, and how often they occur."""

    signs: Counter[str]
    """Currency and percent signs that were left out."""

    n_known: int

    def is_numeric(self) -> bool:
        """Whether the column holds numbers, except for a few cells."""
        n_numbers = int(self.values.notna().sum())
        if not n_numbers or not self._has_one_sign(n_numbers):
            return False
        others = {
            text: count for text, count in self.wrong.items() if not is_blank(text)
        }
        if not others:
            return True
        share = sum(others.values()) / self.n_known
        is_few = share <= _FEW_CELLS and len(others) <= _FEW_KINDS
        is_measured = self.values.nunique() >= _MANY_NUMBERS
        return is_measured and (is_few or share <= _VERY_FEW_CELLS)

    def _has_one_sign(self, n_numbers: int) -> bool:
        """Whether amounts compare: not dollars with euros, nor percent with shares."""
        if len(self.signs) > 1:
            return False
        return self.signs.get("%", n_numbers) == n_numbers

    def notes(self, name: str) -> list[str]:
        """Say what was left out and what was taken as missing."""
        notes = []
        for sign in self.signs:
            notes.append(f"{name}: numbers, {sign!r} left out")
        if self.wrong:
            notes.append(exceptions(name, self.wrong))
        return notes


def exceptions(name: str, wrong: Counter[str]) -> str:
    """Say which cells of a column of numbers are none.

    Examples
    --------
    >>> exceptions("mass", Counter({"unknown": 3, "n/a": 1}))
    "mass: numbers, except 4 cells: 'unknown' (3), 'n/a' (1); taken as missing"
    """
    cells = counted(wrong.total(), "cell")
    return f"{name}: numbers, except {cells}: {quoted(wrong)}; taken as missing"


def is_blank(text: str) -> bool:
    """Whether a text says that a number is not known, whatever the column."""
    return text.lower() in _BLANK_WORDS


def quoted(counts: Counter[str], most: int = 4) -> str:
    """List texts with how often they occur, the most frequent ones.

    Examples
    --------
    >>> quoted(Counter({"unknown": 3, "n/a": 1}))
    "'unknown' (3), 'n/a' (1)"
    """
    shown = [f"{text!r} ({count})" for text, count in counts.most_common(most)]
    return ", ".join(shown) + (", …" if len(counts) > most else "")


def parse(column: pandas.Series, decimal: str = ".", thousands: str = "") -> Parsed:
    """Read a column of text as numbers, whatever marks of thousands they have.

    Where `decimal` is a comma and the cells are written with points, they are read
    so: parts of a file may come from another program. `thousands` is the mark to
    allow; empty for all, ``"none"`` for no mark.

    Examples
    --------
    >>> import pandas as pd
    >>> parse(pd.Series(["1.250,5 €", "3,75 €"]), ",").values.tolist()
    [1250.5, 3.75]
    """
    import pandas as pd

    texts = column.dropna().map(str).str.strip()
    counts = texts.value_counts()
    found = _read(counts.index, decimal, thousands)
    if decimal == "," and 2 * len(found) < len(counts):
        plain = _read(counts.index, ".", thousands)
        found = plain if len(plain) > len(found) else found
    values = texts.map({text: value for text, (value, _) in found.items()})
    values = pd.to_numeric(values).astype(float).reindex(column.index)
    signs: Counter[str] = Counter()
    for text, (_, sign) in found.items():
        if sign:
            signs[sign] += int(counts[text])
    wrong = {text: int(count) for text, count in counts.items() if text not in found}
    return Parsed(values, Counter(wrong), signs, len(texts))


def _read(
    texts: pandas.Index, decimal: str, thousands: str
) -> dict[str, tuple[float, str]]:
    pattern, found = _pattern(decimal, thousands), {}
    for text in texts:
        if match := pattern.fullmatch(text):
            digits = match["grouped"] or match["plain"]
            if match["grouped"]:
                digits = digits.replace(match["mark"], "")
            digits = digits.replace(decimal, ".")
            is_negative = "-" in text.split(match["grouped"] or match["plain"])[0]
            is_negative |= text.startswith("\u2212")
            sign = match["before"] or match["after"] or ""
            found[text] = (-float(digits) if is_negative else float(digits), sign)
        elif (number := _plain_word(text)) is not None and decimal == ".":
            found[text] = (number, "")
    return found


@functools.lru_cache
def _pattern(decimal: str, thousands: str) -> re.Pattern[str]:
    d = re.escape(decimal)
    marks = GROUPS + ("." if decimal == "," else ",") if not thousands else thousands
    mark = "(?!)" if thousands == "none" else f"[{re.escape(marks)}]"
    grouped = rf"[1-9]\d{{0,2}}(?P<mark>{mark})\d{{3}}(?:(?P=mark)\d{{3}})*(?:{d}\d*)?"
    plain = rf"(?:\d+(?:{d}\d*)?|{d}\d+)(?:[eE][-+]?\d+)?"
    return re.compile(
        rf"[-+\u2212]?\s*(?P<before>{CURRENCY})?\s*[-+]?"
        rf"(?:(?P<grouped>{grouped})|(?P<plain>{plain}))"
        rf"\s*(?P<after>{CURRENCY}|%)?"
    )


def _plain_word(text: str) -> float | None:
    """Return what infinity is called, which a table refuses in its own words."""
    return float(text) if text.lower().lstrip("+-") in ("inf", "infinity") else None
