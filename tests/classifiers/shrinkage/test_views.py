"""Columns that are seen in several ways."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from steelyard import NaiveBayes, ShrinkageNB, TableEncoder, WeightedNB
from steelyard.exceptions import ParameterError

VIEWS = ("mdl", "gaussian-relative")


@pytest.mark.parametrize(
    "numeric", [VIEWS, ("mdl", "equal-frequency"), ["gaussian"], ("mdl", "linear")]
)
def test_numpy_pandas_and_polars_have_the_same_views(numeric, mixed):
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
        np.testing.assert_array_equal(
            clf.predict_proba(tables[name]), first.predict_proba(tables["numpy"])
        )


def test_labels_name_columns_and_their_further_views(mixed):
    X, y = mixed
    clf = NaiveBayes(numeric=("mdl", "equal-width", "gaussian")).fit(X, y)
    schema = clf.encoder_.schema_
    assert schema.labels() == [
        "colour",
        "length",
        "length (bins 2)",
        "length (density)",
        "width",
        "width (bins 2)",
        "width (density)",
        "striped",
    ]
    assert schema.columns == [0, 1, 1, 1, 2, 2, 2, 3]
    assert schema.names == list(X.columns)
    assert clf.n_features_in_ == 4
    bare = NaiveBayes(numeric=VIEWS).fit(X[["length"]].to_numpy(), y)
    assert bare.encoder_.schema_.labels() == ["x0", "x0 (density)"]


def test_scores_of_views_add_up_to_the_models_of_one_view(mixed):
    X, y = mixed
    both = NaiveBayes(numeric=("mdl", "gaussian")).fit(X, y)
    bins = NaiveBayes(numeric="mdl").fit(X, y)
    densities = NaiveBayes(numeric="gaussian").fit(X, y)
    categories = NaiveBayes().fit(X[["colour", "striped"]], y)
    expected = (
        bins.predict_joint_log_proba(X)
        + densities.predict_joint_log_proba(X)
        - categories.predict_joint_log_proba(X[["colour", "striped"]])
    )
    np.testing.assert_allclose(both.predict_joint_log_proba(X), expected, atol=1e-10)


def test_views_are_given_column_by_column(mixed):
    X, y = mixed
    clf = NaiveBayes(numeric={"length": VIEWS, "width": "gaussian"}).fit(X, y)
    kinds = [feature.kind for feature in clf.encoder_.schema_.features]
    assert kinds == [
        "categorical",
        "binned",
        "gaussian-relative",
        "gaussian",
        "categorical",
    ]


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


def test_a_linear_view_is_the_standardised_number_within_four_deviations():
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


def test_linear_views_alone_make_a_ridge_regression(two):
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
    "clf", [NaiveBayes(numeric="linear"), WeightedNB(numeric=("mdl", "linear"))]
)
def test_linear_views_need_weights_by_class(clf, mixed):
    with pytest.raises(ParameterError, match="numeric='linear'"):
        clf.fit(*mixed)


@pytest.mark.parametrize("missing", ["skip", "value", "impute"])
def test_a_missing_cell_is_missing_in_all_views(missing, mixed, fixed):
    X, y = mixed
    clf = fixed(missing=missing).fit(X, y)
    row = X[:1].copy()
    row["width"] = np.nan
    parts = clf.model_.contributions(clf._encode(row))[0]
    views = [clf.view_names_.tolist().index(n) for n in ("width", "width (density)")]
    if missing == "skip":
        np.testing.assert_array_equal(parts[views], 0.0)
    elif missing == "value":
        assert np.abs(parts[views[0]]).max() > 0.0
        np.testing.assert_array_equal(parts[views[1]], 0.0)
    else:
        assert (np.abs(parts[views]).max(axis=1) > 0.0).all()


@pytest.mark.parametrize("weighting", ["attribute", "class-attribute", "value"])
def test_views_have_weights_of_their_own_in_weighted_nb(weighting, mixed):
    X, y = mixed
    clf = WeightedNB(numeric=VIEWS, weighting=weighting, lam=1.0).fit(X, y)
    name = {"attribute": "attribute_weights_", "value": "value_weights_"}.get(
        weighting, "class_attribute_weights_"
    )
    found = getattr(clf, name)
    n_views = len(found) if isinstance(found, list) else np.shape(found)[-1]
    assert n_views == 6
    assert clf.score(X, y) > 0.6


@pytest.mark.parametrize("numeric", [(), ("mdl", "nonsense"), ("mdl", 3), [[]]])
def test_what_is_no_view_is_refused(numeric, mixed):
    with pytest.raises(ParameterError, match="'numeric'"):
        ShrinkageNB(numeric=numeric).fit(*mixed)


def test_the_encoder_reads_views_too(mixed):
    X, y = mixed
    encoder = TableEncoder(numeric=VIEWS).fit(X, y)
    assert len(encoder.schema_) == 6
    assert encoder.n_features_in_ == 4
