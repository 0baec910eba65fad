"""Solutions are optimal, solvers agree, and what goes wrong is said."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning

import steelyard as sy
from steelyard import WeightedNB
from steelyard.kernels import fitting
from steelyard.losses import LOSSES
from steelyard.solvers import Box
from steelyard.weighting import WEIGHTINGS

LOADERS = {"iris": load_iris, "wine": load_wine, "cancer": load_breast_cancer}
PRESETS = [
    entry for entry in sy.methods() if entry.family == "learned attribute weights"
]
CONVEX = [name for name, loss in LOSSES.items() if loss.convex]
# Newton's method needs second derivatives.
SOLVED = [
    (name, solver)
    for name, loss in LOSSES.items()
    for solver in ("newton", "lbfgs")
    if solver != "newton" or loss().has_hessian
]
# A hierarchy has strengths in place of bounds, and its own tests.
PAIRS = [
    (weighting, loss)
    for weighting in WEIGHTINGS
    if weighting != "hierarchy"
    for loss in LOSSES
    if not WEIGHTINGS[weighting].is_mixture or loss == "brier"
]


def weights_of(clf):
    """Put fitted weights back into the vector that the solver saw."""
    parts = [np.ravel(clf.alpha_)] if hasattr(clf, "alpha_") else []
    prior = [np.ravel(clf.prior_weight_)] if hasattr(clf, "prior_weight_") else []
    if hasattr(clf, "class_attribute_weights_"):
        parts += [*prior, clf.class_attribute_weights_.ravel()]
    if hasattr(clf, "attribute_weights_"):
        parts += [*prior, clf.attribute_weights_]
    if hasattr(clf, "value_weights_"):
        coded = [f.is_coded for f in clf.encoder_.schema_.features]
        both = list(zip(clf.value_weights_, coded, strict=True))
        values = [w for w, is_coded in both if is_coded]
        values += [w for w, is_coded in both if not is_coded]
        parts += [*prior, np.concatenate(values, axis=1).ravel()]
    return np.concatenate(parts)


def assert_optimal(clf, X, y, problem_of, share=1e-6):
    """First-order conditions, unless the rows are predicted perfectly anyway."""
    objective, start, lower, upper = problem_of(clf.get_params(deep=False), X, y)
    weights = weights_of(clf)
    assert weights.shape == start.shape
    assert (lower <= weights).all() and (weights <= upper).all()
    value, gradient = objective(weights)
    assert clf.objective_ == pytest.approx(value, rel=1e-12)
    first, _ = objective(np.clip(start, lower, upper))
    assert value <= first
    if value < 1e-6 * len(y):
        return
    step = Box(lower, upper).projected(weights, gradient)
    assert np.abs(step).max() <= share * max(1.0, first)


def fit_quietly(clf, X, y):
    """Fit; separable rows are the business of other tests."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The training rows can be separated")
        return clf.fit(X, y)


@pytest.mark.parametrize("name", LOADERS)
@pytest.mark.parametrize("entry", PRESETS, ids=lambda entry: entry.acronym)
def test_solution_satisfies_bounds_and_first_order_conditions(entry, name, problem_of):
    X, y = LOADERS[name](return_X_y=True)
    if entry.estimator is sy.ValueWeightedNB:
        X = X[:, :6]
    clf = fit_quietly(entry.create(), X, y)
    assert_optimal(clf, X, y, problem_of, 1e-5)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize(
    "weighting, loss, solver, bounds",
    [
        (*pair, solver, bounds)
        for pair in PAIRS
        for solver, bounds in [
            ("newton", (0, 1)),
            ("newton", (0, None)),
            ("newton", None),
            ("lbfgs", (0, 1)),
        ]
        if (pair[1], solver) in SOLVED
        if solver != "newton" or WEIGHTINGS[pair[0]].has_hessian
    ],
)
def test_every_combination_is_solved_to_first_order_conditions(
    weighting, loss, n_classes, bounds, solver, make_table, problem_of
):
    settings, X, y = make_table("mixed with gaps", n_classes, n=60)
    clf = WeightedNB(
        weighting=weighting,
        loss=loss,
        bounds=bounds,
        solver=solver,
        lam=0.1,
        **settings,
    )
    clf.fit(X, y)
    assert_optimal(clf, X, y, problem_of, 1e-5)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"bounds": (0, None)},
        {"bounds": None, "lam": 1.0},
        {"bounds": (0, 1), "lam": 0.5, "penalty": "l1"},
        {"bounds": (0, None), "lam": 0.5, "penalty": "l1", "center": 0.0},
        {"prior_weight": True, "bounds": (0, None)},
        {"weighting": "class-attribute", "bounds": None, "lam": 0.1},
        {"weighting": "class-attribute", "prior_weight": True},
    ],
    ids=repr,
)
@pytest.mark.parametrize(
    "loss", [name for name in CONVEX if (name, "newton") in SOLVED]
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_both_solvers_reach_the_same_objective(settings, loss, n_classes, make_table):
    kind = "mixed with gaps" if "weighting" not in settings else "intervals"
    own, X, y = make_table(kind, n_classes, n=400, seed=3)
    fitted = [
        WeightedNB(loss=loss, solver=solver, **settings, **own).fit(X, y)
        for solver in ("newton", "lbfgs")
    ]
    first, second = (clf.objective_ for clf in fitted)
    assert first == pytest.approx(second, rel=1e-6)


def test_a_sampled_hessian_leads_to_the_same_optimum():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 5, (12_000, 6)).astype(str)
    X[:, 1] = np.where(rng.random(len(X)) < 0.8, X[:, 0], X[:, 1])
    y = ((X[:, 0] > X[:, 2]) + (rng.random(len(X)) < 0.2)).astype(int)
    for settings in ({"bounds": None}, {"weighting": "class-attribute"}):
        first, second = (
            WeightedNB(solver=solver, **settings).fit(X, y).objective_
            for solver in ("newton", "lbfgs")
        )
        assert first == pytest.approx(second, rel=1e-8)


def test_attributes_given_twice_share_a_weight_without_trouble(problem_of):
    X, y = load_iris(return_X_y=True)
    X = np.concatenate([X, X], axis=1)
    for bounds in ((0, 1), (0, 3)):
        clf = WeightedNB(bounds=bounds).fit(X, y)
        assert_optimal(clf, X, y, problem_of)


# ------------------------------------------------------------------ records, warnings


@pytest.mark.plain
def test_records_show_a_falling_objective(weather):
    for settings in ({}, {"bounds": (0, None)}, {"weighting": "mixture"}):
        loss = "brier" if settings.get("weighting") == "mixture" else "log"
        clf = WeightedNB(loss=loss, solver="newton", **settings).fit(*weather)
        values = [record["objective"] for record in clf.diagnostics_]
        assert (np.diff(values) < 0).all()
        assert values[-1] == clf.objective_
        counted = [record["iteration"] for record in clf.diagnostics_]
        assert counted == list(range(1, len(counted) + 1))
        assert len(counted) <= clf.n_iter_


def test_records_of_both_solvers_have_the_same_entries(weather):
    first = WeightedNB(solver="newton").fit(*weather).diagnostics_
    second = WeightedNB(solver="lbfgs").fit(*weather).diagnostics_
    assert set(first[0]) == set(second[0]) >= {"iteration", "objective", "gradient"}
    evaluations = [record["evaluations"] for record in second]
    assert evaluations == sorted(evaluations)


@pytest.mark.parametrize("solver", ["newton", "lbfgs"])
def test_too_few_iterations_are_a_warning_with_advice(solver):
    X, y = load_wine(return_X_y=True)
    clf = WeightedNB(weighting="class-attribute", solver=solver, max_iter=2)
    with pytest.warns(ConvergenceWarning, match="2 iterations .*Raise `max_iter`") as w:
        clf.fit(X, y)
    assert w[0].filename == __file__
    assert clf.n_iter_ == 2
    assert np.isfinite(clf.class_attribute_weights_).all()


SEPARABLE = (
    np.repeat([["a", "x"], ["b", "y"], ["b", "x"]], 5, axis=0),
    [0] * 5 + [1] * 10,
)


@pytest.mark.parametrize("bounds", [(0, None), None], ids=repr)
@pytest.mark.parametrize("weighting", ["attribute", "class-attribute", "value"])
@pytest.mark.parametrize("loss, solver", SOLVED)
def test_separable_rows_give_finite_weights_and_a_reason(
    loss, weighting, bounds, solver
):
    if solver == "newton" and not WEIGHTINGS[weighting].has_hessian:
        solver = "lbfgs"
    X, y = SEPARABLE
    clf = WeightedNB(loss=loss, weighting=weighting, bounds=bounds, solver=solver)
    with pytest.warns(ConvergenceWarning, match=r"can be separated.*bounds.*lam=1"):
        clf.fit(X, y)
    assert np.isfinite(weights_of(clf)).all()
    assert (clf.predict(X) == y).all()
    assert np.isfinite(clf.predict_proba(X)).all()


@pytest.mark.parametrize("loss, solver", SOLVED)
@pytest.mark.parametrize(
    "settings", [{"bounds": None, "lam": 1.0}, {"bounds": (0, 1)}], ids=repr
)
def test_separable_rows_are_no_trouble_with_a_penalty_or_bounds(settings, loss, solver):
    clf = WeightedNB(loss=loss, solver=solver, **settings).fit(*SEPARABLE)
    assert (clf.predict(SEPARABLE[0]) == SEPARABLE[1]).all()


def test_a_weak_attribute_may_need_a_large_weight():
    # Densities as wide as that say little: weights go to thousands, and larger ones on
    # the way are no reason to take the rows for separable and stop.
    X, y = load_breast_cancer(return_X_y=True)
    for name in ("ENB", "LNB", "GDNB"):
        clf = sy.method(name, variance_floor=30.0).fit(X, y)
        other = sy.method(name, variance_floor=30.0, solver="lbfgs").fit(X, y)
        assert clf.objective_ == pytest.approx(other.objective_, rel=1e-6)
        assert clf.objective_ > 30.0
        assert clf.attribute_weights_.max() > 1000


def test_rows_that_can_be_separated_in_part_are_a_warning():
    # The first column separates two of three groups; the third stays as it is.
    X = np.repeat([["a", "x"], ["b", "x"], ["c", "x"], ["c", "y"]], 4, axis=0)
    y = [0] * 4 + [1] * 4 + [0, 1] * 4
    clf = WeightedNB(weighting="value", bounds=None, smoothing=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf.fit(X, y)
    assert np.isfinite(weights_of(clf)).all()
    assert clf.objective_ == pytest.approx(8 * np.log(2), abs=1e-4)


def test_published_settings_may_stop_early_and_say_so():
    X, y = load_breast_cancer(return_X_y=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf = sy.method("CAWNB", solver="published").fit(X, y)
    assert clf.n_iter_ <= 100
    exact = sy.method("CAWNB").fit(X, y)
    assert clf.objective_ >= exact.objective_ * (1 - 1e-6) or not exact.objective_
    assert all(issubclass(w.category, ConvergenceWarning) for w in caught)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_printed_gradients_run_with_the_published_solver(n_classes, make_table):
    settings, X, y = make_table("categories", n_classes, n=200)
    for weighting in ("class-attribute", "mixture"):
        clf = WeightedNB(
            weighting=weighting,
            loss="brier",
            published_gradient=True,
            solver="published",
            **settings,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            clf.fit(X, y)
        start = WeightedNB(
            weighting=weighting, loss="brier", solver="fixed", **settings
        )
        assert clf.objective_ <= start.fit(X, y).objective_


@pytest.mark.parametrize("lanes", [(), (0.0,) * 3])
@pytest.mark.parametrize("kind", [None, 1, 2])
def test_scores_that_overflow_give_no_loss_rather_than_an_error(kind, lanes):
    values, starts = np.zeros((4, 0), dtype=np.uint8), np.zeros(0, dtype=np.uint64)
    scores = np.full((4, 3), np.nan)
    y, none = np.zeros(4, dtype=np.uint32), np.empty(0)
    counts, work = np.zeros((0, 3)), np.empty(fitting.ROWS * 3)
    form = kind, 1.0, counts, work, lanes
    value = fitting.evaluate_many(
        values, starts, np.zeros((0, 3)), scores, y, none, *form
    )
    assert not np.isfinite(value) or value >= 0
