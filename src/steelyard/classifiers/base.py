"""The classifiers: what all of them share, and plain naive Bayes."""

from __future__ import annotations

from copy import copy
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from steelyard._common.checks import check_number
from steelyard.exceptions import ParameterError, TableError
from steelyard.instances import Task
from steelyard.model.table_model import NBModel
from steelyard.model.training import Training, class_factors
from steelyard.proba import resolve_smoothing
from steelyard.proba.counts import Counts
from steelyard.proba.estimation import Estimation
from steelyard.table.codes import Codes
from steelyard.table.encoder import TableEncoder
from steelyard.table.frames import Table, as_table
from steelyard.table.labels import encode_labels, known_labels, training_rows

if TYPE_CHECKING:
    from steelyard.explain import GlobalExplanation, LocalExplanation

__all__ = ["BaseNB", "NaiveBayes"]


class BaseNB(ClassifierMixin, BaseEstimator):
    """What every classifier of the package does alike: encode, predict, save.

    A subclass learns an ``NBModel`` and stores it as ``model_`` together with
    ``encoder_`` and ``classes_``; everything here reads only those.
    """

    encoder_: TableEncoder
    model_: Any
    classes_: NDArray[Any]

    # Settings shared by all, declared for the type checker; subclasses' __init__ store
    # them.
    categorical_features: Any
    numeric: Any
    missing: str
    cardinality: str
    smoothing: Any
    prior: Any
    variance_floor: float
    class_weight: Any
    n_jobs: int | None

    # ------------------------------------------------------------------- predicting

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the most probable class of every row.

        Parameters
        ----------
        X : table of shape (n, d)
            A table with the columns of the training table, in any order if named.

        Returns
        -------
        ndarray of shape (n,)
            Classes. A tie goes to the class with the larger prior, then to the first.
        """
        codes = self._encode(X)
        return self.model_.predict(codes, self.n_jobs)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Posterior probability of every class for every row.

        Parameters
        ----------
        X : table of shape (n, d)
            A table with the columns of the training table, in any order if named.

        Returns
        -------
        ndarray of shape (n, K)
            Probabilities in the order of ``classes_``.
        """
        codes = self._encode(X)
        return self.model_.proba(codes, self.n_jobs)

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Logarithm of the posterior probability of every class for every row.

        Parameters
        ----------
        X : table of shape (n, d)
            A table with the columns of the training table, in any order if named.

        Returns
        -------
        ndarray of shape (n, K)
            Log-probabilities, exact where probabilities would underflow.
        """
        codes = self._encode(X)
        return self.model_.log_proba(codes, self.n_jobs)

    def predict_joint_log_proba(self, X: Any) -> NDArray[np.float64]:
        r"""Joint log-probability of every row with every class.

        .. math:: z_c(x) = \log \pi_c + \sum_j \log \theta_{j,x_j|c}

        Parameters
        ----------
        X : table of shape (n, d)
            A table with the columns of the training table, in any order if named.

        Returns
        -------
        ndarray of shape (n, K)
            Scores before they are normalised to probabilities.
        """
        codes = self._encode(X)
        return self.model_.scores(codes, self.n_jobs)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to one JSON file, whole or not at all.

        Parameters
        ----------
        path : str or path-like
            Where to write. An existing file is replaced in one step, so that an
            interruption leaves either the old file or the new one.
        """
        # Imported here: the file format knows the classifiers, not the other way round.
        from steelyard.persistence import save

        save(self, path)

    def explain_global(self, X: Any = None) -> GlobalExplanation:
        """Show what the model has learned, attribute by attribute.

        Parameters
        ----------
        X : table of shape (n, d), default=None
            Rows over which importance is taken; the training counts without them.

        Returns
        -------
        GlobalExplanation
            Value tables, importance and weights; the parts of a model that is not one
            sum.
        """
        from steelyard.explain import explain_global

        return explain_global(self, X)

    def explain_local(self, X: Any) -> LocalExplanation:
        """Take the predictions for some rows apart.

        Parameters
        ----------
        X : table of shape (n, d)
            The rows.

        Returns
        -------
        LocalExplanation
            What each cell adds to the score of each class; the parts of a model that is
            not one sum.
        """
        from steelyard.explain import explain_local

        return explain_local(self, X)

    def to_html(self, path: str | PathLike[str], title: str | None = None) -> None:
        """Write the model as a web page in which values can be set and seen to count.

        Parameters
        ----------
        path : str or path-like
            Where to write. The page is one file and needs no network.
        title : str, default=None
            Heading of the page.
        """
        from steelyard.explain import to_html

        to_html(self, path, title)

    def _encode(self, X: Any) -> Codes:
        check_is_fitted(self)
        return self.encoder_.encode(as_table(X, self))

    # --------------------------------------------------------------------- training

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> Training:
        """Check the training data and learn the schema, without touching the model.

        A fit assigns its attributes at the end, so that one that is refused or
        interrupted leaves an earlier model as it was.
        """
        table, y, weights = training_rows(X, _given(y, self), sample_weight, self)
        classes, labels = encode_labels(y)
        _check_two_classes(classes)
        training = self._learn_schema(table, classes, labels, weights)
        given = None if sample_weight is None else np.asarray(sample_weight, np.float64)
        if given is not None and given.size > len(labels):
            training.is_kept = given != 0
        return training

    def _learn_schema(
        self,
        table: Table,
        classes: NDArray[Any],
        labels: NDArray[np.uint32],
        weights: NDArray[np.float64] | None,
    ) -> Training:
        encoder = TableEncoder(
            self.categorical_features,
            self.numeric,
            self.missing,
            self.cardinality,
            self.n_jobs,
        )
        training = Training(encoder, classes, labels, weights)
        training.codes = encoder.learn(
            table, labels, len(classes), training.row_weights(self.class_weight)
        )
        if training.codes.schema.is_linear.any() and not self._has_class_weights():
            raise ParameterError(
                "numeric='linear' adds the same to all classes unless each has weights "
                f"of its own, which {type(self).__name__} with these settings does not "
                "learn. Use 'mdl' or 'gaussian', or ShrinkageNB."
            )
        return training

    def _has_class_weights(self) -> bool:
        """Whether an attribute may count more for one class than for another."""
        return False

    def _estimation(self) -> Estimation:
        """How counts become probabilities, by the settings; refuses wrong ones."""
        floor = check_number(self, "variance_floor", np.inf)
        smoothing = resolve_smoothing(self.smoothing)
        unbiased = getattr(self, "variance", "population") == "sample"
        return Estimation(smoothing, self.prior, floor, unbiased)

    def _task(self, training: Training) -> Task:
        """Return the encoded rows, with the way from their counts to a model."""
        estimation, classes = self._estimation(), training.classes
        return Task(
            training.codes,
            training.labels,
            training.row_weights(self.class_weight),
            len(classes),
            lambda counts: estimation.model(counts, classes),
            self.n_jobs,
        )

    def _adopt(self, training: Training) -> None:
        """Take over what was learned about the table."""
        self.classes_ = training.classes
        self.encoder_ = training.encoder
        self.n_features_in_ = training.encoder.n_features_in_
        if hasattr(self.encoder_, "feature_names_in_"):
            self.feature_names_in_ = self.encoder_.feature_names_in_
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def __sklearn_tags__(self) -> Tags:
        """Say what kinds of input the classifier takes."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


class NaiveBayes(BaseNB):
    r"""Naive Bayes for any table: categories, numbers and missing cells.

    .. math:: P(c \mid x) \propto \pi_c \prod_j \theta_{j,x_j|c}

    Fitting is one pass of counting; a prediction adds up one number per cell and class.
    Missing cells and values never seen at fit are left out of the sum.

    Parameters
    ----------
    categorical_features : {"auto", "all"} or list of str or int, default="auto"
        Which columns hold categories. "auto" takes text, category, enum and boolean
        columns.
    numeric : str, discretizer or mapping, default="mdl"
        Treatment of numeric columns: bins by "mdl", "mdl-better", "kononenko",
        "equal-width", "equal-width-merged", "equal-frequency" or a discretizer;
        densities by "gaussian" or "gaussian-weka"; or a mapping from column to one of
        these.
    missing : {"skip", "impute", "value"}, default="skip"
        Leave missing cells out, replace them by the mean or most frequent value, or
        treat them as a value of their own.
    smoothing : {"m-estimate", "laplace", "kohavi"}, float or Smoothing
        How counts become probabilities, default="m-estimate"; a float f adds f to every
        count.
    cardinality : {"observed", "declared"}, default="observed"
        Whether values declared by category and enum types count as values when no row
        holds them.
    prior : {"smoothed", "frequency"} or array-like of shape (K,), default="smoothed"
        Class priors: smoothed like the values, relative frequencies, or given.
    variance_floor : float, default=1e-9
        Smallest variance of a Gaussian attribute within a class, as a share of the
        largest variance of any numeric attribute.
    class_weight : dict or "balanced", default=None
        Factor on the weight of the rows of each class.
    n_jobs : int, default=None
        Threads. Results do not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        Classes in sorted order.
    class_log_prior_ : ndarray of shape (K,)
        Logarithms of the class priors.
    class_count_ : ndarray of shape (K,)
        Total weight of the training rows of each class, ``class_weight`` included.
    model_ : NBModel
        Everything needed to predict, as plain data.
    counts_ : Counts
        Frequencies behind the model, weighted by ``sample_weight`` alone.
    encoder_ : TableEncoder
        How tables become codes.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Names of the columns, where the training table had any.

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

    counts_: Counts
    class_log_prior_: NDArray[np.float64]
    class_count_: NDArray[np.float64]

    def __init__(
        self,
        *,
        categorical_features: Any = "auto",
        numeric: Any = "mdl",
        missing: str = "skip",
        smoothing: Any = "m-estimate",
        cardinality: str = "observed",
        prior: Any = "smoothed",
        variance_floor: float = 1e-9,
        class_weight: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.categorical_features = categorical_features
        self.numeric = numeric
        self.missing = missing
        self.smoothing = smoothing
        self.cardinality = cardinality
        self.prior = prior
        self.variance_floor = variance_floor
        self.class_weight = class_weight
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> NaiveBayes:
        """Learn the model from a table and its labels.

        Parameters
        ----------
        X : table of shape (n, d)
            NumPy array, pandas, polars or pyarrow table.
        y : array-like of shape (n,)
            Labels, none of them missing.
        sample_weight : array-like of shape (n,), default=None
            Row weights; a weight of 2 equals the row twice, of 0 its absence.

        Returns
        -------
        NaiveBayes
            The fitted classifier.
        """
        self._estimation()
        training = self._prepare(X, y, sample_weight)
        counts = training.count(self.n_jobs)
        model = self._estimate(counts, training.classes)
        self._adopt(training)
        self._keep(counts, model)
        return self

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> NaiveBayes:
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
        first = not hasattr(self, "counts_")
        announced = _announced(classes)
        if first and announced is None:
            raise TableError("classes must be passed on the first call to partial_fit.")
        if not first and announced is not None:
            if not np.array_equal(announced, self.classes_):
                raise TableError(
                    f"`classes={classes}` is not the same as on last call to "
                    f"partial_fit, was: {self.classes_}."
                )
        self._estimation()
        table, y, weights = training_rows(X, _given(y, self), sample_weight, self)
        target = announced if announced is not None else self.classes_
        labels = known_labels(y, target)
        if first:
            training = self._learn_schema(table, target, labels, weights)
            counts = training.count(self.n_jobs)
        else:
            encoder = copy(self.encoder_)
            encoder.grow(table)
            training = Training(encoder, target, labels, weights)
            training.codes = encoder.encode(table)
            counts = self.counts_.in_schema(encoder.schema_)
            counts = counts + training.count(self.n_jobs)
        model = self._estimate(counts, target)
        self._adopt(training)
        self._keep(counts, model)
        return self

    def _estimate(self, counts: Counts, classes: NDArray[Any]) -> NBModel:
        """Turn counts into a model."""
        if self.class_weight is not None:
            counts = counts.scaled(
                class_factors(self.class_weight, classes, counts.by_class)
            )
        return self._estimation().model(counts, classes)

    def _keep(self, counts: Counts, model: NBModel) -> None:
        self.counts_ = counts
        self.model_ = model
        self.class_log_prior_ = model.log_prior
        self.class_count_ = counts.by_class
        if self.class_weight is not None:
            self.class_count_ = counts.by_class * class_factors(
                self.class_weight, model.classes, counts.by_class
            )


def _given(y: Any, estimator: object) -> Any:
    if y is None:
        raise TableError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is "
            "None. Pass the labels as fit(X, y)."
        )
    return y


def _announced(classes: Any) -> NDArray[Any] | None:
    if classes is None:
        return None
    found, _ = encode_labels(classes)
    _check_two_classes(found)
    return found


def _check_two_classes(classes: NDArray[Any]) -> None:
    if len(classes) < 2:
        raise TableError(
            "Classifier can't train when only one class is present: every label is "
            f"{classes.tolist()[0]!r}. At least two classes are needed."
        )
