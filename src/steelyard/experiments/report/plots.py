"""Where things go in pictures, and pictures as SVG."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard._common.html import element, escape
from steelyard._common.text import shortened

__all__ = ["RankLayout", "critical_difference_svg", "groups_of_equals"]

Floats = NDArray[np.float64]

CHARACTER = 7.2
"""Width of a character of the labels, in pixels."""

_MAX_NAME_LENGTH = 28
_AXIS, _AXIS_WIDTH = 58.0, 420.0


@dataclass(frozen=True)
class RankLayout:
    """A critical difference diagram, in ranks across and in lines down."""

    names: list[str]
    """By rank; the first half goes to the left."""

    ranks: Floats
    lines: list[int]
    """Line of each label: the outermost ranks have the first."""

    n_left: int
    groups: list[tuple[float, float, int]]
    """Bars of methods that do not differ: from, to, and the line among bars."""

    low: int
    high: int
    critical_difference: float

    @classmethod
    def of(
        cls, names: Sequence[str], ranks: Floats, critical_difference: float
    ) -> RankLayout:
        """Arrange methods of given average ranks.

        Parameters
        ----------
        names : sequence of str
            Methods.
        ranks : array of shape (n_methods,)
            Their average ranks.
        critical_difference : float
            From which difference on they differ significantly.

        Returns
        -------
        RankLayout
            Where axis, labels and bars go.
        """
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
        return cls(
            [names[i] for i in order],
            ranked,
            lines,
            n_left,
            groups,
            1,
            max(2, k),
            float(critical_difference),
        )

    @property
    def n_bars(self) -> int:
        """How many lines the bars take."""
        return 1 + max((line for _, _, line in self.groups), default=-1)

    def label(self, position: int) -> str:
        """Return a name, shortened if it is very long."""
        return shortened(self.names[position], _MAX_NAME_LENGTH)

    @property
    def ticks(self) -> range:
        """Ranks that are marked on the axis."""
        step = max(1, round((self.high - self.low) / 10))
        return range(self.low, self.high + 1, step)

    @property
    def span(self) -> float:
        """The critical difference, as far as the axis reaches."""
        return min(self.critical_difference, self.high - self.low)

    @property
    def caption(self) -> str:
        """What is written beside the critical difference."""
        return f"critical difference {self.critical_difference:.2f}"


def groups_of_equals(ranks: Floats, difference: float) -> list[tuple[int, int]]:
    """Find the longest runs of sorted ranks that lie within a difference.

    Parameters
    ----------
    ranks : array of shape (k,)
        In ascending order.
    difference : float
        Ranks this far apart are no longer in one run.

    Returns
    -------
    list of (first, last)
        Runs of two or more, none within another.

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

    Parameters
    ----------
    layout : RankLayout
        Where things go.
    title : str
        What the picture shows, for readers who do not see it.

    Returns
    -------
    str
        SVG in the colour of the text around it.
    """
    labels = [f"{layout.label(i)}  {rank:.2f}" for i, rank in enumerate(layout.ranks)]
    side = 24 + CHARACTER * max(map(len, labels))
    width = _AXIS_WIDTH + 2 * side
    bars = 74.0
    lines = bars + 9 * layout.n_bars + 12
    height = lines + 21 * max(layout.lines) + 16

    def x(rank: float) -> float:
        return side + (rank - layout.low) * _AXIS_WIDTH / (layout.high - layout.low)

    parts = [*_axis(layout, x)]
    for start, end, line in layout.groups:
        y = bars + 9 * line
        parts.append(_line(x(start) - 3, y, x(end) + 3, y, "bar"))
    for i, text in enumerate(labels):
        left = i < layout.n_left
        sign, end = (-1, side - 8) if left else (1, width - side + 8)
        y, at = lines + 21 * layout.lines[i], x(float(layout.ranks[i]))
        points = f"{at:.1f},{_AXIS:.1f} {at:.1f},{y:.1f} {end:.1f},{y:.1f}"
        parts.append(element("polyline", points=points))
        anchor = "end" if left else "start"
        parts.append(_text(end + 4 * sign, y + 4, text, anchor, layout.names[i]))
    return element(
        "svg",
        element("title", escape(title)) + "".join(parts),
        class_="cd",
        role="img",
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        width=f"{width:.0f}",
        height=f"{height:.0f}",
    )


def _axis(layout: RankLayout, x: Callable[[float], float]) -> Iterator[str]:
    """Yield the axis with its ranks, and the critical difference above it."""
    low, high = layout.low, layout.high
    yield _line(x(low), _AXIS, x(high), _AXIS)
    for rank in layout.ticks:
        yield _line(x(rank), _AXIS - 6, x(rank), _AXIS)
        yield _text(x(rank), _AXIS - 10, str(rank), "middle")
    end = low + layout.span
    yield _line(x(low), 20, x(end), 20, "cd")
    for place in (low, end):
        yield _line(x(place), 15, x(place), 25, "cd")
    yield _text(x(end) + 8, 24, layout.caption, "start")


def _line(x1: float, y1: float, x2: float, y2: float, kind: str = "") -> str:
    ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
    places = {name: f"{value:.1f}" for name, value in ends.items()}
    return element("line", class_=kind, **places)


def _text(x: float, y: float, text: str, anchor: str, full: str = "") -> str:
    note = element("title", escape(full)) if full and full not in text else ""
    place = {"x": f"{x:.1f}", "y": f"{y:.1f}"}
    return element("text", note + escape(text), text_anchor=anchor, **place)
