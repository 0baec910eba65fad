"""Densities of training rows by moments that leave each of them out.

A row is taken out of mean and sum of squares by the reverse of Welford's update.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from steelyard._common.arrays import Floats, Labels
from steelyard.model.training import TrainingSet
from steelyard.proba.counts import Counts, Moments
from steelyard.proba.gaussian import GaussianTable, mean_and_deviation
from steelyard.table.schema import FeatureSchema

# What is left of a sum of squares below this share of it is rounding, and taken for 0.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class LeftOutNumbers:
    """Moments from which each row takes its own amount."""

    features: list[FeatureSchema]
    """The Gaussian attributes."""

    moments: Moments
    """Moments by attribute and class, shape (g, K)."""

    overall: Moments
    """The same of all classes, shape (g, 1)."""

    removed: Floats
    """What each row takes out, shape (n,)."""

    floor: float
    """Smallest variance within a class, as a share of that of all rows."""

    unbiased: bool

    @classmethod
    def of(
        cls, training: TrainingSet, counts: Counts, removed: Floats
    ) -> LeftOutNumbers:
        """Make ready to leave out rows, each of which takes out some weight."""
        features = [counts.schema.features[j] for j in counts.schema.gaussian]
        moments, asked = counts.moments, training.estimation
        overall = moments.pooled()
        return cls(
            features, moments, overall, removed, asked.variance_floor, asked.unbiased
        )

    def terms(self, g: int, numbers: Floats, y: Labels, rows: slice) -> Floats:
        """Log-densities of some numbers of an attribute under each class, (rows, K)."""
        all_rows, removed = np.arange(len(numbers)), self.removed[rows]
        true_class = all_rows, y
        moments = self.moments.map(lambda part: np.tile(part[g], (len(numbers), 1)))
        left = _without(moments.map(itemgetter(true_class)), numbers, removed)
        moments.weight[true_class], moments.mean[true_class] = left.weight, left.mean
        moments.squares[true_class] = left.squares
        overall = _without(self.overall.map(itemgetter(g)), numbers, removed)
        overall = overall.map(itemgetter(np.s_[:, None]))
        feature = self.features[g : g + 1]
        mean, deviation = mean_and_deviation(
            feature, moments, overall, self.floor, self.unbiased
        )
        # One row of as many attributes as there are rows, each with its own table.
        table = GaussianTable.of(feature, mean, deviation).repeated(len(numbers))
        ((_, out),) = table.log_densities(numbers[None, :])
        return np.ascontiguousarray(out[0])


def densities_by_group(
    tables: Sequence[GaussianTable], numbers: Floats, group: Labels
) -> Floats:
    """Log-densities of numbers (n,) by the table of each one's group, shape (n, K)."""
    out = np.empty((len(numbers), tables[0].mean.shape[1]))
    for f in np.unique(group).tolist():
        of_fold = np.flatnonzero(group == f)
        for part, terms in tables[f].log_densities(numbers[of_fold, None]):
            out[of_fold[part]] = terms[:, 0]
    return out


def _without(moments: Moments, x: Floats, removed: Floats) -> Moments:
    """Take numbers (n,), each of some weight, out of moments (n,) or of one."""
    left = moments.weight - removed
    left = np.where(left > _ROUNDING * moments.weight, left, 0.0)
    some = left > 0.0
    delta = x - moments.mean
    mean = moments.mean - removed * delta / np.where(some, left, 1.0)
    squares = moments.squares - removed * delta * (x - mean)
    squares = np.where(squares > _ROUNDING * moments.squares, squares, 0.0)
    missing = np.isnan(x)
    return Moments(
        np.where(missing, moments.weight, left),
        np.where(missing, moments.mean, np.where(some, mean, 0.0)),
        np.where(missing, moments.squares, np.where(some, squares, 0.0)),
    )
