"""Reliability diagrams and ROC curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest
from sklearn.metrics import auc, roc_curve

from steelyard._common.arrays import Floats
from steelyard.displays import drawing as draw
from steelyard.exceptions import ParameterError
from steelyard.explain.shared import position_of
from steelyard.table.labels import labels_of_rows


@dataclass(eq=False, repr=False)
class ReliabilityDisplay(draw.Display):
    r"""Observed frequency against predicted probability, with Wilson's intervals.

    The expected calibration error is :math:`\sum_b (n_b / n) |f_b - \bar p_b|` over
    the groups.

    Parameters
    ----------
    proba : ndarray of shape (n,)
        Predicted probability of an event.
    happened : ndarray of shape (n,)
        Whether it happened.
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

    proba: Floats
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
        proba = np.asarray(clf.predict_proba(X))
        truth = np.asarray(labels_of_rows(y, len(proba)))
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
        ax.plot([0, 1], [0, 1], color=draw.PALE, linewidth=1.5, zorder=0)
        rows, bins = np.histogram(self.proba, np.linspace(0.0, 1.0, 21))
        beside = draw.count_bars(ax, bins[:-1] + 0.025, rows, 0.048, 5.0)
        error = np.maximum([share - low, high - share], 0)
        style = {"ecolor": draw.INK, "elinewidth": 0.8, "capsize": 2.0, "markersize": 5}
        ax.errorbar(mean, share, yerr=error, fmt="o-", color=draw.FOR, **style)
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), ylabel="observed frequency")
        ax.set_xlabel(f"predicted probability of {draw.label(self.name, 30)}")
        draw.headline(ax, f"{n} rows, calibration error {self.error_:.3f}")
        draw.bare(ax, "top", "right")
        draw.bare(beside, "top", "left")


@dataclass(eq=False, repr=False)
class ROCDisplay(draw.Display):
    """True positive rate against false positive rate: the ROC curve of a class.

    The share of a class that is found, and that of others taken for it.

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

    proba: Floats
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
        classes, proba = clf.classes_, np.asarray(clf.predict_proba(X))
        labels = np.asarray(labels_of_rows(y, len(proba)))
        chosen = None if target is None else position_of(target, classes)
        has_class = np.isin(labels, classes)
        true = np.searchsorted(classes, labels[has_class])
        return cls(proba[has_class], true, list(map(str, classes)), chosen).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        # A class of no rows, or of all of them, has no curve.
        rows = np.bincount(self.true, minlength=len(self.names))
        classes = draw.shown_classes(self.names, None, 8, rows)
        if self.target is not None:
            classes = [self.target]
        shown = [c for c in classes if 0 < rows[c] < len(self.true)]
        if not shown:
            raise ParameterError("A ROC curve needs rows of two classes at least.")
        ax = self._axes(ax, 5.2, 5.2)
        ax.plot([0, 1], [0, 1], color=draw.PALE, linewidth=1.5, zorder=0)
        self.auc_: dict[str, float] = {}
        for k, c in enumerate(shown):
            false, hits, _ = roc_curve(self.true == c, self.proba[:, c])
            name = str(self.names[c])
            self.auc_[name] = area = float(auc(false, hits))
            text = f"{draw.label(name, 30)}: {area:.3f}"
            ax.plot(false, hits, color=draw.line_colour(k), linewidth=1.8, label=text)
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
        ax.set_xlabel("false positive rate (FPR): others taken for the class")
        ax.set_ylabel("true positive rate (TPR): rows of the class found")
        n_hidden = len(self.names) - len(shown)
        is_part = len(self.names) > 2 and self.target is None and n_hidden > 0
        rest = f", {n_hidden} classes not shown" if is_part else ""
        draw.headline(ax, f"ROC curve, {len(self.true)} rows{rest}")
        ax.legend(title="area under the curve", loc="lower right", frameon=False)
        draw.bare(ax, "top", "right")
