"""Fit: what a method learned, of which a classifier makes a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from steelyard._common.arrays import Floats
from steelyard.model.base import Model
from steelyard.model.training import TrainingSet
from steelyard.proba.counts import Counts

if TYPE_CHECKING:
    from steelyard.fitting.problem import Problem


@dataclass(frozen=True)
class Fit:
    """What a method learned, before a classifier publishes it."""

    model: Model
    log_prior: Floats
    named: Mapping[str, Any] = field(default_factory=dict)
    """Further fitted attributes, by their names."""

    instance_weights: Floats | None = None
    """Learned weights of the training rows, if the method learns any."""

    training: TrainingSet | None = None
    """The rows that were used, if those are not all."""

    counts: Counts | None = None
    """Their counts, if those are not the training set's."""

    held_out: tuple[Floats, Floats] | None = None
    """Posteriors of rows that they were not learned from, and weights of these."""

    solved: tuple[Problem, Floats] | None = None
    """The problem and its solution, if there is one."""
