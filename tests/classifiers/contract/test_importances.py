"""feature_importances_: what scikit-learn's selectors go by."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import RFE, SelectFromModel

import steelyard as sy


def table():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 200)
    noise = rng.normal(size=(200, 2))
    X = pd.DataFrame(
        {"a": noise[:, 0], "b": rng.normal(size=200) + 2 * y, "c": y * 1.0}
    )
    X.loc[::6, "c"] = noise[::6, 1]
    return X, y


@pytest.mark.parametrize(
    "clf", [sy.NaiveBayes(), sy.WeightedNB(), sy.ShrinkageNB(strength=(2.5, 10.0, 2.5))]
)
def test_selectors_of_scikit_learn_find_the_columns_that_tell(clf):
    X, y = table()
    chosen = SelectFromModel(clf, threshold="median").fit(X, y).get_feature_names_out()
    assert set(chosen) == {"b", "c"}
    assert RFE(clf, n_features_to_select=2).fit(X, y).support_.tolist() == [0, 1, 1]


def test_importances_are_those_of_the_explanation_with_interactions_split():
    X, y = table()
    clf = sy.ShrinkageNB(strength=(2.5, 10.0, 2.5), interactions=[("a", "b")]).fit(X, y)
    whole = clf.explain_global().importance
    half = whole[3] / 2.0
    expected = [whole[0] + half, whole[1] + half, whole[2]]
    np.testing.assert_allclose(clf.feature_importances_, expected)


def test_without_a_fit_or_without_rows_there_are_none():
    X, y = table()
    with pytest.raises(NotFittedError):
        _ = sy.NaiveBayes().feature_importances_
    lazy = sy.LocallyWeightedNB().fit(X, y)
    with pytest.raises(AttributeError, match=r"explain_global\(X\)"):
        _ = lazy.feature_importances_
