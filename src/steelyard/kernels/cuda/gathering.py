"""Gather on the device: tables into posterior probabilities of rows.

Shapes as in ``kernels.cuda.scattering`` and ``kernels.cuda.passes``.
"""

from __future__ import annotations

import math

import numpy as np
from numba import cuda, float64

from steelyard.kernels.cuda.fixed_point import byte
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
def _cell(a, b, r, form):
    """Return the cell of byte r of the words of two columns, uint32."""
    size_a, size_b, factor, place = form
    v = min(byte(a, r), np.uint32(size_a - 1))
    w = min(byte(b, r), np.uint32(size_b - 1))
    return np.uint32(place + v * size_b + w * factor)


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
            f0 += tab[_cell(a, b, 0, form)] + tab[_cell(c, d, 0, other)]
            f1 += tab[_cell(a, b, 1, form)] + tab[_cell(c, d, 1, other)]
            f2 += tab[_cell(a, b, 2, form)] + tab[_cell(c, d, 2, other)]
            f3 += tab[_cell(a, b, 3, form)] + tab[_cell(c, d, 3, other)]
        for g in range(even, n_pairs):
            a, b = words[first[g] + at], words[second[g] + at]
            form = size_a[g], size_b[g], factor[g], places[g]
            f0 += tab[_cell(a, b, 0, form)]
            f1 += tab[_cell(a, b, 1, form)]
            f2 += tab[_cell(a, b, 2, form)]
            f3 += tab[_cell(a, b, 3, form)]
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


@kernel_of(registers=64)
def gather_pairs(
    words,
    first,
    second,
    size_a,
    size_b,
    factor,
    places,
    table,
    copies,
    base,
    word,
    n_words,
    scores,
):
    """Scores (C, r) of the rows of some words; table (C, cells) of pairs of columns.

    A block has the table of one class, in several copies; see ``cuda.fitting``.
    """
    tab, width = cuda.shared.array(0, float64), base.size
    c, mine = cuda.blockIdx.x % width, np.uint32(cuda.threadIdx.x % copies)
    own, out = table[c], scores[c]
    for p in range(cuda.threadIdx.x, own.size * copies, cuda.blockDim.x):
        tab[p] = own[p // copies]
    cuda.syncthreads()
    start = (cuda.blockIdx.x // width) * cuda.blockDim.x + cuda.threadIdx.x
    for k in range(start, n_words, (cuda.gridDim.x // width) * cuda.blockDim.x):
        f0 = base[c]
        f1, f2, f3 = f0, f0, f0
        at = np.uint64(word + k)
        for g in range(np.uint64(first.size)):
            a, b = words[first[g] + at], words[second[g] + at]
            form = size_a[g], size_b[g], factor[g], places[g]
            f0 += tab[np.uint32(_cell(a, b, 0, form) * copies + mine)]
            f1 += tab[np.uint32(_cell(a, b, 1, form) * copies + mine)]
            f2 += tab[np.uint32(_cell(a, b, 2, form) * copies + mine)]
            f3 += tab[np.uint32(_cell(a, b, 3, form) * copies + mine)]
        r = np.uint64(4 * k)
        out[r] = f0
        out[r + np.uint64(1)] = f1
        out[r + np.uint64(2)] = f2
        out[r + np.uint64(3)] = f3
