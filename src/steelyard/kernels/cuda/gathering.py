"""Gather on the device: posterior probabilities of rows, and densities of numbers.

Shapes as in ``kernels.cuda.scattering`` and ``kernels.cuda.passes``. Of numbers:
``numbers (g, >= n)`` by column, NaN where missing; ``labels`` four rows to a
word; ``parameters (3, g, K)`` mean, one over the deviation, and the log of the density
at the mean; ``kinds (3, g)`` half the step of a grid, depth and limit, 0 for none, as
``kernels.scoring`` reads them. The second and third dimension of a grid run over
attributes and classes. Sums are of doubles, in the order of threads and blocks: the
same bits in every run.
"""

from __future__ import annotations

import math

import numpy as np
from numba import cuda, float64

from steelyard.kernels.cuda.launching import byte, kernel_of
from steelyard.kernels.scoring import _MAX_DISTANCE, _ROOT_HALF


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
    of_class, out = table[c], scores[c]
    for p in range(cuda.threadIdx.x, of_class.size * copies, cuda.blockDim.x):
        tab[p] = of_class[p // copies]
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


# The smallest probability of an interval, as in ``proba.gaussian``.
_FLOOR = 1e-75


@cuda.jit
def moments(numbers, labels, weights, n, out):
    """Weight, mean and squared deviations of observed cells: out (blocks, 3, g, K).

    Each thread goes as ``kernels.counting.moments`` does; threads are merged in pairs.
    """
    shared = cuda.shared.array(0, float64)
    j, c = cuda.blockIdx.y, cuda.blockIdx.z
    t, half = cuda.threadIdx.x, cuda.blockDim.x
    weight, mean, squares, first = 0.0, 0.0, 0.0, 0.0
    for i in range(cuda.blockIdx.x * half + t, n, cuda.gridDim.x * half):
        x = np.float64(numbers[j, i])
        if x == x and byte(labels[i // 4], i % 4) == c:
            u = 1.0
            if weights.size:
                u = weights[i]
            first = x if weight == 0.0 else first
            total = weight + u
            if total > 0.0:
                delta = (x - first) - mean
                step = delta * (u / total)
                squares += weight * delta * step
                mean += step
                weight = total
    a = 3 * t
    shared[a], shared[a + 1], shared[a + 2] = weight, first + mean, squares
    cuda.syncthreads()
    while half > 1:
        half //= 2
        if t < half:
            _merge(shared, a, 3 * (t + half))
        cuda.syncthreads()
    if t < 3:
        out[cuda.blockIdx.x, t, j, c] = shared[t]


@cuda.jit(device=True)
def _merge(shared, a, b):
    """Merge the moments at b into those at a."""
    if shared[b] > 0.0:
        total = shared[a] + shared[b]
        share = shared[b] / total
        delta = shared[b + 1] - shared[a + 1]
        if shared[a] == 0.0:
            shared[a + 1] = shared[b + 1]
            delta = 0.0
        shared[a + 1] += share * delta
        shared[a + 2] += shared[b + 2] + delta * delta * share * shared[a]
        shared[a] = total


@cuda.jit(device=True)
def _density(x, j, c, parameters, kinds):
    """Return the log-density of a number in one class, not relative to others."""
    m, s = parameters[0, j, c], parameters[1, j, c]
    half_width, limit = kinds[0, j], kinds[2, j]
    if limit > 0.0:
        return min(max((x - m) * s, -limit), limit)
    if half_width > 0.0:
        distance = abs(x - m)
        near = (distance - half_width) * s * _ROOT_HALF
        far = (distance + half_width) * s * _ROOT_HALF
        return math.log(max(0.5 * (math.erfc(near) - math.erfc(far)), _FLOOR))
    t = min(abs(x - m) * s, _MAX_DISTANCE)
    return parameters[2, j, c] - 0.5 * t * t


@cuda.jit(device=True)
def _log_densities(x, j, c, parameters, kinds):
    """Return the log-density of a number of attribute j in class c."""
    value, depth = _density(x, j, c, parameters, kinds), kinds[1, j]
    if depth > 0.0:
        top = value
        for k in range(parameters.shape[2]):
            top = max(top, _density(x, j, k, parameters, kinds))
        value = max(value - top, -depth)
    return value


@cuda.jit
def add_densities(numbers, parameters, kinds, factors, row, n_rows, scores):
    """Add to scores (C, r) the log-densities of rows, times factors (g, C).

    There may be more columns of scores than classes: these begin again then.
    """
    n_classes = parameters.shape[2]
    for i in range(cuda.grid(1), n_rows, cuda.gridsize(1)):
        for c in range(scores.shape[0]):
            total = 0.0
            for j in range(numbers.shape[0]):
                x = np.float64(numbers[j, row + i])
                if x == x:
                    value = _log_densities(x, j, c % n_classes, parameters, kinds)
                    total += factors[j, c] * value
            scores[c, i] += total


@cuda.jit
def collect_densities(numbers, parameters, kinds, row, n_rows, units, sums):
    """Transpose of ``add_densities``: gradients in units to sums (blocks, g, C) +=."""
    shared = cuda.shared.array(0, float64)
    j, c = cuda.blockIdx.y, cuda.blockIdx.z
    t, half = cuda.threadIdx.x, cuda.blockDim.x
    total, k = 0.0, c % parameters.shape[2]
    for i in range(cuda.blockIdx.x * half + t, n_rows, cuda.gridDim.x * half):
        x = np.float64(numbers[j, row + i])
        if x == x:
            total += np.float64(units[c, i]) * _log_densities(
                x, j, k, parameters, kinds
            )
    shared[t] = total
    cuda.syncthreads()
    while half > 1:
        half //= 2
        if t < half:
            shared[t] += shared[t + half]
        cuda.syncthreads()
    if t == 0:
        sums[cuda.blockIdx.x, j, c] += shared[0]
