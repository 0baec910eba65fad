"""Training rows, prepared for many passes: small codes joined, numbers at hand.

``Passes`` is all that an objective asks of its rows. ``PackedRows`` has them in arrays,
in memory or in memory maps, and reads them a piece at a time; rows on other machines
are other ``Passes``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from operator import add
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, Ints
from steelyard._common.threads import pieces, row_blocks, run, thread_count
from steelyard.fitting.block import (
    PassTables,
    RowBlock,
    Sums,
    collect_densities,
    effect_of_odds,
    weigh_densities,
)
from steelyard.kernels import fitting, scoring
from steelyard.losses import Loss
from steelyard.model.training import TrainingSet
from steelyard.proba.gaussian import GaussianTable
from steelyard.table.codes import CodeBlock, Codes
from steelyard.table.packing import Packing, pack_codes
from steelyard.table.schema import TableSchema
from steelyard.weighting.base import Effect, LogProbs

# Log-densities of so many rows, attributes and classes (32 MB) are kept from pass to
# pass; more are computed each time.
_MAX_KEPT_CELLS = 1 << 22
_ROWS_PER_PIECE = 1024


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
class PackedRows:
    """Training rows in memory or memory maps, as passes read them."""

    schema: TableSchema
    y: NDArray[Any]
    """Positions of classes, of any unsigned type."""

    weights: Floats
    """Row weights, empty where all are one."""

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
        """Log-densities of all rows, shape (n, g, K), None where they are too many."""
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
        work = RowBlock.plain_pass if loss.compiled is None else RowBlock.scores_pass
        if loss.compiled is None or self.n_classes > 2:
            sums = self._pass(effect, partial(work, loss=loss))
            return float(sums.value), Effect(sums.base, sums.wide, sums.multipliers)
        # Two classes: everything is a difference of two columns.
        odds = Effect(
            np.array([effect.base[1] - effect.base[0]]),
            (effect.table[:, 1] - effect.table[:, 0])[:, None],
            effect.multipliers,
        )
        sums = self._pass(odds, partial(RowBlock.odds_pass, loss=loss))
        slope = effect_of_odds(sums.base[0], sums.wide[:, 0], sums.multipliers)
        return float(sums.value), slope

    def evaluate_mixture(
        self, alpha: float, halves: tuple[Effect, Effect], printed: bool
    ) -> tuple[float, float, Effect, Effect]:
        """Return the squared error of a mixture, and its three gradients."""
        k = self.n_classes
        multipliers = np.concatenate([half.multipliers for half in halves], axis=1)
        options: dict[str, Any] = {"alpha": alpha, "printed": printed}
        if k == 2:
            odds = Effect(
                np.array([half.base[1] - half.base[0] for half in halves]),
                np.stack([h.table[:, 1] - h.table[:, 0] for h in halves], axis=1),
                multipliers,
            )
            sums = self._pass(odds, partial(RowBlock.mixture_odds_pass, **options))
            gradients = [
                effect_of_odds(
                    sums.base[h],
                    sums.wide[:, h],
                    sums.multipliers[:, 2 * h : 2 * h + 2],
                )
                for h in (0, 1)
            ]
        else:
            both = Effect(
                np.concatenate([half.base for half in halves]),
                np.concatenate([half.table for half in halves], axis=1),
                multipliers,
            )
            sums = self._pass(both, partial(RowBlock.mixture_scores_pass, **options))
            gradients = [
                Effect(sums.base[half], sums.wide[:, half], sums.multipliers[:, half])
                for half in (slice(0, k), slice(k, 2 * k))
            ]
        return float(sums.value), float(sums.alpha), gradients[0], gradients[1]

    def _pass(self, effect: Effect, work: Any) -> Sums:
        """Run ``work`` over all blocks of rows, and add up what it returns, in order.

        The soft counts of joint codes end as those of plain codes.
        """
        packed = self.expand(effect.table)
        n_columns = effect.table.shape[1]
        tables = PassTables(
            effect.base,
            packed[:, 0] if n_columns == 1 else packed,
            np.ascontiguousarray(effect.table),
            effect.multipliers,
        )

        def block_sums(block: slice) -> Sums:
            parts = (work(self._block(rows), tables) for rows in pieces(block))
            return reduce(add, parts)

        blocks = row_blocks(self.n_rows, self.packed.shape[1])
        total = reduce(add, run(block_sums, blocks, thread_count(self.n_jobs)))
        if self.packing is None:
            return total
        counts = total.packed.reshape(len(packed), n_columns)
        collapsed = self.packing.collapse(counts)
        return replace(total, wide=total.wide + collapsed if self.wide else collapsed)

    def _block(self, part: slice) -> RowBlock:
        offsets = self.schema.offsets
        return RowBlock(
            self.packed[part],
            self.starts,
            tuple((b.values[part], b.starts(offsets)) for b in self.wide),
            np.asarray(self.y[part], dtype=np.uint32),
            self.weights[part] if self.weights.size else self.weights,
            lambda: self.densities(part),
            self.schema.n_codes,
            self.n_classes,
        )

    # ----------------------------------------------------- plain gather and scatter

    def scores(self, effect: Effect) -> Floats:
        """Scores of all rows, shape (n, K)."""
        out = np.tile(effect.base, (self.n_rows, 1))
        if self.packing is not None:
            scoring.gather(self.packed, self.starts, self.expand(effect.table), out)
        offsets = self.schema.offsets
        for block in self.wide:
            scoring.gather(block.values, block.starts(offsets), effect.table, out)
        for piece, dens in self.densities(slice(None)):
            out[piece] += weigh_densities(dens, effect.multipliers)
        return out

    def scatter(self, d_scores: Floats, power: int = 1) -> Effect:
        """Transpose of ``scores``: gradient with respect to the effect.

        With a ``power`` of 2 densities count by their squares: given curvatures by
        score, that is the diagonal of the Hessian with respect to the effect.
        """
        n_classes = d_scores.shape[1]
        table = np.zeros((self.schema.n_codes, n_classes))
        offsets = self.schema.offsets
        for block in self.wide:
            fitting.scatter(block.values, block.starts(offsets), d_scores, table)
        if self.packing is not None:
            counts = np.zeros((self.packing.n_codes, n_classes))
            fitting.scatter(self.packed, self.starts, d_scores, counts)
            table += self.packing.collapse(counts)
        multipliers = np.zeros((len(self.gaussian.mean), n_classes))
        for piece, dens in self.densities(slice(None)):
            dens = dens if power == 1 else dens**power
            multipliers += collect_densities(dens, d_scores[piece])
        return Effect(d_scores.sum(axis=0), table, multipliers)

    def table_rows(self) -> Ints:
        """Table row of every cell of a coded attribute, shape (n, coded)."""
        offsets = self.schema.offsets
        place = {j: k for k, j in enumerate(self.schema.coded.tolist())}
        out = np.empty((self.n_rows, len(place)), dtype=np.int64)
        for g, group in enumerate(self.packing.groups if self.packing else ()):
            assert self.packing is not None
            for j in group:
                digits = self.packing.digits(self.packed[:, g], j)
                out[:, place[j]] = offsets[j] + digits
        for block in self.wide:
            for k, j in enumerate(block.features.tolist()):
                out[:, place[j]] = offsets[j] + block.values[:, k].astype(np.int64)
        return out

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

    ``missing`` (d,) says whether code 0 occurs in each attribute, ``gaussian`` holds
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
