"""Kernels that find cut points in one sorted column and apply them."""

from __future__ import annotations

import math

import numpy as np

from steelyard.kernels.compiling import NUMPY_CELLS, PLAIN_CELLS, kernel

_LOG2 = math.log(2.0)
_UNITS_PER_BIT = 2.0**57

# Up to here `bin_codes` counts, beyond it bisects. 1e6 normal values, ms, and in
# brackets np.searchsorted: 1.9 (18) for 9 edges, 5.7 (35) for 64, 20 (49) for 255,
# 55 (62) for 1000. AVX2 and AVX-512 differ little.
_COUNTED_EDGES = 256


@kernel(plain=NUMPY_CELLS)
def split_columns(block, out):
    """Copy the columns of a row-major block (n, d) to the rows of out (d, n)."""
    # Row by row, with d streams of writes: 8.5 ms for 1e6 x 8 out of 1e6 x 20, against
    # 46 ms for the same assignment in NumPy and 44 ms for eight strided copies.
    for i in range(block.shape[0]):
        for j in range(block.shape[1]):
            out[j, i] = block[i, j]


@split_columns.in_numpy
def _(block, out):
    out[:] = block.T


@kernel(plain=NUMPY_CELLS)
def bin_codes(values, edges, out, first):
    """Write ``first`` plus the number of edges below each value; 0 if it is NaN.

    values (n,), edges (e,) increasing, out (n,) uint, overwritten, first ()
    """
    # Counting the edges below x has no branches and is vectorised; bisection guesses
    # wrong at every other step. See `_COUNTED_EDGES` for the figures.
    if edges.size <= _COUNTED_EDGES:
        for i in range(values.size):
            x = values[i]
            below = 0
            for e in range(edges.size):
                below += x > edges[e]
            out[i] = first + below if x == x else 0
        return

    for i in range(values.size):
        x = values[i]
        low = 0
        high = edges.size
        while low < high:
            middle = (low + high) >> 1
            if edges[middle] < x:
                low = middle + 1
            else:
                high = middle
        out[i] = first + low if x == x else 0


@bin_codes.in_numpy
def _(values, edges, out, first):
    out[:] = np.where(values == values, first + np.searchsorted(edges, values), 0)


@kernel(plain=PLAIN_CELLS, inline="always")
def midpoint(low, high):
    """Return a cut between two numbers: at least ``low``, and below ``high``.

    low (), high () finite, low <= high -> (); the number itself if both are equal
    """
    middle = 0.5 * low + 0.5 * high
    if abs(low) < 1e300 and abs(high) < 1e300:
        middle = 0.5 * (low + high)

    # Between neighbouring doubles the mean rounds to one of them: it has to be the
    # lower one, because a value equal to the cut goes left.
    if middle >= high:
        middle = low
    return middle


def midpoints(lows, highs):
    """Return the same of many: lows (c,), highs (c,) -> (c,)."""
    with np.errstate(over="ignore"):
        middle = 0.5 * (lows + highs)
    is_large = (np.abs(lows) >= 1e300) | (np.abs(highs) >= 1e300)
    middle = np.where(is_large, 0.5 * lows + 0.5 * highs, middle)
    return np.where(middle >= highs, lows, middle)


@kernel(plain=1 << 16)
def fill_xlog2(table, scale):
    """Write i log2(i) in units of 1 / scale to table (t,), zero at the start."""
    for i in range(2, table.size):
        table[i] = int(np.rint(i * math.log2(i) * scale))


@kernel()
def _term(count, table, scale):
    """Return count * log2(count) in units of 1 / scale, from the table if possible."""
    if count <= 0:
        return 0
    if count < table.size:
        i = int(count)
        if i == count:
            return table[i]
    return int(np.rint(count * math.log2(count) * scale))


@kernel()
def _class_counts(labels, weights, start, stop, counts):
    """Count the classes among the rows start .. stop - 1 and return the total.

    labels (n,), weights (n,) or (0,), counts (K,) overwritten -> ()
    """
    for c in range(counts.size):
        counts[c] = 0
    for i in range(start, stop):
        counts[labels[i]] += weights[i] if weights.size > 0 else 1
    total = 0
    for c in range(counts.size):
        total += counts[c]
    return total


@_class_counts.in_numpy
def _(labels, weights, start, stop, counts):
    some = weights[start:stop] if weights.size else None
    counts[:] = np.bincount(labels[start:stop], some, counts.size)
    return sum(counts.tolist())


@kernel(inline="always")
def _best_cut(values, labels, weights, start, stop, counts, total, table, scale, left):
    """Find the cut of least class entropy among the rows start .. stop - 1.

    values (n,) sorted, labels (n,), weights (n,) or (0,), counts (K,) and total () of
    these rows, table (t,), scale (), left (K,) overwritten -> position of the first row
    on the right, or -1 if no cut lowers the entropy, and the number of candidate cuts
    """
    # N times the entropy is N log2 N - sum n_c log2 n_c. The terms are whole numbers
    # (fixed point), which add up exactly in any order: cuts that are equal by symmetry
    # compare equal, classes may be renamed, a weight of two is a repeated row, and the
    # sum over both sides can be updated in O(1) per row without drift. 1e6 rows take
    # 5 ms with 2 or 10 classes, and 34 ms with weights that are not whole.
    class_terms = 0
    for c in range(counts.size):
        left[c] = 0
        class_terms += _term(counts[c], table, scale)

    best = -1
    best_cost = _term(total, table, scale) - class_terms
    n_candidates = 0
    n_left = 0
    for i in range(start, stop - 1):
        c = labels[i]
        weight = weights[i] if weights.size > 0 else 1

        n_left += weight
        before = left[c]
        after = before + weight
        left[c] = after
        class_terms += _term(after, table, scale) - _term(before, table, scale)
        class_terms += _term(counts[c] - after, table, scale)
        class_terms -= _term(counts[c] - before, table, scale)

        # Every pair of distinct neighbours is a candidate. Looking at class boundaries
        # alone (Fayyad's theorem) would save two look-ups and give the same cut.
        if values[i] < values[i + 1]:
            n_candidates += 1
            sides = _term(n_left, table, scale) + _term(total - n_left, table, scale)
            if sides - class_terms < best_cost:
                best_cost = sides - class_terms
                best = i + 1
    return best, n_candidates


@_best_cut.in_numpy
def _(values, labels, weights, start, stop, counts, total, table, scale, left):
    if weights.dtype.kind == "f":  # NumPy's logarithms are not those of libm
        if values.size > PLAIN_CELLS:
            raise TypeError
        return _best_cut.py_func(
            values, labels, weights, start, stop, counts, total, table, scale, left
        )
    # For each row the weight of its class up to it, by sorting rows by class.
    c = labels[start : stop - 1]
    u = weights[start : stop - 1] if weights.size else np.ones(c.size, dtype=np.int64)
    left[:] = np.bincount(c, u, counts.size)
    order = np.argsort(c, kind="stable")
    after = np.empty(c.size, dtype=np.int64)
    after[order] = np.cumsum(u[order])
    after -= (np.cumsum(left) - left)[c]
    before, totals = after - u, counts[c]
    terms = (
        table[after] - table[before] + table[totals - after] - table[totals - before]
    )
    n_left = np.cumsum(u)
    cost = table[n_left] + table[total - n_left] - table[counts].sum() - terms.cumsum()
    distinct = values[start : stop - 1] < values[start + 1 : stop]
    n_candidates = np.count_nonzero(distinct)
    cost = np.where(distinct, cost, table[total])
    best = int(cost.argmin())
    if cost[best] < table[total] - table[counts].sum():
        return start + best + 1, n_candidates
    return -1, n_candidates


@kernel(inline="always")
def _entropy(counts, total):
    """Entropy in bits of counts (K,) with their total ()."""
    # Again whole numbers, so that no order of the classes accepts a cut that another
    # one refuses. Less than log2 K bits, they fit for any K.
    units = 0
    for c in range(counts.size):
        if counts[c] > 0:
            share = counts[c] / total
            units -= int(np.rint(share * math.log2(share) * _UNITS_PER_BIT))
    return units / _UNITS_PER_BIT


@kernel(inline="always")
def _n_present(counts):
    """Count the classes present in counts (K,)."""
    present = 0
    for c in range(counts.size):
        present += 1 if counts[c] > 0 else 0
    return present


@kernel(inline="always")
def _fayyad_irani_accepts(counts, left, right, sizes, n_cuts):
    """Whether the gain of a cut pays for its description; all counts (K,)."""
    total, n_left, n_right = sizes
    entropy = _entropy(counts, total)
    left_entropy = _entropy(left, n_left)
    right_entropy = _entropy(right, n_right)
    gain = entropy - (n_left * left_entropy + n_right * right_entropy) / total

    # log2(3^k - 2) in the form that does not overflow for many classes.
    k = _n_present(counts)
    choices = k * math.log2(3.0) + math.log1p(-2.0 * math.pow(3.0, -float(k))) / _LOG2
    spread = k * entropy
    spread -= _n_present(left) * left_entropy + _n_present(right) * right_entropy
    return gain > 0.0 and gain > (math.log2(n_cuts) + choices - spread) / total


@kernel()
def _labelling_bits(counts, total, k):
    """Bits to send the class counts (K,), of which k may occur, and then the labels."""
    # log C(N + k - 1, k - 1) + log (N! / prod n_c!); the two N! cancel.
    nats = math.lgamma(total + k) - math.lgamma(k)
    for c in range(counts.size):
        nats -= math.lgamma(counts[c] + 1.0)
    return nats / _LOG2


@kernel(inline="always")
def _kononenko_accepts(counts, left, right, sizes, n_cuts):
    """Whether the labels are shorter to send with the cut than without."""
    total, n_left, n_right = sizes
    k = _n_present(counts)
    before = _labelling_bits(counts, total, k)
    after = _labelling_bits(left, n_left, k) + _labelling_bits(right, n_right, k)
    after = math.log2(n_cuts) + after

    # Both are logarithms of products of whole numbers and can be equal, as for classes
    # 0, 0, 1: a difference within the rounding of lgamma is no difference.
    return before - after > 1e-13 * math.lgamma(total + k)


@kernel(plain=NUMPY_CELLS)
def mdl_cuts(
    values,
    labels,
    weights,
    kononenko,
    better_encoding,
    table,
    scale,
    counts,
    ranges,
    cuts,
):
    """Cut a sorted column in two, recursively, while the cut pays for itself.

    values (n,) sorted, labels (n,), weights (n,) or (0,) int or float, table (t,) of
    `fill_xlog2`, scale () -> number of cuts, in the order in which they were found;
    kononenko () True, or None for Fayyad and Irani: one of two is compiled. Written to:
    counts (3, K) of the type of weights, ranges (66, 2) int64, cuts (n,).
    """
    totals, left, right = counts[0], counts[1], counts[2]
    n_found = 0

    # Ranges that remain. The shorter part of a cut range is taken first, so that at
    # most log2(n) wait at any time.
    ranges[0, 0] = 0
    ranges[0, 1] = values.size
    waiting = 1
    while waiting > 0:
        waiting -= 1
        start, stop = ranges[waiting, 0], ranges[waiting, 1]
        total = _class_counts(labels, weights, start, stop, totals)
        if total < 2 or _n_present(totals) < 2:
            continue
        cut, n_candidates = _best_cut(
            values, labels, weights, start, stop, totals, total, table, scale, left
        )
        if cut < 0:
            continue
        n_left = _class_counts(labels, weights, start, cut, left)
        n_right = _class_counts(labels, weights, cut, stop, right)
        n_cuts = float(n_candidates) if better_encoding else float(total - 1)
        sizes = total, n_left, n_right
        if kononenko is None:
            accepted = _fayyad_irani_accepts(totals, left, right, sizes, n_cuts)
        else:
            accepted = _kononenko_accepts(totals, left, right, sizes, n_cuts)
        if not accepted:
            continue
        cuts[n_found] = midpoint(values[cut - 1], values[cut])
        n_found += 1
        shorter = 1 if cut - start > stop - cut else 0
        ranges[waiting + shorter, 0], ranges[waiting + shorter, 1] = cut, stop
        ranges[waiting + 1 - shorter, 0], ranges[waiting + 1 - shorter, 1] = start, cut
        waiting += 2
    return n_found
