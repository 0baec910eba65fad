"""Where things go in pictures, and pictures as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

__all__ = ["RankLayout", "critical_difference_svg", "groups_of_equals"]

Floats = NDArray[np.float64]

CHARACTER = 7.2
"""Width of a character of the labels, in pixels."""

LONGEST_NAME = 28


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
        name = self.names[position]
        return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


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
    k = len(layout.names)
    labels = [f"{layout.label(i)}  {layout.ranks[i]:.2f}" for i in range(k)]
    side = 24 + CHARACTER * max(len(text) for text in labels)
    width = 420 + 2 * side
    scale = 420 / (layout.high - layout.low)
    axis, bars, lines = 58.0, 74.0, 74.0 + 9 * layout.n_bars + 12
    height = lines + 21 * max(layout.lines) + 16

    def x(rank: float) -> float:
        return side + (rank - layout.low) * scale

    parts = [_line(x(layout.low), axis, x(layout.high), axis)]
    step = max(1, round((layout.high - layout.low) / 10))
    for rank in range(layout.low, layout.high + 1, step):
        parts.append(_line(x(rank), axis - 6, x(rank), axis))
        parts.append(_text(x(rank), axis - 10, str(rank), "middle"))
    span = min(layout.critical_difference, layout.high - layout.low)
    parts.append(_line(x(layout.low), 20, x(layout.low + span), 20, "cd"))
    for end in (layout.low, layout.low + span):
        parts.append(_line(x(end), 15, x(end), 25, "cd"))
    cd = f"critical difference {layout.critical_difference:.2f}"
    parts.append(_text(x(layout.low + span) + 8, 24, cd, "start"))
    for start, end, line in layout.groups:
        y = bars + 9 * line
        parts.append(_line(x(start) - 3, y, x(end) + 3, y, "bar"))
    for i, text in enumerate(labels):
        y = lines + 21 * layout.lines[i]
        left = i < layout.n_left
        end = side - 8 if left else width - side + 8
        at = x(float(layout.ranks[i]))
        parts.append(
            f'<polyline points="{at:.1f},{axis:.1f} {at:.1f},{y:.1f} '
            f'{end:.1f},{y:.1f}"/>'
        )
        anchor = "end" if left else "start"
        text_x = end - 4 if left else end + 4
        parts.append(_text(text_x, y + 4, text, anchor, layout.names[i]))
    return (
        f'<svg class="cd" role="img" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}"><title>{escape(title)}</title>'
        f"{''.join(parts)}</svg>"
    )


def _line(x1: float, y1: float, x2: float, y2: float, kind: str = "") -> str:
    style = f' class="{kind}"' if kind else ""
    return f'<line{style} x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, anchor: str, full: str = "") -> str:
    note = f"<title>{escape(full)}</title>" if full and full not in text else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{note}{escape(text)}'
        "</text>"
    )
