"""What the values of one attribute say, with how often they occur."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.displays import _style as draw
from steelyard.displays._base import Display
from steelyard.exceptions import ParameterError
from steelyard.explain.overall import explain_global
from steelyard.explain.value_tables import AttributeTable
from steelyard.explain.views import position_of

# How many classes are drawn unless they are named.
_MAX_LINES = 6

# Evidence by value and how to draw it, for each class.
_Curves = list[tuple[NDArray[np.float64], dict[str, Any]]]


@dataclass(eq=False, repr=False)
class ValueCurveDisplay(Display):
    """Evidence over the values of one attribute, above bars of their counts.

    Of numbers the bars are a histogram, if the model keeps one (``ranges_``).

    Parameters
    ----------
    table : AttributeTable
        The attribute.
    classes : list, default=None
        Classes to draw: by default the second of two, or up to six of several, those
        that the attribute says most about.

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
                f"{table.name} is a pair of columns. Use PairHeatmapDisplay."
            )
        is_named = table.points is None and not table.edges
        long = is_named and max(map(len, table.labels)) > 8
        width = max(6.4, 0.4 * len(table.labels)) if table.points is None else 6.4
        ax = self._axes(ax, width, 4.4 if long else 3.8)
        ax.axhline(0.0, color=draw.INK, linewidth=0.8)
        evidence = table.evidence
        curves: _Curves = []
        for i, c in enumerate(self._chosen()):
            style = {"color": draw.FOR if two else draw.line_colour(i)}
            style["label"] = draw.label(table.classes[c], 28)
            curves.append((evidence[:, c], style))
        if table.points is not None:
            low, high = table.span
            shown = (table.points >= low) & (table.points <= high)
            for amounts, style in curves:
                ax.plot(table.points[shown], amounts[shown], **style)
            self._histogram(ax)
            ax.set_xlabel(draw.label(table.name, 60))
        elif table.edges:
            self._draw_bins(ax, curves)
        else:
            self._draw_values(ax, curves, long)
        what = "against the others"
        if two:
            what = f"for {table.classes[1]} against {table.classes[0]}"
        else:
            place = {"loc": "upper left", "bbox_to_anchor": (1.08, 1.0)}
            ax.legend(**place, fontsize=8, frameon=False)
        ax.set_ylabel(f"evidence {draw.label(what, 44)}", fontsize=8 if two else 10)
        draw.bare(ax, "top")

    def _chosen(self) -> list[int]:
        if self.classes is not None:
            return [position_of(c, self.table.classes) for c in self.classes]
        if len(self.table.classes) == 2:
            return [1]
        strength = self.table.importance
        if strength is None:
            strength = np.abs(self.table.evidence).max(axis=0)
        return sorted(draw.largest(strength, _MAX_LINES))

    def _draw_bins(self, ax: Any, curves: _Curves) -> None:
        """Draw a step for every interval; outer ones end where the rows do.

        Where that is not known, they end where a typical one would.
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
        for amounts, style in curves:
            ax.stairs(amounts[inner], bounds, baseline=None, linewidth=2.0, **style)
        middle, widths = (bounds[1:] + bounds[:-1]) / 2.0, np.diff(bounds) * 0.96
        if not self._histogram(ax):
            self._counts(ax, middle, widths, inner)
        ax.set_xlim(bounds[0], bounds[-1])
        ax.set_xlabel(f"{draw.label(table.name, 60)}  (outer intervals are open)")
        if len(table.labels) > len(bounds):
            last = zip(table.classes, table.evidence[-1], strict=True)
            texts = [f"{name}: {amount:+.2f}" for name, amount in last]
            shown = ", ".join(texts[c] for c in self._chosen())
            draw.headline(ax, f"missing: {shown}", 8)

    def _draw_values(self, ax: Any, curves: _Curves, long: bool) -> None:
        """Draw a group of markers for every value."""
        labels = [draw.label(name, 24) for name in self.table.labels[1:]]
        places = np.arange(len(labels), dtype=np.float64)
        step = 0.6 / max(1, len(curves))
        for i, (amounts, style) in enumerate(curves):
            x = places + (i - (len(curves) - 1) / 2.0) * step
            ax.plot(x, amounts[1:], "o", **style)
            ax.vlines(x, 0.0, amounts[1:], color=style["color"], linewidth=1.5)
        self._counts(ax, places, np.full(len(labels), 0.85), slice(1, None))
        slanted = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
        ax.set_xticks(places, labels, **(slanted if long else {}))
        ax.set_xlim(-0.6, len(labels) - 0.4)
        ax.set_xlabel(draw.label(self.table.name, 60))

    def _histogram(self, ax: Any) -> bool:
        """Draw the histogram of a column of numbers; say whether it has one."""
        where = self.table.range
        if where is None or not where.histogram or where.low == where.high:
            return False
        ends = np.linspace(where.low, where.high, len(where.histogram) + 1)
        # Shares of many rows are those of a sample.
        rows = np.round(np.array(where.histogram) * where.weight, 6)
        rows = rows.round() if where.weight > 1000.0 else rows
        self._bars(ax, (ends[1:] + ends[:-1]) / 2.0, rows, np.diff(ends) * 0.96)
        return True

    def _counts(self, ax: Any, places: Any, widths: Any, coded: slice) -> None:
        if self.table.counts is not None:
            rows = self.table.counts[coded].sum(axis=1)
            self._bars(ax, places, rows, widths)

    def _bars(self, ax: Any, places: Any, rows: Any, widths: Any) -> None:
        """Draw counts as pale bars in the lowest quarter, on an axis of their own."""
        low, high = ax.get_ylim()
        ax.set_ylim(low - 0.33 * (high - low), high)
        draw.bare(draw.count_bars(ax, places, rows, widths, 4.2), "top")
