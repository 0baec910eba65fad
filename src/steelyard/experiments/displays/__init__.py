"""Pictures of a comparison, in scikit-learn's manner; they need matplotlib.

Each is made by ``from_results``. ``ranks`` has the critical difference diagram,
``scores`` two methods against each other and all methods on a data set, ``reliability``
curves of confidence and accuracy.
"""

from steelyard.experiments.displays.ranks import CriticalDifferenceDisplay
from steelyard.experiments.displays.reliability import PooledReliabilityDisplay
from steelyard.experiments.displays.scores import BarsDisplay, ScatterDisplay

__all__ = [
    "BarsDisplay",
    "CriticalDifferenceDisplay",
    "PooledReliabilityDisplay",
    "ScatterDisplay",
]
