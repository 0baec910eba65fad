"""RNB's mixture of class-specific and shared attribute weights."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from steelyard.weighting.attribute import AttributeWeighting, ClassAttributeWeighting
from steelyard.weighting.base import Effect, Evidence, Weighting


class MixtureWeighting(Weighting):
    r"""Two posteriors, mixed by a learned share.

    .. math:: P_c = \alpha P^D_c + (1 - \alpha) P^I_c, \qquad 0 \le \alpha \le 1

    with :math:`P^D` from weights per class and attribute, :math:`P^I` from weights per
    attribute. The vector holds :math:`\alpha` first, then those of :math:`P^D`, then
    those of :math:`P^I` (each with a prior weight of its own, if asked for).

    References
    ----------
    S. Wang, J. Ren, R. Bai (2020), "A Regularized Attribute Weighting Framework for
    Naive Bayes", IEEE Access 8, DOI 10.1109/ACCESS.2020.3044946.
    """

    has_hessian: ClassVar[bool] = True
    is_mixture: ClassVar[bool] = True
    n_free: ClassVar[int] = 1

    def halves(self) -> tuple[Weighting, Weighting]:
        """Return the weightings of both halves, the class-specific one first."""
        return (
            ClassAttributeWeighting(prior_weight=self.prior_weight),
            AttributeWeighting(prior_weight=self.prior_weight),
        )

    def size(self, evidence: Evidence) -> int:
        """Count the weights."""
        return 1 + sum(half.size(evidence) for half in self.halves())

    def start(self, evidence: Evidence) -> NDArray[np.float64]:
        """Return the published start: all weights one, alpha one half."""
        return np.concatenate([[0.5], np.ones(self.size(evidence) - 1)])

    def bounds(
        self, evidence: Evidence, low: NDArray[np.float64], high: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Spread bounds per attribute over the weights; alpha stays in [0, 1]."""
        pairs = [half.bounds(evidence, low, high) for half in self.halves()]
        lower = np.concatenate([[0.0], *(pair[0] for pair in pairs)])
        upper = np.concatenate([[1.0], *(pair[1] for pair in pairs)])
        return lower, upper

    def split(
        self, weights: NDArray[np.float64], evidence: Evidence
    ) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
        """Split a vector into alpha and the weights of both halves."""
        cut = 1 + self.halves()[0].size(evidence)
        return float(weights[0]), weights[1:cut], weights[cut:]

    def mixed_effects(
        self, weights: NDArray[np.float64], evidence: Evidence
    ) -> tuple[float, tuple[Effect, ...]]:
        """Turn weights into alpha and the effects of both halves."""
        alpha, specific, shared = self.split(weights, evidence)
        first, second = self.halves()
        effects = first.apply(specific, evidence), second.apply(shared, evidence)
        return alpha, effects

    def pullback_halves(
        self, d_alpha: float, specific: Effect, shared: Effect, evidence: Evidence
    ) -> NDArray[np.float64]:
        """Turn gradients with respect to alpha and both effects into one vector."""
        first, second = self.halves()
        return np.concatenate(
            [
                [d_alpha],
                first.pullback(specific, evidence),
                second.pullback(shared, evidence),
            ]
        )

    def fitted(
        self, weights: NDArray[np.float64], evidence: Evidence
    ) -> dict[str, Any]:
        """Name the weights as fitted attributes of a classifier."""
        alpha, specific, shared = self.split(weights, evidence)
        first, second = self.halves()
        return {
            "alpha_": alpha,
            **first.fitted(specific, evidence),
            **second.fitted(shared, evidence),
        }
