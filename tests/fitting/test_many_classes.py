"""Losses for many classes reduce to those for two; one model for each pair."""

from itertools import combinations

import numpy as np
import pytest
from scipy.special import expit, log_softmax
from sklearn.datasets import load_iris

import steelyard as sy
from steelyard import WeightedNB
from steelyard.losses import (
    LOSSES,
    BrierLoss,
    DevianceLoss,
    ExponentialLoss,
    LogLoss,
    Loss,
)

IRIS = load_iris(return_X_y=True)


@pytest.mark.plain
@pytest.mark.parametrize(
    "loss, binary",
    [
        (ExponentialLoss(), lambda m: np.exp(-m)),
        (DevianceLoss(), lambda m: np.logaddexp(0, -2 * m)),
        (DevianceLoss(0.6), lambda m: np.logaddexp(0, -0.6 * m)),
        (LogLoss(), lambda m: np.logaddexp(0, -m)),
        (BrierLoss(), lambda m: expit(-m) ** 2),
    ],
    ids=["exponential", "deviance", "deviance 0.6", "log", "brier"],
)
def test_losses_of_two_classes_are_the_binary_ones(loss, binary):
    rng = np.random.default_rng(0)
    scores, y = 5 * rng.normal(size=(50, 2)), rng.integers(0, 2, 50).astype(np.uint32)
    margin = (2.0 * y - 1.0) * (scores[:, 1] - scores[:, 0])
    for i in range(len(y)):
        value, gradient = loss.value_and_gradient(scores[i : i + 1], y[i : i + 1], None)
        assert value == pytest.approx(binary(margin[i]), rel=1e-12)
        assert abs(gradient.sum()) <= 1e-14 * max(1.0, np.abs(gradient).max())


@pytest.mark.plain
def test_losses_of_many_classes_are_the_formulas():
    rng = np.random.default_rng(1)
    z, y = rng.normal(size=(30, 4)), rng.integers(0, 4, 30).astype(np.uint32)
    own = np.arange(30), y
    log_p = log_softmax(z, axis=1)
    expected = {
        "log": -log_p[own].sum(),
        "deviance": -log_softmax(2 * z, axis=1)[own].sum(),
        "exponential": (np.exp(-log_p[own]) - 1).sum(),
        "brier": 0.5 * ((np.exp(log_p) - np.eye(4)[y]) ** 2).sum(),
    }
    for name, value in expected.items():
        found, _ = LOSSES[name]().value_and_gradient(z, y, None)
        assert found == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_class_without_a_say_leaves_the_two_class_fit(loss):
    # Three classes of which one has scores that are out of the question.
    rng = np.random.default_rng(2)
    z = rng.normal(size=(20, 2))
    y = rng.integers(0, 2, 20).astype(np.uint32)
    far = np.concatenate([z, np.full((20, 1), -200.0)], axis=1)
    two, gradient_two = LOSSES[loss]().value_and_gradient(z, y, None)
    three, gradient_three = LOSSES[loss]().value_and_gradient(far, y, None)
    assert two == pytest.approx(three, rel=1e-12)
    np.testing.assert_allclose(gradient_three[:, :2], gradient_two, atol=1e-12)


@pytest.mark.parametrize("name", ["ENB", "DNB", "LNB", "GDNB", "MSE"])
def test_one_against_one_equals_fits_made_by_hand(name):
    X, y = IRIS[0][50:, :2], IRIS[1][50:].copy()
    y[:30] = 0
    clf = sy.method(name, multiclass="one-vs-one").fit(X, y)
    total = np.zeros((len(y), 3))
    weights, objective = [], 0.0
    for a, b in combinations(range(3), 2):
        rows = (y == a) | (y == b)
        pair = sy.method(name).fit(X[rows], y[rows])
        p = pair.predict_proba(X)
        total[:, a] += p[:, 0]
        total[:, b] += p[:, 1]
        weights.append(pair.attribute_weights_)
        objective += pair.objective_
    assert clf.attribute_weights_.shape == (3, 2)
    np.testing.assert_allclose(clf.attribute_weights_, weights, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(clf.predict_proba(X), total / 3, atol=1e-7)
    assert (clf.predict(X) == clf.classes_[total.argmax(axis=1)]).all()
    assert clf.objective_ == pytest.approx(objective, rel=1e-9)
    assert {tuple(record["pair"]) for record in clf.diagnostics_} <= {
        (0, 1),
        (0, 2),
        (1, 2),
    }


def test_one_against_one_of_every_weighting(make_table):
    settings, X, y = make_table("mixed with gaps", 3)
    settings.update(multiclass="one-vs-one", loss="brier", lam=0.1, prior_weight=True)
    d = X.shape[1]
    clf = WeightedNB(weighting="class-attribute", **settings).fit(X, y)
    assert clf.class_attribute_weights_.shape == (3, 2, d)
    assert clf.prior_weight_.shape == (3,)
    clf = WeightedNB(weighting="mixture", **settings).fit(X, y)
    assert clf.alpha_.shape == (3,)
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1.0)
    clf = WeightedNB(weighting="value", **settings).fit(X, y)
    assert len(clf.value_weights_) == 3
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1.0)


def test_one_against_one_of_two_classes_is_the_plain_fit(weather):
    first = sy.method("LNB").fit(*weather)
    second = sy.method("LNB", multiclass="one-vs-one").fit(*weather)
    np.testing.assert_array_equal(first.attribute_weights_, second.attribute_weights_)
    assert second.attribute_weights_.shape == (4,)


def test_one_against_one_takes_given_priors_of_its_pairs(make_table):
    settings, X, y = make_table("categories", 3)
    prior = np.array([0.5, 0.3, 0.2])
    clf = WeightedNB(multiclass="one-vs-one", prior=prior, **settings).fit(X, y)
    np.testing.assert_allclose(np.exp(clf.class_log_prior_), prior)
    for (a, b), model in zip(clf.model_.pairs, clf.model_.models, strict=True):
        odds = model.log_prior[1] - model.log_prior[0]
        assert odds == pytest.approx(np.log(prior[b] / prior[a]))


class Hinge(Loss):
    """A loss of two classes: squared hinge, without a compiled form."""

    two_classes_only = True

    def value_and_gradient(self, scores, y, weights):
        rows = np.arange(len(y))
        margin = scores[rows, y] - scores[rows, 1 - y.astype(int)]
        short = np.maximum(1.0 - margin, 0.0)
        u = np.ones(len(y)) if weights is None else weights
        gradient = np.zeros_like(scores)
        gradient[rows, y] = -2.0 * u * short
        gradient[rows, 1 - y.astype(int)] = 2.0 * u * short
        return float((u * short**2).sum()), gradient


def test_a_loss_of_two_classes_needs_pairs_when_there_are_more(make_table):
    settings, X, y = make_table("categories", 3)
    clf = WeightedNB(loss=Hinge(), solver="lbfgs", **settings)
    with pytest.raises(sy.exceptions.ParameterError, match="one-vs-one"):
        clf.fit(X, y)
    clf.set_params(multiclass="one-vs-one").fit(X, y)
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1.0)
    assert clf.score(X, y) > 0.6


def test_five_classes_fit_with_every_loss_natively(make_table):
    settings, X, y = make_table("mixed with gaps", 5, n=80)
    for loss in LOSSES:
        clf = WeightedNB(loss=loss, **settings).fit(X, y)
        assert clf.predict_proba(X).shape == (80, 5)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss, factor", [("exponential", 2), ("deviance", 2)])
def test_calibrated_link_doubles_the_log_odds(loss, factor, n_classes, make_table):
    settings, X, y = make_table("gaussian", n_classes)
    plain = WeightedNB(loss=loss, **settings).fit(X, y)
    calibrated = WeightedNB(loss=loss, calibrated=True, **settings).fit(X, y)
    np.testing.assert_array_equal(
        plain.attribute_weights_, calibrated.attribute_weights_
    )
    p, q = plain.predict_log_proba(X), calibrated.predict_log_proba(X)
    np.testing.assert_allclose(
        q - q[:, :1], factor * (p - p[:, :1]), rtol=1e-9, atol=1e-9
    )
    assert (plain.predict(X) == calibrated.predict(X)).all()


def test_calibrated_link_changes_nothing_for_the_log_loss(weather):
    first = sy.method("LNB").fit(*weather)
    second = sy.method("LNB", calibrated=True).fit(*weather)
    p, q = first.predict_proba(weather[0]), second.predict_proba(weather[0])
    np.testing.assert_array_equal(p, q)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_deviance_is_the_log_loss_with_the_prior_counted_twice(n_classes, make_table):
    settings, X, y = make_table("intervals", n_classes, n=200)
    dnb = WeightedNB(loss="deviance", bounds=(0, None), **settings).fit(X, y)
    prior = np.exp(2 * dnb.class_log_prior_)
    twice = WeightedNB(
        loss="log", bounds=(0, None), prior=prior / prior.sum(), **settings
    ).fit(X, y)
    assert dnb.objective_ == pytest.approx(twice.objective_, rel=1e-8)
    np.testing.assert_allclose(
        2 * dnb.attribute_weights_, twice.attribute_weights_, rtol=1e-4, atol=1e-5
    )


def test_balanced_classes_give_the_deviance_half_the_weights_of_the_log_loss():
    X, y = IRIS[0][50:], IRIS[1][50:]
    dnb, lnb = (sy.method(name).fit(X, y) for name in ("DNB", "LNB"))
    np.testing.assert_allclose(
        2 * dnb.attribute_weights_, lnb.attribute_weights_, rtol=1e-4, atol=1e-5
    )
    assert (dnb.predict(X) == lnb.predict(X)).all()


def test_gdnb_is_no_worse_than_lnb_and_dnb_whose_prior_weights_it_may_choose(weather):
    objective = {
        n: sy.method(n).fit(*weather).objective_ for n in ("LNB", "GDNB", "DNB")
    }
    assert objective["GDNB"] <= min(objective["LNB"], objective["DNB"]) + 1e-9
