"""DeviceCodes: an encoded table in the memory of a GPU.

Imported only once a device is asked for; see ``_common.devices``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.kernels.cuda import counting
from steelyard.kernels.cuda.launching import (
    blocks_for,
    launch,
    most_shared,
    to_device,
    zeros,
)
from steelyard.table.codes import Codes
from steelyard.table.packing import Packing
from steelyard.table.schema import TableSchema

# Rows that travel to the device at a time.
_ROWS_PER_PIECE = 1 << 21
_ALIGNED = 16

# Cells of a joint table of counts. More columns in one table are fewer additions, and
# fewer tables that fit shared memory.
_MOST_JOINT = 2048


@dataclass(frozen=True)
class ColumnGroups:
    """Neighbouring columns that are looked up together, in one joint table.

    The table of columns a, b, … has a cell for ``(a * size_b + b) …``; tables come one
    after the other, by class first where they have classes.
    """

    columns: NDArray[np.uint32]
    """First column of each group, and their number: shape (G + 1,)."""

    sizes: NDArray[np.uint32]
    """How many stored values each column has, shape (b,)."""

    places: NDArray[np.uint32]
    """First cell of each group, and the number of cells: shape (G + 1,)."""

    @classmethod
    def of(cls, sizes: NDArray[Any], n_classes: int, most: int) -> ColumnGroups:
        """Join neighbours as long as a group has at most so many cells."""
        columns, places, cells = [0], [0], n_classes
        for j, size in enumerate(sizes.tolist()):
            if j > columns[-1] and cells * size > most:
                columns.append(j)
                places.append(places[-1] + cells)
                cells = n_classes
            cells *= size
        columns.append(len(sizes))
        places.append(places[-1] + cells)
        shaped = (
            np.array(found, dtype=np.uint32) for found in (columns, sizes, places)
        )
        return cls(*shaped)

    def parts(self, most: int) -> NDArray[np.uint32]:
        """Cut groups into parts of at most so many cells: where each begins."""
        cuts = [0]
        for g in range(1, len(self.columns) - 1):
            if self.places[g + 1] - self.places[cuts[-1]] > most:
                cuts.append(g)
        return np.array([*cuts, len(self.columns) - 1], dtype=np.uint32)

    def by_column(
        self, cells: NDArray[Any], n_classes: int
    ) -> Iterator[NDArray[np.int64]]:
        """Yield the counts of each column, (K, size), from those of groups."""
        for g, (lo, hi) in enumerate(
            zip(self.columns[:-1], self.columns[1:], strict=True)
        ):
            joint = cells[self.places[g] : self.places[g + 1]]
            joint = joint.reshape(n_classes, *self.sizes[lo:hi])
            for k in range(hi - lo):
                others = tuple(a for a in range(1, hi - lo + 1) if a != k + 1)
                yield joint.sum(axis=others)

    def join(self, columns: list[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Add up tables of single columns, (size,), to those of groups."""
        joint = np.empty(self.places[-1])
        for g, (lo, hi) in enumerate(
            zip(self.columns[:-1], self.columns[1:], strict=True)
        ):
            total = np.zeros(())
            for column in columns[lo:hi]:
                total = total[..., None] + column
            joint[self.places[g] : self.places[g + 1]] = total.ravel()
        return joint


@dataclass(frozen=True)
class DeviceCodes:
    """Codes by column on a device; or bytes that tables say the codes of."""

    schema: TableSchema
    n_rows: int
    narrow: Any
    """Columns of one byte, (b, n and more) uint8 on the device; None without any."""

    features: NDArray[np.int64]
    """Their attributes, shape (b,)."""

    meanings: tuple[NDArray[np.int64], ...]
    """Code of each stored value of each of them."""

    wide: Any
    """Columns of more than a byte, (w, n and more) on the device; None without any."""

    wide_features: NDArray[np.int64]

    @cached_property
    def words(self) -> Any:
        """The narrow columns, four rows to a word, column after column."""
        return self.narrow.view(np.uint32).reshape(self.narrow.size // 4)

    def words_or_zeros(self) -> Any:
        """Return the narrow columns, or a single one of zeros."""
        if self.narrow is not None:
            return self.words
        return zeros(padded(self.n_rows) // 4, np.uint32)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """How many stored values each narrow column has."""
        return np.array([len(codes) for codes in self.meanings], dtype=np.int64)

    @property
    def wide_starts(self) -> NDArray[np.int64]:
        """First table row of each wide column."""
        return self.schema.offsets[self.wide_features]

    def pack(self, packing: Packing) -> Any:
        """Return joint codes by column, four rows to a word: (g, m) uint32."""
        place = {int(j): k for k, j in enumerate(self.features)}
        parts, members, begins = [], [], [0]
        for group in packing.groups:
            for j in group:
                share = np.zeros(256, dtype=np.uint8)
                stored = self.meanings[place[j]]
                share[: len(stored)] = packing.share(stored, group, j)
                parts.append(share)
                members.append(place[j])
            begins.append(len(members))
        out = zeros((len(packing.groups), self.narrow.shape[1]), np.uint8)
        launch(
            counting.pack,
            blocks_for(0),
            0,
            self.narrow,
            to_device(np.array(parts)),
            to_device(np.array(members, dtype=np.int32)),
            to_device(np.array(begins, dtype=np.int32)),
            out,
        )
        return out.view(np.uint32)


def padded(n_rows: int) -> int:
    """Rows that a column on the device has room for."""
    return max(_ALIGNED, -(-n_rows // _ALIGNED) * _ALIGNED)


def bytes_to_device(values: NDArray[Any]) -> Any:
    """Copy one byte for each row to the device, four rows to a word."""
    out = np.zeros(padded(len(values)), dtype=np.uint8)
    out[: len(values)] = values
    return to_device(out.view(np.uint32))


def codes_to_device(codes: Codes) -> DeviceCodes:
    """Copy an encoded table to the device, a piece at a time."""
    narrow = [b for b in codes.blocks if b.values.dtype.itemsize == 1]
    wide = [b for b in codes.blocks if b.values.dtype.itemsize > 1]
    meanings = []
    for block in narrow:
        for k, size in enumerate(block.sizes(codes.offsets).tolist()):
            look_up = block.look_up
            meanings.append(np.arange(size) if look_up is None else look_up[k, :size])
    none = np.empty(0, dtype=np.int64)
    wide_type = np.result_type(np.uint16, *(block.values.dtype for block in wide))
    return DeviceCodes(
        codes.schema,
        codes.n_rows,
        _by_column([b.values.view(np.uint8) for b in narrow], np.uint8),
        np.concatenate([none, *(block.features for block in narrow)]),
        tuple(meanings),
        _by_column([block.values for block in wide], wide_type),
        np.concatenate([none, *(block.features for block in wide)]),
    )


def _by_column(blocks: list[NDArray[Any]], dtype: Any) -> Any:
    """Copy matrices (n, b) side by side to the device, by column; None without any."""
    if not blocks:
        return None
    n_rows, at = len(blocks[0]), 0
    out = zeros((sum(v.shape[1] for v in blocks), padded(n_rows)), dtype)
    for values in blocks:
        columns = out[at : at + values.shape[1]]
        at += values.shape[1]
        for lo in range(0, n_rows, _ROWS_PER_PIECE):
            piece = values[lo : lo + _ROWS_PER_PIECE]
            transpose(to_device(piece), columns, lo)
    return out


def transpose(values: Any, columns: Any, first: int) -> None:
    """Put rows on the device (r, b) by column, from row ``first`` on."""
    if values.size:
        launch(counting.transpose, blocks_for(0), 0, values, columns, first)


def taken(columns: Any, rows: NDArray[np.int64]) -> NDArray[Any]:
    """Return rows of codes by column on the device, in memory: (s, b)."""
    out = zeros((len(rows), columns.shape[0]), columns.dtype)
    launch(counting.take, blocks_for(0), 0, columns, to_device(rows), out)
    return np.asarray(out.copy_to_host())


def count_groups(sizes: NDArray[np.int64], n_classes: int, cell: int) -> ColumnGroups:
    """Say which columns are counted together: cells of so many bytes must fit."""
    return ColumnGroups.of(sizes, n_classes, min(_MOST_JOINT, most_shared() // cell))
