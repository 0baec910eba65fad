"""Modules that are loaded when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["Later", "import_optional", "names_of", "np"]


class Later:
    """A module that is loaded when one of its names is first used.

    >>> fractions = Later("fractions")
    >>> fractions.Fraction(1, 2)
    Fraction(1, 2)
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self._name), name)
        setattr(self, name, value)
        return value


# Small files are read, and schemas asked, without NumPy.
if TYPE_CHECKING:
    import numpy as np
else:
    np = Later("numpy")


def import_optional(module: str, what: str, package: str) -> Any:
    """Import a module of an optional dependency, or raise an error on how to get it."""
    try:
        return import_module(module)
    except ImportError:
        name = module.partition(".")[0]
        raise ModuleNotFoundError(
            f"{what} {name}, which is not installed. Install it with: pip install "
            f"'{package}'",
            name=name,
        ) from None


def names_of(package: str, **modules: str) -> tuple[Callable[[str], Any], list[str]]:
    """Return ``__getattr__`` and ``__all__`` of a package, given what its modules name.

    Type checkers, which cannot follow it, are shown the modules themselves.
    """
    homes = {name: of for of, names in modules.items() for name in names.split()}

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    # For Tab, which asks the module itself.
    vars(sys.modules[package])["__dir__"] = lambda: sorted(homes)
    return find, sorted(homes)
