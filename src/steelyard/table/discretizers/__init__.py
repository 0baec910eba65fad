"""Discretizers: numbers to bins, as scikit-learn transformers."""

from __future__ import annotations

from steelyard.table.discretizers.base import Discretizer, MDLDiscretizer
from steelyard.table.discretizers.unsupervised import (
    EqualFrequencyDiscretizer,
    EqualWidthDiscretizer,
    FixedEdgesDiscretizer,
)

CLASSES = (
    EqualFrequencyDiscretizer,
    EqualWidthDiscretizer,
    FixedEdgesDiscretizer,
    MDLDiscretizer,
)
"""Every discretizer that a setting may hold."""

__all__ = [
    "CLASSES",
    "Discretizer",
    "EqualFrequencyDiscretizer",
    "EqualWidthDiscretizer",
    "FixedEdgesDiscretizer",
    "MDLDiscretizer",
]
