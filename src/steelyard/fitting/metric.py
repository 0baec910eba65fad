"""A rough Hessian of weights within bounds: what all attributes share, and the rest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from steelyard.fitting.objective import Objective
from steelyard.fitting.preconditioner import contrasts
from steelyard.solvers import Metric
from steelyard.table.codes import FeatureTable
from steelyard.weighting import Effect, Weighting

# Rows that it is made from, and numbers that it may have.
_MAX_ROWS = 2_000
_MAX_CELLS = 1 << 22

# Share of the mean curvature that every weight has at least.
_LEAST = 0.01


def rough_hessian(objective: Objective) -> Metric | None:
    r"""Return the Hessian as if classes were equally likely and attributes independent.

    With :math:`s_c` the slope of a row's score of class c by the weights it is

    .. math:: \mathrm{diag}\Bigl(\tfrac{K-1}{K^2} \sum_c \mathrm{Var}\, s_c\Bigr)
       + M \tfrac1K \bigl(I - \tfrac1K 1 1^\top\bigr) M^\top,
       \quad M = (\mathrm{E}\, s_1, \dots, \mathrm{E}\, s_K)

    times the rows. None where that would be large, or is not finite.
    """
    weighting, k = objective.weighting, objective.evidence.n_classes
    halves: tuple[Weighting, ...] = (weighting,)
    if weighting.is_mixture:
        halves = weighting.halves()
    if objective.size * len(halves) * (k - 1) > _MAX_CELLS:
        return None
    sample = objective.sample(min(_MAX_ROWS, objective.n_rows))
    share = (1.0 - 1.0 / k) / k
    by_row = np.tile(share * sample.row_weights()[:, None], k)
    first, second = (sample.rows.scatter(by_row, power) for power in (1, 2))
    parts = [_half(objective, half, first, second) for half in halves]
    own = np.concatenate([own for own, _ in parts])
    common = block_diag(*(common for _, common in parts))
    n_free = objective.size - len(own)
    # The share of a mixture comes first, and bends about as much as a score.
    own = np.concatenate([np.full(n_free, share * objective.total_weight), own])
    common = np.concatenate([np.zeros((n_free, common.shape[1])), common])
    if objective.penalty is not None:
        own = own + objective.penalty.curvature(len(own))
    # Likelihoods may be so far apart that their squares overflow.
    return Metric(own, common) if np.isfinite(own).all() else None


def _half(
    objective: Objective, weighting: Weighting, first: Effect, second: Effect
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Curvatures of single weights and common directions, given soft counts."""
    evidence, total = objective.evidence, first.base[0]
    squares = FeatureTable(evidence.table.values**2, evidence.table.offsets)
    squared = replace(evidence, log_prior=evidence.log_prior**2, table=squares)
    k = evidence.n_classes
    means = np.stack(
        [weighting.pullback(_of_class(first, c), evidence) for c in range(k)], axis=1
    ) / np.sqrt(total)
    own = weighting.pullback(second, squared) - (means**2).sum(axis=1)
    own = np.maximum(own, 0.0) + _LEAST * max(float(own.mean()), 1e-300)
    return own, means @ contrasts(k) / np.sqrt(1.0 - 1.0 / k)


def _of_class(effect: Effect, c: int) -> Effect:
    """Return what one class has of an effect."""
    only = np.arange(len(effect.base)) == c
    return Effect(effect.base * only, effect.table * only, effect.multipliers * only)
