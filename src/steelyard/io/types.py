"""Types of columns: one for all files of a source, whatever each of them has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from steelyard.exceptions import ColumnError

Example = Callable[[pa.DataType], tuple[Any, str] | None]
"""From one type of a column to a cell that is not missing and where that is."""


def is_text(kind: pa.DataType) -> bool:
    """Whether cells are text, in any form of storage but a dictionary."""
    return bool(pt.is_string(kind) or pt.is_large_string(kind) or _is_view(kind))


def is_number(kind: pa.DataType) -> bool:
    """Whether cells are numbers."""
    return bool(pt.is_integer(kind) or pt.is_floating(kind) or pt.is_decimal(kind))


def _is_view(kind: pa.DataType) -> bool:
    return bool(pt.is_string_view(kind))


def kind_of(kind: pa.DataType) -> str:
    """Return in a word what cells of a type hold."""
    if pt.is_dictionary(kind):
        return kind_of(kind.value_type)
    if is_number(kind):
        return "numbers"
    if is_text(kind):
        return "text"
    if pt.is_boolean(kind):
        return "booleans"
    return "nothing" if pt.is_null(kind) else str(kind)


def plain(kind: pa.DataType) -> pa.DataType:
    """Return a type that all readers and writers of files know."""
    if pt.is_dictionary(kind):
        values = plain(kind.value_type)
        return pa.dictionary(kind.index_type, values, kind.ordered)
    return pa.large_string() if _is_view(kind) else kind


def join_types(
    name: str, found: Sequence[pa.DataType], example: Example
) -> pa.DataType:
    """Return one type for a column, from those of its parts.

    Numbers are widened. A file that holds no cell of the column at all agrees with any
    other, whatever type it gives it.
    """
    known = [kind for kind in found if not pt.is_null(kind)]
    if len({kind_of(kind) for kind in known}) > 1:
        known = _with_cells(name, known, example)
    types = list(dict.fromkeys(map(plain, known)))
    if len(types) > 1:
        return _wider(types)
    return types[0] if types else pa.null()


def _with_cells(
    name: str, known: Sequence[pa.DataType], example: Example
) -> list[pa.DataType]:
    """Return the types that have cells, all of one kind, or refuse the column."""
    kept: list[pa.DataType] = []
    shown: dict[str, tuple[Any, str]] = {}
    for kind in known:
        found = example(kind)
        if found is not None:
            kept.append(kind)
            shown.setdefault(kind_of(kind), found)
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
            pa.int32(), values[0] if len(values) == 1 else _wider(values)
        )
    types = [kind.value_type if pt.is_dictionary(kind) else kind for kind in types]
    types = list(dict.fromkeys(types))
    if len(types) == 1:
        return types[0]
    if all(map(is_text, types)):
        return pa.large_string()
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
