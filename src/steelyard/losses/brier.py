"""Squared error of the posterior."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from steelyard._common.arrays import Floats, Labels
from steelyard._common.settings import FLAG, setting
from steelyard.kernels.losses import SQUARED
from steelyard.losses.base import Loss
from steelyard.model.posteriors import (
    Curvature,
    one_hot,
    softmax,
    softmax_jacobian,
    weighted,
)


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
