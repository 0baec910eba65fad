"""Second derivatives, against differences of the gradient."""

import numpy as np
import pytest

from steelyard.losses import LOSSES, DevianceLoss
from steelyard.weighting import WEIGHTINGS

SMOOTH = [name for name, loss in LOSSES.items() if loss().has_hessian]
PAIRS = [
    (weighting, loss)
    for weighting in WEIGHTINGS
    for loss in SMOOTH
    if not WEIGHTINGS[weighting].is_mixture or loss == "brier"
]
ASSEMBLED = [pair for pair in PAIRS if WEIGHTINGS[pair[0]].has_hessian]


def somewhere(start, seed=1):
    return start * np.random.default_rng(seed).uniform(0.3, 1.1, len(start))


def problem_with(settings, X, y, problem_of, weighted=True):
    u = np.random.default_rng(2).uniform(0.5, 2.0, len(y)) if weighted else None
    objective, start, _, _ = problem_of({"bounds": None, **settings}, X, y, u)
    return objective, objective.sample(10**9), somewhere(start)


@pytest.mark.plain
@pytest.mark.parametrize("prior_weight", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("kind", ["categories with gaps", "mixed with gaps"])
@pytest.mark.parametrize("weighting, loss", ASSEMBLED)
def test_hessian_matches_differences_of_the_gradient(
    weighting, loss, kind, n_classes, prior_weight, make_table, problem_of, differences
):
    settings, X, y = make_table(kind, n_classes, n=24)
    settings.update(weighting=weighting, loss=loss, prior_weight=prior_weight, lam=0.3)
    objective, sample, weights = problem_with(settings, X, y, problem_of)
    assert sample.is_all
    expected = differences(lambda w: objective(w)[1], weights)
    found = sample.hessian(weights)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6 * scale)
    np.testing.assert_allclose(found, found.T, atol=1e-12 * scale)


@pytest.mark.parametrize("prior_weight", [False, True])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("weighting, loss", ASSEMBLED)
def test_stand_in_of_the_hessian_is_positive_semidefinite(
    weighting, loss, n_classes, prior_weight, make_table, problem_of
):
    settings, X, y = make_table("mixed with gaps", n_classes)
    settings.update(weighting=weighting, loss=loss, prior_weight=prior_weight)
    objective, sample, weights = problem_with(settings, X, y, problem_of)
    for at in (weights, 3.0 * weights):
        matrix = sample.hessian(at, exact=False)
        lowest = np.linalg.eigvalsh(matrix).min()
        assert lowest >= -1e-12 * np.abs(matrix).max()
        if objective.is_convex:
            scale = np.abs(matrix).max()
            np.testing.assert_allclose(matrix, sample.hessian(at), atol=1e-12 * scale)


def test_gauss_newton_equals_the_exact_hessian_where_residuals_vanish(problem_of):
    # Both rows are classified with certainty: nothing is left for the residual term.
    X = np.repeat([["a"], ["b"]], 2000, axis=0)
    y = np.repeat([0, 1], 2000)
    settings = {"loss": "brier", "bounds": None}
    _, sample, _ = problem_with(settings, X, y, problem_of, weighted=False)
    weights = np.array([8.0])
    exact, stand_in = sample.hessian(weights), sample.hessian(weights, exact=False)
    np.testing.assert_allclose(exact, stand_in, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighting, loss", ASSEMBLED)
def test_hessian_with_codes_beyond_a_byte_matches_differences(
    weighting, loss, n_classes, make_table, problem_of, differences
):
    settings, X, y = make_table("wide", n_classes)
    settings.update(weighting=weighting, loss=loss)
    objective, sample, weights = problem_with(settings, X, y, problem_of)
    expected = differences(lambda w: objective(w)[1], weights)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(sample.hessian(weights), expected, atol=1e-6 * scale)


@pytest.mark.parametrize("weighting, loss", PAIRS)
def test_sampled_rows_are_always_the_same_and_represent_all(
    weighting, loss, make_table, problem_of
):
    settings, X, y = make_table("mixed with gaps", 3, n=3000)
    settings.update(weighting=weighting, loss=loss)
    objective, everything, weights = problem_with(settings, X, y, problem_of)
    sample = objective.sample(1500)
    assert not sample.is_all
    assert sample.n_rows == 1500
    if not objective.weighting.has_hessian:
        return
    matrix, whole = sample.hessian(weights), everything.hessian(weights)
    np.testing.assert_array_equal(matrix, objective.sample(1500).hessian(weights))
    assert np.trace(matrix) == pytest.approx(np.trace(whole), rel=0.5)


@pytest.mark.parametrize("multiplier", [0.5, 1.0, 3.0])
def test_curvature_of_the_deviance_grows_with_the_square_of_its_multiplier(multiplier):
    rng = np.random.default_rng(4)
    scores, y = rng.normal(size=(7, 3)), rng.integers(0, 3, 7).astype(np.uint32)
    found = DevianceLoss(multiplier).hessian(scores / multiplier, y, None).matrices()
    unit = DevianceLoss(1.0).hessian(scores, y, None).matrices()
    np.testing.assert_allclose(found, multiplier**2 * unit, atol=1e-14)


@pytest.mark.parametrize("loss", SMOOTH)
def test_curvature_by_row_matches_differences_in_the_scores(loss, differences):
    loss = LOSSES[loss]()
    rng = np.random.default_rng(5)
    for n_classes in (2, 3, 5):
        for _ in range(5):
            scores = 2.0 * rng.normal(size=n_classes)
            y = np.array([rng.integers(0, n_classes)], np.uint32)
            weights = np.array([1.3])

            def slope(z, y=y, weights=weights):
                return loss.value_and_gradient(z[None], y, weights)[1][0]

            expected = differences(slope, scores)
            curvature = loss.hessian(scores[None], y, weights)
            scale = 1e-8 * max(1.0, np.abs(expected).max())
            np.testing.assert_allclose(
                curvature.matrices()[0], expected, rtol=1e-6, atol=scale
            )
