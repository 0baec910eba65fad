"""Lazy naive Bayes: a model of its own for every query, from the training rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._threads import run, thread_count
from steelyard._validation import check_choice
from steelyard.classifier import BaseNB, Training
from steelyard.composite import ByProbability
from steelyard.exceptions import ParameterError
from steelyard.information import correlation_weights
from steelyard.kernels import lazy as kernels
from steelyard.losses.base import softmax
from steelyard.table.codes import Codes
from steelyard.table.schema import TableSchema

__all__ = ["LazyAttributeInstanceNB", "LazyModel", "LocallyWeightedNB"]

KERNELS = ("linear", "epanechnikov", "tricube", "inverse", "gauss", "constant")

# Queries that one thread takes at a time.
_QUERIES = 64


@dataclass(frozen=True)
class LazyModel(ByProbability):
    """Training rows, and how a query is predicted from them.

    Unlike other models this one needs its training rows; it keeps their codes.
    """

    schema: TableSchema
    classes: NDArray[Any]
    columns: NDArray[Any]
    """Codes of the training rows, shape (d, n)."""

    numbers: NDArray[np.float64]
    """Numbers of the Gaussian attributes, shape (g, n)."""

    y: NDArray[np.uint32]
    weights: NDArray[np.float64]
    """Row weights, empty where all are one."""

    log_prior: NDArray[np.float64]
    """Priors that were given; -inf where they come from the neighbours."""

    value_added: NDArray[np.float64]
    prior_added: NDArray[np.float64]
    floors: NDArray[np.float64]
    """Smallest variances of the Gaussian attributes, shape (g,)."""

    exponents: NDArray[np.float64] | None = None
    """Attribute weights of the matching model; None for neighbours."""

    neighbours: int = 0
    kernel: int = 0
    tie_order: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    @cached_property
    def _scale(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Smallest value and range of every Gaussian attribute."""
        if not self.numbers.size:
            return np.zeros(len(self.numbers)), np.ones(len(self.numbers))
        known = np.where(np.isnan(self.numbers), np.inf, self.numbers).min(axis=1)
        low = np.where(np.isfinite(known), known, 0.0)
        high = np.where(np.isnan(self.numbers), -np.inf, self.numbers).max(axis=1)
        span = np.where(np.isfinite(high) & (high > low), high - low, 1.0)
        return low, span

    def scores(self, codes: Codes, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Joint log-probabilities under the model of each query, shape (n, K)."""
        out = np.empty((codes.n_rows, len(self.classes)))
        sizes = self.schema.n_values[self.schema.coded].astype(np.float64)
        queries = codes.to_array().astype(self.columns.dtype)
        numbers = np.empty((codes.n_rows, 0))
        if codes.n_numbers:
            numbers = np.ascontiguousarray(codes.number_rows(slice(None)))
        low, span = self._scale
        scaled = np.ascontiguousarray((self.numbers - low[:, None]) / span[:, None])

        def work(rows: slice) -> None:
            if self.exponents is not None:
                kernels.match_scores(
                    queries[rows],
                    self.columns,
                    self.y,
                    self.weights,
                    self.log_prior,
                    self.value_added,
                    sizes,
                    self.exponents,
                    self.prior_added,
                    out[rows],
                )
                return
            kernels.local_scores(
                queries[rows],
                numbers[rows],
                self.columns,
                self.numbers,
                (numbers[rows] - low) / span,
                scaled,
                self.y,
                self.weights,
                min(self.neighbours, len(self.y)),
                self.kernel,
                self.log_prior,
                self.value_added,
                sizes,
                self.prior_added,
                self.floors,
                out[rows],
            )

        blocks = [
            slice(lo, min(lo + _QUERIES, codes.n_rows))
            for lo in range(0, codes.n_rows, _QUERIES)
        ]
        for _ in run(work, blocks, thread_count(n_jobs)):
            pass
        return out

    def proba(self, codes: Codes, n_jobs: int | None = None) -> NDArray[np.float64]:
        """Posterior probabilities, shape (n, K)."""
        return softmax(self.scores(codes, n_jobs))


class _LazyNB(BaseNB):
    """What both lazy classifiers share."""

    counts_: Any
    class_log_prior_: NDArray[np.float64]
    class_count_: NDArray[np.float64]

    def _keep(self, training: Training, **own: Any) -> None:
        """Make the model of the training rows, and take it over."""
        estimation = self._estimation()
        codes, classes = training.codes, training.classes
        counts = training.count(self.n_jobs, self.class_weight)
        plain = estimation.model(counts, classes)
        weights = training.row_weights(self.class_weight)
        fixed = not (isinstance(self.prior, str) and self.prior == "smoothed")
        numbers, floors = np.zeros((0, codes.n_rows)), np.zeros(0)
        if codes.n_numbers:
            numbers = np.ascontiguousarray(codes.number_rows(slice(None)).T)
            pooled = counts.moments.pooled()
            variance = pooled.squares[:, 0] / np.maximum(pooled.weight[:, 0], 1e-300)
            lowest = max(estimation.variance_floor * float(variance.max()), 1e-18)
            floors = np.full(len(numbers), lowest)
        model = LazyModel(
            schema=codes.schema,
            classes=classes,
            columns=np.ascontiguousarray(codes.to_array().T),
            numbers=numbers,
            y=training.labels,
            weights=np.empty(0) if weights is None else weights,
            log_prior=plain.log_prior if fixed else np.full(len(classes), -np.inf),
            value_added=estimation.smoothing.value_counts(counts)[codes.schema.coded],
            prior_added=estimation.smoothing.prior_counts(counts),
            floors=floors,
            tie_order=plain.tie_order,
            **own,
        )
        self._adopt(training)
        self.model_ = model
        self.counts_ = counts
        self.class_count_ = counts.by_class
        self.class_log_prior_ = plain.log_prior


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
    model_ : LazyModel
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
        if k is not None and (not isinstance(k, Integral) or k < 1):
            raise ParameterError(
                "The 'n_neighbors' parameter must be None or a whole number of at "
                f"least 1. Got {k!r} instead."
            )
        training = self._prepare(X, y, sample_weight)
        count = training.codes.n_rows if k is None else int(k)
        self._keep(training, neighbours=count, kernel=kind)
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
    model_ : LazyModel
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
        training = self._prepare(X, y, sample_weight)
        schema = training.codes.schema
        if len(schema.gaussian):
            raise ParameterError(
                "This classifier compares cells for equality and cannot use Gaussian "
                "columns. Set `numeric` to a discretizer, for example 'mdl'."
            )
        exponents = np.ones(len(schema))
        if self.attribute_weights:
            exponents = correlation_weights(
                training.count(self.n_jobs, self.class_weight),
                training.codes,
                training.row_weights(self.class_weight),
                self.n_jobs,
            )
        self._keep(training, exponents=exponents)
        self.attribute_weights_ = exponents
        return self
