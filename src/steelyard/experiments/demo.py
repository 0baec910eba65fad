"""The demonstration: a table of results on real data, and one prediction explained."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict, train_test_split

from steelyard.classifiers.naive_bayes import NaiveBayes
from steelyard.classifiers.registry import method

DEMO_METHODS = ("NB", "NB-Laplace", "GNB")

_SETS = {
    "breast cancer": datasets.load_breast_cancer,
    "wine": datasets.load_wine,
    "iris": datasets.load_iris,
    "digits": datasets.load_digits,
}


@dataclass(frozen=True)
class Score:
    """Cross-validated results of one method on one data set."""

    data: str
    rows: int
    columns: int
    classes: int
    method: str
    accuracy: float
    log_loss: float
    seconds: float


@dataclass(frozen=True)
class Evidence:
    """One prediction and the evidence that adds up to it, in log-odds.

    Items are an attribute, its value and its contribution; positive speaks for
    ``predicted``.
    """

    title: str
    predicted: str
    truth: str
    probability: float
    against: str
    prior: float
    items: list[tuple[str, str, float]]

    @property
    def total(self) -> float:
        """Log-odds of the predicted class against the runner-up."""
        return self.prior + sum(item[2] for item in self.items)


def run_demo(folds: int = 5, seed: int = 1) -> list[Score]:
    """Cross-validate the demonstration methods on scikit-learn's bundled data.

    Everything is learned inside the training part of each stratified fold.
    """
    splits = StratifiedKFold(folds, shuffle=True, random_state=seed)
    scores = []
    for name, load in _SETS.items():
        X, y = load(return_X_y=True)
        (n_rows, n_columns), classes = X.shape, np.unique(y)
        about = (name, n_rows, n_columns, len(classes))
        for acronym in DEMO_METHODS:
            start = perf_counter()
            proba = cross_val_predict(
                method(acronym), X, y, cv=splits, method="predict_proba"
            )
            seconds = perf_counter() - start
            accuracy = float(accuracy_score(y, classes[proba.argmax(axis=1)]))
            loss = float(log_loss(y, np.clip(proba, 1e-15, None), labels=classes))
            scores.append(Score(*about, acronym, accuracy, loss, seconds))
    return scores


def explain_one(row: int = 7) -> Evidence:
    """Explain the prediction for one held-out wine by its summed evidence.

    Contributions go by size and add up to the log-odds of the predicted class against
    the second most probable one.
    """
    bunch: Any = datasets.load_wine(as_frame=True)
    table = bunch.data.rename(columns=lambda name: name.replace("_", " "))
    labels = np.array(["Barolo", "Grignolino", "Barbera"])[bunch.target]
    X_train, X_test, y_train, y_test = train_test_split(
        table, labels, test_size=0.3, random_state=0, stratify=labels
    )
    clf = NaiveBayes().fit(X_train, y_train)
    evidence = clf.explain_local(X_test[row : row + 1]).evidence()
    return Evidence(
        f"wine, row {row} of the test part",
        evidence.target,
        str(y_test[row]),
        evidence.probability,
        evidence.against,
        evidence.prior,
        [(item.attribute, item.value, item.amount) for item in evidence.items],
    )
