"""Files behind paths, folders, patterns and standard input; opening and unpacking."""

from __future__ import annotations

import bz2
import contextlib
import glob
import gzip
import io
import lzma
import os
import sys
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote

from steelyard._common.text import did_you_mean, listed
from steelyard.exceptions import ColumnError, ParameterError, TableError

_EXTENSIONS = {
    f".{name}": name
    for name in "arff csv tsv txt json jsonl parquet arrow xlsx xls ods sav dta".split()
}
_EXTENSIONS |= {".tab": "tsv", ".ndjson": "jsonl", ".pq": "parquet", ".parq": "parquet"}
_EXTENSIONS |= {".feather": "arrow", ".ipc": "arrow"}
FORMATS = tuple(dict.fromkeys(_EXTENSIONS.values()))
TEXT = ("csv", "tsv", "txt")
# The others are compressed inside.
_ZIPPED = (*TEXT, "arff", "json", "jsonl")
# Without .txt files, which mostly are about the others.
_IN_FOLDERS = ("csv", "tsv", "parquet", "arrow")
# Formats that share a reader.
_READERS = {"tsv": "csv", "txt": "csv", "arrow": "parquet"}
_NOTHING = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class File:
    """One file, and the cells in names of its folders, such as ``year=2024``."""

    path: str
    """``-`` for standard input."""

    format: str
    size: int = 0
    time: int = 0
    keys: dict[str, str | None] = field(default_factory=dict)
    shown: str | None = None
    is_read_once: bool = False
    """Whether standard input is read as it comes, and not kept."""

    _kept: list[bytes] = field(default_factory=list, repr=False, compare=False)
    """The bytes read of standard input."""

    @property
    def name(self) -> str:
        """Its name in messages."""
        return self.shown or ("standard input" if self.path == "-" else self.path)

    def open(self) -> IO[bytes]:
        """Open it as it is stored."""
        if self.path != "-":
            return open(self.path, "rb")
        if self.is_read_once:
            return io.BufferedReader(_Rejoined(b"".join(self._kept), sys.stdin.buffer))
        if not self._kept:
            self._kept.append(sys.stdin.buffer.read())
        return io.BytesIO(self._kept[0])

    def unpacked(self, raw: IO[bytes]) -> IO[bytes]:
        """Undo the compression of what was opened, by the name of the file."""
        match packing_of(self.path).lower():
            case ".zst":
                return _zstandard(raw, self.path)
            case ".zip":
                archive = zipfile.ZipFile(raw)
                return archive.open(_only_file(archive, self.path))
            case ending:
                opener: Any = _OPENERS.get(ending)
                return raw if opener is None else opener(raw)

    def head(self, n_bytes: int) -> bytes:
        """Return the first bytes; errors are left to later readings.

        Standard input still begins with them when it is opened.
        """
        if self.path == "-" and self.is_read_once:
            if not self._kept:
                self._kept.append(sys.stdin.buffer.read(n_bytes))
            return self._kept[0]
        with contextlib.suppress(OSError, TableError, *DAMAGED):
            with self.open() as raw:
                return self.unpacked(raw).read(n_bytes)
        return b""

    def check(self) -> None:
        """Raise an error if the file has changed since it was found."""
        if self.path == "-":
            return
        what = "was written again"
        try:
            status = os.stat(self.path)
            if (status.st_size, status.st_mtime_ns) == (self.size, self.time):
                return
        except OSError:
            what = "is gone"
        raise TableError(
            f"The source changed between two readings: {self.path} {what}. Leave the "
            "files alone while a model is fitted, and fit it again."
        )


class _Rejoined(io.RawIOBase):
    """A stream whose head was read already."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self._head, self._rest = head, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._head[: len(buffer)] or self._rest.read(len(buffer))
        self._head = self._head[len(data) :]
        buffer[: len(data)] = data
        return len(data)


def find_files(
    source: Any, format: str | None = None, *, once: bool = False
) -> list[File]:
    """Return the files of a path, a folder, a pattern or a list of these, in order.

    Extensions give formats, unless one is given; standard input, ``-``, is CSV. With
    ``once`` it is not kept.
    """
    paths = [source] if isinstance(source, (str, PathLike)) else list(source)
    names = [str(os.fspath(path)) for path in paths]
    if "-" in names:
        if len(names) > 1:
            raise ParameterError("Standard input (-) cannot be read with other files.")
        return [File("-", format or "csv", is_read_once=once)]
    files = [file for name in names for file in _files_of(name, format)]
    if not files:
        raise TableError("The list of files is empty.")
    kinds = {_READERS.get(file.format, file.format) for file in files}
    if len(kinds) > 1:
        shown = ", ".join(sorted({file.format for file in files}))
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


def stem_and_format(path: str | PathLike[str]) -> tuple[str, str | None]:
    """Return the name of a file without its extension, and its format or None.

    >>> stem_and_format("data/my.table.csv.gz"), stem_and_format("table.odt")
    (('my.table', 'csv'), ('table', None))
    """
    name = Path(path).name
    plain = name.removesuffix(packing_of(name))
    stem, _, suffix = plain.rpartition(".")
    format = _EXTENSIONS.get(f".{suffix.lower()}")
    return stem, format if format in _ZIPPED or plain == name else None


def is_several(paths: Sequence[str]) -> bool:
    """Whether paths name a folder, a pattern or several files."""
    path = os.path.expanduser(paths[0])
    is_pattern = glob.has_magic(path) and not os.path.exists(path)
    return len(paths) > 1 or os.path.isdir(path) or is_pattern


def find_column(name: str, columns: Iterable[Any], where: str, hint: str = "") -> str:
    """Return a name if there is such a column, else raise an error with the nearest.

    ``hint`` is a sentence on where else it may be.
    """
    names = [str(column) for column in columns]
    if name in names:
        return name
    plain = (name.replace(".", "", 1).replace(",", "", 1) for name in names)
    if sum(map(str.isdigit, plain)) > 1:
        hint += " If its first line has no names, set `no_header`."
    if len(names) == 1 and any(mark in names[0] for mark in ";\t|,"):
        hint += " If its cells are separated differently, set `separator`."
    raise ColumnError(
        f"{where} has no column {name!r}.{did_you_mean(name, names)} Columns: "
        f"{listed(names)}.{hint}"
    )


def check_distinct(names: Sequence[str], where: str) -> None:
    """Refuse two columns of one name."""
    if len({*names}) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        problem = f"{where} has two columns named {twice!r}."
        raise ColumnError(f"{problem} Rename one of them.")


def close_names(name: str, known: Iterable[str]) -> str:
    """Return a sentence with the names similar to a missing one, if there are any.

    >>> close_names("iriss", ["wine", "iris"])
    " Close: 'iris'."
    >>> close_names("nothing.csv", ["lending.csv"])
    ''
    """
    # Equal extensions do not make names similar.
    stems = {other: other.partition(".")[0] for other in known}
    alike = get_close_matches(name.partition(".")[0], {*stems.values()}, 3, 0.7)
    near = sorted(other for other, stem in stems.items() if stem in alike)
    close = get_close_matches(name, near, 3, 0.0)
    return f" Close: {', '.join(map(repr, close))}." if close else ""


def _files_of(path: str, format: str | None) -> list[File]:
    if "://" in path:
        raise TableError(
            f"{path} is not on this machine. Open it with a library that can, and give "
            "that: polars.scan_parquet(...), pyarrow.dataset.dataset(...)."
        )
    path = os.path.expanduser(path)
    if os.path.isdir(path):
        inside = _inside(path)
        if not inside:
            shown = ", ".join(e for e, f in _EXTENSIONS.items() if f in _IN_FOLDERS)
            raise TableError(f"The folder {path} contains no {shown} file.")
        return [_file(name, path, format) for name in inside]
    if os.path.exists(path):
        return [_file(path, None, format)]
    if glob.has_magic(path):
        paths = sorted(filter(os.path.isfile, glob.glob(path, recursive=True)))
        if not paths:
            raise TableError(f"No file matches {path!r}.")
        return [_file(name, _fixed(path), format) for name in paths]
    raise FileNotFoundError(_no_file(Path(path)))


def _inside(folder: str) -> list[str]:
    """Return the files in a folder with a known format, without hidden ones."""
    paths = []
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name[0] not in "._"]
        paths += [
            os.path.join(root, name)
            for name in names
            if name[0] not in "._" and stem_and_format(name)[1] in _IN_FOLDERS
        ]
    return sorted(paths)


def _fixed(pattern: str) -> str:
    """Return the folder before the first wildcard."""
    parts = Path(pattern).parts
    magic = next(k for k, part in enumerate(parts) if glob.has_magic(part))
    return str(Path(*parts[:magic])) if magic else "."


def _file(path: str, root: str | None, format: str | None) -> File:
    format = format or stem_and_format(path)[1]
    if format is None and packing_of(path).lower() == ".zip":
        format = stem_and_format(within(path))[1]
    if format is None:
        raise ParameterError(
            f"The file {path} has no known extension. Known: {', '.join(_EXTENSIONS)}, "
            "and text, ARFF and JSON files that end with .gz, .bz2, .xz, .zst or .zip. "
            "Say what it is with `format`."
        )
    status = os.stat(path)
    keys: dict[str, str | None] = {}
    if root is not None:
        for part in Path(os.path.relpath(path, root)).parts[:-1]:
            key, equals, value = part.partition("=")
            if equals and key:
                keys[unquote(key)] = None if value == _NOTHING else unquote(value)
    return File(path, format, status.st_size, status.st_mtime_ns, keys)


def _no_file(path: Path) -> str:
    if not path.parent.is_dir():
        return f"There is no file {str(path)!r}: its folder does not exist."
    beside = [file.name for file in path.parent.iterdir() if stem_and_format(file)[1]]
    return f"There is no file {str(path)!r}.{close_names(path.name, beside)}"


DAMAGED = (gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)
"""Errors of damaged archives and of files that are not compressed."""

_OPENERS = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_PACKED = (*_OPENERS, ".zst", ".zip")


def packing_of(path: str | PathLike[str]) -> str:
    """Return the extension of a compressed file, empty for others.

    >>> packing_of("data.csv.GZ"), packing_of("data.csv")
    ('.GZ', '')
    """
    ending = os.path.splitext(path)[1]
    return str(ending) if str(ending).lower() in _PACKED else ""


def within(path: str) -> str:
    """Return the name of the file in an archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _only_file(archive, path)
    except zipfile.BadZipFile:
        raise TableError(f"{path} is not a zip archive, or is damaged.") from None


def _only_file(archive: zipfile.ZipFile, path: str) -> str:
    # Without folders, hidden files and what macOS adds.
    names = [
        name
        for name in archive.namelist()
        if name[-1] != "/"
        and not any(
            part[0] == "." or part == "__MACOSX"
            for part in name.split("/")
            if part.strip(".")
        )
    ]
    if len(names) != 1:
        raise TableError(
            f"{path} contains {len(names)} files, but only one can be read: unpack it, "
            "and name the file, a folder or a pattern."
        )
    return names[0]


def _zstandard(raw: IO[bytes], path: str) -> Any:
    # All else takes the standard library alone.
    try:
        from compression import zstd  # type: ignore[import-not-found]

        return zstd.ZstdFile(raw)
    except ImportError:
        pass
    try:
        import pyarrow as pa
    except ImportError:
        problem = "is read by pyarrow, which is not installed. Unpack it first."
        raise TableError(f"{path} {problem}") from None
    return pa.CompressedInputStream(pa.PythonFile(raw, "r"), "zstd")
