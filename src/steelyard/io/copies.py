"""Temporary copies of rows in Parquet files."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from os import PathLike
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from steelyard._common.files import WorkFolder
from steelyard.exceptions import TableError
from steelyard.io.chunks import MAX_ROWS, Part, Place, Places, places_between, regroup
from steelyard.io.columnar import ColumnarFiles
from steelyard.io.paths import File
from steelyard.io.reader import TypesChangedError, conform, join_types, kind_of


class CopyWriter:
    """Writes parts to Parquet files: a new one whenever the types of columns change."""

    def __init__(self, work_folder: str | PathLike[str] | None) -> None:
        self.folder = WorkFolder(work_folder)
        self._writer: Any = None
        self._paths: list[tuple[str, str]] = []
        self._origins: list[tuple[int, Place]] = []
        self._n_rows = 0

    def restart(self) -> None:
        """Forget what was written."""
        self._close()
        for path, _ in self._paths:
            os.unlink(path)
        self._paths, self._origins, self._n_rows = [], [], 0

    def write(self, part: Part) -> None:
        """Append rows."""
        types = self._types(part)
        if self._writer is None or self._writer.schema != pa.schema(types.items()):
            self._begin(types, part.places[0][1].name)
        cells = conform(part.cells, types, part.places[0][1].name)
        with self.folder.writing():
            self._writer.write_table(cells, row_group_size=MAX_ROWS)
        for offset, place in part.places:
            self._add(self._n_rows + offset, place)
        self._n_rows += part.cells.num_rows

    def _types(self, part: Part) -> dict[str, pa.DataType]:
        """Return the types of the part, widened to those of the open file.

        Types that alternate thus do not begin a new file each time.
        """
        types = {}
        for name, column in zip(
            part.cells.column_names, part.cells.columns, strict=True
        ):
            is_empty = column.null_count == len(column)
            types[name] = pa.null() if is_empty else column.type
            if self._writer is not None:
                written = self._writer.schema.field(name).type
                if {kind_of(written), kind_of(types[name])} <= {
                    kind_of(written),
                    "nothing",
                }:
                    types[name] = join_types(
                        name, [written, types[name]], lambda _: None
                    )
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

    def abandon(self) -> None:
        """Remove everything, after an error."""
        try:
            self._close()
        except (OSError, pa.ArrowException):
            pass
        finally:
            self.folder.close()


class CopyReader(ColumnarFiles):
    """Reads a temporary copy; places are those of the original rows."""

    def __init__(
        self,
        files: Sequence[File],
        origins: Places,
        folder: WorkFolder,
    ) -> None:
        super().__init__(files)
        self.origins, self.folder = origins, folder

    def read(self, names: Sequence[str], max_rows: int) -> Iterator[Part]:
        """Yield some columns of all rows, with their original places."""
        row = 0
        for part in super().read(names, max_rows):
            stop = row + part.cells.num_rows
            yield Part(
                part.cells, places_between(self.origins, row, stop), part.n_bytes
            )
            row = stop

    def close(self) -> None:
        """Remove the copy."""
        self.folder.close()


def copy_of(
    read: Callable[[], Generator[Part]],
    work_folder: str | PathLike[str] | None,
    name: str,
) -> CopyReader:
    """Write all parts to a temporary copy; begin again if types changed."""
    writer = CopyWriter(work_folder)
    try:
        while True:
            try:
                with closing(read()) as parts:
                    for part in regroup(parts, MAX_ROWS):
                        writer.write(part)
                return writer.finish(name)
            except TypesChangedError:
                writer.restart()
    except BaseException:
        writer.abandon()
        raise
