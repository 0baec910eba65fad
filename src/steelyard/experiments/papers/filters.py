"""Filters of the exponential-loss paper in the form that fits its printed figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

from steelyard._common.settings import setting, whole
from steelyard.classifiers.weighted import WeightedNB
from steelyard.model.training import TrainingSet
from steelyard.proba import GaussianTable
from steelyard.weighting.base import Evidence, Start
from steelyard.weighting.filters.binning import with_bins
from steelyard.weighting.filters.counted import GainRatioWeighting
from steelyard.weighting.filters.information import gain_ratios
from steelyard.weighting.filters.trees import OneTreeWeighting, depth_weights

__all__ = ["number_tree", "raw_gain_ratios"]


def raw_gain_ratios() -> WeightedNB:
    """Return KLNB as the paper seems to have run it."""
    return WeightedNB(weighting=RawGainRatios(), solver="fixed")


def number_tree() -> WeightedNB:
    """Return TreeNB as the paper seems to have run it."""
    return WeightedNB(weighting=NumberTree(), solver="fixed")


class RawGainRatios(GainRatioWeighting):
    """KLNB's weights before they are made to add up to the number of attributes.

    They are small, so that the prior decides: where the paper prints the share of the
    larger class for KLNB, so do they.
    """

    def _filter(self, training: TrainingSet) -> NDArray[np.float64]:
        return gain_ratios(training.count())


class NumberTree(OneTreeWeighting):
    """TreeNB's weights from a tree that is grown on numbers instead of their bins."""

    smallest_leaf: int = setting(
        default=20,
        allowed=whole(1),
        about="Fewest training rows in a leaf, in place of pruning.",
    )

    def start_from(
        self, training: TrainingSet, evidence: Evidence, gaussian: GaussianTable
    ) -> Start:
        """Return weights by the depth at which attributes are first tested."""
        inputs, owner = self._inputs(with_bins(training))
        numbers, schema = training.codes.numbers, training.schema
        for g, j in enumerate(schema.gaussian):
            column = numbers[:, g] if isinstance(numbers, np.ndarray) else numbers[g]
            inputs[:, owner == j] = column[:, None]
        tree = DecisionTreeClassifier(
            criterion="entropy", min_samples_leaf=self.smallest_leaf, random_state=0
        )
        tree.fit(inputs, training.labels, sample_weight=training.weights)
        return self._start(depth_weights(tree.tree_, owner, len(schema)))


def figures_of_one_fold(
    tasks: Iterable[tuple[Mapping[str, str], Mapping[str, str]]],
    columns: Sequence[str],
    max_rows: int = 2_500,
) -> dict[str, int]:
    """Count printed figures that are multiples of one over the rows of a single fold.

    Tasks are rows of the tables of sizes and of accuracies; those of more than
    ``max_rows`` rows, of which chance makes many look so, are left out.

    Examples
    --------
    >>> figures_of_one_fold([({"instances": "151"}, {"A": "86.67", "B": "86"})], "AB")
    {'A': 1, 'B': 0}
    """
    counts = dict.fromkeys(columns, 0)
    for size, printed in tasks:
        n = int(size["instances"])
        if n > max_rows:
            continue
        for column in columns:
            value = float(printed[column])
            nearest = (100 * round(value * m / 100) / m for m in {n // 10, -(-n // 10)})
            counts[column] += min(abs(value - x) for x in nearest) <= 0.0051
    return counts
