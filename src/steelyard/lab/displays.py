"""The picture of a comparison for papers, drawn by matplotlib.

It is a scikit-learn display: ``from_results`` draws, ``ax_`` and ``figure_`` are where.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard._common.arrays import Floats
from steelyard._common.text import shortened
from steelyard.displays.drawing import LINES, Display
from steelyard.exceptions import ParameterError
from steelyard.lab.report.summaries import summarize
from steelyard.lab.results import Results

__all__ = ["CriticalDifferenceDisplay"]

_MAX_NAME_LENGTH = 28
_BAR_HEIGHT = 0.32


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
    names, ranks
        Methods by rank.
    groups : list of (float, float, int)
        Bars over methods that do not differ: from, to, and the line among bars.
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
    >>> display.groups
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
        order = np.argsort(values, kind="stable")
        self.names, self.ranks = [names[i] for i in order], values[order]
        self.critical_difference = float(critical_difference)
        self.groups: list[tuple[float, float, int]] = []
        ends: list[float] = []
        for first, last in groups_of_equals(self.ranks, critical_difference):
            start, end = float(self.ranks[first]), float(self.ranks[last])
            # Bars share a line if they leave a gap.
            gap = 0.02 * (len(names) - 1)
            line = next((i for i, x in enumerate(ends) if x + gap < start), len(ends))
            ends[line : line + 1] = [end]
            self.groups.append((start, end, line))

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
        k, centred = len(self.names), {"ha": "center", "va": "center"}
        # The best methods are to the left, and the outermost are nearest to the axis.
        n_left = (k + 1) // 2
        lines = [*range(n_left), *range(k - n_left - 1, -1, -1)]
        below = 1.0 + _BAR_HEIGHT * (1 + max((g[2] for g in self.groups), default=-1))
        margin = 0.03 * (k - 1)
        ax = self._axes(ax, 9.0, 0.95 + 0.24 * (below + max(lines)))
        thin = {"color": "black", "lw": 0.8}
        ax.plot([1, k], [0, 0], color="black", lw=1)
        for rank in range(1, k + 1, max(1, round((k - 1) / 10))):
            ax.plot([rank, rank], [0, 0.25], color="black", lw=1)
            ax.text(rank, 0.65, str(rank), **centred)
        end = min(1 + self.critical_difference, k)
        ax.plot([1, 1, 1, end, end, end], [1.8, 2.2, 2, 2, 1.8, 2.2], "k-", lw=1.5)
        text = f"critical difference {self.critical_difference:.2f}"
        ax.text(end + margin / 2, 2.0, text, ha="left", va="center")
        for first, last, line in self.groups:
            y = -0.5 - _BAR_HEIGHT * line
            style = {"color": LINES[0], "lw": 3.5, "solid_capstyle": "round"}
            ax.plot([first, last], [y, y], **style)
        texts = [shortened(name, _MAX_NAME_LENGTH) for name in self.names]
        texts = [f"{t}  {rank:.2f}" for t, rank in zip(texts, self.ranks, strict=True)]
        for i, (rank, label) in enumerate(zip(self.ranks, texts, strict=True)):
            y, is_left = -below - lines[i], i < n_left
            end, sign, side = (1, -1, "right") if is_left else (k, 1, "left")
            ax.plot([rank, rank, end + sign * margin], [0, y, y], **thin)
            x, style = end + sign * 4 / 3 * margin, {"ha": side, "va": "center"}
            ax.text(x, y, label, parse_math=False, **style)
        # Labels take up to a third of the width on either side.
        room = margin + (k - 1) * min(1.0, 0.022 * max(map(len, texts)))
        ax.set_xlim(1 - room, k + room)
        ax.set_ylim(-below - max(lines) - 1.0, 2.6)
        ax.set_axis_off()


def groups_of_equals(ranks: Floats, difference: float) -> list[tuple[int, int]]:
    """Return first and last position of the longest runs of ranks that do not differ.

    Ranks are sorted and differ by ``difference``; a run has two or more of them.

    >>> groups_of_equals(np.array([1.0, 1.5, 2.2, 4.0]), 1.0)
    [(0, 1), (1, 2)]
    """
    lasts = np.searchsorted(ranks, ranks + difference, side="left") - 1
    runs, reached = [], -1
    for first, last in enumerate(lasts.tolist()):
        if last > first and last > reached:
            runs.append((first, last))
            reached = last
    return runs
