"""Shared weights, what classes add to them, and what single values add to those."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.exceptions import ParameterError
from steelyard.weighting.base import Effect, Evidence, Weighting

__all__ = ["HierarchicalWeighting"]


class _Levels(NamedTuple):
    """The levels of a vector of weights."""

    intercept: NDArray[np.float64]
    """Shape (K,)."""

    shared: NDArray[np.float64]
    """Shape (d,)."""

    by_class: NDArray[np.float64]
    """Shape (d, K)."""

    by_value: NDArray[np.float64]
    """Shape (values, K)."""


class HierarchicalWeighting(Weighting):
    r"""Weights on four levels, each drawn towards the level above it.

    .. math:: z_c(x) = \log \pi_c + b_c + \sum_k (w_k + V_{kc})\, e_k(x)_c
              + \sum_j U_{j,x_j,c}

    with the ridge
    :math:`\lambda_w \sum (w_k - c_k)^2 + \lambda_V \sum V^2 + \lambda_U \sum U^2 +
    \lambda_b \sum b^2`, where :math:`c_k` is 1 for log-likelihoods and 0 for relative
    densities, a second view of a column. With all strengths large the model is naive
    Bayes; each level opens as far as the rows support it.

    Parameters
    ----------
    shared, by_class, by_value : float
        Strengths :math:`\lambda_w`, :math:`\lambda_V` and :math:`\lambda_U`.
    intercept : float, default=0.5
        Strength :math:`\lambda_b`.
    prior_weight : bool, default=False
        Not available: the intercepts take its place.
    """

    has_diagonal: ClassVar[bool] = True

    def __init__(
        self,
        shared: float = 2.5,
        by_class: float = 10.0,
        by_value: float = 2.5,
        intercept: float = 0.5,
        prior_weight: bool = False,
    ) -> None:
        self.shared = shared
        self.by_class = by_class
        self.by_value = by_value
        self.intercept = intercept
        self.prior_weight = prior_weight

    def size(self, evidence: Evidence) -> int:
        """Count the weights."""
        k, d = evidence.n_classes, evidence.n_features
        return k + d + (d + len(evidence.value_rows)) * k

    def start(self, evidence: Evidence) -> NDArray[np.float64]:
        """Return the weights of plain naive Bayes."""
        strengths = self.strengths(evidence)
        assert strengths is not None
        return strengths[1]

    def strengths(
        self, evidence: Evidence
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Strength and centre of every weight."""
        for name in ("shared", "by_class", "by_value", "intercept"):
            value = getattr(self, name)
            if not 0.0 <= float(value) < np.inf:
                raise ParameterError(
                    f"The {name!r} parameter of HierarchicalWeighting must be a float "
                    f"in the range [0, inf). Got {value!r} instead."
                )
        if self.prior_weight:
            raise ParameterError(
                "prior_weight=True cannot be used with weighting='hierarchy': its "
                "intercepts correct the prior. Use prior_weight=False."
            )
        k, d = evidence.n_classes, evidence.n_features
        sizes = (k, d, d * k, len(evidence.value_rows) * k)
        levels = (self.intercept, self.shared, self.by_class, self.by_value)
        kinds = [feature.kind for feature in evidence.schema.features]
        center = np.zeros(sum(sizes))
        center[k : k + d] = [kind != "gaussian-relative" for kind in kinds]
        return np.repeat(np.asarray(levels, dtype=np.float64), sizes), center

    def bounds(
        self, evidence: Evidence, low: NDArray[np.float64], high: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Bound the shared weights alone."""
        k, d = evidence.n_classes, evidence.n_features
        lower = np.full(self.size(evidence), -np.inf)
        upper = np.full(self.size(evidence), np.inf)
        lower[k : k + d], upper[k : k + d] = low, high
        return lower, upper

    def levels(self, weights: NDArray[np.float64], evidence: Evidence) -> _Levels:
        """Take a vector of weights apart."""
        k, d = evidence.n_classes, evidence.n_features
        cuts = np.cumsum([k, d, d * k])
        intercept, shared, by_class, by_value = np.split(weights, cuts)
        return _Levels(
            intercept, shared, by_class.reshape(d, k), by_value.reshape(-1, k)
        )

    def apply(self, weights: NDArray[np.float64], evidence: Evidence) -> Effect:
        """Turn weights into their effect on the scores."""
        change = self.direction(weights, evidence)
        return Effect(
            evidence.log_prior + change.base, change.table, change.multipliers
        )

    def direction(self, weights: NDArray[np.float64], evidence: Evidence) -> Effect:
        """Turn a change of weights into the change of their effect."""
        level = self.levels(weights, evidence)
        total = level.shared[:, None] + level.by_class
        table = evidence.table.spread(total) * evidence.table.values
        table[evidence.value_rows] += level.by_value
        return Effect(level.intercept, table, total[evidence.gaussian])

    def pullback(self, gradient: Effect, evidence: Evidence) -> NDArray[np.float64]:
        """Turn a gradient with respect to the effect into one for the weights."""
        by_class = evidence.table.collect(gradient.table * evidence.table.values)
        by_class[evidence.gaussian] = gradient.multipliers
        by_value = gradient.table[evidence.value_rows]
        return np.concatenate(
            [gradient.base, by_class.sum(axis=1), by_class.ravel(), by_value.ravel()]
        )

    def diagonal(
        self,
        likelihoods: NDArray[np.float64],
        bent: NDArray[np.float64],
        by_code: NDArray[np.float64],
        evidence: Evidence,
    ) -> NDArray[np.float64]:
        """Rough diagonal of the second derivatives."""
        # What all classes have in common changes nothing.
        centred = likelihoods - likelihoods.mean(axis=0)
        by_class = np.einsum("cds,sc->dc", centred**2, bent)
        return np.concatenate(
            [
                bent.sum(axis=0),
                by_class.sum(axis=1),
                by_class.ravel(),
                by_code[evidence.value_rows].ravel(),
            ]
        )

    def fitted(
        self, weights: NDArray[np.float64], evidence: Evidence
    ) -> dict[str, Any]:
        """Name the weights as fitted attributes of a classifier."""
        level = self.levels(weights, evidence)
        total = level.shared[:, None] + level.by_class
        effects, position = [], 0
        for feature in evidence.schema.features:
            width = feature.n_values if feature.is_coded else 0
            effects.append(level.by_value[position : position + width].T)
            position += width
        return {
            "attribute_weights_": level.shared,
            "class_attribute_weights_": np.ascontiguousarray(total.T),
            "value_effects_": effects,
            "intercept_": level.intercept,
        }
