"""What every classifier shares: settings, fit, predictions, what is published."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self, dataclass_transform, final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags

from steelyard._common.settings import (
    ANY,
    NONE,
    Declared,
    accepted_by,
    check_settings,
    learned,
    listed,
    mapped,
    number,
    part,
    required,
    setting,
    setting_of,
    word,
)
from steelyard._common.threads import one_blas_thread
from steelyard.classifiers.base.prior import with_prior as _with_prior
from steelyard.classifiers.base.summary import row_summary
from steelyard.classifiers.fitted import FittedNB
from steelyard.exceptions import warn_user
from steelyard.fitting.fit import Fit
from steelyard.fitting.recipe import DEVICE, Recipe, rows_of
from steelyard.model.base import RowsNeeded
from steelyard.model.edits import Edit
from steelyard.model.table_model import centred
from steelyard.model.training import Encoding, TrainingSet
from steelyard.notices.notice import Notice
from steelyard.notices.record import TrainingRecord
from steelyard.proba import SMOOTHINGS, Smoothing, resolve_smoothing
from steelyard.proba.counts import Counts
from steelyard.proba.smoothing import Estimation
from steelyard.table.encoder import TableEncoder
from steelyard.table.labels import is_measured

DEVICE_SETTING: Any = setting(
    default="cpu",
    allowed=DEVICE,
    about='Where rows are counted and weights learned: "cpu", "cuda" (a GPU), "cuda:1" '
    '(the second one), or "auto", a GPU if there is one.',
)
"""The setting ``device`` of classifiers that learn from counts and passes."""


@dataclass_transform(
    kw_only_default=True, field_specifiers=(setting, required, learned)
)
class BaseNB(ClassifierMixin, FittedNB, Declared):
    """One way to fit, and all that follows from a fitted model; settings by keyword.

    A subclass declares what is particular to it: settings in its body, ``_recipe`` if
    they are more than these, and ``_fit``, which turns a recipe and a training set into
    a ``Fit``. Everything else reads ``model_``, ``encoder_`` and ``classes_`` alone.
    """

    _keyword_only: ClassVar[bool] = True

    _models: ClassVar[tuple[str, ...]] = ("sum",)
    """Kinds of models that a fit may give, or a file may contain."""

    _rows_needed: ClassVar[RowsNeeded] = "codes"
    """What a fit keeps of its rows, except weightings."""

    categorical_features: Any = setting_of(TableEncoder, "categorical_features")
    numeric: Any = setting_of(TableEncoder, "numeric")
    smoothing: Any = setting(
        default="m-estimate",
        allowed=accepted_by(
            resolve_smoothing,
            f"one of {', '.join(map(repr, SMOOTHINGS))}, a number of at least 0, or a "
            "Smoothing object",
            *SMOOTHINGS,
            like=part(Smoothing, SMOOTHINGS) | number(0.0),
        ),
        about="How counts become probabilities; a float f adds f to every count, 0 "
        "takes frequencies as they are, "
        '"empirical-bayes" draws values to the class prior as far as their column\'s '
        'counts ask for, "kernel" is a kernel density on bins of one width.',
    )
    n_jobs: int | None = setting_of(TableEncoder, "n_jobs")
    keep_identifiers: bool = setting_of(TableEncoder, "keep_identifiers")

    classes_: NDArray[Any] = learned("ndarray of shape (K,)", "Classes, sorted.")
    class_log_prior_: NDArray[np.float64] = learned(
        "ndarray of shape (K,)", "Logarithms of the class priors."
    )
    class_count_: NDArray[np.float64] = learned(
        "ndarray of shape (K,)",
        "Total weight of the training rows of each class, ``class_weight`` included.",
    )
    counts_: Counts = learned(
        "Counts",
        "Frequencies in the training rows, weighted by ``sample_weight`` alone.",
    )
    model_: Any = learned("Model", "Everything needed to predict, as plain data.")
    encoder_: TableEncoder = learned("TableEncoder", "How tables become codes.")
    training_: TrainingRecord = learned(
        "TrainingRecord",
        "What the training rows were: ``reading`` of files, ``labels`` of columns, "
        "``ranges`` of their numbers, ``quality``, ``notices``, ``row_hashes``, "
        "``score_ranges``, ``cut_points_are_exact``.",
    )
    target_name_: str = learned(
        "str",
        "Name of the target, if labels were a named series or a column of a source.",
        optional=True,
    )
    edits_: list[Edit] = learned(
        "list of Edit",
        "What ``edited`` changed in the model, in order: what, why, when, and what it "
        "was before; only of models that were edited.",
        optional=True,
    )
    n_features_in_: int = learned("int", "Number of columns.")
    feature_names_in_: NDArray[Any] = learned(
        "ndarray of str", "Names of the columns, if the training table had any."
    )

    # ----------------------------------------------------------------------- learning

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the model from a table and its labels.

        Parameters
        ----------
        X : table of shape (n, d), or source of rows
            NumPy array, pandas, polars or pyarrow table. Or rows that need not fit in
            memory: what ``steelyard.scan`` gives or takes, such as a polars LazyFrame;
            a Dask frame or array, or a Spark frame, whose partitions stay where they
            are.
        y : array-like of shape (n,), or str
            Labels, none of them missing; of a source the name of the target's column,
            unless it knows it. Of a Dask array or frame also a Dask array or series
            with the same partitions.
        sample_weight : array-like of shape (n,), or str, default=None
            Row weights; a weight of 2 equals the row twice, of 0 its absence. Of a
            source the name of their column.

        Returns
        -------
        classifier
            The fitted classifier.
        """
        return self._learn(X, y, sample_weight)

    @final
    def _learn(self, X: Any, y: Any, sample_weight: Any, **rows: Any) -> Self:
        """Fit: settings to recipe, rows to training set, both to what is published."""
        recipe = self._recipe()
        with rows_of(X) as given:
            training = given.training(y, sample_weight, recipe, self)
            self._learn_from(recipe, recipe.finished(training, self), **rows)
        return self

    @final
    def _learn_from(self, recipe: Recipe, training: TrainingSet, **rows: Any) -> None:
        """Fit encoded rows, and publish what was learned."""
        # Bits must not depend on how many threads multiply matrices.
        with one_blas_thread():
            fit = self._fit(recipe, training, **rows)
        self._publish(training, fit)

    @property
    def rows_needed(self) -> RowsNeeded:
        """What a fit with these settings keeps of its rows.

        "counts" (of single columns), "sums" (passes that add up), "pairs" (also counts
        of pairs of columns), "per-row" (numbers for each row), "codes" (codes by column
        and scores of each row) or "all" (all rows are the model). All but the last can
        be learned from a table larger than memory, those up to "pairs" from one that is
        spread over machines.
        """
        return self._recipe().rows_needed

    def _recipe(self) -> Recipe:
        """Check every setting, and resolve them to what a fit needs."""
        check_settings(self)
        return Recipe(
            self._encoding(),
            self._estimation(),
            n_jobs=self.n_jobs,
            needs=self._rows_needed,
            device=getattr(self, "device", "cpu"),
        )

    def _encoding(self) -> Encoding:
        keep = bool(self.keep_identifiers)
        how = self.categorical_features, self.numeric
        return Encoding(*how, keep_identifiers=keep)

    def _estimation(self) -> Estimation:
        return Estimation(resolve_smoothing(self.smoothing), "smoothed", 1e-9)

    def _fit(self, recipe: Recipe, training: TrainingSet) -> Fit:
        """Learn from encoded rows: the counts of all of them, if nothing else."""
        model = training.estimate(training.count())
        return Fit(model, model.log_prior)

    @final
    def _publish(self, training: TrainingSet, fit: Fit) -> None:
        """Set the fitted attributes, all at once, in place of those of an earlier fit.

        A fit that is refused or interrupted never comes here, and leaves an earlier
        model as it was.
        """
        rows, target_name = training, training.target_name
        training = fit.training or training
        counts = fit.counts or training.given_counts
        class_count, factors = counts.by_class, training.class_factors
        encoder = training.encoder
        for name in list(vars(self)):
            if name.endswith("_") and not name.startswith("_"):
                delattr(self, name)
        self.classes_, self.encoder_ = training.classes, encoder
        self.n_features_in_ = encoder.n_features_in_
        self.model_, self.counts_ = centred(fit.model, counts, training), counts
        self.class_count_ = class_count if factors is None else class_count * factors
        self.class_log_prior_ = fit.log_prior
        weights = fit.instance_weights
        weights = None if weights is None else training.all_rows(weights)
        optional: dict[str, Any] = {
            "feature_names_in_": getattr(encoder, "feature_names_in_", None),
            "target_name_": target_name or None,
            "instance_weights_": weights,
        }
        present = {name: value for name, value in optional.items() if value is not None}
        for name, value in {**fit.named, **present}.items():
            setattr(self, name, value)
        self.training_ = TrainingRecord(
            reading=rows.reading,
            labels=dict(rows.column_labels),
            ranges=encoder.ranges_,
            cut_points_are_exact=rows.cut_points_are_exact,
            summary=row_summary(training, fit, counts, self._method_notices()),
        )
        if is_measured(self.classes_):
            for notice in self.notices_:
                if notice.kind == "number-target":
                    warn_user(str(notice), UserWarning)

    def _method_notices(self) -> list[Notice]:
        """Return the notices of the method about its fit."""
        return []

    with_prior = _with_prior

    def __sklearn_tags__(self) -> Tags:
        """Return the kinds of input the classifier takes, for scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


class StandardNB(BaseNB):
    """A classifier with the settings of tables, probabilities and class weights."""

    missing: str = setting_of(TableEncoder, "missing")
    cardinality: str = setting_of(TableEncoder, "cardinality")
    prior: Any = setting(
        default="smoothed",
        allowed=(word("smoothed", "frequency") | listed(number())).called(
            "'smoothed', 'frequency' or one probability per class"
        ),
        about="Class priors: smoothed like the values, relative frequencies, or given.",
    )
    variance_floor: float = setting(
        default=1e-9,
        allowed=number(0.0),
        about="Smallest variance of a Gaussian attribute within a class, as a share of "
        "its variance over all rows.",
    )
    class_weight: Any = setting(
        default=None,
        allowed=(NONE | word("balanced") | mapped(ANY, number(0.0, ends="()"))).called(
            "None, 'balanced' or a mapping from class to a number greater than 0"
        ),
        about="Factor on the weight of the rows of each class.",
    )

    def _recipe(self) -> Recipe:
        return replace(super()._recipe(), class_weight=self.class_weight)

    def _encoding(self) -> Encoding:
        encoding = super()._encoding()
        return replace(encoding, missing=self.missing, cardinality=self.cardinality)

    def _estimation(self) -> Estimation:
        smoothing = resolve_smoothing(self.smoothing)
        return Estimation(smoothing, self.prior, float(self.variance_floor))
