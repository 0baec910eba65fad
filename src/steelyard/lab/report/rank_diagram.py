"""The layout of a critical difference diagram, which `steelyard.lab.displays` draws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard._common.text import shortened

Floats = NDArray[np.float64]

_MAX_NAME_LENGTH = 28
_BAR_HEIGHT = 0.32


class Stroke(NamedTuple):
    """A line through points; its kind is ``axis``, ``cd``, ``bar`` or ``name``."""

    kind: str
    x: list[float]
    y: list[float]


class Label(NamedTuple):
    """A text, of which the ``start``, ``middle`` or ``end`` is at a point."""

    x: float
    y: float
    text: str
    anchor: str


class RankLayout:
    """A critical difference diagram, in ranks across and in lines up from the axis.

    Methods differ if their average ranks do by the critical difference. ``names`` and
    ``ranks`` are sorted by rank, the first ``n_left`` to the left; ``lines`` has the
    line of each label, the first for the outermost ranks. ``groups`` are bars of
    methods that do not differ: from, to, and the line among bars.
    """

    def __init__(
        self, names: Sequence[str], ranks: Floats, critical_difference: float
    ) -> None:
        order = np.argsort(ranks, kind="stable")
        self.names = [names[i] for i in order]
        self.ranks = np.asarray(ranks, dtype=np.float64)[order]
        self.critical_difference = float(critical_difference)
        k = len(order)
        self.n_left = (k + 1) // 2
        self.lines = [*range(self.n_left), *range(k - self.n_left - 1, -1, -1)]
        self.groups: list[tuple[float, float, int]] = []
        ends: list[float] = []
        gap = max(0.02 * (k - 1), 0.02)
        for first, last in groups_of_equals(self.ranks, critical_difference):
            start, end = float(self.ranks[first]), float(self.ranks[last])
            # Bars share a line if they leave a gap.
            line = next((i for i, x in enumerate(ends) if x + gap < start), len(ends))
            ends[line : line + 1] = [end]
            self.groups.append((start, end, line))
        self.n_bars = len(ends)
        # The largest rank of the axis, which begins at 1.
        self.high = max(2, k)
        # How far lines of names reach beyond the axis, and how far below is the last.
        self.margin = 0.03 * (self.high - 1)
        self.depth = _BAR_HEIGHT * self.n_bars + 1.0 + max(self.lines)
        self._ticks = range(1, self.high + 1, max(1, round((self.high - 1) / 10)))
        # The end of the critical difference, which begins at 1, within the axis.
        self._span_end = min(1 + self.critical_difference, self.high)

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
        beyond = 4 / 3 * self.margin
        for i, (name, rank) in enumerate(zip(self.names, self.ranks, strict=True)):
            y = -_BAR_HEIGHT * self.n_bars - 1.0 - self.lines[i]
            text = f"{shortened(name, _MAX_NAME_LENGTH)}  {rank:.2f}"
            is_left = i < self.n_left
            x, anchor = (
                (1 - beyond, "end") if is_left else (self.high + beyond, "start")
            )
            labels.append(Label(x, y, text, anchor))
        return labels


def groups_of_equals(ranks: Floats, difference: float) -> list[tuple[int, int]]:
    """Find the longest runs of sorted ranks that differ by less than a difference.

    Runs have a first and a last position, two or more ranks, and none is within
    another.

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
