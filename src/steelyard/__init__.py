"""Weighted naive Bayes classification for ordinary tables.

Names are loaded when they are first used, so that ``import steelyard`` stays quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "EqualFrequencyDiscretizer": "steelyard.table.discretizers",
    "EqualWidthDiscretizer": "steelyard.table.discretizers",
    "FixedEdgesDiscretizer": "steelyard.table.discretizers",
    "MDLDiscretizer": "steelyard.table.discretizers",
    "NaiveBayes": "steelyard.classifier",
    "TableEncoder": "steelyard.table.encoder",
    "load": "steelyard.persistence",
    "method": "steelyard.presets",
    "methods": "steelyard.presets",
}

__all__ = [
    "EqualFrequencyDiscretizer",
    "EqualWidthDiscretizer",
    "FixedEdgesDiscretizer",
    "MDLDiscretizer",
    "NaiveBayes",
    "TableEncoder",
    "__version__",
    "load",
    "method",
    "methods",
]

if TYPE_CHECKING:
    from steelyard.classifier import NaiveBayes
    from steelyard.persistence import load
    from steelyard.presets import method, methods
    from steelyard.table.discretizers import (
        EqualFrequencyDiscretizer,
        EqualWidthDiscretizer,
        FixedEdgesDiscretizer,
        MDLDiscretizer,
    )
    from steelyard.table.encoder import TableEncoder


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'steelyard' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
