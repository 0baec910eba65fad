"""Instance weightings: from codes and labels to row weights, before counting."""

from __future__ import annotations

from typing import Any

from steelyard.classifiers.hard_rows import HardRows
from steelyard.exceptions import ParameterError
from steelyard.instances.base import InstanceWeighting, Learned, Task
from steelyard.instances.discriminative import DiscriminativeWeighting
from steelyard.instances.frequency import ValueFrequencyWeighting

__all__ = [
    "INSTANCES",
    "DiscriminativeWeighting",
    "HardRows",
    "InstanceWeighting",
    "Learned",
    "Task",
    "ValueFrequencyWeighting",
    "resolve_instances",
]

INSTANCES: dict[str, type[InstanceWeighting]] = {
    "discriminative": DiscriminativeWeighting,
    "value-frequency": ValueFrequencyWeighting,
}


def resolve_instances(setting: Any) -> InstanceWeighting | None:
    """Return the instance weighting that a setting names.

    Parameters
    ----------
    setting : str, InstanceWeighting or None
        "discriminative", "value-frequency", an object, or None for no weighting.

    Returns
    -------
    InstanceWeighting or None
        The instance weighting.
    """
    if setting is None or isinstance(setting, InstanceWeighting):
        return setting
    if isinstance(setting, str) and setting in INSTANCES:
        return INSTANCES[setting]()
    words = ", ".join(repr(name) for name in INSTANCES)
    raise ParameterError(
        f"The 'instances' parameter must be None, one of {words}, or an "
        f"InstanceWeighting object. Got {setting!r} instead."
    )
