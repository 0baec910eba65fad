"""Compiled losses on the device: the branches of ``kernels.losses``.

Apart from those for their exponential, which the device has as an instruction sequence
of its own.
"""

from __future__ import annotations

import math

import numpy as np
from numba import cuda

from steelyard.kernels.losses import _MAX_EXPONENT, DEVIANCE, EXPONENTIAL, SQUARED


@cuda.jit(device=True)
def odds_loss(f, positive, kind, a):
    """Loss and slope of the log-odds f of the second class: two numbers."""
    s = 1.0 if positive else -1.0
    if kind == DEVIANCE:
        t = -a * s * f
        e = math.exp(-abs(t))
        q = (1.0 if t > 0.0 else e) / (1.0 + e)
        return max(t, 0.0) + math.log1p(e), -a * s * q
    if kind == SQUARED:
        small = math.exp(-abs(f))
        p = 1.0 / (1.0 + small)
        p = p if f > 0.0 else small * p
        r = p - (1.0 if positive else 0.0)
        slope = r * p * (1.0 - p)
        return r * r, slope if a > 0.5 else 2.0 * slope
    if kind == EXPONENTIAL:
        t = -s * f
        over = max(t - _MAX_EXPONENT, 0.0)
        e = math.exp(min(t, _MAX_EXPONENT))
        return e * (1.0 + over + 0.5 * over * over), -s * e * (1.0 + over)
    return math.nan, math.nan


@cuda.jit(device=True)
def _exponentials(s, i, first, width, a):
    """Return the largest of some scores of row i, and the sum of exp(a (s - it))."""
    top = s[first, i]
    for c in range(1, width):
        top = max(top, s[first + c, i])
    total = 0.0
    for c in range(width):
        total += math.exp(a * (s[first + c, i] - top))
    return top, total


@cuda.jit(device=True)
def scores_loss(s, units, i, y, u, kind, a, scale):
    """Write the gradient of row i, s (K, r), in units; return loss and largest slope.

    Exponentials are computed twice rather than kept: threads have no room for them.
    """
    width, total, largest = s.shape[0], 0.0, 0.0
    if kind == DEVIANCE:
        z = s[y, i]
        top, norm = _exponentials(s, i, 0, width, a)
        # What the other classes have, added up: keeps its digits where the true class
        # has nearly everything.
        others = 0.0
        for c in range(width):
            p = math.exp(a * (s[c, i] - top)) / norm
            d = u * a * p
            if c != y:
                others += p
                largest = max(largest, abs(d))
                units[c, i] = np.int64(round(d * scale))
        if others < 0.5:
            total = -u * math.log1p(-others)
        else:
            total = u * (a * (top - z) + math.log(norm))
        units[y, i] = np.int64(round(-u * a * others * scale))
        return total, max(largest, abs(u * a * others))
    if kind == SQUARED:
        top, norm = _exponentials(s, i, 0, width, 1.0)
        true = math.exp(s[y, i] - top) / norm
        squares = 0.0
        for c in range(width):
            p = math.exp(s[c, i] - top) / norm
            squares += p * p
        for c in range(width):
            p = math.exp(s[c, i] - top) / norm
            r = p - (1.0 if c == y else 0.0)
            d = u * p * (r * (1.0 - p) if a > 0.5 else r - (squares - true))
            largest = max(largest, abs(d))
            units[c, i] = np.int64(round(d * scale))
        return 0.5 * u * (1.0 - 2.0 * true + squares), largest
    if kind == EXPONENTIAL:
        z, slopes = s[y, i], 0.0
        for c in range(width):
            if c != y:
                t = s[c, i] - z
                over = max(t - _MAX_EXPONENT, 0.0)
                e = u * math.exp(min(t, _MAX_EXPONENT))
                total += e * (1.0 + over + 0.5 * over * over)
                slopes += e * (1.0 + over)
                units[c, i] = np.int64(round(e * (1.0 + over) * scale))
        units[y, i] = np.int64(round(-slopes * scale))
        return total, slopes
    return math.nan, math.nan


@cuda.jit(device=True)
def mixture_loss(s, units, i, y, u, form, scale):
    """Squared error of a mixture of two posteriors, s (2 K, r), as ``scores_loss``.

    Returns the loss and its derivative with respect to alpha.
    """
    alpha, printed = form
    k = s.shape[0] // 2
    top_d, norm_d = _exponentials(s, i, 0, k, 1.0)
    top_i, norm_i = _exponentials(s, i, k, k, 1.0)
    total, d_alpha, inner_d, inner_i = 0.0, 0.0, 0.0, 0.0
    for c in range(k):
        p = math.exp(s[c, i] - top_d) / norm_d
        q = math.exp(s[k + c, i] - top_i) / norm_i
        r = alpha * p + (1.0 - alpha) * q - (1.0 if c == y else 0.0)
        total += 0.5 * u * r * r
        d_alpha += u * r * (p - q)
        inner_d += r * p
        inner_i += r * q
    for c in range(k):
        p = math.exp(s[c, i] - top_d) / norm_d
        q = math.exp(s[k + c, i] - top_i) / norm_i
        r = alpha * p + (1.0 - alpha) * q - (1.0 if c == y else 0.0)
        d = u * alpha * p * (r * (1.0 - p) if printed else r - inner_d)
        units[c, i] = np.int64(round(d * scale))
        d = u * (1.0 - alpha) * q * (r - inner_i)
        units[k + c, i] = np.int64(round(d * scale))
    return total, d_alpha
