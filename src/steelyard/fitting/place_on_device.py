"""DevicePlace: training rows that are counted and passed over on a GPU."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.checks import warn_user
from steelyard._common.devices import use_device
from steelyard.exceptions import ParameterError
from steelyard.model.place import HERE, RowPlace
from steelyard.model.training import TrainingSet
from steelyard.proba.counts import Counts
from steelyard.table.codes import Codes

if TYPE_CHECKING:
    from steelyard.table.on_device import DeviceCodes

_MOST_CLASSES = 256
_MOST_ROWS = 1 << 30

# Bytes of a row besides its codes: joint codes at most as many again, its class, its
# weight, and scores of the rows that are at hand.
_BYTES_BESIDE = 20


class DevicePlace(RowPlace):
    """Rows in arrays of this process, of which the device has a copy.

    Codes are copied when they are first asked for, once for each training set in turn.
    """

    def __init__(self) -> None:
        self._copied: tuple[Any, Any, Any] | None = None

    def count(
        self, training: TrainingSet, weights: NDArray[np.float64] | None
    ) -> Counts:
        """Count the rows by weights."""
        from steelyard.proba.counts_on_device import DeviceWeights, count_on_device

        given = DeviceWeights(weights)
        return count_on_device(*self.copied(training), given, training.n_classes)

    def passes(self, training: TrainingSet, missing: Any, gaussian: Any) -> Any:
        """Return the rows prepared for many passes."""
        from steelyard.fitting.rows_on_device import rows_on_device
        from steelyard.proba.counts_on_device import DeviceWeights

        codes, labels = self.copied(training)
        weights = DeviceWeights(training.weights)
        counts = training.given_counts
        host = training.codes if training.codes.n_numbers else None
        given = counts, missing, gaussian, training.n_jobs, host
        return rows_on_device(codes, labels, weights, *given)

    def take(self, training: TrainingSet, rows: NDArray[np.int64]) -> TrainingSet:
        """Return some rows; they are few, and stay here."""
        return replace(training.taken(rows), place=HERE)

    def copied(self, training: TrainingSet) -> tuple[DeviceCodes, Any]:
        """Return codes and classes on the device."""
        from steelyard.table.on_device import bytes_to_device, codes_to_device

        codes = training.codes
        if self._copied is None or self._copied[0] is not codes:
            self._copied = None  # so that its memory is free
            check_room(codes.n_rows, _bytes_of_row(codes))
            labels = bytes_to_device(np.asarray(training.labels))
            self._copied = codes, codes_to_device(codes), labels
        return self._copied[1], self._copied[2]


def on_device(training: TrainingSet, device: str) -> TrainingSet:
    """Return training rows that are worked on where a setting says."""
    is_elsewhere = not training.place.is_here or not training.n_rows
    if is_elsewhere or not use_device(device):
        return training
    lacks = _refusal(training)
    if lacks and device != "auto":
        raise ParameterError(f"device={device!r}: {lacks} Use device='cpu'.")
    if lacks:
        warn_user(f"device='auto' uses the CPU: {lacks}", UserWarning)
        return training
    return replace(training, place=DevicePlace())


def _refusal(training: TrainingSet) -> str:
    """Say what a GPU does not do for these rows; '' if it does all."""
    if training.n_classes > _MOST_CLASSES:
        return f"there are {training.n_classes} classes, more than {_MOST_CLASSES}."
    if training.n_rows >= _MOST_ROWS:
        return f"the table has {training.n_rows} rows, more than {_MOST_ROWS}."
    return _lacks_room(training.n_rows, _bytes_of_row(training.codes))


def _bytes_of_row(codes: Codes) -> int:
    """Bytes that a row of codes and numbers takes on the device."""
    from steelyard.table.on_device import number_type

    blocks = [b.values for b in codes.blocks]
    own = sum(values.dtype.itemsize * values.shape[1] for values in blocks)
    joint = sum(v.shape[1] for v in blocks if v.dtype.itemsize == 1)
    return own + joint + codes.n_numbers * number_type(codes).itemsize


def check_room(n_rows: int, bytes_of_row: int) -> None:
    """Refuse rows that do not fit the memory of the device."""
    lacks = _lacks_room(n_rows, bytes_of_row)
    if lacks:
        raise ParameterError(f"The GPU has too little memory: {lacks}")


def _lacks_room(n_rows: int, bytes_of_row: int) -> str:
    """Say what rows need that do not fit the memory of the device; '' if they do."""
    from numba import cuda

    needed = n_rows * (bytes_of_row + _BYTES_BESIDE)
    free = float(cuda.current_context().get_memory_info()[0])
    if needed <= free:
        return ""
    return (
        f"the table needs about {needed / 1e9:.3g} GB there, of which "
        f"{free / 1e9:.3g} GB are free. Take fewer rows or columns, or the CPU."
    )
