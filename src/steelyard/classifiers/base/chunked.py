"""Learning from rows that come in chunks: what was learned goes on."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, is_elsewhere
from steelyard.classifiers.base.estimator import StandardNB
from steelyard.classifiers.base.prior import new_prior
from steelyard.classifiers.fitted import answering_model
from steelyard.exceptions import ParameterError, TableError, check_fitted, warn_user
from steelyard.fitting.recipe import Recipe
from steelyard.io import as_source
from steelyard.model.streamed import encode_source, read_source
from steelyard.model.training import TrainingSet, encode_table
from steelyard.proba.counts import Counts, with_interactions_of
from steelyard.table.frames import Table, refuse_late_dates
from steelyard.table.labels import (
    check_two_classes,
    class_factors,
    class_places,
    encode_labels,
    known_labels,
    refuse_no_labels,
    united_classes,
)
from steelyard.table.rows import take_rows, training_rows, weighted_rows

# How far a chunk is from what the model expects of it, and how much better the second
# half of it is predicted with a smaller factor, in standard errors, for rows to be
# forgotten; and for more of them. These errors are of sums over blocks of rows: single
# rows that follow from those just before made Elec2 forget what it needs, and so did
# three errors.
_SURPRISING, _PAYS, _PAYS_MORE, _BLOCKS = 2.0, 4.0, 2.0, 10

# Factors that are tried, down to less than any chunk, and least rows to try them on.
_FACTORS, _MIN_ROWS = tuple(4.0**-k for k in range(1, 6)), 20

# Least log-probability of a class, so that one row does not decide.
_MIN_LOG = np.log(1e-6)


def refuse_edited(clf: Any, what: str, advice: str) -> None:
    """Refuse a model with edits, which learning from counts would drop."""
    if hasattr(clf, "edits_"):
        raise ParameterError(
            f"This model was edited by hand, and {what} would undo that. {advice} "
            "with `unedited()`, then edit again."
        )


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
        forget: float | Literal["auto"] = 1.0,
    ) -> Self:
        r"""Learn from one more chunk of rows.

        Counts go on exactly: chunks add up to the model of one ``fit`` on all rows, bit
        for bit for categorical columns and fixed edges, with whole weights and without
        ``class_weight``, and to rounding otherwise. Cut points and imputed values are
        learned from the first chunk and kept: make it a large one, or shuffle the rows.
        New categories are taken in as they come, and so are new classes, of which
        earlier rows had none. ``ShrinkageNB`` learns cut points anew as rows come, and
        says when.

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
        forget : float or "auto", default=1.0
            Factor :math:`\gamma` on the weight of all earlier rows, above 0 and at most
            1, so that old rows fade. :math:`\gamma = 2^{-n/h}` with the n rows of this
            chunk is a half-life of h rows. "auto" forgets if rows have changed.
            The log-loss of the chunk is compared with what the model expects. Where
            they differ, the second half of the chunk is predicted from the first and
            from earlier rows, with factors 1, 1/4, ..., 1/1024 while they pay.

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
        learner = self._twin()
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
                    forget = forget if forget == "auto" else 1.0
        self.__dict__ = learner.__dict__
        return self

    def _check_going_on(self, forget: Any) -> bool:
        """Refuse models that cannot go on; return whether there is none yet."""
        refuse_edited(self, "more rows", "Learn")
        is_auto = isinstance(forget, str) and forget == "auto"
        is_number = isinstance(forget, Real) and not isinstance(forget, bool)
        if not is_auto and not (is_number and 0.0 < forget <= 1.0):
            raise ParameterError(
                "`forget` must be a number above 0 and at most 1, the factor on the "
                "weight of earlier rows, or 'auto'; 1 forgets nothing. "
                f"Got {forget!r}."
            )
        return not hasattr(self, "counts_")

    def _take_in(
        self,
        table: Table,
        y: Any,
        weights: Floats | None,
        classes: Any,
        keeps: float | Literal["auto"],
    ) -> None:
        """Learn from a chunk in memory."""
        recipe = self._recipe()
        target = self._classes_so_far(encode_labels(y)[0], classes)
        labels = known_labels(y, target)
        if not hasattr(self, "counts_"):
            training = encode_table(table, target, labels, weights, recipe)
            self._begin(recipe, training)
            return
        if keeps == "auto":
            keeps = self._kept_share(table, y, weights, target)
            if keeps < 1.0:
                warn_user(
                    "The rows have changed. The model predicts this chunk better if "
                    f"earlier rows have 1/{1.0 / keeps:,.0f} of their weight, and "
                    "they have from now on. `drift` shows which columns changed.",
                    UserWarning,
                )
        training = self._next(recipe, table, target, labels, weights, keeps)
        self._learn_from(recipe, training, **self._from_earlier([self], keeps))

    def _kept_share(
        self, table: Table, y: Any, weights: Floats | None, classes: NDArray[Any]
    ) -> float:
        """Choose the factor on earlier rows by which a chunk is predicted best."""
        n = table.n_rows
        if n < _MIN_ROWS:
            return 1.0
        u = np.ones(n) if weights is None else weights
        loss, expected, variance = self._losses(table, y, classes)
        surprise = abs(u @ (loss - expected))
        if surprise < _SURPRISING * np.sqrt(u**2 @ variance):
            return 1.0

        first, second = np.array_split(np.arange(n), 2)
        given = take_rows(first, table, y, weights)
        later, labels, _ = take_rows(second, table, y, None)
        blocks = np.linspace(0, len(second), _BLOCKS, endpoint=False).astype(int)

        def tried(factor: float) -> Floats:
            learner = self._twin(is_tried=True)
            with warnings.catch_warnings():
                # Warnings are of the whole chunk.
                warnings.simplefilter("ignore")
                learner._take_in(*given, classes, factor)
            return learner._losses(later, labels, classes)[0]

        best, share = tried(1.0), 1.0
        for factor in _FACTORS:
            losses = tried(factor)
            gains = np.add.reduceat(u[second] * (best - losses), blocks)
            errors = _PAYS if share == 1.0 else _PAYS_MORE
            if gains.sum() <= errors * np.sqrt(len(gains)) * gains.std(ddof=1):
                break
            best, share = losses, factor
        return share

    def _losses(
        self, table: Table, y: Any, classes: NDArray[Any]
    ) -> tuple[Floats, Floats, Floats]:
        """Return log-losses of rows, and their means and variances by the model."""
        log_proba = np.full((table.n_rows, len(classes)), _MIN_LOG)
        codes = self.encoder_.encode(table)
        places = class_places(self.classes_, classes)
        log_proba[:, places] = answering_model(self).log_proba(codes, self.n_jobs)
        log_proba = np.maximum(log_proba, _MIN_LOG)
        proba, labels = np.exp(log_proba), known_labels(y, classes)
        expected = -np.sum(proba * log_proba, axis=1)
        variance = np.sum(proba * (log_proba + expected[:, None]) ** 2, axis=1)
        return -log_proba[np.arange(len(labels)), labels], expected, variance

    def _twin(self, is_tried: bool = False) -> Self:
        """Return a classifier that goes on by itself, to be tried or to be taken."""
        # A plain copy would lose the rows that are kept, and look for notices.
        twin = type(self).__new__(type(self))
        twin.__dict__ = dict(vars(self))
        return twin

    def _begin(self, recipe: Recipe, training: TrainingSet) -> None:
        """Learn from a first chunk."""
        recipe.check_slopes(training, self)
        self._learn_from(recipe, training)

    def _classes_so_far(self, present: NDArray[Any], classes: Any) -> NDArray[Any]:
        """Return known and new classes; new ones raise a warning."""
        announced = [self.classes_] if hasattr(self, "counts_") else []
        if classes is not None:
            if isinstance(classes, str) or np.ndim(classes) != 1:
                raise ParameterError(
                    "`classes` must be a list of the classes that are known to come. "
                    f"Got {classes!r}."
                )
            announced.append(encode_labels(classes)[0])
        expected = united_classes(announced)
        target = united_classes([*announced, present])
        check_two_classes(target)
        if announced and len(target) > len(expected):
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
        interactions, encoder.schema_ = (
            encoder.schema_,
            encoder.schema_.without_interactions,
        )
        codes = encoder.grow(table)
        schema = with_interactions_of(interactions, encoder.schema_)
        places, k = class_places(self.classes_, classes), len(classes)
        earlier, factors = self.counts_.in_schema(schema).in_classes(places, k), None
        if keeps != 1.0:
            earlier = earlier.scaled(np.full(k, keeps))
        if recipe.class_weight is not None:
            totals = earlier.by_class + np.bincount(labels, weights, minlength=k)
            factors = class_factors(recipe.class_weight, classes, totals)
        chunk = TrainingSet(
            None,
            encoder,
            codes,
            *(classes, labels, weights, recipe, factors),
            target_name=getattr(self, "target_name_", None),
            reading=self.training_.reading,
            column_labels=self.training_.labels,
        )
        if schema.is_interaction.any():
            sides = [f.sides for f in schema.features if f.sides]
            chunk = chunk.with_interactions((a, b) for a, b in sides)
        return replace(chunk, earlier=earlier)


class KeepsRows(TakesChunks):
    """A classifier that goes on from some rows that it has kept.

    Those of ``partial_fit`` are ``kept_rows_``, and in files; those of a ``fit`` of few
    rows are kept in memory alone. ``_fit`` takes the model so far.
    """

    def _check_going_on(self, forget: Any) -> bool:
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

    def _twin(self, is_tried: bool = False) -> Self:
        twin, rows = super()._twin(is_tried), self._rows_so_far()
        if is_tried and rows is not None:
            # Its weights are all that is new: no refit is ever due.
            kept = replace(rows, new_weight=-np.inf)
            twin.__dict__.update(kept_rows_=kept, uncertainty=False)
        return twin

    def _rows_so_far(self) -> Any:
        """Return the rows to go on from: of ``partial_fit``, or of a ``fit``."""
        attributes = vars(self)
        return attributes.get("kept_rows_") or attributes.get("_rows_at_hand")

    def __getstate__(self) -> Any:
        # Files and other processes get rows only of models that are to go on.
        state = dict(super().__getstate__())
        state.pop("_rows_at_hand", None)
        return state

    def _begin(self, recipe: Recipe, training: TrainingSet) -> None:
        recipe.check_slopes(training, self)
        self._learn_from(recipe, training, keeps_rows=True)

    def _next(self, recipe: Recipe, table: Table, *more: Any) -> TrainingSet:
        # Rows of the chunk may be kept.
        return replace(super()._next(recipe, table, *more), table=table)

    def _from_earlier(
        self, models: Sequence[Self], keeps: float = 1.0
    ) -> dict[str, Any]:
        return {"so_far": models[0], "keeps": keeps}


class LearnsInChunks(TakesChunks):
    """A classifier whose ``_fit`` is a function of counts, which add up over chunks."""

    def _next(self, recipe: Recipe, table: Table, *more: Any) -> TrainingSet:
        refuse_late_dates(self.encoder_.schema_, table)
        return super()._next(recipe, table, *more)

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
