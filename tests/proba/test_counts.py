"""Counts add up: over parts, threads, memory orders and ways to store codes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from steelyard import NaiveBayes
from steelyard._common.threads import row_blocks, run, thread_count
from steelyard.proba.counts import Counts, Moments, count
from steelyard.table.codes import CodeBlock, Codes
from steelyard.table.schema import FeatureSchema, TableSchema

SEEDS = st.integers(0, 2**32)
EXAMPLES = settings(max_examples=40, deadline=None)
SIZES = [2, 5, 3, 300, 2, 4]


def random_codes(rng, n, *, order="C", sizes=SIZES, n_numbers=2, missing=0.1):
    """Return encoded rows: six coded attributes, and numbers with holes."""
    features = [
        FeatureSchema(f"c{j}", "categorical", "numbers", values=tuple(range(size)))
        for j, size in enumerate(sizes)
    ]
    features += [
        FeatureSchema(f"g{j}", "gaussian", "numbers") for j in range(n_numbers)
    ]
    schema = TableSchema(tuple(features))
    values = rng.integers(0, np.array(sizes) + 1, (n, len(sizes)))
    blocks = []
    for dtype, fits in ((np.uint8, np.array(sizes) < 256), (np.uint16, None)):
        chosen = np.flatnonzero(fits if fits is not None else np.array(sizes) >= 256)
        block = np.asarray(values[:, chosen], dtype=dtype, order=order)
        blocks.append(CodeBlock(block, chosen))
    numbers = rng.normal(1e3, 1.0, (n, n_numbers))
    numbers[rng.random((n, n_numbers)) < missing] = np.nan
    numbers = np.asarray(numbers, order=order)
    return Codes(schema, n, tuple(blocks), numbers)


def rows_of(codes, rows):
    blocks = tuple(
        CodeBlock(block.values[rows], block.features, block.look_up)
        for block in codes.blocks
    )
    return Codes(codes.schema, len(codes.numbers[rows]), blocks, codes.numbers[rows])


def same_counts(a, b):
    """Assert that two counts are the same to the last bit."""
    assert a.by_class.tobytes() == b.by_class.tobytes()
    assert a.by_code.tobytes() == b.by_code.tobytes()
    for name in ("weight", "mean", "squares"):
        mine, other = getattr(a.moments, name), getattr(b.moments, name)
        assert mine.tobytes() == other.tobytes(), name


# -------------------------------------------------------------------------- additivity


@pytest.mark.plain
@given(SEEDS, st.integers(2, 4), st.lists(st.integers(0, 60), max_size=5))
@EXAMPLES
def test_counts_of_parts_add_up_to_counts_of_the_whole(seed, n_classes, cuts):
    rng = np.random.default_rng(seed)
    n = 60
    codes = random_codes(rng, n)
    y = rng.integers(0, n_classes, n).astype(np.uint32)
    cuts = [0, *sorted(cuts), n]
    for weights, exact in (
        (None, True),
        (rng.integers(0, 5, n).astype(np.float64), True),
        (rng.exponential(size=n), False),
    ):
        whole = count(codes, y, weights, n_classes)
        total = Counts.zeros(codes.schema, n_classes)
        for low, high in pairwise(cuts):
            rows = slice(low, high)
            u = None if weights is None else weights[rows]
            total = total + count(rows_of(codes, rows), y[rows], u, n_classes)
        if exact:
            assert_array_equal(total.by_class, whole.by_class)
            assert_array_equal(total.by_code, whole.by_code)
        assert_allclose(total.by_class, whole.by_class, rtol=1e-12)
        assert_allclose(total.by_code, whole.by_code, rtol=1e-12)
        for name in ("weight", "mean", "squares"):
            found = getattr(total.moments, name)
            expected = getattr(whole.moments, name)
            assert_allclose(found, expected, rtol=1e-10, atol=1e-9)


@pytest.mark.plain
@given(SEEDS)
@EXAMPLES
def test_counts_agree_with_a_loop_over_the_rows(seed):
    rng = np.random.default_rng(seed)
    codes = random_codes(rng, 30)
    y = rng.integers(0, 3, 30).astype(np.uint32)
    weights = rng.integers(0, 4, 30).astype(np.float64)
    found = count(codes, y, weights, 3)
    expected = np.zeros_like(found.by_code)
    array = codes.to_array()
    for i in range(30):
        for k, j in enumerate(codes.schema.coded):
            expected[codes.offsets[j] + array[i, k], y[i]] += weights[i]
    assert_array_equal(found.by_code, expected)
    assert_array_equal(found.by_class, np.bincount(y, weights, minlength=3))
    assert found.total == weights.sum()


@pytest.mark.plain
@given(
    st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(0.01, 100)), max_size=30),
    st.integers(0, 30),
    st.sampled_from([0.0, 1.0, 1e9]),
)
@EXAMPLES
def test_moments_of_parts_add_up_to_moments_of_the_whole(pairs, cut, offset):
    def moments(part):
        x = np.array([x + offset for x, _ in part])
        u = np.array([u for _, u in part])
        if not len(part):
            return Moments.zeros(1, 1)
        mean = np.average(x, weights=u)
        spread = (u * (x - mean) ** 2).sum()
        return Moments(*(np.array([[v]]) for v in (u.sum(), mean, spread)))

    whole = moments(pairs)
    total = moments(pairs[:cut]) + moments(pairs[cut:])
    assert_allclose(total.weight, whole.weight, rtol=1e-12)
    size = offset + max((abs(x) for x, _ in pairs), default=0.0)
    assert_allclose(total.mean, whole.mean, rtol=1e-10, atol=1e-12 * size)
    # Each mean is known to a few units in the last place of the numbers.
    slack = 1e-15 * size * np.sqrt(whole.weight * whole.squares) + (
        (1e-15 * size) ** 2 * whole.weight
    )
    assert (
        np.abs(total.squares - whole.squares) <= 1e-10 * whole.squares + slack
    ).all()


@pytest.mark.plain
def test_adding_nothing_changes_no_bit():
    rng = np.random.default_rng(0)
    codes = random_codes(rng, 50)
    y = rng.integers(0, 2, 50).astype(np.uint32)
    found = count(codes, y, None, 3)
    nothing = Counts.zeros(codes.schema, 3)
    same_counts(found + nothing, found)
    same_counts(nothing + found, found)


@pytest.mark.plain
def test_pooled_moments_are_those_of_all_classes_together():
    rng = np.random.default_rng(1)
    codes = random_codes(rng, 200)
    y = rng.integers(0, 3, 200).astype(np.uint32)
    pooled = count(codes, y, None, 4).moments.pooled()
    one = count(codes, np.zeros(200, dtype=np.uint32), None, 1).moments
    for name in ("weight", "mean", "squares"):
        assert_allclose(getattr(pooled, name), getattr(one, name), rtol=1e-10)


@pytest.mark.plain
def test_counts_of_different_schemas_do_not_add():
    one = random_codes(np.random.default_rng(0), 5, sizes=[2, 3]).schema
    other = random_codes(np.random.default_rng(0), 5, sizes=[3, 2]).schema
    with pytest.raises(ValueError, match="same schema"):
        Counts.zeros(one, 2) + Counts.zeros(other, 2)


@pytest.mark.plain
def test_scaling_a_class_equals_weighting_its_rows():
    rng = np.random.default_rng(2)
    codes = random_codes(rng, 100)
    y = rng.integers(0, 2, 100).astype(np.uint32)
    factors = np.array([0.5, 3.0])
    scaled = count(codes, y, None, 2).scaled(factors)
    weighted = count(codes, y, factors[y], 2)
    assert_array_equal(scaled.by_code, weighted.by_code)
    assert_array_equal(scaled.by_class, weighted.by_class)
    for name in ("weight", "mean", "squares"):
        found, expected = getattr(scaled.moments, name), getattr(weighted.moments, name)
        assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.plain
def test_counts_move_to_a_schema_that_has_grown():
    def schema(letters, missing_is_value):
        return TableSchema(
            (
                FeatureSchema(None, "categorical", "text", values=tuple(letters)),
                FeatureSchema(None, "gaussian", "numbers"),
                FeatureSchema(
                    None,
                    "binned",
                    "numbers",
                    edges=(0.0, 1.0),
                    missing_is_value=missing_is_value,
                ),
            )
        )

    old, new = schema("bd", False), schema("abcde", True)
    by_code = np.arange(14.0).reshape(7, 2)
    counts = Counts(old, np.ones(2), by_code, Moments.zeros(1, 2)).in_schema(new)
    # Code 0, a to e; code 0, three bins, missing: what was counted as missing moves to
    # the code that missing cells have now.
    expected = np.zeros((11, 2))
    expected[[0, 2, 4, 10, 7, 8, 9]] = by_code
    assert_array_equal(counts.by_code, expected)
    assert counts.in_schema(new) is counts


# ----------------------------------------------------------- threads and memory orders


@pytest.fixture(scope="module")
def large():
    """Return 50,000 coded rows, more than one block, with labels and weights."""
    rng = np.random.default_rng(7)
    codes = random_codes(rng, 50_000)
    y = rng.integers(0, 3, 50_000).astype(np.uint32)
    return codes, y, rng.exponential(size=50_000)


@pytest.mark.parametrize("n_jobs", [2, 3, -1])
@pytest.mark.parametrize("weighted", [False, True])
def test_counts_do_not_depend_on_the_number_of_threads(large, n_jobs, weighted):
    codes, y, weights = large
    u = weights if weighted else None
    same_counts(count(codes, y, u, 3, 1), count(codes, y, u, 3, n_jobs))


@pytest.mark.parametrize("weighted", [False, True])
def test_row_and_column_order_in_memory_agree(large, weighted):
    codes, y, weights = large
    u = weights if weighted else None
    turned = Codes(
        codes.schema,
        codes.n_rows,
        tuple(
            CodeBlock(np.asfortranarray(block.values), block.features)
            for block in codes.blocks
        ),
        np.asfortranarray(codes.numbers),
    )
    same_counts(count(codes, y, u, 3, 2), count(turned, y, u, 3, 2))
    separate = Codes(
        codes.schema, codes.n_rows, codes.blocks, tuple(codes.numbers.T.copy())
    )
    same_counts(count(codes, y, u, 3, 2), count(separate, y, u, 3, 2))


@pytest.mark.plain
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("weighted", [False, True])
def test_bytes_with_a_look_up_agree_with_codes(order, weighted):
    rng = np.random.default_rng(8)
    n, sizes = 300, [4, 7, 256]
    features = tuple(
        FeatureSchema(None, "categorical", "numbers", values=tuple(range(size)))
        for size in sizes
    )
    schema = TableSchema(features)
    raw = np.asarray(rng.integers(0, 256, (n, 3)), dtype=np.uint8, order=order)
    # Bytes beyond the values of an attribute are unseen: code 0.
    look_up = np.zeros((3, 256), dtype=np.int64)
    for j, size in enumerate(sizes):
        look_up[j, :size] = rng.permutation(size) + 1
    positions = np.arange(3)
    by_byte = Codes(schema, n, (CodeBlock(raw, positions, look_up),))
    plain = np.stack([look_up[j][raw[:, j]] for j in range(3)], axis=1)
    coded = Codes(schema, n, (CodeBlock(plain.astype(np.uint16), positions),))
    y = rng.integers(0, 2, n).astype(np.uint32)
    u = rng.integers(1, 4, n).astype(np.float64) if weighted else None
    same_counts(count(by_byte, y, u, 2), count(coded, y, u, 2))
    assert_array_equal(by_byte.to_array(), coded.to_array())


@pytest.mark.parametrize("numeric", ["equal-width", "gaussian"])
def test_fitting_and_predicting_do_not_depend_on_the_number_of_threads(numeric):
    rng = np.random.default_rng(9)
    X = rng.normal(size=(50_000, 6))
    X[rng.random(X.shape) < 0.05] = np.nan
    y = rng.integers(0, 3, 50_000)
    u = rng.exponential(size=50_000)
    models = [NaiveBayes(numeric=numeric, n_jobs=k).fit(X, y, u) for k in (1, 2, 3)]
    for other in models[1:]:
        same_counts(models[0].counts_, other.counts_)
        for method in ("predict_proba", "predict_log_proba", "predict_joint_log_proba"):
            mine, its = getattr(models[0], method)(X), getattr(other, method)(X)
            assert mine.tobytes() == its.tobytes()


def test_two_classes_of_bytes_do_not_depend_on_threads_or_memory_order():
    rng = np.random.default_rng(10)
    X = rng.integers(0, 9, (50_000, 7)).astype(np.uint8)
    y = rng.integers(0, 2, 50_000)
    first = NaiveBayes(categorical_features="all", n_jobs=1).fit(X, y)
    expected = first.predict_proba(X)
    wide = X.astype(np.int64)
    for table in (X, np.asfortranarray(X), wide, np.asfortranarray(wide)):
        for n_jobs in (1, 2, 3):
            clf = NaiveBayes(categorical_features="all", n_jobs=n_jobs).fit(table, y)
            same_counts(first.counts_, clf.counts_)
            assert expected.tobytes() == clf.predict_proba(table).tobytes()


# -------------------------------------------------------------------------- row blocks


@pytest.mark.plain
@given(st.integers(0, 10**8), st.sampled_from([0, 1, 30, 5_000]))
@EXAMPLES
def test_row_blocks_cover_all_rows_once_in_order(n, n_columns):
    blocks = row_blocks(n, n_columns)
    assert len(blocks) <= 16
    assert sum(block.stop - block.start for block in blocks) == n
    ends = [0, *(block.stop for block in blocks)]
    assert [block.start for block in blocks] == ends[:-1]


@pytest.mark.plain
def test_results_come_in_the_order_of_the_items():
    assert list(run(lambda i: i * i, range(20), 3)) == [i * i for i in range(20)]
    assert list(run(lambda i: i, [], 3)) == []


@pytest.mark.plain
def test_an_error_in_a_thread_reaches_the_caller():
    def fail(item):
        raise ValueError(f"item {item}")

    with pytest.raises(ValueError, match="item 0"):
        list(run(fail, range(4), 2))


@pytest.mark.plain
def test_thread_counts_are_read_as_by_scikit_learn():
    assert thread_count(None) == 1
    assert thread_count(3) == 3
    assert thread_count(-1) >= 1
    with pytest.raises(ValueError, match="n_jobs"):
        thread_count(0)
