"""Baselines that are not scikit-learn's get the tables as they need them."""

import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from steelyard.exceptions import ParameterError
from steelyard.lab import baselines


def digits():
    """Return a table that tempts EBM to take text and truths for numbers."""
    numbers = np.arange(80) % 7 + 0.5
    table = pd.DataFrame({"number": numbers, "text": [f"{i:02}" for i in range(80)]})
    table["truth"] = table.index % 3 == 0
    table["empty"] = np.nan
    table["kind"] = pd.Categorical(["a", "b", None, "b"] * 20)
    table.loc[5, ["number", "text"]] = None
    return table


def test_ebm_gets_the_categorical_columns():
    table = baselines._as_categories(digits())
    kinds = [isinstance(dtype, pd.CategoricalDtype) for dtype in table.dtypes]
    assert kinds == [False, True, True, False, True]
    found, expected = (
        frame.astype(object).where(frame.notna(), None) for frame in (table, digits())
    )
    pd.testing.assert_frame_equal(found, expected)


# EBM warns that it cannot draw what it makes of missing values.
@pytest.mark.filterwarnings("ignore")
def test_ebm_is_the_same_each_time_and_knows_classes_of_one_row():
    pytest.importorskip("interpret", reason="interpret-core is not installed")
    labels = np.where(np.arange(80) % 2, "no", "yes").astype(object)
    labels[:2] = ["once", "alone"]
    ebm = baselines.baseline("ebm", outer_bags=2, max_rounds=20)
    proba = ebm.fit(digits(), labels.astype(str)).predict_proba(digits())
    again = ebm.fit(digits(), labels.astype(str)).predict_proba(digits())
    kinds = ["continuous", "nominal", "nominal", "continuous", "nominal"]
    assert ebm[-1].feature_types_in_ == kinds and ebm[-1].n_jobs == 1
    assert list(ebm.classes_) == ["alone", "no", "once", "yes"]
    np.testing.assert_array_equal(proba, again)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    with pytest.raises(ParameterError, match="ebm cannot be made like this"):
        baselines.baseline("ebm", trees=1)


def test_catboost_gets_the_categorical_columns(monkeypatch):
    class Recorder:
        def __init__(self, **settings):
            self.settings, self.classes_ = settings, np.array(["no", "yes"])

        def fit(self, table, labels, cat_features):
            self.table, self.told = table, cat_features

        def predict(self, table):
            return np.full((len(table), 1), "no")

    stub = SimpleNamespace(CatBoostClassifier=Recorder)
    monkeypatch.setitem(sys.modules, "catboost", stub)
    clf = baselines.CatBoostTable({"depth": 4}).fit(digits(), ["no", "yes"] * 40)
    assert clf.model_.told == ["text", "truth", "kind"]
    assert clf.model_.settings["depth"] == 4
    assert clf.model_.settings["thread_count"] == 1
    assert (
        clf.model_.table.loc[5, "text"] == "" and clf.model_.table.loc[2, "kind"] == ""
    )
    assert clf.model_.table["number"].isna().sum() == 1
    assert clf.predict(digits()).shape == (80,)
