"""One weight per attribute, per class and attribute, or per value; or a mixture."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from steelyard._common.arrays import Floats, Ints
from steelyard.model.base import Curvature
from steelyard.weighting.base import Effect, LogProbs, Weighting


class AttributeWeighting(Weighting):
    r"""One exponent per attribute.

    .. math:: z_c(x) = \log \pi_c + \sum_j w_j \log \theta_{j,x_j|c}

    With ``prior_weight`` the prior term becomes :math:`w_0 \log \pi_c`.
    """

    has_hessian: ClassVar[bool] = True
    has_class_weights: ClassVar[bool] = False

    def _size(self, evidence: LogProbs) -> int:
        return evidence.n_features

    def _owner(self, evidence: LogProbs) -> Ints:
        return np.arange(evidence.n_features)

    def _apply(self, weights: Floats, evidence: LogProbs) -> tuple[Floats, Floats]:
        log_prob = evidence.table
        table = log_prob.spread(weights)[:, None] * log_prob.values
        shape = (len(evidence.gaussian), evidence.n_classes)
        return table, np.broadcast_to(weights[evidence.gaussian][:, None], shape)

    def _pullback(self, gradient: Effect, evidence: LogProbs) -> Floats:
        log_prob = evidence.table
        out = log_prob.collect((gradient.table * log_prob.values).sum(axis=1))
        out[evidence.gaussian] = gradient.multipliers.sum(axis=1)
        return out

    def _fitted(self, weights: Floats, evidence: LogProbs) -> dict[str, Any]:
        return {"attribute_weights_": weights}

    def hessian(self, likelihoods: Floats, curvature: Curvature) -> Floats:
        """Assemble second derivatives from rows: one product per class."""
        k, d, _ = likelihoods.shape
        if k == 2:
            difference = likelihoods[1] - likelihoods[0]
            scaled = difference * curvature.matrices()[:, 1, 1]
            return np.asarray(scaled @ difference.T)
        if curvature.full is not None:
            return cross_hessian(likelihoods, curvature.full)
        assert curvature.diagonal is not None and curvature.vector is not None
        out = np.zeros((d, d))
        mean = np.zeros(likelihoods.shape[1:])
        for c in range(k):
            out += (likelihoods[c] * curvature.diagonal[:, c]) @ likelihoods[c].T
            mean += likelihoods[c] * curvature.vector[:, c]
        return np.asarray(out - mean @ mean.T)


class ClassAttributeWeighting(Weighting):
    r"""One exponent per class and attribute.

    .. math:: z_c(x) = \log \pi_c + \sum_j W_{cj} \log \theta_{j,x_j|c}
    """

    has_hessian: ClassVar[bool] = True

    def _size(self, evidence: LogProbs) -> int:
        return evidence.n_classes * evidence.n_features

    def _owner(self, evidence: LogProbs) -> Ints:
        return np.tile(np.arange(evidence.n_features), evidence.n_classes)

    def _apply(self, weights: Floats, evidence: LogProbs) -> tuple[Floats, Floats]:
        matrix = weights.reshape(evidence.n_classes, evidence.n_features)
        log_prob = evidence.table
        table = log_prob.spread(matrix.T) * log_prob.values
        return table, matrix[:, evidence.gaussian].T

    def _pullback(self, gradient: Effect, evidence: LogProbs) -> Floats:
        log_prob = evidence.table
        out = log_prob.collect(gradient.table * log_prob.values)
        out[evidence.gaussian] = gradient.multipliers
        return out.T.ravel()

    def _fitted(self, weights: Floats, evidence: LogProbs) -> dict[str, Any]:
        shape = (evidence.n_classes, evidence.n_features)
        return {"class_attribute_weights_": weights.reshape(shape)}

    def hessian(self, likelihoods: Floats, curvature: Curvature) -> Floats:
        """Assemble second derivatives from rows.

        Every class has the attributes as separate inputs; the weight of the prior is
        an input of all classes.
        """
        k, d, n = likelihoods.shape
        full = np.zeros((k, d, k, d))
        if curvature.full is not None:
            for c in range(k):
                for e in range(c + 1):
                    scaled = likelihoods[c] * curvature.full[:, c, e]
                    full[c, :, e] = scaled @ likelihoods[e].T
                    full[e, :, c] = full[c, :, e].T
        else:
            assert curvature.diagonal is not None and curvature.vector is not None
            scaled = likelihoods * curvature.vector.T[:, None, :]
            flat = np.ascontiguousarray(scaled.reshape(k * d, n))
            full -= (flat @ flat.T).reshape(k, d, k, d)
            for c in range(k):
                scaled = likelihoods[c] * curvature.diagonal[:, c]
                full[c, :, c] += scaled @ likelihoods[c].T
        if not self.prior_weight:
            return full.reshape(k * d, k * d)
        of_attributes = full[:, 1:, :, 1:].reshape(k * (d - 1), k * (d - 1))
        shared = full[:, 0, :, 1:].sum(axis=0).ravel()
        out = np.empty((len(of_attributes) + 1, len(of_attributes) + 1))
        out[0, 0] = full[:, 0, :, 0].sum()
        out[0, 1:] = out[1:, 0] = shared
        out[1:, 1:] = of_attributes
        return out


def cross_hessian(likelihoods: Floats, curvature: Floats) -> Floats:
    """Add up L[c] · curvature[c, e] · L[e]ᵀ over all classes and rows.

    likelihoods (K, d, s), curvature (s, K, K) -> (d, d). Row by row in one batched
    product: fifteen times as fast as K² products of whole columns with 26 classes.
    """
    d = likelihoods.shape[1]
    by_row = np.ascontiguousarray(likelihoods.transpose(2, 1, 0))
    scaled = by_row @ curvature
    flat = by_row.transpose(1, 0, 2).reshape(d, -1)
    return np.asarray(scaled.transpose(1, 0, 2).reshape(d, -1) @ flat.T)


class ValueWeighting(Weighting):
    r"""One exponent per class, attribute and value.

    .. math:: z_c(x) = \log \pi_c + \sum_j W_{c,j,x_j} \log \theta_{j,x_j|c}

    A Gaussian attribute counts as one value. The weights come class by class, first
    those of the coded attributes' values in order, then those of Gaussian attributes.
    """

    has_shapes: ClassVar[bool] = True

    def _size(self, evidence: LogProbs) -> int:
        per_class = len(evidence.value_rows) + len(evidence.gaussian)
        return evidence.n_classes * per_class

    def _owner(self, evidence: LogProbs) -> Ints:
        features = evidence.table.spread(np.arange(evidence.n_features))
        owner = np.concatenate([features[evidence.value_rows], evidence.gaussian])
        return np.tile(owner, evidence.n_classes)

    def _apply(self, weights: Floats, evidence: LogProbs) -> tuple[Floats, Floats]:
        matrix = weights.reshape(evidence.n_classes, -1)
        rows = evidence.value_rows
        table = np.zeros_like(evidence.table.values)
        table[rows] = matrix[:, : len(rows)].T * evidence.table.values[rows]
        return table, matrix[:, len(rows) :].T

    def _pullback(self, gradient: Effect, evidence: LogProbs) -> Floats:
        rows = evidence.value_rows
        inner = gradient.table[rows] * evidence.table.values[rows]
        return np.concatenate([inner.T, gradient.multipliers.T], axis=1).ravel()

    def _fitted(self, weights: Floats, evidence: LogProbs) -> dict[str, Any]:
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


class MixtureWeighting(Weighting):
    r"""Two posteriors, mixed by a learned share.

    .. math:: P_c = \alpha P^D_c + (1 - \alpha) P^I_c, \qquad 0 \le \alpha \le 1

    with :math:`P^D` from weights per class and attribute, :math:`P^I` from weights per
    attribute. The vector is :math:`\alpha`, then those of :math:`P^D`, then
    those of :math:`P^I` (each with a separate prior weight, if asked for).
    ``RegularizedNB`` learns these; see there for the paper.
    """

    has_hessian: ClassVar[bool] = True
    is_mixture: ClassVar[bool] = True

    def halves(self) -> tuple[Weighting, Weighting]:
        """Return the weightings of both halves, the class-specific one first."""
        return (
            ClassAttributeWeighting(prior_weight=self.prior_weight),
            AttributeWeighting(prior_weight=self.prior_weight),
        )

    def size(self, evidence: LogProbs) -> int:
        """Count the weights."""
        return 1 + sum(half.size(evidence) for half in self.halves())

    def start(self, evidence: LogProbs) -> Floats:
        """Return the published start: all weights one, alpha one half."""
        return np.concatenate([[0.5], np.ones(self.size(evidence) - 1)])

    def bounds(
        self, evidence: LogProbs, low: Floats, high: Floats
    ) -> tuple[Floats, Floats]:
        """Spread bounds per attribute over the weights; alpha stays in [0, 1]."""
        pairs = [half.bounds(evidence, low, high) for half in self.halves()]
        lower = np.concatenate([[0.0], *(pair[0] for pair in pairs)])
        upper = np.concatenate([[1.0], *(pair[1] for pair in pairs)])
        return lower, upper

    def split(
        self, weights: Floats, evidence: LogProbs
    ) -> tuple[float, Floats, Floats]:
        """Split a vector into alpha and the weights of both halves."""
        cut = 1 + self.halves()[0].size(evidence)
        return float(weights[0]), weights[1:cut], weights[cut:]

    def mixed_effects(
        self, weights: Floats, evidence: LogProbs
    ) -> tuple[float, tuple[Effect, ...]]:
        """Turn weights into alpha and the effects of both halves."""
        alpha, specific, shared = self.split(weights, evidence)
        first, second = self.halves()
        effects = first.apply(specific, evidence), second.apply(shared, evidence)
        return alpha, effects

    def pullback_halves(
        self, d_alpha: float, specific: Effect, shared: Effect, evidence: LogProbs
    ) -> Floats:
        """Turn gradients with respect to alpha and both effects into one vector."""
        first, second = self.halves()
        return np.concatenate(
            [
                [d_alpha],
                first.pullback(specific, evidence),
                second.pullback(shared, evidence),
            ]
        )

    def fitted(self, weights: Floats, evidence: LogProbs) -> dict[str, Any]:
        """Name the weights as fitted attributes of a classifier."""
        alpha, specific, shared = self.split(weights, evidence)
        first, second = self.halves()
        return {
            "alpha_": alpha,
            **first.fitted(specific, evidence),
            **second.fitted(shared, evidence),
        }
