"""Rows kept in a folder for further fits: Parquet files and a list of them."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import astuple, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from steelyard._common.files import atomic_write
from steelyard.exceptions import TableError
from steelyard.io.chunks import Part, Place
from steelyard.io.copies import CopyReader, copy_of
from steelyard.io.paths import File
from steelyard.io.reader import Reader, conform

if TYPE_CHECKING:
    from steelyard.io.scanning import Scan

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
