"""TableEncoder: codes, widths, missing cells, growth, and what it warns of."""

import itertools
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import steelyard as sy
from steelyard import NaiveBayes, TableEncoder
from steelyard.exceptions import ColumnError, IdentifierWarning
from steelyard.table.discretizers.unsupervised import FixedEdgesDiscretizer
from steelyard.table.frames import as_table

NAN = float("nan")


def column(*cells):
    return np.array(cells, dtype=object)[:, None]


# ------------------------------------------------------------ code 0, missing, unseen


@pytest.mark.plain
def test_code_zero_is_missing_or_unseen():
    encoder = TableEncoder().fit(column("b", "a", None))
    assert encoder.transform(column("a", "b", "new", None)).ravel().tolist() == [
        1,
        2,
        0,
        0,
    ]


@pytest.mark.plain
def test_a_missing_value_of_its_own_has_the_last_code_and_unseen_stays_zero():
    encoder = TableEncoder(missing="value").fit(column("b", None, "a"))
    codes = encoder.transform(column("a", "b", None, "new"))
    assert codes.ravel().tolist() == [1, 2, 3, 0]
    assert encoder.schema_.n_values.tolist() == [3]


def test_without_missing_cells_at_fit_missing_is_no_value():
    encoder = TableEncoder(missing="value").fit(column("b", "a"))
    assert encoder.transform(column(None, "a")).ravel().tolist() == [0, 1]


@pytest.mark.parametrize("missing_at_fit", [True, False])
def test_imputation_takes_the_most_frequent_value_and_never_for_unseen(missing_at_fit):
    cells = ["b", "b", "a", "c"] + ([None] if missing_at_fit else [])
    encoder = TableEncoder(missing="impute").fit(column(*cells))
    codes = encoder.transform(column(None, "new", "a"))
    assert codes.ravel().tolist() == [2, 0, 1]


def test_imputation_of_small_whole_numbers_too():
    X = np.array([[4], [9], [9]], dtype=np.uint8)
    encoder = TableEncoder("all", missing="impute").fit(X)
    assert encoder.transform(np.array([[NAN], [4.0]])).ravel().tolist() == [2, 1]


def test_imputation_counts_weights():
    X, weights = column("a", "b", "b", None), [5, 1, 1, 1]
    encoder = TableEncoder(missing="impute").fit(X, sample_weight=weights)
    assert encoder.transform(column(None)).tolist() == [[1]]


def test_imputation_takes_the_weighted_mean_of_numbers():
    X = np.array([[1.0], [4.0], [NAN]])
    encoder = TableEncoder(numeric="gaussian", missing="impute")
    encoder.fit(X, sample_weight=[2, 1, 1])
    assert_array_equal(encoder.transform(X).ravel(), [1.0, 4.0, 2.0])
    fixed = FixedEdgesDiscretizer([1.5, 3.0])
    binned = TableEncoder(numeric=fixed, missing="impute")
    binned.fit(X, sample_weight=[2, 1, 1])
    assert binned.transform(X).ravel().tolist() == [1, 3, 2]


@pytest.mark.parametrize("numeric", ["equal-frequency", "gaussian-weka"])
def test_an_imputed_mean_is_the_number_that_it_differs_from_by_rounding(numeric):
    X = pd.DataFrame({"same": [7.7] * 108 + [None] * 12, "word": ["a", "b"] * 60})
    y, times = np.repeat([0, 1], [53, 67]), 1.0 + np.arange(120) % 2
    settings = {"numeric": numeric, "missing": "impute", "class_weight": "balanced"}
    weighed = NaiveBayes(**settings).fit(X, y, times)
    schema = weighed.encoder_.schema_.features
    assert schema[0].edges == () and schema[0].step in (0.0, 0.01)
    rows = np.repeat(np.arange(120), times.astype(int))
    assert (
        NaiveBayes(**settings).fit(X.iloc[rows], y[rows]).encoder_.schema_.features
        == schema
    )
    chunks = sy.scan([X.assign(y=y, n=times).iloc[k : k + 7] for k in range(0, 120, 7)])
    assert (
        NaiveBayes(**settings).fit(chunks, "y", "n").encoder_.schema_.features == schema
    )


def test_of_values_that_are_as_frequent_but_for_rounding_the_first_is_imputed():
    X, weights = column("a", "b", "b", "b", None), [0.3, 0.1, 0.1, 0.1, 1.0]
    encoder = TableEncoder(missing="impute").fit(X, sample_weight=weights)
    assert encoder.transform(column(None)).tolist() == [[1]]


def test_a_missing_number_is_skipped_or_a_value():
    X = np.array([[1.0], [NAN], [2.0]])
    numeric = FixedEdgesDiscretizer([1.5])
    assert TableEncoder(numeric=numeric).fit_transform(X).ravel().tolist() == [1, 0, 2]
    encoder = TableEncoder(numeric=numeric, missing="value")
    assert encoder.fit_transform(X).ravel().tolist() == [1, 3, 2]


def test_numbers_beyond_the_outer_edges_fall_into_the_outer_bins():
    encoder = TableEncoder(numeric=FixedEdgesDiscretizer([0.0, 1.0]))
    encoder.fit(np.array([[0.5], [0.6]]))
    X = np.array([[-1e300], [0.0], [1.0], [1e300]])
    assert encoder.transform(X).ravel().tolist() == [1, 1, 2, 3]


SIZES = ["XL", "S", "M", "L"]


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"x": pd.Categorical(["S", "M", "S"], SIZES)}),
        pd.DataFrame({"x": pd.Categorical(["S", "M", "S"], SIZES, ordered=True)}),
        pl.DataFrame({"x": pl.Series(["S", "M", "S"], dtype=pl.Enum(SIZES))}),
        pa.table(
            {
                "x": pa.DictionaryArray.from_arrays(
                    pa.array([1, 2, 1], pa.int8()), pa.array(SIZES)
                )
            }
        ),
    ],
    ids=["category", "ordered", "enum", "dictionary"],
)
def test_declared_values_count_only_when_asked_for(table):
    observed = TableEncoder().fit(table).schema_.features[0]
    assert observed.values == (("S", "M") if observed.ordered else ("M", "S"))
    declared = TableEncoder(cardinality="declared").fit(table).schema_.features[0]
    assert declared.values == tuple(SIZES if declared.ordered else sorted(SIZES))


def test_declared_values_change_the_smoothing_only():
    frame = pd.DataFrame({"x": pd.Categorical(["S", "M", "S", "M"], SIZES)})
    y = [0, 0, 1, 1]
    observed = NaiveBayes(smoothing="laplace").fit(frame, y)
    declared = NaiveBayes(smoothing="laplace", cardinality="declared").fit(frame, y)
    table = np.exp(declared.model_.table)
    # Laplace: (1 + 1) / (2 + 4) for the values held, 1 / 6 for the others.
    assert_allclose(table[1:, 0], [1 / 6, 2 / 6, 2 / 6, 1 / 6])
    assert_allclose(np.exp(observed.model_.table)[1:, 0], [1 / 2, 1 / 2])


# --------------------------------------------------------------------------- widths


@pytest.mark.parametrize(
    ("n_values", "dtype"),
    [(255, "u1"), (256, "u2"), (65535, "u2"), (65536, "u4")],
)
def test_codes_take_as_few_bytes_as_their_number_allows(n_values, dtype):
    X = np.repeat(np.arange(n_values) * 1000, 2)[:, None]
    encoder = TableEncoder("all").fit(X)
    (block,) = encoder.encode(as_table(X)).blocks
    assert block.values.dtype == np.dtype(dtype)
    codes = encoder.transform(X)
    assert codes.dtype == np.dtype(dtype)
    assert_array_equal(codes.ravel(), np.repeat(np.arange(n_values) + 1, 2))


def test_a_column_of_100000_values_leaves_the_others_at_one_byte():
    n = 100_000
    rng = np.random.default_rng(0)
    words = np.array([f"w{k:06d}" for k in range(n)], dtype=object)
    frame = pd.DataFrame(
        {
            "colour": rng.choice(["red", "blue"], 2 * n),
            "word": rng.permutation(np.repeat(words, 2)),
            "month": rng.integers(1, 13, 2 * n).astype(str),
            "middle": rng.integers(0, 1000, 2 * n).astype(str),
        }
    )
    y = (frame["colour"] == "red").to_numpy()
    clf = NaiveBayes(n_jobs=2).fit(frame, y)
    codes = clf.encoder_.encode(as_table(frame))
    types = {
        int(j): block.values.dtype for block in codes.blocks for j in block.features
    }
    assert types == {0: np.uint8, 1: np.uint32, 2: np.uint8, 3: np.uint16}
    order = np.argsort(words)
    expected = np.searchsorted(words[order], frame["word"].to_numpy(object)) + 1
    assert_array_equal(codes.column(1), expected)
    array = codes.to_array()
    assert array.dtype == np.uint32
    for j in range(4):
        assert_array_equal(array[:, j], codes.column(j))
    assert clf.score(frame, y) > 0.9


def test_gaussian_columns_are_numbers_among_codes():
    frame = pd.DataFrame({"n": [1.5, NAN, 2.5], "t": ["b", "a", None], "m": [7, 8, 9]})
    encoder = TableEncoder(numeric={"n": "gaussian", "m": FixedEdgesDiscretizer([7])})
    found = encoder.fit_transform(frame)
    assert_array_equal(found, [[1.5, 2, 1], [NAN, 1, 2], [2.5, 0, 2]])
    codes = encoder.encode(as_table(frame))
    assert codes.to_array().tolist() == [[2, 1], [1, 2], [0, 2]]
    with pytest.raises(ValueError, match="Attribute 0 is not coded"):
        codes.column(0)


def test_the_number_of_threads_does_not_matter():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"t": rng.choice(list("abc"), 50_000), "x": rng.normal(size=50_000)}
    )
    y = rng.integers(0, 2, 50_000)
    one, two = (NaiveBayes(n_jobs=n).fit(frame, y) for n in (1, 2))
    assert one.encoder_.schema_ == two.encoder_.schema_
    assert_array_equal(one.predict_proba(frame), two.predict_proba(frame))


@pytest.mark.parametrize(
    "settings, uses", [({}, True), ({"numeric": "equal-width"}, False)]
)
def test_labels_are_used_where_cut_points_are_found_by_them(settings, uses):
    X, y = pd.DataFrame({"t": ["a", "b"] * 9, "x": range(18)}), [0, 1, 1] * 6
    assert TableEncoder(**settings).fit(X, y).uses_labels is uses
    assert TableEncoder(**settings).fit(X[["t"]], y).uses_labels is False
    assert TableEncoder(**settings).fit(X[["x"]], y).uses_labels is uses


# ---------------------------------------------------------------------------- growth


@pytest.mark.plain
def test_new_categories_are_inserted_in_sorted_order():
    clf = NaiveBayes().partial_fit(column("m", "c"), [0, 1], classes=[0, 1])
    clf.partial_fit(column("a", "z", "h"), [0, 1, 1])
    assert clf.encoder_.schema_.features[0].values == ("a", "c", "h", "m", "z")
    by_code = [[0, 0], [1, 0], [0, 1], [0, 1], [1, 0], [0, 1]]
    assert_array_equal(clf.counts_.by_code, by_code)


def test_a_missing_value_may_turn_up_later():
    X, y = column("a", "b", None, "c", None), [0, 1, 0, 1, 1]
    whole = NaiveBayes(missing="value").fit(X, y)
    parts = NaiveBayes(missing="value").partial_fit(X[:2], y[:2], classes=[0, 1])
    assert not parts.encoder_.schema_.features[0].missing_is_value
    parts.partial_fit(X[2:3], y[2:3]).partial_fit(X[3:], y[3:])
    assert parts.encoder_.schema_ == whole.encoder_.schema_
    assert_array_equal(parts.predict_proba(X), whole.predict_proba(X))


def test_the_imputed_value_is_that_of_the_first_chunk():
    clf = NaiveBayes(missing="impute")
    clf.partial_fit(column("m", "m", "z"), [0, 1, 1], classes=[0, 1])
    clf.partial_fit(column("a", "a", "a", None), [0, 0, 1, 1])
    feature = clf.encoder_.schema_.features[0]
    assert feature.values[feature.missing_code - 1] == "m"
    assert clf.counts_.by_code[feature.code_of["m"]].tolist() == [1, 2]


FIRST = {
    "object": column(None, NAN),
    "float": np.array([[NAN], [NAN]]),
    "str": pd.DataFrame({0: pd.Series([None, None], dtype="str")}),
    "null": pd.DataFrame({0: pd.Series([None, None], dtype=pd.ArrowDtype(pa.null()))}),
}


@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("missing", ["skip", "impute", "value"])
def test_text_may_follow_a_chunk_without_cells(first, missing):
    more, y = column("b", None, "a", "b"), [0, 1, 1, 0]
    clf = NaiveBayes(missing=missing)
    clf.partial_fit(FIRST[first], [0, 1], classes=[0, 1]).partial_fit(more, y)
    feature = clf.encoder_.schema_.features[0]
    assert (feature.kind, feature.cells) == ("categorical", "text")
    assert feature.values == ("a", "b")
    if missing != "impute":
        X = np.vstack([column(None, None), more])
        whole = NaiveBayes(missing=missing).fit(X, [0, 1, *y])
        assert_array_equal(clf.predict_proba(X), whole.predict_proba(X))


@pytest.mark.parametrize("first", ["object", "float", "null"])
@pytest.mark.parametrize(
    "numeric", [FixedEdgesDiscretizer([1.5]), "gaussian"], ids=["fixed", "gaussian"]
)
def test_numbers_may_follow_a_chunk_without_cells(first, numeric):
    more, y = np.array([[1.0], [2.0], [NAN], [3.5]]), [0, 1, 1, 0]
    clf = NaiveBayes(numeric=numeric)
    clf.partial_fit(FIRST[first], [0, 1], classes=[0, 1]).partial_fit(more, y)
    X = np.vstack([[[NAN], [NAN]], more])
    whole = NaiveBayes(numeric=numeric).fit(X, [0, 1, *y])
    assert clf.encoder_.schema_.features[0].cells == "numbers"
    assert_allclose(clf.predict_proba(X), whole.predict_proba(X), rtol=1e-10)


def test_text_that_follows_a_gaussian_column_without_cells_is_refused():
    clf = NaiveBayes(numeric="gaussian").partial_fit(FIRST["float"], [0, 1], [0, 1])
    with pytest.raises(ColumnError, match=r"Column 0 was empty.*categorical_f"):
        clf.partial_fit(column("a", "b"), [0, 1])


def every(**settings):
    return NaiveBayes(categorical_features="all", **settings)


def test_matrices_of_bytes_grow_and_keep_their_kind():
    flags, more = np.array([[True], [True]]), np.array([[False], [True]])
    clf = every().partial_fit(flags, [0, 1], [0, 1]).partial_fit(more, [0, 1])
    assert list(map(repr, clf.encoder_.schema_.features[0].values)) == ["False", "True"]
    small, more = np.array([[1, 0], [3, 0]]), np.array([[2, 0], [3, 5]])
    clf = every().partial_fit(small, [0, 1], [0, 1]).partial_fit(more, [0, 1])
    values = [list(map(repr, f.values)) for f in clf.encoder_.schema_.features]
    assert values == [["1", "2", "3"], ["0", "5"]]
    whole = every().fit(np.vstack([small, more]), [0, 1, 0, 1])
    assert clf.encoder_.schema_ == whole.encoder_.schema_
    assert_array_equal(clf.counts_.by_code, whole.counts_.by_code)


def test_numbers_in_bytes_that_follow_text_are_refused():
    clf = every().partial_fit(column("a", "b"), [0, 1], classes=[0, 1])
    with pytest.raises(ColumnError, match="contained text"):
        clf.partial_fit(np.array([[1], [2]], dtype=np.uint8), [0, 1])


def test_small_whole_numbers_may_follow_a_chunk_without_cells():
    clf = every().partial_fit(FIRST["float"], [0, 1], classes=[0, 1])
    clf.partial_fit(np.array([[1], [2]], dtype=np.uint8), [0, 1])
    assert clf.encoder_.schema_.features[0].cells == "numbers"
    assert len(clf.encoder_.schema_.features[0].values) == 2


def test_a_refused_chunk_leaves_the_model_as_it_was():
    X = pd.DataFrame({"a": ["u", "v"], "b": [1.0, 2.0]})
    clf = NaiveBayes().partial_fit(X, [0, 1], classes=[0, 1])
    before = clf.predict_proba(X)
    bad = pd.DataFrame({"a": ["new", "newer"], "b": [1.0, np.inf]})
    with pytest.raises(ColumnError, match="infinite"):
        clf.partial_fit(bad, [0, 1])
    assert clf.encoder_.schema_.features[0].values == ("u", "v")
    assert_array_equal(clf.predict_proba(X), before)


def test_classes_can_be_announced_and_others_are_taken_in_with_a_warning():
    X = column("a", "b")
    assert NaiveBayes().partial_fit(X, [0, 1]).classes_.tolist() == [0, 1]
    clf = NaiveBayes().partial_fit(X, [0, 0], classes=[1, 0, 2])
    assert clf.classes_.tolist() == [0, 1, 2]
    clf.partial_fit(X, [2, 1], classes=[0, 1, 2])
    clf.partial_fit(X, [0, 1], classes=[0, 1])
    with pytest.warns(UserWarning, match=r"New classes in y: \[5\]"):
        clf.partial_fit(X, [0, 5])
    assert clf.classes_.tolist() == [0, 1, 2, 5]
    assert clf.class_count_.tolist() == [4.0, 2.0, 1.0, 1.0]


chunked_rows = st.lists(
    st.tuples(
        st.sampled_from([None, "p", "q", "r", "s"]),
        st.sampled_from([NAN, 1.0, 2.0, 3.5, -4.0]),
        st.sampled_from([None, True, False]),
        st.integers(0, 2),
    ),
    min_size=2,
    max_size=30,
)


def in_chunks(clf, frame, y, cuts):
    bounds = sorted({0, len(frame), *(cut for cut in cuts if cut < len(frame))})
    for lo, hi in itertools.pairwise(bounds):
        clf.partial_fit(frame.iloc[lo:hi], y[lo:hi], classes=[0, 1, 2])
    return clf


def chunk_frame(rows):
    texts, numbers, flags, y = map(list, zip(*rows, strict=True))
    frame = pd.DataFrame(
        {
            "t": pd.Series(texts, dtype=object),
            "x": pd.Series(numbers, dtype=float),
            "f": pd.Series(flags, dtype="boolean"),
        }
    )
    return frame, y


@settings(max_examples=60, deadline=None)
@given(chunked_rows, st.sets(st.integers(1, 29)), st.sampled_from(["skip", "value"]))
def test_any_chunking_equals_one_fit_bit_for_bit(rows, cuts, missing):
    frame, y = chunk_frame(rows)
    setting = {"numeric": FixedEdgesDiscretizer([0.0, 2.0]), "missing": missing}
    parts = in_chunks(NaiveBayes(**setting), frame, y, cuts)
    whole = in_chunks(NaiveBayes(**setting), frame, y, ())
    assert parts.encoder_.schema_ == whole.encoder_.schema_
    assert_array_equal(parts.counts_.by_code, whole.counts_.by_code)
    assert_array_equal(parts.predict_proba(frame), whole.predict_proba(frame))


@settings(max_examples=40, deadline=None)
@given(chunked_rows, st.sets(st.integers(1, 29)))
def test_any_chunking_of_gaussians_equals_one_fit(rows, cuts):
    frame, y = chunk_frame(rows)
    frame = frame[["x", "f"]]
    setting = {"numeric": "gaussian", "variance_floor": 1e-3}
    parts = in_chunks(NaiveBayes(**setting), frame, y, cuts)
    whole = in_chunks(NaiveBayes(**setting), frame, y, ())
    assert_allclose(
        parts.predict_joint_log_proba(frame),
        whole.predict_joint_log_proba(frame),
        rtol=1e-10,
        atol=1e-10,
    )


# ------------------------------------------------------------------------- identifiers

N = 40
NAMES = [f"person {k}" for k in range(N)]
RUNNING = list(range(1000, 1000 + N))[::-1]
IDENTIFIERS = {
    "pandas str": pd.DataFrame({"id": NAMES}),
    "pandas object": pd.DataFrame({"id": pd.Series(NAMES, dtype=object)}),
    "pandas category": pd.DataFrame({"id": pd.Series(NAMES, dtype="category")}),
    "pandas int": pd.DataFrame({"id": RUNNING}),
    "pandas Int64": pd.DataFrame({"id": pd.Series(RUNNING, dtype="Int64")}),
    "polars text": pl.DataFrame({"id": NAMES}),
    "polars int": pl.DataFrame({"id": RUNNING}),
    "with gaps": pd.DataFrame({"id": [k + k // 4 for k in RUNNING]}),
    "long": pd.DataFrame({"id": [4_000_123_412_340_000 + 7919 * k for k in RUNNING]}),
    "arrow text": pa.table({"id": NAMES}),
    "arrow int": pa.table({"id": RUNNING}),
    "array text": np.array(NAMES)[:, None],
    "array int": np.array(RUNNING)[:, None],
    "array objects": np.array(RUNNING, dtype=object)[:, None],
}
HALVES = [0, 1] * (N // 2)


@pytest.mark.parametrize("name", IDENTIFIERS)
def test_an_identifier_draws_one_warning_at_the_users_line(name):
    label = "Column 0" if "array" in name else "Column 'id'"
    for fit in (
        lambda X: NaiveBayes().fit(X, HALVES),
        lambda X: NaiveBayes().partial_fit(X, HALVES, classes=[0, 1]),
        lambda X: TableEncoder(n_jobs=2).fit(X, HALVES),
        lambda X: TableEncoder("all").fit_transform(X),
        lambda X: make_pipeline(FunctionTransformer(), NaiveBayes()).fit(X, HALVES),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit(IDENTIFIERS[name])
        (warning,) = caught
        assert warning.category is IdentifierWarning
        assert str(warning.message).startswith(f"{label} looks like an identifier")
        assert warning.filename == __file__


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"id": NAMES[:19]}),
        pd.DataFrame({"id": RUNNING[:19]}),
        pd.DataFrame({"x": np.arange(N) + 0.0}),
        pd.DataFrame({"x": np.random.default_rng(0).normal(size=N)}),
        pd.DataFrame({"x": NAMES[:30] + NAMES[:10]}),
        pd.DataFrame({"x": [*RUNNING[:-1], RUNNING[0]]}),
        pd.DataFrame({"x": np.arange(N) * 2}),
        pd.DataFrame({"x": [None] * N}),
        pd.DataFrame({"year": np.arange(1980, 1980 + N)}),
        pd.DataFrame({"celsius": np.arange(20, 20 + N)}),
        pd.DataFrame({"stamp": 1_700_000_000_000 + 7919 * np.arange(N)}),
        pd.DataFrame({"when": pd.date_range("2020-01-01", periods=N)}),
        pl.DataFrame({"x": [*RUNNING[:-9], *[None] * 9]}),
    ],
    ids=range(13),
)
def test_ordinary_columns_draw_no_warning(table):
    y = (HALVES * 2)[: table.shape[0]]
    NaiveBayes().fit(table, y)


@pytest.mark.filterwarnings("ignore::steelyard.exceptions.IdentifierWarning")
def test_identifiers_are_left_out_where_that_is_asked_for():
    X = np.column_stack([np.arange(N), np.arange(N) % 3, np.arange(N) % 5])
    frame = pd.DataFrame(X, columns=["id", "a", "b"]).assign(name=NAMES)
    holes = frame.assign(id=frame["id"].where(frame["id"] != 7))
    for table in (frame, holes, pl.from_pandas(holes), pa.Table.from_pandas(frame)):
        clf = NaiveBayes(keep_identifiers=False).fit(table, HALVES)
        assert clf.encoder_.schema_.left_out == [0, 3]
    bytes_, numbers = X.astype(np.uint8), X.astype(np.int64)
    for table, how in (
        (bytes_, {"categorical_features": "all"}),
        (bytes_, {"numeric": "gaussian"}),
        (numbers, {}),
    ):
        clf = NaiveBayes(keep_identifiers=False, **how).fit(table, HALVES)
        assert clf.encoder_.schema_.left_out == [0]
        plain = NaiveBayes(**how).fit(table[:, 1:], HALVES)
        assert (clf.predict_proba(table) == plain.predict_proba(table[:, 1:])).all()
    clf = NaiveBayes(keep_identifiers=False).fit(frame, HALVES)
    found = clf.predict_proba(frame)
    # New rows need not have them, and they may hold anything.
    assert (clf.predict_proba(frame[["b", "a"]]) == found).all()
    assert (clf.predict_proba(frame.assign(id="x", name=3)) == found).all()
    assert clf.check(frame.assign(id="x", name=3)) == clf.check(frame[["a", "b"]]) == []
    more = clf.partial_fit(frame, HALVES).encoder_.schema_
    assert more.left_out == [0, 3]


@pytest.mark.filterwarnings("ignore::steelyard.exceptions.IdentifierWarning")
def test_identifiers_alone_are_kept():
    for chunks in (False, True):
        frame = pd.DataFrame({"id": RUNNING, "name": NAMES, "y": HALVES})
        given = (sy.scan([frame[:20], frame[20:]]), "y")
        X, y = given if chunks else (frame[["id", "name"]], HALVES)
        clf = NaiveBayes(keep_identifiers=False).fit(X, y)
        assert clf.encoder_.schema_.left_out == []
        kinds = [(notice.kind, notice.done) for notice in clf.notices_]
        assert kinds == [("identifier", "")] * 2


@pytest.mark.filterwarnings("ignore::steelyard.exceptions.IdentifierWarning")
def test_folds_leave_out_what_all_rows_did():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"id": np.arange(150), "a": rng.normal(size=150)})
    # In order of the class, so that the number gives it away.
    y = np.repeat(["n", "y"], 75)
    clf, kept = (sy.ShrinkageNB(keep_identifiers=k).fit(X, y) for k in (False, True))
    assert clf.encoder_.schema_.left_out == [0]
    assert min(step["log_loss"] for step in clf.strength_path_) > 0.6
    assert max(step["log_loss"] for step in kept.strength_path_) < 0.4
    (notice,) = (n for n in clf.notices_ if n.kind == "identifier")
    assert (notice.column, notice.done) == ("id", "dropped")
    assert "keep_identifiers=True" in notice.advice


def test_declared_values_do_not_make_an_identifier():
    declared = pd.CategoricalDtype(NAMES)
    frame = pd.DataFrame({"x": pd.Series(NAMES[:2] * (N // 2), dtype=declared)})
    NaiveBayes(cardinality="declared").fit(frame, HALVES)


# ---------------------------------------------------------------------- names of tables


def test_names_on_one_side_only_draw_a_warning_at_the_users_line():
    frame = pd.DataFrame({"a": ["u", "v"], "b": ["x", "y"]})
    cases = [(frame, frame.to_numpy()), (frame.to_numpy(), frame)]
    for fitted, other in cases:
        clf = NaiveBayes().fit(fitted, [0, 1])
        encoder = TableEncoder().fit(fitted)
        for call in (clf.predict, clf.predict_proba, encoder.transform):
            with pytest.warns(UserWarning, match="matched by position") as caught:
                call(other)
            assert [warning.filename for warning in caught] == [__file__]


def test_refitting_without_names_forgets_them():
    frame = pd.DataFrame({"a": ["u", "v"]})
    encoder = TableEncoder().fit(frame)
    assert encoder.feature_names_in_.tolist() == ["a"]
    assert not hasattr(encoder.fit(frame.to_numpy()), "feature_names_in_")


def test_supervised_cuts_need_labels_only_where_there_are_numbers():
    assert TableEncoder().fit_transform([["a"], ["b"]]).tolist() == [[1], [2]]
    with pytest.raises(
        ValueError, match=r"MDLDiscretizer needs labels: call fit\(X, y"
    ):
        TableEncoder().fit([[1.0], [2.0]])


def test_several_discretizers_cut_a_column_together():
    X = np.random.default_rng(0).normal(size=(60, 2))
    parts = ("equal-width", FixedEdgesDiscretizer([0.0]))
    alone = [TableEncoder(numeric=part).fit(X).schema_ for part in parts]
    both = TableEncoder(numeric=parts).fit(X)
    assert len(both.schema_) == 2
    for j, feature in enumerate(both.schema_.features):
        edges = [schema.features[j].edges for schema in alone]
        assert feature.edges == tuple(sorted({*edges[0], *edges[1]}))
        found = [tuple(feature.edges[k] for k in own) for own in feature.cuts]
        assert found == edges
    assert both.transform(X).max() == len(both.schema_.features[0].edges) + 1


@pytest.mark.parametrize("numeric", [("mdl", "gaussian"), ("linear", "mdl")])
def test_what_has_no_cut_points_is_not_joined(numeric):
    with pytest.raises(sy.exceptions.ParameterError, match="it has no cut points"):
        TableEncoder(numeric=numeric).fit([[1.0], [2.0]], [0, 1])
