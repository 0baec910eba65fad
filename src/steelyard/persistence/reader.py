"""Checked access to parsed JSON: every value has the type, shape and range it must."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["InvalidContentError", "Reader", "float_list"]


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
            raise InvalidContentError(f"{self._where}.{key} is missing")
        self._left.discard(key)
        return self._value[key]

    def finish(self) -> None:
        """Refuse keys that nobody asked for."""
        if self._left:
            raise InvalidContentError(
                f"{self._where} has an unknown key {min(self._left)!r}"
            )

    def inner(self, key: str) -> Reader:
        """Return a nested object."""
        return Reader(self.get(key), f"{self._where}.{key}")

    def text(self, key: str, allowed: Sequence[str] | None = None) -> str:
        """Return a string, one of the allowed ones if given."""
        value = self.get(key)
        if not isinstance(value, str) or (allowed is not None and value not in allowed):
            raise InvalidContentError(f"{self._where}.{key} is not an allowed word")
        return value

    def flag(self, key: str) -> bool:
        """Return a boolean."""
        value = self.get(key)
        if not isinstance(value, bool):
            raise InvalidContentError(f"{self._where}.{key} must be true or false")
        return value

    def number(self, key: str) -> float:
        """Return a finite number."""
        return _finite(self.get(key), f"{self._where}.{key}")

    def items(self, key: str) -> list[Any]:
        """Return a list."""
        value = self.get(key)
        if not isinstance(value, list):
            raise InvalidContentError(f"{self._where}.{key} must be a list")
        return value

    def values(self, key: str) -> list[Any]:
        """Return a list of values of one kind: text, booleans, or finite numbers."""
        found = self.items(key)
        kinds = {type(value) for value in found}
        if kinds <= {int, float}:
            if not all(math.isfinite(v) for v in found if isinstance(v, float)):
                raise InvalidContentError(
                    f"{self._where}.{key} holds a number that is not finite"
                )
        elif kinds not in ({str}, {bool}):
            raise InvalidContentError(f"{self._where}.{key} mixes kinds of values")
        if found != sorted(set(found)):
            raise InvalidContentError(
                f"{self._where}.{key} must be sorted, without repetition"
            )
        return found

    def floats(
        self, key: str, shape: tuple[int, ...], *, log: bool = False
    ) -> NDArray[np.float64]:
        """Return an array of finite numbers of a known shape, from nested lists.

        The shape is compared with the lists before anything is set aside for it. With
        ``log`` the word "-inf" stands for the logarithm of zero.
        """
        where = f"{self._where}.{key}"
        flat: list[float] = []
        _flatten(self.get(key), shape, where, log, flat)
        return np.array(flat, dtype=np.float64).reshape(shape)


def float_list(array: NDArray[np.float64]) -> Any:
    """Return nested lists of an array, with "-inf" spelt as text."""
    if array.ndim > 1:
        return [float_list(row) for row in array]
    return [x if x != -math.inf else "-inf" for x in array.tolist()]


def _flatten(
    value: Any, shape: tuple[int, ...], where: str, log: bool, out: list[float]
) -> None:
    if not shape:
        if log and value == "-inf":
            out.append(-math.inf)
        else:
            out.append(_finite(value, where))
        return
    if not isinstance(value, list) or len(value) != shape[0]:
        raise InvalidContentError(f"{where} must have shape {shape}")
    for item in value:
        _flatten(item, shape[1:], where, log, out)


def _finite(value: Any, where: str) -> float:
    if type(value) is int and abs(value) < 1 << 53:
        return float(value)
    if type(value) is not float or not math.isfinite(value):
        raise InvalidContentError(f"{where} must be a finite number")
    return value
