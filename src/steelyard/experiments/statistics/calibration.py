"""How often predictions are right, by bins of confidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.experiments.results import Results

__all__ = ["reliability", "reliability_bins"]

Floats = NDArray[np.float64]


def reliability_bins(
    correct: NDArray[np.bool_], confidence: Floats, n_bins: int = 15
) -> list[list[float]]:
    """Average confidence and correctness in bins of about equally many rows.

    Bins go by confidence; each is [mean confidence, accuracy, number of rows], to five
    digits. Rows of equal confidence stay together, so that there may be fewer bins.

    Examples
    --------
    >>> reliability_bins(np.array([True, False, True]), np.array([0.6, 0.6, 0.9]))
    [[0.6, 0.5, 2.0], [0.9, 1.0, 1.0]]
    """
    levels, place = np.unique(confidence, return_inverse=True)
    rows = np.bincount(place)
    right = np.bincount(place, weights=correct)
    bins = _pool(np.column_stack([levels, right / rows, rows]), n_bins)
    return [[round(value, 5) for value in entry] for entry in bins]


def reliability(
    results: Results, protocol: str, n_bins: int = 15
) -> dict[str, list[list[float]]]:
    """Pool the bins that rows of a protocol carry, for each method that has any.

    A row carries bins as ``row["extra"]["reliability"]``, as `reliability_bins` returns
    them. The pooled ones have about equal weight.
    """
    gathered: dict[str, list[Sequence[float]]] = {}
    for row in results.rows:
        extra: Mapping[str, Any] | None = row.get("extra")
        bins = extra.get("reliability") if isinstance(extra, Mapping) else None
        if bins and row["protocol"] == protocol:
            gathered.setdefault(row["method"], []).extend(bins)
    return {name: _pool(np.array(bins), n_bins) for name, bins in gathered.items()}


def _pool(bins: Floats, n_bins: int) -> list[list[float]]:
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
