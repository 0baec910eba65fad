"""One weight per class, attribute and value."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.weighting.base import Effect, Evidence, Weighting


class ValueWeighting(Weighting):
    r"""One exponent per class, attribute and value.

    .. math:: z_c(x) = \log \pi_c + \sum_j W_{c,j,x_j} \log \theta_{j,x_j|c}

    A Gaussian attribute counts as one value. The weights come class by class, first
    those of the coded attributes' values in order, then those of Gaussian attributes.
    """

    def _size(self, evidence: Evidence) -> int:
        per_class = len(evidence.value_rows) + len(evidence.gaussian)
        return evidence.n_classes * per_class

    def _owner(self, evidence: Evidence) -> NDArray[np.int64]:
        features = evidence.table.spread(np.arange(evidence.n_features))
        owner = np.concatenate([features[evidence.value_rows], evidence.gaussian])
        return np.tile(owner, evidence.n_classes)

    def _apply(
        self, weights: NDArray[np.float64], evidence: Evidence
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        matrix = weights.reshape(evidence.n_classes, -1)
        rows = evidence.value_rows
        table = np.zeros_like(evidence.table.values)
        table[rows] = matrix[:, : len(rows)].T * evidence.table.values[rows]
        return table, matrix[:, len(rows) :].T

    def _pullback(self, gradient: Effect, evidence: Evidence) -> NDArray[np.float64]:
        rows = evidence.value_rows
        inner = gradient.table[rows] * evidence.table.values[rows]
        return np.concatenate([inner.T, gradient.multipliers.T], axis=1).ravel()

    def _fitted(
        self, weights: NDArray[np.float64], evidence: Evidence
    ) -> dict[str, Any]:
        matrix = weights.reshape(evidence.n_classes, -1)
        by_value, position = [], 0
        gaussian = len(evidence.value_rows)
        for feature in evidence.schema.features:
            if feature.is_coded:
                width = feature.n_values
                by_value.append(matrix[:, position : position + width])
                position += width
            else:
                by_value.append(matrix[:, gaussian : gaussian + 1])
                gaussian += 1
        return {"value_weights_": by_value}
