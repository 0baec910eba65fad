"""Distinct values of a column and where they are, for every form of storage."""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, Ints
from steelyard.exceptions import ColumnError
from steelyard.kernels import counting

CellKind = Literal["numbers", "text", "booleans", "nothing"]

# Beyond it float64 no longer has all whole numbers.
EXACT = 2.0**53

# Cells looked at before the addresses of all are compared.
_SAMPLED_CELLS = 1024
_ROWS_PER_PASS = 1 << 14

# Fewer are quick anyway, and not worth loading a compiled loop for each type.
_FEW_CELLS = 1 << 14

_MISSING_TYPES = ("NoneType", "NAType", "NaTType")


@dataclass(frozen=True)
class Factor:
    """Distinct values of a column and, for every row, the position of its value."""

    indices: NDArray[Any]
    """Position in ``values`` of every cell, -1 if missing, shape (n,)."""

    values: list[Any]
    """Values, in any order: all str, all bool, or all int and float; none missing.

    Some may be held by no row, and category types may list one twice.
    """

    def held(self) -> tuple[list[Any], int]:
        """Return the values that occur, and the number of missing cells."""
        counts, n_missing = self.counts()
        return [v for v, n in zip(self.values, counts, strict=True) if n], n_missing

    def counts(self) -> tuple[list[int], int]:
        """Return how many cells have each value, and how many are missing."""
        counts = np.zeros(len(self.values) + 1, dtype=np.int64)
        if self.indices.size < _FEW_CELLS:
            np.add.at(counts, self._positions, 1)
        else:
            counting.tally(np.ascontiguousarray(self.indices), counts)
        n_missing, *n_held = counts.tolist()
        return n_held, n_missing

    def mass(
        self,
        labels: NDArray[np.uint32],
        weights: Floats | None,
        n_classes: int,
    ) -> tuple[Floats, Floats]:
        """Return the weight of each value by class (m, K), and of missing cells."""
        mass = np.zeros((len(self.values) + 1, n_classes))
        if self.indices.size < _FEW_CELLS:
            ones = 1.0 if weights is None else weights
            np.add.at(mass, (self._positions, labels), ones)
        else:
            weights = np.empty(0) if weights is None else weights
            indices = np.ascontiguousarray(self.indices)
            counting.tally_by_class(indices, labels, weights, mass)
        return mass[1:], mass[0]

    def pick(self, by_value: list[int], missing: int, dtype: Any) -> NDArray[Any]:
        """Map every cell to the number of its value, or that of missing cells."""
        table = np.array([missing, *by_value], dtype=dtype)
        if self.indices.size < _FEW_CELLS:
            return table[self._positions]
        out = np.empty(self.indices.shape, dtype=dtype)
        counting.look_up(np.ascontiguousarray(self.indices), table, out)
        return out

    @property
    def some_missing(self) -> bool:
        """Whether a cell is missing."""
        is_signed = self.indices.dtype.kind == "i"
        return is_signed and bool(self.indices.min(initial=0) < 0)

    @property
    def _positions(self) -> Ints:
        """Indices into a table that has an entry for missing cells in front."""
        return self.indices + np.int64(1)


# --------------------------------------------------------------------- Python objects


def is_missing(value: Any) -> bool:
    """Whether a cell is None, NaN, NA or NaT."""
    if value is None:
        return True
    if isinstance(value, (float, np.floating)):
        return math.isnan(value)
    if isinstance(value, Decimal):
        return value.is_nan()
    return type(value).__name__ in _MISSING_TYPES


def classify_objects(values: Any, label: str) -> CellKind:
    """Decide from the Python types of the cells what a column contains."""
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(values, np.ndarray):
        # Looks at every cell, in C: the usual column of text costs a millisecond.
        if pandas.api.types.infer_dtype(values, skipna=True) == "string":
            return "text"
    type_of: dict[CellKind, type] = {}
    for kind in sorted(set(map(type, values)), key=lambda kind: kind.__name__):
        if kind.__name__ in _MISSING_TYPES:
            continue
        if issubclass(kind, np.timedelta64):  # to NumPy, a duration is an integer
            raise _unsupported_cell(kind, label)
        if issubclass(kind, str):
            type_of["text"] = kind
        elif issubclass(kind, (bool, np.bool_)):
            type_of["booleans"] = kind
        elif issubclass(kind, (Real, Decimal, Fraction)):
            type_of["numbers"] = kind
        else:
            raise _unsupported_cell(kind, label)
    if "numbers" in type_of and all(
        is_missing(v) for v in values if not isinstance(v, (str, bool, np.bool_))
    ):
        # NaN is a float, and the usual missing value among text and booleans.
        del type_of["numbers"]
    if len(type_of) <= 1:
        return next(iter(type_of), "nothing")
    if "text" not in type_of:
        return "numbers"
    kinds = " and ".join(sorted(kind.__name__ for kind in type_of.values()))
    raise ColumnError(
        f"{label} mixes {kinds} values. Give all its cells one type, for example "
        "with .astype(str), and mark missing ones as None or NaN."
    )


def dates_refused(label: str, what: object) -> ColumnError:
    """Return the error for a column of dates, times or durations."""
    return ColumnError(
        f"{label} holds dates or times ({what}). Turn it into numbers (for "
        "example days since a date) or text before fitting."
    )


def _unsupported_cell(kind: type, label: str) -> Exception:
    name = kind.__name__
    if kind.__module__ == "datetime" or name.startswith(
        ("date", "timedelta", "Timestamp", "Timedelta", "Period")
    ):
        return dates_refused(label, name)
    if name == "Interval":
        return ColumnError(
            f"{label} holds intervals. Turn them into text with .astype(str)."
        )
    if issubclass(kind, (bytes, bytearray)):
        return ColumnError(
            f"{label} holds {name}, not text. Decode it, for example with "
            ".str.decode('utf-8')."
        )
    is_nested = issubclass(kind, (list, tuple, dict, set, frozenset, np.ndarray))
    return TypeError(
        f"{label} holds {f'nested values ({name})' if is_nested else f'a {name}'}: the "
        "argument must be a table whose cells are a string, a boolean, a number or "
        f"missing.{' Split it into one column per element first.' * is_nested}"
    )


def _plain(value: Any) -> Any:
    """Turn a NumPy scalar, decimal or the like into str, bool, int or float."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    return int(value) if isinstance(value, Integral) else float(value)


def _without_missing(indices: NDArray[Any], values: Sequence[Any]) -> Factor:
    """Make values plain, and cells that point to a missing one missing."""
    observed = np.array([not is_missing(value) for value in values], dtype=bool)
    plain = plain_values(values)
    if not observed.all():
        # The entry added last is the one that index -1 picks.
        moved = np.append(np.where(observed, np.cumsum(observed) - 1, -1), -1)
        indices = moved[indices]
    return Factor(indices, plain)


def group_objects(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Group cells that are the very same object: the group of each, and one of each.

    Text that was read from a file or drawn from a list repeats a few objects, which are
    compared by their addresses: four times as fast as by hashing text, and without
    the interpreter's lock. None if there would be many groups.
    """
    pandas = sys.modules.get("pandas")
    if pandas is None or values.size < _SAMPLED_CELLS:
        return None
    values = np.ascontiguousarray(values)
    # An array of objects is an array of addresses; they are compared, never followed.
    raw = (ctypes.c_ssize_t * values.size).from_address(values.ctypes.data)
    addresses = np.frombuffer(memoryview(raw), dtype=np.intp)
    if 4 * np.unique(addresses[:_SAMPLED_CELLS]).size > _SAMPLED_CELLS:
        return None
    # In pieces: the hash table of a long column would take more than the column.
    groups = np.empty(values.size, dtype=np.int32)
    seen: dict[int, int] = {}
    one_of_each: list[int] = []
    for start in range(0, values.size, _ROWS_PER_PASS):
        codes, unique = pandas.factorize(addresses[start : start + _ROWS_PER_PASS])
        last = np.empty(len(unique), dtype=np.int64)
        last[codes] = np.arange(start, start + codes.size)
        for address, row in zip(unique.tolist(), last.tolist(), strict=True):
            if seen.setdefault(address, len(seen)) == len(one_of_each):
                one_of_each.append(row)
        if 4 * len(seen) > values.size:
            return None
        group_of = np.array([seen[address] for address in unique.tolist()], np.int32)
        groups[start : start + codes.size] = group_of[codes]
    return groups.astype(np.min_scalar_type(len(seen))), values[one_of_each]


@cache
def _reads_whole_text(factorize: Any) -> bool:
    """Whether text is compared beyond a NUL, which ends it for pandas 2.2."""
    return len(factorize(np.array(["a", "a\0b"], dtype=object))[1]) == 2


def factor_objects(values: Iterable[Any]) -> Factor:
    """Cells that are Python objects; equal ones, such as 1 and 1.0, are one value."""
    values = np.asarray(values, dtype=object)
    pandas = sys.modules.get("pandas")
    if pandas is not None and _reads_whole_text(pandas.factorize):
        return _without_missing(*pandas.factorize(values))
    positions = {value: k for k, value in enumerate(dict.fromkeys(values))}
    # A NaN that is not the same object as another is a separate key, and missing.
    indices = np.fromiter(map(positions.__getitem__, values), np.int64, len(values))
    return _without_missing(indices, list(positions))


# ---------------------------------------------------------------------------- numbers


def factor_integers(values: NDArray[Any]) -> Factor:
    """Whole numbers and booleans: by a look-up table if their range is small."""
    if not values.size:
        return Factor(np.empty(0, dtype=np.int64), [])
    if values.dtype.kind == "b":
        factor = factor_integers(values.view(np.uint8))
        return Factor(factor.indices, list(map(bool, factor.values)))
    low, high = int(values.min()), int(values.max())
    if high - low < 256:
        # Not all values between need occur.
        small = np.empty(values.size, dtype=np.uint8)
        np.subtract(values, values.dtype.type(low), out=small, casting="unsafe")
        return Factor(small, list(range(low, high + 1)))
    if high - low >= max(1 << 16, 2 * values.size):
        unique, indices = np.unique(values, return_inverse=True)
        return Factor(indices, unique.tolist())
    # Differences fit, whatever the type: they are taken in its unsigned twin.
    unsigned = np.dtype(f"u{values.dtype.itemsize}")
    shifted = (values - values.dtype.type(low)).view(unsigned)
    present = np.zeros(high - low + 1, dtype=bool)
    present[shifted] = True
    index = np.cumsum(present, dtype=np.int64) - 1
    return Factor(index[shifted], [v + low for v in np.flatnonzero(present).tolist()])


def are_narrow(values: NDArray[Any]) -> bool:
    """Whether there are many whole numbers, in a small range."""
    if values.size < _FEW_CELLS:
        return False
    return int(values.max()) - int(values.min()) < 256


def factor_floats(values: Floats) -> Factor:
    """Numbers, NaN if missing; whole ones are the same values as integers."""
    observed = ~np.isnan(values)
    indices = np.full(values.size, -1, dtype=np.int64)
    unique, indices[observed] = np.unique(values[observed], return_inverse=True)
    if (np.abs(unique) < EXACT).all() and (unique == np.floor(unique)).all():
        return Factor(indices, unique.astype(np.int64).tolist())
    return Factor(indices, unique.tolist())


# --------------------------------------------------------------------- frame libraries


def _factor_pandas(series: Any) -> Factor:
    """Text of pandas."""
    pandas = sys.modules["pandas"]
    if isinstance(series.dtype, pandas.ArrowDtype):
        return _without_missing(*_arrow_dictionary(series.array.__arrow_array__()))
    if not _reads_whole_text(pandas.factorize):
        return factor_objects(series.to_numpy(dtype=object))
    indices, unique = pandas.factorize(series)
    return _without_missing(indices, list(unique))


def _factor_polars(series: Any) -> Factor:
    """Text of polars, and categories."""
    polars = sys.modules["polars"]
    if series.dtype != polars.Enum:
        series = series.cast(polars.String)
        values = series.drop_nulls().unique().to_list()
        series = series.cast(polars.Enum(values))
    codes = series.to_physical().cast(polars.Int64).fill_null(-1)
    return Factor(codes.to_numpy(), series.dtype.categories.to_list())


def _arrow_dictionary(array: Any) -> tuple[NDArray[Any], list[Any]]:
    """Return an array of Arrow as indices, -1 if missing, and the values they mean."""
    pyarrow = sys.modules["pyarrow"]
    if isinstance(array, pyarrow.ChunkedArray):
        # Chunks may have different dictionaries; combined they share one. A single
        # chunk would be copied.
        is_one = array.num_chunks == 1
        array = array.chunk(0) if is_one else array.combine_chunks()
    if isinstance(array, pyarrow.ChunkedArray):  # an empty one stays chunked
        array = pyarrow.array([], type=array.type)
    if not pyarrow.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    indices = array.indices
    if indices.null_count or indices.type == "uint64":
        indices = indices.cast("int64").fill_null(-1)
    return indices.to_numpy(), array.dictionary.to_pylist()


# By the name that narwhals has for a library.
NATIVE = {
    "pandas": _factor_pandas,
    "polars": _factor_polars,
    "pyarrow": lambda array: _without_missing(*_arrow_dictionary(array)),
}


def category_column(series: Any, label: str) -> tuple[Factor, CellKind, bool] | None:
    """Return the cells of a native series whose type declares its categories.

    Also what the categories are, and whether they are ordered. A Categorical of polars
    declares nothing: it has all strings that any such column of the process ever held.
    """
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    dtype = getattr(series, "dtype", None)
    if pandas is not None and isinstance(dtype, pandas.CategoricalDtype):
        indices, values = series.cat.codes.to_numpy(), list(dtype.categories)
        is_ordered = bool(dtype.ordered)
    elif polars is not None and isinstance(dtype, polars.Enum):
        factor, is_ordered = _factor_polars(series), True
        indices, values = factor.indices, factor.values
    else:
        if pandas is not None and isinstance(dtype, pandas.ArrowDtype):
            series = series.array.__arrow_array__()
        pyarrow = sys.modules.get("pyarrow")
        if pyarrow is None or not isinstance(series, pyarrow.ChunkedArray):
            return None
        if not pyarrow.types.is_dictionary(series.type):
            return None
        is_ordered = series.type.ordered
        indices, values = _arrow_dictionary(series)
    kind = classify_objects(values, label)
    return _without_missing(indices, values), kind, is_ordered


def plain_values(values: Iterable[Any]) -> list[Any]:
    """Return values that are not missing as str, bool, int or float."""
    return [_plain(value) for value in values if not is_missing(value)]
