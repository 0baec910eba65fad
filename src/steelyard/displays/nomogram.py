"""The nomogram: every value of every attribute on one scale of evidence."""

from __future__ import annotations

from typing import Any

import numpy as np

from steelyard.displays._base import Display
from steelyard.displays._style import (
    AGAINST,
    FOR,
    INK,
    PALE,
    bare,
    label,
    pyplot,
    text_width,
)
from steelyard.exceptions import ParameterError
from steelyard.explain.evidence import evidence_of
from steelyard.explain.local import LocalExplanation
from steelyard.explain.overall import GlobalExplanation, explain_global
from steelyard.explain.tables import AttributeTable

__all__ = ["NomogramDisplay"]

_SMALL = 6.5
_LEVELS = (0.30, -0.36)


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
        The class that evidence speaks for.
    max_attributes : int, default=40
        Draw so many attributes, the most important ones.
    row : LocalExplanation, default=None
        A row whose values are marked.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of these axes.

    Examples
    --------
    >>> from steelyard.displays import NomogramDisplay
    >>> from steelyard import NaiveBayes
    >>> from sklearn.datasets import load_breast_cancer
    >>> clf = NaiveBayes().fit(*load_breast_cancer(return_X_y=True, as_frame=True))
    >>> display = NomogramDisplay.from_estimator(clf, max_attributes=8)
    """

    def __init__(
        self,
        explanation: GlobalExplanation,
        target: Any = None,
        max_attributes: int = 40,
        row: LocalExplanation | None = None,
    ) -> None:
        self.explanation = explanation
        self.target = target
        self.max_attributes = max_attributes
        self.row = row

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
        target : class, default=None
            The class that evidence speaks for; the second of two, the most frequent
            one of several.
        max_attributes : int, default=40
            Draw so many attributes, the most important ones.
        row : table of one row, default=None
            Mark the values of this row.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if not given.

        Returns
        -------
        NomogramDisplay
            The picture.
        """
        local = None if row is None else clf.explain_local(row)
        return cls(explain_global(clf), target, max_attributes, local).plot(ax=ax)

    @classmethod
    def from_explanation(
        cls,
        explanation: GlobalExplanation,
        *,
        target: Any = None,
        max_attributes: int = 40,
        row: LocalExplanation | None = None,
        ax: Any = None,
    ) -> NomogramDisplay:
        """Draw what ``explain_global`` returned.

        Parameters
        ----------
        explanation : GlobalExplanation
            Of a model that is one sum.
        target, max_attributes, ax
            As in ``from_estimator``.
        row : LocalExplanation, default=None
            Of a row whose values are marked.

        Returns
        -------
        NomogramDisplay
            The picture.
        """
        return cls(explanation, target, max_attributes, row).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        """Draw the nomogram."""
        found = self.explanation
        if found.base is None:
            raise ParameterError(
                f"{found.note} A nomogram shows one sum: draw a part, for example "
                "explanation.parts[0].explanation.plot()."
            )
        c = self._target(found)
        order = found.order
        if found.class_importance is not None:
            order = np.argsort(-found.class_importance[:, c], kind="stable")
        chosen = order[: self.max_attributes].tolist()
        lines = [_dots(found.tables[j], c) for j in chosen]
        base = float(evidence_of(found.base)[c] * found.link_scale)
        two = len(found.classes) == 2
        width = 10.0
        names = [label(found.attributes[j], 34) for j in chosen]
        n_rows = len(lines) + 1
        height = 1.3 + 0.44 * n_rows + (0.9 if two else 0.0)
        ax = self._axes(ax, width, height)
        amounts = np.concatenate([line.amounts for line in lines])
        finite = amounts[np.isfinite(amounts)]
        shown_base = base if np.isfinite(base) else 0.0
        low = min(float(finite.min(initial=0.0)), shown_base, -1e-6)
        high = max(float(finite.max(initial=0.0)), shown_base, 1e-6)
        room = 0.06 * (high - low)
        low, high = low - room, high + room
        ax.set_xlim(low, high)
        bottom = -n_rows - (2.6 if two else 0.0)
        ax.set_ylim(bottom + 0.4, 0.7)
        inches = ax.get_position().width * ax.figure.get_figwidth()
        inches -= max(text_width(name, 9.0) for name in [*names, "prior"])
        scale = max(inches, 2.0) / (high - low)
        ax.axvline(0.0, color=PALE, linewidth=1.0, zorder=0)
        marks = self._marks(found, chosen, c)
        for k, line in enumerate(lines):
            _draw_line(ax, -k, line, scale, marks[k])
        ax.plot([shown_base], [-len(lines)], "D", color=INK, markersize=5)
        ax.annotate(
            f"{base:+.2f}",
            (shown_base, -len(lines)),
            (0, 6),
            textcoords="offset points",
            ha="center",
            fontsize=_SMALL,
        )
        labels = [*names, "prior"]
        places = [-float(k) for k in range(n_rows)]
        if two:
            total = base + sum(mark for mark in marks if mark is not None)
            has_row = self.row is not None and len(chosen) == len(found.attributes)
            self._draw_total(
                ax, lines, base, (low, high), -n_rows - 0.4, total if has_row else None
            )
            labels += ["sum of evidence", f"P({label(found.classes[c], 24)})"]
            places += [-n_rows - 0.4, -n_rows - 1.4]
        ax.set_yticks(places, labels)
        ax.tick_params(axis="y", length=0)
        ax.xaxis.tick_top()
        ax.xaxis.set_label_position("top")
        other = str(found.classes[1 - c]) if two else "the mean of the other classes"
        left, right = label(other, 40), label(found.classes[c], 40)
        ax.set_xlabel(f"← {left} · evidence in log-odds · {right} →")
        bare(ax, "right", "left", "bottom")

    def _target(self, found: GlobalExplanation) -> int:
        known = found.classes.tolist()
        if self.target is not None:
            if self.target not in known:
                raise ParameterError(
                    f"{self.target!r} is not among the classes {known}."
                )
            return known.index(self.target)
        assert found.base is not None
        return 1 if len(known) == 2 else int(np.argmax(found.base))

    def _marks(
        self, found: GlobalExplanation, chosen: list[int], c: int
    ) -> list[float | None]:
        """Evidence of the marked row's cells."""
        if self.row is None or self.row.contributions is None:
            return [None] * len(chosen)
        evidence = evidence_of(self.row.contributions[0])[:, c] * found.link_scale
        return [float(evidence[j]) for j in chosen]

    def _draw_total(
        self,
        ax: Any,
        lines: list[_Dots],
        base: float,
        limits: tuple[float, float],
        y: float,
        total: float | None,
    ) -> None:
        """Draw the sum of all dots, and the probability below it."""
        plt = pyplot()
        least = base + sum(float(line.amounts.min()) for line in lines)
        most = base + sum(float(line.amounts.max()) for line in lines)
        least, most = max(min(least, -1.0), -12.0), min(max(most, 1.0), 12.0)
        low, high = limits
        room = 0.04 * (high - low)
        factor = (high - low - 2 * room) / (most - least)

        def place(z: float) -> float:
            return low + room + (z - least) * factor

        ticks = plt.MaxNLocator(9).tick_values(least, most)
        for z in ticks[(ticks >= least) & (ticks <= most)]:
            ax.plot([place(z)] * 2, [y, y - 0.18], color=INK, linewidth=0.8)
            ax.text(
                place(z), y + 0.12, f"{z:g}", ha="center", va="bottom", fontsize=7.5
            )
        ax.plot([place(least), place(most)], [y, y], color=INK, linewidth=0.8)
        y -= 1.0
        ax.plot([place(least), place(most)], [y, y], color=INK, linewidth=0.8)
        taken = -np.inf
        inches = ax.get_position().width * ax.figure.get_figwidth() * 0.75
        gap = 0.32 * (high - low) / inches
        for p in (0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5):
            for q in {p, 1.0 - p}:
                z = float(np.log(q / (1.0 - q)))
                if least <= z <= most:
                    ax.plot([place(z)] * 2, [y, y - 0.18], color=INK, linewidth=0.8)
        for q in (
            0.001,
            0.01,
            0.05,
            0.1,
            0.2,
            0.3,
            0.5,
            0.7,
            0.8,
            0.9,
            0.95,
            0.99,
            0.999,
        ):
            z = float(np.log(q / (1.0 - q)))
            if least <= z <= most and place(z) - taken > gap:
                ax.text(
                    place(z), y - 0.25, f"{q:g}", ha="center", va="top", fontsize=7.5
                )
                taken = place(z)
        if total is not None:
            x = place(float(np.clip(total, least, most)))
            ax.plot([x, x], [y, y + 1.0], "o-", color=_colour(total))


class _Dots:
    """Values of one attribute and their evidence."""

    def __init__(self, labels: list[str], amounts: Any, rows: Any) -> None:
        self.labels, self.amounts, self.rows = labels, amounts, rows


def _dots(table: AttributeTable, c: int) -> _Dots:
    evidence = table.evidence[:, c]
    if table.points is not None:
        plt = pyplot()
        low, high = float(table.points[0]), float(table.points[-1])
        ticks = plt.MaxNLocator(9).tick_values(low, high)
        ticks = ticks[(ticks >= low) & (ticks <= high)]
        amounts = np.interp(ticks, table.points, evidence)
        return _Dots([f"{x:g}" for x in ticks], amounts, np.ones(len(ticks)))
    # The first is code 0: missing cells say nothing, at zero.
    rows = np.ones(len(evidence)) if table.counts is None else table.counts.sum(axis=1)
    return _Dots(table.labels[1:], evidence[1:], rows[1:])


def _draw_line(
    ax: Any, y: float, line: _Dots, scale: float, mark: float | None
) -> None:
    low, high = float(line.amounts.min()), float(line.amounts.max())
    ax.plot([low, high], [y, y], color=INK, linewidth=0.7, zorder=1)
    share = line.rows / max(float(line.rows.max()), 1e-300)
    ax.scatter(
        line.amounts,
        np.full(len(line.amounts), y),
        s=8.0 + 40.0 * share,
        color=[_colour(a) for a in line.amounts],
        zorder=2,
        linewidths=0.4,
        edgecolors="white",
    )
    if mark is not None:
        ax.plot(
            [mark], [y], "o", markersize=11, markerfacecolor="none", color=INK, zorder=3
        )
    _draw_labels(ax, y, line, scale)


def _colour(amount: float) -> str:
    if abs(amount) < 1e-12:
        return INK
    return FOR if amount > 0 else AGAINST


def _draw_labels(ax: Any, y: float, line: _Dots, scale: float) -> None:
    """Write values above and below the line, frequent ones first, none on another."""
    taken: dict[float, list[tuple[float, float]]] = {level: [] for level in _LEVELS}
    left, right = ax.get_xlim()
    # The ends of the line are named before what lies between, if there is room.
    ends = {int(np.argmin(line.amounts)), int(np.argmax(line.amounts))}
    order = sorted(
        range(len(line.labels)), key=lambda v: (v not in ends, -line.rows[v])
    )
    for v in order:
        text = label(line.labels[v], 22)
        half = (text_width(text, _SMALL) / 2.0 + 0.04) / scale
        x = float(np.clip(line.amounts[v], left + half, right - half))
        for level in _LEVELS:
            free = all(x + half < a or x - half > b for a, b in taken[level])
            if free:
                taken[level].append((x - half, x + half))
                ax.text(
                    x,
                    y + level,
                    text,
                    ha="center",
                    va="center",
                    fontsize=_SMALL,
                    color=INK,
                )
                break
