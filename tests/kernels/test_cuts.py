"""Kernels that find and apply cut points."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.kernels.cuts import (
    _best_cut,
    bin_codes,
    fill_xlog2,
    midpoint,
    midpoints,
    split_columns,
)

pytestmark = pytest.mark.plain

finite = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize("n_edges", [0, 1, 2, 24, 100, 200])
@pytest.mark.parametrize("first", [0, 1])
def test_bin_codes_equal_searchsorted(dtype, n_edges, first):
    rng = np.random.default_rng(n_edges)
    edges = np.sort(rng.normal(size=n_edges))
    values = np.concatenate([rng.normal(size=100), edges, [1e308, -1e308, 0.0]])
    out = np.empty(len(values), dtype=dtype)
    bin_codes(values, edges, out, first)
    np.testing.assert_array_equal(out, first + np.searchsorted(edges, values))


@pytest.mark.parametrize("n_edges", [0, 3, 100])
def test_bin_code_of_nan_is_zero(n_edges):
    out = np.full(2, 7, dtype=np.uint8)
    bin_codes(np.array([np.nan, 1e9]), np.arange(float(n_edges)), out, 1)
    assert out.tolist() == [0, n_edges + 1]


@pytest.mark.parametrize("n_edges", [255, 256, 257, 1000])
def test_many_edges_are_bisected(n_edges):
    rng = np.random.default_rng(n_edges)
    edges = np.sort(rng.normal(size=n_edges))
    values = np.concatenate([rng.normal(size=100), edges, [1e308, -1e308, np.nan]])
    out = np.empty(len(values), dtype=np.uint16)
    bin_codes(values, edges, out, 1)
    expected = 1 + np.searchsorted(edges, values)
    expected[-1] = 0
    np.testing.assert_array_equal(out, expected)


def test_bin_codes_reach_beyond_two_bytes():
    edges = np.arange(70000.0)
    out = np.empty(1, dtype=np.uint32)
    bin_codes(np.array([69999.5]), edges, out, 1)
    assert out[0] == 70001


@settings(deadline=None)
@given(finite, finite)
def test_midpoint_parts_the_two_numbers(a, b):
    low, high = min(a, b), max(a, b)
    cut = midpoint(low, high)
    assert midpoints(np.array([low]), np.array([high])) == [cut]
    assert math.isfinite(cut)
    assert low <= cut
    assert cut < high or low == high


@pytest.mark.parametrize("low", [0.0, 1.0, 3.0, -1.0, 1e300, 5e-324, 1.7e308, -5e-324])
def test_midpoint_of_neighbouring_doubles_is_the_lower_one(low):
    assert midpoint(low, float(np.nextafter(low, np.inf))) == low


def test_midpoint_does_not_overflow():
    largest = float(np.finfo(float).max)
    assert midpoint(-largest, largest) == 0.0
    assert midpoint(largest / 2, largest) == pytest.approx(0.75 * largest)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 5), st.integers(0, 9), st.sampled_from([np.float32, np.float64]))
def test_split_columns_transposes(n, d, dtype):
    X = np.arange(n * d, dtype=dtype).reshape(n, d)
    out = np.empty((d, n))
    split_columns(X, out)
    np.testing.assert_array_equal(out, X.T)


def xlog2_table(size, scale):
    table = np.zeros(size, dtype=np.int64)
    fill_xlog2(table, scale)
    return table


def test_table_of_logarithms():
    table = xlog2_table(100, 2.0**20)
    i = np.arange(1, 100)
    assert table[0] == 0
    np.testing.assert_allclose(table[1:] / 2.0**20, i * np.log2(i), atol=2.0**-20)


@pytest.mark.parametrize(
    ("classes", "lengths", "expected"),
    [
        ([0, 1, 0], [20, 20, 20], 20),
        ([1, 0, 1], [7, 9, 7], 7),
        ([0, 1, 2, 1, 0], [9, 3, 5, 3, 9], 9),
        ([2, 1, 0, 3, 0, 1, 2], [5, 2, 1, 4, 1, 2, 5], 5),
    ],
)
@pytest.mark.parametrize("weight", [1, 3, 0.5])
def test_first_of_two_mirrored_cuts_wins(classes, lengths, expected, weight):
    labels = np.repeat(classes, lengths).astype(np.uint8)
    weights = np.full(len(labels), weight)
    counts = np.bincount(labels) * weight
    scale = 2.0**40
    table = xlog2_table(8, scale)
    cut, n_candidates = _best_cut(
        np.arange(float(len(labels))),
        labels,
        weights,
        0,
        len(labels),
        counts,
        counts.sum(),
        table,
        scale,
        np.empty_like(counts),
    )
    assert (cut, n_candidates) == (expected, len(labels) - 1)


def test_no_cut_if_no_cut_lowers_the_entropy():
    labels = np.array([0, 1, 0, 1], dtype=np.uint8)
    table = xlog2_table(8, 2.0**40)
    cut, n_candidates = _best_cut(
        np.array([0.0, 0.0, 1.0, 1.0]),
        labels,
        np.empty(0, dtype=np.int64),
        0,
        4,
        np.array([2, 2]),
        4,
        table,
        2.0**40,
        np.empty(2, dtype=np.int64),
    )
    assert (cut, n_candidates) == (-1, 1)
