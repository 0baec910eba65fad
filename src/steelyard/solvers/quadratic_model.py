"""Quadratic models: their minimum within bounds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from steelyard._common.arrays import Floats
from steelyard.kernels.fitting import descend

# Rounds of coordinate descent between two factorisations, which for 500 variables take
# as long as 30 rounds.
_SWEEPS = 30


def box_minimum(
    matrix: Floats, gradient: Floats, low: Floats, high: Floats, accuracy: float = 1e-12
) -> Floats:
    r"""Minimise :math:`g^\top d + \tfrac12 d^\top H d` over :math:`l \le d \le u`.

    A few rounds of coordinate descent find out which variables end at a bound, the
    others are solved for at once and projected, in turn until neither changes anything.
    No rows are touched, so that a bounded fit takes as many passes as an unbounded one.
    ``low <= 0 <= high``; a round that lowers the quadratic by less than ``accuracy`` of
    what all have is the last.
    """
    if np.isinf(low).all() and np.isinf(high).all():
        return -_solve(matrix, gradient)
    d, slope = np.zeros(len(gradient)), gradient.copy()
    blocked = np.zeros(len(gradient), dtype=bool)
    small = 1e-12 * (1.0 + np.abs(gradient).max())
    value = 0.0
    for _ in range(200):
        before = value
        descend(matrix, low, high, d, slope, _SWEEPS)
        value = _value(gradient, slope, d)
        held = ((d <= low) & (slope >= 0)) | ((d >= high) & (slope <= 0))
        if not held.all() and (held | blocked).all():
            blocked[:] = False
        held |= blocked
        free = np.flatnonzero(~held)
        if not free.size:
            break
        step = np.zeros_like(d)
        step[free] = -_solve(matrix[np.ix_(free, free)], slope[free])
        t, aim = 1.0, d + step
        while t > 0.1:
            new = np.clip(d + t * step, low, high)
            new_slope = gradient + matrix @ new
            new_value = _value(gradient, new_slope, new)
            if new_value <= value:
                break
            t *= 0.5
        else:
            # In a nearly flat model most of the step is cut off, and what is left may
            # go up: walk straight to the nearest bounds instead, and stay there until
            # the others are at their minimum.
            new, hit = _to_bounds(d, step, low, high)
            new_slope = gradient + matrix @ new
            new_value = _value(gradient, new_slope, new)
            blocked |= hit
        d, slope, value = new, new_slope, new_value
        if np.array_equal(new, aim):
            # The free variables are at their minimum; done if no held one wants away.
            away = ((d <= low) & (slope < 0)) | ((d >= high) & (slope > 0))
            if (np.abs(slope[held & (away | blocked)]) <= small).all():
                break
            blocked[:] = False
        if before - value <= accuracy * abs(value):
            break
    return d


def _to_bounds(
    d: Floats, step: Floats, low: Floats, high: Floats
) -> tuple[Floats, NDArray[np.bool_]]:
    """Go along a step up to the first bound; return the place and who is held there."""
    wall = np.where(step > 0, high, low)
    ratio = np.full(len(d), np.inf)
    moving = step != 0
    with np.errstate(over="ignore"):
        # A bound that a tiny step hardly comes closer to is infinitely far away.
        ratio[moving] = np.maximum((wall[moving] - d[moving]) / step[moving], 0.0)
    t = min(1.0, float(ratio.min()))
    hit = ratio <= t
    new = np.clip(d + t * step, low, high)
    new[hit] = wall[hit]
    return new, hit


def conjugate_gradients(
    product: Callable[[Floats], Floats],
    gradient: Floats,
    low: Floats,
    high: Floats,
    damping: float,
    max_iter: int = 50,
) -> Floats:
    """Lower a quadratic model by conjugate gradients over the variables free to move.

    ``low <= 0 <= high``; variables that would leave at once are held. Returns a step
    within the bounds along which the model goes down.
    """
    near = 1e-10
    free = ~(((low >= -near) & (gradient > 0)) | ((high <= near) & (gradient < 0)))
    d = np.zeros_like(gradient)
    r = np.where(free, -gradient, 0.0)
    p = r.copy()
    rr = float(r @ r)
    # Looser far from the optimum (Eisenstat and Walker, 1996).
    target = min(0.25, np.sqrt(np.sqrt(rr))) ** 2 * rr * 0.04
    for _ in range(max_iter):
        if rr <= max(target, 1e-30):
            break
        hp = np.where(free, product(p) + damping * p, 0.0)
        bend = float(p @ hp)
        if bend <= 1e-14 * float(p @ p):
            break
        a = rr / bend
        d += a * p
        r -= a * hp
        new = float(r @ r)
        p = r + (new / rr) * p
        rr = new
    downhill = np.where(free, -gradient, 0.0)
    if not d.any():
        d = downhill
    if ((low <= d) & (d <= high)).all() and d is not downhill:
        return d
    # What the bounds cut off may have been what made the step go down: shorten it, and
    # fall back on the gradient, until the model agrees.
    for path in (d, downhill):
        t = 1.0
        for _ in range(15 if path is d else 60):
            step = np.clip(t * path, low, high)
            slope = float(gradient @ step)
            curved = float(step @ (product(step) + damping * step))
            if slope + 0.5 * curved <= 1e-4 * slope < 0.0:
                return step
            t *= 0.5
    return np.zeros_like(gradient)


def _solve(matrix: Floats, right: Floats) -> Floats:
    """Solve a positive definite system, damping it until it factors."""
    damping = 0.0
    level = max(float(np.abs(np.diag(matrix)).mean()), 1e-300)
    while True:
        try:
            factor = cho_factor(
                matrix + damping * np.eye(len(matrix)) if damping else matrix,
                lower=True,
                check_finite=False,
            )
            return np.asarray(cho_solve(factor, right, check_finite=False))
        except LinAlgError:
            damping = max(10.0 * damping, 1e-12 * level)


def _value(gradient: Floats, slope: Floats, d: Floats) -> float:
    """Value of the quadratic at d, where its slope is g + H d."""
    return float(0.5 * d @ (gradient + slope))
