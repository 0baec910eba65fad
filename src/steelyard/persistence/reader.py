"""Checked access to parsed JSON: every value has the type, shape and range it must."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.packed import pack, unpack

Special = tuple[str | None, float]
"""What the file has for a number that JSON does not know, and that number."""

# Whole numbers up to here are float64 numbers too.
_EXACT = 1 << 53

# Arrays of fewer numbers are lists, which people can read.
_SMALL = 1_000


class InvalidContentError(Exception):
    """A value in the document is not what it must be; says where."""


class Reader:
    """A JSON object and where in the document it is."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise InvalidContentError(f"{where} must be an object")
        self._value = value
        self._where = where
        self._left = set(value)

    def get(self, key: str) -> Any:
        """Return a value that must be there."""
        if key not in self._value:
            raise self.complaint(key, "is missing")
        self._left.discard(key)
        return self._value[key]

    def has(self, key: str) -> bool:
        """Whether there is a value of that name."""
        return key in self._value

    def complaint(self, key: str, what: str) -> InvalidContentError:
        """Return the error that says what is wrong with a value."""
        return InvalidContentError(f"{self._where}.{key} {what}")

    def finish(self) -> None:
        """Refuse keys that nobody asked for."""
        if self._left:
            raise InvalidContentError(
                f"{self._where} has an unknown key {min(self._left)[:40]!r}"
            )

    def inner(self, key: str) -> Reader:
        """Return a nested object."""
        return Reader(self.get(key), f"{self._where}.{key}")

    def text(self, key: str, allowed: Sequence[str] | None = None) -> str:
        """Return a string, one of the allowed ones if given."""
        value = self.get(key)
        if not isinstance(value, str) or (allowed is not None and value not in allowed):
            raise self.complaint(key, "is not an allowed word")
        return value

    def flag(self, key: str) -> bool:
        """Return a boolean."""
        value = self.get(key)
        if not isinstance(value, bool):
            raise self.complaint(key, "must be true or false")
        return value

    def number(self, key: str, low: float, high: float) -> float:
        """Return a number of some range."""
        return float(self.floats(key, (), low, high))

    def items(self, key: str) -> list[Any]:
        """Return a list."""
        value = self.get(key)
        if not isinstance(value, list):
            raise self.complaint(key, "must be a list")
        return value

    def values(self, key: str, kinds: Iterable[type]) -> list[Any]:
        """Return distinct values of the given kinds in increasing order."""
        items = self.items(key)
        if not set(map(type, items)) <= set(kinds):
            raise self.complaint(key, "holds a value of a wrong kind")
        if not all(math.isfinite(v) for v in items if isinstance(v, float)):
            raise self.complaint(key, "holds a number that is not finite")
        # Not by a set: whole numbers can be chosen so that all have one hash.
        if not all(map(operator.lt, items, items[1:])):
            raise self.complaint(key, "must be sorted, without repetition")
        return items

    def whole(self, key: str, *, low: int = 0) -> int:
        """Return a whole number that float64 could hold too."""
        value = self.get(key)
        if type(value) is not int or not low <= value <= _EXACT:
            raise self.complaint(key, f"must be a whole number from {low}")
        return value

    def entries(self, key: str, n: int | None = None) -> list[tuple[Reader, str]]:
        """Return the items of a list, n if given: each by an object and its key."""
        items = self.items(key)
        if n is not None and len(items) != n:
            raise self.complaint(key, f"must hold {n} items")
        numbered = {str(i): item for i, item in enumerate(items)}
        reader = Reader(numbered, f"{self._where}.{key}")
        return [(reader, i) for i in numbered]

    def floats(
        self,
        key: str,
        shape: tuple[int, ...],
        low: float,
        high: float,
        special: Special | None = None,
    ) -> NDArray[np.float64]:
        """Return an array of finite numbers of a known shape; () is one number.

        Lists are compared with the shape before anything is set aside for it.
        """
        if special is None and type(self.get(key)) is dict:
            array = self._unpacked(key, shape)
            return self._within(array, key, low, high).reshape(shape)
        cells = self._cells(key, shape)
        is_special = np.zeros(len(cells), dtype=bool)
        mark, number = special or (None, 0.0)
        if special is not None:
            is_special[:] = [type(c) is type(mark) and c == mark for c in cells]
            cells = [0.0 if s else c for c, s in zip(cells, is_special, strict=True)]
        array = self._floats(cells, key)
        self._within(array[~is_special], key, low, high)
        array[is_special] = number
        return array.reshape(shape)

    def _within(
        self, array: NDArray[np.float64], key: str, low: float, high: float
    ) -> NDArray[np.float64]:
        if array.size and not (low <= array.min() and array.max() <= high):
            raise self.complaint(key, f"must hold numbers from {low:g} to {high:g}")
        return array

    def _unpacked(self, key: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
        """Return the numbers of a large array, which are bytes in a text."""
        inner = self.inner(key)
        text = inner.text("float64")
        inner.finish()
        try:
            raw = unpack(text, math.prod(shape))
        except ValueError as error:
            what = f"must have shape {shape}: {error}"
            raise self.complaint(key, what) from None
        array = np.frombuffer(raw, dtype="<f8").astype(np.float64)
        if not np.isfinite(array).all():
            raise self.complaint(key, "must hold finite numbers and nothing else")
        return array

    def wholes(self, key: str, shape: tuple[int, ...], high: int) -> NDArray[np.int64]:
        """Return an array of whole numbers from 0 to below ``high``."""
        cells = self._cells(key, shape)
        if not set(map(type, cells)) <= {int} or not all(0 <= c < high for c in cells):
            raise self.complaint(key, f"must hold whole numbers from 0 to {high - 1}")
        return np.array(cells, dtype=np.int64).reshape(shape)

    def _cells(self, key: str, shape: tuple[int, ...]) -> list[Any]:
        """Return the entries of nested lists that must have a shape, in one list."""
        cells = [self.get(key)]
        for size in shape:
            if not all(type(row) is list and len(row) == size for row in cells):
                raise self.complaint(key, f"must have shape {shape}")
            cells = list(chain.from_iterable(cells))
        return cells

    def _floats(self, cells: list[Any], key: str) -> NDArray[np.float64]:
        # By type and not by trial: NumPy would turn text and booleans into numbers.
        kinds = set(map(type, cells))
        whole = [cell for cell in cells if type(cell) is int] if int in kinds else ()
        if kinds <= {int, float} and all(-_EXACT <= cell <= _EXACT for cell in whole):
            array = np.array(cells, dtype=np.float64)
            if np.isfinite(array).all():
                return array
        raise self.complaint(key, "must hold finite numbers and nothing else")


def float_list(array: Any, special: Special | None = None) -> Any:
    """Return nested lists of the numbers of an array or of arrays, or one number.

    Large arrays without a special number are packed; save refuses what is not finite.
    """
    if isinstance(array, list):
        return [float_list(entry) for entry in array]
    array = np.asarray(array, dtype=np.float64)
    if special is None and (array.size < _SMALL or not np.isfinite(array).all()):
        return array.tolist()
    if special is None:
        return {"float64": pack(array.astype("<f8").tobytes())}
    mark, number = special
    plain = array.astype(object)
    plain[np.isnan(array) if math.isnan(number) else array == number] = mark
    return plain.tolist()


def tagged_number(value: float) -> Any:
    """Return a number as it is, or an object for one that JSON does not know."""
    return value if math.isfinite(value) else {"number": repr(value)}


def read_tagged(value: Any, where: str, words: Sequence[str]) -> float:
    """Return the number that an object of ``tagged_number`` stands for."""
    reader = Reader(value, where)
    number = float(reader.text("number", words))
    reader.finish()
    return number
