"""Tables by index and joint tables of columns, against the plain way."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from steelyard.kernels import counting
from steelyard.table.encoding import extremes
from steelyard.table.factors import Factor

LONG = 20_000  # compiled; short columns go through NumPy


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8])
@pytest.mark.parametrize("n", [50, LONG])
def test_values_are_picked_and_counted_by_their_indices(n, dtype):
    rng = np.random.default_rng(1)
    least = 0 if dtype == np.uint8 else -1
    indices = rng.integers(least, 5, size=n).astype(dtype)
    indices[indices == 3] = 2
    indices.flags.writeable = False
    factor = Factor(indices, list("abcde"))
    picked = factor.pick([5, 4, 3, 2, 1], 9, np.uint8)
    assert_array_equal(picked, np.array([5, 4, 3, 2, 1, 9], np.uint8)[indices])
    assert factor.held() == (list("abce"), np.count_nonzero(picked == 9))
    assert factor.some_missing == (least < 0)


@pytest.mark.parametrize("outside", [-2, 2])
@pytest.mark.parametrize("n", [50, LONG])
def test_indices_of_a_damaged_table_are_refused(n, outside):
    indices = np.zeros(n, dtype=np.int32)
    indices[n // 2] = outside
    factor = Factor(indices, ["a", "b"])
    if n == LONG:
        with pytest.raises(IndexError):
            factor.pick([1, 2], 0, np.uint8)
    with pytest.raises(IndexError):
        counting.tally(indices, np.zeros(3, dtype=np.int64))


@pytest.mark.parametrize("most", [1, 40, 400, 4096])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_joint_tables_count_what_columns_count_one_by_one(most, n_classes):
    rng = np.random.default_rng(2)
    sizes = np.array([11, 3, 256, 2, 2, 2, 7, 40, 5], dtype=np.int64)
    values = np.asfortranarray(rng.integers(sizes, size=(3000, 9)).astype(np.uint8))
    y = rng.integers(n_classes, size=3000).astype(np.uint32)
    starts = (np.cumsum(sizes) - sizes).astype(np.uint64)
    one_by_one = np.zeros((n_classes, int(sizes.sum())), dtype=np.int32)
    joint = np.zeros_like(one_by_one)
    part = slice(100, 2900)
    counting.count_columns(values[part], starts, y[part], None, one_by_one)
    counting.count_joint(values.T, (100, 2900), starts, sizes, y[part], most, joint)
    assert_array_equal(joint, one_by_one)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64, bool, np.float64])
@pytest.mark.parametrize("shape", [(1, 3), (70, 5), (70_000, 4), (200, 600), (90, 0)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_ends_of_columns_are_those_of_numpy(dtype, shape, order):
    matrix = np.random.default_rng(3).integers(0, 99, shape).astype(dtype, order=order)
    if dtype is np.float64 and matrix.size:
        matrix[0, 0] = np.inf
        matrix[-1, 1] = np.nan
        matrix[:, 2] = np.nan
    low, high = extremes(matrix, 2)
    assert_array_equal(low, matrix.min(axis=0))
    assert_array_equal(high, matrix.max(axis=0))
