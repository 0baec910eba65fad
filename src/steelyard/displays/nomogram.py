"""The nomogram: every value of every attribute on one scale of evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.displays import _style as draw
from steelyard.displays._base import Display
from steelyard.displays._maps import draw_maps, maps_height
from steelyard.exceptions import ParameterError
from steelyard.explain.evidence import evidence_of
from steelyard.explain.local import LocalExplanation
from steelyard.explain.overall import GlobalExplanation, explain_global
from steelyard.explain.parts import percent, position_of
from steelyard.explain.tables import AttributeTable

# Size of the names of values, and their distances from the line: above and below.
_SMALL = 6.5
_LEVELS = (0.30, -0.36)

# Bins beyond this are a curve.
_MANY_EDGES = 20

# Width of the picture in inches.
_WIDTH = 10.0

# Ticks of the scale of probabilities; those in the second line have no number.
_NUMBERED = (0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)
_UNNUMBERED = (0.4, 0.6)

# The scale of the sum ends here, where probabilities hardly change.
_MAX_SUM = 12.0


@dataclass(eq=False, repr=False)
class NomogramDisplay(Display):
    """A nomogram: values as dots on a common scale, a sum, and its probability.

    With two classes the scale is log-odds of the second class, and the two lowest
    lines turn the sum of the dots into a probability. With more it is the evidence for
    one class against the mean of the others.

    Parameters
    ----------
    explanation : GlobalExplanation
        Of a model that is one sum.
    target : class, default=None
        The class that evidence speaks for; the second of two, the most frequent one of
        several.
    max_attributes : int, default=40
        Draw so many attributes, the most important ones.
    row : LocalExplanation, default=None
        A row whose values are marked.
    max_pairs : int, default=8
        Draw maps of so many pairs of columns below, the most important ones of those
        with a line; on axes that are given there are none.

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
    max_pairs: int = 8

    @classmethod
    def from_estimator(
        cls,
        clf: Any,
        *,
        target: Any = None,
        max_attributes: int = 40,
        row: Any = None,
        max_pairs: int = 8,
        ax: Any = None,
    ) -> NomogramDisplay:
        """Draw a fitted classifier.

        Parameters
        ----------
        clf : BaseNB
            A fitted classifier.
        target, max_attributes, max_pairs
            As in ``NomogramDisplay``.
        row : table of one row, default=None
            Mark the values of this row.
        """
        local = None if row is None else clf.explain_local(row)
        whole = explain_global(clf)
        return cls(whole, target, max_attributes, local, max_pairs).plot(ax=ax)

    @classmethod
    def from_explanation(
        cls,
        explanation: GlobalExplanation,
        *,
        target: Any = None,
        max_attributes: int = 40,
        row: LocalExplanation | None = None,
        max_pairs: int = 8,
        ax: Any = None,
    ) -> NomogramDisplay:
        """Draw what ``explain_global`` returned.

        Parameters
        ----------
        explanation, target, max_attributes, row, max_pairs
            As in ``NomogramDisplay``.
        """
        return cls(explanation, target, max_attributes, row, max_pairs).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        whole = self.explanation
        if whole.base is None:
            raise ParameterError(
                f"{whole.note} A nomogram shows one sum: draw a part, for example "
                "explanation.parts[0].explanation.plot()."
            )
        if self.row is not None and self.row.attributes != whole.attributes:
            raise ParameterError(
                "The row that is marked has other attributes than the model: leave its "
                "pairs as they are."
            )
        c, two = self._target(), len(whole.classes) == 2
        order = whole.order.tolist()
        if whole.class_importance is not None:
            order = draw.largest(whole.class_importance[:, c])
        chosen = order[: self.max_attributes]
        lines = [_dots(whole.tables[j], c) for j in chosen]
        base = float(evidence_of(whole.base)[c] * whole.link_scale)
        n_rows = len(lines) + 1
        height = 1.3 + 0.44 * n_rows + (0.9 if two else 0.0)
        ax = self._with_maps(ax, chosen, c, height)
        low, high = _limits(lines, base)
        ax.set_xlim(low, high)
        ax.set_ylim(-n_rows - (2.6 if two else 0.0) + 0.4, 0.7)
        start = "prior"
        if whole.base_rates is not None:
            start = f"base rate ({percent(float(whole.base_rates[c]))})"
        labels = [*(draw.label(whole.attributes[j], 34) for j in chosen), start]
        inches = _inches(ax) - max(draw.text_width(name, 9.0) for name in labels)
        scale = max(inches, 2.0) / (high - low)
        ax.axvline(0.0, color=draw.PALE, linewidth=1.0, zorder=0)
        marks = self._marks(chosen, c)
        for k, line in enumerate(lines):
            _draw_line(ax, -k, line, scale, marks[k])
        at = (base if np.isfinite(base) else 0.0, -len(lines))
        ax.plot(*([x] for x in at), "D", color=draw.INK, markersize=5)
        draw.mark(ax, f"{base:+.2f}", at, (0, 6), ha="center", fontsize=_SMALL)
        places = [-float(k) for k in range(n_rows)]
        if two:
            total = None
            if self.row is not None and len(chosen) == len(whole.attributes):
                total = base + sum(amount for amount in marks if amount is not None)
            _draw_total(ax, lines, base, -n_rows - 0.4, total)
            labels += ["sum of evidence", f"P({draw.label(whole.classes[c], 24)})"]
            places += [-n_rows - 0.4, -n_rows - 1.4]
        ax.set_yticks(places, labels)
        self._name_sides(ax, c)

    def _with_maps(self, ax: Any, chosen: list[int], c: int, height: float) -> Any:
        """Return axes for the lines, in a new figure above maps of the pairs."""
        tables = [self.explanation.tables[j] for j in chosen]
        pairs = [table for table in tables if table.sides][: max(0, self.max_pairs)]
        if ax is not None or not pairs:
            return self._axes(ax, _WIDTH, height)
        below = maps_height(pairs)
        size = {"figsize": (_WIDTH, height + below), "layout": "constrained"}
        self.figure_ = draw.pyplot().figure(**size)
        upper, lower = self.figure_.subfigures(2, 1, height_ratios=[height, below])
        draw_maps(lower, pairs, c, self._cell_of_row)
        self.ax_ = upper.subplots()
        return self.ax_

    def _cell_of_row(self, table: AttributeTable) -> tuple[int, int] | None:
        """Say which cell of a pair the marked row is in."""
        if self.row is None:
            return None
        j = self.row.view_names.index(table.name)
        a, b = divmod(int(self.row.cells.codes[0, j]), len(table.sides[1].labels) + 1)
        return (a - 1, b - 1) if a and b else None

    def _name_sides(self, ax: Any, c: int) -> None:
        """Put the scale of evidence on top, with the classes that it speaks for."""
        classes = self.explanation.classes
        ax.tick_params(axis="y", length=0)
        ax.xaxis.tick_top()
        ax.xaxis.set_label_position("top")
        two = len(classes) == 2
        other = str(classes[1 - c]) if two else "the mean of the other classes"
        left, right = draw.label(other, 40), draw.label(classes[c], 40)
        ax.set_xlabel(draw.sides(left, "evidence in log-odds", right))
        draw.bare(ax, "right", "left", "bottom")

    def _target(self) -> int:
        classes, base = self.explanation.classes, self.explanation.base
        if self.target is not None:
            return position_of(self.target, classes)
        assert base is not None
        return 1 if len(classes) == 2 else int(np.argmax(base))

    def _marks(self, chosen: list[int], c: int) -> list[float | None]:
        """Evidence of the marked row's cells."""
        if self.row is None or self.row.contributions is None:
            return [None] * len(chosen)
        evidence = evidence_of(self.row.contributions[0])[chosen, c]
        return (evidence * self.explanation.link_scale).tolist()


@dataclass(frozen=True)
class _Dots:
    """Values of one attribute, their evidence and how many rows have them."""

    labels: list[str]
    amounts: NDArray[np.float64]
    rows: NDArray[np.float64]


def _dots(table: AttributeTable, c: int) -> _Dots:
    evidence = table.evidence[:, c]
    if table.points is not None:
        ticks = _ticks(*table.span)
        amounts = np.interp(ticks, table.points, evidence)
        return _Dots([f"{x:g}" for x in ticks], amounts, np.ones(len(ticks)))
    if table.sides:
        return _cell_dots(table, c)
    if len(table.edges) >= _MANY_EDGES:
        ends = (table.edges[0], table.edges[-1])
        ticks = _ticks(*(ends if table.range is None else table.span))
        amounts = evidence[1 + np.searchsorted(table.edges, ticks)]
        return _Dots([f"{x:g}" for x in ticks], amounts, np.ones(len(ticks)))
    # The first is code 0: missing cells say nothing, at zero.
    rows = np.ones(len(evidence)) if table.counts is None else table.counts.sum(axis=1)
    return _Dots(table.labels[1:], evidence[1:], rows[1:])


def _cell_dots(table: AttributeTable, c: int) -> _Dots:
    """Return the cells of a pair that training rows are in, without names."""
    amounts, counts = table.cells[:, :, c].ravel(), table.cell_counts
    rows = np.ones(len(amounts)) if counts is None else counts.ravel()
    seen = rows > 0.0 if (rows > 0.0).any() else np.ones(len(rows), dtype=bool)
    return _Dots([""] * int(seen.sum()), amounts[seen], rows[seen])


def _ticks(low: float, high: float) -> NDArray[np.float64]:
    """Round numbers in a range, about nine."""
    ticks: NDArray[np.float64] = draw.pyplot().MaxNLocator(9).tick_values(low, high)
    return ticks[(ticks >= low) & (ticks <= high)]


def _inches(ax: Any) -> float:
    """Width of axes."""
    figure = ax.figure
    return float(ax.get_position().width * figure.bbox.width / figure.dpi)


def _limits(lines: list[_Dots], base: float) -> tuple[float, float]:
    """Return the ends of the scale: all evidence, the prior and zero, with room."""
    amounts = np.concatenate([*(line.amounts for line in lines), [base, 0.0]])
    finite = amounts[np.isfinite(amounts)]
    low, high = min(float(finite.min()), -1e-6), max(float(finite.max()), 1e-6)
    room = 0.06 * (high - low)
    return low - room, high + room


def _draw_total(
    ax: Any, lines: list[_Dots], base: float, y: float, total: float | None
) -> None:
    """Draw the sum of all dots, and the probability below it."""
    least = base + sum(float(line.amounts.min()) for line in lines)
    most = base + sum(float(line.amounts.max()) for line in lines)
    least, most = max(min(least, -1.0), -_MAX_SUM), min(max(most, 1.0), _MAX_SUM)
    low, high = ax.get_xlim()
    room = 0.04 * (high - low)
    factor = (high - low - 2 * room) / (most - least)
    style = {"color": draw.INK, "linewidth": 0.8}

    def place(z: float) -> float:
        return low + room + (z - least) * factor

    def write(x: float, y: float, text: str, va: str) -> None:
        ax.text(x, y, text, ha="center", va=va, fontsize=7.5)

    for level in (y, y - 1.0):
        ax.plot([place(least), place(most)], [level, level], **style)
    for z in _ticks(least, most):
        ax.plot([place(z)] * 2, [y, y - 0.18], **style)
        write(place(z), y + 0.12, f"{z:g}", "bottom")
    y -= 1.0
    taken = -np.inf
    gap = 0.32 * (high - low) / (_inches(ax) * 0.75)
    for q in (*_NUMBERED, *_UNNUMBERED):
        z = float(np.log(q / (1.0 - q)))
        if not least <= z <= most:
            continue
        ax.plot([place(z)] * 2, [y, y - 0.18], **style)
        if q in _NUMBERED and place(z) - taken > gap:
            taken = place(z)
            write(taken, y - 0.25, f"{q:g}", "top")
    if total is not None:
        x = place(float(np.clip(total, least, most)))
        ax.plot([x, x], [y, y + 1.0], "o-", color=_colour(total))


def _draw_line(
    ax: Any, y: float, line: _Dots, scale: float, marked: float | None
) -> None:
    low, high = float(line.amounts.min()), float(line.amounts.max())
    ax.plot([low, high], [y, y], color=draw.INK, linewidth=0.7, zorder=1)
    share = line.rows / max(float(line.rows.max()), 1e-300)
    style = {"zorder": 2, "linewidths": 0.4, "edgecolors": "white"}
    colours = [_colour(a) for a in line.amounts]
    places = np.full(len(line.amounts), y)
    ax.scatter(line.amounts, places, s=8.0 + 40.0 * share, color=colours, **style)
    if marked is not None:
        ring = {"markersize": 11, "markerfacecolor": "none", "color": draw.INK}
        ax.plot([marked], [y], "o", zorder=3, **ring)
    _draw_labels(ax, y, line, scale)


def _colour(amount: float) -> str:
    return draw.INK if abs(amount) < 1e-12 else draw.side_colour(amount)


def _draw_labels(ax: Any, y: float, line: _Dots, scale: float) -> None:
    """Write values above and below the line, frequent ones first, none on another."""
    taken: dict[float, list[tuple[float, float]]] = {level: [] for level in _LEVELS}
    left, right = ax.get_xlim()
    # The ends of the line are named before what lies between, if there is room.
    ends = {int(np.argmin(line.amounts)), int(np.argmax(line.amounts))}
    every = range(len(line.labels))
    order = sorted(every, key=lambda v: (v not in ends, -line.rows[v]))
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
