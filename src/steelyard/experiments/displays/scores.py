"""Scores of two methods against each other, and of all on one data set."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from steelyard.displays._base import Display
from steelyard.displays._style import LINES, bare
from steelyard.exceptions import ParameterError
from steelyard.experiments.report.measures import Measure
from steelyard.experiments.report.summary import summarize
from steelyard.experiments.results import Results

__all__ = ["BarsDisplay", "ScatterDisplay"]

# Blue and vermilion, apart also for most colour-blind readers.
FIRST, SECOND = LINES[0], LINES[5]


class ScatterDisplay(Display):
    """One method against another, a point for each data set.

    Parameters
    ----------
    first, second : str
        Names of the methods across and up.
    x, y : array-like of shape (n_datasets,)
        Their scores.
    measure : Measure
        What the scores are.

    Attributes
    ----------
    n_first, n_second : int
        On how many data sets each is better.
    ax_, figure_
        Where it was drawn.
    """

    def __init__(
        self, first: str, second: str, x: ArrayLike, y: ArrayLike, measure: Measure
    ) -> None:
        self.first, self.second, self.measure = first, second, measure
        self.x = np.asarray(x, dtype=np.float64)
        self.y = np.asarray(y, dtype=np.float64)
        if len(self.x) == 0 or self.x.shape != self.y.shape:
            raise ParameterError(
                f"There is no data set with all folds of both {first!r} and {second!r}."
            )
        lead = (self.y - self.x) * (1.0 if measure.larger_is_better else -1.0)
        self.n_first = int(np.sum(lead < 0))
        self.n_second = int(np.sum(lead > 0))

    @classmethod
    def from_results(
        cls,
        results: Results,
        first: str,
        second: str,
        metric: str = "accuracy",
        *,
        protocol: str | None = None,
        ax: Any = None,
    ) -> ScatterDisplay:
        """Draw two methods of a comparison.

        Parameters
        ----------
        results : Results
            What a comparison found.
        first, second : str
            Names of the methods across and up.
        metric : str, default="accuracy"
            What to compare.
        protocol : str, default=None
            May be left out where the results hold only one.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        ScatterDisplay
            Drawn.
        """
        summary = summarize(results, metric, protocol)
        pair = [summary.position(name) for name in (first, second)]
        both = ~summary.partial[:, pair].any(axis=1)
        x, y = summary.means[both][:, pair].T
        return cls(first, second, x, y, summary.measure).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        ax = self._axes(ax, 5.0, 5.0)
        x, y = self.x * self.measure.scale, self.y * self.measure.scale
        values = np.concatenate([x, y])
        size = np.abs(values).max() or 1.0
        pad = 0.05 * (np.ptp(values) if np.ptp(values) > 1e-9 * size else size)
        ends = [values.min() - pad, values.max() + pad]
        ax.plot(ends, ends, color="black", lw=0.8)
        better = (y > x) == self.measure.larger_is_better
        colours = np.where(x == y, "gray", np.where(better, SECOND, FIRST))
        ax.scatter(x, y, s=28, alpha=0.75, c=list(colours), linewidths=0)
        ax.set(xlim=ends, ylim=ends, aspect="equal")
        style: dict[str, Any] = {"parse_math": False, "wrap": True}
        ax.set_xlabel(f"{self.first}: {self.measure.title}", **style)
        ax.set_ylabel(f"{self.second}: {self.measure.title}", **style)
        equal = len(x) - self.n_first - self.n_second
        ax.set_title(
            f"{self.second} better on {self.n_second}, {self.first} on {self.n_first}, "
            f"equal on {equal}",
            fontsize="medium",
            **style,
        )
        ax.grid(alpha=0.3)


class BarsDisplay(Display):
    """All methods on one data set, with their spread over folds.

    Parameters
    ----------
    names : sequence of str
        Methods.
    means, spreads : array-like of shape (n_methods,)
        Averages and standard deviations over folds.
    measure : Measure
        What they are.
    title : str, default=""
        Such as the name of the data set.

    Attributes
    ----------
    ax_, figure_
        Where it was drawn.
    """

    def __init__(
        self,
        names: list[str],
        means: ArrayLike,
        spreads: ArrayLike,
        measure: Measure,
        title: str = "",
    ) -> None:
        self.means = np.asarray(means, dtype=np.float64)
        self.spreads = np.asarray(spreads, dtype=np.float64)
        self.names, self.measure, self.title = list(names), measure, title

    @classmethod
    def from_results(
        cls,
        results: Results,
        dataset: str | None = None,
        metric: str = "accuracy",
        *,
        protocol: str | None = None,
        ax: Any = None,
    ) -> BarsDisplay:
        """Draw the methods on one data set, or their averages over all.

        Parameters
        ----------
        results : Results
            What a comparison found.
        dataset : str, default=None
            Its name; averages over data sets if None.
        metric : str, default="accuracy"
            What to draw.
        protocol : str, default=None
            May be left out where the results hold only one.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        BarsDisplay
            Drawn.
        """
        summary = summarize(results, metric, protocol)
        if dataset is None:
            where = f"average of {len(summary.complete)} data sets"
            means, spreads = summary.averages, np.full(len(summary.methods), np.nan)
        else:
            where, i = dataset, summary.row(dataset)
            means, spreads = summary.whole_means[i], summary.spreads[i]
        title = f"{where}, protocol {summary.protocol}"
        return cls(summary.methods, means, spreads, summary.measure, title).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        """Draw the best at the top."""
        known = np.flatnonzero(np.isfinite(self.means))
        if len(known) == 0:
            raise ParameterError("There is no value to draw: every method failed.")
        sign = -1.0 if self.measure.larger_is_better else 1.0
        order = known[np.argsort(sign * self.means[known], kind="stable")]
        ax = self._axes(ax, 7.0, 1.0 + 0.28 * len(order))
        means = self.means[order] * self.measure.scale
        spreads = np.nan_to_num(self.spreads[order]) * self.measure.scale
        places = np.arange(len(order))
        ax.barh(places, means, color=FIRST, alpha=0.75, height=0.7)
        drawn = np.flatnonzero(spreads > 0)
        if len(drawn):
            style: dict[str, Any] = {"fmt": "none", "ecolor": "black", "lw": 1}
            ax.errorbar(means[drawn], drawn, xerr=spreads[drawn], **style)
        right = float((means + spreads).max())
        for place, mean in enumerate(self.means[order]):
            text = self.measure.text(mean)
            ax.text(right * 1.02, place, text, va="center", fontsize="small")
        ax.set_yticks(places)
        ax.set_yticklabels([self.names[i] for i in order], parse_math=False)
        ax.set_xlim(0, right * 1.14 or 1.0)
        ax.set_ylim(len(order) - 0.4, -0.6)
        ax.set_xlabel(f"{self.measure.title}, {self.measure.direction}")
        ax.set_title(self.title, fontsize="medium", parse_math=False)
        bare(ax, "top", "right")
