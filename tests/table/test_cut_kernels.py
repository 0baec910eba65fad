"""Kernels that find and apply cut points."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.kernels.cuts import bin_codes, midpoint, split_columns, xlog2_table

pytestmark = pytest.mark.plain

finite = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize("n_edges", [0, 1, 2, 24, 63, 64, 65, 150, 200])
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


def test_bin_codes_reach_beyond_one_byte():
    edges = np.arange(70000.0)
    out = np.empty(1, dtype=np.uint32)
    bin_codes(np.array([69999.5]), edges, out, 1)
    assert out[0] == 70001


@settings(deadline=None)
@given(finite, finite)
def test_midpoint_parts_the_two_numbers(a, b):
    low, high = min(a, b), max(a, b)
    cut = midpoint(low, high)
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


def test_table_of_logarithms():
    table = xlog2_table(100, 2.0**20)
    i = np.arange(1, 100)
    assert table[0] == 0
    np.testing.assert_allclose(table[1:] / 2.0**20, i * np.log2(i), atol=2.0**-20)
