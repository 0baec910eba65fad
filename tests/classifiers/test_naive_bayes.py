"""What NaiveBayes promises, whatever the table."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import NotFittedError

import steelyard as sy
from steelyard import FixedEdgesDiscretizer, NaiveBayes
from steelyard.exceptions import (
    ColumnError,
    IdentifierWarning,
    ParameterError,
    TableError,
)
from steelyard.table.frames import as_table

plain = pytest.mark.plain
quick = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
X_IRIS, Y_IRIS = load_iris(return_X_y=True)


def mixed(n=200, seed=0, classes=3):
    """Return a frame of text, whole numbers, floats, booleans and holes, and labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    words = np.array(["ash", "birch", "cedar", "date"], dtype=object)
    frame = pd.DataFrame(
        {
            "tree": words[(y + rng.integers(0, 2, n)) % 4],
            "height": rng.normal(y, 1.0).round(2),
            "rings": rng.integers(0, 30, n) + 5 * y,
            "old": rng.random(n) < 0.2 + 0.2 * y,
        }
    )
    frame.loc[rng.random(n) < 0.15, "tree"] = None
    frame.loc[rng.random(n) < 0.15, "height"] = np.nan
    return frame, y


# -------------------------------------------------------------------------- any table

texts = st.one_of(st.none(), st.sampled_from(["a", "b", "ü", "", " ", "None"]))
floats = st.one_of(st.none(), st.floats(-1e6, 1e6, width=32))
columns_of = {
    "text": texts,
    "floats": floats,
    "whole": st.integers(-(2**40), 2**40),
    "flags": st.one_of(st.none(), st.booleans()),
    "holes": st.none(),
}


@st.composite
def tables(draw):
    """Draw an object array of mixed columns and labels of at least two classes."""
    n = draw(st.integers(2, 12))
    kinds = draw(st.lists(st.sampled_from(sorted(columns_of)), min_size=1, max_size=4))
    columns = [
        draw(st.lists(columns_of[kind], min_size=n, max_size=n)) for kind in kinds
    ]
    y = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    assume(len(set(y)) > 1)
    X = np.empty((n, len(kinds)), dtype=object)
    for j, column in enumerate(columns):
        X[:, j] = column
    return X, np.array(y)


@quick
@given(
    tables(),
    st.sampled_from(["mdl", "equal-width", "equal-frequency", "gaussian"]),
    st.sampled_from(["skip", "impute", "value"]),
    st.sampled_from(["m-estimate", "laplace", "kohavi", 0.01]),
)
def test_any_small_table_fits_and_probabilities_sum_to_one(
    table, numeric, missing, smoothing
):
    X, y = table
    clf = NaiveBayes(numeric=numeric, missing=missing, smoothing=smoothing).fit(X, y)
    proba = clf.predict_proba(X)
    assert proba.shape == (len(y), len(set(y.tolist())))
    assert np.isfinite(proba).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(
        np.exp(clf.predict_log_proba(X)), proba, rtol=1e-9, atol=1e-15
    )
    best = clf.predict_joint_log_proba(X).max(axis=1)
    chosen = np.searchsorted(clf.classes_, clf.predict(X))
    joint = clf.predict_joint_log_proba(X)
    np.testing.assert_array_equal(joint[np.arange(len(y)), chosen], best)


@quick
@given(tables(), st.sampled_from(["skip", "impute", "value"]))
def test_unseen_category_is_scored_as_if_the_column_were_left_out(table, missing):
    X, y = table
    X = np.column_stack([X, np.array(["u", "v"] * len(y), dtype=object)[: len(y)]])
    clf = NaiveBayes(missing=missing).fit(X, y)
    unseen = X.copy()
    unseen[:, -1] = "never seen"
    parts = clf.model_.contributions(clf.encoder_.encode(as_table(unseen)))
    assert (parts[:, -1] == 0.0).all()
    if missing == "skip":
        holes = X.copy()
        holes[:, -1] = None
        np.testing.assert_array_equal(
            clf.predict_proba(unseen), clf.predict_proba(holes)
        )


@quick
@given(tables(), st.randoms(use_true_random=False))
def test_row_order_does_not_matter(table, random):
    X, y = table
    order = list(range(len(y)))
    random.shuffle(order)
    one = NaiveBayes().fit(X, y).predict_joint_log_proba(X)
    other = NaiveBayes().fit(X[order], y[order]).predict_joint_log_proba(X)
    np.testing.assert_array_equal(one, other)


@quick
@given(tables(), st.data())
def test_whole_weights_equal_repeated_rows(table, data):
    X, y = table
    n = len(y)
    weights = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    assume(len(set(y[weights > 0].tolist())) > 1)
    repeated = np.repeat(np.arange(n), weights)
    weighted = NaiveBayes().fit(X, y, sample_weight=weights)
    plain = NaiveBayes().fit(X[repeated], y[repeated])
    assert weighted.classes_.tolist() == plain.classes_.tolist()
    np.testing.assert_array_equal(
        weighted.predict_joint_log_proba(X[repeated]),
        plain.predict_joint_log_proba(X[repeated]),
    )


@quick
@given(tables())
def test_renaming_classes_only_renames_predictions(table):
    X, y = table
    names = np.array(["d", "c", "b", "a"], dtype=object)
    numbers, words = NaiveBayes().fit(X, y), NaiveBayes().fit(X, names[y])
    np.testing.assert_allclose(
        words.predict_proba(X)[:, ::-1], numbers.predict_proba(X), rtol=1e-12
    )


# ----------------------------------------------------------------------------- columns


@plain
def test_named_columns_may_come_in_any_order():
    X, y = mixed()
    clf = NaiveBayes().fit(X, y)
    np.testing.assert_array_equal(
        clf.predict_proba(X[["old", "rings", "tree", "height"]]), clf.predict_proba(X)
    )


@plain
@pytest.mark.parametrize("numeric", ["mdl", "gaussian", "equal-width"])
@pytest.mark.parametrize("missing", ["skip", "impute", "value"])
def test_constant_and_empty_columns_change_nothing(numeric, missing):
    X, y = mixed()
    clf = NaiveBayes(numeric=numeric, missing=missing)
    expected = clf.fit(X, y).predict_proba(X)
    more = X.assign(same=1.5, word="w", hole=None, gap=np.nan)
    found = clf.fit(more, y).predict_proba(more)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@plain
def test_a_column_that_was_empty_at_fit_says_nothing_whatever_it_holds_later():
    X, y = mixed()
    clf = NaiveBayes().fit(X.assign(later=None), y)
    expected = clf.predict_proba(X.assign(later=None))
    for later in (1.0, "word", True):
        found = clf.predict_proba(X.assign(later=later))
        np.testing.assert_array_equal(found, expected)


@plain
@pytest.mark.parametrize("column", ["tree", "height", "rings", "old"])
def test_a_column_of_holes_only_is_left_out_of_the_prediction(column):
    X, y = mixed()
    clf = NaiveBayes().fit(X, y)
    codes = clf.encoder_.encode(as_table(X))
    parts = clf.model_.contributions(codes)
    expected = clf.class_log_prior_ + np.delete(
        parts, X.columns.get_loc(column), axis=1
    ).sum(axis=1)
    found = clf.predict_joint_log_proba(X.assign(**{column: None}))
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@plain
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int64, np.float64, str, bool])
def test_categories_of_any_array_type_give_the_same_model(dtype):
    rng = np.random.default_rng(1)
    X = rng.integers(0, 2, (300, 5))
    y = (X[:, 0] + rng.integers(0, 2, 300)) % 2
    expected = NaiveBayes(categorical_features="all").fit(X, y).predict_proba(X)
    for order in "CF":
        typed = np.array(X.astype(dtype), order=order)
        clf = NaiveBayes(categorical_features="all").fit(typed, y)
        np.testing.assert_allclose(clf.predict_proba(typed), expected, rtol=1e-12)


@pytest.mark.parametrize("n_values", [255, 256, 300, 70_000])
def test_columns_with_many_values_are_counted_in_wider_codes(n_values):
    values = np.arange(n_values) * 3
    X = np.column_stack([np.tile(values, 2), np.repeat([0, 1], n_values)])
    y = np.repeat([0, 1], n_values)
    clf = NaiveBayes(categorical_features="all", smoothing="laplace").fit(X, y)
    assert len(clf.model_.table) == n_values + 1 + 3
    codes = clf.encoder_.transform(X[:5])
    assert codes[:, 0].tolist() == [1, 2, 3, 4, 5]
    assert (clf.predict(X) == y).all()


def test_a_column_of_100000_texts_works_and_draws_a_warning():
    n = 100_000
    X = pd.DataFrame({"key": [f"k{i:06d}" for i in range(n)], "bit": np.arange(n) % 2})
    y = X["bit"].to_numpy()
    with pytest.warns(IdentifierWarning, match="'key' looks like an identifier"):
        clf = NaiveBayes(categorical_features=["bit"]).fit(X, y)
    assert (clf.predict(X) == y).all()


def test_two_thousand_attributes_do_not_underflow():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 100)
    X = (rng.random((200, 2000)) < np.where(y, 0.7, 0.3)[:, None]).astype(np.uint8)
    for categorical in ("all", "auto"):
        clf = NaiveBayes(categorical_features=categorical, numeric="gaussian")
        proba = clf.fit(X, y).predict_proba(X)
        assert np.isfinite(clf.predict_log_proba(X)).all()
        np.testing.assert_allclose(proba.sum(axis=1), 1.0)
        assert (clf.predict(X) == y).mean() > 0.99
    # The logarithm knows what the probability can no longer tell from zero.
    assert clf.predict_log_proba(X).min() < -100


@plain
def test_input_is_left_as_it_was_and_may_be_read_only():
    X, y = X_IRIS.copy(), Y_IRIS.copy()
    X.setflags(write=False)
    y.setflags(write=False)
    clf = NaiveBayes(numeric="gaussian").fit(X, y)
    clf.partial_fit(X, y).predict_proba(X)
    small = (X * 10).astype(np.uint8)
    small.setflags(write=False)
    before = small.copy()
    NaiveBayes(categorical_features="all").fit(small, y).predict_proba(small)
    np.testing.assert_array_equal(small, before)


# ---------------------------------------------------------------------- missing cells


@plain
def test_skipped_cells_count_neither_for_the_value_nor_for_the_total():
    X = np.array([["a"], ["a"], ["b"], [None]], dtype=object)
    clf = NaiveBayes(smoothing=1.0).fit(X, [0, 0, 1, 0])
    of_zero = np.exp(clf.model_.table[1:, 0])
    np.testing.assert_allclose(of_zero, [3 / 4, 1 / 4])


@plain
def test_missing_as_a_value_of_its_own_has_a_probability():
    X = np.array([["a"], [None], ["a"], [None], [None]], dtype=object)
    y = [0, 0, 0, 1, 1]
    clf = NaiveBayes(missing="value", smoothing=1.0).fit(X, y)
    np.testing.assert_allclose(np.exp(clf.model_.table[1:, 0]), [3 / 5, 2 / 5])
    np.testing.assert_allclose(np.exp(clf.model_.table[1:, 1]), [1 / 4, 3 / 4])
    assert clf.predict([[None]]).tolist() == [1]
    assert clf.predict([["a"]]).tolist() == [0]


@plain
def test_imputed_cells_are_scored_as_the_mode_and_the_mean():
    X = pd.DataFrame({"c": ["a", "a", "b", None], "x": [1.0, 2.0, 6.0, np.nan]})
    y = [0, 0, 1, 1]
    clf = NaiveBayes(missing="impute", numeric=FixedEdgesDiscretizer([2.5])).fit(X, y)
    holes = pd.DataFrame({"c": [None, "a"], "x": [np.nan, 3.0]})
    one, other = clf.predict_proba(holes)
    np.testing.assert_array_equal(one, other)
    # Unseen is not missing: it is left out, never imputed.
    unseen = clf.encoder_.transform(pd.DataFrame({"c": ["z"], "x": [3.0]}))
    assert unseen.tolist() == [[0, 2]]


# ---------------------------------------------------------------------- priors, ties


@plain
def test_ties_go_to_the_larger_prior_then_to_the_first_class():
    X = [["x"], ["x"], ["x"], ["x"]]
    # A row without evidence leaves only the prior.
    assert NaiveBayes().fit(X, list("abab")).predict([["?"]]).tolist() == ["a"]
    clf = NaiveBayes(prior=[0.2, 0.4, 0.4]).fit([*X, ["x"], ["x"]], list("abcabc"))
    assert clf.predict([["?"]]).tolist() == ["b"]
    # Evidence that exactly makes up for the prior.
    clf = NaiveBayes(prior=[0.25, 0.75], smoothing=1.0)
    clf.fit([["u"], ["u"], ["v"], ["v"]], [0, 0, 1, 1])
    joint = clf.predict_joint_log_proba([["u"]])[0]
    if joint[0] == joint[1]:
        assert clf.predict([["u"]]).tolist() == [1]


@plain
def test_given_priors_are_used_as_they_are():
    clf = NaiveBayes(prior=[0.2, 0.3, 0.5]).fit(X_IRIS, Y_IRIS)
    np.testing.assert_allclose(np.exp(clf.class_log_prior_), [0.2, 0.3, 0.5])
    never = NaiveBayes(prior=[0.0, 0.5, 0.5]).fit(X_IRIS, Y_IRIS)
    assert (never.predict_proba(X_IRIS)[:, 0] == 0.0).all()
    assert set(never.predict(X_IRIS).tolist()) == {1, 2}


@plain
def test_class_weight_equals_weights_of_rows():
    X, y = mixed()
    by_class = {0: 1.0, 1: 2.0, 2: 4.0}
    one = NaiveBayes(class_weight=by_class).fit(X, y)
    rows = np.array([by_class[c] for c in y])
    other = NaiveBayes().fit(X, y, sample_weight=rows)
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), rtol=1e-12)
    np.testing.assert_allclose(one.class_count_, other.class_count_)
    np.testing.assert_array_equal(one.counts_.by_class, np.bincount(y))


@plain
def test_balanced_classes_have_equal_priors():
    X, y = mixed()
    keep = (y != 2) | (np.arange(len(y)) < 40)
    clf = NaiveBayes(class_weight="balanced").fit(X[keep], y[keep])
    np.testing.assert_allclose(np.exp(clf.class_log_prior_), [1 / 3] * 3)


# -------------------------------------------------------------------------- partial_fit


@plain
@pytest.mark.parametrize(
    "cuts", [[50], [1, 2, 3], [100, 101, 199], list(range(1, 200))]
)
def test_any_chunking_gives_the_bits_of_one_fit_with_fixed_edges(cuts):
    X, y = mixed()
    options = {
        "numeric": {
            "height": FixedEdgesDiscretizer([0.0, 1.0, 2.0]),
            "rings": FixedEdgesDiscretizer([10.0, 20.0]),
        }
    }
    whole = NaiveBayes(**options).fit(X, y)
    parts = NaiveBayes(**options)
    for rows in np.split(np.arange(len(y)), cuts):
        parts.partial_fit(X.iloc[rows], y[rows], classes=[0, 1, 2])
    np.testing.assert_array_equal(parts.model_.table, whole.model_.table)
    np.testing.assert_array_equal(parts.predict_proba(X), whole.predict_proba(X))


@plain
@pytest.mark.parametrize("size", [1, 7, 64])
def test_any_chunking_of_gaussians_agrees_to_ten_digits(size):
    X, y = load_wine(return_X_y=True)
    X = X + 1e4
    X[::9, 3] = np.nan
    order = np.random.default_rng(0).permutation(len(y))
    whole = NaiveBayes(numeric="gaussian").fit(X, y)
    parts = NaiveBayes(numeric="gaussian")
    for lo in range(0, len(y), size):
        rows = order[lo : lo + size]
        parts.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
    np.testing.assert_allclose(
        parts.model_.gaussian.mean, whole.model_.gaussian.mean, rtol=1e-10
    )
    np.testing.assert_allclose(
        parts.model_.gaussian.deviation, whole.model_.gaussian.deviation, rtol=1e-10
    )


@plain
def test_new_categories_grow_the_tables():
    clf = NaiveBayes(smoothing=1.0)
    clf.partial_fit([["m"], ["z"]], ["no", "yes"], classes=["no", "yes"])
    clf.partial_fit([["a"], ["z"], ["p"]], ["no", "yes", "yes"])
    assert clf.model_.schema.features[0].values == ("a", "m", "p", "z")
    whole = NaiveBayes(smoothing=1.0)
    whole.fit([["m"], ["z"], ["a"], ["z"], ["p"]], ["no", "yes", "no", "yes", "yes"])
    np.testing.assert_array_equal(clf.model_.table, whole.model_.table)


@plain
def test_learned_cut_points_and_fills_freeze_at_the_first_chunk():
    X, y = mixed(300)
    clf = NaiveBayes(missing="impute").partial_fit(X[:150], y[:150], classes=[0, 1, 2])
    edges = [feature.edges for feature in clf.model_.schema.features]
    fill = clf.model_.schema.features[1].fill
    clf.partial_fit(X[150:], y[150:])
    assert [feature.edges for feature in clf.model_.schema.features] == edges
    assert clf.model_.schema.features[1].fill == fill
    assert clf.counts_.total == 300


@plain
def test_partial_fit_goes_on_after_fit():
    X, y = mixed(300)
    clf = NaiveBayes().fit(X[:200], y[:200]).partial_fit(X[200:], y[200:])
    np.testing.assert_array_equal(clf.class_count_, np.bincount(y))


@plain
def test_classes_are_announced_or_taken_in_as_they_come():
    X, y = mixed()
    clf = NaiveBayes().partial_fit(X, y, classes=[2, 0, 1, 3])
    assert clf.classes_.tolist() == [0, 1, 2, 3]
    clf.partial_fit(X, y, classes=[0, 4])
    assert clf.classes_.tolist() == [0, 1, 2, 3, 4]
    late = np.where(y == 1, 9, y)
    with pytest.warns(UserWarning, match=r"New classes in y: \[9\]"):
        clf.partial_fit(X, late)
    once = NaiveBayes().fit(X, y)
    with pytest.warns(UserWarning, match="New classes"):
        once.partial_fit(X, late)
    whole = NaiveBayes(numeric=once.numeric).fit(X, y)
    assert (
        clf.class_count_.tolist()
        == (2 * np.bincount(y, minlength=10) + np.bincount(late))[
            [0, 1, 2, 3, 4, 9]
        ].tolist()
    )
    assert once.classes_.tolist() == [*whole.classes_.tolist(), 9]
    with pytest.raises(ValueError, match="different kinds"):
        clf.partial_fit(X, np.where(y == 1, "nine", "one"))


@plain
def test_old_rows_fade_by_the_factor_that_is_given():
    X, y = mixed(300)
    clf = NaiveBayes(missing="value").fit(X[:200], y[:200])
    clf.partial_fit(X[200:], y[200:], forget=0.25)
    fading = np.where(np.arange(300) < 200, 0.25, 1.0)
    edges = NaiveBayes(missing="value").fit(X[:200], y[:200])
    edges.counts_ = edges.counts_.scaled(np.zeros(3))
    again = edges.partial_fit(X, y, sample_weight=fading)
    np.testing.assert_allclose(again.counts_.by_code, clf.counts_.by_code, atol=1e-9)
    np.testing.assert_allclose(again.predict_proba(X), clf.predict_proba(X))
    for wrong in (0.0, -1.0, 1.5, "half", None):
        with pytest.raises(ValueError, match="`forget` must be a number above 0"):
            clf.partial_fit(X, y, forget=wrong)


@plain
def test_a_chunk_that_is_refused_leaves_the_model_as_it_was():
    X, y = mixed()
    clf = NaiveBayes().fit(X, y)
    before = clf.predict_proba(X)
    bad = X.assign(tree="a new tree", height=np.inf)
    with pytest.raises(ColumnError, match="infinite"):
        clf.partial_fit(bad, y)
    assert clf.encoder_.schema_ == clf.model_.schema
    np.testing.assert_array_equal(clf.predict_proba(X), before)


@plain
@pytest.mark.parametrize(
    "wrong",
    [{"smoothing": -1.0}, {"prior": [0.5, 0.5]}, {"variance_floor": -1.0}],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_fit_that_is_refused_leaves_the_model_as_it_was(wrong):
    X, y = mixed()
    clf = NaiveBayes().fit(X, y)
    before = clf.predict_proba(X)
    words = pd.DataFrame(
        {f"w{j}": [f"v{i % 50}" for i in range(200)] for j in range(4)}
    )
    with pytest.raises(ParameterError):
        clf.set_params(**wrong).fit(words, y)
    assert clf.encoder_.schema_ == clf.model_.schema
    np.testing.assert_array_equal(clf.predict_proba(X), before)


@pytest.mark.parametrize("name", ["GNB", "LWNB", "ENB"])
def test_densities_do_not_depend_on_units(name):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    X = rng.normal(y[:, None], 1.0, (200, 3)).round(1)
    X[y == 1, 2] = 0.5
    units = np.array([2.0**30, 1.0, 2.0**-40])
    plain = sy.method(name, numeric="gaussian").fit(X, y)
    scaled = sy.method(name, numeric="gaussian").fit(X * units, y)
    np.testing.assert_allclose(
        scaled.predict_proba(X * units), plain.predict_proba(X), rtol=1e-5, atol=1e-9
    )


@plain
def test_a_column_of_one_number_leaves_the_others_their_say():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 100)
    X = np.column_stack([rng.normal(y, 0.5), np.full(100, 1e6)])
    clf = NaiveBayes(numeric="gaussian").fit(X, y)
    new = np.column_stack([X[:, 0], np.full(100, 2.5e9)])
    np.testing.assert_allclose(clf.predict_proba(new), clf.predict_proba(X), rtol=1e-6)


# ----------------------------------------------------------------------------- threads


@pytest.mark.parametrize("numeric", ["mdl", "gaussian"])
def test_results_do_not_depend_on_the_number_of_threads(numeric):
    X, y = mixed(60_000)
    weights = np.random.default_rng(1).random(len(y))
    one = NaiveBayes(numeric=numeric).fit(X, y, sample_weight=weights)
    for n_jobs in (2, 3, -1):
        other = NaiveBayes(numeric=numeric, n_jobs=n_jobs)
        other.fit(X, y, sample_weight=weights)
        np.testing.assert_array_equal(one.model_.table, other.model_.table)
        np.testing.assert_array_equal(
            one.model_.gaussian.deviation, other.model_.gaussian.deviation
        )
        np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


# -------------------------------------------------------------------------- explaining


@plain
@pytest.mark.parametrize("numeric", ["mdl", "gaussian", "gaussian-weka"])
def test_contributions_and_prior_add_up_to_the_scores(numeric):
    X, y = mixed()
    clf = NaiveBayes(numeric=numeric).fit(X, y)
    parts = clf.model_.contributions(clf.encoder_.encode(as_table(X)))
    assert parts.shape == (200, 4, 3)
    np.testing.assert_allclose(
        clf.class_log_prior_ + parts.sum(axis=1),
        clf.predict_joint_log_proba(X),
        rtol=1e-10,
        atol=1e-12,
    )


# ------------------------------------------------------------------------------ errors

FRAME, LABELS = mixed(40)


@plain
@pytest.mark.parametrize(
    "change, message",
    [
        (lambda X: X.drop(columns="old"), "yet now missing:\n- old"),
        (lambda X: X.assign(new=1), "unseen at fit time:\n- new"),
        (lambda X: X.rename(columns={"old": "aged"}), "Was 'old' renamed to 'aged'"),
        (
            lambda X: X.assign(height="tall"),
            "'height' was numeric .* now contains text",
        ),
        (lambda X: X.assign(tree=7), "'tree' contained text .* now contains numbers"),
        (lambda X: X.assign(height=np.inf), "'height' holds an infinite number"),
        (lambda X: X.iloc[:0], "0 sample"),
        (lambda X: X.assign(height=pd.Timestamp(0)), "'height' holds dates"),
        (lambda X: pd.concat([X, X[["old"]]], axis=1), "more than once: 'old'"),
    ],
)
def test_a_table_that_does_not_fit_the_model_is_explained(change, message):
    clf = NaiveBayes().fit(FRAME, LABELS)
    with pytest.raises(TableError, match=message):
        clf.predict(change(FRAME))


@plain
def test_text_in_an_array_of_numbers_is_explained():
    clf = NaiveBayes().fit(X_IRIS, Y_IRIS)
    with pytest.raises(ColumnError, match=r"was numeric .* now contains text"):
        clf.predict(X_IRIS.astype(str))


@plain
@pytest.mark.parametrize(
    "y, message",
    [
        ([0] * 40, "only one class is present"),
        ([0, 1] * 19 + [0, None], "missing value in 1 of 40 rows"),
        ([0.0, 1.0] * 19 + [0.0, math.nan], "contains NaN"),
        ([0, 1], "inconsistent numbers of samples: the table has 40 rows"),
        (np.linspace(0, 1, 40), "Unknown label type: continuous"),
        (None, "requires y to be passed"),
    ],
)
def test_labels_that_cannot_be_learned_are_explained(y, message):
    with pytest.raises(TableError, match=message):
        NaiveBayes().fit(FRAME, y)


@plain
@pytest.mark.parametrize(
    "settings, message",
    [
        ({"numeric": "mld"}, "'numeric' parameter must be one of 'mdl'"),
        ({"numeric": {"tree": "mdl"}}, "names 'tree', but that column holds text"),
        ({"numeric": {"depth": "mdl"}}, "names 'depth', which is not a column"),
        ({"numeric": {"trees": "mdl"}}, r"Columns: .*\. Did you mean 'tree'\?"),
        ({"missing": "drop"}, "'missing' parameter .* 'skip', 'impute', 'value'"),
        ({"smoothing": -1}, "'smoothing' parameter of NaiveBayes must be .* Got -1"),
        ({"smoothing": "lapalce"}, "Got 'lapalce'"),
        ({"cardinality": "all"}, "'cardinality' parameter"),
        ({"prior": "uniform"}, "'prior' parameter .* Got 'uniform'"),
        ({"prior": [0.5, 0.5]}, "2 entries for 3 classes"),
        ({"prior": [0.5, 0.5, 0.5]}, "add up to 1"),
        ({"variance_floor": -1.0}, "'variance_floor' parameter"),
        ({"class_weight": {7: 1.0}}, "names \\[7\\]"),
        ({"class_weight": "even"}, "'class_weight' parameter"),
        ({"categorical_features": "text"}, "'categorical_features' parameter"),
        ({"categorical_features": ["depth"]}, "names 'depth', which is not a column"),
        ({"categorical_features": [9]}, "names column 9, but there are 4"),
    ],
)
def test_a_setting_that_is_not_allowed_is_explained(settings, message):
    with pytest.raises(ParameterError, match=message):
        NaiveBayes(**settings).fit(FRAME, LABELS)


@plain
@pytest.mark.parametrize(
    "weights, message",
    [
        ([1.0], "one weight for each row"),
        ([-1.0] * 40, "Negative values"),
        ([0.0] * 40, "All sample weights are zero"),
        ([math.nan] * 40, "NaN or infinity"),
        ([[1.0]] * 40, "must be 1D"),
    ],
)
def test_weights_that_cannot_be_used_are_explained(weights, message):
    with pytest.raises(TableError, match=message):
        NaiveBayes().fit(FRAME, LABELS, sample_weight=weights)


@plain
@pytest.mark.parametrize("name", ["predict", "predict_proba", "predict_log_proba"])
def test_prediction_before_fit_is_scikit_learns_error(name):
    with pytest.raises(NotFittedError):
        getattr(NaiveBayes(), name)(FRAME)
    with pytest.raises(NotFittedError):
        NaiveBayes().save("never.json")


@plain
def test_identifiers_draw_a_warning_and_ordinary_columns_do_not():
    X, y = mixed(60)
    NaiveBayes().fit(X, y)
    with pytest.warns(IdentifierWarning, match="'name' looks like an identifier: 60"):
        NaiveBayes().fit(X.assign(name=[f"p{i}" for i in range(60)]), y)
    with pytest.warns(IdentifierWarning, match="'row' looks like .* a running number"):
        NaiveBayes().fit(X.assign(row=range(60)), y)
