"""Missing values, bins and bad input, as the SPSS procedure and its users want them."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.metrics import confusion_matrix

import steelyard as sy
from steelyard.exceptions import ColumnError, ParameterError, TableError

pytestmark = pytest.mark.plain


def edges_of(values, **settings):
    """Cut points that the procedure finds for a column."""
    X = np.array(values, dtype=float)[:, None]
    clf = sy.SPSSNaiveBayes(**settings).fit(X, np.arange(len(X)) % 2)
    return list(clf.encoder_.schema_.features[0].edges)


def same_model(one, other, X):
    assert one.selected_features_ == other.selected_features_
    assert one.selection_path_ == other.selection_path_
    assert one.error_ == other.error_
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


# ------------------------------------------------------------------------------- bins


def test_ten_bins_of_equal_width_are_the_default():
    assert edges_of(np.linspace(0, 10, 41)) == [1, 2, 3, 4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize(
    ("values", "edges"),
    [
        # One empty bin, (4, 5], is shared between its neighbours.
        ([0, 1.5, 2.5, 3.5, 5.5, 6.5, 7.5, 8.5, 10], [1, 2, 3, 4.5, 6, 7, 8, 9]),
        # A run of three, (3, 6].
        ([0, 1.5, 2.5, 6.5, 7.5, 8.5, 10], [1, 2, 4.5, 7, 8, 9]),
        # Two runs, (1, 4] and (5, 9], with one occupied bin between them.
        ([0, 0.5, 4.2, 10], [2.5, 7]),
        # Everything between the end bins.
        ([0, 10], [5]),
        # Values on a boundary belong to the bin on its left.
        ([0, 1, 2, 10], [1, 5.5]),
        # Nothing is empty next to the end bins.
        ([0, 1.5, 9, 10], [1, 5, 9]),
    ],
)
def test_runs_of_empty_bins_leave_one_boundary_half_way(values, edges):
    assert edges_of(values) == pytest.approx(edges)


def test_missing_numbers_do_not_make_bins():
    assert edges_of([0, np.nan, 10, np.nan, 4.2, 0.5]) == pytest.approx([2.5, 7])


def test_other_bins_can_be_asked_for():
    four = sy.EqualWidthDiscretizer(4, empty="merge")
    assert edges_of([0, 1.5, 4], numeric=four) == [1.0, 2.5]


@pytest.mark.parametrize(
    "numeric", ["gaussian", "gaussian-weka", {0: "gaussian", 1: "mdl"}]
)
def test_densities_are_refused(numeric):
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20) % 2
    with pytest.raises(ParameterError, match="SPSSNaiveBayes needs categories"):
        sy.SPSSNaiveBayes(numeric=numeric).fit(X, y)


# -------------------------------------------------------------------- missing values


def test_predictors_without_two_categories_are_dropped(weather):
    X, y = weather
    more = X.assign(same="a", nothing=None, once=[None] * 13 + ["b"], number=3.5)
    clf = sy.SPSSNaiveBayes(selection="none").fit(more, y)
    assert clf.selected_features_ == list(X)
    same = sy.SPSSNaiveBayes(selection="none").fit(X, y)
    assert clf.selection_path_ == same.selection_path_
    np.testing.assert_array_equal(clf.predict_proba(more), same.predict_proba(X))


def test_empty_categories_do_not_count(weather):
    X, y = weather
    declared = X.astype(pd.CategoricalDtype(list("shormcnTF?")))
    declared_y = pd.Series(y).astype(pd.CategoricalDtype(["n", "perhaps", "y"]))
    clf = sy.SPSSNaiveBayes().fit(declared, declared_y)
    same_model(clf, sy.SPSSNaiveBayes().fit(X, y), X)


def test_rows_without_any_known_predictor_are_dropped(weather):
    X, y = weather
    holes = pd.concat([X, X[:3].map(lambda cell: None)], ignore_index=True).assign(
        extra="a"
    )
    clf = sy.SPSSNaiveBayes().fit(holes, [*y, "n", "y", "y"])
    plain = sy.SPSSNaiveBayes().fit(X.assign(extra="a"), y)
    same_model(clf, plain, X.assign(extra="b"))
    assert clf.counts_.total == 14


def test_excluded_columns_do_not_save_a_row(weather):
    X, y = weather
    holes = pd.concat([X, X[:2]], ignore_index=True)
    holes.loc[14:, ["outlook", "temperature", "humidity"]] = None
    excluding = sy.SPSSNaiveBayes(excluded=["windy"])
    clf = excluding.fit(holes, [*y, "n", "n"])
    assert clf.counts_.total == 14
    assert sy.SPSSNaiveBayes().fit(holes, [*y, "n", "n"]).counts_.total == 16


def test_classes_whose_rows_are_all_dropped_are_no_classes(weather):
    X, y = weather
    holes = pd.concat([X, X[:1].map(lambda cell: None)], ignore_index=True)
    clf = sy.SPSSNaiveBayes().fit(holes, [*y, "perhaps"])
    assert clf.classes_.tolist() == ["n", "y"]
    same_model(clf, sy.SPSSNaiveBayes().fit(X, y), X)
    with pytest.raises(TableError, match="Fewer than two classes are left"):
        sy.SPSSNaiveBayes().fit(holes, ["a"] * 14 + ["b"])


@pytest.mark.parametrize(
    "as_labels",
    [
        lambda y: [*y, None, None],
        lambda y: np.array([*y, None, np.nan], dtype=object),
        lambda y: pd.Series([*y, None, pd.NA]),
        lambda y: pd.Series([*y, None, None], dtype="category"),
        lambda y: pl.Series([*y, None, None]),
        lambda y: pa.chunked_array([[*y, None, None]]),
    ],
)
def test_rows_without_a_target_are_dropped_with_a_warning(weather, as_labels):
    X, y = weather
    longer = pd.concat([X, X[:2]], ignore_index=True)
    with pytest.warns(UserWarning, match="2 of 16 rows have no target"):
        clf = sy.SPSSNaiveBayes().fit(longer, as_labels(y.tolist()))
    same_model(clf, sy.SPSSNaiveBayes().fit(X, y), X)


@pytest.mark.parametrize("library", ["numpy", "polars", "pyarrow", "list"])
def test_rows_without_a_target_are_dropped_from_any_table(weather, library):
    X, y = weather
    longer = pd.concat([X[:1], X], ignore_index=True)
    convert = {
        "numpy": lambda t: t.to_numpy(),
        "polars": pl.from_pandas,
        "pyarrow": lambda t: pa.table({name: t[name].to_list() for name in t}),
        "list": lambda t: t.to_numpy().tolist(),
    }[library]
    weights = np.arange(1.0, 16.0)
    numbers = np.array([np.nan, *(y == "y")])
    with pytest.warns(UserWarning, match="1 of 15 rows"):
        clf = sy.SPSSNaiveBayes().fit(convert(longer), numbers, sample_weight=weights)
    plain = sy.SPSSNaiveBayes().fit(
        convert(X), (y == "y").astype(float), sample_weight=weights[1:]
    )
    same_model(clf, plain, convert(X))


def test_missing_cells_and_unseen_categories_are_skipped(weather):
    X, y = weather
    clf = sy.SPSSNaiveBayes(selection="none").fit(X, y)
    part = X.assign(outlook=None, windy="unheard of")
    two = sy.SPSSNaiveBayes(forced=["temperature", "humidity"], exact_size=0).fit(X, y)
    np.testing.assert_allclose(clf.predict_proba(part), two.predict_proba(X))
    nothing = pd.DataFrame([["?"] * 4], columns=list(X))
    np.testing.assert_allclose(
        clf.predict_proba(nothing)[0], np.exp(clf.class_log_prior_)
    )


def test_test_rows_without_target_or_predictors_are_dropped(weather):
    X, y = weather
    longer = pd.concat([X[:4], X[:1], X[:1].map(lambda cell: None)], ignore_index=True)
    labels = [*y[:4], None, "n"]
    with pytest.warns(UserWarning, match="1 of 6 rows have no target"):
        clf = sy.SPSSNaiveBayes().fit(X, y, X_test=longer, y_test=labels)
    same_model(clf, sy.SPSSNaiveBayes().fit(X, y, X_test=X[:4], y_test=y[:4]), X)


# ------------------------------------------------------------- what became of the rows


def test_cases_are_counted_by_what_became_of_them(weather):
    X, y = weather
    longer = pd.concat([X, X[:5]], ignore_index=True).assign(same="a")
    longer.loc[16:18, list(X)] = None
    labels = [*y, None, "n", "n", "y", "y"]
    weights = [*[1.0] * 15, 0.0, 2.0, 2.0, 0.0]
    tested = {"X_test": longer[12:], "y_test": labels[12:]}
    with pytest.warns(UserWarning, match="no target"):
        clf = sy.SPSSNaiveBayes().fit(longer, labels, weights, **tested)
    training, test = clf.case_processing_
    left_out = ["without_target", "without_predictors", "of_weight_zero"]
    assert list(training) == ["sample", "used", *left_out, "total"] == list(test)
    assert list(training.values()) == ["training", 14, 1, 2, 2, 19]
    assert list(test.values()) == ["test", 3, 1, 3, 0, 7]


def test_cases_of_a_source_are_counted_alike(weather, tmp_path):
    X, y = weather
    longer = pd.concat([X, X[:3]], ignore_index=True)
    longer.loc[15] = None
    longer["play"], longer["w"] = [*y, None, "n", "y"], [1.0] * 16 + [0.0]
    with pytest.warns(UserWarning, match="no target"):
        here = sy.SPSSNaiveBayes().fit(longer[list(X)], longer["play"], longer["w"])
    longer.to_csv(tmp_path / "rows.csv", index=False)
    rows = sy.scan(tmp_path / "rows.csv", target="play", weight="w")
    assert sy.SPSSNaiveBayes().fit(rows).case_processing_ == here.case_processing_
    assert here.case_processing_[0]["used"] == 14


def test_classification_table_is_that_of_the_predictions(weather):
    X, y = weather
    y, weights = np.asarray(y), np.arange(1.0, 15.0)
    X_test, y_test = X[::2].assign(windy=None), y[::2]
    clf = sy.SPSSNaiveBayes().fit(X, y, weights, X_test=X_test, y_test=y_test)
    expected = [
        ("training", confusion_matrix(y, clf.predict(X), sample_weight=weights)),
        ("test", confusion_matrix(y_test, clf.predict(X_test))),
    ]
    records = iter(clf.classification_table_)
    for sample, matrix in expected:
        for label, row in zip("ny", matrix, strict=True):
            record = next(records)
            assert (record["sample"], record["observed"]) == (sample, label)
            assert [record["predicted n"], record["predicted y"]] == row.tolist()
            right = row["ny".index(label)]
            assert record["percent_correct"] == pytest.approx(100 * right / row.sum())
    test = expected[1][1]
    assert clf.error_ == pytest.approx(1 - np.trace(test) / test.sum())


def test_table_of_many_classes_is_left_out():
    X, y = np.arange(63)[:, None] % 9, np.arange(63) % 21
    clf = sy.SPSSNaiveBayes(categorical_features="all").fit(X, y)
    assert not hasattr(clf, "classification_table_") and 0 < clf.error_ < 1


# -------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"selection": "backward"}, "'selection' .* one of 'forward', 'none'"),
        ({"criterion": "aic"}, "'criterion' .* Got 'aic'"),
        ({"b_method": "guess"}, "'b_method' .* Got 'guess'"),
        ({"divisor": "n"}, "'divisor' .* Got 'n'"),
        ({"exact_size": -1}, "'exact_size' .* at least 0. Got -1"),
        ({"exact_size": 1.5}, "'exact_size' .* Got 1.5"),
        ({"exact_size": 5}, "exact_size=5 predictors cannot be selected: 4 usable"),
        ({"exact_size": 3, "forced": [0, 1]}, "2 usable ones are left beside 2 forced"),
        ({"exact_size": 4, "excluded": [0]}, "exact_size=4 .* 3 usable"),
        ({"max_size": "large"}, "'max_size' .* 'auto' or a whole number"),
        ({"max_size": True}, "'max_size' .* Got True"),
        ({"n_simulated": 0}, "'n_simulated' .* at least 1"),
        ({"memory_limit": 0}, "'memory_limit' .* megabytes. Got 0"),
        ({"time_limit": -1}, "'time_limit' .* seconds. Got -1"),
        ({"time_limit": np.nan}, "'time_limit' .* Got nan"),
        ({"select_only": "yes"}, "'select_only' .* True or False"),
        ({"verbose": 3}, "'verbose' .* Got 3"),
        ({"forced": "outlook"}, "'forced' .* list of names or positions"),
        ({"forced": ["outlok"]}, "`forced` names 'outlok', which is not a column"),
        ({"excluded": [4]}, r"`excluded` names column 4, but there are 4 columns"),
        ({"excluded": [1.0]}, "'excluded' .* list of names or positions. Got"),
        (
            {"forced": ["windy"], "excluded": [3, 0]},
            r"`forced` and `excluded` both name \['windy'\]",
        ),
        ({"criterion": "test"}, "criterion='test' needs test data"),
        ({"smoothing": "none"}, "'smoothing' parameter"),
    ],
)
def test_bad_settings_are_explained(weather, settings, message):
    X, y = weather
    clf = sy.SPSSNaiveBayes().fit(X, y)
    earlier = clf.model_
    with pytest.raises(ParameterError, match=message):
        clf.set_params(**settings).fit(X, y)
    assert clf.model_ is earlier


def test_bad_test_data_are_explained(weather):
    X, y = weather
    clf = sy.SPSSNaiveBayes()
    with pytest.raises(ParameterError, match="both X_test and y_test"):
        clf.fit(X, y, X_test=X)
    with pytest.raises(ParameterError, match="both X_test and y_test"):
        clf.fit(X, y, y_test=y)
    with pytest.raises(TableError, match="table has 3 rows, but there are 14 labels"):
        clf.fit(X, y, X_test=X[:3], y_test=y)
    with pytest.raises(TableError, match=r"\['perhaps'\] in y_test"):
        clf.fit(X, y, X_test=X[:1], y_test=["perhaps"])
    with pytest.raises(TableError, match="No row of X_test has a known cell"):
        nothing = X[:2].replace(r".", "?", regex=True)
        clf.fit(X, y, X_test=nothing, y_test=y[:2])
    with pytest.raises(ColumnError, match="windy"):
        clf.fit(X, y, X_test=X.drop(columns="windy"), y_test=y)
    assert not hasattr(clf, "model_")


def test_weights_come_third_and_test_data_by_keyword_only(weather):
    X, y = weather
    weights = np.arange(len(y)) % 3 + 1.0
    named = sy.SPSSNaiveBayes().fit(X, y, sample_weight=weights)
    same_model(sy.SPSSNaiveBayes().fit(X, y, weights), named, X)
    with pytest.raises(TypeError, match="positional"):
        sy.SPSSNaiveBayes().fit(X, y, weights, X, y)


def test_labels_that_cannot_be_used_are_explained(weather):
    X, y = weather
    with pytest.raises(TableError, match="Every label is missing"):
        sy.SPSSNaiveBayes().fit(X, [None] * 14)
    with pytest.raises(TableError, match="14 rows, but there are 13 labels"):
        sy.SPSSNaiveBayes().fit(X, [None, *y[:12]])
    with (
        pytest.warns(UserWarning, match="have no target"),
        pytest.raises(TableError, match="only one class"),
    ):
        sy.SPSSNaiveBayes().fit(X, [None, *("y" * 13)])


def test_forced_predictors_that_cannot_be_used_are_left_out_with_a_warning(weather):
    X, y = weather
    clf = sy.SPSSNaiveBayes(forced=["same", "windy"], exact_size=0)
    with pytest.warns(UserWarning, match=r"Forced predictors \['same'\]"):
        clf.fit(X.assign(same="a"), y)
    assert clf.selected_features_ == ["windy"]


def test_without_predictors_the_prior_decides_with_a_warning():
    X, y = np.full((5, 2), "a"), [0, 1, 1, 0, 1]
    with pytest.warns(UserWarning, match="No column can be used"):
        clf = sy.SPSSNaiveBayes().fit(X, y)
    assert clf.selected_features_ == []
    assert clf.predict(X).tolist() == [1] * 5
    assert clf.error_ == 0.4


def test_selection_only_predicts_nothing_and_says_why(weather):
    X, y = weather
    clf = sy.SPSSNaiveBayes().fit(X, y)
    clf.set_params(select_only=True).fit(X, y)
    assert clf.selected_features_ == ["outlook", "humidity"]
    assert not hasattr(clf, "error_")
    for call in (clf.predict, clf.predict_proba, clf.predict_joint_log_proba):
        with pytest.raises(ParameterError, match="select_only=True there is no final"):
            call(X)
