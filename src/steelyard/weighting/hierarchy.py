"""Hierarchical weights: shared by classes, by class, and effects of single values.

`with_base_rate` starts the fitted model at the base rate of the classes.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.sparse import csr_array, eye_array, hstack, kron

from steelyard._common.arrays import Floats, Ints
from steelyard._common.settings import (
    COLUMN,
    FALSE,
    INFINITY,
    NONE,
    listed,
    number,
    setting,
)
from steelyard.exceptions import ParameterError
from steelyard.kernels.fitting import collect_table, weigh_table
from steelyard.model.table_model import NBModel
from steelyard.proba.counts import Counts
from steelyard.table.codes import FeatureTable
from steelyard.weighting.base import Effect, LogProbs, Weighting

# An infinite strength in computations.
_RIGID = 1e12

# Columns of more categories have strengths in proportion to their number: there are few
# rows for each.
_MAX_PLAIN_CATEGORIES = 20.0


class _Levels(NamedTuple):
    """The levels of a vector of weights."""

    intercept: Floats
    """Shape (K,)."""

    overall: Floats
    """Shape (1,)."""

    shared: Floats
    """Shape (d,)."""

    by_class: Floats
    """Shape (d, K)."""

    by_value: Floats
    """Shape (values, K)."""


class HierarchicalWeighting(Weighting):
    r"""Weights on several levels, each drawn towards the level above it.

    .. math:: z_c(x) = \log \pi_c + b_c + \sum_k (w_k + V_{kc})\, e_k(x)_c
              + \sum_j U_{j,x_j,c}

    with the ridge
    :math:`\lambda_t (t - t_0)^2 + \lambda_w \sum (w_k - t c_k)^2 + \lambda_V \sum V^2 +
    \lambda_U \sum U^2 + \lambda_b \sum b^2`, where :math:`c_k` is 1 for the
    first attribute of a column and 0 for further ones and for interactions, whose
    effects have the strength :math:`\lambda_P` in place of :math:`\lambda_U`. The
    slopes of a linear attribute are effects of values too, with a strength of
    :math:`s \lambda_U`. If all strengths are large the model is naive Bayes; each level
    departs from it as far as the rows support.
    """

    has_shapes: ClassVar[bool] = True

    @property
    def joined_columns(self) -> Any:
        """Interactions, which become further attributes."""
        return self.interactions or ()

    shared: float = setting(
        default=2.5, allowed=number(0.0), about=r"Strength :math:`\lambda_w`."
    )
    by_class: float = setting(
        default=10.0, allowed=number(0.0), about=r"Strength :math:`\lambda_V`."
    )
    by_value: float = setting(
        default=2.5, allowed=number(0.0), about=r"Strength :math:`\lambda_U`."
    )
    by_interaction: float = setting(
        default=2.5,
        allowed=number(0.0),
        about=r"Strength :math:`\lambda_P` of interactions.",
        kw_only=True,
    )
    intercept: float = setting(
        default=0.5, allowed=number(0.0), about=r"Strength :math:`\lambda_b`."
    )
    interactions: Any = setting(
        default=None,
        allowed=(NONE | listed(listed(COLUMN, 2))).called(
            "None or a list of pairs of columns"
        ),
        about="Interactions with effects beside those of their columns.",
    )
    overall: float = setting(
        default=0.5,
        allowed=number(0.0) | INFINITY,
        about=r"Strength :math:`\lambda_t`; infinity keeps t at :math:`t_0`.",
    )
    slope: float = setting(
        default=0.1,
        allowed=number(0.0),
        about="Share s of ``by_value`` that penalizes the slopes of linear attributes.",
    )
    intervals: float = setting(
        default=1.0,
        allowed=number(0.0),
        about="Factor on the strengths of bins of a column that has finer bins too.",
        kw_only=True,
    )
    share: float = setting(
        default=1.0,
        allowed=number(0.0),
        about="Share of naive Bayes that the weights of categories are drawn to, "
        ":math:`t_0`.",
        kw_only=True,
    )
    prior_weight: bool = setting(
        default=False,
        allowed=FALSE.called("False, since its intercepts correct the prior"),
        about="Not available: the intercepts take its place.",
        kw_only=True,
    )

    def size(self, evidence: LogProbs) -> int:
        """Count the weights."""
        k, d = evidence.n_classes, evidence.n_features
        return k + 1 + d + (d + len(evidence.basis.owners)) * k

    def start(self, evidence: LogProbs) -> Floats:
        """Return the weights of plain naive Bayes."""
        return self.strengths(evidence)[1]

    def strengths(self, evidence: LogProbs) -> tuple[Floats, Floats]:
        """Return the regularisation strength and the prior mean of every weight."""
        schema, basis = evidence.schema, evidence.basis
        k, d = evidence.n_classes, evidence.n_features
        factor = np.where(basis.encodings.is_coarser, self.intervals, 1.0)
        by_class = np.full(d, self.by_class)
        by_class[schema.is_linear] = self.slope * self.by_value
        by_value = self.by_value * np.maximum(
            schema.n_categories / _MAX_PLAIN_CATEGORIES, 1.0
        )
        by_value = np.where(
            schema.is_interaction, self.by_interaction, factor * by_value
        )
        strength = np.concatenate(
            [
                np.full(k, self.intercept),
                [min(float(self.overall), _RIGID)],
                factor * self.shared,
                np.repeat(factor * by_class, k),
                np.repeat(by_value[basis.owners], k),
            ]
        )
        center = np.zeros(len(strength))
        center[k] = self.share
        return strength, center

    def bounds(
        self, evidence: LogProbs, low: Floats, high: Floats
    ) -> tuple[Floats, Floats]:
        """Return no bounds: these weights are limited by the penalty alone."""
        if np.isfinite(low).any() or np.isfinite(high).any():
            raise ParameterError(
                "weighting='hierarchy' has no bounds; its strengths hold the weights. "
                "Use bounds=None."
            )
        size = self.size(evidence)
        return np.full(size, -np.inf), np.full(size, np.inf)

    def levels(self, weights: Floats, evidence: LogProbs) -> _Levels:
        """Split a vector of weights into its levels."""
        k, d = evidence.n_classes, evidence.n_features
        first = k + 1 + d
        return _Levels(
            weights[:k],
            weights[k : k + 1],
            weights[k + 1 : first],
            weights[first : first + d * k].reshape(d, k),
            weights[first + d * k :].reshape(-1, k),
        )

    def with_interactions(
        self, weights: Floats, before: LogProbs, after: LogProbs
    ) -> Floats:
        """Return the same weights with zeros for interactions that were added."""
        level, out = self.levels(weights, before), np.zeros(self.size(after))
        for old, new in zip(level, self.levels(out, after), strict=True):
            new[: len(old)] = old
        return out

    def apply(self, weights: Floats, evidence: LogProbs) -> Effect:
        """Turn weights into their effect on the scores."""
        effect = self.by_encoding(weights, evidence)
        table = evidence.encodings.added(effect.table)
        return Effect(evidence.log_prior + effect.base, table, effect.multipliers)

    def by_encoding(self, weights: Floats, evidence: LogProbs) -> Effect:
        """Return the effect with a table by the codes of encodings, E w + B u."""
        level, total = self.levels(weights, evidence), self.totals(weights, evidence)
        values, owners = evidence.table.values, evidence.table.owners.view(np.uint64)
        table, basis = np.zeros(values.shape), evidence.basis.entries
        weigh_table(owners, total, values, *basis, level.by_value, table)
        return Effect(level.intercept, table, total[evidence.gaussian])

    def pullback(self, gradient: Effect, evidence: LogProbs, power: int = 1) -> Floats:
        """Turn a gradient with respect to the effect into one for the weights.

        With a ``power`` of 2 that is done by the squares of what weights multiply:
        curvatures of the effect become those of the weights, couplings left out.
        """
        entries, values = evidence.basis.transposed_entries, evidence.table.values
        if power > 1:
            entries, values = evidence.basis.squared_entries, values**power
        by_class = np.zeros((evidence.n_features, evidence.n_classes))
        by_value = np.zeros((len(entries[0]) - 1, evidence.n_classes))
        owners = evidence.table.owners.view(np.uint64)
        table = evidence.encodings.collected(gradient.table)
        collect_table(owners, values, *entries, table, by_class, by_value)
        by_class[evidence.gaussian] = gradient.multipliers
        shared = by_class.sum(axis=1)
        overall = [shared @ evidence.centers]
        return np.concatenate(
            [gradient.base, overall, shared, by_class.ravel(), by_value.ravel()]
        )

    def jacobian(self, evidence: LogProbs, rows: Ints) -> csr_array:
        """Return the derivative of some table rows by weights: shape (rows · K, p)."""
        k, d = evidence.n_classes, evidence.n_features
        joined = evidence.encodings.matrix[rows]
        rows = np.unique(joined.indices)  # of encodings
        values = evidence.table.values[rows]
        owner = evidence.table.spread(np.arange(d))[rows].astype(np.int64)
        weight = (owner[:, None] * k + np.arange(k)).ravel()
        cells = np.arange(values.size), weight
        by_class = csr_array((values.ravel(), cells), shape=(values.size, d * k))
        shared = csr_array(by_class @ kron(eye_array(d), np.ones((k, 1))))
        overall = shared @ csr_array(evidence.centers[:, None])
        by_value = kron(evidence.basis.matrix[rows], eye_array(k))
        levels = [csr_array((values.size, k)), overall, shared, by_class, by_value]
        return csr_array(kron(joined[:, rows], eye_array(k)) @ hstack(levels, "csr"))

    def _shared(self, level: _Levels, evidence: LogProbs) -> Floats:
        """Shared weights of all attributes: the overall weight plus the differences."""
        return level.overall[0] * evidence.centers + level.shared

    def totals(self, weights: Floats, evidence: LogProbs) -> Floats:
        """Return the weights of evidence, shared ones and those of classes, (d, K)."""
        level = self.levels(weights, evidence)
        return self._shared(level, evidence)[:, None] + level.by_class

    def fitted(self, weights: Floats, evidence: LogProbs) -> dict[str, Any]:
        """Name the weights as fitted attributes of a classifier.

        Those of several encodings of a column are added up.
        """
        level, encodings = self.levels(weights, evidence), evidence.encodings
        shared = self._shared(level, evidence)
        total = encodings.by_column(shared[:, None] + level.by_class)
        # A slope that all classes share has no effect; it is rounding.
        shared = encodings.by_column(np.where(evidence.schema.is_linear, 0.0, shared))
        by_code = encodings.added(evidence.basis.matrix @ level.by_value)
        # Code 0 has none; densities have no codes.
        ends = pairwise(encodings.joined.offsets)
        effects = [by_code[first + 1 : stop].T for first, stop in ends]
        return {
            "attribute_weights_": shared,
            "class_attribute_weights_": np.ascontiguousarray(total.T),
            "value_effects_": effects,
            "intercept_": level.intercept,
        }


def base_shares(
    weighting: HierarchicalWeighting,
    weights: Floats,
    evidence: LogProbs,
    counts: Counts,
) -> Floats | None:
    r"""Return shares of columns in the variance of scores over the training rows.

    Shape (V, K), the same for all observed codes of a column, whose encodings are added
    up. None if there are none, or no base rate.
    """
    if not np.isfinite(evidence.log_prior).all():
        return None
    encodings, schema = evidence.encodings, evidence.schema
    values = weighting.by_encoding(weights, evidence).table
    counts = encodings.counts(counts)
    observed = np.ones(schema.n_codes, dtype=bool)
    observed[schema.first_codes] = False
    for j in np.flatnonzero(schema.is_interaction).tolist():
        # An interaction is observed if both its sides are.
        cells = slice(*schema.offsets[j : j + 2])
        observed[cells] = schema.features[j].both_known
    table = FeatureTable(values, schema.offsets)
    weight = np.where(observed, counts.by_code.sum(axis=1), 0.0)[:, None]
    weight = weight / np.maximum(table.spread(table.collect(weight)), 1e-300)
    mean = table.spread(table.collect(weight * values))
    variance = table.collect(weight * (values - mean) ** 2)
    total = variance.sum(axis=0)
    if not (total > 0.0).all():
        return None
    shares = np.where(observed[:, None], table.spread(variance / total), 0.0)
    return encodings.added(shares)


def with_base_rate(model: NBModel, shares: Floats | None, log_prior: Floats) -> NBModel:
    r"""Start at the base rate, and share the rest of the intercept among columns.

    .. math:: \tilde b = \frac{1}{s} \log \pi, \qquad \tilde T_{jvc} = T_{jvc} +
        \omega_{jc} (b_c - \tilde b_c)

    with the base rates :math:`\pi`, the scale s of the scores, and the shares
    :math:`\omega` of ``base_shares``. Scores of rows without a missing cell stay as
    they are, up to rounding and up to a constant over classes. A missing cell adds
    nothing, as before, but now to the base rate.
    """
    if shares is None:
        return model
    base = log_prior / model.link_scale
    left = model.log_prior - base
    left -= left.mean()
    return replace(model, log_prior=base, table=model.table + shares * left)
