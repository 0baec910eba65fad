"""Paths, folders and globs to files, with what the names of folders say."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from steelyard._common.text import did_you_mean
from steelyard.exceptions import TableError

FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".parq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
}
_NOTHING = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class File:
    """One file, and the cells that names of its folders give, as ``year=2024``."""

    path: str
    format: str
    size: int
    time: int
    keys: dict[str, str | None] = field(default_factory=dict)
    shown: str | None = None

    @property
    def name(self) -> str:
        """How messages call it."""
        return self.shown or self.path

    @property
    def is_compressed(self) -> bool:
        """Whether the file as a whole is compressed."""
        return self.path.lower().endswith(".gz")

    def check(self) -> None:
        """Raise an error if the file is not the one that was found first."""
        try:
            status = os.stat(self.path)
        except OSError:
            raise TableError(
                f"The source changed between two readings: {self.path} is gone. Leave "
                "the files alone while a model is fitted, and fit it again."
            ) from None
        if (status.st_size, status.st_mtime_ns) != (self.size, self.time):
            raise TableError(
                f"The source changed between two readings: {self.path} was written "
                "again. Leave the files alone while a model is fitted, and fit it "
                "again."
            )


def find_files(source: Any) -> list[File]:
    """Return the files of a path, a folder, a pattern or a list of these, in order."""
    paths = [source] if isinstance(source, (str, PathLike)) else list(source)
    files = [file for path in paths for file in _files_of(os.fspath(path))]
    if not files:
        raise TableError("The list of files is empty.")
    kinds = {"csv" if file.format == "tsv" else file.format for file in files}
    if "csv" in kinds and len(kinds) > 1:
        shown = ", ".join(sorted(kinds))
        raise TableError(
            f"The files are of several kinds ({shown}), whose types of columns differ. "
            "Choose some with a pattern such as 'folder/*.parquet'."
        )
    for file in files:
        if file.keys.keys() != files[0].keys.keys():
            raise TableError(
                f"The folders of {file.path} do not name the same columns as those of "
                f"{files[0].path}: {_keys(file)} and {_keys(files[0])}."
            )
    return files


def _keys(file: File) -> str:
    return ", ".join(f"{key}=…" for key in file.keys) or "none"


def format_of(path: str) -> str | None:
    """Return the format of a file by its name, None if it is not known.

    Examples
    --------
    >>> format_of("a/b.parquet"), format_of("b.CSV.gz"), format_of("b.parquet.gz")
    ('parquet', 'csv', None)
    """
    stem = path[:-3] if path.lower().endswith(".gz") else path
    format = FORMATS.get(Path(stem).suffix.lower())
    return format if stem == path or format in ("csv", "tsv") else None


def _files_of(path: str) -> list[File]:
    if "://" in path:
        raise TableError(
            f"{path} is not on this machine. Open it with a library that can, and give "
            "that: polars.scan_parquet(...), pyarrow.dataset.dataset(...)."
        )
    path = os.path.expanduser(path)
    if os.path.isdir(path):
        inside = _inside(path)
        if not inside:
            raise TableError(f"The folder {path} holds no {_known()} file.")
        return [_file(name, path) for name in inside]
    if os.path.exists(path):
        return [_file(path, None)]
    if glob.has_magic(path):
        found = sorted(filter(os.path.isfile, glob.glob(path, recursive=True)))
        if not found:
            raise TableError(f"No file matches {path!r}.")
        return [_file(name, _fixed(path)) for name in found]
    raise TableError(_no_file(Path(path)))


def _inside(folder: str) -> list[str]:
    """Return the files below a folder whose format is known, hidden ones left out."""
    found = []
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name[0] not in "._"]
        found += [
            os.path.join(root, name)
            for name in names
            if name[0] not in "._" and format_of(name)
        ]
    return sorted(found)


def _fixed(pattern: str) -> str:
    """Return the folder before the first wildcard."""
    parts = Path(pattern).parts
    magic = next(k for k, part in enumerate(parts) if glob.has_magic(part))
    return str(Path(*parts[:magic])) if magic else "."


def _file(path: str, root: str | None) -> File:
    format = format_of(path)
    if format is None:
        raise TableError(
            f"{path} has no known extension. Known: {_known()}, and .csv.gz, .tsv.gz."
        )
    status = os.stat(path)
    keys: dict[str, str | None] = {}
    if root is not None:
        for part in Path(os.path.relpath(path, root)).parts[:-1]:
            key, equals, value = part.partition("=")
            if equals and key:
                keys[unquote(key)] = None if value == _NOTHING else unquote(value)
    return File(path, format, status.st_size, status.st_mtime_ns, keys)


def _known() -> str:
    return ", ".join(FORMATS)


def _no_file(path: Path) -> str:
    if not path.parent.is_dir():
        return f"There is no file {str(path)!r}: its folder does not exist."
    beside = [entry.name for entry in path.parent.iterdir()]
    return f"There is no file {str(path)!r}.{did_you_mean(path.name, beside)}"


def key_types(files: Sequence[File]) -> dict[str, bool]:
    """Return the columns that folders name, and whether all their cells are numbers."""
    return {
        key: all(map(_is_whole, (file.keys[key] for file in files)))
        for key in files[0].keys
    }


def _is_whole(value: str | None) -> bool:
    # Not isdigit alone, and no leading zeros: "007" is a name.
    return value is None or (
        value.isascii() and value.isdigit() and str(int(value)) == value
    )
