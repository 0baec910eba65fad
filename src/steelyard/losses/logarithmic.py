"""Conditional log-likelihood, deviance with any multiplier, and exponential loss."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.special import logsumexp

from steelyard._common.arrays import Floats, Labels
from steelyard._common.settings import number, setting
from steelyard.kernels.losses import DEVIANCE, EXPONENTIAL
from steelyard.losses.base import Loss
from steelyard.model.posteriors import Curvature, softmax, weighted

# Beyond this exponent the exponential is continued by its second-order expansion, which
# is convex and twice differentiable; e**60 rows' worth of loss is never at an optimum.
HIGHEST = 60.0


class _LikelihoodLoss(Loss):
    """What the deviances of all multipliers share."""

    is_likelihood: ClassVar[bool] = True
    kernel: ClassVar[int | None] = DEVIANCE
    has_bounded_slope: ClassVar[bool] = True

    def value_and_gradient(
        self, scores: Floats, y: Labels, weights: Floats | None
    ) -> tuple[float, Floats]:
        """Return the weighted sum over rows and its gradient, shapes () and (n, K)."""
        a = self.parameter
        z = a * scores
        true = (np.arange(len(y)), y)
        p = softmax(z)
        p[true] = 0.0
        others = p.sum(axis=1)
        # Where the true class has nearly everything, the rest keeps its digits.
        values = np.where(
            others < 0.5,
            -np.log1p(-np.minimum(others, 0.5)),
            logsumexp(z, axis=1) - z[true],
        )
        p[true] = -others
        gradient = a * p
        return float(weighted(values, weights).sum()), weighted(gradient, weights)

    def hessian(
        self, scores: Floats, y: Labels, weights: Floats | None, exact: bool = True
    ) -> Curvature:
        """Second derivatives by row: a² (diag(p) - p pᵀ)."""
        a = self.parameter
        p = softmax(a * scores)
        root = a if weights is None else a * np.sqrt(weights)[:, None]
        return Curvature(diagonal=root * root * p, vector=root * p)


class DevianceLoss(_LikelihoodLoss):
    r"""Deviance of the scores multiplied by a constant.

    .. math:: \ell(z, y) = \log \sum_c e^{a z_c} - a z_y
                         = \log\Bigl(1 + \sum_{c \ne y} e^{a (z_c - z_y)}\Bigr)

    For two classes and :math:`f = z_1 - z_0` this is :math:`\log(1 + e^{-a s f})`. With
    a = 2 it is the loss of DNB, with a = 1 the conditional log-likelihood.

    References
    ----------
    T. Kim, J.-S. Lee (2022), "Exponential Loss Minimization for Learning Weighted Naive
    Bayes Classifiers", IEEE Access 10.
    """

    multiplier: float = setting(
        default=2.0, allowed=number(0.0, ends="()"), about="The constant a."
    )

    @property
    def link_scale(self) -> float:
        """The multiplier: the scores estimate log-probabilities divided by it."""
        return self.parameter

    @property
    def parameter(self) -> float:
        """The multiplier."""
        return float(self.multiplier)


class LogLoss(_LikelihoodLoss):
    r"""Negative log posterior of the true class: conditional log-likelihood.

    .. math:: \ell(z, y) = \log \sum_c e^{z_c} - z_y

    The gradient with respect to the scores is the posterior minus the indicator of the
    true class.
    """


class ExponentialLoss(Loss):
    r"""Sum of the odds against the true class, the loss of ENB.

    .. math:: \ell(z, y) = \sum_{c \ne y} e^{z_c - z_y} = \frac{1}{P_y} - 1

    For two classes and :math:`f = z_1 - z_0` this is :math:`e^{-s f}`. Its minimiser
    estimates half the log-odds, so the softmax of twice the scores is calibrated.

    References
    ----------
    T. Kim, J.-S. Lee (2022), "Exponential Loss Minimization for Learning Weighted Naive
    Bayes Classifiers", IEEE Access 10.
    """

    kernel: ClassVar[int | None] = EXPONENTIAL

    @property
    def link_scale(self) -> float:
        """Two: the scores estimate half the log-odds."""
        return 2.0

    @property
    def surrogate(self) -> Loss | None:
        """The deviance with multiplier 2.

        Newton's method lowers a large exponential by one unit of its exponent per step;
        the deviance has nearly the same minimiser and leads there in a few steps.
        """
        return DevianceLoss(2.0)

    def value_and_gradient(
        self, scores: Floats, y: Labels, weights: Floats | None
    ) -> tuple[float, Floats]:
        """Return the weighted sum over rows and its gradient, shapes () and (n, K)."""
        value, slope, _ = self._odds(scores, y)
        slope[np.arange(len(y)), y] = -slope.sum(axis=1)
        total = weighted(value.sum(axis=1), weights).sum()
        return float(total), weighted(slope, weights)

    def hessian(
        self, scores: Floats, y: Labels, weights: Floats | None, exact: bool = True
    ) -> Curvature:
        """Second derivatives by row."""
        _, _, curve = self._odds(scores, y)
        n, k = curve.shape
        rows, classes = np.arange(n), np.arange(k)
        out = np.zeros((n, k, k))
        out[:, classes, classes] = curve
        out[rows, y, :] -= curve
        out[rows, :, y] -= curve
        out[rows, y, y] = curve.sum(axis=1)
        return Curvature(full=weighted(out, weights))

    @staticmethod
    def _odds(scores: Floats, y: Labels) -> tuple[Floats, Floats, Floats]:
        """Return value, slope and curvature of the odds of every other class."""
        rows = np.arange(len(y))
        t = scores - scores[rows, y][:, None]
        over = np.maximum(t - HIGHEST, 0.0)
        curve = np.exp(np.minimum(t, HIGHEST))
        curve[rows, y] = 0.0
        slope = curve * (1.0 + over)
        value = curve * (1.0 + over + 0.5 * over * over)
        return value, slope, curve
