"""Attribute weights from the depth at which decision trees test an attribute."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from steelyard._common.arrays import Floats, Ints
from steelyard._common.progress import progress
from steelyard._common.settings import (
    FLAG,
    NONE,
    SEED,
    number,
    setting,
    whole,
    word,
)
from steelyard._common.threads import pieces, run, thread_count
from steelyard.model.base import RowsNeeded
from steelyard.model.training import TrainingSet
from steelyard.weighting.filters.correlation import FilterWeighting

# Up to this number rows are drawn one by one; beyond it, how often each row is drawn is
# itself drawn.
_MAX_DRAWS = 1 << 20


class TreeWeighting(FilterWeighting):
    r"""DTAWNB and TreeNB: attributes that trees test near the root weigh more.

    .. math:: w_j = \frac1B \sum_{t=1}^{B} \frac{1}{\sqrt{d_{tj}}}

    where :math:`d_{tj}` is the smallest depth at which tree t tests attribute j, 1 at
    the root; an attribute that a tree does not test gets 0 from it. Trees are grown on
    the codes by information gain until their leaves are pure. A missing cell is taken
    for the most frequent value. ``TreeWeightedNB`` has these weights; see there for the
    paper.
    """

    rows_needed: ClassVar[RowsNeeded] = "codes"

    n_trees: int = setting(default=10, allowed=whole(1), about="Number of trees.")
    share: float | None = setting(
        default=0.5,
        allowed=(NONE | number(0.0, 1.0, "(]")).called(
            "None, or a number greater than 0 and at most 1"
        ),
        about="Size of the sample that each tree is grown on, drawn with replacement, "
        "as a share of the total weight of the rows; None grows each on all rows.",
    )
    categories: str = setting(
        default="one-hot",
        allowed=word("one-hot", "ordinal"),
        about="Whether a test singles out one value of a categorical attribute, or "
        "splits its values in sorted order. Binned attributes are always split in "
        "order.",
    )
    random_state: Any = setting(
        default=None,
        allowed=SEED,
        about="Seed of the samples and of the choice between equally good splits.",
    )
    verbose: bool = setting(
        default=False,
        allowed=FLAG,
        about="Whether to show how many trees have been grown.",
    )

    def _filter(self, training: TrainingSet) -> Floats:
        from sklearn.tree import DecisionTreeClassifier

        inputs, owner = self._inputs(training)
        rng = check_random_state(self.random_state)
        samples = [training.weights] * int(self.n_trees)
        if self.share is not None:
            samples = _samples(training, int(self.n_trees), float(self.share), rng)
        seeds = rng.randint(np.iinfo(np.int32).max, size=int(self.n_trees))

        def grow(t: int) -> Floats:
            tree = DecisionTreeClassifier(
                criterion="entropy", random_state=int(seeds[t])
            )
            tree.fit(inputs, training.labels, sample_weight=samples[t])
            return depth_weights(tree.tree_, owner, len(training.codes.schema))

        weights = []
        with progress("trees", len(seeds), bool(self.verbose)) as advance:
            for by_tree in run(grow, range(len(seeds)), thread_count(training.n_jobs)):
                weights.append(by_tree)
                advance("")
        return np.asarray(np.mean(weights, axis=0))

    def _inputs(self, training: TrainingSet) -> tuple[NDArray[np.float32], Ints]:
        """Columns for a tree, shape (n, p), and the attribute that each belongs to."""
        features = training.codes.schema.features
        # Whether each value of an attribute has a separate column.
        nominal = ("categorical", "interaction") if self.categories == "one-hot" else ()
        singled = [f.kind in nominal and f.n_values > 2 for f in features]
        widths = [
            feature.n_values if single else 1
            for feature, single in zip(features, singled, strict=True)
        ]
        by_code, offsets = training.count().by_code.sum(axis=1), training.codes.offsets
        owner = np.repeat(np.arange(len(features)), widths)
        shape = (training.n_rows, len(owner))
        inputs = training.workspace.zeros(shape, np.float32, "F")
        first = 0
        for j, width in enumerate(widths):
            codes = training.codes.column(j)
            # Whether a cell is missing is no test: it counts as the most frequent.
            observed = by_code[offsets[j] + 1 : offsets[j + 1]]
            usual = 1 + int(np.argmax(observed)) if observed.size else 0
            codes = np.where(codes == 0, usual, codes)
            if singled[j]:
                for value in range(width):
                    inputs[:, first + value] = codes == value + 1
            else:
                inputs[:, first] = codes
            first += width
        return inputs, owner


class OneTreeWeighting(TreeWeighting):
    """TreeNB: one tree, grown on all rows."""

    n_trees: int = setting(default=1)
    share: float | None = setting(default=None)


def depth_weights(tree: Any, owner: Ints, n_features: int) -> Floats:
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
    training: TrainingSet, n_samples: int, share: float, rng: np.random.RandomState
) -> list[Floats | None]:
    """Draw rows with replacement by their weights: how often each, shape (n,).

    Rows are put into the order of their cells first, so that neither their order nor
    whether a row occurs twice or has weight 2 matters. If weights are less than one,
    as many rows are drawn as if they were one: a tree of a single row is useless.
    """
    n = training.codes.n_rows
    keys = [training.codes.column(j) for j in range(len(training.codes.schema))]
    order = np.lexsort([*keys[::-1], training.labels])
    weights = np.ones(n) if training.weights is None else training.weights
    ends = np.cumsum(weights[order])
    draws = max(1, round(share * max(float(ends[-1]), n)))
    samples: list[Floats | None] = []
    if draws > _MAX_DRAWS:
        keys.append(training.labels)
        differs = [key[order][1:] != key[order][:-1] for key in keys]
        first = np.flatnonzero(np.append(True, np.any(differs, axis=0)))
        masses = np.add.reduceat(weights[order], first)
        for _ in range(n_samples):
            times = np.zeros(n)
            times[order[first]] = rng.multinomial(draws, masses / masses.sum())
            samples.append(times)
        return samples
    for _ in range(n_samples):
        times = np.zeros(n, dtype=np.int64)
        for part in pieces(slice(0, draws)):
            drawn = rng.random_sample(part.stop - part.start) * ends[-1]
            at = np.searchsorted(ends, drawn, side="right")
            times += np.bincount(order[np.minimum(at, n - 1)], minlength=n)
        samples.append(times.astype(np.float64))
    return samples
