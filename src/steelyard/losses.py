"""Losses of class scores: values, gradients and second derivatives.

The log-loss, deviance with any multiplier, exponential loss, and squared error of the
posterior.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.special import logsumexp

from steelyard._common.arrays import Floats, Labels
from steelyard._common.settings import FLAG, DeclaredPart, number, resolve_part, setting
from steelyard.exceptions import ParameterError
from steelyard.kernels.losses import DEVIANCE, EXPONENTIAL, SQUARED
from steelyard.model.base import Curvature, one_hot, softmax, softmax_jacobian, weighted

__all__ = [
    "LOSSES",
    "BrierLoss",
    "DevianceLoss",
    "ExponentialLoss",
    "LogLoss",
    "Loss",
    "resolve_loss",
]


class Loss(DeclaredPart):
    """A loss of class scores ``z (n, K)`` and true classes ``y (n,)``.

    Losses see differences between scores only: adding a number to all scores of a row
    changes nothing, and the gradient of a row adds up to zero.
    """

    convex: ClassVar[bool] = True
    """Whether the loss is convex in the scores."""

    two_classes_only: ClassVar[bool] = False
    """Whether the loss is defined for two classes only."""

    is_likelihood: ClassVar[bool] = False
    """Whether the loss is a negative log-likelihood."""

    is_squared_error: ClassVar[bool] = False
    """Whether the loss is the squared error of the posterior."""

    has_bounded_slope: ClassVar[bool] = False
    """Whether no derivative exceeds the larger of ``parameter`` and 1, by size."""

    kernel: ClassVar[int | None] = None
    """Its number in ``kernels.losses``, None if there is only the NumPy form."""

    @property
    def link_scale(self) -> float:
        """Factor on the scores that makes their softmax estimate the posterior."""
        return 1.0

    @property
    def has_true_gradient(self) -> bool:
        """Whether ``value_and_gradient`` returns the derivative of its value."""
        return True

    @property
    def has_hessian(self) -> bool:
        """Whether the loss has second derivatives."""
        return type(self).hessian is not Loss.hessian

    @property
    def compiled(self) -> int | None:
        """Number of the compiled form, None if NumPy has to do.

        A subclass that overrides ``value_and_gradient`` has another loss than the
        one that its base class has compiled.
        """
        for cls in type(self).__mro__:
            if "kernel" in vars(cls):
                return vars(cls)["kernel"]
            if "value_and_gradient" in vars(cls):
                return None
        return None

    @property
    def surrogate(self) -> Loss | None:
        """A loss with nearly the same minimiser that is quicker to minimise."""
        return None

    @property
    def parameter(self) -> float:
        """The number that the compiled form takes."""
        return 1.0

    def value_and_gradient(
        self, scores: Floats, y: Labels, weights: Floats | None
    ) -> tuple[float, Floats]:
        """Return the weighted sum over rows and its gradient, shapes () and (n, K)."""
        raise NotImplementedError

    def hessian(
        self, scores: Floats, y: Labels, weights: Floats | None, exact: bool = True
    ) -> Curvature:
        """Second derivatives by row.

        With ``exact=False`` a positive semidefinite stand-in: the Gauss-Newton matrix
        where the loss is not convex.
        """
        raise NotImplementedError


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
        # If the true class has nearly everything, the rest keeps its digits.
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

    # e**60 rows' worth of loss is never at an optimum, and doubles end at e**709.
    highest: float = setting(
        default=60.0,
        allowed=number(0.0, 700.0, "[]"),
        about="Exponent beyond which the exponential is continued by its second-order "
        "expansion, which is convex and twice differentiable; 700 for the exponential "
        "itself.",
    )

    @property
    def link_scale(self) -> float:
        """Two: the scores estimate half the log-odds."""
        return 2.0

    @property
    def parameter(self) -> float:
        """The highest exponent."""
        return float(self.highest)

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

    def _odds(self, scores: Floats, y: Labels) -> tuple[Floats, Floats, Floats]:
        """Return value, slope and curvature of the odds of every other class."""
        rows = np.arange(len(y))
        t = scores - scores[rows, y][:, None]
        over = np.maximum(t - self.highest, 0.0)
        curve = np.exp(np.minimum(t, self.highest))
        curve[rows, y] = 0.0
        slope = curve * (1.0 + over)
        value = curve * (1.0 + over + 0.5 * over * over)
        return value, slope, curve


class BrierLoss(Loss):
    r"""Half the squared distance between posterior and indicator of the class.

    .. math:: \ell(z, y) = \tfrac12 \sum_c (Y_c - P_c)^2, \qquad
       \frac{\partial \ell}{\partial z_c} = P_c \bigl(r_c - \sum_d r_d P_d\bigr),
       \quad r = P - Y

    Not convex. The formula printed for CAWNB and RNB keeps only
    :math:`r_c P_c (1 - P_c)` and so drops the terms between classes; for two classes
    that is half the gradient, for more it is not a gradient at all.
    """

    convex: ClassVar[bool] = False
    is_squared_error: ClassVar[bool] = True
    has_bounded_slope: ClassVar[bool] = True
    kernel: ClassVar[int | None] = SQUARED

    published_gradient: bool = setting(
        default=False,
        allowed=FLAG,
        about="Use the printed formula, to reproduce published runs.",
    )

    @property
    def has_true_gradient(self) -> bool:
        """Whether the gradient is that of the value."""
        return not self.published_gradient

    @property
    def parameter(self) -> float:
        """1 for the printed gradient, else 0."""
        return 1.0 if self.published_gradient else 0.0

    def value_and_gradient(
        self, scores: Floats, y: Labels, weights: Floats | None
    ) -> tuple[float, Floats]:
        """Return the weighted sum over rows and its gradient, shapes () and (n, K)."""
        p = softmax(scores)
        r = p - one_hot(y, p.shape[1])
        values = 0.5 * (r * r).sum(axis=1)
        if self.published_gradient:
            gradient = r * p * (1.0 - p)
        else:
            gradient = p * (r - (r * p).sum(axis=1, keepdims=True))
        return float(weighted(values, weights).sum()), weighted(gradient, weights)

    def hessian(
        self, scores: Floats, y: Labels, weights: Floats | None, exact: bool = True
    ) -> Curvature:
        r"""Second derivatives by row.

        .. math:: S^2 + \sum_c r_c P_c \bigl((e_c - P)(e_c - P)^\top - S\bigr)

        and :math:`S^2`, the Gauss-Newton matrix, with ``exact=False``.
        """
        p = softmax(scores)
        s = softmax_jacobian(p)
        out = s @ s
        if exact:
            out += residual_term(p - one_hot(y, p.shape[1]), p, s)
        return Curvature(full=weighted(out, weights))


def residual_term(r: Floats, p: Floats, s: Floats) -> Floats:
    r"""Return :math:`\sum_c r_c P_c ((e_c - P)(e_c - P)^\top - S)`, shape (n, K, K)."""
    g = r * p
    total = g.sum(axis=1)[:, None, None]
    cross = -g[:, :, None] * p[:, None, :]
    out = cross + cross.transpose(0, 2, 1) + total * p[:, :, None] * p[:, None, :]
    k = np.arange(p.shape[1])
    out[:, k, k] += g
    return np.asarray(out - total * s)


LOSSES: dict[str, type[Loss]] = {
    "log": LogLoss,
    "brier": BrierLoss,
    "exponential": ExponentialLoss,
    "deviance": DevianceLoss,
}


def resolve_loss(setting: Any, published_gradient: bool = False) -> Loss:
    """Return the loss that a setting names, with the printed gradient if asked for."""
    loss = resolve_part(setting, Loss, LOSSES, "loss")
    if not published_gradient:
        return loss
    if not loss.is_squared_error:
        raise ParameterError(
            f"published_gradient=True cannot be used with {type(loss).__name__}: only "
            "the squared loss was printed with a truncated gradient. Use "
            "loss='brier', or leave published_gradient off."
        )
    return BrierLoss(published_gradient=True)
