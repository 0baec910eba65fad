"""Fields of a model file: how each value is written, read and built.

What is read is checked and plain: numbers, text, lists. Of that the arrays and objects
of a classifier are built, by those who need them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from steelyard.persistence.reader import ObjectReader, ReadNumbers, Special, float_list
from steelyard.table.schema import TableSchema

# Far more than any logarithm of a probability, yet any number of them adds up without
# overflow. A log-density is 5e199 at most in size, so that with a weight and a link
# scale it stays finite too.
LARGEST_LOG = 1e100
LARGEST_WEIGHT = 1e50

# Numbers whose differences can be squared, and squares of them.
LARGEST_NUMBER = 1e150
LARGEST_SQUARE = 1e300

MISSING: Special = (None, math.nan)


@dataclass(frozen=True)
class Sizes:
    """Lengths of the axes of a model and of its fitted attributes."""

    schema: TableSchema
    classes: Any
    """A list of the classes, or an array where a model is built."""

    n: int = 1
    """How many models the model is made of, or training rows it keeps."""

    by_pair: bool = False
    """Whether there is a model, with its weights, for each pair of classes."""

    @classmethod
    def of(cls, model: Any) -> Sizes:
        """Return the sizes of a model."""
        n = len(getattr(model, "models", [model]))
        return cls(model.schema, model.classes, n, model.kind == "pairs")

    def shape(self, axes: str) -> tuple[int, ...]:
        """Return the shape with some axes, each a letter; () is one number.

        They are k classes, d attributes, e of them with codes and g with densities, v
        codes, n models or rows, p pairs of classes (no axis without pairs), c, the
        classes that one set of weights tells apart, and o, log-odds: one of two
        classes, one each of more.
        """
        length = self._lengths
        return tuple(length[axis] for axis in axes if axis != "p" or self.by_pair)

    @cached_property
    def _lengths(self) -> dict[str, int]:
        # In plain Python: reading a file loads nothing but the standard library.
        n_coded = sum(feature.is_coded for feature in self.schema.features)
        return {
            "k": len(self.classes),
            "d": len(self.schema),
            "e": n_coded,
            "g": len(self.schema) - n_coded,
            "v": self.schema.n_codes,
            "n": self.n,
            "p": self.n,
            "c": 2 if self.by_pair else len(self.classes),
            "o": 1 if len(self.classes) == 2 else len(self.classes),
        }


def with_arrays(value: Any, sizes: Sizes) -> Any:
    """Return a value that was read with arrays in place of numbers of some shape."""
    if isinstance(value, list):
        return [with_arrays(entry, sizes) for entry in value]
    return value.to_array() if isinstance(value, ReadNumbers) else value


@dataclass(frozen=True)
class Field:
    """How a value is described, how it is read by its key, and what is built of it."""

    describe: Callable[[Any], Any]
    read: Callable[[ObjectReader, str, Sizes], Any]
    build: Callable[[Any, Sizes], Any] = with_arrays

    def or_null(self, empty: ReadNumbers | None = None) -> Field:
        """Return a field that is null in the file if it is None, or an empty array."""

        def describe(value: Any) -> Any:
            is_absent = value is None if empty is None else not value.size
            return None if is_absent else self.describe(value)

        def read(reader: ObjectReader, key: str, sizes: Sizes) -> Any:
            return empty if reader.get(key) is None else self.read(reader, key, sizes)

        def build(value: Any, sizes: Sizes) -> Any:
            return None if value is None else self.build(value, sizes)

        return Field(describe, read, build)


def numbers(
    axes: str,
    low: float = -LARGEST_NUMBER,
    high: float = LARGEST_NUMBER,
    special: Special | None = None,
) -> Field:
    """Return a field of bounded numbers and a special one: an array, or one number."""

    def read(reader: ObjectReader, key: str, sizes: Sizes) -> Any:
        numbers = reader.floats(key, sizes.shape(axes), low, high, special)
        return numbers if numbers.shape else numbers.flat[0]

    return Field(lambda array: float_list(array, special), read)


def weights(axes: str) -> Field:
    """Return a field of numbers that may be weights."""
    return numbers(axes, -LARGEST_WEIGHT, LARGEST_WEIGHT)


def logs() -> Field:
    """Return a field of logarithms of class probabilities, "-inf" for that of zero."""
    field = numbers("k", -LARGEST_LOG, LARGEST_LOG, ("-inf", -math.inf))

    def read(reader: ObjectReader, key: str, sizes: Sizes) -> Any:
        logarithms = field.read(reader, key, sizes)
        if max(logarithms.flat) == -math.inf:
            raise reader.complaint(key, "must hold logarithms of probabilities")
        return logarithms

    return Field(field.describe, read)


def whole(low: int) -> Field:
    """Return a field that is a whole number from ``low`` on."""
    return Field(int, lambda reader, key, sizes: reader.whole(key, low=low))


def word(allowed: Sequence[str]) -> Field:
    """Return a field that is one of some words."""
    return Field(str, lambda reader, key, sizes: reader.text(key, allowed))


def text() -> Field:
    """Return a field that is any text."""
    return Field(str, lambda reader, key, sizes: reader.text(key))


def class_of(home: str) -> Any:
    """Return a class of the package by module and name, loaded when asked for."""
    module, _, name = home.rpartition(".")
    return getattr(import_module(f"steelyard.{module}"), name)


def record(
    fields: Mapping[str, Field],
    build: Callable[..., Any],
    parts: Callable[[Any], Mapping[str, Any]] = vars,
    check: Callable[[Any], str | None] = lambda _: None,
) -> Field:
    """Return a field that is an object, built of sizes and the values of its fields.

    ``check`` returns what is wrong with values that are valid one by one, or None.
    """

    def read(reader: ObjectReader, key: str, sizes: Sizes) -> Any:
        values = SimpleNamespace(**read_fields(reader.inner(key), fields, sizes))
        wrong = check(values)
        if wrong is not None:
            raise reader.complaint(key, wrong)
        return values

    def build_it(value: Any, sizes: Sizes) -> Any:
        return build(sizes, **build_fields(fields, vars(value), sizes))

    return Field(lambda value: describe_fields(fields, parts(value)), read, build_it)


def object_of(home: str) -> Callable[..., Any]:
    """Return a function that makes an object of a class, for ``record``."""
    return lambda sizes, **values: class_of(home)(**values)


def list_of(field: Field, n: Callable[[Sizes], int | None] = lambda _: None) -> Field:
    """Return a field that is a list of another, of length ``n`` where it is known."""

    def read(reader: ObjectReader, key: str, sizes: Sizes) -> list[Any]:
        return [field.read(*entry, sizes) for entry in reader.entries(key, n(sizes))]

    return Field(
        lambda values: list(map(field.describe, values)),
        read,
        lambda values, sizes: [field.build(value, sizes) for value in values],
    )


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


def build_fields(
    fields: Mapping[str, Field], values: Mapping[str, Any], sizes: Sizes
) -> dict[str, Any]:
    """Return the objects and arrays that the values of some fields describe."""
    return {key: fields[key].build(value, sizes) for key, value in values.items()}
