"""Models outside of Python: a plan of plain terms, and writers of it.

Names are loaded when they are first used: a scorer in a service needs the standard
library alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard._common.later import names_of

if TYPE_CHECKING:
    from steelyard.export.onnx import to_onnx
    from steelyard.export.plan import Plan
    from steelyard.export.pmml import to_pmml
    from steelyard.export.reading import plan_of, scorer_of
    from steelyard.export.scorer import Scorer
    from steelyard.export.source import to_javascript, to_python
    from steelyard.export.sql import to_sql
    from steelyard.export.writing import write

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


__getattr__ = names_of(
    "steelyard.export",
    onnx="to_onnx",
    plan="Plan",
    pmml="to_pmml",
    reading="plan_of scorer_of",
    scorer="Scorer",
    source="to_javascript to_python",
    sql="to_sql",
    writing="write",
)
