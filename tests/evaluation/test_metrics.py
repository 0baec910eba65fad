"""Metrics agree with scikit-learn, and say what they do where it has no answer."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as theirs

from steelyard.evaluation.metrics import (
    auc,
    calibration_error,
    log_loss,
    score_predictions,
)


def draw(seed, n=200, n_classes=4, ties=False):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.ones(n_classes), n)
    if ties:
        proba = np.round(proba * 5 + 0.1)
        proba /= np.maximum(proba.sum(axis=1, keepdims=True), 1.0)
        proba[:, 0] += 1.0 - proba.sum(axis=1)
    true = np.array([rng.choice(n_classes, p=p) for p in np.abs(proba)])
    return true, proba.argmax(axis=1), proba


@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("ties", [False, True])
def test_metrics_equal_those_of_scikit_learn(n_classes, ties):
    true, predicted, proba = draw(n_classes, n_classes=n_classes, ties=ties)
    onehot = np.eye(n_classes)[true]
    expected = {
        "accuracy": theirs.accuracy_score(true, predicted),
        "balanced_accuracy": theirs.balanced_accuracy_score(true, predicted),
        "f1": theirs.f1_score(true, predicted, average="macro"),
        "log_loss": theirs.log_loss(true, proba, labels=np.arange(n_classes)),
        "brier": ((proba - onehot) ** 2).sum(axis=1).mean(),
        "auc": theirs.roc_auc_score(
            true,
            proba[:, 1] if n_classes == 2 else proba,
            multi_class="ovr",
            average="weighted",
        ),
    }
    found = score_predictions(true, predicted, proba, np.ones(n_classes, dtype=bool))
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-12)


def test_a_class_that_is_only_predicted_counts_for_f1_and_not_for_recall():
    # Warnings are errors here: none may come of it, since results count them.
    true, predicted = np.array([0, 0, 1]), np.array([0, 2, 1])
    found = score_predictions(true, predicted, None, np.ones(3, dtype=bool))
    assert found["balanced_accuracy"] == pytest.approx((0.5 + 1.0) / 2)
    assert found["f1"] == pytest.approx((2 / 3 + 1.0 + 0.0) / 3)


def test_a_probability_that_rounding_puts_above_one_is_scored():
    proba = np.array([[np.nextafter(1.0, 2.0), 0.0], [0.0, 1.0]])
    found = score_predictions(
        np.array([0, 1]), np.array([0, 1]), proba, np.ones(2, dtype=bool)
    )
    assert found["log_loss"] == pytest.approx(0.0, abs=1e-15)


def test_area_leaves_out_classes_without_rows_and_needs_two():
    true, _, proba = draw(0, n_classes=3)
    kept = true != 1
    ours = auc(true[kept], proba[kept])
    own = [
        theirs.roc_auc_score(true[kept] == k, proba[kept, k]) * (true[kept] == k).mean()
        for k in (0, 2)
    ]
    assert ours == pytest.approx(sum(own), rel=1e-12)
    assert np.isnan(auc(true[true == 1], proba[true == 1]))


def test_probability_of_zero_costs_what_it_costs_in_scikit_learn():
    proba = np.array([[1.0, 0.0], [0.0, 1.0]])
    found = log_loss(np.array([1, 1]), proba)
    assert found == pytest.approx(theirs.log_loss([1, 1], proba, labels=[0, 1]))


def test_calibration_error_by_hand():
    # Two bins of two rows: (0.6, 0.7) with one right, (0.8, 0.9) with both right.
    proba = np.array([[0.6, 0.4], [0.3, 0.7], [0.8, 0.2], [0.1, 0.9]])
    true = np.array([0, 0, 0, 1])
    expected = 0.5 * abs(0.5 - 0.65) + 0.5 * abs(1.0 - 0.85)
    found = calibration_error(true, proba.argmax(axis=1), proba, bins=2)
    assert found == pytest.approx(expected)


def test_perfect_certainty_has_no_calibration_error():
    proba = np.eye(3)[[0, 1, 2, 1]]
    true = np.array([0, 1, 2, 1])
    assert calibration_error(true, true, proba) == 0.0


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 60), ties=st.booleans())
def test_order_of_rows_does_not_matter(seed, n, ties):
    true, predicted, proba = draw(seed, n=n, n_classes=3, ties=ties)
    order = np.random.default_rng(seed).permutation(n)
    seen = np.array([True, True, True])
    one = score_predictions(true, predicted, proba, seen)
    other = score_predictions(true[order], predicted[order], proba[order], seen)
    for name, value in one.items():
        assert other[name] == (None if value is None else pytest.approx(value))
        assert value is None or value >= 0.0


def test_rows_of_a_class_that_training_lacked_are_wrong_counted_and_have_no_log_loss():
    proba = np.array([[0.8, 0.2, 0.0], [0.3, 0.7, 0.0], [0.6, 0.4, 0.0]])
    true = np.array([0, 1, 2])
    seen = np.array([True, True, False])
    found = score_predictions(true, proba.argmax(axis=1), proba, seen)
    assert found["n_unseen_class"] == 1
    assert found["accuracy"] == pytest.approx(2 / 3)
    assert found["log_loss"] == pytest.approx(-np.log([0.8, 0.7]).mean())
    assert found["brier"] > 0.0


def test_log_loss_has_no_value_where_no_row_can_be_scored():
    proba = np.array([[0.8, 0.2, 0.0]])
    found = score_predictions(
        np.array([2]), np.array([0]), proba, np.array([True, True, False])
    )
    assert found["log_loss"] is None and found["auc"] is None
    assert found["accuracy"] == 0.0 and found["n_unseen_class"] == 1


def test_classifier_without_probabilities_is_ranked_by_its_scores():
    scores = np.array([[1.0, -1.0], [-2.0, 2.0], [0.5, -0.5]])
    true = np.array([0, 1, 1])
    found = score_predictions(
        true, scores.argmax(axis=1), None, np.array([True, True]), scores
    )
    assert found["auc"] == 1.0
    assert found["log_loss"] is found["brier"] is found["ece"] is None
    nothing = score_predictions(true, true, None, np.array([True, True]))
    assert nothing["auc"] is None and nothing["accuracy"] == 1.0
