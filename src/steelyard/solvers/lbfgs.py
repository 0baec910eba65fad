"""Limited-memory quasi-Newton: by SciPy within bounds, preconditioned without.

The preconditioner is a rough Hessian, if an objective has one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from steelyard._common.arrays import Floats
from steelyard._common.settings import NONE, number, setting, whole
from steelyard._common.threads import one_blas_thread
from steelyard.solvers.base import (
    AnyObjective,
    Box,
    Preconditioner,
    Solution,
    Solver,
    Status,
    note_iteration,
    runaway,
)

# Iterations between two preconditioners, and correction pairs.
_ITERATIONS_PER_STAGE = 40
_CORRECTIONS = 15

_ARMIJO = 1e-4
_MIN_STEP = 1e-10


class LBFGS(Solver):
    """L-BFGS-B (Byrd, Lu, Nocedal & Zhu, 1995), SciPy's.

    If the objective has a preconditioner, and weights have no bounds, it is minimised
    in scaled weights.
    """

    tol: float = setting(
        default=1e-10,
        allowed=number(0.0),
        about="Stop when an iteration lowers the objective by less than this share of "
        "it.",
    )
    max_iter: int = setting(
        default=1000, allowed=whole(1), about="Largest number of iterations."
    )
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

    def minimize(self, objective: AnyObjective, start: Floats, box: Box) -> Solution:
        """Minimise from a start, within bounds."""
        if self.start is not None:
            start = np.full_like(start, self.start)
        if box.is_everywhere and self.gradient_tol is None:
            with one_blas_thread():
                scaling = objective.preconditioner(start, box)
                if scaling is not None:
                    return self._preconditioned(objective, start, box, scaling)
        inside = box.clip(start)
        if (box.lower == box.upper).all():
            return Solution(inside, objective(inside)[0], "converged", 0)
        return _Descent(self, objective, box).run(inside)

    def _preconditioned(
        self, objective: AnyObjective, start: Floats, box: Box, scaling: Preconditioner
    ) -> Solution:
        """Minimise in scaled weights, whose curvature is about one everywhere.

        There a gradient g promises a decrease of about half its square, which decides
        when to stop. The scaling is recomputed every few iterations, since the
        curvature at the start, where naive Bayes is overconfident, is not that at the
        end.
        """
        records: list[dict[str, Any]] = []
        while True:
            solution = self._stage(objective, scaling, start, records)
            if solution.status != "iterations" or len(records) >= self.max_iter:
                return solution
            start = solution.weights
            scaling = objective.preconditioner(start, box) or scaling

    def _left(self, square: float, slope: float) -> float:
        """Estimate the remaining gain from the square of the scaled gradient."""
        return 0.5 * square

    def _stage(
        self,
        objective: AnyObjective,
        scaling: Preconditioner,
        start: Floats,
        records: list[dict[str, Any]],
    ) -> Solution:
        """Make some iterations with the same scaling."""
        y = scaling.vector(start)
        curved = InverseHessian(len(y))

        def function(y: Floats) -> tuple[float, Floats]:
            value, last["plain"] = objective(scaling.weights(y))
            return value, scaling.gradient(last["plain"])

        last: dict[str, Floats] = {}
        value, gradient = function(y)
        status: Status = "iterations"
        for _ in range(min(_ITERATIONS_PER_STAGE, self.max_iter - len(records))):
            step = -curved.solve(gradient, is_next=True)
            if not curved.n_pairs:
                step /= max(1.0, float(np.linalg.norm(step)))
            slope = float(gradient @ step)
            left = self._left(float(gradient @ gradient), slope)
            if curved.n_pairs and left <= self.tol * max(value, 1e-300):
                status = "converged"
                break
            step_taken = search_step(function, y, step, slope, value, value)
            if step_taken is None:
                # Where no step goes down, that is as far as rounding lets it.
                status = "converged"
                break
            t, value, new_gradient = step_taken
            curved.learn(t * step, new_gradient - gradient)
            y, gradient = y + t * step, new_gradient
            note_iteration(records, objective, value, last["plain"], t)
        return Solution(scaling.weights(y), value, status, len(records), records)


class RoughLBFGS(LBFGS):
    r"""The same for fits that are only compared: it stops when about enough is gained.

    Half the square of the gradient is too much by ten and more. What the steps have
    taught of the curvature, half of :math:`g^\top H g`, is too little, since they were
    few. Their geometric mean is mostly within a factor of three of what is left.
    """

    def _left(self, square: float, slope: float) -> float:
        return 0.5 * float(np.sqrt(max(-slope * square, 0.0)))


class InverseHessian:
    r"""The inverse matrix of L-BFGS (Byrd, Nocedal and Schnabel, 1994).

    .. math:: H = \gamma I + \Psi M \Psi^\top, \qquad \Psi = (S, Y)

    with the last steps S, and how these changed the gradient, Y.
    """

    def __init__(self, size: int, scale: float = 1.0) -> None:
        self.scale = scale
        self.n_pairs = 0
        """How many steps are known."""

        self._psi = np.empty((_CORRECTIONS, 2, size))
        self._places = np.empty(0, dtype=np.int64)
        """Where pairs are kept, from the first to the last."""

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

        ``is_next`` says that it is the last one and the change that was learned since:
        most of its products with Psi are known.
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


class _Descent:
    """One run of L-BFGS-B within bounds, resumed as long as that helps."""

    def __init__(self, solver: LBFGS, objective: AnyObjective, box: Box) -> None:
        self._solver = solver
        self._objective = objective
        self._box = box
        self._scale = 1.0
        self._gradient = np.empty(0)
        self._stopped: Status | None = None
        self._records: list[dict[str, Any]] = []

    def run(self, x: Floats) -> Solution:
        """Minimise from a point within the bounds."""
        solver, records = self._solver, self._records
        n_iter, before, value = 0, np.inf, np.inf
        if solver.gradient_tol is None:
            value = self._objective(x)[0]
            stopped = runaway(self._objective, value, self._box)
            if stopped:
                return Solution(x, value, stopped, 1, records)
        while True:
            if solver.gradient_tol is not None:
                ftol, gtol = solver.tol, solver.gradient_tol
            else:
                # The decrease of one iteration shows little of what remains: go on
                # until the gradient agrees, for the objective that there is now, which
                # may be a tiny part of that at the start. SciPy measures decreases
                # against 1 at least, so an objective below that is scaled up; and a
                # large one that is not at its minimum yet is scaled down, since no
                # projected gradient is longer than the way to a bound.
                value = max(value, 1e-300)
                is_first = before == np.inf
                self._scale = max(1.0, 1.0 / value) if is_first else 1.0 / value
                ftol = 1e-5 * solver.tol
                gtol = 1e-4 * np.sqrt(solver.tol) * value * self._scale
            result = self._minimize(x, solver.max_iter - n_iter, ftol, gtol)
            x, value = np.asarray(result.x), float(result.fun) / self._scale
            n_iter += int(result.nit)
            status = self._status(result, x, value, n_iter)
            if status is None and value < before - solver.tol * abs(value):
                # A step of next to nothing ends the search even on a slope: go on from
                # there with an empty memory, as long as that helps.
                before = value
                continue
            if status is None:
                status = "converged" if self._is_flat(result, x, value) else "stalled"
            return Solution(x, value, status, n_iter, records)

    def _minimize(self, x: Floats, max_iter: int, ftol: float, gtol: float) -> Any:
        from scipy.optimize import Bounds, minimize

        return minimize(
            self._scaled,
            x,
            jac=True,
            method="L-BFGS-B",
            bounds=Bounds(self._box.lower, self._box.upper),
            callback=self._note,
            options={
                "maxcor": self._solver.memory,
                "maxiter": max_iter,
                "maxfun": 20 * self._solver.max_iter,
                "ftol": ftol,
                "gtol": gtol,
            },
        )

    def _scaled(self, x: Floats) -> tuple[float, Floats]:
        value, gradient = self._objective(x)
        self._gradient = gradient
        return self._scale * value, self._scale * gradient

    def _note(self, intermediate_result: Any) -> None:
        x = np.asarray(intermediate_result.x)
        value = float(intermediate_result.fun) / self._scale
        step = self._box.projected(x, self._gradient)
        note_iteration(self._records, self._objective, value, step)
        stopped = runaway(self._objective, value, self._box)
        if stopped and self._solver.gradient_tol is None:
            self._stopped = stopped
            raise StopIteration

    def _is_flat(
        self, result: Any, x: Floats, value: float, most: float = np.inf
    ) -> bool:
        slope = np.asarray(result.jac) / self._scale
        return self._box.is_flat(x, value, slope, min(self._solver.tol, most))

    def _status(
        self, result: Any, x: Floats, value: float, n_iter: int
    ) -> Status | None:
        """Return the status of a run that has ended, None if it may continue."""
        if self._stopped is not None:
            return self._stopped
        if result.status == 1 or n_iter >= self._solver.max_iter:
            return "converged" if self._is_flat(result, x, value) else "iterations"
        if self._solver.gradient_tol is not None:
            flat = result.status == 0 or self._is_flat(result, x, value)
            return "converged" if flat else "stalled"
        return "converged" if self._is_flat(result, x, value, 1e-10) else None


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
        # The minimum of the parabola through what is known, within limits.
        above = new - value - t * slope
        best = -0.5 * t * t * slope / above if above > 0.0 else 0.0
        t = min(max(best, 0.1 * t), 0.5 * t)
    return None
