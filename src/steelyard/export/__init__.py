"""Models outside of Python: a plan of plain terms, and writers of it.

Names are loaded when they are first used: a scorer in a service needs the standard
library alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steelyard.export.onnx import to_onnx
    from steelyard.export.plan import Plan
    from steelyard.export.pmml import to_pmml
    from steelyard.export.reading import plan_of, scorer_of
    from steelyard.export.scorer import Scorer
    from steelyard.export.source import to_javascript, to_python
    from steelyard.export.sql import to_sql
    from steelyard.export.writing import write

_HOMES = {
    "Plan": "plan",
    "Scorer": "scorer",
    "plan_of": "reading",
    "scorer_of": "reading",
    "to_javascript": "source",
    "to_onnx": "onnx",
    "to_pmml": "pmml",
    "to_python": "source",
    "to_sql": "sql",
    "write": "writing",
}

__all__ = [
    "Plan",
    "Scorer",
    "plan_of",
    "scorer_of",
    "to_javascript",
    "to_onnx",
    "to_pmml",
    "to_python",
    "to_sql",
    "write",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'steelyard.export' has no attribute {name!r}")
    return getattr(import_module(f"steelyard.export.{_HOMES[name]}"), name)
