"""Explanations of models with views: one column for a reader, however it is seen."""

import json
import os
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris

import steelyard as sy
from steelyard.exceptions import ParameterError
from steelyard.explain import explain_weights
from steelyard.explain.page import page_data
from steelyard.explain.views import typical_numbers

DATA = os.environ.get("STEELYARD_DATA")


@pytest.fixture(scope="module", params=["iris", "cancer", "credit-g"])
def fitted(request):
    """A model of a real table, and the table."""
    if request.param == "credit-g":
        if not DATA:
            pytest.skip("STEELYARD_DATA names no folder of data sets")
        from steelyard.experiments.data import load_dataset

        data = load_dataset("credit-g", DATA)
        X, y = data.table, data.target
    else:
        load = {"iris": load_iris, "cancer": load_breast_cancer}[request.param]
        X, y = load(return_X_y=True, as_frame=True)
    return sy.ShrinkageNB(strength=(2.5, 10.0, 2.5)).fit(X, y), X


def test_contributions_of_columns_and_of_views_add_up_to_the_scores(fitted):
    clf, X = fitted
    found = clf.explain_local(X[:30])
    scores = clf.predict_joint_log_proba(X[:30])
    assert found.attributes == list(X.columns)
    assert found.contributions.shape == (30, X.shape[1], len(clf.classes_))
    assert found.view_names == clf.view_names_.tolist()
    for parts in (found.contributions, found.view_contributions):
        total = found.base + parts.sum(axis=1)
        np.testing.assert_allclose(total, scores, rtol=0, atol=1e-10)
    json.dumps(found.to_dict())


def test_evidence_is_by_column_and_by_view_where_asked(fitted):
    clf, X = fitted
    found = clf.explain_local(X[:1])
    whole, split = found.evidence(), found.evidence(views=True)
    assert {item.attribute for item in whole.items} == set(X.columns)
    assert {item.attribute for item in split.items} == set(clf.view_names_)
    assert whole.total == pytest.approx(split.total, abs=1e-10)
    by_name = {item.attribute: item.amount for item in split.items}
    columns = clf.encoder_.schema_.columns
    for item in whole.items:
        own = list(X.columns).index(item.attribute)
        views = [n for n, c in zip(clf.view_names_, columns, strict=True) if c == own]
        assert item.amount == pytest.approx(sum(by_name[n] for n in views), abs=1e-10)


def test_a_counterfactual_changes_cells_of_the_table(fitted):
    clf, X = fitted
    for i in range(3):
        found = clf.explain_local(X[i : i + 1]).counterfactual()
        assert found.found and found.changes
        row = X[i : i + 1].astype(object).copy()
        for change in found.changes:
            is_number = pd.api.types.is_numeric_dtype(X[change.attribute])
            value = float(change.after) if is_number else change.after
            row[change.attribute] = [value]
        # What the explanation promises is what the classifier says of such a row.
        changed = row.astype(X.dtypes.astype(object).map(_wider).to_dict())
        np.testing.assert_allclose(
            clf.predict_proba(changed)[0], found.after, rtol=0, atol=1e-9
        )
        assert str(clf.predict(changed)[0]) == found.target


def _wider(dtype):
    return float if pd.api.types.is_numeric_dtype(dtype) else dtype


def test_fixed_columns_do_not_change(fitted):
    clf, X = fitted
    found = clf.explain_local(X[:1])
    first = found.counterfactual().changes[0].attribute
    other = found.counterfactual(fixed=[first])
    assert first not in [change.attribute for change in other.changes]


def test_importance_and_tables_are_by_column(fitted):
    clf, X = fitted
    whole, by_rows = clf.explain_global(), clf.explain_global(X)
    assert whole.attributes == list(X.columns)
    assert len(whole.tables) == len(whole.importance) == X.shape[1]
    assert len(whole.view_tables) == len(clf.view_names_)
    # Counts tell bins, densities where in a bin: near what the rows themselves give.
    top = whole.importance.max()
    np.testing.assert_allclose(whole.importance, by_rows.importance, atol=0.12 * top)
    assert all(name in repr(whole) for name in X.columns)
    json.dumps(whole.to_dict())


def test_value_tables_say_what_the_classifier_adds(fitted):
    clf, X = fitted
    whole = clf.explain_global()
    number = next(c for c in X.columns if pd.api.types.is_numeric_dtype(X[c]))
    table = whole.table(number)
    assert table.points is not None and "+" in table.kind
    rows = pd.concat([X[:1]] * len(table.points), ignore_index=True)
    rows = rows.astype({number: float})
    rows[number] = table.points
    j = list(X.columns).index(number)
    expected = clf.explain_local(rows).contributions[:, j]
    np.testing.assert_allclose(table.contributions, expected, atol=1e-10)
    bins = whole.table(f"{number} (bins 2)")
    assert bins.kind == "binned"
    assert number in repr(table)


def test_a_page_has_one_control_for_each_column(fitted):
    clf, X = fitted
    data = page_data(clf)
    assert [own["name"] for own in data["attributes"]] == list(X.columns)
    assert sorted(data["order"]) == list(range(X.shape[1]))
    for j, own in enumerate(data["attributes"]):
        if own["kind"] == "number":
            terms = [t for t in data["model"]["terms"] if t["column"] == j]
            assert terms
            assert own["low"] < own["high"]


def test_two_bin_views_are_one_table_of_their_common_intervals(mixed):
    X, y = mixed
    clf = sy.NaiveBayes(numeric=("mdl", "equal-frequency")).fit(X, y)
    table = clf.explain_global().table("length")
    features = [f for f in clf.encoder_.schema_.features if f.name == "length"]
    edges = sorted({edge for feature in features for edge in feature.edges})
    assert list(table.edges) == edges and len(features) == 2
    assert table.points is None and len(table.labels) == len(edges) + 2
    found = clf.explain_local(X)
    np.testing.assert_allclose(
        found.contributions.sum(axis=1) + found.base,
        clf.predict_joint_log_proba(X),
        atol=1e-10,
    )
    changed = found.counterfactual(0)
    assert changed.found


def test_typical_numbers_lie_in_their_intervals():
    random = np.random.default_rng(0)
    for scale in (1e-9, 1.0, 1e12):
        edges = np.unique(np.cumsum(random.exponential(size=20)) * scale + scale)
        numbers = typical_numbers(edges)
        np.testing.assert_array_equal(np.searchsorted(edges, numbers), np.arange(21))
    close = 1.0 + np.arange(1, 5) * 1e-14
    np.testing.assert_array_equal(
        np.searchsorted(close, typical_numbers(close)), np.arange(5)
    )


@pytest.mark.parametrize("missing", ["skip", "value", "impute"])
def test_missing_cells_are_named_once(missing, mixed, fixed):
    X, y = mixed
    clf = fixed(missing=missing).fit(X, y)
    row = X[:1].assign(width=np.nan)
    found = clf.explain_local(row)
    assert found.missing[0].tolist() == [False, False, True, False]
    text = found.values[0][2]
    assert text.startswith("(missing")
    assert ("taken as" in text) == (missing == "impute")
    assert len(found.evidence(views=True).items) == 6


# ---------------------------------------------------------------------- intervals


def test_intervals_are_the_inverse_hessian_of_the_whole_objective(
    two, fixed, problem_of
):
    X, y = two
    clf = fixed(tol=1e-10).fit(X, y)
    problem = problem_of(fixed(), X, y)
    weights = problem.solve(replace(fixed()._recipe(), tol=1e-10)).weights
    step = 1e-5 * np.eye(len(weights))
    hessian = [
        (problem.objective(weights + h)[1] - problem.objective(weights - h)[1]) / 2e-5
        for h in step
    ]
    inverse = np.linalg.inv(np.array(hessian))
    k, d = 2, 6
    # The shared weight of a first view is the overall weight and its own deviation.
    shared = inverse[k + 1 :, k + 1 :][:d, :d]
    found = explain_weights(clf, X, y, method="laplace", level=0.6826894921370859)
    name = "attribute_weights_"
    half = (found.high[name] - found.low[name]) / 2.0
    np.testing.assert_allclose(half, np.sqrt(np.diag(shared)), rtol=1e-3)
    np.testing.assert_allclose(found.estimate[name], clf.attribute_weights_, atol=1e-5)
    effects = found.estimate["value_effects_"]
    assert effects.shape == found.low["value_effects_"].shape
    assert len(found.entries["value_effects_"]) == effects.size
    assert "colour = red in bee" in repr(found)
    # Nothing is surer than its prior with strength lambda: variance b b' / (2 lambda).
    basis = problem.evidence.resolutions.basis
    prior = np.sqrt(basis.power(2).sum(axis=1).max() / (2 * 0.7))
    assert (found.high["value_effects_"] - effects <= prior + 1e-9).all()


def test_evidence_of_rows_has_intervals_around_it(mixed, fixed):
    X, y = mixed
    clf = sy.ShrinkageNB().fit(X, y)
    found = explain_weights(clf, X, y, method="laplace", rows=X[:4]).evidence
    local = clf.explain_local(X[:4])
    scale = clf.model_.link_scale
    k = len(clf.classes_)
    total = local.contributions.sum(axis=2, keepdims=True)
    expected = scale * (k * local.contributions - total) / (k - 1)
    np.testing.assert_allclose(found.estimate, expected, atol=1e-6)
    assert found.attributes == list(X.columns)
    assert (found.low <= found.estimate).all() and (found.estimate <= found.high).all()
    assert (found.total_low < found.total).all()
    assert "sum, with the prior" in repr(found)
    json.dumps(found.to_dict())
    narrow = explain_weights(clf, X, y, method="laplace", level=0.5, rows=X[:4])
    width = found.total_high - found.total_low
    assert (narrow.evidence.total_high - narrow.evidence.total_low < width).all()


def test_intervals_that_cannot_be_made_name_the_alternative(mixed, fixed, monkeypatch):
    X, y = mixed
    clf = fixed().fit(X, y)
    with pytest.raises(ParameterError, match="method='laplace' only"):
        explain_weights(clf, X, y, rows=X[:2])
    with pytest.raises(ParameterError, match="training data"):
        explain_weights(clf, X[:100], y[:100], method="laplace")
    engine = "steelyard.explain.intervals.covariance"
    monkeypatch.setattr(f"{engine}._MAX_EVIDENCE_WORK", 100)
    with pytest.raises(ParameterError, match="fewer rows"):
        explain_weights(clf, X, y, method="laplace", rows=X)
    monkeypatch.setattr(f"{engine}.MAX_SYSTEM", 10)
    with pytest.raises(ParameterError, match=r"pairs=None.*method='bootstrap'"):
        explain_weights(clf, X, y, method="laplace")
    free = fixed(intercept=0.0).fit(X, y)
    monkeypatch.setattr(f"{engine}._MAX_WEIGHTS", 10)
    with pytest.raises(ParameterError, match="invert their Hessian"):
        explain_weights(free, X, y, method="laplace")


def test_bootstrap_intervals_are_there_too(two, fixed):
    X, y = two
    clf = fixed().fit(X, y)
    found = explain_weights(clf, X, y, n_bootstrap=5, random_state=0)
    assert found.samples["attribute_weights_"].shape == (5, 6)
    assert "value_effects_" not in found.samples


def test_intervals_of_weights_cover_about_as_often_as_they_say(coverage):
    shares = coverage.of_weights(100)
    assert set(shares) >= {"attribute_weights_", "value_effects_"}
    for name, share in shares.items():
        assert 0.8 < share < 0.98, name


@pytest.mark.parametrize(
    ("table", "n_rows", "n_repeats"), [("categories", 500, 6), ("mixed", 300, 8)]
)
def test_intervals_of_log_odds_cover_about_as_often_as_they_say(
    coverage, table, n_rows, n_repeats
):
    found = [coverage.laplace(table, n_rows, seed).overall for seed in range(n_repeats)]
    assert 0.86 <= np.mean(found) <= 0.96


@pytest.mark.parametrize("kind", ["WeightCovariance", "ClassCovariance"])
@pytest.mark.parametrize(
    ("n", "n_classes"), [(45, 2), (45, 3), (400, 2), (400, 3), (45, 4), (45, 6)]
)
def test_deviations_are_those_of_the_inverse_hessian(make_mixed, n, n_classes, kind):
    from steelyard.explain.intervals import covariance as engine
    from steelyard.explain.intervals.laplace import solved
    from steelyard.explain.intervals.maps import LevelMaps
    from steelyard.explain.views import evidence_of

    X, y = make_mixed(n, n_classes)
    pairs = [("colour", "length"), ("length", "width")]
    weight = np.linspace(0.2, 3.0, n)
    weight[7] = 0.0
    clf = sy.ShrinkageNB(strength=(1.0, 4.0, 0.7), pairs=pairs)
    clf.fit(X, y, sample_weight=weight)
    own = solved(clf, X, y, weight)
    inverse = np.linalg.inv(engine.hessian_of(own.problem, own.weights))
    maps = LevelMaps(own.problem)
    curvature = own.problem.objective.sample(n).curvature(own.weights, True)
    covariance = getattr(engine, kind)(maps, own.codes, curvature)
    for functions in (maps.shared, maps.by_class, maps.value_effects, maps.effect):
        dense = functions.toarray()
        expected = np.sqrt(np.einsum("ij,jk,ik->i", dense, inverse, dense))
        found = covariance.deviation(functions)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)
    # Of each class against the others.
    contrasts = np.kron(np.eye(len(dense) // n_classes), evidence_of(np.eye(n_classes)))
    variances = ((contrasts @ dense) @ inverse * (contrasts @ dense)).sum(axis=1)
    found = covariance.deviation(maps.effect, evidence_of(np.eye(n_classes)))
    np.testing.assert_allclose(found, np.sqrt(variances), rtol=1e-6, atol=1e-8)
    # The maps are what the weighting does with a vector of weights.
    effect = own.problem.objective.weighting.direction(
        own.weights, own.problem.evidence
    )
    parts = (effect.table, effect.multipliers, effect.base)
    by_weighting = np.concatenate([part.ravel() for part in parts])
    np.testing.assert_allclose(maps.effect @ own.weights, by_weighting, atol=1e-12)


@pytest.mark.parametrize(
    ("n", "n_classes", "kind"),
    [
        (45, 2, "WeightCovariance"),
        (400, 3, "WeightCovariance"),
        (45, 4, "ClassCovariance"),
    ],
)
def test_systems_are_in_the_rows_where_weights_are_many(make_mixed, n, n_classes, kind):
    from steelyard.explain.intervals.laplace import solved

    X, y = make_mixed(n, n_classes)
    clf = sy.ShrinkageNB(strength=(1.0, 4.0, 0.7), pairs=[("colour", "length")])
    own = solved(clf.fit(X, y), X, y, None)
    assert type(own.covariance()).__name__ == kind


def test_the_spread_of_strengths_that_are_hardly_worse_widens_intervals(two):
    from steelyard.explain.intervals.laplace import solved

    X, y = two
    grid = [(2.5, 10.0, 2.5), (0.5, 2.5, 0.5)]
    views = ("linear", "equal-frequency")
    clf = sy.ShrinkageNB(grid=grid, pairs=None, numeric=views).fit(X, y)
    level = 0.6826894921370859
    rows = X[:5]
    path = clf.strength_path_
    # The third is a mean of both.
    assert len(path) == 3
    path, best = path[:2], 0
    clf = sy.ShrinkageNB(strength=grid[best], pairs=None, numeric=views).fit(X, y)
    # Both are plausible, then only the best is.
    clf.strength_path_ = [{**entry, "standard_error": 10.0} for entry in path]
    both = explain_weights(clf, X, y, method="laplace", level=level, rows=rows)
    clf.strength_path_ = [{**entry, "standard_error": 0.0} for entry in path]
    one = explain_weights(clf, X, y, method="laplace", level=level, rows=rows)
    own = solved(clf, X, y, None)
    other = own.with_strengths(path[1 - best])
    codes = clf._encode(rows)
    expected = [model.covariance().evidence(codes)[1] ** 2 for model in (own, other)]
    # The scale of the scores does not make them surer.
    width = one.evidence.total_high - one.evidence.total
    np.testing.assert_allclose(width**2, expected[0], rtol=1e-6)
    apart = (other.scores(codes)[1] - own.scores(codes)[1]) ** 2
    width = both.evidence.total_high - both.evidence.total
    np.testing.assert_allclose(width**2, np.mean([*expected], 0) + apart / 2, rtol=1e-6)
    np.testing.assert_allclose(both.evidence.total, one.evidence.total)
    given = tuple(grid[1 - best])
    refit = sy.ShrinkageNB(strength=given, pairs=None, numeric=views).fit(X, y)
    raw = refit.predict_joint_log_proba(rows)
    np.testing.assert_allclose(
        other.scores(codes)[1][:, 1] / path[1 - best]["scale"],
        raw[:, 1] - raw[:, 0],
        atol=0.02,
    )


def test_models_with_thousands_of_weights_have_intervals():
    from steelyard.explain.intervals.laplace import solved

    random = np.random.default_rng(0)
    X = random.normal(size=(400, 20))
    y = (X[:, 0] * X[:, 1] + random.normal(size=400) > 0).astype(int)
    pairs = [(j, k) for k in range(1, 12) for j in range(k)]
    clf = sy.ShrinkageNB(strength=(2.5, 10.0, 0.5), pairs=pairs).fit(X, y)
    found = explain_weights(clf, X, y, method="laplace", rows=X[:3])
    assert solved(clf, X, y, None).problem.size > 3_000
    assert found.evidence.low.shape == (3, 20 + len(pairs), 2)
    assert (found.evidence.low <= found.evidence.estimate).all()
    np.testing.assert_allclose(
        found.evidence.total_high[:, 0], -found.evidence.total_low[:, 1], atol=1e-9
    )
