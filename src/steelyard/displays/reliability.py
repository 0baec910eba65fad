"""Whether predicted probabilities come true: the reliability diagram."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.displays._base import Display
from steelyard.displays._style import FOR, INK, PALE, bare, behind, label
from steelyard.exceptions import ParameterError

__all__ = ["ReliabilityDisplay"]


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

    def __init__(
        self,
        proba: NDArray[np.float64],
        happened: NDArray[np.bool_],
        n_bins: int = 10,
        name: str = "the class",
    ) -> None:
        self.proba = proba
        self.happened = happened
        self.n_bins = n_bins
        self.name = name

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
        n_bins : int, default=10
            Number of groups of about equally many rows.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if not given.

        Returns
        -------
        ReliabilityDisplay
            The picture.
        """
        proba = np.asarray(clf.predict_proba(X))
        known = clf.classes_.tolist()
        truth = np.asarray(y)
        if target is None and len(known) > 2:
            best = proba.argmax(axis=1)
            right = clf.classes_[best] == truth
            made = cls(proba.max(axis=1), right, n_bins, "the predicted class")
            return made.plot(ax=ax)
        target = known[1] if target is None else target
        if target not in known:
            raise ParameterError(f"{target!r} is not among the classes {known}.")
        own = proba[:, known.index(target)]
        return cls(own, truth == target, n_bins, str(target)).plot(ax=ax)

    def _draw(self, ax: Any) -> None:
        """Draw the diagram."""
        ax = self._axes(ax, 5.2, 5.2)
        groups = self._groups()
        n = len(self.proba)
        mean = np.array([self.proba[rows].mean() for rows in groups])
        size = np.array([len(rows) for rows in groups], dtype=np.float64)
        share = np.array([self.happened[rows].mean() for rows in groups])
        self.error_ = float((size / n) @ np.abs(share - mean))
        low, high = _wilson(share, size)
        ax.plot([0, 1], [0, 1], color=PALE, linewidth=1.5, zorder=0)
        beside = behind(ax)
        bins = np.linspace(0.0, 1.0, 21)
        rows, _ = np.histogram(self.proba, bins)
        beside.bar(bins[:-1] + 0.025, rows, 0.048, color=PALE, zorder=0)
        top = max(int(rows.max()), 1)
        beside.set_ylim(0.0, 5.0 * top)
        beside.set_yticks([0, top], ["0", f"{top}"])
        beside.set_ylabel("rows", loc="bottom")
        ax.errorbar(
            mean,
            share,
            yerr=np.stack([np.maximum(share - low, 0), np.maximum(high - share, 0)]),
            fmt="o-",
            color=FOR,
            ecolor=INK,
            elinewidth=0.8,
            capsize=2.0,
            markersize=5,
        )
        ax.set_xlim(-0.02, 1.02)
        ax.set_ylim(-0.02, 1.02)
        name = label(self.name, 30)
        ax.set_xlabel(f"predicted probability of {name}")
        ax.set_ylabel("observed frequency")
        ax.set_title(
            f"{n} rows, calibration error {self.error_:.3f}", fontsize=10, loc="left"
        )
        bare(ax, "top", "right")
        bare(beside, "top", "left")

    def _groups(self) -> list[NDArray[np.int64]]:
        """Rows by rising probability, equal ones together."""
        order = np.argsort(self.proba, kind="stable")
        cuts = np.quantile(self.proba, np.linspace(0, 1, self.n_bins + 1)[1:-1])
        ends = np.unique(np.searchsorted(self.proba[order], cuts, side="right"))
        return [rows for rows in np.split(order, ends) if len(rows)]


def _wilson(
    share: NDArray[np.float64], n: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Wilson's 95 % interval of a frequency."""
    z = 1.959963984540054
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return middle - half, middle + half
