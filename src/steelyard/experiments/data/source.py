"""Where a table comes from: a file or standard input, and how it is read."""

from __future__ import annotations

import difflib
import gzip
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import IO, Any

from steelyard._common.text import did_you_mean
from steelyard.exceptions import ColumnError, ParameterError

FORMATS = ("csv", "tsv", "parquet", "arff")

_EXTENSIONS = {
    ".arff": "arff",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
}


@dataclass(frozen=True)
class Source:
    """A file, or standard input as ``-``, and how it is read."""

    path: str
    format: str
    separator: str = ","
    encoding: str = "utf-8"
    missing_values: tuple[str, ...] = ()
    """Cells that stand for a missing value, besides empty ones."""

    notes: list[str] = field(default_factory=list, compare=False)
    """What was left out when it was read, a sentence each."""

    handles: list[IO[bytes]] = field(default_factory=list, compare=False, repr=False)
    """The file that was opened last."""

    @classmethod
    def of(
        cls,
        path: str | PathLike[str],
        *,
        format: str | None = None,
        separator: str | None = None,
        encoding: str = "utf-8",
        missing_values: Sequence[str] = (),
    ) -> Source:
        """Find out how a file is read, as far as it is not said.

        The format is known by the extension, and CSV for standard input. Cells are
        separated by a comma, in TSV files by a tab.
        """
        path = fspath(path)
        if path != "-" and not Path(path).is_file():
            raise FileNotFoundError(_no_file(Path(path)))
        format = format or ("csv" if path == "-" else stem_and_format(path)[1])
        if format not in FORMATS:
            raise ParameterError(
                f"The file {path} has no known extension. Known: "
                f"{', '.join(_EXTENSIONS)}, and .csv.gz, .tsv.gz, .arff.gz. Say what "
                "it is with `format`."
            )
        if separator is None:
            separator = "\t" if format == "tsv" else ","
        separator = {"\\t": "\t", "tab": "\t"}.get(separator, separator)
        if len(separator) != 1:
            problem = f"`separator` must be one character. Got {separator!r}."
            raise ParameterError(problem)
        return cls(path, format, separator, encoding, tuple(missing_values))

    @property
    def name(self) -> str:
        """How messages call it."""
        return "standard input" if self.path == "-" else self.path

    @property
    def empty(self) -> list[str]:
        """Cells that are missing in every column."""
        return ["", *self.missing_values]

    def open_bytes(self) -> IO[bytes]:
        """Open it, and undo compression."""
        if self.path == "-":
            return sys.stdin.buffer
        if not self.path.endswith(".gz"):
            plain = open(self.path, "rb")
            self.handles[:] = [plain]
            return plain
        # Opened by its name, since it then closes the file that it reads.
        packed: Any = gzip.open(self.path, "rb")
        self.handles[:] = [packed.fileobj]
        return packed

    @property
    def n_bytes_read(self) -> int:
        """How far a text file has been read."""
        return sum(file.tell() for file in self.handles if not file.closed)


def find_column(name: str, columns: Iterable[Any], where: str) -> str:
    """Return a name if there is such a column, else say which is nearest."""
    known = [str(column) for column in columns]
    if name not in known:
        raise ColumnError(no_column(name, known, where))
    return name


def no_column(name: str, known: Sequence[str], where: str) -> str:
    """Say that there is no such column, and which is nearest."""
    nearest = did_you_mean(name, known)
    hint = ""
    if len(known) == 1 and any(mark in known[0] for mark in ";\t|,"):
        hint = " If its cells are separated otherwise, say so with `separator`."
    return f"{where} has no column {name!r}.{nearest} Columns: {listed(known)}.{hint}"


def close_names(name: str, known: Iterable[str]) -> str:
    """Return a sentence with the known names that are like another, if there are any.

    Examples
    --------
    >>> close_names("iriss", ["wine", "iris"])
    " Close: 'iris'."
    """
    close = difflib.get_close_matches(name, list(dict.fromkeys(known)), 3, 0.5)
    return f" Close: {', '.join(map(repr, close))}." if close else ""


def listed(names: Iterable[Any], most: int = 8) -> str:
    """Return the first few names.

    Examples
    --------
    >>> listed("abc"), listed("abc", 2)
    ('a, b, c', 'a, b, …')
    """
    texts = [str(name) for name in names]
    return ", ".join(texts[:most]) + (", …" if len(texts) > most else "")


def stem_and_format(path: str | PathLike[str]) -> tuple[str, str | None]:
    """Return the name of a file without its extension, and its format where known.

    Examples
    --------
    >>> stem_and_format("data/my.table.csv.gz"), stem_and_format("table.xlsx")
    (('my.table', 'csv'), ('table', None))
    """
    name = Path(path).name
    plain = name[:-3] if name.lower().endswith(".gz") else name
    stem, _, suffix = plain.rpartition(".")
    format = _EXTENSIONS.get(f".{suffix.lower()}")
    # Parquet is compressed inside.
    return stem, None if format == "parquet" and plain != name else format


def _no_file(path: Path) -> str:
    if path.is_dir():
        return f"{path} is a folder, not a file."
    if not path.parent.is_dir():
        return f"There is no file {str(path)!r}: its folder does not exist."
    beside = [file.name for file in path.parent.iterdir() if stem_and_format(file)[1]]
    return f"There is no file {str(path)!r}.{close_names(path.name, beside)}"
