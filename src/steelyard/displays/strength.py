"""How strengths were chosen: cross-validated loss along the grid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from steelyard.displays._base import Display
from steelyard.displays._style import (
    FOR,
    INK,
    LINES,
    bare,
    behind,
    horizontal_grid,
    mark,
    paper,
)
from steelyard.exceptions import ParameterError

__all__ = ["StrengthPathDisplay"]


@dataclass(eq=False, repr=False)
class StrengthPathDisplay(Display):
    """Cross-validated log-loss of the strengths that were compared.

    Bars are one standard error to either side; the chosen strengths are marked. The
    error rate is drawn beside it, on an axis of its own.

    Parameters
    ----------
    path : list of dict
        ``strength_path_`` of a ``ShrinkageNB``.
    chosen : tuple of three floats, default=None
        Strengths to mark; those of the least loss if not given.

    Attributes
    ----------
    ax_, figure_
        Where it was drawn.

    Examples
    --------
    >>> from steelyard.displays import StrengthPathDisplay
    >>> from steelyard import ShrinkageNB
    >>> from sklearn.datasets import load_wine
    >>> clf = ShrinkageNB().fit(*load_wine(return_X_y=True))
    >>> display = StrengthPathDisplay.from_estimator(clf)
    """

    path: list[dict[str, float]]
    chosen: tuple[float, float, float] | None = None

    @classmethod
    def from_estimator(cls, clf: Any, *, ax: Any = None) -> StrengthPathDisplay:
        """Draw the path of a fitted classifier.

        Parameters
        ----------
        clf : ShrinkageNB
            Fitted with ``strength="auto"``.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if not given.

        Returns
        -------
        StrengthPathDisplay
            The picture.
        """
        path = getattr(clf, "strength_path_", None)
        if not path:
            raise ParameterError(
                f"{type(clf).__name__} has compared no strengths: fit a ShrinkageNB "
                "with strength='auto'."
            )
        return cls(path, clf.strength_).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        """Draw the path."""
        loss = np.array([record["log_loss"] for record in self.path])
        spread = np.array([record.get("standard_error", 0.0) for record in self.path])
        error = np.array([record.get("error", np.nan) for record in self.path])
        triples = [
            (record["shared"], record["by_class"], record["by_value"])
            for record in self.path
        ]
        ax = self._axes(ax, max(6.4, 1.0 + 0.9 * len(triples)), 4.2)
        places = np.arange(len(triples))
        if np.isfinite(error).any():
            # The loss is what was compared: it lies above.
            beside = behind(ax)
            beside.plot(places, 100.0 * error, "s--", color=LINES[1], markersize=4)
            beside.set_ylabel("error rate in % (squares)", color=LINES[1])
            bare(beside, "top")
        ax.errorbar(places, loss, yerr=spread, fmt="o-", color=LINES[0], capsize=3)
        best = int(np.nanargmin(loss)) if np.isfinite(loss).any() else 0
        if self.chosen is not None and self.chosen in triples:
            best = triples.index(self.chosen)
        if np.isfinite(loss[best]):
            ax.plot([best], [loss[best]], "o", color=FOR, markersize=10, zorder=3)
            style = {"ha": "center", "fontsize": 9, "color": INK, "bbox": paper(0.8)}
            mark(ax, "chosen", (best, loss[best]), (0, 11), **style)
        ax.set_xticks(
            places, ["\n".join(f"{s:g}" for s in triple) for triple in triples]
        )
        ax.set_xlim(-0.5, len(triples) - 0.5)
        ax.set_xlabel("strengths of shared weights, class weights and value effects")
        ax.set_ylabel("cross-validated log-loss")
        horizontal_grid(ax)
        bare(ax, "top")
