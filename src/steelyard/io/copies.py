"""Copies of rows in Parquet files: temporary ones, or a folder for further fits."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import astuple, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from steelyard._common.files import WorkFolder, atomic_write
from steelyard.exceptions import TableError
from steelyard.io.chunks import MOST_ROWS, Part, Place, Places, places_between, regroup
from steelyard.io.columnar import ColumnarFiles
from steelyard.io.paths import File
from steelyard.io.reader import Reader, TypesChangedError, conform, join_types, kind_of

if TYPE_CHECKING:
    from steelyard.io.scanning import Scan


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
        """Add rows after those that are there."""
        types = self._types(part)
        if self._writer is None or self._writer.schema != pa.schema(types.items()):
            self._begin(types, part.places[0][1].name)
        cells = conform(part.cells, types, part.places[0][1].name)
        with self.folder.writing():
            self._writer.write_table(cells, row_group_size=MOST_ROWS)
        for offset, place in part.places:
            self._add(self._n_rows + offset, place)
        self._n_rows += part.cells.num_rows

    def _types(self, part: Part) -> dict[str, pa.DataType]:
        """Return the types of the part, widened to hold what the file at hand does.

        So types that take turns do not begin a file each time.
        """
        types = {}
        for name, column in zip(
            part.cells.column_names, part.cells.columns, strict=True
        ):
            is_empty = column.null_count == len(column)
            types[name] = pa.null() if is_empty else column.type
            if self._writer is not None:
                known = self._writer.schema.field(name).type
                if {kind_of(known), kind_of(types[name])} <= {
                    kind_of(known),
                    "nothing",
                }:
                    types[name] = join_types(name, [known, types[name]], lambda _: None)
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
            before, known = self._origins[-1]
            if known.name == place.name and place.row - known.row == row - before:
                return
        self._origins.append((row, place))

    def finish(self, name: str) -> CopyReader:
        """Return what reads the copy, and removes it when it is no longer needed."""
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
        folder: WorkFolder | None,
    ) -> None:
        super().__init__(files)
        self.origins, self.folder = origins, folder

    def read(self, names: Sequence[str], most_rows: int) -> Iterator[Part]:
        """Yield some columns of all rows, with their first origins."""
        row = 0
        for part in super().read(names, most_rows):
            stop = row + part.cells.num_rows
            yield Part(
                part.cells, places_between(self.origins, row, stop), part.n_bytes
            )
            row = stop

    def close(self) -> None:
        """Remove the copy."""
        if self.folder is not None:
            self.folder.close()


def copy_of(
    read: Callable[[], Generator[Part]],
    work_folder: str | PathLike[str] | None,
    name: str,
) -> CopyReader:
    """Write all parts to a temporary copy, from the beginning if types changed."""
    writer = CopyWriter(work_folder)
    try:
        while True:
            try:
                with closing(read()) as parts:
                    for part in regroup(parts, MOST_ROWS):
                        writer.write(part)
                return writer.finish(name)
            except TypesChangedError:
                writer.restart()
    except BaseException:
        writer.abandon()
        raise


MANIFEST = "_steelyard.json"
CODES = "_codes"
"""The folder inside for codes, one for each way to encode the rows."""

_FORMAT, _VERSION = "steelyard rows", 1
_AGAIN = "Remove the folder, and encode the rows again."


def folder_in(source: Any) -> Path | None:
    """Return the folder that a source names, if rows are kept in it."""
    if isinstance(source, (list, tuple)) and len(source) == 1:
        (source,) = source
    if not isinstance(source, (str, PathLike)):
        return None
    path = Path(source).expanduser()
    return path if (path / MANIFEST).is_file() else None


def write_folder(
    rows: Scan, reader: Reader, parts: Callable[[], Generator[Part]], folder: Path
) -> None:
    """Write rows to a new folder, which appears whole or not at all.

    A folder that holds the rows of the same files already is left as it is.
    """
    source = [[os.path.abspath(f.path), f.size, f.time] for f in reader.files]
    asked = [rows.names, *reader.identity]
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        found = _manifest(folder) if (folder / MANIFEST).is_file() else {}
        if source and [found.get("source"), found.get("asked")] == [source, asked]:
            return
        raise TableError(
            f"{folder} is there already, and holds other rows or files. Name a new "
            "folder, or remove this one."
        )
    if not folder.parent.is_dir():
        raise TableError(f"There is no folder {folder.parent} to make {folder} in.")
    copied = copy_of(parts, folder.parent, reader.name)
    assert copied.folder is not None
    try:
        made = copied.folder.path / "rows"
        made.mkdir()
        files = []
        for k, file in enumerate(copied.files):
            name = f"{k:05}.parquet"
            os.rename(file.path, made / name)
            files.append([name, file.size, file.shown])
        types = _types(reader if reader.is_cheap else copied, rows.names)
        content = {
            "format": _FORMAT,
            "version": _VERSION,
            "rows": copied.n_rows,
            "files": files,
            "schema": base64.b64encode(types.serialize()).decode(),
            "target": rows.target,
            "weight": rows.weight,
            "drop_missing_target": rows.drops_unlabelled,
            "unlabelled": getattr(reader, "n_unlabelled", 0),
            "reading": dict(reader.reading),
            "labels": dict(reader.labels),
            "notes": list(reader.notes),
            "origins": [[row, *astuple(place)] for row, place in copied.origins],
            "source": source,
            "asked": asked,
        }
        atomic_write(made / MANIFEST, json.dumps(content).encode())
        if folder.exists():
            folder.rmdir()
        os.rename(made, folder)
    finally:
        copied.close()


def _types(reader: Reader, names: Sequence[str]) -> pa.Schema:
    return pa.schema(reader.types(names).items())


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        content = json.loads((folder / MANIFEST).read_bytes())
        if content["format"] == _FORMAT and content["version"] == _VERSION:
            return dict(content)
        version = content["version"]
    except (ValueError, KeyError, TypeError):
        raise TableError(f"{folder / MANIFEST} is damaged. {_AGAIN}") from None
    raise TableError(
        f"The rows in {folder} were kept in version {version!r} of their format, and "
        f"this release reads version {_VERSION}. {_AGAIN}"
    )


class FolderReader(CopyReader):
    """Reads rows that are kept in a folder; places are those of the original rows."""

    def __init__(self, path: Path) -> None:
        found = _manifest(path)
        files = []
        for name, size, shown in found["files"]:
            at = path / name
            status = at.stat() if at.is_file() else None
            if status is None or status.st_size != size:
                what = "is missing" if status is None else "was changed"
                raise TableError(f"{at} {what}: {path} is not whole. {_AGAIN}")
            times = status.st_mtime_ns
            files.append(File(str(at), "parquet", size, times, shown=shown))
        origins = [(row, Place(*place)) for row, *place in found["origins"]]
        super().__init__(files, origins, None)
        if self.n_rows != found["rows"]:
            raise TableError(
                f"{path} has {self.n_rows:,} rows, and {found['rows']:,} were kept in "
                f"it. {_AGAIN}"
            )
        serialised = base64.b64decode(found["schema"])
        self._types = pa.ipc.read_schema(pa.py_buffer(serialised))
        self.name, self.kept = str(path), path
        self.names = list(self._types.names)
        self.target, self.weight = found["target"], found["weight"]
        self.drops_unlabelled = bool(found["drop_missing_target"])
        self.n_unlabelled = int(found["unlabelled"])
        roles = {"target": self.target, "weight": self.weight}
        self.about = {role: name for role, name in roles.items() if name is not None}
        self.reading, self.labels = found["reading"], found["labels"]
        if "missing_values" in self.reading:
            self.reading["missing_values"] = tuple(self.reading["missing_values"])
        self.notes = found["notes"]

    def check_names(self, wanted: Sequence[str] | None) -> None:
        """Do nothing: all files have the same columns."""

    def types(self, names: Sequence[str]) -> dict[str, pa.DataType]:
        """Return the types that the columns had where they came from."""
        return {name: self._types.field(name).type for name in names}

    def read(self, names: Sequence[str], most_rows: int) -> Iterator[Part]:
        """Yield some columns of all rows, with their first origins."""
        types = self.types(names)
        for part in super().read(names, most_rows):
            yield replace(part, cells=conform(part.cells, types, self.name))
