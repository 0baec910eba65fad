"""Learned weights as bars."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard._common.arrays import Floats
from steelyard.displays import drawing as draw
from steelyard.exceptions import ParameterError
from steelyard.explain.overall import explain_global
from steelyard.explain.shared import in_words
from steelyard.explain.weight_intervals import WeightIntervals


@dataclass(eq=False, repr=False)
class WeightBarsDisplay(draw.Display):
    """Weights of attributes as horizontal bars, largest first.

    Parameters
    ----------
    names : list of str
        Attributes.
    weights : ndarray of shape (d,)
        Their weights.
    low, high : ndarray of shape (d,), default=None
        Ends of intervals.
    title : str, default="weight"
        What the numbers are.
    max_attributes : int, default=40
        How many to draw, the largest ones.

    Examples
    --------
    >>> from steelyard.displays import WeightBarsDisplay
    >>> from steelyard import WeightedNB
    >>> from sklearn.datasets import load_iris
    >>> clf = WeightedNB().fit(*load_iris(return_X_y=True, as_frame=True))
    >>> display = WeightBarsDisplay.from_estimator(clf)
    """

    names: list[str]
    weights: Floats
    low: Floats | None = None
    high: Floats | None = None
    title: str = "weight"
    max_attributes: int = 40

    @classmethod
    def from_estimator(
        cls, clf: Any, *, max_attributes: int = 40, ax: Any = None
    ) -> WeightBarsDisplay:
        """Draw the attribute weights of a classifier; its importances without any.

        Parameters
        ----------
        clf : BaseNB
            A fitted classifier.
        max_attributes
            As in ``WeightBarsDisplay``.
        """
        whole = explain_global(clf)
        weights: Any = whole.weights.get("attribute_weights_")
        if "value_effects_" in whole.weights:
            weights = None  # they are a part of what a column contributes
        names, title = whole.attributes, "weight"
        if weights is not None and np.ndim(weights) == 2:
            weights, title = np.mean(weights, axis=0), "mean weight over the pairs"
        if weights is not None and len(weights) == len(names):
            kept = [j for j in range(len(names)) if not whole._is_interaction(j)]
            names, weights = [names[k] for k in kept], weights[kept]
        if weights is None:
            weights, title = whole.importance, "importance: mean absolute evidence"
            names = in_words(whole.attributes, whole.titles)
        if weights is None:
            raise ParameterError(
                f"{type(clf).__name__} has no weights of attributes, and importance "
                "needs rows here: use clf.explain_global(X).importance."
            )
        made = cls(list(names), weights, title=title, max_attributes=max_attributes)
        return made.plot(ax=ax)

    @classmethod
    def from_intervals(
        cls,
        intervals: WeightIntervals,
        *,
        name: str = "attribute_weights_",
        max_attributes: int = 40,
        ax: Any = None,
    ) -> WeightBarsDisplay:
        """Draw weights with intervals from ``explain_weights``.

        Parameters
        ----------
        intervals : WeightIntervals
            Weights and intervals.
        name : str, optional
            Which of the weights, ``"attribute_weights_"`` if not given; those of
            several classes are drawn one below the other.
        max_attributes
            As in ``WeightBarsDisplay``.
        """
        if name not in intervals.estimate:
            raise ParameterError(
                f"There are no intervals of {name!r}, only of "
                f"{list(intervals.estimate)}."
            )
        shape, names = intervals.estimate[name].shape, intervals.attributes
        if shape == (len(intervals.classes), len(names)):
            names = [f"{a}, {c}" for c in intervals.classes for a in names]
        elif shape != (len(names),):
            names = [", ".join(map(str, at)) for at in np.ndindex(shape)]
        arrays = (intervals.estimate, intervals.low, intervals.high)
        estimate, low, high = (array[name].ravel() for array in arrays)
        title = f"weight, {100 * intervals.level:g} % bootstrap intervals"
        return cls(names, estimate, low, high, title, max_attributes).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        weights = np.asarray(self.weights, dtype=np.float64)
        order = draw.largest(weights, self.max_attributes)
        ax = self._axes(ax, 7.0, 1.0 + 0.24 * len(order))
        places = -np.arange(len(order))
        ax.barh(places, weights[order], color=draw.FOR, height=0.7)
        if self.low is not None and self.high is not None:
            # A bootstrap interval may lie beside its estimate, at a bound for example.
            error = np.maximum([weights - self.low, self.high - weights], 0.0)[:, order]
            style = {"ecolor": draw.INK, "elinewidth": 1.0, "capsize": 2.0}
            ax.errorbar(weights[order], places, xerr=error, fmt="none", **style)
        ax.set_yticks(places, [draw.label(self.names[j], 40) for j in order])
        ax.axvline(0.0, color=draw.INK, linewidth=0.8)
        if "weight" in self.title:
            ax.axvline(1.0, color=draw.PALE, linewidth=1.0, zorder=0)
        ax.set_ylim(-len(order) + 0.4, 0.6)
        ax.set_xlabel(self.title)
        ax.tick_params(axis="y", length=0)
        draw.bare(ax, "top", "right", "left")
