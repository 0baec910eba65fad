"""Penalties: what keeps weights near a centre."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from steelyard.exceptions import ParameterError
from steelyard.solvers import Box
from steelyard.weighting import Evidence, Weighting


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


@dataclass(frozen=True)
class PenaltySetting:
    """Which distance from where is penalised, and how strongly."""

    kind: str | None = None
    """"ridge", "l1", or None."""

    strength: float = 0.0
    center: float = 1.0

    def resolve(
        self, weighting: Weighting, evidence: Evidence, box: Box
    ) -> Penalty | None:
        """Return the penalty on the weights within some bounds, None without one.

        A weighting with levels brings its own ridge; the share of a mixture is free.
        """
        ridge = weighting.strengths(evidence)
        if ridge is not None:
            return Penalty(*ridge)
        if self.kind is None or self.strength == 0.0:
            return None
        free = weighting.n_free
        if self.kind == "ridge":
            return Penalty(self.strength, self.center, None, free)
        above, below = box.lower >= self.center, box.upper <= self.center
        sign = np.where(above, 1.0, np.where(below, -1.0, 0.0))
        if not sign[free:].all():
            raise ParameterError(
                f"penalty='l1' towards {self.center:g} needs bounds that keep every "
                "weight on one side of it, where it is smooth: for example "
                "bounds=(0, 1) for center=1, or bounds=(0, inf) for center=0. Or use "
                "penalty='ridge'."
            )
        return Penalty(self.strength, self.center, sign, free)
