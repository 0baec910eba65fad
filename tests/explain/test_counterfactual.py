"""What would have to change: the changes suffice, and fewer do not."""

import json
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest

import steelyard as sy

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def letters(n, d, n_classes, seed):
    random = np.random.default_rng(seed)
    y = random.integers(0, n_classes, n)
    noise = random.integers(0, 3, (n, d))
    codes = np.where(random.random((n, d)) < 0.5, y[:, None] % 3, noise)
    names = [f"a{j}" for j in range(d)]
    return pd.DataFrame(np.array(list("xyz"))[codes], columns=names), y


def fewest(clf, row, target):
    """Fewest changes by trying all of them."""
    names = list(row.columns)
    for size in range(len(names) + 1):
        for chosen in combinations(names, size):
            for values in product("xyz", repeat=size):
                changed = row.copy()
                for name, value in zip(chosen, values, strict=True):
                    changed[name] = value
                if clf.predict(changed)[0] == target:
                    return size
    return None


@pytest.mark.parametrize("seed", range(4))
def test_two_classes_need_exactly_as_many_changes_as_found(seed):
    X, y = letters(60, 4, 2, seed)
    clf = sy.NaiveBayes().fit(X, y)
    for i in range(4):
        row = X[i : i + 1]
        target = 1 - clf.predict(row)[0]
        found = clf.explain_local(row).counterfactual()
        assert found.target == str(target)
        assert found.found and found.is_minimal
        assert len(found.changes) == fewest(clf, row, target)


@pytest.mark.parametrize("acronym", ["NB", "RNB", "BNB", "LWNB", "ENB"])
def test_the_changes_make_the_target_win(acronym):
    X, y = letters(80, 5, 3, 1)
    settings = {"multiclass": "one-vs-one"} if acronym == "ENB" else {}
    clf = sy.method(acronym, **settings).fit(X, y)
    row = X[:1].copy()
    found = clf.explain_local(row).counterfactual()
    assert found.found and found.changes
    for change in found.changes:
        assert row[change.attribute].iloc[0] == change.before
        row[change.attribute] = change.after
    assert str(clf.predict(row)[0]) == found.target
    np.testing.assert_allclose(clf.predict_proba(row)[0], found.after, atol=1e-12)
    json.dumps(found.to_dict(), allow_nan=False)


def test_a_proven_minimum_of_several_classes_is_one():
    X, y = letters(90, 4, 3, 3)
    clf = sy.NaiveBayes().fit(X, y)
    proven = 0
    for i in range(6):
        row = X[i : i + 1]
        for target in {0, 1, 2} - {int(clf.predict(row)[0])}:
            found = clf.explain_local(row).counterfactual(target=target)
            if found.is_minimal:
                proven += 1
                assert len(found.changes) == fewest(clf, row, target)
    assert proven


def test_numbers_change_within_reach(two):
    X, y = two
    clf = sy.NaiveBayes(numeric="gaussian").fit(X, y)
    found = clf.explain_local(X[:1]).counterfactual(fixed=["colour", "striped"])
    assert found.found
    assert {change.attribute for change in found.changes} <= {"length", "width"}
    row = X[:1].copy()
    for change in found.changes:
        row[change.attribute] = float(change.after)
    # Labels are rounded, so this is close to the boundary but need not be beyond it.
    np.testing.assert_allclose(clf.predict_proba(row)[0], found.after, atol=1e-3)


def test_what_may_not_change_stays_and_may_leave_no_way(two):
    X, y = two
    found = sy.NaiveBayes().fit(X, y).explain_local(X[:1])
    stuck = found.counterfactual(fixed=list(X.columns))
    assert not stuck.found and not stuck.changes
    assert "No allowed change" in repr(stuck)
    none = found.counterfactual(max_changes=0)
    assert not none.found


def test_the_winner_needs_no_change(two):
    X, y = two
    found = sy.NaiveBayes().fit(X, y).explain_local(X[:1])
    done = found.counterfactual(target=found.predicted[0])
    assert done.found and not done.changes
    assert "wins as it is" in repr(done)


def curve_table():
    random = np.random.default_rng(5)
    n = 300
    X = pd.DataFrame(
        {
            "size": random.normal(40.0, 5.0, n).round(1),
            "income": random.integers(0, 90_000, n),
            "sky": random.choice(["clear", "rain"], n),
        }
    )
    noise = random.normal(0.0, 2.0, n)
    return X, np.where(X["size"] + noise > 41.0, "big", "small")


@pytest.mark.parametrize("numeric", [("mdl", "equal-frequency"), "gaussian"])
def test_a_number_changes_no_further_than_it_must(numeric):
    X, y = curve_table()
    clf = sy.ShrinkageNB() if isinstance(numeric, tuple) else sy.NaiveBayes()
    clf = clf.set_params(numeric=numeric).fit(X, y)
    for i in range(5):
        (change,) = clf.explain_local(X[i : i + 1]).counterfactual().changes
        now, new = float(change.before), float(change.after)
        assert change.attribute == "size" and round(new, 1) == new
        assert X["size"].min() <= new <= X["size"].max()
        far = round(abs(new - now) * 10)
        steps = np.arange(-far + 1, far) / 10.0
        tried = X.loc[[i] * len(steps)].assign(size=(now + steps).round(1))
        tried = tried[tried["size"].between(X["size"].min(), X["size"].max())]
        assert (clf.predict(tried) == clf.predict(X[i : i + 1])[0]).all()


def test_whole_numbers_of_a_wide_range_are_found_to_the_unit():
    X, _ = curve_table()
    y = np.where(X["income"] > 31_237, "rich", "poor")
    clf = sy.NaiveBayes(numeric="gaussian").fit(X[["income"]], y)
    row = pd.DataFrame({"income": [60_000]})
    (change,) = clf.explain_local(row).counterfactual().changes
    found = int(change.after)
    near = pd.DataFrame({"income": [found, found + 1]})
    assert clf.predict(near).tolist() == ["poor", "rich"]


def test_the_nearest_bin_is_taken():
    X, y = curve_table()
    clf = sy.NaiveBayes(numeric="equal-width").fit(X[["size"]], y)
    row = pd.DataFrame({"size": [X["size"].max()]})
    (change,) = clf.explain_local(row).counterfactual().changes
    whole = clf.explain_global()
    table, base = whole.table("size"), whole.base[1] - whole.base[0]
    bins = zip(table.labels[1:], table.evidence[1:, 1], strict=True)
    wins = [label for label, amount in bins if amount + base > 0.0]
    assert change.after == wins[-1]
