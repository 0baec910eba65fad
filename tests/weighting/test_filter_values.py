"""Weather data: the worked values of filters."""

import numpy as np
import pytest

import steelyard as sy
from steelyard.weighting.filters.correlation import best_subset
from steelyard.weighting.filters.information import (
    class_uncertainty,
    gain_ratios,
    pair_uncertainty,
)

pytestmark = pytest.mark.plain


def near(*values):
    return pytest.approx(values[0] if len(values) == 1 else list(values), abs=6e-7)


def yes(clf, X):
    """Probability of playing on the first day."""
    return clf.predict_proba(X[:1])[0, 1]


def test_gain_ratios(weather, make_training):
    counts = make_training(*weather).count()
    assert gain_ratios(counts).tolist() == near(0.156428, 0.018773, 0.151836, 0.048849)


@pytest.mark.parametrize("name", ["GRAWNB", "KLNB"])
def test_gain_ratio_weights(name, weather):
    clf = sy.method(name).fit(*weather)
    weights = (1.664635, 0.199770, 1.615768, 0.519826)
    assert clf.attribute_weights_.tolist() == near(*weights)
    assert yes(clf, weather[0]) == near(0.119218)


@pytest.mark.parametrize("name", ["CFW", "CBFWNB"])
def test_correlation_weights(name, weather):
    clf = sy.method(name).fit(*weather)
    weights = (0.784810, 0.157680, 0.527533, 0.567443)
    assert clf.attribute_weights_.tolist() == near(*weights)
    assert yes(clf, weather[0]) == near(0.409859)


def test_symmetrical_uncertainty_and_the_best_subset(weather, make_training, merit):
    training = make_training(*weather)
    relevance = class_uncertainty(training.count())
    redundancy = pair_uncertainty(training)
    assert relevance.tolist() == near(0.196013, 0.023407, 0.156508, 0.049989)
    assert sorted(best_subset(relevance, redundancy, 5)) == [0, 2]
    assert merit([0, 2], relevance, redundancy) == near(0.247287)


@pytest.mark.parametrize("name", ["DFWNB", "DAWNB"])
def test_deep_weights(name, weather):
    clf = sy.method(name).fit(*weather)
    assert clf.attribute_weights_.tolist() == [2.0, 1.0, 2.0, 1.0]
    assert clf.selected_features_ == [0, 2]
    assert yes(clf, weather[0]) == near(0.065639)


def test_deep_weights_multiply_counts_and_exponents(weather):
    X, y = weather
    clf = sy.method("DFWNB").fit(X, y)
    scores = np.log((np.bincount(y == "y") + 1) / (len(y) + 2))
    for j, w in enumerate([2, 1, 2, 1]):
        same = X[:, j] == X[0, j]
        found = [(same & (y == c)).sum() for c in ("n", "y")]
        n_values = len(set(X[:, j]))
        totals = np.array([(y == c).sum() for c in ("n", "y")])
        scores += w * np.log((w * np.array(found) + 1) / (w * totals + n_values))
    np.testing.assert_allclose(clf.predict_joint_log_proba(X[:1])[0], scores)
    # The counts of the classifier are those of the rows.
    assert clf.counts_.total == len(y)
    assert clf.counts_.by_code.sum() == X.size


def test_windy_is_locally_predictive_but_for_wekas_rule(weather):
    X, y = weather
    clf = sy.method("DFWNB", zero_is_one=False).fit(X, y)
    # Windy and humidity are exactly independent: zero, or one as Weka has it.
    assert clf.selected_features_ == [0, 2, 3]
    alone = sy.method("DFWNB", zero_is_one=False, locally_predictive=False).fit(X, y)
    assert alone.selected_features_ == [0, 2]


@pytest.mark.parametrize("n", range(3, 40))
def test_a_column_with_one_value_is_never_selected(n):
    # Its uncertainty was 4e-17 for some numbers of rows.
    rng = np.random.default_rng(n)
    X = np.array([["same", value] for value in rng.choice(["a", "b"], 3 * n)])
    y = rng.integers(0, 3, 3 * n)
    for zero_is_one in (True, False):
        clf = sy.method("DFWNB", zero_is_one=zero_is_one).fit(X, y)
        assert 0 not in clf.selected_features_


def test_one_tree_asks_for_outlook_first(weather):
    clf = sy.method("TreeNB", random_state=0).fit(*weather)
    outlook, temperature, humidity, windy = clf.attribute_weights_
    assert (outlook, temperature) == (1.0, 0.0)
    assert sorted([humidity, windy]) == near(3**-0.5, 2**-0.5)


def test_area_under_the_curve(weather):
    clf = sy.method("AUCNB").fit(*weather)
    # Outlook: 5 sunny days of which 2 yes, 4 overcast (4), 5 rainy (3); 9 yes, 5 no.
    outlook = (4 * 5 + 3 * (3 + 0.5 * 2) + 2 * 0.5 * 3) / 45
    # Humidity: 7 high of which 3 yes, 7 normal of which 6 yes.
    humidity = (6 * (4 + 0.5 * 1) + 3 * 0.5 * 4) / 45
    assert clf.attribute_weights_[[0, 2]].tolist() == near(outlook, humidity)
