"""DeviceRows: training rows in the memory of a GPU, as passes read them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from steelyard._common.arrays import Ints
from steelyard.exceptions import ParameterError
from steelyard.fitting.block import effect_of_odds
from steelyard.gpu.device_codes import padded
from steelyard.gpu.device_counts import JointRows
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
from steelyard.weighting.base import Effect

# Scores that are kept at a time, 256 MB of them.
_MAX_SCORES = 1 << 25

# Copies of a table that is gathered, in shared memory.
_COPIES = 8


class _Scores(NamedTuple):
    """Memory of the scores of some rows, then of their gradients in units: (C, r)."""

    values: Any
    units: Any
    flat: Any
    flat_units: Any
    last: Any
    """Scores of the last class."""

    @classmethod
    def of(cls, width: int, n_rows: int) -> _Scores:
        values = empty((width, n_rows), np.float64)
        units, size = values.view(np.int64), values.size
        return cls(
            values, units, values.reshape(size), units.reshape(size), values[width - 1]
        )


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


class DeviceRows(JointRows):
    """Training rows on a device, as passes read them."""

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
        made = {n_rows: _Scores.of(width, n_rows) for n_rows in sizes}
        for sums, (row, n_rows) in zip(all_sums, pieces, strict=True):
            scores = made[n_rows]
            self._gather(tables, row, n_rows, scores)
            rows = (self.labels, self.weights.values, row, self.n_rows)
            given = (scores.flat, n_rows, *rows, *form, scale, scores.flat_units, sums)
            launch(losses, blocks, shared, *given)
            if scale:
                self._scatter(scores, row, n_rows, counts)
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

    def _gather(self, tables: _Tables, row: int, n_rows: int, scores: _Scores) -> None:
        """Put the scores of some rows."""
        width, n_cells = tables.packed.shape
        kernel, copies, shared = passes.gather_far, 1, 0
        if 8 * n_cells <= most_shared():
            kernel, copies = passes.gather, copies_for(8 * n_cells, _COPIES)
            shared = 8 * n_cells * copies
        threads = threads_for(shared)
        codes = self.flat_words, self.starts, tables.packed, np.uint32(copies)
        place = tables.base, row // 4, n_rows // 4, scores.values
        blocks = blocks_for(shared, threads, width)
        launch(kernel, blocks, shared, *codes, *place, threads=threads)
        if width < scores.values.shape[0]:
            fill(scores.last, 0.0)
        inside = min(n_rows, self.n_rows - row)
        if self.codes.wide is not None:
            given = self.codes.wide, self._wide_starts, tables.wide, row, inside
            launch(passes.gather_wide, blocks_for(0), 0, *given, scores.values)
        if self.numbers is not None:
            self.numbers.add(tables.multipliers, row, inside, scores.values)

    @cached_property
    def _wide_starts(self) -> Any:
        return to_device(self.codes.wide_starts)

    def _scatter(
        self, scores: _Scores, row: int, n_rows: int, counts: _SoftCounts
    ) -> None:
        """Add the gradients of some rows, in units, to the soft counts."""
        place = (row // 4, n_rows // 4, scores.units, counts.packed)
        for begin, end, cells in self._column_parts():
            shared = 8 * (cells + passes.SPARE)
            codes = self.flat_words, self.starts, self._first_modes
            blocks = blocks_for(shared, MIN_THREADS, counts.packed.shape[0])
            given = (*codes, begin, end, cells, *place)
            launch(passes.scatter, blocks, shared, *given, threads=MIN_THREADS)
        inside = min(n_rows, self.n_rows - row)
        if self.codes.wide is not None:
            wide = self.codes.wide, self._wide_starts, row, inside, scores.units
            launch(passes.scatter_wide, blocks_for(0), 0, *wide, counts.wide)
        if self.numbers is not None:
            self.numbers.collect(row, inside, scores.units, counts.numbers)

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
