"""Codes: the table after encoding. Feature tables: any quantity by code and class."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from steelyard._common.arrays import Floats, Ints
from steelyard._common.threads import pieces, run_blocks
from steelyard.kernels import counting
from steelyard.table.schema import FeatureSchema, Side, TableSchema

EncodedColumn = tuple[FeatureSchema, NDArray[Any]]
"""An attribute, and the cells of its column as codes or numbers."""

# A byte matrix is looked up in tables of 256 rows per column. At a distance of exactly
# 256 float64 the columns fall on the same few sets of the L1 cache, which made counting
# nine times slower (167 against 19 ms for 1,000,000 x 50); a little space between them
# repairs it.
BYTE_STRIDE = 264


def code_dtype(n_codes: int) -> np.dtype[Any]:
    """Smallest unsigned type for codes below ``n_codes``."""
    return np.min_scalar_type(max(n_codes - 1, 0))


def comparable(numbers: Floats) -> Floats:
    """Return numbers whose bits are equal if they are: one zero, one missing value.

    >>> zeros = comparable(np.array([0.0, -0.0]))
    >>> len(set(zeros.view(np.uint64).tolist()))
    1
    """
    out: Floats = numbers + 0.0
    out[np.isnan(out)] = np.nan
    return out


class Workspace:
    """Allocates arrays as long as the table: here, in memory."""

    is_memory: bool = True
    """Whether arrays of any length are in memory."""

    def zeros(
        self, shape: int | tuple[int, ...], dtype: DTypeLike, order: Any = "C"
    ) -> NDArray[Any]:
        """Return a new array of zeros."""
        return np.zeros(shape, dtype, order)

    def full(self, n_rows: int, value: float) -> Floats:
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
    ) -> Ints:
        """Return the positions of the rows for which a test is true."""
        return np.flatnonzero(test(slice(0, n_rows)))


MEMORY = Workspace()
"""The workspace of tables that are in memory."""


@dataclass(frozen=True)
class CodeBlock:
    """Columns that share a storage type.

    ``values`` has codes; with a ``look_up`` it has raw bytes of the user's own
    array instead, and ``look_up[column, byte]`` is the code. Tables are then spread to
    one row per byte before the rows are touched, so that such an array is never copied.
    """

    values: NDArray[Any]
    """Shape (n, b), unsigned, C or Fortran order."""

    features: Ints
    """Positions of the columns in the schema, shape (b,)."""

    look_up: Ints | None = None
    """Shape (b, 256)."""

    n_bytes: int = 256
    """Bytes from this one on do not occur: spread tables end there."""

    def table_rows(self, offsets: Ints) -> Ints | None:
        """Return the table row of each spread row, None without a look-up."""
        if self.look_up is None:
            return None
        rows = np.zeros((len(self.features), self._stride), dtype=np.int64)
        used = self.look_up[:, : self.n_bytes]
        rows[:, : self.n_bytes] = used + offsets[self.features][:, None]
        return rows.ravel()

    def starts(self, offsets: Ints) -> NDArray[np.uint64]:
        """First row of every column in the (spread) table."""
        if self.look_up is not None:
            columns = np.arange(len(self.features), dtype=np.uint64)
            return columns * np.uint64(self._stride)
        return offsets[self.features].astype(np.uint64)

    def sizes(self, offsets: Ints) -> Ints:
        """Return the number of codes, or bytes, that every column may have."""
        if self.look_up is not None:
            return np.full(len(self.features), self.n_bytes, dtype=np.int64)
        return np.diff(offsets)[self.features]

    @property
    def _stride(self) -> int:
        """Rows that a column takes in a spread table: odd, or far from a power of 2."""
        return BYTE_STRIDE if self.n_bytes > 128 else self.n_bytes | 1


@dataclass(frozen=True)
class Codes:
    """An encoded table: small unsigned integers, and numbers for densities.

    It is what blocks of rows are made of: a table in memory is one such block, a long
    one comes in several. Only what reads the rows of one ``Codes`` may look at its
    arrays; no other code may assume that all codes are one array in memory.
    """

    schema: TableSchema
    n_rows: int
    blocks: tuple[CodeBlock, ...]
    numbers: Floats | tuple[Floats, ...] = ()
    """Columns of the Gaussian attributes: an (n, g) array, or g arrays of length n."""

    workspace: Workspace = field(default=MEMORY, repr=False, compare=False)
    """What allocates arrays as long as the table."""

    @property
    def offsets(self) -> Ints:
        """First table row of every attribute, shape (d + 1,)."""
        return self.schema.offsets

    @property
    def n_numbers(self) -> int:
        """How many Gaussian attributes there are."""
        return len(self.schema.gaussian)

    def number_rows(self, rows: slice) -> Floats:
        """Cells of the Gaussian attributes in a block of rows, shape (rows, g)."""
        if isinstance(self.numbers, np.ndarray):
            return self.numbers[rows]
        block = np.empty((len(range(*rows.indices(self.n_rows))), len(self.numbers)))
        for j, column in enumerate(self.numbers):
            block[:, j] = column[rows]
        return block

    def number_column(self, k: int) -> Floats:
        """Cells of one Gaussian attribute, shape (n,)."""
        if isinstance(self.numbers, np.ndarray):
            return np.asarray(self.numbers[:, k])
        return self.numbers[k]

    def take_with(self, rows: Any, before: Any, after: Any) -> Codes:
        """Return some rows, those of one array being another, which is not copied."""

        def taken(values: NDArray[Any]) -> NDArray[Any]:
            if values is before:
                return np.asarray(after)
            # Codes of a matrix of one byte a cell are a view of it.
            is_view = before is not None and values.itemsize == before.itemsize
            if is_view and _memory_of(values) == _memory_of(before):
                return np.asarray(after.view(values.dtype))
            return np.asarray(values[rows])

        return self._of_rows(taken, len(after))

    def take(self, rows: NDArray[Any]) -> Codes:
        """Return some rows, by position or by a mask."""
        if rows.dtype == bool and not self.workspace.is_memory:
            rows = self.workspace.rows_where(len(rows), rows.__getitem__)
        n_rows = int(np.count_nonzero(rows)) if rows.dtype == bool else len(rows)
        return self._of_rows(lambda values: self.workspace.take(values, rows), n_rows)

    def part(self, rows: slice) -> Codes:
        """Return a slice of rows, without a copy."""
        n_rows = len(range(*rows.indices(self.n_rows)))
        return self._of_rows(lambda values: values[rows], n_rows)

    def _of_rows(
        self, taken: Callable[[NDArray[Any]], NDArray[Any]], n_rows: int
    ) -> Codes:
        blocks = tuple(replace(b, values=taken(b.values)) for b in self.blocks)
        numbers: Any = self.numbers
        if isinstance(numbers, np.ndarray):
            numbers = taken(numbers)
        else:
            numbers = tuple(taken(column) for column in numbers)
        return Codes(self.schema, n_rows, blocks, numbers, self.workspace)

    def column(self, feature: int) -> NDArray[Any]:
        """Codes of one attribute, shape (n,)."""
        for block in self.blocks:
            for k in np.flatnonzero(block.features == feature):
                values = block.values[:, k]
                return values if block.look_up is None else block.look_up[k][values]
        raise ValueError(f"Attribute {feature} is not coded.")

    def with_interactions(
        self, schema: TableSchema, n_jobs: int | None = None
    ) -> Codes:
        """Return the same rows with the joint codes of the interactions of a schema."""
        first = len(self.schema)
        if schema.features[:first] != self.schema.features:
            raise ValueError(
                "The schema was not made by adding interactions to this one."
            )
        blocks = list(self.blocks)
        for dtype, positions in by_width(schema, range(first, len(schema))):
            shape = (self.n_rows, len(positions))
            values = self.workspace.zeros(shape, dtype, "F")
            for k, j in enumerate(positions):
                self._join(schema.features[j].sides, values[:, k], n_jobs)
            blocks.append(CodeBlock(values, np.array(positions, dtype=np.int64)))
        return replace(self, schema=schema, blocks=tuple(blocks))

    def _join(
        self, sides: tuple[Side, ...], out: NDArray[Any], n_jobs: int | None
    ) -> None:
        """Write the joint codes of two attributes."""
        a, parts_a = self._coarse(sides[0], sides[1].n_groups)
        b, parts_b = self._coarse(sides[1], 1)

        def join(block: slice) -> None:
            for rows in pieces(block):
                both = _plain(a[rows]), _plain(b[rows])
                counting.join(*both, parts_a, parts_b, out[rows])

        run_blocks(join, self.n_rows, n_jobs)

    def _coarse(self, side: Side, factor: int) -> tuple[Any, NDArray[np.uint32]]:
        """Return a column as it is stored, and what each stored value adds to joint."""
        groups = np.array(side.groups, dtype=np.uint32) * np.uint32(factor)
        for block in self.blocks:
            for k in np.flatnonzero(block.features == side.feature):
                coded = groups if block.look_up is None else groups[block.look_up[k]]
                return block.values[:, k], coded
        raise ValueError(f"Attribute {side.feature} is not coded.")

    def by_column(self) -> NDArray[Any]:
        """All codes by column, shape (coded, n); no copy of bytes stored that way."""
        coded = self.schema.coded
        if len(self.blocks) == 1 and self.blocks[0].look_up is None:
            (block,) = self.blocks
            is_all = np.array_equal(block.features, coded)
            if is_all and block.values.dtype == np.uint8:
                by_column = block.values.T
                if by_column.strides[1] == 1:
                    return by_column
        most = max((self.schema.features[j].n_codes for j in coded), default=1)
        dtype = code_dtype(most)
        out = self.workspace.zeros((len(coded), self.n_rows), dtype)
        for block in self.blocks:
            target = np.searchsorted(coded, block.features)
            look_up = np.empty((0, 0)) if block.look_up is None else block.look_up
            counting.transpose(block.values, look_up.astype(dtype), target, out)
        return out

    def to_array(self) -> NDArray[Any]:
        """All codes as one (n, d) array; Gaussian attributes are not among them."""
        coded = self.schema.coded
        most = max((self.schema.features[j].n_codes for j in coded), default=1)
        shape = (self.n_rows, len(coded))
        array = self.workspace.zeros(shape, code_dtype(most))
        for k, j in enumerate(coded):
            array[:, k] = self.column(int(j))
        return array


class BlockBuilder:
    """Collects the columns of a table into as few blocks as their types allow.

    All one-byte columns share one array in Fortran order; memory that is set aside but
    never written is never handed out by the system.
    """

    def __init__(self, n_rows: int, max_coded: int) -> None:
        self._bytes = np.empty((n_rows, max_coded), dtype=np.uint8, order="F")
        self._byte_features: list[int] = []
        self._wide: list[CodeBlock] = []
        self._numbers: list[Floats] = []
        self._n_added = 0

    def add(self, feature: FeatureSchema, cells: NDArray[Any]) -> None:
        """Add the cells of the next attribute."""
        position, self._n_added = self._n_added, self._n_added + 1
        if not feature.is_coded:
            self._numbers.append(cells)
        elif cells.dtype == np.uint8:
            self._bytes[:, len(self._byte_features)] = cells
            self._byte_features.append(position)
        else:
            block = np.array([position], dtype=np.int64)
            self._wide.append(CodeBlock(cells[:, None], block))

    def finish(self, schema: TableSchema) -> Codes:
        """Return what was added as one set of codes."""
        blocks = list(self._wide)
        if self._byte_features:
            values = self._bytes[:, : len(self._byte_features)]
            features = np.array(self._byte_features, dtype=np.int64)
            blocks.insert(0, CodeBlock(values, features))
        n_rows = len(self._bytes)
        return Codes(schema, n_rows, tuple(blocks), tuple(self._numbers))


def by_width(
    schema: TableSchema, positions: Iterable[int]
) -> list[tuple[np.dtype[Any], list[int]]]:
    """Group attributes by the type that their codes need."""
    groups: dict[np.dtype[Any], list[int]] = {}
    for j in positions:
        groups.setdefault(code_dtype(schema.features[j].n_codes), []).append(j)
    return list(groups.items())


def _memory_of(values: NDArray[Any]) -> tuple[Any, ...]:
    """Return where the cells of an array are, whatever their type."""
    return values.__array_interface__["data"], values.shape, values.strides


def _plain(column: NDArray[Any]) -> NDArray[Any]:
    """Return contiguous codes in one of two types: few forms are compiled."""
    dtype = np.uint8 if column.dtype == np.uint8 else np.uint32
    return np.ascontiguousarray(column, dtype=dtype)


@dataclass(frozen=True)
class FeatureTable:
    """A quantity by code and class, such as log-probabilities or contributions."""

    values: Floats
    """Shape (V, K)."""

    offsets: Ints
    """Shape (d + 1,)."""

    @cached_property
    def owners(self) -> Ints:
        """Attribute of each code."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    @cached_property
    def _filled(self) -> Ints:
        """Attributes that have codes."""
        return np.flatnonzero(np.diff(self.offsets))

    def spread(self, by_feature: NDArray[Any]) -> NDArray[Any]:
        """Repeat a value per attribute over the codes of that attribute."""
        return np.take(by_feature, self.owners, axis=0)

    def collect(self, by_code: NDArray[Any]) -> NDArray[Any]:
        """Add up values by code within each attribute: the transpose of ``spread``."""
        n_features, filled = len(self.offsets) - 1, self._filled
        out = np.zeros((n_features, *by_code.shape[1:]), dtype=by_code.dtype)
        if filled.size:
            out[filled] = np.add.reduceat(by_code, self.offsets[filled], axis=0)
        return out
