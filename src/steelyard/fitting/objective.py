"""The training objective: weights in, loss and gradient out; RNB has another one."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from steelyard._common import progress
from steelyard._common.arrays import Floats, Ints, Labels
from steelyard.fitting.recipe import Penalty
from steelyard.fitting.rows import Passes
from steelyard.losses import Loss, residual_term
from steelyard.model.base import Curvature, one_hot, softmax, softmax_jacobian, weighted
from steelyard.table.codes import FeatureTable
from steelyard.weighting import LogProbs, MixtureWeighting, Weighting

if TYPE_CHECKING:
    from steelyard.fitting.rows import PackedRows
    from steelyard.solvers import Box, Preconditioner

# Rows from which a sampled Hessian is made: about fifty per attribute. Below the
# limit a pass costs little more than the sample: 30 rows do, and one pass more now and
# then.
_SAMPLE_PER_FEATURE = 50
_SAMPLE_PER_FEATURE_OF_FEW_ROWS = 30
# Gauss-Newton steps are rough anyway, and the Hessian of a mixture costs most.
_SAMPLE_PER_FEATURE_OF_MIXTURE = 40
_FEW_ROWS = 300_000
_MIN_SAMPLE = 1_000
_MAX_SAMPLE = 10_000
_MAX_SAMPLE_CELLS = 8_000_000


@dataclass
class Objective:
    r"""Loss of a weighted naive Bayes model as a function of its weights.

    .. math:: F(w) = \sum_i u_i\, \ell(z_i(w), y_i) + \lambda \sum_k (w_k - c)^2
    """

    rows: Passes
    evidence: LogProbs
    weighting: Weighting
    loss: Loss
    penalty: Penalty | None = None
    n_evaluations: int = field(default=0, init=False)

    @property
    def size(self) -> int:
        """Number of weights."""
        return self.weighting.size(self.evidence)

    @property
    def is_convex(self) -> bool:
        """Whether the objective is convex in the weights."""
        return self.loss.convex

    @property
    def has_hessian(self) -> bool:
        """Whether second derivatives can be assembled."""
        return self.weighting.has_hessian

    @property
    def has_penalty(self) -> bool:
        """Whether weights have a penalty."""
        return self.penalty is not None

    @property
    def total_weight(self) -> float:
        """Sum of the row weights."""
        return self.rows.total_weight

    @property
    def n_rows(self) -> int:
        """Number of training rows."""
        return self.rows.n_rows

    def __call__(self, weights: Floats) -> tuple[float, Floats]:
        """Return the objective and its gradient."""
        self.n_evaluations += 1
        value, gradient = self._with_penalty(weights, *self._evaluate(weights))
        if progress.current is not None:
            progress.current.passed(self.n_rows, value)
        return value, gradient

    def _evaluate(self, weights: Floats) -> tuple[float, Floats]:
        """Return the loss and its gradient."""
        effect = self.weighting.apply(weights, self.evidence)
        value, by_effect = self.rows.evaluate(self.loss, effect)
        return value, self.weighting.pullback(by_effect, self.evidence)

    def _with_penalty(
        self, weights: Floats, value: float, gradient: Floats
    ) -> tuple[float, Floats]:
        if self.penalty is None:
            return value, gradient
        extra, slope = self.penalty.value_and_gradient(weights)
        return value + extra, gradient + slope

    def with_tables(self, weights: Floats) -> tuple[float, Floats, Floats, Floats]:
        """Return value, gradient, and the gradients of log-probabilities and prior.

        The last two, of shapes (V, K) and (K,), are with respect to the evidence before
        it is weighted: they lead on to whatever the evidence is made from.
        """
        evidence, weighting = self.evidence, self.weighting
        value, by_effect = self.rows.evaluate(
            self.loss, weighting.apply(weights, evidence)
        )
        gradient = weighting.pullback(by_effect, evidence)
        # The effect is the weights times the evidence, entry by entry.
        ones = FeatureTable(np.ones_like(evidence.table.values), evidence.table.offsets)
        prior = np.ones_like(evidence.log_prior)
        factors = weighting.apply(weights, LogProbs(evidence.basis, prior, ones))
        by_table = factors.table * by_effect.table
        by_prior = factors.base * by_effect.base
        return *self._with_penalty(weights, value, gradient), by_table, by_prior

    def refuses_second_order(self) -> str:
        """Return why second-order steps cannot be used; '' if they can."""
        for part in (self.loss, self.weighting):
            if not part.has_hessian:
                return f"{type(part).__name__} has no second derivatives."
        if not self.loss.has_true_gradient:
            return (
                "the published gradient is not the derivative of the loss, which "
                "second-order steps rely on."
            )
        return ""

    def preconditioner(self, weights: Floats, box: Box) -> Preconditioner | None:
        """Return a scaling to curvatures of about one, None if there is none."""
        from steelyard.fitting.default.preconditioner import preconditioner_of

        return preconditioner_of(self, weights, box)

    # ---------------------------------------------------------- second derivatives

    def default_sample(self) -> int:
        """Rows that a sampled Hessian is made from."""
        d = self.evidence.n_features
        size = int(np.clip(self._sample_per_feature() * d, _MIN_SAMPLE, _MAX_SAMPLE))
        limit = _MAX_SAMPLE_CELLS // max(1, d * self.evidence.n_classes)
        return min(size, max(limit, 100), self.n_rows)

    def _sample_per_feature(self) -> int:
        if self.n_rows < _FEW_ROWS:
            return _SAMPLE_PER_FEATURE_OF_FEW_ROWS
        return _SAMPLE_PER_FEATURE

    def sampled_hessian(self, sample: Sample, weights: Floats, exact: bool) -> Floats:
        """Second derivatives of the loss from a sample of the rows, shape (p, p)."""
        curvature = sample.curvature(weights, exact)
        return self.weighting.hessian(sample.entries, curvature)

    def sample(self, n_rows: int) -> Sample:
        """Draw rows, always the same ones; all of them if there are no more."""
        if n_rows >= self.n_rows:
            return Sample(self, self.rows.take(None), 1.0, True)
        picked = np.random.default_rng(0).choice(
            self.n_rows, n_rows, replace=False, shuffle=False
        )
        rows = self.rows.take(np.sort(picked))
        return Sample(self, rows, self.total_weight / rows.total_weight, False)


class Sample:
    """Rows that represent all of them in second derivatives."""

    def __init__(
        self, objective: Objective, rows: PackedRows, scale: float, is_all: bool
    ) -> None:
        self._objective, self._scale = objective, scale
        self.rows, self.is_all = rows, is_all
        """The rows, and whether they are the whole table."""

    @property
    def n_rows(self) -> int:
        """Number of rows in the sample."""
        return self.rows.n_rows

    def curvature(self, weights: Floats, exact: bool) -> Curvature:
        """Second derivatives of the loss in the scores of the sample."""
        scores = self.scores(weights)
        loss = self._objective.loss
        return loss.hessian(scores, self.rows.y, self.scaled_weights(), exact)

    def hessian(self, weights: Floats, exact: bool = True) -> Floats:
        """Second derivatives in the weights, assembled, shape (p, p)."""
        out = self._objective.sampled_hessian(self, weights, exact)
        if self._objective.penalty is not None:
            out = out + np.diag(self._objective.penalty.curvature(len(out)))
        return out

    def scores(self, weights: Floats) -> Floats:
        """Scores of the sample, shape (s, K)."""
        objective = self._objective
        effect = objective.weighting.apply(weights, objective.evidence)
        return self.rows.scores(effect)

    def table_rows(self) -> Ints:
        """Table row of each encoding of every cell, shape (s, coded)."""
        of = self._objective.evidence.encodings
        return of.table_rows(self.rows.table_rows())

    def indicators(self, dtype: Any = np.float64) -> csr_array:
        """Return ones at the codes of each row, by encoding: shape (s, V)."""
        cells = self.table_rows()
        starts = cells.shape[1] * np.arange(len(cells) + 1)
        shape = len(cells), self._objective.evidence.schema.n_codes
        return csr_array((np.ones(cells.size, dtype), cells.ravel(), starts), shape)

    @cached_property
    def entries(self) -> Floats:
        """Log-likelihoods of the sample, (K, d, s); first the prior, if weighted."""
        evidence = self._objective.evidence
        entries = self.rows.likelihoods(self.table_rows(), evidence)
        if self._objective.weighting.prior_weight:
            shape = (entries.shape[0], 1, entries.shape[2])
            prior = np.broadcast_to(evidence.log_prior[:, None, None], shape)
            entries = np.concatenate([prior, entries], axis=1)
        return entries

    def row_weights(self) -> Floats:
        """Row weights under which the sample represents all rows, shape (s,)."""
        weights = self.scaled_weights()
        return np.ones(self.n_rows) if weights is None else weights

    def scaled_weights(self) -> Floats | None:
        """Return the same, None if all are one."""
        if self.is_all:
            return self.rows.weights if self.rows.weights.size else None
        weights = self.rows.weights if self.rows.weights.size else 1.0
        return np.full(self.rows.n_rows, self._scale) * weights


class MixtureObjective(Objective):
    r"""Half the squared error of :math:`\alpha P^D + (1 - \alpha) P^I`."""

    weighting: MixtureWeighting

    def _sample_per_feature(self) -> int:
        return _SAMPLE_PER_FEATURE_OF_MIXTURE

    def _evaluate(self, weights: Floats) -> tuple[float, Floats]:
        alpha, (specific, shared) = self.weighting.mixed_effects(weights, self.evidence)
        value, d_alpha, *gradients = self.rows.evaluate_mixture(
            alpha, (specific, shared), not self.loss.has_true_gradient
        )
        return value, self.weighting.pullback_halves(
            d_alpha, gradients[0], gradients[1], self.evidence
        )

    def sampled_hessian(self, sample: Sample, weights: Floats, exact: bool) -> Floats:
        r"""Second derivatives of the squared error from a sample of the rows.

        With :math:`r = \alpha P^D + (1-\alpha) P^I - Y`, S the softmax Jacobian of each
        half and :math:`E(r, P) = \sum_c r_c P_c ((e_c - P)(e_c - P)^\top - S)`:

        .. math::
            M_{DD} &= \alpha^2 S_D^2 + \alpha E(r, P^D), \quad
            M_{II} = (1-\alpha)^2 S_I^2 + (1-\alpha) E(r, P^I) \\
            M_{DI} &= \alpha (1-\alpha) S_D S_I, \quad
            m_{\alpha\alpha} = |P^D - P^I|^2 \\
            m_{\alpha D} &= \alpha S_D (P^D - P^I) + S_D r, \quad
            m_{\alpha I} = (1-\alpha) S_I (P^D - P^I) - S_I r

        Without ``exact`` the terms in r are left out: the Gauss-Newton matrix.
        """
        alpha, (specific, shared) = self.weighting.mixed_effects(weights, self.evidence)
        rows = sample.rows
        by_row = _by_row(
            alpha, rows.scores(specific), rows.scores(shared), rows.y, exact
        )
        m_dd, m_ii, m_di, a_d, a_i, m_aa = (
            weighted(m, sample.scaled_weights()) for m in by_row
        )
        entries = sample.entries
        first, second = self.weighting.halves()
        d_block = first.hessian(entries, Curvature(full=m_dd))
        i_block = second.hessian(entries, Curvature(full=m_ii))
        block, d_slope, i_slope = self._cross(entries, m_di, a_d, a_i)
        n_d, n_i = len(d_block), len(i_block)
        d_part, i_part = slice(1, 1 + n_d), slice(1 + n_d, 1 + n_d + n_i)
        out = np.zeros((1 + n_d + n_i, 1 + n_d + n_i))
        out[0, 0] = m_aa.sum()
        out[d_part, d_part] = d_block
        out[i_part, i_part] = i_block
        out[d_part, i_part] = block
        out[i_part, d_part] = block.T
        out[0, d_part] = out[d_part, 0] = d_slope
        out[0, i_part] = out[i_part, 0] = i_slope
        return out

    def _cross(
        self, entries: Floats, m_di: Floats, a_d: Floats, a_i: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Second derivatives between the halves, and of each with alpha."""
        k, n_i = len(entries), entries.shape[1]
        product = m_di @ entries.transpose(2, 0, 1)
        by_class = np.stack([entries[c] @ product[:, c] for c in range(k)])
        d_slope = np.einsum("cjs,sc->cj", entries, a_d)
        i_slope = np.einsum("cjs,sc->j", entries, a_i)
        if not self.weighting.prior_weight:
            return by_class.reshape(-1, n_i), d_slope.ravel(), i_slope
        # The prior's weight of the first half is shared by its classes.
        top = by_class[:, :1].sum(axis=0)
        block = np.concatenate([top, by_class[:, 1:].reshape(-1, n_i)])
        slope = np.concatenate([[d_slope[:, 0].sum()], d_slope[:, 1:].ravel()])
        return block, slope, i_slope


def _by_row(
    alpha: float, specific: Floats, shared: Floats, y: Labels, exact: bool
) -> tuple[Floats, ...]:
    """Second derivatives in the scores of each row, and in alpha."""
    p_d, p_i = softmax(specific), softmax(shared)
    s_d, s_i = softmax_jacobian(p_d), softmax_jacobian(p_i)
    gap = p_d - p_i
    r = alpha * p_d + (1.0 - alpha) * p_i - one_hot(y, p_d.shape[1])
    m_dd = alpha**2 * (s_d @ s_d)
    m_ii = (1.0 - alpha) ** 2 * (s_i @ s_i)
    m_di = alpha * (1.0 - alpha) * (s_d @ s_i)
    a_d = alpha * np.einsum("ice,ie->ic", s_d, gap)
    a_i = (1.0 - alpha) * np.einsum("ice,ie->ic", s_i, gap)
    if exact:
        m_dd += alpha * residual_term(r, p_d, s_d)
        m_ii += (1.0 - alpha) * residual_term(r, p_i, s_i)
        a_d += np.einsum("ice,ie->ic", s_d, r)
        a_i -= np.einsum("ice,ie->ic", s_i, r)
    return m_dd, m_ii, m_di, a_d, a_i, (gap * gap).sum(axis=1)
