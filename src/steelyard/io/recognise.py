"""Telling sources from tables in memory. Only sources load pyarrow."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from os import PathLike
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw

from steelyard._common.loading import import_optional
from steelyard.exceptions import ParameterError, TableError

if TYPE_CHECKING:
    from steelyard.io.reader import Reader
    from steelyard.io.scanning import Scan

__all__ = ["as_source", "open_files", "scan"]


def scan(
    source: Any,
    *,
    target: str | None = None,
    weight: str | None = None,
    columns: Sequence[str] | None = None,
    chunk_rows: int | None = None,
    format: str | None = None,
    separator: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    encoding: str | None = None,
    missing_values: Sequence[str] | None = None,
    skip: int | None = None,
    comment: str | None = None,
    no_header: bool = False,
    sheet: str | None = None,
    drop_missing_target: bool = False,
    work_folder: str | PathLike[str] | None = None,
) -> Scan:
    """Open files or a stream of rows that need not fit into memory.

    Nothing but metadata is read. ``clf.fit(rows)`` then reads the rows in chunks.

    Parameters
    ----------
    source : path, list of paths, lazy frame, query or iterable of frames
        Parquet, Arrow (Feather) or text files, which may be compressed (``.gz``,
        ``.bz2``, ``.xz``, ``.zst``, or ``.zip`` of one file); files of Excel, SPSS,
        Stata and Weka, and JSON, which are read whole; a folder, whose files are taken
        in the order of their names, with columns named by folders such as
        ``year=2024``; a pattern such as ``"trips/*.parquet"``; a list of these. A
        polars LazyFrame, a pyarrow Dataset, a DuckDB relation or any object with an
        Arrow stream. An iterable of frames of pandas, polars or pyarrow.
    target : str, optional
        The column of classes. It can be given to ``fit`` instead.
    weight : str, optional
        The column of row weights.
    columns : list of str, optional
        Columns to learn from, by default all but target and weight.
    chunk_rows : int, optional
        How many rows to keep at once, by default 131,072 or what fits into 32 MB.
    format : str, optional
        What the files are, by default what their extensions say: one of csv, tsv, txt,
        json, jsonl, parquet, arrow, arff, xlsx, xls, ods, sav, dta.
    separator, decimal, thousands, encoding : str, optional
        How CSV files are written, by default as the files tell.
    missing_values : list of str, optional
        Cells of CSV files that mean a missing value, besides empty ones; by
        default NA, N/A, NaN, NULL and ? among others. ``"age=-999"`` is for one column,
        of whatever kind of file, and leaves the others as they are.
    skip : int, optional
        Lines of text files, or rows of sheets, above the table. By default titles are
        found out.
    comment : str, optional
        How lines begin that are no rows, such as ``"#"``.
    no_header : bool
        Whether files have no names of columns; they are then x1, x2 and so on.
    sheet : str, optional
        The sheet of a spreadsheet, by default the first.
    drop_missing_target : bool
        Whether to leave rows without a target out; otherwise they are an error.
    work_folder : path, optional
        Where temporary files of a fit are written, by default the system's folder for
        them. They are gone after the fit, however it ends.

    Returns
    -------
    Scan
        What ``fit``, ``partial_fit`` and ``predict_chunks`` take in place of a table.

    Notes
    -----
    A CSV file has the same columns here, in ``load_dataset`` and on the command line:
    kinds of columns and the decimal mark are decided by all cells of all files. CSV
    files, queries and iterables are written once to a temporary Parquet file, which
    is read from then on. Parquet files with checksums of pages
    (``write_page_checksum=True`` of pyarrow) are checked; in others most flipped bits
    are read as other data.

    Examples
    --------
    >>> import pandas as pd, steelyard as sy
    >>> frame = pd.DataFrame({"sky": ["sun", "rain"], "play": ["yes", "no"]})
    >>> sy.scan([frame, frame], target="play")
    <scan of the iterable, target='play'>
    """
    _need_pyarrow()
    from steelyard.io.scanning import Scan

    if columns is not None and (
        isinstance(columns, str) or not all(isinstance(name, str) for name in columns)
    ):
        raise ParameterError(
            f"`columns` must be a list of names of columns. Got {columns!r}."
        )
    if chunk_rows is not None and (not isinstance(chunk_rows, int) or chunk_rows < 1):
        raise ParameterError(f"`chunk_rows` must be 1 or more. Got {chunk_rows!r}.")
    reader = _stream_reader(source)
    if reader is None:
        reader = open_files(
            source,
            format=format,
            separator=separator,
            decimal=decimal,
            thousands=thousands,
            encoding=encoding,
            missing_values=missing_values,
            skip=skip,
            comment=comment,
            no_header=no_header,
            sheet=sheet,
        )
    if reader.missing_by_column:
        from steelyard.io.kinds import Recast

        reader = Recast(reader)
    return Scan(
        reader,
        target=target,
        weight=weight,
        columns=columns,
        chunk_rows=chunk_rows,
        drop_missing_target=drop_missing_target,
        work_folder=work_folder,
    )


def as_source(
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    needs_target: bool = False,
) -> Scan | None:
    """Return a source for one use, or None if ``X`` is a table in memory.

    Close it, best by ``with``: that removes its temporary copy.
    """
    if isinstance(X, (str, PathLike)):
        raise TableError(
            f"X is a text, not a table. If it is the path of a file, write "
            f"sy.scan({str(X)!r})."
        )
    if _is_of(X, "steelyard.io.scanning", "Scan"):
        opened: Scan = X
    elif _is_stream(X):
        opened = scan(X)
    else:
        return None
    target, weight = _name(y, "y"), _name(sample_weight, "sample_weight")
    source = opened.with_roles(target, weight)
    if needs_target and source.target is None:
        raise TableError(
            "No target was given. Name its column: fit(rows, 'name'), "
            "or sy.scan(..., target='name')."
        )
    return source


def _name(value: Any, what: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise TableError(
        f"X is read in chunks, so {what} cannot be an array: give the name of a column "
        f"of X. Got {type(value).__name__}."
    )


# ------------------------------------------------------------------------ kinds


def _is_stream(X: Any) -> bool:
    """Whether an object yields rows that need not be in memory."""
    if _kind(X) is not None:
        return True
    if isinstance(X, (list, tuple)):
        return bool(X) and all(map(_is_frame, X))
    if isinstance(X, (bytes, Mapping, Set)) or _is_frame(X):
        return False
    is_array = hasattr(X, "__array__") or hasattr(X, "shape") or hasattr(X, "dtype")
    return isinstance(X, Iterable) and not is_array


def _is_frame(X: Any) -> bool:
    """Whether an object is a table or a column in memory."""
    if _is_of(X, "pyarrow", "RecordBatch"):
        return True
    try:
        frame = nw.from_native(X, allow_series=True, pass_through=True)
    except ValueError:
        # Two columns of one name, which tables in memory are refused for.
        return True
    return isinstance(frame, (nw.DataFrame, nw.Series))


def _is_of(X: Any, module: str, name: str) -> bool:
    """Whether an object is of a class, without loading its module."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(X, getattr(loaded, name))


def _kind(X: Any) -> str | None:
    if isinstance(X, nw.LazyFrame):
        X = X.to_native()
    if _is_of(X, "polars", "LazyFrame"):
        return "LazyReader"
    if _is_of(X, "pyarrow.dataset", "Dataset"):
        return "DatasetReader"
    if hasattr(X, "__arrow_c_stream__") and not _is_frame(X):
        return "ArrowReader"
    return None


def _stream_reader(source: Any) -> Reader | None:
    """Return the reader of a source other than files, None for paths."""
    is_paths = isinstance(source, (str, PathLike)) or (
        isinstance(source, (list, tuple))
        and all(isinstance(path, (str, PathLike)) for path in source)
    )
    if is_paths:
        return None
    from steelyard.io import streams

    source = nw.to_native(source, pass_through=True)
    kind = _kind(source)
    if kind is not None:
        make: Callable[[Any], Reader] = getattr(streams, kind)
        return make(source)
    if _is_frame(source):
        return streams.FrameReader([source])
    if not _is_stream(source):
        raise TableError(
            f"sy.scan takes paths of files, lazy frames, queries and iterables of "
            f"frames, not {type(source).__name__}."
        )
    return streams.FrameReader(source)


def open_files(
    source: Any,
    *,
    format: str | None = None,
    once: bool = False,
    like: Mapping[str, Any] = {},
    missing_values: Sequence[str] | None = None,
    **asked: Any,
) -> Reader:
    """Return the reader of files; see ``scan``, and ``asked_dialect`` for the options.

    ``like`` describes how the file of a model was read, for what files leave open.
    """
    _need_pyarrow()
    from steelyard.io.dialect import CsvDialect, asked_dialect, missing_words
    from steelyard.io.paths import find_column, find_files

    words, by_column = missing_words(missing_values)
    options = asked_dialect(missing_values=words, **asked)
    files = find_files(source, format, once=once)
    reader: Reader
    match files[0].format:
        case "parquet" | "arrow":
            from steelyard.io.columnar import ColumnarFiles

            reader = ColumnarFiles(files)
        case "csv" | "tsv" | "txt":
            from steelyard.io.text import TextFiles

            reader = TextFiles(files, options, like=like)
        case _:
            from steelyard.io.formats import WholeFiles

            given = {name: v for name, v in options.items() if v is not None}
            reader = WholeFiles(files, CsvDialect(**given), like)
    for name in by_column:
        find_column(name, reader.names, reader.name)
    reader.missing_by_column = {**like.get("missing_by_column", {}), **by_column}
    return reader


def _need_pyarrow() -> None:
    what = "Sources larger than memory are read by"
    import_optional("pyarrow", what, "steelyard[scale]")
