"""From counts to probabilities: smoothing, priors and densities."""

from steelyard.proba.gaussian import GaussianTable, estimate_gaussian
from steelyard.proba.smoothing import (
    Lidstone,
    MEstimate,
    Smoothing,
    estimate_prior,
    resolve_smoothing,
)

__all__ = [
    "GaussianTable",
    "Lidstone",
    "MEstimate",
    "Smoothing",
    "estimate_gaussian",
    "estimate_prior",
    "resolve_smoothing",
]
