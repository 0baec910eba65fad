"""Information of attributes about the class and about each other."""

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

from steelyard.weighting.filters import information
from steelyard.weighting.filters.information import (
    class_information,
    class_uncertainty,
    correlation_weights,
    gain_ratios,
    pair_information,
    pair_uncertainty,
)


def entropy(values, u):
    total = u.sum()
    shares = [u[values == v].sum() / total for v in set(values.tolist())]
    return -sum(p * math.log2(p) for p in shares if p > 0)


def by_hand(a, b, u):
    """Mutual information and symmetrical uncertainty over rows known in both."""
    known = np.array(
        [p is not None and q is not None for p, q in zip(a, b, strict=True)]
    )
    a, b, u = a[known].astype(str), b[known].astype(str), u[known]
    both = np.array([f"{p}|{q}" for p, q in zip(a, b, strict=True)])
    h_a, h_b = entropy(a, u), entropy(b, u)
    mutual = h_a + h_b - entropy(both, u)
    return mutual, 2 * mutual / (h_a + h_b) if h_a + h_b else 0.0


@pytest.mark.plain
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_all_measures_are_those_of_plain_loops(
    weighted, gaps, random_table, make_training
):
    X, y = random_table(gaps=gaps)
    u = np.random.default_rng(1).random(len(y)) if weighted else None
    training = make_training(X, y, u)
    one = np.ones(len(y)) if u is None else u
    mutual = pair_information(training)
    uncertainty = pair_uncertainty(training)
    counts = training.count()
    for j in range(X.shape[1]):
        for k in range(X.shape[1]):
            expected = by_hand(X[:, j], X[:, k], one) if j != k else (0.0, 0.0)
            found = (mutual[j, k], uncertainty[j, k])
            assert found == pytest.approx(expected, abs=1e-12)
        expected = by_hand(X[:, j], y.astype(object), one)
        found = class_information(counts)[j], class_uncertainty(counts)[j]
        assert found == pytest.approx(expected, abs=1e-12)
        known = np.array([v is not None for v in X[:, j]])
        own = entropy(X[known, j].astype(str), one[known])
        ratio = expected[0] / own if own else 0.0
        assert gain_ratios(counts)[j] == pytest.approx(ratio, abs=1e-12)


def test_pairs_agree_with_scikit_learn(make_training):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 10, (3000, 7)).astype(np.uint8)
    X[:, 3] = X[:, 2] // 2
    y = rng.integers(0, 2, 3000)
    found = pair_information(make_training(X, y, categorical_features="all"))
    for j in range(7):
        for k in range(7):
            expected = mutual_info_score(X[:, j], X[:, k]) / math.log(2) * (j != k)
            assert found[j, k] == pytest.approx(expected, abs=1e-12)


def test_columns_of_very_many_values_need_no_table(make_training, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 40, (300, 4)).astype(str).astype(object)
    X[rng.random(X.shape) < 0.1] = None
    X[:, 3] = None
    u = rng.random(300)
    training = make_training(X, rng.integers(0, 2, 300))
    for rows in (training, replace(training, sample_weight=u)):
        for measure in (pair_information, pair_uncertainty):
            dense = measure(rows)
            with monkeypatch.context() as patch:
                patch.setattr(information, "_SMALL", 10)
                patch.setattr(information, "_LARGEST", 20)
                sparse = measure(rows)
            np.testing.assert_allclose(sparse, dense, atol=1e-12)


@pytest.mark.filterwarnings("ignore::steelyard.exceptions.IdentifierWarning")
def test_identifiers_on_both_sides_stay_within_memory(make_training):
    X = np.arange(60_000).reshape(-1, 2)[:, [0, 1, 1]]
    y = np.arange(len(X)) % 2
    training = make_training(X, y, categorical_features="all")
    found = pair_information(training)
    expected = math.log2(len(X))
    assert found[0, 1:].tolist() == pytest.approx([expected, expected])


def test_threads_and_order_of_rows_do_not_matter(random_table, make_training):
    X, y = random_table(n=500)
    training = make_training(X, y)
    by_threads = (replace(training.preparation, n_jobs=n_jobs) for n_jobs in (1, 2))
    trainings = [replace(training, preparation=of) for of in by_threads]
    one, two = map(pair_information, trainings)
    np.testing.assert_array_equal(one, two)
    turned = pair_information(make_training(X[::-1], y[::-1]))
    np.testing.assert_array_equal(one, turned)


@pytest.mark.parametrize("d", [1, 2])
def test_filter_of_one_or_of_useless_attributes_is_one_half(d, make_training):
    X = np.array([["a", "b"], ["a", "c"]] * 4)[:, :d]
    y = np.array([0, 0, 1, 1] * 2)
    training = make_training(X, y)
    weights = correlation_weights(training)
    np.testing.assert_allclose(weights, 0.5)


def test_rounding_is_no_information(make_training):
    rng = np.random.default_rng(0)
    y, u = rng.integers(0, 2, 120), rng.random(120)
    X = np.full((120, 3), "same", dtype=object)
    X[rng.random(120) < 0.05, 1] = None
    X[:, 2] = rng.integers(0, 9, 120).astype(str)
    for _ in range(5):
        order = rng.permutation(120)
        training = make_training(X[order], y[order], u[order])
        weights = correlation_weights(training)
        # Nothing is known of one column from another: none is redundant.
        expected = 1.0 / (1.0 + np.exp(-3.0 * np.array([0.0, 0.0, 1.0])))
        np.testing.assert_allclose(weights, expected, rtol=1e-12)
