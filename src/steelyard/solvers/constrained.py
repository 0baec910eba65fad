"""Weights under linear constraints: quasi-Newton steps that keep to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from steelyard._common.arrays import Floats
from steelyard._common.settings import number, setting, whole
from steelyard._common.threads import one_blas_thread
from steelyard.solvers.base import (
    AnyObjective,
    Box,
    Solution,
    Solver,
    Status,
    Units,
    note_iteration,
)
from steelyard.solvers.lbfgs import search_step
from steelyard.solvers.quadratic_model import box_minimum

# Iterations between two choices of units, and correction pairs.
_ITERATIONS_PER_STAGE = 40
_CORRECTIONS = 15

# What is added to the diagonal of the dual problem: constraints of smooth curves are
# nearly dependent on each other. What it lets through is cut off at the end.
_ROUNDING = 1e-10

# A constraint counts as broken by so much of the largest.
_BROKEN = 1e-10
_MAX_ROUNDS = 50


@dataclass(frozen=True)
class Cone(Box):
    r"""Weights without bounds, with :math:`A w \ge 0`, or 0 for some rows of A."""

    rows: csr_array
    """A: shape (constraints, p)."""

    is_equal: NDArray[np.bool_]
    """Which rows hold with equality, shape (constraints,)."""


class ConstrainedNewton(Solver):
    r"""Limited-memory projected quasi-Newton steps (Schmidt and others, 2009).

    .. math:: d = \arg\min_{A (w + d) \ge 0}\; g^\top d + \tfrac12 d^\top B d

    with the matrix B of L-BFGS in the units of the objective. The step is found by its
    dual problem, which has a variable for each constraint and touches no rows. A line
    search goes along it; all points on the way satisfy the constraints.
    """

    tol: float = setting(
        default=1e-8,
        allowed=number(0.0),
        about="Stop when a step promises to lower the objective by less than a tenth "
        "of this share of it.",
    )
    max_iter: int = setting(
        default=1000, allowed=whole(1), about="Largest number of iterations."
    )

    def minimize(self, objective: AnyObjective, start: Floats, box: Box) -> Solution:
        """Minimise from a start, under the constraints of a cone."""
        assert isinstance(box, Cone)
        records: list[dict[str, Any]] = []
        with one_blas_thread():
            while True:
                units = objective.units(start, box)
                stage = _Stage(objective, box, units)
                solution = stage.run(start, records, 0.1 * self.tol, self.max_iter)
                if solution.status != "iterations" or len(records) >= self.max_iter:
                    return solution
                start = solution.weights


class _Stage:
    """Some iterations in the same units."""

    def __init__(self, objective: AnyObjective, cone: Cone, units: Units | None):
        self._objective, self._units = objective, units
        rows = cone.rows.toarray()
        if units is not None:
            rows = np.array([units.gradient(row) for row in rows])
        self._rows = rows / np.maximum(np.linalg.norm(rows, axis=1), 1e-300)[:, None]
        self._low = np.where(cone.is_equal, -np.inf, 0.0)
        self._multipliers = np.zeros(len(rows))
        self._gram = self._rows @ self._rows.T

    def _weights(self, y: Floats) -> Floats:
        return y if self._units is None else self._units.weights(y)

    def _evaluate(self, y: Floats) -> tuple[float, Floats]:
        value, gradient = self._objective(self._weights(y))
        return value, gradient if self._units is None else self._units.gradient(
            gradient
        )

    def run(
        self, start: Floats, records: list[dict[str, Any]], tol: float, max_iter: int
    ) -> Solution:
        """Go on until a step promises little, or for so many iterations."""
        y = start if self._units is None else self._units.vector(start)
        curved = _Curvature(len(y))
        # The nearest point that satisfies the constraints.
        y = y + self._step(y, np.zeros_like(y), curved)
        self._multipliers[:] = 0.0
        value, gradient = self._evaluate(y)
        status: Status = "iterations"
        for _ in range(min(_ITERATIONS_PER_STAGE, max_iter - len(records))):
            step = self._step(y, gradient, curved)
            slope = float(gradient @ step)
            note_iteration(records, self._objective, value, gradient)
            if -slope <= tol * abs(value) and (curved.n_pairs or slope >= 0.0):
                status = "converged"
                break
            found = None
            if slope < 0.0:
                found = search_step(self._evaluate, y, step, slope, value, value)
            if found is None:
                # As far as rounding lets it, unless an old matrix is to blame.
                if not curved.n_pairs:
                    status = "converged"
                    break
                curved = _Curvature(len(y), curved.scale)
                continue
            t, value, new_gradient = found
            curved.learn(t * step, new_gradient - gradient)
            y, gradient = y + t * step, new_gradient
        return Solution(self._weights(y), value, status, len(records), records)

    def _step(self, y: Floats, gradient: Floats, curved: _Curvature) -> Floats:
        """Minimise the quadratic model under the constraints.

        Only those that the step without them breaks have multipliers at first, and
        those that had some before; what these break is added.
        """
        free = -curved.solve(gradient)
        level = self._rows @ (y + free)
        is_equal, known = np.isinf(self._low), self._multipliers
        left, middle = curved.factors(self._rows)
        chosen = is_equal | (level < 0.0) | (known > 0.0)
        step = free
        for _ in range(_MAX_ROUNDS):
            if not chosen.any():
                break
            places = np.flatnonzero(chosen)
            matrix = curved.scale * self._gram[np.ix_(places, places)]
            matrix += left[places] @ middle @ left[places].T
            matrix[np.diag_indices(len(places))] *= 1.0 + _ROUNDING
            before, low = known[places], self._low[places]
            slope = level[places] + matrix @ before
            high = np.full(len(places), np.inf)
            change = box_minimum(matrix, slope, low - before, high)
            known[places] = np.maximum(before + change, low)
            step = free + curved.solve(known @ self._rows)
            now = self._rows @ (y + step)
            broken = (now < -_BROKEN * np.abs(level).max()) & ~chosen
            if not broken.any():
                break
            chosen |= broken
        return step


class _Curvature:
    r"""The inverse matrix of L-BFGS (Byrd, Nocedal and Schnabel, 1994).

    .. math:: H = \gamma I + \Psi M \Psi^\top, \qquad \Psi = (S, \gamma Y)
    """

    def __init__(self, size: int, scale: float = 1.0) -> None:
        self.scale = scale
        self._steps = np.empty((0, size))
        self._bends = np.empty((0, size))
        self._middle = np.empty((0, 0))

    @property
    def n_pairs(self) -> int:
        """How many steps have been learned from."""
        return len(self._steps)

    def learn(self, step: Floats, bend: Floats) -> None:
        """Learn from how a step changed the gradient."""
        product = float(step @ bend)
        if product <= 1e-12 * np.linalg.norm(step) * np.linalg.norm(bend):
            return
        self._steps = np.vstack([self._steps[1 - _CORRECTIONS :], step])
        self._bends = np.vstack([self._bends[1 - _CORRECTIONS :], bend])
        self.scale = product / float(bend @ bend)
        products = self._steps @ self._bends.T
        inverse = np.linalg.inv(np.triu(products))
        inner = np.diag(np.diag(products))
        inner += self.scale * self._bends @ self._bends.T
        n = len(products)
        self._middle = np.zeros((2 * n, 2 * n))
        self._middle[:n, :n] = inverse.T @ inner @ inverse
        self._middle[:n, n:] = -inverse.T
        self._middle[n:, :n] = -inverse

    def _psi(self) -> Floats:
        return np.vstack([self._steps, self.scale * self._bends])

    def solve(self, v: Floats) -> Floats:
        """Return H times a vector."""
        psi = self._psi()
        return self.scale * v + (self._middle @ (psi @ v)) @ psi

    def factors(self, rows: Floats) -> tuple[Floats, Floats]:
        """Return products of rows with Psi, and M."""
        return rows @ self._psi().T, self._middle
