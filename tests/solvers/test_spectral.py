"""Spectral steps in the units of a rough Hessian, where tables are wide."""

import numpy as np
import pytest

import steelyard as sy
from steelyard.solvers import (
    LBFGS,
    LowRankPreconditioner,
    Newton,
    SpectralGradient,
    resolve_solver,
)
from steelyard.solvers.constrained import box_minimum


def wide_table(n, d, n_classes, seed=0):
    """Columns of two values, some of which say a little about the classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    share = np.full((n_classes, d), 0.5)
    share[:, :20] += rng.normal(0.0, 0.1, (n_classes, 20))
    return (rng.random((n, d)) < share[y]).astype(np.uint8), y


def fitted(name, X, y, **settings):
    return sy.method(name, categorical_features="all", **settings).fit(X, y)


@pytest.mark.parametrize("rank", [0, 1, 3])
@pytest.mark.parametrize("length", [1e-3, 1.0, 1e3])
def test_a_step_minimises_the_quadratic_within_bounds(rank, length):
    rng = np.random.default_rng(rank)
    own, common = rng.uniform(0.1, 10.0, 40), 30.0 * rng.normal(size=(40, rank))
    slope = length * 20.0 * rng.normal(size=40)
    low, high = -rng.random(40), rng.random(40)
    low[:5] = 0.0
    metric = LowRankPreconditioner(own, common)
    matrix = np.diag(own) + common @ common.T
    expected = box_minimum(matrix, slope, low, high)
    found = metric.step(slope, low, high)
    assert (found >= low).all()
    assert (found <= high).all()
    np.testing.assert_allclose(found, expected, atol=1e-8)
    assert metric.square(found) == pytest.approx(found @ matrix @ found)


@pytest.mark.parametrize("rank", [0, 2])
def test_a_metric_is_one_in_scaled_weights(rank):
    rng = np.random.default_rng(rank)
    metric = LowRankPreconditioner(
        rng.uniform(0.1, 10.0, 12), 30.0 * rng.normal(size=(12, rank))
    )
    matrix = np.diag(metric.diagonal) + metric.common @ metric.common.T
    change = np.array([metric.weights(unit) for unit in np.eye(12)]).T
    np.testing.assert_allclose(change.T @ matrix @ change, np.eye(12), atol=1e-9)
    y, gradient = rng.normal(size=(2, 12))
    np.testing.assert_allclose(metric.vector(metric.weights(y)), y)
    np.testing.assert_allclose(metric.gradient(gradient), change.T @ gradient)


@pytest.mark.parametrize("name", ["WANBIA-CLL", "CAWNB-CLL"])
@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_convex_losses_end_at_newtons_optimum(name, n_classes):
    X, y = wide_table(600, 60, n_classes)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    for settings in ({}, {"lam": 0.5}, {"prior_weight": True}):
        clf = sy.method(name, categorical_features="all", **settings)
        newton = clf.set_params(solver=Newton()).fit(X, y, weights).objective_
        clf.set_params(solver=SpectralGradient()).fit(X, y, weights)
        assert clf.objective_ == pytest.approx(newton, rel=1e-6)


def test_weights_per_value_and_densities_end_at_the_same_optimum():
    X, y = wide_table(500, 30, 3)
    values = [
        fitted("CAVWNB-CLL", X, y, solver=solver).objective_
        for solver in (LBFGS(), SpectralGradient())
    ]
    assert values[1] == pytest.approx(values[0], rel=1e-6)
    numbers = X[:, :12] + np.random.default_rng(2).normal(size=(500, 12))
    values = [
        sy.method("CAWNB-CLL", numeric="gaussian", solver=solver)
        .fit(numbers, y)
        .objective_
        for solver in (Newton(), SpectralGradient())
    ]
    assert values[1] == pytest.approx(values[0], rel=1e-6)


@pytest.mark.parametrize("name", ["RNB", "CAWNB-MSE"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_squared_errors_end_no_higher_than_by_lbfgs(name, n_classes):
    X, y = wide_table(400, 100, n_classes)
    spectral = fitted(name, X, y, solver=SpectralGradient())
    assert spectral.diagnostics_[-1]["gradient"] < 1e-2
    lbfgs = fitted(name, X, y, solver=LBFGS(max_iter=3000))
    assert spectral.objective_ <= lbfgs.objective_ * (1.0 + 1e-6)


def test_auto_takes_spectral_steps_for_many_weights_alone():
    X, y = wide_table(300, 800, 2)
    auto = fitted("CAWNB-CLL", X, y)
    spectral = fitted("CAWNB-CLL", X, y, solver=SpectralGradient(tol=auto.tol))
    np.testing.assert_array_equal(
        auto.class_attribute_weights_, spectral.class_attribute_weights_
    )

    class Sized:
        has_hessian, size = True, 1500

        def refuses_second_order(self):
            return ""

    few, many = Sized(), Sized()
    many.size = 1501
    assert type(resolve_solver("auto", few, 1e-10, 9)) is Newton
    assert type(resolve_solver("auto", many, 1e-10, 9)) is SpectralGradient
    assert type(resolve_solver("lbfgs", many, 1e-10, 9)) is LBFGS
    many.has_hessian = False
    assert type(resolve_solver("auto", many, 1e-10, 9)) is LBFGS


@pytest.mark.filterwarnings("ignore:The solver could not lower the objective")
@pytest.mark.parametrize(
    "settings", [{"bounds": None, "lam": 1.0}, {"published_gradient": True}]
)
def test_without_bounds_or_a_true_gradient_it_is_lbfgs(settings):
    X, y = wide_table(120, 20, 3)
    one, other = (
        fitted("CAWNB", X, y, solver=solver, **settings)
        for solver in (SpectralGradient(), LBFGS())
    )
    np.testing.assert_array_equal(
        one.class_attribute_weights_, other.class_attribute_weights_
    )


@pytest.mark.filterwarnings("ignore:The weights did not converge")
@pytest.mark.parametrize("name", ["CAWNB-CLL", "RNB"])
def test_a_wide_table_gives_the_same_bits_for_any_number_of_threads(name):
    # Enough look-ups for several blocks of rows.
    X, y = wide_table(2_500, 1_800, 3)
    X[::7, 5] = 2
    models = [
        fitted(name, X, y, n_jobs=n_jobs, solver=SpectralGradient(max_iter=3))
        for n_jobs in (1, 2)
    ]
    weights = [model.class_attribute_weights_.tobytes() for model in models]
    assert weights[0] == weights[1]
