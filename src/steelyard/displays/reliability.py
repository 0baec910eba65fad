"""Whether predicted probabilities come true: the reliability diagram."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from steelyard.displays._base import Display
from steelyard.displays._style import FOR, INK, PALE, bare, count_bars, headline, label
from steelyard.explain.views import position_of


@dataclass(eq=False, repr=False)
class ReliabilityDisplay(Display):
    r"""Observed frequency against predicted probability, with Wilson's intervals.

    The expected calibration error is :math:`\sum_b (n_b / n) |f_b - \bar p_b|` over
    the groups.

    Parameters
    ----------
    proba : ndarray of shape (n,)
        Predicted probability that something holds.
    happened : ndarray of shape (n,)
        Whether it did.
    n_bins : int, default=10
        Number of groups of about equally many rows.
    name : str, default="the class"
        What was predicted.

    Attributes
    ----------
    error_ : float
        Expected calibration error.
    ax_, figure_
        Where it was drawn.

    Examples
    --------
    >>> from steelyard.displays import ReliabilityDisplay
    >>> from steelyard import NaiveBayes
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = NaiveBayes().fit(X[::2], y[::2])
    >>> display = ReliabilityDisplay.from_estimator(clf, X[1::2], y[1::2])
    >>> display.error_ < 0.1
    True
    """

    proba: NDArray[np.float64]
    happened: NDArray[np.bool_]
    n_bins: int = 10
    name: str = "the class"

    @classmethod
    def from_estimator(
        cls,
        clf: Any,
        X: Any,
        y: Any,
        *,
        target: Any = None,
        n_bins: int = 10,
        ax: Any = None,
    ) -> ReliabilityDisplay:
        """Draw how reliable the probabilities of a classifier are for some rows.

        Parameters
        ----------
        clf : classifier
            With ``predict_proba`` and ``classes_``.
        X, y : table, array-like of shape (n,)
            Rows that it was not fitted to, and their labels.
        target : class, default=None
            Look at the probability of this class; by default at that of the second of
            two, or at that of the predicted class of several.
        n_bins
            As in ``ReliabilityDisplay``.
        """
        proba, truth = np.asarray(clf.predict_proba(X)), np.asarray(y)
        classes = clf.classes_
        if target is None and len(classes) > 2:
            chosen, name = proba.max(axis=1), "the predicted class"
            happened = classes[proba.argmax(axis=1)] == truth
        else:
            target = classes.tolist()[1] if target is None else target
            chosen, name = proba[:, position_of(target, classes)], str(target)
            happened = truth == target
        return cls(chosen, happened, n_bins, name).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        ax = self._axes(ax, 5.2, 5.2)
        n, order = len(self.proba), np.argsort(self.proba, kind="stable")
        cuts = np.quantile(self.proba, np.linspace(0, 1, self.n_bins + 1)[1:-1])
        # By rising probability, equal ones together.
        ends = np.unique(np.searchsorted(self.proba[order], cuts, side="right"))
        groups = [rows for rows in np.split(order, ends) if len(rows)]
        mean = np.array([self.proba[rows].mean() for rows in groups])
        size = np.array([len(rows) for rows in groups])
        happened = np.array([self.happened[rows].sum() for rows in groups])
        share = happened / size
        self.error_ = float((size / n) @ np.abs(share - mean))
        tests = map(binomtest, happened.tolist(), size.tolist())
        low, high = np.transpose([t.proportion_ci(method="wilson") for t in tests])
        ax.plot([0, 1], [0, 1], color=PALE, linewidth=1.5, zorder=0)
        rows, bins = np.histogram(self.proba, np.linspace(0.0, 1.0, 21))
        beside = count_bars(ax, bins[:-1] + 0.025, rows, 0.048, 5.0)
        error = np.maximum([share - low, high - share], 0)
        style = {"ecolor": INK, "elinewidth": 0.8, "capsize": 2.0, "markersize": 5}
        ax.errorbar(mean, share, yerr=error, fmt="o-", color=FOR, **style)
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), ylabel="observed frequency")
        ax.set_xlabel(f"predicted probability of {label(self.name, 30)}")
        headline(ax, f"{n} rows, calibration error {self.error_:.3f}")
        bare(ax, "top", "right")
        bare(beside, "top", "left")
