"""RNB's objective: the squared error of two posteriors that are mixed."""

from __future__ import annotations

import numpy as np

from steelyard._common.arrays import Floats, Labels
from steelyard.fitting.objective import Objective, Sample
from steelyard.losses.brier import residual_term
from steelyard.model.posteriors import (
    Curvature,
    one_hot,
    softmax,
    softmax_jacobian,
    weighted,
)
from steelyard.weighting.attribute import MixtureWeighting

# Gauss-Newton steps are rough anyway, and this Hessian costs most.
_SAMPLE_PER_FEATURE = 40


class MixtureObjective(Objective):
    r"""Half the squared error of :math:`\alpha P^D + (1 - \alpha) P^I`."""

    weighting: MixtureWeighting

    @property
    def is_convex(self) -> bool:
        """Whether the objective is convex in the weights."""
        return False

    @property
    def has_products(self) -> bool:
        """Whether products with the Hessian need no Hessian."""
        return False

    @property
    def _printed(self) -> bool:
        return not self.loss.has_true_gradient

    def _sample_per_feature(self) -> int:
        return _SAMPLE_PER_FEATURE

    def _evaluate(self, weights: Floats) -> tuple[float, Floats]:
        alpha, (specific, shared) = self.weighting.mixed_effects(weights, self.evidence)
        value, d_alpha, *gradients = self.rows.evaluate_mixture(
            alpha, (specific, shared), self._printed
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
        entries = sample.entries()
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
