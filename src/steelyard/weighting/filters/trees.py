"""Attribute weights from the depth at which decision trees test an attribute."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from steelyard._common.checks import check_whole
from steelyard._common.progress import progress
from steelyard._common.threads import run, thread_count
from steelyard.exceptions import ParameterError
from steelyard.instances import Task
from steelyard.table.schema import FeatureSchema
from steelyard.weighting.filters.counted import FilterWeighting

__all__ = ["CATEGORIES", "OneTreeWeighting", "TreeWeighting", "depth_weights"]

CATEGORIES = ("one-hot", "ordinal")


class TreeWeighting(FilterWeighting):
    r"""DTAWNB and TreeNB: attributes that trees test near the root weigh more.

    .. math:: w_j = \frac1B \sum_{t=1}^{B} \frac{1}{\sqrt{d_{tj}}}

    where :math:`d_{tj}` is the smallest depth at which tree t tests attribute j, 1 at
    the root; an attribute that a tree does not test gets 0 from it. Trees are grown on
    the codes by information gain until their leaves are pure. A missing cell is taken
    for the most frequent value.

    Parameters
    ----------
    n_trees : int, default=10
        Number of trees.
    share : float or None, default=0.5
        Size of the sample that each tree is grown on, drawn with replacement, as a
        share of the total weight of the rows; None grows each on all rows.
    categories : {"one-hot", "ordinal"}, default="one-hot"
        Whether a test singles out one value of a categorical attribute, or splits its
        values in sorted order. Binned attributes are always split in order.
    random_state : int, RandomState instance or None, default=0
        Seed of the samples and of the choice between equally good splits.
    prior_weight : bool, default=False
        Whether the log prior has a weight of its own.
    verbose : bool, default=False
        Whether to show how many trees have been grown.

    References
    ----------
    M. Hall (2007), "A decision tree-based attribute weighting filter for naive Bayes",
    Knowledge-Based Systems 20(2), 120-126.
    """

    def __init__(
        self,
        n_trees: int = 10,
        share: float | None = 0.5,
        categories: str = "one-hot",
        random_state: Any = 0,
        prior_weight: bool = False,
        verbose: bool = False,
    ) -> None:
        self.n_trees = n_trees
        self.share = share
        self.categories = categories
        self.random_state = random_state
        self.prior_weight = prior_weight
        self.verbose = verbose

    def check_settings(self) -> None:
        """Raise a ``ParameterError`` if a setting has a value that is not allowed."""
        check_whole(self, "n_trees", 1)
        real = isinstance(self.share, Real) and not isinstance(self.share, bool)
        if self.share is not None and not (real and 0.0 < float(self.share) <= 1.0):
            raise ParameterError(
                "The 'share' parameter must be None, or a number greater than 0 and at "
                f"most 1. Got {self.share!r} instead."
            )
        if self.categories not in CATEGORIES:
            raise ParameterError(
                "The 'categories' parameter must be 'one-hot' or 'ordinal'. Got "
                f"{self.categories!r} instead."
            )

    def _filter(self, task: Task) -> NDArray[np.float64]:
        from sklearn.tree import DecisionTreeClassifier

        inputs, owner = self._inputs(task)
        try:
            rng = check_random_state(self.random_state)
        except ValueError as error:
            raise ParameterError(
                "The 'random_state' parameter must be None, a whole number or a "
                f"RandomState. Got {self.random_state!r} instead."
            ) from error
        samples = [task.weights] * int(self.n_trees)
        if self.share is not None:
            samples = _samples(task, int(self.n_trees), float(self.share), rng)
        seeds = rng.randint(np.iinfo(np.int32).max, size=int(self.n_trees))

        def grow(t: int) -> NDArray[np.float64]:
            tree = DecisionTreeClassifier(
                criterion="entropy", random_state=int(seeds[t])
            )
            tree.fit(inputs, task.labels, sample_weight=samples[t])
            return depth_weights(tree.tree_, owner, len(task.codes.schema))

        found = []
        with progress("trees", len(seeds), bool(self.verbose)) as advance:
            for one in run(grow, range(len(seeds)), thread_count(task.n_jobs)):
                found.append(one)
                advance("")
        return np.asarray(np.mean(found, axis=0))

    def _inputs(self, task: Task) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Columns for a tree, shape (n, p), and the attribute that each belongs to."""
        features = task.codes.schema.features
        singled = [self._is_singled(feature) for feature in features]
        widths = [
            feature.n_values if single else 1
            for feature, single in zip(features, singled, strict=True)
        ]
        by_code, offsets = task.count().by_code.sum(axis=1), task.codes.offsets
        owner = np.repeat(np.arange(len(features)), widths)
        inputs = np.empty((task.codes.n_rows, len(owner)), np.float32, order="F")
        first = 0
        for j, width in enumerate(widths):
            codes = task.codes.column(j)
            # Whether a cell is missing is no test: it counts as the most frequent.
            usual = 1 + int(np.argmax(by_code[offsets[j] + 1 : offsets[j + 1]]))
            codes = np.where(codes == 0, usual, codes)
            if singled[j]:
                for value in range(width):
                    inputs[:, first + value] = codes == value + 1
            else:
                inputs[:, first] = codes
            first += width
        return inputs, owner

    def _is_singled(self, feature: FeatureSchema) -> bool:
        """Whether each value of an attribute has a column of its own."""
        is_nominal = feature.kind == "categorical" and feature.n_values > 2
        return is_nominal and self.categories == "one-hot"


class OneTreeWeighting(TreeWeighting):
    """TreeNB: one tree, grown on all rows.

    Parameters
    ----------
    categories, random_state, prior_weight
        As in ``TreeWeighting``.
    """

    def __init__(
        self,
        categories: str = "one-hot",
        random_state: Any = 0,
        prior_weight: bool = False,
    ) -> None:
        super().__init__(1, None, categories, random_state, prior_weight)


def depth_weights(
    tree: Any, owner: NDArray[np.int64], n_features: int
) -> NDArray[np.float64]:
    """One over the root of the depth at which each attribute is first tested, (d,).

    ``tree`` has scikit-learn's arrays of nodes; 0 for attributes that it never tests.
    """
    depth = np.full(n_features, np.inf)
    level, number = [0], 1
    while level:
        inner = [node for node in level if tree.children_left[node] >= 0]
        for node in inner:
            j = owner[tree.feature[node]]
            depth[j] = min(depth[j], number)
        level = [
            child
            for node in inner
            for child in (tree.children_left[node], tree.children_right[node])
        ]
        number += 1
    return 1.0 / np.sqrt(depth)


def _samples(
    task: Task, n_samples: int, share: float, rng: np.random.RandomState
) -> list[NDArray[np.float64] | None]:
    """Draw rows with replacement by their weights: how often each, shape (n,).

    Rows are put into the order of their cells first, so that neither their order nor
    whether a row stands twice or has weight 2 matters.
    """
    n = task.codes.n_rows
    keys = [task.codes.column(j) for j in range(len(task.codes.schema))]
    order = np.lexsort([*keys[::-1], task.labels])
    weights = np.ones(n) if task.weights is None else task.weights
    ends = np.cumsum(weights[order])
    draws = max(1, round(share * float(ends[-1])))
    samples: list[NDArray[np.float64] | None] = []
    for _ in range(n_samples):
        at = np.searchsorted(ends, rng.random_sample(draws) * ends[-1], side="right")
        chosen = order[np.minimum(at, n - 1)]
        samples.append(np.bincount(chosen, minlength=n).astype(np.float64))
    return samples
