"""The interface of solvers, and the choice of one for a problem."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats
from steelyard._common.settings import DeclaredPart, number, setting, whole
from steelyard.exceptions import ParameterError

Status = Literal["converged", "iterations", "separable", "stalled"]

# Weights beyond this, or a loss below this share of the rows, mean that the optimum is
# at infinity.
_MAX_WEIGHT = 1e3
_MIN_LOSS_PER_ROW = 1e-6

# Newton steps for what the steps of weights have in common, and their accuracy.
_MAX_ROUNDS = 100
_ACCURACY = 1e-12


class Preconditioner(Protocol):
    """A preconditioner: scaled weights, in which curvatures are about one."""

    def weights(self, y: Floats) -> Floats:
        """Turn scaled weights into weights."""

    def vector(self, weights: Floats) -> Floats:
        """Turn weights into scaled ones."""

    def gradient(self, gradient: Floats) -> Floats:
        """Turn a gradient by weights into one by scaled weights."""


@dataclass(frozen=True)
class LowRankPreconditioner:
    r"""A rough Hessian :math:`P = \mathrm{diag}(a) + B B^\top`, with few columns of B.

    Bounds on weights are no bounds on scaled weights: steps within bounds are taken in
    the norm of P instead.
    """

    diagonal: Floats
    """Curvature of each weight by itself, a: shape (p,), positive."""

    common: Floats
    """Directions that all weights share, B: shape (p, r)."""

    @cached_property
    def _roots(self) -> tuple[Floats, Floats, NDArray[Any]]:
        """Scale of each weight; scaled directions, and their root curvatures."""
        scale = 1.0 / np.sqrt(self.diagonal)
        directions, sizes, _ = np.linalg.svd(scale[:, None] * self.common, False)
        return scale, directions, np.sqrt(1.0 + sizes**2)

    def _stretched(self, v: Floats, power: int) -> Floats:
        _, directions, roots = self._roots
        if not len(roots):
            return v
        return v + directions @ ((roots**power - 1.0) * (v @ directions))

    def weights(self, y: Floats) -> Floats:
        """Turn scaled weights into weights."""
        return self._roots[0] * self._stretched(y, -1)

    def vector(self, weights: Floats) -> Floats:
        """Turn weights into scaled ones."""
        return self._stretched(weights / self._roots[0], 1)

    def gradient(self, gradient: Floats) -> Floats:
        """Turn a gradient by weights into one by scaled weights."""
        return self._stretched(self._roots[0] * gradient, -1)

    def square(self, step: Floats) -> float:
        """Return the squared length of a step."""
        shared = step @ self.common
        return float(step @ (self.diagonal * step) + shared @ shared)

    def step(self, slope: Floats, low: Floats, high: Floats) -> Floats:
        r"""Minimise :math:`g^\top d + \tfrac12 d^\top P d` over :math:`l \le d \le u`.

        Given :math:`\lambda = B^\top d` weights are independent. That vector is where
        a concave function of r variables is largest, by Newton's method.
        """
        common, at = self.common, np.zeros(self.common.shape[1])
        sizes = np.abs(common)
        d, value = self._given(at, slope, low, high)
        for _ in range(_MAX_ROUNDS):
            rest = d @ common - at
            if (np.abs(rest) <= _ACCURACY * (np.abs(d) @ sizes)).all():
                break
            moves = np.flatnonzero((d > low) & (d < high))
            inner = common[moves]
            matrix = inner.T @ (inner / self.diagonal[moves, None])
            change = np.linalg.solve(np.eye(len(at)) + matrix, rest)
            t = 1.0
            while t > _ACCURACY:
                new, new_value = self._given(at + t * change, slope, low, high)
                if new_value >= value + 1e-4 * t * float(rest @ change):
                    break
                t *= 0.5
            else:
                break
            at, d, value = at + t * change, new, new_value
        return d

    def _given(
        self, at: Floats, slope: Floats, low: Floats, high: Floats
    ) -> tuple[Floats, float]:
        """Return each weight's step and the dual function, given what steps share."""
        tilted = slope + self.common @ at
        d = np.clip(-tilted / self.diagonal, low, high)
        value = float(d @ (tilted + 0.5 * self.diagonal * d)) - 0.5 * float(at @ at)
        return d, value


class AnyObjective(Protocol):
    """The interface of a function that a solver minimises."""

    n_evaluations: int

    @property
    def size(self) -> int:
        """Number of weights."""

    @property
    def n_rows(self) -> int:
        """Number of training rows."""

    @property
    def total_weight(self) -> float:
        """Sum of the row weights."""

    @property
    def is_convex(self) -> bool:
        """Whether the objective is convex."""

    @property
    def has_penalty(self) -> bool:
        """Whether weights have a penalty."""

    @property
    def has_hessian(self) -> bool:
        """Whether second derivatives can be assembled."""

    def __call__(self, weights: Floats, /) -> tuple[float, Floats]:
        """Return the objective and its gradient."""

    def refuses_second_order(self) -> str:
        """Return why second-order steps cannot be used; '' if they can."""

    def preconditioner(self, weights: Floats, box: Box) -> Preconditioner | None:
        """Return a scaling to curvatures of about one, None if there is none."""

    def default_sample(self) -> int:
        """Rows that a sampled Hessian is made from."""

    def sample(self, n_rows: int) -> Any:
        """Draw rows for second derivatives."""


@dataclass(frozen=True)
class Solution:
    """The result of a solver: weights, their objective, and a record of iterations."""

    weights: Floats
    value: float
    status: Status
    n_iter: int
    records: list[dict[str, Any]] = field(default_factory=list)
    """One record per iteration: iteration, objective, gradient, step, evaluations."""


@dataclass(frozen=True)
class Box:
    """Bounds of the weights, each of shape (p,)."""

    lower: Floats
    upper: Floats

    @property
    def is_open(self) -> NDArray[np.bool_]:
        """Which weights have no bound on one side."""
        return np.isinf(self.lower) | np.isinf(self.upper)

    @property
    def is_everywhere(self) -> bool:
        """Whether no weight has a bound."""
        return bool(np.isinf(self.lower).all() and np.isinf(self.upper).all())

    def clip(self, weights: Floats) -> Floats:
        """Return the nearest weights within the bounds."""
        return np.clip(weights, self.lower, self.upper)

    def projected(self, weights: Floats, gradient: Floats) -> Floats:
        """Return the projected step of length one along the gradient.

        It is zero exactly where the first-order conditions hold.
        """
        return np.asarray(weights - self.clip(weights - gradient))

    def is_flat(
        self, weights: Floats, value: float, gradient: Floats, tol: float
    ) -> bool:
        """Whether the first-order conditions hold up to rounding errors.

        Near a bound a projected gradient is short however steep the slope is: there
        what the way to the bound would gain counts.
        """
        step = np.abs(self.projected(weights, gradient))
        gain = np.abs(gradient) * np.minimum(step, 1.0)
        size = np.maximum(step, gain).max(initial=0.0)
        return bool(size <= max(np.sqrt(tol), 1e-7) * max(1.0, abs(value)))


class Solver(DeclaredPart):
    """Minimises an objective within bounds."""

    is_iterative: ClassVar[bool] = True
    """Whether weights move from where they start."""

    def refuses(self, objective: AnyObjective) -> str:
        """Return why an objective cannot be minimised by this solver; '' if it can."""
        return ""

    def minimize(self, objective: AnyObjective, start: Floats, box: Box) -> Solution:
        """Minimise from a start, within bounds."""
        raise NotImplementedError


class IterativeSolver(Solver):
    """A solver that takes steps until little is left to gain."""

    tol: float = setting(
        default=1e-10,
        allowed=number(0.0),
        about="Stop when an iteration lowers the objective by less than this share of "
        "it.",
    )
    max_iter: int = setting(
        default=1000, allowed=whole(1), about="Largest number of iterations."
    )


class Fixed(Solver):
    """Keep the start: for weights that are computed, not optimised.

    Bounds are for solvers that search; gain ratios may well be larger than one.
    """

    is_iterative: ClassVar[bool] = False

    def minimize(self, objective: AnyObjective, start: Floats, box: Box) -> Solution:
        """Return the start, with the objective there."""
        value, _ = objective(start)
        return Solution(start, value, "converged", 0)


def note_iteration(
    records: list[dict[str, Any]],
    objective: AnyObjective,
    value: float,
    gradient: Floats,
    step: float | None = None,
) -> None:
    """Add the record of an iteration: value, largest gradient entry, step, passes."""
    records.append(
        {
            "iteration": len(records) + 1,
            "objective": value,
            "gradient": float(np.abs(gradient).max(initial=0.0)),
            "step": step,
            "evaluations": objective.n_evaluations,
        }
    )


def runaway(objective: AnyObjective, value: float, box: Box) -> Status | None:
    """Return the status with which to stop if rows are predicted perfectly, else None.

    With a loss of next to nothing the weights are not determined by the rows any more:
    without bounds they run away to infinity ("separable"), within bounds any of them
    will do ("converged").
    """
    if objective.has_penalty or value >= _MIN_LOSS_PER_ROW * objective.total_weight:
        return None
    return "separable" if box.is_open.any() else "converged"


def keeps_growing(objective: AnyObjective, solution: Solution, box: Box) -> bool:
    """Whether some weights of a solution are large, and could as well be larger.

    Some rows can then be separated, though not all. A weight of an attribute with
    little information may be large too, but has an optimum.
    """
    weights = solution.weights
    large = box.is_open & (np.abs(weights) > _MAX_WEIGHT)
    if not large.any() or objective.has_penalty:
        return False
    further = np.where(large, 2.0 * weights, weights)
    return bool(objective(further)[0] <= solution.value * (1.0 + 1e-9))


SOLVERS = ("auto", "newton", "lbfgs", "published", "fixed")


def resolve_solver(
    setting: Any,
    objective: AnyObjective,
    tol: float,
    max_iter: int,
    box: Box | None = None,
) -> Solver:
    """Return the solver that a setting names, after checking that it can do the job.

    Linear constraints have one solver, whatever the setting.
    """
    # Loaded here: these modules import this one.
    from steelyard.solvers.constrained import (
        Cone,
        ConstrainedNewton,
        SpectralGradient,
    )
    from steelyard.solvers.lbfgs import LBFGS, published_lbfgs
    from steelyard.solvers.newton import MAX_ASSEMBLED, Newton

    # Spectral steps are not for weights per value, which rows often barely determine:
    # on digits L-BFGS-B ended at a quarter of the squared error after as many passes.
    is_small = objective.has_hessian and objective.size <= MAX_ASSEMBLED
    if isinstance(box, Cone):
        return ConstrainedNewton(tol=tol, max_iter=max_iter)
    if isinstance(setting, Solver):
        solver = setting
    elif not isinstance(setting, str) or setting not in SOLVERS:
        words = ", ".join(repr(name) for name in SOLVERS)
        raise ParameterError(
            f"The 'solver' parameter must be one of {words}, or a Solver object. Got "
            f"{setting!r} instead."
        )
    elif setting == "fixed":
        solver = Fixed()
    elif setting == "published":
        solver = published_lbfgs()
    elif setting == "lbfgs":
        solver = LBFGS(tol=tol, max_iter=max_iter)
    elif setting == "newton" or (is_small and not Newton().refuses(objective)):
        solver = Newton(tol=tol, max_iter=max_iter)
    elif setting == "auto" and objective.has_hessian and not is_small:
        solver = SpectralGradient(tol=tol, max_iter=max_iter)
    else:
        solver = LBFGS(tol=tol, max_iter=max_iter)
    reason = solver.refuses(objective)
    if reason:
        raise ParameterError(
            f"solver={setting!r} cannot be used here: {reason} Use solver='lbfgs' or "
            "solver='auto'."
        )
    return solver
