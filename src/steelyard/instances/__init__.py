"""Instance weightings: from codes and labels to row weights, before counting."""

from __future__ import annotations

from typing import Any

from steelyard._common.settings import resolve_part
from steelyard.instances.row_weights import (
    DiscriminativeWeighting,
    InstanceWeighting,
    Learned,
    ValueFrequencyWeighting,
)

__all__ = [
    "INSTANCES",
    "DiscriminativeWeighting",
    "InstanceWeighting",
    "Learned",
    "ValueFrequencyWeighting",
    "resolve_instances",
]

INSTANCES: dict[str, type[InstanceWeighting]] = {
    "discriminative": DiscriminativeWeighting,
    "value-frequency": ValueFrequencyWeighting,
}


def resolve_instances(setting: Any) -> InstanceWeighting:
    """Return the instance weighting that a setting names."""
    return resolve_part(setting, InstanceWeighting, INSTANCES, "instances")
