"""Measures by group, with intervals, and what errors cost."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, norm
from sklearn.datasets import load_iris
from sklearn.svm import LinearSVC

import steelyard as sy
from steelyard.evaluation.evaluate import evaluate, thresholds
from steelyard.evaluation.metrics import group_names
from steelyard.evaluation.shares import mean_cost, share_estimate
from steelyard.exceptions import ColumnError, ParameterError, TableError


def people(n=300, seed=0):
    """Return a table of two columns, a group, and labels that go by both."""
    rng = np.random.default_rng(seed)
    sex = np.where(rng.random(n) < 0.5, "f", "m")
    age = rng.normal(50, 10, n).round(1)
    ill = rng.random(n) < np.where(age > 50, 0.7, 0.2) + 0.2 * (sex == "m") - 0.1
    table = pd.DataFrame({"age": age, "smoker": rng.choice(["yes", "no"], n)})
    return table, sex, np.where(ill, "ill", "well")


@pytest.mark.parametrize("part, whole", [(0, 5), (5, 5), (3, 10), (499, 1000)])
def test_shares_have_wilsons_interval(part, whole):
    test = binomtest(part, whole).proportion_ci(method="wilson")
    found = share_estimate(part, whole)
    assert found.value == part / whole
    assert found[1:] == pytest.approx((test.low, test.high), abs=1e-12)


def test_a_group_is_measured_as_its_rows_alone_would_be():
    table, sex, y = people()
    clf = sy.NaiveBayes().fit(table[:150], y[:150])
    result = evaluate(clf, table, y, by=sex, positive="ill")
    for name, found in result.groups.items():
        rows = sex == name
        alone = evaluate(clf, table[rows], y[rows], positive="ill")
        assert found["rows"] == rows.sum()
        assert found["accuracy"].value == pytest.approx(alone.metrics["accuracy"])
        assert found["log_loss"].value == pytest.approx(alone.metrics["log_loss"])
        proba, decided = clf.predict_proba(table[rows])[:, 0], clf.predict(table[rows])
        ill = y[rows] == "ill"
        differences = proba - ill
        half = norm.ppf(0.975) * differences.std(ddof=1) / np.sqrt(len(ill))
        mean = differences.mean()
        assert found["calibration"] == pytest.approx((mean, mean - half, mean + half))
        assert found["share"].value == ill.mean()
        assert found["selected"].value == np.mean(decided == "ill")
        assert found["false_positives"].value == np.mean(decided[~ill] == "ill")
        assert found["false_negatives"].value == np.mean(decided[ill] == "well")
    assert "Groups" in repr(result) and "misses %" in result._repr_html_()
    shown = [line for line in repr(result).splitlines() if " to " in line]
    assert len(shown) == 4 and max(map(len, shown)) < 80
    document = json.loads(json.dumps(result.to_dict()))
    assert set(document["groups"]["f"]["accuracy"]) == {"value", "low", "high"}


def test_groups_go_by_a_column_that_the_model_need_not_know():
    table, sex, y = people()
    clf = sy.NaiveBayes().fit(table, y)
    apart = evaluate(clf, table, y, by=sex)
    unknown = evaluate(clf, table.assign(sex=sex), y, by="sex")
    assert apart.to_dict()["groups"] == unknown.to_dict()["groups"]
    assert list(evaluate(clf, table, y, by="smoker").groups) == ["no", "yes"]
    folds = evaluate(sy.NaiveBayes(), table, y, by=pd.Series(sex), folds=3)
    assert sum(entry["rows"] for entry in folds.groups.values()) == len(y)


def test_numbers_are_grouped_by_ranges_and_small_groups_are_put_together():
    table, _, y = people()
    clf = sy.NaiveBayes().fit(table, y)
    found = evaluate(clf, table, y, by="age").groups
    assert len(found) == 4
    assert max(e["rows"] for e in found.values()) < 90
    assert set(group_names([1, 2.0, "1", None, float("nan")])) == {
        "1",
        "2",
        "(missing)",
    }
    names = group_names([f"v{k}" for k in range(50)] + ["v7"] * 3)
    assert len(set(names)) == 20 and (names == "(others)").sum() == 31
    assert (names == "v7").sum() == 4


def test_several_classes_are_grouped_by_accuracy_or_by_one_of_them():
    X, y = load_iris(return_X_y=True)
    clf = sy.NaiveBayes().fit(X, y)
    found = evaluate(clf, X, y, by=X[:, 0] > 6).groups
    assert set(found["True"]) == {"rows", "accuracy", "log_loss", "calibration"}
    one = evaluate(clf, X, y, by=X[:, 0] > 6, positive=2).groups["True"]
    assert one["share"].value == np.mean(y[X[:, 0] > 6] == 2)
    # A group without rows of the class has no share of misses.
    empty = evaluate(clf, X, y, by=y, positive=2).groups["0"]["false_negatives"]
    assert np.isnan(empty.value)
    svm = evaluate(LinearSVC(), X, y, by=y, folds=3).groups["0"]
    assert set(svm) == {"rows", "accuracy"}


def test_groups_that_are_no_column_or_of_another_length_are_refused():
    table, sex, y = people(60)
    clf = sy.NaiveBayes().fit(table, y)
    with pytest.raises(ColumnError, match=r"no column 'smokr'\. Did you mean 'smoker'"):
        evaluate(clf, table, y, by="smokr")
    with pytest.raises(TableError, match="has 5 cells, and there are 60 rows"):
        evaluate(clf, table, y, by=sex[:5])


@pytest.mark.parametrize("folds", [None, 3])
def test_labels_and_weights_of_another_length_are_refused(folds):
    table, _, y = people(60)
    clf = sy.NaiveBayes().fit(table, y)
    for X, labels in ((table, y[:-1]), (table[:1], y)):
        with pytest.raises(TableError, match="rows, but there are"):
            evaluate(clf, X, labels, folds=folds)
    with pytest.raises(TableError, match="60 rows, but there are 59 labels"):
        clf.drift(table, y[:-1])
    with pytest.raises(TableError, match="60 rows, but there are 59 labels"):
        clf.drift(table, y[:-1], by=y)
    with pytest.raises(TableError, match="one weight for each row"):
        evaluate(clf, table, y, folds=3, sample_weight=np.ones(59))


@pytest.mark.parametrize("first", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("kind", [float, "Int64", "string", "boolean", "category"])
def test_groups_of_cells_that_are_infinite_or_missing_have_names(kind, first):
    table, sex, y = people(60)
    clf = sy.NaiveBayes().fit(table, y)
    cells = pd.Series(sex == "f").astype(float)
    cells[0] = first
    if kind != "category" and kind is not float:
        cells[0] = np.nan
    cells = cells.astype(kind)
    named = "(missing)" if cells.isna()[0] else str(first)
    assert named in evaluate(clf, table, y, by=cells).groups
    drift = clf.drift(table.assign(group=cells), by="group")
    assert named in [period.name for period in drift.periods]
    assert sum(period.rows for period in drift.periods) == 60


def test_infinite_numbers_are_groups_beside_the_ranges():
    names = group_names([*range(100), np.inf, -np.inf, None]).tolist()
    assert names[-3:] == ["inf", "-inf", "(missing)"]
    assert len(set(names)) == 7


# -------------------------------------------------------------------------------- costs


def test_the_threshold_of_costs_is_theirs_and_has_a_cost_with_an_interval():
    table, _, y = people()
    clf = sy.NaiveBayes().fit(table[:150], y[:150])
    result = evaluate(clf, table, y, positive="ill", costs={"fp": 1, "fn": 5})
    entry = result.thresholds["by_cost"]
    assert entry["threshold"] == pytest.approx(1 / 6)
    chosen, ill = clf.predict_proba(table)[:, 0] >= 1 / 6, y == "ill"
    cost = np.where(chosen & ~ill, 1, 0) + np.where(~chosen & ill, 5, 0)
    assert entry["cost_per_row"] == pytest.approx(cost.mean())
    assert result.decision.cost.value == pytest.approx(cost.mean())
    assert np.array_equal(result.decision.decided == 0, chosen)
    low, high = entry["interval"]
    half = norm.ppf(0.975) * cost.std() / np.sqrt(len(cost))
    assert half / 2 < cost.mean() - low < high - cost.mean() < 2 * half
    assert result.thresholds["best_cost"]["cost_per_row"] <= entry["cost_per_row"]
    assert "expected cost" in repr(result)
    assert repr(evaluate(clf, table, y, positive="ill", costs=(1, 5))) == repr(result)


def test_the_interval_of_a_cost_holds_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(0)
    shares, costs, n = np.array([0.1, 0.02, 0.88]), np.array([1.0, 10.0]), 100
    truth = shares[:2] @ costs
    drawn = rng.multinomial(n, shares, size=2000)[:, :2]
    found = [mean_cost(errors, costs, n) for errors in drawn.tolist()]
    covered = np.mean([low <= truth <= high for _, low, high in found])
    assert 0.93 < covered < 0.985
    # No errors on few rows are no proof that none will come.
    assert mean_cost([0, 0], costs, 20).high > 1


def test_selection_and_errors_of_groups_go_by_the_costs():
    table, sex, y = people()
    clf = sy.NaiveBayes().fit(table, y)
    plain = evaluate(clf, table, y, by=sex, positive="ill").groups
    careful = evaluate(clf, table, y, by=sex, positive="ill", costs=(1, 9)).groups
    for name in ("f", "m"):
        assert careful[name]["selected"].value > plain[name]["selected"].value
        assert careful[name]["accuracy"] == plain[name]["accuracy"]


def test_a_matrix_of_costs_decides_among_several_classes():
    X, y = load_iris(return_X_y=True)
    clf = sy.NaiveBayes().fit(X, y)
    plain = evaluate(clf, X, y, costs=1.0 - np.eye(3)).decision
    assert plain.cost.value == pytest.approx(1.0 - clf.score(X, y))
    costs = [[0, 1, 1], [1, 0, 1], [1, 90, 0]]
    dear = evaluate(clf, X, y, costs=costs).decision
    assert (dear.decided == 2).sum() > (plain.decided == 2).sum()
    proba = clf.predict_proba(X)
    assert np.array_equal(dear.decided, (proba @ np.array(costs)).argmin(axis=1))


@pytest.mark.parametrize(
    "costs, message",
    [
        ((1, 2), "for two classes; there are 3"),
        (np.ones((2, 2)), "are 2 × 2, and there are 3 classes"),
        (np.ones((2, 3)), "such as 1,20 or fp=1,fn=20"),
        ({"fp": 1, "tp": 2}, "such as 1,20"),
        ({"fp": "x", "fn": 2}, "such as 1,20"),
        ((float("nan"), 1), "such as 1,20"),
    ],
)
def test_costs_that_do_not_fit_the_classes_are_refused(costs, message):
    X, y = load_iris(return_X_y=True)
    clf = sy.NaiveBayes().fit(X, y)
    with pytest.raises(ParameterError, match=message):
        evaluate(clf, X, y, costs=costs)
    if isinstance(costs, tuple) and costs[0] == 1:
        with pytest.raises(ParameterError, match="need probabilities"):
            evaluate(LinearSVC(), X, y, costs=costs)


def test_thresholds_without_costs_say_none():
    assert thresholds([0, 1], [0.2, 0.7])["by_cost"] is None
