"""The lowest lines of a nomogram: the sum of all others, and its probability."""

from __future__ import annotations

from typing import Any

import numpy as np

from steelyard.displays import _style as draw
from steelyard.displays._points import ticks

# Ticks of the scale of probabilities; those in the second line have no number.
_NUMBERED = (0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)
_UNNUMBERED = (0.4, 0.6)

# The scale of the sum ends here, where probabilities hardly change.
_MAX_SUM = 12.0

_TEXT, _SMALL = 7.5, 6.5


def inches_of(ax: Any) -> float:
    """Width of axes."""
    figure = ax.figure
    return float(ax.get_position().width * figure.bbox.width / figure.dpi)


class Total:
    """The sum of all lines, on a scale of its own between two sums of evidence."""

    def __init__(self, ax: Any, least: float, most: float) -> None:
        self._ax = ax
        self._least = max(min(least, -1.0), -_MAX_SUM)
        self._most = min(max(most, 1.0), _MAX_SUM)
        low, high = ax.get_xlim()
        self._room, self._width = low + 0.04 * (high - low), 0.92 * (high - low)
        self._style = {"color": draw.INK, "linewidth": 0.8}

    def place(self, z: float) -> float:
        """Return the place of a sum of evidence, between the ends."""
        z = min(max(z, self._least), self._most)
        share = (z - self._least) / (self._most - self._least)
        return self._room + share * self._width

    def draw_sum(self, y: float, start: float, unit: float) -> None:
        """Draw the scale of the sum, counted from a start in some unit."""
        self._line(y)
        for t in ticks((self._least - start) * unit, (self._most - start) * unit):
            x = self._tick(t / unit + start, y)
            self._ax.text(
                x, y + 0.12, f"{t:g}", ha="center", va="bottom", fontsize=_TEXT
            )

    def draw_probability(self, y: float) -> None:
        """Draw the scale of probabilities."""
        self._line(y)
        taken = -np.inf
        low, high = self._ax.get_xlim()
        gap = 0.32 * (high - low) / (inches_of(self._ax) * 0.75)
        for q in (*_NUMBERED, *_UNNUMBERED):
            z = float(np.log(q / (1.0 - q)))
            if not self._least <= z <= self._most:
                continue
            x = self._tick(z, y)
            if q in _NUMBERED and x - taken > gap:
                taken = x
                self._ax.text(
                    x, y - 0.25, f"{q:g}", ha="center", va="top", fontsize=_TEXT
                )

    def draw_start(self, y: float, z: float, name: str, row: float | None) -> None:
        """Mark the probability with nothing known, named beside that of a row."""
        at = self.place(z)
        self._ax.plot([at], [y], "D", color=draw.INK, markersize=4)
        side = "center" if row is None else "right" if row > z else "left"
        self._ax.text(at, y + 0.2, name, ha=side, va="bottom", fontsize=_SMALL)

    def mark(self, y: float, z: float, colour: str) -> None:
        """Mark a sum, and its probability on the line below."""
        self._ax.plot([self.place(z)] * 2, [y - 1.0, y], "o-", color=colour)

    def _write(self, x: float, y: float, text: str, va: str) -> None:
        self._ax.text(x, y, text, ha="center", va=va, fontsize=_TEXT)

    def _line(self, y: float) -> None:
        ends = [self.place(self._least), self.place(self._most)]
        self._ax.plot(ends, [y, y], **self._style)

    def _tick(self, z: float, y: float) -> float:
        x = self.place(z)
        self._ax.plot([x, x], [y, y - 0.18], **self._style)
        return x
