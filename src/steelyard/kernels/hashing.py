"""Hashes of rows, and how often each occurs, about."""

from __future__ import annotations

import numpy as np

from steelyard.kernels.compiling import kernel

# Rows between two columns: the hashes of so many stay in the first-level cache.
_ROWS = 1024


@kernel
def add_hashes(values, starts, table, keys):
    """Add the hash of every code to that of its row: keys (n,) uint64 +=.

    values (n, b) unsigned codes, starts (b,) first table row of each column, table (V,)
    uint64
    """
    n, b = values.shape
    for lo in range(0, n, _ROWS):
        hi = min(lo + _ROWS, n)
        for j in range(b):
            start = starts[j]
            for i in range(lo, hi):
                keys[i] += table[start + values[i, j]]


@kernel
def add_to_sketch(keys, sketch):
    """Count keys (n,) uint64 in two places each: sketch (2, 2^b) uint32 +=."""
    mask = np.uint64(sketch.shape[1] - 1)
    for i in range(keys.size):
        sketch[0, keys[i] & mask] += np.uint32(1)
        sketch[1, (keys[i] >> np.uint64(32)) & mask] += np.uint32(1)


@kernel
def most_in_sketch(keys, sketch):
    """Return how often each key was counted at most: (n,) float64."""
    mask = np.uint64(sketch.shape[1] - 1)
    out = np.empty(keys.size)
    for i in range(keys.size):
        one = sketch[0, keys[i] & mask]
        other = sketch[1, (keys[i] >> np.uint64(32)) & mask]
        out[i] = min(one, other)
    return out
