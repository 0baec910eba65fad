"""Kinds of numeric columns: bins by one or two discretizers, densities, slopes."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from steelyard import NaiveBayes, ShrinkageNB, WeightedNB
from steelyard.exceptions import ParameterError
from steelyard.weighting import Effect


@pytest.mark.parametrize(
    "numeric", [("mdl", "equal-frequency"), ["gaussian"], "gaussian-relative", "linear"]
)
def test_numpy_pandas_and_polars_are_cut_alike(numeric, mixed):
    polars = pytest.importorskip("polars")
    X, y = mixed
    X = X[["length", "width"]]
    settings = {"numeric": numeric, "strength": (1.0, 4.0, 1.0)}
    tables = {"numpy": X.to_numpy(), "pandas": X, "polars": polars.from_pandas(X)}
    found = {name: ShrinkageNB(**settings).fit(X, y) for name, X in tables.items()}
    first = found["numpy"]
    for name, clf in found.items():
        mine, other = clf.model_.schema.features, first.model_.schema.features
        assert [f.edges for f in mine] == [f.edges for f in other]
        assert [f.kind for f in mine] == [f.kind for f in other]
        assert [f.cuts for f in mine] == [f.cuts for f in other]
        np.testing.assert_array_equal(
            clf.predict_proba(tables[name]), first.predict_proba(tables["numpy"])
        )


def test_columns_may_come_in_any_order_if_they_are_named(mixed, fixed):
    X, y = mixed
    clf = fixed().fit(X, y)
    turned = X[X.columns[::-1]]
    np.testing.assert_array_equal(clf.predict_proba(turned), clf.predict_proba(X))


def test_relative_densities_are_at_most_zero_and_no_lower_than_their_depth(mixed):
    X, y = mixed
    clf = NaiveBayes(numeric="gaussian-relative").fit(X[["length"]], y)
    far = pd.DataFrame({"length": [-1e9, -3.0, 0.0, 1.0, 1e9, np.nan]})
    parts = clf.model_.contributions(clf._encode(far))[:, 0]
    assert (parts <= 0.0).all() and (parts >= -20.0).all()
    np.testing.assert_array_equal(parts.max(axis=1), 0.0)
    assert parts[0].min() == -20.0
    np.testing.assert_array_equal(parts[-1], 0.0)


def test_relative_densities_draw_variances_together_by_three_rows():
    X = np.array([[0.0], [0.0], [1.0], [3.0], [5.0]])
    y = [0, 0, 1, 1, 1]
    table = NaiveBayes(numeric="gaussian-relative").fit(X, y).model_.gaussian
    within = (0.0 + 8.0) / 5.0
    expected = [(0.0 + 3 * within) / (2 + 3), (8.0 + 3 * within) / (3 + 3)]
    np.testing.assert_allclose(table.deviation[0] ** 2, expected)
    np.testing.assert_allclose(table.mean[0], [0.0, 3.0])


def test_a_linear_column_is_the_standardised_number_within_four_deviations():
    X = np.array([[1.0], [1.0], [3.0], [3.0], [7.0]])
    clf = ShrinkageNB(numeric="linear", strength=(1.0, 1.0, 0.5)).fit(
        X, [0, 0, 0, 1, 1]
    )
    table = clf.model_.gaussian
    np.testing.assert_allclose(table.mean[0], X.mean())
    np.testing.assert_allclose(table.deviation[0], X.std())
    numbers = np.array([[X.mean()], [X.mean() + X.std()], [-1e9], [1e9], [np.nan]])
    slope = clf.class_attribute_weights_[:, 0]
    assert slope[1] > 0.1 > slope[0]
    expected = np.outer([0.0, 1.0, -4.0, 4.0, 0.0], slope)
    parts = clf.explain_local(numbers).contributions[:, 0]
    np.testing.assert_allclose(parts, expected, atol=1e-12)


def test_linear_columns_alone_make_a_ridge_regression(two):
    X, y = two
    X = X[["length", "width"]].fillna(0.0)
    ridge = 0.3
    clf = ShrinkageNB(
        numeric="linear", strength=(1.0, 1.0, 10.0 * ridge), intercept=0.0, tol=1e-10
    ).fit(X, y)
    scaled = ((X - X.mean()) / X.std(ddof=0)).clip(-4.0, 4.0)
    # Two classes share a difference of slopes d as +-d/2: the ridge is half of it.
    plain = LogisticRegression(C=1.0 / ridge, tol=1e-10, max_iter=1000).fit(scaled, y)
    np.testing.assert_allclose(
        clf.predict_proba(X), plain.predict_proba(scaled), atol=1e-5
    )


def test_a_small_number_beside_large_ones_keeps_its_trend():
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 2)) * [1e-7, 1e7]
    y = (X[:, 0] > 0).astype(int)
    clf = ShrinkageNB(numeric="linear", strength=(1.0, 1.0, 0.1)).fit(X, y)
    assert clf.score(X, y) > 0.95


@pytest.mark.parametrize(
    "clf", [NaiveBayes(numeric="linear"), WeightedNB(numeric="linear")]
)
def test_linear_columns_need_weights_by_class(clf, mixed):
    with pytest.raises(ParameterError, match="numeric='linear'"):
        clf.fit(*mixed)


@pytest.mark.parametrize(
    "numeric", [(), ("mdl", "nonsense"), ("mdl", 3), [[]], ("mdl", "linear")]
)
def test_what_is_no_treatment_is_refused(numeric, mixed):
    with pytest.raises(ParameterError, match="'numeric'"):
        ShrinkageNB(numeric=numeric).fit(*mixed)


def test_a_model_has_one_table_for_each_column_and_interaction(mixed):
    X, y = mixed
    clf = ShrinkageNB(
        strength=(1.0, 4.0, 1.0), interactions=[("colour", "length")]
    ).fit(X, y)
    schema = clf.model_.schema
    names = [*X.columns, "colour × length"]
    assert schema.labels() == clf.term_names_.tolist() == names
    assert clf.counts_.schema == schema == clf.encoder_.schema_
    sizes = [feature.n_values for feature in schema.features]
    assert [own.shape for own in clf.value_effects_] == [(3, size) for size in sizes]
    assert clf.attribute_weights_.shape == (5,)
    assert clf.class_attribute_weights_.shape == (3, 5)
    assert clf.uncertainty_.variances.shape == (schema.n_codes, 3)
    assert clf.uncertainty_.means.shape == (5, 3)
    assert clf.model_.centre.shape == (5, 3)


def test_the_scores_of_a_model_are_those_of_its_encodings(mixed, problem_of):
    X, y = mixed
    clf = ShrinkageNB(strength=(1.0, 4.0, 1.0)).fit(X, y)
    problem = problem_of(clf, X, y)
    weights = np.random.default_rng(0).normal(size=problem.size)
    of, weighting = problem.evidence.encodings, problem.objective.weighting
    apart = weighting.by_encoding(weights, problem.evidence)
    rows = problem.objective.rows.take(None)
    cells = of.table_rows(rows.table_rows())
    expected = problem.evidence.log_prior + apart.base + apart.table[cells].sum(axis=1)
    effect = weighting.apply(weights, problem.evidence)
    np.testing.assert_allclose(rows.scores(effect), expected, atol=1e-10)
    # And the pullback is the transpose of what is applied.
    change = np.random.default_rng(1).normal(size=problem.size)
    start = weighting.apply(np.zeros(problem.size), problem.evidence)
    random = np.random.default_rng(2)
    gradient = Effect(*(random.normal(size=own.shape) for own in vars(start).values()))
    moved = weighting.apply(change, problem.evidence)
    moved = replace(moved, base=moved.base - problem.evidence.log_prior)
    both = [
        (a * b).sum()
        for a, b in zip(vars(moved).values(), vars(gradient).values(), strict=True)
    ]
    back = weighting.pullback(gradient, problem.evidence)
    np.testing.assert_allclose(sum(both), change @ back, rtol=1e-10)
