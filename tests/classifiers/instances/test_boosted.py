"""Boosted naive Bayes equals the plain loops of its two forms."""

import numpy as np
import pytest

from steelyard import BoostedNB, NaiveBayes
from steelyard.exceptions import ParameterError

pytestmark = pytest.mark.plain


def plain_m1(PlainNB, X, y, rounds, own):
    u, total = own.copy(), own.sum()
    models, votes, errors = [], [], []
    for _ in range(rounds):
        model = PlainNB(X, y, u)
        wrong = model.predict(X) != y
        error = u[wrong].sum() / total
        errors.append(error)
        if error >= 0.5 or error == 0:
            if not models:
                models, votes = [model], [1.0]
            break
        ratio = (1 - error) / error
        models.append(model)
        votes.append(np.log(ratio))
        u = np.where(wrong, u * ratio, u)
        u *= total / u.sum()
    return models, np.array(votes), u / own, errors


def plain_vote(models, votes, X):
    if len(models) == 1:
        return models[0].proba(X)
    scores = np.zeros((len(X), len(models[0].classes)))
    for model, vote in zip(models, votes, strict=True):
        scores[np.arange(len(X)), model.predict(X)] += vote
    p = np.exp(scores)
    return p / p.sum(axis=1, keepdims=True)


def plain_elkan(PlainNB, X, y, rounds, own):
    n = own.sum()
    u = own / n
    models, betas, errors = [], [], []
    for _ in range(rounds):
        model = PlainNB(X, y, u * n)
        miss = np.abs(y - model.proba(X)[:, 1])
        error = (u * miss).sum()
        errors.append(error)
        if error >= 0.5:
            break
        beta = error / (1 - error)
        models.append(model)
        betas.append(beta)
        u = u * beta ** (1 - miss)
        u /= u.sum()
    return models, np.array(betas), u * n / own, errors


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_adaboost_equals_plain_loops(n_classes, weighted, random_table, plain_nb):
    X, y = random_table(50, n_classes, gaps=0.05, seed=n_classes)
    own = np.ones(len(y))
    if weighted:
        own = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    clf = BoostedNB(rounds=5).fit(X, y, own if weighted else None)
    models, votes, u, errors = plain_m1(plain_nb, X, y, 5, own)
    assert len(models) > 1
    np.testing.assert_allclose(clf.votes_, votes, rtol=1e-9)
    np.testing.assert_allclose(clf.instance_weights_, u, rtol=1e-9)
    assert (own * clf.instance_weights_).sum() == pytest.approx(own.sum())
    assert [r["error"] for r in clf.diagnostics_] == pytest.approx(errors)
    expected = plain_vote(models, votes, X)
    np.testing.assert_allclose(clf.predict_proba(X), expected, rtol=1e-9)
    np.testing.assert_allclose(clf.predict_log_proba(X), np.log(expected), rtol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_elkans_form_equals_plain_loops(weighted, random_table, plain_nb):
    X, y = random_table(50, 2, gaps=0.05, seed=4)
    own = np.ones(len(y))
    if weighted:
        own = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    clf = BoostedNB(rounds=5, form="elkan").fit(X, y, own if weighted else None)
    models, betas, u, errors = plain_elkan(plain_nb, X, y, 5, own)
    np.testing.assert_allclose(clf.votes_, -np.log(betas), rtol=1e-9)
    np.testing.assert_allclose(clf.instance_weights_, u, rtol=1e-9)
    assert [r["error"] for r in clf.diagnostics_] == pytest.approx(errors)
    h = np.stack([model.proba(X)[:, 1] for model in models])
    r = (np.log(1 / betas) @ h) / np.log(1 / betas).sum()
    second = 1 / (1 + np.prod(betas[:, None] ** (2 * r - 1), axis=0))
    np.testing.assert_allclose(clf.predict_proba(X)[:, 1], second, rtol=1e-9)
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize("form", ["adaboost-m1", "elkan"])
def test_one_model_has_its_own_posterior(form, random_table):
    X, y = random_table(60, 2)
    clf = BoostedNB(rounds=1, form=form).fit(X, y)
    plain = NaiveBayes(smoothing="laplace").fit(X, y)
    assert clf.predict_proba(X).tobytes() == plain.predict_proba(X).tobytes()
    assert clf.predict_log_proba(X).tobytes() == plain.predict_log_proba(X).tobytes()
    assert clf.predict(X).tolist() == plain.predict(X).tolist()


def test_a_perfect_first_model_is_the_only_one():
    X = np.array([["a"], ["b"]] * 5)
    clf = BoostedNB().fit(X, [0, 1] * 5)
    assert clf.votes_.tolist() == [1.0]
    assert clf.diagnostics_ == [{"round": 1, "error": 0.0}]
    assert clf.instance_weights_.tolist() == [1.0] * 10
    assert clf.predict_proba(X)[0, 0] == pytest.approx(6 / 7)


@pytest.mark.parametrize("form", ["adaboost-m1", "elkan"])
def test_a_useless_first_model_is_the_only_one(form):
    X = np.array([["a"], ["a"], ["b"], ["b"]] * 2)
    clf = BoostedNB(form=form).fit(X, [0, 1] * 4)
    assert len(clf.votes_) == 1
    assert clf.diagnostics_ == [{"round": 1, "error": 0.5}]


@pytest.mark.parametrize("seed", [3, 13, 218])
def test_an_error_of_one_half_up_to_rounding_ends_the_boosting(seed, random_table):
    X, y = random_table(40, 3, seed=seed, sizes=(2, 3))
    weights = np.random.default_rng(seed).integers(1, 4, len(y))
    copies = np.repeat(np.arange(len(y)), weights)
    by_weight = BoostedNB().fit(X, y, weights)
    by_copies = BoostedNB().fit(X[copies], y[copies])
    assert by_weight.votes_.min() > 1e-6
    np.testing.assert_allclose(by_weight.votes_, by_copies.votes_, rtol=1e-9)
    np.testing.assert_allclose(
        by_weight.predict_proba(X), by_copies.predict_proba(X), rtol=1e-9
    )


@pytest.mark.parametrize("dtype", [object, str])
def test_labels_of_any_kind_are_boosted_alike(dtype, random_table):
    X, y = random_table(60, 3)
    names = np.array(["ä", "b", "c"], dtype=dtype)
    plain = BoostedNB(rounds=4).fit(X, y)
    # In the order of the names, that is b, c, ä.
    named = BoostedNB(rounds=4).fit(X, np.array(["b", "c", "ä"], dtype=dtype)[y])
    assert named.classes_.tolist() == sorted(names.tolist())
    np.testing.assert_array_equal(named.predict_proba(X), plain.predict_proba(X))
    assert named.predict(X).tolist() == named.classes_[plain.predict(X)].tolist()
    flags = BoostedNB(rounds=4).fit(X, y > 0)
    assert flags.predict(X).dtype == bool


def test_hardest_rows_are_those_that_stay_wrong(random_table):
    X, y = random_table(60, 2)
    clf = BoostedNB(rounds=4).fit(X, y)
    hardest = clf.hardest_rows(5)
    assert clf.instance_weights_[hardest[0]] == clf.instance_weights_.max()


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"rounds": 0}, "whole number of at least 1. Got 0"),
        ({"rounds": 1.5}, "whole number of at least 1. Got 1.5"),
        ({"rounds": None}, "whole number of at least 1. Got None"),
        ({"form": "samme"}, "'adaboost-m1', 'elkan'. Got 'samme'"),
        ({"form": "elkan"}, "two classes, but there are 3. Use form='adaboost-m1'"),
        ({"prior": [0.5, 0.5]}, "2 entries for 3 classes"),
    ],
    ids=repr,
)
def test_wrong_settings_are_refused_and_an_earlier_model_stays(
    settings, message, random_table
):
    X, y = random_table(30, 3)
    clf = BoostedNB(rounds=3).fit(X, y)
    before = dict(vars(clf))
    with pytest.raises(ParameterError, match=message):
        clf.set_params(**settings).fit(X[:, :2], y)
    assert all(vars(clf)[k] is before[k] for k in before if k.endswith("_"))
