"""Steps within bounds, by quadratic models and gradients, and under constraints."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import csr_array

from steelyard._common.arrays import Floats
from steelyard._common.settings import setting
from steelyard._common.threads import one_blas_thread
from steelyard.kernels.fitting import descend
from steelyard.solvers.base import (
    AnyObjective,
    Box,
    IterativeSolver,
    LowRankPreconditioner,
    Preconditioner,
    Solution,
    Status,
    note_iteration,
    runaway,
)
from steelyard.solvers.lbfgs import (
    LBFGS,
    InverseHessian,
    Stage,
    descend_in_stages,
    search_step,
)

# A step must fall below the largest of these last values (Grippo, Lampariello & Lucidi,
# 1986).
_REMEMBERED = 10
_LONGEST = 1e6

# The length of a step goes up and down by powers of ten: what it promises has to be
# this much less than what is asked for.
_CAUTION = 0.01

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
    """Go along a step up to the first bound; return the point and the fixed weights."""
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


class GradientDescent(IterativeSolver):
    r"""Steps down the gradient with a line search, as the RNB paper prints them.

    .. math:: w \leftarrow \Pi_{[l, u]}\bigl(w - \epsilon \nabla f(w)\bigr), \qquad
       \frac{|f_t - f_{t+1}|}{\max(|f_t|, |f_{t+1}|, 1)} \le \eta

    The first step has length one, each line search begins at twice the step before.
    """

    tol: float = setting(
        default=1e-7,
        about="Stop when a step lowers the objective by no more than this share of it, "
        "or of one if it is smaller.",
    )
    max_iter: int = setting(default=10_000)

    def minimize(self, objective: AnyObjective, start: Floats, box: Box) -> Solution:
        """Minimise from a start, within bounds."""
        records: list[dict[str, Any]] = []
        x = box.clip(start)
        value, gradient = objective(x)
        length = 1.0 / max(float(np.linalg.norm(gradient)), 1e-300)
        status = runaway(objective, value, box)
        while status is None and len(records) < self.max_iter:
            step = box.clip(x - length * gradient) - x
            slope = float(gradient @ step)
            moved = search_step(objective, x, step, slope, value, value)
            if moved is None:
                status = "converged"
                break
            before = value
            t, value, gradient = moved
            x, length = box.clip(x + t * step), 2.0 * t * length
            note_iteration(records, objective, value, box.projected(x, gradient), t)
            most = max(abs(before), abs(value), 1.0)
            if before - value <= self.tol * most:
                status = "converged"
            else:
                status = runaway(objective, value, box)
        return Solution(x, value, status or "iterations", len(records), records)


class SpectralGradient(IterativeSolver):
    r"""Spectral projected gradients (Birgin, Martínez & Raydan, 2000), preconditioned.

    .. math:: d = \arg\min_{l \le w + d \le u}\; g^\top d + \tfrac1{2\alpha} d^\top P d

    with the rough Hessian P of the objective, and :math:`\alpha` the length that fits
    the last step (Barzilai & Borwein, 1988). One class's weights of many attributes
    move its scores alike: along that direction the objective bends a million times more
    than along others, and bounds cut off balanced steps. P accounts for it.
    """

    tol: float = setting(
        default=1e-10,
        about="Stop when a step promises to lower the objective by less than a "
        "hundredth of this share of it.",
    )

    def minimize(self, objective: AnyObjective, start: Floats, box: Box) -> Solution:
        """Minimise from a start, within bounds."""
        scaling = None if box.is_open.any() else objective.preconditioner(start, box)
        if isinstance(scaling, LowRankPreconditioner):
            with one_blas_thread():
                result = self._minimize(objective, box.clip(start), box, scaling)
            if result.status != "stalled":
                return result
            start = result.weights
        return LBFGS(self.tol, self.max_iter).minimize(objective, start, box)

    def _minimize(
        self,
        objective: AnyObjective,
        x: Floats,
        box: Box,
        scaling: LowRankPreconditioner,
    ) -> Solution:
        records: list[dict[str, Any]] = []
        value, gradient = objective(x)
        values, length, status = [value], 1.0, runaway(objective, value, box)
        end: Status = "iterations"
        while status is None and len(records) < self.max_iter:
            step = scaling.step(length * gradient, box.lower - x, box.upper - x)
            slope = float(gradient @ step)
            if slope >= -_CAUTION * self.tol * abs(value):
                status = "converged"
                break
            result = search_step(objective, x, step, slope, value, max(values))
            if result is None:
                end = "stalled"
                break
            t, new_value, new_gradient = result
            bend = t * float(step @ (new_gradient - gradient))
            length = _LONGEST
            if bend > 0.0:
                length = min(t * t * scaling.square(step) / bend, _LONGEST)
            x, value, gradient = box.clip(x + t * step), new_value, new_gradient
            values = [*values[1 - _REMEMBERED :], value]
            note_iteration(records, objective, value, box.projected(x, gradient), t)
            status = runaway(objective, value, box)
        if status is None:
            flat = box.is_flat(x, value, gradient, self.tol)
            status = "converged" if flat else end
        return Solution(x, value, status, len(records), records)


# What is added to the diagonal of the dual problem: constraints of smooth curves are
# nearly dependent on each other. What it lets through is cut off at the end.
_ROUNDING = 1e-10

# A constraint is broken beyond this share of the largest level.
_BROKEN = 1e-10
_MAX_ROUNDS = 50


@dataclass(frozen=True)
class Cone(Box):
    r"""Weights without bounds, with :math:`A w \ge 0`, or 0 for some rows of A."""

    rows: csr_array
    """A: shape (constraints, p)."""

    is_equal: NDArray[np.bool_]
    """Which rows are satisfied with equality, shape (constraints,)."""


class ConstrainedNewton(IterativeSolver):
    r"""Limited-memory projected quasi-Newton steps (Schmidt and others, 2009).

    .. math:: d = \arg\min_{A (w + d) \ge 0}\; g^\top d + \tfrac12 d^\top B d

    with the matrix B of preconditioned L-BFGS. The step solves the dual problem, which
    has a variable for each constraint and touches no rows. A line search goes along it;
    all points on the way satisfy the constraints.
    """

    tol: float = setting(
        default=1e-8,
        about="Stop when a step promises to lower the objective by less than a tenth "
        "of this share of it.",
    )

    def minimize(self, objective: AnyObjective, start: Floats, box: Box) -> Solution:
        """Minimise from a start, under the constraints of a cone."""
        with one_blas_thread():
            scaling = objective.preconditioner(start, box)
            if scaling is None:
                n = len(start)
                scaling = LowRankPreconditioner(np.ones(n), np.empty((n, 0)))
            stage = partial(_ConstrainedStage, self, objective, box)
            return descend_in_stages(stage, start, scaling)


class _ConstrainedStage(Stage):
    """Iterations under the constraints of a cone, with one preconditioner."""

    def __init__(
        self, solver: Any, objective: AnyObjective, box: Box, scaling: Preconditioner
    ) -> None:
        super().__init__(solver, objective, box, scaling)
        assert isinstance(box, Cone)
        rows = np.array([scaling.gradient(row) for row in box.rows.toarray()])
        self._rows = rows / np.maximum(np.linalg.norm(rows, axis=1), 1e-300)[:, None]
        self._low = np.where(box.is_equal, -np.inf, 0.0)
        self._multipliers = np.zeros(len(rows))
        self._gram = self._rows @ self._rows.T

    def feasible(self, y: Floats) -> Floats:
        """Return the nearest scaled weights that satisfy the constraints."""
        y = y + self.step(y, np.zeros_like(y))
        self._multipliers[:] = 0.0
        return y

    def is_done(self, value: float, gradient: Floats, slope: float) -> bool:
        """Whether a step promises little, or is none."""
        is_little = -slope <= 0.1 * self.solver.tol * abs(value)
        return is_little and (self.curved.n_pairs > 0 or slope >= 0.0)

    def restarts(self) -> bool:
        """Forget the matrix, as far as there is one: it may be to blame."""
        if not self.curved.n_pairs:
            return False
        self.curved = InverseHessian(len(self._rows[0]), self.curved.scale)
        return True

    def step(self, y: Floats, gradient: Floats) -> Floats:
        """Minimise the quadratic model under the constraints.

        Only those that the step without them breaks have multipliers at first, and
        those that had some before; what these break is added.
        """
        curved = self.curved
        free = -curved.solve(gradient)
        level = self._rows @ (y + free)
        is_equal, multipliers = np.isinf(self._low), self._multipliers
        left, middle = curved.factors(self._rows)
        chosen = is_equal | (level < 0.0) | (multipliers > 0.0)
        step = free
        for _ in range(_MAX_ROUNDS):
            if not chosen.any():
                break
            places = np.flatnonzero(chosen)
            matrix = curved.scale * self._gram[np.ix_(places, places)]
            matrix += left[places] @ middle @ left[places].T
            matrix[np.diag_indices(len(places))] *= 1.0 + _ROUNDING
            before, low = multipliers[places], self._low[places]
            slope = level[places] + matrix @ before
            high = np.full(len(places), np.inf)
            change = box_minimum(matrix, slope, low - before, high)
            multipliers[places] = np.maximum(before + change, low)
            step = free + curved.solve(multipliers @ self._rows)
            now = self._rows @ (y + step)
            broken = (now < -_BROKEN * np.abs(level).max()) & ~chosen
            if not broken.any():
                break
            chosen |= broken
        return step
