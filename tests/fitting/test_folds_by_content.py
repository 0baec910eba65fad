"""Folds come from what rows hold: names and orders of a table change nothing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

import steelyard as sy
from steelyard.fitting.default.folds import assign_folds
from steelyard.fitting.default.sampling import RowHash, sample_rows
from steelyard.fitting.recipe import encode_training
from steelyard.model.training import Encoding, Preparation
from steelyard.proba.smoothing import Estimation, Lidstone


def encoded(X, y, u=None, numeric="gaussian"):
    estimation = Estimation(Lidstone(1.0), "smoothed", 1e-9)
    return encode_training(X, y, u, Preparation(Encoding(numeric=numeric), estimation))


def mixed_table(n=120):
    """Text with the same words in two columns, numbers, and a column of 0 and 1."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, n)
    words = np.array(["sun", "rain", "fog"], dtype=object)
    frame = pd.DataFrame(
        {
            "sky": words[np.where(rng.random(n) < 0.6, y, rng.integers(0, 3, n))],
            "later": words[np.where(rng.random(n) < 0.4, y, rng.integers(0, 3, n))],
            "heat": np.round(rng.normal(y), 1),
            "is_late": (rng.random(n) < 0.3 + 0.1 * y).astype(float),
        }
    )
    frame.loc[::11, "sky"] = None
    frame.loc[::13, "heat"] = np.nan
    return frame, y


def questions(n=150, d=8):
    """Columns of yes and no, where many rows hold the same cells in other columns."""
    rng = np.random.default_rng(4)
    X = rng.random((n, d)) < np.linspace(0.2, 0.7, d)
    y = (X[:, :3].sum(axis=1) + rng.normal(size=n) > 1).astype(int)
    words = np.array(["no", "yes"], dtype=object)[X.astype(int)]
    return pd.DataFrame(words, columns=[f"q{j}" for j in range(d)]), y


def flags():
    """The same as numbers."""
    X, y = questions()
    return (X == "yes").astype(float), y


TABLES = {"mixed": mixed_table, "questions": questions, "flags": flags}


def renamed(X, y):
    """Return a table under other names, and what turns its labels back."""
    names = [f"column {(7 * j + 3) % X.shape[1]}" for j in range(X.shape[1])]
    return X.set_axis(names, axis=1), y, None


def other_columns(X, y):
    order = np.random.default_rng(0).permutation(X.shape[1])
    return X.iloc[:, order], y, None


def other_names_and_columns(X, y):
    X, y, _ = other_columns(X, y)
    return renamed(X, y)


def other_classes(X, y):
    return X, y.max() - y, np.arange(y.max() + 1)[::-1]


def an_array(X, y):
    return X.to_numpy(), y, None


def with_an_empty_column(X, y):
    return X.assign(empty=np.nan), y, None


def with_one_word(X, y):
    return X.assign(same="x"), y, None


def with_one_number(X, y):
    return X.assign(same=3.5), y, None


CHANGES = [renamed, other_columns, other_names_and_columns, other_classes, an_array]
USELESS = [with_an_empty_column, with_one_word, with_one_number]


def weight_by_kind(X, y, n_folds=5):
    """Return the weight of each kind of row in each fold, whatever its order."""
    rows, fold, shares = assign_folds(encoded(X, y), n_folds, np.random.RandomState(0))
    return pd.Series(shares).groupby([rows, fold]).sum()


@pytest.mark.parametrize("change", [*CHANGES, *USELESS])
@pytest.mark.parametrize("table", TABLES)
def test_folds_do_not_depend_on_names_and_orders(table, change):
    X, y = TABLES[table]()
    pd.testing.assert_series_equal(
        weight_by_kind(*change(X, y)[:2]), weight_by_kind(X, y)
    )


@pytest.mark.parametrize("table", TABLES)
def test_folds_do_not_depend_on_the_order_of_rows(table):
    X, y = TABLES[table]()
    X, kind = X.drop_duplicates(), None
    y = y[X.index]
    order = np.random.default_rng(1).permutation(len(X))
    rows, fold, _ = assign_folds(encoded(X, y), 5, np.random.RandomState(0))
    kind = pd.Series(fold, index=rows).sort_index()
    rows, fold, _ = assign_folds(
        encoded(X.iloc[order], y[order]), 5, np.random.RandomState(0)
    )
    assert_array_equal(pd.Series(fold, index=order[rows]).sort_index(), kind)


@pytest.mark.parametrize("as_array", [False, True])
def test_a_row_more_leaves_nearly_all_others_in_their_folds(as_array):
    X, y = mixed_table(400)
    X["size"] = np.random.default_rng(0).normal(size=400)

    def folds(n):
        table = X.iloc[:n].to_numpy() if as_array else X.iloc[:n]
        rows, fold, _ = assign_folds(encoded(table, y[:n]), 5, np.random.RandomState(0))
        return pd.Series(fold, index=rows).sort_index()

    # Of each class one or two rows move over each of the four ends of runs.
    assert (folds(400)[:399] != folds(399)).sum() <= 3 * 4 * 2


def test_rows_with_the_same_cells_in_other_columns_are_in_all_folds():
    X, y = questions(400)
    rows, fold, shares = assign_folds(encoded(X, y), 5, np.random.RandomState(0))
    n_yes = (X.iloc[rows] == "yes").sum(axis=1).to_numpy()
    table = pd.crosstab(n_yes, fold, shares, aggfunc="sum").fillna(0.0)
    usual = table[table.sum(axis=1) >= 50].to_numpy()
    # A fifth of 50 rows and more; three deviations of the draw below.
    expected = usual.sum(axis=1, keepdims=True) / 5
    assert len(usual) > 2
    assert (abs(usual - expected) <= 4 * np.sqrt(expected)).all()


@pytest.mark.parametrize("change", [*CHANGES, *USELESS[:2]])
@pytest.mark.parametrize("table", TABLES)
def test_the_same_rows_are_drawn_whatever_names_and_orders_are(table, change):
    X, y = TABLES[table]()
    numeric = ("equal-width", "equal-frequency")
    X2, y2, _ = change(X, y)
    drawn = [
        sample_rows(encoded(*own, numeric=numeric), 50, np.random.RandomState(0))
        for own in ((X, y), (X2, y2))
    ]
    assert_array_equal(*drawn)
    assert len(drawn[0]) == 50


def test_weights_that_are_not_whole_give_the_same_keys_in_any_order():
    # Each row has a twin with its first two cells swapped, so that these columns have
    # equal counts, of sums that are rounded in another order.
    X, y = questions(400, 4)
    swapped = X.iloc[:, [1, 0, 2, 3]].set_axis(X.columns, axis=1)
    X, y = pd.concat([X, swapped], ignore_index=True), np.tile(y, 2)
    u = np.tile(np.random.default_rng(5).random(400), 2)
    keys = []
    for seed in range(5):
        rows = np.random.default_rng(seed).permutation(len(y))
        training = encoded(X.iloc[rows], y[rows], u[rows])
        row_hash = RowHash.of(training.given_counts, np.uint64(1))
        own = (training.codes, training.labels, training.sample_weight)
        keys.append(row_hash.keys(*own)[np.argsort(rows)])
        assert_array_equal(keys[0], keys[-1])


BUNCHES = {
    "iris": lambda: load_iris(return_X_y=True, as_frame=True),
    "wine": lambda: load_wine(return_X_y=True, as_frame=True),
    "breast cancer": lambda: load_breast_cancer(return_X_y=True, as_frame=True),
    "mixed": mixed_table,
}


@pytest.mark.parametrize("name", BUNCHES)
def test_the_default_is_the_same_model_whatever_names_and_orders_are(name):
    X, y = BUNCHES[name]()
    y = np.asarray(y)
    expected = sy.ShrinkageNB().fit(X, y).predict_proba(X)
    for change in CHANGES:
        X2, y2, back = change(X, y)
        found = sy.ShrinkageNB().fit(X2, y2).predict_proba(X2)
        found = found if back is None else found[:, back]
        assert_allclose(found, expected, atol=1e-8)
    order = np.random.default_rng(2).permutation(len(y))
    for table in (X.iloc[order], pl.from_pandas(X.iloc[order])):
        found = sy.ShrinkageNB().fit(table, y[order]).predict_proba(table)
        assert_allclose(found, expected[order], atol=1e-8)


def test_an_empty_column_does_not_change_the_default():
    X, y = mixed_table(60)
    X2, y2, _ = with_an_empty_column(X, y)
    found = sy.ShrinkageNB().fit(X2, y2).predict_proba(X2)
    assert_allclose(found, sy.ShrinkageNB().fit(X, y).predict_proba(X), atol=1e-8)


@pytest.mark.parametrize("change", [renamed, other_classes, an_array])
def test_selection_by_folds_does_not_depend_on_names(change):
    X, y = mixed_table()
    settings = {"lam": 0.05, "random_state": 0}
    clf = sy.CostSensitiveNB(costs={0: 2.0, 1: 3.0}, **settings)
    expected = clf.fit(X, y).predict_proba(X)
    X2, y2, back = change(X, y)
    clf = sy.CostSensitiveNB(costs={0: 2.0, 1: 3.0}, **settings)
    found = clf.fit(X2, y2).predict_proba(X2)
    assert_allclose(found if back is None else found[:, back], expected, atol=1e-12)
