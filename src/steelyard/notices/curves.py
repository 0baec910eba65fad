"""A rule at fit: curves whose trend is opposite to the class rates of their column."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from steelyard._common.arrays import Floats
from steelyard.model.marginal import Marginal
from steelyard.model.table_model import NBModel
from steelyard.notices.notice import Notice
from steelyard.proba.counts import Counts

# Quantile groups of rows that are compared, and smallest number of bins.
_GROUPS = 10

# Largest correlation of an opposite trend, and smallest importance, in log-odds.
_MAX_CORRELATION, _MIN_IMPORTANCE = -0.2, 0.1

# Smallest absolute correlation of contributions of columns that are named.
_MIN_SHARED = 0.3


def opposed(model: NBModel, counts: Counts) -> Iterator[tuple[int, list[int]]]:
    """Yield numeric columns whose curve has the opposite trend of class rates.

    Weights are learned for all columns together, so that correlated columns may correct
    each other. The curve is compared with the evidence of the column in plain naive
    Bayes. With each come at most two columns with correlated contributions.
    """
    schema, marginal = model.schema, model.marginal
    if marginal is None:
        return
    for j, feature in enumerate(schema.features):
        if feature.kind != "binned" or len(feature.edges) + 1 < _GROUPS:
            continue
        first = int(schema.offsets[j]) + 1
        bins = slice(first, first + len(feature.edges) + 1)
        rows = counts.by_code[bins].sum(axis=1)
        curve = model.link_scale * _centred(model.table[bins], rows)
        alone = _centred(marginal.plain[bins], rows)
        importance = 2.0 * rows @ np.abs(curve).mean(axis=1) / max(rows.sum(), 1e-300)
        if importance > _MIN_IMPORTANCE:
            if _correlation(curve, alone, rows) < _MAX_CORRELATION:
                yield j, _correlated(marginal, j, schema.n_columns)


def opposed_notices(model: NBModel, counts: Counts) -> Iterator[Notice]:
    """Report numeric columns whose curve has the opposite trend of class rates."""
    labels = model.schema.labels()
    for j, others in opposed(model, counts):
        text = "its curve runs against the class rates of the column alone"
        if others:
            verb = "carries" if len(others) == 1 else "carry"
            names = " and ".join(labels[k] for k in others)
            text += f"; {names} {verb} much of the same information"
        advice = "read them together, or drop some of them (`X.drop(columns=...)`)"
        yield Notice("opposed-curve", text, labels[j], 0, "", advice)


def _centred(values: Floats, rows: Floats) -> Floats:
    """Return values by code and class, less the means of classes and of rows."""
    against = values - values.mean(axis=1, keepdims=True)
    return np.asarray(against - rows @ against / max(rows.sum(), 1e-300))


def _correlation(curve: Floats, alone: Floats, rows: Floats) -> float:
    """Return the correlation of two curves, as means of ten groups of rows."""
    middle = (np.cumsum(rows) - rows / 2.0) / max(rows.sum(), 1e-300)
    groups = np.minimum((middle * _GROUPS).astype(np.int64), _GROUPS - 1)
    weight = np.bincount(groups, rows, _GROUPS)
    first, second = (
        np.stack([np.bincount(groups, rows * of, _GROUPS) for of in values.T])
        / np.maximum(weight, 1e-300)
        for values in (curve, alone)
    )
    size = np.sqrt((weight * first**2).sum() * (weight * second**2).sum())
    return float((weight * first * second).sum() / max(size, 1e-300))


def _correlated(marginal: Marginal, j: int, n_columns: int) -> list[int]:
    """Return at most two columns with the most correlated contributions."""
    loadings = marginal.loadings
    variances = (loadings**2).sum(axis=(1, 2)) + marginal.noise.sum(axis=1)
    shared = np.abs(np.einsum("cr,kcr->k", loadings[j], loadings))
    shared /= np.sqrt(np.maximum(variances[j] * variances, 1e-300))
    near = [k for k in range(n_columns) if k != j and shared[k] > _MIN_SHARED]
    return sorted(near, key=lambda k: -shared[k])[:2]
