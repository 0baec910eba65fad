"""Explanations of single predictions add up, and say what they leave out."""

import json

import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard.exceptions import ParameterError
from steelyard.explain import explain_local

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

SUMS = ["NB", "GNB", "GNB-Weka", "WANBIA-CLL", "CAWNB", "CAVWNB", "AVFWNB", "CWNB"]


@pytest.mark.parametrize("acronym", SUMS)
def test_contributions_add_up_to_the_scores(acronym, mixed):
    X, y = mixed
    clf = sy.method(acronym).fit(X, y)
    found = clf.explain_local(X)
    assert found.kind == "sum" and not found.parts
    total = found.base + found.contributions.sum(axis=1)
    np.testing.assert_allclose(
        total, clf.predict_joint_log_proba(X), rtol=0, atol=1e-12
    )
    np.testing.assert_array_equal(found.probabilities, clf.predict_proba(X))
    np.testing.assert_array_equal(found.predicted, clf.predict(X))


@pytest.mark.parametrize(
    ("acronym", "numeric"), [("LWNB", "mdl"), ("LWNB", "gaussian"), ("AIWNB-L", "mdl")]
)
def test_contributions_of_lazy_models_add_up_to_the_scores(acronym, numeric, mixed):
    X, y = mixed
    weights = np.random.default_rng(0).integers(0, 3, len(y))
    clf = sy.method(acronym, numeric=numeric).fit(X, y, sample_weight=weights)
    found = clf.explain_local(X[:20])
    assert found.kind == "neighbours"
    np.testing.assert_allclose(
        found.scores, clf.predict_joint_log_proba(X[:20]), rtol=0, atol=1e-10
    )
    assert len(found.neighbours) == 20
    nearest = found.neighbours[0]
    assert (np.diff(nearest.weights) <= 0).all() and len(nearest.rows) >= 50
    assert "nearest" in found.note or "all" in found.note
    assert "training row" in repr(found)


def test_log_odds_of_two_classes_are_the_sum_of_the_evidence(two):
    X, y = two
    clf = sy.NaiveBayes().fit(X, y)
    evidence = clf.explain_local(X[3:4]).evidence(target="bee")
    odds = np.diff(clf.predict_log_proba(X[3:4])[0])[0]
    assert evidence.total == pytest.approx(odds, abs=1e-12)
    sizes = [abs(item.amount) for item in evidence.items]
    assert sizes == sorted(sizes, reverse=True)


def test_calibrated_probabilities_scale_the_evidence(two):
    X, y = two
    clf = sy.method("ENB", calibrated=True).fit(X, y)
    found = clf.explain_local(X[:1])
    assert found.link_scale == 2.0
    odds = np.diff(clf.predict_log_proba(X[:1])[0])[0]
    assert found.evidence(target="bee").total == pytest.approx(odds, abs=1e-12)


def test_missing_and_unseen_cells_are_shown_as_such(mixed):
    X, y = mixed
    clf = sy.NaiveBayes().fit(X, y)
    row = pd.DataFrame(
        {"colour": ["mauve"], "length": [np.nan], "width": [1.0], "striped": [True]}
    )
    found = clf.explain_local(row)
    assert found.values[0][:2] == ["mauve (unseen)", "(missing)"]
    assert found.missing[0].tolist() == [False, True, False, False]
    # They add nothing, where the average row adds the mean.
    np.testing.assert_array_equal(found.contributions[0, :2], -clf.model_.centre[:2])
    imputed = sy.NaiveBayes(missing="impute").fit(X, y).explain_local(row)
    assert imputed.values[0][1].startswith("(missing, taken as ")
    valued = sy.NaiveBayes(missing="value").fit(X, y).explain_local(row)
    assert valued.values[0][1] == "(missing)"
    assert valued.contributions[0, 1].any()


def test_a_mixture_says_so_and_shows_both_halves(mixed):
    X, y = mixed
    clf = sy.method("RNB").fit(X, y)
    found = clf.explain_local(X[:5])
    assert found.kind == "mixture" and found.note.startswith("Not one sum")
    assert found.contributions is None
    halves = [part.explanation.probabilities * part.share for part in found.parts]
    np.testing.assert_allclose(sum(halves), clf.predict_proba(X[:5]), atol=1e-12)
    assert found.parts[0].share == clf.alpha_
    with pytest.raises(ParameterError, match="Ask its parts"):
        found.evidence()
    assert found.parts[1].explanation.evidence(0).items


def test_votes_and_pairs_show_their_parts(mixed):
    X, y = mixed
    boosted = sy.BoostedNB(rounds=4).fit(X, y)
    found = boosted.explain_local(X[:2])
    assert found.kind == "vote"
    assert [part.share for part in found.parts] == boosted.votes_.tolist()
    pairs = sy.method("ENB", multiclass="one-vs-one").fit(X, y).explain_local(X[:2])
    assert [part.name for part in pairs.parts] == [
        "ant or bee",
        "ant or cat",
        "bee or cat",
    ]
    total = sum(p.explanation.probabilities.sum() * p.share for p in pairs.parts)
    assert total == pytest.approx(2.0)


def test_explanations_are_plain_data_for_json(case):
    clf, X = case
    text = json.dumps(clf.explain_local(X[:3]).to_dict(), allow_nan=False)
    assert json.loads(text)["classes"] == ["ant", "bee", "cat"]


def test_text_names_the_classes_and_the_largest_evidence(two):
    X, y = two
    found = sy.NaiveBayes().fit(X, y).explain_local(X[:5])
    text = repr(found)
    assert "row 2:" in text and "2 more rows" in text
    assert "evidence in log-odds" in text and "average row" in text


def test_bad_requests_are_refused(two):
    X, y = two
    found = explain_local(sy.NaiveBayes().fit(X, y), X[:2])
    with pytest.raises(ParameterError, match="no row 2"):
        found.evidence(2)
    with pytest.raises(ParameterError, match="'cow' is not among"):
        found.evidence(target="cow")
    with pytest.raises(ParameterError, match="two different classes"):
        found.evidence(target="bee", against="bee")
    with pytest.raises(ParameterError, match="are not columns"):
        found.counterfactual(fixed=["size"])
