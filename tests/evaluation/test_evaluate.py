"""Evaluating in Python: cross-validation, fitted models, thresholds."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, precision_recall_fscore_support
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.svm import LinearSVC

import steelyard as sy
from steelyard.evaluation.evaluate import evaluate, evaluate_chunks, thresholds
from steelyard.exceptions import ParameterError, TableError

X, y = load_breast_cancer(return_X_y=True)


def test_cross_validation_has_the_predictions_of_scikit_learn():
    result = evaluate(sy.NaiveBayes(), X, y, folds=4, seed=3)
    splits = StratifiedKFold(4, shuffle=True, random_state=3)
    expected = cross_val_predict(sy.NaiveBayes(), X, y, cv=splits)
    assert np.array_equal(result.predicted, expected)
    assert result.confusion.sum() == len(y)
    assert set(result.spread) == set(result.metrics)


def test_a_fitted_model_is_measured_as_it_is_and_cross_validated_on_request():
    model = sy.NaiveBayes().fit(X[::2], y[::2])
    result = evaluate(model, X[1::2], y[1::2])
    expected = accuracy_score(y[1::2], model.predict(X[1::2]))
    assert result.metrics["accuracy"] == pytest.approx(expected)
    assert result.spread is None
    assert evaluate(model, X, y, folds=2).spread is not None


def test_chunks_add_up_to_the_whole():
    model = sy.NaiveBayes().fit(X[::2], y[::2])
    whole = evaluate(model, X, y).to_dict()
    chunks = [(X[k : k + 100], y[k : k + 100]) for k in range(0, len(y), 100)]
    assert evaluate_chunks(model, [(X[:0], y[:0]), *chunks]).to_dict() == whole


def test_results_are_shown_and_written_as_json():
    table = pd.DataFrame(X[:, :3], columns=["a", "b", "c"])
    result = evaluate(sy.NaiveBayes(), table, y, folds=3, costs=(1, 20))
    text = repr(result)
    for word in ("3-fold", "log-loss", "recall", "Calibration", "least cost"):
        assert word in text
    document = json.loads(json.dumps(result.to_dict()))
    assert document["thresholds"]["positive"] == 1
    assert sum(entry["rows"] for entry in document["reliability"]) == len(y)


def test_any_classifier_can_be_measured():
    result = evaluate(LinearSVC(), *load_iris(return_X_y=True), folds=3)
    assert result.metrics["accuracy"] > 0.9
    assert result.metrics["log_loss"] is None
    assert (result.proba, result.thresholds, result.reliability) == (None, None, [])
    weights = np.where(y == 1, 100, 1)
    plain, weighted = (
        evaluate(LogisticRegression(), X[:, :1], y, sample_weight=w, folds=2)
        for w in (None, weights)
    )
    assert weighted.confusion[0, 1] > plain.confusion[0, 1]


def test_a_class_that_training_does_not_see_is_wrong_and_counted():
    labels = np.where(np.arange(len(y)) == 5, "rare", y.astype(str))
    with pytest.warns(UserWarning, match="1 of 3 classes have fewer rows"):
        result = evaluate(sy.NaiveBayes(), X[:, :2], labels, folds=3)
    assert result.n_unseen == 1
    assert result.confusion[2, 2] == 0


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"folds": 1}, ParameterError, "at least 2"),
        ({"folds": 500}, TableError, "use `folds=357` or fewer"),
        ({"costs": (1,)}, ParameterError, "such as 1,20"),
        ({"costs": (0, 0)}, ParameterError, "such as 1,20"),
        ({"costs": (-1, 2)}, ParameterError, "such as 1,20"),
    ],
)
def test_wrong_settings_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        evaluate(sy.NaiveBayes(), X, y, **options)


def test_labels_that_cannot_be_measured_are_refused():
    with pytest.raises(TableError, match="one class"):
        evaluate(sy.NaiveBayes(), X, np.zeros(len(y)))
    model = sy.NaiveBayes().fit(X, y)
    with pytest.raises(TableError, match="is a class of the model: 0, 1"):
        evaluate(model, X, np.full(len(y), "other"))
    with pytest.raises(ParameterError, match="among the classes: 0, 1"):
        evaluate(model, X, y, positive=2)


# --------------------------------------------------------------------------- thresholds


def test_thresholds_agree_with_scikit_learn():
    rng = np.random.default_rng(0)
    positive = rng.random(200) < 0.3
    proba = np.round(np.clip(0.3 * positive + 0.5 * rng.random(200), 0, 1), 2)
    found = thresholds(positive, proba, (1.0, 4.0))

    def f1(threshold):
        scores = precision_recall_fscore_support(
            positive, proba >= threshold, average="binary", zero_division=0
        )
        return scores[:3]

    for entry in found["table"]:
        values = entry["precision"], entry["recall"], entry["f1"]
        assert values == pytest.approx(f1(entry["threshold"]))
    every = np.unique(proba)
    assert found["best_f1"]["f1"] == pytest.approx(max(f1(t)[2] for t in every))
    costs = [
        ((proba >= t) & ~positive).sum() + 4 * ((proba < t) & positive).sum()
        for t in every
    ]
    assert found["best_cost"]["cost"] == min(costs)


def test_where_alarms_cost_too_much_no_row_is_chosen():
    found = thresholds(np.array([1, 0, 0]), np.array([0.2, 0.9, 1.0]), (9, 1))
    assert found["best_cost"]["threshold"] > 1
    assert found["best_cost"]["cost"] == 1
