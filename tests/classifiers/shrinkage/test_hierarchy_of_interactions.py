"""The hierarchy of weights with interactions and resolutions: gradient and optimum."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from steelyard import ShrinkageNB, WeightedNB, load
from steelyard.exceptions import ParameterError
from steelyard.fitting.default import preconditioner
from steelyard.fitting.default.interactions import joined
from steelyard.fitting.default.preconditioner import (
    CoupledPreconditioner,
    choose_preconditioner,
)
from steelyard.fitting.default.strengths import Strengths
from steelyard.fitting.problem import build_problem
from steelyard.solvers import LowRankPreconditioner
from steelyard.weighting import HierarchicalWeighting

STRENGTH = (1.0, 4.0, 0.7)
BY_INTERACTION, SHARE = STRENGTH[2], Strengths.of(STRENGTH).share
ALL = {"length": ("mdl", "equal-frequency"), "width": "equal-frequency"}


def interaction_problem(X, y, interactions, u=None, **settings):
    """Return the problem of a fit with given strengths, and its rows."""
    clf = ShrinkageNB(strength=STRENGTH, **settings)
    recipe = clf._recipe()
    training = joined(recipe.encode(X, y, u), interactions)
    return build_problem(recipe, training), training


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", ["log", "brier"])
@pytest.mark.parametrize("missing", ["skip", "value"])
def test_gradient_with_interactions_and_resolutions_matches_finite_differences(
    missing, loss, n_classes, make_mixed
):
    X, y = make_mixed(50, n_classes)
    rng = np.random.default_rng(1)
    settings = {"loss": loss, "numeric": ALL, "resolutions": 3, "missing": missing}
    problem, _ = interaction_problem(
        X, y, [(0, 1), (1, 2)], rng.uniform(0.5, 2.0, len(y)), **settings
    )
    weights = problem.start + rng.normal(0.0, 0.1, problem.size)
    weights[n_classes] = problem.start[n_classes]  # the overall weight is held
    _, gradient = problem.objective(weights)
    assert len(gradient) == problem.size
    directions = rng.normal(size=(20, problem.size))
    directions = np.concatenate([directions, np.eye(problem.size)[::5]])
    directions[:, n_classes] = 0.0
    for h in directions:
        up, down = (problem.objective(weights + s * 1e-5 * h)[0] for s in (1, -1))
        assert gradient @ h == pytest.approx((up - down) / 2e-5, rel=1e-4, abs=1e-4)


def test_the_last_interactions_are_not_coupled_where_weights_are_many(monkeypatch):
    X = pd.DataFrame(np.random.default_rng(0).integers(0, 6, (4_000, 4)).astype(str))
    X.columns = list("abcd")
    problem, _ = interaction_problem(X, np.arange(4_000) % 2, [(0, 1), (2, 3)])
    owners = problem.evidence.basis.owners
    n_cells = int(problem.evidence.schema.is_interaction[owners].sum())

    def scaling(n_coupled):
        monkeypatch.setattr(preconditioner, "_MAX_BYTES", 4 * n_coupled**2 + 1)
        return choose_preconditioner(problem.objective, problem.start)

    n_weights = len(scaling(4_000).vector(problem.start))
    for n_coupled in (n_weights, n_weights - 1, n_weights - n_cells):
        chosen = scaling(n_coupled)
        assert isinstance(chosen, CoupledPreconditioner)
        assert len(chosen._scale) == n_weights - n_coupled
    assert isinstance(scaling(n_weights - n_cells - 1), LowRankPreconditioner)


def test_all_interactions_are_coupled_at_a_higher_cost_than_some(monkeypatch):
    X = pd.DataFrame(np.random.default_rng(0).integers(0, 6, (4_000, 4)).astype(str))
    X.columns = list("abcd")
    problem, _ = interaction_problem(X, np.arange(4_000) % 2, [(0, 1), (2, 3)])
    n_cells = problem.objective.n_rows * problem.evidence.n_features
    n_weights = len(choose_preconditioner(problem.objective, problem.start)._factor)

    def n_coupled(of_some, of_all):
        cubes = np.array([of_some, of_all]) ** 3 / n_cells
        monkeypatch.setattr(preconditioner, "_MAX_CUBES_PER_CELL", cubes[0])
        monkeypatch.setattr(preconditioner, "_MAX_CUBES_OF_ALL", cubes[1])
        scaling = choose_preconditioner(problem.objective, problem.start)
        return len(scaling._factor)

    some = n_weights - 5.5
    assert n_coupled(some, n_weights - 0.5) == n_weights - 6
    assert n_coupled(some, n_weights + 0.5) == n_weights


def plain_objective(problem, training):
    """Return the objective as a function of weights, from codes and evidence."""
    schema, evidence = training.schema, problem.evidence
    k, d, n = training.n_classes, len(schema), training.n_rows
    basis = evidence.basis.matrix.toarray()
    is_interaction = schema.is_interaction
    starts = [
        schema.offsets[j] + training.codes.column(j).astype(int) for j in range(d)
    ]
    center = np.where(is_interaction, 0.0, SHARE)
    owners = evidence.basis.owners
    by_value = np.where(is_interaction[owners], BY_INTERACTION, STRENGTH[2])

    def objective(weights):
        b, rest = weights[:k], weights[k + 1 :]
        shared, by_class = rest[:d], rest[d : d + d * k].reshape(d, k)
        effects = rest[d + d * k :].reshape(-1, k)
        scores = np.tile(evidence.log_prior + b, (n, 1))
        added = basis @ effects
        for j in range(d):
            factor = center[j] + shared[j] + by_class[j]
            scores += factor * evidence.table.values[starts[j]] + added[starts[j]]
        loss = logsumexp(scores, axis=1) - scores[np.arange(n), training.labels]
        ridge = 0.5 * (b**2).sum() + STRENGTH[0] * (shared**2).sum()
        ridge += STRENGTH[1] * (by_class**2).sum()
        ridge += (by_value[:, None] * effects**2).sum()
        return loss.sum() + ridge

    return objective


@pytest.mark.parametrize("resolutions", [1, 4])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_objective_is_the_formula(n_classes, resolutions, make_mixed):
    X, y = make_mixed(60, n_classes)
    settings = {"numeric": "equal-frequency", "resolutions": resolutions}
    problem, training = interaction_problem(X, y, [(0, 1), (2, 1)], **settings)
    plain = plain_objective(problem, training)
    rng = np.random.default_rng(0)
    for _ in range(3):
        weights = problem.start + rng.normal(0.0, 0.2, problem.size)
        weights[n_classes] = problem.start[n_classes]  # the overall weight is held
        assert problem.objective(weights)[0] == pytest.approx(plain(weights), rel=1e-10)


@pytest.mark.usefixtures("as_solved")
@pytest.mark.parametrize("resolutions", [1, 4])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_optimum_with_interactions_is_that_of_plain_lbfgs(
    n_classes, resolutions, make_mixed
):
    X, y = make_mixed(120, n_classes)
    settings = {"numeric": ("mdl", "equal-frequency"), "resolutions": resolutions}
    names = [("colour", "length"), ("length", "width")]
    clf = ShrinkageNB(strength=STRENGTH, interactions=names, tol=1e-10, **settings).fit(
        X, y
    )
    problem, _ = interaction_problem(X, y, [(0, 1), (1, 2)], **settings)
    free = np.arange(problem.size) != n_classes  # all but the overall weight

    def objective(part):
        weights = problem.start.copy()
        weights[free] = part
        value, gradient = problem.objective(weights)
        return value, gradient[free]

    found = minimize(
        objective,
        problem.start[free],
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 10_000, "maxfun": 20_000, "ftol": 1e-15, "gtol": 1e-8},
    )
    assert clf.objective_ == pytest.approx(found.fun, rel=1e-7)
    weights = problem.start.copy()
    weights[free] = found.x
    model = problem.model(weights)
    np.testing.assert_allclose(clf.model_.table, model.table, atol=1e-3)


@pytest.mark.parametrize("loss", ["log", "brier"])
def test_interactions_are_a_part_of_a_hierarchy_in_weighted_nb(loss, tmp_path):
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.normal(size=(600, 3)), columns=list("abc"))
    y = (X.a > 0) ^ (X.b > 0)
    weighting = HierarchicalWeighting(
        interactions=[("a", "b")], by_value=0.5, by_interaction=0.5
    )
    settings = {"bounds": None, "numeric": "equal-frequency", "loss": loss}
    clf = WeightedNB(weighting=weighting, **settings).fit(X, y)
    alone = WeightedNB(weighting=HierarchicalWeighting(), **settings).fit(X, y)
    assert clf.model_.schema.labels()[-1] == "a × b"
    assert clf.score(X, y) > 0.9 > 0.75 > alone.score(X, y)
    clf.save(tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))


def test_a_interaction_of_an_unknown_column_is_refused_in_a_hierarchy():
    clf = WeightedNB(
        weighting=HierarchicalWeighting(interactions=[("a", "q")]), bounds=None
    )
    with pytest.raises(ParameterError, match="names 'q', which is not a column"):
        clf.fit(pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [0.0, 1.0, 0.0]}), [0, 1, 1])
