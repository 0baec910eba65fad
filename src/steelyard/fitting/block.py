"""A block of training rows, and what one pass over it adds to a loss.

An objective is a map over such blocks and a sum of what they return, in order. Blocks
may come from memory, from a file or from another machine; nothing here knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, Labels
from steelyard.kernels import fitting, scoring
from steelyard.kernels.losses import DEVIANCE
from steelyard.losses import Loss
from steelyard.weighting.base import Effect

# Classes up to which a pass is compiled for their number. Time of a pass over that of
# one for any number: 0.5 for 3 classes, 0.6 for 5, 1.0 for 8. A mixture has two columns
# for each: 0.6 for 3 classes, 0.9 for 5, 1.2 for 6.
_MAX_LANES = 6
_MAX_MIXED_LANES = 8

Densities = Callable[[], Iterator[tuple[slice, Floats]]]


@dataclass(frozen=True)
class PassTables:
    """What a pass adds up: the effect of weights, as the kernels read it."""

    base: Floats
    """Shape (C,): a column per class, one in all for two classes."""

    packed: Floats
    """Contributions of joint codes, shape (P, C), or (P,) for two classes."""

    wide: Floats
    """Contributions of plain codes, shape (V, C)."""

    multipliers: Floats
    """Factors of log-densities, shape (g, K), or (g, 2 K) for a mixture."""


@dataclass(frozen=True)
class Sums:
    """What a pass returns; blocks add up."""

    value: float
    base: Floats
    packed: Floats
    """Soft counts of joint codes."""

    wide: Floats
    """Soft counts of plain codes."""

    multipliers: Floats
    alpha: float = 0.0

    def __add__(self, other: Sums) -> Sums:
        """Add what another block returned."""
        return Sums(*map(add, vars(self).values(), vars(other).values()))


@dataclass(frozen=True)
class RowBlock:
    """Some training rows, as one pass reads them."""

    packed: NDArray[np.uint8]
    """Joint codes, shape (n, g), C order."""

    starts: NDArray[np.uint64]
    """First row of each group in the table of joint codes."""

    wide: tuple[tuple[NDArray[Any], NDArray[np.uint64]], ...]
    """Codes that need more than a byte, each with the first table row of a column."""

    y: Labels
    weights: Floats
    """Row weights, empty where all are one."""

    densities: Densities
    """Yields log-densities (rows, g, K) of the Gaussian attributes, piece by piece."""

    n_codes: int
    n_classes: int

    # --------------------------------------------------------------- compiled losses

    def odds_pass(self, tables: PassTables, loss: Loss) -> Sums:
        """Evaluate a compiled loss of two classes, whose scores are log-odds."""
        odds = np.full(len(self.y), tables.base[0])
        for values, starts in self.wide:
            column = tables.wide[:, 0].copy()
            scoring.gather_difference(values, starts, column, odds)
        for piece, dens in self.densities():
            for c, sign in ((0, -1.0), (1, 1.0)):
                odds[piece] += sign * (dens[:, :, c] @ tables.multipliers[:, c])
        slope, counts = np.empty(len(self.y)), np.zeros(len(tables.packed))
        form = _kind(loss), loss.parameter
        value = fitting.evaluate_two(
            *self._codes, tables.packed, odds, *self._truth, *form, slope, counts
        )
        d_multipliers = np.zeros(tables.multipliers.shape)
        for piece, dens in self.densities():
            d_multipliers[:, 0] -= dens[:, :, 0].T @ slope[piece]
            d_multipliers[:, 1] += dens[:, :, 1].T @ slope[piece]
        d_wide = self._scatter_wide(slope[:, None])
        return Sums(value, np.array([slope.sum()]), counts, d_wide, d_multipliers)

    def scores_pass(self, tables: PassTables, loss: Loss) -> Sums:
        """Evaluate a compiled loss of any number of classes."""
        scores = self._scores_beside_packed(tables)
        counts = np.zeros(tables.packed.shape)
        form = _kind(loss), loss.parameter
        lanes = (0.0,) * self.n_classes if self.n_classes <= _MAX_LANES else ()
        work = np.empty(fitting.ROWS * self.n_classes)
        value = fitting.evaluate_many(
            *self._codes,
            tables.packed,
            scores,
            *self._truth,
            *form,
            counts,
            work,
            lanes,
        )
        return self._sums(value, scores, counts, tables)

    # ------------------------------------------------------------------ any other loss

    def plain_pass(self, tables: PassTables, loss: Loss) -> Sums:
        """Evaluate a loss that is written in NumPy."""
        scores = self._scores_beside_packed(tables)
        scoring.gather(self.packed, self.starts, tables.packed, scores)
        weights = self.weights if self.weights.size else None
        value, d_scores = loss.value_and_gradient(scores, self.y, weights)
        counts = np.zeros(tables.packed.shape)
        fitting.scatter(self.packed, self.starts, d_scores, counts)
        return self._sums(value, d_scores, counts, tables)

    # ---------------------------------------------------------------- two posteriors

    def mixture_odds_pass(
        self, tables: PassTables, alpha: float, printed: bool
    ) -> Sums:
        """Evaluate the squared error of a mixture for two classes."""
        scores = np.empty((len(self.y), len(tables.base)))
        scores[:] = tables.base
        for values, starts in self.wide:
            scoring.gather(values, starts, tables.wide, scores)
        for piece, dens in self.densities():
            for half in (0, 1):
                m = tables.multipliers[:, 2 * half : 2 * half + 2]
                scores[piece, half] += dens[:, :, 1] @ m[:, 1] - dens[:, :, 0] @ m[:, 0]
        counts = np.zeros(tables.packed.shape)
        form = alpha, printed
        value, d_alpha = fitting.evaluate_mixture_two(
            *self._codes, tables.packed, scores, *self._truth, *form, counts
        )
        d_multipliers = np.zeros(tables.multipliers.shape)
        for piece, dens in self.densities():
            for half in (0, 1):
                d = scores[piece, half]
                d_multipliers[:, 2 * half : 2 * half + 2] += np.stack(
                    [-(dens[:, :, 0].T @ d), dens[:, :, 1].T @ d], axis=1
                )
        d_wide, d_base = self._scatter_wide(scores), _column_sums(scores)
        return Sums(value, d_base, counts, d_wide, d_multipliers, d_alpha)

    def mixture_scores_pass(
        self, tables: PassTables, alpha: float, printed: bool
    ) -> Sums:
        """Evaluate the squared error of a mixture for any number of classes."""
        scores = self._scores_beside_packed(tables)
        counts = np.zeros(tables.packed.shape)
        width = 2 * self.n_classes
        lanes = (0.0,) * width if width <= _MAX_MIXED_LANES else ()
        form = alpha, printed
        value, d_alpha = fitting.evaluate_mixture(
            *self._codes, tables.packed, scores, *self._truth, *form, counts, lanes
        )
        return replace(self._sums(value, scores, counts, tables), alpha=d_alpha)

    # ------------------------------------------------------------- gather and scatter

    @property
    def _codes(self) -> tuple[NDArray[np.uint8], NDArray[np.uint64]]:
        return self.packed, self.starts

    @property
    def _truth(self) -> tuple[Labels, Floats]:
        return self.y, self.weights

    def _sums(
        self, value: float, gradient: Any, counts: Any, tables: PassTables
    ) -> Sums:
        """Return sums, given the gradient with respect to the scores, (n, C)."""
        k, width = self.n_classes, gradient.shape[1]
        multipliers = np.zeros((len(tables.multipliers), width))
        for piece, dens in self.densities():
            for lo in range(0, width, k):
                part = gradient[piece, lo : lo + k]
                multipliers[:, lo : lo + k] += collect_densities(dens, part)
        d_wide = self._scatter_wide(gradient)
        return Sums(value, _column_sums(gradient), counts, d_wide, multipliers)

    def _scores_beside_packed(self, tables: PassTables) -> Floats:
        """Scores of the rows from all but the joint codes, shape (n, C)."""
        scores = np.empty((len(self.y), len(tables.base)))
        scores[:] = tables.base
        for values, starts in self.wide:
            scoring.gather(values, starts, tables.wide, scores)
        k = self.n_classes
        for piece, dens in self.densities():
            for lo in range(0, scores.shape[1], k):
                factors = tables.multipliers[:, lo : lo + k]
                scores[piece, lo : lo + k] += weigh_densities(dens, factors)
        return scores

    def _scatter_wide(self, gradient: Floats) -> Floats:
        out = np.zeros((self.n_codes, gradient.shape[1]))
        for values, starts in self.wide:
            fitting.scatter(values, starts, gradient, out)
        return out


def _kind(loss: Loss) -> int | None:
    """Return the number of a compiled loss, or None for the deviance."""
    return None if loss.compiled == DEVIANCE else loss.compiled


def weigh_densities(dens: Floats, factors: Floats) -> Floats:
    """Add up log-densities (rows, g, K) times factors (g, K), shape (rows, K)."""
    if not dens.strides[2]:  # the same for all classes: a product of matrices
        return np.asarray(dens[:, :, 0] @ factors)
    return np.asarray(np.einsum("igc,gc->ic", dens, factors))


def collect_densities(dens: Floats, gradient: Floats) -> Floats:
    """Transpose of ``weigh_densities``: gradient (rows, K) to (g, K)."""
    if not dens.strides[2]:
        return np.asarray(dens[:, :, 0].T @ gradient)
    return np.asarray(np.einsum("igc,ic->gc", dens, gradient))


def effect_of_odds(base: float, table: Any, multipliers: Any) -> Effect:
    """Return the gradient by class of a gradient with respect to log-odds."""
    by_class = np.empty((len(table), 2))
    by_class[:, 0], by_class[:, 1] = -table, table
    return Effect(np.array([-base, base]), by_class, multipliers)


def _column_sums(scores: Floats) -> Floats:
    """Add up columns: as a product, which NumPy does faster than a sum of rows."""
    return np.asarray(np.ones(len(scores)) @ scores)
