"""Compressed files: gzip, bzip2, xz, Zstandard, and archives of one file.

With the standard library alone, but for Zstandard before Python 3.14.
"""

from __future__ import annotations

import gzip
import lzma
import os
import zipfile
import zlib
from os import PathLike
from typing import IO, Any

from steelyard.exceptions import TableError

DAMAGED = (gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)
"""Errors of what is not compressed, or was cut short."""

_PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip")


def packing_of(path: str | PathLike[str]) -> str:
    """Return the ending of a name that says how the file is compressed.

    Examples
    --------
    >>> packing_of("data.csv.GZ"), packing_of("data.csv")
    ('.GZ', '')
    """
    ending = os.path.splitext(path)[1]
    return str(ending) if str(ending).lower() in _PACKED else ""


def unpack(raw: IO[bytes], path: str) -> IO[bytes]:
    """Undo the compression that the name of a file tells of."""
    packed: Any = raw
    match packing_of(path).lower():
        case ".gz":
            packed = gzip.GzipFile(fileobj=raw)
        case ".bz2":
            import bz2

            packed = bz2.BZ2File(raw)
        case ".xz":
            packed = lzma.LZMAFile(raw)
        case ".zst":
            packed = _zstandard(raw, path)
        case ".zip":
            archive = zipfile.ZipFile(raw)
            packed = archive.open(_only_file(archive, path))
    return packed


def within(path: str) -> str:
    """Return the name of the file in an archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _only_file(archive, path)
    except zipfile.BadZipFile:
        raise TableError(f"{path} is not a zip archive, or is damaged.") from None


def _only_file(archive: zipfile.ZipFile, path: str) -> str:
    # What macOS adds is no file of anybody.
    names = [n for n in archive.namelist() if n[-1] != "/" and "__MACOSX" not in n]
    if len(names) != 1:
        raise TableError(
            f"{path} holds {len(names)} files, of which one is read: unpack it, and "
            "name the file, a folder or a pattern."
        )
    return names[0]


def _zstandard(raw: IO[bytes], path: str) -> Any:
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
