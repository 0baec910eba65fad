"""Temporary copies of rows in Parquet files."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from os import PathLike
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from steelyard._common.files import WorkFolder
from steelyard.exceptions import TableError
from steelyard.io.chunks import MAX_ROWS, Chunk, Place, Places, places_between, regroup
from steelyard.io.columnar import ColumnarFiles
from steelyard.io.paths import File
from steelyard.io.reader import TypesChangedError, conform, join_types, kind_of


class CopyWriter:
    """Writes chunks to Parquet files: a new one whenever types of columns change."""

    def __init__(self, work_folder: str | PathLike[str] | None) -> None:
        self.folder = WorkFolder(work_folder)
        self._writer: Any = None
        self._paths: list[tuple[str, str]] = []
        self._origins: list[tuple[int, Place]] = []
        self._n_rows = 0

    def write(self, chunk: Chunk) -> None:
        """Append rows."""
        types, name = self._types(chunk.cells), chunk.places[0][1].name
        if self._writer is None or self._writer.schema != pa.schema(types.items()):
            self._begin(types, name)
        cells = conform(chunk.cells, types, name)
        with self.folder.writing():
            self._writer.write_table(cells, row_group_size=MAX_ROWS)
        for offset, place in chunk.places:
            self._add(self._n_rows + offset, place)
        self._n_rows += chunk.n_rows

    def _types(self, cells: pa.Table) -> dict[str, pa.DataType]:
        """Return the types of the columns, widened to those of the open file.

        Types that alternate thus do not begin a new file each time.
        """
        types = {}
        for name, column in zip(cells.column_names, cells.columns, strict=True):
            is_empty = column.null_count == len(column)
            kind = types[name] = pa.null() if is_empty else column.type
            if self._writer is not None:
                written = self._writer.schema.field(name).type
                if kind_of(kind) in (kind_of(written), "nothing"):
                    types[name] = join_types(name, [written, kind], lambda _: None)
        return types

    def _begin(self, types: dict[str, pa.DataType], origin: str) -> None:
        with self.folder.writing():
            self._close()
            path = str(self.folder.path / f"{len(self._paths)}.parquet")
            self._paths.append((path, origin))
            self._writer = pq.ParquetWriter(
                path,
                pa.schema(types.items()),
                compression="zstd",
                compression_level=1,
                write_page_checksum=True,
            )

    def _add(self, row: int, place: Place) -> None:
        # Batches of one file follow from its first row.
        if self._origins:
            before, last = self._origins[-1]
            if last.name == place.name and place.row - last.row == row - before:
                return
        self._origins.append((row, place))

    def finish(self, name: str) -> CopyReader:
        """Return a reader of the copy, which removes it when closed."""
        with self.folder.writing():
            self._close()
        if not self._paths:
            raise TableError(f"There are no rows in {name}.")
        files = []
        for path, name in self._paths:
            status = os.stat(path)
            files.append(
                File(path, "parquet", status.st_size, status.st_mtime_ns, shown=name)
            )
        return CopyReader(files, self._origins, self.folder)

    def _close(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    def discard(self) -> None:
        """Remove everything, after an error."""
        with suppress(OSError, pa.ArrowException):
            self._close()
        self.folder.close()


class CopyReader(ColumnarFiles):
    """Reads a temporary copy; places are those of the original rows."""

    def __init__(
        self, files: Sequence[File], origins: Places, folder: WorkFolder
    ) -> None:
        super().__init__(files)
        self.origins, self.folder = origins, folder

    def read(self, names: Sequence[str], max_rows: int) -> Iterator[Chunk]:
        """Yield some columns of all rows, with their original places."""
        row = 0
        for chunk in super().read(names, max_rows):
            stop = row + chunk.n_rows
            yield replace(chunk, places=places_between(self.origins, row, stop))
            row = stop

    def close(self) -> None:
        """Remove the copy."""
        self.folder.close()


def copy_of(
    read: Callable[[], Generator[Chunk]],
    work_folder: str | PathLike[str] | None,
    name: str,
) -> CopyReader:
    """Write all chunks to a temporary copy; begin again if types changed."""
    while True:
        writer = CopyWriter(work_folder)
        try:
            with closing(read()) as chunks:
                for chunk in regroup(chunks, MAX_ROWS):
                    writer.write(chunk)
            return writer.finish(name)
        except TypesChangedError:
            writer.discard()
        except BaseException:
            writer.discard()
            raise
