"""Boosted naive Bayes: a vote of models fitted to rows weighted by their errors."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.checks import check_choice
from steelyard.classifiers.base import BaseNB
from steelyard.exceptions import ParameterError
from steelyard.instances import HardRows, Task
from steelyard.model.combined import FORMS, BoostedModel
from steelyard.model.table_model import NBModel

__all__ = ["BoostedNB"]


class BoostedNB(HardRows, BaseNB):
    r"""BNB: naive Bayes boosted by AdaBoost.M1, or by Elkan's two-class form.

    Each round fits naive Bayes to weighted rows and raises the weight of those that it
    gets wrong; the models vote.

    Parameters
    ----------
    rounds : int, default=10
        Largest number of models.
    form : {"adaboost-m1", "elkan"}, default="adaboost-m1"
        AdaBoost.M1 (Freund and Schapire, 1996; any number of classes), or boosting of
        probabilities as in Elkan (1997), for two classes.
    categorical_features, numeric, missing, cardinality
        How tables become codes; see ``NaiveBayes``.
    smoothing, prior, variance_floor
        How counts become probabilities; see ``NaiveBayes``.
    class_weight : dict or "balanced", default=None
        Factor on the weight of the rows of each class.
    n_jobs : int, default=None
        Threads. Results do not depend on it.

    Attributes
    ----------
    votes_ : ndarray of shape (models,)
        Weight of each model's vote.
    instance_weights_ : ndarray of shape (n,)
        Row weights after the last round, without ``sample_weight``.
    diagnostics_ : list of dict
        One record per round, with its weighted error.
    classes_, class_log_prior_, class_count_, counts_, model_, encoder_
        As in ``NaiveBayes``; counts and priors are those of the first model.

    References
    ----------
    C. Elkan (1997), "Boosting and naive Bayesian learning", Technical report CS97-557,
    University of California, San Diego.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from steelyard import BoostedNB
    >>> clf = BoostedNB(rounds=5).fit(*load_breast_cancer(return_X_y=True))
    >>> len(clf.votes_) <= 5
    True
    """

    votes_: NDArray[np.float64]
    instance_weights_: NDArray[np.float64]
    diagnostics_: list[dict[str, Any]]

    def __init__(
        self,
        *,
        rounds: int = 10,
        form: str = "adaboost-m1",
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
        self.rounds = rounds
        self.form = form
        self.categorical_features = categorical_features
        self.numeric = numeric
        self.missing = missing
        self.smoothing = smoothing
        self.cardinality = cardinality
        self.prior = prior
        self.variance_floor = variance_floor
        self.class_weight = class_weight
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BoostedNB:
        """Fit the models of the vote.

        Parameters
        ----------
        X : table of shape (n, d)
            NumPy array, pandas, polars or pyarrow table.
        y : array-like of shape (n,)
            Labels, none of them missing.
        sample_weight : array-like of shape (n,), default=None
            Row weights, with which the boosting starts.

        Returns
        -------
        BoostedNB
            The fitted classifier.
        """
        check_choice(self, "form", FORMS)
        if not isinstance(self.rounds, Integral) or self.rounds < 1:
            raise ParameterError(
                "The 'rounds' parameter of BoostedNB must be a whole number of at "
                f"least 1. Got {self.rounds!r} instead."
            )
        self._estimation()
        training = self._prepare(X, y, sample_weight)
        classes = training.classes
        if self.form == "elkan" and len(classes) > 2:
            raise ParameterError(
                f"form='elkan' is defined for two classes, but there are "
                f"{len(classes)}. Use form='adaboost-m1'."
            )
        task = self._task(training)
        boost = _boost_elkan if self.form == "elkan" else _boost_m1
        models, votes, learned, records = boost(task, int(self.rounds))
        counts = task.count()
        self._adopt(training)
        self.model_ = BoostedModel(tuple(models), np.array(votes), self.form)
        self.votes_ = self.model_.votes
        self.instance_weights_ = training.all_rows(learned)
        self.diagnostics_ = records
        self.counts_ = counts
        self.class_count_ = self.counts_.by_class
        self.class_log_prior_ = models[0].log_prior
        return self


def _start(task: Task) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the user's weights, and learned ones of one."""
    n = task.codes.n_rows
    own = np.ones(n) if task.weights is None else task.weights
    return own, np.ones(n)


def _boost_m1(task: Task, rounds: int) -> tuple[Any, Any, Any, Any]:
    """AdaBoost.M1: raise the weight of rows that are classified wrongly."""
    own, learned = _start(task)
    total = own.sum()
    models: list[NBModel] = []
    votes: list[float] = []
    records = []
    for number in range(1, rounds + 1):
        model = task.estimate(task.count(learned))
        wrong = model.winners(task.codes, task.n_jobs) != task.labels
        error = float((own * learned)[wrong].sum() / total)
        records.append({"round": number, "error": error})
        if error <= 0.0 or error >= 0.5:
            # A perfect or useless model ends the boosting; kept only if it is first.
            if not models:
                models, votes = [model], [1.0]
            break
        models.append(model)
        votes.append(float(np.log((1.0 - error) / error)))
        learned = np.where(wrong, learned * (1.0 - error) / error, learned)
        learned *= total / (own * learned).sum()
    return models, votes, learned, records


def _boost_elkan(task: Task, rounds: int) -> tuple[Any, Any, Any, Any]:
    """Boosting of probabilities: rows keep weight in proportion to their error."""
    own, learned = _start(task)
    total = own.sum()
    truth = task.labels.astype(np.float64)
    models: list[NBModel] = []
    votes: list[float] = []
    records = []
    for number in range(1, rounds + 1):
        model = task.estimate(task.count(learned))
        miss = np.abs(truth - model.proba(task.codes, task.n_jobs)[:, 1])
        error = float((own * learned * miss).sum() / total)
        records.append({"round": number, "error": error})
        if error <= 1e-12 or error >= 0.5:
            if not models:
                models, votes = [model], [1.0]
            break
        beta = error / (1.0 - error)
        models.append(model)
        votes.append(float(-np.log(beta)))
        learned = learned * beta ** (1.0 - miss)
        # Counts are smoothed as for n rows: weights add up to the number of rows.
        learned *= total / (own * learned).sum()
    return models, votes, learned, records
