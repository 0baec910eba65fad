"""Naive Bayes on weighted rows: the counts are made with learned instance weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.classifiers.base import BaseNB
from steelyard.instances import HardRows, resolve_instances
from steelyard.proba.counts import Counts

__all__ = ["InstanceWeightedNB"]


class InstanceWeightedNB(HardRows, BaseNB):
    r"""Naive Bayes whose counts are made with learned instance weights.

    .. math:: N_{jvc} = \sum_i u_i\, [x_{ij} = v]\, [y_i = c]

    Instance weights act through the counts alone.

    Parameters
    ----------
    instances : str or InstanceWeighting, default="discriminative"
        "discriminative" (DWNB: rows that the model gets wrong count more, 15 rounds),
        "value-frequency" (AVFWNB: rows with frequent values count more), or an object.
    categorical_features, numeric, missing, cardinality
        How tables become codes; see ``NaiveBayes``.
    smoothing, prior, variance_floor
        How counts become probabilities; see ``NaiveBayes``. Smoothing is Laplace's
        rule by default, as in the papers.
    class_weight : dict or "balanced", default=None
        Factor on the weight of the rows of each class.
    n_jobs : int, default=None
        Threads. Results do not depend on it.

    Attributes
    ----------
    instance_weights_ : ndarray of shape (n,)
        What the method learned for each training row, without ``sample_weight``; NaN
        for rows of weight zero, which are as if absent.
    diagnostics_ : list of dict
        One record per round.
    classes_, class_log_prior_, class_count_, counts_, model_, encoder_
        As in ``NaiveBayes``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from steelyard import InstanceWeightedNB
    >>> clf = InstanceWeightedNB().fit(*load_iris(return_X_y=True))
    >>> len(clf.diagnostics_)
    15
    >>> clf.hardest_rows(3)
    array([106,  70, 119])
    """

    counts_: Counts
    class_log_prior_: NDArray[np.float64]
    class_count_: NDArray[np.float64]
    diagnostics_: list[dict[str, Any]]

    def __init__(
        self,
        *,
        instances: Any = "discriminative",
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
        self.instances = instances
        self.categorical_features = categorical_features
        self.numeric = numeric
        self.missing = missing
        self.smoothing = smoothing
        self.cardinality = cardinality
        self.prior = prior
        self.variance_floor = variance_floor
        self.class_weight = class_weight
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> InstanceWeightedNB:
        """Learn instance weights and the model from a table and its labels.

        Parameters
        ----------
        X : table of shape (n, d)
            NumPy array, pandas, polars or pyarrow table.
        y : array-like of shape (n,)
            Labels, none of them missing.
        sample_weight : array-like of shape (n,), default=None
            Row weights; they multiply what the method learns.

        Returns
        -------
        InstanceWeightedNB
            The fitted classifier.
        """
        self._estimation()
        weighting = resolve_instances(self.instances)
        training = self._prepare(X, y, sample_weight)
        task = self._task(training)
        records: list[dict[str, Any]] = []
        learned = np.ones(training.codes.n_rows)
        if weighting is not None:
            found = weighting.weigh(task)
            learned, records = found.weights, found.records
        counts = task.count(learned)
        model = task.estimate(counts)
        self._adopt(training)
        self.instance_weights_ = training.all_rows(learned)
        self.diagnostics_ = records
        self.counts_ = counts
        self.class_count_ = counts.by_class
        self.class_log_prior_ = model.log_prior
        self.model_ = model
        return self
