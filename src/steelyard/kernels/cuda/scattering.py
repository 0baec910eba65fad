"""Scatter on the device: rows into tables of counts; and codes into joint codes.

Shapes: ``words (b * m,)`` uint32, four codes of a column to a word, column after
column, ``labels (m,)`` uint32 likewise, ``n`` rows in all. Columns are counted two by
two, in a joint table: ``first`` and ``second`` (G,) uint64 are the first words of both,
``size_a`` and ``size_b`` how many codes they have, ``factor`` is 0 if a column is
alone, ``places (G + 1,)`` are the first cells of the table of each pair in ``counts``,
which is by class first. Pairs come in ``parts (H + 1,)``, each small enough
for shared memory; the second dimension of the grid runs over them.
"""

from __future__ import annotations

import numpy as np
from numba import cuda, uint32

from steelyard.kernels.cuda.launching import add_fixed, byte, kernel_of, to_units, whole


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


@cuda.jit(device=True, inline="always")
def _add(hist, place, y, a, b, size_a, size_b, factor, left):
    """Count the rows of a word, ``left`` of them and at most four."""
    one = np.uint32(1)
    c0 = (byte(y, 0) * size_a + byte(a, 0)) * size_b + byte(b, 0) * factor
    c1 = (byte(y, 1) * size_a + byte(a, 1)) * size_b + byte(b, 1) * factor
    c2 = (byte(y, 2) * size_a + byte(a, 2)) * size_b + byte(b, 2) * factor
    c3 = (byte(y, 3) * size_a + byte(a, 3)) * size_b + byte(b, 3) * factor
    if left > 3:
        cuda.atomic.add(hist, np.uint32(place + c0), one)
        cuda.atomic.add(hist, np.uint32(place + c1), one)
        cuda.atomic.add(hist, np.uint32(place + c2), one)
        cuda.atomic.add(hist, np.uint32(place + c3), one)
    else:
        if left > 0:
            cuda.atomic.add(hist, np.uint32(place + c0), one)
        if left > 1:
            cuda.atomic.add(hist, np.uint32(place + c1), one)
        if left > 2:
            cuda.atomic.add(hist, np.uint32(place + c2), one)


@kernel_of(registers=64)
def count(
    words, labels, n, first, second, size_a, size_b, factor, places, parts, counts
):
    """Count rows by class and codes: counts (cells,) int64 +=."""
    hist = cuda.shared.array(0, uint32)
    part = cuda.blockIdx.y
    lo, hi = np.uint64(parts[part]), np.uint64(parts[part + 1])
    origin = places[lo]
    cells = np.uint32(places[hi] - origin)
    t, step = cuda.threadIdx.x, cuda.blockDim.x
    for p in range(t, cells, step):
        hist[p] = 0
    cuda.syncthreads()
    start = cuda.blockIdx.x * step + t
    two = np.uint64(2)
    even = lo + (hi - lo) // two * two
    for i in range(start, labels.size, cuda.gridDim.x * step):
        at, left = np.uint64(i), n - 4 * i
        y = labels[at]
        # Two pairs at a time, so that four words are on their way.
        for g in range(lo, even, two):
            h = g + np.uint64(1)
            a, b = words[first[g] + at], words[second[g] + at]
            c, d = words[first[h] + at], words[second[h] + at]
            place = np.uint32(places[g] - origin)
            _add(hist, place, y, a, b, size_a[g], size_b[g], factor[g], left)
            place = np.uint32(places[h] - origin)
            _add(hist, place, y, c, d, size_a[h], size_b[h], factor[h], left)
        for g in range(even, hi):
            a, b = words[first[g] + at], words[second[g] + at]
            place = np.uint32(places[g] - origin)
            _add(hist, place, y, a, b, size_a[g], size_b[g], factor[g], left)
    cuda.syncthreads()
    for p in range(t, cells, step):
        if hist[p] != 0:
            cuda.atomic.add(counts, origin + p, np.int64(hist[p]))


@cuda.jit
def count_weights(
    words,
    labels,
    n,
    first,
    second,
    size_a,
    size_b,
    factor,
    places,
    parts,
    weights,
    scale,
    counts,
):
    """Add row weights, in units of 1 / scale, by class and codes: counts (cells,)."""
    halves = cuda.shared.array(0, uint32)
    part = cuda.blockIdx.y
    lo, hi = np.uint64(parts[part]), np.uint64(parts[part + 1])
    origin = places[lo]
    cells = np.uint32(places[hi] - origin)
    low, high = halves[:cells], halves[cells : 2 * cells]
    t, step = cuda.threadIdx.x, cuda.blockDim.x
    for p in range(t, 2 * cells, step):
        halves[p] = 0
    cuda.syncthreads()
    start = cuda.blockIdx.x * step + t
    for i in range(start, n, cuda.gridDim.x * step):
        at, r = np.uint64(i // 4), i % 4
        y, amount = byte(labels[at], r), to_units(weights[i] * scale)
        for g in range(lo, hi):
            a = byte(words[first[g] + at], r)
            b = byte(words[second[g] + at], r) * factor[g]
            cell = places[g] - origin + (y * size_a[g] + a) * size_b[g] + b
            add_fixed(low, high, np.uint32(cell), amount)
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
