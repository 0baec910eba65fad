"""Posteriors of scores, and derivatives in the scores of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


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
