"""One column of a table, whatever library its cells came from.

A column answers three questions: what do its cells contain (numbers, text, booleans,
nothing at all), what are they as float64 numbers, and which distinct values are there
and where.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from numbers import Integral
from typing import Any, ClassVar

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, Ints
from steelyard.exceptions import ColumnError
from steelyard.table import factors
from steelyard.table.dates import DAY, PARTS
from steelyard.table.factors import CellKind, Factor, classify_objects, is_missing

__all__ = ["TableColumn", "array_column", "series_column"]

# Wider ones, which few libraries have, are read as float64.
_INTEGERS = frozenset(
    getattr(nw, f"{sign}Int{bits}") for sign in ("", "U") for bits in (8, 16, 32, 64)
)

# Numbers are read several times, all but the first from the cache.
_ROWS_IN_CACHE = 65_536

BlockEnds = tuple[Floats, int, float, float]
"""Some numbers, how many are not NaN, and the smallest and the largest of these."""


class TableColumn:
    """One named column of a table; the base class of the forms of storage."""

    holds_objects: ClassVar[bool] = False
    """Whether the cells are Python objects, possibly of different types."""

    is_date: ClassVar[bool] = False
    """Whether the numbers are days."""

    declared: list[Any] | None = None
    """Values declared by a category or enum type, None for other types."""

    order: tuple[Any, ...] | None = None
    """Declared values in their order, None for types that have none."""

    is_integer: bool = False
    """Whether the column has whole numbers only, by its type."""

    source: Any = None
    """The series of a frame whose cells these are.

    pandas copies what others refer to before it writes, so that cells stay as they are.
    """

    def __init__(
        self,
        position: int,
        name: str | None,
        values: Any,
        storage: CellKind = "nothing",
    ) -> None:
        self.position = position
        self.name = name
        self._values = values
        self.storage = storage
        """What cells the type of the column allows, "nothing" if it is generic."""
        self.cells = storage
        """What the cells contain, "nothing" if all are missing, whatever the type."""

    def __len__(self) -> int:
        """Count the cells."""
        return len(self._values)

    @property
    def label(self) -> str:
        """How messages call this column: by name, or by position without names."""
        return column_label(self.position, self.name)

    def numbers(self) -> Floats:
        """Cells as float64, missing ones as NaN, shape (n,)."""
        raise NotImplementedError

    def factor(self) -> Factor:
        """Distinct values and where they are."""
        return factors.factor_objects(self.objects())

    def objects(self) -> Sequence[Any]:
        """Cells as Python objects."""
        return self._values.tolist()

    def take(self, rows: Ints) -> TableColumn:
        """Return the cells at some positions, in that order, as a column."""
        return type(self)(self.position, self.name, self._values[rows])

    # -------------------------------------------------------- computed once, and finite

    @cached_property
    def finite_factor(self) -> Factor:
        """Distinct values and where they are; infinite ones are refused."""
        factor = self.factor()
        for k, value in enumerate(factor.values):
            if isinstance(value, float) and math.isinf(value):
                raise self._infinite(np.flatnonzero(factor.indices == k))
        return factor

    @cached_property
    def number_blocks(self) -> tuple[Floats, list[BlockEnds]]:
        """Cells as float64, and the ends of blocks of them.

        The ends show whether a number is infinite, which is refused.
        """
        numbers, ends = self.numbers(), []
        for at in range(0, len(numbers), _ROWS_IN_CACHE):
            present = block = numbers[at : at + _ROWS_IN_CACHE]
            low, high = present.min(), present.max()
            if low != low:
                present = block[block == block]
                low, high = present.min(initial=np.inf), present.max(initial=-np.inf)
            if low == -np.inf or high == np.inf:
                raise self._infinite(np.flatnonzero(np.isinf(numbers)))
            ends.append((block, len(present), float(low), float(high)))
        return numbers, ends

    @property
    def finite_numbers(self) -> Floats:
        """Cells as float64, missing ones as NaN; infinite ones are refused."""
        return self.number_blocks[0]

    @cached_property
    def narrow_factor(self) -> Factor | None:
        """Distinct values of many whole numbers in a small range, None for others.

        It takes a fraction of the time that the numbers would take.
        """
        return None

    def release(self) -> None:
        """Drop what was computed from the cells and can be computed again."""
        for name in ("finite_factor", "number_blocks", "narrow_factor"):
            vars(self).pop(name, None)

    def _infinite(self, rows: Ints) -> ColumnError:
        # A category type may declare a value that is in no row.
        where = f"in row {rows[0]}" if rows.size else "among its categories"
        return ColumnError(
            f"{self.label} holds an infinite number (inf) {where}. Replace it by a "
            "finite number, or by NaN if it is unknown."
        )


def column_label(position: int, name: str | None) -> str:
    """Return how messages call a column: by name, or by position without names."""
    return f"Column {position if name is None else repr(name)}"


class ArrayColumn(TableColumn):
    """A column of a NumPy array that is not of object type."""

    def __init__(
        self,
        position: int,
        name: str | None,
        values: NDArray[Any],
        missing: NDArray[np.bool_] | None = None,
    ) -> None:
        kinds: dict[str, CellKind] = {"b": "booleans", "U": "text"}
        storage = kinds.get(values.dtype.kind, "numbers")
        super().__init__(position, name, values, storage)
        self._missing = missing
        """Which whole numbers or booleans are missing, whatever value is there."""
        self.is_integer = values.dtype.kind in "iu"
        # Of nearly all columns the first cell shows that not all are missing.
        if values.dtype.kind == "f" and np.isnan(values[:1]).all():
            self.cells = "nothing" if np.isnan(values).all() else "numbers"
        elif missing is not None and missing.all():
            self.cells = "nothing"

    def numbers(self) -> Floats:
        if self._missing is None:
            return np.ascontiguousarray(self._values, dtype=np.float64)
        numbers = self._values.astype(np.float64)
        numbers[self._missing] = np.nan
        return numbers

    def factor(self) -> Factor:
        values, missing = self._values, self._missing
        if values.dtype.kind == "U":
            unique, indices = np.unique(values, return_inverse=True)
            return Factor(indices, unique.tolist())
        if values.dtype.kind == "f":
            return factors.factor_floats(np.asarray(values, dtype=np.float64))
        factor = factors.factor_integers(values)
        if missing is None:
            return factor
        indices = factor.indices.astype(np.int64)
        indices[missing] = -1
        return Factor(indices, factor.values)

    @cached_property
    def narrow_factor(self) -> Factor | None:
        values = self._values
        # If cells are not contiguous, copying them as numbers is as quick.
        if not self.is_integer or not values.flags.c_contiguous:
            return None
        return self.factor() if factors.are_narrow(values) else None

    def objects(self) -> Sequence[Any]:
        cells = self._values.tolist()
        if self._missing is None:
            return cells
        return [None if k else v for k, v in zip(self._missing, cells, strict=True)]

    def take(self, rows: Ints) -> TableColumn:
        if self._missing is None:
            return super().take(rows)
        taken = self._values[rows], self._missing[rows]
        return ArrayColumn(self.position, self.name, *taken)


class DayColumn(ArrayColumn):
    """The days of dates, which it keeps as they are."""

    is_date = True

    def __init__(self, position: int, name: str | None, dates: NDArray[Any]) -> None:
        days = np.where(np.isnat(dates), np.nan, dates.astype(np.int64) / DAY)
        super().__init__(position, name, days)
        self.dates = dates

    def take(self, rows: Ints) -> DayColumn:
        return DayColumn(self.position, self.name, self.dates[rows])


class PartColumn(ArrayColumn):
    """The months, weekdays or hours of dates."""

    def __init__(self, position: int, name: str | None, values: NDArray[Any]) -> None:
        super().__init__(position, name, values)
        categories = PARTS[str(name).rpartition(".")[2]]
        self.declared = None if categories is None else list(categories)


class ObjectColumn(TableColumn):
    """A column of Python objects: cells may have different types."""

    holds_objects = True

    def __init__(self, position: int, name: str | None, values: NDArray[Any]) -> None:
        super().__init__(position, name, values)
        # If cells share few objects, all questions are asked of those alone.
        groups = factors.group_objects(values)
        self._groups = None if groups is None else groups[0]
        self._distinct = values if groups is None else groups[1]
        self.cells = self.storage = classify_objects(self._distinct, self.label)

    @cached_property
    def is_integer(self) -> bool:  # type: ignore[override]
        return self.cells == "numbers" and all(
            isinstance(value, Integral) or is_missing(value) for value in self._distinct
        )

    def numbers(self) -> Floats:
        numbers = self._distinct_numbers()
        return numbers if self._groups is None else numbers[self._groups]

    def factor(self) -> Factor:
        factor = self._distinct_factor()
        if self._groups is None:
            return factor
        return Factor(factor.indices[self._groups], factor.values)

    def release(self) -> None:
        super().release()
        self._groups, self._distinct = None, self._values

    def _distinct_numbers(self) -> Floats:
        cells = (math.nan if is_missing(v) else float(v) for v in self._distinct)
        try:
            return np.fromiter(cells, np.float64, len(self._distinct))
        except OverflowError:
            raise ColumnError(
                f"{self.label} holds a whole number that is too large for float64. "
                "Divide the column by a power of ten, or turn it into text."
            ) from None

    def _distinct_factor(self) -> Factor:
        if self.cells != "numbers":
            return factors.factor_objects(self._distinct)
        numbers = self._distinct_numbers()
        # Whole numbers that are equal as float64 are compared as they are,
        # whatever cells are beside them.
        large = np.abs(numbers) >= factors.EXACT
        if any(isinstance(self._distinct[i], Integral) for i in np.flatnonzero(large)):
            cells = np.empty(len(numbers), dtype=object)
            cells[:] = [
                value if isinstance(value, Integral) else number
                for value, number in zip(self._distinct, numbers.tolist(), strict=True)
            ]
            return factors.factor_objects(cells)
        return factors.factor_floats(numbers)


class TextColumn(TableColumn):
    """Text of a pandas, polars, pyarrow or other frame, seen through narwhals."""

    def __init__(self, position: int, name: str | None, series: Any) -> None:
        super().__init__(position, name, series, "text")
        # Of nearly all columns the first cell shows that not all are missing.
        if len(series) and is_missing(series[0]) and series.null_count() == len(series):
            self.cells = "nothing"

    def numbers(self) -> Floats:
        return np.full(len(self), math.nan)

    def objects(self) -> Sequence[Any]:
        return self._values.to_list()

    def factor(self) -> Factor:
        native = factors.NATIVE.get(self._values.implementation.value)
        return native(self._values.to_native()) if native else super().factor()


class FactorColumn(TableColumn):
    """A column of distinct values, and the position of the value in each row."""

    def __init__(
        self,
        position: int,
        name: str | None,
        factor: Factor,
        storage: CellKind,
        *,
        is_category: bool = False,
        is_ordered: bool = False,
        is_integer: bool = False,
    ) -> None:
        super().__init__(position, name, factor, storage)
        self.is_category, self.is_ordered = is_category, is_ordered
        self.is_integer = is_integer
        self.declared = factor.values if is_category else None
        self.order = tuple(factor.values) if is_ordered else None
        if not (factor.indices >= 0).any():
            self.cells = "nothing"

    def __len__(self) -> int:
        return len(self._values.indices)

    def numbers(self) -> Floats:
        if self.cells == "nothing":
            return np.full(len(self), math.nan)
        # The entry added last is the one that index -1 picks.
        return np.array([*self._values.values, math.nan], float)[self._values.indices]

    def factor(self) -> Factor:
        factor: Factor = self._values
        return factor

    def objects(self) -> Sequence[Any]:
        cells = np.array([*self._values.values, None], dtype=object)
        return list(cells[self._values.indices])

    def take(self, rows: Ints) -> FactorColumn:
        factor = Factor(self._values.indices[rows], self._values.values)
        return FactorColumn(
            *(self.position, self.name, factor, self.storage),
            is_category=self.is_category,
            is_ordered=self.is_ordered,
            is_integer=self.is_integer,
        )


def array_column(position: int, name: str | None, values: NDArray[Any]) -> TableColumn:
    """Make a column of a NumPy array of one dimension."""
    kind = ObjectColumn if values.dtype == object else ArrayColumn
    return kind(position, name, values)


def series_column(
    position: int, name: str | None, series: Any, dtype: Any = None
) -> TableColumn:
    """Make a column of a narwhals series; its type is looked up if not given."""
    column = _column_of(position, name, series, dtype)
    column.source = series
    return column


def _column_of(position: int, name: str | None, series: Any, dtype: Any) -> TableColumn:
    # Once for each column: narwhals works it out each time it is asked.
    dtype = series.dtype if dtype is None else dtype
    # Of a pandas column of objects narwhals reads the first hundred cells only.
    native = series.to_native()
    if dtype == nw.Object or getattr(native, "dtype", None) == np.dtype(object):
        cells = np.asarray(series.to_numpy(), dtype=object)
        return ObjectColumn(position, name, cells)
    if dtype in _INTEGERS or dtype == nw.Boolean:
        return ArrayColumn(position, name, *_values_and_missing(series, dtype))
    if dtype.is_numeric():
        if dtype not in (nw.Float64, nw.Float32):
            series = series.cast(nw.Float64)
        return ArrayColumn(position, name, np.asarray(series.to_numpy()))
    if dtype == nw.String:
        return TextColumn(position, name, series)
    if isinstance(dtype, (nw.Categorical, nw.Enum)):
        declared = factors.category_column(native, column_label(position, name))
        if declared is None:
            return TextColumn(position, name, series)
        factor, kind, is_ordered = declared
        return FactorColumn(
            position, name, factor, kind, is_category=True, is_ordered=is_ordered
        )
    if dtype == nw.Unknown and series.null_count() == len(series):
        nothing = Factor(np.full(len(series), -1, dtype=np.int8), [])
        return FactorColumn(position, name, nothing, "nothing")
    raise _unsupported(column_label(position, name), dtype, native)


def _values_and_missing(
    series: Any, dtype: Any
) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """Return whole numbers or booleans of a frame, and which of them are missing."""
    as_type = bool if dtype == nw.Boolean else None
    if not series.null_count():
        return np.asarray(series.to_numpy(), as_type), None
    missing = series.is_null().to_numpy().astype(bool, copy=False)
    first = int(missing.argmin())
    # A value that is there anyway makes the range no larger. It is quicker filled in by
    # the library, but pyarrow does so for numbers of int64 only.
    if not missing[first] and dtype != nw.UInt64:
        return np.asarray(series.fill_null(series[first]).to_numpy(), as_type), missing
    present = np.asarray(series.drop_nulls().to_numpy(), as_type)
    values = np.full(len(series), present[0] if present.size else 0, present.dtype)
    values[~missing] = present
    return values, missing


def _unsupported(label: str, dtype: Any, native: Any) -> ColumnError:
    if dtype.is_temporal():
        return factors.dates_refused(label, dtype)
    if dtype.is_nested():
        return ColumnError(
            f"{label} holds nested values ({dtype}). Split it into one column per "
            "element first."
        )
    if dtype == nw.Binary:
        return ColumnError(
            f"{label} holds bytes, not text. Decode it first, for example by a cast "
            "to the string type."
        )
    kind = getattr(native, "dtype", dtype)
    if str(kind).startswith("Sparse"):
        return ColumnError(
            f"{label} is sparse ({kind}). Make it dense, for example with "
            "df.sparse.to_dense()."
        )
    return ColumnError(
        f"{label} has a type that is not supported ({kind}). Use numbers, text, "
        "booleans or categories."
    )
