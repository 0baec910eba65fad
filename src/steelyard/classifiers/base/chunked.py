"""Learning from rows that come in chunks, for methods that need only their counts."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from steelyard._common.checks import check_fitted
from steelyard.classifiers.base.classifier import StandardNB
from steelyard.classifiers.base.prior import new_prior
from steelyard.exceptions import ParameterError, TableError
from steelyard.fitting.recipe import Recipe
from steelyard.model.training import TrainingSet, encode_table
from steelyard.proba.counts import Counts
from steelyard.table.frames import Table
from steelyard.table.labels import (
    check_two_classes,
    class_factors,
    encode_labels,
    known_labels,
    refuse_no_labels,
    training_rows,
)

__all__ = ["LearnsInChunks"]


class LearnsInChunks(StandardNB):
    """A classifier whose ``_fit`` is a function of counts, which add up over chunks.

    A chunk is a training set with the counts of all rows before it. ``_fit`` asks that
    set for counts; what else it counts itself it finds in the model so far.
    """

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> Self:
        """Learn from one more chunk of rows.

        Chunks add up to the same model as one ``fit`` on all rows: bit for bit for
        categorical columns and fixed edges, with whole weights and without
        ``class_weight``, and to rounding otherwise. Cut points and imputed values are
        learned from the first chunk and kept: make it a large one, or shuffle the rows.
        New categories are taken in as they come.

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
        classifier
            The classifier, updated.
        """
        if hasattr(self, "edits_"):
            raise ParameterError(
                "This model was edited by hand, and more rows would undo that. Learn "
                "with `unedited()`, then edit again."
            )
        is_first = not hasattr(self, "counts_")
        target = self._announced(classes, is_first)
        recipe = self._recipe()
        refuse_no_labels(y, self)
        table, y, weights = training_rows(X, y, sample_weight, self)
        labels = known_labels(y, target)
        if is_first:
            training = encode_table(table, target, labels, weights, recipe)
            recipe.check_views(training, self)
            earlier = Counts.zeros(training.schema, len(target))
            training = replace(training, earlier=earlier)
        else:
            training = self._next(recipe, table, labels, weights)
        so_far = [] if is_first else [self]
        self._learn_from(recipe, training, **self._from_earlier(so_far))
        return self

    def _from_earlier(self, models: Sequence[Self]) -> dict[str, Any]:
        """Return what ``_fit`` takes of models of earlier rows, beside the counts."""
        return {}

    def with_prior(self, prior: Any) -> Self:
        """Return a classifier with other class priors, see ``BaseNB.with_prior``.

        Further chunks keep them.
        """
        check_fitted(self)
        shares = new_prior(prior, self.classes_, self.class_log_prior_).tolist()
        return super().with_prior(shares).set_params(prior=shares)

    def _next(
        self,
        recipe: Recipe,
        table: Table,
        labels: NDArray[np.uint32],
        weights: NDArray[np.float64] | None,
    ) -> TrainingSet:
        """Encode a chunk, in a schema that has its new values as well."""
        encoder, classes = copy(self.encoder_), self.classes_
        codes = encoder.grow(table)
        earlier, factors = self.counts_.in_schema(encoder.schema_), None
        if recipe.class_weight is not None:
            own = np.bincount(labels, weights, minlength=len(classes))
            totals = earlier.by_class + own
            factors = class_factors(recipe.class_weight, classes, totals)
        rows = (classes, labels, weights, recipe, factors)
        return TrainingSet(
            None,
            encoder,
            codes,
            *rows,
            earlier=earlier,
            target_name=getattr(self, "target_name_", None),
            reading=getattr(self, "reading_", {}),
            column_labels=getattr(self, "column_labels_", {}),
        )

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
