"""Weightings: from a vector of weights to a table, and back for gradients."""

from __future__ import annotations

from steelyard.weighting.attribute import (
    AttributeWeighting,
    ClassAttributeWeighting,
    MixtureWeighting,
    ValueWeighting,
)
from steelyard.weighting.base import Effect, LogProbs, Start, Weighting
from steelyard.weighting.filters.correlation import (
    AUCWeighting,
    CorrelationWeighting,
    FilterWeighting,
    GainRatioWeighting,
    SubsetWeighting,
)
from steelyard.weighting.filters.trees import OneTreeWeighting, TreeWeighting
from steelyard.weighting.hierarchy import HierarchicalWeighting
from steelyard.weighting.named import WEIGHTINGS, resolve_weighting

__all__ = [
    "WEIGHTINGS",
    "AUCWeighting",
    "AttributeWeighting",
    "ClassAttributeWeighting",
    "CorrelationWeighting",
    "Effect",
    "FilterWeighting",
    "GainRatioWeighting",
    "HierarchicalWeighting",
    "LogProbs",
    "MixtureWeighting",
    "OneTreeWeighting",
    "Start",
    "SubsetWeighting",
    "TreeWeighting",
    "ValueWeighting",
    "Weighting",
    "resolve_weighting",
]
