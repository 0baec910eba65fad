"""Steps, losses and searches of the papers, against programs of a few lines."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax

import steelyard as sy
from steelyard.exceptions import ParameterError
from steelyard.solvers import LBFGS, GradientDescent


def rnb_by_hand(X, y):
    """Return RNB's objective with its true gradient (eqs 5 to 17)."""
    prior = np.log(np.array([(y == c).sum() + 1 / 3 for c in range(3)]) / (len(y) + 1))
    logs = np.stack([_log_prob(X, y, j) for j in range(X.shape[1])], axis=2)
    one = np.eye(3)[y]

    def value_and_gradient(x):
        d = X.shape[1]
        W, w, alpha = x[: 3 * d].reshape(3, d), x[3 * d : 4 * d], x[-1]
        specific = softmax(prior + np.einsum("icj,cj->ic", logs, W), axis=1)
        shared = softmax(prior + np.einsum("icj,j->ic", logs, w), axis=1)
        r = one - alpha * specific - (1 - alpha) * shared
        t = specific * (r - (r * specific).sum(axis=1, keepdims=True))
        s = shared * (r - (r * shared).sum(axis=1, keepdims=True))
        gradient = [-alpha * np.einsum("ic,icj->cj", t, logs).ravel()]
        gradient += [-(1 - alpha) * np.einsum("ic,icj->j", s, logs)]
        gradient += [[-(r * (specific - shared)).sum()]]
        return 0.5 * (r**2).sum(), np.concatenate(gradient)

    return value_and_gradient


def _log_prob(X, y, j):
    """Return m-estimates of one column by row and class."""
    values = np.unique(X[:, j])
    table = np.array(
        [[((X[:, j] == v) & (y == c)).sum() for c in range(3)] for v in values]
    )
    table = (table + 1 / len(values)) / (table.sum(axis=0) + 1)
    return np.log(table[np.searchsorted(values, X[:, j])])


@pytest.fixture(scope="module")
def codes():
    rng = np.random.default_rng(3)
    y = rng.integers(3, size=150)
    X = (y[:, None] + rng.integers(0, 3, size=(150, 4))) % 4
    X[:, 3] = X[:, 2]  # repeated evidence
    return X.astype(float), y


def test_gradient_descent_makes_the_steps_of_the_paper(codes):
    X, y = codes
    settings = {"categorical_features": "all", "keep_identifiers": True}
    clf = sy.method("RNB", solver=GradientDescent(max_iter=3), **settings)
    with pytest.warns(UserWarning, match="did not converge"):
        clf.fit(X, y)
    # By hand: Armijo's rule with the parabola, each search from twice the step before.
    function = rnb_by_hand(X, y)
    x = np.append(np.ones(16), 0.5)
    value, gradient = function(x)
    length = 1 / np.linalg.norm(gradient)
    for _ in range(3):
        step = np.clip(x - length * gradient, 0, 1) - x
        t, slope = 1.0, gradient @ step
        while (new := function(x + t * step)[0]) > value + 1e-4 * t * slope:
            above = new - value - t * slope
            best = -0.5 * t * t * slope / above if above > 0 else 0.0
            t = min(max(best, 0.1 * t), 0.5 * t)
        x, length = np.clip(x + t * step, 0, 1), 2 * t * length
        value, gradient = function(x)
    np.testing.assert_allclose(clf.class_attribute_weights_.ravel(), x[:12], rtol=1e-9)
    np.testing.assert_allclose(clf.attribute_weights_, x[12:16], rtol=1e-9)
    np.testing.assert_allclose([clf.alpha_, clf.objective_], [x[-1], value], rtol=1e-9)


def test_gradient_descent_comes_near_the_optimum_of_a_convex_loss(codes):
    X, y = codes
    settings = {"categorical_features": "all", "keep_identifiers": True}
    best = sy.method("WANBIA-CLL", **settings).fit(X, y)
    slow = sy.method("WANBIA-CLL", solver=GradientDescent(tol=1e-12), **settings)
    slow.fit(X, y)
    assert best.objective_ <= slow.objective_ <= best.objective_ * (1 + 1e-6)


def test_weights_begin_where_the_solver_says(codes):
    X, y = codes
    settings = {"categorical_features": "all", "keep_identifiers": True}
    one_step = LBFGS(max_iter=1, memory=5, gradient_tol=1e-33, start=0.0)
    clf = sy.method("LNB", solver=one_step, prior="smoothed", smoothing="m-estimate")
    clf.set_params(**settings)
    with pytest.warns(UserWarning, match="did not converge"):
        clf.fit(X, y)

    prior = np.log(np.array([(y == c).sum() + 1 / 3 for c in range(3)]) / (len(y) + 1))
    logs = np.stack([_log_prob(X, y, j) for j in range(4)], axis=2)

    def log_loss(w):
        p = softmax(prior + np.einsum("icj,j->ic", logs, w), axis=1)
        expected = np.einsum("ic,icj->ij", p, logs) - logs[np.arange(len(y)), y]
        return -np.log(p[np.arange(len(y)), y]).sum(), expected.sum(axis=0)

    options = {"maxiter": 1, "maxcor": 5, "ftol": 0, "gtol": 1e-33}
    by_hand = minimize(
        log_loss,
        np.zeros(4),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * 4,
        options=options,
    )
    np.testing.assert_allclose(clf.objective_, by_hand.fun, rtol=1e-9)
    np.testing.assert_allclose(clf.attribute_weights_, by_hand.x, rtol=1e-6)


def test_both_are_kept_in_model_files(codes, tmp_path):
    X, y = codes
    for solver in (GradientDescent(max_iter=50), LBFGS(start=0.5)):
        clf = sy.method("WANBIA-CLL", solver=solver, categorical_features="all")
        clf.fit(X, y).save(tmp_path / "m.json")
        assert repr(sy.load(tmp_path / "m.json").solver) == repr(solver)


def log_ratios(X, y, f=1.0):
    """Return log-likelihood ratios of class 1 by row and column, f added to counts."""
    columns = []
    for j in range(X.shape[1]):
        values, codes = np.unique(X[:, j], return_inverse=True)
        counts = np.array(
            [np.bincount(codes[y == c], minlength=len(values)) for c in (0, 1)]
        )
        p = (counts + f) / (counts + f).sum(axis=1, keepdims=True)
        columns.append(np.log(p[1] / p[0])[codes])
    return np.stack(columns, axis=1)


def test_published_solver_has_the_exponential_itself_beyond_its_largest_exponent():
    rng = np.random.default_rng(5)
    y = rng.integers(2, size=80)
    X = np.where(rng.random((80, 60)) < 0.97, y[:, None], 1 - y[:, None]).astype(float)
    X[0] = 1 - y[0]  # e**200 at the start
    ratios, sign = log_ratios(X, y), 2 * y - 1
    prior = np.log((y == 1).sum() / (y == 0).sum())

    def loss(w):
        odds = np.exp(-sign * (prior + ratios @ w))
        return odds.sum(), -(sign * odds) @ ratios

    assert loss(np.ones(60))[0] > np.exp(150)
    options = {"maxiter": 100, "maxcor": 5, "gtol": 1e-33}
    options["ftol"] = 1e7 * np.finfo(float).eps
    by_hand = minimize(
        loss,
        np.ones(60),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, None)] * 60,
        options=options,
    )
    settings = {"categorical_features": "all", "keep_identifiers": True}
    clf = sy.method("ENB", solver="published", **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf.fit(X, y)
    assert by_hand.nit == clf.n_iter_
    np.testing.assert_allclose(clf.objective_, by_hand.fun, rtol=1e-6)
    np.testing.assert_allclose(clf.attribute_weights_, by_hand.x, rtol=1e-5, atol=1e-8)


def test_without_smoothing_probabilities_are_frequencies():
    X = np.array([["a", "x"], ["a", "y"], ["b", "y"], ["b", "x"], ["b", "x"]])
    y = np.array([0, 0, 1, 1, 1])
    clf = sy.NaiveBayes(smoothing=0, prior="frequency", keep_identifiers=True).fit(X, y)
    # Equations 11 and 12: 2/5 * 1 * 1/2 of class 0, and nothing of class 1.
    np.testing.assert_allclose(clf.predict_proba(X[:1]), [[1, 0]], atol=1e-300)
    mixed = clf.predict_proba([["c", "y"]])  # 2/5 * 1/2 against 3/5 * 1/3
    np.testing.assert_allclose(mixed, [[0.5, 0.5]])
    for method in ("LWNB", "AIWNB-L"):
        with pytest.raises(ParameterError, match="must be above 0"):
            sy.method(method, smoothing=0.0).fit(X, y)


def test_hill_climbing_makes_the_best_move_of_one_weight():
    rng = np.random.default_rng(2)
    y = rng.integers(2, size=120)
    X = np.where(rng.random((120, 5)) < 0.7, y[:, None], 1 - y[:, None]).astype(float)
    X[:, 4] = X[:, 3]
    ratios, prior = (
        log_ratios(X, y),
        np.log((y == 1).sum() + 1) - np.log((y == 0).sum() + 1),
    )
    w, step, path = np.ones(5), 0.25, []

    def right(w):
        return ((prior + ratios @ w > 0) == (y == 1)).sum()

    while step >= 0.01:
        moves = [
            np.clip(w + s * step * np.eye(5)[j], 0, 1)
            for s in (1, -1)
            for j in range(5)
        ]
        best = max(moves, key=right)
        if right(best) > right(w):
            w = best
        else:
            step /= 2
        path.append(right(w) / 120)
    clf = sy.method("DEAWNB", search="hill-climbing", step=0.25, smoothing="laplace")
    clf.set_params(categorical_features="all", keep_identifiers=True).fit(X, y)
    np.testing.assert_allclose([r["accuracy"] for r in clf.diagnostics_[1:]], path)
    np.testing.assert_allclose(clf.attribute_weights_, w)
    assert path[-1] > right(np.ones(5)) / 120
