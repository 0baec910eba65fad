"""Smoothed shares of classes by the value of one column."""

import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard.fitting.class_shares import log_ratios

pytestmark = pytest.mark.plain


def shares(X, y, weights=None, **settings):
    clf = sy.NaiveBayes(**settings).fit(X, y, weights)
    rates = np.array([(y == c).mean() for c in clf.classes_])
    return clf, rates * np.exp(log_ratios(clf.counts_))


def test_shares_are_between_those_of_rows_and_the_base_rates():
    values = np.repeat(["a", "b", "c"], [200, 60, 3])
    y = np.concatenate([[0, 1] * 100, [1] * 60, [0] * 3])
    _, found = shares(pd.DataFrame({"x": values}), y)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    a, b, c = found[1:, 1]
    assert abs(a - 0.5) < 0.01 and 0.95 < b < 1.0
    # Three rows are few.
    assert 0.0 < c < (y == 1).mean()


def test_a_column_that_says_nothing_has_the_base_rates():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 600)
    X = pd.DataFrame({"x": rng.choice(list("abcdef"), 600)})
    clf, found = shares(X, y)
    rates = np.array([(y == c).mean() for c in clf.classes_])
    np.testing.assert_allclose(found[1:], np.tile(rates, (6, 1)), atol=0.02)


def test_numbers_share_rows_with_their_neighbours():
    rng = np.random.default_rng(0)
    x = rng.random(800)
    y = (rng.random(800) < 0.2 + 0.6 * x).astype(int)
    bins = sy.EqualFrequencyDiscretizer(n_bins=40)
    _, found = shares(pd.DataFrame({"x": x}), y, numeric=bins)
    places = (np.arange(40) + 0.5) / 40
    assert np.abs(found[1:, 1] - 0.2 - 0.6 * places).max() < 0.12


def test_missing_cells_with_a_code_are_no_neighbours():
    x = np.concatenate([np.linspace(0.0, 1.0, 300), [np.nan] * 100])
    y = np.concatenate([np.zeros(200), np.ones(100), np.zeros(100)]).astype(int)
    X = pd.DataFrame({"x": x})
    _, found = shares(X, y, missing="value")
    assert found[-1, 1] < 0.05 < 0.9 < found[-2, 1]


def test_names_of_values_and_classes_do_not_matter_and_weights_are_copies():
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"x": rng.choice(list("abcd"), 200)})
    y = rng.integers(0, 2, 200)
    y[X["x"] == "a"] = 1
    _, found = shares(X, y)
    other = X.replace(dict(zip("abcd", "dcba", strict=True)))
    _, turned = shares(other, 1 - y)
    np.testing.assert_allclose(turned[:0:-1, ::-1], found[1:], atol=1e-12)
    weights = rng.integers(1, 4, 200).astype(float)
    rows = np.repeat(np.arange(200), weights.astype(int))
    one = log_ratios(sy.NaiveBayes().fit(X, y, weights).counts_)
    copies = log_ratios(sy.NaiveBayes().fit(X.iloc[rows], y[rows]).counts_)
    np.testing.assert_allclose(one, copies, atol=1e-12)
