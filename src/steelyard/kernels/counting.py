"""Cells become codes by tables; scatter: rows into tables of counts and moments.

Shapes: ``values (n, b)`` unsigned codes, ``starts (b,)`` uint64 first table row of each
column, ``y (n,)`` uint32 classes, ``weights (n,)`` or None for ones, ``hist (K, V)``;
classes come first so that one row of the input stays inside one histogram.

A round of discriminative instance weights gathers the scores of a row, adds the
posterior loss of its class to its weight, and counts the row with that weight for the
next round, while its codes are in the cache: ``values (n, b)`` joint codes,
``user_weights (n,)`` or empty for ones, ``weights (n,)`` changed in place. Returned is
the log-loss, weighted by ``user_weights``.
"""

from __future__ import annotations

import math

import numpy as np

from steelyard.kernels.compiling import NUMPY_CELLS, PLAIN_CELLS, kernel
from steelyard.kernels.scoring import _exp, add_row

# 8 rows of 50 doubles are 3 KB: the buffer of `moments` stays in the L1 cache (22 ms
# for 500,000 x 50 numbers, 30 with 256 rows).
_MOMENT_ROWS = 8

# Joint tables of 16 KB stay in the L1 cache, and so do the positions of these rows.
MAX_JOINT = 4096
_JOINT_ROWS = 1024

_BUFFER_ROWS = 256

# Rows are folded into one of about this many bytes when taking extremes of columns:
# loops over long rows have vector instructions (0.5 ms for 1,000,000 x 7 bytes), over
# short ones not (6 ms); beyond it their ends would leave the L1 cache.
_FOLDED_BYTES = 1 << 11


@kernel(plain=NUMPY_CELLS)
def count_rows(values, starts, y, weights, hist):
    """Add row weights by row-major codes, one per row and column: hist (K, V) +=."""
    n, b = values.shape
    for i in range(n):
        h = hist[y[i]]
        u = 1 if weights is None else weights[i]
        for j in range(b):
            h[starts[j] + values[i, j]] += u


@kernel(plain=NUMPY_CELLS)
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
    # Columns have separate cells: rows are added in order either way.
    cells = hist.reshape(-1)
    if not np.may_share_memory(cells, hist):
        raise ValueError
    first = y.astype(np.int64) * hist.shape[1]
    for j, start in enumerate(starts.tolist()):
        where = first + start + values[:, j]
        np.add.at(cells, where, 1 if weights is None else weights)


@kernel(plain=PLAIN_CELLS)
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

    Positions are computed in separate loops, which have vector instructions.
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
    """Add up a joint table over all columns but one, for each; the table is zeroed."""
    n_rows = joint.size // hist.shape[0]
    for j in range(sizes.size - 1, -1, -1):
        size, row = sizes[j], 0
        n_rows //= size
        for c in range(hist.shape[0]):
            h = hist[c]
            for _ in range(n_rows):
                total = np.uint32(0)
                for v in range(size):
                    joint_count = joint[row * size + v]
                    h[starts[j] + np.uint64(v)] += joint_count
                    total += joint_count
                joint[row] = total
                row += 1


@kernel(plain=PLAIN_CELLS)
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
                observed = x == x
                f_j = x if observed and w[j] == 0.0 else f[j]
                f[j] = f_j
                u_j = u if observed else 0.0
                total = w[j] + u_j
                delta = (x - f_j if observed else m[j]) - m[j]
                step = delta * (u_j / total) if total > 0.0 else 0.0
                s[j] += w[j] * delta * step
                m[j] += step
                w[j] = total
    return weight, first + mean, squares


@kernel(plain=NUMPY_CELLS)
def look_up(indices, by_index, out):
    """Write out[i] = by_index[indices[i] + 1]: indices (n,) from -1 on.

    NumPy makes indices 64 bits wide first, which takes five times as long.
    """
    size = np.uint64(by_index.size)
    for i in range(out.size):
        index = np.uint64(indices[i] + 1)
        if index >= size:
            raise IndexError("An index is outside of its table.")
        out[i] = by_index[index]


@look_up.in_numpy
def _(indices, by_index, out):
    out[:] = by_index[_positions(indices)]


def _positions(indices):
    """Return indices from -1 on as positions, which NumPy would count from the end."""
    if indices.min(initial=0) < -1:
        raise IndexError
    return indices.astype(np.int64) + 1


@kernel(plain=NUMPY_CELLS)
def tally(indices, counts):
    """Add ones: counts[indices[i] + 1] += 1, for indices (n,) from -1 on."""
    size = np.uint64(counts.size)
    for i in range(indices.size):
        index = np.uint64(indices[i] + 1)
        if index >= size:
            raise IndexError("An index is outside of its table.")
        counts[index] += 1


@tally.in_numpy
def _(indices, counts):
    np.add.at(counts, _positions(indices), 1)


@kernel(plain=NUMPY_CELLS)
def tally_by_class(indices, labels, weights, mass):
    """Add weights: mass[indices[i] + 1, labels[i]] += weights[i].

    indices (n,) from -1 on, labels (n,), weights (n,) or (0,) for ones, mass (m, K).
    """
    size, n_classes = np.uint64(mass.shape[0]), np.uint64(mass.shape[1])
    for i in range(indices.size):
        index, c = np.uint64(indices[i] + 1), np.uint64(labels[i])
        if index >= size or c >= n_classes:
            raise IndexError("An index is outside of its table.")
        mass[index, c] += weights[i] if weights.size > 0 else 1.0


@tally_by_class.in_numpy
def _(indices, labels, weights, mass):
    np.add.at(mass, (_positions(indices), labels), weights if weights.size else 1.0)


@kernel(plain=NUMPY_CELLS)
def extremes(values, low, high, n_observed):
    """Lower low (b,) and raise high (b,) to the cells of each column of values (n, b).

    n_observed (b,), or None for whole numbers, counts the cells that are not NaN. Both
    ends in one pass: 25 million numbers take as long as their sum does.
    """
    n, b = values.shape
    for i in range(n):
        for j in range(b):
            x = values[i, j]
            low[j] = x if x < low[j] else low[j]
            high[j] = x if x > high[j] else high[j]
            if n_observed is not None:
                n_observed[j] += 1.0 if x == x else 0.0


@extremes.in_numpy
def _(values, low, high, n_observed):
    if len(values):
        np.fmin(low, np.fmin.reduce(values, axis=0), out=low)
        np.fmax(high, np.fmax.reduce(values, axis=0), out=high)
    if n_observed is not None:
        n_observed += np.count_nonzero(values == values, axis=0)


def least_and_most(cells):
    """Return smallest and largest value of every column (n, d); NaN if any cell is."""
    n, d = cells.shape
    fold = max(1, min(n, _FOLDED_BYTES // (d * cells.itemsize)))
    n_folded = n - n % fold
    folded = cells[:n_folded].reshape(-1, fold * d)
    is_float = cells.dtype.kind == "f"
    start = np.inf, -np.inf
    if not is_float:
        start = np.iinfo(cells.dtype).max, np.iinfo(cells.dtype).min
    low, high = (np.full(fold * d, end, cells.dtype) for end in start)
    n_observed = np.zeros(fold * d) if is_float else None
    extremes(folded, low, high, n_observed)
    if n_observed is not None:
        low[n_observed < len(folded)] = np.nan
        high[n_observed < len(folded)] = np.nan
    low, high = (
        np.concatenate([ends.reshape(fold, d), cells[n_folded:]])
        for ends in (low, high)
    )
    return low.min(axis=0), high.max(axis=0)


@kernel(plain=PLAIN_CELLS)
def join(a, b, parts_a, parts_b, out):
    """Write the sum for two codes of every row: out[i] = parts_a[a] + parts_b[b].

    a, b (n,) unsigned codes, parts by code, out (n,) unsigned.
    """
    for i in range(out.shape[0]):
        out[i] = parts_a[a[i]] + parts_b[b[i]]


@kernel(plain=PLAIN_CELLS)
def transpose(values, look_up, target, out):
    """Store row-major codes by column: values (n, b) -> rows target (b,) of out (d, n).

    With a look_up (b, 256), empty without, values are bytes, each of one code. A few
    rows at a time: 61 ms became 12 ms for 100,000 x 100.
    """
    n, b = values.shape
    for lo in range(0, n, _BUFFER_ROWS):
        hi = min(lo + _BUFFER_ROWS, n)
        for k in range(b):
            row = out[target[k]]
            if look_up.size:
                for i in range(lo, hi):
                    row[i] = look_up[k, values[i, k]]
            else:
                for i in range(lo, hi):
                    row[i] = values[i, k]


_ROWS = 64
# Products of this many posteriors do not underflow if each is above the least.
_MAX_FACTORS = 16
_MIN_FACTOR = 1e-18


@kernel()
def reweigh_two(values, starts, table, prior, y, user_weights, weights, hist):
    """Two classes: table (V,) and prior () are log-odds of the second."""
    n = values.shape[0]
    p = np.empty(_ROWS)
    loss = 0.0
    for lo in range(0, n, _ROWS):
        rows = min(_ROWS, n - lo)
        for r in range(rows):
            x = add_row(values[lo + r], starts, table, prior)
            p[r] = x if y[lo + r] == 1 else -x
        for r in range(rows):
            e = _exp(-abs(p[r]))
            p[r] = (1.0 if p[r] > 0.0 else e) / (1.0 + e)
        loss += _finish(p, rows, lo, values, starts, y, user_weights, weights, hist)
    return loss


@kernel()
def reweigh_many(values, starts, table, prior, y, user_weights, weights, hist):
    """Any number of classes: table (V, K), prior (K,)."""
    n, b = values.shape
    k = prior.size
    p = np.empty(_ROWS)
    s = np.empty(k)
    loss = 0.0
    for lo in range(0, n, _ROWS):
        rows = min(_ROWS, n - lo)
        for r in range(rows):
            row = values[lo + r]
            for c in range(k):
                s[c] = prior[c]
            for j in range(b):
                entry = table[starts[j] + row[j]]
                for c in range(k):
                    s[c] += entry[c]
            true = s[y[lo + r]]
            highest = s.max()
            total = 0.0
            for c in range(k):
                total += _exp(s[c] - highest)
            p[r] = _exp(true - highest) / total
        loss += _finish(p, rows, lo, values, starts, y, user_weights, weights, hist)
    return loss


@kernel(inline="always")
def _finish(p, rows, lo, values, starts, y, user_weights, weights, hist):
    """Add the losses of a few rows to their weights, and count them: () log-loss."""
    b = values.shape[1]
    unweighted = user_weights.size == 0
    loss = 0.0
    product = 1.0
    for r in range(rows):
        i = lo + r
        weights[i] += 1.0 - p[r]
        u = weights[i] if unweighted else weights[i] * user_weights[i]
        if unweighted and p[r] > _MIN_FACTOR:
            product *= p[r]
            if r % _MAX_FACTORS == _MAX_FACTORS - 1:
                loss -= math.log(product)
                product = 1.0
        elif p[r] > 0.0:
            loss -= math.log(p[r]) * (1.0 if unweighted else user_weights[i])
        else:
            loss = np.inf
        h = hist[y[i]]
        row = values[i]
        for j in range(b):
            h[starts[j] + row[j]] += u
    return loss - math.log(product)
