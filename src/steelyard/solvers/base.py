"""What every solver answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from steelyard.objective import Objective

__all__ = ["Solution", "Solver", "Status", "projected_gradient", "runaway"]

Status = Literal["converged", "iterations", "separable", "stalled"]

# Weights beyond this, or a loss below this share of the rows, mean that the optimum is
# at infinity.
_LARGEST_WEIGHT = 1e3
_SMALLEST_LOSS = 1e-6


@dataclass(frozen=True)
class Solution:
    """Where a solver ended, and how it got there."""

    weights: NDArray[np.float64]
    value: float
    status: Status
    n_iter: int
    records: list[dict[str, Any]] = field(default_factory=list)
    """One record per iteration: iteration, objective, gradient, step, evaluations."""


class Solver(BaseEstimator):
    """Minimises an objective within bounds."""

    def refuses(self, objective: Objective) -> str:
        """Say why an objective cannot be minimised by this solver; '' if it can."""
        return ""

    def minimize(
        self,
        objective: Objective,
        start: NDArray[np.float64],
        lower: NDArray[np.float64],
        upper: NDArray[np.float64],
    ) -> Solution:
        """Minimise from a start, within bounds."""
        raise NotImplementedError


def projected_gradient(
    weights: NDArray[np.float64],
    gradient: NDArray[np.float64],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the step that a unit gradient step takes within the bounds.

    It is zero exactly where the first-order conditions hold.
    """
    return np.asarray(weights - np.clip(weights - gradient, lower, upper))


def runaway(
    objective: Objective,
    weights: NDArray[np.float64],
    value: float,
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
) -> Status | None:
    """Say whether to stop because the rows are predicted perfectly, and as what.

    With a loss of next to nothing the weights are not determined by the rows any more:
    without bounds they run away to infinity ("separable"), within bounds any of them
    will do ("converged").
    """
    if objective.penalty is not None:
        return None
    perfect = value < _SMALLEST_LOSS * objective.rows.total_weight
    unbounded = np.isinf(lower) | np.isinf(upper)
    if not unbounded.any():
        return "converged" if perfect else None
    large = np.abs(weights[unbounded]).max() > _LARGEST_WEIGHT
    return "separable" if perfect or large else None
