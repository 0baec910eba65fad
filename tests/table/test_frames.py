"""The same table from every library gives the same codes and predictions."""

import datetime
import itertools
from decimal import Decimal

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from steelyard import NaiveBayes, TableEncoder

NAN = float("nan")

# Text, floats and booleans with missing values, whole numbers, text of a declared set.
CELLS = {
    "sky": ["rain", "sun", None, "fog", "sun", "rain", "sun", "fog"],
    "heat": [12.5, 30.0, 21.0, None, 28.5, 9.0, 33.25, 8.0],
    "count": [3, 1, 2, 2, 1, 3, 1, 3],
    "windy": [True, False, None, True, False, False, False, True],
    "size": ["S", "L", "M", None, "L", "S", "L", "S"],
}
SIZES = ["L", "M", "S", "XL"]
LABELS = ["in", "out", "out", "in", "out", "in", "out", "in"]


def as_numpy(cells):
    columns = [np.array(column, dtype=object) for column in cells.values()]
    return np.stack(columns, axis=1)


def as_pandas(cells, **dtypes):
    """Make a frame whose columns have the types given."""
    series = {
        name: pd.Series(column, dtype=dtypes[name]) for name, column in cells.items()
    }
    return pd.DataFrame(series)


def pandas_plain(cells):
    sizes = pd.CategoricalDtype(SIZES[::-1])
    return as_pandas(
        cells, sky="str", heat="float64", count="int64", windy=object, size=sizes
    )


def pandas_nullable(cells):
    sizes = pd.CategoricalDtype(SIZES, ordered=True)
    return as_pandas(
        cells, sky="string", heat="Float64", count="Int64", windy="boolean", size=sizes
    )


def pandas_arrow(cells):
    types = {
        "sky": pa.string(),
        "heat": pa.float64(),
        "count": pa.int32(),
        "windy": pa.bool_(),
        "size": pa.dictionary(pa.int8(), pa.string()),
    }
    return as_pandas(cells, **{name: pd.ArrowDtype(t) for name, t in types.items()})


def pandas_object(cells):
    return as_pandas(cells, **dict.fromkeys(cells, object))


def as_polars(cells, **dtypes):
    return pl.DataFrame(
        {name: pl.Series(column, dtype=dtypes[name]) for name, column in cells.items()}
    )


def polars_plain(cells):
    return as_polars(
        cells,
        sky=pl.String,
        heat=pl.Float64,
        count=pl.Int64,
        windy=pl.Boolean,
        size=pl.Enum(SIZES),
    )


def polars_categorical(cells):
    # A NaN among floats and a null are both missing.
    heat = [NAN if value is None else value for value in cells["heat"]]
    return as_polars(
        {**cells, "heat": heat},
        sky=pl.Categorical,
        heat=pl.Float32,
        count=pl.UInt8,
        windy=pl.Boolean,
        size=pl.Categorical,
    )


def polars_decimal(cells):
    heat = [None if value is None else Decimal(str(value)) for value in cells["heat"]]
    return as_polars(
        {**cells, "heat": heat},
        sky=pl.String,
        heat=pl.Decimal(10, 2),
        count=pl.Int128,
        windy=pl.Boolean,
        size=pl.String,
    )


def as_arrow(cells, **types):
    return pa.table(
        {name: pa.array(column, types[name]) for name, column in cells.items()}
    )


def arrow_plain(cells):
    types = {
        "sky": pa.string(),
        "heat": pa.float64(),
        "count": pa.int64(),
        "windy": pa.bool_(),
        "size": pa.large_string(),
    }
    return as_arrow(cells, **types)


def arrow_chunked(cells):
    """Chunks with dictionaries of their own."""
    dictionary = pa.dictionary(pa.int8(), pa.string())
    types = {
        "sky": dictionary,
        "heat": pa.decimal128(10, 2),
        "count": pa.float32(),
        "windy": pa.bool_(),
        "size": dictionary,
    }
    decimals = [None if v is None else Decimal(str(v)) for v in cells["heat"]]
    cells = {**cells, "heat": decimals}
    cuts = [0, 3, 4, len(decimals)]
    chunks = [
        as_arrow({name: column[lo:hi] for name, column in cells.items()}, **types)
        for lo, hi in itertools.pairwise(cuts)
        if hi > lo
    ]
    return pa.concat_tables(chunks)


def arrow_null_in_dictionary(cells):
    """A dictionary that has a null, one value twice and one that no row holds."""
    dictionary = pa.array(["rain", None, "sun", "fog", "sun", "hail"])
    where = {"rain": 0, None: 1, "fog": 3, "sun": 4}
    indices = [where[value] for value in cells["sky"]]
    if "sun" in cells["sky"]:
        indices[cells["sky"].index("sun")] = 2
    sky = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int32()), dictionary)
    table = arrow_plain({**cells, "sky": [None] * len(indices)})
    return table.set_column(0, "sky", sky)


MAKERS = [
    as_numpy,
    pandas_plain,
    pandas_nullable,
    pandas_arrow,
    pandas_object,
    polars_plain,
    polars_categorical,
    polars_decimal,
    arrow_plain,
    arrow_chunked,
    arrow_null_in_dictionary,
]
SETTINGS = [
    {},
    {"missing": "impute"},
    {"missing": "value"},
    {"categorical_features": "all"},
    {"categorical_features": "all", "missing": "value"},
    {"categorical_features": [2]},
    {"numeric": "gaussian"},
    {"numeric": {1: "equal-width", 2: "gaussian-weka"}, "missing": "impute"},
]
by_setting = pytest.mark.parametrize("setting", SETTINGS, ids=str)


@pytest.fixture(params=MAKERS, ids=lambda make: make.__name__)
def make(request):
    return request.param


def facts(feature):
    """What a schema says of a column, whatever the name."""
    known = (feature.kind, feature.cells, feature.values, feature.edges)
    return (*known, feature.fill, feature.missing_is_value, feature.step)


@by_setting
def test_same_schema_and_codes_from_every_library(make, setting):
    expected = TableEncoder(**setting).fit(as_numpy(CELLS), LABELS)
    encoder = TableEncoder(**setting).fit(make(CELLS), LABELS)
    found = [facts(feature) for feature in encoder.schema_.features]
    assert found == [facts(feature) for feature in expected.schema_.features]
    codes = encoder.transform(make(CELLS))
    assert_array_equal(codes, expected.transform(as_numpy(CELLS)))
    assert codes.any(axis=0).all()


@by_setting
def test_same_probabilities_from_every_library(make, setting):
    expected = NaiveBayes(**setting).fit(as_numpy(CELLS), LABELS)
    clf = NaiveBayes(**setting).fit(make(CELLS), LABELS)
    proba = clf.predict_proba(make(CELLS))
    assert_array_equal(proba, expected.predict_proba(as_numpy(CELLS)))
    assert_array_equal(clf.predict(make(CELLS)), LABELS)


@pytest.mark.parametrize("fitted", [pandas_plain, polars_plain, arrow_chunked])
def test_a_model_predicts_tables_of_other_libraries(make, fitted):
    clf = NaiveBayes().fit(fitted(CELLS), LABELS)
    expected = clf.predict_proba(fitted(CELLS))
    if make is as_numpy:
        with pytest.warns(UserWarning, match="valid feature names"):
            assert_array_equal(clf.predict_proba(make(CELLS)), expected)
    else:
        assert_array_equal(clf.predict_proba(make(CELLS)), expected)


@pytest.mark.plain
def test_booleans_and_categories_are_categorical_and_sorted_by_value(make):
    schema = TableEncoder().fit(make(CELLS), LABELS).schema_
    kinds = [feature.kind for feature in schema.features]
    expected = ["categorical", "binned", "binned", "categorical", "categorical"]
    assert kinds == expected
    assert schema.features[0].values == ("fog", "rain", "sun")
    assert schema.features[3].values == (False, True)
    assert schema.features[4].values == ("L", "M", "S")


rows = st.lists(
    st.tuples(
        st.sampled_from(["rain", "sun", "fog", None]),
        st.sampled_from([-1.5, 0.0, 2.25, 7.0, None]),
        st.integers(0, 4),
        st.sampled_from([True, False, None]),
        st.sampled_from(["S", "M", "L", None]),
        st.sampled_from(["in", "out"]),
    ),
    min_size=2,
    max_size=25,
)


@settings(max_examples=25, deadline=None)
@given(rows, st.sampled_from(SETTINGS))
def test_any_table_is_the_same_from_every_library(table, setting):
    *columns, labels = map(list, zip(*table, strict=True))
    labels[:2] = ["in", "out"]
    cells = dict(zip(CELLS, columns, strict=True))
    expected = NaiveBayes(**setting).fit(as_numpy(cells), labels)
    proba = expected.predict_proba(as_numpy(cells))
    for make in MAKERS[1:]:
        clf = NaiveBayes(**setting).fit(make(cells), labels)
        assert_array_equal(clf.predict_proba(make(cells)), proba)


# ------------------------------------------------------------------- single libraries


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(pd.Categorical([3, 1, 2, 1], ordered=True)),
        pd.Series(pd.Categorical([3.0, 1.0, 2.0, 1.0])),
        pd.Series([3, 1, 2, 1], dtype=pd.ArrowDtype(pa.int64())).astype("category"),
    ],
    ids=["ordered", "float", "arrow"],
)
def test_categories_that_are_numbers_equal_numbers(column):
    y = ["a", "b", "a", "b"]
    encoder = TableEncoder().fit(pd.DataFrame({"x": column}), y)
    feature = encoder.schema_.features[0]
    assert (feature.kind, feature.values) == ("categorical", (1, 2, 3))
    numbers = pd.DataFrame({"x": [2.0, 1.0, NAN, 9.0]})
    assert encoder.transform(numbers).ravel().tolist() == [2, 1, 0, 0]
    # Named in `numeric`, its categories are read as the numbers that they are.
    binned = TableEncoder(numeric={"x": "equal-width"})
    binned.fit(pd.DataFrame({"x": column}))
    assert binned.schema_.features[0].kind == "binned"


def test_a_missing_number_in_a_dictionary_is_missing():
    dictionary = pa.array([1.5, NAN, None, 2.0])
    indices = pa.array([0, 1, 2, 3, None], pa.int8())
    column = pa.DictionaryArray.from_arrays(indices, dictionary)
    encoder = TableEncoder().fit(pa.table({"x": column}))
    assert encoder.schema_.features[0].values == (1.5, 2.0)
    codes = encoder.transform(pa.table({"x": column})).ravel()
    assert codes.tolist() == [1, 0, 0, 2, 0]


def test_all_cells_of_an_object_column_are_looked_at():
    late = pd.DataFrame({"x": np.array([None] * 150 + [1.0, 2.0], dtype=object)})
    feature = TableEncoder(numeric="equal-width").fit(late).schema_.features[0]
    assert (feature.kind, feature.cells) == ("binned", "numbers")
    mixed = pd.DataFrame({"x": np.array(["a"] * 150 + [1.0], dtype=object)})
    with pytest.raises(ValueError, match="Column 'x' mixes float and str"):
        TableEncoder().fit(mixed)


def test_polars_categories_of_other_columns_are_not_declared():
    pl.Series(["quite", "another"], dtype=pl.Categorical)
    frame = pl.DataFrame({"x": pl.Series(["a", "b"], dtype=pl.Categorical)})
    encoder = TableEncoder(cardinality="declared").fit(frame)
    assert encoder.schema_.features[0].values == ("a", "b")


LARGE = [2**60 + 1, 2**60 + 2, 2**60 + 1, 2**60 + 3]


@pytest.mark.parametrize(
    "table",
    [
        np.array(LARGE)[:, None],
        np.array(LARGE, dtype=np.uint64)[:, None],
        np.array(LARGE, dtype=object)[:, None],
        pd.DataFrame({"x": LARGE}),
        pd.DataFrame({"x": pd.Series(LARGE, dtype="Int64")}),
        pl.DataFrame({"x": LARGE}),
        pa.table({"x": LARGE}),
    ],
    ids=["int", "uint", "object", "pandas", "nullable", "polars", "arrow"],
)
def test_large_whole_numbers_are_different_categories(table):
    codes = TableEncoder("all").fit_transform(table)
    assert codes.ravel().tolist() == [1, 2, 1, 3]


def test_large_whole_numbers_with_gaps_are_different_categories():
    for series in (pd.Series([*LARGE, None], dtype="Int64"), pl.Series([*LARGE, None])):
        frame = series.to_frame("x") if isinstance(series, pd.Series) else None
        table = pl.DataFrame({"x": series}) if frame is None else frame
        codes = TableEncoder("all").fit_transform(table)
        assert codes.ravel().tolist() == [1, 2, 1, 3, 0]


@pytest.mark.parametrize("dtype", ["float16", "float32", "longdouble"])
def test_floats_of_any_width_are_numbers(dtype):
    X = np.array([[1.5], [NAN], [2.5], [4.0]], dtype=dtype)
    codes = TableEncoder(numeric="equal-width").fit_transform(X)
    assert codes[1, 0] == 0
    assert codes[0, 0] < codes[3, 0]


def test_masked_cells_are_missing():
    X = np.ma.masked_equal([[1, 5], [2, 9], [1, 5]], 9)
    assert TableEncoder("all").fit_transform(X).tolist() == [[1, 1], [2, 0], [1, 1]]


def test_lists_keep_the_types_of_their_cells():
    X = [["a", 1.5, True], ["b", None, False], [None, 2.5, None]]
    kinds = [f.kind for f in TableEncoder(numeric="gaussian").fit(X).schema_.features]
    assert kinds == ["categorical", "gaussian", "categorical"]
    clf = NaiveBayes().fit([["a", 1.0], ["b", 2.0]] * 3, ["u", "v"] * 3)
    assert clf.predict([["b", None], ["a", 1.0]]).tolist() == ["v", "u"]


def test_string_views_are_text():
    views = pa.array(["b", "a", None, "b"], type=pa.string_view())
    codes = TableEncoder().fit_transform(pa.table({"x": views}))
    assert codes.ravel().tolist() == [2, 1, 0, 2]


def test_whole_numbers_that_float64_rounds_are_numbers_from_every_library():
    column = [2**60 + 1, None, 5, 7]
    expected = np.array([float(2**60 + 1), NAN, 5.0, 7.0])
    for table in (
        pd.DataFrame({"x": pd.Series(column, dtype="Int64")}),
        pl.DataFrame({"x": column}),
        pa.table({"x": column}),
    ):
        encoder = TableEncoder(numeric="gaussian").fit(table)
        assert_array_equal(encoder.transform(table).ravel(), expected)


def test_a_record_batch_is_a_table():
    batch = pa.record_batch({"x": ["a", "b", "a"]})
    assert TableEncoder().fit_transform(batch).ravel().tolist() == [1, 2, 1]


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="needs NumPy 2")
def test_numpy_strings_of_variable_width_are_text():
    X = np.array([["a"], ["bcd"]], dtype=np.dtypes.StringDType())
    assert TableEncoder().fit_transform(X).ravel().tolist() == [1, 2]


def test_columns_match_by_name_in_any_order(make):
    if make is as_numpy:
        pytest.skip("an array has no names")
    clf = NaiveBayes().fit(make(CELLS), LABELS)
    table = make(CELLS)
    names = list(CELLS)[::-1]
    turned = table.select(names) if hasattr(table, "select") else table[names]
    assert_array_equal(clf.predict_proba(turned), clf.predict_proba(table))


def test_rows_of_weight_zero_are_as_if_absent_in_every_library(make):
    weights = np.array([1, 1, 0, 1, 2, 1, 1, 0])
    kept = {
        name: [v for v, w in zip(column, weights, strict=True) if w]
        for name, column in CELLS.items()
    }
    labels = [v for v, w in zip(LABELS, weights, strict=True) if w]
    whole = NaiveBayes().fit(make(CELLS), LABELS, weights)
    part = NaiveBayes().fit(make(kept), labels, weights[weights > 0])
    assert_array_equal(
        whole.predict_proba(make(CELLS)), part.predict_proba(make(CELLS))
    )
    encoder = TableEncoder().fit(make(CELLS), LABELS, weights)
    assert encoder.schema_ == part.encoder_.schema_


def test_dates_as_text_are_categories():
    day = datetime.date(2024, 2, 29).isoformat()
    assert TableEncoder().fit_transform([[day], [None]]).ravel().tolist() == [1, 0]


def test_the_type_of_a_column_is_asked_for_a_few_times(monkeypatch):
    """Narwhals works it out each time, which took a third of a fit of wide frames."""
    asked = []
    own = nw.Series.dtype.fget
    monkeypatch.setattr(
        nw.Series, "dtype", property(lambda self: asked.append(1) or own(self))
    )
    frame = pd.DataFrame({f"x{k}": [0.5, 1.5, 2.5, k] for k in range(20)})
    NaiveBayes().fit(frame, list("abab"))
    assert len(asked) <= len(frame.columns)
