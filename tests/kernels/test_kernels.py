"""The compiled loops, each against a few lines of NumPy, SciPy or plain Python."""

from __future__ import annotations

import math
import operator
import os
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, log_softmax, logsumexp, softmax
from scipy.stats import norm

from steelyard.kernels import counting, scoring

pytestmark = pytest.mark.plain

JIT = os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")
EXAMPLES = settings(max_examples=60 if JIT else 25, deadline=None)


@st.composite
def coded_tables(draw):
    """Codes (n, b) in either memory order, starts (b,), and the table's length."""
    n, b = draw(st.integers(0, 12)), draw(st.integers(1, 10))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    sizes = rng.integers(1, 6, b)
    starts = np.concatenate([[0], np.cumsum(sizes)])[:-1].astype(np.uint64)
    values = rng.integers(0, sizes, (n, b))
    dtype = draw(st.sampled_from([np.uint8, np.uint16, np.uint32]))
    order = draw(st.sampled_from("CF"))
    return np.asarray(values, dtype=dtype, order=order), starts, int(sizes.sum()), rng


def plain_gather(values, starts, table, scores):
    """Add one table row per cell, the slow way."""
    scores = scores.copy()
    for i, row in enumerate(values.tolist()):
        for j, code in enumerate(row):
            scores[i] += table[int(starts[j]) + code]
    return scores


@given(coded_tables(), st.integers(2, 5))
@EXAMPLES
def test_scatter_is_the_transpose_of_gather(coded, n_classes):
    values, starts, n_codes, rng = coded
    table = rng.normal(size=(n_codes, n_classes))
    row_values = rng.normal(size=(len(values), n_classes))
    scores = np.zeros((len(values), n_classes))
    scoring.gather(values, starts, table, scores)
    for scatter in (counting.count_rows, counting.count_columns):
        hist = np.zeros((n_classes, n_codes))
        for c in range(n_classes):
            y = np.full(len(values), c, dtype=np.uint32)
            scatter(values, starts, y, np.ascontiguousarray(row_values[:, c]), hist)
        assert_allclose((scores * row_values).sum(), (table * hist.T).sum(), atol=1e-10)


@given(coded_tables(), st.integers(2, 4))
@EXAMPLES
def test_all_ways_of_counting_agree(coded, n_classes):
    values, starts, n_codes, rng = coded
    y = rng.integers(0, n_classes, len(values)).astype(np.uint32)
    weights = rng.integers(0, 4, len(values)).astype(np.float64)
    expected = np.zeros((n_classes, n_codes))
    weighted = np.zeros((n_classes, n_codes))
    for i, row in enumerate(values.tolist()):
        for j, code in enumerate(row):
            expected[y[i], int(starts[j]) + code] += 1
            weighted[y[i], int(starts[j]) + code] += weights[i]
    for kernel in (counting.count_rows, counting.count_columns):
        hist = np.zeros((n_classes, n_codes), dtype=np.int64)
        kernel(values, starts, y, None, hist)
        assert_array_equal(hist, expected)
        hist = np.zeros((n_classes, n_codes))
        kernel(values, starts, y, weights, hist)
        assert_array_equal(hist, weighted)


@given(coded_tables(), st.integers(2, 5))
@EXAMPLES
def test_gather_adds_one_table_row_per_cell(coded, n_classes):
    values, starts, n_codes, rng = coded
    table = rng.normal(size=(n_codes, n_classes))
    base = rng.normal(size=(len(values), n_classes))
    scores = base.copy()
    scoring.gather(values, starts, table, scores)
    assert_allclose(scores, plain_gather(values, starts, table, base), atol=1e-12)
    odds = base[:, 1] - base[:, 0]
    differences = np.ascontiguousarray(table[:, 1] - table[:, 0])
    scoring.gather_difference(values, starts, differences, odds)
    assert_allclose(odds, scores[:, 1] - scores[:, 0], atol=1e-12)


# ------------------------------------------------------------------------ exponentials


def test_the_exponential_is_exact_to_two_units_in_the_last_place():
    n = 20_000 if JIT else 300
    rng = np.random.default_rng(0)
    points = np.concatenate(
        [np.linspace(-700, 0, n), -rng.exponential(5, n), -rng.uniform(0, 1e-3, n)]
    )
    for x in points.tolist():
        assert abs(scoring._exp(x) / math.exp(x) - 1) < 4e-16, x


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (0.0, 1.0),
        (-0.0, 1.0),
        (-math.inf, 0.0),
        (-701.0, 0.0),
        (-1e300, 0.0),
        (-1e-300, 1.0),
    ],
)
def test_the_exponential_is_exact_at_the_ends(x, expected):
    assert scoring._exp(x) == expected


@given(st.integers(0, 2**32), st.integers(2, 30), st.floats(1e-3, 1e3))
@EXAMPLES
def test_softmax_agrees_with_scipy(seed, n_classes, scale):
    scores = np.random.default_rng(seed).normal(0, scale, (4, n_classes))
    proba, logs = scores.copy(), scores.copy()
    scoring.softmax(proba)
    scoring.log_softmax(logs)
    assert_allclose(proba, softmax(scores, axis=1), rtol=1e-14, atol=1e-300)
    assert_allclose(logs, log_softmax(scores, axis=1), rtol=1e-13, atol=1e-13)
    assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-14)


def test_softmax_takes_scores_of_any_size_and_of_minus_infinity():
    scores = np.array(
        [
            [-np.inf, 0.0, 0.0],
            [-1e6, -1e6 - 1, -np.inf],
            [1e200, -1e200, 0.0],
            [-1e300, -np.inf, -np.inf],
        ]
    )
    proba, logs = scores.copy(), scores.copy()
    scoring.softmax(proba)
    scoring.log_softmax(logs)
    assert_allclose(proba, softmax(scores, axis=1), rtol=1e-14)
    assert_array_equal(proba[2], [1.0, 0.0, 0.0])
    assert_allclose(logs, scores - logsumexp(scores, axis=1, keepdims=True))
    assert logs[2, 0] == 0.0
    assert logs[3, 0] == 0.0


@given(st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=20))
@EXAMPLES
def test_logistic_agrees_with_scipy(odds):
    odds = np.array(odds)
    proba = np.empty((len(odds), 2))
    scoring.logistic(odds, proba)
    assert_allclose(proba[:, 1], expit(odds), rtol=1e-14, atol=1e-300)
    assert_allclose(proba[:, 0], expit(-odds), rtol=1e-14, atol=1e-300)


def test_even_odds_are_one_half_each():
    proba = np.empty((2, 2))
    scoring.logistic(np.array([0.0, -0.0]), proba)
    assert_array_equal(proba, 0.5)


# ----------------------------------------------------------------------------- numbers


def two_pass(numbers, y, weights, n_classes):
    """Weight, mean and squared deviations by class, with exact means."""
    shape = (n_classes, numbers.shape[1])
    weight, mean, squares = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for c in range(n_classes):
        for j in range(numbers.shape[1]):
            rows = (y == c) & ~np.isnan(numbers[:, j])
            x, u = numbers[rows, j], weights[rows]
            weight[c, j] = math.fsum(u)
            if weight[c, j]:
                # In whole and not in rounded numbers: the mean of large numbers has
                # digits that float64 lacks.
                exact = [Fraction(a) for a in x.tolist()]
                factors = [Fraction(a) for a in u.tolist()]
                middle = sum(map(operator.mul, exact, factors)) / sum(factors)
                mean[c, j] = float(middle)
                distances = np.array([float(a - middle) for a in exact])
                squares[c, j] = math.fsum(u * distances**2)
    return weight, mean, squares


@pytest.mark.parametrize("offset", [0.0, 1e9, -1e12])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("order", ["C", "F"])
def test_moments_agree_with_two_passes(offset, weighted, order):
    rng = np.random.default_rng(3)
    n, g, n_classes = 700, 3, 4
    numbers = np.asarray(offset + rng.normal(size=(n, g)), order=order)
    numbers[rng.random((n, g)) < 0.2] = np.nan
    numbers[:, 2] = np.nan
    y = rng.integers(0, n_classes - 1, n).astype(np.uint32)  # the last class is empty
    weights = rng.exponential(size=n) if weighted else np.ones(n)
    found = counting.moments(
        numbers, y, weights if weighted else np.empty(0), n_classes
    )
    weight, mean, squares = two_pass(numbers, y, weights, n_classes)
    assert_allclose(found[0], weight, rtol=1e-13)
    assert_allclose(found[1], mean, rtol=1e-13, atol=1e-13)
    assert_allclose(found[2], squares, rtol=1e-12)
    assert not found[0][:, 2].any()
    assert not found[1][3].any()


def test_moments_of_a_constant_have_no_spread_at_all():
    numbers = np.full((1000, 1), 0.1)
    y = np.zeros(1000, dtype=np.uint32)
    _, mean, squares = counting.moments(numbers, y, np.empty(0), 1)
    assert mean[0, 0] == 0.1
    assert squares[0, 0] == 0.0


def test_densities_agree_with_scipy_and_leave_missing_cells_out():
    rng = np.random.default_rng(4)
    numbers = rng.normal(size=(50, 3)) * 10
    numbers[rng.random((50, 3)) < 0.3] = np.nan
    mean, deviation = rng.normal(size=(3, 4)), rng.exponential(size=(3, 4)) + 0.01
    scores = np.zeros((50, 4))
    constant = -0.5 * math.log(2 * math.pi) - np.log(deviation)
    scoring.add_densities(numbers, mean, 1 / deviation, constant, scores)
    logs = norm.logpdf(numbers[:, :, None], mean, deviation)
    assert_allclose(scores, np.nansum(logs, axis=1), rtol=1e-12)


def test_weighted_densities_of_all_kinds_agree_with_scipy():
    rng = np.random.default_rng(5)
    numbers = rng.normal(size=(40, 4)) * 10
    numbers[rng.random((40, 4)) < 0.3] = np.nan
    mean, deviation = rng.normal(size=(4, 3)), rng.exponential(size=(4, 3)) + 0.5
    # A density, an interval, a relative density, and the number itself.
    half, depth = np.array([0.0, 0.5, 0.0, 0.0]), np.array([0.0, 0.0, 20.0, 0.0])
    limit = np.array([0.0, 0.0, 0.0, 4.0])
    constant = -0.5 * math.log(2 * math.pi) - np.log(deviation)
    forms = (mean, 1 / deviation, constant, half, 1e-75, depth, limit)
    expected = norm.logpdf(numbers[:, :, None], mean, deviation)
    scaled = (numbers[:, :, None] - mean) / deviation
    wide = 0.5 / deviation[1]
    area = norm.cdf(-np.abs(scaled[:, 1]) + wide) - norm.cdf(
        -np.abs(scaled[:, 1]) - wide
    )
    expected[:, 1] = np.log(np.maximum(area, 1e-75))
    top = expected[:, 2].max(axis=1, keepdims=True)
    expected[:, 2] = np.maximum(expected[:, 2] - top, -20.0)
    expected[:, 3] = np.clip(scaled[:, 3], -4.0, 4.0)
    expected = np.where(np.isnan(numbers)[:, :, None], 0.0, expected)
    found = np.empty((40, 4, 3))
    scoring.density_block(numbers, forms, found)
    assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    weight, scores = rng.normal(size=(4, 3)), np.ones((40, 3))
    scoring.add_weighted(numbers, forms, weight, scores)
    assert_allclose(scores, 1.0 + np.einsum("igc,gc->ic", expected, weight), rtol=1e-9)


def test_densities_of_extreme_distances_are_finite():
    numbers = np.tile([1e308, -1e308], (1, 500))
    mean = np.full((1000, 2), -1e308)
    scale = np.full((1000, 2), 1e300)
    scores = np.zeros((1, 2))
    with np.errstate(over="ignore"):  # said by NumPy where numba is disabled
        scoring.add_densities(numbers, mean, scale, np.zeros((1000, 2)), scores)
    assert np.isfinite(scores).all()


def test_intervals_agree_with_scipy_and_keep_their_digits_in_the_tails():
    numbers = np.array([[0.0], [1.0], [-1.0], [8.0], [-8.0], [30.0], [np.nan], [1e6]])
    mean, deviation, step = np.array([[0.5, 0.0]]), np.array([[1.0, 2.0]]), 1.0
    scores = np.zeros((8, 2))
    half, none = np.array([step / 2]), np.zeros(1)
    forms = (mean, 1 / deviation, np.zeros_like(mean), half, 1e-75, none, none)
    scoring.add_weighted(numbers, forms, np.ones_like(mean), scores)
    # By symmetry the upper tail of a normal distribution is a lower tail.
    distance = np.abs(numbers - mean)
    low = norm.cdf((-distance - step / 2) / deviation)
    high = norm.cdf((-distance + step / 2) / deviation)
    expected = np.log(np.maximum(high - low, 1e-75))
    expected[6] = 0.0
    assert_allclose(scores, expected, rtol=1e-11)
    assert_allclose(scores[7], math.log(1e-75))
