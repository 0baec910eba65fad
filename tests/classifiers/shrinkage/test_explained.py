"""Explanations of models of fine bins, in which readers see numbers."""

import json
import os

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris

import steelyard as sy
from steelyard.explain.page import page_data
from steelyard.explain.shared import typical_numbers

DATA = os.environ.get("STEELYARD_DATA")


@pytest.fixture(scope="module", params=["iris", "cancer", "credit-g"])
def fitted(request):
    """A model of a real table, and the table."""
    if request.param == "credit-g":
        if not DATA:
            pytest.skip("STEELYARD_DATA names no folder of data sets")
        from steelyard.lab.data.datasets import load_dataset

        data = load_dataset("credit-g", DATA)
        X, y = data.table, data.target
    else:
        load = {"iris": load_iris, "cancer": load_breast_cancer}[request.param]
        X, y = load(return_X_y=True, as_frame=True)
    return sy.ShrinkageNB(strength=(2.5, 10.0, 2.5)).fit(X, y), X


def test_contributions_of_columns_add_up_to_the_scores(fitted):
    clf, X = fitted
    found = clf.explain_local(X[:30])
    scores = clf.predict_joint_log_proba(X[:30])
    assert found.attributes == list(X.columns)
    assert found.contributions.shape == (30, X.shape[1], len(clf.classes_))
    total = found.base + found.contributions.sum(axis=1)
    np.testing.assert_allclose(total, scores, rtol=0, atol=1e-10)
    json.dumps(found.to_dict())


def test_a_counterfactual_changes_cells_of_the_table(fitted):
    clf, X = fitted
    for i in range(3):
        found = clf.explain_local(X[i : i + 1]).counterfactual()
        assert found.found and found.changes
        row = X[i : i + 1].astype(object).copy()
        for change in found.changes:
            is_number = pd.api.types.is_numeric_dtype(X[change.attribute])
            value = float(change.after) if is_number else change.after
            row[change.attribute] = [value]
        # What the explanation promises is what the classifier says of such a row.
        changed = row.astype(X.dtypes.astype(object).map(_wider).to_dict())
        np.testing.assert_allclose(
            clf.predict_proba(changed)[0], found.after, rtol=0, atol=1e-9
        )
        assert str(clf.predict(changed)[0]) == found.target


def _wider(dtype):
    return float if pd.api.types.is_numeric_dtype(dtype) else dtype


def test_fixed_columns_do_not_change(fitted):
    clf, X = fitted
    found = clf.explain_local(X[:1])
    first = found.counterfactual().changes[0].attribute
    other = found.counterfactual(fixed=[first])
    assert first not in [change.attribute for change in other.changes]


def test_importance_and_tables_are_by_column(fitted):
    clf, X = fitted
    whole, by_rows = clf.explain_global(), clf.explain_global(X)
    assert whole.attributes == list(X.columns)
    assert len(whole.tables) == len(whole.importance) == X.shape[1]
    np.testing.assert_allclose(whole.importance, by_rows.importance, rtol=1e-9)
    assert all(name in repr(whole) for name in X.columns)
    json.dumps(whole.to_dict())


def test_value_tables_say_what_the_classifier_adds(fitted):
    clf, X = fitted
    whole = clf.explain_global()
    number = next(c for c in X.columns if pd.api.types.is_numeric_dtype(X[c]))
    table = whole.table(number)
    assert table.kind == "binned"
    rows = pd.concat([X[:1]] * len(table.numbers), ignore_index=True)
    rows = rows.astype({number: float})
    rows[number] = table.numbers
    j = list(X.columns).index(number)
    expected = clf.explain_local(rows).contributions[:, j]
    np.testing.assert_allclose(
        table.contributions[1 : len(expected) + 1], expected, atol=1e-10
    )
    assert number in repr(table)


def test_a_page_has_one_control_for_each_column(fitted):
    clf, X = fitted
    data = page_data(clf)
    assert [own["name"] for own in data["attributes"]] == list(X.columns)
    assert sorted(data["order"]) == list(range(X.shape[1]))
    for j, own in enumerate(data["attributes"]):
        if own["kind"] == "number":
            terms = [t for t in data["model"]["terms"] if t["column"] == j]
            assert terms
            assert own["low"] < own["high"]


def test_united_cut_points_are_one_table(mixed):
    X, y = mixed
    clf = sy.NaiveBayes(numeric=("mdl", "equal-frequency")).fit(X, y)
    table = clf.explain_global().table("length")
    (feature,) = (f for f in clf.encoder_.schema_.features if f.name == "length")
    edges = list(feature.edges)
    assert list(table.edges) == edges and len(feature.cuts) == 2
    assert table.points is None and len(table.labels) == len(edges) + 2
    found = clf.explain_local(X)
    np.testing.assert_allclose(
        found.contributions.sum(axis=1) + found.base,
        clf.predict_joint_log_proba(X),
        atol=1e-10,
    )
    changed = found.counterfactual(0)
    assert changed.found


def test_typical_numbers_are_within_their_intervals():
    random = np.random.default_rng(0)
    for scale in (1e-9, 1.0, 1e12):
        edges = np.unique(np.cumsum(random.exponential(size=20)) * scale + scale)
        numbers = typical_numbers(edges)
        np.testing.assert_array_equal(np.searchsorted(edges, numbers), np.arange(21))
    close = 1.0 + np.arange(1, 5) * 1e-14
    np.testing.assert_array_equal(
        np.searchsorted(close, typical_numbers(close)), np.arange(5)
    )


@pytest.mark.parametrize("missing", ["skip", "value", "impute"])
def test_missing_cells_are_named_once(missing, mixed, fixed):
    X, y = mixed
    clf = fixed(missing=missing).fit(X, y)
    row = X[:1].assign(width=np.nan)
    found = clf.explain_local(row)
    assert found.missing[0].tolist() == [False, False, True, False]
    text = found.values[0][2]
    assert text.startswith("(missing")
    assert ("taken as" in text) == (missing == "impute")
    assert len(found.evidence().items) == 4
