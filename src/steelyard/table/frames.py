"""Any frame or array becomes a list of columns. The only place that knows frames.

A column answers three questions, whatever library it came from: what do its cells hold
(numbers, text, booleans, nothing at all), what are they as float64 numbers, and which
distinct values are there and where.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from steelyard.exceptions import ColumnError, TableError
from steelyard.table.factors import (
    EXACT,
    Cells,
    Factor,
    categories_of,
    classify_objects,
    factor_arrow,
    factor_floats,
    factor_integers,
    factor_objects,
    factor_pandas,
    factor_polars,
    group_objects,
    is_missing,
    plain_values,
)

__all__ = ["Cells", "Column", "Factor", "Table", "as_series", "as_table"]


class Column:
    """One named column of a table; the base class of the ways to store one."""

    def __init__(
        self,
        position: int,
        name: str | None,
        values: Any,
        storage: Cells = "nothing",
    ) -> None:
        self.position = position
        self.name = name
        self._values = values
        self.storage = storage
        """What the type of the column can hold, "nothing" if it does not say."""
        self.cells = storage
        """What the cells hold, "nothing" if all are missing, whatever the type."""

    @property
    def label(self) -> str:
        """How messages call this column: by name, or by position without names."""
        name = self.position if self.name is None else repr(self.name)
        return f"Column {name}"

    @property
    def declared(self) -> list[Any] | None:
        """Values declared by a category or enum type, None for other types."""
        return None

    @property
    def is_integer(self) -> bool:
        """Whether the column holds whole numbers only, by its type."""
        return False

    def numbers(self) -> NDArray[np.float64]:
        """Cells as float64, missing ones as NaN, shape (n,)."""
        raise NotImplementedError

    def factor(self) -> Factor:
        """Distinct values and where they are."""
        return factor_objects(self.objects())

    def objects(self) -> Sequence[Any]:
        """Cells as Python objects."""
        raise NotImplementedError

    def take(self, rows: NDArray[np.int64]) -> Self:
        """Return the cells at some positions, in that order, as a column."""
        return type(self)(self.position, self.name, self._values[rows])

    def release(self) -> None:
        """Give up what was found out about the cells and can be found out again."""


class ArrayColumn(Column):
    """A column of a NumPy array that is not of object type."""

    def __init__(self, position: int, name: str | None, values: NDArray[Any]) -> None:
        kinds: dict[str, Cells] = {"b": "booleans", "U": "text"}
        storage = kinds.get(values.dtype.kind, "numbers")
        super().__init__(position, name, values, storage)
        # The first cell tells of nearly all columns that something is known.
        if values.dtype.kind == "f" and np.isnan(values[:1]).all():
            self.cells = "nothing" if np.isnan(values).all() else "numbers"

    @property
    def is_integer(self) -> bool:
        return self._values.dtype.kind in "iu"

    def numbers(self) -> NDArray[np.float64]:
        return np.ascontiguousarray(self._values, dtype=np.float64)

    def factor(self) -> Factor:
        values = self._values
        if values.dtype.kind in "biu":
            return factor_integers(values)
        if values.dtype.kind == "U":
            unique, indices = np.unique(values, return_inverse=True)
            return Factor(indices, unique.tolist())
        return factor_floats(np.asarray(values, dtype=np.float64))

    def objects(self) -> Sequence[Any]:
        return self._values.tolist()


class ObjectColumn(Column):
    """A column of Python objects: each cell may have a type of its own."""

    def __init__(self, position: int, name: str | None, values: NDArray[Any]) -> None:
        super().__init__(position, name, values)
        # Where cells share few objects, all questions are asked of those alone.
        groups = group_objects(values)
        self._groups = None if groups is None else groups[0]
        self._distinct = values if groups is None else groups[1]
        self.cells = self.storage = classify_objects(self._distinct, self.label)

    @property
    def is_integer(self) -> bool:
        return self.cells == "numbers" and all(
            isinstance(value, Integral) or is_missing(value) for value in self._distinct
        )

    def objects(self) -> Sequence[Any]:
        return self._values.tolist()

    def numbers(self) -> NDArray[np.float64]:
        numbers = self._distinct_numbers()
        return numbers if self._groups is None else numbers[self._groups]

    def factor(self) -> Factor:
        factor = self._distinct_factor()
        if self._groups is None:
            return factor
        return Factor(factor.indices[self._groups], factor.values)

    def release(self) -> None:
        self._groups, self._distinct = None, self._values

    def _distinct_numbers(self) -> NDArray[np.float64]:
        try:
            return np.array(
                [math.nan if is_missing(v) else float(v) for v in self._distinct],
                dtype=np.float64,
            )
        except OverflowError:
            raise ColumnError(
                f"{self.label} holds a whole number that is too large for float64. "
                "Divide the column by a power of ten, or turn it into text."
            ) from None

    def _distinct_factor(self) -> Factor:
        if self.cells != "numbers":
            return factor_objects(self._distinct)
        numbers = self._distinct_numbers()
        # Whole numbers that float64 cannot tell apart are compared as they are.
        large = np.fmax.reduce(np.abs(numbers)) >= EXACT
        if large and self.is_integer:
            return factor_objects(self._distinct)
        return factor_floats(numbers)


class FrameColumn(Column):
    """A column of a pandas, polars, pyarrow or other frame, seen through narwhals."""

    def __init__(self, position: int, name: str | None, series: Any) -> None:
        super().__init__(position, name, series)
        self._is_category = isinstance(series.dtype, (nw.Categorical, nw.Enum))
        self.cells = self.storage = self._classify()
        # The first cell tells of nearly all columns that something is known.
        if len(series) and is_missing(series[0]) and self._is_empty():
            self.cells = "nothing"

    def _classify(self) -> Cells:
        series, label = self._values, self.label
        dtype = series.dtype
        if self._is_category:
            categories = categories_of(series.to_native())
            return "text" if categories is None else classify_objects(categories, label)
        if dtype == nw.String:
            return "text"
        if dtype == nw.Boolean:
            return "booleans"
        if dtype.is_numeric():
            return "numbers"
        if dtype.is_temporal():
            raise ColumnError(
                f"{label} holds dates or times ({dtype}). Turn it into numbers (for "
                "example days since a date) or text before fitting."
            )
        if dtype.is_nested():
            raise ColumnError(
                f"{label} holds nested values ({dtype}). Split it into one column per "
                "element first."
            )
        if dtype == nw.Binary:
            raise ColumnError(
                f"{label} holds bytes, not text. Decode it first, for example by a "
                "cast to the string type."
            )
        if dtype == nw.Unknown and series.null_count() == len(series):
            return "nothing"
        native = getattr(series.to_native(), "dtype", dtype)
        if str(native).startswith("Sparse"):
            raise ColumnError(
                f"{label} is sparse ({native}). Make it dense, for example with "
                "df.sparse.to_dense()."
            )
        raise ColumnError(
            f"{label} has a type that is not supported ({native}). Use numbers, text, "
            "booleans or categories."
        )

    def _is_empty(self) -> bool:
        """Whether all cells are missing: null, or NaN among numbers."""
        if self.storage == "numbers" and not self._is_category:
            return bool(np.isnan(_float64(self._values)).all())
        return bool(self._values.null_count() == len(self._values))

    @property
    def declared(self) -> list[Any] | None:
        if not self._is_category:
            return None
        categories = categories_of(self._values.to_native())
        return None if categories is None else plain_values(categories)

    @property
    def is_integer(self) -> bool:
        return bool(self._values.dtype.is_integer())

    def numbers(self) -> NDArray[np.float64]:
        if self.cells == "nothing":
            return np.full(len(self._values), math.nan)
        if self._is_category:
            factor = self.factor()
            # The entry added last is the one that index -1 picks.
            return np.array([*factor.values, math.nan], dtype=float)[factor.indices]
        return _float64(self._values)

    def objects(self) -> Sequence[Any]:
        return self._values.to_list()

    def factor(self) -> Factor:
        series = self._values
        if self.storage == "nothing":
            return Factor(np.full(len(series), -1, dtype=np.int8), [])
        if self.storage == "numbers" and not self._is_category:
            if series.dtype in _INTEGERS and series.null_count() == 0:
                return factor_integers(series.to_numpy())
            return self._factor_numbers()
        native = series.to_native()
        if series.implementation.is_pandas():
            return factor_pandas(native)
        if series.implementation.is_polars():
            return factor_polars(native)
        if series.implementation.is_pyarrow():
            return factor_arrow(native)
        return super().factor()

    def _factor_numbers(self) -> Factor:
        series = self._values
        if series.dtype not in _INTEGERS:
            return factor_floats(_float64(series))
        # A detour through float64 would merge neighbours above 2^53.
        known = ~series.is_null().to_numpy().astype(bool)
        found = factor_integers(series.drop_nulls().to_numpy())
        indices = np.full(len(series), -1, dtype=np.int64)
        indices[known] = found.indices
        return Factor(indices, found.values)


_INTEGERS = (
    nw.Int8,
    nw.Int16,
    nw.Int32,
    nw.Int64,
    nw.UInt8,
    nw.UInt16,
    nw.UInt32,
    nw.UInt64,
)


def _float64(series: Any) -> NDArray[np.float64]:
    if series.dtype in _INTEGERS:
        # pyarrow refuses to cast whole numbers that float64 rounds.
        if not series.null_count():
            return series.to_numpy().astype(np.float64)
        numbers = np.full(len(series), math.nan)
        known = ~series.is_null().to_numpy().astype(bool)
        numbers[known] = series.drop_nulls().to_numpy()
        return numbers
    if series.dtype != nw.Float64:
        series = series.cast(nw.Float64)
    return np.ascontiguousarray(series.to_numpy(), dtype=np.float64)


@dataclass(frozen=True)
class Table:
    """Columns of equal length, with or without names."""

    columns: list[Column]
    n_rows: int
    names: list[str] | None
    matrix: NDArray[Any] | None = None
    """The array behind the columns, where they came from one of numbers."""

    @property
    def n_columns(self) -> int:
        """How many columns there are."""
        return len(self.columns)

    def take(self, rows: NDArray[np.int64]) -> Table:
        """Return the rows at some positions, in that order; they may repeat.

        It is the table that ``as_table`` makes of these rows of the user's frame, which
        is not needed for it.
        """
        _check_size((len(rows), self.n_columns), None)
        if self.matrix is not None:
            return _table_of_matrix(self.matrix[rows])
        columns = [column.take(rows) for column in self.columns]
        return Table(columns, len(rows), self.names)


def as_table(X: Any, estimator: object = None) -> Table:
    """Take any supported table apart into columns."""
    frame = _as_frame(X)
    if frame is None:
        return _table_from_array(X, estimator)
    names = [_column_name(name) for name in frame.columns]
    _check_unique(names)
    named = _are_names(frame.columns)
    _check_size(frame.shape, estimator)
    columns: list[Column] = []
    for position, series in enumerate(frame.iter_columns()):
        columns.append(_frame_column(position, names[position], series))
    return Table(columns, frame.shape[0], names if named else None)


def as_series(y: Any) -> Column:
    """Take labels, from any frame library or array, as a single column."""
    try:
        series = nw.from_native(y, series_only=True)
    except TypeError:
        values = y if isinstance(y, np.ndarray) else np.asarray(y)
        if values.dtype == object:
            return ObjectColumn(0, "y", values)
        if values.dtype.kind not in "biufU":
            raise TableError(
                f"Labels of type {values.dtype} are not supported. Use text, whole "
                "numbers or booleans."
            ) from None
        return ArrayColumn(0, "y", values)
    return _frame_column(0, "y", series)


def _frame_column(position: int, name: str, series: Any) -> Column:
    # Of a pandas column of objects narwhals reads the first hundred cells only.
    native = getattr(series.to_native(), "dtype", None)
    if series.dtype == nw.Object or native == np.dtype(object):
        values = np.asarray(series.to_numpy(), dtype=object)
        return ObjectColumn(position, name, values)
    return FrameColumn(position, name, series)


def _as_frame(X: Any) -> nw.DataFrame[Any] | None:
    """Return an eager narwhals frame, or None when ``X`` is no frame."""
    if isinstance(X, (np.ndarray, list, tuple)):
        return None
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is not None and isinstance(X, pyarrow.RecordBatch):
        X = pyarrow.Table.from_batches([X])
    try:
        frame = nw.from_native(X, allow_series=True, pass_through=True)
    except ValueError as error:
        # pandas and pyarrow allow two columns of one name, narwhals does not.
        names: Any = getattr(X, "column_names", None) or getattr(X, "columns", ())
        _check_unique([_column_name(name) for name in names])
        raise TableError(f"This table cannot be read: {error}") from error
    if isinstance(frame, nw.LazyFrame):
        raise TableError(
            "The table is lazy: its rows are not loaded. Call .collect() (or "
            ".compute()) on it first."
        )
    if isinstance(frame, nw.Series):
        raise TableError(
            "Expected a table with rows and columns, got a single column (1D). "
            "Reshape your data: pass a frame with one column, for example "
            "series.to_frame()."
        )
    return frame if isinstance(frame, nw.DataFrame) else None


def _table_from_array(X: Any, estimator: object) -> Table:
    if hasattr(X, "toarray") and hasattr(X, "nnz"):
        raise TypeError(
            "Sparse data was passed, but a dense table is required. "
            "Use .toarray() to convert it."
        )
    if isinstance(X, Mapping):
        raise TableError(
            "A mapping is no table. Make a frame of it, for example with "
            "pandas.DataFrame(X)."
        )
    if isinstance(X, (list, tuple)):
        X = _array_from_rows(X)
    if isinstance(X, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(X)
        X = np.array(X, dtype=object)
        X[mask] = None
    array: NDArray[Any] = check_array(
        X, dtype=None, ensure_all_finite=False, estimator=estimator
    )
    if array.dtype.kind == "T":
        array = array.astype(object)
    if array.dtype.kind == "S":
        raise TableError(
            f"A table of bytes ({array.dtype}) is not supported. Turn it into text "
            "with numpy.char.decode(X)."
        )
    if array.dtype.kind not in "biufUO":
        raise TableError(
            f"A table of type {array.dtype} is not supported. Use numbers, text, "
            "booleans or Python objects; dates have to be turned into numbers or text."
        )
    n, d = array.shape
    if array.dtype == object:
        columns: list[Column] = [ObjectColumn(j, None, array[:, j]) for j in range(d)]
        return Table(columns, n, None)
    if array.dtype.kind == "f" and array.dtype.itemsize != 8:
        array = array.astype(np.float64)
    return _table_of_matrix(array)


def _table_of_matrix(matrix: NDArray[Any]) -> Table:
    n, d = matrix.shape
    columns: list[Column] = [ArrayColumn(j, None, matrix[:, j]) for j in range(d)]
    return Table(columns, n, None, None if matrix.dtype.kind == "U" else matrix)


def _array_from_rows(rows: Sequence[Any]) -> NDArray[Any]:
    """Make an array of a list of rows, each cell keeping its type where they differ."""
    kinds = {
        type(cell) for row in rows if isinstance(row, (list, tuple)) for cell in row
    }
    mixed = any(issubclass(kind, (str, type(None))) for kind in kinds)
    try:
        return np.asarray(rows, dtype=object if mixed and len(kinds) > 1 else None)
    except ValueError:
        raise TableError(
            "The rows of the table differ in length, or their cells hold lists. Every "
            "row needs one plain value for each column."
        ) from None


def _column_name(name: Any) -> str:
    return name if isinstance(name, str) else str(name)


def _are_names(labels: Sequence[Any]) -> bool:
    """Whether columns are named: the numbers that pandas gives are positions."""
    text = {isinstance(label, str) for label in labels}
    if len(text) > 1:
        raise ColumnError(
            "Some column names are text and some are not: "
            f"{_quoted([str(label) for label in labels])}. Make all of them text, for "
            "example with df.columns = df.columns.astype(str)."
        )
    return text == {True}


def _check_unique(names: list[str]) -> None:
    seen: set[str] = set()
    twice = sorted({name for name in names if name in seen or seen.add(name)})  # type: ignore[func-returns-value]
    if twice:
        raise ColumnError(
            f"Column names occur more than once: {_quoted(twice)}. "
            "Every column needs a name of its own; rename or drop the others."
        )


def _check_size(shape: tuple[int, int], estimator: object) -> None:
    n, d = shape
    # The wording is scikit-learn's, which its users search for.
    context = f" by {type(estimator).__name__}" if estimator is not None else ""
    if d == 0:
        raise TableError(
            f"Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is "
            f"required{context}. The table has no columns."
        )
    if n == 0:
        raise TableError(
            f"Found array with 0 sample(s) (shape={shape}) while a minimum of 1 is "
            f"required{context}. The table has no rows."
        )


def _quoted(names: Iterable[str], most: int = 5) -> str:
    names = list(names)
    shown = ", ".join(repr(name) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
