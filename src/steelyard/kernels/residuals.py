"""What a model leaves over in the cells of two columns."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _add_one(first, second, n_second, residual, curvature, start, stop, table):
    """Add up one residual and curvature per row: table (cells, 2) +=."""
    n_second = np.uint64(n_second)
    for i in range(start, stop):
        cell = np.uint64(first[i]) * n_second + np.uint64(second[i])
        table[cell, 0] += residual[i, 0]
        table[cell, 1] += curvature[i, 0]


@njit(cache=True, nogil=True)
def score_pairs(first, others, n_first, n_others, residual, curvature, ends, scores):
    """Score one column with each of some others, by sums over the cells of both.

    first (n,), others (p, n) coarse codes, 0 for unknown; n_first and n_others (p,) how
    many there are; residual and curvature (n, C); ends (f,) where each fold of the rows
    ends; scores (p, f + 1), the last for all rows, the others for all but one fold.

    The gain of a step against a ridge of one, less what noise would gain:
    sum G^2 / (H + 1) - sum H / (H + 1) over cells and classes.
    """
    n_folds = ends.shape[0]
    width = residual.shape[1]
    most = n_others.max() if n_others.size else 1
    tables = np.empty((n_folds, n_first * most, 2 * width))
    for k in range(others.shape[0]):
        n_second = n_others[k]
        second = others[k]
        n_cells = n_first * n_second
        tables[:, :n_cells] = 0.0
        start = 0
        for f in range(n_folds):
            table = tables[f]
            if width == 1:
                _add_one(
                    first, second, n_second, residual, curvature, start, ends[f], table
                )
            else:
                for i in range(start, ends[f]):
                    cell = table[first[i] * n_second + second[i]]
                    for c in range(width):
                        cell[c] += residual[i, c]
                        cell[width + c] += curvature[i, c]
            start = ends[f]
        for f in range(n_folds + 1):
            scores[k, f] = 0.0
        for a in range(1, n_first):
            for b in range(1, n_second):
                cell = a * n_second + b
                for c in range(width):
                    g = 0.0
                    h = 0.0
                    for f in range(n_folds):
                        g += tables[f, cell, c]
                        h += tables[f, cell, width + c]
                    scores[k, n_folds] += (g * g - h) / (h + 1.0)
                    for f in range(n_folds):
                        rest = g - tables[f, cell, c]
                        bend = h - tables[f, cell, width + c]
                        scores[k, f] += (rest * rest - bend) / (bend + 1.0)
