"""How counts become probabilities: the same step in every classifier."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.proba import (
    GaussianTable,
    Smoothing,
    estimate_gaussian,
    estimate_prior,
)
from steelyard.proba.counts import Counts
from steelyard.table.codes import FeatureTable


@dataclass(frozen=True)
class Estimation:
    """How counts become probabilities."""

    smoothing: Smoothing
    prior: Any
    """"smoothed", "frequency", or one probability per class."""

    variance_floor: float
    unbiased: bool = False
    """Whether variances divide by n - 1."""

    count_factors: NDArray[np.float64] | None = None
    """Factors on the counts of each attribute before they are smoothed, shape (d,)."""

    def tables(
        self, counts: Counts
    ) -> tuple[NDArray[np.float64], FeatureTable, GaussianTable]:
        """Return log priors, log-probabilities of codes, and densities."""
        return (
            estimate_prior(self.prior, counts, self.smoothing),
            self.smoothing.log_prob(self._factored(counts)),
            estimate_gaussian(counts, self.variance_floor, self.unbiased),
        )

    def _factored(self, counts: Counts) -> Counts:
        """Return counts of codes times the factors of their attributes."""
        if self.count_factors is None:
            return counts
        table = FeatureTable(counts.by_code, counts.schema.offsets)
        factors = table.spread(self.count_factors)[:, None]
        return replace(counts, by_code=counts.by_code * factors)
