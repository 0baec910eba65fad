"""Passes on the device: a loss and its soft counts.

Two classes whose table fits shared memory take one kernel, ``evaluate_two``. All else
is three of them over some rows at a time: ``gather`` the scores, ``score_losses`` or
``mixture_losses`` turn them into gradients, ``scatter`` adds these to the soft counts.

Shapes: ``words (g * m,)`` uint32, four joint codes of a column to a word, column after
column, ``labels (m,)`` uint32 likewise, ``weights (n,)`` or empty for ones, ``starts
(g,)`` uint32 first table row of a column. ``modes (g,)`` uint32 is the code that most
rows of a column have, or one that no row has: it is left out of the soft counts, since
it is the rest of their total, and additions of many threads to one number would wait
for each other. Soft counts are whole numbers, in units of 1 / scale. ``scores (C, r)``
are those of the rows of some words. Blocks that gather have several ``copies`` of a
table in shared memory, side by side: neighbouring threads use different ones, in
different banks. Positions are unsigned: others may count from the end, which costs a
comparison each.
"""

from __future__ import annotations

import numpy as np
from numba import cuda, float64, uint32

from steelyard.kernels.cuda.launching import (
    add_fixed,
    add_four,
    byte,
    kernel_of,
    mixture_loss,
    odds_loss,
    scores_loss,
    to_units,
    whole,
)

# Cells besides those of soft counts, one for each lane, which take what is left out.
SPARE = 32


@cuda.jit(device=True, inline="always")
def _row_loss(f, truth, weights, row, n, kind, a, scale):
    """Loss, slope, and slope in units, of one row; nothing from row n on."""
    if row >= n:
        return 0.0, 0.0, np.int64(0)
    value, slope = odds_loss(f, truth == 1, kind, a)
    if weights.size:
        value *= weights[row]
        slope *= weights[row]
    return value, abs(slope), to_units(slope * scale)


@cuda.jit(device=True)
def _block_sums(shared, total, other, is_largest, sums):
    """Add up what the threads of a block have, in their order: sums (blocks, 2)."""
    t, half = cuda.threadIdx.x, cuda.blockDim.x
    n = half
    cuda.syncthreads()
    shared[t] = total
    shared[n + t] = other
    cuda.syncthreads()
    while half > 1:
        half //= 2
        if t < half:
            shared[t] += shared[t + half]
            if is_largest:
                shared[n + t] = max(shared[n + t], shared[n + t + half])
            else:
                shared[n + t] += shared[n + t + half]
        cuda.syncthreads()
    if t == 0:
        sums[cuda.blockIdx.x, 0] = shared[0]
        sums[cuda.blockIdx.x, 1] = shared[n]


@kernel_of(registers=48)
def evaluate_two(
    words, starts, modes, table, labels, weights, n, base, kind, a, scale, sums, counts
):
    """Loss of two classes: table (P,), counts (P + 1,) int64 +=, the total last.

    sums (blocks, 2): the loss, and the largest slope. A scale of 0 leaves out the soft
    counts.
    """
    size, g = np.uint32(table.size), np.uint64(starts.size)
    m, cells = np.uint64(labels.size), np.uint32(size + 1 + SPARE)
    spare = np.uint32(size + 1 + cuda.threadIdx.x % SPARE)
    tab = cuda.shared.array(0, float64)
    halves = cuda.shared.array(0, uint32)
    low = halves[2 * size : 2 * size + cells]
    high = halves[2 * size + cells : 2 * size + 2 * cells]
    first = halves[2 * size + 2 * cells : 2 * size + 2 * cells + g]
    mode = halves[2 * size + 2 * cells + g : 2 * size + 2 * cells + 2 * g]
    t, step = cuda.threadIdx.x, cuda.blockDim.x
    for p in range(t, size, step):
        tab[p] = table[p]
    for p in range(t, cells, step):
        low[p] = 0
        high[p] = 0
    for j in range(t, g, step):
        first[j] = starts[j]
        mode[j] = starts[j] + modes[j]
    cuda.syncthreads()
    total, top, slopes = 0.0, 0.0, np.int64(0)
    for i in range(cuda.grid(1), m, cuda.gridsize(1)):
        f0, f1, f2, f3 = base, base, base, base
        at = np.uint64(i)
        for j in range(g):
            w, s = words[at], first[j]
            at += m
            f0 += tab[np.uint32(s + byte(w, 0))]
            f1 += tab[np.uint32(s + byte(w, 1))]
            f2 += tab[np.uint32(s + byte(w, 2))]
            f3 += tab[np.uint32(s + byte(w, 3))]
        y, r = labels[np.uint64(i)], 4 * i
        v0, d0, q0 = _row_loss(f0, byte(y, 0), weights, r, n, kind, a, scale)
        v1, d1, q1 = _row_loss(f1, byte(y, 1), weights, r + 1, n, kind, a, scale)
        v2, d2, q2 = _row_loss(f2, byte(y, 2), weights, r + 2, n, kind, a, scale)
        v3, d3, q3 = _row_loss(f3, byte(y, 3), weights, r + 3, n, kind, a, scale)
        total += (v0 + v1) + (v2 + v3)
        if scale == 0.0:
            top = max(top, max(max(d0, d1), max(d2, d3)))
        else:
            slopes += (q0 + q1) + (q2 + q3)
            at = np.uint64(i)
            for j in range(g):
                w, s, skip = words[at], first[j], mode[j]
                at += m
                p0 = np.uint32(s + byte(w, 0))
                p1 = np.uint32(s + byte(w, 1))
                p2 = np.uint32(s + byte(w, 2))
                p3 = np.uint32(s + byte(w, 3))
                p0 = spare if p0 == skip else p0
                p1 = spare if p1 == skip else p1
                p2 = spare if p2 == skip else p2
                p3 = spare if p3 == skip else p3
                add_four(low, high, p0, p1, p2, p3, q0, q1, q2, q3)
    if scale != 0.0:
        add_fixed(low, high, size, slopes)
        cuda.syncthreads()
        for p in range(t, size + 1, step):
            cuda.atomic.add(counts, p, whole(low, high, p))
    _block_sums(tab, total, top, True, sums)


# ------------------------------------------------------------------------- any classes
#
# A block has the table of one column of scores. Blocks side by side have the others for
# the same rows, whose codes are in the second-level cache then.


@cuda.jit(device=True)
def _gather(tab, copies, words, starts, base, word, n_words, scores):
    width, mine = base.size, np.uint32(cuda.threadIdx.x % copies)
    c, m = cuda.blockIdx.x % width, np.uint64(words.size // starts.size)
    start = (cuda.blockIdx.x // width) * cuda.blockDim.x + cuda.threadIdx.x
    out = scores[c]
    for k in range(start, n_words, (cuda.gridDim.x // width) * cuda.blockDim.x):
        f0 = base[c]
        f1, f2, f3 = f0, f0, f0
        at = np.uint64(word + k)
        for j in range(np.uint64(starts.size)):
            w, s = words[at], np.uint32(starts[j] * copies + mine)
            at += m
            f0 += tab[np.uint32(s + byte(w, 0) * copies)]
            f1 += tab[np.uint32(s + byte(w, 1) * copies)]
            f2 += tab[np.uint32(s + byte(w, 2) * copies)]
            f3 += tab[np.uint32(s + byte(w, 3) * copies)]
        r = np.uint64(4 * k)
        out[r] = f0
        out[r + np.uint64(1)] = f1
        out[r + np.uint64(2)] = f2
        out[r + np.uint64(3)] = f3


@kernel_of(registers=64)
def gather(words, starts, table, copies, base, word, n_words, scores):
    """Scores of the rows of some words; table (C, P), a part in shared memory.

    There may be more columns of scores, which stay as they are.
    """
    tab = cuda.shared.array(0, float64)
    of_class = table[cuda.blockIdx.x % base.size]
    for p in range(cuda.threadIdx.x, of_class.size * copies, cuda.blockDim.x):
        tab[p] = of_class[p // copies]
    cuda.syncthreads()
    _gather(tab, copies, words, starts, base, word, n_words, scores)


@kernel_of(registers=64)
def gather_far(words, starts, table, copies, base, word, n_words, scores):
    """Scores of the rows of some words, from a table that is too large for that."""
    of_class = table[cuda.blockIdx.x % base.size]
    _gather(of_class, copies, words, starts, base, word, n_words, scores)


@cuda.jit
def gather_wide(codes, starts, table, row, n_rows, scores):
    """Add the contributions of wide codes (w, >= n) to scores: table (V, C)."""
    for i in range(cuda.grid(1), n_rows, cuda.gridsize(1)):
        for j in range(codes.shape[0]):
            at = starts[j] + np.int64(codes[j, row + i])
            for c in range(scores.shape[0]):
                scores[c, i] += table[at, c]


def _losses(loss, is_largest):
    """Return a kernel that turns scores into gradients, in units, by a loss.

    scores (C * m,) float64 and units, int64, may be the same memory. ``a`` and ``b``
    are what the loss takes. sums (blocks, 2): the loss, and the largest or the sum of
    the other number of rows.
    """

    @kernel_of(registers=64)
    def losses(scores, m, labels, weights, row, n, a, b, scale, units, sums):
        shared = cuda.shared.array(0, float64)
        total, other = 0.0, 0.0
        for i in range(cuda.grid(1), m, cuda.gridsize(1)):
            r = row + i
            if r < n:
                u = 1.0
                if weights.size:
                    u = weights[r]
                y = np.int64(byte(labels[r // 4], r % 4))
                value, bound = loss(scores, units, i, m, y, u, a, b, scale)
                total += value
                other = max(other, bound) if is_largest else other + bound
            else:
                for c in range(i, scores.size, m):
                    units[c] = 0
        _block_sums(shared, total, other, is_largest, sums)

    return losses


# The second number of a row is its largest slope, and the derivative by alpha.
score_losses = _losses(scores_loss, True)
mixture_losses = _losses(mixture_loss, False)


@kernel_of(registers=64)
def scatter(words, starts, modes, begin, end, cells, word, n_words, units, counts):
    """Add gradients to the soft counts of some columns: counts (C, P) int64 +=.

    Columns begin to end (less one) have ``cells`` table rows, whose soft counts fit
    shared memory. There may be more columns of units, which are left out.
    """
    width = counts.shape[0]
    c, m = cuda.blockIdx.x % width, np.uint64(words.size // starts.size)
    origin, room = starts[begin], np.uint32(cells + SPARE)
    halves = cuda.shared.array(0, uint32)
    low, high = halves[:room], halves[room : 2 * room]
    t, step = cuda.threadIdx.x, cuda.blockDim.x
    spare = np.uint32(cells + t % SPARE)
    for p in range(t, 2 * room, step):
        halves[p] = 0
    cuda.syncthreads()
    slopes = units[c]
    start = (cuda.blockIdx.x // width) * step + t
    for k in range(start, n_words, (cuda.gridDim.x // width) * step):
        r = np.uint64(4 * k)
        q0, q1 = slopes[r], slopes[r + np.uint64(1)]
        q2, q3 = slopes[r + np.uint64(2)], slopes[r + np.uint64(3)]
        at = np.uint64(begin) * m + np.uint64(word + k)
        for j in range(np.uint64(begin), np.uint64(end)):
            w, s, skip = words[at], np.uint32(starts[j] - origin), modes[j]
            at += m
            b0, b1, b2, b3 = byte(w, 0), byte(w, 1), byte(w, 2), byte(w, 3)
            p0 = spare if b0 == skip else np.uint32(s + b0)
            p1 = spare if b1 == skip else np.uint32(s + b1)
            p2 = spare if b2 == skip else np.uint32(s + b2)
            p3 = spare if b3 == skip else np.uint32(s + b3)
            add_four(low, high, p0, p1, p2, p3, q0, q1, q2, q3)
    cuda.syncthreads()
    for p in range(t, cells, step):
        at_cell = c, np.int64(origin + p)
        cuda.atomic.add(counts, at_cell, whole(low, high, p))


@cuda.jit
def scatter_wide(codes, starts, row, n_rows, units, counts):
    """Add gradients to the soft counts of wide codes: counts (C * V,) int64 +=."""
    width = units.shape[0]
    size = counts.size // width
    for i in range(cuda.grid(1), n_rows, cuda.gridsize(1)):
        for j in range(codes.shape[0]):
            at = starts[j] + np.int64(codes[j, row + i])
            for c in range(width):
                cuda.atomic.add(counts, at + c * size, units[c, i])
