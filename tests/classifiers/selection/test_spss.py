"""The sequence of subsets, its likelihoods, and the choice among them."""

import time
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

import steelyard as sy
from steelyard.fitting.search.forward_search import (
    AverageLikelihood,
    Likelihood,
    simulate,
)
from steelyard.kernels import searching
from steelyard.model.table_model import NBModel
from steelyard.proba import Lidstone
from steelyard.proba.counts import count
from steelyard.proba.smoothing import Estimation
from steelyard.table.encoder import TableEncoder
from steelyard.table.frames import as_table

plain = pytest.mark.plain


def column(clf, key):
    return [record[key] for record in clf.selection_path_]


def random_table(seed, n=200, sizes=(2, 3, 4, 2, 5, 3), n_classes=2, gaps=0.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    y[:n_classes] = np.arange(n_classes)
    shift = rng.random(len(sizes)) < 0.6
    X = np.stack([rng.integers(0, size, n) for size in sizes], axis=1)
    X = np.where(shift & (rng.random(X.shape) < 0.3), y[:, None] % sizes, X)
    X = X.astype(object)
    X[rng.random(X.shape) < gaps] = None
    return X, y


def likelihoods(X, y, predictors, weights=None, n_simulated=None):
    """A, B, and the average log-likelihood, from the formulas, row by row."""
    u = np.ones(len(y)) if weights is None else weights
    n, classes = u.sum(), np.unique(y)
    by_class = np.array([u[y == c].sum() for c in classes])
    prior = (by_class + 1 / n) / (n + len(classes) / n)
    scores = np.tile(np.log(prior), (len(y), 1))
    for j in predictors:
        cells = X[:, j]
        values = sorted({v for v in cells if v is not None})
        counts = np.array(
            [[u[(cells == v) & (y == c)].sum() for c in classes] for v in values]
        )
        theta = (counts + 1 / n) / (counts.sum(axis=0) + len(values) / n)
        for i, cell in enumerate(cells):
            if cell is not None:
                scores[i] += np.log(theta[values.index(cell)])
    own = scores[np.arange(len(y)), np.searchsorted(classes, y)]
    a = (u * own).sum() / n
    b = -(u * logsumexp(scores, axis=1)).sum() / n
    return a, b, a + b


# ----------------------------------------------------------------------- the weather


@plain
def test_weather_path_has_the_reference_values(weather):
    clf = sy.method("SPSS").fit(*weather)
    path = clf.selection_path_
    added = [None, "outlook", "humidity", "windy", "temperature"]
    assert column(clf, "added") == added
    assert column(clf, "size") == [0, 1, 2, 3, 4]
    assert column(clf, "chosen") == [False, False, True, False, False]
    close = {"rel": 0, "abs": 5e-7}
    assert path[0]["average_log_likelihood"] == pytest.approx(-0.651761, **close)
    assert path[0]["b"] == 0
    expected = [0.651761, 0.579908, 0.558637, 0.597200, 0.691132]
    assert column(clf, "criterion") == pytest.approx(expected, **close)
    for step, a, b, total in (
        (path[1], -1.579048, 1.093392, -0.485656),
        (path[2], -2.167037, 1.796904, -0.370133),
    ):
        assert step["a"] == pytest.approx(a, **close)
        assert step["b"] == pytest.approx(b, **close)
        assert step["average_log_likelihood"] == pytest.approx(total, **close)
    assert clf.selected_features_ == ["outlook", "humidity"]
    assert clf.search_end_ == "complete"


@plain
def test_path_prints_as_a_table(weather):
    clf = sy.SPSSNaiveBayes(forced=["windy", "outlook"], max_size=1).fit(*weather)
    lines = repr(clf.selection_path_).splitlines()
    words = ["Size", "Added", "Average log likelihood", "A", "B", "Criterion", "Chosen"]
    assert [word for word in words if word not in lines[0]] == []
    assert lines[1].split()[:3] == ["2", "windy,", "outlook"]
    assert len(lines) == 3
    assert sum(line.endswith("*") for line in lines) == 1


@plain
def test_final_model_is_naive_bayes_on_the_selected_columns(weather):
    X, y = weather
    clf = sy.SPSSNaiveBayes().fit(X, y)
    chosen = X[["outlook", "humidity"]]
    alone = sy.NaiveBayes(smoothing="kohavi").fit(chosen, y)
    expected = alone.predict_proba(chosen)
    np.testing.assert_allclose(clf.predict_proba(X), expected, rtol=1e-12)
    assert clf.error_ == np.mean(alone.predict(chosen) != y)


# ---------------------------------------------------------------------- likelihoods


@plain
@settings(max_examples=12, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(2, 4),
    st.sampled_from([0.0, 0.2]),
    st.booleans(),
)
def test_incremental_likelihoods_equal_those_from_scratch(
    seed, n_classes, gaps, weighted
):
    X, y = random_table(seed, 60, (2, 3, 4, 2), n_classes, gaps)
    X[:, 0] = np.arange(60) % 2  # no row is without a known cell
    weights = np.random.default_rng(seed).integers(1, 4, 60) if weighted else None
    clf = sy.SPSSNaiveBayes(categorical_features="all")
    clf.fit(X, y, sample_weight=weights)
    subset = []
    for step in clf.selection_path_:
        subset += [] if step["added"] is None else [step["added"]]
        found = step["a"], step["b"], step["average_log_likelihood"]
        assert found == pytest.approx(likelihoods(X, y, subset, weights), abs=1e-10)
        others = [j for j in range(4) if j not in subset[:-1]]
        if subset:
            tried = [likelihoods(X, y, [*subset[:-1], j], weights)[2] for j in others]
            assert found[2] == pytest.approx(max(tried), abs=1e-10)


def test_average_log_likelihood_is_that_of_the_predictions():
    X, y = random_table(1, n_classes=3, gaps=0.3)
    clf = sy.SPSSNaiveBayes(categorical_features="all", selection="none").fit(X, y)
    known = clf.predict_log_proba(X)[np.arange(len(y)), y]
    (step,) = clf.selection_path_
    used = ~np.array([[v is None for v in row] for row in X]).all(axis=1)
    assert step["average_log_likelihood"] == pytest.approx(known[used].mean())


def test_probabilities_near_the_smallest_float_do_not_underflow():
    n = 700
    posterior = np.tile([1.0 - 1e-16, 1e-16], (n, 1))
    table = np.array([[1.0, 1.0], [1e-300, 1e-290], [0.5, 1e-308]])
    values = np.ones((n, 1), dtype=np.uint8)
    out = np.zeros(1)
    starts, sizes = np.zeros(1, np.uint64), np.full(1, 3, np.uint64)
    ones, chosen = np.empty(0), np.array([0])
    searching.try_columns(values, starts, sizes, chosen, table, posterior, ones, out)
    assert out[0] == pytest.approx(n * np.log(1e-300 + 1e-306), rel=1e-12)


@plain
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("order", ["C", "F"])
def test_trying_columns_is_a_sum_of_logarithms_of_mixtures(n_classes, order):
    rng = np.random.default_rng(0)
    n = 1031
    values = np.asarray(rng.integers(0, 4, (n, 3)), dtype=np.uint8, order=order)
    table = rng.random((12, n_classes))
    posterior = rng.dirichlet(np.ones(n_classes), n)
    starts, sizes = np.array([0, 4, 8], np.uint64), np.full(3, 4, np.uint64)
    chosen = np.array([2, 0])
    out, weighted = np.zeros(3), np.zeros(3)
    weights = rng.random(n)
    for u, found in ((np.empty(0), out), (weights, weighted)):
        searching.try_columns(values, starts, sizes, chosen, table, posterior, u, found)
    for j in range(3):
        logs = np.log((posterior * table[4 * j + values[:, j]]).sum(axis=1))
        if j == 1:
            assert out[j] == weighted[j] == 0
        else:
            assert out[j] == pytest.approx(logs.sum(), rel=1e-12)
            assert weighted[j] == pytest.approx(weights @ logs, rel=1e-12)


def test_results_do_not_depend_on_the_number_of_threads():
    X, y = random_table(2, n=40_000, n_classes=3)
    X = X.astype(np.uint8)
    one = sy.SPSSNaiveBayes(categorical_features="all").fit(X, y)
    two = sy.SPSSNaiveBayes(categorical_features="all", n_jobs=2).fit(X, y)
    assert one.selection_path_ == two.selection_path_


def test_weights_repeat_rows():
    X, y = random_table(3, gaps=0.1)
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    clf = sy.SPSSNaiveBayes(categorical_features="all", divisor="observed")
    weighted = clf.fit(X, y, sample_weight=weights).selection_path_
    repeated = np.repeat(np.arange(len(y)), weights)
    again = clf.fit(X[repeated], y[repeated]).selection_path_
    assert [r["added"] for r in weighted] == [r["added"] for r in again]
    for key in ("a", "b", "criterion"):
        found = [record[key] for record in weighted]
        assert found == pytest.approx([record[key] for record in again], abs=1e-12)


def test_printed_divisor_counts_rows_with_a_known_cell_only():
    X = np.array(
        [["a", "x"], ["b", None], [None, "y"], ["a", "y"], ["b", "x"], [None, "x"]],
        dtype=object,
    )
    y = np.array([0, 1, 1, 0, 1, 0])
    settings = {"forced": [0], "exact_size": 0}
    plain = sy.SPSSNaiveBayes(**settings).fit(X, y).selection_path_[0]
    printed = sy.SPSSNaiveBayes(divisor="observed", **settings).fit(X, y)
    assert printed.selection_path_[0]["a"] == plain["a"]
    assert printed.selection_path_[0]["b"] == pytest.approx(plain["b"] * 6 / 4)
    both = sy.SPSSNaiveBayes(divisor="observed", exact_size=2).fit(X, y)
    same = sy.SPSSNaiveBayes(exact_size=2).fit(X, y)
    assert both.selection_path_[-1]["b"] == same.selection_path_[-1]["b"]


def chosen_by(divide, X, y):
    """Select predictors by the formulas: the largest likelihood, then pseudo-BIC."""
    n, d = X.shape
    subset, path = [], []
    while True:
        a, b, _ = likelihoods(X, y, subset)
        n_seen = n if not subset else divide(X[:, subset])
        mean = a + (b * n / n_seen if subset else 0.0)
        path.append((-mean + len(subset) * np.log(n) / (2 * n), list(subset)))
        rest = [j for j in range(d) if j not in subset]
        if not rest:
            return min(path, key=lambda entry: entry[0])[1]

        def gain(j, subset=subset):
            a, b, _ = likelihoods(X, y, [*subset, j])
            return a + b * n / divide(X[:, [*subset, j]])

        subset = [*subset, max(rest, key=gain)]


def n_all(cells):
    return len(cells)


def n_observed(cells):
    return int((cells != None).any(axis=1).sum())  # noqa: E711


def test_notice_names_the_subset_that_the_manuals_divisor_chooses():
    n_noticed = 0
    for seed in range(12):
        X, y = random_table(seed, n=60, sizes=(2, 3, 2, 3), gaps=0.3)
        X[(X == None).all(axis=1), 0] = 0  # noqa: E711 - a known cell in each row
        clf = sy.SPSSNaiveBayes().fit(X, y)
        ours, manual = chosen_by(n_all, X, y), chosen_by(n_observed, X, y)
        assert clf.selected_features_ == ours
        notices = [n for n in clf.notices_ if n.kind == "other-subset"]
        assert bool(notices) == (set(ours) != set(manual))
        names = ", ".join(map(str, manual)) or "none"
        assert all(notice.text.endswith(f": {names}") for notice in notices)
        as_printed = sy.SPSSNaiveBayes(divisor="observed").fit(X, y)
        assert as_printed.selected_features_ == manual
        assert "other-subset" not in {n.kind for n in as_printed.notices_}
        n_noticed += len(notices)
    assert 0 < n_noticed < 12


def test_complete_rows_are_not_searched_twice(weather, monkeypatch):
    searches = []
    start = AverageLikelihood.start
    record = lambda self, forced: searches.append(1) or start(self, forced)  # noqa: E731
    monkeypatch.setattr(AverageLikelihood, "start", record)
    sy.SPSSNaiveBayes().fit(*weather)
    assert len(searches) == 1
    X, y = weather
    holes = X.copy()
    holes.loc[0, "windy"] = None
    sy.SPSSNaiveBayes().fit(holes, y)
    assert len(searches) == 3
    for once in ({"time_limit": 60.0}, {"b_method": "simulate"}):
        sy.SPSSNaiveBayes(random_state=0, **once).fit(holes, y)
    assert len(searches) == 5


# ------------------------------------------------------------------------ simulation


def entropy_of(X, y):
    """Return a model of all columns, and its marginal entropy by enumeration."""
    encoder = TableEncoder("all")
    classes, labels = np.unique(y, return_inverse=True)
    encoder.fit(X, y)
    codes = encoder.learn(as_table(X), labels.astype(np.uint32), len(classes), None)
    counts = count(codes, labels.astype(np.uint32), None, len(classes))
    estimation = Estimation(Lidstone(None), "smoothed", 0.0)
    log_prior, table, gaussian = estimation.tables(counts)
    model = NBModel(counts.schema, classes, log_prior, table.values, gaussian)
    offsets, log_joint = model.schema.offsets, model.log_prior[None]
    for j in range(len(model.schema)):
        theta = model.table[offsets[j] + 1 : offsets[j + 1]]
        log_joint = (log_joint[:, None] + theta[None]).reshape(-1, len(classes))
    marginal = logsumexp(log_joint, axis=1)
    return model, -(np.exp(marginal) * marginal).sum()


def test_simulated_b_converges_to_the_entropy_of_the_model():
    X, y = random_table(4, 80, (2, 3, 4), 2)
    model, entropy = entropy_of(X, y)
    errors = []
    for n_rows in (100, 10_000, 400_000):
        rows = Likelihood(simulate(model, n_rows, np.random.RandomState(0)), model)
        for j in range(3):
            rows.add(j)
        errors.append(abs(-rows.norm() / n_rows - entropy))
    assert errors[0] > errors[2]
    assert errors[2] < 0.005


def test_simulated_rows_are_drawn_once_and_by_the_seed(weather):
    simulated = sy.SPSSNaiveBayes(b_method="simulate", random_state=3)
    first = simulated.fit(*weather).selection_path_
    assert simulated.fit(*weather).selection_path_ == first
    other = sy.SPSSNaiveBayes(b_method="simulate", random_state=4).fit(*weather)
    assert other.selection_path_ != first
    # A comes from the counts, whatever B comes from.
    exact = sy.SPSSNaiveBayes().fit(*weather).selection_path_
    assert first[1]["added"] == exact[1]["added"]
    assert first[1]["a"] == exact[1]["a"]
    assert first[1]["b"] != exact[1]["b"]


def test_rows_are_simulated_beyond_the_memory_limit(weather):
    exact = sy.SPSSNaiveBayes().fit(*weather).selection_path_
    tight = sy.SPSSNaiveBayes(memory_limit=1e-5, random_state=0).fit(*weather)
    assert tight.selection_path_[1]["b"] != exact[1]["b"]
    forced = sy.SPSSNaiveBayes(memory_limit=1e-5, b_method="exact").fit(*weather)
    assert forced.selection_path_ == exact


# ---------------------------------------------------------------- sizes and criteria


def test_exact_size_is_final_whatever_the_criterion(weather):
    clf = sy.SPSSNaiveBayes(exact_size=3).fit(*weather)
    assert clf.selected_features_ == ["outlook", "humidity", "windy"]
    assert column(clf, "chosen") == [False, False, False, True]
    assert sy.SPSSNaiveBayes(exact_size=0).fit(*weather).selected_features_ == []


def test_sizes_count_predictors_beyond_the_forced_ones(weather):
    clf = sy.SPSSNaiveBayes(exact_size=1, forced=["windy"]).fit(*weather)
    assert clf.selected_features_ == ["windy", "outlook"]
    clf = sy.SPSSNaiveBayes(max_size=1, forced=["windy"]).fit(*weather)
    assert column(clf, "size") == [1, 2]


def test_forced_predictors_start_and_excluded_ones_never_come(weather):
    clf = sy.SPSSNaiveBayes(forced=["temperature", 3], excluded=["outlook"])
    clf.fit(*weather)
    assert clf.selected_features_[:2] == ["temperature", "windy"]
    assert clf.selection_path_[0]["added"] == ["temperature", "windy"]
    assert column(clf, "size") == [2, 3]
    # Excluded columns do not matter, even if nobody knows them later.
    X = weather[0].assign(outlook=None)
    with_outlook = clf.predict_proba(weather[0])
    np.testing.assert_array_equal(clf.predict_proba(X), with_outlook)


@pytest.mark.parametrize(
    ("n_columns", "n_forced", "largest"),
    [(4, 0, 4), (30, 0, 20), (30, 3, 23), (30, 15, 30), (110, 0, 22), (119, 5, 28)],
)
def test_automatic_maximum_follows_the_manual(n_columns, n_forced, largest):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (40, n_columns)), np.arange(40) % 2
    X[:2] = [[0], [1]]
    clf = sy.SPSSNaiveBayes(
        categorical_features="all", forced=list(range(n_forced))
    ).fit(X, y)
    assert column(clf, "size")[-1] == largest
    assert column(clf, "size")[0] == n_forced


def test_automatic_maximum_is_never_above_a_hundred_beyond_the_forced_ones():
    clf = sy.SPSSNaiveBayes()
    assert clf._n_steps(0, 499) == 99
    assert clf._n_steps(2, 2000) == 100


def test_no_selection_uses_all_predictors(weather):
    X, y = weather
    clf = sy.SPSSNaiveBayes(selection="none").fit(X, y)
    assert clf.selected_features_ == list(X)
    assert column(clf, "size") == [4]
    expected = sy.NaiveBayes(smoothing="kohavi").fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(clf.predict_proba(X), expected)


def test_test_data_decide_where_they_are_given():
    X, y = random_table(5, 600)
    clf = sy.SPSSNaiveBayes(categorical_features="all")
    clf.fit(X[:100], y[:100], X_test=X[100:], y_test=y[100:])
    criteria = column(clf, "criterion")
    for k, step in enumerate(clf.selection_path_):
        part = sy.SPSSNaiveBayes(categorical_features="all", exact_size=k)
        part.fit(X[:100], y[:100])
        log_proba = part.predict_log_proba(X[100:])[np.arange(500), y[100:]]
        assert step["test_log_likelihood"] == pytest.approx(log_proba.mean())
        assert step["criterion"] == -step["test_log_likelihood"]
    assert column(clf, "chosen").index(True) == int(np.argmin(criteria))
    assert clf.error_ == np.mean(clf.predict(X[100:]) != y[100:])


def test_pseudo_bic_can_be_asked_for_with_test_data(weather):
    X, y = weather
    clf = sy.SPSSNaiveBayes(criterion="bic").fit(X, y, X_test=X[:5], y_test=y[:5])
    alone = sy.SPSSNaiveBayes().fit(X, y)
    assert column(clf, "criterion") == column(alone, "criterion")
    assert clf.error_ == np.mean(alone.predict(X[:5]) != y[:5])


def test_useless_predictors_are_left_out():
    every = np.array(list(product("ab", repeat=4)))
    X, y = every[:, :3], every[:, 3]
    clf = sy.SPSSNaiveBayes().fit(X, y)
    assert clf.selected_features_ == []
    prior = np.exp(clf.class_log_prior_)
    np.testing.assert_allclose(clf.predict_proba(X[:2]), [prior, prior])


def test_of_equal_predictors_the_first_joins(weather):
    X, y = weather
    doubled = pd.concat([X[["windy"]], X.add_suffix("2"), X], axis=1).loc[
        :, lambda t: ~t.columns.duplicated()
    ]
    clf = sy.SPSSNaiveBayes(exact_size=1).fit(doubled, y)
    assert clf.selected_features_ == ["outlook2"]


def test_ties_between_classes_go_to_the_larger_prior_then_to_the_first():
    X = np.array([["a"], ["b"], ["c"], ["c"], ["c"]])
    y = ["z", "y", "x", "x", "y"]
    clf = sy.SPSSNaiveBayes(max_size=0).fit(X, y)
    assert clf.predict([["a"]]).tolist() == ["x"]
    more = sy.SPSSNaiveBayes(max_size=0).fit(X, ["z", "y", "x", "y", "y"])
    assert more.predict([["a"]]).tolist() == ["y"]


# --------------------------------------------------------------------- early endings


def interrupt_after(monkeypatch, n_calls, error):
    """Let the search for the next predictor fail after some calls."""
    original = Likelihood.norms_with
    calls = []

    def norms_with(self, *given):
        calls.append(1)
        if len(calls) > n_calls:
            raise error
        return original(self, *given)

    monkeypatch.setattr(Likelihood, "norms_with", norms_with)


def test_interrupted_search_keeps_the_best_subset_so_far(weather, monkeypatch):
    X, y = weather
    interrupt_after(monkeypatch, 1, KeyboardInterrupt())
    clf = sy.SPSSNaiveBayes()
    with pytest.warns(UserWarning, match=r"ended early \(interrupted\) with 1"):
        clf.fit(X, y)
    assert clf.selected_features_ == ["outlook"]
    assert clf.search_end_ == "interrupted"
    assert column(clf, "size") == [0, 1]
    assert clf.predict(X).shape == (14,)


def test_interruption_before_the_search_leaves_the_earlier_model(weather, monkeypatch):
    X, y = weather
    clf = sy.SPSSNaiveBayes().fit(X, y)
    earlier = clf.model_

    def refuse(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr("steelyard.classifiers.spss.AverageLikelihood", refuse)
    with pytest.raises(KeyboardInterrupt):
        clf.set_params(exact_size=1).fit(X, y)
    assert clf.model_ is earlier


def test_time_limit_keeps_the_best_subset_so_far(weather, monkeypatch):
    ticks = iter(range(100))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(ticks)))
    clf = sy.SPSSNaiveBayes(time_limit=4.5)
    with pytest.warns(UserWarning, match=r"ended early \(time limit\)"):
        clf.fit(*weather)
    assert clf.search_end_ == "time limit"
    assert 1 <= len(clf.selection_path_) < 5
    assert column(clf, "chosen").count(True) == 1


def test_time_limit_with_an_exact_size_keeps_the_largest_subset(weather, monkeypatch):
    interrupt_after(monkeypatch, 3, KeyboardInterrupt())
    clf = sy.SPSSNaiveBayes(exact_size=4, time_limit=1000)
    with pytest.warns(UserWarning, match="with 3 predictors"):
        clf.fit(*weather)
    assert clf.selected_features_ == ["outlook", "humidity", "windy"]
