"""Counting rows in the memory of a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.kernels.cuda import counting
from steelyard.kernels.cuda.launching import (
    MANY_THREADS,
    blocks_for,
    launch,
    most_shared,
    to_device,
    zeros,
)
from steelyard.proba.counts import Counts, Moments
from steelyard.table.on_device import DeviceCodes, count_groups
from steelyard.table.schema import TableSchema

# Sums of weights are whole numbers of units so small that their total has 62 bits.
_BITS = 62


class DeviceWeights:
    """Weights of rows on a device, and the units in which they are added up."""

    def __init__(self, weights: NDArray[np.float64] | None) -> None:
        self.host = weights
        self.values = to_device(np.zeros(0) if weights is None else weights)
        self.largest = 1.0 if weights is None else float(weights.max(initial=0.0))

    def scale(self, n_rows: int) -> float:
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
    schema, scale = codes.schema, weights.scale(codes.n_rows)
    by_code = np.zeros((schema.n_codes, n_classes))
    by_class = np.zeros(n_classes)
    if codes.narrow is not None:
        cell = 4 if weights.host is None else 8
        fits = codes.sizes * n_classes * cell <= most_shared()
        found = (_joint if fits.all() else _single)(codes, labels, weights, n_classes)
        for j, stored, cells in zip(
            codes.features.tolist(), codes.meanings, found, strict=True
        ):
            cells = cells / scale
            by_class = cells.sum(axis=1)
            rows = schema.offsets[j] + stored
            for c in range(n_classes):
                by_code[:, c] += np.bincount(rows, cells[c], len(by_code))
    if codes.wide is not None:
        cells = _far(codes.wide, codes.wide_starts, schema.n_codes, codes, labels,
                     weights, n_classes) / scale  # fmt: skip
        first = int(codes.wide_starts[0])
        last = int(schema.offsets[codes.wide_features[0] + 1])
        by_class = cells[:, first:last].sum(axis=1)
        by_code += cells.T
    return Counts(schema, by_class, by_code, Moments.zeros(0, n_classes))


def histograms(narrow: Any, n_rows: int) -> list[NDArray[np.int64]]:
    """Count each byte of columns on the device, shape (256,) for each."""
    none = np.empty(0, dtype=np.int64)
    every = np.arange(256)
    meanings = (every,) * narrow.shape[0]
    features = np.arange(narrow.shape[0])
    codes = DeviceCodes(TableSchema(()), n_rows, narrow, features, meanings, None, none)
    labels = zeros(codes.words.size // narrow.shape[0], np.uint32)
    found = _joint(codes, labels, DeviceWeights(None), 1)
    return [cells[0] for cells in found]


def _joint(
    codes: DeviceCodes, labels: Any, weights: DeviceWeights, n_classes: int
) -> list[NDArray[np.int64]]:
    """Counts of each narrow column, (K, size), in shared memory, some together."""
    cell = 4 if weights.host is None else 8
    groups = count_groups(codes.sizes, n_classes, cell)
    parts = groups.parts(most_shared() // cell)
    most = int(np.diff(groups.places[parts]).max())
    counts = zeros(int(groups.places[-1]), np.int64)
    plan = [
        to_device(part) for part in (groups.columns, groups.sizes, groups.places, parts)
    ]
    n, n_parts = codes.n_rows, len(parts) - 1
    blocks = max(1, blocks_for(most * cell, MANY_THREADS) // n_parts), n_parts
    if weights.host is None:
        kernel, wide = counting.count, (codes.words, labels)
        rows: tuple[Any, ...] = (*(words.view(np.uint64) for words in wide), n)
    else:
        scale = weights.scale(n)
        kernel = counting.count_weights
        rows = (codes.words, labels, weights.values, n, scale)
    launch(kernel, blocks, most * cell, *rows, *plan, counts, threads=MANY_THREADS)
    return list(groups.by_column(counts.copy_to_host(), n_classes))


def _single(
    codes: DeviceCodes, labels: Any, weights: DeviceWeights, n_classes: int
) -> list[NDArray[np.int64]]:
    """Counts of each narrow column, where many classes do not fit shared memory."""
    ends = np.cumsum([0, *codes.sizes])
    cells = _far(
        codes.narrow, ends[:-1], int(ends[-1]), codes, labels, weights, n_classes
    )
    return [cells[:, lo:hi] for lo, hi in zip(ends[:-1], ends[1:], strict=True)]


def _far(
    columns: Any,
    starts: NDArray[np.int64],
    n_codes: int,
    codes: DeviceCodes,
    labels: Any,
    weights: DeviceWeights,
    n_classes: int,
) -> NDArray[np.int64]:
    """Counts of columns in the device's memory, (K, V)."""
    counts = zeros((n_classes, n_codes), np.int64)
    rows = (columns, labels, weights.values, codes.n_rows, weights.scale(codes.n_rows))
    launch(counting.count_wide, blocks_for(0), 0, *rows, to_device(starts), counts)
    return np.asarray(counts.copy_to_host())
