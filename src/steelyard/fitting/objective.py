"""The training objective: weights in, loss and gradient out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from steelyard._common.arrays import Floats, Ints
from steelyard.fitting.constraints import Penalty
from steelyard.fitting.rows import Passes
from steelyard.losses import Loss
from steelyard.model.posteriors import Curvature
from steelyard.table.codes import FeatureTable
from steelyard.weighting import LogProbs, Weighting

if TYPE_CHECKING:
    from steelyard.fitting.rows import PackedRows
    from steelyard.solvers import Box, Units

# Rows from which a sampled Hessian is made: about fifty per attribute. Below so many
# rows a pass costs little more than the sample: 30 rows do, and one pass more now and
# then.
_SAMPLE_PER_FEATURE = 50
_SAMPLE_PER_FEATURE_OF_FEW_ROWS = 30
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
    n_jobs: int | None = None
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
    def has_products(self) -> bool:
        """Whether products with the Hessian need no Hessian."""
        return True

    @property
    def has_penalty(self) -> bool:
        """Whether weights are held by a penalty."""
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
        return self._with_penalty(weights, *self._evaluate(weights))

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
        effect = self.weighting.apply(weights, self.evidence)
        value, by_effect = self.rows.evaluate(self.loss, effect)
        gradient = self.weighting.pullback(by_effect, self.evidence)
        value, gradient = self._with_penalty(weights, value, gradient)
        # The effect is the weights times the evidence, entry by entry.
        ones = replace(
            self.evidence,
            log_prior=np.ones_like(self.evidence.log_prior),
            table=FeatureTable(
                np.ones_like(self.evidence.table.values), self.evidence.table.offsets
            ),
        )
        factors = self.weighting.apply(weights, ones)
        return (
            value,
            gradient,
            factors.table * by_effect.table,
            factors.base * by_effect.base,
        )

    def refuses_second_order(self) -> str:
        """Say why second-order steps cannot be used; '' if they can."""
        if not self.loss.has_hessian:
            return f"{type(self.loss).__name__} has no second derivatives."
        if not self.loss.has_true_gradient:
            return (
                "the published gradient is not the derivative of the loss, which "
                "second-order steps rely on."
            )
        return ""

    def units(self, weights: Floats, box: Box) -> Units | None:
        """Return units in which curvatures are alike, where there are any."""
        from steelyard.fitting.default.preconditioner import units_of

        return units_of(self, weights, box)

    # ---------------------------------------------------------- second derivatives

    def default_sample(self) -> int:
        """Rows that a sampled Hessian is made from."""
        d = self.evidence.n_features
        size = int(np.clip(self._sample_per_feature() * d, _MIN_SAMPLE, _MAX_SAMPLE))
        most = _MAX_SAMPLE_CELLS // max(1, d * self.evidence.n_classes)
        return min(size, max(most, 100), self.rows.n_rows)

    def _sample_per_feature(self) -> int:
        few = self.rows.n_rows < _FEW_ROWS
        return _SAMPLE_PER_FEATURE_OF_FEW_ROWS if few else _SAMPLE_PER_FEATURE

    def sampled_hessian(self, sample: Sample, weights: Floats, exact: bool) -> Floats:
        """Second derivatives of the loss from a sample of the rows, shape (p, p)."""
        curvature = sample.curvature(weights, exact)
        return self.weighting.hessian(sample.entries(), curvature)

    def sample(self, n_rows: int) -> Sample:
        """Draw rows, always the same ones; all of them if there are no more."""
        if n_rows >= self.rows.n_rows:
            return Sample(self, self.rows.take(None), 1.0, True)
        picked = np.random.default_rng(0).choice(
            self.rows.n_rows, n_rows, replace=False, shuffle=False
        )
        rows = self.rows.take(np.sort(picked))
        return Sample(self, rows, self.rows.total_weight / rows.total_weight, False)


class Sample:
    """Rows that stand for all of them in second derivatives."""

    def __init__(
        self, objective: Objective, rows: PackedRows, scale: float, is_all: bool
    ) -> None:
        self._objective = objective
        self._scale = scale
        self._entries: Floats | None = None
        self.rows = rows
        self.is_all = is_all
        """Whether the sample is the whole table."""

    @property
    def n_rows(self) -> int:
        """Number of rows in the sample."""
        return self.rows.n_rows

    @property
    def n_jobs(self) -> int | None:
        """Threads that work on the sample."""
        return self._objective.n_jobs

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
        """Table row of every cell of a coded attribute, shape (s, coded)."""
        return self.rows.table_rows()

    def product(self, curvature: Curvature, direction: Floats) -> Floats:
        """Hessian times a direction, without the Hessian."""
        objective = self._objective
        effect = objective.weighting.direction(direction, objective.evidence)
        d_scores = curvature.apply(self.rows.scores(effect))
        out = objective.weighting.pullback(
            self.rows.scatter(d_scores), objective.evidence
        )
        if objective.penalty is not None:
            out = out + objective.penalty.curvature(len(out)) * direction
        return out

    def entries(self) -> Floats:
        """Log-likelihood entries of the sample, the prior's first if it is weighted."""
        if self._entries is None:
            evidence = self._objective.evidence
            entries = self.rows.likelihoods(evidence.table.values)
            if self._objective.weighting.prior_weight:
                shape = (entries.shape[0], 1, entries.shape[2])
                prior = np.broadcast_to(evidence.log_prior[:, None, None], shape)
                entries = np.concatenate([prior, entries], axis=1)
            self._entries = entries
        return self._entries

    def row_weights(self) -> Floats:
        """Row weights under which the sample stands for all rows, shape (s,)."""
        weights = self.scaled_weights()
        return np.ones(self.n_rows) if weights is None else weights

    def scaled_weights(self) -> Floats | None:
        """Return the same, None where all are one."""
        if self.is_all:
            return self.rows.weights if self.rows.weights.size else None
        weights = self.rows.weights if self.rows.weights.size else 1.0
        return np.full(self.rows.n_rows, self._scale) * weights
