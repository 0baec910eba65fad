"""Other class priors than those of the training rows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import steelyard as sy
from steelyard.exceptions import ParameterError

NOT_ONE_SUM = {"RNB", "LWNB", "BNB", "AIWNB-L"}
FEW = {"max_iter": 20, "generations": 2, "population_size": 4, "random_state": 0}

quietly = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def patients(n=150, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice(["ill", "unclear", "well"], n, p=[0.5, 0.2, 0.3])
    fever = np.where(rng.random(n) < np.where(y == "ill", 0.8, 0.3), "yes", "no")
    heat = rng.normal(np.where(y == "ill", 38.5, 37), 0.8, n).round(1)
    heat[rng.random(n) < 0.1] = np.nan
    return pd.DataFrame({"fever": fever, "heat": heat}), y


def reweighed(clf, X, prior):
    proba = clf.predict_proba(X) * prior / np.exp(clf.class_log_prior_)
    return proba / proba.sum(axis=1, keepdims=True)


@quietly
@pytest.mark.parametrize("entry", sy.methods(), ids=lambda entry: entry.acronym)
def test_posteriors_are_reweighed_or_the_method_says_why_not(entry, tmp_path):
    X, y = patients()
    if entry.acronym == "SPSS":
        X = X.drop(columns="heat")
    clf = entry.create()
    clf.set_params(**{name: FEW[name] for name in FEW if name in clf._settings})
    clf.fit(X, y)
    if entry.acronym in NOT_ONE_SUM or clf.model_.simplified().kind == "pairs":
        with pytest.raises(ParameterError, match=r"Not one sum.*class_weight"):
            clf.with_prior({"ill": 0.02})
        return
    before = clf.predict_proba(X)
    rare = clf.with_prior([0.02, 0.2, 0.78])
    expected = reweighed(clf, X, [0.02, 0.2, 0.78])
    np.testing.assert_allclose(rare.predict_proba(X), expected, atol=1e-12)
    assert np.array_equal(clf.predict_proba(X), before)
    rare.save(tmp_path / "m.json")
    loaded = sy.load(tmp_path / "m.json")
    assert np.array_equal(loaded.predict_proba(X), rare.predict_proba(X))
    if clf.model_.kind == "one-dependence":
        return
    row = {"fever": "yes", "heat": 38.0} if len(X.columns) == 2 else {"fever": "yes"}
    answer = list(rare.scorer()(row).values())
    np.testing.assert_allclose(answer, rare.predict_proba(pd.DataFrame([row]))[0])


def test_naive_bayes_is_a_fit_with_that_prior_to_the_bit_and_learns_on():
    X, y = patients()
    for method in ("NB", "GNB", "AODE", "GRAWNB"):
        clf = sy.method(method).fit(X, y)
        rare = clf.with_prior({"ill": 0.02, "well": 0.9})
        prior = [0.02, rare.prior[1], 0.9]
        again = sy.method(method, prior=prior).fit(X, y)
        assert np.array_equal(rare.predict_proba(X), again.predict_proba(X))
        assert sum(prior) == pytest.approx(1.0)
    clf = sy.NaiveBayes().partial_fit(
        X[:80], y[:80], classes=["ill", "unclear", "well"]
    )
    more = clf.with_prior(prior).partial_fit(X[80:], y[80:])
    assert np.allclose(np.exp(more.class_log_prior_), prior)


@pytest.mark.parametrize("make", [sy.NaiveBayes, sy.ShrinkageNB])
def test_scores_of_training_rows_are_not_those_of_another_prior(make):
    clf = make().fit(*patients())
    assert clf.training_.score_ranges is not None
    assert clf.with_prior({"ill": 0.1}).training_.score_ranges is None


def test_unnamed_classes_share_the_rest_as_before_and_priors_can_be_changed_again():
    X, y = patients()
    clf = sy.ShrinkageNB().fit(X, y)
    old = np.exp(clf.class_log_prior_)
    rare = clf.with_prior({"ill": 0.02})
    new = np.exp(rare.class_log_prior_)
    assert new[1] / new[2] == pytest.approx(old[1] / old[2])
    back = rare.with_prior(old)
    np.testing.assert_allclose(back.predict_proba(X), clf.predict_proba(X), atol=1e-12)


def test_explanations_exports_and_the_page_begin_with_the_new_prior(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    X, y = patients()
    clf = sy.ShrinkageNB().fit(X, y == "ill").with_prior({True: 0.02})
    expected = clf.predict_proba(X)[:, 1]
    nothing = pd.DataFrame({"fever": [None], "heat": [np.nan]})
    assert clf.predict_proba(nothing)[0, 1] == pytest.approx(0.02, abs=0.01)
    assert clf.explain_local(X[:3]).probabilities[:, 1] == pytest.approx(expected[:3])
    clf.export(tmp_path / "m.sql", table="X")
    sql = (tmp_path / "m.sql").read_text("utf-8")
    found = duckdb.sql(sql).df()["p(True)"]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    clf.to_html(tmp_path / "m.html")
    assert (tmp_path / "m.html").stat().st_size > 1000


@pytest.mark.parametrize(
    "prior, message",
    [
        ({"il": 0.1}, r"'il' is not a class\. Did you mean 'ill'\?"),
        ({"ill": 0.0}, "between 0 and 1, without the ends"),
        ({"ill": 1.0}, "between 0 and 1, without the ends"),
        ({"ill": float("nan")}, "between 0 and 1, without the ends"),
        ({"ill": "much"}, r"must be a number\. Got \['much'\]"),
        ({"ill": 0.5, "well": 0.5}, "leave nothing for the classes"),
        ({"ill": 0.5, "well": 0.4, "unclear": 0.2}, "add up to 1. Got a sum of 1.1"),
        ([0.5, 0.5], r"a mapping such as \{'well': 0.02\}, or 3 probabilities"),
        (0.5, "or 3 probabilities"),
        ([0.2, 0.2, 0.2], "add up to 1"),
    ],
)
def test_priors_that_are_none_are_refused(prior, message):
    X, y = patients()
    clf = sy.NaiveBayes().fit(X, y)
    with pytest.raises(ParameterError, match=message):
        clf.with_prior(prior)
    with pytest.raises(NotFittedError):
        sy.NaiveBayes().with_prior({"ill": 0.5})


def test_a_class_without_rows_has_nothing_to_shift():
    clf = sy.NaiveBayes(prior="frequency")
    clf.partial_fit([["a"], ["b"]], ["x", "y"], classes=["x", "y", "z"])
    with pytest.raises(ParameterError, match="Class 'z' has a prior of 0"):
        clf.with_prior({"x": 0.1})
