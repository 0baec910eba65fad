"""Intervals of learned weights and of evidence: bootstrap, and Laplace's approximation.

``weight_intervals`` has what users call, ``laplace`` the problem of a fit at its
minimum, ``covariance`` how uncertain functions of its weights are, and ``maps`` these
functions.
"""

from steelyard.explain.intervals.laplace import EvidenceIntervals
from steelyard.explain.intervals.weight_intervals import (
    WeightIntervals,
    explain_weights,
)

__all__ = ["EvidenceIntervals", "WeightIntervals", "explain_weights"]
