r"""What each column says alone: the share of each class by value, smoothed.

The share of class c among rows with value v is :math:`(n_{vc} + m\,\pi_c) / (n_v + m)`
with the base rates :math:`\pi`. Of numbers, :math:`n_v` is a sum over bins around that
of v, with weights :math:`e^{-|r - r_v| / h}` by the distance of their ranks r. The rows
m and the width h are those with the largest likelihood of each row under the shares
from all others, which takes nothing but counts.
"""

from __future__ import annotations

import numpy as np

from steelyard._common.arrays import Floats
from steelyard.proba.counts import Counts
from steelyard.table.schema import FeatureSchema

# Rows of base rates that are added, and widths as shares of all rows.
_ADDED = np.array([0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 256.0, 1e9])
_WIDTHS = (0.003, 0.006, 0.012, 0.025, 0.05, 0.1, 0.2, 0.4)

# Columns with more bins have separate shares for each.
_MAX_BINS = 1_000

# A likelihood is not larger for a difference of this size.
_ROUNDING = 1e-9


def log_ratios(counts: Counts) -> Floats:
    """Return logs of shares relative to the base rates by code, shape (V, K).

    0 for missing cells without a code of their own, for codes of interactions, and for
    classes without rows.
    """
    schema, total = counts.schema, counts.by_class.sum()
    out = np.zeros_like(counts.by_code)
    rates = counts.by_class / total if total > 0.0 else np.zeros(len(counts.by_class))
    with_rows = rates > 0.0
    for j, feature in enumerate(schema.features[: schema.n_columns]):
        if not feature.is_coded:
            continue
        codes = slice(schema.offsets[j] + 1, schema.offsets[j + 1])
        seen = counts.by_code[codes][:, with_rows]
        shares = _shares(seen, rates[with_rows], _places(feature, seen.sum(axis=1)))
        out[codes, with_rows] = np.log(shares / rates[with_rows])
    return out


def _places(feature: FeatureSchema, weights: Floats) -> Floats | None:
    """Return the mean ranks of bins, NaN for missing cells; None for no numbers."""
    if feature.kind != "binned" or len(weights) > _MAX_BINS:
        return None
    weights = weights.copy()
    if feature.missing_is_value:
        weights[-1] = 0.0
    places = (weights.cumsum() - weights / 2.0) / max(weights.sum(), 1.0)
    if feature.missing_is_value:
        places[-1] = np.nan
    return np.asarray(places)


def _shares(counts: Floats, rates: Floats, places: Floats | None) -> Floats:
    """Return the smoothed shares of classes of one column, shape (V, K)."""
    rows, classes = np.nonzero(counts)
    weights, added = counts[rows, classes], _ADDED[:, None]
    best, chosen = -np.inf, (counts, 0.0)
    for sums in _sums(counts, places):
        # Each row is left out of the counts of its code and class.
        of_class = np.maximum(sums[rows, classes] - 1.0, 0.0) + added * rates[classes]
        of_all = np.maximum(sums.sum(axis=1)[rows] - 1.0, 0.0) + added
        likelihoods = np.log(of_class / of_all) @ weights
        k = int(likelihoods.argmax())
        if likelihoods[k] > best + _ROUNDING:
            best, chosen = likelihoods[k], (sums, _ADDED[k])
    sums, m = chosen
    return np.asarray((sums + m * rates) / (sums.sum(axis=1, keepdims=True) + m))


def _sums(counts: Floats, places: Floats | None) -> list[Floats]:
    """Return counts, and sums of those of bins around each, by width."""
    if places is None:
        return [counts]
    distances = np.abs(places[:, None] - places)
    distances[np.isnan(distances)] = np.inf
    np.fill_diagonal(distances, 0.0)
    return [counts, *(np.exp(-distances / width) @ counts for width in _WIDTHS)]
