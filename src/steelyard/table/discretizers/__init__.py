"""Discretizers: numbers to bins, as scikit-learn transformers.

Here are bins that do not look at the classes, of equal width or weight, or given;
``base`` has what all share, and cut points by MDL.
"""

from typing import TYPE_CHECKING

from steelyard._common import names_of

if TYPE_CHECKING:
    from steelyard.table.discretizers.base import *  # noqa: F403
    from steelyard.table.discretizers.unsupervised import *  # noqa: F403

__getattr__, __all__ = names_of(
    "steelyard.table.discretizers",
    base="Discretizer MDLDiscretizer",
    unsupervised="CLASSES EqualFrequencyDiscretizer EqualWidthDiscretizer "
    "FixedEdgesDiscretizer",
)
