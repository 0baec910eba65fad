"""Values and gradients of the objective, against differences and plain formulas."""

import numpy as np
import pytest
from scipy.special import softmax

from steelyard import WeightedNB
from steelyard.exceptions import ParameterError
from steelyard.fitting.objective import Objective
from steelyard.losses import LOSSES, BrierLoss, DevianceLoss
from steelyard.weighting import WEIGHTINGS

KINDS = [
    "categories",
    "categories with gaps",
    "gaps as values",
    "gaussian",
    "gaussian with gaps",
    "intervals",
    "mixed with gaps",
]
PAIRS = [
    (weighting, loss)
    for weighting in WEIGHTINGS
    for loss in LOSSES
    if not WEIGHTINGS[weighting].is_mixture or loss == "brier"
]
# The intercepts of a hierarchy take the place of a prior weight.
WITH_PRIOR = [pair for pair in PAIRS if pair[0] != "hierarchy"]


def somewhere(start, seed=1):
    """Weights near the start, but at no special point."""
    return start * np.random.default_rng(seed).uniform(0.3, 1.1, len(start))


def assert_gradient(objective, weights, differences, scale=1e-6):
    _, gradient = objective(weights)
    expected = differences(lambda w: objective(w)[0], weights)
    tolerance = scale * max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=tolerance)


def without_kernel(loss):
    """Return the same loss without its compiled form."""
    plain = type(f"Plain{type(loss).__name__}", (type(loss),), {"kernel": None})
    return plain(**loss.get_params())


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighting, loss", PAIRS)
def test_gradient_matches_finite_differences(
    weighting, loss, kind, n_classes, make_table, problem_of, differences
):
    settings, X, y = make_table(kind, n_classes)
    u = np.random.default_rng(2).uniform(0.5, 2.0, len(y))
    settings.update(weighting=weighting, loss=loss, bounds=None)
    objective, start, _, _ = problem_of(settings, X, y, u)
    assert_gradient(objective, somewhere(start), differences)


@pytest.mark.plain
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighting, loss", WITH_PRIOR)
def test_gradient_with_penalty_and_prior_weight_matches_finite_differences(
    weighting, loss, n_classes, make_table, problem_of, differences
):
    settings, X, y = make_table("mixed with gaps", n_classes, n=25)
    settings.update(weighting=weighting, loss=loss, prior_weight=True)
    for penalty, bounds, center in (
        ("ridge", None, 1.0),
        ("ridge", (0, None), 0.0),
        ("l1", (0, None), 0.0),
        ("l1", (0, 1), 1.0),
    ):
        settings.update(penalty=penalty, bounds=bounds, center=center, lam=1.7)
        objective, start, _, _ = problem_of(settings, X, y)
        assert_gradient(objective, somewhere(start), differences)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighting, loss", PAIRS)
def test_gradient_with_codes_beyond_a_byte_matches_finite_differences(
    weighting, loss, n_classes, make_table, problem_of, differences
):
    settings, X, y = make_table("wide", n_classes)
    settings.update(weighting=weighting, loss=loss, bounds=None)
    objective, start, _, _ = problem_of(settings, X, y)
    assert len(objective.rows.wide) == 1
    weights = somewhere(start)
    _, gradient = objective(weights)
    direction = np.random.default_rng(3).normal(size=len(start))
    up, down = (objective(weights + h * direction)[0] for h in (1e-6, -1e-6))
    assert gradient @ direction == pytest.approx((up - down) / 2e-6, rel=1e-5)


@pytest.mark.parametrize("weighting, loss", PAIRS)
def test_gradient_over_more_than_one_block_of_rows_matches_finite_differences(
    weighting, loss, problem_of
):
    rng = np.random.default_rng(4)
    X = rng.integers(0, 4, (20_000, 3)).astype(str)
    X[:, 1] = np.where(rng.random(len(X)) < 0.3, X[:, 0], X[:, 1])
    y = (X[:, 0] > X[:, 2]).astype(int) + (rng.random(len(X)) < 0.3)
    settings = {"weighting": weighting, "loss": loss, "bounds": None}
    one, start, _, _ = problem_of({**settings, "n_jobs": 1}, X, y)
    two, _, _, _ = problem_of({**settings, "n_jobs": 2}, X, y)
    weights = somewhere(start)
    value, gradient = one(weights)
    other_value, other_gradient = two(weights)
    assert value == other_value
    np.testing.assert_array_equal(gradient, other_gradient)
    direction = rng.normal(size=len(start))
    up, down = (one(weights + h * direction)[0] for h in (1e-5, -1e-5))
    # Terms of either sign may nearly cancel: errors are as large as the terms allow.
    scale = np.abs(gradient * direction).sum()
    assert gradient @ direction == pytest.approx((up - down) / 2e-5, abs=1e-6 * scale)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("kind", [*KINDS, "wide"])
@pytest.mark.parametrize(
    "loss",
    [*(cls() for cls in LOSSES.values()), DevianceLoss(0.7), BrierLoss(True)],
    ids=repr,
)
def test_compiled_pass_equals_the_formula_in_numpy(
    loss, kind, n_classes, make_table, problem_of
):
    settings, X, y = make_table(kind, n_classes)
    u = np.random.default_rng(5).uniform(0.0, 2.0, len(y))
    for weights in (None, u):
        settings.update(loss=loss, bounds=None)
        objective, start, _, _ = problem_of(settings, X, y, weights)
        plain = Objective(
            objective.rows,
            objective.evidence,
            objective.weighting,
            without_kernel(loss),
        )
        at = somewhere(start)
        value, gradient = objective(at)
        expected, expected_gradient = plain(at)
        assert value == pytest.approx(expected, rel=1e-12)
        scale = 1e-12 * np.abs(expected_gradient).max()
        np.testing.assert_allclose(
            gradient, expected_gradient, rtol=1e-10, atol=100 * scale
        )


def test_a_loss_of_ones_own_fits_like_the_compiled_one(make_table):
    settings, X, y = make_table("mixed with gaps", 3)
    own = WeightedNB(loss=without_kernel(LOSSES["log"]()), **settings).fit(X, y)
    compiled = WeightedNB(loss="log", **settings).fit(X, y)
    np.testing.assert_allclose(
        own.attribute_weights_, compiled.attribute_weights_, atol=1e-6
    )


@pytest.mark.parametrize("loss", ["log", "exponential", "deviance", "brier"])
def test_objective_stays_finite_for_scores_far_beyond_the_exponential(loss, problem_of):
    rng = np.random.default_rng(6)
    for n_classes in (2, 3):
        y = np.arange(30) % n_classes
        X = rng.normal(size=(30, 4)) + 1e3 * y[:, None]
        X[0] += 5e4
        settings = {"numeric": "gaussian", "loss": loss, "bounds": None}
        objective, start, _, _ = problem_of(settings, X, y)
        value, gradient = objective(-3.0 * start)
        assert np.isfinite(value)
        assert np.isfinite(gradient).all()


# ------------------------------------------------------------- published gradients


def naive_table(seed, n_classes, n=40, m=4):
    """Entries of log-likelihoods, priors and labels for the printed formulas."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n, m)).astype(str)
    y = rng.integers(0, n_classes, n)
    y[:n_classes] = np.arange(n_classes)
    return X, y


def entries(objective):
    """Log-likelihoods (n, K, m), log priors, indicator of the class."""
    ell = objective.rows.likelihoods(objective.rows.table_rows(), objective.evidence)
    log_prior = objective.evidence.log_prior
    Y = np.eye(len(log_prior))[objective.rows.y]
    return ell.transpose(2, 0, 1), log_prior, Y


@pytest.mark.plain
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_published_gradient_of_class_weights_is_the_printed_formula(
    n_classes, problem_of
):
    X, y = naive_table(7, n_classes)
    settings = {
        "weighting": "class-attribute",
        "loss": "brier",
        "published_gradient": True,
    }
    objective, start, _, _ = problem_of(settings, X, y)
    true, _, _, _ = problem_of({**settings, "published_gradient": False}, X, y)
    weights = somewhere(start)
    W = weights.reshape(n_classes, -1)
    ell, log_prior, Y = entries(objective)
    P = softmax(log_prior + np.einsum("icj,cj->ic", ell, W), axis=1)
    printed = -np.einsum("ic,icj->cj", (Y - P) * P * (1 - P), ell)
    r = P - Y
    full = np.einsum("ic,icj->cj", P * (r - (r * P).sum(1, keepdims=True)), ell)
    value, gradient = objective(weights)
    assert value == pytest.approx(0.5 * ((Y - P) ** 2).sum(), rel=1e-12)
    np.testing.assert_allclose(gradient, printed.ravel(), atol=1e-12)
    np.testing.assert_allclose(true(weights)[1], full.ravel(), atol=1e-12)
    if n_classes == 2:
        np.testing.assert_allclose(gradient, 0.5 * true(weights)[1], atol=1e-13)


@pytest.mark.plain
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_gradients_of_the_mixture_are_the_printed_and_the_repaired_formulas(
    n_classes, problem_of
):
    X, y = naive_table(8, n_classes)
    settings = {"weighting": "mixture", "loss": "brier", "published_gradient": True}
    objective, start, _, _ = problem_of(settings, X, y)
    true, _, _, _ = problem_of({**settings, "published_gradient": False}, X, y)
    weights = somewhere(start)
    alpha, W = weights[0], weights[1 : 1 + n_classes * 4].reshape(n_classes, 4)
    w = weights[1 + n_classes * 4 :]
    ell, log_prior, Y = entries(objective)
    PD = softmax(log_prior + np.einsum("icj,cj->ic", ell, W), axis=1)
    PI = softmax(log_prior + np.einsum("icj,j->ic", ell, w), axis=1)
    P = alpha * PD + (1 - alpha) * PI
    r = Y - P
    value = 0.5 * (r**2).sum()
    eq15 = -alpha * np.einsum("ic,icj->cj", r * PD * (1 - PD), ell)
    inner = (r * PD).sum(1, keepdims=True)
    full = -alpha * np.einsum("ic,icj->cj", PD * (r - inner), ell)
    mean = np.einsum("ic,icj->ij", PI, ell)
    eq16 = -(1 - alpha) * np.einsum("ic,icj->j", r * PI, ell - mean[:, None])
    eq17 = -(r * (PD - PI)).sum()
    printed = np.concatenate([[eq17], eq15.ravel(), eq16])
    repaired = np.concatenate([[eq17], full.ravel(), eq16])
    for function, expected in ((objective, printed), (true, repaired)):
        found, gradient = function(weights)
        assert found == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(gradient, expected, atol=1e-12)
    if n_classes == 2:
        np.testing.assert_allclose(eq15, 0.5 * full, atol=1e-13)


def test_published_gradient_belongs_to_the_squared_loss_only(weather):
    for loss in set(LOSSES) - {"brier"}:
        clf = WeightedNB(loss=loss, published_gradient=True)
        with pytest.raises(ParameterError, match="loss='brier'"):
            clf.fit(*weather)
