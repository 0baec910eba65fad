"""Rows taken from a table are encoded like rows taken from the user's frame."""

import dataclasses
import warnings

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard import TableEncoder
from steelyard.exceptions import ColumnError, TableError
from steelyard.table.columns import ArrayColumn
from steelyard.table.frames import as_table

NAN = float("nan")


def take_rows(X, rows):
    """Return some rows as the user's own library takes them."""
    if isinstance(X, list):
        return [X[row] for row in rows]
    if isinstance(X, pa.RecordBatch):
        return X.take(pa.array(rows))
    frame = nw.from_native(X, pass_through=True)
    return frame[rows] if frame is X else frame[rows].to_native()


N = 24
RNG = np.random.default_rng(0)
WHOLE = RNG.integers(0, 5, (N, 3))
REAL = np.where(RNG.random((N, 3)) < 0.2, NAN, RNG.normal(size=(N, 3)).round(1))
REAL[:8, 2] = NAN
TEXT = RNG.choice(["a", "b", "ü"], (N, 2))
LABELS = RNG.integers(0, 2, N).astype(np.uint32)
WEIGHTS = RNG.integers(1, 4, N).astype(np.float64)

# In the first eight rows two columns have missing values only.
CELLS = {
    "text": [None] * 8 + RNG.choice(["x", "y", None], N - 8).tolist(),
    "real": [None if np.isnan(v) else v for v in REAL[:, 2].tolist()],
    "whole": WHOLE[:, 0].tolist(),
    "large": [2**53 + (k % 3) for k in range(N)],
    "flag": RNG.choice([True, False, None], N).tolist(),
    "size": RNG.choice(["S", "L", None], N).tolist(),
}
OBJECTS = np.array(list(zip(*CELLS.values(), strict=True)), dtype=object)


def pandas_frame():
    frame = pd.DataFrame(CELLS, index=np.arange(N)[::-1])
    return frame.astype({"size": pd.CategoricalDtype(["XL", "L", "S"])})


def arrow_table():
    # Two chunks, each with a dictionary of its own.
    table = pa.table(CELLS)
    table = table.set_column(5, "size", table["size"].dictionary_encode())
    halves = [table.slice(0, 10), table.slice(10)]
    halves = [
        half.set_column(
            5, "size", pa.array(half["size"].to_pylist()).dictionary_encode()
        )
        for half in halves
    ]
    return pa.concat_tables(halves).append_column("empty", pa.nulls(N))


TABLES = {
    "float64": REAL,
    "float64 by column": np.asfortranarray(REAL),
    "float64 some columns": np.hstack([REAL, REAL])[:, ::2],
    "float32": REAL.astype(np.float32),
    "int64": WHOLE,
    "int64 by column": np.asfortranarray(WHOLE),
    "int64 wide": WHOLE * 1000,
    "int64 large": WHOLE + 2**53,
    "uint8": WHOLE.astype(np.uint8),
    "int8 by column": np.asfortranarray(WHOLE.astype(np.int8) - 2),
    "bool": WHOLE > 2,
    "text": TEXT,
    "objects": OBJECTS,
    "masked": np.ma.MaskedArray(WHOLE, WHOLE == 1),
    "rows of numbers": REAL.tolist(),
    "rows of any cells": OBJECTS.tolist(),
    "pandas": pandas_frame(),
    "pandas objects": pd.DataFrame(CELLS, dtype=object),
    "pandas nullable": pandas_frame().convert_dtypes(),
    "pandas arrow": pandas_frame().convert_dtypes(dtype_backend="pyarrow"),
    "pandas without names": pd.DataFrame(WHOLE),
    "polars": pl.DataFrame(CELLS),
    "polars categories": pl.DataFrame(
        CELLS, schema_overrides={"text": pl.Categorical, "size": pl.Enum(["S", "L"])}
    ),
    "polars objects": pl.DataFrame({"a": pl.Series(CELLS["flag"], dtype=pl.Object)}),
    "pyarrow": arrow_table(),
    "pyarrow batch": pa.RecordBatch.from_pydict(CELLS),
}
ROWS = {
    "increasing": np.arange(2, N, 3),
    "in any order": RNG.permutation(N)[: N // 2],
    "repeated": RNG.integers(0, N, 2 * N),
    "with columns of missing values": np.arange(8),
    "one": np.array([5]),
    "all": np.arange(N),
}
SETTINGS = {
    "bins": {"numeric": "mdl"},
    "missing as a value": {"missing": "value", "cardinality": "declared"},
    "imputed": {"missing": "impute", "numeric": "equal-width"},
    "densities": {"numeric": "gaussian"},
    "on a grid": {"numeric": "gaussian-weka"},
    "united cut points": {"numeric": ("mdl", "equal-frequency")},
    "categories": {"categorical_features": "all"},
    "imputed categories": {"categorical_features": "all", "missing": "impute"},
}


def learned(table, rows, setting):
    """Schema and codes of a table of these rows."""
    encoder = TableEncoder(**setting)
    codes = encoder.learn(table, LABELS[rows], 2, WEIGHTS[rows])
    return encoder, codes


def assert_same_codes(codes, expected):
    """Compare bit for bit, with types and layout."""
    assert codes.schema == expected.schema
    assert codes.n_rows == expected.n_rows
    assert isinstance(codes.numbers, type(expected.numbers))
    pairs = list(zip(codes.numbers, expected.numbers, strict=True))
    for block, other in zip(codes.blocks, expected.blocks, strict=True):
        assert block.n_bytes == other.n_bytes
        assert block.values.strides == other.values.strides
        pairs.append((block.values, other.values))
        pairs.append((block.features, other.features))
        pairs.append((block.look_up, other.look_up))
    for array, other in pairs:
        array, other = np.asarray(array), np.asarray(other)
        assert array.dtype == other.dtype
        assert array.shape == other.shape
        assert array.tobytes() == other.tobytes()


@pytest.mark.filterwarnings("ignore::steelyard.exceptions.IdentifierWarning")
@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("name", TABLES)
def test_taken_rows_are_encoded_like_rows_of_the_frame(name, setting):
    X = TABLES[name]
    table = as_table(X)
    # Columns that were read and released before serve as well as new ones.
    whole, _ = learned(table, np.arange(N), setting)
    for rows in ROWS.values():
        expected, expected_codes = learned(as_table(take_rows(X, rows)), rows, setting)
        encoder, codes = learned(table.take(rows), rows, setting)
        assert encoder.schema_ == expected.schema_
        assert_same_codes(codes, expected_codes)
        assert_same_codes(
            whole.encode(table.take(rows)), whole.encode(as_table(take_rows(X, rows)))
        )


@pytest.mark.parametrize("name", TABLES)
def test_taken_rows_keep_names_and_say_what_they_hold(name):
    X = TABLES[name]
    for rows in ROWS.values():
        table, expected = as_table(X).take(rows), as_table(take_rows(X, rows))
        assert table.names == expected.names
        assert (table.n_rows, table.n_columns) == (expected.n_rows, expected.n_columns)
        assert (table.matrix is None) == (expected.matrix is None)
        for column, other in zip(table.columns, expected.columns, strict=True):
            # Numbers of a frame are an array of them from then on.
            assert type(column) in (type(other), ArrayColumn)
            for fact in ("label", "position", "cells", "storage", "declared"):
                assert getattr(column, fact) == getattr(other, fact), fact
            assert column.is_integer == other.is_integer


@given(st.data())
@settings(max_examples=50, deadline=None)
def test_rows_may_be_taken_of_taken_rows(data):
    X = TABLES[data.draw(st.sampled_from(sorted(TABLES)))]
    first = np.array(data.draw(st.lists(st.integers(0, N - 1), min_size=1)), np.int64)
    places = st.integers(0, len(first) - 1)
    second = np.array(data.draw(st.lists(places, min_size=1)), np.int64)
    encoder = TableEncoder(numeric="gaussian")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        codes = encoder.learn(as_table(X).take(first).take(second), None, 0, None)
        expected = encoder.learn(as_table(X).take(first[second]), None, 0, None)
    assert_same_codes(codes, expected)


def test_many_objects_that_repeat_are_taken_like_others():
    values = np.array(["one", "two", None], dtype=object)
    X = values[RNG.integers(0, 3, (5000, 2))]
    rows = RNG.integers(0, 5000, 3000)
    table = as_table(X)
    encoder = TableEncoder()
    encoder.learn(table, None, 0, None)
    expected = encoder.encode(as_table(X[rows]))
    assert_same_codes(encoder.encode(table.take(rows)), expected)
    assert_same_codes(encoder.encode(as_table(X).take(rows)), expected)


def test_a_matrix_of_taken_rows_is_copied_once():
    table = as_table(WHOLE.astype(np.uint8)).take(np.array([3, 1, 1]))
    codes = TableEncoder("all").learn(table, None, 0, None)
    assert np.shares_memory(codes.blocks[0].values, table.matrix)


def test_the_row_of_an_infinite_number_is_that_among_the_taken():
    table = as_table(np.array([[0.0], [1.0], [np.inf]]))
    with pytest.raises(ColumnError, match="in row 1"):
        TableEncoder(numeric="gaussian").learn(
            table.take(np.array([0, 2])), None, 0, None
        )


def test_a_table_of_no_rows_is_refused():
    table = as_table(WHOLE)
    with pytest.raises(TableError, match="no rows"):
        table.take(np.empty(0, dtype=np.int64))


def test_taking_rows_leaves_the_table_as_it_was():
    table = as_table(TABLES["pandas"])
    before = dataclasses.replace(table, columns=list(table.columns))
    table.take(np.array([1, 0]))
    assert table == before


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, bool])
def test_rows_that_are_kept_of_a_matrix_of_codes_are_copied_once(dtype):
    X = np.random.default_rng(0).integers(0, 2, (300, 6)).astype(dtype)
    encoder, table = TableEncoder(categorical_features="all").fit(X), as_table(X)
    codes, rows = encoder.encode(table), np.arange(0, 300, 3)
    copied = table.take(rows)
    few = codes.take_with(rows, table.matrix, copied.matrix)
    assert np.shares_memory(few.blocks[0].values, copied.matrix)
    np.testing.assert_array_equal(few.to_array(), codes.take(rows).to_array())
