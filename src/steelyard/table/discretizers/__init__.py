"""Discretizers: numbers to bins, as scikit-learn transformers."""

from __future__ import annotations

from steelyard.table.discretizers.base import Discretizer
from steelyard.table.discretizers.equal_frequency import EqualFrequencyDiscretizer
from steelyard.table.discretizers.equal_width import EqualWidthDiscretizer
from steelyard.table.discretizers.fixed import FixedEdgesDiscretizer
from steelyard.table.discretizers.mdl import MDLDiscretizer

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
