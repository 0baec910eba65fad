"""Plain naive Bayes."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from steelyard.classifiers.base import StandardNB
from steelyard.exceptions import TableError
from steelyard.fitting.recipe import Recipe
from steelyard.fitting.weights import Fit
from steelyard.model.needs import RowsNeeded
from steelyard.model.training import (
    TrainingSet,
    check_two_classes,
    class_factors,
    encode_table,
    refuse_no_labels,
)
from steelyard.table.labels import encode_labels, known_labels, training_rows

__all__ = ["NaiveBayes"]


class NaiveBayes(StandardNB):
    r"""Naive Bayes for any table: categories, numbers and missing cells.

    .. math:: P(c \mid x) \propto \pi_c \prod_j \theta_{j,x_j|c}

    Fitting is one pass of counting; a prediction adds up one number per cell and class.
    Missing cells and values never seen at fit are left out of the sum.

    See Also
    --------
    TableEncoder : The way from a table to codes.

    References
    ----------
    P. Langley, W. Iba, K. Thompson (1992), "An analysis of Bayesian classifiers",
    AAAI-92, 223-228.

    Examples
    --------
    >>> import numpy as np
    >>> from steelyard import NaiveBayes
    >>> X = np.array(
    ...     [["sunny", 30.0], ["rain", 12.0], ["rain", None], ["sunny", 25.0]],
    ...     dtype=object,
    ... )
    >>> clf = NaiveBayes().fit(X, ["out", "in", "in", "out"])
    >>> clf.predict(X)
    array(['out', 'in', 'in', 'out'], dtype='<U3')

    A value that was never seen, or is missing, says nothing; the prior decides:

    >>> clf.predict_proba(np.array([["hail", None]], dtype=object))
    array([[0.5, 0.5]])
    """

    _rows_needed: ClassVar[RowsNeeded] = "counts"

    def _fit(self, recipe: Recipe, training: TrainingSet) -> Fit:
        model = training.estimate(training.count())
        return Fit(model, model.log_prior)

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Learn from one more chunk of rows.

        Chunks add up to the same model as one ``fit`` on all rows: bit for bit for
        categorical columns and fixed edges. Cut points and imputed values are learned
        from the first chunk and kept; new categories are taken in as they come.

        Parameters
        ----------
        X : table of shape (n, d)
            The chunk.
        y : array-like of shape (n,)
            Its labels.
        classes : array-like of shape (K,), default=None
            All classes that will ever come; needed at the first call.
        sample_weight : array-like of shape (n,), default=None
            Row weights.

        Returns
        -------
        NaiveBayes
            The classifier, updated.
        """
        is_first = not hasattr(self, "counts_")
        target = self._announced(classes, is_first)
        recipe = self._recipe()
        refuse_no_labels(y, self)
        table, y, weights = training_rows(X, y, sample_weight, self)
        labels = known_labels(y, target)
        if is_first:
            training = encode_table(table, target, labels, weights, recipe)
            recipe.check_views(training, self)
            counts = training.given_counts
        else:
            encoder = copy(self.encoder_)
            encoder.grow(table)
            codes = encoder.encode(table)
            training = TrainingSet(
                None, encoder, codes, target, labels, weights, recipe
            )
            counts = self.counts_.in_schema(encoder.schema_) + training.given_counts
        if recipe.class_weight is not None:
            factors = class_factors(recipe.class_weight, target, counts.by_class)
            training = replace(training, class_factors=factors)
            model = training.estimate(counts.scaled(factors))
        else:
            model = training.estimate(counts)
        self._publish(training, Fit(model, model.log_prior, counts=counts))
        return self

    def _announced(self, classes: Any, is_first: bool) -> NDArray[Any]:
        """Return the classes that chunks may hold; they are said at the first call."""
        if classes is None:
            if is_first:
                raise TableError(
                    "classes must be passed on the first call to partial_fit."
                )
            return self.classes_
        announced, _ = encode_labels(classes)
        check_two_classes(announced)
        if not is_first and not np.array_equal(announced, self.classes_):
            raise TableError(
                f"`classes={classes}` is not the same as on last call to partial_fit, "
                f"was: {self.classes_}."
            )
        return announced
