"""Kernel densities, beside Weka's estimator written out number by number."""

from math import erfc, log, sqrt

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import steelyard as sy
from steelyard.exceptions import ParameterError


def normal(z):
    return 0.5 * erfc(-z / sqrt(2.0))


class Estimator:
    """The kernel estimator of one class: a normal density on each rounded number."""

    def __init__(self, step, numbers, weights):
        self.step = step
        self.values = [round(x / step) * step for x in numbers]
        self.weights = weights
        spread = max(self.values) - min(self.values)
        self.width = max(spread / sqrt(sum(weights)), step / 6.0)

    def probability(self, x):
        """Return the probability of the step around a rounded number."""
        x = round(x / self.step) * self.step
        total = 0.0
        for value, weight in zip(self.values, self.weights, strict=True):
            # The lower tail is as likely as the upper one, and has all its digits.
            low, high = (-abs(x - value) + sign * self.step / 2 for sign in (-1, 1))
            total += weight * (normal(high / self.width) - normal(low / self.width))
        return max(total / sum(self.weights), 1e-75)


def log_joint(column, y, weights, x):
    """Log joint probabilities of one number, class by class, with Laplace's prior."""
    known = [v for v in column if not np.isnan(v)]
    distinct = sorted(set(known))
    step = (distinct[-1] - distinct[0]) / (len(distinct) - 1)
    classes, scores = sorted(set(y)), []
    for c in classes:
        rows = [i for i, label in enumerate(y) if label == c]
        of_class = sum(weights[i] for i in rows)
        score = log((of_class + 1) / (sum(weights) + len(classes)))
        seen = [i for i in rows if not np.isnan(column[i])]
        numbers, of_rows = [column[i] for i in seen], [weights[i] for i in seen]
        if not np.isnan(x):
            score += log(Estimator(step, numbers, of_rows).probability(x))
        scores.append(score)
    return np.array(scores)


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("digits", [1, 3])
def test_one_column_is_wekas_kernel_estimator(digits, is_weighted):
    rng = np.random.default_rng(digits)
    y = rng.permutation(np.repeat(["a", "b", "c"], [30, 20, 10]))
    x = rng.normal(np.unique(y, return_inverse=True)[1] ** 2, 1.0).round(digits)
    x[:3] = np.nan
    weights = rng.integers(1, 4, 60).astype(float) if is_weighted else np.ones(60)
    clf = sy.method("NB-Kernel").fit(x[:, None], y, weights if is_weighted else None)
    expected = np.array([log_joint(x, y, weights, value) for value in x])
    expected -= np.log(np.exp(expected).sum(axis=1, keepdims=True))
    assert_allclose(clf.predict_log_proba(x[:, None]), expected, rtol=1e-9, atol=1e-12)


def test_categories_beside_densities_have_laplaces_rule():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 40)
    X = pd.DataFrame({"x": rng.normal(y), "colour": rng.choice(["r", "g"], 40)})
    both = sy.method("FNB").fit(X, y).predict_log_proba(X)
    number = sy.method("NB-Kernel").fit(X[["x"]], y).predict_log_proba(X[["x"]])
    colour = sy.method("NB-Laplace").fit(X[["colour"]], y)
    added = colour.predict_log_proba(X[["colour"]]) - colour.class_log_prior_
    expected = number + added
    expected -= np.log(np.exp(expected).sum(axis=1, keepdims=True))
    assert_allclose(both, expected, rtol=1e-10)


def test_a_missing_cell_that_is_a_value_keeps_its_share():
    x = np.array([1.0, 2.0, 3.0, np.nan, 1.0, 2.0, np.nan, np.nan])[:, None]
    y = [0, 0, 0, 0, 1, 1, 1, 1]
    settings = {"numeric": "grid", "missing": "value"}
    kernel = sy.NaiveBayes(smoothing="kernel", **settings).fit(x, y)
    plain = sy.NaiveBayes(smoothing="laplace", **settings).fit(x, y)
    assert_allclose(kernel.model_.table[-1], plain.model_.table[-1])
    shares = np.exp(kernel.model_.table[1:4]).sum(axis=0)
    assert (shares < 1 - np.exp(plain.model_.table[-1])).all()


def test_constant_columns_and_classes_without_a_number_say_nothing():
    X = np.array([[1.0, np.nan], [1.0, np.nan], [1.0, 3.0], [1.0, 4.0]])
    clf = sy.method("NB-Kernel").fit(X, [0, 0, 1, 1])
    assert_allclose(clf.predict_proba([[1.0, np.nan], [5.0, np.nan]]), 0.5)
    assert np.isfinite(clf.model_.table).all()


def test_chunks_save_and_weights_follow_the_general_path(tmp_path):
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, 80)
    X = rng.normal(y[:, None], 1.0, (80, 3)).round(1)
    whole = sy.method("NB-Kernel").fit(X, y)
    edges = [list(f.edges) for f in whole.encoder_.schema_.features]
    chunks = sy.NaiveBayes(numeric=sy.FixedEdgesDiscretizer(edges), smoothing="kernel")
    chunks.partial_fit(X[:50], y[:50], classes=[0, 1]).partial_fit(X[50:], y[50:])
    assert_allclose(chunks.predict_proba(X), whole.predict_proba(X), rtol=1e-12)
    learned = sy.method("WANBIA-CLL", numeric="grid", smoothing="kernel").fit(X, y)
    fixed = whole.predict_log_proba(X)[np.arange(80), y].sum()
    assert learned.predict_log_proba(X)[np.arange(80), y].sum() >= fixed
    for clf in (whole, learned):
        clf.save(tmp_path / "model.json")
        again = sy.load(tmp_path / "model.json")
        assert again.get_params() == clf.get_params()
        np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    clf.export(tmp_path / "model.py")
    with pytest.raises(ParameterError, match="'kernel' has no pseudo-counts"):
        sy.method("AODE", numeric="grid", smoothing="kernel").fit(X, y)


def test_grid_is_wekas_precision_and_limited():
    x = np.array([0.0, 1.0, 2.0, 8.0, np.nan])[:, None]
    # Mean distance 8 / 3: multiples 0, 2.67, 5.33, 8.
    assert_allclose(sy.GridDiscretizer().fit(x).edges_[0], [4 / 3, 4, 20 / 3])
    coarse = sy.GridDiscretizer(max_bins=2).fit(x)
    assert_allclose(coarse.edges_[0], [4.0])
    rng = np.random.default_rng(1)
    many = sy.GridDiscretizer().fit(rng.normal(size=(5_000, 1)))
    assert 900 <= many.n_bins_[0] <= 1_001
    assert sy.GridDiscretizer().fit(np.full((3, 1), 7.0)).n_bins_[0] == 1
    huge = np.array([-1.7e308, 0.0, 1.7e308])[:, None]
    assert np.isfinite(sy.GridDiscretizer().fit(huge).edges_[0]).all()
