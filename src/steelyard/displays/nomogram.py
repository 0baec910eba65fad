"""The nomogram: every value of every attribute on one scale of evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from steelyard._common.arrays import Floats
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

# A column of this many edges or more is drawn as a curve.
_MIN_CURVE_EDGES = 20

# Ticks of the scale of probabilities.
_TICKS = np.array(
    [0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999]
)

# The scale of the sum ends here, where probabilities hardly change.
_MAX_SUM = 12.0


@dataclass(eq=False, repr=False)
class NomogramDisplay(draw.Display):
    """A nomogram: values as dots on a common scale, a sum, and its probability.

    Points are read off the scale on top, as in R's rms: the smallest contribution of
    each attribute has 0, and the longest line ends at 100. The two lowest lines turn
    the sum of the points into the probability of a class. A pale stroke on each line
    marks a missing value. Values that speak for the class more than the average
    training row are green. With more than two classes the others are taken as one, and
    the probability is about that of ``predict_proba``.

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
        # As in rms, each line begins at 0, and the longest ends at 100.
        lows, highs = np.array([line.ends for line in lines]).T
        unit = 100.0 / max(float((highs - lows).max()), 1e-300)
        ends, unknown = unit * (highs - lows), -unit * lows
        low = min(float(unknown.min(initial=0.0)), -1e-6)
        high = max(float(ends.max()), float(unknown.max()), 1e-6)
        room = 0.06 * (high - low)
        n_left_out = sum(table.has_values for table in whole.tables) - len(chosen)
        is_finite = bool(np.isfinite(base))
        below = 2.6 * is_finite + 0.5 * bool(n_left_out)
        ax = self._axes(ax, 10.0, 1.3 + 0.44 * len(lines) + 0.35 * below)
        ax.set_xlim(low - room, high + room)
        ax.set_ylim(-len(lines) - below + 0.4, 0.7)
        named = in_words((whole.attributes[j] for j in chosen), whole.titles)
        names = [draw.label(name, 34) for name in named]
        inches = float(ax.get_position().width * ax.figure.bbox.width / ax.figure.dpi)
        inches -= max(draw.text_width(name, 9.0) for name in names)
        scale = max(inches, 2.0) / (high - low + 2.0 * room)
        for k, line in enumerate(lines):
            ax.plot([0.0, ends[k]], [-k, -k], color=draw.INK, linewidth=0.7, zorder=1)
            at = [-k - 0.2, -k + 0.2]
            ax.plot([unknown[k]] * 2, at, color=_MISSING, lw=1.2, zorder=0)
            _draw_values(ax, -k, line, unit * (line.amounts - lows[k]), scale)
        row, added = None, None if self.row is None else self.row.contributions
        if added is not None:
            marks = evidence((added[0][chosen] + means[chosen]) * whole.link_scale)
            ring = {"markersize": 11, "markerfacecolor": "none", "zorder": 3}
            for k, mark in enumerate(unit * (marks - lows)):
                ax.plot([mark], [-k], "o", color=draw.INK, **ring)
            row = None if n_left_out else base + float(marks.sum())
        levels = [-float(k) for k in range(len(lines))]
        if is_finite:
            y, sums = -len(lines) - 0.4, (base + lows.sum(), base + highs.sum())
            self._draw_total(ax, y, sums, unit, base, row, c)
            about = "" if len(whole.classes) == 2 else "≈ "
            names += ["total points", f"{about}P({draw.label(whole.classes[c], 24)})"]
            levels += [y, y - 1.0]
        ax.set_yticks(levels, names)
        self._name_scale(ax, c)
        if n_left_out:
            less = "column is" if n_left_out == 1 else "columns are"
            text = f"{n_left_out} less important {less} not shown: treated as unknown"
            at_foot = (
                low - room + 0.04 * (high - low + 2.0 * room),
                ax.get_ylim()[0] + 0.1,
            )
            ax.text(*at_foot, text, fontsize=_TEXT, va="bottom", color=draw.INK)

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
        y: float,
        sums: tuple[float, float],
        unit: float,
        base: float,
        row: float | None,
        c: int,
    ) -> None:
        """Draw scales of the total points and of the probability, one below the other.

        ``sums`` are the log-odds of the fewest and of the most points.
        """
        first, last = (
            max(min(sums[0], -1.0), -_MAX_SUM),
            min(max(sums[1], 1.0), _MAX_SUM),
        )
        left, right = ax.get_xlim()

        def place(z: Any) -> Any:
            share = (np.clip(z, first, last) - first) / (last - first)
            return left + (0.04 + 0.92 * share) * (right - left)

        points = _ticks(*(unit * (np.array([first, last]) - sums[0])))
        odds = np.log(_TICKS / (1.0 - _TICKS))
        odds = odds[(odds >= first) & (odds <= last)]
        thin, centred = {"color": draw.INK, "linewidth": 0.8}, {"ha": "center"}
        for level, ticks in ((y, points / unit + sums[0]), (y - 1.0, odds)):
            ax.plot([place(first), place(last)], [level, level], **thin)
            for x in place(ticks):
                ax.plot([x, x], [level, level - 0.18], **thin)
        for x, t in zip(place(points / unit + sums[0]), points, strict=True):
            ax.text(x, y + 0.12, f"{t:g}", va="bottom", fontsize=_TEXT, **centred)
        width, last_x = 0.032 * (right - left), -np.inf
        for x, z in zip(place(odds), odds, strict=True):
            if x - last_x > width:
                last_x, p = x, f"{1.0 / (1.0 + np.exp(-z)):.3g}"
                ax.text(x, y - 1.25, p, va="top", fontsize=_TEXT, **centred)
        # The probability of a row without values.
        ax.plot([place(base)], [y - 1.0], "D", color=draw.INK, markersize=4)
        rates = self.explanation.base_rates
        name = "prior" if rates is None else f"base rate ({percent(float(rates[c]))})"
        side = "center" if row is None else "right" if row > base else "left"
        ax.text(place(base), y - 0.8, name, ha=side, va="bottom", fontsize=_SMALL)
        if row is not None:
            # A sum, and its probability on the line below.
            ax.plot([place(row)] * 2, [y - 1.0, y], "o-", color=_colour(row))

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


def _colour(amount: float) -> str:
    return draw.INK if abs(amount) < 1e-12 else draw.side_colour(amount)


def _draw_values(ax: Any, y: float, line: Line, points: Floats, scale: float) -> None:
    """Draw values as dots, and write them above and below the line.

    Frequent ones come first; none is written on another.
    """
    share = line.rows / max(float(line.rows.max()), 1e-300)
    colours = [_colour(amount - line.mean) for amount in line.amounts]
    style = {"zorder": 2, "linewidths": 0.4, "edgecolors": "white"}
    ax.scatter(points, np.full(len(points), y), 8.0 + 40.0 * share, colours, **style)
    taken: dict[float, list[tuple[float, float]]] = {level: [] for level in _LEVELS}
    left, right = ax.get_xlim()
    # The ends of the line are named before what lies between, if there is room.
    ends = {int(np.argmin(points)), int(np.argmax(points))}
    order = sorted(range(len(points)), key=lambda v: (v not in ends, -line.rows[v]))
    for v in order:
        if not line.labels[v]:
            continue
        text = draw.label(line.labels[v], 22)
        half = (draw.text_width(text, _SMALL) / 2.0 + 0.04) / scale
        x = float(np.clip(points[v], left + half, right - half))
        for level in _LEVELS:
            if all(x + half < a or x - half > b for a, b in taken[level]):
                taken[level].append((x - half, x + half))
                written = {"ha": "center", "va": "center", "fontsize": _SMALL}
                ax.text(x, y + level, text, color=draw.INK, **written)
                break


class Line(NamedTuple):
    """Values of one attribute, their evidence and how many rows have them."""

    labels: list[str]
    amounts: Floats
    rows: Floats
    ends: tuple[float, float]
    """Smallest and largest evidence, of a curve also between its values."""

    mean: float
    """Evidence of the average training row: values with more speak for the class."""


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
    whole = evidence((table.contributions + table.mean) * table.link_scale)
    is_whole = table.range is not None and table.range.is_whole
    edges, counts, numbers = table.edges, table.counts, np.zeros(0)
    if table.sides:
        # Cells of an interaction that contain training rows, without names.
        n = np.ones(len(whole)) if counts is None else counts.sum(axis=1)
        cells = table.by_cell(np.column_stack([whole, n])).reshape(-1, 2)
        amounts, rows = (cells[cells[:, 1] > 0.0] if cells[:, 1].any() else cells).T
        whole, labels = amounts, [""] * len(rows)
    elif table.points is not None:
        numbers = _ticks(*table.span, is_whole)
        inside = (table.points >= table.span[0]) & (table.points <= table.span[1])
        outer = np.interp(table.span, table.points, whole)
        amounts = np.interp(numbers, table.points, whole)
        whole = np.concatenate([outer, whole[inside]])
    elif len(edges) >= _MIN_CURVE_EDGES:
        span = (edges[0], edges[-1]) if table.range is None else table.span
        numbers = _ticks(*span, is_whole)
        amounts = whole[1 + np.searchsorted(edges, numbers)]
        whole = whole[1 : len(edges) + 2]
    else:
        # The first is code 0: missing cells add nothing, at zero.
        labels, amounts = table.labels[1:], whole[1:]
        whole = amounts
        rows = np.ones(len(amounts)) if counts is None else counts[1:].sum(axis=1)
    if numbers.size:
        labels, rows = [f"{x:g}" for x in numbers], np.ones(len(numbers))
    finite = np.concatenate([amounts, whole])
    finite = finite[np.isfinite(finite)]
    ends = (float(finite.min(initial=np.inf)), float(finite.max(initial=-np.inf)))
    return Line(labels, amounts, rows, ends, mean)


def _ticks(low: float, high: float, is_whole: bool = False) -> Floats:
    """Return about nine round numbers in a range."""
    locator = draw.pyplot().MaxNLocator(9, integer=is_whole)
    ticks: Floats = locator.tick_values(low, high)
    return ticks[(ticks >= low) & (ticks <= high)]
