"""Encoded columns together: in blocks, or as the array that they came in."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.threads import row_blocks
from steelyard.table.bytes import as_byte_matrix, look_up_of
from steelyard.table.cells import are_of_one_kind, numbers_of
from steelyard.table.codes import CodeBlock, Codes
from steelyard.table.columns import Column
from steelyard.table.frames import Table
from steelyard.table.schema import FeatureSchema, TableSchema


class BlockBuilder:
    """Collects the columns of a table into as few blocks as their types allow.

    All one-byte columns share one array in Fortran order; memory that is set aside but
    never written is never handed out by the system.
    """

    def __init__(self, n_rows: int, max_coded: int) -> None:
        self._bytes = np.empty((n_rows, max_coded), dtype=np.uint8, order="F")
        self._byte_features: list[int] = []
        self._wide: list[CodeBlock] = []
        self._numbers: list[NDArray[np.float64]] = []
        self._n_added = 0

    def add(self, feature: FeatureSchema, cells: NDArray[Any]) -> None:
        """Take the cells of the next attribute."""
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
        """Put what was added into one set of codes."""
        blocks = list(self._wide)
        if self._byte_features:
            values = self._bytes[:, : len(self._byte_features)]
            features = np.array(self._byte_features, dtype=np.int64)
            blocks.insert(0, CodeBlock(values, features))
        n_rows = len(self._bytes)
        return Codes(schema, n_rows, tuple(blocks), tuple(self._numbers))


def matrix_codes(schema: TableSchema, table: Table) -> Codes | None:
    """Take a table of Gaussian attributes without a copy; None if it is no matrix."""
    if table.matrix is None or table.matrix.dtype != np.float64:
        return None
    for rows in row_blocks(table.n_rows):
        infinite = np.isinf(table.matrix[rows])
        if infinite.any():
            column = table.columns[int(np.flatnonzero(infinite.any(axis=0))[0])]
            numbers_of(column)  # raises, and says where
    return Codes(schema, table.n_rows, (), table.matrix)


def byte_codes(
    schema: TableSchema,
    matrix: NDArray[Any],
    lows: NDArray[np.int64],
    all_known: bool = False,
) -> Codes:
    """Take a matrix of bytes without a copy; ``all_known`` if the schema has it all."""
    look_up = look_up_of(schema, matrix.dtype, lows)
    features = np.arange(len(schema), dtype=np.int64)
    last = int(np.flatnonzero(look_up.any(axis=0)).max(initial=-1))
    n_bytes = last + 1 if all_known else 256
    block = CodeBlock(matrix.view(np.uint8), features, look_up, n_bytes)
    return Codes(schema, matrix.shape[0], (block,))


def encode_matrix(
    table: Table, schema: TableSchema, columns: list[Column], n_jobs: int | None
) -> Codes | None:
    """Encode a matrix of small whole numbers or of numbers without a copy."""
    if table.matrix is None or len(schema) != table.n_columns:
        return None
    kinds = {feature.kind for feature in schema.features}
    if kinds == {"categorical"}:
        if not all(map(are_of_one_kind, schema.features, columns)):
            return None
        small = as_byte_matrix(table.matrix, n_jobs)
        return None if small is None else byte_codes(schema, *small)
    imputed = any(feature.fill is not None for feature in schema.features)
    if kinds != {"gaussian"} or imputed:
        return None
    return matrix_codes(schema, table)
