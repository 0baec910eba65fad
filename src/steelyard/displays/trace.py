"""How a fit went, iteration by iteration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.displays import _style as draw
from steelyard.displays._base import Display
from steelyard.exceptions import ParameterError

# What may be drawn over rounds, the first that a record has.
_BY_ROUND = ("objective", "log_loss", "error", "accuracy", "total_weight")


@dataclass(eq=False, repr=False)
class SolverTraceDisplay(Display):
    """The objective above its end, and the gradient, over iterations.

    Parameters
    ----------
    records : list of dict
        ``diagnostics_`` of a classifier.

    Examples
    --------
    >>> from steelyard.displays import SolverTraceDisplay
    >>> from steelyard import WeightedNB
    >>> from sklearn.datasets import load_wine
    >>> clf = WeightedNB(lam=1.0).fit(*load_wine(return_X_y=True))
    >>> display = SolverTraceDisplay.from_estimator(clf)
    """

    records: list[dict[str, Any]]

    @classmethod
    def from_estimator(cls, clf: Any, *, ax: Any = None) -> SolverTraceDisplay:
        """Draw the fit of a classifier that has ``diagnostics_``.

        Parameters
        ----------
        clf : BaseNB
            A fitted classifier.
        """
        records = getattr(clf, "diagnostics_", None)
        if not records:
            raise ParameterError(
                f"{type(clf).__name__} has no record of iterations: it is not fitted "
                "by a solver, or has not been fitted."
            )
        return cls(records).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        ax = self._axes(ax, 6.4, 4.0)
        steps = [r for r in self.records if "iteration" in r and "objective" in r]
        if steps:
            self._draw_iterations(ax, steps)
        else:
            self._draw_rounds(ax)
        draw.bare(ax, "top", "right")

    def _draw_iterations(self, ax: Any, steps: list[dict[str, Any]]) -> None:
        traces: dict[Any, list[dict[str, Any]]] = {}
        for record in steps:
            traces.setdefault(str(record.get("pair", "")), []).append(record)
        many, is_named = len(traces) > 1, len(traces) <= len(draw.LINES)
        for k, (pair, records) in enumerate(traces.items()):
            x = np.arange(1, len(records) + 1)
            value = np.array([record["objective"] for record in records], dtype=float)
            # The last is the end itself; a share of it stands for rounding.
            above = np.maximum(value - value.min(), 1e-16 * max(1.0, abs(value.min())))
            name = (pair if is_named else None) if many else "objective above its end"
            style = {"color": draw.line_colour(k), "markersize": 4, "label": name}
            ax.plot(x, above, "o-", **style)
            if not many:
                slope = [float(record.get("gradient", np.nan)) for record in records]
                style = {**style, "color": draw.LINES[1]}
                style["label"] = "largest projected gradient"
                ax.plot(x, slope, "s--", **style)
        ax.set_yscale("log")
        self._name(ax, "iteration", "objective above its end" if many else "")
        if is_named:
            ax.legend(frameon=False, fontsize=8)
        else:
            draw.headline(ax, f"{len(traces)} pairs of classes")

    def _draw_rounds(self, ax: Any) -> None:
        first = self.records[0]
        name = next((key for key in _BY_ROUND if key in first), None)
        if name is None:
            raise ParameterError(
                f"The records hold none of {', '.join(_BY_ROUND)}: {sorted(first)}."
            )
        records = [record for record in self.records if name in record]
        x = [record.get("round", k) for k, record in enumerate(records, start=1)]
        ax.plot(x, [record[name] for record in records], "o-", color=draw.LINES[0])
        self._name(ax, "round", name.replace("_", " "))

    def _name(self, ax: Any, steps: str, what: str) -> None:
        """Name both axes; steps are whole numbers."""
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_xlabel(steps)
        ax.set_ylabel(what)
        draw.horizontal_grid(ax)
