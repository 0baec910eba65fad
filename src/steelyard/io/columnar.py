"""Parquet and Arrow files: types and sizes from metadata, cells chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import accumulate
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pyarrow.types as pt

from steelyard.exceptions import TableError
from steelyard.io.chunks import MAX_BYTES, Chunk, Place, Places, places_between
from steelyard.io.paths import File, check_distinct
from steelyard.io.reader import Reader, conform, join_types

_DAMAGED = (pa.ArrowException, OSError)
# A guess at the bytes of a text, which only sizes of chunks depend on.
_TEXT_BYTES = 32


@dataclass(frozen=True)
class Contents:
    """Schema and row groups of one file, from its metadata."""

    file: File
    stored: pa.Schema
    groups: list[int]
    """Rows of each row group; of an Arrow file the rows of all batches."""

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns that are read: nested values and the index of pandas are not."""
        about = self.stored.pandas_metadata or {}
        index = [name for name in about.get("index_columns", ()) if type(name) is str]
        fields = [f for f in self.stored if not pt.is_nested(f.type)]
        return pa.schema([field for field in fields if field.name not in index])

    @property
    def nested(self) -> list[str]:
        """Columns of lists or other nested values."""
        return [field.name for field in self.stored if pt.is_nested(field.type)]

    @property
    def n_rows(self) -> int:
        """How many rows the file has."""
        return sum(self.groups)


class ColumnarFiles(Reader):
    """Parquet and Arrow files, read one row group at a time."""

    reads_ahead = True

    def __init__(self, files: Sequence[File]) -> None:
        self._contents = [_look_into(file) for file in files]
        first = self._contents[0]
        self.columns = [(each.file.name, each.schema.names) for each in self._contents]
        self.keys = types_of_keys(files, first.schema.names)
        self.name = first.file.name if len(files) == 1 else f"{len(files)} files"
        self.names = [*first.schema.names, *self.keys]
        self.n_rows = sum(contents.n_rows for contents in self._contents)
        self.n_bytes = sum(file.size for file in files)
        nested = dict.fromkeys(n for each in self._contents for n in each.nested)
        self.notes = [f"{name}: nested values, dropped" for name in nested]

    def _type(self, name: str) -> pa.DataType:
        """Return a type for the cells of a column in all files."""
        if name in self.keys:
            return self.keys[name]
        kinds = [each.schema.field(name).type for each in self._contents]
        return join_types(
            name, list(dict.fromkeys(kinds)), partial(self._example, name)
        )

    def _example(self, name: str, kind: pa.DataType) -> tuple[Any, str] | None:
        """Return a cell of a column with some type, and the file that has it."""
        for contents in self._contents:
            if contents.schema.field(name).type == kind:
                for chunk in _read_file(contents, [name], 2**16):
                    cells = chunk.column(name).drop_null()
                    if len(cells):
                        return cells[0].as_py(), contents.file.name
        return None

    def read(self, names: Sequence[str], max_rows: int) -> Iterator[Chunk]:
        """Yield some columns of all rows, file by file."""
        types = {name: self._type(name) for name in names}
        stored = [name for name in names if name not in self.keys]
        for contents in self._contents:
            contents.file.check()
            for chunk in _read_file(contents, stored, max_rows):
                cells = with_keys(chunk.cells, contents.file, self.keys, names)
                yield replace(chunk, cells=conform(cells, types, contents.file.name))


# ------------------------------------------------------------------- names of folders


def types_of_keys(
    files: Sequence[File], stored: Sequence[str]
) -> dict[str, pa.DataType]:
    """Return the types of the columns from names of folders, besides those stored."""
    return {
        key: pa.int64() if all(_is_whole(f.keys[key]) for f in files) else pa.string()
        for key in files[0].keys
        if key not in stored
    }


def _is_whole(value: str | None) -> bool:
    # Not isdigit alone, and no leading zeros: "007" is a name.
    return value is None or (
        value.isascii() and value.isdigit() and str(int(value)) == value
    )


def with_keys(
    cells: pa.Table, file: File, keys: Mapping[str, pa.DataType], names: Sequence[str]
) -> pa.Table:
    """Add the cells from the names of the file's folders."""
    for key, kind in keys.items():
        if key in names:
            cell = pa.scalar(file.keys[key], pa.string()).cast(kind)
            cells = cells.append_column(key, pa.repeat(cell, cells.num_rows))
    return cells


# ---------------------------------------------------------------------------- contents


def _look_into(file: File) -> Contents:
    try:
        contents = (_parquet if file.format == "parquet" else _arrow)(file)
    except FileNotFoundError:
        raise
    except _DAMAGED as error:
        kind = "a Parquet" if file.format == "parquet" else "an Arrow"
        raise TableError(
            f"{file.path} is damaged, was cut short or is not {kind} file: {error}"
        ) from None
    check_distinct(contents.stored.names, file.path)
    return contents


def _open_parquet(file: File) -> pq.ParquetFile:
    # With checksums of pages a flipped bit is an error; without, as in most files, it
    # mostly reads as other data.
    return pq.ParquetFile(
        file.path if file.path != "-" else file.open(),
        page_checksum_verification=True,
        pre_buffer=False,
        buffer_size=2**20,
    )


def _mapped(file: File) -> Any:
    """Map an Arrow file into memory; only the columns asked for are read."""
    return pa.memory_map(file.path) if file.path != "-" else pa.PythonFile(file.open())


def _parquet(file: File) -> Contents:
    with _open_parquet(file) as opened:
        about = opened.metadata
        groups = [about.row_group(k).num_rows for k in range(about.num_row_groups)]
        return Contents(file, opened.schema_arrow, groups)


def _arrow(file: File) -> Contents:
    with _mapped(file) as mapped:
        opened = _open_arrow(mapped, None)
        if hasattr(opened, "count_rows"):
            n_rows = opened.count_rows()
        else:
            n_rows = sum(batch.num_rows for batch in _batches(opened))
        return Contents(file, opened.schema, [n_rows])


def _open_arrow(mapped: Any, fields: list[int] | None) -> Any:
    """Open a file with an index of batches (Feather too), or else a stream."""
    options = pa.ipc.IpcReadOptions(included_fields=fields)
    try:
        return pa.ipc.open_file(mapped, options=options)
    except pa.ArrowInvalid:
        mapped.seek(0)
        return pa.ipc.open_stream(mapped, options=options)


# ------------------------------------------------------------------------------- cells


def _read_file(contents: Contents, names: list[str], max_rows: int) -> Iterator[Chunk]:
    """Yield some columns of one file."""
    read = _read_parquet if contents.file.format == "parquet" else _read_arrow
    per_row = contents.file.size / max(contents.n_rows, 1)
    for batch, places in read(contents, names, max_rows):
        n_bytes = round(per_row * batch.num_rows)
        yield Chunk(pa.Table.from_batches([batch]).select(names), places, n_bytes)


def _read_parquet(
    contents: Contents, names: list[str], max_rows: int
) -> Iterator[tuple[pa.RecordBatch, Places]]:
    path, row = contents.file.name, 0
    starts = [
        (start, Place(path, k, start))
        for k, (start, size) in enumerate(
            zip(accumulate(contents.groups, initial=0), contents.groups, strict=False)
        )
        if size
    ]
    rows = _rows_at_once(contents, names, max_rows)
    with _open_parquet(contents.file) as file:
        try:
            for batch in file.iter_batches(rows, columns=names):
                yield batch, places_between(starts, row, row + batch.num_rows)
                row += batch.num_rows
        except _DAMAGED as error:
            _refuse(file, path, names, error)
        if row != contents.n_rows:
            _refuse(file, path, names, ValueError("rows are missing"))


def _rows_at_once(contents: Contents, names: Sequence[str], max_rows: int) -> int:
    """Return how many rows are decoded at once: fewer of wide tables."""
    width = 1
    for name in names:
        kind = contents.schema.field(name).type
        kind = kind.index_type if pt.is_dictionary(kind) else kind
        width += kind.bit_width // 8 + 1 if pt.is_primitive(kind) else _TEXT_BYTES
    return max(min(max_rows, MAX_BYTES // width), 1)


def _refuse(
    file: pq.ParquetFile, path: str, names: list[str], error: Exception
) -> NoReturn:
    """Raise an error that names the row group that cannot be read."""
    for group in range(file.num_row_groups):
        try:
            file.read_row_group(group, columns=names)
        except _DAMAGED as problem:
            error = problem
            break
    raise TableError(
        f"{path} is damaged in row group {group} (of {file.num_row_groups}, counted "
        f"from 0): {' '.join(str(error).split())}. Nothing was fitted. Write the file "
        "again, or leave it out."
    ) from None


def _read_arrow(
    contents: Contents, names: list[str], max_rows: int
) -> Iterator[tuple[pa.RecordBatch, Places]]:
    path, row = contents.file.name, 0
    fields = [contents.stored.get_field_index(name) for name in names]
    with _mapped(contents.file) as mapped:
        try:
            for group, batch in enumerate(
                _batches(_open_arrow(mapped, fields or None))
            ):
                # A damaged offset would make the process read beyond a buffer.
                batch.validate(full=True)
                yield batch, [(0, Place(path, group, row))]
                row += batch.num_rows
        except _DAMAGED as error:
            raise TableError(
                f"{path} is damaged after row {row}: {error}. Nothing was fitted. "
                "Write the file again, or leave it out."
            ) from None


def _batches(opened: Any) -> Iterator[pa.RecordBatch]:
    if isinstance(opened, pa.RecordBatchFileReader):
        return (opened.get_batch(k) for k in range(opened.num_record_batches))
    return iter(opened)
