"""One prediction as a waterfall: from the prior to the sum, bar by bar."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from steelyard._common.text import cell_text
from steelyard.displays import _style as draw
from steelyard.displays._base import Display
from steelyard.explain.evidence import Evidence
from steelyard.explain.local import LocalExplanation, explain_local


@dataclass(eq=False, repr=False)
class WaterfallDisplay(Display):
    """Evidence of one row, added up from the prior to the log-odds.

    Parameters
    ----------
    evidence : Evidence
        Of one row and two classes.
    max_attributes : int, default=15
        Draw so many attributes; the rest are one bar.

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
        row, target, against, max_attributes
            As in ``from_estimator``.
        """
        evidence = explanation.evidence(row, target, against)
        return cls(evidence, max_attributes).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        items = self.evidence.items
        lines = [(" ".join(self.evidence.start).strip(), self.evidence.prior)]
        for item in items[: self.max_attributes]:
            name, value = draw.label(item.attribute, 34), draw.label(item.value, 26)
            lines.append((cell_text(name, value), item.amount))
        rest = items[self.max_attributes :]
        if rest:
            amount = math.fsum(item.amount for item in rest)
            lines.append((f"{len(rest)} other attributes", amount))
        ax = self._axes(ax, 8.4, 1.3 + 0.3 * (len(lines) + 1))
        ends = [0.0]
        for k, (_, amount) in enumerate(lines):
            amount = amount if math.isfinite(amount) else 0.0
            left, right = ends[-1], ends[-1] + amount
            ax.barh(-k, amount, left=left, color=draw.side_colour(amount), height=0.66)
            ax.plot([right] * 2, [-k - 1.33, -k + 0.33], color=draw.PALE, zorder=0)
            _write(ax, amount, (right, -k), color=draw.INK, bbox=draw.paper(0.4))
            ends.append(right)
        total, bottom = ends[-1], -len(lines)
        ax.barh(bottom, total, color=draw.INK, height=0.66)
        _write(ax, total, (total, bottom))
        places = [-float(k) for k in range(len(lines) + 1)]
        ax.set_yticks(places, [*(text for text, _ in lines), "sum"])
        room = 0.12 * (max(ends) - min(ends) or 1.0)
        ax.set_xlim(min(ends) - room, max(ends) + room)
        ax.set_ylim(bottom - 0.6, 0.6)
        ax.axvline(0.0, color=draw.INK, linewidth=0.8)
        target, probability = self.evidence.target, self.evidence.probability
        names = draw.label(self.evidence.against, 30), draw.label(target, 30)
        ax.set_xlabel(draw.sides(names[0], "log-odds", names[1]))
        draw.headline(ax, f"{draw.label(target, 50)}: probability {probability:.3g}")
        ax.tick_params(axis="y", length=0)
        draw.bare(ax, "top", "right", "left")


def _write(ax: Any, amount: float, at: tuple[float, int], **style: Any) -> None:
    """Write an amount beside its bar, on the side that it points to."""
    side, ha = (4, "left") if amount >= 0 else (-4, "right")
    style.update(ha=ha, va="center", fontsize=8)
    draw.mark(ax, f"{amount:+.2f}", at, (side, 0), **style)
