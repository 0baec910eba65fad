"""Discretizers: numbers to bins, as scikit-learn transformers.

``base`` has what all share, ``mdl`` cut points that separate the classes, and
``unsupervised`` bins of equal width or weight, or given ones.
"""

from steelyard.table.discretizers.base import Discretizer
from steelyard.table.discretizers.mdl import MDLDiscretizer
from steelyard.table.discretizers.unsupervised import (
    EqualFrequencyDiscretizer,
    EqualWidthDiscretizer,
    FixedEdgesDiscretizer,
    GridDiscretizer,
)

__all__ = [
    "Discretizer",
    "EqualFrequencyDiscretizer",
    "EqualWidthDiscretizer",
    "FixedEdgesDiscretizer",
    "GridDiscretizer",
    "MDLDiscretizer",
]
