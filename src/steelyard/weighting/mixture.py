"""RNB's mixture of class-specific and shared attribute weights."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from steelyard.losses.brier import residual_term
from steelyard.model.posteriors import (
    Curvature,
    one_hot,
    softmax,
    softmax_jacobian,
    weighted,
)
from steelyard.weighting.attribute import AttributeWeighting, ClassAttributeWeighting
from steelyard.weighting.base import Effect, Evidence, Weighting

__all__ = ["MixtureWeighting"]


class MixtureWeighting(Weighting):
    r"""Two posteriors, mixed by a learned share.

    .. math:: P_c = \alpha P^D_c + (1 - \alpha) P^I_c, \qquad 0 \le \alpha \le 1

    with :math:`P^D` from weights per class and attribute, :math:`P^I` from weights per
    attribute. The vector holds :math:`\alpha` first, then those of :math:`P^D`, then
    those of :math:`P^I` (each with a prior weight of its own, if asked for).

    References
    ----------
    S. Wang, J. Ren, R. Bai (2020), "A Regularized Attribute Weighting Framework for
    Naive Bayes", IEEE Access 8, DOI 10.1109/ACCESS.2020.3044946.
    """

    has_hessian: ClassVar[bool] = True
    is_mixture: ClassVar[bool] = True

    def _halves(self) -> tuple[Weighting, Weighting]:
        return (
            ClassAttributeWeighting(self.prior_weight),
            AttributeWeighting(self.prior_weight),
        )

    def size(self, evidence: Evidence) -> int:
        """Count the weights."""
        return 1 + sum(half.size(evidence) for half in self._halves())

    def start(self, evidence: Evidence) -> NDArray[np.float64]:
        """Return the published start: all weights one, alpha one half."""
        return np.concatenate([[0.5], np.ones(self.size(evidence) - 1)])

    def bounds(
        self, evidence: Evidence, low: NDArray[np.float64], high: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Spread bounds per attribute over the weights; alpha stays in [0, 1]."""
        pairs = [half.bounds(evidence, low, high) for half in self._halves()]
        lower = np.concatenate([[0.0], *(pair[0] for pair in pairs)])
        upper = np.concatenate([[1.0], *(pair[1] for pair in pairs)])
        return lower, upper

    def split(
        self, weights: NDArray[np.float64], evidence: Evidence
    ) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
        """Take a vector apart into alpha and the weights of both halves."""
        cut = 1 + self._halves()[0].size(evidence)
        return float(weights[0]), weights[1:cut], weights[cut:]

    def apply_halves(
        self, weights: NDArray[np.float64], evidence: Evidence
    ) -> tuple[float, Effect, Effect]:
        """Turn weights into alpha and the effects of both halves."""
        alpha, specific, shared = self.split(weights, evidence)
        first, second = self._halves()
        return alpha, first.apply(specific, evidence), second.apply(shared, evidence)

    def pullback_halves(
        self, d_alpha: float, specific: Effect, shared: Effect, evidence: Evidence
    ) -> NDArray[np.float64]:
        """Turn gradients with respect to alpha and both effects into one vector."""
        first, second = self._halves()
        return np.concatenate(
            [
                [d_alpha],
                first.pullback(specific, evidence),
                second.pullback(shared, evidence),
            ]
        )

    def mixture_hessian(
        self,
        likelihoods: NDArray[np.float64],
        alpha: float,
        specific: NDArray[np.float64],
        shared: NDArray[np.float64],
        y: NDArray[np.uint32],
        weights: NDArray[np.float64] | None,
        exact: bool,
    ) -> NDArray[np.float64]:
        r"""Assemble second derivatives of the squared error from rows.

        With :math:`r = \alpha P^D + (1-\alpha) P^I - Y`, S the softmax Jacobian of each
        half and :math:`E(r, P) = \sum_c r_c P_c ((e_c - P)(e_c - P)^\top - S)`:

        .. math::
            M_{DD} &= \alpha^2 S_D^2 + \alpha E(r, P^D), \quad
            M_{II} = (1-\alpha)^2 S_I^2 + (1-\alpha) E(r, P^I) \\
            M_{DI} &= \alpha (1-\alpha) S_D S_I, \quad
            m_{\alpha\alpha} = |P^D - P^I|^2 \\
            m_{\alpha D} &= \alpha S_D (P^D - P^I) + S_D r, \quad
            m_{\alpha I} = (1-\alpha) S_I (P^D - P^I) - S_I r

        likelihoods (K, d', s), specific and shared scores (s, K). Without ``exact`` the
        terms in r are left out: the Gauss-Newton matrix.
        """
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
        m_dd, m_ii, m_di, a_d, a_i, m_aa = (
            weighted(m, weights)
            for m in (m_dd, m_ii, m_di, a_d, a_i, (gap * gap).sum(axis=1))
        )
        first, second = self._halves()
        d_size = first.hessian(likelihoods, Curvature(full=m_dd))
        i_size = second.hessian(likelihoods, Curvature(full=m_ii))
        n_d, n_i = len(d_size), len(i_size)
        out = np.zeros((1 + n_d + n_i, 1 + n_d + n_i))
        out[0, 0] = m_aa.sum()
        out[1 : 1 + n_d, 1 : 1 + n_d] = d_size
        out[1 + n_d :, 1 + n_d :] = i_size
        k = len(likelihoods)
        bent = m_di @ likelihoods.transpose(2, 0, 1)
        by_class = np.stack([likelihoods[c] @ bent[:, c] for c in range(k)])
        to_d = np.einsum("cjs,sc->cj", likelihoods, a_d)
        to_i = np.einsum("cjs,sc->j", likelihoods, a_i)
        if self.prior_weight:
            # The prior's weight of the first half is shared by its classes.
            top = by_class[:, :1].sum(axis=0)
            block = np.concatenate([top, by_class[:, 1:].reshape(-1, n_i)])
            slope = np.concatenate([[to_d[:, 0].sum()], to_d[:, 1:].ravel()])
        else:
            block, slope = by_class.reshape(-1, n_i), to_d.ravel()
        out[1 : 1 + n_d, 1 + n_d :] = block
        out[1 + n_d :, 1 : 1 + n_d] = block.T
        out[0, 1 : 1 + n_d] = out[1 : 1 + n_d, 0] = slope
        out[0, 1 + n_d :] = out[1 + n_d :, 0] = to_i
        return out

    def fitted(
        self, weights: NDArray[np.float64], evidence: Evidence
    ) -> dict[str, Any]:
        """Name the weights as fitted attributes of a classifier."""
        alpha, specific, shared = self.split(weights, evidence)
        first, second = self._halves()
        return {
            "alpha_": alpha,
            **first.fitted(specific, evidence),
            **second.fitted(shared, evidence),
        }
