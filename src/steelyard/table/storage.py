"""Encoded rows in files: what a fit reads again, for tables larger than memory.

A training set that does not fit in memory has codes, labels and weights in memory maps.
Whatever a method keeps of its rows beyond these comes from the same workspace: joint
codes, rows of two classes, weights that it learns.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from steelyard._common.arrays import Floats, Ints
from steelyard._common.files import WorkFolder
from steelyard._common.threads import pieces
from steelyard.exceptions import TableError
from steelyard.table.codes import CodeBlock, Codes, Workspace, code_dtype
from steelyard.table.schema import TableSchema

# Smaller arrays stay in memory: a file for each costs more than it saves.
_SMALL = 1 << 20


class DiskWorkspace(Workspace):
    """Arrays in memory maps of a work folder; those of up to ``small`` bytes in memory.

    The room of a file is reserved when it is made: a full disk is an error then, and
    not a crash when a page is written. If the system allows it a file is unlinked at
    once, so that its room is free again when the last array that reads it is gone,
    whatever ends the process; elsewhere files go with the folder.
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
            for piece in pieces(slice(0, len(rows))):
                target[piece] = column[rows[piece]]
        return out

    def rows_where(
        self, n_rows: int, test: Callable[[slice], NDArray[np.bool_]]
    ) -> Ints:
        """Return the positions of the rows for which a test is true."""
        blocks = list(pieces(slice(0, n_rows)))
        ends = np.cumsum([0, *(np.count_nonzero(test(rows)) for rows in blocks)])
        out = self.zeros(int(ends[-1]), np.int64)
        for k, rows in enumerate(blocks):
            out[ends[k] : ends[k + 1]] = np.flatnonzero(test(rows)) + rows.start
        return out


def _reserve(descriptor: int, n_bytes: int) -> None:
    """Give a file its length on the disk itself, not as a hole."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, n_bytes)
        return
    nothing = bytes(1 << 20)
    for start in range(0, n_bytes, len(nothing)):
        os.write(descriptor, nothing[: n_bytes - start])


@dataclass(frozen=True)
class StoredRows:
    """Encoded rows, their classes and weights, as arrays of a workspace."""

    codes: Codes
    labels: NDArray[Any]
    """Positions among the classes, in the narrowest unsigned type."""

    weights: Floats | None
    """Weights that the user gave, None if all are one."""

    is_kept: NDArray[np.bool_] | None
    """Which of the rows appended these are, None for all: rows of weight 0 are not."""


class Store:
    """Takes encoded rows chunk by chunk, and gives them back as one set of codes.

    Codes of a byte are written by column into one array (columns, n), wider codes and
    numbers one array for each column. All room is taken at once, when the store is
    made: a full disk is known before anything is read.

    >>> import numpy as np
    >>> from steelyard import TableEncoder
    >>> from steelyard.table.frames import as_table
    >>> from steelyard.table.storage import Store
    >>> from steelyard.table.codes import MEMORY
    >>> X = np.array([["a", "x"], ["b", "y"], ["a", "y"]], dtype=object)
    >>> encoder = TableEncoder().fit(X)
    >>> store = Store(MEMORY, encoder.schema_, n_rows=3, n_classes=2)
    >>> store.append(encoder.encode(as_table(X[:2])), np.array([0, 1]))
    >>> store.append(encoder.encode(as_table(X[2:])), np.array([0]))
    >>> store.finish().codes.to_array()
    array([[1, 1],
           [2, 2],
           [1, 2]], dtype=uint8)
    """

    def __init__(
        self,
        workspace: Workspace,
        schema: TableSchema,
        n_rows: int,
        n_classes: int,
        *,
        has_weights: bool = False,
    ) -> None:
        self.schema, self.n_rows = schema, n_rows
        self._workspace = workspace
        self._narrow, self._wide = _by_width(schema)
        self._bytes = workspace.zeros((len(self._narrow), n_rows), np.uint8)
        self._columns = {j: workspace.zeros(n_rows, t) for j, t in self._wide.items()}
        n_numbers = len(schema.gaussian)
        self._numbers = [workspace.zeros(n_rows, np.float64) for _ in range(n_numbers)]
        self._labels = workspace.zeros(n_rows, code_dtype(n_classes))
        self._weights = workspace.zeros(n_rows, np.float64) if has_weights else None
        self._is_kept: NDArray[np.bool_] | None = None
        self._n_read = self._n_kept = 0

    @staticmethod
    def bytes_per_row(
        schema: TableSchema, n_classes: int, has_weights: bool = False
    ) -> int:
        """Return the bytes of a row, joint codes of a fit of weights included."""
        narrow, wide = _by_width(schema)
        size = sum(t.itemsize for t in [*wide.values(), code_dtype(n_classes)])
        return size + 8 * (len(schema.gaussian) + has_weights) + 2 * len(narrow)

    def append(
        self,
        codes: Codes,
        labels: NDArray[Any],
        weights: Floats | None = None,
    ) -> None:
        """Write one more chunk of rows; those of weight zero are left out."""
        if codes.schema is not self.schema and codes.schema != self.schema:
            raise ValueError("The codes were made with another schema than the store.")
        start, self._n_read = self._n_read, self._n_read + codes.n_rows
        if self._n_read > self.n_rows:
            raise self._changed(f"at least {self._n_read:,}")
        if weights is not None and not weights.all():
            kept = weights != 0
            self._leave_out(start, kept)
            codes, labels, weights = codes.take(kept), labels[kept], weights[kept]
        elif self._is_kept is not None:
            self._is_kept[start : self._n_read] = True
        rows = slice(self._n_kept, self._n_kept + codes.n_rows)
        self._n_kept = rows.stop
        self._write(codes, rows)
        self._labels[rows] = labels
        if self._weights is not None:
            self._weights[rows] = 1.0 if weights is None else weights

    def leave_out(self, n_rows: int) -> None:
        """Skip rows of weight zero, without their codes."""
        start, self._n_read = self._n_read, self._n_read + n_rows
        if n_rows:
            self._leave_out(start, np.zeros(n_rows, dtype=bool))

    def finish(self) -> StoredRows:
        """Return all rows that were appended."""
        if self._n_read != self.n_rows:
            raise self._changed(f"{self._n_read:,}")
        rows = slice(0, self._n_kept)
        blocks = [
            CodeBlock(column[rows, None], np.array([j], dtype=np.int64))
            for j, column in self._columns.items()
        ]
        if self._narrow:
            features = np.array(self._narrow, dtype=np.int64)
            blocks.insert(0, CodeBlock(self._bytes[:, rows].T, features))
        codes = Codes(
            self.schema,
            self._n_kept,
            tuple(blocks),
            tuple(column[rows] for column in self._numbers),
            self._workspace,
        )
        weights = None if self._weights is None else self._weights[rows]
        return StoredRows(codes, self._labels[rows], weights, self._is_kept)

    def _leave_out(self, start: int, kept: NDArray[np.bool_]) -> None:
        """Record which rows of a chunk are kept."""
        if self._is_kept is None:
            self._is_kept = self._workspace.zeros(self.n_rows, np.bool_)
            self._is_kept[:start] = True
        self._is_kept[start : self._n_read] = kept

    def _write(self, codes: Codes, rows: slice) -> None:
        place = {j: k for k, j in enumerate(self._narrow)}
        for block in codes.blocks:
            for k, j in enumerate(block.features.tolist()):
                target = self._bytes[place[j]] if j in place else self._columns[j]
                values = block.values[:, k]
                if block.look_up is not None:
                    values = block.look_up[k].astype(target.dtype)[values]
                target[rows] = values
        for g, target in enumerate(self._numbers):
            target[rows] = codes.number_column(g)

    def _changed(self, n_now: str) -> TableError:
        return TableError(
            f"The source changed between two readings: it had {self.n_rows:,} rows "
            f"first, and {n_now} then. Fit again when nothing writes to it."
        )


def _by_width(schema: TableSchema) -> tuple[list[int], dict[int, np.dtype[Any]]]:
    """Return the attributes whose codes take a byte, and the types of the others."""
    types = {int(j): code_dtype(schema.features[j].n_codes) for j in schema.coded}
    narrow = [j for j, t in types.items() if t == np.uint8]
    return narrow, {j: t for j, t in types.items() if t != np.uint8}
