"""Mutual information of attributes with the class and with each other, from counts."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from steelyard._threads import run, thread_count
from steelyard.counts import Counts
from steelyard.kernels import pairs
from steelyard.table.codes import Codes

__all__ = ["class_information", "correlation_weights", "pair_information"]


def class_information(counts: Counts) -> NDArray[np.float64]:
    r"""Mutual information of every attribute with the class, in bits, shape (d,).

    .. math:: I(A_j; C) = \sum_{v,c} p(v,c) \log_2 \frac{p(v,c)}{p(v)\,p(c)}

    Raw frequencies of the rows whose cell is known; 0 for Gaussian attributes, which
    have no codes.
    """
    offsets = counts.schema.offsets
    out = np.zeros(len(counts.schema))
    for j in counts.schema.coded.tolist():
        out[j] = _information(counts.by_code[offsets[j] + 1 : offsets[j + 1]])
    return out


def pair_information(
    codes: Codes, weights: NDArray[np.float64] | None, n_jobs: int | None = None
) -> NDArray[np.float64]:
    r"""Mutual information of every pair of attributes, in bits, shape (d, d).

    .. math:: I(A_j; A_k) = \sum_{v,v'} p(v,v') \log_2
              \frac{p(v,v')}{p(v)\,p(v')}

    over rows in which both cells are known. One pair table at a time; the diagonal and
    the rows of Gaussian attributes are 0.
    """
    schema = codes.schema
    columns = {j: np.ascontiguousarray(codes.column(j)) for j in schema.coded.tolist()}
    u = np.empty(0) if weights is None else weights

    def one(pair: tuple[int, int]) -> float:
        a, b = pair
        table = np.zeros((schema.features[a].n_codes, schema.features[b].n_codes))
        pairs.count_pair(columns[a], columns[b], u, table)
        return _information(table[1:, 1:])

    out = np.zeros((len(schema), len(schema)))
    all_pairs = list(combinations(columns, 2))
    found = run(one, all_pairs, thread_count(n_jobs))
    for (a, b), value in zip(all_pairs, found, strict=True):
        out[a, b] = out[b, a] = value
    return out


def correlation_weights(
    counts: Counts,
    codes: Codes,
    weights: NDArray[np.float64] | None,
    n_jobs: int | None = None,
) -> NDArray[np.float64]:
    r"""Weights of the correlation-based filter CFW, shape (d,).

    .. math:: w_j = \sigma\Bigl(\frac{I(A_j;C)}{\text{mean}_k I(A_k;C)} -
        \frac{\sum_{k \ne j} I(A_j;A_k)}{\text{mean}_l \sum_{k \ne l} I(A_l;A_k)}\Bigr)

    An attribute that tells much about the class and little about the others weighs
    more. A Gaussian attribute keeps weight one half, that of an average attribute.

    References
    ----------
    L. Jiang, L. Zhang, C. Li, J. Wu (2019), "A correlation-based feature weighting
    filter for naive Bayes", IEEE TKDE 31(2), 201-213.
    """
    coded = counts.schema.coded
    relevance = class_information(counts)[coded]
    redundancy = pair_information(codes, weights, n_jobs).sum(axis=1)[coded]
    difference = np.zeros(len(counts.schema))
    difference[coded] = _normalised(relevance) - _normalised(redundancy)
    return np.asarray(1.0 / (1.0 + np.exp(-difference)))


def _normalised(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide by the mean; all zero where that is zero."""
    mean = values.mean() if values.size else 0.0
    return values / mean if mean > 0 else np.zeros_like(values)


def _information(table: NDArray[np.float64]) -> float:
    """Mutual information of the rows and columns of a table of counts, in bits."""
    total = table.sum()
    if total <= 0:
        return 0.0
    joint = table / total
    expected = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    known = joint > 0
    value = float((joint[known] * np.log2(joint[known] / expected[known])).sum())
    return max(value, 0.0)
