"""Columns, kinds, and the settings that override them."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal

from steelyard import NaiveBayes, TableEncoder
from steelyard.table.discretizers.unsupervised import FixedEdgesDiscretizer
from steelyard.table.factors import (
    factor_floats,
    factor_integers,
    factor_objects,
    group_objects,
)
from steelyard.table.frames import as_table

NAN = float("nan")
FRAME = pd.DataFrame(
    {
        "text": ["a", "b", "a", "c"],
        "whole": [4, 2, 4, 3],
        "real": [0.5, 1.5, 2.5, 3.5],
        "flag": [True, False, True, True],
    }
)
Y = ["u", "v", "u", "v"]


def kinds(setting, table=FRAME, **others):
    encoder = TableEncoder(setting, **others).fit(table, Y)
    return [feature.kind for feature in encoder.schema_.features]


@pytest.mark.parametrize(
    ("setting", "categorical"),
    [
        ("auto", "text flag"),
        (None, "text flag"),
        ("all", "text whole real flag"),
        ([], "text"),
        (["whole"], "text whole"),
        (["flag", "whole"], "text whole flag"),
        (np.array(["whole"]), "text whole"),
        (pd.Index(["whole"]), "text whole"),
        ({"whole"}, "text whole"),
        ([1], "text whole"),
        ((-1,), "text flag"),
        (["real", 1], "text whole real"),
        ([False, True, False, False], "text whole"),
        (np.array([False, False, True, True]), "text real flag"),
    ],
    ids=str,
)
def test_categorical_features_choose_the_kinds(setting, categorical):
    chosen = categorical.split()
    expected = ["categorical" if name in chosen else "binned" for name in FRAME]
    assert kinds(setting) == expected


def test_an_array_has_kinds_by_position():
    X = FRAME.to_numpy(dtype=object)
    assert kinds([1, 2], X) == ["categorical", "categorical", "categorical", "binned"]


def test_numbers_as_names_of_pandas_columns_are_positions():
    frame = pd.DataFrame([[5, 1.0], [6, 2.0], [5, 3.0], [6, 4.0]], columns=[1, 0])
    assert kinds([0], frame) == ["categorical", "binned"]
    encoder = TableEncoder("all").fit(frame)
    assert not hasattr(encoder, "feature_names_in_")


def test_a_mapping_treats_columns_one_by_one():
    fixed = FixedEdgesDiscretizer([2.5])
    numeric = {"whole": "gaussian", 2: fixed, "flag": "gaussian-weka"}
    found = kinds("auto", numeric=numeric)
    assert found == ["categorical", "gaussian", "binned", "gaussian-weka"]
    encoder = TableEncoder(numeric=numeric).fit(FRAME, Y)
    assert encoder.schema_.features[2].edges == (2.5,)


def test_columns_that_a_mapping_leaves_out_are_cut_by_mdl():
    X = np.repeat([[1.0, 1.0], [2.0, 2.0]], 20, axis=0)
    encoder = TableEncoder(numeric={1: "gaussian"}).fit(X, np.repeat([0, 1], 20))
    assert [f.kind for f in encoder.schema_.features] == ["binned", "gaussian"]
    assert len(encoder.schema_.features[0].edges) == 1


@pytest.mark.plain
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float32", "float64"])
def test_whole_numbers_are_the_same_categories_however_stored(dtype):
    X = np.array([[3, 7], [1, 100], [2, 7], [3, 50]])
    encoder = TableEncoder("all").fit(X)
    other = TableEncoder("all").fit(X.astype(dtype))
    assert [f.values for f in other.schema_.features] == [(1, 2, 3), (7, 50, 100)]
    expected = encoder.transform(X)
    for table in (X.astype(dtype), X.astype(object), pd.DataFrame(X.astype(dtype))):
        assert_array_equal(encoder.transform(table), expected)
        assert_array_equal(other.transform(table), expected)


def test_booleans_are_the_same_values_as_zero_and_one():
    flags = np.array([[True], [False], [True]])
    encoder = TableEncoder().fit(flags)
    assert encoder.schema_.features[0].values == (False, True)
    assert encoder.transform(np.array([[0], [1], [2]])).ravel().tolist() == [1, 2, 0]
    assert encoder.transform([[1.0], [NAN], [0.0]]).ravel().tolist() == [2, 0, 1]


def test_decimals_and_fractions_are_numbers():
    cells = [Decimal("0.5"), Fraction(3, 2), Decimal("NaN"), 2]
    X = np.array(cells, dtype=object)[:, None]
    encoder = TableEncoder(numeric="gaussian").fit(X)
    assert_array_equal(encoder.transform(X).ravel(), [0.5, 1.5, NAN, 2.0])
    assert TableEncoder("all").fit_transform(X).ravel().tolist() == [1, 2, 0, 3]


@pytest.mark.parametrize(
    "missing", [None, NAN, np.float32("nan"), pd.NA, pd.NaT, Decimal("NaN")], ids=repr
)
@pytest.mark.parametrize("known", [["b", "a"], [True, False], [2, 1.5]], ids=str)
def test_every_missing_marker_is_missing_among_objects(known, missing):
    X = np.array([known[0], missing, known[1], missing], dtype=object)[:, None]
    for table in (X, pd.DataFrame({"x": pd.Series(X.ravel(), dtype=object)})):
        assert TableEncoder("all").fit_transform(table).ravel().tolist() == [2, 0, 1, 0]


def test_text_that_looks_missing_or_odd_is_text():
    cells = ["nan", "", "None", "\ud800", "a\0b", "é"]
    X = np.array([*cells, None], dtype=object)[:, None]
    encoder = TableEncoder().fit(X)
    assert encoder.schema_.features[0].values == tuple(sorted(cells))
    assert encoder.transform(X)[-1, 0] == 0


def test_objects_are_factored_alike_without_pandas(monkeypatch):
    cells = ["b", None, "a", NAN, "b", np.str_("a"), float("nan")]
    for values in (cells, [True, None, np.False_, True, NAN, False, None]):
        with_pandas = factor_objects(values)
        with monkeypatch.context() as patch:
            patch.delitem(__import__("sys").modules, "pandas")
            plain = factor_objects(values)
            cells_of = as_table(np.array(values, dtype=object)[:, None]).columns[0]
        assert_array_equal(plain.indices, with_pandas.indices)
        assert plain.values == with_pandas.values
        assert cells_of.cells in ("text", "booleans")


LONG = {
    "text": ["b", "a", None, "c", NAN],
    "numbers": [3, 1.5, None, 3.0, NAN],
    "booleans": [True, None, False, np.True_, NAN],
    "large": [2**60 + 1, 2**60 + 2, None, 2**60 + 1, NAN],
}


@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("layout", ["contiguous", "strided"])
def test_columns_that_repeat_few_objects_are_read_like_others(name, layout):
    few = LONG[name]
    picked = np.random.default_rng(0).integers(0, len(few), 5000)
    cells = np.empty((5000, 2), dtype=object)
    cells[:, 1] = np.array(few, dtype=object)[picked]
    values = cells[:, 1] if layout == "strided" else cells[:, 1].copy()
    assert group_objects(values) is not None
    short = as_table(np.array(few, dtype=object)[:, None]).columns[0]
    long = as_table(values[:, None]).columns[0]
    assert (long.cells, long.is_integer) == (short.cells, short.is_integer)
    codes = TableEncoder("all").fit_transform(values[:, None]).ravel()
    expected = TableEncoder("all").fit_transform(np.array(few, dtype=object)[:, None])
    assert_array_equal(codes, expected.ravel()[picked])
    if name in ("numbers", "large"):
        assert_array_equal(long.numbers(), short.numbers()[picked])


def test_equal_objects_at_different_addresses_are_one_value():
    cells = np.array(["".join(["a", "b"]) for _ in range(6)], dtype=object)
    assert len(set(map(id, cells))) == 6
    values = np.tile(cells, 500)
    assert group_objects(values) is not None
    assert TableEncoder().fit_transform(values[:, None]).ravel().max() == 1


@given(
    hnp.arrays(
        st.sampled_from(["int8", "uint8", "int16", "int64", "uint64", "bool"]),
        st.integers(1, 40),
    )
)
def test_factors_of_integers_point_to_their_values(array):
    factor = factor_integers(array)
    assert [factor.values[k] for k in factor.indices] == array.tolist()
    assert sorted(factor.held()[0]) == sorted(set(array.tolist()))


@given(hnp.arrays("float64", st.integers(0, 40), elements=st.floats(width=16)))
def test_factors_of_floats_point_to_their_values(array):
    factor = factor_floats(array)
    found = np.array([*factor.values, NAN], dtype=float)[factor.indices]
    assert_array_equal(found, array)
    assert len(set(factor.values)) == len(factor.values)


# ------------------------------------------------------------------ byte matrices

values = st.one_of(
    st.integers(0, 3),
    st.integers(-128, 127),
    st.integers(0, 255),
)


def views(X):
    """The same matrix in several layouts."""
    wide = np.zeros((2 * len(X), 2 * X.shape[1]), dtype=X.dtype)
    wide[::2, ::2] = X
    return {
        "C": np.ascontiguousarray(X),
        "F": np.asfortranarray(X),
        "strided": wide[::2, ::2],
        "reversed": np.ascontiguousarray(X[::-1])[::-1],
    }


BYTE_CASES = {
    "uint8": np.random.default_rng(0).integers(0, 256, (300, 4)).astype("uint8"),
    "int8": np.random.default_rng(1).integers(-128, 128, (300, 4)).astype("int8"),
    "bool": np.random.default_rng(2).integers(0, 2, (300, 4)).astype(bool),
    "int64": np.random.default_rng(3).integers(-200, 50, (300, 4)),
    "gaps": np.random.default_rng(4).choice([-3, 0, 7, 200], (300, 4)),
    "far": np.random.default_rng(5).integers(0, 9, (300, 4)) - 2**62,
    "uint64": np.random.default_rng(6).integers(0, 9, (300, 4)).astype("u8") + 2**63,
    "edge": np.random.default_rng(7).integers(0, 9, (300, 4)).astype("u8") + 2**63 - 4,
    "int32 wide": np.random.default_rng(8).integers(-400, 400, (300, 4)).astype("i4"),
    "extremes": np.random.default_rng(9).choice([-(2**63), 2**63 - 1], (300, 4)),
}


@pytest.mark.parametrize("layout", ["C", "F", "strided", "reversed"])
@pytest.mark.parametrize("case", BYTE_CASES)
def test_matrices_of_bytes_predict_like_columns(case, layout):
    X = BYTE_CASES[case]
    y = np.random.default_rng(0).integers(0, 3, len(X))
    seen, new = X[:200], X[100:]
    by_column = NaiveBayes(categorical_features="all").fit(seen.astype(object), y[:200])
    expected = by_column.predict_proba(new.astype(object))
    clf = NaiveBayes(categorical_features="all", n_jobs=2)
    clf.fit(views(seen)[layout], y[:200])
    found = clf.encoder_.schema_
    assert found.features == by_column.encoder_.schema_.features or case == "bool"
    assert_array_equal(clf.predict_proba(views(new)[layout]), expected)
    assert_array_equal(clf.predict_proba(new.astype(object)), expected)
    assert_array_equal(by_column.predict_proba(views(new)[layout]), expected)


@pytest.mark.plain
def test_matrices_of_bytes_have_the_codes_of_their_columns():
    X = np.array([[3, -5], [250, 0], [3, 120], [7, -5]])
    encoder = TableEncoder("all").fit(X)
    assert encoder.schema_.features[0].values == (3, 7, 250)
    codes = encoder.encode(as_table(X))
    assert codes.blocks[0].look_up is not None
    expected = [[1, 1], [3, 2], [1, 3], [2, 1]]
    assert codes.to_array().tolist() == expected
    assert [codes.column(j).tolist() for j in (0, 1)] == np.transpose(expected).tolist()


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int64", "float64"])
def test_values_out_of_the_fitted_range_are_unseen(dtype):
    encoder = TableEncoder("all").fit(np.array([[5], [6]], dtype=dtype))
    X = np.array([[4], [5], [6], [7], [100], [0]], dtype=dtype)
    assert encoder.transform(X).ravel().tolist() == [0, 1, 2, 0, 0, 0]


@pytest.mark.parametrize("new", [-1, 300, 2**40, -(2**63)])
def test_whole_numbers_beyond_bytes_are_unseen_by_a_byte_model(new):
    encoder = TableEncoder("all").fit(np.array([[0], [44]], dtype=np.uint8))
    assert encoder.transform(np.array([[44], [new]])).ravel().tolist() == [2, 0]


def test_whole_numbers_beyond_64_bits_are_values_that_no_byte_holds():
    encoder = TableEncoder("all").fit(np.array([[2**70], [1], [-(2**70)]], object))
    X = np.array([[1], [2]], dtype=np.int8)
    assert encoder.transform(X).ravel().tolist() == [2, 0]


@settings(max_examples=30, deadline=None)
@given(
    hnp.arrays(
        "int64", st.tuples(st.integers(2, 30), st.integers(1, 3)), elements=values
    )
)
def test_any_small_matrix_has_the_codes_of_its_objects(X):
    expected = TableEncoder("all").fit_transform(X.astype(object))
    assert_array_equal(TableEncoder("all").fit_transform(X), expected)


def test_the_users_matrix_is_neither_copied_nor_changed():
    X = np.random.default_rng(0).integers(0, 9, (100, 3)).astype(np.uint8)
    before = X.copy()
    X.flags.writeable = False
    encoder = TableEncoder("all").fit(X)
    codes = encoder.encode(as_table(X))
    assert np.shares_memory(codes.blocks[0].values, X)
    clf = NaiveBayes(categorical_features="all").fit(X, X[:, 0] > 4)
    assert clf.score(X, X[:, 0] > 4) > 0.9
    assert_array_equal(X, before)


# ----------------------------------------------------------- columns with no evidence

Y8 = ["u", "v"] * 4
BASE = {"x": ["a", "b", "a", "b", "a", "a", "b", "b"], "z": [1.0, 2, 1, 2, 1, 2, 1, 9]}
NOTHING = {
    "pandas object": pd.Series([None] * 8, dtype=object),
    "pandas float": pd.Series([NAN] * 8),
    "pandas str": pd.Series([None] * 8, dtype="str"),
    "pandas Int64": pd.Series([None] * 8, dtype="Int64"),
    "pandas boolean": pd.Series([None] * 8, dtype="boolean"),
    "pandas category": pd.Series([None] * 8, dtype="category"),
    "pandas declared": pd.Series([None] * 8, dtype=pd.CategoricalDtype(["p", "q"])),
    "pandas arrow null": pd.Series([None] * 8, dtype=pd.ArrowDtype(pa.null())),
    "polars null": pl.Series([None] * 8),
    "polars string": pl.Series([None] * 8, dtype=pl.String),
    "polars categorical": pl.Series([None] * 8, dtype=pl.Categorical),
    "polars NaN": pl.Series([NAN] * 8),
    "polars decimal": pl.Series([None] * 8, dtype=pl.Decimal(5, 2)),
    "arrow null": pa.nulls(8),
    "arrow string": pa.nulls(8, pa.string()),
    "arrow float": pa.array([NAN] * 4 + [None] * 4),
    "arrow dictionary": pa.nulls(8, pa.dictionary(pa.int8(), pa.string())),
    "arrow bool": pa.nulls(8, pa.bool_()),
}


def with_column(name, column):
    library = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}
    return library[name.split()[0]]({**BASE, "empty": column})


@pytest.mark.parametrize("numeric", ["equal-width", "gaussian", "gaussian-weka"])
@pytest.mark.parametrize("missing", ["skip", "impute"])
@pytest.mark.parametrize("name", NOTHING)
def test_a_column_of_missing_cells_changes_nothing(name, missing, numeric):
    setting = {"numeric": numeric, "missing": missing}
    without = NaiveBayes(**setting).fit(pd.DataFrame(BASE), Y8)
    expected = without.predict_proba(pd.DataFrame(BASE))
    table = with_column(name, NOTHING[name])
    clf = NaiveBayes(**setting).fit(table, Y8)
    assert_array_equal(clf.predict_proba(table), expected)
    assert clf.encoder_.schema_.features[2].cells == "nothing"


@pytest.mark.parametrize("name", NOTHING)
def test_a_missing_column_that_is_a_value_of_its_own_changes_nothing(name):
    without = NaiveBayes(missing="value").fit(pd.DataFrame(BASE), Y8)
    expected = without.predict_proba(pd.DataFrame(BASE))
    table = with_column(name, NOTHING[name])
    found = NaiveBayes(missing="value").fit(table, Y8).predict_proba(table)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("known", [["p", "q"] * 4, [1.5, 2.5] * 4, [True, False] * 4])
@pytest.mark.parametrize("name", NOTHING)
def test_a_column_without_cells_at_prediction_is_missing_whatever_its_type(name, known):
    frame = pd.DataFrame({**BASE, "empty": known})
    clf = NaiveBayes(numeric="equal-width").fit(frame, Y8)
    missing = frame.assign(empty=pd.Series([None] * 8, dtype=object))
    expected = clf.predict_proba(missing)
    assert_array_equal(clf.predict_proba(with_column(name, NOTHING[name])), expected)


@pytest.mark.parametrize("missing", ["skip", "impute", "value"])
@pytest.mark.parametrize("known", [["p", "q"] * 4, [1.5, 2.5] * 4, [True, False] * 4])
@pytest.mark.parametrize("name", ["pandas object", "pandas float", "polars null"])
def test_cells_of_a_column_that_was_empty_at_fit_say_nothing(name, known, missing):
    clf = NaiveBayes(missing=missing).fit(with_column(name, NOTHING[name]), Y8)
    expected = clf.predict_proba(with_column(name, NOTHING[name]))
    frame = pd.DataFrame({**BASE, "empty": known})
    np.testing.assert_allclose(clf.predict_proba(frame), expected, rtol=1e-12)


@pytest.mark.plain
@pytest.mark.parametrize("constant", ["p", 3, 2.5, True])
def test_a_constant_column_changes_nothing(constant):
    frame = pd.DataFrame(BASE)
    expected = NaiveBayes().fit(frame, Y8).predict_proba(frame)
    more = frame.assign(constant=constant)
    found = NaiveBayes().fit(more, Y8).predict_proba(more)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["object", "string"])
def test_texts_that_differ_after_a_nul_are_different(dtype):
    X = pd.DataFrame({"a": ["a", "a\0b", "a\0c", None]}, dtype=dtype)
    p = NaiveBayes().fit(X, [0, 0, 1, 1]).predict_proba(X)[:, 1]
    assert p[0] == p[1] < p[3] < p[2]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_numbers_of_a_frame_are_made_once_and_dropped_on_release(frame):
    (column,) = as_table(frame({"x": np.array([1.5, 2.5], dtype=np.float32)})).columns
    first = column.finite_numbers
    assert column.finite_numbers is first
    column.release()
    assert column.finite_numbers is not first
    assert_array_equal(column.finite_numbers, first)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_whole_numbers_beyond_int64_may_be_missing(frame):
    cells = pa.array([2**64 - 1, None, 2**63, 2**64 - 1], pa.uint64())
    of_pandas = pd.array(cells.to_pylist(), dtype="UInt64")
    of_polars = pl.Series(cells.to_pylist(), dtype=pl.UInt64)
    given = {pd.DataFrame: of_pandas, pl.DataFrame: of_polars, pa.table: cells}
    encoder = TableEncoder("all").fit(frame({"x": given[frame]}))
    assert encoder.schema_.features[0].values == (2**63, 2**64 - 1)
    assert_array_equal(
        encoder.transform(frame({"x": given[frame]})), [[2], [0], [1], [2]]
    )


@pytest.mark.skipif(int(pd.__version__.split(".")[0]) < 3, reason="no copy on write")
def test_cells_stay_as_they_are_when_the_frame_is_written_to():
    frame = pd.DataFrame({"x": [1.5, 2.5], "k": [1, 2], "t": ["a", "b"]})
    frame["c"] = pd.Categorical(["u", "v"])
    columns = as_table(frame).columns
    before = [column.objects() for column in columns]
    frame.iloc[0] = [9.5, 9, "z", "v"]
    assert [column.objects() for column in columns] == before
