"""Files to tables: CSV, TSV, Parquet and ARFF, from a disk or standard input."""

from __future__ import annotations

import argparse
import csv
import difflib
import gzip
import io
import re
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from steelyard.cli.options import names_of
from steelyard.cli.output import note
from steelyard.exceptions import ColumnError, TableError
from steelyard.experiments.data.kinds import (
    NO_NUMBER,
    as_numbers,
    as_text,
    conform,
    is_boolean,
    numbers_if_all_are,
)

if TYPE_CHECKING:
    import pandas

__all__ = ["Source", "find_column", "read_chunks", "read_table"]

_EXTENSIONS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arff": "arff",
}
_COMPRESSED = (".csv", ".tsv", ".tab", ".arff")


@dataclass(frozen=True)
class Source:
    """A file, or standard input as ``-``, and how it is read."""

    path: str
    kind: str
    separator: str = ","
    encoding: str = "utf-8"
    missing: tuple[str, ...] = ()

    @classmethod
    def of(cls, path: str, arguments: argparse.Namespace) -> Source:
        """Take the options of a command for a file."""
        kind = arguments.format or _kind_of(path)
        separator = arguments.separator
        if separator is None:
            separator = "\t" if kind == "tsv" else ","
        separator = {"\\t": "\t", "tab": "\t"}.get(separator, separator)
        if len(separator) != 1:
            raise ValueError(f"The separator must be one character. Got {separator!r}.")
        if path != "-" and not Path(path).is_file():
            problem = "is a folder" if Path(path).is_dir() else "is not there"
            raise FileNotFoundError(f"The file {path} {problem}.")
        missing = tuple(names_of(arguments.missing_values))
        return cls(path, kind, separator, arguments.encoding, missing)

    @property
    def name(self) -> str:
        """How messages call it."""
        return "standard input" if self.path == "-" else self.path

    @property
    def is_text(self) -> bool:
        """Whether its cells are separated text."""
        return self.kind in ("csv", "tsv")

    def open_bytes(self) -> IO[bytes]:
        """Open it, and undo compression."""
        if self.path == "-":
            return sys.stdin.buffer
        if self.path.endswith(".gz"):
            return gzip.open(self.path, "rb")  # type: ignore[return-value]
        return open(self.path, "rb")


def read_table(
    source: Source, text: Sequence[str] = (), numbers: Sequence[str] = ()
) -> pandas.DataFrame:
    """Read a whole table, and find out which columns hold numbers.

    Parameters
    ----------
    source : Source
        The file.
    text, numbers : list of str
        Columns whose cells are names or numbers, whatever they look like.

    Returns
    -------
    DataFrame
        Numbers, and text as it is written.
    """
    with _clear_errors(source):
        if source.is_text:
            frame = _read_csv(source, text)
        elif source.kind == "parquet":
            frame = _parquet(source).read().to_pandas()
        else:
            frame = _read_arff(source)
    _check_names(list(frame.columns), source)
    if not len(frame):
        raise TableError(f"{source.name} has column names and no rows.")
    for name in text:
        find_column(name, frame.columns, source.name)
        frame[name] = as_text(frame[name])
    for name in numbers:
        find_column(name, frame.columns, source.name)
        frame[name] = as_numbers(frame[name], name, source.name, 0)
    return frame


def read_chunks(
    source: Source,
    expected: Mapping[str, str],
    also: Sequence[str] = (),
    rows: int = 20_000,
) -> Iterator[tuple[pandas.DataFrame, list[str]]]:
    """Read a table some rows at a time, as a model expects it.

    Parameters
    ----------
    source : Source
        The file. ARFF files are read whole.
    expected : mapping of str to str
        For each column of the model what its cells hold: numbers, text or booleans.
    also : list of str
        Further columns to read, as text.
    rows : int, default=20000
        Rows of a chunk.

    Yields
    ------
    frame : DataFrame
        The columns of ``expected`` and ``also``.
    extra : list of str
        Columns of the file that are in neither.
    """
    seen = 0
    with _clear_errors(source):
        for frame, names in _raw_chunks(source, expected, also, rows):
            if not len(frame):
                continue
            for name, cells in expected.items():
                frame[name] = conform(frame[name], name, cells, source.name, seen)
            for name in also:
                if name not in expected:
                    frame[name] = as_text(frame[name])
            seen += len(frame)
            wanted = {*expected, *also}
            yield frame, [name for name in names if name not in wanted]
    if not seen:
        raise TableError(f"{source.name} has column names and no rows.")


def find_column(name: str, columns: Iterable[Any], where: str) -> str:
    """Return a name if there is such a column, else say which is nearest."""
    known = [str(column) for column in columns]
    if name in known:
        return name
    close = difflib.get_close_matches(name, known, 1, 0.0)
    nearest = f" The nearest is {close[0]!r}." if close else ""
    shown = ", ".join(known[:8]) + (", …" if len(known) > 8 else "")
    hint = ""
    if len(known) == 1 and any(mark in known[0] for mark in ";\t|,"):
        hint = " If its cells are separated otherwise, say so with --separator."
    raise ColumnError(
        f"{where} has no column {name!r}.{nearest} Columns: {shown}.{hint}"
    )


# -------------------------------------------------------------------------------- files


def _kind_of(path: str) -> str:
    if path == "-":
        return "csv"
    lower = path.lower()
    plain = lower.removesuffix(".gz")
    suffix = Path(plain).suffix
    if suffix in _EXTENSIONS and (plain == lower or suffix in _COMPRESSED):
        return _EXTENSIONS[suffix]
    raise ValueError(
        f"The file {path} has no known extension. Known: {', '.join(_EXTENSIONS)}, "
        "and .csv.gz, .tsv.gz, .arff.gz. Say what it is with --format."
    )


@contextmanager
def _clear_errors(source: Source) -> Iterator[None]:
    """Say what is wrong with a file in terms of the file."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise TableError(
            f"{source.name} is not {source.encoding} text (byte {error.start}, "
            f"0x{error.object[error.start]:02x}). Say how it is encoded, for example "
            "with --encoding latin-1, or convert it to UTF-8."
        ) from None
    except LookupError as error:
        if isinstance(error, KeyError):
            raise
        raise ValueError(f"There is no encoding {source.encoding!r}.") from None
    except gzip.BadGzipFile:
        raise TableError(f"{source.name} is not compressed by gzip.") from None
    except EOFError:
        raise TableError(f"{source.name} was cut short.") from None


def _check_names(names: Sequence[Any], source: Source) -> None:
    seen: set[str] = set()
    for name in map(str, names):
        if name in seen:
            raise ColumnError(
                f"{source.name} has two columns named {name!r}. Rename one of them."
            )
        seen.add(name)


def _parquet(source: Source) -> Any:
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    # Parquet is read from its end: standard input has to be kept.
    data = io.BytesIO(sys.stdin.buffer.read()) if source.path == "-" else source.path
    try:
        file = ParquetFile(data)
    except ArrowException as error:
        raise TableError(f"{source.name} is not a Parquet file: {error}") from None
    _check_names(file.schema_arrow.names, source)
    return file


def _read_arff(source: Source) -> pandas.DataFrame:
    from steelyard.experiments.data.arff import read_arff

    if source.path != "-":
        data = read_arff(source.path, source.encoding)
    else:
        with tempfile.TemporaryDirectory(prefix="steelyard-") as folder:
            path = Path(folder) / "standard input.arff"
            path.write_bytes(sys.stdin.buffer.read())
            data = read_arff(path, source.encoding)
    if data.weights is not None:
        note(f"{source.name}: the weights that its rows state are not used")
    return data.to_pandas()


# ---------------------------------------------------------------------- separated text


def _open_text(source: Source, stream: IO[bytes]) -> tuple[io.TextIOWrapper, list[str]]:
    """Read the names at the head of a file; the stream goes on after them."""
    # A mark of byte order at the start is no part of the first name.
    plain = source.encoding.lower().replace("_", "-") in ("utf-8", "utf8")
    encoding = "utf-8-sig" if plain else source.encoding
    text = io.TextIOWrapper(stream, encoding=encoding, newline="")
    try:
        header = next(csv.reader(iter(text), delimiter=source.separator), None)
    except csv.Error as error:
        raise TableError(f"{source.name} is not separated text: {error}.") from None
    if header is None or not any(header):
        raise TableError(
            f"{source.name} is empty. Its first line must hold the names of columns."
        )
    if "\0" in "".join(header):
        raise TableError(f"{source.name} is not text: it holds zero bytes.")
    header = [name.strip() for name in header]
    _check_names([name for name in header if name], source)
    return text, header


def _kept(header: Sequence[str], source: Source) -> list[str]:
    """Return the columns that have a name, and mention the others."""
    kept = [name for name in header if name]
    if len(kept) < len(header):
        places = [str(k) for k, name in enumerate(header, 1) if not name]
        note(f"{source.name}: left out, for want of a name: column {', '.join(places)}")
    return kept


def _parse(text: IO[str], header: list[str], source: Source, **options: Any) -> Any:
    import pandas as pd

    names = [name or f"\0{k}" for k, name in enumerate(header)]
    return pd.read_csv(
        text,
        sep=source.separator,
        header=None,
        names=names,
        index_col=False,
        keep_default_na=False,
        skipinitialspace=True,
        low_memory=False,
        **options,
    )


@contextmanager
def _clear_lines(source: Source) -> Iterator[None]:
    """Say in which line of the file there are too many cells."""
    from pandas.errors import EmptyDataError, ParserError, ParserWarning

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", ParserWarning)
            yield
    except ParserWarning:
        raise TableError(
            f"{source.name} has more cells in its rows than names in its first line."
        ) from None
    except EmptyDataError:
        raise TableError(f"{source.name} has column names and no rows.") from None
    except ParserError as error:
        found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
        if found is None:
            text = " ".join(str(error).split())
            raise TableError(f"{source.name} cannot be read: {text}") from None
        expected, line, saw = map(int, found.groups())
        # pandas did not see the line of names.
        raise TableError(
            f"{source.name} has {saw} cells in line {line + 1}, and {expected} columns."
        ) from None


def _read_csv(source: Source, text: Sequence[str]) -> pandas.DataFrame:
    data = source.open_bytes()
    if source.path == "-":
        # Columns of booleans are read twice.
        data = io.BytesIO(data.read())
    with data, _clear_lines(source):
        stream, header = _open_text(source, data)
        kept = _kept(header, source)
        empty = ["", *source.missing]
        types = {name: str for name in text if name in kept}
        frame = _parse(stream, header, source, dtype=types, na_values=empty)
        booleans = [name for name in kept if is_boolean(frame[name])]
        if booleans:
            # As text, cells keep their spelling: "TRUE" is not "True".
            # Detached, since a stream that is given up closes what it reads from.
            stream.detach()
            data.seek(0)
            stream, header = _open_text(source, data)
            again = _parse(stream, header, source, dtype=str, na_values=empty)
            frame[booleans] = again[booleans]
    for name in kept:
        if name not in types:
            frame[name] = numbers_if_all_are(frame[name])
    return frame[kept]


# ------------------------------------------------------------------- as a model expects


def _raw_chunks(
    source: Source, expected: Mapping[str, str], also: Sequence[str], rows: int
) -> Iterator[tuple[pandas.DataFrame, list[str]]]:
    wanted = list(dict.fromkeys([*expected, *also]))
    if source.kind == "parquet":
        file = _parquet(source)
        names = file.schema_arrow.names
        _check_lacking(expected, also, names, source)
        for batch in file.iter_batches(batch_size=rows, columns=wanted):
            yield batch.to_pandas(), names
        return
    if source.kind == "arff":
        frame = _read_arff(source)
        _check_names(list(frame.columns), source)
        _check_lacking(expected, also, list(frame.columns), source)
        yield frame[wanted].copy(), list(frame.columns)
        return
    with source.open_bytes() as data:
        text, header = _open_text(source, data)
        _check_lacking(expected, also, header, source)
        names = [name for name in header if name]
        numeric = [name for name in wanted if expected.get(name) == "numbers"]
        empty = ["", *source.missing]
        missing = {name: [*empty, *NO_NUMBER] for name in numeric}
        with _clear_lines(source):
            chunks = _parse(
                text,
                header,
                source,
                dtype={name: str for name in names if name not in missing},
                na_values={**{name: empty for name in wanted}, **missing},
                chunksize=rows,
            )
        while True:
            # Around each step: a generator must not hold changed filters of warnings.
            with _clear_lines(source):
                chunk = next(chunks, None)
            if chunk is None:
                return
            yield chunk[wanted], names


def _check_lacking(
    expected: Mapping[str, str],
    also: Sequence[str],
    names: Sequence[str],
    source: Source,
) -> None:
    lacking = [name for name in expected if name not in names]
    if len(lacking) > 1:
        shown = ", ".join(map(repr, lacking[:5]))
        more = f" and {len(lacking) - 5} more" if len(lacking) > 5 else ""
        raise ColumnError(
            f"{source.name} lacks {len(lacking)} columns that the model needs: "
            f"{shown}{more}."
        )
    for name in (*lacking, *also):
        find_column(name, names, source.name)
