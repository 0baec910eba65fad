"""Compiled losses on the device: the branches of ``kernels.losses``.

Apart from those for their exponential, which the device has as an instruction sequence
of its own.
"""

from __future__ import annotations

import math

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
def posterior(s, first, width, a):
    """Turn the scores from ``first`` on into probabilities of softmax(a s), in place.

    Returns the log-sum.
    """
    top = s[first]
    for c in range(1, width):
        top = max(top, s[first + c])
    total = 0.0
    for c in range(width):
        p = math.exp(a * (s[first + c] - top))
        s[first + c] = p
        total += p
    scale = 1.0 / total
    for c in range(width):
        s[first + c] *= scale
    return a * top + math.log(total)


@cuda.jit(device=True)
def scores_loss(s, width, c_true, u, kind, a):
    """Turn the scores s (K,) of a row into its gradient; return its loss."""
    total = 0.0
    if kind == DEVIANCE:
        z = a * s[c_true]
        log_sum = posterior(s, 0, width, a)
        others = 0.0
        for c in range(width):
            others += s[c] if c != c_true else 0.0
        if others < 0.5:
            total = -u * math.log1p(-others)
        else:
            total = u * (log_sum - z)
        for c in range(width):
            s[c] *= u * a
        s[c_true] = -u * a * others
    elif kind == SQUARED:
        posterior(s, 0, width, 1.0)
        inner = -s[c_true]
        loss = 1.0 - 2.0 * s[c_true]
        for c in range(width):
            inner += s[c] * s[c]
            loss += s[c] * s[c]
        total = 0.5 * u * loss
        for c in range(width):
            p = s[c]
            r = p - (1.0 if c == c_true else 0.0)
            s[c] = u * p * (r * (1.0 - p) if a > 0.5 else r - inner)
    elif kind == EXPONENTIAL:
        z = s[c_true]
        slopes = 0.0
        for c in range(width):
            if c != c_true:
                t = s[c] - z
                over = max(t - _MAX_EXPONENT, 0.0)
                e = math.exp(min(t, _MAX_EXPONENT))
                total += u * e * (1.0 + over + 0.5 * over * over)
                s[c] = u * e * (1.0 + over)
                slopes += s[c]
        s[c_true] = -slopes
    else:
        total = math.nan
    return total


@cuda.jit(device=True)
def mixture_loss(s, width, c_true, u, alpha, printed):
    """Squared error of a mixture of two posteriors: s (2 K,) becomes its gradient.

    Returns the loss and its derivative with respect to alpha.
    """
    posterior(s, 0, width, 1.0)
    posterior(s, width, width, 1.0)
    total, d_alpha, inner_d, inner_i = 0.0, 0.0, 0.0, 0.0
    for c in range(width):
        p, q = s[c], s[width + c]
        r = alpha * p + (1.0 - alpha) * q - (1.0 if c == c_true else 0.0)
        total += 0.5 * u * r * r
        d_alpha += u * r * (p - q)
        inner_d += r * p
        inner_i += r * q
    for c in range(width):
        p, q = s[c], s[width + c]
        r = alpha * p + (1.0 - alpha) * q - (1.0 if c == c_true else 0.0)
        s[c] = u * alpha * p * (r * (1.0 - p) if printed else r - inner_d)
        s[width + c] = u * (1.0 - alpha) * q * (r - inner_i)
    return total, d_alpha
