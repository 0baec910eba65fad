"""How often codes occur together, by weight: the Hessian of a table of effects."""

from __future__ import annotations

from numba import njit


@njit(cache=True, nogil=True)
def couple(rows, weights, out):
    """Add up weights of pairs of codes: out (V, V) lower triangle +=.

    rows (n, b) table rows, increasing within a row; weights (n,).
    """
    n, b = rows.shape
    for i in range(n):
        u = weights[i]
        for j in range(b):
            line = out[rows[i, j]]
            for k in range(j + 1):
                line[rows[i, k]] += u
