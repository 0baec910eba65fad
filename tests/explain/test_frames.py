"""Explanations as frames and as tables of a notebook: the same numbers."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

import steelyard as sy
from steelyard.evaluation.evaluate import evaluate
from steelyard.exceptions import ParameterError

N = 60


@pytest.fixture(scope="module", params=[2, 3])
def fitted(request):
    rng = np.random.default_rng(3)
    X = pd.DataFrame(
        {
            "<b>size": rng.normal(size=N),
            "colour": rng.choice(["red", "<i>", None], N),
            "same": 1.0,
        }
    )
    y = np.array(["no", "yes", "may & be"])[
        (X["<b>size"].rank().to_numpy() * request.param / (N + 1)).astype(int)
    ]
    return sy.NaiveBayes().fit(X, y), X


def test_evidence_of_rows_adds_up_to_log_odds(fitted):
    clf, X = fitted
    why = clf.explain_local(X[:5])
    frame = why.to_frame()
    assert list(frame["column"][:4]) == ["(base)", "<b>size", "colour", "same"]
    assert frame["missing"].sum() == X[:5].isna().sum().sum()
    sums = frame.drop(columns=["column", "value", "missing"]).groupby("row").sum()
    logs = clf.predict_log_proba(X[:5])
    if len(clf.classes_) == 2:
        expected = logs[:, [1]] - logs[:, [0]]
    else:
        expected = 1.5 * (logs - logs.mean(axis=1, keepdims=True))
    np.testing.assert_allclose(sums, expected, atol=1e-9)
    one = why.evidence(1).to_frame()
    assert one["evidence"].sum() == pytest.approx(why.evidence(1).total)


def test_a_model_is_a_frame_by_importance(fitted):
    clf, X = fitted
    whole = clf.explain_global()
    frame = whole.to_frame()
    assert sorted(frame["column"]) == sorted(X.columns)
    assert frame["importance"].is_monotonic_decreasing
    by_name = frame.set_index("column")
    assert by_name.loc["same", "importance"] == 0.0
    assert by_name.loc["colour", "rows"] == X["colour"].notna().sum()
    table = whole.table("colour").to_frame()
    assert table["rows"].sum() == N
    assert {"<i>", "red"} <= set(table["value"])
    columns = [name for name in table if name.startswith("evidence for ")]
    assert len(columns) == (1 if len(clf.classes_) == 2 else 3)


def test_notebooks_show_tables_in_which_names_are_no_markup(fitted):
    clf, X = fitted
    whole, why = clf.explain_global(), clf.explain_local(X[:5])
    for shown in (whole, why, why.evidence(), whole.table("colour")):
        text = shown._repr_html_()
        assert "<b>size" not in text and "<i>" not in text
    assert whole._repr_html_().count("<tr>") == 4
    assert "… and 2 more rows" in why._repr_html_()
    assert "NaiveBayes" in clf._repr_html_()


def test_results_and_evaluations_are_tables_in_notebooks():
    X, y = load_iris(return_X_y=True)
    shown = evaluate(sy.NaiveBayes(), X, y, folds=3)._repr_html_()
    assert shown.count("<table>") == 3 and "kappa" in shown
    data = [("<iris>", X, y)]
    results = sy.compare(["NB", "RNB"], data, folds=3, n_jobs=1, progress=False)
    shown = results._repr_html_()
    assert "&lt;iris&gt;" in shown and "<iris>" not in shown
    assert shown.count("<tr>") == 3


def test_a_model_that_is_no_sum_says_where_its_frames_are():
    X, y = load_iris(return_X_y=True)
    why = sy.method("RNB").fit(X, y).explain_local(X[:2])
    with pytest.raises(ParameterError, match="Ask its parts"):
        why.to_frame()
    assert "<pre>" in why._repr_html_()


def test_bars_go_to_both_sides_in_text_and_in_colour(two):
    X, y = two
    clf = sy.NaiveBayes().fit(X.rename(columns={"colour": "<b>colour</b>"}), y)
    found = clf.explain_local(X[:1].rename(columns={"colour": "<b>colour</b>"}))
    evidence = found.evidence()
    lines = repr(evidence).splitlines()[3:-1]
    axis = {line.index("│") for line in lines}
    assert len(axis) == 1
    for line, amount in zip(lines, evidence.amounts, strict=True):
        before, _, after = line.partition("│")
        assert not (before.endswith("█") and amount > 0.0)
        assert not (after and amount < 0.0)
    page = found._repr_html_()
    assert "<b>" not in page and "&lt;b&gt;colour" in page
    assert "#2a7f62" in page and "#c0543c" in page and "█" not in page
    assert "#2a7f62" in clf.explain_global()._repr_html_()


def test_no_probability_is_one():
    X = pd.DataFrame({f"a{j}": list("xy") * 100 for j in range(9)})
    found = sy.NaiveBayes().fit(X, [0, 1] * 100).explain_local(X[:1])
    assert found.probabilities[0, 0] > 1.0 - 1e-9
    assert "probability > 99.9 %" in repr(found.evidence())
    assert "probability 1" not in repr(found)
