"""Gather on the device: tables into posterior probabilities of rows.

Shapes as in ``kernels.cuda.counting`` and ``kernels.cuda.fitting``.
"""

from __future__ import annotations

import math

import numpy as np
from numba import cuda, float64

from steelyard.kernels.cuda.fixed import byte
from steelyard.kernels.cuda.launching import kernel_of


@cuda.jit(device=True, inline="always")
def _put(f, row, n, out):
    """Write the two probabilities of one row, of log-odds f."""
    if row < n:
        small = math.exp(-abs(f))
        large = 1.0 / (1.0 + small)
        small *= large
        positive = f > 0.0
        out[row, 0] = small if positive else large
        out[row, 1] = large if positive else small


@kernel_of(registers=64)
def logistic(
    words, n, first, second, size_a, size_b, factor, places, table, base, scale, out
):
    """Probabilities of two classes: table (cells,) of pairs of columns, out (n, 2).

    Stored values from the last known one on count as that.
    """
    tab = cuda.shared.array(0, float64)
    for p in range(cuda.threadIdx.x, table.size, cuda.blockDim.x):
        tab[p] = table[p]
    cuda.syncthreads()
    n_pairs = np.uint64(first.size)
    for i in range(cuda.grid(1), (n + 3) // 4, cuda.gridsize(1)):
        f0, f1, f2, f3 = base, base, base, base
        at = np.uint64(i)
        for g in range(n_pairs):
            a, b = words[first[g] + at], words[second[g] + at]
            size, by, place = size_b[g], factor[g], places[g]
            top_a, top_b = np.uint32(size_a[g] - 1), np.uint32(size - 1)
            v, w = min(byte(a, 0), top_a), min(byte(b, 0), top_b)
            f0 += tab[np.uint32(place + v * size + w * by)]
            v, w = min(byte(a, 1), top_a), min(byte(b, 1), top_b)
            f1 += tab[np.uint32(place + v * size + w * by)]
            v, w = min(byte(a, 2), top_a), min(byte(b, 2), top_b)
            f2 += tab[np.uint32(place + v * size + w * by)]
            v, w = min(byte(a, 3), top_a), min(byte(b, 3), top_b)
            f3 += tab[np.uint32(place + v * size + w * by)]
        _put(scale * f0, 4 * i, n, out)
        _put(scale * f1, 4 * i + 1, n, out)
        _put(scale * f2, 4 * i + 2, n, out)
        _put(scale * f3, 4 * i + 3, n, out)


@cuda.jit
def softmax(scores, scale, row, n, out):
    """Turn scores (C, r) of rows from ``row`` on into probabilities: out (n, C)."""
    width = scores.shape[0]
    for i in range(cuda.grid(1), scores.shape[1], cuda.gridsize(1)):
        if row + i < n:
            top = scores[0, i]
            for c in range(1, width):
                top = max(top, scores[c, i])
            total = 0.0
            for c in range(width):
                p = math.exp(scale * (scores[c, i] - top))
                scores[c, i] = p
                total += p
            for c in range(width):
                out[row + i, c] = scores[c, i] / total
