"""Units of weights in which the curvature of an objective is about one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

_MAX_ROUNDS = 100
_ACCURACY = 1e-12


class Units(Protocol):
    """A linear change of variables after which curvatures are about one."""

    def weights(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Turn a vector in these units into weights."""

    def vector(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Turn weights into a vector in these units."""

    def gradient(self, gradient: NDArray[np.float64]) -> NDArray[np.float64]:
        """Turn a gradient by weights into one in these units."""


@dataclass(frozen=True)
class Metric:
    r"""A rough Hessian :math:`P = \mathrm{diag}(a) + B B^\top`, with few columns of B.

    A box is none any more after a change of variables; a step within bounds, in units
    of P, is found all the same.
    """

    own: NDArray[np.float64]
    """Curvature of each weight by itself, a: shape (p,), positive."""

    common: NDArray[np.float64]
    """Directions that all weights share, B: shape (p, r)."""

    @cached_property
    def _roots(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[Any]]:
        """Unit of each weight; directions in those units, and their root curvatures."""
        unit = 1.0 / np.sqrt(self.own)
        directions, sizes, _ = np.linalg.svd(unit[:, None] * self.common, False)
        return unit, directions, np.sqrt(1.0 + sizes**2)

    def _stretched(self, v: NDArray[np.float64], power: int) -> NDArray[np.float64]:
        _, directions, roots = self._roots
        return v + directions @ ((roots**power - 1.0) * (v @ directions))

    def weights(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Turn a vector in these units into weights."""
        return self._roots[0] * self._stretched(y, -1)

    def vector(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Turn weights into a vector in these units."""
        return self._stretched(weights / self._roots[0], 1)

    def gradient(self, gradient: NDArray[np.float64]) -> NDArray[np.float64]:
        """Turn a gradient by weights into one in these units."""
        return self._stretched(self._roots[0] * gradient, -1)

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
