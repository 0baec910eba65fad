"""Scatter: rows into tables of counts and moments.

Shapes: ``values (n, b)`` unsigned codes, ``starts (b,)`` uint64 first table row of each
column, ``y (n,)`` uint32 classes, ``weights (n,)`` or None for ones, ``hist (K, V)``;
classes come first so that one row of the input stays inside one histogram.
"""

from __future__ import annotations

import numpy as np

from steelyard.kernels.compiling import FEW, MANY, kernel

# 8 rows of 50 doubles are 3 KB: the buffer of `moments` stays in the L1 cache (22 ms
# for 500,000 x 50 numbers, 30 with 256 rows).
_MOMENT_ROWS = 8

# Joint tables of 16 KB stay in the L1 cache, and so do the positions of these rows.
MOST_JOINT = 4096
_JOINT_ROWS = 1024


@kernel(plain=MANY)
def count_rows(values, starts, y, weights, hist):
    """Add row weights by row-major codes, one per row and column: hist (K, V) +=."""
    n, b = values.shape
    for i in range(n):
        h = hist[y[i]]
        u = 1 if weights is None else weights[i]
        for j in range(b):
            h[starts[j] + values[i, j]] += u


@kernel(plain=MANY)
def count_columns(values, starts, y, weights, hist):
    """Add row weights by column-major codes: hist (K, V) +=."""
    n, b = values.shape
    for j in range(b):
        start = starts[j]
        for i in range(n):
            hist[y[i], start + values[i, j]] += 1 if weights is None else weights[i]


@count_rows.in_numpy
@count_columns.in_numpy
def _(values, starts, y, weights, hist):
    # Columns have cells of their own: rows are added in order either way.
    cells = hist.reshape(-1)
    if not np.may_share_memory(cells, hist):
        raise ValueError
    first = y.astype(np.int64) * hist.shape[1]
    for j, start in enumerate(starts.tolist()):
        where = first + start + values[:, j]
        np.add.at(cells, where, 1 if weights is None else weights)


@kernel(plain=FEW)
def count_joint(columns, rows, starts, sizes, y, most, hist):
    """Add ones by column-major codes, several columns at a time: hist (K, V) +=.

    columns (b, n) in C order, of which the rows between two positions are counted,
    sizes (b,) int64 numbers of codes. Neighbouring columns share a joint table by class
    and codes, as many as have one of at most ``most`` cells; a row adds to it once, for
    all of them.
    """
    b = columns.shape[0]
    joint = np.empty(most, dtype=np.uint32)
    first = 0
    while first < b:
        cells, end = hist.shape[0] * sizes[first], first + 1
        while end < b and cells * sizes[end] <= most:
            cells *= sizes[end]
            end += 1
        if cells > most:
            column = columns[first, rows[0] : rows[1]]
            for i in range(y.size):
                hist[y[i], starts[first] + column[i]] += 1
        else:
            _count_group(columns[first:end], rows, sizes[first:end], y, joint[:cells])
            _fold(joint[:cells], starts[first:end], sizes[first:end], hist)
        first = end


@kernel(inline="always")
def _count_group(columns, rows, sizes, y, joint):
    """Count rows by class and the codes of all columns.

    The loops that find where rows add are apart from the one that adds, since they have
    vector instructions.
    """
    joint[:] = 0
    where = np.empty(_JOINT_ROWS, dtype=np.uint16)
    for lo in range(0, y.size, _JOINT_ROWS):
        hi = min(lo + _JOINT_ROWS, y.size)
        labels, n = y[lo:hi], hi - lo
        for r in range(n):
            where[r] = np.uint16(labels[r])
        for j in range(columns.shape[0]):
            size = np.uint16(sizes[j])
            codes = columns[j, rows[0] + lo : rows[0] + hi]
            for r in range(n):
                where[r] = np.uint16(where[r] * size + codes[r])
        for r in range(n):
            joint[where[r]] += np.uint32(1)


@kernel(inline="always")
def _fold(joint, starts, sizes, hist):
    """Add up a joint table over all columns but one, for each; it is used up."""
    n_rows = joint.size // hist.shape[0]
    for j in range(sizes.size - 1, -1, -1):
        size, row = sizes[j], 0
        n_rows //= size
        for c in range(hist.shape[0]):
            h = hist[c]
            for _ in range(n_rows):
                total = np.uint32(0)
                for v in range(size):
                    found = joint[row * size + v]
                    h[starts[j] + np.uint64(v)] += found
                    total += found
                joint[row] = total
                row += 1


@kernel(plain=FEW)
def moments(numbers, y, weights, n_classes):
    """Weight, mean and sum of squared deviations by class, missing cells left out.

    numbers (n, g) float64, y (n,), weights (n,) or empty for ones -> three (K, g).
    One pass in the manner of Welford (1962), on the distances from the first number of
    each class: far from zero the running mean itself would lose the digits (relative
    error of the squares 1e-7 for unit variance around 1e9, now 1e-14). The inner loop
    runs over columns, which are independent of each other, so that the divisions
    overlap.
    """
    n, g = numbers.shape
    weight = np.zeros((n_classes, g))
    mean = np.zeros((n_classes, g))
    squares = np.zeros((n_classes, g))
    first = np.zeros((n_classes, g))
    buffer = np.empty((_MOMENT_ROWS, g))
    for lo in range(0, n, _MOMENT_ROWS):
        rows = min(_MOMENT_ROWS, n - lo)
        for r in range(rows):
            for j in range(g):
                buffer[r, j] = numbers[lo + r, j]
        for r in range(rows):
            i = lo + r
            u = weights[i] if weights.size else 1.0
            c = y[i]
            w, m, s, f = weight[c], mean[c], squares[c], first[c]
            for j in range(g):
                x = buffer[r, j]
                known = x == x
                f_j = x if known and w[j] == 0.0 else f[j]
                f[j] = f_j
                u_j = u if known else 0.0
                total = w[j] + u_j
                delta = (x - f_j if known else m[j]) - m[j]
                step = delta * (u_j / total) if total > 0.0 else 0.0
                s[j] += w[j] * delta * step
                m[j] += step
                w[j] = total
    return weight, first + mean, squares
