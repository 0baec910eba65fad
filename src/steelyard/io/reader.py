"""The interface of all sources, and common types of their columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from steelyard._common.text import listed
from steelyard.exceptions import ColumnError, TableError
from steelyard.io.chunks import MAX_ROWS, Chunk

if TYPE_CHECKING:
    import pandas


Example = Callable[[pa.DataType], tuple[Any, str] | None]
"""From one type of a column to a cell that is not missing and its origin."""


class TypesChangedError(Exception):
    """Chunks that were read have other types than the source has; read it again."""


class Reader(ABC):
    """Reads a source from its beginning, chunk by chunk."""

    is_repeatable: bool = True
    """Whether it can be read again."""

    is_cheap: bool = True
    """Whether reading again is cheaper than a temporary copy, and gives the same."""

    needs_copy: bool = False
    """Whether types are only known at the end, so that it is copied in any case."""

    reads_ahead: bool = False
    """Whether a thread may read it; code of the user must not run in one."""

    name: str
    """Name of the source in messages."""

    names: list[str]
    """All columns."""

    notes: list[str] = []  # noqa: RUF012
    """What is left out, a sentence each."""

    missing_by_column: Mapping[str, Sequence[str]] = {}
    """Cells of single columns that mean a missing value."""

    hint: str = ""
    """What to try if a column does not exist."""

    reading: dict[str, Any] = {}  # noqa: RUF012
    """How files of text are read: marks, words for missing cells, orders of dates."""

    labels: dict[str, str] = {}  # noqa: RUF012
    """Titles of columns by name, if files have them."""

    about: Mapping[str, str] = {}
    """Metadata of the source: its name and the column to predict."""

    n_rows: int | None = None
    n_bytes: int | None = None

    columns: Sequence[tuple[str, Sequence[str]]] = ()
    """Names of several files, and their columns."""

    keys: Mapping[str, pa.DataType] = {}
    """Types of the columns from names of folders."""

    def check_names(self, wanted: Sequence[str] | None) -> None:
        """Raise an error if a file lacks one of some columns, or differs in any."""
        check_names_of(self.columns, wanted, self.keys)

    @abstractmethod
    def read(self, names: Sequence[str], max_rows: int) -> Iterator[Chunk]:
        """Yield some columns of all rows, in order."""


def check_names_of(
    files: Sequence[tuple[str, Sequence[str]]],
    wanted: Iterable[str] | None,
    keys: Iterable[str] = (),
) -> None:
    """Refuse a file that lacks a column of the first one, or has one more.

    More columns are fine if only some are ``wanted``. ``keys`` are columns from names
    of folders.
    """
    if not files:
        return
    first, of_first = files[0]
    expected = set(of_first if wanted is None else wanted) - {*keys}
    for name, columns in files[1:]:
        if lacking := expected - {*columns}:
            raise ColumnError(
                f"{name} has no column {min(lacking)!r} that {first} has. Its columns: "
                f"{listed(columns)}."
            )
        if wanted is None and (extra := {*columns} - expected - {*keys}):
            raise ColumnError(
                f"{name} has a column {min(extra)!r} that {first} lacks. Choose with "
                "`columns` which to read."
            )


def whole_table(reader: Reader, names: Sequence[str]) -> pa.Table:
    """Return all rows of some columns as one table."""
    while True:
        with suppress(TypesChangedError):
            tables = [chunk.cells for chunk in reader.read(names, MAX_ROWS)]
            break
    if not any(table.num_rows for table in tables):
        raise TableError(f"There are no rows in {reader.name}.")
    types = {
        name: join_types(
            name,
            [table.schema.field(name).type for table in tables],
            partial(_example, tables, name, reader.name),
        )
        for name in names
    }
    tables = [conform(table, types, reader.name) for table in tables]
    return pa.concat_tables(tables).unify_dictionaries()


def _example(
    tables: list[pa.Table], name: str, where: str, kind: pa.DataType
) -> tuple[Any, str] | None:
    """Return a cell of a column with some type, and its origin."""
    columns = (table.column(name) for table in tables)
    cells_of_kind = (c.drop_null() for c in columns if c.type == kind)
    return next(
        ((cells[0].as_py(), where) for cells in cells_of_kind if len(cells)), None
    )


def whole_frame(reader: Reader, names: Sequence[str]) -> pandas.DataFrame:
    """Return all rows of some columns as a frame of pandas."""
    frame = whole_table(reader, names).to_pandas(date_as_object=False)
    frame.columns = list(names)
    return frame


def value_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the cells, also if a dictionary stores them."""
    return kind.value_type if pt.is_dictionary(kind) else kind


def is_text(kind: pa.DataType) -> bool:
    """Whether cells are text, in any form of storage but a dictionary."""
    return bool(
        pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind)
    )


def is_number(kind: pa.DataType) -> bool:
    """Whether cells are numbers."""
    return bool(pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind))


def is_date(kind: pa.DataType) -> bool:
    """Whether cells are days, or moments."""
    return bool(pt.is_date(kind) or pt.is_timestamp(kind))


def kind_of(kind: pa.DataType) -> str:
    """Return the kind of the cells of a type in a word."""
    if pt.is_dictionary(kind):
        return kind_of(kind.value_type)
    if is_number(kind):
        return "numbers"
    if is_text(kind):
        return "text"
    if pt.is_boolean(kind):
        return "booleans"
    if is_date(kind):
        return "dates"
    return "nothing" if pt.is_null(kind) else str(kind)


def plain(kind: pa.DataType) -> pa.DataType:
    """Return an equivalent type that all readers and writers of files support."""
    if pt.is_dictionary(kind):
        values = plain(kind.value_type)
        return pa.dictionary(kind.index_type, values, kind.ordered)
    return pa.large_string() if pt.is_string_view(kind) else kind


def join_types(
    name: str, kinds: Sequence[pa.DataType], example: Example
) -> pa.DataType:
    """Return one type for a column, from those of its chunks or files.

    Numbers are widened. The type of a column in a file without a cell of it does not
    matter.
    """
    kinds_with_cells = [kind for kind in kinds if not pt.is_null(kind)]
    if len({kind_of(kind) for kind in kinds_with_cells}) > 1:
        kinds_with_cells = _with_cells(name, kinds_with_cells, example)
    types = list(dict.fromkeys(map(plain, kinds_with_cells)))
    if len(types) > 1:
        return _wider(types)
    return types[0] if types else pa.null()


def _with_cells(
    name: str, kinds: Sequence[pa.DataType], example: Example
) -> list[pa.DataType]:
    """Return the types that have cells, all of one kind, or refuse the column."""
    kept: list[pa.DataType] = []
    shown: dict[str, tuple[Any, str]] = {}
    for kind in kinds:
        cell = example(kind)
        if cell is not None:
            kept.append(kind)
            shown.setdefault(kind_of(kind), cell)
    if len(shown) > 1:
        (a, (one, first)), (b, (other, second)), *_ = shown.items()
        raise ColumnError(
            f"Column {name!r} holds {a} in {first} (such as {one!r}), and {b} in "
            f"{second} (such as {other!r}). Write it in one type, or leave it out with "
            "`columns`."
        )
    return kept


def _wider(types: list[pa.DataType]) -> pa.DataType:
    if all(map(pt.is_dictionary, types)):
        values = list(dict.fromkeys(kind.value_type for kind in types))
        return pa.dictionary(
            pa.int32(),
            values[0] if len(values) == 1 else _wider(values),
            all(kind.ordered for kind in types),
        )
    types = [kind.value_type if pt.is_dictionary(kind) else kind for kind in types]
    types = list(dict.fromkeys(types))
    if len(types) == 1:
        return types[0]
    if all(map(is_text, types)):
        return pa.large_string()
    if all(map(is_date, types)):
        return pa.timestamp("us")
    if all(map(pt.is_integer, types)):
        widest = np.result_type(*(kind.to_pandas_dtype() for kind in types))
        return pa.from_numpy_dtype(widest)
    return pa.float64()


def conform(cells: pa.Table, types: Mapping[str, pa.DataType], where: str) -> pa.Table:
    """Return columns in the types of the source, in its order."""
    columns = []
    for name, kind in types.items():
        column = cells.column(name)
        columns.append(
            column if column.type == kind else _cast(column, kind, name, where)
        )
    return pa.table(columns, names=list(types)) if columns else cells.select([])


def _cast(column: Any, kind: pa.DataType, name: str, where: str) -> Any:
    if column.null_count == len(column):
        return pa.chunked_array([pa.nulls(len(column), kind)])
    try:
        if pt.is_dictionary(kind) and pt.is_dictionary(column.type):
            return _cast_dictionary(column, kind)
        if pt.is_decimal(column.type) or pt.is_floating(column.type):
            return column.cast(kind, safe=False)
        return column.cast(kind)
    except pa.ArrowInvalid as error:
        if kind_of(kind) != "numbers":
            raise ColumnError(f"Column {name!r} of {where}: {error}") from None
        raise ColumnError(
            f"Column {name!r} holds whole numbers above 2^53 in {where}, and fractions "
            "elsewhere: as float64 some of them would be equal. Turn the column into "
            "text, or leave it out with `columns`."
        ) from None


def _cast_dictionary(column: Any, kind: pa.DataType) -> Any:
    chunks = [
        pa.DictionaryArray.from_arrays(
            chunk.indices.cast(kind.index_type),
            chunk.dictionary.cast(kind.value_type),
            ordered=kind.ordered,
        )
        for chunk in column.chunks
    ]
    return pa.chunked_array(chunks, kind)
