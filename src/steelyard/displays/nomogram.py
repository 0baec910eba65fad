"""The nomogram: every value of every attribute on one scale of evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import logsumexp

from steelyard._common.arrays import Floats, Ints
from steelyard.displays import drawing as draw
from steelyard.exceptions import ParameterError
from steelyard.explain.local import LocalExplanation
from steelyard.explain.overall import GlobalExplanation, explain_global
from steelyard.explain.shared import in_words, percent, position_of
from steelyard.explain.value_tables import AttributeTable

# Sizes of numbers and of names of values; distances of names from the line.
_TEXT, _SMALL = 7.5, 6.5
_LEVELS = (0.30, -0.36)

# Colour of missing values.
_MISSING = "#9aa39e"

# Width of the picture in inches.
_WIDTH = 10.0

# A column of this many edges or more is drawn as a curve.
_MIN_CURVE_EDGES = 20

# A change of direction over a smaller share of the line is ignored.
_MIN_TURN_SHARE = 0.1

# Ticks of the scale of probabilities; those in the second line have no number.
_NUMBERED = (0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)
_UNNUMBERED = (0.4, 0.6)

# The scale of the sum ends here, where probabilities hardly change.
_MAX_SUM = 12.0


@dataclass(eq=False, repr=False)
class NomogramDisplay(draw.Display):
    """A nomogram: values as dots on a common scale, a sum, and its probability.

    Points are read off the scale on top, as in R's rms: the smallest contribution of
    each attribute has 0, and the longest line ends at 100. The two lowest lines turn
    the sum of the points into the probability of a class. A pale stroke on each line
    marks a missing value. A curve that rises and falls has an axis for each.
    Values that speak for the class more than the average training row are green. With
    more than two classes the others are taken as one, and the probability is about that
    of ``predict_proba``.

    Parameters
    ----------
    explanation : GlobalExplanation
        Of a model that is one sum.
    target : class, default=None
        The class that positive evidence supports; the second of two, the most
        frequent one of several.
    max_attributes : int, default=40
        How many attributes to draw, the most important ones.
    row : LocalExplanation, default=None
        A row whose values are marked.

    Examples
    --------
    >>> from steelyard.displays import NomogramDisplay
    >>> from steelyard import NaiveBayes
    >>> from sklearn.datasets import load_breast_cancer
    >>> clf = NaiveBayes().fit(*load_breast_cancer(return_X_y=True, as_frame=True))
    >>> display = NomogramDisplay.from_estimator(clf, max_attributes=8)
    """

    explanation: GlobalExplanation
    target: Any = None
    max_attributes: int = 40
    row: LocalExplanation | None = None

    @classmethod
    def from_estimator(
        cls,
        clf: Any,
        *,
        target: Any = None,
        max_attributes: int = 40,
        row: Any = None,
        ax: Any = None,
    ) -> NomogramDisplay:
        """Draw a fitted classifier.

        Parameters
        ----------
        clf : BaseNB
            A fitted classifier.
        target, max_attributes
            As in ``NomogramDisplay``.
        row : table of one row, default=None
            Mark the values of this row.
        """
        local = None if row is None else clf.explain_local(row)
        return cls(explain_global(clf), target, max_attributes, local).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        self._check()
        whole, c = self.explanation, self._target()
        assert whole.base is not None
        # The sum starts as in predictions, without any value; means are for reading.
        means = np.array([table.mean for table in whole.tables])
        start = whole.base - means.sum(axis=0)
        evidence, base = against_rest(start * whole.link_scale, c)
        chosen = self._chosen(c)
        lines = [line_of(whole.tables[j], evidence) for j in chosen]
        marks = None
        if self.row is not None and self.row.contributions is not None:
            added = self.row.contributions[0][chosen] + means[chosen]
            marks = evidence(added * whole.link_scale)
        # As in rms, each line begins at 0, and the longest ends at 100.
        origins, highs = np.transpose([line.ends for line in lines]).tolist()
        unit = 100.0 / max(float(np.max(np.subtract(highs, origins))), 1e-300)
        axes = [
            _Axis(line, origin, unit)
            for line, origin in zip(lines, origins, strict=True)
        ]
        n_left_out = sum(table.has_values for table in whole.tables) - len(chosen)
        n_rows = sum(len(line.tracks) for line in lines)
        below = 2.6 * bool(np.isfinite(base)) + 0.5 * bool(n_left_out)
        ax = self._axes(ax, _WIDTH, 1.3 + 0.44 * n_rows + 0.35 * below)
        low, high = _limits(axes)
        ax.set_xlim(low, high)
        ax.set_ylim(-n_rows - below + 0.4, 0.7)
        chosen_names = (whole.attributes[j] for j in chosen)
        names = [draw.label(name, 34) for name in in_words(chosen_names, whole.titles)]
        # A curve that is not monotone has two axes.
        labels = [
            f"{name}, {track}" if track else name
            for line, name in zip(lines, names, strict=True)
            for track in line.tracks
        ]
        inches = _inches_of(ax) - max(draw.text_width(name, 9.0) for name in labels)
        numbers = [self._number_of_row(j) for j in chosen]
        _draw_axes(ax, axes, marks, numbers, max(inches, 2.0) / (high - low))
        levels = [-float(k) for k in range(n_rows)]
        if np.isfinite(base):
            row = None if marks is None or n_left_out else base + float(marks.sum())
            labels += self._draw_total(ax, c, axes, base, -n_rows - 0.4, row)
            levels += [-n_rows - 0.4, -n_rows - 1.4]
        ax.set_yticks(levels, labels)
        self._name_scale(ax, c)
        if n_left_out:
            less = "column is" if n_left_out == 1 else "columns are"
            text = f"{n_left_out} less important {less} not shown"
            low, high = ax.get_xlim()
            at = {"x": low + 0.04 * (high - low), "y": ax.get_ylim()[0] + 0.1}
            style = {"fontsize": _TEXT, "va": "bottom", "color": draw.INK}
            ax.text(**at, s=f"{text}: treated as unknown", **style)

    def _number_of_row(self, j: int) -> float:
        """Return the number of the marked row in a column, NaN if it has none."""
        try:
            return np.nan if self.row is None else float(self.row.values[0][j])
        except ValueError:
            return np.nan

    def _check(self) -> None:
        whole = self.explanation
        if whole.base is None:
            raise ParameterError(
                f"{whole.note} A nomogram shows one sum: draw a part, for example "
                "explanation.parts[0].explanation.plot()."
            )
        if not any(table.has_values for table in whole.tables):
            raise ParameterError("No column of the model has values: nothing to draw.")
        if self.max_attributes < 1:
            problem = f"max_attributes must be at least 1. Got {self.max_attributes!r}."
            raise ParameterError(problem)
        if self.row is not None and self.row.attributes != whole.attributes:
            raise ParameterError(
                "The row that is marked has other columns than the model: leave its "
                "interactions as they are."
            )

    def _chosen(self, c: int) -> list[int]:
        """Return the positions of the attributes that are drawn."""
        order = self.explanation.order.tolist()
        if self.explanation.class_importance is not None:
            order = draw.largest(self.explanation.class_importance[:, c])
        tables = self.explanation.tables
        return [j for j in order if tables[j].has_values][: self.max_attributes]

    def _draw_total(
        self,
        ax: Any,
        c: int,
        axes: list[_Axis],
        base: float,
        y: float,
        row: float | None,
    ) -> list[str]:
        """Draw the sum of all lines and the probability below, and name them."""
        low, high = (base + np.sum([axis.line.ends for axis in axes], axis=0)).tolist()
        total = _Total(ax, low, high)
        total.draw_sum(y, sum(axis.origin for axis in axes) + base, axes[0].unit)
        total.draw_probability(y - 1.0)
        # The probability of a row without values.
        ax.plot([total.place(base)], [y - 1.0], "D", color=draw.INK, markersize=4)
        rates = self.explanation.base_rates
        name = "prior" if rates is None else f"base rate ({percent(float(rates[c]))})"
        side = "center" if row is None else "right" if row > base else "left"
        style = {"ha": side, "va": "bottom", "fontsize": _SMALL}
        ax.text(total.place(base), y - 0.8, name, **style)
        if row is not None:
            # A sum, and its probability on the line below.
            ax.plot([total.place(row)] * 2, [y - 1.0, y], "o-", color=_colour(row))
        about = "" if len(self.explanation.classes) == 2 else "≈ "
        name = draw.label(self.explanation.classes[c], 24)
        return ["total points", f"{about}P({name})"]

    def _name_scale(self, ax: Any, c: int) -> None:
        """Put the scale on top, with the classes that it speaks for."""
        classes = self.explanation.classes
        ax.tick_params(axis="y", length=0)
        ax.xaxis.tick_top()
        ax.xaxis.set_label_position("top")
        two = len(classes) == 2
        other = str(classes[1 - c]) if two else "the other classes"
        left, right = draw.label(other, 40), draw.label(classes[c], 40)
        ax.set_xticks(np.arange(0, 101, 10))
        ax.set_xlabel(f"points for {right} against {left}   (pale stroke: unknown)")
        draw.bare(ax, "right", "left", "bottom")

    def _target(self) -> int:
        classes, base = self.explanation.classes, self.explanation.base
        if self.target is not None:
            return position_of(self.target, classes)
        assert base is not None
        return 1 if len(classes) == 2 else int(np.argmax(base))


@dataclass(frozen=True)
class _Axis:
    """A line and its scale: evidence minus an origin, times a unit."""

    line: Line
    origin: float
    unit: float

    def place(self, evidence: Any) -> Any:
        """Return the positions of evidence."""
        return (evidence - self.origin) * self.unit


def _limits(axes: list[_Axis]) -> tuple[float, float]:
    """Return the ends of the scale, with room."""
    amounts = np.ravel([axis.place(np.array(axis.line.ends)) for axis in axes])
    finite = amounts[np.isfinite(amounts)]
    low, high = min(float(finite.min()), -1e-6), max(float(finite.max()), 1e-6)
    room = 0.06 * (high - low)
    return low - room, high + room


def _draw_axes(
    ax: Any, axes: list[_Axis], marks: Any, numbers: list[float], scale: float
) -> None:
    """Draw the values of all lines, missing values, and those of a row."""
    ring = {"markersize": 11, "markerfacecolor": "none", "color": draw.INK, "zorder": 3}
    y = 0
    for k, axis in enumerate(axes):
        marked = axis.line.track_of(numbers[k])
        for t, values in enumerate(axis.line.tracks.values()):
            _draw_axis(ax, y - t, replace(axis, line=axis.line.only(values)), scale)
            if marks is not None and t == marked:
                ax.plot([axis.place(marks[k])], [y - t], "o", **ring)
        y -= len(axis.line.tracks)


def _draw_axis(ax: Any, y: float, axis: _Axis, scale: float) -> None:
    """Draw the values of one axis, and a stroke for missing values."""
    line = axis.line
    placed = replace(line, amounts=axis.place(line.amounts))
    ends = [axis.place(end) for end in line.ends]
    ax.plot(ends, [y, y], color=draw.INK, linewidth=0.7, zorder=1)
    x = axis.place(0.0)
    ax.plot([x, x], [y - 0.2, y + 0.2], color=_MISSING, lw=1.2, zorder=0)
    share = line.rows / max(float(line.rows.max()), 1e-300)
    style: dict[str, Any] = {"zorder": 2, "linewidths": 0.4, "edgecolors": "white"}
    style["color"] = [_colour(amount - line.mean) for amount in line.amounts]
    level = np.full(len(line.amounts), y)
    ax.scatter(placed.amounts, level, s=8.0 + 40.0 * share, **style)
    _draw_labels(ax, y, placed, scale)


def _colour(amount: float) -> str:
    return draw.INK if abs(amount) < 1e-12 else draw.side_colour(amount)


def _draw_labels(ax: Any, y: float, line: Line, scale: float) -> None:
    """Write values above and below the line, frequent ones first, none on another."""
    taken: dict[float, list[tuple[float, float]]] = {level: [] for level in _LEVELS}
    left, right = ax.get_xlim()
    # The ends of the line are named before what lies between, if there is room.
    ends = {int(np.argmin(line.amounts)), int(np.argmax(line.amounts))}
    positions = range(len(line.labels))
    order = sorted(positions, key=lambda v: (v not in ends, -line.rows[v]))
    style = {"ha": "center", "va": "center", "fontsize": _SMALL, "color": draw.INK}
    for v in order:
        if not line.labels[v]:
            continue
        text = draw.label(line.labels[v], 22)
        half = (draw.text_width(text, _SMALL) / 2.0 + 0.04) / scale
        x = float(np.clip(line.amounts[v], left + half, right - half))
        for level in _LEVELS:
            if all(x + half < a or x - half > b for a, b in taken[level]):
                taken[level].append((x - half, x + half))
                ax.text(x, y + level, text, **style)
                break


# ------------------------------------------------------------------------------ lines


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


def against_rest(base: Floats, c: int) -> tuple[Callable[[Floats], Floats], float]:
    r"""Return evidence of contributions for a class, and that of the base.

    The other classes are taken as one, in which each has its share of the base:

    .. math:: e = t_c - \log \sum_{k \ne c} \frac{\pi_k}{1 - \pi_c} \exp t_k

    With two classes that is the log-odds. With more, the sum over several columns is
    about that of the posterior: columns are independent within each class, and not
    quite within several.

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


def _inches_of(ax: Any) -> float:
    """Return the width of axes."""
    figure = ax.figure
    return float(ax.get_position().width * figure.bbox.width / figure.dpi)


class _Total:
    """The scale of the sum of all lines, between its smallest and largest value."""

    def __init__(self, ax: Any, low: float, high: float) -> None:
        self._ax = ax
        self._low = max(min(low, -1.0), -_MAX_SUM)
        self._high = min(max(high, 1.0), _MAX_SUM)
        left, right = ax.get_xlim()
        self._left, self._width = left + 0.04 * (right - left), 0.92 * (right - left)
        self._style = {"color": draw.INK, "linewidth": 0.8}

    def place(self, z: float) -> float:
        """Return the position of a sum of evidence, between the ends."""
        share = (min(max(z, self._low), self._high) - self._low) / (
            self._high - self._low
        )
        return self._left + share * self._width

    def draw_sum(self, y: float, start: float, unit: float) -> None:
        """Draw the scale of the sum, counted from a start in some unit."""
        self._line(y)
        for t in _ticks((self._low - start) * unit, (self._high - start) * unit):
            x = self._tick(t / unit + start, y)
            self._ax.text(
                x, y + 0.12, f"{t:g}", ha="center", va="bottom", fontsize=_TEXT
            )

    def draw_probability(self, y: float) -> None:
        """Draw the scale of probabilities."""
        self._line(y)
        last = -np.inf
        left, right = self._ax.get_xlim()
        gap = 0.32 * (right - left) / (_inches_of(self._ax) * 0.75)
        for q in (*_NUMBERED, *_UNNUMBERED):
            z = float(np.log(q / (1.0 - q)))
            if not self._low <= z <= self._high:
                continue
            x = self._tick(z, y)
            if q in _NUMBERED and x - last > gap:
                last = x
                self._ax.text(
                    x, y - 0.25, f"{q:g}", ha="center", va="top", fontsize=_TEXT
                )

    def _line(self, y: float) -> None:
        ends = [self.place(self._low), self.place(self._high)]
        self._ax.plot(ends, [y, y], **self._style)

    def _tick(self, z: float, y: float) -> float:
        x = self.place(z)
        self._ax.plot([x, x], [y, y - 0.18], **self._style)
        return x
