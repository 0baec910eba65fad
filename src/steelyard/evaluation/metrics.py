"""How good predictions are: metrics, thresholds, bins of confidence, groups of rows.

Metrics agree with scikit-learn's to twelve digits, without the second that it takes to
load, and they are also defined for folds that lack a class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.evaluation.shares import (
    Estimate,
    mean_cost,
    mean_estimate,
    share_estimate,
)
from steelyard.exceptions import TableError
from steelyard.io.dataset import cut
from steelyard.table.factors import is_missing

METRICS = {
    "accuracy": True,
    "balanced_accuracy": True,
    "f1": True,
    "log_loss": False,
    "brier": False,
    "auc": True,
    "ece": False,
}
"""Each metric, and whether more of it is better."""


CALIBRATION_BINS = 15
_SHOWN_THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)

# scikit-learn's bound: a probability of zero costs 36, not infinity.
_SMALLEST_PROBABILITY = float(np.finfo(np.float64).eps)

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


def score_predictions(
    true: Ints,
    predicted: Ints,
    probabilities: Floats | None,
    seen: NDArray[np.bool_],
    scores: Floats | None = None,
) -> dict[str, float | int | None]:
    """Compute every metric of a test fold, None if it is not defined.

    Classes are positions from 0 to K - 1. Probabilities, of shape (n, K), are 0 for
    classes that training did not see; without any, log-loss, Brier score and
    calibration have no value, and `scores` rank for the AUC. Test rows of classes that
    are not `seen` are wrong for accuracy, left out of the log-loss, and counted.

    >>> proba = np.array([[0.9, 0.1], [0.4, 0.6], [0.7, 0.3]])
    >>> metrics = score_predictions(
    ...     np.array([0, 1, 1]), proba.argmax(axis=1), proba, np.array([True, True])
    ... )
    >>> round(metrics["accuracy"], 3), round(metrics["brier"], 3), metrics["auc"]
    (0.667, 0.44, 1.0)
    """
    is_seen = seen[true]
    k = max(true.max(), predicted.max()) + 1
    right = np.bincount(true[true == predicted], minlength=k)
    rows = np.bincount(true, minlength=k)
    both = rows + np.bincount(predicted, minlength=k)
    metrics: dict[str, Any] = {
        "accuracy": np.mean(true == predicted),
        # Recall and F1, of classes that rows or predictions have.
        "balanced_accuracy": np.mean(right[rows > 0] / rows[rows > 0]),
        "f1": np.mean(2.0 * right[both > 0] / both[both > 0]),
    }
    ranked = scores if probabilities is None else probabilities
    if ranked is not None:
        metrics["auc"] = auc(true, ranked)
    if probabilities is not None:
        metrics["log_loss"] = log_loss(true[is_seen], probabilities[is_seen])
        metrics["brier"] = brier_score(true, probabilities)
        metrics["ece"] = calibration_error(true, predicted, probabilities)
    values = {name: float(metrics.get(name, np.nan)) for name in METRICS}
    row = {name: None if np.isnan(value) else value for name, value in values.items()}
    return {**row, "n_unseen_class": int((~is_seen).sum())}


def log_loss(true: Ints, probabilities: Floats) -> float:
    """Return the mean of minus the log-probability of the true class.

    Probabilities below 2.2e-16 count as that, as in scikit-learn; its function refuses
    a fold without rows, and probabilities that rounding puts above 1. NaN without
    rows.
    """
    return float(row_losses(true, probabilities).mean()) if len(true) else float("nan")


def row_losses(true: Ints, probabilities: Floats) -> Floats:
    """Return minus the log-probability of the true class of each row, (n,)."""
    chosen = probabilities[np.arange(len(true)), true]
    return np.asarray(-np.log(np.maximum(chosen, _SMALLEST_PROBABILITY)))


def brier_score(true: Ints, probabilities: Floats) -> float:
    r"""Return the squared error of the probabilities, summed over classes.

    .. math:: \frac1n \sum_i \sum_k (p_{ik} - [y_i = k])^2

    From 0 to 2, also with two classes.
    """
    chosen = probabilities[np.arange(len(true)), true]
    # (p - 1)^2 differs from p^2 by 1 - 2p.
    return float(np.mean((probabilities**2).sum(axis=1) + 1.0 - 2.0 * chosen))


def auc(true: Ints, scores: Floats) -> float:
    """Return the area under the ROC curve, each class against the rest.

    Areas are weighted by the rows of each class; classes without rows are left out,
    which scikit-learn refuses to do. NaN if all rows are of one class.
    """
    present, rows = np.unique(true, return_counts=True)
    if len(present) < 2:
        return float("nan")
    areas = [_area(true == k, scores[:, k]) for k in present]
    return float(np.average(areas, weights=rows))


def _area(is_member: NDArray[np.bool_], scores: Floats) -> float:
    """Return how often a member has a larger score than another row; ties are half."""
    members, others = scores[is_member], np.sort(scores[~is_member])
    below = np.searchsorted(others, members) + np.searchsorted(others, members, "right")
    return float(below.mean() / (2 * len(others)))


def calibration_error(
    true: Ints, predicted: Ints, probabilities: Floats, bins: int = CALIBRATION_BINS
) -> float:
    r"""Return the expected calibration error of the largest probability.

    .. math:: \sum_b \frac{n_b}{n} |\text{accuracy}_b - \text{confidence}_b|

    Bins have equally many rows. Rows of equal confidence share their mean accuracy, so
    that their order does not matter if a bin ends among them.
    """
    levels, right, totals = _by_confidence(true == predicted, probabilities.max(axis=1))
    excess = np.repeat(right - levels, totals)
    ends = np.linspace(0, len(true), min(bins, len(true)) + 1).astype(int)
    sums = np.add.reduceat(excess, ends[:-1])
    return float(np.abs(sums).sum() / len(true))


def thresholds(
    positive: Any, proba: Any, costs: tuple[float, float] | None = None
) -> dict[str, Any]:
    """Return precision, recall, F1 and costs of thresholds of probabilities.

    ``table`` has nine of them. ``best_f1``, ``best_cost`` and ``by_cost``, the last two
    None without costs of a false alarm and of a miss, are the best: of equal ones the
    largest; one above 1 chooses no row. ``by_cost`` is at :math:`c_{fp} / (c_{fp} +
    c_{fn})`, the best threshold of calibrated probabilities; it is not chosen on these
    rows, as ``best_cost`` is, whose cost is therefore a little too low. Both contain
    the ``cost_per_row`` and its ``interval`` at 95 %.

    >>> best = thresholds([0, 0, 1, 1], [0.1, 0.4, 0.3, 0.8])["best_f1"]
    >>> best["threshold"], round(best["f1"], 3)
    (0.3, 0.8)
    >>> by_cost = thresholds([0, 0, 1, 1], [0.1, 0.4, 0.3, 0.8], (1, 4))["by_cost"]
    >>> by_cost["threshold"], by_cost["cost_per_row"]
    (0.2, 0.25)
    """
    is_positive = np.asarray(positive, dtype=bool)
    levels = np.sort(np.asarray(proba, dtype=np.float64))
    hit_levels = np.sort(np.asarray(proba, dtype=np.float64)[is_positive])
    # By falling size, and last of all the one that chooses no row.
    distinct = [*np.unique(levels)[::-1], np.nextafter(1, 2)]
    by_cost = [] if costs is None else [costs[0] / sum(costs)]
    at = np.array([*distinct, *_SHOWN_THRESHOLDS, *by_cost])
    total = len(hit_levels)
    chosen = len(levels) - np.searchsorted(levels, at)
    hits = total - np.searchsorted(hit_levels, at)
    columns = {
        "threshold": at,
        "precision": hits / np.maximum(chosen, 1),
        "recall": hits / max(total, 1),
        "f1": 2 * hits / np.maximum(chosen + total, 1),
    }
    if costs is not None:
        columns["cost"] = costs[0] * (chosen - hits) + costs[1] * (total - hits)

    def entry(k: Any) -> dict[str, float]:
        return {name: float(column[k]) for name, column in columns.items()}

    def priced(k: Any) -> dict[str, Any] | None:
        if costs is None:
            return None
        errors = chosen[k] - hits[k], total - hits[k]
        mean, low, high = mean_cost(errors, costs, len(levels))
        return {**entry(k), "cost_per_row": mean, "interval": [low, high]}

    n = len(distinct)
    return {
        "table": [entry(k) for k in range(n, n + len(_SHOWN_THRESHOLDS))],
        "best_f1": entry(columns["f1"][:n].argmax()),
        "best_cost": priced(columns.get("cost", at)[:n].argmin()),
        "by_cost": priced(-1),
    }


def reliability_bins(
    correct: NDArray[np.bool_], confidence: Floats, n_bins: int = 15
) -> list[list[float]]:
    """Average confidence and correctness in bins of about equally many rows.

    Bins go by confidence; each is [mean confidence, accuracy, number of rows], to five
    digits. Rows of equal confidence stay together, so that there may be fewer bins.

    >>> reliability_bins(np.array([True, False, True]), np.array([0.6, 0.6, 0.9]))
    [[0.6, 0.5, 2.0], [0.9, 1.0, 1.0]]
    """
    bins = pooled(np.column_stack(_by_confidence(correct, confidence)), n_bins)
    return [[round(value, 5) for value in entry] for entry in bins]


def _by_confidence(
    correct: NDArray[np.bool_], confidence: Floats
) -> tuple[Floats, Floats, Ints]:
    """Return the levels of confidence, and accuracy and number of rows at each."""
    levels, place, rows = np.unique(confidence, return_inverse=True, return_counts=True)
    return levels, np.bincount(place, weights=correct) / rows, rows


def pooled(bins: Floats, n_bins: int) -> list[list[float]]:
    """Merge bins of confidence into fewer, of about equal weight."""
    bins = bins[bins[:, 2] > 0]
    if len(bins) == 0:
        return []
    bins = bins[np.argsort(bins[:, 0], kind="stable")]
    weight = bins[:, 2]
    middle = np.cumsum(weight) - weight / 2
    group = np.minimum((middle / weight.sum() * n_bins).astype(np.int64), n_bins - 1)
    total = np.bincount(group, weight, n_bins)
    sums = [np.bincount(group, weight * bins[:, i], n_bins) for i in (0, 1)]
    return [
        [float(sums[0][i] / total[i]), float(sums[1][i] / total[i]), float(total[i])]
        for i in np.flatnonzero(total)
    ]


# ----------------------------------------------------------------------- groups of rows


MISSING, OTHERS = "(missing)", "(others)"

# Numbers of more distinct values are cut into ranges of about equally many rows.
_MAX_DISTINCT_NUMBERS, _N_RANGES = 8, 4
# Smaller groups than these are put together.
_MAX_GROUPS = 20


def group_names(values: Sequence[Any]) -> NDArray[Any]:
    """Return the name of each row's group; many numbers are cut into four ranges.

    Of more than 20 groups the smallest are one, called "(others)".

    >>> group_names(["f", "m", None, "f"]).tolist()
    ['f', 'm', '(missing)', 'f']
    >>> sorted(set(group_names(range(100)).tolist()))
    ['1: ≤ 24', '2: 24 to 49', '3: 49 to 74', '4: > 74']
    """
    names = np.array([group_name(cell) for cell in values], dtype=object)
    numbers = _as_numbers(np.where(names == MISSING, "nan", names))
    if numbers is not None:
        # Infinite ones are separate groups.
        finite = np.isfinite(numbers)
        if len(np.unique(numbers[finite])) > _MAX_DISTINCT_NUMBERS:
            names[finite] = cut(numbers[finite], _N_RANGES)
    common = [name for name, _ in Counter(names.tolist()).most_common()]
    if len(common) > _MAX_GROUPS:
        names[~np.isin(names, common[: _MAX_GROUPS - 1])] = OTHERS
    return names


def group_name(cell: Any) -> str:
    """Return the name of the group of a cell; 7.0 and 7 are one group.

    >>> group_name(7.0), group_name("a"), group_name(float("nan"))
    ('7', 'a', '(missing)')
    """
    if is_missing(cell):
        return MISSING
    if isinstance(cell, (float, np.floating)) and cell.is_integer():
        return str(int(cell))
    return str(cell)


def _as_numbers(names: NDArray[Any]) -> Floats | None:
    try:
        return names.astype(np.float64)
    except ValueError:
        return None


def measures_by_group(
    by: Sequence[Any],
    true: Ints,
    predicted: Ints,
    proba: Floats | None,
    decided: Ints,
    positive: int | None,
) -> dict[str, dict[str, Any]]:
    """Measure predictions for each group of rows, see ``group_names``.

    ``decided`` is what is decided at the costs of errors. Groups have ``rows`` and
    measures, each an ``Estimate``: ``accuracy``; ``log_loss`` and ``calibration`` if
    there are probabilities, the latter the mean probability minus the share of the
    class, or without a positive class the mean confidence minus the accuracy;
    ``share``, ``selected``, ``false_positives`` and ``false_negatives`` if a class is
    positive.
    """
    if len(by) != len(true):
        problem = f"`by` has {len(by)} cells, and there are {len(true)} rows."
        raise TableError(problem)
    names = group_names(by)
    groups = {}
    for name in sorted(set(names.tolist()), key=lambda n: (n in (MISSING, OTHERS), n)):
        rows = names == name
        labels, right = true[rows], true[rows] == predicted[rows]
        measures: dict[str, Any] = {"rows": len(labels), "accuracy": _share(right)}
        if proba is not None:
            chances, hits = proba[rows].max(axis=1), right
            if positive is not None:
                chances, hits = proba[rows, positive], labels == positive
            measures["log_loss"] = mean_estimate(row_losses(labels, proba[rows]))
            measures["calibration"] = mean_estimate(chances - hits)
        if positive is not None:
            is_positive, is_decided = labels == positive, decided[rows] == positive
            measures["share"] = _share(is_positive)
            measures["selected"] = _share(is_decided)
            measures["false_positives"] = _share(is_decided[~is_positive])
            measures["false_negatives"] = _share(~is_decided[is_positive])
        groups[name] = measures
    return groups


def _share(which: NDArray[np.bool_]) -> Estimate:
    return share_estimate(int(which.sum()), len(which))
