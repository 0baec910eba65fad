"""What every instance weighting answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from steelyard.exceptions import ParameterError
from steelyard.model.table_model import NBModel
from steelyard.proba.counts import Counts, count
from steelyard.table.codes import Codes

__all__ = ["InstanceWeighting", "Learned", "Task"]


@dataclass(frozen=True)
class Task:
    """Encoded rows, and the way from their counts to a model."""

    codes: Codes
    labels: NDArray[np.uint32]
    weights: NDArray[np.float64] | None
    """Weights the user gave, None where all are one."""

    n_classes: int
    estimate: Callable[[Counts], NBModel]
    n_jobs: int | None = None

    def count(self, learned: NDArray[np.float64] | None = None) -> Counts:
        """Count the rows by the user's weights times learned ones."""
        return count(
            self.codes,
            self.labels,
            self.combined(learned),
            self.n_classes,
            self.n_jobs,
        )

    def combined(
        self, learned: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        """Return the user's weights times learned ones."""
        if learned is not None and learned.shape != (self.codes.n_rows,):
            raise ParameterError(
                "An instance weighting must return one weight for each of the "
                f"{self.codes.n_rows} rows. Got {len(learned)}."
            )
        if learned is None or self.weights is None:
            return self.weights if learned is None else learned
        return learned * self.weights

    def true_posterior(self, model: NBModel) -> NDArray[np.float64]:
        """Posterior probability of the true class of every row, shape (n,)."""
        if isinstance(model, NBModel):
            return model.true_proba(self.codes, self.labels, self.n_jobs)
        proba = model.proba(self.codes, self.n_jobs)
        return np.asarray(proba[np.arange(len(proba)), self.labels])


@dataclass(frozen=True)
class Learned:
    """Row weights that a method learned, and how it got there."""

    weights: NDArray[np.float64]
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
        if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
            raise ParameterError(
                "An instance weighting must return finite weights of at least 0, not "
                f"all of them 0. Got {weights.min():g} to {weights.max():g}."
            )


class InstanceWeighting(BaseEstimator):
    """Maps encoded rows to weights that the counts are made with.

    Instance weights act through the counts alone: neither the loss of attribute weights
    nor a prediction knows of them.
    """

    def weigh(self, task: Task) -> Learned:
        """Learn the weight of every row."""
        raise NotImplementedError
