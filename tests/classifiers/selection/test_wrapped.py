"""Weights that are evolved for accuracy, and weights of a filter that are adjusted."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

import steelyard as sy
from steelyard import (
    CorrelationAdjustedNB,
    EvolvedWeightsNB,
    ForwardSelectedNB,
    NaiveBayes,
    SelectiveNB,
    WeightedNB,
)
from steelyard.classifiers.evolved import Evolution, PopulationScorer, weighted_model
from steelyard.exceptions import ParameterError
from steelyard.fitting.default.folds import assign_folds
from steelyard.fitting.search.left_out import cross_validated, resubstituted
from steelyard.kernels import searching as kernels


def mixed_table(n=150, n_classes=3, gaps=0.1, seed=0):
    """Two columns of categories and two of numbers, with gaps."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    told = rng.random((n, 2)) < 0.5
    categories = np.where(told, y[:, None], rng.integers(0, 4, (n, 2)))
    frame = pd.DataFrame(
        {
            "a": [f"v{v}" for v in categories[:, 0]],
            "b": [f"w{v}" for v in categories[:, 1]],
            "x": y + rng.normal(size=n),
            "z": rng.normal(size=n),
        }
    )
    return frame.mask(rng.random(frame.shape) < gaps), y


def quick(**settings):
    return EvolvedWeightsNB(
        **{"population_size": 8, "generations": 5, "random_state": 0, **settings}
    )


def judged(clf, X, y, weights=None):
    """Rows and tables that judge a population, and the rows they are made of."""
    training = clf._recipe().encode(X, y, weights)
    if clf.fitness == "training":
        return resubstituted(training), training
    return cross_validated(training, clf.folds, np.random.RandomState(0)), training


# ---------------------------------------------------------------- scoring a population


@pytest.mark.plain
@pytest.mark.parametrize("numeric", ["mdl", "gaussian", "gaussian-weka"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_population_scores_equal_single_ones(n_classes, numeric):
    X, y = mixed_table(n_classes=n_classes)
    weights = np.arange(len(y)) % 3 + 0.5
    clf = quick(numeric=numeric)
    held, training = judged(clf, X, y, weights)
    vectors = np.random.default_rng(1).random((7, 4))
    vectors[0] = 1.0
    vectors[1] = 0.0
    right = [
        weights[weighted_model(training, vector).predict(training.codes) == y].sum()
        for vector in vectors
    ]
    found = PopulationScorer(held).weight_right(vectors)
    np.testing.assert_allclose(found, right, rtol=1e-13)
    assert len(set(found)) > 3


@pytest.mark.plain
def test_tie_goes_to_the_larger_prior_then_to_the_first():
    base = np.log([[0.25, 0.75], [0.75, 0.25], [0.5, 0.5]] * 2)
    odds = np.tile((base[:, 0] - base[:, 1])[None, :, None], (1, 1, 3))
    odds[:, :, 1] += 1.0
    odds[:, :, 2] -= 1.0
    y, u = np.array([0, 0, 0, 1, 1, 1], np.uint32), 2.0 ** np.arange(6)
    for kernel in (kernels.right_by_vector, kernels.right_by_vector_two):
        right = np.zeros(3)
        kernel(odds, base, y, u, right)
        np.testing.assert_array_equal(right, [2 + 4 + 8, 8 + 16 + 32, 1 + 2 + 4])


@pytest.mark.parametrize("numeric", ["mdl", "gaussian"])
def test_population_is_judged_by_models_of_the_other_folds(numeric):
    X, y = mixed_table()
    clf = quick(fitness="cross-validation", numeric=numeric, folds=4)
    held, training = judged(clf, X, y)
    rows, fold, shares = assign_folds(training, 4, np.random.RandomState(0))
    vectors = np.random.default_rng(1).random((5, 4))
    right = np.zeros(5)
    for f in range(4):
        mine, rest = rows[fold == f], rows[fold != f]
        others = replace(training.take(rest), sample_weight=shares[fold != f])
        for p, vector in enumerate(vectors):
            model = weighted_model(others, vector)
            hits = model.predict(training.codes.take(mine)) == y[mine]
            right[p] += (hits * shares[fold == f]).sum()
    np.testing.assert_array_equal(PopulationScorer(held).weight_right(vectors), right)


def test_threads_do_not_change_a_bit():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 40_000)
    X = ((y[:, None] + rng.integers(0, 4, (40_000, 4))) % 5).astype(np.uint8)
    one, two = (quick(categorical_features="all", n_jobs=n).fit(X, y) for n in (1, 2))
    np.testing.assert_array_equal(one.attribute_weights_, two.attribute_weights_)
    assert one.diagnostics_ == two.diagnostics_


# ------------------------------------------------------------------------------ DEAWNB


def test_best_accuracy_never_falls_and_is_at_least_that_of_naive_bayes():
    X, y = mixed_table(n=300)
    clf = quick(generations=20).fit(X, y)
    best = [record["accuracy"] for record in clf.diagnostics_]
    assert len(best) == 21
    assert best == sorted(best)
    assert best[-1] > best[0] >= NaiveBayes().fit(X, y).score(X, y)
    np.testing.assert_allclose(clf.score(X, y), best[-1])
    np.testing.assert_allclose(clf.objective_, (1.0 - best[-1]) * 300)
    assert clf.n_iter_ == 20
    means = [record["mean"] for record in clf.diagnostics_]
    assert means == sorted(means)


def test_seed_decides_everything():
    X, y = mixed_table()
    for fitness in ("training", "cross-validation"):
        a, b, c = (
            quick(random_state=seed, fitness=fitness).fit(X, y) for seed in (1, 1, 2)
        )
        np.testing.assert_array_equal(a.attribute_weights_, b.attribute_weights_)
        assert a.diagnostics_ == b.diagnostics_
        assert (a.attribute_weights_ != c.attribute_weights_).any()


@pytest.mark.parametrize("fitness", ["training", "cross-validation"])
def test_weight_two_equals_the_row_twice_in_any_order(fitness):
    X, y = mixed_table(n=60)
    weights = np.arange(60) % 3 + 1
    rows = np.random.default_rng(0).permutation(np.repeat(np.arange(60), weights))
    one = quick(fitness=fitness).fit(X, y, sample_weight=weights)
    two = quick(fitness=fitness).fit(X.iloc[rows], y[rows])
    np.testing.assert_allclose(one.attribute_weights_, two.attribute_weights_)
    np.testing.assert_allclose(one.objective_, two.objective_, atol=1e-9)


def test_weights_stay_in_their_bounds():
    X, y = mixed_table()
    clf = quick(bounds={"a": (0.5, 0.6), "b": (2, 3), "x": (-1, 0), "z": (1, 1)})
    a, b, x, z = clf.fit(X, y).attribute_weights_
    assert 0.5 <= a <= 0.6 and 2 <= b <= 3 and -1 <= x <= 0 and z == 1


def test_evolution_ends_when_all_rows_are_right():
    X = np.array([["a"], ["b"]] * 10)
    clf = quick().fit(X, [0, 1] * 10)
    assert clf.objective_ == 0.0
    assert len(clf.diagnostics_) == 1
    assert clf.n_iter_ == 1


def test_class_weights_enter_counts_and_accuracy():
    X, y = mixed_table(n=300)
    weight = {0: 20.0}
    clf = quick(class_weight=weight).fit(X, y)
    plain = NaiveBayes(class_weight=weight).fit(X, y)
    np.testing.assert_allclose(clf.class_log_prior_, plain.class_log_prior_)
    mine = np.where(y == 0, 20.0, 1.0)
    np.testing.assert_allclose(clf.objective_, mine[clf.predict(X) != y].sum())


def test_gaussian_attributes_are_weighted_too():
    X, y = load_iris(return_X_y=True)
    clf = quick(numeric="gaussian").fit(X, y)
    assert (clf.predict(X) != y).sum() == pytest.approx(clf.objective_)
    assert (
        clf.objective_
        <= (NaiveBayes(numeric="gaussian").fit(X, y).predict(X) != y).sum()
    )


def test_interruption_keeps_the_best_so_far(monkeypatch):
    X, y = mixed_table(n=300)
    whole = quick(generations=3).fit(X, y)
    plain, calls = PopulationScorer.weight_right, []

    def interrupted(self, vectors):
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return plain(self, vectors)

    monkeypatch.setattr(PopulationScorer, "weight_right", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted after 3 generations"):
        clf = quick().fit(X, y)
    np.testing.assert_array_equal(clf.attribute_weights_, whole.attribute_weights_)
    assert clf.diagnostics_ == whole.diagnostics_


def test_interruption_before_the_first_scores_leaves_an_earlier_model(monkeypatch):
    X, y = mixed_table()
    clf = quick().fit(X, y)
    before = clf.model_

    def interrupted(self, vectors):
        raise KeyboardInterrupt

    monkeypatch.setattr(PopulationScorer, "weight_right", interrupted)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y)
    assert clf.model_ is before


def test_mutants_come_from_three_others_and_are_crossed():
    seen = []

    def fitness(vectors):
        seen.append(vectors)
        return np.zeros(len(vectors))

    rng = np.random.RandomState(0)
    evolution = Evolution(fitness, 1.0, np.zeros(3), np.ones(3), 0.0, 1.0, rng)
    evolution.run(6, 1, lambda note: None)
    population, trials = seen
    # Without mutation and with full crossover a trial is another member.
    for a, trial in enumerate(trials):
        same = (population == trial).all(axis=1)
        assert same.any() and not same[a]
    seen.clear()
    evolution = Evolution(fitness, 1.0, np.zeros(3), np.ones(3), 0.5, 0.0, rng)
    evolution.run(6, 1, lambda note: None)
    # Without crossover one weight alone comes from the mutant.
    assert ((seen[0] != seen[1]).sum(axis=1) <= 1).all()
    assert (seen[0] != seen[1]).any()
    np.testing.assert_array_equal(seen[0][0], 1.0)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"population_size": 3}, "'population_size' parameter .* at least 4"),
        ({"generations": 0}, "'generations' parameter"),
        ({"generations": 1.5}, "'generations' parameter"),
        ({"mutation": -0.1}, "'mutation' parameter"),
        ({"crossover": 1.1}, "'crossover' parameter"),
        ({"crossover": True}, "'crossover' parameter"),
        ({"fitness": "auc"}, "'fitness' parameter"),
        ({"folds": 1}, "'folds' parameter"),
        ({"bounds": None}, "must be finite"),
        ({"bounds": (0, None)}, "must be finite"),
        ({"bounds": (1, 0)}, "lower bound above"),
        ({"bounds": {"q": (0, 1)}}, "not a column"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    X, y = mixed_table()
    with pytest.raises(ParameterError, match=message):
        quick(**settings).fit(X, y)


@pytest.mark.parametrize(
    "clf", [quick(), quick(fitness="cross-validation"), CorrelationAdjustedNB()]
)
def test_saved_model_comes_back(clf, tmp_path):
    X, y = mixed_table()
    clf.set_params(numeric={"x": "gaussian"}).fit(X, y)
    clf.save(tmp_path / "model.json")
    again = sy.load(tmp_path / "model.json")
    np.testing.assert_array_equal(again.attribute_weights_, clf.attribute_weights_)
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert again.diagnostics_ == clf.diagnostics_
    assert again.get_params() == clf.get_params()


def test_progress_is_shown_on_request(capsys):
    X, y = mixed_table()
    quick().fit(X, y)
    assert capsys.readouterr() == ("", "")
    quick(verbose=True).fit(X, y)
    assert capsys.readouterr().err


# ------------------------------------------------------------------------------- CWANB


def objective_of(X, y, weighting, solver, max_iter=1000):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf = WeightedNB(
            weighting=weighting, loss="brier", solver=solver, max_iter=max_iter
        ).fit(X, y)
    return clf.objective_


def test_adjusted_weights_start_from_the_filter_and_improve_on_it():
    X, y = mixed_table()
    clf = CorrelationAdjustedNB().fit(X, y)
    start = objective_of(X, y, "correlation", "fixed")
    assert clf.objective_ < start
    one = CorrelationAdjustedNB(max_iter=1).fit(X, y)
    assert one.n_iter_ == 1
    assert clf.objective_ <= one.objective_ < start
    assert ((clf.attribute_weights_ >= 0) & (clf.attribute_weights_ <= 1)).all()


def test_cap_of_iterations_belongs_to_the_method_and_draws_no_warning():
    X, y = load_breast_cancer(return_X_y=True)
    clf = CorrelationAdjustedNB(max_iter=3).fit(X, y)
    assert clf.n_iter_ == 3
    with pytest.warns(ConvergenceWarning, match="did not converge in 3 iterations"):
        WeightedNB(
            weighting="correlation", loss="brier", solver="lbfgs", max_iter=3
        ).fit(X, y)


def test_likelihood_can_adjust_the_weights():
    X, y = mixed_table()
    clf = CorrelationAdjustedNB(loss="log", max_iter=1000).fit(X, y)
    free = sy.method("WANBIA-CLL").fit(X, y)
    np.testing.assert_allclose(clf.objective_, free.objective_, rtol=1e-6)


# ---------------------------------------------------------------------------- contract

COMBINATIONS = [
    SelectiveNB(measure="zero-one", missing="value", smoothing="kohavi"),
    ForwardSelectedNB(evaluation="training", ties="add", class_weight="balanced"),
    EvolvedWeightsNB(
        fitness="cross-validation", numeric="gaussian", generations=5, folds=3
    ),
]


# Some checks have labels that no attribute tells anything about.
@pytest.mark.filterwarnings("ignore:No features were selected")
@parametrize_with_checks(COMBINATIONS)
def test_estimator_keeps_the_contract(estimator, check):
    check(estimator)
