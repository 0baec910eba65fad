"""Scatter on the device: rows into tables of counts; and codes into joint codes.

Shapes: ``words (b * m,)`` uint32, four codes of a column to a word, column after column,
``labels (m,)`` uint32 likewise, ``n`` rows in all. Neighbouring columns are counted together, as many as have a
joint table that fits: ``columns (G + 1,)`` says where each such group begins, ``sizes
(b,)`` how many codes a column has, ``places (G,)`` where the group's table begins in
``counts``, which is by class first. Groups come in ``parts``, (H + 1,), each small enough
for shared memory; the second dimension of the grid runs over them.
"""

from __future__ import annotations

import numpy as np
from numba import cuda, uint32

from steelyard.kernels.cuda.fixed import add_fixed, byte, to_units, whole
from steelyard.kernels.cuda.launching import kernel_of


@cuda.jit
def transpose(values, out, first):
    """Put rows of codes (r, b), from row ``first`` on, by column: out (b, >= n)."""
    n, b = values.shape
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        for j in range(b):
            out[j, first + i] = values[i, j]


@cuda.jit
def extremes(values, lows, highs):
    """Smallest and largest whole number of each column of values (n, d), int64."""
    j, n = cuda.blockIdx.y, values.shape[0]
    start = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    low = np.int64(values[0, j])
    high = low
    for i in range(start, n, cuda.gridDim.x * cuda.blockDim.x):
        value = np.int64(values[i, j])
        low = min(low, value)
        high = max(high, value)
    cuda.atomic.min(lows, j, low)
    cuda.atomic.max(highs, j, high)


@cuda.jit
def narrow(values, lows, out):
    """Put whole numbers (n, d), less the smallest of each column, by column: (d, n)."""
    n, d = values.shape
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        for j in range(d):
            out[j, i] = np.uint8((np.int64(values[i, j]) - lows[j]) & 255)


@cuda.jit
def take(columns, rows, out):
    """Pick rows: columns (b, >= n), rows (s,) -> out (s, b)."""
    for i in range(cuda.grid(1), rows.size, cuda.gridsize(1)):
        for j in range(columns.shape[0]):
            out[i, j] = columns[j, rows[i]]


@cuda.jit
def pack(columns, parts, members, groups, out):
    """Join small codes by column: out[g] = sum of parts[k, columns[j]] over members.

    columns (b, >= n) uint8, parts (k, 256) uint8, members (k,) the column of each,
    groups (g + 1,) where the members of each group begin, out (g, >= n) uint8 +=.
    """
    n = out.shape[1]
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        for g in range(out.shape[0]):
            joint = out[g, i]
            for k in range(groups[g], groups[g + 1]):
                joint += parts[k, columns[members[k], i]]
            out[g, i] = joint


@kernel_of(registers=64)
def count(words, labels, n, columns, sizes, places, parts, counts):
    """Count rows by class and codes, eight to a word: counts (cells,) int64 +=.

    words (b * m,) and labels (m,) are uint64.
    """
    hist = cuda.shared.array(0, uint32)
    part = cuda.blockIdx.y
    lo, hi = np.uint64(parts[part]), np.uint64(parts[part + 1])
    origin = np.uint32(places[lo])
    cells = np.uint32(places[hi] - origin)
    t, step = cuda.threadIdx.x, cuda.blockDim.x
    for p in range(t, cells, step):
        hist[p] = 0
    cuda.syncthreads()
    one, full, m = np.uint32(1), n // 8, np.uint64(labels.size)
    start = cuda.blockIdx.x * step + t
    for i in range(start, m, cuda.gridDim.x * step):
        y = labels[np.uint64(i)]
        at = np.uint64(columns[lo]) * m + np.uint64(i)
        for g in range(lo, hi):
            place = np.uint32(places[g] - origin)
            c0, c1, c2, c3 = byte(y, 0), byte(y, 1), byte(y, 2), byte(y, 3)
            c4, c5, c6, c7 = byte(y, 4), byte(y, 5), byte(y, 6), byte(y, 7)
            first, end = np.uint64(columns[g]), np.uint64(columns[g + np.uint64(1)])
            for j in range(first, end):
                size, w = sizes[j], words[at]
                at += m
                c0 = np.uint32(c0 * size + byte(w, 0))
                c1 = np.uint32(c1 * size + byte(w, 1))
                c2 = np.uint32(c2 * size + byte(w, 2))
                c3 = np.uint32(c3 * size + byte(w, 3))
                c4 = np.uint32(c4 * size + byte(w, 4))
                c5 = np.uint32(c5 * size + byte(w, 5))
                c6 = np.uint32(c6 * size + byte(w, 6))
                c7 = np.uint32(c7 * size + byte(w, 7))
            left = n - 8 * i if i >= full else 8
            if left > 0:
                cuda.atomic.add(hist, np.uint32(place + c0), one)
            if left > 1:
                cuda.atomic.add(hist, np.uint32(place + c1), one)
            if left > 2:
                cuda.atomic.add(hist, np.uint32(place + c2), one)
            if left > 3:
                cuda.atomic.add(hist, np.uint32(place + c3), one)
            if left > 4:
                cuda.atomic.add(hist, np.uint32(place + c4), one)
            if left > 5:
                cuda.atomic.add(hist, np.uint32(place + c5), one)
            if left > 6:
                cuda.atomic.add(hist, np.uint32(place + c6), one)
            if left > 7:
                cuda.atomic.add(hist, np.uint32(place + c7), one)
    cuda.syncthreads()
    for p in range(t, cells, step):
        if hist[p] != 0:
            cuda.atomic.add(counts, origin + p, np.int64(hist[p]))


@cuda.jit
def count_weights(
    words, labels, weights, n, scale, columns, sizes, places, parts, counts
):
    """Add row weights, in units of 1 / scale, by class and codes: counts (cells,) +=."""
    halves = cuda.shared.array(0, uint32)
    part = cuda.blockIdx.y
    lo, hi = parts[part], parts[part + 1]
    origin = places[lo]
    cells = places[hi] - origin
    low, high = halves[:cells], halves[cells : 2 * cells]
    t, step = cuda.threadIdx.x, cuda.blockDim.x
    for p in range(t, 2 * cells, step):
        halves[p] = 0
    cuda.syncthreads()
    start = cuda.blockIdx.x * step + t
    for i in range(start, n, cuda.gridDim.x * step):
        word, shift = i // 4, 8 * (i % 4)
        amount = to_units(weights[i] * scale)
        for g in range(lo, hi):
            c = np.int32((labels[word] >> shift) & 255)
            for j in range(columns[g], columns[g + 1]):
                code = np.int32((words[j * labels.size + word] >> shift) & 255)
                c = np.int32(c * sizes[j] + code)
            add_fixed(low, high, np.int32(places[g] - origin) + c, amount)
    cuda.syncthreads()
    for p in range(t, cells, step):
        cuda.atomic.add(counts, origin + p, whole(low, high, p))


@cuda.jit
def count_wide(codes, labels, weights, n, scale, starts, counts):
    """Add ones, or row weights, by wide codes: codes (w, >= n), counts (K, V) +=.

    Without weights (an empty array) a row counts ``scale``.
    """
    n_codes = counts.shape[1]
    flat = counts.reshape(counts.size)
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        c = np.int64((labels[i // 4] >> (8 * (i % 4))) & 255)
        amount = np.int64(scale)
        if weights.size:
            amount = to_units(weights[i] * scale)
        for j in range(codes.shape[0]):
            at = c * n_codes + starts[j] + np.int64(codes[j, i])
            cuda.atomic.add(flat, at, amount)
