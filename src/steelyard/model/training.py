"""Training data after encoding: what every classifier learns from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.exceptions import ParameterError
from steelyard.proba.counts import Counts, count
from steelyard.table.codes import Codes
from steelyard.table.encoder import TableEncoder

__all__ = ["Training", "class_factors"]


@dataclass
class Training:
    """Training data after encoding, and the encoder that did it."""

    encoder: TableEncoder
    classes: NDArray[Any]
    labels: NDArray[np.uint32]
    weights: NDArray[np.float64] | None
    """Weights the user gave, without those of ``class_weight``."""

    codes: Codes = field(init=False)
    is_kept: NDArray[np.bool_] | None = field(default=None, init=False)
    """Which rows of the user's table these are; None for all."""

    def count(self, n_jobs: int | None, class_weight: Any = None) -> Counts:
        """Count the rows by the user's weights, and those of classes if given."""
        weights = self.row_weights(class_weight)
        return count(self.codes, self.labels, weights, len(self.classes), n_jobs)

    def take(self, rows: NDArray[np.int64]) -> Training:
        """Return some of the rows, encoded as they are."""
        weights = None if self.weights is None else self.weights[rows]
        taken = Training(self.encoder, self.classes, self.labels[rows], weights)
        taken.codes = self.codes.take(rows)
        return taken

    def all_rows(self, learned: NDArray[np.float64]) -> NDArray[np.float64]:
        """Spread what was learned of rows over the user's table, NaN where left out."""
        if self.is_kept is None:
            return learned
        out = np.full(len(self.is_kept), np.nan)
        out[self.is_kept] = learned
        return out

    def row_weights(self, class_weight: Any) -> NDArray[np.float64] | None:
        """Weights of the rows with those of their classes."""
        if class_weight is None:
            return self.weights
        totals = np.bincount(self.labels, self.weights, minlength=len(self.classes))
        factors = class_factors(class_weight, self.classes, totals.astype(float))
        mine = factors[self.labels]
        return mine if self.weights is None else mine * self.weights


def class_factors(
    setting: Any, classes: NDArray[Any], totals: NDArray[np.float64]
) -> NDArray[np.float64]:
    r"""Return the factor on each class that ``class_weight`` asks for, shape (K,).

    "balanced" is :math:`U / (q N_c)` over the classes that have rows.
    """
    if isinstance(setting, Mapping):
        known = classes.tolist()
        unknown = [c for c in setting if c not in known]
        if unknown:
            raise ParameterError(
                f"`class_weight` names {unknown}, which are not among the classes "
                f"{known}."
            )
        factors = np.array([float(setting.get(c, 1.0)) for c in known])
        if not (np.isfinite(factors) & (factors > 0)).all():
            raise ParameterError(
                f"`class_weight` must hold numbers greater than 0, got {setting!r}."
            )
        return factors
    if not (isinstance(setting, str) and setting == "balanced"):
        raise ParameterError(
            "The 'class_weight' parameter must be None, 'balanced' or a mapping from "
            f"class to weight. Got {setting!r} instead."
        )
    present = totals > 0
    balanced = totals.sum() / (present.sum() * np.where(present, totals, 1.0))
    return np.where(present, balanced, 1.0)
