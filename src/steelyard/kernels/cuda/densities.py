"""Numbers on the device: moments by class, and log-densities or slopes of rows.

Shapes: ``numbers (g, >= n)`` by column, NaN where missing; ``labels`` four rows to a
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

from steelyard.kernels.cuda.fixed_point import byte
from steelyard.kernels.scoring import _FARTHEST, _ROOT_HALF

# The smallest probability of an interval, as in ``proba.gaussian``.
_FLOOR = 1e-75


@cuda.jit
def moments(numbers, labels, weights, n, out):
    """Weight, mean and squared deviations of known cells: out (blocks, 3, g, K).

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
    """Return what a number says of one class, apart from the others."""
    m, s = parameters[0, j, c], parameters[1, j, c]
    half_width, limit = kinds[0, j], kinds[2, j]
    if limit > 0.0:
        return min(max((x - m) * s, -limit), limit)
    if half_width > 0.0:
        distance = abs(x - m)
        near = (distance - half_width) * s * _ROOT_HALF
        far = (distance + half_width) * s * _ROOT_HALF
        return math.log(max(0.5 * (math.erfc(near) - math.erfc(far)), _FLOOR))
    t = min(abs(x - m) * s, _FARTHEST)
    return parameters[2, j, c] - 0.5 * t * t


@cuda.jit(device=True)
def _tell(x, j, c, parameters, kinds):
    """Return what a known number of attribute j says of class c."""
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
                    value = _tell(x, j, c % n_classes, parameters, kinds)
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
            total += np.float64(units[c, i]) * _tell(x, j, k, parameters, kinds)
    shared[t] = total
    cuda.syncthreads()
    while half > 1:
        half //= 2
        if t < half:
            shared[t] += shared[t + half]
        cuda.syncthreads()
    if t == 0:
        sums[cuda.blockIdx.x, j, c] += shared[0]
