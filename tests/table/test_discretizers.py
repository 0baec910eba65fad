"""Discretizers: the contract, the published rules, and the edges of both."""

from __future__ import annotations

import itertools
import math
import os
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from steelyard import TableEncoder
from steelyard.exceptions import ParameterError
from steelyard.table.discretizers.base import float_columns, map_columns
from steelyard.table.discretizers.mdl import MDLDiscretizer, _xlog2
from steelyard.table.discretizers.unsupervised import (
    EqualFrequencyDiscretizer,
    EqualWidthDiscretizer,
    FixedEdgesDiscretizer,
)

pytestmark = pytest.mark.plain

JIT = os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")

MDL_SETTINGS = [
    {"criterion": criterion, "better_encoding": better_encoding}
    for criterion in ("fayyad-irani", "kononenko")
    for better_encoding in (False, True)
]
LEARNERS = [
    *(MDLDiscretizer(**settings) for settings in MDL_SETTINGS),
    EqualWidthDiscretizer(n_bins=4),
    EqualWidthDiscretizer(n_bins=7, empty="merge"),
    EqualFrequencyDiscretizer(n_bins=4),
]
ALL = [*LEARNERS, FixedEdgesDiscretizer([0.0, 1.0])]


@parametrize_with_checks([*ALL, MDLDiscretizer(n_jobs=2)])
def test_sklearn_contract(estimator, check):
    check(estimator)


def same_edges(one, other):
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        assert a.dtype == b.dtype == np.float64
        assert a.tolist() == b.tolist()


def random_table(n=200, d=11, n_classes=3, seed=0, missing=0.1):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    X = np.round(rng.normal(size=(n, d)) + y[:, None] * np.linspace(0, 2, d), 1)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


# ---------------------------------------------------------------------------
# MDL against a plain reference
# ---------------------------------------------------------------------------


def exact_cost(*sides):
    """Two to the power of N times the entropy, for whole counts, exactly."""
    cost = Fraction(1)
    for counts in sides:
        cost *= sum(counts) ** sum(counts)
        for count in counts:
            cost /= count**count
    return cost


def entropy(counts):
    total = sum(counts)
    return -sum(c / total * math.log2(c / total) for c in counts if c)


def kononenko_accepts(parent, left, right, k, n_cuts, unit):
    """Compare the two descriptions, exactly where the counts are whole."""

    def messages(counts):
        ways = math.comb(sum(counts) + k - 1, k - 1) * math.factorial(sum(counts))
        return ways // math.prod(math.factorial(c) for c in counts)

    def bits(counts):
        nats = math.lgamma(sum(counts) * unit + k) - math.lgamma(k)
        return (nats - sum(math.lgamma(c * unit + 1) for c in counts)) / math.log(2)

    if unit == 1:
        return messages(parent) > n_cuts * messages(left) * messages(right)
    return bits(parent) - bits(left) - bits(right) - math.log2(n_cuts) > 1e-11


def reference_cuts(rows, unit, criterion, better_encoding):
    """Cut rows (value, class, weight in whole units) by trying every pair."""
    n_classes = 1 + max((y for _, y, _ in rows), default=0)

    def tally(part):
        counts = [0] * n_classes
        for _, y, weight in part:
            counts[y] += weight
        return counts

    rows = sorted(rows)
    parent = tally(rows)
    total = sum(parent) * unit
    candidates = [i for i in range(1, len(rows)) if rows[i - 1][0] < rows[i][0]]
    best, best_cost = None, exact_cost(parent)
    for i in candidates:
        cost = exact_cost(tally(rows[:i]), tally(rows[i:]))
        if cost < best_cost:
            best, best_cost = i, cost
    if best is None or total < 2:
        return []

    left, right = tally(rows[:best]), tally(rows[best:])
    n_cuts = len(candidates) if better_encoding else total - 1
    k, k1, k2 = (sum(c > 0 for c in counts) for counts in (parent, left, right))
    if criterion == "fayyad-irani":
        share = sum(left) / sum(parent)
        after = share * entropy(left) + (1 - share) * entropy(right)
        delta = math.log2(3**k - 2)
        delta -= k * entropy(parent) - k1 * entropy(left) - k2 * entropy(right)
        accepted = entropy(parent) - after > (math.log2(n_cuts) + delta) / total
    else:
        accepted = kononenko_accepts(parent, left, right, k, n_cuts, unit)
    if not accepted:
        return []
    return [
        *reference_cuts(rows[:best], unit, criterion, better_encoding),
        (rows[best - 1][0] + rows[best][0]) / 2,
        *reference_cuts(rows[best:], unit, criterion, better_encoding),
    ]


@st.composite
def labelled_rows(draw, max_size=40):
    """Draw rows whose class depends on the value, so that some cuts are accepted."""
    n_classes = draw(st.integers(2, 6))
    n_values = draw(st.sampled_from([3, 8, 40]))
    heavy = draw(st.sampled_from([1, 3, 9]))
    width = draw(st.integers(1, n_values))
    noise = draw(st.integers(0, 3))
    row = st.tuples(
        st.integers(0, n_values), st.integers(0, noise), st.integers(1, heavy)
    )
    rows = draw(st.lists(row, max_size=max_size))
    return [(float(v), (v // width + e) % n_classes, w) for v, e, w in rows]


@pytest.mark.parametrize("unit", [1, 0.25], ids=["whole", "quarters"])
@pytest.mark.parametrize("settings_", MDL_SETTINGS)
@settings(max_examples=150 if JIT else 40, deadline=None)
@given(rows=labelled_rows())
def test_mdl_equals_trying_every_pair(settings_, unit, rows):
    expected = reference_cuts(rows, unit, **settings_)
    values, y, weights = (np.array([row[i] for row in rows]) for i in range(3))
    found = MDLDiscretizer(**settings_).column_edges(
        values.astype(float), y.astype(np.uint8), 7, weights * float(unit)
    )
    assert found.tolist() == expected


def test_kononenko_refuses_a_cut_that_saves_nothing():
    # Without the cut 4 * 3 messages, with it 2 * (3 * 1) * (2 * 1).
    values, y = np.array([0.0, 0.0, 1.0]), np.array([0, 0, 1])
    discretizer = MDLDiscretizer(criterion="kononenko")
    assert len(discretizer.column_edges(values, y, 2, None)) == 0


@pytest.mark.parametrize("settings_", MDL_SETTINGS)
def test_reference_accepts_cuts_on_the_data_it_is_compared_on(settings_):
    rows = [(float(v), v // 10, 1) for v in range(30)]
    assert reference_cuts(rows, 1, **settings_) == [9.5, 19.5]


@pytest.mark.parametrize("settings_", MDL_SETTINGS)
@settings(max_examples=100 if JIT else 20, deadline=None)
@given(rows=labelled_rows(), seed=st.integers(0, 99))
def test_mdl_ignores_row_order_and_class_names(settings_, rows, seed):
    values, y, weights = (np.array([row[i] for row in rows]) for i in range(3))
    values, weights = values.astype(float), weights.astype(float)
    discretizer = MDLDiscretizer(**settings_)
    edges = discretizer.column_edges(values, y.astype(np.uint8), 6, weights)
    rng = np.random.default_rng(seed)
    order, names = rng.permutation(len(rows)), rng.permutation(6)
    shuffled = discretizer.column_edges(
        values[order], names[y.astype(int)][order], 6, weights[order]
    )
    assert len(edges) == len(shuffled)
    assert edges.tolist() == shuffled.tolist()


@pytest.mark.parametrize("settings_", MDL_SETTINGS)
@pytest.mark.parametrize("odd", [1e15, 1e-15, 0.1])
def test_no_rounding_of_weights_lets_the_order_of_rows_or_classes_decide(
    settings_, odd
):
    discretizer = MDLDiscretizer(**settings_)
    for seed in range(300 if JIT else 20):
        rng = np.random.default_rng(seed)
        values = rng.integers(0, 30, 60).astype(float)
        y = (values // 10 + rng.integers(0, 3, 60) * (rng.random(60) < 0.3)) % 3
        weights = rng.choice([1.0, 2.0, 3.0, odd], 60)
        order, names = rng.permutation(60), rng.permutation(3)
        edges = discretizer.column_edges(values, y.astype(np.uint8), 3, weights)
        turned = discretizer.column_edges(
            values[order], names[y[order].astype(int)], 3, weights[order]
        )
        assert edges.tolist() == turned.tolist()


def test_no_order_of_classes_accepts_a_cut_that_another_one_refuses():
    # Gain and price are of the size of what rounding does to an entropy.
    left = [923114356024795.0, 862627647496961.0, 631132243457238.0]
    right = [923114671683874.0, 862627964050557.0, 631132085253529.0]
    weights = np.array(left + right)
    values = np.repeat([0.0, 1.0], 3)
    found = [
        len(MDLDiscretizer().column_edges(values, np.tile(names, 2), 3, weights))
        for names in itertools.permutations(range(3))
    ]
    assert found == [found[0]] * 6


IRIS_CUTS = [[5.55, 6.15], [2.95, 3.35], [2.45, 4.75], [0.80, 1.75]]
IRIS_MORE_CUTS = [[5.55, 6.15, 7.05], [2.95, 3.35], [2.45, 4.75, 5.15], [0.80, 1.75]]


@pytest.mark.parametrize(
    ("settings_", "expected"),
    [
        ({}, IRIS_CUTS),
        ({"criterion": "kononenko"}, IRIS_CUTS),
        ({"better_encoding": True}, IRIS_MORE_CUTS),
    ],
)
def test_mdl_gives_the_published_cuts_of_iris(settings_, expected):
    X, y = load_iris(return_X_y=True)
    edges = MDLDiscretizer(**settings_).fit(X, y).edges_
    for found, wanted in zip(edges, expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_mdl_with_hundreds_of_classes_does_not_overflow():
    n = 2000 if JIT else 700
    cuts = MDLDiscretizer(better_encoding=True).column_edges(
        np.arange(float(n)), np.arange(n), n, None
    )
    assert np.isfinite(cuts).all()
    y = np.repeat(np.arange(700), 2)
    values = np.repeat([0.0, 1.0], 700)
    assert len(MDLDiscretizer().column_edges(values, y, 700, None)) <= 1


def test_mdl_does_not_cut_a_range_of_weight_below_two():
    values, y = np.arange(40.0), np.repeat([0, 1], 20)
    discretizer = MDLDiscretizer()
    assert discretizer.column_edges(values, y, 2, np.ones(40)).tolist() == [19.5]
    assert len(discretizer.column_edges(values, y, 2, np.full(40, 0.04))) == 0
    assert len(discretizer.column_edges(values[:1], y[:1], 2, np.array([9.0]))) == 0


def test_mdl_of_alternating_blocks_needs_no_recursion():
    n = 20000 if JIT else 800
    y = (np.arange(n) // 20 % 2).astype(np.uint8)
    cuts = MDLDiscretizer(better_encoding=True).column_edges(
        np.arange(float(n)), y, 2, None
    )
    np.testing.assert_array_equal(cuts, np.arange(19.5, n - 1, 20))


def test_terms_beyond_the_table_are_computed():
    values = np.array([0.0, 1.0, 2.0, 3.0])
    y = np.array([0, 0, 1, 1])
    weights = np.array([3e7, 2e7, 5e7, 1.0])
    assert MDLDiscretizer().column_edges(values, y, 2, weights).tolist() == [1.5]


@pytest.mark.parametrize("total", [0.5, 1.0, 2.0, 150.0, 1e6, 2.0**53, 1e300])
@pytest.mark.parametrize("n_classes", [2, 1000])
def test_sums_of_terms_fit_into_64_bits(total, n_classes):
    table, scale = _xlog2(total, n_classes)
    bound = 2 * (total * max(math.log2(total), 0) + n_classes) * scale
    assert 2.0**50 < bound < 2.0**63
    assert table.min() == 0


def test_extreme_weights():
    values, y = np.arange(40.0), np.repeat([0, 1], 20)
    for weight in (1e-3, 1.0, 1e15, 1e200):
        cuts = MDLDiscretizer().column_edges(values, y, 2, np.full(40, weight))
        assert cuts.tolist() == ([19.5] if weight >= 1 else [])


# ---------------------------------------------------------------------------
# Weights, threads, missing values: the same for all
# ---------------------------------------------------------------------------


@pytest.mark.parametrize("discretizer", LEARNERS, ids=str)
@pytest.mark.parametrize("seed", range(5))
def test_doubling_a_weight_equals_repeating_a_row(discretizer, seed):
    X, y = random_table(seed=seed)
    weights = np.random.default_rng(seed).integers(0, 4, len(X))
    weighted = clone(discretizer).fit(X, y, sample_weight=weights)
    repeated = clone(discretizer).fit(np.repeat(X, weights, 0), np.repeat(y, weights))
    same_edges(weighted.edges_, repeated.edges_)


@pytest.mark.parametrize("discretizer", LEARNERS, ids=str)
def test_unit_weights_change_nothing(discretizer):
    X, y = random_table()
    one = clone(discretizer).fit(X, y).edges_
    same_edges(one, clone(discretizer).fit(X, y, np.ones(len(X))).edges_)


@pytest.mark.parametrize("discretizer", LEARNERS, ids=str)
def test_rows_of_weight_zero_are_as_if_absent(discretizer):
    X, y = random_table()
    extreme = np.full((3, X.shape[1]), 1e6)
    X_more, y_more = np.vstack([X, extreme]), np.append(y, [7, 7, 8])
    weights = np.append(np.ones(len(X)), [0, 0, 0])
    one = clone(discretizer).fit(X, y).edges_
    same_edges(one, clone(discretizer).fit(X_more, y_more, weights).edges_)


@pytest.mark.parametrize("discretizer", LEARNERS, ids=str)
def test_missing_values_take_no_part_and_stay_missing(discretizer):
    X, y = random_table(d=3)
    fitted = clone(discretizer).fit(X, y)
    for j in range(3):
        known = ~np.isnan(X[:, j])
        alone = clone(discretizer).fit(X[known, j : j + 1], y[known])
        same_edges(alone.edges_, fitted.edges_[j : j + 1])
    np.testing.assert_array_equal(np.isnan(fitted.transform(X)), np.isnan(X))


@pytest.mark.parametrize("discretizer", ALL, ids=str)
@pytest.mark.parametrize("n_jobs", [2, 3, -1])
def test_threads_change_nothing(discretizer, n_jobs):
    X, y = random_table(d=19)
    one = clone(discretizer).fit(X, y)
    many = clone(discretizer).set_params(n_jobs=n_jobs).fit(X, y)
    same_edges(one.edges_, many.edges_)
    np.testing.assert_array_equal(one.transform(X), many.transform(X))


@pytest.mark.parametrize("discretizer", ALL, ids=str)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_memory_layout_changes_nothing(discretizer, order, dtype):
    X, y = random_table(d=19)
    X = X.astype(np.float32)
    one = clone(discretizer).fit(X.astype(float), y)
    other = clone(discretizer).fit(X.astype(dtype, order=order), y)
    same_edges(one.edges_, other.edges_)
    np.testing.assert_array_equal(
        one.transform(X.astype(float)), other.transform(X.astype(dtype, order=order))
    )


@pytest.mark.parametrize("discretizer", LEARNERS, ids=str)
def test_constant_and_all_missing_columns_have_one_bin(discretizer):
    X = np.column_stack([np.full(30, 4.0), np.full(30, np.nan), np.arange(30.0)])
    y = np.repeat([0, 1], 15)
    fitted = clone(discretizer).fit(X, y)
    assert fitted.n_bins_[:2].tolist() == [1, 1]
    assert fitted.n_bins_[2] > 1
    out = fitted.transform(X)
    assert (out[:, 0] == 0).all()
    assert np.isnan(out[:, 1]).all()


@pytest.mark.parametrize("discretizer", ALL, ids=str)
def test_transform_is_closed_on_the_right(discretizer):
    X, y = random_table()
    fitted = clone(discretizer).fit(X, y)
    for j, edges in enumerate(fitted.edges_):
        probe = np.zeros((3 * len(edges), X.shape[1]))
        probe[:, j] = np.ravel(
            [np.nextafter(edges, -np.inf), edges, np.nextafter(edges, np.inf)]
        )
        k = np.arange(len(edges))
        expected = np.concatenate([k, k, k + 1])
        if len(edges):
            np.testing.assert_array_equal(fitted.transform(probe)[:, j], expected)


@pytest.mark.parametrize("discretizer", ALL, ids=str)
def test_bins_of_huge_and_of_neighbouring_numbers(discretizer):
    largest = np.finfo(float).max
    huge = np.repeat([-largest, largest], 15)
    close = np.repeat([1.0, np.nextafter(1.0, 2.0)], 15)
    X, y = np.column_stack([huge, close]), np.repeat([0, 1], 15)
    fitted = clone(discretizer).fit(X, y)
    out = fitted.transform(X)
    assert all(np.isfinite(edges).all() for edges in fitted.edges_)
    if not isinstance(discretizer, FixedEdgesDiscretizer):
        assert (out[:15] == 0).all()
        assert (out[15:] == fitted.n_bins_ - 1).all()
        assert fitted.edges_[1].tolist() == [1.0]


@pytest.mark.parametrize("discretizer", ALL, ids=str)
def test_infinite_numbers_are_refused(discretizer):
    X, y = random_table(d=2)
    fitted = clone(discretizer).fit(X, y)
    X[3, 1] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        clone(discretizer).fit(X, y)
    with pytest.raises(ValueError, match="infinity"):
        fitted.transform(X)


@pytest.mark.parametrize("discretizer", LEARNERS, ids=str)
def test_bad_weights_are_refused(discretizer):
    X, y = random_table(n=5)
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        clone(discretizer).fit(X, y, [1, 1, -1, 1, 1])
    with pytest.raises(ValueError, match="zero"):
        clone(discretizer).fit(X, y, np.zeros(5))


@pytest.mark.parametrize("discretizer", ALL, ids=str)
def test_names_and_frames_pass_through(discretizer):
    X, y = random_table(d=3)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    fitted = clone(discretizer).fit(frame, y)
    assert fitted.feature_names_in_.tolist() == ["a", "b", "c"]
    assert fitted.get_feature_names_out().tolist() == ["a", "b", "c"]
    expected = fitted.transform(frame)
    out = fitted.set_output(transform="pandas").transform(frame)
    pd.testing.assert_frame_equal(out, pd.DataFrame(expected, columns=["a", "b", "c"]))
    polars = pl.DataFrame(X, schema=["a", "b", "c"])
    other = clone(discretizer).set_output(transform="polars")
    out = other.fit(polars, y).transform(polars)
    assert isinstance(out, pl.DataFrame)
    np.testing.assert_array_equal(out.to_numpy(), expected)


@pytest.mark.parametrize("discretizer", ALL, ids=str)
def test_pickled_discretizer_gives_the_same_bins(discretizer):
    X, y = random_table()
    fitted = clone(discretizer).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.transform(X), fitted.transform(X))


@pytest.mark.parametrize("discretizer", ALL, ids=str)
def test_transform_before_fit_is_refused(discretizer):
    with pytest.raises(NotFittedError):
        clone(discretizer).transform([[1.0]])


def test_supervised_discretizer_needs_classes():
    with pytest.raises(ValueError, match="requires y"):
        MDLDiscretizer().fit([[1.0], [2.0]])
    with pytest.raises(ValueError, match="Unknown label type"):
        MDLDiscretizer().fit([[1.0], [2.0]], [0.5, 1.5])
    with pytest.raises(ValueError, match="classes"):
        MDLDiscretizer().column_edges(np.arange(3.0), None, 0, None)


def test_classes_may_be_text():
    X, y = random_table()
    one = MDLDiscretizer().fit(X, y).edges_
    same_edges(one, MDLDiscretizer().fit(X, np.array(["x", "z", "y"])[y]).edges_)


# ---------------------------------------------------------------------------
# Column by column, on threads
# ---------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_edges_of_a_column_are_those_of_its_known_rows_that_count(n_jobs, weighted):
    X, y = random_table(d=17)
    weights = np.arange(len(X)) % 3.0 if weighted else None
    edges = []
    for j, column in enumerate(X.T):
        kept = ~np.isnan(column) & (weights > 0 if weighted else True)
        u = weights[kept] if weighted else None
        edges.append(
            MDLDiscretizer().column_edges(column[kept], y[kept], 3, u, column=(j, None))
        )
    same_edges(MDLDiscretizer(n_jobs=n_jobs).fit(X, y, weights).edges_, edges)


def test_columns_are_read_a_few_ahead_of_the_threads():
    done = []

    def watched(column, name):
        done.append(name)
        return column.sum()

    def columns():
        for j in range(40):
            assert j - len(done) <= 2 * 2 + 1
            yield np.full(5, float(j))

    names = [f"x{j:02}" for j in range(40)]
    assert map_columns(watched, columns(), names, 2) == [5.0 * j for j in range(40)]
    assert sorted(done) == names


def test_errors_of_threads_are_passed_on():
    class Refusing(EqualWidthDiscretizer):
        def column_edges(self, values, y, n_classes, weights, *, column=None):
            raise ParameterError(f"No edges for {column}.")

    with pytest.raises(ParameterError, match="No edges for"):
        Refusing(n_jobs=2).fit(np.ones((2, 3)))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("d", [1, 7, 8, 9, 20])
def test_float_columns_are_contiguous_float64(order, d):
    for dtype in (np.float32, np.float64):
        X = np.arange(5 * d, dtype=dtype).reshape(5, d).copy(order)
        columns = list(float_columns(X))
        assert all(c.flags.c_contiguous and c.dtype == np.float64 for c in columns)
        np.testing.assert_array_equal(np.column_stack(columns), X)
    wide = np.arange(5.0 * 2 * d).reshape(5, 2 * d)[:, ::2]
    np.testing.assert_array_equal(np.column_stack(list(float_columns(wide))), wide)


# ---------------------------------------------------------------------------
# Equal width, equal frequency, fixed
# ---------------------------------------------------------------------------


def edges_of(discretizer, values, weights=None):
    return discretizer.column_edges(
        np.asarray(values, dtype=float), None, 0, weights
    ).tolist()


def test_equal_width_edges():
    edges = edges_of(EqualWidthDiscretizer(), [0.0, 1.0])
    assert edges == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    assert edges_of(EqualWidthDiscretizer(n_bins=4), [10, -2, 3]) == [1, 4, 7]
    assert edges_of(EqualWidthDiscretizer(n_bins=1), [10, -2, 3]) == []


def test_empty_bins_are_kept_unless_merged():
    values = [0.0, 0.5, 4.2, 10.0]
    kept = edges_of(EqualWidthDiscretizer(), values)
    assert kept == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    # Bins 1-3 are empty between the edges 1 and 4, bins 5-8 between 5 and 9.
    merged = edges_of(EqualWidthDiscretizer(empty="merge"), values)
    assert merged == [2.5, 7.0]


def test_one_empty_bin_is_halved():
    merge = EqualWidthDiscretizer(n_bins=4, empty="merge")
    assert edges_of(merge, [0, 1.5, 4]) == [1.0, 2.5]
    assert edges_of(merge, [0, 1.5, 2.5, 4]) == [1.0, 2.0, 3.0]


@settings(max_examples=100 if JIT else 30, deadline=None)
@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30),
    st.integers(1, 12),
)
def test_merging_leaves_no_empty_bin_and_moves_no_value(values, n_bins):
    values = np.array(values)[:, None]
    keep = EqualWidthDiscretizer(n_bins).fit(values)
    merge = EqualWidthDiscretizer(n_bins, empty="merge").fit(values)
    kept, merged = keep.transform(values).ravel(), merge.transform(values).ravel()
    assert np.unique(merged).tolist() == list(range(merge.n_bins_[0]))
    np.testing.assert_array_equal(merged, np.unique(kept, return_inverse=True)[1])


def test_equal_frequency_edges():
    assert edges_of(EqualFrequencyDiscretizer(2), [4, 1, 3, 2]) == [2.5]
    assert edges_of(EqualFrequencyDiscretizer(4), np.arange(8)) == [1.5, 3.5, 5.5]
    # 2.5 rows on either side would be ideal: the lower of two equals is taken.
    assert edges_of(EqualFrequencyDiscretizer(2), np.arange(5)) == [1.5]
    assert edges_of(EqualFrequencyDiscretizer(1), np.arange(5)) == []
    assert edges_of(EqualFrequencyDiscretizer(9), [0, 0, 0, 0, 0, 1]) == [0.5]
    weights = np.array([1.0, 1.0, 1.0, 3.0])
    assert edges_of(EqualFrequencyDiscretizer(2), [0, 1, 2, 3], weights) == [2.5]


@settings(max_examples=200 if JIT else 50, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(1, 3)), min_size=1, max_size=30),
    st.integers(1, 8),
)
def test_equal_frequency_takes_the_nearest_gap(rows, n_bins):
    values, weights = np.array(rows, dtype=float).T.copy()
    distinct = np.unique(values)
    below = [int(weights[values <= v].sum()) for v in distinct[:-1]]
    total, expected = int(weights.sum()), set()
    for k in range(1, n_bins):
        gaps = [abs(Fraction(u) - Fraction(k * total, n_bins)) for u in below]
        if gaps:
            i = gaps.index(min(gaps))
            expected.add((distinct[i] + distinct[i + 1]) / 2)
    found = edges_of(EqualFrequencyDiscretizer(n_bins), values, weights)
    assert found == sorted(expected)


def test_fixed_edges_for_all_for_each_and_by_name():
    X = np.array([[0.0, 0.0], [2.0, 2.0], [np.nan, 9.0]])
    frame = pd.DataFrame(X, columns=["a", "b"])
    same_edges(FixedEdgesDiscretizer((1, 3)).fit(X).edges_, [np.array([1.0, 3.0])] * 2)
    each = FixedEdgesDiscretizer([[1.0], []]).fit(X)
    assert each.n_bins_.tolist() == [2, 1]
    np.testing.assert_array_equal(each.transform(X), [[0, 0], [1, 0], [np.nan, 0]])
    named = FixedEdgesDiscretizer({"b": np.array([5.0]), "a": [1, 2]}).fit(frame)
    assert [edges.tolist() for edges in named.edges_] == [[1.0, 2.0], [5.0]]
    matrix = FixedEdgesDiscretizer(np.array([[1.0, 2.0], [3.0, 4.0]])).fit(X)
    assert [edges.tolist() for edges in matrix.edges_] == [[1.0, 2.0], [3.0, 4.0]]
    assert FixedEdgesDiscretizer([]).fit(X).n_bins_.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([1.0, 1.0], "increasing"),
        ([2.0, 1.0], "increasing"),
        ([1.0, np.nan], "finite"),
        ([1.0, np.inf], "finite"),
        (["low", "high"], "increasing"),
        ([[1.0], [2.0, 0.0]], "for column 1"),
        ([[1.0], 2.0], "for column 1"),
        ([[1.0]], "Got 1 for 2 columns"),
        ({"a": [1.0]}, "no edges for column 'b'"),
        ({"a": [1.0], "b": [1.0, 0.0]}, "for column 'b'"),
        ({"a": [1.0], "b": [1.0], "z": []}, r"does not have: \['z'\]"),
        (3.0, "increasing"),
        (None, "increasing"),
        ("12", "increasing"),
    ],
)
def test_bad_fixed_edges_are_explained(edges, message):
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [1.0, 2.0]})
    with pytest.raises(ParameterError, match=message):
        FixedEdgesDiscretizer(edges).fit(frame)


def test_named_edges_need_named_columns():
    with pytest.raises(ParameterError, match="does not have"):
        FixedEdgesDiscretizer({"a": [1.0]}).fit([[1.0]])
    with pytest.raises(ParameterError, match="no edges for column None"):
        FixedEdgesDiscretizer({"a": [1.0]}).column_edges(np.ones(1), None, 0, None)


@pytest.mark.parametrize(
    ("discretizer", "message"),
    [
        (MDLDiscretizer(criterion="mdl"), "'criterion' .* Got 'mdl' instead"),
        (MDLDiscretizer(better_encoding="yes"), "'better_encoding' .* 'yes'"),
        (EqualWidthDiscretizer(n_bins=0), "'n_bins' .* at least 1. Got 0"),
        (EqualWidthDiscretizer(n_bins=2.5), "'n_bins' .* Got 2.5"),
        (EqualWidthDiscretizer(empty="drop"), "'keep', 'merge'. Got 'drop'"),
        (EqualFrequencyDiscretizer(n_bins=True), "'n_bins' .* Got True"),
    ],
)
def test_bad_parameters_are_explained(discretizer, message):
    with pytest.raises(ParameterError, match=message):
        discretizer.fit([[1.0], [2.0]], [0, 1])
    with pytest.raises(ParameterError, match=message):
        TableEncoder(numeric=discretizer).fit([[1.0], [2.0]], [0, 1])


def test_ties_of_equal_frequency_are_ties_up_to_rounding():
    # Half of the weight is half-way between two values, whatever order it is added in.
    values = np.array([1.0, 2.0, 2.0, 2.0, 3.0])
    weights = np.array([0.3, 0.3, 0.1, 0.2, 0.3])
    found = set()
    for order in itertools.permutations(range(5)):
        at = list(order)
        bins = EqualFrequencyDiscretizer(n_bins=2)
        found.add(tuple(bins.column_edges(values[at], None, 0, weights[at])))
    assert found == {(1.5,)}
