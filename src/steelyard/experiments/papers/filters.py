"""Filters of the exponential-loss paper in the form that fits its printed figures."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

from steelyard._common.settings import setting, whole
from steelyard.classifiers.weighted import WeightedNB
from steelyard.model.training import TrainingSet
from steelyard.proba import GaussianTable
from steelyard.weighting.base import LogProbs, Start
from steelyard.weighting.filters.counted import GainRatioWeighting, with_bins
from steelyard.weighting.filters.information import gain_ratios
from steelyard.weighting.filters.trees import OneTreeWeighting, depth_weights

__all__ = ["WeightedNB", "number_tree", "one_tree", "raw_gain_ratios"]


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
        self, training: TrainingSet, evidence: LogProbs, gaussian: GaussianTable
    ) -> Start:
        """Return weights by the depth at which attributes are first tested."""
        inputs, owner = self._inputs(with_bins(training))
        schema = training.schema
        for g, j in enumerate(schema.gaussian):
            inputs[:, owner == j] = training.codes.number_column(g)[:, None]
        tree = DecisionTreeClassifier(
            criterion="entropy", min_samples_leaf=self.smallest_leaf, random_state=0
        )
        tree.fit(inputs, training.labels, sample_weight=training.weights)
        return self._start(depth_weights(tree.tree_, owner, len(schema)))


raw_gain_ratios = partial(WeightedNB, weighting=RawGainRatios(), solver="fixed")
"""KLNB as the paper seems to have run it."""

number_tree = partial(WeightedNB, weighting=NumberTree(), solver="fixed")
"""TreeNB as the paper seems to have run it."""

_ONE_TREE = OneTreeWeighting(random_state=0)
one_tree = partial(WeightedNB, weighting=_ONE_TREE, solver="fixed")
"""TreeNB with the seed of the reports."""
