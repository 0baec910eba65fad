"""The hierarchy of weights: its gradient, limits, optimum and preconditioner."""

import tracemalloc
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize

from steelyard import NaiveBayes, ShrinkageNB, WeightedNB
from steelyard.exceptions import ParameterError
from steelyard.fitting.default import preconditioner
from steelyard.fitting.default.preconditioner import (
    CoupledPreconditioner,
    choose_preconditioner,
    diagonal_preconditioner,
)
from steelyard.fitting.default.strengths import Strengths
from steelyard.losses import LOSSES
from steelyard.model.base import softmax
from steelyard.solvers import LowRankPreconditioner
from steelyard.weighting import HierarchicalWeighting

HUGE = 1e10
BOTH = ("mdl", "equal-frequency")
ALL = {"length": BOTH, "width": "gaussian-relative"}


def somewhere(problem, seed=0):
    """Weights near the start, at no special point."""
    random = np.random.default_rng(seed)
    return problem.start + random.normal(0.0, 0.1, len(problem.start))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", LOSSES)
def test_gradient_with_encodings_and_gaps_matches_finite_differences(
    loss, n_classes, make_mixed, problem_of, fixed
):
    X, y = make_mixed(50, n_classes)
    u = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    problem = problem_of(fixed(loss=loss, numeric=ALL), X, y, u)
    weights = somewhere(problem)
    _, gradient = problem.objective(weights)
    steps = 1e-5 * np.eye(len(weights))
    expected = [
        (problem.objective(weights + h)[0] - problem.objective(weights - h)[0]) / 2e-5
        for h in steps
    ]
    scale = max(1.0, np.abs(gradient).max())
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-6 * scale)


@pytest.mark.parametrize("missing", ["skip", "value", "impute"])
@pytest.mark.parametrize("numeric", ["mdl", {"length": "mdl"}])
def test_with_all_strengths_huge_it_is_naive_bayes(numeric, missing, mixed):
    X, y = mixed
    clf = ShrinkageNB(
        strength=Strengths(HUGE, HUGE, HUGE, share=1.0),
        intercept=HUGE,
        numeric=numeric,
        missing=missing,
        smoothing="laplace",
        unknown="sum",
    ).fit(X, y)
    plain = NaiveBayes(numeric="mdl", smoothing="laplace", missing=missing).fit(X, y)
    np.testing.assert_allclose(
        clf.predict_proba(X), plain.predict_proba(X), rtol=0, atol=1e-6
    )


def test_an_infinite_overall_strength_holds_the_overall_weight(mixed, levels):
    X, y = mixed
    held = levels((HUGE, HUGE, HUGE), np.inf).fit(X, y)
    free = levels((HUGE, HUGE, HUGE), 0.0).fit(X, y)
    np.testing.assert_allclose(held.attribute_weights_, 1.0, atol=1e-6)
    shared = free.attribute_weights_
    np.testing.assert_allclose(shared, shared[0], atol=1e-6)
    assert abs(shared[0] - 1.0) > 0.01


@pytest.mark.parametrize("strength", [(10.0, 40.0, 10.0), (0.5, 1.0, 0.15)])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("scaling", [diagonal_preconditioner, CoupledPreconditioner])
def test_the_optimum_is_that_of_plain_lbfgs(
    scaling, n_classes, strength, make_mixed, problem_of, levels, monkeypatch
):
    monkeypatch.setattr(preconditioner, "choose_preconditioner", scaling)
    X, y = make_mixed(160, n_classes)
    # A rigid overall weight would be too steep for it.
    clf = levels(strength, 0.5, tol=1e-9, numeric=ALL).fit(X, y)
    problem = problem_of(levels(strength, 0.5, numeric=ALL), X, y)
    found = minimize(
        problem.objective,
        problem.start,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 10_000, "maxfun": 20_000, "ftol": 1e-14, "gtol": 1e-9},
    )
    assert clf.objective_ == pytest.approx(found.fun, rel=1e-6)
    assert clf.objective_ <= found.fun * (1.0 + 1e-7)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "kind",
    [
        diagonal_preconditioner,
        CoupledPreconditioner,
        partial(CoupledPreconditioner, n_effects=5),
    ],
)
def test_preconditioners_turn_weights_there_and_back_and_gradients_by_the_chain_rule(
    kind, n_classes, make_mixed, problem_of, fixed
):
    X, y = make_mixed(80, n_classes)
    problem = problem_of(fixed(), X, y)
    scaling = kind(problem.objective, problem.start)
    weights = somewhere(problem)
    if (
        kind is not diagonal_preconditioner
    ):  # has no place for what all classes have in common
        level = problem.objective.weighting.levels(weights, problem.evidence)
        level.intercept[:] -= level.intercept.mean()
        level.by_value[:] -= level.by_value.mean(axis=1, keepdims=True)
    own = scaling.vector(weights)
    np.testing.assert_allclose(scaling.weights(own), weights, atol=1e-9)
    np.testing.assert_allclose(scaling.vector(scaling.weights(own)), own, atol=1e-9)
    # x = A y, so a gradient in y is A' times one in x.
    direction = np.random.default_rng(4).normal(size=len(own))
    _, gradient = problem.objective(weights)
    along = gradient @ (scaling.weights(own + direction) - weights)
    assert scaling.gradient(gradient) @ direction == pytest.approx(along, rel=1e-7)


def product(problem, curvature, direction):
    """The Hessian times a direction, from scores there and back."""
    objective, rows = problem.objective, problem.objective.rows
    effect = objective.weighting.apply(direction, problem.evidence)
    effect = replace(effect, base=effect.base - problem.evidence.log_prior)
    change = np.einsum("nij,nj->ni", curvature.matrices(), rows.scores(effect))
    out = objective.weighting.pullback(rows.scatter(change), problem.evidence)
    return out + objective.penalty.curvature(len(out)) * direction


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_diagonal_is_that_of_the_hessian(n_classes, make_mixed, problem_of, fixed):
    X, y = make_mixed(80, n_classes)
    problem = problem_of(fixed(numeric=ALL), X, y)
    weights, evidence = somewhere(problem), problem.evidence
    sample = problem.objective.sample(10**9)
    share = softmax(sample.scores(weights))
    by_effect = sample.rows.scatter(share * (1.0 - share), power=2)
    diagonal = problem.objective.weighting.pullback(by_effect, evidence, power=2)
    bent = sample.curvature(weights, exact=True)
    ridge = problem.objective.penalty.curvature(len(weights))
    exact = [
        product(problem, bent, unit) @ unit for unit in np.eye(len(weights))
    ] - ridge
    # What classes share is coupled between them: there it is only an estimate.
    k, d = evidence.n_classes, evidence.n_features
    own = np.r_[:k, k + 1 + d : len(weights)]
    np.testing.assert_allclose(diagonal[own], exact[own], rtol=1e-9, atol=1e-9)


def test_preconditioners_make_curvatures_alike(two, problem_of, fixed):
    X, y = two
    problem = problem_of(fixed(), X, y)
    weights = problem.solve(replace(fixed()._recipe(), tol=1e-9)).weights
    scaling = diagonal_preconditioner(problem.objective, weights)
    sample = problem.objective.sample(10**9)
    bent = sample.curvature(weights, exact=True)
    eye = np.eye(len(weights))
    columns = [scaling.weights(unit) for unit in eye]
    hessian = [scaling.gradient(product(problem, bent, column)) for column in columns]
    values = np.linalg.eigvalsh(hessian)
    plain = np.linalg.eigvalsh([product(problem, bent, unit) for unit in eye])
    assert values.max() / values.min() < 1e-3 * plain.max() / plain.min()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("columns", [["colour", "length", "width"], ["length"]])
@pytest.mark.parametrize("numeric", [BOTH, "gaussian"])
def test_coupled_preconditioners_of_all_rows_make_all_curvatures_equal(
    numeric, columns, n_classes, make_mixed, problem_of, fixed, monkeypatch
):
    monkeypatch.setattr(preconditioner, "_UNIFORM_SHARE", 0.0)
    X, y = make_mixed(160, n_classes)
    X = X[columns]
    u = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    problem = problem_of(fixed(numeric=numeric), X, y, u)
    weights = somewhere(problem)
    scaling = CoupledPreconditioner(problem.objective, weights)
    sample = problem.objective.sample(10**9)
    bent = sample.curvature(weights, exact=True)
    columns = map(scaling.weights, np.eye(len(scaling.vector(weights))))
    hessian = [scaling.gradient(product(problem, bent, column)) for column in columns]
    own = preconditioner._COUPLED_SHARE * np.array(hessian)
    np.testing.assert_allclose(own, np.eye(len(own)), atol=0.01)


def test_weights_are_coupled_where_rows_outnumber_them_by_far(problem_of, fixed):
    random = np.random.default_rng(0)
    for n_rows, n_columns, kind in (
        (4_000, 4, CoupledPreconditioner),
        (200, 40, LowRankPreconditioner),
    ):
        X, y = random.integers(0, 3, (n_rows, n_columns)), np.arange(n_rows) % 2
        clf = fixed(categorical_features="all")
        problem = problem_of(clf, X, y)
        assert isinstance(choose_preconditioner(problem.objective, problem.start), kind)


def test_coupled_preconditioners_bear_strengths_of_next_to_nothing(fixed):
    random = np.random.default_rng(0)
    y = np.arange(4_000) % 2
    X = random.integers(0, 3 + y[:, None], (4_000, 3))
    X[0] = 9  # a value that is hardly ever drawn
    clf = fixed((1e-9,) * 3, categorical_features="all", intercept=0.0).fit(X, y)
    assert np.isfinite(clf.predict_proba(X)).all()


@pytest.mark.parametrize("loss", ["log", "brier", "deviance"])
def test_a_hierarchy_goes_with_other_losses_in_weighted_nb(loss, mixed):
    X, y = mixed
    clf = WeightedNB(
        weighting="hierarchy",
        loss=loss,
        bounds=None,
        numeric=("mdl", "equal-frequency"),
    ).fit(X, y)
    assert clf.score(X, y) > NaiveBayes().fit(X, y).score(X, y) - 0.02
    assert clf.class_attribute_weights_.shape == (3, 4)
    assert [effects.shape[0] for effects in clf.value_effects_] == [3] * 4
    assert clf.intercept_.shape == (3,)


@pytest.mark.usefixtures("as_solved")
def test_fitted_weights_and_effects_make_the_scores(mixed, fixed):
    X, y = mixed
    clf = fixed().fit(X, y)
    plain = NaiveBayes(
        numeric=clf.numeric, smoothing=clf.smoothing, prior=clf.prior
    ).fit(X, y)
    offsets = clf.model_.schema.offsets
    for j in clf.model_.schema.coded:
        own = slice(offsets[j] + 1, offsets[j + 1])
        expected = (
            clf.class_attribute_weights_[:, j] * plain.model_.table[own]
            + clf.value_effects_[j].T
        )
        np.testing.assert_allclose(clf.model_.table[own], expected, atol=1e-12)
    np.testing.assert_allclose(
        clf.model_.log_prior, plain.model_.log_prior + clf.intercept_, atol=1e-12
    )
    for j, effects in enumerate(clf.value_effects_):
        coded = j in clf.model_.schema.coded
        assert (effects.shape[1] > 0) == coded


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"bounds": (0, 1)}, "bounds=None"),
        ({"prior_weight": True}, "'prior_weight' .* must be False.*Got True"),
        ({"weighting": HierarchicalWeighting(shared=-1.0)}, "'shared'"),
        ({"weighting": HierarchicalWeighting(overall=np.nan)}, "'overall'"),
        ({"weighting": HierarchicalWeighting(by_value=np.inf)}, "'by_value'"),
    ],
)
def test_settings_that_a_hierarchy_cannot_have_are_refused(settings, words, mixed):
    clf = WeightedNB(**{"weighting": "hierarchy", "bounds": None, **settings})
    with pytest.raises(ParameterError, match=words):
        clf.fit(*mixed)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_couplings_take_one_matrix_whatever_the_threads(n_classes, problem_of, fixed):
    random = np.random.default_rng(0)
    n_values = 1_200 // (n_classes - 1)
    X = np.concatenate([np.arange(n_values), random.integers(0, n_values, 6_000)])
    y = random.integers(0, n_classes, len(X))
    clf = fixed(categorical_features="all", n_jobs=8, keep_identifiers=True)
    problem = problem_of(clf, X[:, None], y)
    tracemalloc.start()
    try:
        scaling = CoupledPreconditioner(problem.objective, problem.start)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    size = len(scaling.vector(problem.start))
    assert size >= 1_200
    # A sum in single precision and its factor, and as much for blocks of rows.
    assert peak <= 24 * size**2


@pytest.mark.parametrize("n_classes", [2, 3])
def test_effects_that_are_not_coupled_have_their_own_curvature(
    n_classes, make_mixed, problem_of, fixed, monkeypatch
):
    monkeypatch.setattr(preconditioner, "_UNIFORM_SHARE", 0.0)
    X, y = make_mixed(160, n_classes)
    problem = problem_of(fixed(), X, y)
    weights = somewhere(problem)
    scaling = CoupledPreconditioner(problem.objective, weights, n_effects=5)
    sample = problem.objective.sample(10**9)
    bent = sample.curvature(weights, exact=True)
    columns = map(scaling.weights, np.eye(len(scaling.vector(weights))))
    hessian = [scaling.gradient(product(problem, bent, column)) for column in columns]
    scaled = preconditioner._COUPLED_SHARE * np.array(hessian)
    n = n_classes + (1 + n_classes) * problem.evidence.n_features + 5 * (n_classes - 1)
    assert n < len(scaled)
    np.testing.assert_allclose(scaled[:n, :n], np.eye(n), atol=0.01)
    np.testing.assert_allclose(np.diag(scaled), 1.0, atol=0.01)


def test_couplings_of_many_weights_are_in_single_precision(
    make_mixed, problem_of, fixed, monkeypatch
):
    X, y = make_mixed(400, 3)
    problem, clf = problem_of(fixed(), X, y), fixed().fit(X, y)
    monkeypatch.setattr(preconditioner, "_BYTES_OF_BOTH", 10**9)
    scaling = CoupledPreconditioner(problem.objective, problem.start)
    assert scaling._factor.dtype == np.float32
    own = scaling.vector(somewhere(problem))
    again = scaling.vector(scaling.weights(own))
    np.testing.assert_allclose(again, own, atol=1e-4 * np.abs(own).max())
    monkeypatch.setattr(preconditioner, "choose_preconditioner", CoupledPreconditioner)
    assert fixed().fit(X, y).objective_ == pytest.approx(clf.objective_, rel=1e-7)


def test_couplings_are_bounded_in_bytes(problem_of, fixed, monkeypatch):
    X = np.random.default_rng(0).integers(0, 3, (4_000, 4))
    clf = fixed(categorical_features="all")
    problem = problem_of(clf, X, np.arange(4_000) % 2)
    assert isinstance(
        choose_preconditioner(problem.objective, problem.start), CoupledPreconditioner
    )
    monkeypatch.setattr(preconditioner, "_MAX_BYTES", 1_000)
    assert isinstance(
        choose_preconditioner(problem.objective, problem.start), LowRankPreconditioner
    )
