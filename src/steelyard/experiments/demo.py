"""The demonstration: a table of results on real data, and one prediction explained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from os import PathLike
from time import perf_counter
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from steelyard.classifiers.registry import DEFAULT, method

# The default, plain naive Bayes, two published ways to weight, and two of scikit-learn.
DEMO_METHODS: dict[str, Callable[[], Any]] = {
    f"{DEFAULT}, default": partial(method, DEFAULT),
    "NB": partial(method, "NB"),
    "WANBIA-CLL": partial(method, "WANBIA-CLL"),
    "CAWNB-CLL": partial(method, "CAWNB-CLL"),
    "sklearn GNB": GaussianNB,
    "sklearn logit": lambda: make_pipeline(
        StandardScaler(), LogisticRegression(max_iter=1000)
    ),
}

_SETS = {
    "breast cancer": datasets.load_breast_cancer,
    "wine": datasets.load_wine,
    "iris": datasets.load_iris,
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
    start: tuple[str, str] = ("prior", "")
    """What the sum begins with: a name, and the base rate if it is that."""

    @property
    def total(self) -> float:
        """Log-odds of the predicted class against the runner-up."""
        return self.prior + sum(item[2] for item in self.items)


def run_demo(
    folds: int = 5, seed: int = 1, progress: Callable[[str], None] | None = None
) -> list[Score]:
    """Cross-validate the demonstration methods on scikit-learn's bundled data.

    Everything is learned inside the training part of each stratified fold; all methods
    have the same folds. ``progress`` is told what comes next.
    """
    splits = StratifiedKFold(folds, shuffle=True, random_state=seed)
    scores = []
    for name, load in _SETS.items():
        X, y = load(return_X_y=True)
        (n_rows, n_columns), classes = X.shape, np.unique(y)
        about = (name, n_rows, n_columns, len(classes))
        for label, make in DEMO_METHODS.items():
            if progress is not None:
                progress(f"{label} on {name}")
            start = perf_counter()
            proba = cross_val_predict(make(), X, y, cv=splits, method="predict_proba")
            seconds = perf_counter() - start
            accuracy = float(accuracy_score(y, classes[proba.argmax(axis=1)]))
            loss = float(log_loss(y, np.clip(proba, 1e-15, None), labels=classes))
            scores.append(Score(*about, label, accuracy, loss, seconds))
    return scores


def explain_one(row: int = 0, page: str | PathLike[str] | None = None) -> Evidence:
    """Explain what the default predicts for one held-out wine, by its summed evidence.

    Contributions go by size and add up to the log-odds of the predicted class against
    the second most probable one; those of pairs are split. The model is written as a
    page where one is named.
    """
    bunch: Any = datasets.load_wine(as_frame=True)
    table = bunch.data.rename(columns=lambda name: name.replace("_", " "))
    labels = np.array(["Barolo", "Grignolino", "Barbera"])[bunch.target]
    X_train, X_test, y_train, y_test = train_test_split(
        table, labels, test_size=0.3, random_state=0, stratify=labels
    )
    clf: Any = method(DEFAULT).fit(X_train, y_train)
    if page is not None:
        clf.to_html(page, "Which wine is it?")
    evidence = clf.explain_local(X_test[row : row + 1], pairs="split").evidence()
    return Evidence(
        f"wine, row {row} of the test part",
        evidence.target,
        str(y_test[row]),
        evidence.probability,
        evidence.against,
        evidence.prior,
        [(item.attribute, item.value, item.amount) for item in evidence.items],
        evidence.start,
    )
