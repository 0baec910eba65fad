"""Where a table comes from: a file or standard input, and how it is read."""

from __future__ import annotations

import contextlib
import difflib
import gzip
import io
import sys
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from pathlib import Path
from typing import IO, Any

from steelyard._common.missing import MISSING_VALUES
from steelyard._common.spelling import HEAD, Spelling, find_encoding, find_spelling
from steelyard._common.text import did_you_mean, listed
from steelyard.exceptions import ColumnError, ParameterError

FORMATS = ("csv", "tsv", "parquet", "arff", "arrow", "xlsx", "sav", "dta")

_EXTENSIONS = {
    ".arff": "arff",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".xlsx": "xlsx",
    ".sav": "sav",
    ".dta": "dta",
}


@dataclass(frozen=True)
class Source:
    """A file, or standard input as ``-``, and how it is read."""

    path: str
    format: str
    spelling: Spelling = field(default_factory=Spelling)
    thousands: str = ""
    """The mark of thousands; empty for any, ``"none"`` for none."""

    missing_values: tuple[str, ...] = MISSING_VALUES
    """Cells that stand for a missing value, besides empty ones."""

    notes: list[str] = field(default_factory=list, compare=False)
    """What was decided and left out when it was read, a sentence each."""

    head: bytes = field(default=b"", compare=False, repr=False)
    """What was read of standard input to find out how it is written."""

    handles: list[IO[bytes]] = field(default_factory=list, compare=False, repr=False)
    """The file that was opened last."""

    @classmethod
    def of(
        cls,
        path: str | PathLike[str],
        *,
        format: str | None = None,
        separator: str | None = None,
        decimal: str | None = None,
        thousands: str | None = None,
        encoding: str | None = None,
        missing_values: Sequence[str] | None = None,
    ) -> Source:
        """Find out how a file is read, as far as it is not said.

        The format is known by the extension, and CSV for standard input. Encoding,
        separator and decimal mark are found out from the text.
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
        marks = _marks(separator=separator, decimal=decimal, thousands=thousands)
        thousands = marks.pop("thousands") or ""
        missing = MISSING_VALUES if missing_values is None else tuple(missing_values)
        source = cls(path, format, Spelling(), thousands, missing)
        return source._with_spelling(encoding, **marks)

    def _with_spelling(
        self, encoding: str | None, separator: str | None, decimal: str | None
    ) -> Source:
        """Return it with what its first lines tell, and a note where that matters."""
        if not self.is_text:
            return replace(self, spelling=Spelling(encoding=encoding or "utf-8"))
        head, found = self._look()
        usual = "\t" if self.format == "tsv" else ","
        try:
            spelling = find_spelling(head, encoding or found, separator, decimal, usual)
        except LookupError:
            raise ParameterError(f"There is no encoding {encoding!r}.") from None
        is_known = separator is not None or spelling.separator == usual
        news = Spelling(
            "," if is_known else spelling.separator,
            spelling.decimal if decimal is None else ".",
            spelling.encoding if encoding is None else "utf-8",
            spelling.quote,
        )
        if words := news.in_words():
            self.notes.append(f"{self.name}: {words}")
        return replace(self, spelling=spelling, head=head)

    def _look(self) -> tuple[bytes, str]:
        """Return the first bytes, and the encoding."""
        if self.path == "-":
            head = sys.stdin.buffer.read(HEAD)
            return head, find_encoding(head)
        # What is wrong with a file is said where it is read.
        with contextlib.suppress(OSError, EOFError, zlib.error):
            with self.open_bytes() as data:
                head = data.read(HEAD)
                return head, find_encoding(head, data)
        return b"", "utf-8"

    @property
    def name(self) -> str:
        """How messages call it."""
        return "standard input" if self.path == "-" else self.path

    @property
    def is_text(self) -> bool:
        """Whether the kinds of its columns are known from their cells alone."""
        return self.format in ("csv", "tsv")

    @property
    def empty(self) -> list[str]:
        """Cells that are missing in every column."""
        return ["", *self.missing_values]

    def open_bytes(self) -> IO[bytes]:
        """Open it, and undo compression."""
        if self.path == "-":
            return io.BufferedReader(_Rejoined(self.head, sys.stdin.buffer))
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


class _Rejoined(io.RawIOBase):
    """A stream of which the head was read already."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self._head, self._rest = head, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self._head[: len(buffer)] or self._rest.read(len(buffer))
        self._head = self._head[len(part) :]
        buffer[: len(part)] = part
        return len(part)


def _marks(**marks: str | None) -> dict[str, str | None]:
    """Return marks by the names of options; ``tab`` and ``none`` are words for some."""
    words = {"\\t": "\t", "tab": "\t", "comma": ",", "point": ".", "space": " "}
    for option, mark in marks.items():
        marks[option] = mark = words.get(mark or "", mark)
        is_none = option == "thousands" and mark == "none"
        if mark is not None and len(mark) != 1 and not is_none:
            problem = f"`{option}` must be one character. Got {mark!r}."
            raise ParameterError(problem)
    if marks["decimal"] not in (None, ",", "."):
        problem = f"`decimal` must be , or . and not {marks['decimal']!r}."
        raise ParameterError(problem)
    if marks["decimal"] and marks["decimal"] == marks["thousands"]:
        raise ParameterError("`decimal` and `thousands` must differ.")
    return marks


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


def stem_and_format(path: str | PathLike[str]) -> tuple[str, str | None]:
    """Return the name of a file without its extension, and its format where known.

    Examples
    --------
    >>> stem_and_format("data/my.table.csv.gz"), stem_and_format("table.ods")
    (('my.table', 'csv'), ('table', None))
    """
    name = Path(path).name
    plain = name[:-3] if name.lower().endswith(".gz") else name
    stem, _, suffix = plain.rpartition(".")
    format = _EXTENSIONS.get(f".{suffix.lower()}")
    # The others are compressed inside.
    is_text = format in ("csv", "tsv", "arff")
    return stem, format if is_text or plain == name else None


def _no_file(path: Path) -> str:
    if path.is_dir():
        return f"{path} is a folder, not a file."
    if not path.parent.is_dir():
        return f"There is no file {str(path)!r}: its folder does not exist."
    beside = [file.name for file in path.parent.iterdir() if stem_and_format(file)[1]]
    return f"There is no file {str(path)!r}.{close_names(path.name, beside)}"
