"""What classifiers share that can learn on a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from steelyard._common.devices import DEVICE
from steelyard._common.settings import setting
from steelyard.classifiers.base import StandardNB
from steelyard.fitting.recipe import Recipe

__all__ = ["LearnsOnDevice"]


class LearnsOnDevice(StandardNB):
    """A classifier that learns from counts and passes, which a device may do."""

    _added_settings: ClassVar[Mapping[str, Any]] = {"device": "cpu"}

    device: str = setting(
        default="cpu",
        allowed=DEVICE,
        about='Where rows are counted and weights learned: "cpu", "cuda" (a GPU), '
        '"cuda:1" (the second one), or "auto", a GPU where there is one.',
    )

    def _recipe(self) -> Recipe:
        return replace(super()._recipe(), device=self.device)
