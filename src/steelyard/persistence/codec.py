"""Fields of a model file: how a value is described in JSON, and how it is read.

What is read is checked: arrays, numbers, text, lists, records. ``built`` makes objects
of records, for which their classes are loaded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.allowed import N_BARS
from steelyard.persistence.reader import ObjectReader, Special, float_list
from steelyard.table.schema import TableSchema

# Far more than any logarithm of a probability, yet any number of them adds up without
# overflow. A log-density is 5e199 at most in size, so that with a weight and a link
# scale it stays finite too.
LARGEST_LOG = 1e100
LARGEST_WEIGHT = 1e50

# Numbers whose differences can be squared, and squares of them.
LARGEST_NUMBER = 1e150
LARGEST_SQUARE = 1e300

# Decimals of numbers that are stored as whole ones.
_MAX_DECIMALS, _MAX_WHOLE = 12, 1e15

MISSING: Special = (None, math.nan)


# ---------------------------------------------------------------------- what was read


class ReadRecord(SimpleNamespace):
    """Checked values by name, and what makes an object of them."""

    def __init__(self, make: Callable[..., Any], **values: Any) -> None:
        super().__init__(**values)
        self._make = make

    def build(self) -> Any:
        """Return the object."""
        values = {key: built(value) for key, value in vars(self).items()}
        make = values.pop("_make")
        return make(**values)


def built(value: Any) -> Any:
    """Return a value that was read, with objects in place of records."""
    if isinstance(value, ReadRecord):
        return value.build()
    if isinstance(value, (list, tuple)):
        # Those of numbers and texts are plain, and may be long.
        is_plain = bool(value) and isinstance(value[0], (float, str))
        return value if is_plain else type(value)(map(built, value))
    return value


@cache
def class_of(home: str) -> Any:
    """Return a class of the package by module and name, loaded when asked for."""
    module, _, name = home.rpartition(".")
    return getattr(import_module(f"steelyard.{module}"), name)


@dataclass(frozen=True)
class Sizes:
    """Lengths of the axes of a model and of its fitted attributes."""

    schema: TableSchema
    classes: NDArray[Any]
    n: int = 1
    """How many models the model is made of, or training rows it keeps."""

    by_pair: bool = False
    """Whether there is a model, with its weights, for each pair of classes."""

    def shape(self, axes: str) -> tuple[int, ...]:
        """Return the shape with some axes, each a letter; () is one number.

        k classes, t columns of the table, d attributes (interactions included), e of
        them with codes and g with densities, v codes, n models or rows, p pairs of
        classes (no axis without pairs), c classes of one set of weights, o log-odds
        (one for two classes, else one for each), q quartiles, b bars of a histogram.
        """
        lengths = self._lengths
        kept = [axis for axis in axes if axis != "p" or self.by_pair]
        return tuple(lengths[axis] for axis in kept)

    @cached_property
    def _lengths(self) -> dict[str, int]:
        n_coded = sum(feature.is_coded for feature in self.schema.features)
        n_classes = len(self.classes)
        return {
            "k": n_classes,
            "t": self.schema.n_columns,
            "d": len(self.schema),
            "e": n_coded,
            "g": len(self.schema) - n_coded,
            "v": self.schema.n_codes,
            "n": self.n,
            "p": self.n,
            "c": 2 if self.by_pair else n_classes,
            "o": 1 if n_classes == 2 else n_classes,
            "q": 3,
            "b": N_BARS,
        }


# ----------------------------------------------------------------------------- fields


@dataclass(frozen=True)
class Field:
    """How a value is described, and how it is read by its key."""

    describe: Callable[[Any], Any]
    read: Callable[[ObjectReader, str, Sizes], Any]

    def or_null(self, empty: Any = None) -> Field:
        """Return a field that is null in the file if it is None, or an empty array."""

        def describe(value: Any) -> Any:
            is_absent = value is None if empty is None else not value.size
            return None if is_absent else self.describe(value)

        def read(reader: ObjectReader, key: str, sizes: Sizes) -> Any:
            return empty if reader.get(key) is None else self.read(reader, key, sizes)

        return Field(describe, read)

    def by_pair(self) -> Field:
        """Return a field of one value for each pair of classes, if pairs are learned.

        ``describe`` must take lists of values too.
        """

        def read(reader: ObjectReader, key: str, sizes: Sizes) -> Any:
            if not sizes.by_pair:
                return self.read(reader, key, sizes)
            return [self.read(*entry, sizes) for entry in reader.entries(key, sizes.n)]

        return Field(self.describe, read)


def numbers(
    axes: str = "",
    low: float = -LARGEST_NUMBER,
    high: float = LARGEST_NUMBER,
    special: Special | None = None,
) -> Field:
    """Return a field of bounded numbers and a special one: an array, or one number."""

    def read(reader: ObjectReader, key: str, sizes: Sizes) -> Any:
        shape = sizes.shape(axes) if axes else ()
        if not shape:
            return reader.number(key, low, high)
        return reader.floats(key, shape, low, high, special)

    return Field(lambda array: float_list(array, special), read)


def rounded(axes: str, low: float, high: float, is_repeated: bool = False) -> Field:
    """Return a field of an array of numbers with few digits.

    They are stored as whole numbers, a power of ten times as large, of which most bytes
    are zeros. ``is_repeated`` arrays have another axis, the first, of any length.
    """

    def describe(values: Any) -> dict[str, Any]:
        values = np.asarray(values, dtype=np.float64)
        count = {"n": len(values)} if is_repeated else {}
        for power in map(float, range(_MAX_DECIMALS + 1)):
            wholes = np.rint(values * 10.0**power)
            is_exact = wholes / 10.0**power == values
            if is_exact.all() and np.abs(wholes).max(initial=0.0) < _MAX_WHOLE:
                # Small arrays are lists, in which 12 is shorter than 12.0. A zero with
                # a sign is none of the whole numbers.
                times = float_list(wholes)
                is_zero = wholes == 0.0
                if isinstance(times, list) and not np.signbit(wholes[is_zero]).any():
                    times = wholes.astype(np.int64).tolist()
                return {**count, "divisor": 10.0**power, "numbers": times}
        return {**count, "divisor": 1.0, "numbers": float_list(values)}

    def read(reader: ObjectReader, key: str, sizes: Sizes) -> Any:
        inner = reader.inner(key)
        shape = sizes.shape(axes)
        if is_repeated:
            shape = (inner.whole("n", low=1), *shape)
        divisor = inner.number("divisor", 1.0, 10.0**_MAX_DECIMALS)
        wholes = inner.floats("numbers", shape, low * divisor, high * divisor)
        inner.finish()
        return wholes / divisor

    return Field(describe, read)


def weights(axes: str = "", low: float = -LARGEST_WEIGHT) -> Field:
    """Return a field of numbers that may be weights."""
    return numbers(axes, low, LARGEST_WEIGHT)


def logs() -> Field:
    """Return a field of logarithms of class probabilities, "-inf" for that of zero."""
    field = numbers("k", -LARGEST_LOG, LARGEST_LOG, ("-inf", -math.inf))

    def read(reader: ObjectReader, key: str, sizes: Sizes) -> Any:
        logarithms = field.read(reader, key, sizes)
        if logarithms.max() == -math.inf:
            raise reader.complaint(key, "must hold logarithms of probabilities")
        return logarithms

    return Field(field.describe, read)


def some_numbers(n: int, low: float = -math.inf, high: float = math.inf) -> Field:
    """Return a field of a tuple of ``n`` numbers, or of none."""

    def read(reader: ObjectReader, key: str, sizes: Sizes) -> tuple[float, ...]:
        size = n if reader.items(key) else 0
        return tuple(reader.floats(key, (size,), low, high).tolist())

    return Field(list, read)


def positions(axis: str, among: str, dtype: str) -> Field:
    """Return a field of an array of positions along an axis, such as labels."""

    def read(reader: ObjectReader, key: str, sizes: Sizes) -> NDArray[Any]:
        (n,), (high,) = sizes.shape(axis), sizes.shape(among)
        return np.array(reader.wholes(key, n, high), dtype=dtype)

    return Field(lambda array: array.tolist(), read)


def whole(low: int) -> Field:
    """Return a field that is a whole number from ``low`` on."""
    return Field(int, lambda reader, key, sizes: reader.whole(key, low=low))


def flag() -> Field:
    """Return a field that is true or false."""
    return Field(bool, lambda reader, key, sizes: reader.flag(key))


def text(allowed: Sequence[str] | None = None) -> Field:
    """Return a field that is a text, one of the allowed ones if given."""
    return Field(str, lambda reader, key, sizes: reader.text(key, allowed))


def list_of(field: Field, axis: str = "") -> Field:
    """Return a field that is a list of another, as long as an axis if given."""

    def read(reader: ObjectReader, key: str, sizes: Sizes) -> list[Any]:
        n = sizes.shape(axis)[0] if axis else None
        return [field.read(*entry, sizes) for entry in reader.entries(key, n)]

    return Field(lambda values: list(map(field.describe, values)), read)


def by_name(field: Field) -> Field:
    """Return a field that is a mapping from names to values of another."""

    def read(reader: ObjectReader, key: str, sizes: Sizes) -> dict[str, Any]:
        inner = reader.inner(key)
        return {name: field.read(inner, name, sizes) for name in reader.get(key)}

    return Field(
        lambda values: {name: field.describe(value) for name, value in values.items()},
        read,
    )


def record(
    home: str,
    *,
    counted: str = "",
    make: Callable[..., Any] = lambda kind, schema, values: kind(**values),
    parts: Callable[[Any], Mapping[str, Any]] = vars,
    valid: Callable[[Any], bool] = lambda values: True,
    wrong: str = "",
    **fields: Field,
) -> Field:
    """Return a field that is an object of a class, given by module and name.

    A dataclass is stored by its fields. For other classes ``make`` makes an object of
    the class, the schema and the values, and ``parts`` returns the values of an object.
    ``counted`` is the field whose length is that of the axis n. ``valid`` tests values
    together that are valid one by one, and ``wrong`` is the complaint if they are not.
    """

    def read(reader: ObjectReader, key: str, sizes: Sizes) -> ReadRecord:
        inner = reader.inner(key)
        if counted:
            sizes = replace(sizes, n=len(inner.items(counted)))
            if not sizes.n:
                raise inner.complaint(counted, "must not be empty")
        values = read_fields(inner, fields, sizes)
        checked = ReadRecord(
            lambda **values: make(class_of(home), sizes.schema, values), **values
        )
        if not valid(checked):
            raise reader.complaint(key, wrong)
        return checked

    return Field(lambda value: describe_fields(fields, parts(value)), read)


def describe_fields(
    fields: Mapping[str, Field], values: Mapping[str, Any]
) -> dict[str, Any]:
    """Describe the values of some fields in JSON's own types."""
    return {key: field.describe(values[key]) for key, field in fields.items()}


def read_fields(
    reader: ObjectReader, fields: Mapping[str, Field], sizes: Sizes
) -> dict[str, Any]:
    """Return the values of all fields of an object that has no others."""
    values = {key: field.read(reader, key, sizes) for key, field in fields.items()}
    reader.finish()
    return values
