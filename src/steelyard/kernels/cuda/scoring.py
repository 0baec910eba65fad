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
def logistic(words, n, columns, sizes, places, table, base, scale, out):
    """Probabilities of two classes: table (cells,) of groups of columns, out (n, 2)."""
    tab = cuda.shared.array(0, float64)
    for p in range(cuda.threadIdx.x, table.size, cuda.blockDim.x):
        tab[p] = table[p]
    cuda.syncthreads()
    m, n_groups = np.uint64(words.size // sizes.size), np.uint64(places.size - 1)
    for i in range(cuda.grid(1), m, cuda.gridsize(1)):
        f0, f1, f2, f3 = base, base, base, base
        at = np.uint64(i)
        for g in range(n_groups):
            c0, c1, c2, c3 = np.uint32(0), np.uint32(0), np.uint32(0), np.uint32(0)
            first, end = np.uint64(columns[g]), np.uint64(columns[g + np.uint64(1)])
            for j in range(first, end):
                size, w = sizes[j], words[at]
                at += m
                c0 = np.uint32(c0 * size + byte(w, 0))
                c1 = np.uint32(c1 * size + byte(w, 1))
                c2 = np.uint32(c2 * size + byte(w, 2))
                c3 = np.uint32(c3 * size + byte(w, 3))
            place = places[g]
            f0 += tab[np.uint32(place + c0)]
            f1 += tab[np.uint32(place + c1)]
            f2 += tab[np.uint32(place + c2)]
            f3 += tab[np.uint32(place + c3)]
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
