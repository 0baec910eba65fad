"""Where arrays as long as the table are put: in memory, or in files.

A training set that does not fit in memory has codes, labels and weights in memory maps.
Whatever a method keeps of its rows beyond these comes from the same workspace: joint
codes, rows of two classes, weights that it learns.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from steelyard._common.files import WorkFolder
from steelyard._common.threads import pieces

# Smaller arrays stay in memory: a file for each costs more than it saves.
_SMALL = 1 << 20


class Workspace:
    """Arrays in memory."""

    is_memory: bool = True
    """Whether arrays of any length are in memory."""

    def zeros(
        self, shape: int | tuple[int, ...], dtype: DTypeLike, order: Any = "C"
    ) -> NDArray[Any]:
        """Return a new array of zeros."""
        return np.zeros(shape, dtype, order)

    def full(self, n_rows: int, value: float) -> NDArray[np.float64]:
        """Return a number for each row, all the same."""
        out = self.zeros(n_rows, np.float64)
        out[:] = value
        return out

    def copy(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return a copy of an array."""
        out = self.zeros(values.shape, values.dtype)
        out[:] = values
        return out

    def take(self, values: NDArray[Any], rows: NDArray[Any]) -> NDArray[Any]:
        """Return some rows of an array, by position or by a mask."""
        return values[rows]

    def rows_where(
        self, n_rows: int, test: Callable[[slice], NDArray[np.bool_]]
    ) -> NDArray[np.int64]:
        """Return the positions of the rows for which a test holds."""
        return np.flatnonzero(test(slice(0, n_rows)))


class DiskWorkspace(Workspace):
    """Arrays in memory maps of a work folder.

    The room of a file is reserved when it is made: a full disk is an error then, and
    not a crash when a page is written. Where the system allows it a file is unlinked at
    once, so that its room is free again when the last array that reads it is gone,
    whatever ends the process; elsewhere files go with the folder.

    Parameters
    ----------
    folder : WorkFolder
        Where files are made; kept as long as the workspace.
    small : int, default=1 MiB
        Arrays of at most so many bytes stay in memory.
    """

    is_memory = False

    def __init__(self, folder: WorkFolder, small: int = _SMALL) -> None:
        self.folder = folder
        self._small = small

    def zeros(
        self, shape: int | tuple[int, ...], dtype: DTypeLike, order: Any = "C"
    ) -> NDArray[Any]:
        """Return a new array of zeros."""
        shape = (shape,) if isinstance(shape, int) else shape
        n_bytes = prod(shape) * np.dtype(dtype).itemsize
        if n_bytes <= self._small or not n_bytes:
            return np.zeros(shape, dtype, order)
        with self.folder.writing():
            descriptor, path = tempfile.mkstemp(dir=self.folder.path)
            try:
                with os.fdopen(descriptor, "r+b") as file:
                    _reserve(file.fileno(), n_bytes)
                    mapped = np.memmap(file, dtype, "r+", shape=shape, order=order)
            finally:
                with suppress(PermissionError):  # Windows, where it is in use
                    os.unlink(path)
        # A plain array: the subclass would come back from every operation.
        return mapped.view(np.ndarray)

    def take(self, values: NDArray[Any], rows: NDArray[Any]) -> NDArray[Any]:
        """Return some rows of an array, by position or by a mask; columns by column."""
        if rows.dtype == bool:
            rows = self.rows_where(len(rows), rows.__getitem__)
        out = self.zeros((len(rows), *values.shape[1:]), values.dtype, "F")
        columns = [(values, out)]
        if values.ndim == 2:
            columns = [(values[:, k], out[:, k]) for k in range(values.shape[1])]
        for column, target in columns:
            for part in pieces(slice(0, len(rows))):
                target[part] = column[rows[part]]
        return out

    def rows_where(
        self, n_rows: int, test: Callable[[slice], NDArray[np.bool_]]
    ) -> NDArray[np.int64]:
        """Return the positions of the rows for which a test holds."""
        parts = list(pieces(slice(0, n_rows)))
        ends = np.cumsum([0, *(np.count_nonzero(test(rows)) for rows in parts)])
        out = self.zeros(int(ends[-1]), np.int64)
        for k, rows in enumerate(parts):
            out[ends[k] : ends[k + 1]] = np.flatnonzero(test(rows)) + rows.start
        return out


MEMORY = Workspace()
"""The workspace of tables that are in memory."""


def _reserve(descriptor: int, n_bytes: int) -> None:
    """Give a file its length on the disk itself, not as a hole."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, n_bytes)
        return
    nothing = bytes(1 << 20)
    for start in range(0, n_bytes, len(nothing)):
        os.write(descriptor, nothing[: n_bytes - start])
