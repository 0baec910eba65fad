"""Lazy naive Bayes: a model of its own for every query, from the training rows."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.checks import check_choice
from steelyard.classifiers.base import BaseNB
from steelyard.exceptions import ParameterError
from steelyard.model.lazy import KERNELS, LazyModel, LocalModel, MatchingModel
from steelyard.model.training import Training
from steelyard.proba.counts import Counts
from steelyard.weighting.filters.information import correlation_weights

__all__ = [
    "LazyAttributeInstanceNB",
    "LazyModel",
    "LocalModel",
    "LocallyWeightedNB",
    "MatchingModel",
]

# Matches of a query and a row are counted in 16 bits.
_MOST_COLUMNS = (1 << 16) - 1


class _LazyNB(BaseNB):
    """What both lazy classifiers share."""

    counts_: Any
    class_log_prior_: NDArray[np.float64]
    class_count_: NDArray[np.float64]

    def _parts(self, training: Training, counts: Counts) -> dict[str, Any]:
        """Return what the models of both have: the training rows, and how to smooth."""
        estimation = self._estimation()
        codes, classes = training.codes, training.classes
        if len(codes.schema.coded) > _MOST_COLUMNS:
            raise ParameterError(
                f"{type(self).__name__} compares rows cell by cell and takes at most "
                f"{_MOST_COLUMNS} columns with codes. Got {len(codes.schema.coded)}."
            )
        log_prior = estimation.tables(counts)[0]
        added = estimation.smoothing.prior_counts(counts)
        weights = training.row_weights(self.class_weight)
        given = not isinstance(self.prior, str)
        smoothed = given or self.prior == "smoothed"
        return {
            "schema": codes.schema,
            "classes": classes,
            "columns": np.ascontiguousarray(codes.to_array().T),
            "y": training.labels,
            "weights": np.empty(0) if weights is None else weights.copy(),
            "log_prior": log_prior if given else np.empty(0),
            "value_added": estimation.smoothing.value_counts(counts)[
                codes.schema.coded
            ],
            "prior_added": added if smoothed else np.zeros_like(added),
            "tie_order": np.argsort(-log_prior, kind="stable"),
        }

    def _take(self, training: Training, counts: Counts, model: LazyModel) -> None:
        """Take over a model and the counts of all rows."""
        self._adopt(training)
        self.model_ = model
        self.counts_ = counts
        self.class_count_ = counts.by_class
        self.class_log_prior_ = self._estimation().tables(counts)[0]


class LocallyWeightedNB(_LazyNB):
    r"""LWNB: naive Bayes on the nearest training rows of every query.

    The k rows nearest to a query, and those tied with the k-th, are weighted by a
    kernel of their distance, and naive Bayes is fitted to them. Distances are
    Euclidean: 0 or 1 for categories and bins, the difference on [0, 1] for Gaussian
    attributes; a missing cell is as far away as it can be.

    Parameters
    ----------
    n_neighbors : int or None, default=50
        Number of neighbours k; None takes all rows.
    kernel : str, default="linear"
        "linear", "epanechnikov", "tricube", "inverse", "gauss" or "constant", as in
        Weka's LWL.
    categorical_features, numeric, missing, cardinality
        How tables become codes; see ``NaiveBayes``.
    smoothing, prior, variance_floor
        How counts become probabilities; see ``NaiveBayes``.
    class_weight : dict or "balanced", default=None
        Factor on the weight of the rows of each class.
    n_jobs : int, default=None
        Threads that predict.

    Attributes
    ----------
    model_ : LocalModel
        The codes of the training rows, which predictions need.
    classes_, class_log_prior_, class_count_, counts_, encoder_
        As in ``NaiveBayes``, of all training rows.

    References
    ----------
    E. Frank, M. Hall, B. Pfahringer (2003), "Locally weighted naive Bayes", UAI 2003,
    249-256.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from steelyard import LocallyWeightedNB
    >>> X, y = load_iris(return_X_y=True)
    >>> LocallyWeightedNB(n_neighbors=30).fit(X, y).predict(X[:3])
    array([0, 0, 0])
    """

    def __init__(
        self,
        *,
        n_neighbors: int | None = 50,
        kernel: str = "linear",
        categorical_features: Any = "auto",
        numeric: Any = "mdl",
        missing: str = "skip",
        smoothing: Any = "laplace",
        cardinality: str = "observed",
        prior: Any = "smoothed",
        variance_floor: float = 1e-9,
        class_weight: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.kernel = kernel
        self.categorical_features = categorical_features
        self.numeric = numeric
        self.missing = missing
        self.smoothing = smoothing
        self.cardinality = cardinality
        self.prior = prior
        self.variance_floor = variance_floor
        self.class_weight = class_weight
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LocallyWeightedNB:
        """Keep the training rows.

        Parameters
        ----------
        X : table of shape (n, d)
            NumPy array, pandas, polars or pyarrow table.
        y : array-like of shape (n,)
            Labels, none of them missing.
        sample_weight : array-like of shape (n,), default=None
            Row weights; they multiply the kernel's.

        Returns
        -------
        LocallyWeightedNB
            The fitted classifier.
        """
        kind = KERNELS.index(check_choice(self, "kernel", KERNELS))
        k = self.n_neighbors
        whole = isinstance(k, Integral) and not isinstance(k, bool)
        if k is not None and (not whole or int(k) < 1):
            raise ParameterError(
                "The 'n_neighbors' parameter must be None or a whole number of at "
                f"least 1. Got {k!r} instead."
            )
        estimation = self._estimation()
        training = self._prepare(X, y, sample_weight)
        codes = training.codes
        features = codes.schema.features
        if any(features[j].step > 0 for j in codes.schema.gaussian.tolist()):
            raise ParameterError(
                "numeric='gaussian-weka' is not available here: the grid of all rows "
                "says little about a few neighbours. Use 'gaussian' or a discretizer."
            )
        counts = training.count(self.n_jobs, self.class_weight)
        numbers, floors = np.zeros((0, codes.n_rows)), np.zeros(0)
        if codes.n_numbers:
            # A copy: the user's table may change, the model may not.
            numbers = np.array(codes.number_rows(slice(None)).T, order="C")
            pooled = counts.moments.pooled()
            variance = pooled.squares[:, 0] / np.maximum(pooled.weight[:, 0], 1e-300)
            lowest = max(estimation.variance_floor * float(variance.max()), 1e-18)
            floors = np.full(len(numbers), lowest)
        model = LocalModel(
            **self._parts(training, counts),
            numbers=numbers,
            floors=floors,
            neighbours=codes.n_rows if k is None else int(k),
            kernel=kind,
        )
        self._take(training, counts, model)
        return self


class LazyAttributeInstanceNB(_LazyNB):
    r"""AIWNB-L: attribute weights from CFW, instance weights from every query.

    A training row counts one plus the number of cells that it shares with the query,

    .. math:: u_i(x) = 1 + \sum_j [x_{ij} = x_j], \qquad
       z_c(x) = \log \pi_c(u) + \sum_j w_j \log \theta_{j,x_j|c}(u)

    Gaussian attributes take no part; bin numbers instead (the default).

    Parameters
    ----------
    attribute_weights : bool, default=True
        Whether attributes are weighted by CFW; False is the lazy instance-weighted
        naive Bayes alone.
    categorical_features, numeric, missing, cardinality
        How tables become codes; see ``NaiveBayes``.
    smoothing, prior, variance_floor
        How counts become probabilities; see ``NaiveBayes``.
    class_weight : dict or "balanced", default=None
        Factor on the weight of the rows of each class.
    n_jobs : int, default=None
        Threads.

    Attributes
    ----------
    attribute_weights_ : ndarray of shape (d,)
        Weights of CFW.
    model_ : MatchingModel
        The codes of the training rows, which predictions need.

    References
    ----------
    H. Zhang, L. Jiang, L. Yu (2021), "Attribute and instance weighted naive Bayes",
    Pattern Recognition 111, 107674.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from steelyard import LazyAttributeInstanceNB
    >>> X, y = load_iris(return_X_y=True)
    >>> LazyAttributeInstanceNB().fit(X, y).predict(X[:3])
    array([0, 0, 0])
    """

    attribute_weights_: NDArray[np.float64]

    def __init__(
        self,
        *,
        attribute_weights: bool = True,
        categorical_features: Any = "auto",
        numeric: Any = "mdl",
        missing: str = "skip",
        smoothing: Any = "laplace",
        cardinality: str = "observed",
        prior: Any = "smoothed",
        variance_floor: float = 1e-9,
        class_weight: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.attribute_weights = attribute_weights
        self.categorical_features = categorical_features
        self.numeric = numeric
        self.missing = missing
        self.smoothing = smoothing
        self.cardinality = cardinality
        self.prior = prior
        self.variance_floor = variance_floor
        self.class_weight = class_weight
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LazyAttributeInstanceNB:
        """Learn attribute weights and keep the training rows.

        Parameters
        ----------
        X : table of shape (n, d)
            NumPy array, pandas, polars or pyarrow table.
        y : array-like of shape (n,)
            Labels, none of them missing.
        sample_weight : array-like of shape (n,), default=None
            Row weights; they multiply what a query gives.

        Returns
        -------
        LazyAttributeInstanceNB
            The fitted classifier.
        """
        if not isinstance(self.attribute_weights, (bool, np.bool_)):
            raise ParameterError(
                "The 'attribute_weights' parameter must be True or False. Got "
                f"{self.attribute_weights!r} instead."
            )
        self._estimation()
        training = self._prepare(X, y, sample_weight)
        schema = training.codes.schema
        if len(schema.gaussian):
            raise ParameterError(
                "This classifier compares cells for equality and cannot use Gaussian "
                "columns. Set `numeric` to a discretizer, for example 'mdl'."
            )
        counts = training.count(self.n_jobs, self.class_weight)
        exponents = np.ones(len(schema))
        if self.attribute_weights:
            exponents = correlation_weights(
                counts,
                training.codes,
                training.row_weights(self.class_weight),
                self.n_jobs,
            )
        model = MatchingModel(**self._parts(training, counts), exponents=exponents)
        self._take(training, counts, model)
        self.attribute_weights_ = exponents
        return self
