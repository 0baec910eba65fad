"""The picture of a comparison for papers, drawn by matplotlib.

It is a scikit-learn display: ``from_results`` draws, ``ax_`` and ``figure_`` are where.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.displays.drawing import LINES, Display
from steelyard.exceptions import ParameterError
from steelyard.lab.report.rank_diagram import RankLayout
from steelyard.lab.report.summaries import summarize
from steelyard.lab.results import Results

__all__ = ["CriticalDifferenceDisplay"]

_SIDES = {"start": "left", "middle": "center", "end": "right"}
_STYLES: dict[str, dict[str, Any]] = {
    "axis": {"color": "black", "lw": 1},
    "cd": {"color": "black", "lw": 1.5},
    "bar": {"color": LINES[0], "lw": 3.5, "solid_capstyle": "round"},
    "name": {"color": "black", "lw": 0.8},
}


class CriticalDifferenceDisplay(Display):
    """Average ranks on an axis, with bars over methods that do not differ.

    Parameters
    ----------
    names : sequence of str
        Methods.
    ranks : array-like of shape (n_methods,)
        Average ranks, 1 for the best.
    critical_difference : float
        From which difference of ranks on methods differ.

    Attributes
    ----------
    layout : RankLayout
        Methods by rank, and bars.
    ax_, figure_
        Where it was drawn.

    References
    ----------
    J. Demsar (2006), Statistical comparisons of classifiers over multiple data sets,
    JMLR 7, 1-30.

    Examples
    --------
    >>> ranks = [1.4, 1.9, 2.7]
    >>> display = CriticalDifferenceDisplay(["RNB", "CAWNB", "NB"], ranks, 1.0)
    >>> display.layout.groups
    [(1.4, 1.9, 0), (1.9, 2.7, 1)]
    """

    def __init__(
        self, names: list[str], ranks: ArrayLike, critical_difference: float
    ) -> None:
        values = np.asarray(ranks, dtype=np.float64)
        if len(names) < 2 or values.shape != (len(names),):
            raise ParameterError(
                "A critical difference diagram needs two methods at least, and a rank "
                f"for each. Got {len(names)} names and ranks of shape {values.shape}."
            )
        self.layout = RankLayout(names, values, critical_difference)

    @classmethod
    def from_results(
        cls,
        results: Results,
        metric: str = "accuracy",
        *,
        protocol: str | None = None,
        ax: Any = None,
    ) -> CriticalDifferenceDisplay:
        """Rank the methods over data sets and draw.

        Parameters
        ----------
        results : Results
            Results of a comparison.
        metric : str, default="accuracy"
            What to rank by.
        protocol : str, default=None
            May be left out if the results contain only one.
        """
        summary = summarize(results, metric, protocol)
        if not summary.testable:
            raise ParameterError(
                "A critical difference diagram needs two methods and two data sets on "
                f"which both have all folds. Got {len(summary.methods)} methods and "
                f"{len(summary.complete)} such data sets."
            )
        display = cls(summary.methods, summary.ranks, summary.critical_difference)
        return display.plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        layout = self.layout
        ax = self._axes(ax, 9.0, 0.95 + 0.24 * layout.depth)
        for stroke in layout.strokes():
            ax.plot(stroke.x, stroke.y, **_STYLES[stroke.kind])
        labels = layout.labels()
        for label in [*layout.captions(), *labels]:
            style = {"ha": _SIDES[label.anchor], "va": "center", "parse_math": False}
            ax.text(label.x, label.y, label.text, **style)
        # Labels take up to a third of the width on either side.
        longest = max(len(label.text) for label in labels)
        side = layout.margin + (layout.high - 1) * min(1.0, 0.022 * longest)
        ax.set_xlim(1 - side, layout.high + side)
        ax.set_ylim(-layout.depth - 1.0, 2.6)
        ax.set_axis_off()
