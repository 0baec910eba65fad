"""Figures laid out in Markdown: published beside measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from steelyard._common.text import markdown_table

__all__ = [
    "Columns",
    "Pair",
    "averaged",
    "differences",
    "figures_table",
    "mean",
    "side_by_side",
    "table",
]

Figures = Mapping[str, float]
"""Figures by row."""

Columns = Mapping[str, Figures]
"""Figures by column and row."""

_AVERAGE = "**average**"


class Pair(NamedTuple):
    """A printed column beside a measured one."""

    title: str
    published: Figures
    measured: Figures

    @property
    def theirs(self) -> float:
        """The average of the printed figures."""
        return mean(self.published.values())

    @property
    def ours(self) -> float:
        """The average of the measured figures."""
        return mean(self.measured.values())

    @property
    def gaps(self) -> dict[str, float]:
        """How far each measured figure lies above the printed one."""
        return differences(self.measured, self.published)

    @property
    def summary(self) -> str:
        """Cells with both averages and their difference."""
        return _three(self.theirs, self.ours)


def mean(values: Iterable[float]) -> float:
    """Average numbers, of which there is at least one."""
    numbers = list(values)
    return sum(numbers) / len(numbers)


def averaged(values: Figures) -> dict[str, float]:
    """Add a last row with the average."""
    return {**values, _AVERAGE: mean(values.values())}


def differences(first: Figures, second: Figures) -> dict[str, float]:
    """Subtract the second from the first in each row."""
    return {row: value - second[row] for row, value in first.items()}


def table(header: str, rows: Iterable[str | Sequence[str]]) -> str:
    """Lay out a Markdown table of lines, or of cells; ``" | "`` separates cells."""
    lines = [row if isinstance(row, str) else " | ".join(row) for row in rows]
    return markdown_table(header.split(" | "), [line.split(" | ") for line in lines])


def figures_table(columns: Columns, formats: Mapping[str, str] | None = None) -> str:
    """Lay out figures by data set, with two digits where no other format is named.

    Examples
    --------
    >>> print(figures_table({"NB": averaged({"iris": 93.0, "zoo": 94.0})}))
    | data set | NB |
    | --- | ---: |
    | iris | 93.00 |
    | zoo | 94.00 |
    | **average** | 93.50 |
    """
    header, *lines = ["data set", *next(iter(columns.values()))]
    for title, column in columns.items():
        header += f" | {title}"
        style = (formats or {}).get(title, ".2f")
        lines = [
            f"{line} | {value:{style}}"
            for line, value in zip(lines, column.values(), strict=True)
        ]
    return table(header, lines)


def side_by_side(
    names: Sequence[str],
    columns: Iterable[tuple[str, Figures, Figures]],
    first: str = "data set",
) -> str:
    """Lay out published figures, measured ones and their differences, by data set.

    Columns are titles, published and measured figures by name, of which some may be
    absent; a row of averages is added. ``first`` is the title of the column of names.
    """
    lines = [first, *names, _AVERAGE]
    for title, published, measured in columns:
        lines[0] += f" | {title} published | measured | difference"
        for i, name in enumerate(names, 1):
            lines[i] += f" | {_three(published.get(name), measured.get(name))}"
        both = [name for name in names if name in published and name in measured]
        known = (published, measured) if both else ()
        averages = [mean(figures[name] for name in both) for figures in known]
        lines[-1] += f" | {_three(*averages or (None, None))}"
    return table(lines[0], lines[1:])


def _three(published: float | None, measured: float | None) -> str:
    cells = ["" if value is None else f"{value:.2f}" for value in (published, measured)]
    known = published is not None and measured is not None
    gap = f"{measured - published:+.2f}" if known else ""  # type: ignore[operator]
    return " | ".join([*cells, gap])
