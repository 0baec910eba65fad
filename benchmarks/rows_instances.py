"""Rows of the instance weights: rounds, both kinds of weights, and lazy models."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.neighbors import KNeighborsClassifier

from benchmarks.data import labelled_codes, n_rows
from benchmarks.registry import (
    MB,
    Case,
    Seconds,
    at_least,
    at_most,
    row,
    within_memory,
)
from benchmarks.rows_weights import one_hot
from steelyard import method

# Queries that the loop in NumPy is timed on; its time is multiplied up from these.
TIMED_QUERIES = 200


def ours(name: str, **settings: Any) -> Any:
    """A method by its acronym, for codes and two threads."""
    return method(name, categorical_features="all", n_jobs=2, **settings)


# ------------------------------------------------------------------- instance weights


@row(
    "DWNB 1,000,000 x 50, 15 rounds, against one fit and predict_proba",
    at_most(15),
    rounds=3,
)
def _(scale: float) -> Case:
    X, y = labelled_codes(n_rows(1_000_000, scale), 50, 2)

    def confirm() -> None:
        fitted = ours("DWNB").fit(X, y)
        assert len(fitted.diagnostics_) == 15, "not fifteen rounds"

    return Case(
        lambda: ours("DWNB").fit(X, y),
        {"fit and predict_proba": lambda: ours("NB").fit(X, y).predict_proba(X)},
        confirm=confirm,
    )


# The trees take half a minute: no run of theirs is wasted.
@row(
    "CWNB 100,000 x 50, 2 classes", at_least(20), rounds=2, memory=False, warm_up=False
)
def _(scale: float) -> Case:
    X, y = labelled_codes(n_rows(100_000, scale), 50, 2)
    trees = HistGradientBoostingClassifier(categorical_features=[True] * 50)

    def confirm() -> None:
        often = np.bincount(y).max() / len(y)
        fitted = ours("CWNB").fit(X, y)
        assert fitted.score(X, y) > often, "no better than the most frequent class"

    return Case(
        lambda: ours("CWNB").fit(X, y),
        {"HistGradientBoosting": lambda: trees.fit(X, y)},
        confirm=confirm,
    )


# ------------------------------------------------------------------------ lazy models


def letters(scale: float) -> tuple[NDArray[np.uint8], NDArray[np.int64], int]:
    """Training rows like those of letter, and how many of them are queries as well."""
    X, y = labelled_codes(20_000, 16, 26, 16)
    # Training rows cannot be fewer than benchmarks have at least; queries can.
    return X, y, max(2 * TIMED_QUERIES, round(20_000 * scale))


def match_by_numpy(
    X: NDArray[np.uint8],
    y: NDArray[np.int64],
    queries: NDArray[np.uint8],
    exponents: NDArray[np.float64],
) -> NDArray[np.float64]:
    """AIWNB-L in NumPy: one query after the other, each in whole-array operations."""
    n_classes = int(y.max()) + 1
    n_values = np.array([len(np.unique(column)) for column in X.T])
    out = np.empty((len(queries), n_classes))
    for i, query in enumerate(queries):
        same = X == query
        weights = 1.0 + same.sum(axis=1)
        by_class = np.bincount(y, weights, n_classes)
        by_value = np.stack(
            [np.bincount(y[column], weights[column], n_classes) for column in same.T]
        )
        prior = np.log(by_class + 1.0) - np.log(weights.sum() + n_classes)
        theta = np.log(by_value + 1.0) - np.log(by_class + n_values[:, None])
        scores = prior + exponents @ theta
        scores -= scores.max()
        out[i] = np.exp(scores)
    return out / out.sum(axis=1, keepdims=True)


@row(
    f"AIWNB-L 20,000 x 16, 20,000 queries (NumPy: {TIMED_QUERIES}, multiplied up)",
    at_least(5),
    rounds=2,
    warm_up=False,
)
def _(scale: float) -> Case:
    from time import perf_counter

    X, y, n_queries = letters(scale)
    fitted = ours("AIWNB-L").fit(X, y)

    def by_numpy() -> Seconds:
        start = perf_counter()
        match_by_numpy(X, y, X[:TIMED_QUERIES], fitted.attribute_weights_)
        return Seconds((perf_counter() - start) * n_queries / TIMED_QUERIES)

    def confirm() -> None:
        some = X[:20]
        plain = match_by_numpy(X, y, some, fitted.attribute_weights_)
        np.testing.assert_allclose(fitted.predict_proba(some), plain, rtol=1e-7)

    return Case(
        lambda: fitted.predict_proba(X[:n_queries]),
        {f"NumPy loop, from {TIMED_QUERIES} queries": by_numpy},
        confirm=confirm,
    )


# No memory: the peer's OpenMP threads do not survive a fork.
@row(
    "LWNB k = 50, 20,000 x 16, 20,000 queries",
    at_least(1),
    rounds=2,
    memory=False,
    warm_up=False,
)
def _(scale: float) -> Case:
    X, y, n_queries = letters(scale)
    fitted = ours("LWNB", n_neighbors=50).fit(X, y)
    # Rows of the one-hot matrix differ by twice the cells that differ: same neighbours.
    matrix = one_hot(X, 16)
    # The sparse matrix takes the peer more than twice as long as the dense one.
    dense = KNeighborsClassifier(50, n_jobs=2).fit(matrix.toarray(), y)
    filled = matrix[:n_queries].toarray()
    return Case(
        lambda: fitted.predict_proba(X[:n_queries]),
        {"KNeighborsClassifier one-hot": lambda: dense.predict_proba(filled)},
    )


@row("memory of LWNB k = 50, 20,000 queries", within_memory, rounds=1, warm_up=False)
def _(scale: float) -> Case:
    X, y, n_queries = letters(scale)
    fitted = ours("LWNB", n_neighbors=50).fit(X, y)
    # A tenth of one byte per query and training row.
    return Case(
        lambda: fitted.predict_proba(X[:n_queries]),
        allowed_mb=0.1 * n_queries * len(X) / MB,
    )
