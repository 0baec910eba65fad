"""DeviceCodes: an encoded table in the memory of a GPU.

Imported only once a device is asked for; see ``gpu``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, Ints
from steelyard.kernels.cuda import scattering
from steelyard.kernels.cuda.launching import blocks_for, launch, to_device, zeros
from steelyard.table.codes import Codes
from steelyard.table.packing import Packing
from steelyard.table.schema import TableSchema

# Rows that travel to the device at a time.
_ROWS_PER_PIECE = 1 << 21
_ALIGNED = 16


@dataclass(frozen=True)
class ColumnPairs:
    """Neighbouring columns that are looked up together, two by two, or alone.

    The table of columns a and b has a cell for ``a * size_b + b``, by class first if
    there are classes; tables come one after the other.
    """

    first: Ints
    """First column of each pair."""

    second: Ints
    """Second column of each pair; the first once more for one that is alone."""

    sizes: Ints
    """How many stored values the two have, shape (G, 2); 1 for no second."""

    places: Ints
    """First cell of each pair, and the number of cells: shape (G + 1,)."""

    @classmethod
    def of(cls, sizes: NDArray[Any], n_classes: int, most: int) -> ColumnPairs:
        """Join two neighbours if their table has at most ``most`` cells."""
        first, second, shapes, j = [], [], [], 0
        while j < len(sizes):
            is_pair = j + 1 < len(sizes) and (
                n_classes * int(sizes[j]) * int(sizes[j + 1]) <= most
            )
            first.append(j)
            second.append(j + int(is_pair))
            shapes.append((int(sizes[j]), int(sizes[j + 1]) if is_pair else 1))
            j += 1 + int(is_pair)
        cells = [n_classes * a * b for a, b in shapes]
        return cls(
            np.array(first), np.array(second), np.array(shapes), np.cumsum([0, *cells])
        )

    def parts(self, most: int) -> Ints:
        """Return the first pair of each part, of at most ``most`` cells."""
        cuts = [0]
        for g in range(1, len(self.first)):
            if self.places[g + 1] - self.places[cuts[-1]] > most:
                cuts.append(g)
        return np.array([*cuts, len(self.first)])

    def plan(self, n_words: int) -> tuple[Any, ...]:
        """Return what kernels read: positions of columns, sizes and first cells."""
        factor = (self.second > self.first).astype(np.uint32)
        return (
            to_device((self.first * n_words).astype(np.uint64)),
            to_device((self.second * n_words).astype(np.uint64)),
            to_device(self.sizes[:, 0].astype(np.uint32)),
            to_device(self.sizes[:, 1].astype(np.uint32)),
            to_device(factor),
            to_device(self.places.astype(np.uint32)),
        )

    def by_column(self, cells: NDArray[Any], n_classes: int) -> list[Ints]:
        """Return the counts of each column, (K, size), from those of pairs."""
        by_column = []
        for g, (a, b) in enumerate(self.sizes.tolist()):
            joint = cells[self.places[g] : self.places[g + 1]].reshape(n_classes, a, b)
            by_column.append(joint.sum(axis=2))
            if self.second[g] > self.first[g]:
                by_column.append(joint.sum(axis=1))
        return by_column

    def join(self, columns: list[Floats]) -> Floats:
        """Add up tables of single columns, (size, ...), to those of pairs."""
        joint = []
        for a, b in zip(self.first, self.second, strict=True):
            table = columns[a][:, None]
            table = table if a == b else table + columns[b]
            joint.append(table.reshape(-1, *table.shape[2:]))
        return np.concatenate(joint)


@dataclass(frozen=True)
class DeviceCodes:
    """Codes by column on a device; or bytes with tables of their codes."""

    schema: TableSchema
    n_rows: int
    narrow: Any
    """Columns of one byte, (b, n and more) uint8 on the device; None without any."""

    features: Ints
    """Their attributes, shape (b,)."""

    meanings: tuple[Ints, ...]
    """Code of each stored value of each of them."""

    wide: Any
    """Columns of more than a byte, (w, n and more) on the device; None without any."""

    wide_features: Ints
    numbers: Any = None
    """Numbers by column, (g, n and more) on the device; None without any."""

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
    def sizes(self) -> Ints:
        """How many stored values each narrow column has."""
        return np.array([len(codes) for codes in self.meanings], dtype=np.int64)

    @property
    def wide_starts(self) -> Ints:
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
                share[: len(stored)] = packing.share(stored, [j])[0]
                parts.append(share)
                members.append(place[j])
            begins.append(len(members))
        out = zeros((len(packing.groups), self.narrow.shape[1]), np.uint8)
        launch(
            scattering.pack,
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
        _numbers_by_column(codes) if codes.n_numbers else None,
    )


def _numbers_by_column(codes: Codes) -> Any:
    """Copy the numbers of a table to the device, by column, a piece at a time."""
    out = zeros((codes.n_numbers, padded(codes.n_rows)), np.float64)
    for lo in range(0, codes.n_rows, _ROWS_PER_PIECE):
        piece = codes.number_rows(slice(lo, lo + _ROWS_PER_PIECE))
        transpose(to_device(piece), out, lo)
    return out


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
        launch(scattering.transpose, blocks_for(0), 0, values, columns, first)


def taken(columns: Any, rows: Ints) -> NDArray[Any]:
    """Return rows of codes by column on the device, in memory: (s, b)."""
    out = zeros((len(rows), columns.shape[0]), columns.dtype)
    launch(scattering.take, blocks_for(0), 0, columns, to_device(rows), out)
    return np.asarray(out.copy_to_host())
