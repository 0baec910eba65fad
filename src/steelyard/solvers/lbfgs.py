"""Limited-memory quasi-Newton within bounds, by SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.threads import one_blas_thread
from steelyard.fitting.objective import Objective
from steelyard.fitting.preconditioner import ClassUnits
from steelyard.solvers.base import (
    Solution,
    Solver,
    Status,
    is_flat,
    note_iteration,
    projected_gradient,
    runaway,
)
from steelyard.weighting import HierarchicalWeighting

__all__ = ["LBFGS", "published_lbfgs"]

# Iterations, and correction pairs, between two choices of units.
_STAGE = 40


class LBFGS(Solver):
    """L-BFGS-B (Byrd, Lu, Nocedal & Zhu, 1995), SciPy's.

    Parameters
    ----------
    tol : float, default=1e-10
        Stop when an iteration lowers the objective by less than this share of it.
    max_iter : int, default=1000
        Largest number of iterations.
    memory : int, default=20
        Correction pairs.
    gradient_tol : float or None, default=None
        Stop when no projected gradient entry exceeds this; None takes the objective at
        the start times a ten-thousandth of the square root of ``tol``.
    keeps_units : bool, default=False
        Whether a series of problems that differ little, solved one after the other, is
        solved in the units of the first (hierarchical weights only).
    """

    def __init__(
        self,
        tol: float = 1e-10,
        max_iter: int = 1000,
        memory: int = 20,
        gradient_tol: float | None = None,
        keeps_units: bool = False,
    ) -> None:
        self.tol = tol
        self.max_iter = max_iter
        self.memory = memory
        self.gradient_tol = gradient_tol
        self.keeps_units = keeps_units

    def minimize(
        self,
        objective: Objective,
        start: NDArray[np.float64],
        lower: NDArray[np.float64],
        upper: NDArray[np.float64],
    ) -> Solution:
        """Minimise from a start, within bounds."""
        from scipy.optimize import Bounds, minimize

        free = np.isinf(lower).all() and np.isinf(upper).all()
        nested = isinstance(objective.weighting, HierarchicalWeighting)
        if nested and free and self.gradient_tol is None and objective.penalty:
            with one_blas_thread():
                return self._in_units(objective, start)
        records: list[dict[str, Any]] = []
        best: dict[str, Any] = {}
        scale = 1.0

        def function(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            value, gradient = objective(x)
            best.update(gradient=gradient)
            return scale * value, scale * gradient

        def callback(intermediate_result: Any) -> None:
            x = np.asarray(intermediate_result.x)
            value = float(intermediate_result.fun) / scale
            gradient = best["gradient"]
            step = projected_gradient(x, gradient, lower, upper)
            note_iteration(records, objective, value, step)
            stopped = runaway(objective, value, lower, upper)
            if stopped and self.gradient_tol is None:
                best["status"] = stopped
                raise StopIteration

        inside = np.clip(start, lower, upper)
        if (lower == upper).all():
            return Solution(inside, objective(inside)[0], "converged", 0)
        ftol, gtol = self.tol, self.gradient_tol
        if gtol is None:
            # The decrease of one iteration says little about what is left: go on until
            # the gradient agrees. SciPy measures decreases against 1 at least, so an
            # objective below that is scaled up.
            first = objective(inside)[0]
            stopped = runaway(objective, first, lower, upper)
            if stopped:
                return Solution(inside, first, stopped, 1, records)
            first = max(first, 1e-300)
            scale = max(1.0, 1.0 / first)
            ftol, gtol = 1e-5 * self.tol, 1e-4 * np.sqrt(self.tol) * first * scale
        x, n_iter, before = inside, 0, np.inf
        while True:
            result = minimize(
                function,
                x,
                jac=True,
                method="L-BFGS-B",
                bounds=Bounds(lower, upper),
                callback=callback,
                options={
                    "maxcor": self.memory,
                    "maxiter": self.max_iter - n_iter,
                    "maxfun": 20 * self.max_iter,
                    "ftol": ftol,
                    "gtol": gtol,
                },
            )
            x, value = np.asarray(result.x), float(result.fun) / scale
            n_iter += int(result.nit)
            slope = np.asarray(result.jac) / scale
            flat = is_flat(x, value, slope, lower, upper, self.tol)
            status: Status = "converged"
            if "status" in best:
                status = best["status"]
            elif result.status == 1 or n_iter >= self.max_iter:
                status = "converged" if flat else "iterations"
            elif self.gradient_tol is not None:
                status = "converged" if result.status == 0 or flat else "stalled"
            elif not is_flat(x, value, slope, lower, upper, min(self.tol, 1e-10)):
                # A step of next to nothing ends the search even on a slope: go on from
                # there with an empty memory, as long as that helps.
                if value < before - self.tol * abs(value):
                    before = value
                    continue
                status = "converged" if flat else "stalled"
            return Solution(x, value, status, n_iter, records)

    def _in_units(self, objective: Objective, start: NDArray[np.float64]) -> Solution:
        """Minimise in units in which the curvature is about one everywhere.

        There a gradient g promises a decrease of about half its square, which tells
        when to stop. The units are made anew every so many iterations, since the
        curvature at the start, where naive Bayes is too sure, is not that at the end.
        """
        records: list[dict[str, Any]] = []
        units: ClassUnits | None = getattr(self, "_units", None)
        while True:
            if units is None:
                units = ClassUnits(objective, start)
                if self.keeps_units:
                    self._units = units
            found = self._stage(objective, units, start, records)
            if found.status != "iterations" or len(records) >= self.max_iter:
                return found
            start, units = found.weights, None

    def _stage(
        self,
        objective: Objective,
        units: ClassUnits,
        start: NDArray[np.float64],
        records: list[dict[str, Any]],
    ) -> Solution:
        """Go on for some iterations in the same units."""
        from scipy.optimize import minimize

        last: dict[str, Any] = {}

        def function(y: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            value, gradient = objective(units.weights(y))
            last.update(plain=gradient, own=units.gradient(gradient))
            return value, last["own"]

        def callback(intermediate_result: Any) -> None:
            value = float(intermediate_result.fun)
            note_iteration(records, objective, value, last["plain"])
            promised = 0.5 * float(last["own"] @ last["own"])
            if promised <= self.tol * max(value, 1e-300):
                raise StopIteration

        result = minimize(
            function,
            units.vector(start),
            jac=True,
            method="L-BFGS-B",
            callback=callback,
            options={
                "maxcor": _STAGE,
                "maxiter": min(_STAGE, self.max_iter - len(records)),
                "maxfun": 20 * self.max_iter,
                "ftol": 0.0,
                "gtol": 0.0,
            },
        )
        # Where no step goes down any further, that is as far as rounding lets it.
        status: Status = "iterations" if result.status == 1 else "converged"
        weights = units.weights(np.asarray(result.x))
        return Solution(weights, float(result.fun), status, len(records), records)


def published_lbfgs() -> LBFGS:
    """Return L-BFGS-B with the settings found in published implementations.

    Five correction pairs, factr = 1e7, no gradient test, at most 100 iterations.
    """
    machine = float(np.finfo(np.float64).eps)
    return LBFGS(tol=1e7 * machine, max_iter=100, memory=5, gradient_tol=1e-33)
