"""What every instance weighting answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from steelyard._common.arrays import Floats
from steelyard._common.settings import DeclaredPart
from steelyard._common.threads import pieces
from steelyard.exceptions import ParameterError
from steelyard.model.needs import RowsNeeded
from steelyard.model.training import TrainingSet


@dataclass(frozen=True)
class Learned:
    """Row weights that a method learned, and how it got there."""

    weights: Floats
    """Shape (n,), without the user's weights."""

    records: list[dict[str, Any]] = field(default_factory=list)
    """One record per round."""

    def __post_init__(self) -> None:
        weights = self.weights
        fine = isinstance(weights, np.ndarray) and weights.dtype == np.float64
        if not fine or weights.ndim != 1:
            raise ParameterError(
                "An instance weighting must return a float64 array with one weight for "
                f"each row. Got {type(weights).__name__} of shape {np.shape(weights)}."
            )
        parts = [weights[rows] for rows in pieces(slice(0, len(weights)))]
        fine = all(np.isfinite(part).all() and (part >= 0).all() for part in parts)
        if not (fine and any(part.any() for part in parts)):
            raise ParameterError(
                "An instance weighting must return finite weights of at least 0, not "
                f"all of them 0. Got {weights.min():g} to {weights.max():g}."
            )


class InstanceWeighting(DeclaredPart):
    """Maps encoded rows to weights that the counts are made with.

    Instance weights act through the counts alone: neither the loss of attribute weights
    nor a prediction knows of them.
    """

    rows_needed: ClassVar[RowsNeeded] = "per-row"
    """What learning the weights keeps of the rows."""

    def weigh(self, training: TrainingSet) -> Learned:
        """Learn the weight of every row."""
        raise NotImplementedError
