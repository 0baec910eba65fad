"""Compiled losses.

A compiled loss is a number below, a branch of ``odds_loss`` for two classes, and a
branch of ``scores_loss`` for more; the deviance, whose exponentials and logarithms are
taken for many rows at once, has separate loops. ``losses.Loss.kernel`` names the
number; a loss without one is evaluated by NumPy. ``a`` is the one parameter that a loss
may have. Scores that overflow give a loss that is not a number, which solvers take as a
failed step.
"""

from __future__ import annotations

import math

from steelyard.kernels.compiling import kernel
from steelyard.kernels.scoring import _exp

DEVIANCE = 0
"""log(1 + sum of exp(a (z_c - z_y))), multiplier a."""

SQUARED = 1
"""Half the squared error of the posterior; a = 1 for the gradient as printed."""

EXPONENTIAL = 2
"""Sum of exp(z_c - z_y) over the other classes, beyond the exponent a quadratic."""


@kernel(inline="always")
def odds_loss(f, positive, kind, a):
    """Loss and slope of the log-odds f of the second class: two numbers.

    Not used for the deviance, whose logarithms are taken for many rows at once.
    """
    s = 1.0 if positive else -1.0
    if kind == SQUARED:
        small = _exp(-abs(f))
        p = 1.0 / (1.0 + small)
        p = p if f > 0.0 else small * p
        r = p - (1.0 if positive else 0.0)
        slope = r * p * (1.0 - p)
        return r * r, slope if a > 0.5 else 2.0 * slope
    if kind == EXPONENTIAL:
        t = -s * f
        over = max(t - a, 0.0)
        e = math.exp(min(t, a))
        return e * (1.0 + over + 0.5 * over * over), -s * e * (1.0 + over)
    return math.nan, math.nan


@kernel(inline="always")
def posterior(s, a):
    """Turn scores into probabilities of softmax(a s), in place; return the log-sum."""
    width = s.shape[0]
    top = s[0]
    for c in range(1, width):
        top = max(top, s[c])
    for c in range(width):
        s[c] = _exp(a * (s[c] - top))
    total = 0.0
    for c in range(width):
        total += s[c]
    scale = 1.0 / total
    for c in range(width):
        s[c] *= scale
    return a * top + math.log(total)


@kernel(inline="always")
def deviance(s, e, at, c_true, u, a, n_classes, total):
    """Turn the scores s (K,) of a row into its gradient; return total plus its loss.

    e has, from ``at`` on, the exponentials of a (s - top), with top the largest score.
    They are taken for many rows at once.
    """
    exponentials = 0.0
    for c in range(n_classes):
        exponentials += e[at + c]
    scale = 1.0 / exponentials
    # The sum of the other classes keeps its digits if the true class has nearly all.
    others = 0.0
    for c in range(n_classes):
        e[at + c] *= scale
        others += e[at + c] if c != c_true else 0.0
    if others < 0.5:
        total -= u * math.log1p(-others)
    else:
        top = s[0]
        for c in range(1, n_classes):
            top = s[c] if s[c] > top else top
        total += u * ((a * top + math.log(exponentials)) - a * s[c_true])
    for c in range(n_classes):
        s[c] = e[at + c] * (u * a)
    s[c_true] = -u * a * others
    return total


@kernel(inline="always")
def scores_loss(s, c_true, u, kind, a, total):
    """Turn the scores s (K,) of a row into its gradient; return total plus its loss.

    Not used for the deviance.
    """
    width = s.shape[0]
    if kind == SQUARED:
        posterior(s, 1.0)
        inner = -s[c_true]
        loss = 1.0 - 2.0 * s[c_true]
        for c in range(width):
            inner += s[c] * s[c]
            loss += s[c] * s[c]
        total += 0.5 * u * loss
        for c in range(width):
            p = s[c]
            r = p - (1.0 if c == c_true else 0.0)
            s[c] = u * p * (r * (1.0 - p) if a > 0.5 else r - inner)
    elif kind == EXPONENTIAL:
        z = s[c_true]
        slopes = 0.0
        for c in range(width):
            if c == c_true:
                continue
            t = s[c] - z
            over = max(t - a, 0.0)
            e = math.exp(min(t, a))
            total += u * e * (1.0 + over + 0.5 * over * over)
            s[c] = u * e * (1.0 + over)
            slopes += s[c]
        s[c_true] = -slopes
    else:
        total = math.nan
    return total
