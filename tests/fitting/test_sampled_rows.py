"""Rows drawn by their content: in any order of the table the same ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import steelyard as sy
from steelyard.fitting.folds import sample_rows
from steelyard.model.training import Encoding, Preparation, encode_training
from steelyard.proba.estimation import Estimation
from steelyard.proba.smoothing import Lidstone


def encoded(X, y, u=None):
    estimation = Estimation(Lidstone(1.0), "smoothed", 1e-9)
    encoding = Encoding(numeric=("linear", "equal-frequency"))
    return encode_training(X, y, u, Preparation(encoding, estimation))


def frame(n, n_distinct, seed=0):
    """Return rows of text and numbers, each of which occurs about as often."""
    rng = np.random.default_rng(seed)
    kinds = pd.DataFrame(
        {
            "a": rng.normal(size=n_distinct),
            "b": rng.choice(["x", "y", "z"], n_distinct).astype(object),
            "c": rng.integers(0, 40, n_distinct).astype(float),
        }
    )
    kinds.loc[::7, "c"] = np.nan
    label = (kinds["a"] + rng.normal(size=n_distinct) > 0).to_numpy().astype(int)
    kind = rng.integers(0, n_distinct, n)
    return kinds.iloc[kind].reset_index(drop=True), label[kind], kind


def drawn(X, y, most, u=None, seed=0):
    return sample_rows(encoded(X, y, u), most, np.random.RandomState(seed))


@pytest.mark.parametrize("n_distinct", [20, 300, 4000])
def test_the_same_content_is_drawn_in_any_order(n_distinct):
    X, y, kind = frame(3000, n_distinct)
    order = np.random.default_rng(1).permutation(3000)
    first = np.bincount(kind[drawn(X, y, 1000)], minlength=n_distinct)
    shuffled = drawn(X.iloc[order], y[order], 1000)
    assert_array_equal(first, np.bincount(kind[order][shuffled], minlength=n_distinct))
    assert first.sum() == 1000


def test_weights_are_part_of_the_content():
    X, y, kind = frame(2000, 100)
    u = np.random.default_rng(2).integers(1, 4, 2000) / 2.0
    order = np.random.default_rng(1).permutation(2000)
    first, second = drawn(X, y, 700, u), drawn(X.iloc[order], y[order], 700, u[order])
    seen = sorted(zip(kind[first], u[first], strict=True))
    assert seen == sorted(zip(kind[order][second], u[order][second], strict=True))


def test_repeated_rows_are_drawn_about_as_often_as_they_occur():
    X, y, kind = frame(8000, 20)
    share = np.bincount(kind[drawn(X, y, 2000)]) / np.bincount(kind)
    # A quarter of each, within five standard errors of 400 draws.
    assert_allclose(share, 0.25, atol=0.11)


def test_a_draw_is_of_different_rows_and_other_seeds_draw_others():
    X, y, _ = frame(3000, 3000)
    first, second = drawn(X, y, 1000), drawn(X, y, 1000, seed=1)
    assert len(set(first.tolist())) == 1000
    assert_array_equal(first, np.sort(first))
    assert 200 < len(np.intersect1d(first, second)) < 470  # a third by chance
    assert_array_equal(first, drawn(X, y, 1000))


def test_few_rows_are_all_drawn():
    X, y, _ = frame(100, 50)
    assert_array_equal(drawn(X, y, 100), np.arange(100))
    assert_array_equal(drawn(X, y, 101), np.arange(100))


@pytest.mark.parametrize("n_distinct", [400, 12_000])
def test_above_ten_thousand_rows_the_choice_does_not_depend_on_their_order(n_distinct):
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 6, (n_distinct, 3))
    kinds[:, 2] = rng.permutation(n_distinct) % 97
    X = kinds[np.arange(12_000) % n_distinct]
    flip = rng.random(12_000) < 0.2
    y = ((X[:, 0] > 2) ^ (X[:, 1] > 2) ^ flip).astype(int)
    settings = {
        "categorical_features": [0, 1],
        "grid": [(2.5, 10.0, 2.5), (0.5, 2.5, 0.5)],
        "cv": 3,
        "resolutions": 2,
        "tol": 1e-10,
    }
    order = rng.permutation(12_000)
    clf = sy.ShrinkageNB(**settings).fit(X, y)
    other = sy.ShrinkageNB(**settings).fit(X[order], y[order])
    assert [r["columns"] for r in clf.pairs_] == [r["columns"] for r in other.pairs_]
    assert clf.pairs_[0]["columns"] == [0, 1]
    assert clf.strength_ == other.strength_
    assert_allclose(clf.scale_, other.scale_, rtol=1e-6)
    for one, two in zip(clf.strength_path_, other.strength_path_, strict=True):
        assert_allclose(list(one.values()), list(two.values()), rtol=1e-6)
    assert_allclose(clf.predict_proba(X[:200]), other.predict_proba(X[:200]), atol=1e-5)
