"""Scores of rows that the counts leave out, one attribute at a time.

Shapes: ``codes (n,)`` of one attribute, ``group (n,)`` which tables a row reads,
``table (G, V, K)`` log-probabilities, ``own_class (G, V, K)`` those of a row's own
class, ``y (n,)`` classes, ``u (n,)`` row weights, ``base (n, K)`` log priors,
``scores (n, K)``, ``terms (n, K)`` what one attribute adds to the scores.
"""

from __future__ import annotations

import numpy as np

from steelyard.kernels.compiling import kernel
from steelyard.kernels.scoring import _exp

_BUFFER_ROWS = 256


@kernel
def held_out_terms(codes, start, group, table, own_class, y, terms):
    """Look up what an attribute adds; only the own class has lost the row's count."""
    n, n_classes = terms.shape
    for i in range(n):
        row = start + np.int64(codes[i])
        g = group[i]
        for c in range(n_classes):
            terms[i, c] = table[g, row, c]
        terms[i, y[i]] = own_class[g, row, y[i]]


@kernel
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


@kernel
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


@kernel
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
