"""Information of attributes about the class and about each other, in bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, Ints
from steelyard._common.threads import pieces, run, thread_count
from steelyard.kernels import pairs
from steelyard.model.training import TrainingSet
from steelyard.proba.counts import Counts
from steelyard.table.codes import Codes

# Tables of this many cells are made several at a time; larger ones than the last never.
_SMALL = 1 << 16
_LARGEST = 1 << 24

# Bits of information that may be rounding.
_NOTHING = 1e-13

Facts = Floats
"""Mutual information and the two entropies of some pairs, shape (pairs, 3)."""

Measure = Callable[[Floats], Floats]
"""What is made of such facts, shape (pairs,)."""


def class_information(counts: Counts) -> Floats:
    r"""Mutual information of every attribute with the class, shape (d,).

    .. math:: I(A_j; C) = \sum_{v,c} p(v,c) \log_2 \frac{p(v,c)}{p(v)\,p(c)}

    Raw frequencies of the rows whose cell is observed; 0 for Gaussian attributes, which
    have no codes.
    """
    return _with_class(counts)[:, 0]


def gain_ratios(counts: Counts) -> Floats:
    r"""Gain ratio of every attribute, :math:`I(A_j; C) / H(A_j)`, shape (d,).

    0 for an attribute with a single value.
    """
    information, entropy, _ = _with_class(counts).T
    return np.divide(
        information, entropy, out=np.zeros(len(entropy)), where=entropy > 0
    )


def class_uncertainty(counts: Counts) -> Floats:
    r"""Symmetrical uncertainty of every attribute and the class, shape (d,).

    .. math:: SU(A, C) = \frac{2\, I(A; C)}{H(A) + H(C)}
    """
    return _symmetrical(_with_class(counts))


def pair_information(training: TrainingSet) -> Floats:
    r"""Mutual information of every pair of attributes, shape (d, d).

    .. math:: I(A_j; A_k) = \sum_{v,v'} p(v,v') \log_2
              \frac{p(v,v')}{p(v)\,p(v')}

    over rows in which both cells are observed, wherever they are. The diagonal and the
    rows of Gaussian attributes are 0.
    """
    return _over_training(training, lambda facts: facts[:, 0])


def conditional_information(training: TrainingSet) -> Floats:
    r"""Mutual information of every pair of attributes within the classes, shape (d, d).

    .. math:: I(A_j; A_k \mid C) = \sum_{v,v',c} p(v,v',c) \log_2
              \frac{p(v,v' \mid c)}{p(v \mid c)\,p(v' \mid c)}

    over rows in which both cells are observed. The diagonal and the rows of Gaussian
    attributes are 0.
    """
    d = len(training.schema)
    total, mass = np.zeros((d, d)), np.zeros((d, d))
    for c in range(training.n_classes):
        part = training.taken(training.rows_of(c))
        of_class = _observed_together(part.codes, part.weights)
        total += of_class * pair_information(part)
        mass += of_class
    return np.divide(total, mass, out=np.zeros((d, d)), where=mass > 0)


def _observed_together(codes: Codes, weights: Floats | None) -> Floats:
    """Weight of the rows in which two cells are observed, shape (d, d)."""
    d = len(codes.schema)
    total = np.zeros((d, d))
    for rows in pieces(slice(0, codes.n_rows)):
        part = codes.part(rows)
        observed = np.zeros((d, part.n_rows))
        for j in codes.schema.coded.tolist():
            observed[j] = part.column(j) > 0
        total += (
            observed if weights is None else observed * weights[rows]
        ) @ observed.T
    return total


def pair_uncertainty(training: TrainingSet) -> Floats:
    """Symmetrical uncertainty of every pair of attributes, shape (d, d).

    Over rows in which both cells are observed; the diagonal is 0.
    """
    return _over_training(training, _symmetrical)


def correlation_weights(training: TrainingSet) -> Floats:
    """CFW, see ``CorrelationWeightedNB``: weights of attributes, which all have codes.

    One with much information on the class and little on the others weighs more.
    """
    relevance = class_information(training.count())
    redundancy = pair_information(training).sum(axis=1)
    difference = _normalised(relevance) - _normalised(redundancy)
    return np.asarray(1.0 / (1.0 + np.exp(-difference)))


def _over_training(training: TrainingSet, measure: Measure) -> Floats:
    if not training.place.is_here:
        return _over_parts(training, measure)
    return _over_pairs(training.codes, training.weights, training.n_jobs, measure)


def _normalised(values: Floats) -> Floats:
    """Divide by the mean; all zero if that is zero, but for rounding."""
    mean = values.mean() if values.size else 0.0
    return values / mean if mean > _NOTHING else np.zeros_like(values)


def _symmetrical(facts: Facts) -> Floats:
    """Symmetrical uncertainty; 0 if one has a single value, but for rounding."""
    mutual, first, second = facts.T
    both, vary = first + second, np.minimum(first, second) > 0
    return np.divide(2.0 * mutual, both, out=np.zeros(len(both)), where=vary)


def _with_class(counts: Counts) -> Facts:
    """Facts of every attribute and the class, shape (d, 3)."""
    offsets = counts.schema.offsets
    out = np.zeros((len(counts.schema), 3))
    for j in counts.schema.coded.tolist():
        out[j] = pairs.information(counts.by_code[offsets[j] + 1 : offsets[j + 1]])
    return out


def _over_pairs(
    codes: Codes, weights: Floats | None, n_jobs: int | None, measure: Measure
) -> Floats:
    """Measure every pair of attributes, with a few pair tables in memory at a time."""
    coded = codes.schema.coded
    sizes = np.array([codes.schema.features[j].n_codes for j in coded], dtype=np.int64)
    # One row per attribute, so that the passes read memory in order.
    columns = codes.by_column()

    def with_later(a: int) -> Floats:
        groups = _groups(a, columns, sizes, weights)
        return measure(np.concatenate([np.empty((0, 3)), *groups]))

    small = np.zeros((len(coded), len(coded)))
    by_column = run(with_later, range(len(coded)), thread_count(n_jobs))
    for a, values in enumerate(by_column):
        small[a, a + 1 :] = small[a + 1 :, a] = values
    out = np.zeros((len(codes.schema), len(codes.schema)))
    out[np.ix_(coded, coded)] = small
    return out


def _over_parts(training: TrainingSet, measure: Measure) -> Floats:
    """Measure every pair of attributes of rows elsewhere, from sums of pair tables."""
    coded = training.schema.coded
    sizes = [training.schema.features[j].n_codes for j in coded]
    pairs_of = list(combinations(range(len(coded)), 2))
    if max((sizes[a] * sizes[b] for a, b in pairs_of), default=0) > _LARGEST:
        here = training.place.here(training)
        return _over_pairs(here.codes, here.weights, here.n_jobs, measure)
    out = np.zeros((len(training.schema), len(training.schema)))
    while pairs_of:
        ends = np.cumsum([sizes[a] * sizes[b] for a, b in pairs_of])
        n_batch = max(1, int(np.searchsorted(ends, _LARGEST, side="right")))
        batch, pairs_of = pairs_of[:n_batch], pairs_of[n_batch:]
        count = partial(_pair_tables, batch=batch, ends=ends[:n_batch])
        tables = np.split(
            training.place.sum(training, count, True), ends[: n_batch - 1]
        )
        for (a, b), table in zip(batch, tables, strict=True):
            facts = pairs.information(table.reshape(sizes[a], sizes[b])[1:, 1:])
            j, k = coded[a], coded[b]
            out[j, k] = out[k, j] = measure(np.array([facts]))[0]
    return out


def _pair_tables(part: TrainingSet, batch: list[tuple[int, int]], ends: Ints) -> Floats:
    """Count some pairs of columns in the rows of a part, one table after the other."""
    coded, columns = part.schema.coded, part.codes.by_column()
    sizes = [part.schema.features[j].n_codes for j in coded]
    out = np.zeros(ends[-1])
    weights = np.ones(part.n_rows) if part.weights is None else part.weights
    for (a, b), table in zip(batch, np.split(out, ends[:-1]), strict=True):
        shaped = table.reshape(1, sizes[a], sizes[b])
        pairs.count_pairs(columns[a], columns[b : b + 1], weights, shaped)
    return out


def _groups(
    a: int, columns: NDArray[Any], sizes: Ints, weights: Floats | None
) -> Iterator[Facts]:
    """Yield the facts of column ``a`` with all later ones, as many as are alike."""
    d, n = columns.shape
    most = min(max(_SMALL, 4 * n), _LARGEST)
    is_small = sizes[a] * sizes <= _SMALL
    # Where small tables and others meet.
    turns = 1 + np.flatnonzero(is_small[1:] != is_small[:-1])
    lo = a + 1
    while lo < d:
        hi = int(turns[turns > lo].min(initial=d)) if is_small[lo] else lo + 1
        if sizes[a] * sizes[lo] > most:
            # Two columns of very many values: most cells of their table are empty.
            yield np.array([_sparse(columns[a], columns[lo], weights)])
        else:
            kind = np.uint32 if weights is None else np.float64
            shape = min(hi - lo, pairs.TABLES), sizes[a], sizes[lo:hi].max()
            facts, tables = np.empty((hi - lo, 3)), np.empty(shape, dtype=kind)
            pairs.measure_pairs(columns[a], columns[lo:hi], weights, tables, facts)
            yield facts
        lo = hi


def _sparse(
    first: NDArray[Any], second: NDArray[Any], weights: Floats | None
) -> tuple[float, float, float]:
    """Facts of two columns from the pairs of codes that occur."""
    observed = (first > 0) & (second > 0)
    codes = np.stack([first[observed], second[observed]], axis=1).astype(np.int64)
    if not len(codes):
        return 0.0, 0.0, 0.0
    distinct, where = np.unique(codes, axis=0, return_inverse=True)
    u = None if weights is None else weights[observed]
    mass = np.bincount(where.ravel(), u).astype(np.float64)
    rows, columns = (np.bincount(distinct[:, k], mass) for k in (0, 1))
    total = mass.sum()
    ratio = mass / rows[distinct[:, 0]] * (total / columns[distinct[:, 1]])
    mutual = float((mass * np.log2(ratio)).sum() / total)
    return max(mutual, 0.0), _entropy(rows / total), _entropy(columns / total)


def _entropy(p: Floats) -> float:
    """Entropy of a distribution, in bits."""
    p = p[p > 0]
    return max(float(-(p * np.log2(p)).sum()), 0.0)
