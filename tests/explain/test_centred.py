"""What is shown is told from the average training row; predictions are as they were."""

import json
import os

import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard.explain.reasons import reasons
from steelyard.lab.data.datasets import load_dataset
from steelyard.model.table_model import centred

DATA = os.environ.get("STEELYARD_DATA")

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

METHODS = {
    # Of rows with missing cells these are sums, as those of the other methods.
    "default": lambda: sy.ShrinkageNB(strength=(2.5, 10.0, 2.5), unknown="sum"),
    "interactions": lambda: sy.ShrinkageNB(
        strength=(2.5, 10.0, 2.5),
        unknown="sum",
        interactions=[("colour", "width"), ("colour", "striped")],
    ),
    "NB": sy.NaiveBayes,
    "gaussian": lambda: sy.NaiveBayes(numeric="gaussian"),
    "weka": lambda: sy.NaiveBayes(numeric="gaussian-weka"),
    "relative": lambda: sy.WeightedNB(numeric="gaussian-relative"),
    "value": lambda: sy.NaiveBayes(missing="value"),
    "class weights": lambda: sy.WeightedNB(class_weight="balanced"),
    "DWNB": lambda: sy.method("DWNB"),
    "TAN": sy.TreeAugmentedNB,
    "RNB": lambda: sy.method("RNB"),
    "one-vs-one": lambda: sy.WeightedNB(multiclass="one-vs-one", numeric="gaussian"),
    "boosted": lambda: sy.BoostedNB(rounds=2),
}


def sums(explanation):
    """All explanations of sums, with the classes that each has."""
    if explanation.contributions is not None:
        return [explanation]
    return [found for part in explanation.parts for found in sums(part.explanation)]


@pytest.mark.parametrize("has_weights", [False, True])
@pytest.mark.parametrize("name", METHODS)
def test_the_mean_of_a_column_over_the_training_rows_is_zero(name, has_weights, mixed):
    X, y = mixed
    weights = np.random.default_rng(3).random(len(y)) if has_weights else None
    clf = METHODS[name]().fit(X, y, sample_weight=weights)
    u = np.ones(len(y)) if weights is None else weights
    every = sums(clf.explain_local(X))
    assert every
    for found in every:
        own = np.where(np.isin(y, found.classes), u, 0.0)
        assert found.missing.any()
        mean = np.tensordot(own, found.contributions, (0, 0)) / own.sum()
        np.testing.assert_allclose(mean, 0.0, atol=1e-9)
        total = found.base + found.contributions.sum(axis=1)
        np.testing.assert_allclose(total, found.scores, rtol=1e-9)
        expected = own @ found.scores / own.sum()
        np.testing.assert_allclose(found.base[0], expected, rtol=1e-9)


def test_chunks_have_the_centre_of_all_their_rows(mixed):
    X, y = mixed
    whole = sy.NaiveBayes(numeric="gaussian").fit(X, y)
    parts = sy.NaiveBayes(numeric="gaussian")
    for rows in (slice(0, 90), slice(90, None)):
        parts.partial_fit(X[rows], y[rows], classes=np.unique(y))
    np.testing.assert_allclose(parts.model_.centre, whole.model_.centre, atol=1e-9)


def test_a_file_has_the_centre(mixed, tmp_path):
    X, y = mixed
    clf = sy.ShrinkageNB(strength=(2.5, 10.0, 2.5)).fit(X, y)
    path = tmp_path / "model.json"
    clf.save(path)
    assert np.array_equal(sy.load(path).model_.centre, clf.model_.centre)
    content = json.loads(path.read_text())["content"]
    assert np.shape(content["model"]["centre"]) == clf.model_.centre.shape


def test_reasons_are_the_same_from_frames_and_from_the_scorer(mixed):
    X, y = mixed
    clf = sy.ShrinkageNB(strength=(2.5, 10.0, 2.5)).fit(X, y)
    score = clf.scorer()
    rows = X[:20].to_dict("records")
    for row, told in zip(rows, reasons(clf, X[:20], 4), strict=True):
        found = score.reasons({k: None if v != v else v for k, v in row.items()}, 4)
        assert found == pytest.approx({r.attribute: r.amount for r in told})


def test_a_constant_that_moves_from_column_to_column_is_not_seen(mixed):
    X, y = mixed
    clf = sy.NaiveBayes().fit(X, y)
    before = clf.explain_local(X).contributions, clf.feature_importances_
    table, schema = clf.model_.table, clf.model_.schema
    shift = np.array([3.0, -1.0, 2.0])
    table[schema.offsets[0] : schema.offsets[1]] += shift
    table[schema.offsets[1] : schema.offsets[2]] -= shift
    object.__setattr__(clf, "model_", centred(clf.model_, clf.counts_))
    np.testing.assert_allclose(clf.explain_local(X).contributions, before[0])
    np.testing.assert_allclose(clf.feature_importances_, before[1])


@pytest.mark.skipif(not DATA, reason="STEELYARD_DATA names no folder of data sets")
def test_white_speaks_for_a_high_income():
    """25.4 % of the rows that are White have one, 23.9 % of all."""
    data = load_dataset("adult")
    X, y = data.table[:5000], data.target[:5000]
    clf = sy.ShrinkageNB(strength=(10.0, 40.0, 10.0)).fit(X, y)
    table = clf.explain_global().table("race")
    evidence = dict(zip(table.labels, table.evidence[:, 1], strict=True))
    assert evidence["White"] > 0.0 > evidence["Black"]


def test_a_nomogram_gives_the_probability_of_a_row(mixed):
    X, y = mixed
    y = np.where(y == np.unique(y)[0], "a", "b")
    clf = sy.NaiveBayes().fit(X, y)
    whole = clf.explain_global()
    start = whole.base - sum(table.mean for table in whole.tables)
    np.testing.assert_allclose(start, clf.model_.log_prior, atol=1e-12)
    row = pd.DataFrame({name: [None] for name in X.columns})
    found = clf.explain_local(row).evidence(target="b")
    rate = float(np.exp(clf.class_log_prior_[1]))
    assert found.probability == pytest.approx(rate)
    assert found.total == pytest.approx(np.log(rate / (1.0 - rate)))
