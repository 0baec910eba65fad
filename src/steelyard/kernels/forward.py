"""Forward selection: what every candidate attribute would do to the likelihood.

Shapes: ``values (n, b)`` unsigned codes in either memory order, ``starts (b,)`` uint64
first rows of the columns in ``table (V, K)`` of probabilities (not logarithms; 1 where
a cell is missing), ``posterior (n, K)`` probabilities of the classes so far.
"""

from __future__ import annotations

import math

import numpy as np

from steelyard.kernels.compiling import kernel

# Rows whose posteriors stay in the nearest cache while all candidates read them.
_ROWS = 512
# A product of a few dozen probabilities costs one logarithm; more would gain nothing.
# A cell takes 2 ns this way, and 7 ns with a logarithm of its own (two classes).
_MAX_FACTORS = 64
# Logarithm of the smallest product that is safely above the smallest float64.
_MIN_LOG_PRODUCT = -690.0


@kernel
def log_total(scores, weights):
    """Turn scores (n, K) into posteriors in place; return the sum of their norms.

    The norm of a row is the logarithm of the sum of its exponentials. weights (n,) or
    empty for ones.
    """
    n, n_classes = scores.shape
    every = weights.size == 0
    total = 0.0
    for i in range(n):
        s = scores[i]
        top = s[0]
        for c in range(1, n_classes):
            top = max(top, s[c])
        norm = 0.0
        for c in range(n_classes):
            s[c] = math.exp(s[c] - top)
            norm += s[c]
        for c in range(n_classes):
            s[c] /= norm
        total += (1.0 if every else weights[i]) * (top + math.log(norm))
    return total


@kernel
def _factors_per_log(table, first, last):
    """How many mixtures of the probabilities of a column can be multiplied safely.

    A mixture is never smaller than its smallest part.
    """
    low = 1.0
    for v in range(first, last):
        for c in range(table.shape[1]):
            low = min(low, table[v, c])
    if low >= 1.0:
        return _MAX_FACTORS
    return min(_MAX_FACTORS, max(1, int(_MIN_LOG_PRODUCT / math.log(low))))


@kernel
def try_columns(values, starts, sizes, chosen, table, posterior, out):
    """Add to out (b,) the log-likelihood of the rows' cells in each chosen column.

    It is the sum over rows of ``log(sum_c posterior[i, c] * table[cell, c])``: what the
    norms of the rows grow by when the column joins. chosen (m,) positions of columns,
    sizes (b,) uint64 their numbers of table rows.
    """
    n, n_classes = posterior.shape
    lengths = np.empty(chosen.shape[0], np.int64)
    for k in range(chosen.shape[0]):
        j = chosen[k]
        lengths[k] = _factors_per_log(table, starts[j], starts[j] + sizes[j])
    mixture = np.empty(_ROWS)
    for lo in range(0, n, _ROWS):
        rows = min(_ROWS, n - lo)
        for k in range(chosen.shape[0]):
            j = chosen[k]
            start = starts[j]
            if n_classes == 2:
                for r in range(rows):
                    cell = start + values[lo + r, j]
                    mixture[r] = (
                        posterior[lo + r, 0] * table[cell, 0]
                        + posterior[lo + r, 1] * table[cell, 1]
                    )
            else:
                for r in range(rows):
                    cell = start + values[lo + r, j]
                    total = 0.0
                    for c in range(n_classes):
                        total += posterior[lo + r, c] * table[cell, c]
                    mixture[r] = total
            out[j] += _sum_of_logs(mixture, rows, lengths[k])


@kernel
def _sum_of_logs(factors, n, length):
    """Sum of the logarithms of the first n factors, one for ``length`` of each lane."""
    total = 0.0
    fours = n - n % 4
    for lo in range(0, fours, 4 * length):
        # Four products at a time: each multiplication waits for the one before it.
        a, b, c, d = 1.0, 1.0, 1.0, 1.0
        for r in range(lo, min(lo + 4 * length, fours), 4):
            a *= factors[r]
            b *= factors[r + 1]
            c *= factors[r + 2]
            d *= factors[r + 3]
        total += (math.log(a) + math.log(b)) + (math.log(c) + math.log(d))
    for r in range(fours, n):
        total += math.log(factors[r])
    return total


@kernel
def weigh_columns(values, starts, chosen, table, posterior, weights, out):
    """Do as ``try_columns`` does, with row weights (n,): a logarithm for each cell."""
    n, n_classes = posterior.shape
    for lo in range(0, n, _ROWS):
        hi = min(lo + _ROWS, n)
        for k in range(chosen.shape[0]):
            j = chosen[k]
            total = 0.0
            for i in range(lo, hi):
                cell = starts[j] + values[i, j]
                mixture = 0.0
                for c in range(n_classes):
                    mixture += posterior[i, c] * table[cell, c]
                total += weights[i] * math.log(mixture)
            out[j] += total
