"""Any frame or array becomes a list of columns. The only place that knows frames.

A column answers three questions, whatever library it came from: what do its cells hold
(numbers, text, booleans, nothing at all), what are they as float64 numbers, and which
distinct values are there and where.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from steelyard.exceptions import ColumnError, TableError

__all__ = ["Cells", "Column", "Factor", "Table", "as_series", "as_table"]

Cells = Literal["numbers", "text", "booleans", "nothing"]


@dataclass(frozen=True)
class Factor:
    """Distinct values of a column and, for every row, which one it holds."""

    indices: NDArray[Any]
    """Position in ``values`` of every cell, -1 where missing, shape (n,)."""

    values: list[Any]
    """Distinct values, in any order: all str, all bool, or all int and float.

    Category types list values here that no row holds.
    """


class Column:
    """One named column of a table; the base class of the ways to store one."""

    def __init__(self, position: int, name: str | None, cells: Cells) -> None:
        self.position = position
        self.name = name
        self.cells = cells

    @property
    def label(self) -> str:
        """How messages call this column: by name, or by position without names."""
        return f"Column {self.name!r}" if self.name is not None else self._numbered

    @property
    def _numbered(self) -> str:
        return f"Column {self.position}"

    @property
    def declared(self) -> list[Any] | None:
        """Values declared by a category or enum type, None for other types."""
        return None

    @property
    def is_integer(self) -> bool:
        """Whether the storage type holds whole numbers only."""
        return False

    def numbers(self) -> NDArray[np.float64]:
        """Cells as float64, missing ones as NaN, shape (n,)."""
        raise TypeError(f"{self.label} holds {self.cells}, not numbers.")

    def factor(self) -> Factor:
        """Distinct values and where they are."""
        return _factor_objects(self.objects(), self.label)

    def objects(self) -> Sequence[Any]:
        """Cells as Python objects."""
        return self.numbers().tolist()


class ArrayColumn(Column):
    """A column of a NumPy array that is not of object type."""

    def __init__(self, position: int, name: str | None, values: NDArray[Any]) -> None:
        kinds: dict[str, Cells] = {"b": "booleans", "U": "text"}
        super().__init__(position, name, kinds.get(values.dtype.kind, "numbers"))
        self._values = values

    @property
    def is_integer(self) -> bool:
        return self._values.dtype.kind in "iu"

    def numbers(self) -> NDArray[np.float64]:
        if self.cells == "text":
            return super().numbers()
        return np.ascontiguousarray(self._values, dtype=np.float64)

    def factor(self) -> Factor:
        values = self._values
        if values.dtype.kind in "biu":
            return _factor_integers(values)
        if values.dtype.kind == "U":
            unique, indices = np.unique(values, return_inverse=True)
            return Factor(indices, unique.tolist())
        return _factor_floats(np.asarray(values, dtype=np.float64))


class ObjectColumn(Column):
    """A column of Python objects: each cell may have a type of its own."""

    def __init__(self, position: int, name: str | None, values: Any) -> None:
        super().__init__(position, name, "nothing")
        self._values = values
        self.cells = _classify_objects(values, self.label)

    @property
    def is_integer(self) -> bool:
        return self.cells == "numbers" and all(
            isinstance(value, Integral) or _is_missing(value) for value in self._values
        )

    def objects(self) -> Sequence[Any]:
        return self._values

    def numbers(self) -> NDArray[np.float64]:
        if self.cells == "text":
            return super().numbers()
        return np.array(
            [math.nan if _is_missing(v) else float(v) for v in self._values],
            dtype=np.float64,
        )

    def factor(self) -> Factor:
        if self.cells == "numbers":
            return _factor_floats(self.numbers())
        return super().factor()


class FrameColumn(Column):
    """A column of a pandas, polars, pyarrow or other frame, seen through narwhals."""

    def __init__(self, position: int, name: str | None, series: Any) -> None:
        super().__init__(position, name, "nothing")
        self._series = series
        self.cells = _classify_dtype(series, self.label)

    @property
    def _is_category(self) -> bool:
        return isinstance(self._series.dtype, (nw.Categorical, nw.Enum))

    @property
    def declared(self) -> list[Any] | None:
        if not self._is_category:
            return None
        if isinstance(self._series.dtype, nw.Enum):
            return list(self._series.dtype.categories)
        return _plain_values(self._series.cat.get_categories().to_list())

    @property
    def is_integer(self) -> bool:
        return bool(self._series.dtype.is_integer())

    def numbers(self) -> NDArray[np.float64]:
        if self.cells == "nothing":
            return np.full(len(self._series), math.nan)
        if self.cells == "text" or self._is_category:
            return super().numbers()
        series = self._series
        if series.dtype != nw.Float64:
            series = series.cast(nw.Float64)
        return np.ascontiguousarray(series.to_numpy(), dtype=np.float64)

    def objects(self) -> Sequence[Any]:
        return self._series.to_list()

    def factor(self) -> Factor:
        series = self._series
        if self.cells == "nothing":
            return Factor(np.full(len(series), -1, dtype=np.int8), [])
        if self.cells == "numbers" and not self._is_category:
            return _factor_floats(self.numbers())
        native = series.to_native()
        if series.implementation.is_pandas():
            return _factor_pandas(native)
        if series.implementation.is_polars():
            return _factor_polars(native)
        if series.implementation.is_pyarrow():
            return _factor_arrow(native)
        return super().factor()


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
        if series.dtype == nw.Object:
            values = np.asarray(series.to_numpy(), dtype=object)
            columns.append(ObjectColumn(position, names[position], values))
        else:
            columns.append(FrameColumn(position, names[position], series))
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
    if series.dtype == nw.Object:
        return ObjectColumn(0, "y", np.asarray(series.to_numpy(), dtype=object))
    return FrameColumn(0, "y", series)


def _as_frame(X: Any) -> nw.DataFrame[Any] | None:
    """Return an eager narwhals frame, or None when ``X`` is no frame."""
    if isinstance(X, (np.ndarray, list, tuple)):
        return None
    try:
        frame = nw.from_native(X, allow_series=True, pass_through=True)
    except ValueError as error:
        # pandas allows two columns of one name, narwhals does not.
        _check_unique([_column_name(name) for name in X.columns])
        raise TableError(f"This table cannot be read: {error}") from error
    if isinstance(frame, nw.LazyFrame):
        raise TableError(
            "The table is lazy: its rows are not loaded. Call .collect() on it first."
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
    array: NDArray[Any] = check_array(
        X, dtype=None, ensure_all_finite=False, estimator=estimator
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
    columns = [ArrayColumn(j, None, array[:, j]) for j in range(d)]
    matrix = array if array.dtype.kind != "U" else None
    return Table(columns, n, None, matrix)


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


# --------------------------------------------------------------------- what cells hold


def _classify_dtype(series: nw.Series[Any], label: str) -> Cells:
    dtype = series.dtype
    if isinstance(dtype, nw.Enum) or dtype == nw.String:
        return "text"
    if dtype == nw.Boolean:
        return "booleans"
    if dtype == nw.Categorical:
        categories = series.cat.get_categories().to_list()
        return _classify_objects(categories, label)
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
    if series.null_count() == len(series):
        return "nothing"
    raise ColumnError(
        f"{label} has a type that is not supported ({dtype}). Use numbers, text, "
        "booleans or categories."
    )


def _is_missing(value: Any) -> bool:
    if value is None:
        return True
    if isinstance(value, float):
        return math.isnan(value)
    if isinstance(value, Decimal):
        return value.is_nan()
    return type(value).__name__ in ("NAType", "NaTType") or (
        isinstance(value, np.floating) and bool(np.isnan(value))
    )


def _classify_objects(values: Iterable[Any], label: str) -> Cells:
    """Decide from the Python types of the cells what a column holds."""
    found: dict[Cells, type] = {}
    for kind in set(map(type, values)):
        if kind is type(None) or kind.__name__ in ("NAType", "NaTType"):
            continue
        if issubclass(kind, str):
            found["text"] = kind
        elif issubclass(kind, (bool, np.bool_)):
            found["booleans"] = kind
        elif issubclass(kind, (float, np.floating)) and "text" not in found:
            found.setdefault("numbers", kind)
        elif issubclass(kind, (Real, Decimal, Fraction)):
            found["numbers"] = kind
        else:
            raise _unsupported_cell(kind, label)
    if not found:
        return "nothing"
    if len(found) == 1:
        cells = next(iter(found))
        if cells == "numbers" and all(map(_is_missing, values)):
            return "nothing"
        return cells
    if "numbers" in found and all(
        _is_missing(v) for v in values if not isinstance(v, (str, bool, np.bool_))
    ):
        # NaN is a float, and the usual missing value among text and booleans.
        del found["numbers"]
        if len(found) == 1:
            return next(iter(found))
    if set(found) == {"numbers", "booleans"}:
        return "numbers"
    kinds = " and ".join(sorted(kind.__name__ for kind in found.values()))
    raise ColumnError(
        f"{label} mixes {kinds} values. Give all its cells one type, for example "
        "with .astype(str), and mark missing ones as None or NaN."
    )


def _unsupported_cell(kind: type, label: str) -> Exception:
    module = kind.__module__.split(".")[0]
    if module in ("datetime", "pandas") or "date" in kind.__name__.lower():
        return ColumnError(
            f"{label} holds dates or times ({kind.__name__}). Turn it into numbers "
            "(for example days since a date) or text before fitting."
        )
    return TypeError(
        f"{label} holds a {kind.__name__}: the argument must be a table whose cells "
        "are a string, a boolean, a number or missing."
    )


# ----------------------------------------------------------- distinct values and where


def _plain_values(values: Iterable[Any]) -> list[Any]:
    """Turn NumPy scalars, decimals and the like into str, bool, int or float."""
    plain: list[Any] = []
    for value in values:
        if isinstance(value, str):
            plain.append(str(value))
        elif isinstance(value, (bool, np.bool_)):
            plain.append(bool(value))
        elif isinstance(value, Integral):
            plain.append(int(value))
        else:
            plain.append(float(value))
    return plain


def _factor_objects(values: Sequence[Any], label: str) -> Factor:
    positions: dict[Any, int] = {}
    indices = np.empty(len(values), dtype=np.int64)
    for i, value in enumerate(values):
        if _is_missing(value):
            indices[i] = -1
        else:
            indices[i] = positions.setdefault(value, len(positions))
    return Factor(indices, _plain_values(positions))


def _factor_integers(values: NDArray[Any]) -> Factor:
    """Whole numbers and booleans: by a look-up table where their range is small."""
    low, high = int(values.min()), int(values.max())
    is_bool = values.dtype.kind == "b"
    if high - low >= max(1 << 16, 2 * values.size):
        unique, indices = np.unique(values, return_inverse=True)
        return Factor(indices, unique.tolist())
    # Differences fit, whatever the type: they are taken in its unsigned twin.
    if is_bool:
        shifted = values.view(np.uint8)
        low = 0
    else:
        unsigned = np.dtype(f"u{values.dtype.itemsize}")
        shifted = (values - values.dtype.type(low)).view(unsigned)
    present = np.zeros(high - low + 1, dtype=bool)
    present[shifted] = True
    where = np.cumsum(present, dtype=np.int64) - 1
    found: list[Any] = [int(value) + low for value in np.flatnonzero(present)]
    return Factor(where[shifted], [bool(v) for v in found] if is_bool else found)


def _factor_floats(values: NDArray[np.float64]) -> Factor:
    known = ~np.isnan(values)
    indices = np.full(values.size, -1, dtype=np.int64)
    unique, indices[known] = np.unique(values[known], return_inverse=True)
    whole = unique == np.floor(unique)
    if whole.all() and (np.abs(unique) < 2.0**53).all():
        return Factor(indices, unique.astype(np.int64).tolist())
    return Factor(indices, unique.tolist())


def _factor_pandas(series: Any) -> Factor:
    pandas = sys.modules["pandas"]
    if isinstance(series.dtype, pandas.CategoricalDtype):
        codes = series.cat.codes.to_numpy()
        return Factor(codes, _plain_values(series.cat.categories))
    indices, unique = pandas.factorize(series, use_na_sentinel=True)
    return Factor(indices, _plain_values(unique))


def _factor_polars(series: Any) -> Factor:
    polars = sys.modules["polars"]
    if series.dtype == polars.Boolean:
        codes = series.cast(polars.Int8).fill_null(-1).to_numpy()
        return Factor(codes, [False, True])
    if series.dtype != polars.String:
        series = series.cast(polars.String)
    values = series.drop_nulls().unique().to_list()
    codes = series.cast(polars.Enum(values)).to_physical()
    return Factor(codes.cast(polars.Int64).fill_null(-1).to_numpy(), values)


def _factor_arrow(array: Any) -> Factor:
    pyarrow = sys.modules["pyarrow"]
    array = array.combine_chunks()
    if isinstance(array, pyarrow.ChunkedArray):  # an empty one stays chunked
        array = pyarrow.array([], type=array.type)
    if not pyarrow.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    values = array.dictionary.to_pylist()
    indices = array.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
    if None in values:
        known = np.array([value is not None for value in values])
        moved = np.where(known, np.cumsum(known) - 1, -1)
        indices = np.where(indices < 0, -1, moved[indices])
        values = [value for value in values if value is not None]
    return Factor(indices, _plain_values(values))
