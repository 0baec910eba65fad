"""Checked access to parsed JSON: every value has the type, shape and range it must.

Large arrays are text: the bytes of their numbers, compressed, in base64.
"""

from __future__ import annotations

import base64
import math
import operator
import zlib
from collections.abc import Iterable, Sequence
from itertools import chain, compress
from typing import Any

import numpy as np

from steelyard._common.arrays import Floats

Special = tuple[str | None, float]
"""What the file has for a number that JSON does not know, and that number."""

# Whole numbers up to here are float64 numbers too.
_EXACT = 1 << 53

# Arrays of fewer numbers are lists, which people can read.
_SMALL = 1_000

# How many times as long as the packed bytes the unpacked ones may be.
_MAX_EXPANSION = 32


class InvalidContentError(Exception):
    """A value of a model file is invalid; the message names its place."""


class ObjectReader:
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
        """Return an error that names a value and what is wrong with it."""
        return InvalidContentError(f"{self._where}.{key} {what}")

    def finish(self) -> None:
        """Refuse keys that were not read."""
        if self._left:
            raise InvalidContentError(
                f"{self._where} has an unknown key {min(self._left)[:40]!r}"
            )

    def inner(self, key: str) -> ObjectReader:
        """Return a nested object."""
        return ObjectReader(self.get(key), f"{self._where}.{key}")

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
        value = self.get(key)
        # A file has many, and most need no more checks than these.
        if type(value) is float and math.isfinite(value) and low <= value <= high:
            return value
        return self.floats(key, (), low, high).item()

    def items(self, key: str) -> list[Any]:
        """Return a list."""
        value = self.get(key)
        if not isinstance(value, list):
            raise self.complaint(key, "must be a list")
        return value

    def values(
        self, key: str, kinds: Iterable[type], has_order: bool = False
    ) -> list[Any]:
        """Return distinct values of the given kinds.

        They must increase, unless ``has_order``: then any order is allowed.
        """
        items = self.items(key)
        if not set(map(type, items)) <= set(kinds):
            raise self.complaint(key, "holds a value of a wrong kind")
        if not all(math.isfinite(v) for v in items if isinstance(v, float)):
            raise self.complaint(key, "holds a number that is not finite")
        # Not by a set: whole numbers can be chosen so that all have one hash.
        increasing = sorted(items) if has_order else items
        if not all(map(operator.lt, increasing, increasing[1:])):
            raise self.complaint(key, "must be sorted, without repetition")
        return items

    def whole(self, key: str, *, low: int = 0) -> int:
        """Return a whole number that float64 can represent too."""
        value = self.get(key)
        if type(value) is not int or not low <= value <= _EXACT:
            raise self.complaint(key, f"must be a whole number from {low}")
        return value

    def entries(self, key: str, n: int | None = None) -> list[tuple[ObjectReader, str]]:
        """Return the items of a list, n if given: each by an object and its key."""
        items = self.items(key)
        if n is not None and len(items) != n:
            raise self.complaint(key, f"must hold {n} items")
        numbered = {str(i): item for i, item in enumerate(items)}
        reader = ObjectReader(numbered, f"{self._where}.{key}")
        return [(reader, i) for i in numbered]

    def floats(
        self,
        key: str,
        shape: tuple[int, ...],
        low: float,
        high: float,
        special: Special | None = None,
    ) -> Floats:
        """Return finite numbers of a known shape; () is one number.

        Lists are compared with the shape before anything is set aside for it.
        """
        is_plain: list[bool] = []
        if special is None and type(self.get(key)) is dict:
            numbers = self._unpacked(key, shape)
        else:
            cells = self._cells(key, shape)
            if special is not None:
                mark, _ = special
                is_plain = [type(c) is not type(mark) or c != mark for c in cells]
                cells = list(compress(cells, is_plain))
            numbers = self._floats(cells, key)
        if numbers.size and not (low <= numbers.min() and numbers.max() <= high):
            raise self.complaint(key, f"must hold numbers from {low:g} to {high:g}")
        if special is not None:
            some, numbers = numbers, np.full(len(is_plain), special[1])
            numbers[is_plain] = some
        return numbers.reshape(shape)

    def _unpacked(self, key: str, shape: tuple[int, ...]) -> Floats:
        """Return the numbers of a large array, which are bytes in a text."""
        inner = self.inner(key)
        text = inner.text("float64")
        inner.finish()
        try:
            raw = unpack(text, math.prod(shape))
        except ValueError as error:
            what = f"must have shape {shape}: {error}"
            raise self.complaint(key, what) from None
        numbers = np.frombuffer(raw, dtype="<f8").astype(np.float64)
        if not np.isfinite(numbers).all():
            raise self.complaint(key, "must hold finite numbers and nothing else")
        return numbers

    def wholes(self, key: str, size: int, high: int) -> list[int]:
        """Return a list of ``size`` whole numbers from 0 to below ``high``."""
        cells = self._cells(key, (size,))
        if not set(map(type, cells)) <= {int} or not all(0 <= c < high for c in cells):
            raise self.complaint(key, f"must hold whole numbers from 0 to {high - 1}")
        return cells

    def _cells(self, key: str, shape: tuple[int, ...]) -> list[Any]:
        """Return the entries of nested lists that must have a shape, in one list."""
        cells = [self.get(key)]
        for size in shape:
            if not all(type(row) is list and len(row) == size for row in cells):
                raise self.complaint(key, f"must have shape {shape}")
            cells = list(chain.from_iterable(cells))
        return cells

    def _floats(self, cells: list[Any], key: str) -> Floats:
        # By type and not by trial: booleans are numbers too.
        kinds = set(map(type, cells))
        whole = [cell for cell in cells if type(cell) is int] if int in kinds else ()
        if kinds <= {int, float} and all(-_EXACT <= cell <= _EXACT for cell in whole):
            numbers = np.array(cells, dtype=np.float64)
            if np.isfinite(numbers).all():
                return numbers
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
    """Return the number that an object of ``tagged_number``."""
    reader = ObjectReader(value, where)
    number = float(reader.text("number", words))
    reader.finish()
    return number


def pack(raw: bytes) -> str:
    """Return float64 numbers, given by their bytes, as text.

    The first bytes of all numbers come first, then the second, and so on: sign and
    exponent are much the same in a table, and digits are not, but for the zeros at the
    end of round numbers. Other repetitions are not looked for.
    """
    planes, data = b"".join(raw[k::8] for k in range(8)), b""
    for strategy in (zlib.Z_RLE, zlib.Z_HUFFMAN_ONLY):
        if len(raw) > _MAX_EXPANSION * len(data):
            deflate = zlib.compressobj(6, zlib.DEFLATED, 15, 9, strategy)
            data = deflate.compress(planes) + deflate.flush()
    return base64.b64encode(data).decode("ascii")


def unpack(text: str, n_numbers: int) -> bytes:
    """Return the bytes of ``n_numbers`` numbers; ValueError for any other text.

    Nothing is set aside before the text is long enough for it.
    """
    size = 8 * n_numbers
    data = base64.b64decode(text, validate=True)
    if not 0 < size <= _MAX_EXPANSION * len(data):
        raise ValueError(f"the text is too short for {n_numbers} numbers")
    inflate = zlib.decompressobj()
    try:
        planes = inflate.decompress(data, size + 1)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if len(planes) != size or not inflate.eof or inflate.unused_data:
        raise ValueError(f"the text does not hold {n_numbers} numbers")
    return np.frombuffer(planes, np.uint8).reshape(8, n_numbers).T.tobytes()
