"""One round of discriminative instance weights: gather, reweigh, scatter.

Each kernel gathers the scores of a row, adds the posterior loss of its class to its
weight, and counts the row with that weight for the next round, while its codes are in
the cache. Shapes: ``values (n, b)`` joint codes, ``starts (b,)`` uint64, ``y (n,)``
uint32, ``user_weights (n,)`` or empty for ones, ``weights (n,)`` changed in place,
``hist (K, V)`` +=. Returned is the log-loss, weighted by ``user_weights``.
"""

from __future__ import annotations

import math

import numpy as np

from steelyard.kernels.compiling import kernel
from steelyard.kernels.scoring import _exp, add_row

_ROWS = 64
# Products of so few posteriors do not underflow while each is above the least.
_MAX_FACTORS = 16
_MIN_FACTOR = 1e-18


@kernel
def reweigh_two(values, starts, table, prior, y, user_weights, weights, hist):
    """Two classes: table (V,) and prior () are log-odds of the second."""
    n = values.shape[0]
    p = np.empty(_ROWS)
    loss = 0.0
    for lo in range(0, n, _ROWS):
        rows = min(_ROWS, n - lo)
        for r in range(rows):
            x = add_row(values[lo + r], starts, table, prior)
            p[r] = x if y[lo + r] == 1 else -x
        for r in range(rows):
            e = _exp(-abs(p[r]))
            p[r] = (1.0 if p[r] > 0.0 else e) / (1.0 + e)
        loss += _finish(p, rows, lo, values, starts, y, user_weights, weights, hist)
    return loss


@kernel
def reweigh_many(values, starts, table, prior, y, user_weights, weights, hist):
    """Any number of classes: table (V, K), prior (K,)."""
    n, b = values.shape
    k = prior.size
    p = np.empty(_ROWS)
    s = np.empty(k)
    loss = 0.0
    for lo in range(0, n, _ROWS):
        rows = min(_ROWS, n - lo)
        for r in range(rows):
            row = values[lo + r]
            for c in range(k):
                s[c] = prior[c]
            for j in range(b):
                entry = table[starts[j] + row[j]]
                for c in range(k):
                    s[c] += entry[c]
            true = s[y[lo + r]]
            highest = s.max()
            total = 0.0
            for c in range(k):
                total += _exp(s[c] - highest)
            p[r] = _exp(true - highest) / total
        loss += _finish(p, rows, lo, values, starts, y, user_weights, weights, hist)
    return loss


@kernel(inline="always")
def _finish(p, rows, lo, values, starts, y, user_weights, weights, hist):
    """Add the losses of a few rows to their weights, and count them: () log-loss."""
    b = values.shape[1]
    every = user_weights.size == 0
    loss = 0.0
    product = 1.0
    for r in range(rows):
        i = lo + r
        weights[i] += 1.0 - p[r]
        u = weights[i] if every else weights[i] * user_weights[i]
        if every and p[r] > _MIN_FACTOR:
            product *= p[r]
            if r % _MAX_FACTORS == _MAX_FACTORS - 1:
                loss -= math.log(product)
                product = 1.0
        elif p[r] > 0.0:
            loss -= math.log(p[r]) * (1.0 if every else user_weights[i])
        else:
            loss = np.inf
        h = hist[y[i]]
        row = values[i]
        for j in range(b):
            h[starts[j] + row[j]] += u
    return loss - math.log(product)
