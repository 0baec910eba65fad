"""Critical difference diagrams: where their parts go, and the parts as SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard._common.html import element, escape
from steelyard._common.text import shortened

__all__ = ["RankLayout", "critical_difference_svg", "groups_of_equals"]

Floats = NDArray[np.float64]

_MAX_NAME_LENGTH = 28
_BAR_HEIGHT = 0.32

# Sizes in pixels: the axis, a line, a character of the labels.
_AXIS_WIDTH, _LINE, _CHARACTER = 420.0, 21.0, 7.2


class Stroke(NamedTuple):
    """A line through points; its kind is ``axis``, ``cd``, ``bar`` or ``name``."""

    kind: str
    x: list[float]
    y: list[float]


class Label(NamedTuple):
    """A text, centred at a point or at one side of it."""

    x: float
    y: float
    text: str
    anchor: str
    """``start``, ``middle`` or ``end``: what of the text is at the point."""

    full: str = ""
    """The whole name of a method, where the text is about one."""


@dataclass(frozen=True)
class RankLayout:
    """A critical difference diagram, in ranks across and in lines up from the axis."""

    names: list[str]
    """By rank; the first half goes to the left."""

    ranks: Floats
    lines: list[int]
    """Line of each label: the outermost ranks have the first."""

    n_left: int
    groups: list[tuple[float, float, int]]
    """Bars of methods that do not differ: from, to, and the line among bars."""

    critical_difference: float

    @classmethod
    def of(
        cls, names: Sequence[str], ranks: Floats, critical_difference: float
    ) -> RankLayout:
        """Arrange methods of given average ranks; those that far apart differ."""
        order = np.argsort(ranks, kind="stable")
        ranked = np.asarray(ranks, dtype=np.float64)[order]
        k = len(order)
        n_left = (k + 1) // 2
        lines = [*range(n_left), *range(k - n_left - 1, -1, -1)]
        groups: list[tuple[float, float, int]] = []
        ends: list[float] = []
        gap = max(0.02 * (k - 1), 0.02)
        for first, last in groups_of_equals(ranked, critical_difference):
            start, end = float(ranked[first]), float(ranked[last])
            # Bars share a line where they leave a gap.
            line = next((i for i, x in enumerate(ends) if x + gap < start), len(ends))
            ends[line : line + 1] = [end]
            groups.append((start, end, line))
        ordered = [names[i] for i in order]
        return cls(ordered, ranked, lines, n_left, groups, float(critical_difference))

    @property
    def high(self) -> int:
        """The largest rank of the axis, which begins at 1."""
        return max(2, len(self.names))

    @property
    def n_bars(self) -> int:
        """How many lines the bars take."""
        return 1 + max((line for _, _, line in self.groups), default=-1)

    @property
    def margin(self) -> float:
        """How far lines of names reach beyond the axis."""
        return 0.03 * (self.high - 1)

    @property
    def depth(self) -> float:
        """How far below the axis the last name is."""
        return _BAR_HEIGHT * self.n_bars + 1.0 + max(self.lines)

    @property
    def _ticks(self) -> range:
        return range(1, self.high + 1, max(1, round((self.high - 1) / 10)))

    @property
    def _span_end(self) -> float:
        """Where the critical difference ends that begins at 1, within the axis."""
        return min(1 + self.critical_difference, self.high)

    def strokes(self) -> Iterator[Stroke]:
        """Yield the lines of axis, critical difference, bars and names."""
        yield Stroke("axis", [1, self.high], [0, 0])
        for rank in self._ticks:
            yield Stroke("axis", [rank, rank], [0, 0.25])
        yield Stroke("cd", [1, self._span_end], [2.0, 2.0])
        for end in (1, self._span_end):
            yield Stroke("cd", [end, end], [1.8, 2.2])
        for start, end, line in self.groups:
            y = -0.5 - _BAR_HEIGHT * line
            yield Stroke("bar", [start, end], [y, y])
        for rank, label in zip(self.ranks, self.labels(), strict=True):
            end = 1 - self.margin if label.anchor == "end" else self.high + self.margin
            yield Stroke("name", [rank, rank, end], [0, label.y, label.y])

    def captions(self) -> Iterator[Label]:
        """Yield what is written at the axis and beside the critical difference."""
        for rank in self._ticks:
            yield Label(rank, 0.65, str(rank), "middle")
        text = f"critical difference {self.critical_difference:.2f}"
        yield Label(self._span_end + self.margin / 2, 2.0, text, "start")

    def labels(self) -> list[Label]:
        """Return the methods with their ranks, very long names shortened."""
        labels = []
        for i, (name, rank) in enumerate(zip(self.names, self.ranks, strict=True)):
            y = -_BAR_HEIGHT * self.n_bars - 1.0 - self.lines[i]
            text = f"{shortened(name, _MAX_NAME_LENGTH)}  {rank:.2f}"
            beyond = 4 / 3 * self.margin
            if i < self.n_left:
                labels.append(Label(1 - beyond, y, text, "end", name))
            else:
                labels.append(Label(self.high + beyond, y, text, "start", name))
        return labels


def groups_of_equals(ranks: Floats, difference: float) -> list[tuple[int, int]]:
    """Find the longest runs of sorted ranks that lie within a difference.

    Runs have a first and a last position, two or more ranks, and none is within
    another. Ranks as far apart as the difference are not in one run.

    Examples
    --------
    >>> groups_of_equals(np.array([1.0, 1.5, 2.2, 4.0]), 1.0)
    [(0, 1), (1, 2)]
    """
    lasts = np.searchsorted(ranks, ranks + difference, side="left") - 1
    runs, reached = [], -1
    for first, last in enumerate(lasts):
        if last > first and last > reached:
            runs.append((first, int(last)))
            reached = last
    return runs


def critical_difference_svg(layout: RankLayout, title: str) -> str:
    """Draw a critical difference diagram as one SVG element.

    It has the colour of the text around it; the title is for readers who do not see it.
    """
    labels = layout.labels()
    side = 24 + _CHARACTER * max(len(label.text) for label in labels)
    width, height = _AXIS_WIDTH + 2 * side, _LINE * (layout.depth + 3.4)

    def point(x: float, y: float) -> tuple[str, str]:
        across = side + (x - 1) * _AXIS_WIDTH / (layout.high - 1)
        return f"{across:.1f}", f"{_LINE * (2.6 - y):.1f}"

    parts = [element("title", escape(title))]
    for stroke in layout.strokes():
        points = " ".join(",".join(point(*p)) for p in zip(*stroke[1:], strict=True))
        parts.append(element("polyline", class_=stroke.kind, points=points))
    for label in [*layout.captions(), *labels]:
        x, y = point(label.x, label.y)
        note = "" if label.full in label.text else element("title", escape(label.full))
        text = note + escape(label.text)
        style = {"text_anchor": label.anchor, "dominant_baseline": "central"}
        parts.append(element("text", text, x=x, y=y, **style))
    return element(
        "svg",
        "".join(parts),
        class_="cd",
        role="img",
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        width=f"{width:.0f}",
        height=f"{height:.0f}",
    )
