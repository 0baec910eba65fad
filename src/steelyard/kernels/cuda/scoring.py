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


@cuda.jit(device=True, inline="always")
def _cell(tab, a, b, r, form):
    """Return what byte r of the words of two columns says."""
    size_a, size_b, factor, place = form
    v = min(byte(a, r), np.uint32(size_a - 1))
    w = min(byte(b, r), np.uint32(size_b - 1))
    return tab[np.uint32(place + v * size_b + w * factor)]


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
    n_pairs, two = np.uint64(first.size), np.uint64(2)
    even = n_pairs // two * two
    for i in range(cuda.grid(1), (n + 3) // 4, cuda.gridsize(1)):
        f0, f1, f2, f3 = base, base, base, base
        at = np.uint64(i)
        # Two pairs at a time, so that four words are on their way.
        for g in range(np.uint64(0), even, two):
            h = g + np.uint64(1)
            a, b = words[first[g] + at], words[second[g] + at]
            c, d = words[first[h] + at], words[second[h] + at]
            form = size_a[g], size_b[g], factor[g], places[g]
            other = size_a[h], size_b[h], factor[h], places[h]
            f0 += _cell(tab, a, b, 0, form) + _cell(tab, c, d, 0, other)
            f1 += _cell(tab, a, b, 1, form) + _cell(tab, c, d, 1, other)
            f2 += _cell(tab, a, b, 2, form) + _cell(tab, c, d, 2, other)
            f3 += _cell(tab, a, b, 3, form) + _cell(tab, c, d, 3, other)
        for g in range(even, n_pairs):
            a, b = words[first[g] + at], words[second[g] + at]
            form = size_a[g], size_b[g], factor[g], places[g]
            f0 += _cell(tab, a, b, 0, form)
            f1 += _cell(tab, a, b, 1, form)
            f2 += _cell(tab, a, b, 2, form)
            f3 += _cell(tab, a, b, 3, form)
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
