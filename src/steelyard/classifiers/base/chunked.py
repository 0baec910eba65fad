"""Learning from rows that come in chunks: what was learned goes on."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, is_elsewhere
from steelyard.classifiers.base import StandardNB
from steelyard.classifiers.base.prior import new_prior
from steelyard.exceptions import ParameterError, TableError, check_fitted, warn_user
from steelyard.fitting.recipe import Recipe
from steelyard.io import as_source
from steelyard.model.streamed import encode_source, read_source
from steelyard.model.training import TrainingSet, encode_table
from steelyard.proba.counts import Counts, with_pairs_of
from steelyard.table.frames import Table
from steelyard.table.labels import (
    check_two_classes,
    class_factors,
    class_places,
    encode_labels,
    known_labels,
    refuse_no_labels,
    training_rows,
    united_classes,
    weighted_rows,
)

__all__ = ["KeepsRows", "LearnsInChunks", "TakesChunks"]


class TakesChunks(StandardNB):
    """A classifier that goes on learning from one more chunk of rows.

    A chunk is a training set with the counts of all rows before it. ``_fit`` asks that
    set for counts; what else it needs it finds in the model so far.
    """

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        classes: Any = None,
        sample_weight: Any = None,
        forget: float = 1.0,
    ) -> Self:
        r"""Learn from one more chunk of rows.

        Counts go on exactly: chunks add up to the model of one ``fit`` on all rows, bit
        for bit for categorical columns and fixed edges, with whole weights and without
        ``class_weight``, and to rounding otherwise. Cut points and imputed values are
        learned from the first chunk and kept: make it a large one, or shuffle the rows.
        New categories are taken in as they come, and so are new classes, of which
        earlier rows had none. ``ShrinkageNB`` finds cut points again as rows come, and
        says what it does to weights.

        Parameters
        ----------
        X : table of shape (n, d), or source of rows
            The chunk, or what ``steelyard.scan`` gives or takes.
        y : array-like of shape (n,), or str
            Its labels; of a source the name of their column, unless it knows it.
        classes : array-like of shape (K,), default=None
            Classes that are known to come, in addition to those that are there. A class
            that nobody announced is taken in as well, with a warning.
        sample_weight : array-like of shape (n,), or str, default=None
            Row weights; of a source the name of their column.
        forget : float, default=1.0
            Factor :math:`\gamma` on the weight of all earlier rows, above 0 and at most
            1, so that old rows fade. :math:`\gamma = 2^{-n/h}` with the n rows of this
            chunk is a half-life of h rows.

        Returns
        -------
        classifier
            The classifier, updated. If anything is refused it stays as it was.
        """
        is_first = self._check_going_on(forget)
        if is_elsewhere(X):
            raise TableError(
                "partial_fit takes tables and scans. Dask and Spark frames are learned "
                "by fit(df, 'target column')."
            )
        source = None
        if not isinstance(X, np.ndarray):
            source = as_source(X, y, sample_weight, needs_target=True)
        if source is None:
            refuse_no_labels(y, self)
            rows = training_rows(X, y, sample_weight, self)
            self._take_in(*rows, classes, forget)
            return self
        # A plain copy would leave rows at hand behind.
        learner = copy(self)
        learner.__dict__ = dict(vars(self))
        with source:
            if is_first:
                recipe = self._recipe()
                training = encode_source(source, recipe, recipe.rows_needed)
                target = self._classes_so_far(training.classes, classes)
                learner._begin(recipe, training.in_classes(target))
            else:
                for part in read_source(source, source.features):
                    given = weighted_rows(part.table, part.labels, part.weights)
                    learner._take_in(*given, classes, forget)
                    forget = 1.0
        self.__dict__ = learner.__dict__
        return self

    def _check_going_on(self, forget: float) -> bool:
        """Refuse models that cannot go on; say whether there is none yet."""
        if hasattr(self, "edits_"):
            raise ParameterError(
                "This model was edited by hand, and more rows would undo that. Learn "
                "with `unedited()`, then edit again."
            )
        if not isinstance(forget, Real) or not 0.0 < forget <= 1.0:
            raise ParameterError(
                "`forget` must be a number above 0 and at most 1, the factor on the "
                f"weight of earlier rows; 1 forgets nothing. Got {forget!r}."
            )
        return not hasattr(self, "counts_")

    def _take_in(
        self, table: Table, y: Any, weights: Floats | None, classes: Any, keeps: float
    ) -> None:
        """Learn from a chunk in memory."""
        recipe = self._recipe()
        target = self._classes_so_far(encode_labels(y)[0], classes)
        labels = known_labels(y, target)
        if not hasattr(self, "counts_"):
            training = encode_table(table, target, labels, weights, recipe)
            self._begin(recipe, training)
            return
        training = self._next(recipe, table, target, labels, weights, keeps)
        self._learn_from(recipe, training, **self._from_earlier([self], keeps))

    def _begin(self, recipe: Recipe, training: TrainingSet) -> None:
        """Learn from a first chunk."""
        recipe.check_views(training, self)
        self._learn_from(recipe, training)

    def _classes_so_far(self, present: NDArray[Any], classes: Any) -> NDArray[Any]:
        """Return the classes that are known and those that are new, which are said."""
        known = [self.classes_] if hasattr(self, "counts_") else []
        if classes is not None:
            known.append(encode_labels(classes)[0])
        expected, target = united_classes(known), united_classes([*known, present])
        check_two_classes(target)
        if known and len(target) > len(expected):
            new = np.setdiff1d(target, expected).tolist()
            warn_user(
                f"New classes in y: {new}. They are learned from now on. Announce "
                "classes that you expect by `classes`, and nothing is said.",
                UserWarning,
            )
        return target

    def _from_earlier(
        self, models: Sequence[Self], keeps: float = 1.0
    ) -> dict[str, Any]:
        """Return what ``_fit`` takes of models of earlier rows, beside the counts."""
        return {}

    def _next(
        self,
        recipe: Recipe,
        table: Table,
        classes: NDArray[Any],
        labels: NDArray[np.uint32],
        weights: Floats | None,
        keeps: float,
    ) -> TrainingSet:
        """Encode a chunk, in a schema that has its new values as well."""
        encoder = copy(self.encoder_)
        pairs, encoder.schema_ = encoder.schema_, encoder.schema_.without_pairs
        codes = encoder.grow(table)
        schema = with_pairs_of(pairs, encoder.schema_)
        places, k = class_places(self.classes_, classes), len(classes)
        earlier, factors = self.counts_.in_schema(schema).in_classes(places, k), None
        if keeps != 1.0:
            earlier = earlier.scaled(np.full(k, keeps))
        if recipe.class_weight is not None:
            own = np.bincount(labels, weights, minlength=k)
            totals = earlier.by_class + own
            factors = class_factors(recipe.class_weight, classes, totals)
        chunk = TrainingSet(
            None,
            encoder,
            codes,
            *(classes, labels, weights, recipe, factors),
            target_name=getattr(self, "target_name_", None),
            reading=getattr(self, "reading_", {}),
            column_labels=getattr(self, "column_labels_", {}),
        )
        if schema.is_pair.any():
            sides = [f.sides for f in schema.features if f.sides]
            chunk = chunk.with_pairs((a, b) for a, b in sides)
        return replace(chunk, earlier=earlier)


class KeepsRows(TakesChunks):
    """A classifier that goes on from some rows that it has kept.

    Those of ``partial_fit`` are ``kept_rows_``, and in files; those of a ``fit`` of few
    rows are at hand in memory alone. ``_fit`` takes the model so far.
    """

    def _check_going_on(self, forget: float) -> bool:
        is_first = super()._check_going_on(forget)
        if getattr(self, "instances", None) is not None:
            raise ParameterError(
                f"{type(self).__name__} with `instances` looks at all rows at once, "
                "which partial_fit does not have. Use fit, or instances=None."
            )
        if not is_first and self._rows_so_far() is None:
            raise ParameterError(
                "This model has kept no rows to go on from: those of `fit` are not "
                "kept of larger tables, nor in files and copies. Learn all chunks "
                "by partial_fit, the first one too."
            )
        return is_first

    def _rows_so_far(self) -> Any:
        """Return the rows to go on from: of ``partial_fit``, or of a ``fit``."""
        own = vars(self)
        return own.get("kept_rows_") or own.get("_rows_at_hand")

    def __getstate__(self) -> Any:
        # Files and other processes get rows only of models that are to go on.
        state = dict(super().__getstate__())
        state.pop("_rows_at_hand", None)
        return state

    def _begin(self, recipe: Recipe, training: TrainingSet) -> None:
        recipe.check_views(training, self)
        self._learn_from(recipe, training, keeps_rows=True)

    def _next(self, recipe: Recipe, table: Table, *more: Any) -> TrainingSet:
        # Numbers of the chunk may be kept.
        return replace(super()._next(recipe, table, *more), table=table)

    def _from_earlier(
        self, models: Sequence[Self], keeps: float = 1.0
    ) -> dict[str, Any]:
        return {"so_far": models[0], "keeps": keeps}


class LearnsInChunks(TakesChunks):
    """A classifier whose ``_fit`` is a function of counts, which add up over chunks."""

    def _begin(self, recipe: Recipe, training: TrainingSet) -> None:
        if training.earlier is None:
            earlier = Counts.zeros(training.schema, training.n_classes)
            training = replace(training, earlier=earlier)
        super()._begin(recipe, training)

    def with_prior(self, prior: Any) -> Self:
        """Return a classifier with other class priors, see ``BaseNB.with_prior``.

        Further chunks keep them.
        """
        check_fitted(self)
        shares = new_prior(prior, self.classes_, self.class_log_prior_).tolist()
        return super().with_prior(shares).set_params(prior=shares)
