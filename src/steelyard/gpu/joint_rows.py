"""JointRows: training rows in the memory of a GPU, their small codes joined."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Ints
from steelyard.fitting.rows import PackedRows
from steelyard.gpu.device_codes import DeviceCodes, taken
from steelyard.gpu.device_counts import DeviceNumbers, DeviceWeights
from steelyard.kernels.cuda.launching import to_device
from steelyard.proba.gaussian import GaussianTable
from steelyard.table.codes import CodeBlock, Codes
from steelyard.table.packing import Packing

# Bits of the soft counts of a row: one addition of 32 bits does for most, and 2**30
# rows do not overflow 64. Few rows have finer units, as fine as doubles at most.
_BITS, _FEW_ROWS = 32, 1 << 20
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
        bits = _BITS
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
        return np.append(self.packing.starts, len(self.packing.members)).astype(int)

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
