"""Descent: a quadratic function within bounds, one coordinate after the other."""

from __future__ import annotations

from steelyard.kernels.compiling import FEW, kernel


@kernel(plain=FEW)
def descend(matrix, low, high, d, slope, sweeps):
    """Minimise in each coordinate in turn; d (p,) and slope (p,) = g + H d in place.

    matrix (p, p) symmetric with a positive diagonal, low (p,), high (p,)
    """
    p = d.size
    for _ in range(sweeps):
        for k in range(p):
            new = d[k] - slope[k] / matrix[k, k]
            new = min(max(new, low[k]), high[k])
            change = new - d[k]
            if change != 0.0:
                d[k] = new
                row = matrix[k]
                for m in range(p):
                    slope[m] += change * row[m]


@descend.in_numpy
def _(matrix, low, high, d, slope, sweeps):
    for _ in range(sweeps):
        for k in range(d.size):
            new = min(max(d[k] - slope[k] / matrix[k, k], low[k]), high[k])
            if new != d[k]:
                slope += (new - d[k]) * matrix[k]
                d[k] = new
