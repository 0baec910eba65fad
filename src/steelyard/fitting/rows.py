"""Training rows, prepared for many passes, and what one pass adds up.

``Passes`` is all that an objective asks of its rows. ``PackedRows`` has them in arrays,
in memory or in memory maps: small codes are joined, and a pass is a map over blocks of
rows and a sum of what they return, in order. Rows on other machines are other
``Passes``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from operator import add
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, Ints, Labels
from steelyard._common.threads import pieces, row_blocks, run, thread_count
from steelyard.kernels import fitting, scoring
from steelyard.kernels.losses import DEVIANCE
from steelyard.losses import Loss
from steelyard.model.training import TrainingSet
from steelyard.proba.gaussian import GaussianTable
from steelyard.table.codes import CodeBlock, Codes
from steelyard.table.packing import Packing, pack_codes
from steelyard.table.schema import TableSchema
from steelyard.weighting.base import Effect, LogProbs

# Log-densities of this many rows, attributes and classes (32 MB) are kept from pass to
# pass; more are computed each time.
_MAX_KEPT_CELLS = 1 << 22
_ROWS_PER_PIECE = 1024

# Classes up to which a pass is compiled for their number. Time of a pass over that of
# one for any number: 0.5 for 3 classes, 0.6 for 5, 1.0 for 8. A mixture has two columns
# for each: 0.6 for 3 classes, 0.9 for 5, 1.2 for 6.
_MAX_LANES = 6
_MAX_MIXED_LANES = 8


class Passes(Protocol):
    """What an objective asks of training rows, wherever they are."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def total_weight(self) -> float:
        """Sum of the row weights."""

    def evaluate(self, loss: Loss, effect: Effect) -> tuple[float, Effect]:
        """Return a loss and its gradient with respect to the effect of weights."""

    def evaluate_mixture(
        self, alpha: float, halves: tuple[Effect, Effect], printed: bool
    ) -> tuple[float, float, Effect, Effect]:
        """Return the squared error of a mixture, and its three gradients."""

    def with_densities(self, gaussian: GaussianTable) -> Passes:
        """Return the same rows with other densities of Gaussian attributes."""

    def take(self, picked: Ints | None) -> PackedRows:
        """Return some rows in memory, or all, for second derivatives."""


@dataclass(frozen=True)
class Sums:
    """What a pass returns; blocks of rows add up."""

    value: float
    base: Floats
    """Gradient by intercepts, shape (C,): a column per class, or one for log-odds."""

    packed: Floats
    """Soft counts of joint codes, shape (P, C), or (P,) for the log-odds of a loss."""

    wide: Floats
    """Soft counts of plain codes, shape (V, C)."""

    multipliers: Floats
    """Gradient by factors of log-densities, (g, K), or (g, 2 K) for a mixture."""

    alpha: float = 0.0

    def __add__(self, other: Sums) -> Sums:
        """Add what another block returned."""
        return Sums(*map(add, vars(self).values(), vars(other).values()))


@dataclass(frozen=True)
class PackedRows:
    """Training rows in memory or memory maps, as passes read them."""

    schema: TableSchema
    y: NDArray[Any]
    """Positions of classes, of any unsigned type."""

    weights: Floats
    """Row weights, empty if all are one."""

    packing: Packing | None
    packed: NDArray[np.uint8]
    """Joint codes, shape (n, g), C order."""

    wide: tuple[CodeBlock, ...]
    """Columns whose codes need more than a byte."""

    codes: Codes | None
    """Where numbers of Gaussian attributes are read from, None without any."""

    gaussian: GaussianTable
    n_classes: int
    n_jobs: int | None = None
    picked: Ints | None = None
    """Rows of ``codes`` that these are, None for all."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.y)

    @cached_property
    def total_weight(self) -> float:
        """Sum of the row weights."""
        return float(self.weights.sum()) if self.weights.size else float(self.n_rows)

    def expand(self, table: Floats) -> Floats:
        """Packed form of a plain table."""
        if self.packing is None:
            return np.zeros((0, table.shape[1]))
        return self.packing.expand(table)

    @cached_property
    def starts(self) -> NDArray[np.uint64]:
        """First packed row of each group."""
        if self.packing is None:
            return np.zeros(0, dtype=np.uint64)
        return self.packing.starts

    def densities(self, rows: slice) -> Iterator[tuple[slice, Floats]]:
        """Yield log-densities (rows, g, K) of the Gaussian attributes, piece by piece.

        The pieces' slices count from the beginning of ``rows``.
        """
        if self.codes is None:
            return
        start, stop, _ = rows.indices(self.n_rows)
        kept = self._kept_densities
        # A thousand rows at a time, so that numbers kept by column are copied in parts.
        for lo in range(start, stop, _ROWS_PER_PIECE):
            hi, shift = min(lo + _ROWS_PER_PIECE, stop), lo - start
            if kept is not None:
                yield slice(shift, hi - start), kept[lo:hi]
                continue
            for piece, densities in self._log_densities(slice(lo, hi)):
                yield slice(piece.start + shift, piece.stop + shift), densities

    @cached_property
    def _kept_densities(self) -> Floats | None:
        """Log-densities of all rows, shape (n, g, K), None if they are too many."""
        if self.n_rows * self.gaussian.mean.size > _MAX_KEPT_CELLS:
            return None
        pieces = [dens for _, dens in self._log_densities(slice(0, self.n_rows))]
        if all(not dens.strides[2] for dens in pieces):
            one = np.concatenate([dens[:, :, :1] for dens in pieces])
            return np.broadcast_to(one, (*one.shape[:2], self.n_classes))
        return np.concatenate(pieces)

    def _log_densities(self, rows: slice) -> Iterator[tuple[slice, Floats]]:
        return self.gaussian.log_densities(self._numbers(rows))

    def _numbers(self, rows: slice) -> Floats:
        assert self.codes is not None
        if self.picked is None:
            return np.ascontiguousarray(self.codes.number_rows(rows))
        numbers = self.codes.numbers
        picked = self.picked[rows]
        if isinstance(numbers, np.ndarray):
            return np.ascontiguousarray(numbers[picked])
        return np.stack([column[picked] for column in numbers], axis=1)

    def with_densities(self, gaussian: GaussianTable) -> PackedRows:
        """Return the same rows with other densities of Gaussian attributes."""
        return replace(self, gaussian=gaussian)

    def take(self, picked: Ints | None) -> PackedRows:
        """Return some of the rows, or all."""
        if picked is None:
            return self
        return replace(
            self,
            y=np.asarray(self.y[picked], dtype=np.uint32),
            weights=self.weights[picked] if self.weights.size else self.weights,
            packed=self.packed[picked],
            wide=tuple(CodeBlock(b.values[picked], b.features) for b in self.wide),
            picked=picked if self.picked is None else self.picked[picked],
        )

    # ------------------------------------------------------------------------- passes

    def evaluate(self, loss: Loss, effect: Effect) -> tuple[float, Effect]:
        """Return a loss and its gradient with respect to the effect of weights."""
        work = self._plain_sums if loss.compiled is None else self._score_sums
        if loss.compiled is None or self.n_classes > 2:
            sums = self._pass(effect, partial(work, loss=loss))
            return float(sums.value), Effect(sums.base, sums.wide, sums.multipliers)
        # Two classes: everything is a difference of two columns.
        odds = Effect(
            np.array([effect.base[1] - effect.base[0]]),
            (effect.table[:, 1] - effect.table[:, 0])[:, None],
            effect.multipliers,
        )
        sums = self._pass(odds, partial(self._odds_sums, loss=loss))
        slope = effect_of_odds(sums.base[0], sums.wide[:, 0], sums.multipliers)
        return float(sums.value), slope

    def evaluate_mixture(
        self, alpha: float, halves: tuple[Effect, Effect], printed: bool
    ) -> tuple[float, float, Effect, Effect]:
        """Return the squared error of a mixture, and its three gradients."""
        k = self.n_classes
        multipliers = np.concatenate([half.multipliers for half in halves], axis=1)
        columns = slice(0, k), slice(k, 2 * k)
        if k == 2:
            odds = Effect(
                np.array([half.base[1] - half.base[0] for half in halves]),
                np.stack([h.table[:, 1] - h.table[:, 0] for h in halves], axis=1),
                multipliers,
            )
            work = partial(self._mixed_odds_sums, alpha=alpha, printed=printed)
            sums = self._pass(odds, work)
            gradients = [
                effect_of_odds(sums.base[h], sums.wide[:, h], sums.multipliers[:, half])
                for h, half in enumerate(columns)
            ]
        else:
            both = Effect(
                np.concatenate([half.base for half in halves]),
                np.concatenate([half.table for half in halves], axis=1),
                multipliers,
            )
            work = partial(self._mixed_score_sums, alpha=alpha, printed=printed)
            sums = self._pass(both, work)
            gradients = [
                Effect(sums.base[half], sums.wide[:, half], sums.multipliers[:, half])
                for half in columns
            ]
        return float(sums.value), float(sums.alpha), gradients[0], gradients[1]

    def _pass(self, effect: Effect, work: Callable[..., Sums]) -> Sums:
        """Run ``work`` over all blocks of rows, and add up what it returns, in order.

        The soft counts of joint codes end as those of plain codes.
        """
        packed = self.expand(effect.table)
        n_columns = effect.table.shape[1]
        joint = packed[:, 0] if n_columns == 1 else packed
        effect = replace(effect, table=np.ascontiguousarray(effect.table))

        def block_sums(block: slice) -> Sums:
            return reduce(add, (work(rows, effect, joint) for rows in pieces(block)))

        blocks = row_blocks(self.n_rows, self.packed.shape[1])
        total = reduce(add, run(block_sums, blocks, thread_count(self.n_jobs)))
        if self.packing is None:
            return total
        counts = total.packed.reshape(len(packed), n_columns)
        collapsed = self.packing.collapse(counts)
        return replace(total, wide=total.wide + collapsed if self.wide else collapsed)

    # Each of these has a piece of the rows, an effect and its table of joint codes.

    def _odds_sums(
        self, rows: slice, effect: Effect, joint: Floats, loss: Loss
    ) -> Sums:
        """Evaluate a compiled loss of two classes, whose scores are log-odds."""
        n = len(self.y[rows])
        odds, factors = np.full(n, effect.base[0]), effect.multipliers
        for values, starts in self._wide_codes(rows):
            column = effect.table[:, 0].copy()
            scoring.gather_difference(values, starts, column, odds)
        for piece, dens in self.densities(rows):
            for c, sign in ((0, -1.0), (1, 1.0)):
                odds[piece] += sign * (dens[:, :, c] @ factors[:, c])
        slope, counts = np.empty(n), np.zeros(len(joint))
        form = _kind(loss), loss.parameter
        given = self.packed[rows], self.starts, joint, odds, *self._truth(rows)
        value = fitting.evaluate_two(*given, *form, slope, counts)
        d_factors = np.zeros(factors.shape)
        for piece, dens in self.densities(rows):
            d_factors[:, 0] -= dens[:, :, 0].T @ slope[piece]
            d_factors[:, 1] += dens[:, :, 1].T @ slope[piece]
        d_wide = self._scatter_wide(rows, slope[:, None])
        return Sums(value, np.array([slope.sum()]), counts, d_wide, d_factors)

    def _score_sums(
        self, rows: slice, effect: Effect, joint: Floats, loss: Loss
    ) -> Sums:
        """Evaluate a compiled loss of any number of classes."""
        scores, counts = self._other_scores(rows, effect), np.zeros(joint.shape)
        form = _kind(loss), loss.parameter
        lanes = (0.0,) * self.n_classes if self.n_classes <= _MAX_LANES else ()
        work = np.empty(fitting.ROWS * self.n_classes)
        given = self.packed[rows], self.starts, joint, scores, *self._truth(rows)
        value = fitting.evaluate_many(*given, *form, counts, work, lanes)
        return self._sums(rows, value, scores, counts)

    def _plain_sums(
        self, rows: slice, effect: Effect, joint: Floats, loss: Loss
    ) -> Sums:
        """Evaluate a loss that is written in NumPy."""
        scores, codes = self._other_scores(rows, effect), self.packed[rows]
        scoring.gather(codes, self.starts, joint, scores)
        y, weights = self._truth(rows)
        given = weights if weights.size else None
        value, d_scores = loss.value_and_gradient(scores, y, given)
        counts = np.zeros(joint.shape)
        fitting.scatter(codes, self.starts, d_scores, counts)
        return self._sums(rows, value, d_scores, counts)

    def _mixed_odds_sums(
        self, rows: slice, effect: Effect, joint: Floats, alpha: float, printed: bool
    ) -> Sums:
        """Evaluate the squared error of a mixture for two classes."""
        scores, factors = self._with_wide(rows, effect), effect.multipliers
        for piece, dens in self.densities(rows):
            for half in (0, 1):
                m = factors[:, 2 * half : 2 * half + 2]
                scores[piece, half] += dens[:, :, 1] @ m[:, 1] - dens[:, :, 0] @ m[:, 0]
        counts = np.zeros(joint.shape)
        given = self.packed[rows], self.starts, joint, scores, *self._truth(rows)
        value, d_alpha = fitting.evaluate_mixture_two(*given, alpha, printed, counts)
        d_factors = np.zeros(factors.shape)
        for piece, dens in self.densities(rows):
            for half in (0, 1):
                d = scores[piece, half]
                d_factors[:, 2 * half] -= dens[:, :, 0].T @ d
                d_factors[:, 2 * half + 1] += dens[:, :, 1].T @ d
        d_wide, d_base = self._scatter_wide(rows, scores), _column_sums(scores)
        return Sums(value, d_base, counts, d_wide, d_factors, d_alpha)

    def _mixed_score_sums(
        self, rows: slice, effect: Effect, joint: Floats, alpha: float, printed: bool
    ) -> Sums:
        """Evaluate the squared error of a mixture for any number of classes."""
        scores, counts = self._other_scores(rows, effect), np.zeros(joint.shape)
        width = 2 * self.n_classes
        lanes = (0.0,) * width if width <= _MAX_MIXED_LANES else ()
        given = self.packed[rows], self.starts, joint, scores, *self._truth(rows)
        value, d_alpha = fitting.evaluate_mixture(*given, alpha, printed, counts, lanes)
        return replace(self._sums(rows, value, scores, counts), alpha=d_alpha)

    def _truth(self, rows: slice) -> tuple[Labels, Floats]:
        """Return the classes and weights of some rows."""
        weights = self.weights[rows] if self.weights.size else self.weights
        return np.asarray(self.y[rows], dtype=np.uint32), weights

    def _wide_codes(
        self, rows: slice = slice(None)
    ) -> Iterator[tuple[NDArray[Any], NDArray[np.uint64]]]:
        """Yield codes of more than a byte, and the first table row of each column."""
        for block in self.wide:
            yield block.values[rows], block.starts(self.schema.offsets)

    def _with_wide(self, rows: slice, effect: Effect) -> Floats:
        """Scores of some rows from intercepts and codes of more than a byte, (n, C)."""
        scores = np.empty((len(self.y[rows]), len(effect.base)))
        scores[:] = effect.base
        for values, starts in self._wide_codes(rows):
            scoring.gather(values, starts, effect.table, scores)
        return scores

    def _other_scores(self, rows: slice, effect: Effect) -> Floats:
        """Scores of some rows from all but the joint codes, shape (n, C)."""
        scores, k = self._with_wide(rows, effect), self.n_classes
        for piece, dens in self.densities(rows):
            for lo in range(0, scores.shape[1], k):
                factors = effect.multipliers[:, lo : lo + k]
                scores[piece, lo : lo + k] += _weigh(dens, factors)
        return scores

    def _sums(self, rows: slice, value: float, gradient: Any, counts: Any) -> Sums:
        """Return sums, given the gradient with respect to the scores, (n, C)."""
        k, width = self.n_classes, gradient.shape[1]
        factors = np.zeros((len(self.gaussian.mean), width))
        for piece, dens in self.densities(rows):
            for lo in range(0, width, k):
                factors[:, lo : lo + k] += _collect(dens, gradient[piece, lo : lo + k])
        d_wide = self._scatter_wide(rows, gradient)
        return Sums(value, _column_sums(gradient), counts, d_wide, factors)

    def _scatter_wide(self, rows: slice, gradient: Floats) -> Floats:
        out = np.zeros((self.schema.n_codes, gradient.shape[1]))
        for values, starts in self._wide_codes(rows):
            fitting.scatter(values, starts, gradient, out)
        return out

    # ----------------------------------------------------- plain gather and scatter

    def scores(self, effect: Effect) -> Floats:
        """Scores of all rows, shape (n, K)."""
        out = np.tile(effect.base, (self.n_rows, 1))
        if self.packing is not None:
            scoring.gather(self.packed, self.starts, self.expand(effect.table), out)
        for values, starts in self._wide_codes():
            scoring.gather(values, starts, effect.table, out)
        for piece, dens in self.densities(slice(None)):
            out[piece] += _weigh(dens, effect.multipliers)
        return out

    def scatter(self, d_scores: Floats, power: int = 1) -> Effect:
        """Transpose of ``scores``: gradient with respect to the effect.

        With a ``power`` of 2 densities count by their squares: given curvatures by
        score, that is the diagonal of the Hessian with respect to the effect.
        """
        n_classes = d_scores.shape[1]
        table = self._scatter_wide(slice(None), d_scores)
        if self.packing is not None:
            counts = np.zeros((self.packing.n_codes, n_classes))
            fitting.scatter(self.packed, self.starts, d_scores, counts)
            table += self.packing.collapse(counts)
        multipliers = np.zeros((len(self.gaussian.mean), n_classes))
        for piece, dens in self.densities(slice(None)):
            dens = dens if power == 1 else dens**power
            multipliers += _collect(dens, d_scores[piece])
        return Effect(d_scores.sum(axis=0), table, multipliers)

    def table_rows(self) -> Ints:
        """Table row of every cell of a coded attribute, shape (n, coded)."""
        offsets = self.schema.offsets
        out = np.empty((self.n_rows, len(self.schema)), dtype=np.int64)
        for g, group in enumerate(self.packing.groups if self.packing else ()):
            assert self.packing is not None
            for j in group:
                digits = self.packing.digits(self.packed[:, g], j)
                out[:, j] = offsets[j] + digits
        for block in self.wide:
            out[:, block.features] = offsets[block.features] + block.values
        return np.take(out, self.schema.coded, axis=1)

    def likelihoods(self, table_rows: Ints, evidence: LogProbs) -> Floats:
        """Log-likelihood entries of all rows, shape (K, d, n): for samples only."""
        schema = evidence.schema
        out = np.zeros((self.n_classes, len(schema), self.n_rows))
        for j, cells in zip(schema.coded, table_rows.T, strict=True):
            out[:, j] = evidence.table.values[cells].T
        for piece, dens in self.densities(slice(None)):
            out[:, schema.gaussian, piece] = dens.transpose(2, 1, 0)
        return out


def prepare_rows(
    training: TrainingSet, missing: NDArray[np.bool_], gaussian: GaussianTable
) -> Passes:
    """Prepare training rows for many passes, where they are.

    ``missing`` (d,) is whether code 0 occurs in each attribute, ``gaussian`` contains
    the densities of the attributes without codes.
    """
    rows: Passes | None = training.place.passes(training, missing, gaussian)
    return join_rows(training, missing, gaussian) if rows is None else rows


def _by_row(values: NDArray[Any], codes: Codes) -> NDArray[Any]:
    """Return codes row by row, copied to where the others are, if they are not so."""
    return values if values.flags.c_contiguous else codes.workspace.copy(values)


def join_rows(
    training: TrainingSet, missing: NDArray[np.bool_], gaussian: GaussianTable
) -> PackedRows:
    """Join the small codes of rows in arrays here."""
    codes, weights = training.codes, training.weights
    packing, packed = pack_codes(codes, missing, training.n_jobs)
    wide = [block for block in codes.blocks if block.values.dtype != np.uint8]
    return PackedRows(
        codes.schema,
        training.labels,
        np.empty(0) if weights is None else weights,
        packing,
        packed,
        tuple(CodeBlock(_by_row(b.values, codes), b.features) for b in wide),
        codes if codes.n_numbers else None,
        gaussian,
        training.n_classes,
        training.n_jobs,
    )


def _kind(loss: Loss) -> int | None:
    """Return the number of a compiled loss, or None for the deviance."""
    return None if loss.compiled == DEVIANCE else loss.compiled


def _weigh(dens: Floats, factors: Floats) -> Floats:
    """Add up log-densities (rows, g, K) times factors (g, K), shape (rows, K)."""
    if not dens.strides[2]:  # the same for all classes: a product of matrices
        return np.asarray(dens[:, :, 0] @ factors)
    return np.asarray(np.einsum("igc,gc->ic", dens, factors))


def _collect(dens: Floats, gradient: Floats) -> Floats:
    """Transpose of ``_weigh``: gradient (rows, K) to (g, K)."""
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
