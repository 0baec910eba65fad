"""Reasons of predictions."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

import steelyard as sy
from steelyard.explain.reasons import _losses, reasons

X, y = load_iris(return_X_y=True)


def test_reasons_are_the_loudest_evidence():
    clf = sy.NaiveBayes().fit(X, y)
    explanation = clf.explain_local(X)
    for i, line in enumerate(reasons(clf, X, 2)):
        items = [item for item in explanation.evidence(i).items if item.amount][:2]
        assert [reason[:2] for reason in line] == [
            (item.attribute, item.value) for item in items
        ]
        amounts = [reason.amount for reason in line]
        assert amounts == pytest.approx([item.amount for item in items])


def test_what_is_lost_without_a_cell_equals_its_contribution_in_a_sum():
    clf = sy.NaiveBayes().fit(X, y)
    explanation = clf.explain_local(X)
    order = np.argsort(-explanation.probabilities, axis=1, kind="stable")
    each = np.arange(len(explanation))
    # Without the cell nothing is added, where the average row adds the mean.
    parts = explanation.contributions + clf.model_.centre
    expected = parts[each, :, order[:, 0]] - parts[each, :, order[:, 1]]
    assert np.allclose(_losses(explanation, order), expected, atol=1e-10)


def test_a_reason_is_written_with_its_sign():
    clf = sy.NaiveBayes().fit([["a"], ["b"], ["a"], ["b"]], [0, 1, 0, 1])
    ((reason,),) = reasons(clf, [["a"]])
    assert str(reason) == f"x0 = a (+{reason.amount:.2f} for 0)"
