"""One prediction as a waterfall: from the prior to the sum, bar by bar."""

from __future__ import annotations

import math
from typing import Any

from steelyard.displays._base import Display
from steelyard.displays._style import AGAINST, FOR, INK, PALE, bare, label
from steelyard.explain.evidence import Evidence
from steelyard.explain.local import LocalExplanation, explain_local

__all__ = ["WaterfallDisplay"]


class WaterfallDisplay(Display):
    """Evidence of one row, added up from the prior to the log-odds.

    Parameters
    ----------
    evidence : Evidence
        Of one row and two classes.
    max_attributes : int, default=15
        Draw so many attributes; the rest are one bar.

    Attributes
    ----------
    ax_, figure_
        Where it was drawn.

    Examples
    --------
    >>> from steelyard.displays import WaterfallDisplay
    >>> from steelyard import NaiveBayes
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> clf = NaiveBayes().fit(X, y)
    >>> display = WaterfallDisplay.from_estimator(clf, X[:1])
    """

    def __init__(self, evidence: Evidence, max_attributes: int = 15) -> None:
        self.evidence = evidence
        self.max_attributes = max_attributes

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
        max_attributes : int, default=15
            Draw so many attributes; the rest are one bar.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if not given.

        Returns
        -------
        WaterfallDisplay
            The picture.
        """
        return cls.from_explanation(
            explain_local(clf, X),
            row,
            target=target,
            against=against,
            max_attributes=max_attributes,
            ax=ax,
        )

    @classmethod
    def from_explanation(
        cls,
        explanation: LocalExplanation,
        row: int = 0,
        *,
        target: Any = None,
        against: Any = None,
        max_attributes: int = 15,
        ax: Any = None,
    ) -> WaterfallDisplay:
        """Draw what ``explain_local`` returned.

        Parameters
        ----------
        explanation : LocalExplanation
            Of a model that is one sum.
        row, target, against, max_attributes, ax
            As in ``from_estimator``.

        Returns
        -------
        WaterfallDisplay
            The picture.
        """
        evidence = explanation.evidence(row, target, against)
        return cls(evidence, max_attributes).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        """Draw the waterfall."""
        found = self.evidence
        shown = found.items[: self.max_attributes]
        rest = found.items[self.max_attributes :]
        lines = [("prior", found.prior)]
        lines += [
            (f"{label(i.attribute, 34)} = {label(i.value, 26)}", i.amount)
            for i in shown
        ]
        if rest:
            lines.append(
                (f"{len(rest)} other attributes", math.fsum(i.amount for i in rest))
            )
        ax = self._axes(ax, 8.4, 1.3 + 0.3 * (len(lines) + 1))
        at, marks = 0.0, [0.0]
        for k, (_, amount) in enumerate(lines):
            amount = amount if math.isfinite(amount) else 0.0
            colour = FOR if amount >= 0 else AGAINST
            ax.barh(-k, amount, left=at, color=colour, height=0.66)
            ax.plot([at + amount] * 2, [-k - 1.33, -k + 0.33], color=PALE, zorder=0)
            at += amount
            marks.append(at)
            # Beside the bar, on the side that it points to.
            ax.annotate(
                f"{amount:+.2f}",
                (at, -k),
                (4 if amount >= 0 else -4, 0),
                textcoords="offset points",
                ha="left" if amount >= 0 else "right",
                va="center",
                fontsize=8,
                color=INK,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.4},
            )
        ax.barh(-len(lines), at, color=INK, height=0.66)
        ax.annotate(
            f"{at:+.2f}",
            (at, -len(lines)),
            (4 if at >= 0 else -4, 0),
            textcoords="offset points",
            ha="left" if at >= 0 else "right",
            va="center",
            fontsize=8,
        )
        labels = [text for text, _ in lines]
        places = [-float(k) for k in range(len(lines) + 1)]
        ax.set_yticks(places, [*labels, "sum"])
        room = 0.12 * (max(marks) - min(marks) or 1.0)
        ax.set_xlim(min(marks) - room, max(marks) + room)
        ax.set_ylim(-len(lines) - 0.6, 0.6)
        ax.axvline(0.0, color=INK, linewidth=0.8)
        ax.set_xlabel(
            f"← {label(found.against, 30)} · log-odds · {label(found.target, 30)} →"
        )
        ax.set_title(
            f"{label(found.target, 50)}: probability {found.probability:.3g}",
            fontsize=10,
            loc="left",
        )
        ax.tick_params(axis="y", length=0)
        bare(ax, "top", "right", "left")
