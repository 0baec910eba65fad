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
@pytest.mark.parametrize("scale", [1e154, 1e200, 1.7e308])
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
    assert answers(name, BASE * 1e148).sum(axis=1) == pytest.approx(1.0)


def test_large_numbers_are_refused_in_a_later_chunk_too():
    clf = sy.method("GNB").partial_fit(BASE, Y, classes=[0, 1])
    with pytest.raises(ColumnError, match="too large"):
        clf.partial_fit(BASE * 1e200, Y)
    assert np.isfinite(clf.predict_proba(BASE)).all()


@pytest.mark.parametrize("name", ["NB", "GNB", "SHNB", "AUCNB", "BNB", "LWNB", "SBC"])
@pytest.mark.parametrize("extreme", [1e-300, 1e-51, 1e51, 1e300])
def test_weights_whose_products_overflow_are_refused(name, extreme):
    weights = np.ones(N)
    weights[7] = extreme
    with pytest.raises(TableError, match=r"row 7.*from 1e-50 to 1e\+50"):
        sy.method(name).fit(BASE, Y, sample_weight=weights)


@pytest.mark.parametrize("name", ["NB", "GNB", "SHNB", "AUCNB", "BNB", "LWNB", "SBC"])
@pytest.mark.parametrize("extremes", [(1e-50, 1e50), (1e-50, 1e-50), (1e50, 1e50)])
def test_the_largest_and_smallest_weights_give_probabilities(name, extremes):
    weights = np.array(extremes)[np.arange(N) // 2 % 2]
    clf = sy.method(name).fit(BASE, Y, sample_weight=weights)
    assert clf.predict_proba(BASE).sum(axis=1) == pytest.approx(1.0)
    assert not np.isnan(clf.predict_log_proba(BASE)).any()


def test_class_weights_have_the_same_bounds():
    clf = sy.NaiveBayes(class_weight={0: 1e300})
    with pytest.raises(ParameterError, match=r"from 1e-50 to 1e\+50"):
        clf.fit(BASE, Y)
