"""Weightings by the names that the setting ``weighting`` has for them."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from steelyard._common.settings import check_settings, resolve_part
from steelyard.weighting.attribute import (
    AttributeWeighting,
    ClassAttributeWeighting,
    MixtureWeighting,
    ValueWeighting,
)
from steelyard.weighting.base import Weighting
from steelyard.weighting.filters.correlation import (
    AUCWeighting,
    CorrelationWeighting,
    GainRatioWeighting,
    SubsetWeighting,
)
from steelyard.weighting.filters.trees import OneTreeWeighting, TreeWeighting
from steelyard.weighting.hierarchy import HierarchicalWeighting

WEIGHTINGS: dict[str, type[Weighting]] = {
    "attribute": AttributeWeighting,
    "class-attribute": ClassAttributeWeighting,
    "value": ValueWeighting,
    "mixture": MixtureWeighting,
    "hierarchy": HierarchicalWeighting,
    "correlation": CorrelationWeighting,
    "gain-ratio": GainRatioWeighting,
    "subset": SubsetWeighting,
    "trees": TreeWeighting,
    "tree": OneTreeWeighting,
    "auc": AUCWeighting,
}


def resolve_weighting(setting: Any, prior_weight: bool) -> Weighting:
    """Return the weighting that a setting names, with a weight of the prior if any."""
    weighting = resolve_part(setting, Weighting, WEIGHTINGS, "weighting")
    if prior_weight and not weighting.prior_weight:
        weighting = clone(weighting).set_params(prior_weight=True)
        check_settings(weighting)
    return weighting
