"""Units for the weights of a hierarchy, in which their curvatures are alike."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from steelyard.fitting.objective import Objective
from steelyard.model.posteriors import softmax

# Rows from which curvatures are made.
_MAX_ROWS = 2_000

# Naive Bayes is sure of too many rows, whose curvature would vanish: shares of classes
# are drawn together a little.
_EVEN = 0.003

# Share of the curvature of the loss that units take into account. The directions in
# which the loss bends are common to many weights, and the solver learns them better
# than single weights can tell.
_SHARE = 0.1


class Units:
    r"""A unit for every weight: :math:`1 / \sqrt{2 \lambda_k + s H_{kk}}`.

    The penalty is what differs by powers of ten from level to level; in these units it
    does not. They cost one pass over some rows, and nothing at each step.
    """

    def __init__(self, objective: Objective, weights: NDArray[np.float64]) -> None:
        assert objective.penalty is not None
        ridge = objective.penalty.curvature(len(weights))
        self._unit = 1.0 / np.sqrt(ridge + _SHARE * _curvature(objective, weights))

    def weights(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Turn a vector in these units into weights."""
        return self._unit * y

    def vector(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Turn weights into a vector in these units."""
        return weights / self._unit

    def gradient(self, gradient: NDArray[np.float64]) -> NDArray[np.float64]:
        """Turn a gradient by weights into one in these units."""
        return self._unit * gradient


def _curvature(
    objective: Objective, weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Diagonal of the Hessian of the loss, from some rows; shared weights roughly."""
    sample = objective.sample(min(_MAX_ROWS, objective.rows.n_rows))
    share = softmax(sample.scores(weights))
    share = (1.0 - _EVEN) * share + _EVEN / share.shape[1]
    curvature = sample.row_weights()[:, None] * share * (1.0 - share)
    by_effect = sample.rows.scatter(curvature, power=2)
    return objective.weighting.diagonal(by_effect, objective.evidence)
