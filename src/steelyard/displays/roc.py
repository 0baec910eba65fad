"""How well probabilities rank the rows of a class before the others: ROC curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import auc, roc_curve

from steelyard.displays._base import Display
from steelyard.displays._style import PALE, bare, headline, label, line_colour
from steelyard.exceptions import ParameterError
from steelyard.explain.views import position_of


@dataclass(eq=False, repr=False)
class ROCDisplay(Display):
    """Share of a class that is found against the share of others taken for it.

    Parameters
    ----------
    proba : ndarray of shape (n, K)
        Predicted probabilities of the classes.
    true : ndarray of shape (n,)
        The class of each row, as a position.
    names : sequence of str
        The classes.
    target : int, default=None
        Position of the class to draw; by default the second of two, or the eight most
        frequent of several, each against the rest.

    Attributes
    ----------
    auc_ : dict of str to float
        Area under each curve.
    ax_, figure_
        Where it was drawn.

    Examples
    --------
    >>> from steelyard.displays import ROCDisplay
    >>> from steelyard import NaiveBayes
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = NaiveBayes().fit(X[::2], y[::2])
    >>> display = ROCDisplay.from_estimator(clf, X[1::2], y[1::2])
    >>> display.auc_["1"] > 0.95
    True
    """

    proba: NDArray[np.float64]
    true: NDArray[np.intp]
    names: Sequence[str]
    target: int | None = None

    @classmethod
    def from_estimator(
        cls, clf: Any, X: Any, y: Any, *, target: Any = None, ax: Any = None
    ) -> ROCDisplay:
        """Draw how well a classifier ranks some rows.

        Parameters
        ----------
        clf : classifier
            With ``predict_proba`` and ``classes_``.
        X, y : table, array-like of shape (n,)
            Rows that it was not fitted to, and their labels.
        target : class, default=None
            Draw this class alone.
        """
        classes, labels = clf.classes_, np.asarray(y)
        chosen = None if target is None else position_of(target, classes)
        known = np.isin(labels, classes)
        true = np.searchsorted(classes, labels[known])
        proba = np.asarray(clf.predict_proba(X))[known]
        return cls(proba, true, list(map(str, classes)), chosen).plot(ax=ax)

    def _shown(self) -> list[int]:
        if self.target is not None:
            return [self.target]
        if len(self.names) == 2:
            return [1]
        rows = np.bincount(self.true, minlength=len(self.names))
        return sorted(np.argsort(-rows, kind="stable")[:8].tolist())

    def _draw(self, ax: Any) -> None:
        # A class of no rows, or of all of them, has no curve.
        rows = np.bincount(self.true, minlength=len(self.names))
        shown = [c for c in self._shown() if 0 < rows[c] < len(self.true)]
        if not shown:
            raise ParameterError("A ROC curve needs rows of two classes at least.")
        ax = self._axes(ax, 5.2, 5.2)
        ax.plot([0, 1], [0, 1], color=PALE, linewidth=1.5, zorder=0)
        self.auc_: dict[str, float] = {}
        for k, c in enumerate(shown):
            false, found, _ = roc_curve(self.true == c, self.proba[:, c])
            name = str(self.names[c])
            self.auc_[name] = area = float(auc(false, found))
            text = f"{label(name, 30)}: {area:.3f}"
            ax.plot(false, found, color=line_colour(k), linewidth=1.8, label=text)
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
        ax.set_xlabel("others taken for the class")
        ax.set_ylabel("rows of the class that are found")
        more = len(self.names) - len(shown)
        is_part = len(self.names) > 2 and self.target is None and more > 0
        rest = f", {more} classes not shown" if is_part else ""
        headline(ax, f"ROC curve, {len(self.true)} rows{rest}")
        ax.legend(title="area under the curve", loc="lower right", frameon=False)
        bare(ax, "top", "right")
