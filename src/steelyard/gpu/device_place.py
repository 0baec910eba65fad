"""DevicePlace: training rows that are counted and passed over on a GPU."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numba import cuda

from steelyard._common.arrays import Floats, Ints
from steelyard.exceptions import ParameterError
from steelyard.gpu.device_codes import (
    DeviceCodes,
    bytes_to_device,
    codes_to_device,
    padded,
    taken,
)
from steelyard.gpu.device_counts import DeviceWeights, count_on_device
from steelyard.gpu.device_rows import DeviceRows
from steelyard.kernels.cuda.launching import zeros
from steelyard.model.base import HERE, RowPlace
from steelyard.model.training import TrainingSet
from steelyard.proba.counts import Counts
from steelyard.table.codes import CodeBlock, Codes
from steelyard.table.packing import plan_packing

_MAX_CLASSES = 256
_MAX_ROWS = 1 << 30

# Bytes of a row besides its codes: joint codes at most as many again, its class, its
# weight, and scores of the current rows.
_BYTES_BESIDE = 20


class DevicePlace(RowPlace):
    """Rows in arrays of this process, of which the device has a copy.

    Codes are copied on first use, once for each training set in turn.
    """

    def __init__(self) -> None:
        self._copied: tuple[Any, Any, Any] | None = None

    def count(self, training: TrainingSet, weights: Floats | None) -> Counts:
        """Count the rows by weights."""
        given = DeviceWeights(weights)
        return count_on_device(*self.copied(training), given, training.n_classes)

    def passes(self, training: TrainingSet, missing: Any, gaussian: Any) -> Any:
        """Return the rows prepared for many passes."""
        codes, labels = self.copied(training)
        features = [int(j) for j in codes.features]
        packing = plan_packing(codes.schema, features, missing, codes.n_rows)
        if packing is None:
            words = zeros((1, padded(codes.n_rows)), np.uint8).view(np.uint32)
            modes = np.zeros(1, dtype=np.int32)
        else:
            words = codes.pack(packing)
            by_code = training.given_counts.by_code
            modes = packing.likely_codes(by_code.sum(axis=1))
        weights = DeviceWeights(training.weights)
        joint = packing, words, modes, training.n_classes, gaussian, training.n_jobs
        # Numbers of some rows are read in memory.
        host = training.codes if training.codes.n_numbers else None
        return DeviceRows(codes, labels, weights, *joint, host)

    def take(self, training: TrainingSet, rows: Ints) -> TrainingSet:
        """Return some rows; they are few, and stay here."""
        return replace(training.taken(rows), place=HERE)

    def copied(self, training: TrainingSet) -> tuple[DeviceCodes, Any]:
        """Return codes and classes on the device."""
        codes = training.codes
        if self._copied is None or self._copied[0] is not codes:
            self._copied = None  # so that its memory is free
            check_room(codes.n_rows, _bytes_of_row(codes))
            labels = bytes_to_device(np.asarray(training.labels))
            self._copied = codes, codes_to_device(codes), labels
        return self._copied[1], self._copied[2]


class ArrayPlace(DevicePlace):
    """Rows that only the device has."""

    is_here = False

    def __init__(self, codes: DeviceCodes, labels: Any) -> None:
        super().__init__()
        self._codes, self._labels = codes, labels

    def copied(self, training: TrainingSet) -> tuple[DeviceCodes, Any]:
        """Return codes and classes on the device."""
        return self._codes, self._labels

    def passes(self, training: TrainingSet, missing: Any, gaussian: Any) -> Any:
        """Return the rows prepared for many passes, with joint codes."""
        check_room(self._codes.n_rows, len(self._codes.features))
        return super().passes(training, missing, gaussian)

    def each(self, training: TrainingSet, function: Any, given: Any = None) -> Any:
        """Return a function of the rows, in arrays of this process."""
        return super().each(self.here(training), function, given)

    def sum(self, training: TrainingSet, function: Any, is_exact: bool = False) -> Any:
        """Return a function of the rows; only counting is done on the device."""
        is_count = function is TrainingSet.counted
        return function(training if is_count else self.here(training))

    def map(self, training: TrainingSet, function: Any) -> TrainingSet:
        """Return what a function makes of the rows, in arrays of this process."""
        return super().map(self.here(training), function)

    def take(self, training: TrainingSet, rows: Ints) -> TrainingSet:
        """Return some rows in arrays of this process."""
        codes, weights = self._codes, training.sample_weight
        look_up = np.zeros((len(codes.features), 256), dtype=np.int64)
        for k, stored in enumerate(codes.meanings):
            look_up[k, : len(stored)] = stored
        block = CodeBlock(taken(codes.narrow, rows), codes.features, look_up)
        labels = self._labels.view(np.uint8)
        labels = taken(labels.reshape(1, labels.size), rows)[:, 0]
        return replace(
            training,
            codes=Codes(codes.schema, len(rows), (block,)),
            labels=labels.astype(np.uint32),
            sample_weight=None if weights is None else weights[rows],
            place=HERE,
        )

    def here(self, training: TrainingSet) -> TrainingSet:
        """Return all rows in arrays of this process, passed over on the device."""
        rows = self.take(training, np.arange(self._codes.n_rows))
        return replace(rows, place=DevicePlace())


def refusal(training: TrainingSet) -> str:
    """Return what a GPU does not support for these rows; '' if all is supported."""
    if training.n_classes > _MAX_CLASSES:
        return f"there are {training.n_classes} classes, more than {_MAX_CLASSES}."
    if training.n_rows >= _MAX_ROWS:
        return f"the table has {training.n_rows} rows, more than {_MAX_ROWS}."
    return _lacks_room(training.n_rows, _bytes_of_row(training.codes))


def _bytes_of_row(codes: Codes) -> int:
    """Bytes that a row of codes and numbers takes on the device."""
    blocks = [b.values for b in codes.blocks]
    n_bytes = sum(values.dtype.itemsize * values.shape[1] for values in blocks)
    joint = sum(v.shape[1] for v in blocks if v.dtype.itemsize == 1)
    return n_bytes + joint + 8 * codes.n_numbers


def check_room(n_rows: int, bytes_of_row: int) -> None:
    """Refuse rows that do not fit the memory of the device."""
    lacks = _lacks_room(n_rows, bytes_of_row)
    if lacks:
        raise ParameterError(f"The GPU has too little memory: {lacks}")


def _lacks_room(n_rows: int, bytes_of_row: int) -> str:
    """Return what rows need beyond the memory of the device; '' if they fit."""
    needed = n_rows * (bytes_of_row + _BYTES_BESIDE)
    free = float(cuda.current_context().get_memory_info()[0])
    if needed <= free:
        return ""
    return (
        f"the table needs about {needed / 1e9:.3g} GB there, of which "
        f"{free / 1e9:.3g} GB are free. Take fewer rows or columns, or the CPU."
    )
