"""Limited-memory quasi-Newton: by SciPy within bounds, preconditioned without.

The preconditioner is a rough Hessian, if an objective has one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np

from steelyard._common.arrays import Floats
from steelyard._common.settings import NONE, number, setting, whole
from steelyard._common.threads import one_blas_thread
from steelyard.solvers.base import (
    AnyObjective,
    Box,
    IterativeSolver,
    Preconditioner,
    Solution,
    Status,
    note_iteration,
    runaway,
)

# Iterations between two preconditioners, and correction pairs.
_ITERATIONS_PER_STAGE = 40
_CORRECTIONS = 15

_ARMIJO = 1e-4
_MIN_STEP = 1e-10


class LBFGS(IterativeSolver):
    """L-BFGS-B (Byrd, Lu, Nocedal & Zhu, 1995), SciPy's.

    If the objective has a preconditioner, and weights have no bounds, it is minimised
    in scaled weights.
    """

    memory: int = setting(default=20, allowed=whole(1), about="Correction pairs.")
    gradient_tol: float | None = setting(
        default=None,
        allowed=NONE | number(0.0),
        about="Stop when no projected gradient entry exceeds this; None takes the "
        "objective at the start times a ten-thousandth of the square root of ``tol``.",
    )
    start: float | None = setting(
        default=None,
        allowed=NONE | number(),
        about="Where all weights begin; None begins at naive Bayes, with ones.",
    )

    is_rough: ClassVar[bool] = False

    def minimize(self, objective: AnyObjective, start: Floats, box: Box) -> Solution:
        """Minimise from a start, within bounds."""
        if self.start is not None:
            start = np.full_like(start, self.start)
        if box.is_everywhere and self.gradient_tol is None:
            with one_blas_thread():
                scaling = objective.preconditioner(start, box)
                if scaling is not None:
                    stage = partial(Stage, self, objective, box)
                    return descend_in_stages(stage, start, scaling)
        inside = box.clip(start)
        if (box.lower == box.upper).all():
            return Solution(inside, objective(inside)[0], "converged", 0)
        return _descend_within(box, self, objective, inside)


class RoughLBFGS(LBFGS):
    r"""The same for fits that are only compared: it stops if about enough is gained.

    Half the square of the gradient is too much by ten and more. What the steps have
    taught of the curvature, half of :math:`g^\top H g`, is too little, since they were
    few. Their geometric mean is mostly within a factor of three of what is left.
    """

    is_rough: ClassVar[bool] = True


class Stage:
    """Iterations of L-BFGS with one preconditioner, in whose scale curvatures are one.

    There a gradient g promises a decrease of about half its square, which decides when
    to stop.
    """

    def __init__(
        self, solver: Any, objective: AnyObjective, box: Box, scaling: Preconditioner
    ) -> None:
        self.solver, self.objective, self.box = solver, objective, box
        self.scaling, self.curved = scaling, InverseHessian(0)

    def run(self, start: Floats, records: list[dict[str, Any]]) -> Solution:
        """Iterate until little is left to gain, or a new preconditioner is due."""
        scaling, last = self.scaling, np.empty(0)

        def evaluate(y: Floats) -> tuple[float, Floats]:
            nonlocal last
            value, last = self.objective(scaling.weights(y))
            return value, scaling.gradient(last)

        y = scaling.vector(start)
        self.curved = InverseHessian(len(y))
        y = self.feasible(y)
        value, gradient = evaluate(y)
        status: Status = "iterations"
        n_left = self.solver.max_iter - len(records)
        for _ in range(min(_ITERATIONS_PER_STAGE, n_left)):
            step = self.step(y, gradient)
            slope = float(gradient @ step)
            moved = None
            if not self.is_done(value, gradient, slope):
                moved = search_step(evaluate, y, step, slope, value, value)
                if moved is None and self.restarts():
                    continue
            if moved is None:
                # If no step goes down, that is as far as rounding lets it.
                status = "converged"
                break
            t, value, new_gradient = moved
            self.curved.learn(t * step, new_gradient - gradient)
            y, gradient = y + t * step, new_gradient
            note_iteration(records, self.objective, value, last, t)
        return Solution(scaling.weights(y), value, status, len(records), records)

    def feasible(self, y: Floats) -> Floats:
        """Return the nearest scaled weights that satisfy the constraints."""
        return y

    def step(self, y: Floats, gradient: Floats) -> Floats:
        """Return the step to the minimum of the quadratic model."""
        step = -self.curved.solve(gradient, is_next=True)
        if not self.curved.n_pairs:
            step /= max(1.0, float(np.linalg.norm(step)))
        return step

    def is_done(self, value: float, gradient: Floats, slope: float) -> bool:
        """Whether little is left to gain, after one step at least, or nothing."""
        square = float(gradient @ gradient)
        if self.solver.is_rough:
            square = float(np.sqrt(max(-slope * square, 0.0)))
        is_little = 0.5 * square <= self.solver.tol * max(value, 1e-300)
        return is_little and (self.curved.n_pairs > 0 or not gradient.any())

    def restarts(self) -> bool:
        """Whether to forget the matrix after a step that did not go down."""
        return False


def descend_in_stages(
    stage: Callable[[Preconditioner], Stage], start: Floats, scaling: Preconditioner
) -> Solution:
    """Minimise with preconditioners that are recomputed every few iterations.

    The curvature at the start, where naive Bayes is overconfident, is not that at the
    end.
    """
    records: list[dict[str, Any]] = []
    while True:
        steps = stage(scaling)
        solution = steps.run(start, records)
        if solution.status != "iterations" or len(records) >= steps.solver.max_iter:
            return solution
        start = solution.weights
        scaling = steps.objective.preconditioner(start, steps.box) or scaling


class InverseHessian:
    r"""The inverse matrix of L-BFGS (Byrd, Nocedal and Schnabel, 1994).

    .. math:: H = \gamma I + \Psi M \Psi^\top, \qquad \Psi = (S, Y)

    with the last steps S, and how these changed the gradient, Y.
    """

    def __init__(self, size: int, scale: float = 1.0) -> None:
        self.scale = scale
        self.n_pairs = 0
        """Number of steps learned from."""

        self._psi = np.empty((_CORRECTIONS, 2, size))
        self._places = np.empty(0, dtype=np.int64)
        """Slots of the pairs, from the first to the last."""

        self._inverse, self._bends = np.zeros((2, _CORRECTIONS, _CORRECTIONS))
        """Of the upper triangle of S'Y, and products Y'Y, in that order."""

        self._curved = np.zeros(_CORRECTIONS)
        """The diagonal D of S'Y."""

        self._asked: Floats | None = None
        """Products of Psi with the last vector asked for and the changes since."""

    @property
    def _known(self) -> Floats:
        return self._psi[: self.n_pairs].reshape(2 * self.n_pairs, self._psi.shape[2])

    def learn(self, step: Floats, bend: Floats) -> None:
        """Learn from how a step changed the gradient."""
        product, square = float(step @ bend), float(bend @ bend)
        asked, self._asked = self._asked, None
        if product <= 1e-12 * np.sqrt(float(step @ step) * square):
            return
        if self.n_pairs < _CORRECTIONS:
            slot, self.n_pairs = self.n_pairs, self.n_pairs + 1
        else:
            slot, self._places = int(self._places[0]), self._places[1:]
            for matrix in (self._inverse, self._bends):
                matrix[:-1, :-1] = matrix[1:, 1:].copy()
            self._curved[:-1] = self._curved[1:].copy()
        self._places = places = np.append(self._places, slot)
        self._psi[slot, 0], self._psi[slot, 1] = step, bend
        n, self.scale = self.n_pairs, product / square
        with_bend = (self._known @ bend).reshape(n, 2)
        if asked is not None:
            self._asked = with_bend.copy()
            self._asked[: len(asked)] += asked
        of_steps, of_bends = with_bend[places].T
        # The inverse of a triangle with one more column.
        self._inverse[: n - 1, n - 1] = self._inverse[: n - 1, : n - 1] @ of_steps[:-1]
        self._inverse[: n - 1, n - 1] /= -product
        self._inverse[n - 1, : n - 1], self._inverse[n - 1, n - 1] = 0.0, 1.0 / product
        self._bends[:n, n - 1] = self._bends[n - 1, :n] = of_bends
        self._curved[n - 1] = product

    def solve(self, v: Floats, is_next: bool = False) -> Floats:
        """Return H times a vector.

        With ``is_next`` it is the last one and the change that was learned since: most
        of its products with Psi have been computed.
        """
        n, places, psi = self.n_pairs, self._places, self._known
        if not n:
            return self.scale * v
        if is_next and self._asked is not None:
            products = self._asked
            products[places[-1]] = self._psi[places[-1]] @ v
        else:
            products = (psi @ v).reshape(n, 2)
        self._asked = products
        with_steps, with_bends = products[places].T
        inverse, out = self._inverse[:n, :n], np.empty((n, 2))
        of_bends = inverse @ with_steps
        inner = self._curved[:n] * of_bends
        inner += self.scale * (self._bends[:n, :n] @ of_bends - with_bends)
        out[places, 0], out[places, 1] = inner @ inverse, -self.scale * of_bends
        result = out.ravel() @ psi
        result += self.scale * v
        return result

    def factors(self, rows: Floats) -> tuple[Floats, Floats]:
        """Return products of rows with Psi, and M."""
        n, inverse = self.n_pairs, self._inverse[: self.n_pairs, : self.n_pairs]
        inner = self.scale * self._bends[:n, :n] + np.diag(self._curved[:n])
        middle, at = np.zeros((n, 2, n, 2)), np.ix_(self._places, self._places)
        middle[:, 0, :, 0][at] = inverse.T @ inner @ inverse
        middle[:, 0, :, 1][at] = -self.scale * inverse.T
        middle[:, 1, :, 0][at] = -self.scale * inverse
        return rows @ self._known.T, middle.reshape(2 * n, 2 * n)


def _descend_within(
    box: Box, solver: LBFGS, objective: AnyObjective, x: Floats
) -> Solution:
    """Minimise by SciPy's L-BFGS-B, which is resumed as long as that helps."""
    from scipy.optimize import Bounds, minimize

    records: list[dict[str, Any]] = []
    n_iter, before, value, scale = 0, np.inf, np.inf, 1.0
    gradient = np.empty(0)
    stopped: Status | None = None
    ftol, gtol = solver.tol, solver.gradient_tol

    def scaled(x: Floats) -> tuple[float, Floats]:
        nonlocal gradient
        value, gradient = objective(x)
        return scale * value, scale * gradient

    def note(intermediate_result: Any) -> None:
        nonlocal stopped
        x = np.asarray(intermediate_result.x)
        value = float(intermediate_result.fun) / scale
        note_iteration(records, objective, value, box.projected(x, gradient))
        if solver.gradient_tol is None:
            stopped = runaway(objective, value, box)
        if stopped:
            raise StopIteration

    if solver.gradient_tol is None:
        value = objective(x)[0]
        at_start = runaway(objective, value, box)
        if at_start:
            return Solution(x, value, at_start, 1, records)
    while True:
        if solver.gradient_tol is None:
            # The decrease of one iteration shows little of what remains: go on until
            # the gradient agrees, for the objective that there is now, which may be a
            # tiny part of that at the start. SciPy measures decreases against 1 at
            # least, so an objective below that is scaled up; and a large one that is
            # not at its minimum yet is scaled down, since no projected gradient is
            # longer than the way to a bound.
            value = max(value, 1e-300)
            scale = max(1.0, 1.0 / value) if before == np.inf else 1.0 / value
            ftol = 1e-5 * solver.tol
            gtol = 1e-4 * np.sqrt(solver.tol) * value * scale
        result = minimize(
            scaled,
            x,
            jac=True,
            method="L-BFGS-B",
            bounds=Bounds(box.lower, box.upper),
            callback=note,
            options={
                "maxcor": solver.memory,
                "maxiter": solver.max_iter - n_iter,
                "maxfun": 20 * solver.max_iter,
                "ftol": ftol,
                "gtol": gtol,
            },
        )
        x, value = np.asarray(result.x), float(result.fun) / scale
        n_iter += int(result.nit)
        at_end = x, value, np.asarray(result.jac) / scale
        is_flat = box.is_flat(*at_end, solver.tol)
        status: Status = "converged"
        if stopped:
            status = stopped
        elif result.status == 1 or n_iter >= solver.max_iter:
            status = "converged" if is_flat else "iterations"
        elif solver.gradient_tol is not None:
            status = "converged" if is_flat or result.status == 0 else "stalled"
        elif not box.is_flat(*at_end, min(solver.tol, 1e-10)):
            if value < before - solver.tol * abs(value):
                # A step of next to nothing ends the search even on a slope: go on from
                # there with an empty memory, as long as that helps.
                before = value
                continue
            status = "converged" if is_flat else "stalled"
        return Solution(x, value, status, n_iter, records)


def published_lbfgs() -> LBFGS:
    """Return L-BFGS-B with the settings found in published implementations.

    Five correction pairs, factr = 1e7, no gradient test, at most 100 iterations.
    """
    machine = float(np.finfo(np.float64).eps)
    return LBFGS(tol=1e7 * machine, max_iter=100, memory=5, gradient_tol=1e-33)


def search_step(
    objective: Callable[[Floats], tuple[float, Floats]],
    x: Floats,
    step: Floats,
    slope: float,
    value: float,
    largest: float,
) -> tuple[float, float, Floats] | None:
    """Shorten a step until the objective is below the largest of the last values."""
    t = 1.0
    while t >= _MIN_STEP:
        new, gradient = objective(x + t * step)
        if new <= largest + _ARMIJO * t * slope:
            return t, new, gradient
        # The minimum of the parabola through both values and the slope, within limits.
        above = new - value - t * slope
        best = -0.5 * t * t * slope / above if above > 0.0 else 0.0
        t = min(max(best, 0.1 * t), 0.5 * t)
    return None
