"""Counts of pairs of columns: joint frequencies of two codes, by class or not."""

from __future__ import annotations

from numba import njit

__all__ = ["count_pair", "count_pair_by_class"]


@njit(cache=True, nogil=True)
def count_pair(first, second, weights, table):
    """Add rows to the joint table of two columns of codes: table (a, b) +=.

    first and second (n,) unsigned, weights (n,) or empty for ones.
    """
    every = weights.size == 0
    for i in range(first.shape[0]):
        table[first[i], second[i]] += 1.0 if every else weights[i]


@njit(cache=True, nogil=True)
def count_pair_by_class(first, second, y, weights, table):
    """Add rows to the joint table of two columns within classes: table (a, b, K) +=."""
    every = weights.size == 0
    for i in range(first.shape[0]):
        table[first[i], second[i], y[i]] += 1.0 if every else weights[i]
