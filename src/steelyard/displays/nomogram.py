"""The nomogram: every value of every attribute on one scale of evidence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from steelyard._common.text import counted
from steelyard.displays import drawing as draw
from steelyard.displays.interaction_maps import draw_maps, maps_height
from steelyard.displays.nomogram_scales import (
    Line,
    Scale,
    Total,
    against_rest,
    inches_of,
    line_of,
)
from steelyard.exceptions import ParameterError
from steelyard.explain.local import LocalExplanation
from steelyard.explain.overall import GlobalExplanation, explain_global
from steelyard.explain.shared import in_words, percent, position_of
from steelyard.explain.value_tables import AttributeTable

# Size of the names of values, and their distances from the line: above and below.
_SMALL = 6.5
_LEVELS = (0.30, -0.36)

# Colour of missing values.
_UNKNOWN = "#9aa39e"

# Width of the picture in inches.
_WIDTH = 10.0


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
        The class that evidence speaks for; the second of two, the most frequent one of
        several.
    max_attributes : int, default=40
        How many attributes to draw, the most important ones.
    row : LocalExplanation, default=None
        A row whose values are marked.
    max_interactions : int, default=8
        How many interactions to draw as maps below, the most important ones of
        those with a line; on axes that are given there are none.
    scale : {"points", "evidence"}, default="points"
        What the scale on top shows: points, or evidence in log-odds, with 0 for the
        average training row on all lines and a line for its sum.

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
    max_interactions: int = 8
    scale: Literal["points", "evidence"] = "points"

    @classmethod
    def from_estimator(
        cls,
        clf: Any,
        *,
        target: Any = None,
        max_attributes: int = 40,
        row: Any = None,
        max_interactions: int = 8,
        scale: Literal["points", "evidence"] = "points",
        ax: Any = None,
    ) -> NomogramDisplay:
        """Draw a fitted classifier.

        Parameters
        ----------
        clf : BaseNB
            A fitted classifier.
        target, max_attributes, max_interactions, scale
            As in ``NomogramDisplay``.
        row : table of one row, default=None
            Mark the values of this row.
        """
        local = None if row is None else clf.explain_local(row)
        whole = explain_global(clf)
        made = cls(whole, target, max_attributes, local, max_interactions, scale)
        return made.plot(ax=ax)

    @classmethod
    def from_explanation(
        cls,
        explanation: GlobalExplanation,
        *,
        target: Any = None,
        max_attributes: int = 40,
        row: LocalExplanation | None = None,
        max_interactions: int = 8,
        scale: Literal["points", "evidence"] = "points",
        ax: Any = None,
    ) -> NomogramDisplay:
        """Draw what ``explain_global`` returned.

        Parameters
        ----------
        explanation, target, max_attributes, row, max_interactions, scale
            As in ``NomogramDisplay``.
        """
        made = cls(explanation, target, max_attributes, row, max_interactions, scale)
        return made.plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        self._check()
        whole, c, is_points = self.explanation, self._target(), self.scale == "points"
        assert whole.base is not None
        # The sum starts as in predictions, without any value; means are for reading.
        means = np.array([table.mean for table in whole.tables])
        start = whole.base - means.sum(axis=0)
        evidence, base = against_rest(start * whole.link_scale, c)
        chosen = self._chosen(c)
        lines = [line_of(whole.tables[j], evidence) for j in chosen]
        places = Scale.of_points(lines) if is_points else Scale.plain(lines)
        marks = None
        if self.row is not None and self.row.contributions is not None:
            added = self.row.contributions[0][chosen] + means[chosen]
            marks = evidence(added * whole.link_scale)
        n_left_out = sum(table.has_values for table in whole.tables) - len(chosen)
        n_rows = sum(len(line.tracks) for line in lines) + (not is_points)
        below = 2.6 * bool(np.isfinite(base)) + 0.5 * bool(n_left_out)
        ax = self._with_maps(ax, chosen, c, 1.3 + 0.44 * n_rows + 0.35 * below)
        average = base + sum(line.mean for line in lines)
        low, high = _limits(lines, places, 0.0 if is_points else average)
        ax.set_xlim(low, high)
        ax.set_ylim(-n_rows - below + 0.4, 0.7)
        chosen_names = (whole.attributes[j] for j in chosen)
        names = [draw.label(name, 34) for name in in_words(chosen_names, whole.titles)]
        labels = _axis_names(lines, names)
        inches = inches_of(ax) - max(draw.text_width(name, 9.0) for name in labels)
        numbers = [self._number_of_row(j) for j in chosen]
        scale = max(inches, 2.0) / (high - low)
        _draw_lines(ax, lines, places, marks, numbers, scale)
        levels = [-float(k) for k in range(n_rows)]
        if not is_points:
            labels.append(self._draw_base(ax, average, 1.0 - n_rows))
        if np.isfinite(base):
            row = None if marks is None or n_left_out else base + float(marks.sum())
            labels += self._draw_total(ax, c, lines, places, base, -n_rows - 0.4, row)
            levels += [-n_rows - 0.4, -n_rows - 1.4]
        ax.set_yticks(levels, labels)
        self._name_scale(ax, c)
        if n_left_out:
            self._say_left_out(ax, n_left_out)

    def _number_of_row(self, j: int) -> float:
        """Return the number of the marked row in a column, NaN if it has none."""
        try:
            return np.nan if self.row is None else float(self.row.values[0][j])
        except ValueError:
            return np.nan

    def _check(self) -> None:
        whole = self.explanation
        if self.scale not in ("points", "evidence"):
            raise ParameterError(
                f"scale must be 'points' or 'evidence'. Got {self.scale!r}."
            )
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
                "The row that is marked has other attributes than the model: leave its "
                "interactions as they are."
            )

    def _chosen(self, c: int) -> list[int]:
        """Return the positions of the attributes that are drawn."""
        order = self.explanation.order.tolist()
        if self.explanation.class_importance is not None:
            order = draw.largest(self.explanation.class_importance[:, c])
        tables = self.explanation.tables
        return [j for j in order if tables[j].has_values][: self.max_attributes]

    def _start(self, c: int) -> str:
        rates = self.explanation.base_rates
        return "prior" if rates is None else f"base rate ({percent(float(rates[c]))})"

    def _draw_base(self, ax: Any, average: float, y: float) -> str:
        """Draw the sum of the average row, and return what that is."""
        ax.axvline(0.0, color=draw.PALE, linewidth=1.0, zorder=0)
        at = (average if np.isfinite(average) else 0.0, y)
        ax.plot(*([x] for x in at), "D", color=draw.INK, markersize=5)
        draw.mark(ax, f"{average:+.2f}", at, (0, 6), ha="center", fontsize=_SMALL)
        return "average row"

    def _draw_total(
        self,
        ax: Any,
        c: int,
        lines: list[Line],
        places: Scale,
        base: float,
        y: float,
        row: float | None,
    ) -> list[str]:
        """Draw the sum of all lines and the probability below, and name them."""
        least, most = (base + np.sum([line.ends for line in lines], axis=0)).tolist()
        total, is_points = Total(ax, least, most), self.scale == "points"
        start = sum(places.origins) + base if is_points else 0.0
        total.draw_sum(y, start, places.unit)
        total.draw_probability(y - 1.0)
        if is_points:
            total.draw_start(y - 1.0, base, self._start(c), row)
        if row is not None:
            total.mark(y, row, _colour(row))
        about = "" if len(self.explanation.classes) == 2 else "≈ "
        name = draw.label(self.explanation.classes[c], 24)
        what = "total points" if is_points else "sum of evidence"
        return [what, f"{about}P({name})"]

    def _say_left_out(self, ax: Any, n: int) -> None:
        text = f"{counted(n, 'attribute')} that say less are left out: taken as unknown"
        low, high = ax.get_xlim()
        place = {"x": low + 0.04 * (high - low), "y": ax.get_ylim()[0] + 0.1}
        ax.text(**place, s=text, fontsize=7.5, va="bottom", color=draw.INK)

    def _with_maps(self, ax: Any, chosen: list[int], c: int, height: float) -> Any:
        """Return axes for the lines, in a new figure above maps of the interactions."""
        tables = [self.explanation.tables[j] for j in chosen]
        interactions = [table for table in tables if table.sides][
            : max(0, self.max_interactions)
        ]
        if ax is not None or not interactions:
            return self._axes(ax, _WIDTH, height)
        below = maps_height(interactions)
        size = {"figsize": (_WIDTH, height + below), "layout": "constrained"}
        self.figure_ = draw.pyplot().figure(**size)
        upper, lower = self.figure_.subfigures(2, 1, height_ratios=[height, below])
        draw_maps(lower, interactions, c, self._cell_of_row)
        self.ax_ = upper.subplots()
        return self.ax_

    def _cell_of_row(self, table: AttributeTable) -> tuple[int, int] | None:
        """Say which cell of an interaction the marked row is in."""
        if self.row is None:
            return None
        j = self.row.attributes.index(table.name)
        a, b = divmod(int(self.row.cells.codes[0, j]), len(table.sides[1].labels) + 1)
        return (a - 1, b - 1) if a and b else None

    def _name_scale(self, ax: Any, c: int) -> None:
        """Put the scale on top, with the classes that it speaks for."""
        classes = self.explanation.classes
        ax.tick_params(axis="y", length=0)
        ax.xaxis.tick_top()
        ax.xaxis.set_label_position("top")
        two = len(classes) == 2
        other = str(classes[1 - c]) if two else "the other classes"
        left, right = draw.label(other, 40), draw.label(classes[c], 40)
        if self.scale == "points":
            ax.set_xticks(np.arange(0, 101, 10))
            ax.set_xlabel(f"points for {right} against {left}   (pale stroke: unknown)")
        else:
            what = "evidence in log-odds (pale stroke: unknown)"
            ax.set_xlabel(draw.sides(left, what, right))
        draw.bare(ax, "right", "left", "bottom")

    def _target(self) -> int:
        classes, base = self.explanation.classes, self.explanation.base
        if self.target is not None:
            return position_of(self.target, classes)
        assert base is not None
        return 1 if len(classes) == 2 else int(np.argmax(base))


def _limits(lines: list[Line], places: Scale, base: float) -> tuple[float, float]:
    """Return the ends of the scale: all places, the prior and zero, with room."""
    ends = [places.place(k, np.array(line.ends)) for k, line in enumerate(lines)]
    amounts = np.concatenate([*ends, [base, 0.0]])
    finite = amounts[np.isfinite(amounts)]
    low, high = min(float(finite.min()), -1e-6), max(float(finite.max()), 1e-6)
    room = 0.06 * (high - low)
    return low - room, high + room


def _axis_names(lines: list[Line], names: list[str]) -> list[str]:
    """Return the names of all axes; a curve that is not monotone has two."""
    return [
        f"{name}, {track}" if track else name
        for line, name in zip(lines, names, strict=True)
        for track in line.tracks
    ]


def _draw_lines(
    ax: Any,
    lines: list[Line],
    places: Scale,
    marks: Any,
    numbers: list[float],
    scale: float,
) -> None:
    """Draw the values of all lines, those of missing cells, and those of a row."""
    ring = {"markersize": 11, "markerfacecolor": "none", "color": draw.INK, "zorder": 3}
    y = 0
    for k, line in enumerate(lines):
        marked = line.track_of(numbers[k])
        for t, values in enumerate(line.tracks.values()):
            _draw_axis(ax, y - t, k, line.only(values), places, scale)
            if marks is not None and t == marked:
                ax.plot([places.place(k, marks[k])], [y - t], "o", **ring)
        y -= len(line.tracks)


def _draw_axis(
    ax: Any, y: float, k: int, line: Line, places: Scale, scale: float
) -> None:
    """Draw the values of one axis, and a stroke for missing values."""
    placed = replace(line, amounts=places.place(k, line.amounts))
    ends = [places.place(k, end) for end in line.ends]
    ax.plot(ends, [y, y], color=draw.INK, linewidth=0.7, zorder=1)
    x = places.place(k, 0.0)
    ax.plot([x, x], [y - 0.2, y + 0.2], color=_UNKNOWN, lw=1.2, zorder=0)
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
