"""Cells become codes by tables, and codes of two columns joint codes."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def look_up(indices, by_index, out):
    """Write out[i] = by_index[indices[i] + 1]: indices (n,) from -1 on.

    NumPy makes indices 64 bits wide first, which takes five times as long.
    """
    size = np.uint64(by_index.size)
    for i in range(out.size):
        index = np.uint64(indices[i] + 1)
        if index >= size:
            raise IndexError("An index is outside of its table.")
        out[i] = by_index[index]


@njit(cache=True, nogil=True)
def tally(indices, counts):
    """Add ones: counts[indices[i] + 1] += 1, for indices (n,) from -1 on."""
    size = np.uint64(counts.size)
    for i in range(indices.size):
        index = np.uint64(indices[i] + 1)
        if index >= size:
            raise IndexError("An index is outside of its table.")
        counts[index] += 1


@njit(cache=True, nogil=True)
def join(a, b, parts_a, parts_b, out):
    """Write what two codes of every row add up to: out[i] = parts_a[a] + parts_b[b].

    a, b (n,) unsigned codes, parts by code, out (n,) unsigned.
    """
    for i in range(out.shape[0]):
        out[i] = parts_a[a[i]] + parts_b[b[i]]
