"""Weather data: the worked values of instance-weighted methods."""

import numpy as np
import pytest

import steelyard as sy
from steelyard.instances import DiscriminativeWeighting
from steelyard.weighting.filters.information import class_information

pytestmark = pytest.mark.plain


def yes(clf, X):
    """Probability of playing on the first day."""
    return clf.predict_proba(X[:1])[0, 1]


def log_loss(clf, X, y):
    p = clf.predict_log_proba(X)
    return -p[np.arange(len(y)), np.searchsorted(clf.classes_, y)].sum()


def near(*values):
    return pytest.approx(values[0] if len(values) == 1 else list(values), abs=6e-7)


def test_value_frequencies(weather):
    clf = sy.method("AVFWNB").fit(*weather)
    assert clf.instance_weights_[:3].tolist() == near(4.071429, 3.785714, 3.857143)
    assert clf.instance_weights_.sum() == near(57.0)
    assert np.exp(clf.class_log_prior_[1]) == near(0.638015)
    assert yes(clf, weather[0]) == near(0.223403)
    assert clf.diagnostics_ == []


@pytest.mark.parametrize(
    "rounds, first, total",
    [
        (1, (1.295753, 1.152529, 1.263178), 18.083514),
        (15, (5.427672, 3.178023, 3.645206), 73.113984),
    ],
)
def test_discriminative_weights(weather, rounds, first, total):
    instances = DiscriminativeWeighting(rounds)
    clf = sy.InstanceWeightedNB(instances=instances).fit(*weather)
    assert clf.instance_weights_[:3].tolist() == near(*first)
    assert clf.instance_weights_.sum() == near(total)
    assert [record["round"] for record in clf.diagnostics_] == [*range(1, rounds + 1)]
    assert clf.diagnostics_[-1]["total_weight"] == near(total)
    assert clf.diagnostics_[0]["log_loss"] == near(5.397438)
    if rounds == 15:
        assert yes(clf, weather[0]) == near(0.274360)
        assert log_loss(clf, *weather) == near(4.746496)


def test_collaborative_weights(weather):
    clf = sy.method("CWNB").fit(*weather)
    np.testing.assert_allclose(clf.attribute_weights_, 1.0, atol=1e-6)
    assert clf.objective_ == near(4.746496)
    assert clf.instance_weights_[:3].tolist() == near(5.427672, 3.178023, 3.645206)
    assert clf.n_rounds_ == 15


def test_attribute_and_instance_filters(weather):
    clf = sy.method("AIWNB-E").fit(*weather)
    cfw = (0.784810, 0.157680, 0.527533, 0.567443)
    assert clf.attribute_weights_.tolist() == near(*cfw)
    assert clf.instance_weights_.sum() == near(57.0)
    assert yes(clf, weather[0]) == near(0.401396)


def test_lazy_filters(weather):
    clf = sy.method("AIWNB-L").fit(*weather)
    cfw = (0.784810, 0.157680, 0.527533, 0.567443)
    assert clf.attribute_weights_.tolist() == near(*cfw)
    assert yes(clf, weather[0]) == near(0.291949)
    plain = sy.method("AIWNB-L", attribute_weights=False).fit(*weather)
    assert plain.attribute_weights_.tolist() == [1.0] * 4
    assert yes(plain, weather[0]) == near(0.144969)


def test_correlation_filter(weather):
    clf = sy.WeightedNB(weighting="correlation", solver="fixed").fit(*weather)
    cfw = (0.784810, 0.157680, 0.527533, 0.567443)
    assert clf.attribute_weights_.tolist() == near(*cfw)
    assert yes(clf, weather[0]) == near(0.409859)
    information = class_information(clf.counts_)
    assert information.tolist() == near(0.246750, 0.029223, 0.151836, 0.048127)


def test_lazy_weights_of_the_first_day(weather, plain_nb):
    X, y = weather
    u = 1.0 + (X == X[0]).sum(axis=1)
    assert u.tolist() == [5, 4, 4, 3, 2, 1, 1, 4, 3, 2, 2, 2, 3, 2]
    reference = plain_nb(X.astype(object), y, u)
    clf = sy.method("AIWNB-L", attribute_weights=False).fit(X, y)
    # The library's classes are n, y; so are the reference's.
    np.testing.assert_allclose(
        clf.predict_joint_log_proba(X[:1]), reference.scores(X[:1]), rtol=1e-12
    )
