"""Evidence of one row: two classes compared, cell by cell."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from steelyard._common.html import element, escape, html_bars, html_table
from steelyard._common.text import (
    probability_text,
    sided_bars,
    signed,
    text_table,
)
from steelyard.explain.shared import PlainData, Tabular, percent

MISSING_COLUMNS = "(missing columns)", "averaged over"
"""Name and value of the item that is the average over missing cells."""


@dataclass(frozen=True)
class EvidenceItem(PlainData):
    """The contribution of one cell to the log-odds of a class against another."""

    attribute: str
    value: str
    amount: float
    """In log-odds; positive values support the class."""

    missing: bool
    title: str = ""
    """The attribute in words, if a file had labels of columns, or it was edited."""

    edited: bool = False
    """Whether it was changed by hand."""

    half_width: float | None = None
    """Of the 90 % interval of the amount, if it is known."""

    implied: float = 0.0
    """The part of the amount that is what the cell says of the missing ones."""


@dataclass(frozen=True, repr=False)
class Evidence(Tabular):
    """Two classes of one row compared: the start and all items add up to log-odds."""

    target: str
    against: str
    probability: float
    """Posterior probability of the target."""

    prior: float
    """Start of the sum: the mean over the training rows, if it is known."""

    items: tuple[EvidenceItem, ...]
    """By falling size."""

    base_rate: float | None = None
    """Share of the target among the classes, if the sum begins with it."""

    is_centred: bool = False
    """Whether the sum begins with the mean over the training rows."""

    half_width: float | None = None
    """Of the 90 % interval of the sum, if it is known."""

    @property
    def start(self) -> tuple[str, str]:
        """Name of the start of the sum, and the base rate if it is that."""
        if self.is_centred:
            return "average row", ""
        if self.base_rate is None:
            return "prior", ""
        return "base rate", percent(self.base_rate)

    @property
    def amounts(self) -> list[float]:
        """All that is added up: the start, then the items."""
        return [self.prior, *(item.amount for item in self.items)]

    @property
    def total(self) -> float:
        """Log-odds of the target against the other class."""
        return math.fsum(self.amounts)

    def _asdict(self) -> dict[str, Any]:
        return {**super()._asdict(), "total": self.total}

    def layout(self) -> tuple[str, list[str], list[list[str]]]:
        """Return a title, names of columns and lines of texts with bars."""
        names = [self.start, *((i.title or i.attribute, i.value) for i in self.items)]
        drawn = zip(names, self.amounts, sided_bars(self.amounts), strict=True)
        lines = [[*name, signed(amount), bar] for name, amount, bar in drawn]
        lines.append(["sum", "", signed(self.total), ""])
        headers = ["column", "value", "evidence", ""]
        if self.half_width is not None:
            headers.insert(3, "± (90 %)")
            for line, half in zip(lines, self.half_widths, strict=True):
                line.insert(3, half)
        title = (
            f"{self.target} (probability {probability_text(self.probability)}) against "
            f"{self.against}: evidence in log-odds"
        )
        return title, headers, lines

    @property
    def half_widths(self) -> list[str]:
        """Half widths of intervals as text, of all that is added up and of the sum."""
        halves = [None, *(item.half_width for item in self.items), self.half_width]
        return ["" if half is None else f"{half:.2f}" for half in halves]

    def __repr__(self) -> str:
        """Lay the evidence out as text with bars."""
        title, headers, lines = self.layout()
        numeric = [False, False, *[True] * (len(headers) - 3), False]
        return f"{title}\n{text_table(headers, lines, numeric)}"

    def _frame_columns(self) -> dict[str, Any]:
        return {
            "column": [self.start[0], *(item.attribute for item in self.items)],
            "value": [self.start[1], *(item.value for item in self.items)],
            "evidence": self.amounts,
            "missing": [False, *(item.missing for item in self.items)],
        }

    def _repr_html_(self) -> str:
        title, headers, lines = self.layout()
        bars = html_bars(self.amounts, [line[2] for line in lines])
        drawn = [[*line[:2], bar] for line, bar in zip(lines, bars, strict=False)]
        table = html_table([*headers[:2], ""], [*drawn, lines[-1][:3]], 2)
        return element("p", escape(title)) + table
