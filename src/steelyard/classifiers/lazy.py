"""Lazy naive Bayes: a separate model for every query, from the training rows."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from steelyard._common.allowed import KERNELS
from steelyard._common.settings import (
    FLAG,
    NONE,
    learned,
    setting,
    whole,
    word,
)
from steelyard.classifiers.base.estimator import StandardNB
from steelyard.exceptions import ParameterError
from steelyard.fitting.fit import Fit
from steelyard.fitting.recipe import Recipe
from steelyard.model.base import RowsNeeded
from steelyard.model.lazy import LocalModel, MatchingModel
from steelyard.model.training import TrainingSet
from steelyard.proba.gaussian import least_variance
from steelyard.weighting.filters.information import correlation_weights

__all__ = ["LazyAttributeInstanceNB", "LocallyWeightedNB"]

# Matches of a query and a row are counted in 16 bits.
_MAX_COLUMNS = (1 << 16) - 1


class _LazyNB(StandardNB):
    """Base of both lazy classifiers: the model keeps the training rows."""

    smoothing: Any = setting(default="laplace")

    _rows_needed: ClassVar[RowsNeeded] = "all"

    def _model_fields(self, training: TrainingSet) -> dict[str, Any]:
        """Return the fields of both models: the training rows, and how to smooth."""
        estimation, codes = training.estimation, training.codes
        coded = codes.schema.coded
        if len(coded) > _MAX_COLUMNS:
            raise ParameterError(
                f"{type(self).__name__} compares rows cell by cell and takes at most "
                f"{_MAX_COLUMNS} columns with codes. Got {len(coded)}."
            )
        counts, weights = training.count(), training.weights
        log_prior = estimation.tables(counts)[0]
        added = estimation.smoothing.prior_counts(counts)
        if estimation.smoothing.leaves_zeros:
            raise ParameterError(
                f"{type(self).__name__} estimates from a few rows at a time: "
                "'smoothing' must be above 0."
            )
        is_given = not isinstance(self.prior, str)
        is_smoothed = is_given or self.prior == "smoothed"
        return {
            "schema": codes.schema,
            "classes": training.classes,
            "columns": np.ascontiguousarray(codes.to_array().T),
            "y": training.labels,
            "weights": np.empty(0) if weights is None else weights.copy(),
            "log_prior": log_prior if is_given else np.empty(0),
            "value_added": estimation.smoothing.value_counts(counts)[coded],
            "prior_added": added if is_smoothed else np.zeros_like(added),
            "tie_order": np.argsort(-log_prior, kind="stable"),
        }


class LocallyWeightedNB(_LazyNB):
    r"""LWNB: naive Bayes on the nearest training rows of every query.

    The k rows nearest to a query, and those tied with the k-th, are weighted by a
    kernel of their distance, and naive Bayes is fitted to them. Distances are
    Euclidean: 0 or 1 for categories and bins, the difference on [0, 1] for Gaussian
    attributes; a missing cell is as far away as it can be. A row of weight 2 counts
    twice, and is one of the k.

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

    _models: ClassVar[tuple[str, ...]] = ("neighbours",)

    n_neighbors: int | None = setting(
        default=50,
        allowed=NONE | whole(1),
        about="Number of neighbours k; None takes all rows.",
    )
    kernel: str = setting(
        default="linear",
        allowed=word(*KERNELS),
        about="How the weight of a neighbour falls with its distance, as in Weka's "
        "LWL.",
    )

    def _fit(self, recipe: Recipe, training: TrainingSet) -> Fit:
        codes, counts = training.codes, training.count()
        features = codes.schema.features
        if any(features[j].step > 0 for j in codes.schema.gaussian.tolist()):
            raise ParameterError(
                "numeric='gaussian-weka' is not available here: the grid of all rows "
                "says little about a few neighbours. Use 'gaussian' or a discretizer."
            )
        numbers, floors = np.zeros((0, codes.n_rows)), np.zeros(0)
        if codes.n_numbers:
            # A copy: the user's table may change, the model may not.
            numbers = np.array(codes.number_rows(slice(None)).T, order="C")
            floor = training.estimation.variance_floor
            floors = least_variance(counts.moments.pooled(), floor)[:, 0]
        k = self.n_neighbors
        model = LocalModel(
            **self._model_fields(training),
            numbers=numbers,
            floors=floors,
            neighbours=codes.n_rows if k is None else int(k),
            kernel=KERNELS.index(self.kernel),
        )
        return Fit(model, training.estimation.tables(counts)[0])


class LazyAttributeInstanceNB(_LazyNB):
    r"""AIWNB-L: attribute weights from CFW, instance weights from every query.

    A training row counts one plus the number of cells that it shares with the query,

    .. math:: u_i(x) = 1 + \sum_j [x_{ij} = x_j], \qquad
       z_c(x) = \log \pi_c(u) + \sum_j w_j \log \theta_{j,x_j|c}(u)

    Gaussian attributes take no part; bin numbers instead (the default). As
    published, as far as is known: ``numeric="equal-width", missing="impute",
    cardinality="declared"``.

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

    _models: ClassVar[tuple[str, ...]] = ("matches",)

    attribute_weights: bool = setting(
        default=True,
        allowed=FLAG,
        about="Whether attributes are weighted by CFW; False is the lazy "
        "instance-weighted naive Bayes alone.",
    )

    attribute_weights_: NDArray[np.float64] = learned(
        "ndarray of shape (d,)", "Weights of CFW."
    )

    def _fit(self, recipe: Recipe, training: TrainingSet) -> Fit:
        schema, counts = training.schema, training.count()
        if len(schema.gaussian):
            raise ParameterError(
                "This classifier compares cells for equality and cannot use Gaussian "
                "columns. Set `numeric` to a discretizer, for example 'mdl'."
            )
        exponents = np.ones(len(schema))
        if self.attribute_weights:
            exponents = correlation_weights(training)
        model = MatchingModel(**self._model_fields(training), exponents=exponents)
        log_prior = training.estimation.tables(counts)[0]
        return Fit(model, log_prior, {"attribute_weights_": exponents})
