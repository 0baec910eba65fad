"""Attributes that depend on one other: a tree of them, or an average over parents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from steelyard._common.settings import learned, number, setting, word
from steelyard.classifiers.base.chunked import LearnsInChunks
from steelyard.classifiers.base.estimator import StandardNB
from steelyard.exceptions import ParameterError
from steelyard.fitting.fit import Fit
from steelyard.fitting.recipe import Recipe
from steelyard.model.base import RowsNeeded
from steelyard.model.combined import ConditionalTable, OneDependenceModel
from steelyard.model.table_model import NBModel
from steelyard.model.training import TrainingSet
from steelyard.proba.counts import (
    Counts,
    count_code_pairs,
    log_conditional,
    rows_in,
)
from steelyard.table.labels import class_places
from steelyard.table.schema import Side, TableSchema
from steelyard.weighting.filters.information import (
    class_information,
    conditional_information,
)

__all__ = ["OneDependenceNB", "TreeAugmentedNB"]

# Numbers in the tables of a model, by two codes and class: half a gigabyte.
_MAX_NUMBERS = 1 << 26


class _DependentNB(StandardNB):
    """Base of both: tables of two attributes, which must have codes."""

    _rows_needed: ClassVar[RowsNeeded] = "pairs"

    parent_strength: float = setting(
        default=5.0,
        allowed=number(0.0, ends="()"),
        about="Weight of a value's probability within the class in its probability "
        "given a parent, in rows.",
    )

    def _refuse_what_has_no_pairs(self, training: TrainingSet) -> None:
        """Refuse numbers as they are, and a smoothing without probabilities."""
        if len(training.schema.gaussian):
            raise ParameterError(
                f"{type(self).__name__} counts pairs of values and cannot use numbers "
                "as they are. Set `numeric` to a discretizer, for example 'mdl'."
            )
        # Probabilities are mixed with counts.
        training.estimation.smoothing.value_counts(training.given_counts)

    def _refuse_large(self, n_numbers: int, schema: TableSchema) -> None:
        if n_numbers <= _MAX_NUMBERS:
            return
        most = int(np.argmax(schema.n_values))
        raise ParameterError(
            f"{type(self).__name__} would need a table of {n_numbers:,} numbers, more "
            f"than {_MAX_NUMBERS:,}, for pairs of values. Leave out columns with many "
            f"values: {schema.labels()[most]} has {schema.n_values[most]:,}."
        )


class TreeAugmentedNB(_DependentNB):
    r"""TAN: each attribute depends on the class and on one other, in a tree.

    .. math:: P(c \mid x) \propto \pi_c \prod_j \theta_{j,x_j|x_{p(j)},c}, \qquad
        \theta_{j,v|a,c} = \frac{N_{avc} + m\,\theta_{j,v|c}}{N_{a \cdot c} + m}

    The tree has the largest sum of :math:`I(A_j; A_{p(j)} \mid C)`, the mutual
    information within the classes; the first attribute is its root, and attributes
    without such information have no parent. If the parent is missing the probability
    is :math:`\theta_{j,v|c}`, and a missing value of j itself is left out.

    The model is one sum: to naive Bayes each interaction of an attribute and its parent
    adds :math:`\log \theta_{j,v|a,c} - \log \theta_{j,v|c}`, what the parent changes.

    References
    ----------
    N. Friedman, D. Geiger, M. Goldszmidt (1997), "Bayesian network classifiers",
    Machine Learning 29, 131-163.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from steelyard import TreeAugmentedNB
    >>> clf = TreeAugmentedNB().fit(*load_iris(return_X_y=True))
    >>> clf.parents_
    array([-1,  0,  0,  2])
    """

    parents_: NDArray[np.int64] = learned(
        "ndarray of shape (d,)", "Position of each attribute's parent, -1 for none."
    )

    def _fit(self, recipe: Recipe, training: TrainingSet) -> Fit:
        plain, n_classes = training.schema, training.n_classes
        self._refuse_what_has_no_pairs(training)
        training = training.place.here(training)
        parents = spanning_tree(conditional_information(training))
        sides = [Side(j, tuple(range(f.n_codes))) for j, f in enumerate(plain.features)]
        children = np.flatnonzero(parents >= 0).tolist()
        interactions = [(sides[parents[j]], sides[j]) for j in children]
        schema = plain.with_interactions(interactions)
        self._refuse_large(schema.n_codes * n_classes, plain)
        training = training.with_interactions(interactions)
        model = _tree_model(training, plain, float(self.parent_strength))
        named = {"parents_": parents}
        return Fit(model, model.log_prior, named, training=training)


class OneDependenceNB(LearnsInChunks, _DependentNB):
    r"""AODE and WAODE: each attribute in turn is the parent of all others.

    .. math:: P(c, x) \propto \sum_{p:\,N_{x_p} \ge r} w_p\, \pi_c\, \theta_{p,x_p|c}
        \prod_{j \ne p} \theta_{j,x_j|x_p,c}, \qquad
        \theta_{j,v|a,c} = \frac{N_{avc} + m\,\theta_{j,v|c}}{N_{a \cdot c} + m}

    Nothing is searched or optimised: the model is counts of pairs of values. A value
    is a parent if at least r rows have it; for a row without such a value the model is
    naive Bayes. A missing value is no parent, and is left out of the products.
    ``parent_weights="information"`` is WAODE, with :math:`w_p = I(A_p; C)`.

    References
    ----------
    G. I. Webb, J. R. Boughton, Z. Wang (2005), "Not so naive Bayes: aggregating
    one-dependence estimators", Machine Learning 58, 5-24.

    L. Jiang, H. Zhang (2006), "Weightily averaged one-dependence estimators", PRICAI
    2006, 970-974.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from steelyard import OneDependenceNB
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = OneDependenceNB(parent_weights="information").fit(X, y)
    >>> clf.parent_weights_.round(2)
    array([0.65, 0.39, 1.36, 1.38])
    >>> clf.predict(X[:3])
    array([0, 0, 0])
    """

    _models: ClassVar[tuple[str, ...]] = ("one-dependence",)

    min_rows: float = setting(
        default=30.0,
        allowed=number(0.0),
        about="Weight of the rows that a value must have to be a parent.",
    )
    parent_weights: str = setting(
        default="equal",
        allowed=word("equal", "information"),
        about="Weights of the parents in the average: equal, or the mutual information "
        "of each with the class.",
    )

    parent_weights_: NDArray[np.float64] = learned(
        "ndarray of shape (d,)", "Weight of each attribute as a parent."
    )

    def _from_earlier(
        self, models: Sequence[Self], keeps: float = 1.0
    ) -> dict[str, Any]:
        return {"earlier": models, "keeps": keeps}

    def _fit(
        self,
        recipe: Recipe,
        training: TrainingSet,
        earlier: Sequence[Self] = (),
        keeps: float = 1.0,
    ) -> Fit:
        schema, n_classes = training.schema, training.n_classes
        self._refuse_what_has_no_pairs(training)
        self._refuse_large(schema.n_codes**2 * n_classes, schema)
        counts = training.count()
        log_prior, table, _ = training.estimation.tables(counts)
        weights = np.ones(len(schema))
        if self.parent_weights == "information":
            weights = class_information(counts)
        shares = table.spread(weights)
        rows = training.given_counts.by_code.sum(axis=1)
        shares[(rows < self.min_rows) | (rows == 0)] = 0.0
        shares[schema.first_codes] = 0.0
        by_pair = training.place.sum(training, _code_pairs, is_exact=True)
        for clf in earlier:
            by_pair += keeps * clf._pairs_in(training)
        conditional = ConditionalTable(
            schema.offsets, table.values, by_pair, float(self.parent_strength)
        )
        model = OneDependenceModel(
            schema, training.classes, log_prior, shares, conditional
        )
        return Fit(model, log_prior, {"parent_weights_": weights})

    def _pairs_in(self, training: TrainingSet) -> NDArray[np.float64]:
        """Return the counts of pairs, which the model has, in a grown schema."""
        given, counted = self.counts_.by_class, self.class_count_
        was = np.divide(counted, given, out=np.ones(len(given)), where=given > 0)
        places = class_places(self.classes_, training.classes)
        now = np.ones(len(given))
        if training.class_factors is not None:
            now = training.class_factors[places]
        size = training.schema.n_codes
        table = np.zeros((size, size, training.n_classes))
        rows = rows_in(self.counts_.schema, training.schema)
        table[np.ix_(rows, rows, places)] = self.model_.conditional.counts * (now / was)
        return table


def _code_pairs(training: TrainingSet) -> NDArray[np.float64]:
    """Count the rows by every two codes and class; all attributes have codes."""
    offsets, columns = training.schema.offsets, training.codes.by_column()
    rows = training.labels, training.weights, training.n_classes, training.n_jobs
    return count_code_pairs(columns, offsets, *rows)


def spanning_tree(weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the parents in a tree of the largest total weight, -1 for roots.

    Prim's algorithm from the first attribute on; of equal weights the first counts.
    Attributes without a positive weight to the tree so far become roots.

    >>> spanning_tree(np.array([[0, 2, 1, 0], [2, 0, 3, 0], [1, 3, 0, 0], [0] * 4]))
    array([-1,  0,  1, -1])
    """
    d = len(weights)
    parents = np.full(d, -1, dtype=np.int64)
    best, link = np.full(d, -np.inf), np.full(d, -1, dtype=np.int64)
    is_in, j = np.zeros(d, dtype=bool), 0
    for _ in range(d):
        is_in[j] = True
        parents[j] = link[j] if best[j] > 0.0 else -1
        better = weights[j] > best
        best[better], link[better] = weights[j][better], j
        j = int(np.argmax(np.where(is_in, -np.inf, best)))
    return parents


def _tree_model(training: TrainingSet, plain: TableSchema, strength: float) -> NBModel:
    """Add what the parents in the interactions of a training set change."""
    counts, schema = training.count(), training.schema
    plain_counts = Counts(
        plain, counts.by_class, counts.by_code[: plain.n_codes], counts.moments
    )
    log_prior, by_value, gaussian = training.estimation.tables(plain_counts)
    table = np.zeros((schema.n_codes, training.n_classes))
    table[: plain.n_codes] = by_value.values
    for j in np.flatnonzero(schema.is_interaction).tolist():
        parent, child = schema.features[j].sides
        low, high = schema.offsets[child.feature : child.feature + 2]
        shape = (parent.n_groups, child.n_groups, training.n_classes)
        rows = slice(schema.offsets[j], schema.offsets[j + 1])
        log_prob = by_value.values[low:high]
        added = log_conditional(counts.by_code[rows].reshape(shape), log_prob, strength)
        added -= log_prob
        added[0] = 0.0
        table[rows] = added.reshape(-1, training.n_classes)
    return NBModel(schema, training.classes, log_prior, table, gaussian)
