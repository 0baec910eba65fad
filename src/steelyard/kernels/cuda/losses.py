"""Compiled losses on the device: the branches of ``kernels.losses``.

Apart from those for their exponential, which the device has as an instruction sequence
of its own.
"""

from __future__ import annotations

import math

import numpy as np
from numba import cuda

from steelyard.kernels.cuda.fixed import to_units
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
def _exponentials(s, at, width, m, a):
    """Return the largest of some scores, and the sum of exp(a (s - it)).

    Scores begin at a position, and are m apart.
    """
    top, total, k = s[at], 0.0, at
    for _ in range(1, width):
        k += m
        top = max(top, s[k])
    k = at
    for _ in range(width):
        total += math.exp(a * (s[k] - top))
        k += m
    return top, total


@cuda.jit(device=True)
def scores_loss(s, units, i, m, y, u, kind, a, scale):
    """Write the gradient of row i in units; return its loss and largest slope.

    Scores s (K * m,) are by class. Exponentials are computed twice rather than kept:
    threads have no room for them.
    """
    width, total, largest = s.size // m, 0.0, 0.0
    at, true = np.uint64(i), np.uint64(i + y * m)
    m = np.uint64(m)
    z = s[true]
    if kind == DEVIANCE:
        top, norm = _exponentials(s, at, width, m, a)
        part = 1.0 / norm
        # What the other classes have, added up: keeps its digits where the true class
        # has nearly everything.
        others = 0.0
        for _ in range(width):
            if at != true:
                p = math.exp(a * (s[at] - top)) * part
                others += p
                largest = max(largest, p)
                units[at] = to_units(u * a * p * scale)
            at += m
        if others < 0.5:
            total = -u * math.log1p(-others)
        else:
            total = u * (a * (top - z) + math.log(norm))
        units[true] = to_units(-u * a * others * scale)
        return total, u * abs(a) * max(largest, others)
    if kind == SQUARED:
        top, norm = _exponentials(s, at, width, m, 1.0)
        part = 1.0 / norm
        p_true, squares = math.exp(z - top) * part, 0.0
        for _ in range(width):
            p = math.exp(s[at] - top) * part
            squares += p * p
            at += m
        at = np.uint64(i)
        for _ in range(width):
            p = math.exp(s[at] - top) * part
            r = p - (1.0 if at == true else 0.0)
            d = u * p * (r * (1.0 - p) if a > 0.5 else r - (squares - p_true))
            largest = max(largest, abs(d))
            units[at] = to_units(d * scale)
            at += m
        return 0.5 * u * (1.0 - 2.0 * p_true + squares), largest
    if kind == EXPONENTIAL:
        slopes = 0.0
        for _ in range(width):
            if at != true:
                t = s[at] - z
                over = max(t - _MAX_EXPONENT, 0.0)
                e = u * math.exp(min(t, _MAX_EXPONENT))
                total += e * (1.0 + over + 0.5 * over * over)
                slopes += e * (1.0 + over)
                units[at] = to_units(e * (1.0 + over) * scale)
            at += m
        units[true] = to_units(-slopes * scale)
        return total, slopes
    return math.nan, math.nan


@cuda.jit(device=True)
def mixture_loss(s, units, i, m, y, u, form, scale):
    """Squared error of a mixture of two posteriors, s (2 K * m,), as ``scores_loss``.

    Returns the loss and its derivative with respect to alpha.
    """
    alpha, printed = form
    k = s.size // m // 2
    at, true = np.uint64(i), np.uint64(i + y * m)
    half, m = np.uint64(k * m), np.uint64(m)
    top_d, norm_d = _exponentials(s, at, k, m, 1.0)
    top_i, norm_i = _exponentials(s, at + half, k, m, 1.0)
    total, d_alpha, inner_d, inner_i = 0.0, 0.0, 0.0, 0.0
    for _ in range(k):
        p = math.exp(s[at] - top_d) / norm_d
        q = math.exp(s[at + half] - top_i) / norm_i
        r = alpha * p + (1.0 - alpha) * q - (1.0 if at == true else 0.0)
        total += 0.5 * u * r * r
        d_alpha += u * r * (p - q)
        inner_d += r * p
        inner_i += r * q
        at += m
    at = np.uint64(i)
    for _ in range(k):
        p = math.exp(s[at] - top_d) / norm_d
        q = math.exp(s[at + half] - top_i) / norm_i
        r = alpha * p + (1.0 - alpha) * q - (1.0 if at == true else 0.0)
        d = u * alpha * p * (r * (1.0 - p) if printed else r - inner_d)
        units[at] = to_units(d * scale)
        units[at + half] = to_units(u * (1.0 - alpha) * q * (r - inner_i) * scale)
        at += m
    return total, d_alpha
