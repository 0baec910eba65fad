"""A rough Hessian of simple form, and what a step in its units is within bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_MAX_ROUNDS = 100
_ACCURACY = 1e-12


@dataclass(frozen=True)
class Metric:
    r"""A matrix :math:`P = \mathrm{diag}(a) + B B^\top`, with few columns of B."""

    own: NDArray[np.float64]
    """Curvature of each weight by itself, a: shape (p,), positive."""

    common: NDArray[np.float64]
    """Directions that all weights share, B: shape (p, r)."""

    def square(self, step: NDArray[np.float64]) -> float:
        """Return the squared length of a step."""
        shared = step @ self.common
        return float(step @ (self.own * step) + shared @ shared)

    def step(
        self,
        slope: NDArray[np.float64],
        low: NDArray[np.float64],
        high: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        r"""Minimise :math:`g^\top d + \tfrac12 d^\top P d` over :math:`l \le d \le u`.

        Given :math:`\lambda = B^\top d` each weight is on its own. That vector is where
        a concave function of r variables is largest, which Newton's method finds.
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
            matrix = inner.T @ (inner / self.own[moves, None])
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
        self,
        at: NDArray[np.float64],
        slope: NDArray[np.float64],
        low: NDArray[np.float64],
        high: NDArray[np.float64],
    ) -> tuple[NDArray[np.float64], float]:
        """Return each weight's step and the dual function, given what steps share."""
        tilted = slope + self.common @ at
        d = np.clip(-tilted / self.own, low, high)
        value = float(d @ (tilted + 0.5 * self.own * d)) - 0.5 * float(at @ at)
        return d, value
