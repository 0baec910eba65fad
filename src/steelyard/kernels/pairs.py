"""Counts of pairs of columns: joint frequencies of two codes, by class or not."""

from __future__ import annotations

from numba import njit

__all__ = ["count_all_pairs", "count_pair"]


@njit(cache=True, nogil=True)
def count_pair(first, second, weights, table):
    """Add rows to the joint table of two columns of codes: table (a, b) +=.

    first and second (n,) unsigned, weights (n,) or empty for ones.
    """
    every = weights.size == 0
    for i in range(first.shape[0]):
        table[first[i], second[i]] += 1.0 if every else weights[i]


@njit(cache=True, nogil=True)
def count_all_pairs(columns, offsets, y, weights, table):
    """Add rows to the joint table of all pairs of codes by class: table (V, V, K) +=.

    columns (d, n) codes, offsets (d,) first table row of each column; a column is also
    paired with itself.
    """
    d, n = columns.shape
    every = weights.size == 0
    for i in range(n):
        c = y[i]
        u = 1.0 if every else weights[i]
        for j in range(d):
            row = table[offsets[j] + columns[j, i]]
            for k in range(d):
                row[offsets[k] + columns[k, i], c] += u
