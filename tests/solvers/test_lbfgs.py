"""Solvers keep nothing from one fit to the next."""

import copy

import numpy as np
import pytest

import steelyard as sy
from steelyard.solvers import LBFGS, Box, Fixed, Newton, SpectralGradient
from steelyard.solvers.lbfgs import InverseHessian, RoughLBFGS

SOLVERS = [LBFGS(), Newton(), SpectralGradient(), Fixed()]


def table(n, d, seed):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = np.where(rng.random((n, d)) < 0.4, y[:, None], rng.integers(0, 3, (n, d)))
    return X.astype(str), y


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda solver: type(solver).__name__)
@pytest.mark.parametrize("weighting", ["attribute", "class-attribute", "hierarchy"])
def test_one_object_serves_one_table_after_another(solver, weighting):
    if weighting == "hierarchy" and isinstance(solver, Newton):
        pytest.skip("hierarchical weights have no assembled second derivatives")
    solver = copy.deepcopy(solver)
    state = dict(vars(solver))
    settings = {"weighting": weighting, "bounds": None, "lam": 0.5}
    for n, d, seed in ((60, 3, 0), (90, 5, 1), (60, 3, 0)):
        X, y = table(n, d, seed)
        shared = sy.WeightedNB(solver=solver, **settings).fit(X, y)
        fresh = sy.WeightedNB(solver=type(solver)(), **settings).fit(X, y)
        np.testing.assert_array_equal(
            shared.predict_proba(X), fresh.predict_proba(X), strict=True
        )
        assert shared.objective_ == fresh.objective_ or np.isnan(fresh.objective_)
    assert vars(solver) == state


def test_a_fit_that_starts_at_its_optimum_ends_there():
    # A warning that it did not converge would be an error here.
    clf = sy.ShrinkageNB(strength=(1.0, 1.0, 1.0)).fit([["x"]] * 40, ["a", "b"] * 20)
    assert clf.n_iter_ <= 1
    np.testing.assert_allclose(clf.predict_proba([["x"]]), 0.5)


def test_a_classifier_with_a_solver_object_can_choose_strengths(tmp_path):
    clf = sy.ShrinkageNB(solver=LBFGS(tol=1e-6))
    for n, d, seed in ((60, 3, 0), (90, 5, 1)):
        clf.fit(*table(n, d, seed))
        assert len(clf.strength_path_) >= 3


def test_units_are_no_setting_of_a_solver():
    with pytest.raises(TypeError, match="keeps_units"):
        LBFGS(keeps_units=True)


def test_a_rough_fit_ends_sooner_and_about_as_low():
    # So many weights that they are not coupled.
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 9, (150, 12)).astype(str), rng.integers(0, 5, 150)
    rough, whole = (
        sy.WeightedNB(
            solver=kind(tol=3e-3), weighting="hierarchy", bounds=None, lam=0.5
        ).fit(X, y)
        for kind in (RoughLBFGS, LBFGS)
    )
    assert rough.n_iter_ < whole.n_iter_
    assert whole.objective_ <= rough.objective_ <= 1.03 * whole.objective_


def test_products_that_are_known_give_the_same_matrix():
    rng = np.random.default_rng(0)
    hessian = np.diag(np.geomspace(1.0, 100.0, 30))
    anew, going_on = InverseHessian(30), InverseHessian(30)
    gradient = rng.normal(size=30)
    for _ in range(25):
        direction = going_on.solve(gradient, is_next=True)
        np.testing.assert_allclose(direction, anew.solve(gradient), 1e-9, 1e-12)
        bend = hessian @ (step := rng.normal(size=30))
        for matrix in (anew, going_on):
            matrix.learn(step, bend)
        # It explains the last step.
        np.testing.assert_allclose(anew.solve(bend), step, 1e-8, 1e-10)
        left, middle = anew.factors(np.eye(30))
        np.testing.assert_allclose(
            anew.scale * np.eye(30) + left @ middle @ left.T,
            np.array([anew.solve(row) for row in np.eye(30)]),
            rtol=1e-8,
            atol=1e-10,
        )
        gradient = gradient + bend


@pytest.mark.parametrize("seed", range(4))
def test_a_loss_that_starts_huge_is_followed_to_its_minimum(seed):
    # Six rows far out on the wrong side: naive Bayes starts at 1e8 times the least
    # loss, and the weights of two columns end at their bound.
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 1500)
    spread = 1.0 + y[:, None] * np.arange(1, 4)
    X = rng.normal(0.3 * y[:, None], spread, (1500, 3))
    X[:6], y[:6] = 12.0 + rng.normal(size=(6, 3)), 0
    exact = sy.method("ENB", solver="newton").fit(X, y)
    clf = sy.method("ENB", solver="lbfgs").fit(X, y)
    assert clf.objective_ == pytest.approx(exact.objective_, rel=1e-8)


def test_a_steep_slope_next_to_a_bound_is_not_flat():
    box = Box(np.zeros(2), np.full(2, np.inf))
    weights, slope = np.array([0.0, 0.3]), np.array([1e9, 1e9])
    assert not box.is_flat(weights, 5e7, slope, 1e-8)
    assert box.is_flat(np.zeros(2), 5e7, slope, 1e-8)
