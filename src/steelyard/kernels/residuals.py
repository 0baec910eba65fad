"""What a model leaves over in the cells of two columns.

The residual and the curvature of a row travel as one complex number, its real and its
imaginary part: they are always added to the same cell, which takes one step so.
"""

from __future__ import annotations

import numpy as np

from steelyard.kernels.compiling import kernel

_TABLES = 4
"""How many tables are filled at a time, so that rows of equal codes wait less."""


@kernel
def _add_one_class(first, others, left, start, stop, tables):
    """Add up one number per row: tables (4, A, B, 1) += for up to four columns."""
    if others.shape[0] == _TABLES:
        for i in range(start, stop):
            a = first[i]
            z = left[i, 0]
            for g in range(_TABLES):  # a constant, so that the loop is unrolled
                tables[g, a, others[g, i], 0] += z
        return
    for g in range(others.shape[0]):
        for i in range(start, stop):
            tables[g, first[i], others[g, i], 0] += left[i, 0]


@kernel
def _add_classes(first, others, left, start, stop, tables):
    """Add up a number per row and class: tables (4, A, B, C) +=."""
    for g in range(others.shape[0]):
        for i in range(start, stop):
            cell = tables[g, first[i], others[g, i]]
            for c in range(left.shape[1]):
                cell[c] += left[i, c]


@kernel
def score_pairs(first, others, n_first, n_others, left, ends, scores):
    """Score one column with each of some others, by sums over the cells of both.

    first (n,), others (p, n) coarse codes, 0 for unknown; n_first and n_others (p,) how
    many there are; left (n, C) residuals and curvatures as complex numbers; ends (f,)
    where each fold of the rows ends; scores (p, f + 1), the last for all rows, the
    others for all but one fold.

    The gain of a step against a ridge of one, less what noise would gain:
    sum G^2 / (H + 1) - sum H / (H + 1) over cells and classes.
    """
    n_folds = ends.shape[0]
    width = left.shape[1]
    most = n_others.max() if n_others.size else 1
    tables = np.empty((n_folds, _TABLES, n_first, most, width), dtype=np.complex128)
    for low in range(0, others.shape[0], _TABLES):
        some = others[low : low + _TABLES]
        tables[:] = 0.0
        start = 0
        for f in range(n_folds):
            if width == 1:
                _add_one_class(first, some, left, start, ends[f], tables[f])
            else:
                _add_classes(first, some, left, start, ends[f], tables[f])
            start = ends[f]
        for g in range(some.shape[0]):
            _score(tables[:, g], n_others[low + g], scores[low + g])


@kernel
def _score(tables, n_second, scores):
    """Score one pair by the tables of its folds (f, A, B, C): scores (f + 1,)."""
    n_folds, n_first, _, width = tables.shape
    scores[:] = 0.0
    for a in range(1, n_first):
        for b in range(1, n_second):
            for c in range(width):
                total = 0.0j
                for f in range(n_folds):
                    total += tables[f, a, b, c]
                scores[n_folds] += _gain(total)
                for f in range(n_folds):
                    scores[f] += _gain(total - tables[f, a, b, c])


@kernel(inline="always")
def _gain(left):
    return (left.real * left.real - left.imag) / (left.imag + 1.0)
