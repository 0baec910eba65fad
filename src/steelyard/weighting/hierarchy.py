"""Hierarchical weights: shared by classes, by class, and effects of single values.

`with_base_rate` starts the fitted model at the base rate of the classes.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.sparse import csr_array, kron

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

# Stands for an infinite strength in computations.
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
    :math:`\lambda_t (t - 1)^2 + \lambda_w \sum (w_k - t c_k)^2 + \lambda_V \sum V^2 +
    \lambda_U \sum U^2 + \lambda_b \sum b^2`, where :math:`c_k` is 1 for the
    first attribute of a column and 0 for further ones and for interactions, whose
    effects have the strength :math:`\lambda_P` in place of :math:`\lambda_U`. The
    slopes of a linear attribute are effects of values too, with a strength of
    :math:`s \lambda_U`. If all strengths are large the model is naive Bayes; each level
    departs from it as far as the rows support.
    """

    has_levels: ClassVar[bool] = True
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
        about="Interactions with effects of their own.",
    )
    overall: float = setting(
        default=0.5,
        allowed=number(0.0) | INFINITY,
        about=r"Strength :math:`\lambda_t`; infinity holds t at 1.",
    )
    slope: float = setting(
        default=0.1,
        allowed=number(0.0),
        about="Share s of ``by_value`` that holds the slopes of linear attributes.",
    )
    intervals: float = setting(
        default=1.0,
        allowed=number(0.0),
        about="How many times more strongly bins of a column are held that has finer "
        "ones besides.",
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
        strengths = self.strengths(evidence)
        assert strengths is not None
        return strengths[1]

    def strengths(self, evidence: LogProbs) -> tuple[Floats, Floats]:
        """Strength and centre of every weight."""
        k, d = evidence.n_classes, evidence.n_features
        overall = min(float(self.overall), _RIGID)
        of_class = np.full(d, self.by_class)
        of_class[evidence.schema.is_linear] = self.slope * self.by_value
        owners, schema = evidence.basis.owners, evidence.schema
        of_value = self.by_value * np.maximum(
            schema.n_categories / _MAX_PLAIN_CATEGORIES, 1.0
        )
        held = np.where(evidence.encodings.is_coarser, self.intervals, 1.0)
        of_value = np.where(
            schema.is_interaction, self.by_interaction, held * of_value
        )[owners]
        strength = np.concatenate(
            [
                np.full(k, self.intercept),
                [overall],
                held * self.shared,
                np.repeat(held * of_class, k),
                np.repeat(of_value, k),
            ]
        )
        center = np.zeros(len(strength))
        center[k] = 1.0
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
        level, d, k = self.levels(weights, before), after.n_features, after.n_classes
        shared, by_class = np.zeros(d), np.zeros((d, k))
        by_value = np.zeros((len(after.basis.owners), k))
        shared[: before.n_features] = level.shared
        by_class[: before.n_features] = level.by_class
        by_value[: len(level.by_value)] = level.by_value
        parts = (level.intercept, level.overall, shared, by_class, by_value)
        return np.concatenate([part.ravel() for part in parts])

    def apply(self, weights: Floats, evidence: LogProbs) -> Effect:
        """Turn weights into their effect on the scores."""
        effect = self.by_encoding(weights, evidence)
        table = evidence.encodings.added(effect.table)
        return Effect(evidence.log_prior + effect.base, table, effect.multipliers)

    def by_encoding(self, weights: Floats, evidence: LogProbs) -> Effect:
        """Return the effect with a table by the codes of encodings."""
        level, total = self.levels(weights, evidence), self.totals(weights, evidence)
        values, entries = evidence.table.values, evidence.basis.entries
        owners, table = evidence.table.owners.view(np.uint64), np.zeros(values.shape)
        weigh_table(owners, total, values, *entries, level.by_value, table)
        return Effect(level.intercept, table, total[evidence.gaussian])

    def pullback(self, gradient: Effect, evidence: LogProbs, power: int = 1) -> Floats:
        """Turn a gradient with respect to the effect into one for the weights.

        With a ``power`` of 2 what weights multiply counts by its squares.
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
        if not evidence.encodings.is_joint:
            picked = evidence.encodings.matrix[rows]
            own = np.unique(picked.indices)
            parts = kron(picked[:, own], np.eye(evidence.n_classes))
            return csr_array(parts @ self._jacobian(evidence, own))
        return self._jacobian(evidence, rows)

    def _jacobian(self, evidence: LogProbs, rows: Ints) -> csr_array:
        """Return the same for table rows of encodings."""
        k, d = evidence.n_classes, evidence.n_features
        owner = evidence.table.spread(np.arange(d))[rows].astype(np.int64)
        basis = evidence.basis.matrix[rows].tocoo()
        own, first = evidence.table.values[rows].ravel(), k + 1 + d
        center = np.repeat(evidence.centers[owner], k)
        c, place = np.tile(np.arange(k), len(rows)), np.arange(k * len(rows))
        owner, on = np.repeat(owner, k), np.tile(np.arange(k), basis.nnz)
        where = np.repeat(basis.row, k) * k + on, np.repeat(basis.col, k) * k + on
        levels = np.full(len(c), k), k + 1 + owner, first + owner * k + c
        entries = np.concatenate([center * own, own, own, np.repeat(basis.data, k)])
        places = np.concatenate([place, place, place, where[0]])
        columns = np.concatenate([*levels, first + d * k + where[1]])
        return csr_array(
            (entries, (places, columns)), shape=(len(place), self.size(evidence))
        )

    def diagonal(self, curvature: Effect, evidence: LogProbs) -> Floats:
        """Turn curvatures of the effect into those of the weights, couplings left out.

        Curvatures of a shared weight are added up over the classes.
        """
        return self.pullback(curvature, evidence, power=2)

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
        level, of = self.levels(weights, evidence), evidence.encodings
        shared = self._shared(level, evidence)
        total = of.by_column(shared[:, None] + level.by_class)
        # A slope that all classes share has no effect; it is rounding.
        shared = of.by_column(np.where(evidence.schema.is_linear, 0.0, shared))
        by_code = of.added(evidence.basis.matrix @ level.by_value)
        offsets = of.joined.offsets
        # Code 0 has none; densities have no codes.
        effects = [by_code[low + 1 : high].T for low, high in pairwise(offsets)]
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
    of, schema = evidence.encodings, evidence.schema
    values, counts = weighting.by_encoding(weights, evidence).table, of.counts(counts)
    observed = np.ones(schema.n_codes, dtype=bool)
    observed[schema.first_codes] = False
    for j in np.flatnonzero(schema.is_interaction).tolist():
        # An interaction is observed if both its sides are.
        observed[schema.offsets[j] : schema.offsets[j + 1]] = schema.features[
            j
        ].both_known
    table = FeatureTable(values, schema.offsets)
    weight = np.where(observed, counts.by_code.sum(axis=1), 0.0)[:, None]
    weight = weight / np.maximum(table.spread(table.collect(weight)), 1e-300)
    mean = table.spread(table.collect(weight * values))
    variance = table.collect(weight * (values - mean) ** 2)
    total = variance.sum(axis=0)
    if not (total > 0.0).all():
        return None
    shares = np.where(observed[:, None], table.spread(variance / total), 0.0)
    return of.added(shares)


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
