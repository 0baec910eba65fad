"""Lazy frames, data sets, queries, Arrow streams and iterables of frames."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa

from steelyard.exceptions import ColumnError, TableError
from steelyard.io.chunks import Chunk, Place
from steelyard.io.paths import check_distinct
from steelyard.io.reader import Reader, check_names_of, plain


class _Stream(Reader):
    """Tables that come one after the other, of one type each column."""

    is_cheap = False

    def read(self, names: Sequence[str], max_rows: int) -> Iterator[Chunk]:
        row = 0
        for frame in self._frames(list(names), max_rows):
            cells = as_arrow(frame, self.name).select(list(names))
            yield Chunk(cells, [(0, Place(self.name, None, row))])
            row += cells.num_rows

    @abstractmethod
    def _frames(self, names: list[str], max_rows: int) -> Iterator[Any]:
        """Yield tables or batches of some columns, or of all."""


class DatasetReader(_Stream):
    """A pyarrow Dataset, read fragment by fragment."""

    name = "the data set"
    reads_ahead = True

    def __init__(self, dataset: Any) -> None:
        self._dataset, self.names = dataset, list(dataset.schema.names)
        format = getattr(getattr(dataset, "format", None), "default_extname", "")
        self.is_cheap = format in ("parquet", "ipc")
        self._is_parquet = format == "parquet"

    def _frames(self, names: list[str], max_rows: int) -> Iterator[Any]:
        import pyarrow.dataset as ds

        options: dict[str, Any] = {}
        if self._is_parquet:
            options["fragment_scan_options"] = ds.ParquetFragmentScanOptions(
                pre_buffer=False, page_checksum_verification=True
            )
        batches = self._dataset.to_batches(
            columns=names,
            batch_size=max_rows,
            batch_readahead=2,
            fragment_readahead=1,
            **options,
        )
        try:
            yield from batches
        except (pa.ArrowInvalid, OSError) as error:
            raise TableError(f"The data set cannot be read: {error}") from None


class LazyReader(_Stream):
    """A polars LazyFrame, whose query runs once."""

    name = "the lazy frame"

    def __init__(self, frame: Any) -> None:
        if not hasattr(frame, "collect_batches"):
            raise TableError(
                "A lazy frame is read in batches, which this release of polars cannot "
                "do. Install polars 1.34 or later, or give the files to sy.scan."
            )
        self._frame = frame
        # An empty frame shows whether all types can be converted.
        self.names = as_arrow(frame.collect_schema().to_frame(), self.name).column_names

    def _frames(self, names: list[str], max_rows: int) -> Iterator[Any]:
        chosen = self._frame.select(names)
        return chosen.collect_batches(chunk_size=max_rows, maintain_order=True)


class ArrowReader(_Stream):
    """Anything with an Arrow stream: queries of DuckDB, readers, other libraries."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.is_repeatable = not isinstance(stream, pa.RecordBatchReader)
        self.name = "the query" if self.is_repeatable else "the stream"
        # A query starts when it is opened, so the first reading goes on from here.
        self._opened: Any = _open(stream)
        self.names = list(self._opened.schema.names)

    def _frames(self, names: list[str], max_rows: int) -> Iterator[Any]:
        opened, self._opened = self._opened, None
        return iter(_open(_again(self, self._stream)) if opened is None else opened)


class FrameReader(Reader):
    """An iterable of frames: a list, a generator, a class with ``__iter__``."""

    is_cheap = False
    name = "the iterable"

    def __init__(self, frames: Iterable[Any]) -> None:
        iterator = iter(frames)
        self._frames, self.is_repeatable = frames, iterator is not frames
        try:
            first = as_arrow(next(iterator), _chunk(0))
        except StopIteration:
            raise TableError("The iterable of frames is empty.") from None
        # The first reading goes on from here.
        self._opened: Iterator[Any] | None = chain([first], iterator)
        self.names = list(first.column_names)
        self._wanted: Sequence[str] | None = None

    def check_names(self, wanted: Sequence[str] | None) -> None:
        """Set the columns that every frame must have, None for those of the first."""
        self._wanted = wanted

    def read(self, names: Sequence[str], max_rows: int) -> Iterator[Chunk]:
        """Yield some columns of all frames."""
        frames, self._opened = self._opened, None
        if frames is None:
            frames = iter(_again(self, self._frames))
        for k, frame in enumerate(frames):
            cells = as_arrow(frame, _chunk(k))
            columns = [(_chunk(0), self.names), (_chunk(k), cells.column_names)]
            check_names_of(columns, self._wanted)
            yield Chunk(cells.select(list(names)), [(0, Place(_chunk(k)))])


def _again(reader: Reader, source: Any) -> Any:
    """Return a source to be read again, or refuse to."""
    if not reader.is_repeatable:
        raise TableError(
            f"The rows of {reader.name} were read before, and cannot be read again. "
            "Make a new one, or write the rows to a file and give that to sy.scan."
        )
    return source


def as_arrow(frame: Any, where: str) -> pa.Table:
    """Convert a frame of any library to a table of types that files can hold."""
    try:
        cells = _as_arrow(frame)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise ColumnError(
            f"{where} holds a column with cells of different types: "
            f"{' '.join(map(str, error.args))}"
        ) from None
    if cells is None:
        raise TableError(
            f"{where} is not a frame with names of columns but "
            f"{type(frame).__name__}. Yield frames of pandas, polars or pyarrow."
        )
    check_distinct(cells.column_names, where)
    for k, field in enumerate(cells.schema):
        if (kind := plain(field.type)) != field.type:
            cells = cells.set_column(k, field.name, cells.column(k).cast(kind))
    return cells.replace_schema_metadata(None)


def _as_arrow(frame: Any) -> pa.Table | None:
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    if isinstance(frame, pa.Table):
        return frame
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if pandas is not None and isinstance(frame, pandas.DataFrame):
        return pa.Table.from_pandas(frame, preserve_index=False)
    if polars is not None and isinstance(frame, polars.DataFrame):
        # A Categorical declares nothing, as in a table in memory.
        texts = polars.col(polars.Categorical).cast(polars.String)
        cells = frame.with_columns(texts).to_arrow()
        for name in frame.select(polars.selectors.enum()).columns:
            cells = _with_order(cells, name)
        return cells
    if hasattr(frame, "__arrow_c_stream__") and not isinstance(frame, Mapping):
        return _open(frame).read_all()
    return None


def _with_order(cells: pa.Table, name: str) -> pa.Table:
    """Mark the values of a dictionary as ordered, as those of an enum are."""
    column = cells.column(name)
    kind = pa.dictionary(column.type.index_type, column.type.value_type, True)
    chunks = [
        pa.DictionaryArray.from_arrays(c.indices, c.dictionary, ordered=True)
        for c in column.chunks
    ]
    place = cells.column_names.index(name)
    return cells.set_column(place, name, pa.chunked_array(chunks, kind))


def _open(stream: Any) -> Any:
    if isinstance(stream, pa.RecordBatchReader):
        return stream
    return pa.RecordBatchReader.from_stream(stream)


def _chunk(k: int) -> str:
    return f"chunk {k + 1} of the iterable"
