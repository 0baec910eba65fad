"""Training rows, prepared for many passes: small codes joined, numbers at hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from steelyard.kernels import fitting, scoring
from steelyard.proba.gaussian import GaussianTable
from steelyard.table.codes import CodeBlock, Codes
from steelyard.table.packing import Packing, pack_codes
from steelyard.table.schema import TableSchema
from steelyard.weighting.base import Effect

__all__ = ["Rows", "prepare_rows"]

# Log-densities of so many rows, attributes and classes (32 MB) are kept from pass to
# pass; more are computed anew each time.
_KEPT_CELLS = 1 << 22
_PIECE = 1024


@dataclass(frozen=True)
class Rows:
    """Everything a pass over the training rows reads."""

    schema: TableSchema
    y: NDArray[np.uint32]
    weights: NDArray[np.float64]
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
    picked: NDArray[np.int64] | None = None
    """Rows of ``codes`` that these are, None for all."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.y)

    @cached_property
    def total_weight(self) -> float:
        """Sum of the row weights."""
        return float(self.weights.sum()) if self.weights.size else float(self.n_rows)

    def expand(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
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

    def densities(self, rows: slice) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Yield log-densities (rows, g, K) of the Gaussian attributes, piece by piece.

        The pieces' slices count from the beginning of ``rows``.
        """
        if self.codes is None:
            return
        start, stop, _ = rows.indices(self.n_rows)
        kept = self._kept_densities
        # A thousand rows at a time, so that numbers kept by column are copied in parts.
        for lo in range(start, stop, _PIECE):
            hi, shift = min(lo + _PIECE, stop), lo - start
            if kept is not None:
                yield slice(shift, hi - start), kept[lo:hi]
                continue
            for piece, densities in self._log_densities(slice(lo, hi)):
                yield slice(piece.start + shift, piece.stop + shift), densities

    @cached_property
    def _kept_densities(self) -> NDArray[np.float64] | None:
        """Log-densities of all rows, shape (n, g, K), None where they are too many."""
        shape = (self.n_rows, *self.gaussian.mean.shape)
        if np.prod(shape) > _KEPT_CELLS:
            return None
        out = np.empty(shape)
        for piece, densities in self._log_densities(slice(0, self.n_rows)):
            out[piece] = densities
        return out

    def _log_densities(
        self, rows: slice
    ) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        return self.gaussian.log_densities(self._numbers(rows))

    def _numbers(self, rows: slice) -> NDArray[np.float64]:
        assert self.codes is not None
        if self.picked is None:
            return np.ascontiguousarray(self.codes.number_rows(rows))
        numbers = self.codes.numbers
        picked = self.picked[rows]
        if isinstance(numbers, np.ndarray):
            return np.ascontiguousarray(numbers[picked])
        return np.stack([column[picked] for column in numbers], axis=1)

    def take(self, picked: NDArray[np.int64]) -> Rows:
        """Return some of the rows."""
        return Rows(
            self.schema,
            self.y[picked],
            self.weights[picked] if self.weights.size else self.weights,
            self.packing,
            self.packed[picked],
            tuple(CodeBlock(b.values[picked], b.features) for b in self.wide),
            self.codes,
            self.gaussian,
            self.n_classes,
            picked if self.picked is None else self.picked[picked],
        )

    # ----------------------------------------------------- plain gather and scatter

    def scores(self, effect: Effect) -> NDArray[np.float64]:
        """Scores of all rows, shape (n, K)."""
        out = np.tile(effect.base, (self.n_rows, 1))
        if self.packing is not None:
            scoring.gather(self.packed, self.starts, self.expand(effect.table), out)
        offsets = self.schema.offsets
        for block in self.wide:
            scoring.gather(block.values, block.starts(offsets), effect.table, out)
        for piece, dens in self.densities(slice(None)):
            out[piece] += np.einsum("igc,gc->ic", dens, effect.multipliers)
        return out

    def scatter(self, d_scores: NDArray[np.float64]) -> Effect:
        """Transpose of ``scores``: gradient with respect to the effect."""
        n_classes = d_scores.shape[1]
        table = np.zeros((self.schema.n_codes, n_classes))
        offsets = self.schema.offsets
        for block in self.wide:
            fitting.scatter(block.values, block.starts(offsets), d_scores, table)
        if self.packing is not None:
            counts = np.zeros((len(self.packing.members), n_classes))
            fitting.scatter(self.packed, self.starts, d_scores, counts)
            table += self.packing.collapse(counts)
        multipliers = np.zeros((len(self.gaussian.mean), n_classes))
        for piece, dens in self.densities(slice(None)):
            multipliers += np.einsum("igc,ic->gc", dens, d_scores[piece])
        return Effect(d_scores.sum(axis=0), table, multipliers)

    def table_rows(self) -> NDArray[np.int64]:
        """Table row of every cell of a coded attribute, shape (n, coded)."""
        offsets = self.schema.offsets
        place = {j: k for k, j in enumerate(self.schema.coded.tolist())}
        out = np.empty((self.n_rows, len(place)), dtype=np.int64)
        for g, group in enumerate(self.packing.groups if self.packing else ()):
            assert self.packing is not None
            for j in group:
                digits = self.packing.digits(self.packed[:, g], group, j)
                out[:, place[j]] = offsets[j] + digits
        for block in self.wide:
            for k, j in enumerate(block.features.tolist()):
                out[:, place[j]] = offsets[j] + block.values[:, k].astype(np.int64)
        return out

    def likelihoods(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Log-likelihood entries of all rows, shape (K, d, n): for samples only."""
        out = np.zeros((self.n_classes, len(self.schema), self.n_rows))
        offsets = self.schema.offsets
        for g, group in enumerate(self.packing.groups if self.packing else ()):
            assert self.packing is not None
            for j in group:
                codes = self.packing.digits(self.packed[:, g], group, j)
                out[:, j] = table[offsets[j] + codes].T
        for block in self.wide:
            for k, j in enumerate(block.features):
                out[:, j] = table[offsets[j] + block.values[:, k].astype(np.int64)].T
        for piece, dens in self.densities(slice(None)):
            out[:, self.schema.gaussian, piece] = dens.transpose(2, 1, 0)
        return out


def prepare_rows(
    codes: Codes,
    y: NDArray[np.uint32],
    weights: NDArray[np.float64] | None,
    missing: NDArray[np.bool_],
    gaussian: GaussianTable,
    n_classes: int,
    n_jobs: int | None = None,
) -> Rows:
    """Join the small codes of an encoded table.

    Parameters
    ----------
    codes : Codes
        Encoded training table.
    y : ndarray of shape (n,)
        Classes.
    weights : ndarray of shape (n,) or None
        Row weights.
    missing : ndarray of shape (d,)
        Whether code 0 occurs in each attribute.
    gaussian : GaussianTable
        Densities of the attributes without codes.
    n_classes : int
        Number of classes.
    n_jobs : int, default=None
        Threads.

    Returns
    -------
    Rows
        What a pass reads.
    """
    packing, packed = pack_codes(codes, missing, n_jobs)
    wide = [block for block in codes.blocks if block.values.dtype != np.uint8]
    return Rows(
        codes.schema,
        y,
        np.empty(0) if weights is None else weights,
        packing,
        packed,
        tuple(CodeBlock(np.ascontiguousarray(b.values), b.features) for b in wide),
        codes if codes.n_numbers else None,
        gaussian,
        n_classes,
    )
