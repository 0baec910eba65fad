"""Counting rows in the memory of a GPU; densities of numbers; small codes joined."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, Ints
from steelyard.fitting.rows import PackedRows
from steelyard.gpu.device_codes import ColumnPairs, DeviceCodes, padded, taken
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
from steelyard.table.codes import CodeBlock, Codes
from steelyard.table.packing import Packing
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
        """Count each narrow column, where many classes do not fit shared memory."""
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


def _bytes_only(narrow: Any, n_rows: int, every: Ints) -> DeviceCodes:
    """Return columns of bytes that mean themselves, of which these may occur."""
    features, none = np.arange(narrow.shape[0]), np.empty(0, dtype=np.int64)
    meanings = (every,) * len(features)
    return DeviceCodes(TableSchema(()), n_rows, narrow, features, meanings, None, none)


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
    parts = zeros((grid[0], 3, *grid[1:]), np.float64)
    rows = values, labels, weights, n_rows, parts
    launch(gathering.moments, grid, shared, *rows, threads=MIN_THREADS)
    total = Moments.zeros(*grid[1:])
    for part in parts.copy_to_host():
        total += Moments(*part)
    return total


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


# Bits of the soft counts of a row: one addition of 32 bits does for most, and 2**30
# rows do not overflow 64. Few rows have finer units, as fine as doubles at most.
_BITS_OF_ROW, _FEW_ROWS = 32, 1 << 20
_BITS_OF_SUMS, _BITS_OF_DOUBLES = 61, 52


@dataclass(frozen=True)
class JointRows:
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
