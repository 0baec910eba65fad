"""DeviceRows: training rows in the memory of a GPU, as passes read them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.exceptions import ParameterError
from steelyard.fitting.block import effect_of_odds
from steelyard.fitting.rows import Rows
from steelyard.kernels.cuda import fitting
from steelyard.kernels.cuda.launching import (
    FEW_THREADS,
    THREADS,
    blocks_for,
    launch,
    most_shared,
    to_device,
    zeros,
)
from steelyard.kernels.losses import EXPONENTIAL
from steelyard.losses import Loss
from steelyard.proba.counts import Counts
from steelyard.proba.counts_on_device import DeviceWeights
from steelyard.proba.gaussian import GaussianTable
from steelyard.table.codes import CodeBlock
from steelyard.table.on_device import DeviceCodes, padded, taken
from steelyard.table.packing import Packing, plan_packing
from steelyard.weighting.base import Effect

# Scores that are kept at a time, 128 MB of them.
_MOST_SCORES = 1 << 24

# Bits of the soft counts of a row: one addition of 32 bits does for most, and 2**30
# rows do not overflow 64. Few rows have finer units, as fine as doubles at most.
_BITS, _FEW_ROWS = 32, 1 << 20
_BITS_OF_SUMS, _BITS_OF_DOUBLES = 61, 52


@dataclass(frozen=True)
class DeviceRows:
    """Training rows on a device: joint codes by column, classes and weights."""

    codes: DeviceCodes
    labels: Any
    """Classes, four rows to a word."""

    weights: DeviceWeights
    packing: Packing | None
    words: Any
    """Joint codes by column, four rows to a word, (g, m) uint32 on the device."""

    modes: NDArray[np.int32]
    """Most frequent joint code of each group."""

    n_classes: int
    gaussian: GaussianTable
    n_jobs: int | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.codes.n_rows

    @cached_property
    def total_weight(self) -> float:
        """Sum of the row weights."""
        given = self.weights.host
        return float(self.n_rows if given is None else given.sum())

    def with_densities(self, gaussian: GaussianTable) -> DeviceRows:
        """Return the same rows: there are no Gaussian attributes."""
        return self

    def take(self, picked: NDArray[np.int64] | None) -> Rows:
        """Return some rows in memory, or all, for second derivatives."""
        rows = np.arange(self.n_rows) if picked is None else picked
        schema, weights = self.codes.schema, self.weights.host
        wide: tuple[CodeBlock, ...] = ()
        if self.codes.wide is not None:
            values = taken(self.codes.wide, rows)
            wide = (CodeBlock(values, self.codes.wide_features),)
        packed = np.empty((len(rows), 0), dtype=np.uint8)
        if self.packing is not None:
            packed = taken(self.words.view(np.uint8), rows)
        labels = self.labels.view(np.uint8)
        return Rows(
            schema,
            taken(labels.reshape(1, labels.size), rows)[:, 0].astype(np.uint32),
            np.empty(0) if weights is None else weights[rows],
            self.packing,
            packed,
            wide,
            None,
            self.gaussian,
            self.n_classes,
            self.n_jobs,
        )

    # ------------------------------------------------------------------------- passes

    def evaluate(self, loss: Loss, effect: Effect) -> tuple[float, Effect]:
        """Return a loss and its gradient with respect to the effect of weights."""
        if loss.compiled is None:
            raise ParameterError(
                f"{type(loss).__name__} is written in NumPy, which does not run on a "
                "GPU. Use device='cpu', or a loss by its name."
            )
        form = loss.compiled, float(loss.parameter)
        largest = self.weights.largest * max(1.0, abs(form[1]))
        if self._fits_two():
            if loss.compiled == EXPONENTIAL:
                largest = self._two(effect, form, 0.0)[1]
            return self._two_effect(effect, form, largest)
        kernel = fitting.score_losses
        if loss.compiled == EXPONENTIAL:
            # Slopes have no bound: the largest is found first.
            largest = self._pass(effect, kernel, form, 0.0)[0][1]
        (value, _), slope = self._pass(effect, kernel, form, self._scale(largest))
        return value, slope

    def evaluate_mixture(
        self, alpha: float, halves: tuple[Effect, Effect], printed: bool
    ) -> tuple[float, float, Effect, Effect]:
        """Return the squared error of a mixture, and its three gradients."""
        k = self.n_classes
        both = Effect(
            np.concatenate([half.base for half in halves]),
            np.concatenate([half.table for half in halves], axis=1),
            np.concatenate([half.multipliers for half in halves], axis=1),
        )
        scale = self._scale(self.weights.largest * 2.0 * (1.0 + abs(alpha)))
        kernel, form = fitting.mixture_losses, (float(alpha), bool(printed))
        sums, slope = self._pass(both, kernel, form, scale, adds=True)
        gradients = [
            Effect(slope.base[h], slope.table[:, h], slope.multipliers[:, h])
            for h in (slice(0, k), slice(k, 2 * k))
        ]
        return sums[0], sums[1], gradients[0], gradients[1]

    def _scale(self, largest: float) -> float:
        """Units of soft counts, a power of two, given the largest slope of a row."""
        bits = _BITS
        if self.n_rows <= _FEW_ROWS:
            bits = min(_BITS_OF_DOUBLES, _BITS_OF_SUMS - self.n_rows.bit_length())
        if not np.isfinite(largest) or largest <= 0.0:
            return 1.0
        return float(2.0 ** (bits - int(np.ceil(np.log2(largest)))))

    # ------------------------------------------------------------------- two classes

    @cached_property
    def _two_bytes(self) -> int:
        """Shared memory of the kernel for two classes."""
        size, g = self._n_cells, self.words.shape[0]
        return max(8 * size + 8 * (size + 1 + fitting.SPARE) + 8 * g, 16 * THREADS)

    def _fits_two(self) -> bool:
        is_narrow = self.packing is not None and self.codes.wide is None
        return self.n_classes == 2 and is_narrow and self._two_bytes <= most_shared()

    def _two(
        self, effect: Effect, form: tuple[int, float], scale: float
    ) -> tuple[float, float, NDArray[np.int64]]:
        """Return the loss, the largest slope, and soft counts in units."""
        assert self.packing is not None
        odds = effect.table[:, 1:] - effect.table[:, :1]
        table = to_device(self.packing.expand(odds)[:, 0])
        blocks = blocks_for(self._two_bytes)
        sums, counts = zeros((blocks, 2), np.float64), zeros(table.size + 1, np.int64)
        launch(
            fitting.evaluate_two,
            blocks,
            self._two_bytes,
            self._flat_words,
            self._starts,
            self._modes,
            table,
            self.labels,
            self.weights.values,
            self.n_rows,
            float(effect.base[1] - effect.base[0]),
            *form,
            scale,
            sums,
            counts,
        )
        found = sums.copy_to_host()
        return found[:, 0].sum(), found[:, 1].max(), counts.copy_to_host()

    def _two_effect(
        self, effect: Effect, form: tuple[int, float], largest: float
    ) -> tuple[float, Effect]:
        assert self.packing is not None
        scale = self._scale(largest)
        value, _, units = self._two(effect, form, scale)
        total, units = units[-1:], units[:-1, None]
        self._fill_modes(units, total, first=0)
        table = self.packing.collapse(units / scale)[:, 0]
        return float(value), effect_of_odds(total[0] / scale, table, effect.multipliers)

    def _fill_modes(
        self, units: NDArray[np.int64], total: NDArray[np.int64], first: int
    ) -> None:
        """Give the most frequent codes, (P, C), what is left of the total of rows."""
        ends = self._starts_of_end
        for g in range(first, len(self.modes)):
            part = units[ends[g] : ends[g + 1]]
            part[self.modes[g]] = 0
            part[self.modes[g]] = total - part.sum(axis=0)

    @cached_property
    def _starts_of_end(self) -> NDArray[np.int64]:
        """First packed row of each group, and their number."""
        if self.packing is None:
            return np.array([0, 1])
        return np.append(self.packing.starts, len(self.packing.members)).astype(int)

    @cached_property
    def _flat_words(self) -> Any:
        """The joint codes, column after column."""
        return self.words.reshape(self.words.size)

    @property
    def _n_cells(self) -> int:
        return int(self._starts_of_end[-1])

    @cached_property
    def _starts(self) -> Any:
        return to_device(self._starts_of_end[:-1].astype(np.uint32))

    @cached_property
    def _modes(self) -> Any:
        return to_device(self.modes.astype(np.uint32))

    # ---------------------------------------------------------------- many classes

    def _pass(
        self,
        effect: Effect,
        losses: Any,
        form: tuple[Any, ...],
        scale: float,
        adds: bool = False,
    ) -> tuple[tuple[float, float], Effect]:
        """Return two numbers of a pass, and the gradient of an effect (V, C).

        The second number is a sum if it ``adds``, the largest otherwise.
        """
        width = effect.table.shape[1]
        tables = self._tables(effect)
        counts = zeros(self._n_cells * width, np.int64)
        wide = zeros(effect.table.size if self.codes.wide is not None else 1, np.int64)
        pieces = list(self._pieces(width))
        buffer = zeros((width, pieces[0][1]), np.int64)
        blocks, shared = blocks_for(16 * THREADS), 16 * THREADS
        all_sums = zeros((len(pieces), blocks, 2), np.float64)
        for sums, (row, n_rows) in zip(all_sums, pieces, strict=True):
            scores = self._gathered(tables, row, n_rows, buffer)
            rows = (self.labels, self.weights.values, row, self.n_rows)
            units = scores.view(np.int64)
            flat = scores.reshape(scores.size), n_rows
            result = units.reshape(units.size), sums
            launch(losses, blocks, shared, *flat, *rows, *form, scale, *result)
            if scale:
                self._scatter(units, row, n_rows, counts, wide)
        found = all_sums.copy_to_host()
        value, other = float(found[..., 0].sum()), found[..., 1]
        number = float(other.sum() if adds else other.max())
        slope = self._slope(counts, wide, effect, scale or 1.0)
        return (value, number), slope

    def _pieces(self, width: int) -> Iterator[tuple[int, int]]:
        """Yield first rows and lengths of pieces; lengths are of whole words."""
        total, most = padded(self.n_rows), padded(_MOST_SCORES // width)
        for row in range(0, total, most):
            yield row, min(most, total - row)

    def _tables(self, effect: Effect) -> tuple[Any, Any, Any, Callable[..., None], int]:
        """Return base, packed and wide table on the device, and who gathers them."""
        width = effect.table.shape[1]
        packed = np.zeros((1, width))
        if self.packing is not None:
            packed = self.packing.expand(effect.table)
        wide = effect.table if self.codes.wide is not None else np.zeros((1, width))
        n_bytes = 8 * len(packed)
        fits = n_bytes <= most_shared()
        return (
            to_device(effect.base),
            to_device(packed.T.ravel()),
            to_device(wide),
            fitting.gather if fits else fitting.gather_far,
            n_bytes if fits else 0,
        )

    def _gathered(self, tables: Any, row: int, n_rows: int, buffer: Any) -> Any:
        """Return the scores of some rows, (C, rows), made in a buffer."""
        base, packed, wide, gather, shared = tables
        if n_rows < buffer.shape[1]:
            buffer = zeros((buffer.shape[0], n_rows), np.int64)
        scores = buffer.view(np.float64)
        place = (row // 4, n_rows // 4)
        launch(
            gather,
            blocks_for(shared, FEW_THREADS, len(scores)),
            shared,
            *(self._flat_words, self._starts, packed, base, *place, scores),
            threads=FEW_THREADS,
        )
        if self.codes.wide is not None:
            inside = min(n_rows, self.n_rows - row)
            codes = self.codes.wide, self._wide_starts
            launch(
                fitting.gather_wide, blocks_for(0), 0, *codes, wide, row, inside, scores
            )
        return scores

    @cached_property
    def _wide_starts(self) -> Any:
        return to_device(self.codes.wide_starts)

    def _scatter(
        self, units: Any, row: int, n_rows: int, counts: Any, wide: Any
    ) -> None:
        place = (row // 4, n_rows // 4)
        for begin, end, cells in self._column_parts():
            shared = 8 * (cells + fitting.SPARE)
            launch(
                fitting.scatter,
                blocks_for(shared, FEW_THREADS, len(units)),
                shared,
                *(self._flat_words, self._starts, self._first_modes),
                *(begin, end, cells, *place, units, counts),
                threads=FEW_THREADS,
            )
        if self.codes.wide is not None:
            inside = min(n_rows, self.n_rows - row)
            codes = self.codes.wide, self._wide_starts
            launch(
                fitting.scatter_wide, blocks_for(0), 0, *codes, row, inside, units, wide
            )

    @cached_property
    def _first_modes(self) -> Any:
        """The most frequent codes, but for the first column: its sums are the total."""
        modes = self.modes.astype(np.uint32)
        modes[0] = 256
        return to_device(modes)

    def _column_parts(self) -> list[tuple[int, int, int]]:
        """Cut columns into parts whose soft counts fit shared memory."""
        ends, begin, parts = self._starts_of_end, 0, []
        most = most_shared() // 8 - fitting.SPARE
        while begin < len(ends) - 1:
            end = int(np.searchsorted(ends, ends[begin] + most, "right")) - 1
            parts.append((begin, end, int(ends[end] - ends[begin])))
            begin = end
        return parts

    def _slope(self, counts: Any, wide: Any, effect: Effect, scale: float) -> Effect:
        """Turn soft counts in units into the gradient of an effect."""
        width = effect.table.shape[1]
        units = counts.copy_to_host().reshape(width, -1).T.copy()
        total = units[: self._starts_of_end[1]].sum(axis=0)
        self._fill_modes(units, total, first=1)
        table = np.zeros_like(effect.table)
        if self.packing is not None:
            table += self.packing.collapse(units / scale)
        if self.codes.wide is not None:
            table += wide.copy_to_host().reshape(width, -1).T / scale
        return Effect(total / scale, table, np.zeros_like(effect.multipliers))


def rows_on_device(
    codes: DeviceCodes,
    labels: Any,
    weights: DeviceWeights,
    counts: Counts,
    missing: NDArray[np.bool_],
    gaussian: GaussianTable,
    n_jobs: int | None = None,
) -> DeviceRows:
    """Join the small codes of rows on a device, for many passes."""
    features = [int(j) for j in codes.features]
    packing = plan_packing(codes.schema, features, missing, codes.n_rows)
    if packing is None:
        words = zeros((1, padded(codes.n_rows)), np.uint8).view(np.uint32)
        modes = np.zeros(1, dtype=np.int32)
    else:
        words = codes.pack(packing)
        modes = packing.likely_codes(counts.by_code.sum(axis=1))
    classes = counts.n_classes
    return DeviceRows(
        codes, labels, weights, packing, words, modes, classes, gaussian, n_jobs
    )
