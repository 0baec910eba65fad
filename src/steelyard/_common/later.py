"""Modules that are loaded when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class _Later:
    """Stands for a module, and loads it when something of it is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


def later(name: str) -> Any:
    """Return what stands for a module that is loaded when it is first used.

    Examples
    --------
    >>> fractions = later("fractions")
    >>> fractions.Fraction(1, 2)
    Fraction(1, 2)
    """
    return _Later(name)
