"""Parquet and Arrow files: types and sizes from metadata, cells piece by piece."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pyarrow.types as pt

from steelyard.exceptions import TableError
from steelyard.io.chunks import MAX_BYTES, Part, Place, Places, places_between
from steelyard.io.paths import File, check_distinct, key_types
from steelyard.io.reader import Reader, check_names_of, conform, join_types

_DAMAGED = (pa.ArrowException, OSError)
# A guess at the bytes of a text, which only sizes of pieces depend on.
_TEXT_BYTES = 32


@dataclass(frozen=True)
class Contents:
    """Schema and row groups of one file, from its metadata."""

    file: File
    stored: pa.Schema
    groups: list[tuple[int, int]]
    """Rows and bytes of each row group or batch."""

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns that are read: nested values and the index of pandas are not."""
        about = self.stored.pandas_metadata or {}
        index = [name for name in about.get("index_columns", ()) if type(name) is str]
        fields = [f for f in self.stored if not pt.is_nested(f.type)]
        return pa.schema([field for field in fields if field.name not in index])

    @property
    def nested(self) -> list[str]:
        """Columns that hold lists or other nested values."""
        return [field.name for field in self.stored if pt.is_nested(field.type)]

    @property
    def n_rows(self) -> int:
        """How many rows the file has."""
        return sum(rows for rows, _ in self.groups)


class ColumnarFiles(Reader):
    """Parquet and Arrow files, read one row group at a time."""

    reads_ahead = True

    def __init__(self, files: Sequence[File]) -> None:
        self._contents = [_look_into(file) for file in files]
        first = self._contents[0]
        self._keys = types_of_keys(files, first.schema.names)
        self.name = first.file.name if len(files) == 1 else f"{len(files)} files"
        self.names = [*first.schema.names, *self._keys]
        self.n_rows = sum(contents.n_rows for contents in self._contents)
        self.n_bytes = sum(file.size for file in files)
        nested = dict.fromkeys(n for each in self._contents for n in each.nested)
        self.notes = [f"{name}: nested values, left out" for name in nested]

    def check_names(self, wanted: Sequence[str] | None) -> None:
        """Raise an error if a file lacks a column, or has one more."""
        check_names_of(
            [(each.file.name, each.schema.names) for each in self._contents],
            wanted,
            self._keys,
        )

    def types(self, names: Sequence[str]) -> dict[str, pa.DataType]:
        """Return types that hold the cells of all files."""
        joined = {}
        for name in names:
            if name in self._keys:
                joined[name] = self._keys[name]
                continue
            kinds = [each.schema.field(name).type for each in self._contents]
            example = partial(self._example, name)
            joined[name] = join_types(name, list(dict.fromkeys(kinds)), example)
        return joined

    def _example(self, name: str, kind: pa.DataType) -> tuple[Any, str] | None:
        """Return a cell of a column with some type, and the file that has it."""
        for contents in self._contents:
            if contents.schema.field(name).type == kind:
                for part in _read_file(contents, [name], 2**16):
                    cells = part.cells.column(0).drop_null()
                    if len(cells):
                        return cells[0].as_py(), contents.file.name
        return None

    def read(self, names: Sequence[str], max_rows: int) -> Iterator[Part]:
        """Yield some columns of all rows, file by file."""
        types = self.types(names)
        stored = [name for name in names if name not in self._keys]
        for contents in self._contents:
            contents.file.check()
            for part in _read_file(contents, stored, max_rows):
                cells = with_keys(part.cells, contents.file, self._keys, names)
                cells = conform(cells, types, contents.file.name)
                yield Part(cells, part.places, part.n_bytes)


# ------------------------------------------------------------------- names of folders


def types_of_keys(
    files: Sequence[File], stored: Sequence[str]
) -> dict[str, pa.DataType]:
    """Return the columns from names of folders, besides those of the files."""
    return {
        key: pa.int64() if is_whole else pa.string()
        for key, is_whole in key_types(files).items()
        if key not in stored
    }


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
        metadata = opened.metadata
        groups = []
        for k in range(metadata.num_row_groups):
            group = metadata.row_group(k)
            # Compressed sizes are those of columns alone.
            groups.append((group.num_rows, group.total_byte_size))
        total = sum(size for _, size in groups) or 1
        groups = [(rows, round(file.size * size / total)) for rows, size in groups]
        return Contents(file, opened.schema_arrow, groups)


def _arrow(file: File) -> Contents:
    with _mapped(file) as mapped:
        opened = _open_arrow(mapped, None)
        schema = opened.schema
        rows = (
            opened.count_rows()
            if hasattr(opened, "count_rows")
            else sum(batch.num_rows for batch in _batches(opened))
        )
        return Contents(file, schema, [(rows, file.size)])


def _open_arrow(mapped: Any, fields: list[int] | None) -> Any:
    """Open a file with an index of batches (Feather too), or else a stream."""
    options = pa.ipc.IpcReadOptions(included_fields=fields)
    try:
        return pa.ipc.open_file(mapped, options=options)
    except pa.ArrowInvalid:
        mapped.seek(0)
        return pa.ipc.open_stream(mapped, options=options)


# ------------------------------------------------------------------------------- cells


def _read_file(
    contents: Contents, names: Sequence[str], max_rows: int
) -> Iterator[Part]:
    if contents.file.format == "parquet":
        rows = _rows_at_once(contents, names, max_rows)
        return _read_parquet(contents, list(names), rows)
    return _read_arrow(contents, list(names))


def _rows_at_once(contents: Contents, names: Sequence[str], max_rows: int) -> int:
    """Return how many rows are decoded at once: fewer of wide tables."""
    width = 1
    for name in names:
        kind = contents.schema.field(name).type
        kind = kind.index_type if pt.is_dictionary(kind) else kind
        width += kind.bit_width // 8 + 1 if pt.is_primitive(kind) else _TEXT_BYTES
    return max(min(max_rows, MAX_BYTES // width), 1)


def _read_parquet(
    contents: Contents, names: list[str], max_rows: int
) -> Iterator[Part]:
    path = contents.file.name
    with _open_parquet(contents.file) as file:
        row = 0
        for run in _runs(contents.groups, max_rows):
            stop = row + sum(contents.groups[k][0] for k in run)
            size = sum(contents.groups[k][1] for k in run) / max(stop - row, 1)
            starts = _starts(path, contents.groups, run, row)
            try:
                for batch in file.iter_batches(max_rows, row_groups=run, columns=names):
                    yield Part(
                        pa.Table.from_batches([batch]),
                        places_between(starts, row, row + batch.num_rows),
                        round(size * batch.num_rows),
                    )
                    row += batch.num_rows
            except _DAMAGED as error:
                _refuse(file, path, run, names, error)
            if row != stop:
                _refuse(file, path, run, names, ValueError("rows are missing"))


def _runs(groups: list[tuple[int, int]], max_rows: int) -> Iterator[list[int]]:
    """Yield row groups to read together: one large one, or several small ones."""
    run: list[int] = []
    rows = 0
    for k, (size, _) in enumerate(groups):
        if run and rows + size > max_rows:
            yield run
            run, rows = [], 0
        run.append(k)
        rows += size
    if run:
        yield run


def _starts(
    path: str, groups: list[tuple[int, int]], run: list[int], row: int
) -> Places:
    """Return the first row of each row group with rows, and its place."""
    sizes = [groups[k][0] for k in run]
    first = accumulate(sizes, initial=row)
    starts = zip(first, run, sizes, strict=False)
    return [(start, Place(path, k, start)) for start, k, size in starts if size]


def _refuse(
    file: pq.ParquetFile, path: str, run: list[int], names: list[str], error: Exception
) -> NoReturn:
    """Raise an error that names the row group that cannot be read."""
    for group in run:
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


def _read_arrow(contents: Contents, names: list[str]) -> Iterator[Part]:
    path, row = contents.file.name, 0
    per_row = contents.file.size / max(contents.n_rows, 1)
    fields = [contents.stored.get_field_index(name) for name in names]
    with _mapped(contents.file) as mapped:
        try:
            opened = _open_arrow(mapped, fields or None)
            for group, batch in enumerate(_batches(opened)):
                # A damaged offset would make the process read beyond a buffer.
                batch.validate(full=True)
                cells = pa.Table.from_batches([batch]).select(names)
                yield Part(
                    cells,
                    [(0, Place(path, group, row))],
                    round(per_row * batch.num_rows),
                )
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
