"""The training objective: weights in, loss and gradient out."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.threads import row_blocks, run, thread_count
from steelyard.fitting.penalty import Penalty
from steelyard.fitting.rows import Rows
from steelyard.kernels import fitting, scoring
from steelyard.losses import BrierLoss, Loss
from steelyard.model.posteriors import Curvature
from steelyard.table.codes import FeatureTable
from steelyard.weighting import Effect, Evidence, MixtureWeighting, Weighting

__all__ = ["Objective"]

# Rows from which a sampled Hessian is made: about fifty per attribute.
_SAMPLE_PER_FEATURE = 50
# Below so many rows a pass costs little more than the sample: 30 rows do, and one pass
# more now and then.
_SAMPLE_PER_FEATURE_FEW = 30
_FEW_ROWS = 300_000
_SAMPLE_PER_FEATURE_MIXED = 40
_SAMPLE_LEAST = 1_000
_SAMPLE_MOST = 10_000
_SAMPLE_CELLS = 8_000_000


@dataclass
class Objective:
    r"""Loss of a weighted naive Bayes model as a function of its weights.

    .. math:: F(w) = \sum_i u_i\, \ell(z_i(w), y_i) + \lambda \sum_k (w_k - c)^2
    """

    rows: Rows
    evidence: Evidence
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
        return self.loss.convex and not self.weighting.is_mixture

    def __call__(
        self, weights: NDArray[np.float64]
    ) -> tuple[float, NDArray[np.float64]]:
        """Return the objective and its gradient."""
        self.n_evaluations += 1
        if isinstance(self.weighting, MixtureWeighting):
            value, gradient = self._mixture(weights)
        else:
            effect = self.weighting.apply(weights, self.evidence)
            value, by_effect = self._plain(effect)
            gradient = self.weighting.pullback(by_effect, self.evidence)
        if self.penalty is not None:
            extra, slope = self.penalty.value_and_gradient(weights)
            value, gradient = value + extra, gradient + slope
        return value, gradient

    def with_tables(
        self, weights: NDArray[np.float64]
    ) -> tuple[float, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return value, gradient, and the gradients of log-probabilities and prior.

        The last two, of shapes (V, K) and (K,), are with respect to the evidence before
        it is weighted: they lead on to whatever the evidence is made from.
        """
        effect = self.weighting.apply(weights, self.evidence)
        value, by_effect = self._plain(effect)
        gradient = self.weighting.pullback(by_effect, self.evidence)
        if self.penalty is not None:
            extra, slope = self.penalty.value_and_gradient(weights)
            value, gradient = value + extra, gradient + slope
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

    # ------------------------------------------------------------- one pass of rows

    def _plain(self, effect: Effect) -> tuple[float, Effect]:
        """Loss and its gradient with respect to the effect."""
        if self.loss.kernel is None:
            scores = self.rows.scores(effect)
            weights = self.rows.weights if self.rows.weights.size else None
            value, d_scores = self.loss.value_and_gradient(scores, self.rows.y, weights)
            return value, self.rows.scatter(d_scores)
        if self.evidence.n_classes == 2:
            return self._two(effect)
        sums = self._pass(
            effect.base, effect.table, effect.multipliers, self._many_block
        )
        return float(sums[0]), Effect(sums[1], sums[2], sums[3])

    def _two(self, effect: Effect) -> tuple[float, Effect]:
        """Two classes: everything is a difference of two columns."""
        base = np.array([effect.base[1] - effect.base[0]])
        table = (effect.table[:, 1] - effect.table[:, 0])[:, None]
        sums = self._pass(base, table, effect.multipliers, self._two_block)
        slope = sums[1]
        return float(sums[0]), Effect(
            np.array([-slope[0], slope[0]]),
            np.concatenate([-sums[2], sums[2]], axis=1),
            sums[3],
        )

    def _mixture(
        self, weights: NDArray[np.float64]
    ) -> tuple[float, NDArray[np.float64]]:
        assert isinstance(self.weighting, MixtureWeighting)
        alpha, first, second = self.weighting.apply_halves(weights, self.evidence)
        k = self.evidence.n_classes
        multipliers = np.concatenate([first.multipliers, second.multipliers], axis=1)
        if k == 2:
            halves = (first, second)
            base = np.array([half.base[1] - half.base[0] for half in halves])
            table = np.stack([h.table[:, 1] - h.table[:, 0] for h in halves], axis=1)
        else:
            base = np.concatenate([first.base, second.base])
            table = np.concatenate([first.table, second.table], axis=1)

        def block(*arguments: Any) -> Any:
            return self._mixture_block(alpha, *arguments)

        sums = self._pass(base, table, multipliers, block)
        if k == 2:
            d_base = np.array([-sums[1][0], sums[1][0], -sums[1][1], sums[1][1]])
            d_table = np.stack(
                [-sums[2][:, 0], sums[2][:, 0], -sums[2][:, 1], sums[2][:, 1]], axis=1
            )
        else:
            d_base, d_table = sums[1], sums[2]
        gradient = self.weighting.pullback_halves(
            float(sums[4]),
            Effect(d_base[:k], d_table[:, :k], sums[3][:, :k]),
            Effect(d_base[k:], d_table[:, k:], sums[3][:, k:]),
            self.evidence,
        )
        return float(sums[0]), gradient

    def _pass(
        self,
        base: NDArray[np.float64],
        table: NDArray[np.float64],
        multipliers: NDArray[np.float64],
        block: Any,
    ) -> list[Any]:
        """Run a block function over all rows; add up what it returns, in order.

        Returns loss, gradients of base (C,), table (V, C), multipliers (g, ·), and
        anything more that the block returns.
        """
        rows = self.rows
        packed = rows.expand(table)
        flat = packed[:, 0].copy() if table.shape[1] == 1 else packed
        wide = np.ascontiguousarray(table)

        def work(part: slice) -> list[Any]:
            return block(part, base, flat, wide, multipliers)

        total: list[Any] | None = None
        for sums in run(work, row_blocks(rows.n_rows), thread_count(self.n_jobs)):
            if total is None:
                total = sums
            else:
                total = [a + b for a, b in zip(total, sums, strict=True)]
        assert total is not None
        counts = total[2].reshape(len(packed), table.shape[1])
        d_table = total[-1]
        if rows.packing is not None:
            d_table = d_table + rows.packing.collapse(counts)
        return [total[0], total[1], d_table, total[3], *total[4:-1]]

    def _two_block(
        self, part: slice, base: Any, packed: Any, wide: Any, multipliers: Any
    ) -> list[Any]:
        rows, y, weights = self._block_rows(part)
        odds = np.full(len(y), base[0])
        for block in self.rows.wide:
            scoring.gather_difference(
                block.values[part], self._starts(block), wide[:, 0].copy(), odds
            )
        for piece, dens in self.rows.densities(part):
            for c, sign in ((0, -1.0), (1, 1.0)):
                odds[piece] += sign * (dens[:, :, c] @ multipliers[:, c])
        slope, counts = np.empty(len(y)), np.zeros(len(packed))
        value = fitting.evaluate_two(
            rows,
            self.rows.starts,
            packed,
            odds,
            y,
            weights,
            self.loss.kernel,
            self.loss.parameter,
            slope,
            counts,
        )
        d_multipliers = np.zeros(multipliers.shape)
        for piece, dens in self.rows.densities(part):
            d_multipliers[:, 0] -= dens[:, :, 0].T @ slope[piece]
            d_multipliers[:, 1] += dens[:, :, 1].T @ slope[piece]
        d_wide = self._scatter_wide(part, slope[:, None], 1)
        return [value, np.array([slope.sum()]), counts, d_multipliers, d_wide]

    def _many_block(
        self, part: slice, base: Any, packed: Any, wide: Any, multipliers: Any
    ) -> list[Any]:
        rows, y, weights = self._block_rows(part)
        scores = self._other_scores(part, base, wide, multipliers, len(y))
        counts = np.zeros(packed.shape)
        value = fitting.evaluate_many(
            rows,
            self.rows.starts,
            packed,
            scores,
            y,
            weights,
            self.loss.kernel,
            self.loss.parameter,
            counts,
        )
        d_multipliers = np.zeros(multipliers.shape)
        for piece, dens in self.rows.densities(part):
            d_multipliers += np.einsum("igc,ic->gc", dens, scores[piece])
        d_wide = self._scatter_wide(part, scores, scores.shape[1])
        return [value, _sums(scores), counts, d_multipliers, d_wide]

    def _mixture_block(
        self,
        alpha: float,
        part: slice,
        base: Any,
        packed: Any,
        wide: Any,
        multipliers: Any,
    ) -> list[Any]:
        rows, y, weights = self._block_rows(part)
        k = self.evidence.n_classes
        assert isinstance(self.loss, BrierLoss)
        printed = self.loss.published_gradient
        counts = np.zeros(packed.shape)
        if k == 2:
            scores = np.tile(base, (len(y), 1))
            for block in self.rows.wide:
                scoring.gather(block.values[part], self._starts(block), wide, scores)
            for piece, dens in self.rows.densities(part):
                for h in (0, 1):
                    m = multipliers[:, 2 * h : 2 * h + 2]
                    scores[piece, h] += (
                        dens[:, :, 1] @ m[:, 1] - dens[:, :, 0] @ m[:, 0]
                    )
            kernel = fitting.evaluate_mixture_two
        else:
            scores = self._other_scores(part, base, wide, multipliers, len(y))
            kernel = fitting.evaluate_mixture
        value, d_alpha = kernel(
            rows, self.rows.starts, packed, scores, y, weights, alpha, printed, counts
        )
        d_multipliers = np.zeros(multipliers.shape)
        for piece, dens in self.rows.densities(part):
            for h in (0, 1):
                own = slice(h * k, (h + 1) * k)
                if k == 2:
                    d = scores[piece, h]
                    d_multipliers[:, own] += np.stack(
                        [-(dens[:, :, 0].T @ d), dens[:, :, 1].T @ d], axis=1
                    )
                else:
                    d_multipliers[:, own] += np.einsum(
                        "igc,ic->gc", dens, scores[piece, own]
                    )
        d_wide = self._scatter_wide(part, scores, scores.shape[1])
        return [value, _sums(scores), counts, d_multipliers, d_alpha, d_wide]

    def _block_rows(self, part: slice) -> tuple[Any, Any, Any]:
        rows = self.rows
        weights = rows.weights[part] if rows.weights.size else rows.weights
        return rows.packed[part], rows.y[part], weights

    def _other_scores(
        self, part: slice, base: Any, wide: Any, multipliers: Any, n: int
    ) -> NDArray[np.float64]:
        """Scores of a block of rows from all but the packed codes."""
        scores = np.tile(base, (n, 1))
        for block in self.rows.wide:
            scoring.gather(block.values[part], self._starts(block), wide, scores)
        k = self.evidence.n_classes
        for piece, dens in self.rows.densities(part):
            for lo in range(0, scores.shape[1], k):
                scores[piece, lo : lo + k] += np.einsum(
                    "igc,gc->ic", dens, multipliers[:, lo : lo + k]
                )
        return scores

    def _scatter_wide(
        self, part: slice, gradient: NDArray[np.float64], width: int
    ) -> NDArray[np.float64]:
        out = np.zeros((self.evidence.schema.n_codes, width))
        for block in self.rows.wide:
            fitting.scatter(block.values[part], self._starts(block), gradient, out)
        return out

    def _starts(self, block: Any) -> NDArray[np.uint64]:
        return block.starts(self.evidence.schema.offsets)

    # ---------------------------------------------------------- second derivatives

    def default_sample(self) -> int:
        """Rows that a sampled Hessian is made from."""
        d = self.evidence.n_features
        per_feature = _SAMPLE_PER_FEATURE
        if self.rows.n_rows < _FEW_ROWS:
            per_feature = _SAMPLE_PER_FEATURE_FEW
        if self.weighting.is_mixture:
            # Gauss-Newton steps are rough anyway, and this Hessian costs most.
            per_feature = _SAMPLE_PER_FEATURE_MIXED
        size = int(np.clip(per_feature * d, _SAMPLE_LEAST, _SAMPLE_MOST))
        most = _SAMPLE_CELLS // max(1, d * self.evidence.n_classes)
        return min(size, max(most, 100), self.rows.n_rows)

    def sample(self, n_rows: int) -> Sample:
        """Draw rows, always the same ones; all of them if there are no more."""
        if n_rows >= self.rows.n_rows:
            return Sample(self, self.rows, 1.0)
        picked = np.random.default_rng(0).choice(
            self.rows.n_rows, n_rows, replace=False, shuffle=False
        )
        rows = self.rows.take(np.sort(picked))
        return Sample(self, rows, self.rows.total_weight / rows.total_weight)


def _sums(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Add up columns: as a product, which NumPy does faster than a sum of rows."""
    return np.asarray(np.ones(len(scores)) @ scores)


class Sample:
    """Rows that stand for all of them in second derivatives."""

    def __init__(self, objective: Objective, rows: Rows, scale: float) -> None:
        self._objective = objective
        self._rows = rows
        self._scale = scale
        self._likelihoods: NDArray[np.float64] | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows in the sample."""
        return self._rows.n_rows

    @property
    def is_all(self) -> bool:
        """Whether the sample is the whole table."""
        return self._rows is self._objective.rows

    def curvature(self, weights: NDArray[np.float64], exact: bool) -> Curvature:
        """Second derivatives of the loss in the scores of the sample."""
        scores = self.scores(weights)
        loss = self._objective.loss
        return loss.hessian(scores, self._rows.y, self._row_weights(), exact)

    def hessian(
        self, weights: NDArray[np.float64], exact: bool = True
    ) -> NDArray[np.float64]:
        """Second derivatives in the weights, assembled, shape (p, p)."""
        objective = self._objective
        entries = self.entries()
        if isinstance(objective.weighting, MixtureWeighting):
            alpha, *halves = objective.weighting.apply_halves(
                weights, objective.evidence
            )
            specific, shared = (self._rows.scores(half) for half in halves)
            out = objective.weighting.mixture_hessian(
                entries,
                alpha,
                specific,
                shared,
                self._rows.y,
                self._row_weights(),
                exact,
            )
        else:
            bent = self.curvature(weights, exact)
            out = objective.weighting.hessian(entries, bent)
        if objective.penalty is not None:
            out = out + np.diag(objective.penalty.curvature(len(out)))
        return out

    def scores(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores of the sample, shape (s, K)."""
        objective = self._objective
        effect = objective.weighting.apply(weights, objective.evidence)
        return self._rows.scores(effect)

    def table_rows(self) -> NDArray[np.int64]:
        """Table row of every cell of a coded attribute, shape (s, coded)."""
        return self._rows.table_rows()

    def product(
        self, curvature: Curvature, direction: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Hessian times a direction, without the Hessian."""
        objective = self._objective
        effect = objective.weighting.direction(direction, objective.evidence)
        d_scores = curvature.apply(self._rows.scores(effect))
        out = objective.weighting.pullback(
            self._rows.scatter(d_scores), objective.evidence
        )
        if objective.penalty is not None:
            out = out + objective.penalty.curvature(len(out)) * direction
        return out

    def entries(self) -> NDArray[np.float64]:
        """Log-likelihood entries of the sample, the prior's first if it is weighted."""
        if self._likelihoods is None:
            evidence = self._objective.evidence
            entries = self._rows.likelihoods(evidence.table.values)
            if self._objective.weighting.prior_weight:
                shape = (entries.shape[0], 1, entries.shape[2])
                prior = np.broadcast_to(evidence.log_prior[:, None, None], shape)
                entries = np.concatenate([prior, entries], axis=1)
            self._likelihoods = entries
        return self._likelihoods

    def row_weights(self) -> NDArray[np.float64]:
        """Row weights under which the sample stands for all rows, shape (s,)."""
        found = self._row_weights()
        return np.ones(self.n_rows) if found is None else found

    def _row_weights(self) -> NDArray[np.float64] | None:
        """Row weights under which the sample stands for all rows."""
        if self.is_all:
            return self._rows.weights if self._rows.weights.size else None
        weights = self._rows.weights if self._rows.weights.size else 1.0
        return np.full(self._rows.n_rows, self._scale) * weights
