"""Every model answers for itself: predictions, kind, parts and terms."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris

import steelyard as sy

# The word of a model file, a method whose model is of that kind, and its settings.
KINDS = [
    ("sum", "NB", {}),
    ("sum", "GNB", {}),
    ("mixture", "RNB", {"lam": 1.0}),
    ("pairs", "ENB", {"multiclass": "one-vs-one", "lam": 1.0}),
    ("votes", "BNB", {}),
    ("neighbours", "LWNB", {}),
    ("neighbours", "LWNB", {"numeric": "gaussian"}),
    ("matches", "AIWNB-L", {}),
]


@pytest.fixture(params=KINDS, ids=lambda entry: f"{entry[0]}-{entry[1]}")
def case(request):
    """Return the expected kind, a fitted classifier, encoded rows and their classes."""
    kind, acronym, settings = request.param
    X, y = load_iris(return_X_y=True)
    X[::7, 1] = np.nan
    clf = sy.method(acronym, **settings).fit(X, y)
    return kind, clf, clf._encode(X[::5]), y[::5].astype(np.uint32)


def test_the_kind_is_the_word_in_the_file(case, tmp_path):
    kind, clf, _, _ = case
    assert clf.model_.kind == kind
    clf.save(tmp_path / "model.json")
    document = json.loads((tmp_path / "model.json").read_text())
    assert document["content"]["model"]["kind"] == kind


def test_predictions_agree_with_each_other(case):
    _, clf, codes, y = case
    model = clf.model_
    proba = model.proba(codes)
    rows = np.arange(len(y))
    assert_allclose(proba.sum(axis=1), 1.0)
    assert_allclose(np.exp(model.log_proba(codes)), proba, atol=1e-12)
    assert_array_equal(model.true_proba(codes, y), proba[rows, y])
    winners = model.winners(codes)
    assert_array_equal(model.classes[winners], model.predict(codes))
    assert_allclose(proba[rows, winners], proba.max(axis=1), atol=1e-12)


def test_terms_add_up_to_the_scores_or_there_are_parts(case):
    _, clf, codes, _ = case
    model, terms = clf.model_, clf.model_.terms(codes)
    assert (terms is None) == bool(model.parts())
    if terms is not None:
        base, added = terms
        assert_allclose(base + added.sum(axis=1), model.scores(codes), atol=1e-10)
    assert model.is_sum == (model.first_sum() is model)
    assert model.note().startswith("The score" if model.is_sum else "Not one sum")


def test_parts_know_their_classes(case):
    _, clf, codes, _ = case
    model = clf.model_
    for part in model.parts():
        assert_array_equal(part.model.classes, model.classes[list(part.classes)])
        assert part.model.proba(codes).shape == (codes.n_rows, len(part.classes))
        assert part.share >= 0.0 and part.name


def test_a_vote_of_one_is_its_voter():
    X, y = load_iris(return_X_y=True)
    single = sy.BoostedNB(rounds=1).fit(X, y).model_
    assert single.simplified() is single.models[0]
    several = sy.BoostedNB(rounds=5).fit(X, y).model_
    assert len(several.models) > 1 and several.simplified() is several
