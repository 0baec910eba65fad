"""From counts to log-probabilities, by a smoothing, a prior and densities."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.proba.counts import Counts
from steelyard.proba.gaussian import GaussianTable, estimate_gaussian
from steelyard.proba.smoothing import Smoothing, estimate_prior
from steelyard.table.codes import FeatureTable
from steelyard.table.resolutions import Resolutions
from steelyard.table.schema import TableSchema


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

    n_bins: tuple[int, ...] = ()
    """Numbers of bins at which bins are merged; empty for bins as they are."""

    def resolutions(self, schema: TableSchema) -> Resolutions:
        """Return the attributes of a schema at each resolution."""
        return Resolutions(schema, self.n_bins)

    def tables(
        self, counts: Counts, resolutions: Resolutions | None = None
    ) -> tuple[NDArray[np.float64], FeatureTable, GaussianTable]:
        """Return log priors, log-probabilities of codes, and densities.

        With several resolutions log-probabilities are averages over these. Pairs have
        none: their rows are zero. ``resolutions`` of the schema may be at hand.
        """
        if resolutions is None:
            resolutions = self.resolutions(counts.schema)
        return (
            estimate_prior(self.prior, counts, self.smoothing),
            self._log_prob(self._factored(counts), resolutions),
            estimate_gaussian(counts, self.variance_floor, self.unbiased),
        )

    def _log_prob(self, counts: Counts, resolutions: Resolutions) -> FeatureTable:
        schema = counts.schema
        if not self.n_bins and not schema.is_pair.any():
            return self.smoothing.log_prob(counts)
        merged, groups = resolutions.tables
        at_each = replace(counts, schema=merged, by_code=groups @ counts.by_code)
        log_prob = groups.T @ self.smoothing.log_prob(at_each).values
        owners = [j for j, _ in resolutions.views]
        n_views = np.maximum(np.bincount(owners, minlength=len(schema)), 1)
        table = FeatureTable(log_prob, schema.offsets)
        return replace(table, values=log_prob / table.spread(n_views)[:, None])

    def _factored(self, counts: Counts) -> Counts:
        """Return counts of codes times the factors of their attributes."""
        if self.count_factors is None:
            return counts
        table = FeatureTable(counts.by_code, counts.schema.offsets)
        factors = table.spread(self.count_factors)[:, None]
        return replace(counts, by_code=counts.by_code * factors)
