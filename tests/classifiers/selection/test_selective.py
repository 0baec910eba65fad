"""Attributes chosen by accuracy, leave-one-out error, or accuracy and cost."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline

import steelyard as sy
from steelyard import CostSensitiveNB, ForwardSelectedNB, NaiveBayes, SelectiveNB
from steelyard.exceptions import ParameterError
from steelyard.fitting.default.folds import assign_folds
from steelyard.fitting.search.left_out import JudgedRows

SELECTIVE = [SelectiveNB, ForwardSelectedNB, CostSensitiveNB]


def random_table(n=60, n_classes=3, gaps=0.0, seed=0, sizes=(2, 3, 4, 3, 2)):
    """Categories, each of which says something about some of the classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    columns = {}
    for j, size in enumerate(sizes):
        told = rng.random(n) < 0.25 + 0.1 * j
        codes = np.where(told, y % size, rng.integers(0, size, n))
        codes[rng.random(n) < gaps] = -1
        names = [f"v{v}" for v in range(size)]
        columns[f"a{j}"] = pd.Categorical.from_codes(codes, names)
    return pd.DataFrame(columns), y


def seeded(cls, **settings):
    if cls is CostSensitiveNB:
        settings = {"random_state": 0, **settings}
    return cls(**settings)


# -------------------------------------------------------------------------------- SNB


@pytest.mark.plain
def test_reference_values_of_the_weather_table(weather):
    X, y = weather
    path = SelectiveNB().fit(X, y).selection_path_
    assert [record["added"] for record in path] == [
        None,
        "outlook",
        "humidity",
        "windy",
        "temperature",
    ]
    np.testing.assert_allclose(
        [record["rmse"] for record in path],
        [0.513484, 0.507441, 0.450823, 0.463046, 0.494323],
        atol=5e-7,
    )
    np.testing.assert_allclose(
        [record["zero_one"] for record in path],
        [0.357143, 0.5, 0.214286, 0.357143, 0.428571],
        atol=5e-7,
    )
    assert [record["chosen"] for record in path].index(True) == 2


def test_best_prefix_is_chosen_by_the_measure(weather):
    X, y = weather
    clf = SelectiveNB().fit(X, y)
    assert clf.selected_features_ == ["outlook", "humidity"]
    assert "humidity     0.450823  0.214286  *" in repr(clf.selection_path_)
    X, y = random_table(n=200, seed=3)
    for measure in ("rmse", "zero-one"):
        clf = SelectiveNB(measure=measure).fit(X, y)
        errors = [r[measure.replace("-", "_")] for r in clf.selection_path_]
        assert len(clf.selected_features_) == int(np.argmin(errors))


def test_of_equal_prefixes_the_shortest_is_chosen(weather):
    X, y = weather
    clf = SelectiveNB().fit(X.assign(same="s"), y)
    assert clf.selected_features_ == ["outlook", "humidity"]
    # With attributes of a single value all prefixes are the prior.
    clf = SelectiveNB().fit(X.assign(**dict.fromkeys(X, "s")), y)
    assert clf.selected_features_ == []
    np.testing.assert_allclose(clf.predict_proba(X)[0], np.exp(clf.class_log_prior_))


# -------------------------------------------------------------------------------- SBC


def plain_accuracy(X, y, columns, evaluation):
    """Accuracy of naive Bayes on some columns, by fitting it again for each row."""
    clf = NaiveBayes(cardinality="declared")
    table = X[columns] if columns else X[[X.columns[0]]].assign(**{X.columns[0]: "s"})
    if evaluation == "training":
        return (clf.fit(table, y).predict(table) == y).mean()
    right = 0
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        right += clf.fit(table[rest], y[rest]).predict(table.iloc[[i]])[0] == y[i]
    return right / len(y)


def plain_greedy(X, y, evaluation, ties):
    chosen, before = [], plain_accuracy(X, y, [], evaluation)
    found = [before]
    while len(chosen) < X.shape[1]:
        rest = [c for c in X if c not in chosen]
        accuracies = [plain_accuracy(X, y, [*chosen, c], evaluation) for c in rest]
        best = int(np.argmax(accuracies))
        found.append(accuracies[best])
        if accuracies[best] < before or (ties == "stop" and accuracies[best] == before):
            break
        chosen.append(rest[best])
        before = accuracies[best]
    return chosen, found


@pytest.mark.parametrize("ties", ["stop", "add"])
@pytest.mark.parametrize("evaluation", ["leave-one-out", "training"])
def test_greedy_search_equals_one_that_fits_again(evaluation, ties):
    X, y = random_table(n=40, gaps=0.1, seed=4, sizes=(2, 3, 4, 3))
    clf = ForwardSelectedNB(evaluation=evaluation, ties=ties, cardinality="declared")
    clf.fit(X, y)
    chosen, accuracies = plain_greedy(X, y, evaluation, ties)
    assert clf.selected_features_ == chosen
    assert len(chosen) > 1
    found = [record["accuracy"] for record in clf.selection_path_]
    np.testing.assert_allclose(found, accuracies, rtol=1e-13)


def test_attribute_that_changes_nothing_is_left_out_or_added(weather):
    X, y = weather
    X = X[["outlook", "humidity"]].assign(same="s")
    stop = ForwardSelectedNB(evaluation="training").fit(X, y)
    add = ForwardSelectedNB(evaluation="training", ties="add").fit(X, y)
    assert stop.selected_features_ == ["outlook", "humidity"]
    assert add.selected_features_ == ["outlook", "humidity", "same"]


# --------------------------------------------------------------------------- TCSFS-NB


def plain_score(clf, X, y, columns, costs):
    """Score of a subset, by fitting naive Bayes on the columns for each fold."""
    training = clf._recipe().encode(X, y)
    seed = np.random.RandomState(clf.random_state)
    rows, fold, shares = assign_folds(training, clf.folds, seed)
    nb, right = NaiveBayes(cardinality="declared"), 0.0
    for f in range(clf.folds):
        mine, rest = fold == f, fold != f
        table = X[columns] if columns else X.assign(**dict.fromkeys(X, "s"))
        nb.fit(table.iloc[rows[rest]], y[rows[rest]], shares[rest])
        hits = nb.predict(table.iloc[rows[mine]]) == y[rows[mine]]
        right += (hits * shares[mine]).sum()
    share = sum(costs[c] for c in columns) / sum(costs.values())
    return right / len(y) - clf.lam * share


def test_subset_scores_equal_those_of_fitting_again_and_the_best_is_found():
    X, y = random_table(n=60, gaps=0.1, seed=2, sizes=(2, 3, 4, 3))
    costs = {"a0": 1.0, "a1": 5.0, "a2": 0.0, "a3": 2.0}
    clf = CostSensitiveNB(
        costs=costs, lam=0.1, random_state=3, cardinality="declared", max_stale=20
    ).fit(X, y)
    for record in clf.selection_path_:
        score = plain_score(clf, X, y, record["subset"], costs)
        np.testing.assert_allclose(record["score"], score, rtol=1e-12)
    subsets = itertools.chain.from_iterable(
        itertools.combinations(X.columns, size) for size in range(5)
    )
    best = max(plain_score(clf, X, y, list(subset), costs) for subset in subsets)
    chosen = plain_score(clf, X, y, clf.selected_features_, costs)
    np.testing.assert_allclose(chosen, best, rtol=1e-12)


def test_dear_attribute_is_avoided_when_cost_counts():
    X, y = random_table(n=300, seed=1)
    free = CostSensitiveNB(lam=0.0, random_state=0).fit(X, y)
    dear = free.selected_features_[0]
    costs = {dear: 1000.0}
    clf = CostSensitiveNB(costs=costs, lam=1.0, random_state=0).fit(X, y)
    assert dear not in clf.selected_features_
    listed = [costs.get(name, 1.0) for name in X]
    by_position = {list(X).index(dear): 1000}
    for same in (listed, np.array(listed), by_position):
        again = CostSensitiveNB(costs=same, lam=1.0, random_state=0).fit(X, y)
        assert again.selection_path_ == clf.selection_path_


def test_costs_of_zero_cost_nothing():
    X, y = random_table()
    clf = CostSensitiveNB(costs=[0] * 5, lam=1.0, random_state=0).fit(X, y)
    assert all(record["cost"] == 0.0 for record in clf.selection_path_)


@pytest.mark.parametrize("max_stale", [1, 2, 3])
def test_search_ends_after_a_number_of_stale_expansions(max_stale):
    X, y = random_table(n=100)
    clf = CostSensitiveNB(max_stale=max_stale, random_state=0).fit(X, y)
    scores = [record["score"] for record in clf.selection_path_]
    best = [max(scores[: k + 1]) for k in range(len(scores))]
    improved = [k for k in range(1, len(best)) if best[k] > best[k - 1]]
    assert len(scores) - 1 - improved[-1] == max_stale


def test_seed_decides_the_folds():
    X, y = random_table(n=50)
    paths = [
        CostSensitiveNB(random_state=seed).fit(X, y).selection_path_
        for seed in (0, 0, 1)
    ]
    assert paths[0] == paths[1] != paths[2]


@pytest.mark.parametrize(
    "costs, message",
    [
        ({"a0": -1.0}, "at least 0. Got -1 for column 'a0'"),
        ([1, 2, np.nan, 4, 5], "a finite number for each column.*Got"),
        ({"b": 1.0}, "names 'b', which is not a column"),
        ({7: 1.0}, "names column 7, but"),
        ([1.0, 2.0], "each of the 5 columns"),
        (3.0, "number for each column.*Got 3.0"),
        ("dear", "number for each column.*Got 'dear'"),
        ({"a0": "dear"}, "mapping from column to such a number.*Got"),
    ],
)
def test_costs_that_mean_nothing_are_refused(costs, message):
    X, y = random_table()
    with pytest.raises(ParameterError, match=message):
        CostSensitiveNB(costs=costs).fit(X, y)


# ------------------------------------------------------------------------ all of them


@pytest.mark.parametrize(
    "clf, name",
    [
        (SelectiveNB(measure="accuracy"), "measure"),
        (ForwardSelectedNB(evaluation="loo"), "evaluation"),
        (ForwardSelectedNB(ties="maybe"), "ties"),
        (CostSensitiveNB(folds=1), "folds"),
        (CostSensitiveNB(folds=2.5), "folds"),
        (CostSensitiveNB(max_stale=0), "max_stale"),
        (CostSensitiveNB(lam=-1.0), "lam"),
        (CostSensitiveNB(lam=np.inf), "lam"),
        (SelectiveNB(smoothing="none"), "smoothing"),
    ],
)
def test_bad_settings_are_refused_and_leave_an_earlier_model_alone(clf, name):
    X, y = random_table()
    fitted = type(clf)().fit(X, y)
    before = fitted.predict_proba(X)
    fitted.set_params(**clf.get_params())
    with pytest.raises(ParameterError, match=f"'{name}' parameter"):
        fitted.fit(X, 1 - y)
    np.testing.assert_array_equal(fitted.predict_proba(X), before)


def mixed_table(n=60, seed=1, gaps=0.1):
    """Numbers beside categories, some cells missing."""
    X, y = random_table(n=n, gaps=gaps, seed=seed)
    rng = np.random.default_rng(seed)
    for name, signal in (("size", 1.0), ("noise", 0.0), ("weight", 0.5)):
        X[name] = rng.normal(size=n) * 3.0 + signal * y
        X.loc[rng.random(n) < gaps, name] = np.nan
    return X, y


@pytest.mark.parametrize("numeric", ["gaussian", "gaussian-weka", "gaussian-relative"])
@pytest.mark.parametrize("cls", SELECTIVE)
def test_gaussian_columns_are_chosen_and_left_out(cls, numeric):
    X, y = mixed_table()
    clf = seeded(cls).set_params(numeric=numeric).fit(X, y)
    chosen = clf.selected_features_
    assert 0 < len(chosen) < X.shape[1]
    plain = NaiveBayes(numeric=numeric).fit(X, y)
    terms = plain.model_.contributions(plain._encode(X))
    kept = [X.columns.get_loc(name) for name in chosen]
    scores = plain.model_.log_prior + terms[:, kept].sum(axis=1)
    expected = np.exp(scores - scores.max(axis=1, keepdims=True))
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(clf.predict_proba(X), expected, rtol=1e-9, atol=1e-12)
    explained = clf.model_.contributions(clf._encode(X))
    assert not explained[:, ~clf.get_support()].any()


@pytest.mark.parametrize("cls", SELECTIVE)
def test_model_equals_naive_bayes_on_the_selected_columns(cls):
    X, y = random_table(n=120, gaps=0.1, seed=5)
    clf = seeded(cls).fit(X, y)
    assert 0 < len(clf.selected_features_) < 5
    plain = NaiveBayes().fit(X[clf.selected_features_], y)
    np.testing.assert_allclose(
        clf.predict_proba(X),
        plain.predict_proba(X[clf.selected_features_]),
        rtol=1e-12,
    )
    explained = clf.model_.contributions(clf._encode(X))
    assert not explained[:, ~clf.get_support()].any()


@pytest.mark.parametrize("cls", SELECTIVE)
def test_weight_two_equals_the_row_twice_in_the_choice(cls):
    X, y = random_table(n=50, gaps=0.1)
    weights = np.arange(50) % 3 + 1
    rows = np.repeat(np.arange(50), weights)
    weighted = seeded(cls).fit(X, y, sample_weight=weights)
    repeated = seeded(cls).fit(X.iloc[rows], y[rows])
    assert weighted.selected_features_ == repeated.selected_features_
    np.testing.assert_allclose(
        weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-13
    )
    assert repr(weighted.selection_path_) == repr(repeated.selection_path_)


@pytest.mark.parametrize("class_weight", ["balanced", {0: 5.0}])
@pytest.mark.parametrize("cls", SELECTIVE)
def test_class_weights_enter_counts_and_choice(cls, class_weight):
    X, y = random_table(n=80)
    clf = seeded(cls, class_weight=class_weight).fit(X, y)
    plain = NaiveBayes(class_weight=class_weight).fit(X, y)
    np.testing.assert_allclose(clf.class_log_prior_, plain.class_log_prior_)
    assert clf.selection_path_ != seeded(cls).fit(X, y).selection_path_


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("cls", SELECTIVE)
def test_threads_do_not_change_a_bit(cls, n_classes):
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, 40_000)
    X = ((y[:, None] * 2 + rng.integers(0, 5, (40_000, 3))) % 7).astype(np.uint8)
    weights = rng.integers(1, 3, 40_000) * 0.5
    one, two = (
        seeded(cls, categorical_features="all", n_jobs=n).fit(X, y, weights)
        for n in (1, 2)
    )
    assert one.selection_path_ == two.selection_path_
    np.testing.assert_array_equal(one.model_.table, two.model_.table)


@pytest.mark.parametrize("cls", SELECTIVE)
def test_selection_is_a_step_of_a_pipeline(cls):
    X, y = random_table(n=120, seed=5)
    selector = seeded(cls)
    pipeline = make_pipeline(selector, NaiveBayes()).fit(X, y)
    support = selector.get_support()
    assert selector.transform(X).columns.tolist() == X.columns[support].tolist()
    np.testing.assert_allclose(
        pipeline.predict_proba(X), selector.predict_proba(X), rtol=1e-12
    )


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("cls", SELECTIVE)
def test_saved_model_comes_back(cls, named, tmp_path):
    X, y = random_table(n=120, gaps=0.1, seed=5)
    table = X if named else X.to_numpy()
    settings = {"costs": {0: 2.5}} if cls is CostSensitiveNB else {}
    clf = seeded(cls, **settings).fit(table, y)
    clf.save(tmp_path / "model.json")
    again = sy.load(tmp_path / "model.json")
    assert again.selected_features_ == clf.selected_features_
    assert again.selection_path_ == clf.selection_path_
    assert again.get_params() == clf.get_params()
    np.testing.assert_array_equal(again.predict_proba(table), clf.predict_proba(table))
    np.testing.assert_array_equal(again.get_support(), clf.get_support())


@pytest.mark.parametrize("cls", [ForwardSelectedNB, CostSensitiveNB])
def test_interrupted_search_keeps_the_best_so_far(cls, monkeypatch):
    X, y = random_table(n=120, seed=5)
    whole = seeded(cls).fit(X, y)
    plain, calls = JudgedRows.accuracies, []

    def interrupted(self, *args):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return plain(self, *args)

    monkeypatch.setattr(JudgedRows, "accuracies", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted after 1 "):
        clf = seeded(cls).fit(X, y)
    assert clf.selected_features_ == whole.selected_features_[:1]
    assert clf.selection_path_[1]["chosen"]
    assert clf.predict(X).shape == y.shape


def test_interrupted_pass_of_snb_leaves_an_earlier_model_alone(monkeypatch):
    X, y = random_table()
    clf = SelectiveNB().fit(X, y)
    before = clf.model_

    def interrupted(self, order):
        raise KeyboardInterrupt

    monkeypatch.setattr(JudgedRows, "prefix_losses", interrupted)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, 1 - y)
    assert clf.model_ is before


@pytest.mark.parametrize("cls", [ForwardSelectedNB, CostSensitiveNB])
def test_progress_is_shown_on_request(cls, capsys):
    X, y = random_table()
    seeded(cls).fit(X, y)
    assert capsys.readouterr() == ("", "")
    seeded(cls, verbose=True).fit(X, y)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err
