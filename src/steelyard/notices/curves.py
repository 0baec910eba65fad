"""A rule at fit: curves that run against what their column says alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from steelyard._common.arrays import Floats
from steelyard._common.text import listed
from steelyard.model.marginal import Marginal
from steelyard.model.table_model import NBModel
from steelyard.notices.notice import Notice
from steelyard.proba.counts import Counts

# Groups of rows that a curve is compared in, and bins that it has at least.
_GROUPS = 10

# Correlation below which a curve runs against its column alone, and importance, in
# log-odds, from which on anyone looks at it.
_MAX_CORRELATION, _MIN_IMPORTANCE = -0.2, 0.1

# Absolute correlation of contributions from which on columns say the same.
_MIN_SHARED = 0.3


def opposed(model: NBModel, counts: Counts) -> Iterator[tuple[int, list[int]]]:
    """Yield numbers whose curve runs against the rates of classes along it.

    The curve counts beside those of other columns. Where these say the same, one may
    make up for what another says too strongly. What a column says alone is its evidence
    in plain naive Bayes. Columns that say the same, at most two, come with each.
    """
    schema, marginal = model.schema, model.marginal
    if marginal is None:
        return
    for j, feature in enumerate(schema.features):
        if feature.kind != "binned" or len(feature.edges) + 1 < _GROUPS:
            continue
        bins = slice(*(schema.offsets[j] + (1, len(feature.edges) + 2)))
        rows = counts.by_code[bins].sum(axis=1)
        curve = model.link_scale * _centred(model.table[bins], rows)
        alone = _centred(marginal.plain[bins], rows)
        importance = 2.0 * rows @ np.abs(curve).mean(axis=1) / max(rows.sum(), 1e-300)
        if importance > _MIN_IMPORTANCE:
            if _correlation(curve, alone, rows) < _MAX_CORRELATION:
                yield j, _saying_the_same(marginal, j, schema.n_columns)


def opposed_notices(model: NBModel, counts: Counts) -> Iterator[Notice]:
    """Report numbers whose curve runs against what they say alone."""
    labels = model.schema.labels()
    for j, others in opposed(model, counts):
        text = "its curve runs against what the column says alone"
        if others:
            verb = "says" if len(others) == 1 else "say"
            text += f"; {listed([labels[k] for k in others])} {verb} the same"
        yield Notice("opposed-curve", text, labels[j])


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
    products = [(weight * a * b).sum() for a, b in ((first, second), (first, first))]
    size = np.sqrt(products[1] * (weight * second**2).sum())
    return float(products[0] / max(size, 1e-300))


def _saying_the_same(marginal: Marginal, j: int, n_columns: int) -> list[int]:
    """Return at most two columns whose contributions go most with those of one."""
    loadings = marginal.loadings
    variances = (loadings**2).sum(axis=(1, 2)) + marginal.noise.sum(axis=1)
    shared = np.abs(np.einsum("cr,kcr->k", loadings[j], loadings))
    shared /= np.sqrt(np.maximum(variances[j] * variances, 1e-300))
    near = [k for k in range(n_columns) if k != j and shared[k] > _MIN_SHARED]
    return sorted(near, key=lambda k: -shared[k])[:2]
