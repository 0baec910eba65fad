"""Labels: classes and a number for every row, from any library."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import DataConversionWarning

from steelyard import NaiveBayes
from steelyard.exceptions import TableError
from steelyard.table.frames import as_table
from steelyard.table.labels import as_label_column, encode_labels, known_labels
from steelyard.table.rows import labelled_rows, read_rows, training_rows

TEXT = ["b", "a", "b", "c"]
WHOLE = [7, -1, 7, 12]
FLAGS = [True, False, True, True]


def containers(labels, text):
    """The same labels in every library."""
    arrow_type = pa.string() if text else None
    yield labels
    yield tuple(labels)
    yield np.array(labels)
    yield np.array(labels, dtype=object)
    yield pd.Series(labels, index=[9, 8, 7, 6])
    yield pd.Series(labels, dtype=object)
    yield pd.Series(labels, dtype="category")
    yield pd.Series(labels).convert_dtypes()
    yield pd.Series(labels).convert_dtypes(dtype_backend="pyarrow")
    yield pd.DataFrame({"y": labels})
    yield pd.Index(labels)
    yield pd.array(labels)
    yield pl.Series(labels)
    yield pl.DataFrame({"y": labels})
    yield pa.array(labels, arrow_type)
    yield pa.chunked_array([pa.array(labels[:1]), pa.array(labels[1:])])
    yield pa.chunked_array([pa.array(labels).dictionary_encode()])
    if text:
        yield pl.Series(labels, dtype=pl.Categorical)
        yield pl.Series(labels, dtype=pl.Enum(["z", "c", "b", "a"]))
        yield pd.Series(pd.Categorical(labels, ["z", "c", "b", "a"], ordered=True))


@pytest.mark.parametrize(
    ("labels", "classes"),
    [(TEXT, ["a", "b", "c"]), (WHOLE, [-1, 7, 12]), (FLAGS, [False, True])],
    ids=["text", "whole", "flags"],
)
def test_labels_of_every_library_have_the_same_classes_and_codes(labels, classes):
    expected = [classes.index(label) for label in labels]
    for container in containers(labels, labels is TEXT):
        found, codes = encode_labels(container)
        assert found.tolist() == classes, type(container)
        assert codes.tolist() == expected, type(container)


def test_classes_keep_the_type_of_an_array():
    for dtype in ("int8", "uint16", "bool", "<U1", "float32"):
        y = np.array([1, 0, 1]).astype(dtype)
        assert encode_labels(y)[0].dtype == np.dtype(dtype)


@pytest.mark.parametrize(
    "make",
    [list, np.array, pd.Series, pl.Series, lambda y: pa.chunked_array([y])],
    ids=["list", "NumPy", "pandas", "polars", "pyarrow"],
)
def test_classes_of_whole_floats_are_floats_in_every_library(make):
    assert encode_labels(make([1.0, 0.0, 1.0]))[0].dtype == np.float64
    assert encode_labels(make([1, 0, 1]))[0].dtype == np.int64


def test_categories_that_no_row_holds_are_no_classes():
    y = pd.Series(["a", "b", "a"], dtype=pd.CategoricalDtype(["a", "z", "b"]))
    assert encode_labels(y)[0].tolist() == ["a", "b"]


def test_a_value_twice_in_a_dictionary_is_one_class():
    array = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 2], pa.int8()), pa.array(["a", "b", "a"])
    )
    classes, codes = encode_labels(pa.chunked_array([array]))
    assert classes.tolist() == ["a", "b"]
    assert codes.tolist() == [0, 1, 0]


def test_large_whole_numbers_are_classes_of_their_own():
    large = [2**60 + 1, 2**60 + 2, 2**60 + 1]
    for y in (large, np.array(large, dtype=object), pd.Series(large), pl.Series(large)):
        assert encode_labels(y)[0].tolist() == large[:2]


MISSING = {
    "None in a list": ["a", None, "b"],
    "NaN in a list of text": ["a", float("nan"), "b"],
    "NaN in a list of numbers": [1.0, float("nan"), 2.0],
    "NA in a list": ["a", pd.NA, "b"],
    "object array": np.array(["a", None, "b"], dtype=object),
    "float array": np.array([1.0, np.nan, 2.0]),
    "pandas str": pd.Series(["a", None, "b"], dtype="str"),
    "pandas object": pd.Series(["a", None, "b"], dtype=object),
    "pandas float": pd.Series([1.0, None, 2.0]),
    "pandas Int64": pd.Series([1, None, 2], dtype="Int64"),
    "pandas category": pd.Series(["a", None, "b"], dtype="category"),
    "pandas boolean": pd.Series([True, None, False], dtype="boolean"),
    "polars text": pl.Series(["a", None, "b"]),
    "polars whole": pl.Series([1, None, 2]),
    "polars NaN": pl.Series([1.0, float("nan"), 2.0]),
    "arrow": pa.chunked_array([["a", None, "b"]]),
    "arrow dictionary": pa.chunked_array([pa.array(["a", None]).dictionary_encode()]),
}


@pytest.mark.parametrize("name", MISSING)
def test_missing_labels_are_refused_with_their_row(name):
    with pytest.raises(TableError, match=r"Input y contains NaN.*first in row 1"):
        encode_labels(MISSING[name])


@pytest.mark.parametrize("name", MISSING)
def test_rows_without_a_label_can_be_left_out_with_a_warning(name):
    y = as_label_column(MISSING[name])
    n = len(y)
    weights = np.array([2.0, 3.0, 5.0])[:n]
    with pytest.warns(UserWarning, match=f"^1 of {n} rows have no target"):
        table, kept, rest = labelled_rows(as_table(np.arange(n)[:, None]), y, weights)
    assert table.columns[0].objects() == [0, 2][: n - 1]
    assert type(kept) is type(y)
    classes, codes = encode_labels(kept)
    assert len(classes) == n - 1
    assert sorted(codes.tolist()) == [0, 1][: n - 1]
    assert rest.tolist() == [2.0, 5.0][: n - 1]


def test_where_no_label_is_missing_all_rows_are_left():
    rows = read_rows([[1.0], [2.0]], ["a", "b"], None, None)
    assert all(a is b for a, b in zip(labelled_rows(*rows), rows, strict=True))


def test_without_any_label_or_weight_no_row_is_left():
    table = as_table([[1.0], [2.0]])
    with pytest.raises(TableError, match="Every label is missing"):
        labelled_rows(table, np.array([None, None]), None)
    with (
        pytest.warns(UserWarning, match="1 of 2 rows"),
        pytest.raises(TableError, match="All sample weights are zero"),
    ):
        labelled_rows(table, np.array([None, "a"]), np.array([1.0, 0.0]))


def test_labels_of_every_library_lose_the_rows_of_weight_zero():
    for container in containers(TEXT, True):
        table, y, weights = training_rows(
            [[0], [1], [2], [3]], container, [1, 0, 0.5, 2], None
        )
        assert table.columns[0].objects() == [0, 2, 3], type(container)
        assert encode_labels(y)[0].tolist() == ["b", "c"], type(container)
        assert weights.tolist() == [1.0, 0.5, 2.0]


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([0.5, 1.5, 1.0], "Unknown label type: continuous"),
        (pd.Series([0.5, 1.5]), "Unknown label type: continuous"),
        (np.array([1.0, np.inf]), "infinity"),
        (pl.Series([1.0, float("inf")]), "infinity"),
        (["a", 1, "b"], "mixes int and str"),
        (np.array(["2024-01-01", "2024-01-02"], dtype="M8[D]"), "not supported"),
        (pd.to_datetime(pd.Series(["2024-01-01"])), "dates or times"),
        (np.array([1j, 2j]), "not supported"),
        (np.array([b"a", b"b"]), "not supported"),
        ([[1, 2], [3, 4]], "1d array"),
        ([[1], [2, 3]], "1d array"),
        (pd.DataFrame({"a": [1], "b": [2]}), "1d array"),
        (None, "requires y to be passed"),
    ],
    ids=str,
)
def test_unfit_labels_are_refused(y, words):
    with pytest.raises(ValueError, match=words):
        encode_labels(y)


def test_a_column_vector_is_taken_with_a_warning_at_the_users_line():
    with pytest.warns(DataConversionWarning, match="column-vector y") as caught:
        NaiveBayes().fit([[1.0], [2.0]], np.array([[0], [1]]))
    assert caught[0].filename == __file__


def test_labels_not_announced_are_named():
    with pytest.raises(TableError, match=r"\['z'\].*\['a', 'b'\]"):
        known_labels(["a", "z"], np.array(["a", "b"]))


def test_labels_are_found_among_classes_of_another_type():
    assert_array_equal(known_labels(pd.Series([2.0, 1.0]), np.array([1, 2, 3])), [1, 0])
    assert_array_equal(known_labels(pl.Series(["b"]), np.array(["a", "b"])), [1])
