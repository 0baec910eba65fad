"""Search for attributes and their weights: scores of candidates.

Forward selection, what every candidate attribute would do to the likelihood: ``values
(n, b)`` unsigned codes in either memory order, ``starts (b,)`` uint64 first rows of the
columns in ``table (V, K)`` of probabilities (not logarithms; 1 where a cell is
missing), ``posterior (n, K)`` probabilities of the classes so far.

Rows that the counts leave out, one attribute at a time: ``codes (n,)`` of one
attribute, ``group (n,)`` which tables a row reads, ``table (G, V, K)``
log-probabilities, ``true_class (G, V, K)`` those of a row's true class, ``y (n,)``
classes, ``u (n,)`` row weights, ``base (n, K)`` log priors, ``scores (n, K)``,
``terms (n, K)`` what one attribute adds to the scores.

Many weight vectors at once: ``columns (d, r)`` codes of a few rows, ``starts (d,)``
int64, ``differences (K - 1, G, V)`` log-probabilities less those of the first class,
``odds (K - 1, r, P)`` their weighted sums for P weight vectors, ``base (r, K)`` log
priors, which also decide ties.
"""

from __future__ import annotations

import math

import numpy as np

from steelyard.kernels.compiling import kernel
from steelyard.kernels.scoring import _exp

# Rows whose posteriors stay in the nearest cache while all candidates read them.
_ROWS = 512
# A product of a few dozen probabilities costs one logarithm; more would gain nothing.
# A cell takes 2 ns this way, and 7 ns with a logarithm each (two classes).
_MAX_FACTORS = 64
# Logarithm of the smallest product that is safely above the smallest float64.
_MIN_LOG_PRODUCT = -690.0

_BUFFER_ROWS = 256


@kernel()
def log_total(scores, weights):
    """Turn scores (n, K) into posteriors in place; return the sum of their norms.

    The norm of a row is the logarithm of the sum of its exponentials. weights (n,) or
    empty for ones.
    """
    n, n_classes = scores.shape
    unweighted = weights.size == 0
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
        total += (1.0 if unweighted else weights[i]) * (top + math.log(norm))
    return total


@kernel()
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


@kernel()
def try_columns(values, starts, sizes, chosen, table, posterior, weights, out):
    """Add to out (b,) the log-likelihood of the rows' cells in each chosen column.

    It is the sum over rows of ``log(sum_c posterior[i, c] * table[cell, c])``: what the
    norms of the rows grow by when the column joins. chosen (m,) positions of columns,
    sizes (b,) uint64 their numbers of table rows, weights (n,) or empty for ones: with
    weights there is a logarithm for each cell.
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
            if weights.size == 0:
                out[j] += _sum_of_logs(mixture, rows, lengths[k])
            else:
                weighed = 0.0
                for r in range(rows):
                    weighed += weights[lo + r] * math.log(mixture[r])
                out[j] += weighed


@kernel()
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


@kernel()
def held_out_terms(codes, start, group, table, true_class, y, terms):
    """Look up an attribute's terms; only the true class has lost the row's count."""
    n, n_classes = terms.shape
    for i in range(n):
        row = start + np.int64(codes[i])
        g = group[i]
        for c in range(n_classes):
            terms[i, c] = table[g, row, c]
        terms[i, y[i]] = true_class[g, row, y[i]]


@kernel()
def add_and_judge(terms, scores, base, y, u, losses):
    """Add an attribute; add squared and 0-1 errors of all rows to losses (2,).

    The squared error is that of the true class, (1 - P)^2.
    """
    n, n_classes = scores.shape
    squared, wrong = 0.0, 0.0
    for i in range(n):
        s, t = scores[i], terms[i]
        for c in range(n_classes):
            s[c] += t[c]
        best = 0
        for c in range(1, n_classes):
            if s[c] > s[best] or (s[c] == s[best] and base[i, c] > base[i, best]):
                best = c
        total, true = 1.0, 1.0
        for c in range(n_classes):
            if c != best:
                e = _exp(s[c] - s[best])
                total += e
                if c == y[i]:
                    true = e
        error = (total - true) / total
        squared += u[i] * error * error
        if best != y[i]:
            wrong += u[i]
    losses[0] += squared
    losses[1] += wrong


@kernel()
def add_and_judge_two(terms, scores, base, y, u, losses):
    """Do as ``add_and_judge`` for two classes, in loops that are vectorised."""
    n = scores.shape[0]
    margin, small = np.empty(_BUFFER_ROWS), np.empty(_BUFFER_ROWS)
    squared, wrong = 0.0, 0.0
    for lo in range(0, n, _BUFFER_ROWS):
        rows = min(_BUFFER_ROWS, n - lo)
        for r in range(rows):
            i = lo + r
            scores[i, 0] += terms[i, 0]
            scores[i, 1] += terms[i, 1]
            odds = scores[i, 1] - scores[i, 0]
            margin[r] = odds if y[i] == 1 else -odds
        for r in range(rows):
            small[r] = _exp(-abs(margin[r]))
        for r in range(rows):
            i = lo + r
            error = (small[r] if margin[r] > 0.0 else 1.0) / (1.0 + small[r])
            squared += u[i] * error * error
            lost = margin[r] < 0.0
            if margin[r] == 0.0:
                lost = (base[i, 1] > base[i, 0]) != (y[i] == 1)
            wrong += u[i] if lost else 0.0
    losses[0] += squared
    losses[1] += wrong


@kernel()
def weight_right(terms, scores, base, y, u):
    """Weight of the rows that are classified rightly once an attribute is added."""
    n, n_classes = scores.shape
    right = 0.0
    if n_classes == 2:
        # Without branches, which the processor cannot foresee.
        for i in range(n):
            first, second = scores[i, 0] + terms[i, 0], scores[i, 1] + terms[i, 1]
            tie = (first == second) & (base[i, 1] > base[i, 0])
            right += u[i] * (((second > first) | tie) == (y[i] == 1))
        return right
    for i in range(n):
        s, t = scores[i], terms[i]
        best, top = 0, s[0] + t[0]
        for c in range(1, n_classes):
            now = s[c] + t[c]
            if now > top or (now == top and base[i, c] > base[i, best]):
                best, top = c, now
        if best == y[i]:
            right += u[i]
    return right


@kernel()
def look_up(columns, starts, group, differences, out):
    """Fill the difference of every class, attribute and row: out (K - 1, d, r)."""
    n_others, n_groups, _ = differences.shape
    d, r = columns.shape
    for c in range(n_others):
        for j in range(d):
            codes, filled, start = columns[j], out[c, j], starts[j]
            if n_groups == 1:
                table = differences[c, 0, start:]
                for i in range(r):
                    filled[i] = table[codes[i]]
            else:
                for i in range(r):
                    filled[i] = differences[c, group[i], start + codes[i]]


@kernel()
def right_by_vector(odds, base, y, u, right):
    """Add the weight of the rows that each weight vector classifies rightly (P,)."""
    n_others, r, n_vectors = odds.shape
    for i in range(r):
        for p in range(n_vectors):
            best, top = 0, 0.0
            for c in range(n_others):
                now = odds[c, i, p] + (base[i, c + 1] - base[i, 0])
                if now > top or (now == top and base[i, c + 1] > base[i, best]):
                    best, top = c + 1, now
            if best == y[i]:
                right[p] += u[i]


@kernel()
def right_by_vector_two(odds, base, y, u, right):
    """Do the same for two classes; vectors innermost, to be vectorised."""
    _, r, n_vectors = odds.shape
    for i in range(r):
        shift = base[i, 1] - base[i, 0]
        second, weight = y[i] == 1, u[i]
        # A tie goes to the class with the larger prior.
        ties_count = (shift > 0.0) == second
        row = odds[0, i]
        for p in range(n_vectors):
            margin = row[p] + shift if second else -(row[p] + shift)
            is_right = margin >= 0.0 if ties_count else margin > 0.0
            right[p] += weight if is_right else 0.0
