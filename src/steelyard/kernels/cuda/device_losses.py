"""Compiled losses on the device.

The text of a loss is that of ``kernels.losses``, compiled for the device with its own
exponential. The deviance has loops of its own, as it has there, and so has the squared
error of a mixture.
"""

from __future__ import annotations

import math
from types import FunctionType

import numpy as np
from numba import cuda

from steelyard.kernels import losses
from steelyard.kernels.cuda import to_units
from steelyard.kernels.losses import DEVIANCE


def _for_device(kernel, **replaced):
    """Compile the text of a kernel for the device, with other functions inside."""
    function = kernel.py_func
    own = FunctionType(function.__code__, {**function.__globals__, **replaced})
    return cuda.jit(device=True)(own)


@cuda.jit(device=True)
def _exp(x):
    return math.exp(x)


_any_odds_loss = _for_device(losses.odds_loss, _exp=_exp)
_posterior = _for_device(losses.posterior, _exp=_exp)
_any_scores_loss = _for_device(losses.scores_loss, _exp=_exp, posterior=_posterior)


@cuda.jit(device=True)
def odds_loss(f, positive, kind, a):
    """Loss and slope of the log-odds f of the second class: two numbers."""
    if kind == DEVIANCE:
        s = 1.0 if positive else -1.0
        t = -a * s * f
        e = math.exp(-abs(t))
        q = (1.0 if t > 0.0 else e) / (1.0 + e)
        return max(t, 0.0) + math.log1p(e), -a * s * q
    return _any_odds_loss(f, positive, kind, a)


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

    Scores s (K * m,) are by class, and become gradients unless the loss is the
    deviance. Its exponentials are computed twice rather than kept: threads have no room
    for them.
    """
    width, step, total, largest = s.size // m, m, 0.0, 0.0
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
    own = s[i::step]
    total = _any_scores_loss(own, y, u, kind, a, 0.0)
    for c in range(width):
        # A loss that is not a number ends the step, whatever its gradient is.
        d = own[c] if own[c] == own[c] else 0.0
        largest = max(largest, abs(d))
        units[at] = to_units(d * scale)
        at += m
    return total, largest


@cuda.jit(device=True)
def mixture_loss(s, units, i, m, y, u, alpha, printed, scale):
    """Squared error of a mixture of two posteriors, s (2 K * m,), as ``scores_loss``.

    Returns the loss and its derivative with respect to alpha.
    """
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
