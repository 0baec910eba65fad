"""Rows of filters, wrappers and selection."""

from __future__ import annotations

from itertools import combinations
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import mutual_info_score
from sklearn.naive_bayes import CategoricalNB

from benchmarks.data import labelled_codes, n_rows
from benchmarks.registry import Case, Seconds, at_least, row
from steelyard import NaiveBayes, method
from steelyard.classifiers.evolved import PopulationScorer, weighted_model
from steelyard.fitting.search.left_out import resubstituted
from steelyard.weighting.filters.information import pair_information

# ----------------------------------------------------------------- forward selection

PREDICTORS = 20
# Sizes of subsets at which the peer is timed; times of the others lie between these.
TIMED_SIZES = (1, 10, 20)


def likelihood_by_refitting(X: NDArray[Any], y: NDArray[Any]) -> float:
    """Average log-likelihood of the classes, by scikit-learn's naive Bayes."""
    fitted = CategoricalNB(alpha=1.0 / len(y)).fit(X, y)
    return float(fitted.predict_log_proba(X)[np.arange(len(y)), y].mean())


@row(
    f"SPSS forward path to {PREDICTORS} predictors, 100,000 x 100 "
    f"(refits: {len(TIMED_SIZES)}, multiplied up)",
    at_least(100),
    rounds=3,
)
def _(scale: float) -> Case:
    n_columns = 100
    X, y = labelled_codes(n_rows(100_000, scale), n_columns, 2)
    settings = {"categorical_features": "all", "exact_size": PREDICTORS, "n_jobs": 2}

    def by_refitting() -> Seconds:
        """Fit and score a model for every candidate of every step."""
        times = []
        for size in TIMED_SIZES:
            start = perf_counter()
            likelihood_by_refitting(X[:, :size], y)
            times.append(perf_counter() - start)
        sizes = np.arange(1, PREDICTORS + 1)
        candidates = n_columns + 1 - sizes
        return Seconds(candidates @ np.interp(sizes, TIMED_SIZES, times))

    def confirm() -> None:
        path = method("SPSS", **settings).fit(X, y).selection_path_
        subset = [record["added"] for record in path[1:4]]
        expected = likelihood_by_refitting(X[:, subset], y)
        assert abs(path[3]["average_log_likelihood"] - expected) < 1e-6

    return Case(
        lambda: method("SPSS", **settings).fit(X, y),
        {"CategoricalNB for every candidate": by_refitting},
        confirm=confirm,
    )


# -------------------------------------------------------------------------- filters

# Pairs that the peer is timed on; its time is multiplied up from these.
TIMED_PAIRS = 50


@row(
    f"mutual information of all pairs, 100,000 x 100 (sklearn: {TIMED_PAIRS} pairs, "
    "multiplied up)",
    at_least(30),
    rounds=3,
)
def _(scale: float) -> Case:
    n_columns = 100
    X, y = labelled_codes(n_rows(100_000, scale), n_columns, 2)
    recipe = NaiveBayes(categorical_features="all", n_jobs=2)._recipe()
    training = recipe.encode(X, y)
    pairs = list(combinations(range(n_columns), 2))
    # In columns, as is best for the peer.
    columns = np.asfortranarray(X)

    def pair_by_pair() -> Seconds:
        start = perf_counter()
        for j, k in pairs[:: len(pairs) // TIMED_PAIRS][:TIMED_PAIRS]:
            mutual_info_score(columns[:, j], columns[:, k])
        return Seconds((perf_counter() - start) * len(pairs) / TIMED_PAIRS)

    def confirm() -> None:
        found = pair_information(training)
        for j, k in ((0, 1), (3, 53), (98, 99)):
            expected = mutual_info_score(columns[:, j], columns[:, k]) / np.log(2.0)
            assert abs(found[j, k] - expected) < 1e-12, (j, k)

    return Case(
        lambda: pair_information(training),
        {"mutual_info_score of each pair": pair_by_pair},
        confirm=confirm,
        units={"row and pair": len(X) * len(pairs)},
    )


# --------------------------------------------------------------------- leave-one-out

# Rows that the peers leave out; their time is multiplied up from these.
TIMED_ROWS = 3


@row(
    f"SNB 100,000 x 100, leave-one-out (refits: {TIMED_ROWS}, multiplied up)",
    at_least(1000),
    rounds=3,
)
def _(scale: float) -> Case:
    X, y = labelled_codes(n_rows(100_000, scale), 100, 2)

    def refitted(fit: Any) -> Any:
        def time_some() -> Seconds:
            start = perf_counter()
            for i in range(TIMED_ROWS):
                rest = np.delete(X, i, axis=0), np.delete(y, i)
                fit(*rest).predict_proba(X[i : i + 1])
            return Seconds((perf_counter() - start) * len(y) / TIMED_ROWS)

        return time_some

    def ours() -> Any:
        return method("SNB", categorical_features="all", n_jobs=2).fit(X, y)

    def confirm() -> None:
        some = slice(0, 300)
        clf = method("SNB", categorical_features="all").fit(X[some], y[some])
        plain = method("NB", categorical_features="all")
        errors = []
        for i in range(300):
            rest = np.arange(300) != i
            fitted = plain.fit(X[some][rest], y[some][rest])
            errors.append(1.0 - fitted.predict_proba(X[i : i + 1])[0, y[i]])
        # A value that one row alone has is known to ours and unknown without the row.
        found = clf.selection_path_[-1]["rmse"]
        assert abs(found - np.sqrt(np.mean(np.square(errors)))) < 1e-2

    return Case(
        ours,
        {
            "NaiveBayes for every row": refitted(
                method("NB", categorical_features="all", n_jobs=2).fit
            ),
            "CategoricalNB for every row": refitted(
                CategoricalNB(min_categories=10).fit
            ),
        },
        confirm=confirm,
    )


# ----------------------------------------------------------------------- populations


@row("DEAWNB 100,000 x 100: scoring a population of 50, against 50 models", at_least(3))
def _(scale: float) -> Case:
    X, y = labelled_codes(n_rows(100_000, scale), 100, 2)
    clf = method("DEAWNB", categorical_features="all")
    training = clf.set_params(n_jobs=2)._recipe().encode(X, y)
    scorer = PopulationScorer(resubstituted(training))
    vectors = np.random.default_rng(0).random((50, 100))

    def one_by_one() -> NDArray[np.float64]:
        right = []
        for weights in vectors:
            model = weighted_model(training, weights)
            right.append(np.sum(model.predict(training.codes, 2) == y))
        return np.array(right, dtype=np.float64)

    def check(found: dict[str, Any]) -> None:
        np.testing.assert_array_equal(found["ours"], found["one by one"])

    return Case(
        lambda: scorer.weight_right(vectors), {"one by one": one_by_one}, check=check
    )
