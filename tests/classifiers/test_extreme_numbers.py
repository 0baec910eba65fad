"""Numbers and weights near the ends of float64: an answer, or a clear refusal."""

import numpy as np
import pytest

import steelyard as sy
from steelyard.exceptions import ColumnError, ParameterError, TableError

N = 40
Y = np.arange(N) % 2
BASE = np.random.default_rng(3).normal(size=(N, 2)) + Y[:, None]
DENSITIES = ["GNB", "ENB", "LNB", "GDNB", "MSE", "LWNB", "SHNB"]


def answers(name, X, sample_weight=None):
    numeric = {} if name == "GNB" else {"numeric": "gaussian"}
    clf = sy.method(name, **numeric).fit(X, Y, sample_weight=sample_weight)
    assert not np.isnan(clf.predict_log_proba(X)).any()
    return clf.predict_proba(X)


@pytest.mark.parametrize("name", DENSITIES)
@pytest.mark.parametrize("scale", [1e102, 1e154, 1.7e308])
def test_numbers_whose_squares_overflow_are_refused_by_name(name, scale):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(BASE / np.abs(BASE).max(), columns=["small", "large"])
    X["large"] *= scale
    with pytest.raises(ColumnError, match=r"Column 'large' holds numbers .* too large"):
        answers(name, X)
    with pytest.raises(ColumnError, match=r"Column 1 holds numbers .* too large"):
        answers(name, X.to_numpy())


@pytest.mark.parametrize("name", DENSITIES)
def test_large_numbers_whose_squares_are_finite_give_probabilities(name):
    assert answers(name, BASE * 1e99).sum(axis=1) == pytest.approx(1.0)


def test_large_numbers_are_refused_in_a_later_chunk_too():
    clf = sy.method("GNB").partial_fit(BASE, Y, classes=[0, 1])
    with pytest.raises(ColumnError, match="too large"):
        clf.partial_fit(BASE * 1e200, Y)
    assert np.isfinite(clf.predict_proba(BASE)).all()


@pytest.mark.parametrize("name", ["NB", "GNB", "SHNB", "AUCNB", "BNB", "LWNB", "SBC"])
@pytest.mark.parametrize("extreme", [1e-300, 1e-16, 1e16, 1e300])
def test_weights_whose_products_overflow_are_refused(name, extreme):
    weights = np.ones(N)
    weights[7] = extreme
    with pytest.raises(TableError, match=r"row 7.*from 1e-15 to 1e\+15"):
        sy.method(name).fit(BASE, Y, sample_weight=weights)


@pytest.mark.parametrize("name", ["NB", "GNB", "SHNB", "AUCNB", "BNB", "LWNB", "SBC"])
@pytest.mark.parametrize("extremes", [(1e-15, 1e15), (1e-15, 1e-15), (1e15, 1e15)])
def test_the_largest_and_smallest_weights_give_probabilities(name, extremes):
    weights = np.array(extremes)[np.arange(N) // 2 % 2]
    clf = sy.method(name).fit(BASE, Y, sample_weight=weights)
    assert clf.predict_proba(BASE).sum(axis=1) == pytest.approx(1.0)
    assert not np.isnan(clf.predict_log_proba(BASE)).any()


def test_class_weights_have_the_same_bounds():
    clf = sy.NaiveBayes(class_weight={0: 1e300})
    with pytest.raises(ParameterError, match=r"from 1e-15 to 1e\+15"):
        clf.fit(BASE, Y)


@pytest.mark.parametrize("scale", [5e-324, 1e-320, 1e-305])
def test_denormal_numbers_on_a_grid_give_probabilities(scale):
    X = np.round(BASE * 5) * scale
    clf = sy.method("GNB-Weka").fit(X, Y)
    assert np.isfinite(clf.predict_log_proba(X)).all()
    assert np.isfinite(clf.predict_log_proba(BASE * 1e300)).all()


@pytest.mark.parametrize("weight", [1e-15, 1e-3, 1e10, 1e15])
def test_trees_of_any_weights_are_trees_of_many_rows(weight):
    # Bins that do not depend on weights: of rows of so little MDL makes none.
    clf = sy.method("DTAWNB", n_trees=3, random_state=0, numeric="equal-width")
    clf.fit(BASE, Y, sample_weight=np.full(N, weight))
    assert clf.attribute_weights_.max() > 0.5
    assert clf.predict_proba(BASE).sum(axis=1) == pytest.approx(1.0)


def test_trees_of_large_weights_treat_copies_as_weights():
    weights = np.where(np.arange(N) % 3, 1e9, 2e9)
    copies = np.repeat(np.arange(N), np.where(np.arange(N) % 3, 1, 2))[::-1]
    by_weight = sy.method("DTAWNB", random_state=0).fit(BASE, Y, weights)
    by_copies = sy.method("DTAWNB", random_state=0)
    by_copies.fit(BASE[copies], Y[copies], np.full(len(copies), 1e9))
    assert (by_weight.attribute_weights_ == by_copies.attribute_weights_).all()


@pytest.mark.parametrize("name", ["DTAWNB", "TreeNB"])
@pytest.mark.parametrize("categorical", ["auto", [1]])
def test_trees_never_test_a_column_without_values(name, categorical):
    X = np.column_stack([BASE[:, 0], np.full(N, np.nan)])
    settings = {"random_state": 0, "categorical_features": categorical}
    clf = sy.method(name, **settings).fit(X, Y)
    assert clf.attribute_weights_[1] == 0.0
    same = sy.method(name, random_state=0).fit(X[:, :1], Y)
    assert clf.attribute_weights_[0] == same.attribute_weights_[0]


@pytest.mark.parametrize("beside", [1, 1.5])
def test_whole_numbers_beyond_float64_are_the_same_alone_and_in_a_batch(beside):
    cells = [10**30, beside, 10**30 + 1, 2.5, 1e30, None]
    X = np.array([[cell] for cell in cells[:3] * 4], dtype=object)
    clf = sy.NaiveBayes(categorical_features="all").fit(X, [0, 1, 1] * 4)
    queries = np.array([[cell] for cell in cells], dtype=object)
    batch = clf.predict_proba(queries)
    alone = [clf.predict_proba(queries[i : i + 1])[0] for i in range(len(cells))]
    assert np.array_equal(batch, alone)
    assert batch[0, 0] > 0.5 > batch[2, 0]
