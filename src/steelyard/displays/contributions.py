"""Contributions: those of one attribute as a curve, those of one row as bars."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard._common.arrays import Floats
from steelyard._common.text import cell_text, probability_text
from steelyard.displays import drawing as draw
from steelyard.exceptions import ParameterError
from steelyard.explain.evidence import Evidence
from steelyard.explain.local import explain_local
from steelyard.explain.overall import explain_global
from steelyard.explain.value_tables import AttributeTable

# How many classes are drawn unless they are named.
_MAX_LINES = 6

# Contributions by value, half widths of their intervals, and how to draw them, for each
# class.
_Curves = list[tuple[Floats, Floats | None, dict[str, Any]]]


@dataclass(eq=False, repr=False)
class ValueCurveDisplay(draw.Display):
    """Contributions of the values of one attribute, above bars of their counts.

    Of numbers the bars are a histogram, if the model keeps one (``training_.ranges``).

    Parameters
    ----------
    table : AttributeTable
        The attribute.
    classes : list, default=None
        Classes to draw: by default the second of two, or up to six of several, those
        of largest contributions.

    Examples
    --------
    >>> from steelyard.displays import ValueCurveDisplay
    >>> from steelyard import NaiveBayes
    >>> from sklearn.datasets import load_iris
    >>> clf = NaiveBayes().fit(*load_iris(return_X_y=True, as_frame=True))
    >>> display = ValueCurveDisplay.from_estimator(clf, "petal width (cm)")
    """

    table: AttributeTable
    classes: list[Any] | None = None

    @classmethod
    def from_estimator(
        cls,
        clf: Any,
        attribute: str | int,
        *,
        classes: list[Any] | None = None,
        ax: Any = None,
    ) -> ValueCurveDisplay:
        """Draw one attribute of a classifier that is one sum.

        Parameters
        ----------
        clf : BaseNB
            A fitted classifier.
        attribute : str or int
            Name or position of a column.
        classes
            As in ``ValueCurveDisplay``.
        """
        return cls(explain_global(clf).table(attribute), classes).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        table, two = self.table, len(self.table.classes) == 2
        if table.sides:
            raise ParameterError(
                f"{table.name} is an interaction. Use InteractionHeatmapDisplay."
            )
        if not table.has_values:
            raise ParameterError(
                f"The model knows no values of {table.name!r}, so there is nothing to "
                "draw: it was dropped as an identifier, or has no known cell."
            )
        is_named = table.points is None and not table.edges
        long = is_named and max(map(len, table.labels)) > 8
        width = max(6.4, 0.4 * len(table.labels)) if is_named else 6.4
        ax = self._axes(ax, width, 4.4 if long else 3.8)
        ax.axhline(0.0, color=draw.INK, linewidth=0.8)
        evidence, half = table.evidence, table.half_width
        curves: _Curves = []
        for i, c in enumerate(self._chosen()):
            style = {"color": draw.FOR if two else draw.LINES[i % len(draw.LINES)]}
            style["label"] = draw.label(table.classes[c], 28)
            curves.append((evidence[:, c], None if half is None else half[:, c], style))
        if table.points is not None:
            first, last = table.span
            shown = (table.points >= first) & (table.points <= last)
            x = table.points[shown]
            for amounts, half, style in curves:
                if half is not None:
                    ends = (amounts - half)[shown], (amounts + half)[shown]
                    pale = {"color": style["color"], "alpha": 0.15, "linewidth": 0.0}
                    ax.fill_between(x, *ends, **pale)
            for amounts, _, style in curves:
                ax.plot(x, amounts[shown], **style)
            self._histogram(ax)
            ax.set_xlabel(draw.label(table.title or table.name, 60))
        elif table.edges:
            self._draw_bins(ax, curves)
        else:
            self._draw_values(ax, curves, long)
        what = "against the others"
        if two:
            what = f"for {table.classes[1]} against {table.classes[0]}"
        else:
            beside = {"loc": "upper left", "bbox_to_anchor": (1.08, 1.0)}
            ax.legend(**beside, fontsize=8, frameon=False)
        ax.set_ylabel(f"evidence {draw.label(what, 44)}", fontsize=8 if two else 10)
        draw.bare(ax, "top")

    def _chosen(self) -> list[int]:
        table, importance = self.table, self.table.importance
        if importance is None:
            importance = np.abs(table.evidence).max(axis=0)
        return draw.shown_classes(table.classes, self.classes, _MAX_LINES, importance)

    def _draw_bins(self, ax: Any, curves: _Curves) -> None:
        """Draw a step for each interval; the outer ones end at the range of the rows.

        If the range is missing, outer intervals have the median width.
        """
        table, edges = self.table, np.array(self.table.edges)
        gaps = np.diff(edges)
        outer = float(np.median(gaps)) if len(gaps) else max(abs(float(edges[0])), 1.0)
        low, high = edges[0] - outer, edges[-1] + outer
        if table.range is not None and table.range.low < edges[0]:
            low = table.range.low
        if table.range is not None and table.range.high > edges[-1]:
            high = table.range.high
        bounds = np.concatenate([[low], edges, [high]])
        inner = slice(1, len(bounds))
        for amounts, half, style in curves:
            if half is not None:
                low_end, high_end = (amounts - half)[inner], (amounts + half)[inner]
                pale = {"color": style["color"], "alpha": 0.15, "linewidth": 0.0}
                ax.stairs(high_end, bounds, baseline=low_end, fill=True, **pale)
        for amounts, _, style in curves:
            ax.stairs(amounts[inner], bounds, baseline=None, linewidth=2.0, **style)
        if table.alone is not None:
            dashed = {"baseline": None, "linewidth": 1.2, "linestyle": "--"}
            for c, (_, _, style) in zip(self._chosen(), curves, strict=True):
                ax.stairs(table.alone[inner, c], bounds, **dashed, color=style["color"])
            draw.headline(ax, "dashed: what the column says without the others", 8)
        middle, widths = (bounds[1:] + bounds[:-1]) / 2.0, np.diff(bounds) * 0.96
        if not self._histogram(ax):
            self._counts(ax, middle, widths, inner)
        ax.set_xlim(bounds[0], bounds[-1])
        ax.set_xlabel(
            f"{draw.label(table.title or table.name, 60)}  (outer intervals are open)"
        )
        if len(table.labels) > len(bounds):
            last = zip(table.classes, table.evidence[-1], strict=True)
            texts = [f"{name}: {amount:+.2f}" for name, amount in last]
            shown = ", ".join(texts[c] for c in self._chosen())
            draw.headline(ax, f"missing: {shown}", 8)

    def _draw_values(self, ax: Any, curves: _Curves, long: bool) -> None:
        """Draw a group of markers for every value."""
        labels = [draw.label(name, 24) for name in self.table.labels[1:]]
        positions = np.arange(len(labels), dtype=np.float64)
        step = 0.6 / max(1, len(curves))
        for i, (amounts, half, style) in enumerate(curves):
            x = positions + (i - (len(curves) - 1) / 2.0) * step
            ax.plot(x, amounts[1:], "o", **style)
            ax.vlines(x, 0.0, amounts[1:], color=style["color"], linewidth=1.5)
            if half is not None:
                ends = (amounts - half)[1:], (amounts + half)[1:]
                pale = {"color": style["color"], "alpha": 0.15, "linewidth": 6.0}
                ax.vlines(x, *ends, **pale)
        self._counts(ax, positions, np.full(len(labels), 0.85), slice(1, None))
        slanted = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
        ax.set_xticks(positions, labels, **(slanted if long else {}))
        ax.set_xlim(-0.6, len(labels) - 0.4)
        ax.set_xlabel(draw.label(self.table.title or self.table.name, 60))

    def _histogram(self, ax: Any) -> bool:
        """Draw the histogram of a column of numbers; return whether it has one."""
        numbers = self.table.range
        if numbers is None or not numbers.histogram or numbers.low == numbers.high:
            return False
        ends = np.linspace(numbers.low, numbers.high, len(numbers.histogram) + 1)
        # Shares of many rows are those of a sample.
        rows = np.round(np.array(numbers.histogram) * numbers.weight, 6)
        rows = rows.round() if numbers.weight > 1000.0 else rows
        self._bars(ax, (ends[1:] + ends[:-1]) / 2.0, rows, np.diff(ends) * 0.96)
        return True

    def _counts(self, ax: Any, positions: Any, widths: Any, coded: slice) -> None:
        if self.table.counts is not None:
            rows = self.table.counts[coded].sum(axis=1)
            self._bars(ax, positions, rows, widths)

    def _bars(self, ax: Any, positions: Any, rows: Any, widths: Any) -> None:
        """Draw counts as pale bars in the lowest quarter, on a separate axis."""
        low, high = ax.get_ylim()
        ax.set_ylim(low - 0.33 * (high - low), high)
        draw.bare(draw.count_bars(ax, positions, rows, widths), "top")


@dataclass(eq=False, repr=False)
class WaterfallDisplay(draw.Display):
    """Contributions of one row, added up from the average row to the log-odds.

    Parameters
    ----------
    evidence : Evidence
        Of one row and two classes.
    max_attributes : int, default=15
        How many attributes to draw; the rest are one bar.

    Examples
    --------
    >>> from steelyard.displays import WaterfallDisplay
    >>> from steelyard import NaiveBayes
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> clf = NaiveBayes().fit(X, y)
    >>> display = WaterfallDisplay.from_estimator(clf, X[:1])
    """

    evidence: Evidence
    max_attributes: int = 15

    @classmethod
    def from_estimator(
        cls,
        clf: Any,
        X: Any,
        *,
        row: int = 0,
        target: Any = None,
        against: Any = None,
        max_attributes: int = 15,
        ax: Any = None,
    ) -> WaterfallDisplay:
        """Draw the prediction of a classifier for one row.

        Parameters
        ----------
        clf : BaseNB
            A fitted classifier.
        X : table
            Rows.
        row : int, default=0
            Which of them.
        target, against : class, default=None
            The classes compared; the two most probable ones if not given.
        max_attributes
            As in ``WaterfallDisplay``.
        """
        evidence = explain_local(clf, X).evidence(row, target, against)
        return cls(evidence, max_attributes).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        items = self.evidence.items
        lines = [(" ".join(self.evidence.start).strip(), self.evidence.prior)]
        for item in items[: self.max_attributes]:
            name = draw.label(item.title or item.attribute, 34)
            value = draw.label(item.value, 26)
            lines.append((cell_text(name, value), item.amount))
        rest = items[self.max_attributes :]
        if rest:
            amount = math.fsum(item.amount for item in rest)
            lines.append((f"{len(rest)} other columns", amount))
        ax = self._axes(ax, 8.4, 1.3 + 0.3 * (len(lines) + 1))
        ends = [0.0]
        for k, (_, amount) in enumerate(lines):
            amount = amount if math.isfinite(amount) else 0.0
            left, right = ends[-1], ends[-1] + amount
            ax.barh(-k, amount, left=left, color=draw.side_colour(amount), height=0.66)
            ax.plot([right] * 2, [-k - 1.33, -k + 0.33], color=draw.PALE, zorder=0)
            paper = {"facecolor": "white", "edgecolor": "none", "pad": 0.4}
            _write(ax, amount, (right, -k), color=draw.INK, bbox=paper)
            ends.append(right)
        total, bottom = ends[-1], -len(lines)
        ax.barh(bottom, total, color=draw.INK, height=0.66)
        _write(ax, total, (total, bottom))
        levels = [-float(k) for k in range(len(lines) + 1)]
        ax.set_yticks(levels, [*(text for text, _ in lines), "sum"])
        room = 0.12 * (max(ends) - min(ends) or 1.0)
        ax.set_xlim(min(ends) - room, max(ends) + room)
        ax.set_ylim(bottom - 0.6, 0.6)
        ax.axvline(0.0, color=draw.INK, linewidth=0.8)
        target, probability = self.evidence.target, self.evidence.probability
        names = draw.label(self.evidence.against, 30), draw.label(target, 30)
        ax.set_xlabel(draw.sides(names[0], "log-odds", names[1]))
        shown = probability_text(probability)
        draw.headline(ax, f"{draw.label(target, 50)}: probability {shown}")
        ax.tick_params(axis="y", length=0)
        draw.bare(ax, "top", "right", "left")


def _write(ax: Any, amount: float, at: tuple[float, int], **style: Any) -> None:
    """Write an amount beside its bar, on the side that it points to."""
    side, ha = (4, "left") if amount >= 0 else (-4, "right")
    style.update(ha=ha, va="center", fontsize=8, textcoords="offset points")
    ax.annotate(f"{amount:+.2f}", at, (side, 0), **style)
