"""What a column says alone: after chunks, edits, merged values, priors, constraints."""

import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard.explain.page import page_data
from tests.notices.test_thresholds import tariffs

SETTINGS = {"strength": (2.0, 8.0, 2.0), "interactions": None}


@pytest.fixture(scope="module")
def table():
    return tariffs(-0.06, n=600)


@pytest.fixture(scope="module")
def fitted(table):
    return sy.ShrinkageNB(**SETTINGS).fit(*table)


def alone(clf, column="price"):
    return clf.explain_global().table(column).alone


def known(clf, X, column="price"):
    """Return answers to rows of which one column is known."""
    return clf.predict_proba(X[[column]].reindex(columns=X.columns))


def drawn(clf):
    """Return how many dashed curves there are in the picture of the price."""
    pytest.importorskip("matplotlib")
    (axes,) = clf.plot("price").figure_.axes[:1]
    return sum(patch.get_linestyle() == "--" for patch in axes.patches)


def test_chunks_have_the_shares_of_one_fit(table):
    X, y = table
    whole = sy.ShrinkageNB(**SETTINGS).partial_fit(X, y)
    parts = sy.ShrinkageNB(**SETTINGS)
    for rows in (slice(0, 250), slice(250, 251), slice(251, None)):
        parts.partial_fit(X[rows], y[rows], classes=[0, 1])
    np.testing.assert_allclose(
        parts.model_.marginal.plain, whole.model_.marginal.plain, atol=1e-9
    )
    np.testing.assert_allclose(alone(parts), alone(whole), atol=1e-9)
    np.testing.assert_allclose(known(parts, X), known(whole, X), atol=1e-9)
    assert drawn(parts) == drawn(whole) == 1


def test_other_shares_of_classes_move_answers_and_no_curve(fitted, table):
    X, _ = table
    rarer = fitted.with_prior({1: 0.05})
    np.testing.assert_allclose(alone(rarer), alone(fitted), atol=1e-9)
    ratio = np.exp(rarer.class_log_prior_ - fitted.class_log_prior_)
    expected = known(fitted, X) * ratio
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(known(rarer, X), expected, atol=1e-12)
    assert drawn(rarer) == 1
    # The page multiplies by the same ratio.
    moments = page_data(rarer)["model"]["marginal"]
    np.testing.assert_allclose(moments["log_ratio"], np.log(ratio), atol=1e-12)


EDITS = {
    "removed": [{"column": "price", "remove": True}],
    "flat": [{"column": "price", "from": 20.0, "to": 60.0, "flatten": True}],
    "scaled": [{"column": "price", "scale": 0.5}],
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_column_says_nothing_alone_by_its_counts(name, fitted, table):
    X, _ = table
    edited = fitted.edited(EDITS[name])
    rows = slice(*edited.model_.schema.offsets[1:3])
    assert not edited.model_.marginal.plain[rows].any()
    assert not edited.model_.marginal.plain_noise[1]
    assert not edited.model_.marginal.plain_loadings[1].any()
    assert alone(edited) is None and drawn(edited) == 0
    if name == "removed":
        rates = np.exp(fitted.class_log_prior_)
        np.testing.assert_allclose(known(edited, X), np.tile(rates, (len(X), 1)))
    undone = edited.unedited()
    np.testing.assert_array_equal(alone(undone), alone(fitted))
    np.testing.assert_array_equal(known(undone, X), known(fitted, X))


def test_merged_values_of_another_column_leave_a_curve_as_it_is(fitted, table):
    X, _ = table
    merged = fitted.edited({"column": "service", "values": ["a", "b"], "merge": True})
    np.testing.assert_array_equal(alone(merged), alone(fitted))
    np.testing.assert_allclose(known(merged, X), known(fitted, X), atol=1e-12)
    one, other = (
        known(merged, X.assign(service=value), "service")[0] for value in "ab"
    )
    np.testing.assert_allclose(one, other, atol=1e-12)


def test_a_constrained_column_has_no_curve_beside_it(table):
    X, y = table
    clf = sy.ShrinkageNB(constraints={"price": "decreasing"}, **SETTINGS).fit(X, y)
    assert alone(clf) is None and drawn(clf) == 0
    answers = known(clf, X)[np.argsort(X["price"].to_numpy()), 1]
    assert (np.diff(answers) <= 1e-12).all()


def test_what_all_changes_together_leave_is_kept_in_a_file(fitted, table, tmp_path):
    X, _ = table
    changed = fitted.with_prior({1: 0.2}).edited({"column": "noise", "remove": True})
    changed.save(tmp_path / "model.json")
    loaded = sy.load(tmp_path / "model.json")
    np.testing.assert_array_equal(alone(loaded), alone(changed))
    np.testing.assert_array_equal(known(loaded, X), known(changed, X))
    nothing = pd.DataFrame(columns=X.columns, index=[0])
    np.testing.assert_allclose(loaded.predict_proba(nothing)[0], [0.8, 0.2], atol=1e-9)
