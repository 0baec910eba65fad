"""How good predictions are for each group of rows, with intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.exceptions import TableError
from steelyard.experiments.data.dataset import cut
from steelyard.experiments.statistics.metrics import row_losses
from steelyard.experiments.statistics.shares import (
    Estimate,
    mean_estimate,
    share_estimate,
)

__all__ = ["group_names", "measures_by_group"]

MISSING, OTHERS = "(missing)", "(others)"

# Numbers of more distinct values are cut into ranges of about equally many rows.
_MOST_NUMBERS, _RANGES = 8, 4
# Smaller groups than these are put together.
_MOST_GROUPS = 20

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


def group_names(values: Sequence[Any]) -> NDArray[Any]:
    """Name the group of each row by its cell; many numbers are cut into four ranges.

    Of more than 20 groups the smallest are one, called "(others)".

    Examples
    --------
    >>> group_names(["f", "m", None, "f"]).tolist()
    ['f', 'm', '(missing)', 'f']
    >>> sorted(set(group_names(range(100)).tolist()))
    ['1: ≤ 24', '2: 24 to 49', '3: 49 to 74', '4: > 74']
    """
    cells = [None if cell != cell else cell for cell in values]
    known = np.array([cell is not None for cell in cells], dtype=bool)
    names = np.array([MISSING if c is None else _name(c) for c in cells], dtype=object)
    numbers = _as_numbers(names[known])
    if numbers is not None and len(np.unique(numbers)) > _MOST_NUMBERS:
        names[known] = cut(numbers, _RANGES)
    common = [name for name, _ in Counter(names.tolist()).most_common()]
    if len(common) > _MOST_GROUPS:
        names[~np.isin(names, common[: _MOST_GROUPS - 1])] = OTHERS
    return names


def _name(cell: Any) -> str:
    if isinstance(cell, (float, np.floating)) and cell == int(cell):
        return str(int(cell))
    return str(cell)


def _as_numbers(names: NDArray[Any]) -> Floats | None:
    try:
        numbers = names.astype(np.float64)
    except ValueError:
        return None
    return numbers if len(numbers) and np.isfinite(numbers).all() else None


def measures_by_group(
    by: Sequence[Any],
    true: Ints,
    predicted: Ints,
    proba: Floats | None,
    decided: Ints,
    positive: int | None,
) -> dict[str, dict[str, Any]]:
    """Measure predictions for each group of rows.

    Parameters
    ----------
    by : sequence of n cells
        What rows are grouped by, see ``group_names``.
    true, predicted : ndarray of shape (n,)
        Classes as positions.
    proba : ndarray of shape (n, K) or None
        Probabilities.
    decided : ndarray of shape (n,)
        What is decided at the costs of errors: ``predicted`` without any.
    positive : int or None
        The class that decisions are about.

    Returns
    -------
    dict
        Of each group ``rows`` and measures, each an ``Estimate``: ``accuracy``;
        ``log_loss`` and ``calibration`` where there are probabilities, the latter the
        mean probability minus the share of the class, or without a positive class the
        mean confidence minus the accuracy; ``share``, ``selected``,
        ``false_positives`` and ``false_negatives`` where a class is positive.
    """
    if len(by) != len(true):
        problem = f"`by` has {len(by)} cells, and there are {len(true)} rows."
        raise TableError(problem)
    names = group_names(by)
    found = {}
    for name in sorted(set(names.tolist()), key=lambda n: (n in (MISSING, OTHERS), n)):
        rows = names == name
        some = None if proba is None else proba[rows]
        of_group = true[rows], predicted[rows], some, decided[rows], positive
        found[name] = {"rows": int(rows.sum()), **_measures(*of_group)}
    return found


def _measures(
    true: Ints,
    predicted: Ints,
    proba: Floats | None,
    decided: Ints,
    positive: int | None,
) -> dict[str, Estimate]:
    right = true == predicted
    found = {"accuracy": _share(right)}
    if proba is not None:
        chances, hits = proba.max(axis=1), right
        if positive is not None:
            chances, hits = proba[:, positive], true == positive
        found["log_loss"] = mean_estimate(row_losses(true, proba))
        found["calibration"] = mean_estimate(chances - hits)
    if positive is not None:
        is_positive, is_decided = true == positive, decided == positive
        found["share"] = _share(is_positive)
        found["selected"] = _share(is_decided)
        found["false_positives"] = _share(is_decided[~is_positive])
        found["false_negatives"] = _share(~is_decided[is_positive])
    return found


def _share(which: NDArray[np.bool_]) -> Estimate:
    return share_estimate(int(which.sum()), len(which))
