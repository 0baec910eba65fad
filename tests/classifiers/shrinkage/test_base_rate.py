"""With nothing known the default answers the base rate; cells count as before."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import steelyard as sy

STRENGTH = (2.5, 10.0, 2.5)


def table(n_classes, n=300):
    rng = np.random.default_rng(n_classes)
    y = rng.choice(
        n_classes, n, p=np.arange(1, n_classes + 1) / (n_classes + 1) / n_classes * 2
    )
    X = pd.DataFrame(
        {
            "size": rng.normal(size=n) + y,
            "heat": np.exp(rng.normal(size=n)) * (1 + y),
            "kind": np.array(list("abcd"))[np.minimum(rng.poisson(1 + y), 3)],
        }
    )
    return X, y


def unknown(X):
    rows = X[:1].copy()
    rows["size"], rows["heat"], rows["kind"] = np.nan, np.nan, None
    return rows


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("settings", [{}, {"interactions": [("size", "kind")]}])
def test_with_nothing_known_the_answer_is_the_base_rate(n_classes, settings):
    X, y = table(n_classes)
    clf = sy.ShrinkageNB(strength=STRENGTH, **settings).fit(X, y)
    expected = np.exp(clf.class_log_prior_)
    np.testing.assert_allclose(clf.predict_proba(unknown(X))[0], expected, rtol=1e-12)
    np.testing.assert_allclose(expected, np.bincount(y) / len(y), atol=0.005)
    base = clf.model_.log_prior
    np.testing.assert_allclose(base, clf.class_log_prior_ / clf.scale_)
    shown = clf.explain_local(unknown(X))
    total = shown.base[0] + shown.contributions[0].sum(axis=0)
    np.testing.assert_allclose(total, base)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_without_a_missing_cell_are_predicted_as_before(n_classes, request):
    X, y = table(n_classes)
    proba = sy.ShrinkageNB(strength=STRENGTH).fit(X, y).predict_proba(X)
    request.getfixturevalue("as_solved")
    before = sy.ShrinkageNB(strength=STRENGTH, unknown="sum").fit(X, y)
    np.testing.assert_allclose(proba, before.predict_proba(X), rtol=1e-9)
    assert (
        np.abs(before.predict_proba(unknown(X))[0] - np.bincount(y) / len(y)).max()
        > 1e-3
    )


def test_a_weight_of_classes_is_part_of_the_base_rate():
    X, y = table(2)
    clf = sy.ShrinkageNB(strength=STRENGTH, class_weight="balanced").fit(X, y)
    np.testing.assert_allclose(clf.predict_proba(unknown(X))[0], [0.5, 0.5], rtol=1e-9)


def test_columns_that_say_nothing_leave_the_model_as_it_was():
    X = pd.DataFrame({"one": ["a"] * 40})
    clf = sy.ShrinkageNB(strength=STRENGTH).fit(X, [0, 1, 1, 1] * 10)
    assert np.isfinite(clf.predict_proba(X)).all()
