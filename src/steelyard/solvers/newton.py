"""Newton's method within bounds, with a Hessian from a sample of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from steelyard._common.arrays import Floats
from steelyard._common.settings import setting
from steelyard._common.threads import one_blas_thread
from steelyard.solvers.base import (
    AnyObjective,
    Box,
    IterativeSolver,
    Solution,
    Status,
    note_iteration,
    runaway,
)
from steelyard.solvers.constrained import box_minimum
from steelyard.solvers.lbfgs import LBFGS

# Above this many weights solving with the Hessian would cost more than the passes over
# the rows that it saves.
MAX_ASSEMBLED = 1_500

# A projected gradient beyond the root of this share of the objective is no optimum.
_MAX_SLOPE_SHARE = 1e-4

_ARMIJO = 1e-4
_MIN_STEP = 1e-10

# A step that achieves less than this share of what the quadratic model promised shows
# that the Hessian is out of date; if the loss is not convex it is so sooner.
_MIN_STEP_QUALITY = 0.1
_MIN_STEP_QUALITY_DAMPED = 0.75
_MIN_STEP_LENGTH = 0.2

# Weights up to which the Hessian of a small table is made at every step.
_MAX_EXACT_WEIGHTS = 200

# How exactly a model that comes from some of the rows is minimised.
_ROUGH_ACCURACY = 1e-3

# Damping of Levenberg and Marquardt, as a share of the diagonal.
_FIRST_DAMPING = 1e-2
_MIN_DAMPING = 1e-8
_MAX_DAMPING = 1e6


class Newton(IterativeSolver):
    r"""Projected Newton: each step minimises a quadratic model within the bounds.

    .. math:: \min_d\; g^\top d + \tfrac12 d^\top H d
       \quad\text{subject to}\quad l \le w + d \le u

    followed by a line search towards that point. H comes from about fifty rows per
    attribute, drawn once: it only has to be roughly right, since value and gradient are
    exact, and the gradients of each step correct it (BFGS). It is recomputed, and from
    more rows, when a step achieves less than promised. A loss that is not convex uses
    the exact Hessian while that is positive definite and the Gauss-Newton matrix
    otherwise, damped as by Levenberg and Marquardt instead of searching along a line.
    """

    tol: float = setting(
        default=1e-10,
        about="Stop when the quadratic model promises to lower the objective by less "
        "than this share of it.",
    )

    def refuses(self, objective: AnyObjective) -> str:
        """Return why an objective cannot be minimised by this solver; '' if it can."""
        return objective.refuses_second_order()

    def minimize(self, objective: AnyObjective, start: Floats, box: Box) -> Solution:
        """Minimise from a start, within bounds."""
        with one_blas_thread():
            return self._minimize(objective, start, box)

    def _minimize(self, objective: AnyObjective, start: Floats, box: Box) -> Solution:
        state = _State(objective, start, box)
        status: Status = "iterations"
        n_iter = 0
        while n_iter < self.max_iter:
            n_iter += 1
            stopped = runaway(objective, state.value, box)
            if stopped:
                status = stopped
                break
            direction, promised = state.direction()
            if not np.isfinite(promised):
                # Likelihoods so far apart that their squares overflow.
                status = "stalled"
                break
            last = promised <= state.enough(self.tol) and not state.is_damped
            if last and not state.sample.is_all:
                # The sampled model is no guide to a step as small as this.
                status = "converged"
                break
            moved = state.move(direction, promised)
            if last and (moved or state.is_current):
                status = "converged"
                break
            if not moved and not state.sharpen():
                status = "converged" if state.is_flat(self.tol) else "stalled"
                break
        n_iter = n_iter if status == "iterations" else len(state.records)
        if status in ("converged", "stalled") and not state.is_flat(_MAX_SLOPE_SHARE):
            # Far from an optimum after all: a first-order method goes on from here.
            return LBFGS(self.tol, self.max_iter).minimize(
                objective, state.weights, box
            )
        return Solution(state.weights, state.value, status, n_iter, state.records)


class _State:
    """Where the iteration is, and the Hessian that it uses."""

    def __init__(self, objective: AnyObjective, start: Floats, box: Box) -> None:
        self._objective = objective
        self._box = box
        self.weights = box.clip(start)
        self.value, self.gradient = objective(self.weights)
        self.sample = objective.sample(objective.default_sample())
        """Rows that the Hessian comes from."""

        self._matrix: Floats | None = None
        self._damps = not objective.is_convex
        self._damping = _FIRST_DAMPING if self._damps else 0.0
        self.is_current = False
        self.records: list[dict[str, Any]] = []

    def direction(self) -> tuple[Floats, float]:
        """Minimise the quadratic model; return the step and what it promises."""
        low, high = self._box.lower - self.weights, self._box.upper - self.weights
        if self._matrix is None:
            self._refresh()
        assert self._matrix is not None
        matrix = self._matrix
        if self._damping:
            diagonal = np.diag(matrix)
            least = 1e-6 * float(diagonal.mean())
            matrix = matrix + np.diag(self._damping * np.maximum(diagonal, least))
        # Scaled by the curvature of each weight: attributes whose log-likelihoods
        # differ by many orders of magnitude would swamp each other otherwise.
        roots = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
        scaled = matrix / np.outer(roots, roots), self.gradient / roots
        accuracy = 1e-12 if self._is_exact else _ROUGH_ACCURACY
        step = box_minimum(*scaled, low * roots, high * roots, accuracy) / roots
        curvature = float(step @ matrix @ step)
        return step, -(float(self.gradient @ step) + 0.5 * curvature)

    def _refresh(self) -> None:
        """Make the Hessian at the current weights, positive definite in any case."""
        # A sample's exact Hessian is hardly ever definite if the loss is not convex.
        exact = self._objective.is_convex or self.sample.is_all
        matrix = self.sample.hessian(self.weights, exact=exact)
        # A value that no sampled row has leaves a flat direction that the full
        # data do not have; a little damping keeps such steps short.
        share = 1e-12 if self.sample.is_all else 1e-6
        if not self._objective.is_convex:
            share = 1e-6
            if exact and not _is_positive(self._free(matrix)):
                matrix = self.sample.hessian(self.weights, exact=False)
        diagonal = np.diag(matrix)
        level = max(float(diagonal.mean()), 1e-300)
        fill = np.where(diagonal > 0, diagonal, level)
        self._matrix = matrix + share * np.diag(fill)
        self.is_current = True

    def _free(self, matrix: Floats) -> Floats:
        """Return the rows and columns of weights that are not at a bound."""
        at_bound = (self.weights <= self._box.lower) & (self.gradient > 0)
        at_bound |= (self.weights >= self._box.upper) & (self.gradient < 0)
        free = np.flatnonzero(~at_bound)
        return np.asarray(matrix[np.ix_(free, free)])

    def move(self, direction: Floats, promised: float) -> bool:
        """Go along a direction; return whether the objective went down."""
        slope = float(self.gradient @ direction)
        t, before = 1.0, self.value
        while t >= _MIN_STEP:
            weights = self._box.clip(self.weights + t * direction)
            value, gradient = self._objective(weights)
            if value <= before + _ARMIJO * t * min(slope, 0.0) and value < before:
                break
            if self._damps or promised <= 1e-15 * max(1.0, abs(before)):
                return False
            # A cubic would need more; halving twice as long steps costs one pass each.
            t *= 0.5 if t > 0.1 else 0.1
        else:
            return False
        step, gradient_change = weights - self.weights, gradient - self.gradient
        self.weights, self.value, self.gradient = weights, value, gradient
        slopes = self._box.projected(weights, gradient)
        note_iteration(self.records, self._objective, value, slopes, t)
        self.is_current = False
        wanted = promised if t == 1.0 else -t * slope * (1 - 0.5 * t)
        self._learn(
            step, gradient_change, t, (before - value) / wanted if wanted else 1.0
        )
        return True

    def _learn(
        self, step: Floats, gradient_change: Floats, t: float, quality: float
    ) -> None:
        """Correct the Hessian by what a step has shown, or have it recomputed."""
        fresh = _MIN_STEP_QUALITY_DAMPED if self._damps else _MIN_STEP_QUALITY
        if t < _MIN_STEP_LENGTH or quality < fresh or self._is_exact:
            self._matrix = None
        elif self._matrix is not None:
            self._matrix = bfgs(self._matrix, step, gradient_change)
        if not self._damps:
            self._damping = 0.0 if t == 1.0 else self._damping
        elif quality > 0.75:
            self._damping /= 3.0
            if self._damping < _MIN_DAMPING:
                self._damping = 0.0
        elif quality < 0.25:
            self._damping = max(4.0 * self._damping, _MIN_DAMPING)

    def sharpen(self) -> bool:
        """After a failed step: fresher Hessian, more rows, or more damping."""
        if not self.is_current:
            self._matrix = None
            return True
        if self._damps and self._damping < _MAX_DAMPING:
            self._damping = max(4.0 * self._damping, _FIRST_DAMPING)
            return True
        if not self.sample.is_all:
            rows = min(4 * self.sample.n_rows, self._objective.n_rows)
            cells = rows * len(self.weights)
            if cells <= 4e8:
                self.sample = self._objective.sample(rows)
                self._matrix = None
                self.is_current = False
                self._damping = _FIRST_DAMPING if self._damps else 0.0
                return True
        if not self._damps and self._damping < 1e3 and not self.is_flat(1e-13):
            self._damping = max(1e-3, 10.0 * self._damping)
            self._matrix = None
            return True
        return False

    @property
    def is_damped(self) -> bool:
        """Whether steps are short because longer ones failed."""
        return self._damps and self._damping > 1.0

    @property
    def _is_exact(self) -> bool:
        """Whether the Hessian is kept exact, which converges quadratically.

        Cheap enough for small problems only.
        """
        return self.sample.is_all and len(self.weights) <= _MAX_EXACT_WEIGHTS

    def enough(self, tol: float) -> float:
        """Promised decrease at which to stop.

        With the exact Hessian one more step squares the error, and costs little; so
        small problems are solved to the last digits.
        """
        relative = max(tol * tol, 1e-16) if self._is_exact else tol
        return relative * max(abs(self.value), tol)

    def is_flat(self, tol: float) -> bool:
        """Whether the first-order conditions hold up to rounding errors."""
        return self._box.is_flat(self.weights, self.value, self.gradient, tol)


def bfgs(matrix: Floats, step: Floats, gradient_change: Floats) -> Floats:
    r"""Change a Hessian so that it explains how a step changed the gradient.

    .. math:: H + \frac{y y^\top}{y^\top s} - \frac{H s s^\top H}{s^\top H s}

    with Powell's correction of y (1978, Lecture Notes in Mathematics 630, 144-157),
    which keeps the matrix positive definite.
    """
    product = matrix @ step
    expected, observed = float(step @ product), float(step @ gradient_change)
    if expected <= 0.0:
        return matrix
    if observed < 0.2 * expected:
        share = 0.8 * expected / (expected - observed)
        gradient_change = share * gradient_change + (1.0 - share) * product
        observed = float(step @ gradient_change)
    return (
        matrix
        + np.outer(gradient_change, gradient_change) / observed
        - np.outer(product, product) / expected
    )


def _is_positive(matrix: Floats) -> bool:
    try:
        np.linalg.cholesky(matrix + 1e-12 * np.eye(len(matrix)) * np.trace(matrix))
    except np.linalg.LinAlgError:
        return False
    return True
