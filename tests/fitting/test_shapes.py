"""Shapes of curves: the optimum under constraints, and never a violation."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize, nnls

import steelyard as sy
from steelyard import ShrinkageNB, WeightedNB
from steelyard.exceptions import ParameterError
from steelyard.fitting.problem import build_problem
from steelyard.fitting.shapes import Shape
from steelyard.table.schema import FeatureSchema, TableSchema
from studies import shape_violations

KINDS = ["increasing", "decreasing", "convex", "concave", "peak", "valley"]
WORDS = ["low", "middle", "high", "top"]


def table(seed, n=150, n_classes=2, gaps=0.0):
    """Numbers of several kinds, an ordered category, a category, and classes."""
    rng = np.random.default_rng(seed)
    grade = rng.integers(0, len(WORDS), n)
    X = pd.DataFrame(
        {
            "plain": rng.normal(size=n),
            "whole": rng.integers(0, 7, n),
            "skewed": np.exp(2.0 * rng.normal(size=n)),
            "grade": pd.Categorical.from_codes(grade, WORDS, ordered=True),
            "colour": rng.choice(["red", "blue", "green"], n),
        }
    )
    score = (
        np.sin(2.0 * X["plain"])
        + 0.3 * X["whole"]
        - np.log(X["skewed"])
        + np.array([0.0, 1.5, -1.0, 1.0])[grade]
    )
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(-score))).astype(int)
    if n_classes > 2:
        y = np.where(rng.random(n) < 0.3, rng.integers(0, n_classes, n), y)
    for name in ("plain", "grade"):
        X.loc[rng.random(n) < gaps, name] = None
    return X, np.array(["no", "yes", "ill", "well"])[y]


def problem(seed, constraints, n_classes=2, n=90):
    X, y = table(seed, n, n_classes)
    clf = ShrinkageNB(
        strength=(2.0, 8.0, 0.5), interactions=None, constraints=constraints
    )
    recipe = replace(clf._recipe(), tol=1e-10)
    return build_problem(recipe, recipe.encode(X, y)), recipe


def optimality_gap(problem, cone, weights):
    r"""Return how far the objective is above its least value at most.

    The objective bends by one at least, so that what multipliers leave of the gradient
    bounds it: ``F(w) - min F <= |g - A^T l|^2 / 2``.
    """
    rows = cone.rows.toarray()
    rows = np.vstack([rows, -rows[cone.is_equal]])
    value, gradient = problem.objective(weights)
    _, left = nnls(rows.T, gradient, maxiter=100 * rows.shape[1])
    return 0.5 * left**2 / value


def test_a_curve_has_a_step_at_each_cut_point():
    feature = FeatureSchema("x", "binned", "numbers")
    feature = feature.cut_at([[1.0, 3.0], [0.0, 1.0, 2.0]])
    schema = TableSchema((FeatureSchema("z", "categorical", "text", ("a",)), feature))
    # Code 0 is missing, and the first column has two rows: bins are rows 3 to 7.
    for kind in ("increasing", "decreasing", "peak", "valley"):
        assert Shape(1, kind, 1).steps(schema).tolist() == [3, 4, 5, 6]
    # A bent curve is that of the finest cut points; others are level.
    bent = Shape(1, "convex", 1)
    assert bent.steps(schema).tolist() == [3, 4, 5]
    assert bent.level_steps(schema).tolist() == [6]
    assert bent.gaps(schema).tolist() == [0.5, 0.5, 0.5]


@pytest.mark.parametrize("seed", range(20))
def test_a_fit_ends_at_the_optimum_under_its_constraints(seed):
    n_classes = 2 + seed % 3
    target = "yes"
    first, second = KINDS[seed % 4], KINDS[(seed + 1 + seed // 4) % 4]
    wanted = {"plain": (first, target), "grade": (second, target)}
    shaped, recipe = problem(seed, wanted, n_classes)
    solution = shaped.solve(recipe)
    cone = shaped.shapes.cone(shaped.objective.weighting, shaped.evidence, {})
    assert solution.status == "converged"
    assert (cone.rows @ solution.weights).min() > -1e-7
    assert optimality_gap(shaped, cone, solution.weights) < 1e-6


@pytest.mark.parametrize("seed", range(20))
def test_a_general_solver_finds_no_better_weights(seed):
    wanted = {"plain": KINDS[seed % 4], "whole": KINDS[seed // 4 % 2]}
    shaped, recipe = problem(seed, wanted, n=60)
    solution = shaped.solve(recipe)
    cone = shaped.shapes.cone(shaped.objective.weighting, shaped.evidence, {})
    rows, equal = cone.rows.toarray(), cone.is_equal
    constraints = [
        {"type": kind, "fun": lambda w, a=part: a @ w, "jac": lambda w, a=part: a}
        for kind, part in (("ineq", rows[~equal]), ("eq", rows[equal]))
        if len(part)
    ]
    found = minimize(
        shaped.objective,
        solution.weights,
        jac=True,
        method="SLSQP",
        constraints=constraints,
        options={"maxiter": 300, "ftol": 1e-12},
    )
    assert solution.value <= found.fun * (1.0 + 1e-6)


def test_a_peak_is_where_no_other_turn_is_better():
    shaped, recipe = problem(3, {"whole": "peak"}, n=60)
    found = shaped.solve(recipe)
    shape, weighting = shaped.shapes.shapes[0], shaped.objective.weighting
    values = []
    for turn in range(len(shape.steps(shaped.shapes.schema)) + 1):
        turns = {shape.column: turn}
        cone = shaped.shapes.cone(weighting, shaped.evidence, turns)
        values.append(replace(shaped, box=cone).solve(recipe).value)
    assert found.value <= min(values) * (1.0 + 1e-6)


# --------------------------------------------------------------------------- violations


def log_odds_of(p, target):
    """Return log-odds of a class against each other one."""
    logs = np.log(p)
    return np.delete(logs[:, [target]] - logs, target, axis=1)


@pytest.mark.parametrize("seed", [*range(1, 10), 25])
def test_no_row_breaks_a_shape_to_the_last_bit(seed):
    """Random tables and ways to fit; `studies/shape_violations.py` makes thousands."""
    hunt = shape_violations.Hunt(every=0)
    hunt.look(seed)
    assert hunt.faults == []


@pytest.mark.parametrize("seed", [5, 15])
def test_sql_onnx_scorer_and_page_keep_shapes_to_the_last_bit(seed):
    for needed in ("duckdb", "onnx", "onnxruntime"):
        pytest.importorskip(needed)
    hunt = shape_violations.Hunt(every=5)
    hunt.look(seed)
    hunt.pages()
    assert hunt.looked["onnx"] == 1
    assert hunt.faults == []


def test_the_hunt_finds_a_shape_that_is_broken():
    X, y = table(5, 80)
    clf = ShrinkageNB(strength=(1.0, 4.0, 0.1), interactions=None).fit(X, y)
    clf.constraints = {"plain": ("decreasing", "yes"), "grade": ("convex", "yes")}
    hunt = shape_violations.Hunt(every=0)
    sweeps = list(shape_violations.sweeps_of(clf, X, np.random.default_rng(0)))
    rows = pd.concat([sweep.rows for sweep in sweeps], ignore_index=True)
    scores = clf.predict_joint_log_proba(rows)
    hunt.compare(0, "python", clf, sweeps, clf.predict_proba(rows), scores)
    assert len(hunt.faults) == 4


@pytest.mark.parametrize("kind", ["convex", "concave"])
@pytest.mark.parametrize("column", ["plain", "grade"])
def test_a_bent_curve_bends_one_way_by_the_centres_of_its_bins(kind, column):
    X, y = table(4, 200)
    clf = ShrinkageNB(constraints={column: kind}, strength=(2.0, 8.0, 0.3)).fit(X, y)
    edges = [0, 1, 2]
    if column == "plain":
        feature = clf.encoder_.schema_.features[0]
        edges = np.array([feature.edges[k] for k in feature.cuts[-1]])
        ends = [2 * edges[0] - edges[1], *edges, 2 * edges[-1] - edges[-2]]
        places = (np.array(ends[1:]) + ends[:-1]) / 2.0
    else:
        places = pd.Categorical(WORDS, WORDS, ordered=True)
    rows = pd.concat([X.iloc[[0]]] * (len(edges) + 1), ignore_index=True)
    curve = log_odds_of(clf.predict_proba(rows.assign(**{column: places})), 1)[:, 0]
    centres = np.arange(4.0) if column == "grade" else places
    slopes = np.diff(curve) / np.diff(centres)
    sign = 1.0 if kind == "convex" else -1.0
    assert (sign * np.diff(slopes) >= -1e-8).all()
    assert np.ptp(curve) > 0.0


def test_values_with_weights_of_their_own_keep_shapes_too():
    X, y = table(8, 200)
    wanted = {"plain": ("increasing", "yes"), "grade": ("decreasing", "yes")}
    clf = WeightedNB(weighting="value", bounds=None, lam=1.0, constraints=wanted)
    clf.fit(X, y)
    for sweep in shape_violations.sweeps_of(clf, X, np.random.default_rng(0)):
        p = clf.predict_proba(sweep.rows)
        scores = clf.predict_joint_log_proba(sweep.rows)
        assert shape_violations.broken(sweep, 1, p, scores) == []


def test_a_column_of_two_values_has_nothing_to_bend():
    X, y = table(0, 60)
    X = X.assign(two=X["whole"] > 3)
    clf = ShrinkageNB(constraints={"two": "convex"}, strength=(2.0, 8.0, 0.3)).fit(X, y)
    free = ShrinkageNB(strength=(2.0, 8.0, 0.3)).fit(X, y)
    np.testing.assert_allclose(clf.predict_proba(X), free.predict_proba(X), atol=1e-12)


def test_chunks_keep_shapes_of_ordered_categories_when_strengths_are_chosen_again():
    X, y = table(4, 60)
    clf = ShrinkageNB(constraints={"grade": "decreasing"}, interactions=None)
    clf.partial_fit(X[:30], y[:30]).partial_fit(X[30:], y[30:])
    clf.constraints = {"grade": ("decreasing", "yes")}
    (sweep,) = shape_violations.sweeps_of(clf, X, np.random.default_rng(0))
    assert shape_violations.broken(sweep, 1, clf.predict_proba(sweep.rows)) == []


# ------------------------------------------------------------------------------- around


def test_a_interaction_that_would_break_a_shape_is_refused_by_the_name_of_the_column():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.normal(size=200), "job": ["a", "b"] * 100})
    y = X["age"] + rng.normal(size=200) > 0
    clf = ShrinkageNB(
        strength=(1.0, 4.0, 1.0),
        interactions=[("age", "job")],
        constraints={"age": "increasing"},
    )
    with pytest.raises(
        ParameterError, match="`interactions` joins column 'age', to which"
    ):
        clf.fit(X, y)


def test_a_column_with_a_shape_is_in_no_interaction_with_a_note():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 2, (400, 4)), columns=list("abcd"))
    y = X["a"] ^ X["b"]
    free = ShrinkageNB(categorical_features="all").fit(X, y)
    assert [set(interaction["columns"]) for interaction in free.interactions_] == [
        {"a", "b"}
    ]
    clf = ShrinkageNB(categorical_features="all", constraints={"a": "increasing"})
    clf.fit(X, y)
    assert all("a" not in interaction["columns"] for interaction in clf.interactions_)
    assert any("takes part in no interaction" in str(n) for n in clf.notices_)
    without = ShrinkageNB(categorical_features="all", interactions={"exclude": ["b"]})
    assert all(
        "b" not in interaction["columns"]
        for interaction in without.fit(X, y).interactions_
    )


def test_what_a_wrong_shape_costs_is_reported_and_kept(tmp_path):
    X, _ = table(9, 300)
    y = np.where(X["plain"] + 0.1 * np.sin(9 * X["plain"]) > 0, "yes", "no")
    clf = ShrinkageNB(constraints={"plain": "decreasing"}, interactions=None).fit(X, y)
    free, shaped, _ = clf.shape_losses_
    assert shaped > free + 0.1
    assert any(n.kind == "shape-cost" for n in clf.notices_)
    clf.save(tmp_path / "model.json")
    again = sy.load(tmp_path / "model.json")
    assert again.constraints == clf.constraints
    assert again.shape_losses_ == clf.shape_losses_


@pytest.mark.parametrize(
    ("constraints", "said"),
    [
        ({"plane": "increasing"}, "Did you mean 'plain'"),
        ({"colour": "increasing"}, "no order"),
        ({"plain": "Increasing"}, "Did you mean 'increasing'"),
        ({"plain": ("increasing", "yess")}, "Did you mean 'yes'"),
        ({"plain": "increasing", 0: "peak"}, "twice"),
        ({"plain": 3}, "must be None or a mapping"),
    ],
)
def test_a_shape_that_cannot_be_is_refused(constraints, said):
    X, y = table(0, 60)
    with pytest.raises(ParameterError, match=said):
        ShrinkageNB(constraints=constraints).fit(X, y)


def test_with_several_classes_a_shape_names_one():
    X, y = table(0, 80, 3)
    with pytest.raises(ParameterError, match="say for which of them 'plain'"):
        ShrinkageNB(constraints={"plain": "increasing"}).fit(X, y)


@pytest.mark.parametrize(
    ("clf", "said"),
    [
        (WeightedNB(), "a learned weight for each value"),
        (WeightedNB(weighting="value"), "exclude each other"),
        (ShrinkageNB(numeric="gaussian"), "density"),
        (ShrinkageNB(interactions=[("plain", "whole")]), "Leave one of them out"),
    ],
)
def test_settings_that_cannot_keep_shapes_are_refused(clf, said):
    X, y = table(0, 60)
    with pytest.raises(ParameterError, match=said):
        clf.set_params(constraints={"plain": "increasing"}).fit(X, y)


def test_a_useless_column_and_a_constant_one_may_have_shapes():
    X, y = table(0, 120)
    X = X.assign(same=1.0, noise=np.random.default_rng(0).random(120))
    wanted = {"same": "peak", "noise": "convex", "grade": "increasing"}
    assert ShrinkageNB(constraints=wanted).fit(X, y).predict_proba(X).shape == (120, 2)


@pytest.mark.filterwarnings("ignore::steelyard.exceptions.IdentifierWarning")
def test_a_shape_of_a_column_that_is_left_out_says_how_to_keep_it(tmp_path):
    rng = np.random.default_rng(0)
    n = 200
    X = pd.DataFrame({"day": np.arange(n), "x": rng.normal(size=n)})
    y = np.where(rng.random(n) < np.arange(n) / n, "up", "down")
    wanted = {"strength": (1.0, 4.0, 1.0), "constraints": {"day": "increasing"}}
    clf = ShrinkageNB(**wanted)
    for learn in (clf.fit, clf.partial_fit):
        with pytest.raises(ParameterError, match="'day'") as refused:
            learn(X, y)
        # Between backquotes the command line finds it, and names its own option.
        assert "`keep_identifiers=True`" in str(refused.value)
        assert "--" not in str(refused.value)
    assert not hasattr(clf, "model_")
    clf.set_params(keep_identifiers=True).partial_fit(X[::2], y[::2])
    clf.partial_fit(X[1::2], y[1::2]).save(tmp_path / "m.json")
    loaded = sy.load(tmp_path / "m.json")
    days = pd.DataFrame({"day": np.arange(-5, n + 5), "x": 0.0})
    p = loaded.predict_proba(days)[:, 1]
    assert (np.diff(p) >= 0.0).all() and p[-1] > p[0] + 0.2
    score = loaded.scorer()
    answers = [score(row)["up"] for row in days.to_dict("records")]
    np.testing.assert_allclose(answers, p, atol=1e-12)
