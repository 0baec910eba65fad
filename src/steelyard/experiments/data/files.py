"""Files to tables: CSV, Parquet, ARFF and others, from a disk or standard input."""

from __future__ import annotations

import csv
import gzip
import io
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from steelyard._common.text import listed
from steelyard.exceptions import ColumnError, ParameterError, TableError
from steelyard.experiments.data import formats, kinds, numbers
from steelyard.experiments.data.source import Source, find_column

if TYPE_CHECKING:
    import pandas

_WRONG_COUNT = re.compile(r"Expected (\d+) fields in line (\d+), saw (\d+)")


def read_table(
    source: Source, categorical: Sequence[str] = (), numeric: Sequence[str] = ()
) -> pandas.DataFrame:
    """Read a whole table: numbers where columns hold numbers, text as it is written.

    Cells of `categorical` and `numeric` columns are names or numbers, whatever they
    look like.
    """
    with _clear_errors(source):
        match source.format:
            case "parquet":
                frame = _open_parquet(source).read().to_pandas()
            case "csv" | "tsv":
                frame = _read_csv(source, categorical)
            case _:
                frame = _read_whole(source)
    _check_names(list(frame.columns), source)
    if not len(frame):
        raise TableError(f"{source.name} has column names and no rows.")
    for name in (*categorical, *numeric):
        find_column(name, frame.columns, source.name)
    for name in frame.columns:
        frame[name] = kinds.dates_as_text(frame[name], name, source)
        if name in categorical:
            frame[name] = kinds.as_text(frame[name])
        elif name in numeric:
            frame[name] = kinds.as_numbers(frame[name], name, source, 0)
        elif source.is_text:
            frame[name] = kinds.numbers_if_nearly_all_are(frame[name], name, source)
    return frame


def read_chunks(
    source: Source,
    expected: Mapping[str, str],
    also: Sequence[str] = (),
    rows: int = 20_000,
) -> Iterator[tuple[pandas.DataFrame, list[str]]]:
    """Yield chunks of a table, as a model expects it, and names of unused columns.

    `expected` says of each column of the model whether it holds numbers, text or
    booleans; columns of `also` are read as text. Files but CSV and Parquet are read
    whole.
    """
    cells = {**dict.fromkeys(also, "text"), **expected}
    wrong: dict[str, Counter[str]] = {name: Counter() for name in expected}
    chunks = _raw_chunks(source, expected, also, rows)
    n_read = 0
    while True:
        # Around each step: a generator must not hold changed filters of warnings.
        with _clear_errors(source):
            frame, names = next(chunks, (None, []))
        if frame is None:
            break
        if len(frame):
            for name, kind in cells.items():
                frame[name] = kinds.conform(
                    frame[name], name, kind, source, n_read, wrong.get(name)
                )
            n_read += len(frame)
            yield frame, [name for name in names if name not in cells]
    if not n_read:
        raise TableError(f"{source.name} has column names and no rows.")
    for name, texts in wrong.items():
        if texts:
            source.notes.append(numbers.exceptions(name, texts))


# ------------------------------------------------------------------------------- errors


@contextmanager
def _clear_errors(source: Source) -> Iterator[None]:
    """Say what is wrong with a file in terms of the file."""
    from pandas.errors import EmptyDataError, ParserError, ParserWarning

    problems: dict[type[Exception], str] = {
        gzip.BadGzipFile: "is not compressed by gzip.",
        EOFError: "was cut short.",
        ParserWarning: "has more cells in its rows than names in its first line.",
        EmptyDataError: "has column names and no rows.",
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", ParserWarning)
            yield
    except UnicodeDecodeError as error:
        raise TableError(
            f"{source.name} is not {source.spelling.encoding} text (byte "
            f"{error.start}, 0x{error.object[error.start]:02x}). Say how it is "
            "encoded with `encoding`, for example latin-1, or convert it to UTF-8."
        ) from None
    except KeyError:
        raise
    except LookupError:
        raise ParameterError(
            f"There is no encoding {source.spelling.encoding!r}."
        ) from None
    except tuple(problems) as error:
        raise TableError(f"{source.name} {problems[type(error)]}") from None
    except ParserError as error:
        problem = f"cannot be read: {' '.join(str(error).split())}"
        if counts := _WRONG_COUNT.search(problem):
            expected, line, saw = map(int, counts.groups())
            # pandas did not see the line of names.
            problem = f"has {saw} cells in line {line + 1}, and {expected} columns."
        raise TableError(f"{source.name} {problem}") from None


def _check_names(names: Sequence[Any], source: Source) -> None:
    for name, count in Counter(map(str, names)).items():
        if count > 1:
            problem = f"has two columns named {name!r}. Rename one of them."
            raise ColumnError(f"{source.name} {problem}")


def _check_lacking(
    expected: Iterable[str], also: Sequence[str], names: Sequence[str], source: Source
) -> None:
    lacking = [name for name in expected if name not in names]
    if len(lacking) > 1:
        raise ColumnError(
            f"{source.name} lacks {len(lacking)} columns that the model needs: "
            f"{listed(map(repr, lacking), 5)}."
        )
    for name in (*lacking, *also):
        find_column(name, names, source.name)


# ----------------------------------------------------------------------------- formats


def _open_parquet(source: Source) -> Any:
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


def _read_whole(source: Source) -> pandas.DataFrame:
    return _read_arff(source) if source.format == "arff" else formats.read_whole(source)


def _read_arff(source: Source) -> pandas.DataFrame:
    from steelyard.experiments.data.arff import parse_arff

    is_piped = source.path == "-"
    raw = sys.stdin.buffer.read() if is_piped else Path(source.path).read_bytes()
    data = parse_arff(raw, source.name, source.spelling.encoding)
    if data.weights is not None:
        problem = "the weights that its rows state are not used"
        source.notes.append(f"{source.name}: {problem}")
    frame = data.to_pandas()
    frame.attrs = {"relation": data.relation, "target": data.target_name()}
    return frame


def _open_text(source: Source, stream: IO[bytes]) -> tuple[io.TextIOWrapper, list[str]]:
    """Read the names at the head of a file; the stream goes on after them."""
    # A mark of byte order at the start is no part of the first name.
    plain = source.spelling.encoding.lower().replace("_", "-") in ("utf-8", "utf8")
    encoding = "utf-8-sig" if plain else source.spelling.encoding
    text = io.TextIOWrapper(stream, encoding=encoding, newline="")
    try:
        rows = csv.reader(
            iter(text),
            delimiter=source.spelling.separator,
            quotechar=source.spelling.quote,
            skipinitialspace=True,
        )
        header = next(rows, None)
    except csv.Error as error:
        raise TableError(f"{source.name} is not separated text: {error}.") from None
    if header is None or not any(header):
        advice = "Its first line must hold the names of columns."
        raise TableError(f"{source.name} is empty. {advice}")
    if "\0" in "".join(header):
        raise TableError(f"{source.name} is not text: it holds zero bytes.")
    header = [name.strip() for name in header]
    _check_names([name for name in header if name], source)
    return text, header


def _parse(text: IO[str], header: list[str], source: Source, **options: Any) -> Any:
    import pandas as pd

    if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1):
        # Else every third number would be wrong in its last digit.
        options["float_precision"] = "round_trip"
    return pd.read_csv(
        text,
        sep=source.spelling.separator,
        decimal=source.spelling.decimal,
        quotechar=source.spelling.quote,
        header=None,
        names=[name or f"\0{k}" for k, name in enumerate(header)],
        index_col=False,
        keep_default_na=False,
        skipinitialspace=True,
        low_memory=False,
        **options,
    )


def _read_csv(source: Source, categorical: Sequence[str]) -> pandas.DataFrame:
    from pandas.api.types import infer_dtype

    data = source.open_bytes()
    if source.path == "-":
        # Columns of booleans are read twice.
        data = io.BytesIO(data.read())

    def parse(types: Any) -> tuple[pandas.DataFrame, list[str]]:
        data.seek(0)
        stream, header = _open_text(source, data)
        frame = _parse(stream, header, source, dtype=types, na_values=source.empty)
        # Detached, since a stream that is given up closes what it reads from.
        stream.detach()
        return frame, header

    with data:
        frame, header = parse(dict.fromkeys(categorical, str))
        kept = [name for name in header if name]
        booleans = [name for name in kept if infer_dtype(frame[name]) == "boolean"]
        if booleans:
            # As text, cells keep their spelling: "TRUE" is not "True".
            frame[booleans] = parse(str)[0][booleans]
    if len(kept) < len(header):
        places = ", ".join(str(k) for k, name in enumerate(header, 1) if not name)
        problem = f"left out, for want of a name: column {places}"
        source.notes.append(f"{source.name}: {problem}")
    return frame[kept]


def _raw_chunks(
    source: Source, expected: Mapping[str, str], also: Sequence[str], rows: int
) -> Iterator[tuple[Any, list[str]]]:
    """Yield the columns that are wanted as they are stored, and names of all."""
    wanted = list(dict.fromkeys([*expected, *also]))
    if source.format == "parquet":
        file = _open_parquet(source)
        names = file.schema_arrow.names
        _check_lacking(expected, also, names, source)
        for batch in file.iter_batches(batch_size=rows, columns=wanted):
            yield batch.to_pandas(), names
        return
    if not source.is_text:
        frame = _read_whole(source)
        _check_lacking(expected, also, list(frame.columns), source)
        yield frame[wanted].copy(), list(frame.columns)
        return
    with source.open_bytes() as data:
        text, header = _open_text(source, data)
        _check_lacking(expected, also, header, source)
        is_number = {name for name in wanted if expected.get(name) == "numbers"}
        types = {name: str for name in header if name and name not in is_number}
        options = {"dtype": types, "na_values": source.empty, "chunksize": rows}
        for chunk in _parse(text, header, source, **options):
            yield chunk[wanted].copy(), list(filter(None, header))
