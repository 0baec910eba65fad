"""From a table to codes by a schema that is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from steelyard._common.threads import run, thread_count
from steelyard.table.bytes import encode_matrix
from steelyard.table.cells import ColumnCells
from steelyard.table.codes import BlockBuilder, Codes
from steelyard.table.columns import TableColumn
from steelyard.table.frames import Table, matched_columns
from steelyard.table.schema import FeatureSchema, TableSchema

EncodedView = tuple[FeatureSchema, NDArray[Any]]


class SchemaEncoder:
    """Encodes tables by its schema; how one is learned, it need not know."""

    schema_: TableSchema
    if TYPE_CHECKING:
        n_jobs: int | None

    def encode(self, table: Table) -> Codes:
        """Encode a table by the schema; pairs are joined of the codes."""
        codes = self._encode_plain(table, self.schema_.without_pairs)
        if codes.schema is self.schema_:
            return codes
        return codes.with_pairs(self.schema_, self.n_jobs)

    def _encode_plain(self, table: Table, schema: TableSchema) -> Codes:
        columns = self.match(table)
        codes = encode_matrix(table, schema, columns, self.n_jobs)
        if codes is not None:
            return codes
        views = schema.by_column

        def encode_column(j: int) -> Iterator[EncodedView]:
            column = ColumnCells(columns[j])
            for feature in views[j]:
                yield feature, column.encoded(feature)

        builder = BlockBuilder(table.n_rows, len(schema.coded))
        collect(encode_column, columns, builder, self.n_jobs)
        return builder.finish(schema)

    def match(self, table: Table) -> list[TableColumn]:
        """Put the columns of a table into the order of the schema."""
        return matched_columns(
            table, self.schema_.names, self.schema_.n_columns, type(self).__name__
        )


def collect(
    function: Callable[[int], Iterable[EncodedView]],
    columns: list[TableColumn],
    builder: BlockBuilder,
    n_jobs: int | None,
) -> None:
    """Hand what a function makes of each column to a builder."""

    def encoded(j: int) -> list[EncodedView]:
        return list(function(j))

    found = run(encoded, range(len(columns)), thread_count(n_jobs))
    for column, views in zip(columns, found, strict=True):
        for feature, cells in views:
            builder.add(feature, cells)
        column.release()
