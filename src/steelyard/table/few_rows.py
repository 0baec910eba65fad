"""Encode a frame of few rows cell by cell, without an object for each column.

A frame that is unusual in any way is left to the ordinary path, which knows all types
and all messages: what is encoded here is encoded there to the same codes.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from steelyard._common.one_cell import (
    INF,
    UNKNOWN,
    Entry,
    among_values,
    in_intervals,
)
from steelyard.table.by_schema import on_grid
from steelyard.table.codes import CodeBlock, Codes, by_width
from steelyard.table.schema import FeatureSchema, Side, TableSchema

# From about as many rows on, arrays are quicker.
MOST_ROWS = 8

_TYPES = {"text": (str,), "numbers": (float, int), "booleans": (bool,)}

_PREPARED: dict[int, tuple[weakref.ref[TableSchema], _FewRows]] = {}

Cells = Sequence[Any]
View = Callable[[Cells], list[Any]]


class _UnusualCellError(Exception):
    """A cell of a type that is not expected here."""


def encode_few(X: Any, schema: TableSchema) -> Codes | None:
    """Return the codes of a frame of few rows, None where it is not that.

    Parameters
    ----------
    X : frame
        A frame of pandas, polars or pyarrow, or anything else.
    schema : TableSchema
        The schema of the model.

    Returns
    -------
    Codes or None
        What the ordinary path makes of it.
    """
    key = id(schema)
    known = _PREPARED.get(key)
    if known is None or known[0]() is not schema:
        # Not on the schema, which is pickled with models.
        gone = weakref.ref(schema, lambda _: _PREPARED.pop(key, None))
        known = _PREPARED[key] = gone, _FewRows(schema)
    return known[1].encode(X, schema)


class _FewRows:
    """How cells become codes, prepared once for a schema."""

    def __init__(self, schema: TableSchema) -> None:
        self._names = schema.names
        plain = schema.without_pairs
        self._views = [
            (column, _view(feature))
            for column, feature in zip(plain.columns, plain.features, strict=True)
        ]
        self._pairs = [feature.sides for feature in schema.features if feature.sides]
        blocks = by_width(schema, map(int, plain.coded))
        # One-byte columns come first, and wider ones are blocks of their own.
        narrow = [(t, of) for t, of in blocks if t == np.uint8]
        wide = [(t, [j]) for t, of in blocks if t != np.uint8 for j in of]
        wide.sort(key=lambda block: block[1])
        blocks = [*narrow, *wide, *by_width(schema, range(len(plain), len(schema)))]
        self._blocks = [(t, of, np.array(of, dtype=np.int64)) for t, of in blocks]
        self._numbers = [int(j) for j in schema.gaussian]

    def encode(self, X: Any, schema: TableSchema) -> Codes | None:
        """Return the codes of a frame of few rows; None for anything unusual."""
        columns = _columns(X, self._names)
        if columns is None:
            return None
        try:
            views: list[Any] = [view(columns[column]) for column, view in self._views]
        except _UnusualCellError:
            return None
        views += [_joined(views, *sides) for sides in self._pairs]
        blocks = []
        for dtype, of, features in self._blocks:
            values = np.array([views[j] for j in of], dtype=dtype).T
            blocks.append(CodeBlock(values, features))
        numbers = tuple(np.array(views[j], dtype=np.float64) for j in self._numbers)
        return Codes(schema, len(columns[0]), tuple(blocks), numbers)


def _view(feature: FeatureSchema) -> View:
    """Return how the cells of a column become codes, or numbers of a density."""
    types = _TYPES.get(feature.cells, ())
    missing = feature.missing_code
    if feature.kind == "categorical":
        known = {None: missing, **feature.code_of}
        return _reader(types, among_values(known, 0, _value))
    if feature.kind == "binned":
        codes = range(1, len(feature.edges) + 2)
        entry = in_intervals(feature.edges, codes, missing, 0, _number)
        return _reader(types, entry)
    step = feature.step
    fill = np.nan if feature.fill is None else feature.fill

    def number_of(cell: Any) -> float:
        number = _number(cell)
        known = fill if number is None else number
        return float(on_grid(np.array(known, dtype=np.float64), step))

    return _reader(types, number_of)


def _value(cell: Any) -> Any:
    """Return what stands for a cell that is no known value: None, if it is missing."""
    is_known = type(cell) is str or _number(cell) is not None
    return UNKNOWN if is_known else None


def _number(cell: Any) -> float | None:
    """Return a finite number, None if it is missing."""
    if cell is None or cell != cell:
        return None
    number = float(cell)
    if not -INF < number < INF:
        raise _UnusualCellError
    return number


def _reader(types: tuple[type, ...], entry: Entry) -> View:
    """Return how cells are read: missing ones, those of some types, and no others."""
    expected = {type(None), float, *types}

    def read(cells: Cells) -> list[Any]:
        kinds = set(map(type, cells))
        if not kinds <= expected:
            raise _UnusualCellError
        if float in kinds and float not in types:
            # NaN stands for a missing cell, whatever the others are.
            if any(cell == cell for cell in cells if type(cell) is float):
                raise _UnusualCellError
        return list(map(entry, cells))

    return read


def _joined(views: list[Any], first: Side, second: Side) -> list[int]:
    """Return the joint codes of two attributes."""
    n, a, b = second.n_groups, first.groups, second.groups
    both = zip(views[first.feature], views[second.feature], strict=True)
    return [a[i] * n + b[k] for i, k in both]


# ---------------------------------------------------------------------------- libraries


def _columns(X: Any, names: list[str] | None) -> list[Cells] | None:
    """Return the cells of a frame as Python objects, None where it is unusual."""
    library = type(X).__module__.partition(".")[0]
    read = _LIBRARIES.get(library)
    if read is None or names is None:
        return None
    return read(X, sys.modules[library], names)


def _of_pandas(X: Any, pandas: Any, names: list[str]) -> list[Cells] | None:
    if type(X) is not pandas.DataFrame or not 0 < len(X) <= MOST_ROWS:
        return None
    # Columns as arrays: a series of each takes as long as all the rest.
    arrays = getattr(X, "_iter_column_arrays", None)
    if arrays is None or X.columns.tolist() != names:
        return None
    columns = []
    for array in arrays():
        dtype = array.dtype
        if isinstance(dtype, np.dtype):
            if dtype.kind not in "fiubO" or dtype.itemsize > 8:
                return None
        elif type(dtype) is not pandas.StringDtype:
            return None
        columns.append(array.tolist())
    return columns


def _of_polars(X: Any, polars: Any, names: list[str]) -> list[Cells] | None:
    if type(X) is not polars.DataFrame or not 0 < X.height <= MOST_ROWS:
        return None
    if X.columns != names or not _polars_types(polars).issuperset(X.dtypes):
        return None
    return list(zip(*X.rows(), strict=True))


def _of_pyarrow(X: Any, pyarrow: Any, names: list[str]) -> list[Cells] | None:
    if type(X) is not pyarrow.Table or not 0 < X.num_rows <= MOST_ROWS:
        return None
    if X.column_names != names or not _arrow_types(pyarrow).issuperset(X.schema.types):
        return None
    return [column.to_pylist() for column in X.columns]


_LIBRARIES = {"pandas": _of_pandas, "polars": _of_polars, "pyarrow": _of_pyarrow}


@cache
def _polars_types(polars: Any) -> frozenset[Any]:
    wanted = ("String", "Boolean", "Float64", "Float32", *_integers("UInt", "Int"))
    return frozenset(getattr(polars, name) for name in wanted)


@cache
def _arrow_types(pyarrow: Any) -> frozenset[Any]:
    wanted = ("string", "large_string", "bool_", "float64", "float32")
    return frozenset(
        getattr(pyarrow, name)() for name in (*wanted, *_integers("uint", "int"))
    )


def _integers(*prefixes: str) -> list[str]:
    return [f"{prefix}{bits}" for prefix in prefixes for bits in (8, 16, 32, 64)]
