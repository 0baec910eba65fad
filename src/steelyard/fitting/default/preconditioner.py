"""Preconditioners: scalings of the weights in which curvatures are alike."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag, cholesky, get_blas_funcs
from scipy.linalg.blas import ssyrk

from steelyard._common.arrays import Floats
from steelyard.fitting.objective import Objective, Sample
from steelyard.model.base import softmax
from steelyard.solvers import Box, Cone, LowRankPreconditioner, Preconditioner
from steelyard.table.codes import FeatureTable
from steelyard.weighting import (
    Effect,
    HierarchicalWeighting,
    LogProbs,
    MixtureWeighting,
    Weighting,
)

# Rows of the sample for a diagonal preconditioner, and rows for each weight if weights
# are coupled.
_MAX_ROWS = 2_000
_ROWS_PER_WEIGHT = 4
_MIN_ROWS = 1_000

# Largest size of the low-rank term for weights within bounds, and the smallest
# curvature of a weight, as a share of the mean.
_MAX_METRIC_CELLS = 1 << 22
_MIN_CURVATURE_SHARE = 0.01

# Coupling p weights costs about p³, and saves tens of passes over the cells of a table:
# it pays if p³ is at most this multiple of the cells. To couple all interactions saves
# hundreds of passes, and pays up to the second multiple; to couple some more does not.
_MAX_CUBES_PER_CELL, _MAX_CUBES_OF_ALL = 200, 2_000

# Memory that coupling may take: the Hessian in single precision, and its factor in
# double precision if there is room for both.
_MAX_BYTES, _BYTES_OF_SINGLE, _BYTES_OF_BOTH = 1 << 28, 4, 4 + 8

# Rows whose gradients are in memory at a time.
_BLOCK_ROWS = 512

# Under constraints a step costs more than a pass over few rows: weights are coupled up
# to this number of them.
_MAX_COUPLED = 2_000

# Naive Bayes is overconfident, and the curvature of such rows would vanish: posteriors
# are mixed with a uniform distribution by this share.
_UNIFORM_SHARE = 0.003

# Share of the curvature of the loss in a diagonal preconditioner. Directions of large
# curvature are common to many weights, and L-BFGS learns them better than a diagonal
# can represent them.
_DIAGONAL_SHARE = 0.1

# The same if weights are coupled. The smaller it is, the larger are scaled gradients:
# the first step is longer, and the last one nearer to the minimum.
_COUPLED_SHARE = 0.01

# Share of the diagonal that is added to it: products are made in single precision.
_ROUNDING = 1e-5

_Singles = NDArray[np.float32]


def preconditioner_of(
    objective: Objective, weights: Floats, box: Box
) -> Preconditioner | None:
    """Return a preconditioner, None if plain coordinates are used."""
    if isinstance(objective.weighting, HierarchicalWeighting):
        if isinstance(box, Cone) and objective.size <= _MAX_COUPLED:
            return CoupledPreconditioner(objective, weights)
        return choose_preconditioner(objective, weights)
    if box.is_open.any() or not objective.loss.has_true_gradient:
        return None
    return rough_hessian(objective)


# ------------------------------------------------------------------------- hierarchies


def choose_preconditioner(
    objective: Objective, weights: Floats
) -> LowRankPreconditioner | CoupledPreconditioner:
    """Couple weights if that costs less than the passes over rows that it saves.

    If there are too many weights to couple all of them, cells of the last interactions
    are scaled one by one. Memory is bounded too, whatever the number of rows.
    """
    evidence, k = objective.evidence, objective.evidence.n_classes
    owners = evidence.basis.owners
    n_levels = k + (1 + k) * evidence.n_features  # all but effects of values
    n_cells = objective.n_rows * evidence.n_features * (k - 1)
    most = math.sqrt(_MAX_BYTES / _BYTES_OF_SINGLE)

    def n_coupled(cubes_per_cell: int) -> int:
        limit = min(most, np.cbrt(cubes_per_cell * n_cells))
        return min(int((limit - n_levels) / (k - 1)), len(owners))

    n_effects = n_coupled(_MAX_CUBES_PER_CELL)
    if n_effects < len(owners) - evidence.schema.is_interaction[owners].sum():
        return diagonal_preconditioner(objective, weights)
    if n_coupled(_MAX_CUBES_OF_ALL) == len(owners):
        n_effects = len(owners)
    return CoupledPreconditioner(objective, weights, n_effects)


def diagonal_preconditioner(
    objective: Objective, weights: Floats
) -> LowRankPreconditioner:
    r"""Return a diagonal preconditioner: :math:`1 / \sqrt{2 \lambda_k + s H_{kk}}`.

    The penalty differs by powers of ten from level to level; after this scaling it does
    not. It costs one pass over some rows, and nothing at each step.
    """
    weighting = objective.weighting
    assert isinstance(weighting, HierarchicalWeighting)
    assert objective.penalty is not None
    sample = objective.sample(min(_MAX_ROWS, objective.rows.n_rows))
    share = _even_shares(sample, weights)
    curvature = sample.row_weights()[:, None] * share * (1.0 - share)
    by_effect = sample.rows.scatter(curvature, power=2)
    # Couplings are left out; shared weights are rough.
    diagonal = weighting.pullback(by_effect, objective.evidence, power=2)
    ridge = objective.penalty.curvature(len(weights))
    return LowRankPreconditioner(
        ridge + _DIAGONAL_SHARE * diagonal, np.empty((len(weights), 0))
    )


def _even_shares(sample: Sample, weights: Floats) -> Floats:
    """Return posteriors of a sample, mixed with a small share of uniform ones."""
    share = softmax(sample.scores(weights))
    return (1.0 - _UNIFORM_SHARE) * share + _UNIFORM_SHARE / share.shape[1]


class CoupledPreconditioner:
    r"""A preconditioner that couples weights, those of all effects or of the first.

    It is :math:`x = L^{-\top} y` with the Cholesky factor :math:`L L^\top = s H`.
    H is the Hessian from a sample of rows, without what couples effects that come
    later. What an intercept or an effect adds to all classes alike changes no posterior
    and stays zero: it has no coordinate.
    """

    def __init__(
        self, objective: Objective, weights: Floats, n_effects: int | None = None
    ) -> None:
        assert isinstance(objective.weighting, HierarchicalWeighting)
        assert objective.penalty is not None
        self._evidence, self._weighting = objective.evidence, objective.weighting
        self._contrasts = class_contrasts(objective.evidence.n_classes)
        ridge = self._reduced(
            objective.penalty.curvature(len(weights)), self._contrasts**2
        )
        k, m = self._contrasts.shape
        n_coupled = len(ridge)
        if n_effects is not None:
            n_coupled = m + 1 + (1 + k) * self._evidence.n_features + n_effects * m
        sample = objective.sample(max(_ROWS_PER_WEIGHT * n_coupled // m, _MIN_ROWS))
        hessian, rest = _hessian(
            sample, self._evidence, self._contrasts, weights, n_effects
        )
        if hessian.size * _BYTES_OF_BOTH <= _MAX_BYTES:
            hessian = hessian.astype(np.float64)
        diagonal = np.einsum("ii->i", hessian)
        diagonal += ridge[:n_coupled] + _ROUNDING * (diagonal + diagonal.mean())
        hessian *= _COUPLED_SHARE
        self._factor = cholesky(hessian, lower=True, overwrite_a=True)
        self._solve = get_blas_funcs("trsv", (self._factor,))
        self._scale = np.sqrt(_COUPLED_SHARE * (ridge[n_coupled:] + rest))

    def weights(self, y: Floats) -> Floats:
        """Turn scaled coordinates into weights."""
        n, m = len(self._factor), self._contrasts.shape[1]
        x = np.concatenate([y[:n], y[n:] / self._scale])
        x[:n] = self._solve(self._factor, y[:n], lower=1, trans=1)
        end = m + 1 + (1 + self._evidence.n_classes) * self._evidence.n_features
        by_value = x[end:].reshape(-1, m) @ self._contrasts.T
        return np.concatenate([self._contrasts @ x[:m], x[m:end], by_value.ravel()])

    def vector(self, weights: Floats) -> Floats:
        """Turn weights into scaled coordinates."""
        x, n = self._reduced(weights, self._contrasts), len(self._factor)
        scaled = x[:n].astype(self._factor.dtype) @ self._factor
        return np.concatenate([scaled, x[n:] * self._scale])

    def gradient(self, gradient: Floats) -> Floats:
        """Turn a gradient by weights into one by scaled coordinates."""
        x, n = self._reduced(gradient, self._contrasts), len(self._factor)
        x[:n] = self._solve(self._factor, x[:n], lower=1)
        x[n:] /= self._scale
        return x

    def _reduced(self, weights: Floats, by: Floats) -> Floats:
        """Return weights with differences of classes in place of classes."""
        level = self._weighting.levels(weights, self._evidence)
        kept = level.overall, level.shared, level.by_class.ravel()
        return np.concatenate(
            [level.intercept @ by, *kept, (level.by_value @ by).ravel()]
        )


def class_contrasts(n_classes: int) -> Floats:
    """Orthonormal differences of classes, shape (K, K - 1)."""
    ones_first = np.column_stack([np.ones(n_classes), np.eye(n_classes)[:, 1:]])
    return np.linalg.qr(ones_first)[0][:, 1:]


def _hessian(
    sample: Sample,
    evidence: LogProbs,
    contrasts: Floats,
    weights: Floats,
    n_effects: int | None = None,
) -> tuple[_Singles, Floats]:
    r"""Second derivatives of the deviance from some rows: the lower triangle.

    With a number of effects, only the diagonal of those that come later, by itself.

    With :math:`q_c` the share of the classes after c, :math:`\mathrm{diag}(p) - p p^T`
    is the sum over c of :math:`p_c q_c / (p_c + q_c)` times the square of the
    difference between class c and the mean of those after it.

    Products of all rows are added to one matrix, one block of rows after the other, so
    that memory does not grow with rows or threads.
    """
    share, u = _even_shares(sample, weights), sample.row_weights()
    entries, codes = sample.entries, sample.indicators(np.float32)
    basis = evidence.basis.matrix.astype(np.float32).tocsc()
    n_effects = basis.shape[1] if n_effects is None else n_effects
    basis, later = basis[:, :n_effects], basis[:, n_effects:]
    out: _Singles | None = None
    for first in range(0, sample.n_rows, _BLOCK_ROWS):
        rows = slice(first, first + _BLOCK_ROWS)
        by_value = (codes[rows] @ basis).toarray()
        of_rows = _single(entries[..., rows]), by_value, _single(evidence.centers)
        gradients = _Gradients(*of_rows, _single(contrasts))
        if out is None:
            shape = gradients.n_weights, gradients.n_weights
            out = np.zeros(shape, dtype=np.float32, order="F")
        out = _with_products(gradients, share[rows], u[rows], out)
    assert out is not None
    bent = share @ contrasts**2 - (share @ contrasts) ** 2
    rest = (codes @ later).power(2).T @ (u[:, None] * bent)
    return out, rest.ravel()


def _with_products(
    gradients: _Gradients, share: Floats, u: Floats, out: _Singles
) -> _Singles:
    """Add products of gradients of rows, given shares (s, K) and weights, in place."""
    k = share.shape[1]
    after, rest = gradients.of_class(k - 1), share[:, -1].copy()
    for c in range(k - 2, -1, -1):
        difference, total = gradients.of_class(c), share[:, c] + rest
        difference -= after
        root = np.sqrt(u * share[:, c] * rest / total)
        if c:
            after += _single(share[:, c] / total)[:, None] * difference
        difference *= _single(root)[:, None]
        out = ssyrk(1.0, difference.T, beta=1.0, c=out, lower=1, overwrite_c=1)
        rest = total
    return out


@dataclass(frozen=True)
class _Gradients:
    """Gradients of the scores of some rows by the weights, intercepts first."""

    entries: _Singles
    """Log-likelihoods, shape (K, d, s)."""

    by_value: _Singles
    """Gradients by effects of one class, shape (s, effects)."""

    centers: _Singles
    contrasts: _Singles

    @property
    def n_weights(self) -> int:
        """Number of weights, with contrasts in place of classes."""
        (k, d, _), m = self.entries.shape, self.contrasts.shape[1]
        return m + 1 + (1 + k) * d + self.by_value.shape[1] * m

    def of_class(self, c: int) -> _Singles:
        """Gradients of the scores of one class, shape (s, p)."""
        entries, (k, m) = self.entries[c].T, self.contrasts.shape
        out = np.zeros((len(entries), self.n_weights), dtype=np.float32)
        first = m + 1 + entries.shape[1]
        end = first + k * entries.shape[1]
        out[:, :m] = self.contrasts[c]
        out[:, m] = entries @ self.centers
        out[:, m + 1 : first] = entries
        out[:, first + c : end : k] = entries
        for i, amount in enumerate(self.contrasts[c]):
            out[:, end + i :: m] = amount * self.by_value
        return out


def _single(values: Floats) -> _Singles:
    return values.astype(np.float32)


# ---------------------------------------------------------------------- within bounds


def rough_hessian(objective: Objective) -> LowRankPreconditioner | None:
    r"""Return the Hessian as if classes were equally likely and attributes independent.

    With :math:`s_c` the slope of a row's score of class c by the weights it is

    .. math:: \mathrm{diag}\Bigl(\tfrac{K-1}{K^2} \sum_c \mathrm{Var}\, s_c\Bigr)
       + M \tfrac1K \bigl(I - \tfrac1K 1 1^\top\bigr) M^\top,
       \quad M = (\mathrm{E}\, s_1, \dots, \mathrm{E}\, s_K)

    times the rows. None if that would be large, or is not finite.
    """
    weighting, k = objective.weighting, objective.evidence.n_classes
    is_mixture = isinstance(weighting, MixtureWeighting)
    halves = weighting.halves() if is_mixture else (weighting,)
    if objective.size * len(halves) * (k - 1) > _MAX_METRIC_CELLS:
        return None
    sample = objective.sample(min(_MAX_ROWS, objective.n_rows))
    share = (1.0 - 1.0 / k) / k
    by_row = np.tile(share * sample.row_weights()[:, None], k)
    first, second = (sample.rows.scatter(by_row, power) for power in (1, 2))
    parts = [_half(objective, half, first, second) for half in halves]
    curvature = np.concatenate([curvature for curvature, _ in parts])
    common = block_diag(*(common for _, common in parts))
    n_free = objective.size - len(curvature)
    # The share of a mixture comes first, and bends about as much as a score.
    curvature = np.concatenate(
        [np.full(n_free, share * objective.total_weight), curvature]
    )
    common = np.concatenate([np.zeros((n_free, common.shape[1])), common])
    if objective.penalty is not None:
        curvature = curvature + objective.penalty.curvature(len(curvature))
    if not np.isfinite(curvature).all():
        return None  # likelihoods so far apart that their squares overflow
    return LowRankPreconditioner(curvature, common)


def _half(
    objective: Objective, weighting: Weighting, first: Effect, second: Effect
) -> tuple[Floats, Floats]:
    """Curvatures of single weights and common directions, given soft counts."""
    evidence, total = objective.evidence, first.base[0]
    squares = FeatureTable(evidence.table.values**2, evidence.table.offsets)
    squared = LogProbs(evidence.basis, evidence.log_prior**2, squares)
    k = evidence.n_classes
    means = np.stack(
        [weighting.pullback(_of_class(first, c), evidence) for c in range(k)], axis=1
    ) / np.sqrt(total)
    curvature = weighting.pullback(second, squared) - (means**2).sum(axis=1)
    curvature = np.maximum(curvature, 0.0) + _MIN_CURVATURE_SHARE * max(
        float(curvature.mean()), 1e-300
    )
    return curvature, means @ class_contrasts(k) / np.sqrt(1.0 - 1.0 / k)


def _of_class(effect: Effect, c: int) -> Effect:
    """Restrict an effect to one class."""
    only = np.arange(len(effect.base)) == c
    return Effect(effect.base * only, effect.table * only, effect.multipliers * only)
