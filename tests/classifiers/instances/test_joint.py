"""Instance and attribute weights from one objective: gradient, descent, limits."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from steelyard import JointWeightedNB, WeightedNB
from steelyard.classifiers.joint import JointObjective
from steelyard.exceptions import ParameterError
from steelyard.fitting.problem import build_problem


def joint_of(settings, X, y, sample_weight=None):
    """Return the objective that a fit would minimise, and its problem of weights."""
    clf = JointWeightedNB(**settings)
    recipe = clf._recipe()
    training = recipe.encode(X, y, sample_weight)
    problem = build_problem(recipe, training)
    return JointObjective(problem, training, float(clf.instance_lam)), problem


def somewhere(joint, problem, n, seed=0):
    rng = np.random.default_rng(seed)
    weights = problem.start * rng.uniform(0.3, 1.1, len(problem.start))
    return np.concatenate([rng.uniform(0.3, 3.0, n), weights])


def assert_gradient(joint, at):
    _, gradient = joint(at)
    step = 1e-5
    expected = np.empty_like(at)
    for k in range(len(at)):
        up, down = at.copy(), at.copy()
        up[k] += step
        down[k] -= step
        expected[k] = (joint(up)[0] - joint(down)[0]) / (2.0 * step)
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-7 * scale)


@pytest.mark.parametrize("loss", ["log", "brier", "exponential", "deviance"])
@pytest.mark.parametrize("weighting", ["attribute", "class-attribute", "value"])
def test_gradient_matches_finite_differences(weighting, loss, random_table):
    X, y = random_table(25, 3, gaps=0.1)
    u = np.random.default_rng(1).uniform(0.5, 2.0, 25)
    joint, problem = joint_of({"weighting": weighting, "loss": loss}, X, y, u)
    assert_gradient(joint, somewhere(joint, problem, 25))


@pytest.mark.parametrize(
    "settings",
    [
        {"penalty": "ridge", "lam": 1.7, "instance_lam": 0.2},
        {"penalty": "l1", "lam": 0.5, "bounds": (0, 1)},
        {"prior_weight": True, "lam": 0.3, "weighting": "class-attribute"},
        {"smoothing": "m-estimate", "bounds": None},
        {"smoothing": 0.1, "missing": "value"},
        {"class_weight": "balanced", "weighting": "value"},
        {"weighting": "correlation"},
    ],
    ids=repr,
)
def test_gradient_with_other_settings_matches_finite_differences(
    settings, random_table
):
    for n_classes in (2, 4):
        X, y = random_table(22, n_classes, gaps=0.15, seed=n_classes)
        joint, problem = joint_of(settings, X, y)
        assert_gradient(joint, somewhere(joint, problem, 22))


@pytest.mark.plain
def test_gradient_with_the_kernels_disabled_matches_finite_differences(random_table):
    X, y = random_table(12, 2, gaps=0.1)
    joint, problem = joint_of({"weighting": "class-attribute", "lam": 0.5}, X, y)
    assert_gradient(joint, somewhere(joint, problem, 12))


@pytest.mark.plain
def test_objective_is_loss_and_both_penalties(random_table, plain_nb):
    X, y = random_table(20, 3, gaps=0.1)
    own = np.random.default_rng(1).uniform(0.5, 2.0, 20)
    settings = {"instance_lam": 0.7, "lam": 0.4}
    joint, problem = joint_of(settings, X, y, own)
    at = somewhere(joint, problem, 20)
    u, w = at[:20], at[20:]
    p = plain_nb(X, y, own * u, w).proba(X)[np.arange(20), y]
    expected = -(own * np.log(p)).sum() + 0.7 * (own * (u - 1) ** 2).sum()
    expected += 0.4 * ((w - 1) ** 2).sum()
    assert joint(at)[0] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("weighting", ["attribute", "class-attribute", "value"])
def test_objective_falls_and_ends_below_attribute_weights_alone(
    weighting, random_table
):
    X, y = random_table(60, 3, gaps=0.05)
    settings = {"weighting": weighting, "lam": 0.1, "smoothing": "laplace"}
    clf = JointWeightedNB(instance_lam=0.5, **settings).fit(X, y)
    values = [record["objective"] for record in clf.diagnostics_]
    assert (np.diff(values) <= 1e-9).all()
    assert clf.n_iter_ == len(values)
    assert clf.objective_ == pytest.approx(values[-1])
    alone = WeightedNB(**settings).fit(X, y)
    assert clf.objective_ < alone.objective_
    assert clf.instance_weights_.shape == (60,)
    assert clf.instance_weights_.min() >= 0.0
    assert clf.diagnostics_[-1]["gradient"] < 1e-2


def test_learned_weights_are_a_stationary_point(random_table):
    X, y = random_table(40, 2, gaps=0.1)
    settings = {"instance_lam": 0.5, "instance_bound": 1.5, "lam": 0.1, "tol": 1e-12}
    clf = JointWeightedNB(**settings).fit(X, y)
    assert clf.instance_weights_.max() <= 1.5
    joint, problem = joint_of(settings, X, y)
    at = np.concatenate([clf.instance_weights_, clf.attribute_weights_])
    value, gradient = joint(at)
    assert value == pytest.approx(clf.objective_)
    lower = np.concatenate([np.zeros(40), problem.box.lower])
    upper = np.concatenate([np.full(40, 1.5), problem.box.upper])
    step = at - np.clip(at - gradient, lower, upper)
    assert np.abs(step).max() < 1e-3
    # The model is that of the weights; counts are those of the rows as they are.
    counts = clf._recipe().encode(X, y).count(clf.instance_weights_)
    expected = problem.with_counts(counts).model(clf.attribute_weights_)
    assert clf.model_.table == pytest.approx(expected.table)
    assert clf.model_.log_prior == pytest.approx(expected.log_prior)
    assert clf.counts_.by_code == pytest.approx(problem.counts.by_code)


@pytest.mark.parametrize("weighting", ["attribute", "class-attribute"])
def test_a_strong_pull_to_one_leaves_attribute_weights_alone(weighting, random_table):
    X, y = random_table(80, 3)
    settings = {"weighting": weighting, "smoothing": "laplace", "tol": 1e-10}
    clf = JointWeightedNB(instance_lam=1e7, **settings).fit(X, y)
    alone = WeightedNB(**settings).fit(X, y)
    np.testing.assert_allclose(clf.instance_weights_, 1.0, atol=1e-5)
    weights = f"{weighting.replace('-', '_')}_weights_"
    found, expected = getattr(clf, weights), getattr(alone, weights)
    np.testing.assert_allclose(found, expected, atol=2e-3)
    assert clf.objective_ == pytest.approx(alone.objective_, rel=1e-5)


def test_a_cap_on_iterations_warns_and_keeps_the_model(random_table):
    X, y = random_table(60, 3)
    clf = JointWeightedNB(max_iter=2)
    with pytest.warns(ConvergenceWarning, match="did not converge in 2 iterations"):
        clf.fit(X, y)
    assert clf.n_iter_ == 2
    assert np.isfinite(clf.predict_proba(X)).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf.set_params(max_iter=1000).fit(X, y)


def test_row_weights_enter_counts_loss_and_pull(random_table):
    X, y = random_table(50, 2, seed=3)
    u = np.ones(50)
    u[[2, 30]] = 0.0
    clf = JointWeightedNB().fit(X, y, u)
    assert np.flatnonzero(np.isnan(clf.instance_weights_)).tolist() == [2, 30]
    absent = JointWeightedNB().fit(X[u > 0], y[u > 0])
    np.testing.assert_allclose(clf.predict_proba(X), absent.predict_proba(X))
    times = np.random.default_rng(0).integers(1, 3, 50)
    settings = {"lam": 0.5, "tol": 1e-12}
    weighted = JointWeightedNB(**settings).fit(X, y, times)
    repeated = JointWeightedNB(**settings).fit(np.repeat(X, times, 0), y.repeat(times))
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-6)
    np.testing.assert_allclose(
        weighted.predict_proba(X), repeated.predict_proba(X), atol=2e-3
    )


@pytest.mark.plain
@pytest.mark.parametrize(
    "settings, message",
    [
        ({"instance_lam": 0.0}, r"'instance_lam' .* range \(0, inf\). Got 0.0"),
        ({"instance_lam": -1}, r"'instance_lam' .* range \(0, inf\). Got -1"),
        ({"instance_lam": "1"}, r"'instance_lam' .* range \(0, inf\). Got '1'"),
        ({"instance_lam": True}, r"'instance_lam' .* range \(0, inf\). Got True"),
        ({"instance_lam": float("inf")}, r"range \(0, inf\). Got inf"),
        ({"instance_lam": float("nan")}, r"range \(0, inf\). Got nan"),
        ({"instance_bound": 0}, r"'instance_bound' .* range \(0, inf\). Got 0"),
        ({"instance_bound": None}, r"'instance_bound' .* Got None"),
        ({"smoothing": "kohavi"}, "Use 'laplace', 'm-estimate' or a number"),
        ({"instances": "discriminative"}, "leave `instances` and `multiclass`"),
        ({"multiclass": "one-vs-one"}, "leave `instances` and `multiclass`"),
        ({"prior": "frequency"}, "Use prior='smoothed'"),
        ({"prior": [0.5, 0.25, 0.25]}, "Use prior='smoothed'"),
        ({"weighting": "mixture", "loss": "brier"}, "another `weighting`"),
        ({"solver": "fixed"}, "Leave `solver` at 'auto'. Got 'fixed'"),
        ({"lam": -1.0}, r"'lam' .* range \[0, inf\)"),
    ],
    ids=repr,
)
def test_wrong_settings_are_refused_and_an_earlier_model_stays(
    settings, message, random_table
):
    X, y = random_table(20, 3)
    clf = JointWeightedNB().fit(X, y)
    before = dict(vars(clf))
    with pytest.raises(ParameterError, match=message):
        clf.set_params(**settings).fit(X[:, :2], y)
    assert all(vars(clf)[k] is before[k] for k in before if k.endswith("_"))


@pytest.mark.plain
def test_gaussian_attributes_are_refused():
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(ParameterError, match="a discretizer for `numeric`"):
        JointWeightedNB(numeric="gaussian").fit(X, np.arange(20) % 2)


@pytest.mark.plain
def test_numpy_numbers_are_settings_too(random_table):
    X, y = random_table(20, 2)
    clf = JointWeightedNB(instance_lam=np.float32(2.0), instance_bound=np.int64(4))
    assert clf.fit(X, y).instance_weights_.max() <= 4.0
