"""From counts to probabilities: smoothing, priors and densities.

Names are loaded when they are first used: a model that predicts needs no smoothing.
"""

from typing import TYPE_CHECKING

from steelyard._common import names_of

if TYPE_CHECKING:
    from steelyard.proba.gaussian import *  # noqa: F403
    from steelyard.proba.smoothing import *  # noqa: F403

__getattr__, __all__ = names_of(
    "steelyard.proba",
    gaussian="GaussianTable estimate_gaussian",
    smoothing="SMOOTHINGS EmpiricalBayes KernelDensity Lidstone MEstimate Smoothing "
    "estimate_prior resolve_smoothing",
)
