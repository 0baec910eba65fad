"""Scales of a nomogram: lines of values, points, the sum and its probability."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import logsumexp

from steelyard._common.arrays import Floats, Ints
from steelyard.displays import drawing as draw
from steelyard.explain.value_tables import AttributeTable

# A column of this many edges or more is drawn as a curve.
_MIN_CURVE_EDGES = 20

# Ticks of the scale of probabilities; those in the second line have no number.
_NUMBERED = (0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)
_UNNUMBERED = (0.4, 0.6)

# The scale of the sum ends here, where probabilities hardly change.
_MAX_SUM = 12.0

# A change of direction over a smaller share of the line is ignored.
_MIN_TURN_SHARE = 0.1

_TEXT, _SMALL = 7.5, 6.5


@dataclass(frozen=True)
class Line:
    """Values of one attribute, their evidence and how many rows have them."""

    labels: list[str]
    amounts: Floats
    rows: Floats
    between: Floats = field(default_factory=lambda: np.zeros(0))
    """Evidence all along a curve, of which the values are some."""

    mean: float = 0.0
    """Evidence of the average training row: values with more speak for the class."""

    numbers: Floats | None = None
    """Values of a curve, None for others."""

    @property
    def tracks(self) -> dict[str, Ints]:
        """Positions of the values on each axis, by its name.

        As in R's rms, a curve that is not monotone has two axes, "rising" and
        "falling"; local extrema are on both.
        """
        positions = np.arange(len(self.amounts))
        turns = [] if self.numbers is None else self._turns()
        if len(turns) < 3:
            return {"": positions}
        tracks: dict[str, Ints] = {}
        for first, last in pairwise(turns):
            rises = self.amounts[last] > self.amounts[first]
            name = "rising" if rises else "falling"
            run = positions[first : last + 1]
            tracks[name] = np.union1d(tracks.get(name, run), run)
        return tracks

    def _turns(self) -> list[int]:
        """Return the local extrema of a curve and its ends, without small ones."""
        low, high = self.ends
        turns = list(range(len(self.amounts)))
        while len(turns) > 2:
            ways = np.diff(self.amounts[turns])
            straight = np.flatnonzero(ways[1:] * ways[:-1] >= 0.0)
            k = int(np.argmin(np.abs(ways)))
            if straight.size:
                del turns[straight[0] + 1]
            elif abs(ways[k]) >= _MIN_TURN_SHARE * (high - low):
                break
            else:
                # At an end the other side goes on; between two, both of them do.
                del turns[max(k, 1) : min(k + 2, len(turns) - 1)]
        return turns

    def only(self, values: Ints) -> Line:
        """Return the line of some of its values."""
        if len(values) == len(self.amounts):
            return self
        labels = [self.labels[v] for v in values]
        return Line(labels, self.amounts[values], self.rows[values], mean=self.mean)

    def track_of(self, number: float) -> int:
        """Return the position of the axis on which a number is read."""
        names = list(self.tracks)
        if self.numbers is None or len(names) < 2:
            return 0
        after = np.searchsorted(self.numbers, number)
        k = int(np.clip(after, 1, len(self.numbers) - 1))
        contains = [bool(np.isin([k - 1, k], on).all()) for on in self.tracks.values()]
        return contains.index(True)

    @property
    def ends(self) -> tuple[float, float]:
        """Smallest and largest finite contribution."""
        contributions = np.concatenate([self.amounts, self.between])
        finite = contributions[np.isfinite(contributions)]
        return float(finite.min(initial=np.inf)), float(finite.max(initial=-np.inf))


@dataclass(frozen=True)
class Scale:
    """From contributions to positions: each line minus its origin, times a unit.

    Points are those of rms: every line begins at 0, the longest ends at 100.
    """

    unit: float
    origins: tuple[float, ...]

    @classmethod
    def of_points(cls, lines: list[Line]) -> Scale:
        """Return the scale of points of some lines."""
        lows, highs = np.transpose([line.ends for line in lines])
        longest = float((highs - lows).max())
        return cls(100.0 / max(longest, 1e-300), tuple(lows.tolist()))

    @classmethod
    def plain(cls, lines: list[Line]) -> Scale:
        """Return the scale of evidence itself, relative to the average row."""
        return cls(1.0, tuple(line.mean for line in lines))

    def place(self, k: int, amounts: Any) -> Any:
        """Return the places of evidence on a line."""
        return (amounts - self.origins[k]) * self.unit


def against_rest(base: Floats, c: int) -> tuple[Callable[[Floats], Floats], float]:
    r"""Return evidence of contributions for a class, and that of the base.

    The other classes are taken as one, in which each has its share of the base:

    .. math:: e = t_c - \log \sum_{k \ne c} \frac{\pi_k}{1 - \pi_c} \exp t_k

    With two classes that is the log-odds. With more, the sum over several columns is
    about that of the posterior: columns are independent within each class, and not
    quite within several.

    Examples
    --------
    >>> evidence, base = against_rest(np.log([0.2, 0.4, 0.4]), 0)
    >>> evidence(np.log([[4.0, 2.0, 1.0]])).round(3), round(base, 3)
    (array([0.981]), -1.386)
    """
    others = np.delete(np.arange(len(base)), c)
    rest = float(logsumexp(base[others]))

    def evidence(contributions: Floats) -> Floats:
        of_rest = logsumexp(contributions[..., others] + base[others] - rest, axis=-1)
        return np.asarray(contributions[..., c] - of_rest)

    return evidence, float(base[c]) - rest


def line_of(table: AttributeTable, evidence: Callable[[Floats], Floats]) -> Line:
    """Return the values of an attribute that are drawn."""
    mean = float(evidence(table.mean * table.link_scale))
    return replace(_line(table, evidence), mean=mean)


def _line(table: AttributeTable, evidence: Callable[[Floats], Floats]) -> Line:
    amounts = evidence((table.contributions + table.mean) * table.link_scale)
    is_whole = table.range is not None and table.range.is_whole
    if table.points is not None:
        numbers = _ticks(*table.span, is_whole)
        low, high = table.span
        inside = amounts[(table.points >= low) & (table.points <= high)]
        ends = np.interp((low, high), table.points, amounts)
        between = np.concatenate([ends, inside])
        return _curve(numbers, np.interp(numbers, table.points, amounts), between)
    if table.sides:
        return _cells(table, amounts)
    if len(table.edges) >= _MIN_CURVE_EDGES:
        outer = (table.edges[0], table.edges[-1])
        numbers = _ticks(*(outer if table.range is None else table.span), is_whole)
        inside = amounts[1 + np.searchsorted(table.edges, numbers)]
        return _curve(numbers, inside, amounts[1 : len(table.edges) + 2])
    # The first is code 0: missing cells add nothing, at zero.
    rows = np.ones(len(amounts)) if table.counts is None else table.counts.sum(axis=1)
    return Line(table.labels[1:], amounts[1:], rows[1:])


def _curve(numbers: Floats, amounts: Floats, between: Floats) -> Line:
    labels = [f"{x:g}" for x in numbers]
    return Line(labels, amounts, np.ones(len(labels)), between, numbers=numbers)


def _cells(table: AttributeTable, amounts: Floats) -> Line:
    """Return the cells of an interaction that contain training rows, without names."""
    shape = tuple(len(side.labels) + 1 for side in table.sides)
    amounts, counts = amounts.reshape(shape)[1:, 1:].ravel(), table.cell_counts
    rows = np.ones(len(amounts)) if counts is None else counts.ravel()
    seen = rows > 0.0 if (rows > 0.0).any() else np.ones(len(rows), dtype=bool)
    return Line([""] * int(seen.sum()), amounts[seen], rows[seen])


def _ticks(low: float, high: float, is_whole: bool = False) -> Floats:
    """Return about nine round numbers in a range."""
    locator = draw.pyplot().MaxNLocator(9, integer=is_whole)
    ticks: Floats = locator.tick_values(low, high)
    return ticks[(ticks >= low) & (ticks <= high)]


def inches_of(ax: Any) -> float:
    """Width of axes."""
    figure = ax.figure
    return float(ax.get_position().width * figure.bbox.width / figure.dpi)


class Total:
    """The scale of the sum of all lines, between its smallest and largest value."""

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
        for t in _ticks((self._least - start) * unit, (self._most - start) * unit):
            x = self._tick(t / unit + start, y)
            self._write(x, y + 0.12, f"{t:g}", "bottom")

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
                self._write(x, y - 0.25, f"{q:g}", "top")

    def draw_start(self, y: float, z: float, name: str, row: float | None) -> None:
        """Mark the probability of a row without values, beside that of a row."""
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
