"""What every loss answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

__all__ = ["Curvature", "Loss", "one_hot", "softmax"]


@dataclass(frozen=True)
class Curvature:
    """Second derivatives of a loss in the scores of rows.

    Either full matrices (s, K, K), or ``diag(diagonal) - vector vectorᵀ`` for losses of
    that form, which saves a factor of K in everything made from them.
    """

    diagonal: NDArray[np.float64] | None = None
    vector: NDArray[np.float64] | None = None
    full: NDArray[np.float64] | None = None

    def matrices(self) -> NDArray[np.float64]:
        """Return full matrices, shape (s, K, K)."""
        if self.full is not None:
            return self.full
        assert self.diagonal is not None and self.vector is not None
        out = -self.vector[:, :, None] * self.vector[:, None, :]
        k = np.arange(out.shape[1])
        out[:, k, k] += self.diagonal
        return np.asarray(out)

    def apply(self, d_scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Multiply a change of scores (s, K) by the matrices."""
        if self.full is not None:
            return np.einsum("ice,ie->ic", self.full, d_scores)
        assert self.diagonal is not None and self.vector is not None
        inner = (self.vector * d_scores).sum(axis=1, keepdims=True)
        return np.asarray(self.diagonal * d_scores - self.vector * inner)


class Loss(BaseEstimator):
    """A loss of class scores ``z (n, K)`` and true classes ``y (n,)``.

    Losses see differences between scores only: adding a number to all scores of a row
    changes nothing, and the gradient of a row adds up to zero.
    """

    convex: ClassVar[bool] = True
    """Whether the loss is convex in the scores."""

    two_classes_only: ClassVar[bool] = False
    """Whether the loss is defined for two classes only."""

    kernel: ClassVar[int | None] = None
    """Number of the compiled form, None where there is only the NumPy one."""

    link_scale: float = 1.0
    """Factor on the scores that makes their softmax estimate the posterior."""

    has_true_gradient: bool = True
    """Whether ``value_and_gradient`` returns the derivative of its value."""

    @property
    def parameter(self) -> float:
        """The number that the compiled form takes."""
        return 1.0

    def value_and_gradient(
        self,
        scores: NDArray[np.float64],
        y: NDArray[np.uint32],
        weights: NDArray[np.float64] | None,
    ) -> tuple[float, NDArray[np.float64]]:
        """Return the weighted sum over rows and its gradient, shapes () and (n, K)."""
        raise NotImplementedError

    def hessian(
        self,
        scores: NDArray[np.float64],
        y: NDArray[np.uint32],
        weights: NDArray[np.float64] | None,
        exact: bool = True,
    ) -> Curvature:
        """Second derivatives by row.

        With ``exact=False`` a positive semidefinite stand-in: the Gauss-Newton matrix
        where the loss is not convex.
        """
        raise NotImplementedError


def one_hot(y: NDArray[np.uint32], n_classes: int) -> NDArray[np.float64]:
    """Return the indicator matrix of the classes, shape (n, K)."""
    out = np.zeros((len(y), n_classes))
    out[np.arange(len(y)), y] = 1.0
    return out


def softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return posterior probabilities of scores, shape (n, K)."""
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def weighted(
    values: NDArray[np.float64], weights: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """Multiply rows by their weights."""
    if weights is None:
        return values
    return values * weights.reshape(-1, *[1] * (values.ndim - 1))


def softmax_jacobian(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return diag(p) - p pᵀ for every row, shape (n, K, K)."""
    jacobian = -p[:, :, None] * p[:, None, :]
    k = np.arange(p.shape[1])
    jacobian[:, k, k] += p
    return np.asarray(jacobian)
