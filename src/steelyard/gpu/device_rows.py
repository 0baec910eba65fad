"""DeviceRows: training rows in the memory of a GPU, as passes read them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Ints
from steelyard.exceptions import ParameterError
from steelyard.fitting.rows import PackedRows, effect_of_odds
from steelyard.gpu.device_codes import DeviceCodes, padded, taken
from steelyard.gpu.device_counts import DeviceNumbers, DeviceWeights
from steelyard.kernels.cuda import passes
from steelyard.kernels.cuda.launching import (
    MIN_THREADS,
    THREADS,
    blocks_for,
    copies_for,
    empty,
    fill,
    launch,
    most_shared,
    threads_for,
    to_device,
    zeros,
)
from steelyard.losses import Loss
from steelyard.proba.gaussian import GaussianTable
from steelyard.table.codes import CodeBlock, Codes
from steelyard.table.packing import Packing
from steelyard.weighting.base import Effect

# Scores that are kept at a time, 256 MB of them.
_MAX_SCORES = 1 << 25

# Bits of the soft counts of a row: one addition of 32 bits does for most, and 2**30
# rows do not overflow 64. Few rows have finer units, as fine as doubles at most.
_BITS_OF_ROW, _FEW_ROWS = 32, 1 << 20
_BITS_OF_SUMS, _BITS_OF_DOUBLES = 61, 52


class _Tables(NamedTuple):
    """What a pass adds up: tables of joint and wide codes, factors of numbers."""

    base: Any
    packed: Any
    wide: Any
    multipliers: Any


class _SoftCounts(NamedTuple):
    """What a pass returns on the device, in units."""

    packed: Any
    wide: Any
    numbers: Any


@dataclass(frozen=True)
class DeviceRows:
    """Training rows on a device, as passes read them: joint codes by column."""

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
    host: Codes | None = None
    """The same rows in memory, where numbers of some are read; None without any."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.codes.n_rows

    @cached_property
    def total_weight(self) -> float:
        """Sum of the row weights."""
        given = self.weights.host
        return float(self.n_rows if given is None else given.sum())

    @cached_property
    def numbers(self) -> DeviceNumbers | None:
        """The Gaussian and linear attributes, None without any."""
        if self.codes.numbers is None:
            return None
        return DeviceNumbers(self.codes.numbers, self.gaussian)

    def with_densities(self, gaussian: GaussianTable) -> Self:
        """Return the same rows with other densities of Gaussian attributes."""
        return replace(self, gaussian=gaussian)

    def take(self, picked: Ints | None) -> PackedRows:
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
        return PackedRows(
            schema,
            taken(labels.reshape(1, labels.size), rows)[:, 0].astype(np.uint32),
            np.empty(0) if weights is None else weights[rows],
            self.packing,
            packed,
            wide,
            self.host,
            self.gaussian,
            self.n_classes,
            self.n_jobs,
            picked,
        )

    def scale(self, largest: float) -> float:
        """Units of soft counts, a power of two, given the largest slope of a row."""
        bits = _BITS_OF_ROW
        if self.n_rows <= _FEW_ROWS:
            bits = min(_BITS_OF_DOUBLES, _BITS_OF_SUMS - self.n_rows.bit_length())
        if not np.isfinite(largest) or largest <= 0.0:
            return 1.0
        return float(2.0 ** (bits - int(np.ceil(np.log2(largest)))))

    def fill_modes(self, units: Ints, total: Ints, first: int) -> None:
        """Give the most frequent codes, (P, C), what is left of the total of rows."""
        ends = self.starts_of_end
        for g in range(first, len(self.modes)):
            part = units[ends[g] : ends[g + 1]]
            part[self.modes[g]] = 0
            part[self.modes[g]] = total - part.sum(axis=0)

    @cached_property
    def starts_of_end(self) -> Ints:
        """First packed row of each group, and their number."""
        if self.packing is None:
            return np.array([0, 1])
        return np.append(self.packing.starts, self.packing.n_codes).astype(int)

    @cached_property
    def flat_words(self) -> Any:
        """The joint codes, column after column."""
        return self.words.reshape(self.words.size)

    @property
    def n_cells(self) -> int:
        """Number of packed rows."""
        return int(self.starts_of_end[-1])

    @cached_property
    def starts(self) -> Any:
        """First packed row of each group, on the device."""
        return to_device(self.starts_of_end[:-1].astype(np.uint32))

    @cached_property
    def device_modes(self) -> Any:
        """Most frequent joint codes, on the device."""
        return to_device(self.modes.astype(np.uint32))

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
            if not loss.has_bounded_slope:
                largest = self._two(effect, form, 0.0)[1]
            return self._two_effect(effect, form, largest)
        kernel = passes.score_losses
        # Slopes of a row add up to 0, if they are the derivatives of a loss.
        n_free = self.n_classes - loss.has_true_gradient
        if not loss.has_bounded_slope:
            # The largest is found first.
            largest = self._pass(effect, kernel, form, 0.0, n_free)[0][1]
        scale = self.scale(largest)
        (value, _), slope = self._pass(effect, kernel, form, scale, n_free)
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
        scale = self.scale(self.weights.largest * 2.0 * (1.0 + abs(alpha)))
        kernel, form = passes.mixture_losses, (float(alpha), bool(printed))
        sums, slope = self._pass(both, kernel, form, scale, 2 * k, adds=True)
        gradients = [
            Effect(slope.base[h], slope.table[:, h], slope.multipliers[:, h])
            for h in (slice(0, k), slice(k, 2 * k))
        ]
        return sums[0], sums[1], gradients[0], gradients[1]

    # ------------------------------------------------------------------- two classes

    @cached_property
    def _two_bytes(self) -> int:
        """Shared memory of the kernel for two classes."""
        size, g = self.n_cells, self.words.shape[0]
        return max(8 * size + 8 * (size + 1 + passes.SPARE) + 8 * g, 16 * THREADS)

    def _fits_two(self) -> bool:
        is_narrow = self.codes.wide is None and self.codes.numbers is None
        is_narrow = is_narrow and self.packing is not None
        return self.n_classes == 2 and is_narrow and self._two_bytes <= most_shared()

    def _two(
        self, effect: Effect, form: tuple[int, float], scale: float
    ) -> tuple[float, float, Ints]:
        """Return the loss, the largest slope, and soft counts in units."""
        assert self.packing is not None
        odds = effect.table[:, 1:] - effect.table[:, :1]
        table = to_device(self.packing.expand(odds)[:, 0])
        blocks = blocks_for(self._two_bytes)
        sums, counts = zeros((blocks, 2), np.float64), zeros(table.size + 1, np.int64)
        launch(
            passes.evaluate_two,
            blocks,
            self._two_bytes,
            self.flat_words,
            self.starts,
            self.device_modes,
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
        host_sums = sums.copy_to_host()
        return host_sums[:, 0].sum(), host_sums[:, 1].max(), counts.copy_to_host()

    def _two_effect(
        self, effect: Effect, form: tuple[int, float], largest: float
    ) -> tuple[float, Effect]:
        assert self.packing is not None
        scale = self.scale(largest)
        value, _, units = self._two(effect, form, scale)
        total, units = units[-1:], units[:-1, None]
        self.fill_modes(units, total, first=0)
        table = self.packing.collapse(units / scale)[:, 0]
        return float(value), effect_of_odds(total[0] / scale, table, effect.multipliers)

    # ---------------------------------------------------------------- many classes

    def _pass(
        self,
        effect: Effect,
        losses: Any,
        form: tuple[Any, ...],
        scale: float,
        n_free: int,
        adds: bool = False,
    ) -> tuple[tuple[float, float], Effect]:
        """Return two numbers of a pass, and the gradient of an effect (V, C).

        With ``n_free`` less than C scores are relative to those of the last class, and
        gradients of a row add up to 0. The second number is a sum if it ``adds``, the
        largest otherwise.
        """
        width = effect.table.shape[1]
        tables = self._tables(effect, n_free)
        counts = self._zero_counts(effect, n_free)
        pieces = list(self._pieces(width))
        blocks, shared = blocks_for(16 * THREADS), 16 * THREADS
        all_sums = zeros((len(pieces), blocks, 2), np.float64)
        sizes = {n_rows for _, n_rows in pieces}
        made = {n_rows: empty((width, n_rows), np.float64) for n_rows in sizes}
        for sums, (row, n_rows) in zip(all_sums, pieces, strict=True):
            scores = made[n_rows]
            self._gather(tables, row, n_rows, scores)
            # Scores become gradients in units, in the same memory.
            units, size = scores.view(np.int64), scores.size
            rows = (self.labels, self.weights.values, row, self.n_rows)
            given = (scores.reshape(size), n_rows, *rows, *form, scale)
            launch(losses, blocks, shared, *given, units.reshape(size), sums)
            if scale:
                self._scatter(units, row, n_rows, counts)
        host_sums = all_sums.copy_to_host()
        value, other = float(host_sums[..., 0].sum()), host_sums[..., 1]
        number = float(other.sum() if adds else other.max())
        return (value, number), self._slope(counts, effect, scale or 1.0)

    def _pieces(self, width: int) -> Iterator[tuple[int, int]]:
        """Yield first rows and lengths of pieces; lengths are of whole words."""
        total, most = padded(self.n_rows), padded(_MAX_SCORES // width)
        for row in range(0, total, most):
            yield row, min(most, total - row)

    def _tables(self, effect: Effect, n_free: int) -> _Tables:
        """Return what a pass adds up, on the device."""
        width = effect.table.shape[1]
        packed, base = np.zeros((1, width)), effect.base
        if self.packing is not None:
            packed = self.packing.expand(effect.table)
        if n_free < width:
            packed, base = packed[:, :-1] - packed[:, -1:], base[:-1] - base[-1]
        wide = effect.table if self.codes.wide is not None else np.zeros((1, width))
        tables = base, packed.T, wide, effect.multipliers
        return _Tables(*map(to_device, tables))

    def _zero_counts(self, effect: Effect, n_free: int) -> _SoftCounts:
        width = effect.table.shape[1]
        return _SoftCounts(
            zeros((n_free, self.n_cells), np.int64),
            zeros(effect.table.size if self.codes.wide is not None else 1, np.int64),
            None if self.numbers is None else self.numbers.sums(width),
        )

    def _gather(self, tables: _Tables, row: int, n_rows: int, scores: Any) -> None:
        """Write the scores of some rows: scores (C, r)."""
        width, n_cells = tables.packed.shape
        kernel, copies, shared = passes.gather_far, 1, 0
        if 8 * n_cells <= most_shared():
            kernel, copies = passes.gather, copies_for(8 * n_cells)
            shared = 8 * n_cells * copies
        threads = threads_for(shared)
        codes = self.flat_words, self.starts, tables.packed, np.uint32(copies)
        place = tables.base, row // 4, n_rows // 4, scores
        blocks = blocks_for(shared, threads, width)
        launch(kernel, blocks, shared, *codes, *place, threads=threads)
        if width < scores.shape[0]:
            fill(scores[width], 0.0)
        inside = min(n_rows, self.n_rows - row)
        if self.codes.wide is not None:
            given = self.codes.wide, self._wide_starts, tables.wide, row, inside
            launch(passes.gather_wide, blocks_for(0), 0, *given, scores)
        if self.numbers is not None:
            self.numbers.add(tables.multipliers, row, inside, scores)

    @cached_property
    def _wide_starts(self) -> Any:
        return to_device(self.codes.wide_starts)

    def _scatter(self, units: Any, row: int, n_rows: int, counts: _SoftCounts) -> None:
        """Add the gradients of some rows, in units (C, r), to the soft counts."""
        place = (row // 4, n_rows // 4, units, counts.packed)
        for begin, end, cells in self._column_parts():
            shared = 8 * (cells + passes.SPARE)
            codes = self.flat_words, self.starts, self._first_modes
            blocks = blocks_for(shared, MIN_THREADS, counts.packed.shape[0])
            given = (*codes, begin, end, cells, *place)
            launch(passes.scatter, blocks, shared, *given, threads=MIN_THREADS)
        inside = min(n_rows, self.n_rows - row)
        if self.codes.wide is not None:
            wide = self.codes.wide, self._wide_starts, row, inside, units
            launch(passes.scatter_wide, blocks_for(0), 0, *wide, counts.wide)
        if self.numbers is not None:
            self.numbers.collect(row, inside, units, counts.numbers)

    @cached_property
    def _first_modes(self) -> Any:
        """The most frequent codes, but for the first column: its sums are the total."""
        modes = self.modes.astype(np.uint32)
        modes[0] = 256
        return to_device(modes)

    def _column_parts(self) -> list[tuple[int, int, int]]:
        """Cut columns into parts whose soft counts fit shared memory."""
        ends, begin, parts = self.starts_of_end, 0, []
        most = most_shared() // 8 - passes.SPARE
        while begin < len(ends) - 1:
            end = int(np.searchsorted(ends, ends[begin] + most, "right")) - 1
            parts.append((begin, end, int(ends[end] - ends[begin])))
            begin = end
        return parts

    def _slope(self, counts: _SoftCounts, effect: Effect, scale: float) -> Effect:
        """Turn soft counts in units into the gradient of an effect."""
        width = effect.table.shape[1]
        units = counts.packed.copy_to_host().T.copy()
        if units.shape[1] < width:
            units = np.column_stack([units, -units.sum(axis=1)])
        total = units[: self.starts_of_end[1]].sum(axis=0)
        self.fill_modes(units, total, first=1)
        table = np.zeros_like(effect.table)
        if self.packing is not None:
            table += self.packing.collapse(units / scale)
        if self.codes.wide is not None:
            table += counts.wide.copy_to_host().reshape(width, -1).T / scale
        multipliers = np.zeros_like(effect.multipliers)
        if counts.numbers is not None:
            multipliers = counts.numbers.copy_to_host().sum(axis=0) / scale
        return Effect(total / scale, table, multipliers)
