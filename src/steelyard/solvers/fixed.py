"""The solver that does not move."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from steelyard.solvers.base import Box, Objective, Solution, Solver


class Fixed(Solver):
    """Keep the start: for weights that are computed, not optimised.

    Bounds are for those who search; gain ratios may well be larger than one.
    """

    is_iterative: ClassVar[bool] = False

    def minimize(
        self, objective: Objective, start: NDArray[np.float64], box: Box
    ) -> Solution:
        """Return the start, with the objective there."""
        value, _ = objective(start)
        return Solution(start, value, "converged", 0)
