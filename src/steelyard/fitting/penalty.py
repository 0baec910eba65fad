"""Penalties: what keeps weights near a centre."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Penalty"]


@dataclass(frozen=True)
class Penalty:
    r"""What keeps weights near a centre.

    Ridge is :math:`\lambda \sum (w - c)^2`; "l1" is :math:`\lambda \sum |w - c|`, for
    weights whose bounds lie on one side of the centre, where it is linear.
    """

    strength: float | NDArray[np.float64]
    """One for all weights, or one each."""

    center: float | NDArray[np.float64]
    sign: NDArray[np.float64] | None = None
    """Side of the centre that each weight lies on, for "l1"; None for ridge."""

    free: int = 0
    """How many weights at the beginning of the vector are not penalised."""

    def value_and_gradient(
        self, weights: NDArray[np.float64]
    ) -> tuple[float, NDArray[np.float64]]:
        """Return the penalty and its gradient."""
        distance = weights - self.center
        distance[: self.free] = 0.0
        if self.sign is not None:
            slope = self.strength * self.sign
            slope = np.where(np.arange(len(weights)) < self.free, 0.0, slope)
            return float(slope @ distance), slope
        pull = self.strength * distance
        return float(pull @ distance), 2.0 * pull

    def curvature(self, size: int) -> NDArray[np.float64]:
        """Return the diagonal of the second derivative."""
        out = np.zeros(size)
        if self.sign is None:
            out += 2.0 * self.strength
            out[: self.free] = 0.0
        return out
