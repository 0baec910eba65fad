"""The summary of chunks gives the schema of the whole table."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.exceptions import ColumnError, IdentifierWarning, TableError
from steelyard.model.training import Encoding, Preparation, class_factors, encode_table
from steelyard.table.discretizers.unsupervised import FixedEdgesDiscretizer
from steelyard.table.encoder import TableEncoder
from steelyard.table.frames import as_table
from steelyard.table.labels import encode_labels
from steelyard.table.rows import training_rows
from steelyard.table.summary.table_summary import TableSummary

pytestmark = pytest.mark.filterwarnings(
    "ignore::steelyard.exceptions.IdentifierWarning"
)

_NUMERIC = [
    "mdl",
    "mdl-better",
    "kononenko",
    "equal-width",
    "equal-width-merged",
    "equal-frequency",
    "gaussian",
    "gaussian-weka",
    "gaussian-relative",
    "linear",
    ("equal-frequency", "mdl"),
    FixedEdgesDiscretizer([0.5, 2.0]),
]


@st.composite
def tables(draw):
    """Draw a frame, labels, weights, and rows of every chunk."""
    n = draw(st.integers(2, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    share = draw(st.sampled_from([0.0, 0.2, 0.9]))
    holes = rng.random((n, 5)) < share
    frame = pd.DataFrame(
        {
            "whole": rng.integers(-3, 4, n),
            "tenths": np.where(holes[:, 1], np.nan, rng.integers(0, 30, n) / 10),
            "text": np.where(holes[:, 2], None, rng.choice(list("abcxyz"), n)),
            "truth": np.where(holes[:, 3], None, rng.random(n) < 0.5),
            "some": pd.Categorical(
                np.where(holes[:, 4], None, rng.choice(["u", "v"], n)), ["u", "v", "w"]
            ),
        }
    )
    y = rng.choice(draw(st.sampled_from([["no", "yes"], ["a", "b", "c", "d"]])), n)
    weights = None
    if draw(st.booleans()):
        weights = rng.integers(0, 4, n).astype(float)
        weights[0] = 1.0
    chunk = rng.integers(0, draw(st.integers(1, 5)), n)
    chunks = [np.flatnonzero(chunk == k) for k in rng.permutation(chunk.max() + 1)]
    return frame, y, weights, [rows for rows in chunks if len(rows)]


def in_memory(encoder, frame, y, weights, factors=None):
    table, y, weights = training_rows(frame, y, weights, encoder)
    classes, labels = encode_labels(y)
    if factors is not None:
        weights = factors[labels] * (1.0 if weights is None else weights)
    encoder.learn(table, labels, len(classes), weights)
    return encoder


def summary_of(table, y, weights, encoder, place="the table"):
    """Return the summary of one chunk."""
    summary = TableSummary(encoder)
    summary.take_in(table, y, weights, place)
    return summary


def known(summary):
    """Return what a summary knows, not where it found it, to be compared."""
    return (
        summary.names,
        summary.n_rows,
        summary.classes.tolist(),
        summary.by_class.tolist(),
        list(map(known_of_column, summary.columns)),
    )


def known_of_column(column):
    values, numbers = column.values, column.numbers
    mass = values.mass.tolist() or [[]] * len(values.index)
    by_value = {value: mass[k] for value, k in values.index.items()}
    known = [column.content, column.missing.tolist(), by_value]
    if numbers is None:
        return known
    known += [numbers.is_running, numbers.low, numbers.high, numbers.sums.tolist()]
    if numbers.cells is not None:
        cells = numbers.cells.cells()
        known += [numbers.cells._settle()[2]]
        known += [part.tolist() for part in (cells.low, cells.high, cells.mass)]
    return known


def parts_of(encoder, frame, y, weights, chunks):
    return [
        summary_of(
            as_table(frame.iloc[rows]),
            y[rows],
            None if weights is None else weights[rows],
            encoder,
        )
        for rows in chunks
    ]


def assert_same_schema(ours, memory):
    a, b = ours.schema_.features, memory.schema_.features
    assert [f.kind for f in a] == [f.kind for f in b]
    for x, z in zip(a, b, strict=True):
        assert (x.name, x.cells, x.cuts) == (z.name, z.cells, z.cuts)
        assert x.values == z.values
        assert [type(v) for v in x.values] == [type(v) for v in z.values]
        assert x.edges == pytest.approx(z.edges, rel=1e-12, abs=1e-12)
        assert x.missing_is_value == z.missing_is_value
        assert (x.fill is None) == (z.fill is None)
        assert (x.fill or 0) == pytest.approx(z.fill or 0, rel=1e-10, abs=1e-10)
        assert x.step == z.step


@settings(max_examples=60, deadline=None)
@given(
    tables(),
    st.sampled_from(_NUMERIC),
    st.sampled_from(["skip", "value", "impute"]),
    st.sampled_from(["observed", "declared"]),
    st.sampled_from(["auto", "all", ["whole"]]),
)
def test_chunks_in_any_order_give_the_schema_of_the_whole(
    rows, numeric, missing, cardinality, categorical
):
    frame, y, weights, chunks = rows
    encoder = TableEncoder(categorical, numeric, missing, cardinality)
    memory = in_memory(
        TableEncoder(categorical, numeric, missing, cardinality), frame, y, weights
    )
    summary = TableSummary(encoder)
    for chunk in chunks:
        summary.take_in(
            as_table(frame.iloc[chunk]),
            y[chunk],
            None if weights is None else weights[chunk],
        )
    ours = summary.fitted()
    assert_same_schema(ours, memory)
    if missing != "impute":
        assert ours.schema_ == memory.schema_
    assert summary.cut_points_are_exact
    kept = weights is None or weights > 0
    assert summary.classes.tolist() == sorted(set(y[kept].ravel().tolist()))
    codes = ours.encode(as_table(frame))
    np.testing.assert_array_equal(
        codes.to_array(), memory.encode(as_table(frame)).to_array()
    )


@settings(max_examples=30, deadline=None)
@given(tables(), st.sampled_from(["skip", "impute"]))
def test_summaries_add_up_in_any_order_and_grouping(rows, missing):
    frame, y, weights, chunks = rows
    # Tenths are made whole, so that sums are exact.
    frame["tenths"] *= 10
    frame["tenths"] = frame["tenths"].round()
    encoder = TableEncoder(missing=missing)
    parts = parts_of(encoder, frame, y, weights, chunks)
    whole = summary_of(as_table(frame), y, weights, encoder)
    forward = backward = TableSummary(encoder)
    for part in parts:
        forward, backward = forward + part, part + backward
    assert known(forward) == known(backward)
    if len(parts) > 2:
        a, b, c = parts[0], parts[1], parts[2]
        assert known((a + b) + c) == known(a + (b + c))
    assert forward.fitted().schema_ == whole.fitted().schema_
    assert known(forward) == known(whole)


def test_class_weights_that_are_known_in_the_end_count():
    rng = np.random.default_rng(3)
    x = rng.integers(0, 40, 600).astype(float)
    frame = pd.DataFrame({"x": np.where(rng.random(600) < 0.1, np.nan, x)})
    y = (x + rng.normal(0, 8, 600) > 25).astype(int)
    for numeric in ("mdl", "equal-frequency", "equal-width"):
        for wanted in ("balanced", {0: 4.0, 1: 0.5}, {0: 0.01}):
            encoding = Encoding(numeric=numeric, missing="impute")
            summary = TableSummary(encoding.encoder(None))
            for rows in np.array_split(rng.permutation(600), 7):
                summary.take_in(as_table(frame.iloc[rows]), y[rows])
            factors = class_factors(wanted, summary.classes, summary.by_class)
            memory = encode_table(
                as_table(frame),
                *encode_labels(y),
                None,
                Preparation(encoding, None, wanted),
            )
            assert_same_schema(summary.fitted(factors), memory.encoder)


def test_numbers_and_text_in_one_column_are_refused_with_both_places():
    encoder = TableEncoder()
    summary = TableSummary(encoder)
    y = np.array(["a", "b"])
    summary.take_in(as_table(pd.DataFrame({"x": [1.0, 2.0]})), y, place="first.csv")
    with pytest.raises(ColumnError) as error:
        summary.take_in(
            as_table(pd.DataFrame({"x": ["3", "oops"]})), y, place="second.csv"
        )
    for part in ("first.csv", "second.csv", "1.0", "'3'", "'x'"):
        assert part in str(error.value)


@pytest.mark.parametrize(
    ("first", "second", "cells", "kind"),
    [
        ([None, None], ["a", "b"], "text", "categorical"),
        ([np.nan, np.nan], ["a", "b"], "text", "categorical"),
        ([True, False], [2, 3], "numbers", "binned"),
        ([1, 2], [1.5, 2.5], "numbers", "binned"),
        ([None, None], [None, None], "nothing", "binned"),
        ([np.nan, np.nan], [1, 2], "numbers", "binned"),
    ],
)
def test_chunks_of_different_types_merge_as_one_column(first, second, cells, kind):
    y = np.array([0, 1])
    frames = [pd.DataFrame({"x": values}) for values in (first, second)]
    encoder = TableEncoder(numeric="equal-width")
    for order in (frames, frames[::-1]):
        summary = TableSummary(encoder)
        for frame in order:
            summary.take_in(as_table(frame), y)
        a, b = (summary_of(as_table(frame), y, None, encoder) for frame in order)
        assert known(a + b) == known(summary)
        feature = summary.fitted().schema_.features[0]
        assert (feature.cells, feature.kind) == (cells, kind)
    joined = pd.DataFrame({"x": [*first, *second]})
    memory = in_memory(TableEncoder(numeric="equal-width"), joined, [0, 1, 0, 1], None)
    assert memory.schema_.features[0] == feature


def test_columns_are_matched_by_name_and_others_refused():
    encoder = TableEncoder()
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]})
    summary = summary_of(as_table(frame), [0, 1], None, encoder, "one")
    summary.take_in(as_table(frame[["b", "a"]]), [0, 1], place="two")
    assert [f.name for f in summary.fitted().schema_.features] == ["a", "b"]
    with pytest.raises(ColumnError, match="three has no column 'b' that one has"):
        summary.take_in(as_table(frame[["a"]]), [0, 1], place="three")
    with pytest.raises(ColumnError, match="one has no column 'c' that four has"):
        summary.take_in(as_table(frame.assign(c=1)), [0, 1], place="four")
    other = summary_of(as_table(frame[["a"]]), [0, 1], None, encoder, "five")
    with pytest.raises(ColumnError, match="five has no column 'b'"):
        summary + other


def test_classes_of_two_types_are_refused():
    frame = pd.DataFrame({"a": [1.0, 2.0]})
    summary = summary_of(as_table(frame), [0, 1], None, TableEncoder(), "one")
    with pytest.raises(TableError, match="target holds 0 in one and 'x' in two"):
        summary.take_in(as_table(frame), ["x", "y"], place="two")


def test_a_bad_cell_is_named_with_its_place():
    frame = pd.DataFrame({"a": [1.0, np.inf]})
    with pytest.raises(ColumnError, match=r"here: Column 'a' holds an infinite"):
        TableSummary(TableEncoder()).take_in(as_table(frame), [0, 1], place="here")


def test_large_whole_numbers_beside_fractions_are_refused_as_categories():
    encoder = TableEncoder(categorical_features="all")
    summary = summary_of(as_table(np.array([[2**60], [1]])), [0, 1], None, encoder)
    with pytest.raises(ColumnError, match="above 2\\^53"):
        summary.take_in(as_table(np.array([[0.5], [1.0]])), [0, 1])


def test_they_are_refused_beside_booleans_too():
    encoder = TableEncoder(categorical_features="all")
    parts = [
        summary_of(as_table(pd.DataFrame({"x": cells})), [0, 1], None, encoder)
        for cells in ([True, False], [2**60, 3], [0.5, 1.0])
    ]
    with pytest.raises(ColumnError, match="above 2\\^53"):
        (parts[0] + parts[1]) + parts[2]
    values = (parts[0] + parts[1]).fitted().schema_.features[0].values
    assert values == (0, 1, 3, 2**60)
    assert {type(value) for value in values} == {int}


def test_too_many_values_are_refused(monkeypatch):
    monkeypatch.setattr("steelyard.table.summary.chunked_column.MAX_VALUES", 3)
    summary = TableSummary(TableEncoder())
    summary.take_in(as_table(pd.DataFrame({"id": list("abc")})), [0, 1, 0])
    with pytest.raises(ColumnError, match="'id' has more than 3 different values"):
        summary.take_in(as_table(pd.DataFrame({"id": list("xyz")})), [0, 1, 0])


def identifiers(summary):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        summary.fitted()
    return [str(w.message) for w in caught if w.category is IdentifierWarning]


@pytest.mark.parametrize("numeric", ["mdl", "gaussian"])
def test_identifiers_are_suspected_over_chunks(numeric):
    rng = np.random.default_rng(0)
    n = 400
    order = rng.permutation(n)
    frame = pd.DataFrame(
        {
            "number": order + 7,
            "name": [f"row {k}" for k in order],
            "plain": rng.integers(0, n, n),
        }
    )
    encoder = TableEncoder(numeric=numeric)
    y = rng.integers(0, 2, n)
    chunks = np.array_split(np.arange(n), 5)
    summary = sum(parts_of(encoder, frame, y, None, chunks), TableSummary(encoder))
    found = identifiers(summary)
    assert len(found) == 2
    assert "'number' looks like an identifier: a running number in 400 rows" in found[0]
    assert "'name' looks like an identifier: 400 different values" in found[1]
    # One number twice, another not at all.
    frame.loc[0, "number"] = frame.loc[1, "number"]
    summary = sum(parts_of(encoder, frame, y, None, chunks), TableSummary(encoder))
    assert len(identifiers(summary)) == 1


def test_weka_needs_the_number_of_values():
    numbers = np.random.default_rng(0).random((70_000, 1))
    summary = summary_of(
        as_table(numbers),
        np.arange(70_000) % 2,
        None,
        TableEncoder(numeric="gaussian-weka"),
    )
    with pytest.raises(ColumnError, match="more than 65,536 different numbers"):
        summary.fitted()


def test_an_empty_stream_is_refused():
    with pytest.raises(TableError, match="no row to learn from"):
        TableSummary(TableEncoder()).fitted()


def test_rows_of_weight_zero_do_not_count():
    frame = pd.DataFrame({"a": [1.0, 2.0, 9.0]})
    encoder = TableEncoder()
    summary = TableSummary(encoder)
    summary.take_in(as_table(frame), ["a", "b", "c"], [0.0, 0.0, 0.0])
    summary.take_in(as_table(frame), ["a", "b", "c"], [1.0, 2.0, 0.0])
    assert summary.classes.tolist() == ["a", "b"]
    assert summary.n_rows == 2
