"""From counts to probabilities: smoothing, priors and densities."""

from steelyard.proba.estimation import GaussianTable, estimate_gaussian
from steelyard.proba.smoothing import (
    SMOOTHINGS,
    EmpiricalBayes,
    Lidstone,
    MEstimate,
    Smoothing,
    estimate_prior,
    resolve_smoothing,
)

__all__ = [
    "SMOOTHINGS",
    "EmpiricalBayes",
    "GaussianTable",
    "Lidstone",
    "MEstimate",
    "Smoothing",
    "estimate_gaussian",
    "estimate_prior",
    "resolve_smoothing",
]
