"""Counting rows in the memory of a GPU, and densities of their numbers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from steelyard._common.arrays import Floats, Ints
from steelyard.gpu.device_codes import ColumnPairs, DeviceCodes, padded
from steelyard.kernels.cuda import gathering, scattering
from steelyard.kernels.cuda.launching import (
    MIN_THREADS,
    blocks_for,
    launch,
    most_shared,
    to_device,
    zeros,
)
from steelyard.proba.counts import Counts, Moments, refuse_large
from steelyard.proba.gaussian import GaussianTable
from steelyard.table.schema import TableSchema

# Sums of weights are whole numbers of units so small that their total has 62 bits.
_BITS = 62

# Cells of a joint table of two columns.
_MAX_JOINT = 2048


class DeviceWeights:
    """Weights of rows on a device, and the units in which they are added up."""

    def __init__(self, weights: Floats | None) -> None:
        self.host = weights
        self.values = to_device(np.zeros(0) if weights is None else weights)
        self.largest = 1.0 if weights is None else float(weights.max(initial=0.0))
        self.cell = 4 if weights is None else 8
        """Bytes of a sum of weights in shared memory."""

    def scale(self) -> float:
        """Units of sums over all rows: whole weights stay whole numbers."""
        if self.host is None:
            return 1.0
        total = max(float(self.host.sum()), 1e-300)
        return float(2.0 ** (_BITS - int(np.ceil(np.log2(total))) - 1))


def count_on_device(
    codes: DeviceCodes, labels: Any, weights: DeviceWeights, n_classes: int
) -> Counts:
    """Count an encoded table on the device; whole weights as exactly as on the CPU.

    ``labels`` are classes, four rows to a word.
    """
    schema, scale = codes.schema, weights.scale()
    rows = _Labelled(codes, labels, weights, n_classes)
    by_code = np.zeros((schema.n_codes, n_classes))
    by_class = np.zeros(n_classes)
    if codes.narrow is not None:
        fits = codes.sizes * n_classes * weights.cell <= most_shared()
        counts_of_columns = rows.joint() if fits.all() else rows.single()
        for j, stored, cells in zip(
            codes.features.tolist(), codes.meanings, counts_of_columns, strict=True
        ):
            by_class = cells.sum(axis=1) / scale
            at = schema.offsets[j] + stored
            for c in range(n_classes):
                by_code[:, c] += np.bincount(at, cells[c] / scale, len(by_code))
    if codes.wide is not None:
        wide = rows.far(codes.wide, codes.wide_starts, schema.n_codes) / scale
        first = int(codes.wide_starts[0])
        last = int(schema.offsets[codes.wide_features[0] + 1])
        by_class = wide[:, first:last].sum(axis=1)
        by_code += wide.T
    if codes.narrow is None and codes.wide is None:
        by_class = rows.class_counts() / scale
    moments = Moments.zeros(0, n_classes)
    if codes.numbers is not None:
        given = labels, weights.values, codes.n_rows
        moments = moments_on_device(codes.numbers, *given, n_classes)
        refuse_large(schema, moments)
    return Counts(schema, by_class, by_code, moments)


class _Labelled(NamedTuple):
    """Rows on a device to be counted: codes, classes four rows to a word, weights."""

    codes: DeviceCodes
    labels: Any
    weights: DeviceWeights
    n_classes: int

    def class_counts(self) -> Ints:
        """Count the classes, as a column whose codes are all the same."""
        n_rows = self.codes.n_rows
        zero = zeros((1, padded(n_rows)), np.uint8)
        column = _bytes_only(zero, n_rows, np.zeros(1, dtype=np.int64))
        return self._replace(codes=column).joint()[0][:, 0]

    def joint(self) -> list[Ints]:
        """Count each narrow column, (K, size), in shared memory, two by two."""
        codes, labels, weights, n_classes = self
        most = most_shared() // weights.cell
        pairs = ColumnPairs.of(codes.sizes, n_classes, min(_MAX_JOINT, most))
        parts = pairs.parts(most)
        shared = weights.cell * int(np.diff(pairs.places[parts]).max())
        counts = zeros(int(pairs.places[-1]), np.int64)
        n_parts = len(parts) - 1
        blocks = max(1, blocks_for(shared) // n_parts), n_parts
        given = (codes.words, labels, codes.n_rows, *pairs.plan(labels.size))
        given = (*given, to_device(parts))
        if weights.host is None:
            launch(scattering.count, blocks, shared, *given, counts)
        else:
            how = weights.values, weights.scale()
            launch(scattering.count_weights, blocks, shared, *given, *how, counts)
        return pairs.by_column(counts.copy_to_host(), n_classes)

    def single(self) -> list[Ints]:
        """Count each narrow column, if many classes do not fit shared memory."""
        ends = np.cumsum([0, *self.codes.sizes])
        cells = self.far(self.codes.narrow, ends[:-1], int(ends[-1]))
        return [cells[:, lo:hi] for lo, hi in pairwise(ends)]

    def far(self, columns: Any, starts: Ints, n_codes: int) -> Ints:
        """Count columns in the device's memory, (K, V)."""
        counts = zeros((self.n_classes, n_codes), np.int64)
        weighting = self.weights.values, self.codes.n_rows, self.weights.scale()
        rows = (columns, self.labels, *weighting, to_device(starts))
        launch(scattering.count_wide, blocks_for(0), 0, *rows, counts)
        return np.asarray(counts.copy_to_host())


def _bytes_only(narrow: Any, n_rows: int, values: Ints) -> DeviceCodes:
    """Return columns of bytes that are codes themselves, of some values."""
    features, no_wide = np.arange(narrow.shape[0]), np.empty(0, dtype=np.int64)
    meanings = (values,) * len(features)
    codes = TableSchema(()), n_rows, narrow, features, meanings
    return DeviceCodes(*codes, None, no_wide)


def histograms(narrow: Any, n_rows: int) -> list[Ints]:
    """Count each byte of columns on the device, shape (256,) for each."""
    codes = _bytes_only(narrow, n_rows, np.arange(256))
    labels = zeros(codes.words.size // narrow.shape[0], np.uint32)
    counts_of_columns = _Labelled(codes, labels, DeviceWeights(None), 1).joint()
    return [cells[0] for cells in counts_of_columns]


def moments_on_device(
    values: Any, labels: Any, weights: Any, n_rows: int, n_classes: int
) -> Moments:
    """Moments of numbers on the device, (g, n and more), by class."""
    shared, grid = _grid(3, values.shape[0], n_classes)
    by_block = zeros((grid[0], 3, *grid[1:]), np.float64)
    rows = values, labels, weights, n_rows, by_block
    launch(gathering.moments, grid, shared, *rows, threads=MIN_THREADS)
    blocks = by_block.copy_to_host()
    return sum((Moments(*block) for block in blocks), Moments.zeros(*grid[1:]))


@dataclass(frozen=True)
class DeviceNumbers:
    """Numbers of rows on a device, and their log-densities in classes."""

    values: Any
    """Numbers by column, (g, n and more) on the device."""

    gaussian: GaussianTable

    def add(self, factors: Any, row: int, n_rows: int, scores: Any) -> None:
        """Add log-densities of some rows, times factors (g, C), to scores (C, r)."""
        given = self.values, *self._forms, factors, row, n_rows, scores
        launch(gathering.add_densities, blocks_for(0), 0, *given)

    def sums(self, width: int) -> Any:
        """Return zeros that ``collect`` adds to."""
        return zeros(self._grid(width)[1], np.float64)

    def collect(self, row: int, n_rows: int, units: Any, sums: Any) -> None:
        """Add up gradients of some rows, (C, r) in units, times their densities."""
        shared, grid = self._grid(units.shape[0])
        given = self.values, *self._forms, row, n_rows, units, sums
        launch(gathering.collect_densities, grid, shared, *given, threads=MIN_THREADS)

    def _grid(self, width: int) -> tuple[int, tuple[int, int, int]]:
        return _grid(1, self.values.shape[0], width)

    @cached_property
    def _forms(self) -> tuple[Any, Any]:
        """Parameters of the attributes for kernels."""
        mean, scale, constant, half_width, _, depth, limit = self.gaussian.forms
        return (
            to_device(np.stack([mean, scale, constant])),
            to_device(np.stack([half_width, depth, limit])),
        )


def _grid(n_sums: int, n_numbers: int, width: int) -> tuple[int, tuple[int, int, int]]:
    """Shared memory and blocks for sums of each number and class."""
    shared = 8 * n_sums * MIN_THREADS
    n_blocks = blocks_for(shared, MIN_THREADS) // (n_numbers * width)
    return shared, (max(2, n_blocks), n_numbers, width)
