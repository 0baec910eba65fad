"""Reliability curves of methods, pooled over data sets."""

from __future__ import annotations

from typing import Any

import numpy as np

from steelyard._common.text import shortened
from steelyard.displays._base import Display
from steelyard.displays._style import LINES
from steelyard.exceptions import ParameterError
from steelyard.experiments.report.summary import summarize
from steelyard.experiments.results import Results
from steelyard.experiments.statistics.calibration import reliability

__all__ = ["PooledReliabilityDisplay"]


class PooledReliabilityDisplay(Display):
    """How often a method is right by its confidence, pooled over data sets.

    Parameters
    ----------
    curves : dict of str to list of [mean confidence, accuracy, weight]
        Bins of each method.

    Attributes
    ----------
    ax_, figure_
        Where it was drawn.
    """

    def __init__(self, curves: dict[str, list[list[float]]]) -> None:
        self.curves = curves

    @classmethod
    def from_results(
        cls,
        results: Results,
        methods: list[str] | None = None,
        *,
        protocol: str | None = None,
        ax: Any = None,
    ) -> PooledReliabilityDisplay:
        """Draw the bins that rows carry as ``extra["reliability"]``.

        Parameters
        ----------
        results : Results
            What a comparison found.
        methods : list of str, default=None
            Which methods; all if None.
        protocol : str, default=None
            May be left out where the results hold only one.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        PooledReliabilityDisplay
            Drawn.
        """
        summary = summarize(results, "accuracy", protocol)
        curves = reliability(results, summary.protocol)
        wanted = summary.methods if methods is None else methods
        for name in wanted:
            summary.position(name)
        shown = {name: curves[name] for name in wanted if curves.get(name)}
        if not shown:
            raise ParameterError(
                "The rows carry no bins of confidence: there is nothing under "
                "extra['reliability']."
            )
        return cls(shown).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        ax = self._axes(ax, 9.0, max(5.0, 0.5 + 0.24 * len(self.curves)))
        ax.plot([0, 1], [0, 1], color="black", lw=0.8)
        styles, markers = ("-", "--", ":"), "osD"
        for i, (name, bins) in enumerate(self.curves.items()):
            confidence, accuracy, _ = np.array(bins).T
            again = i // len(LINES) % len(styles)
            ax.plot(
                confidence,
                accuracy,
                color=LINES[i % len(LINES)],
                linestyle=styles[again],
                marker=markers[again],
                markersize=4,
                label=shortened(name, 36),
            )
        ax.set(xlabel="mean confidence", ylabel="accuracy", xlim=(0, 1), ylim=(0, 1.02))
        ax.set_aspect("equal")
        legend = ax.legend(
            loc="upper left", bbox_to_anchor=(1.02, 1.0), fontsize="small"
        )
        for text in legend.get_texts():
            text.set_parse_math(False)
        ax.grid(alpha=0.3)
