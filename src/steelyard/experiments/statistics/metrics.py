"""How good predictions are: metrics of a matrix of probabilities and true classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

__all__ = [
    "accuracy",
    "auc",
    "balanced_accuracy",
    "brier_score",
    "calibration_error",
    "log_loss",
    "macro_f1",
    "score_predictions",
]

CALIBRATION_BINS = 15

# scikit-learn's bound: a probability of zero costs 36, not infinity.
_SMALLEST = float(np.finfo(np.float64).eps)

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


def score_predictions(
    true: Ints,
    predicted: Ints,
    probabilities: Floats | None,
    seen: NDArray[np.bool_],
    scores: Floats | None = None,
) -> dict[str, float | int | None]:
    """Compute every metric of a test part.

    Parameters
    ----------
    true, predicted : ndarray of shape (n,)
        Classes, as positions from 0 to K - 1.
    probabilities : ndarray of shape (n, K), or None
        Probabilities; 0 for classes that training did not see. None where the
        classifier has none: log-loss, Brier score and calibration then have no value.
    seen : ndarray of shape (K,)
        Which classes occur in the training part. Test rows of the others are wrong for
        accuracy, left out of the log-loss, and counted.
    scores : ndarray of shape (n, K), default=None
        What to rank by for the AUC where there are no probabilities.

    Returns
    -------
    dict
        The fields ``accuracy``, ``balanced_accuracy``, ``f1``, ``log_loss``,
        ``brier``, ``auc``, ``ece`` and ``n_unseen_class``; None for no value.

    Examples
    --------
    >>> proba = np.array([[0.9, 0.1], [0.4, 0.6], [0.7, 0.3]])
    >>> found = score_predictions(
    ...     np.array([0, 1, 1]), proba.argmax(axis=1), proba, np.array([True, True])
    ... )
    >>> round(found["accuracy"], 3), round(found["brier"], 3), found["auc"]
    (0.667, 0.44, 1.0)
    """
    known = seen[true]
    found: dict[str, float] = {
        "accuracy": accuracy(true, predicted),
        "balanced_accuracy": balanced_accuracy(true, predicted),
        "f1": macro_f1(true, predicted),
    }
    ranked = scores if probabilities is None else probabilities
    if ranked is not None:
        found["auc"] = auc(true, ranked)
    if probabilities is not None:
        found["log_loss"] = log_loss(true[known], probabilities[known])
        found["brier"] = brier_score(true, probabilities)
        found["ece"] = calibration_error(true, predicted, probabilities)
    fields = ("accuracy", "balanced_accuracy", "f1", "log_loss", "brier", "auc", "ece")
    row: dict[str, Any] = {name: _or_none(found.get(name)) for name in fields}
    row["n_unseen_class"] = int((~known).sum())
    return row


def accuracy(true: Ints, predicted: Ints) -> float:
    """Return the share of rows whose class is predicted."""
    return float(np.mean(true == predicted))


def balanced_accuracy(true: Ints, predicted: Ints) -> float:
    """Return the recall of each class that occurs, averaged."""
    totals = np.bincount(true)
    right = np.bincount(true[true == predicted], minlength=len(totals))
    present = totals > 0
    return float(np.mean(right[present] / totals[present]))


def macro_f1(true: Ints, predicted: Ints) -> float:
    """Return F1 averaged over the classes that occur or are predicted."""
    n_classes = int(max(true.max(), predicted.max())) + 1
    actual = np.bincount(true, minlength=n_classes)
    claimed = np.bincount(predicted, minlength=n_classes)
    right = np.bincount(true[true == predicted], minlength=n_classes)
    used = actual + claimed > 0
    return float(np.mean(2.0 * right[used] / (actual + claimed)[used]))


def log_loss(true: Ints, probabilities: Floats) -> float:
    """Return the mean of minus the log-probability of the true class.

    Probabilities below 2.2e-16 count as that, as in scikit-learn. NaN without rows.
    """
    if not len(true):
        return float("nan")
    own = probabilities[np.arange(len(true)), true]
    return float(-np.log(np.maximum(own, _SMALLEST)).mean())


def brier_score(true: Ints, probabilities: Floats) -> float:
    r"""Return the squared error of the probabilities, summed over classes.

    .. math:: \frac1n \sum_i \sum_k (p_{ik} - [y_i = k])^2

    From 0 to 2, also with two classes.
    """
    own = probabilities[np.arange(len(true)), true]
    # (p - 1)^2 differs from p^2 by 1 - 2p.
    return float(np.mean((probabilities**2).sum(axis=1) + 1.0 - 2.0 * own))


def auc(true: Ints, scores: Floats) -> float:
    """Return the area under the ROC curve, each class against the rest.

    Areas are weighted by the rows of each class. NaN where all rows are of one class.
    """
    totals = np.bincount(true, minlength=scores.shape[1])
    n_rows = len(true)
    present = np.flatnonzero(totals)
    if len(present) < 2:
        return float("nan")
    ranks = rankdata(scores[:, present], axis=0)
    own = np.zeros(len(present))
    place = np.searchsorted(present, true)
    np.add.at(own, place, ranks[np.arange(n_rows), place])
    n_own = totals[present].astype(np.float64)
    areas = (own - n_own * (n_own + 1) / 2) / (n_own * (n_rows - n_own))
    return float(np.average(areas, weights=n_own))


def calibration_error(
    true: Ints, predicted: Ints, probabilities: Floats, bins: int = CALIBRATION_BINS
) -> float:
    r"""Return the expected calibration error of the largest probability.

    .. math:: \sum_b \frac{n_b}{n} |\text{accuracy}_b - \text{confidence}_b|

    Bins hold equally many rows. Rows of equal confidence share their mean accuracy, so
    that the order of rows does not matter where a bin ends among them.
    """
    confidence = probabilities.max(axis=1)
    levels, place = np.unique(confidence, return_inverse=True)
    totals = np.bincount(place)
    right = np.bincount(place, weights=true == predicted)
    gap = np.repeat(right / totals - levels, totals)
    ends = np.linspace(0, len(true), min(bins, len(true)) + 1).astype(int)
    sums = np.add.reduceat(gap, ends[:-1])
    return float(np.abs(sums).sum() / len(true))


def _or_none(value: float | None) -> float | None:
    return None if value is None or np.isnan(value) else value
