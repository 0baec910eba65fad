"""Selections come back from files, and keep scikit-learn's contract."""

import json

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import steelyard as sy
from steelyard.persistence.content import content_of, estimator_from
from steelyard.persistence.reader import InvalidContentError


@pytest.mark.parametrize("select_only", [False, True])
@pytest.mark.parametrize("nameless", [False, True])
def test_saved_selections_come_back(weather, tmp_path, select_only, nameless):
    X, y = weather
    X = X.to_numpy() if nameless else X
    clf = sy.SPSSNaiveBayes(forced=[3, 0], select_only=select_only, random_state=1)
    clf.fit(X, y, X_test=X[:5], y_test=y[:5]).save(tmp_path / "model.json")
    again = sy.load(tmp_path / "model.json")
    assert again.get_params() == clf.get_params()
    assert again.selected_features_ == clf.selected_features_
    assert again.selection_path_ == clf.selection_path_
    assert repr(again.selection_path_) == repr(clf.selection_path_)
    assert again.search_end_ == clf.search_end_
    assert again.case_processing_ == clf.case_processing_
    assert repr(again.case_processing_) == repr(clf.case_processing_)
    assert hasattr(again, "classification_table_") is not select_only
    assert hasattr(again, "error_") is not select_only
    np.testing.assert_array_equal(again.transform(X), clf.transform(X))
    if not select_only:
        assert again.error_ == clf.error_
        assert again.classification_table_ == clf.classification_table_
        np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("selected_features_", ["outlook", "outlook"]),
        ("selected_features_", ["nobody"]),
        ("selected_features_", [0]),
        ("selected_features_", "outlook"),
        ("selection_path_", {}),
        ("search_end_", "never"),
        ("error_", 1.5),
    ],
)
def test_made_up_selections_are_refused(weather, key, value):
    content = json.loads(json.dumps(content_of(sy.SPSSNaiveBayes().fit(*weather))))
    content["fitted"][key] = value
    with pytest.raises(InvalidContentError, match=key):
        estimator_from(content)


@parametrize_with_checks(
    [
        sy.SPSSNaiveBayes(selection="none", divisor="observed"),
        sy.SPSSNaiveBayes(b_method="simulate", n_simulated=50),
        sy.SPSSNaiveBayes(categorical_features="all", n_jobs=2),
    ]
)
def test_estimator_keeps_the_contract(estimator, check):
    check(estimator)
