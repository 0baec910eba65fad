"""Codes of several columns: joint codes, joint frequencies, scores of interactions.

The residual and the curvature of a row travel as one complex number, its real and its
imaginary part: they are always added to the same cell, which takes one step so.
"""

from __future__ import annotations

import math

import numpy as np

from steelyard.kernels.compiling import NUMPY_CELLS, kernel

TABLES = 4
"""Tables that are filled at a time: additions to the same cell wait less."""


@kernel(plain=NUMPY_CELLS)
def pack(values, parts, groups, out):
    """Join small codes: out[i, groups[j]] += parts[j, values[i, j]].

    values (n, b) uint8, parts (b, 256) uint8, groups (b,) uint64, out (n, g) uint8,
    zero at the start.
    """
    n, b = values.shape
    for i in range(n):
        row = out[i]
        for j in range(b):
            row[groups[j]] += parts[j, values[i, j]]


@pack.in_numpy
def _(values, parts, groups, out):
    for j, group in enumerate(groups.tolist()):
        out[:, group] += parts[j][values[:, j]]


@kernel(plain=NUMPY_CELLS)
def expand(members, table, out):
    """Add rows of attributes to those of joint codes: table (V, C), out (V', C) +=.

    members (a, 5): first row of an attribute in the table, how many it has, how often
    each comes in turn, the first joint code, and how often that is repeated.
    """
    width = table.shape[1]
    joint = out.reshape(-1)
    for a in range(len(members)):
        first, size, stride = members[a, 0], members[a, 1], members[a, 2]
        plain = table[first : first + size].reshape(-1)
        at = members[a, 3] * width
        for _ in range(members[a, 4]):
            if stride == 1:
                block = joint[at : at + len(plain)]
                for e in range(len(plain)):
                    block[e] += plain[e]
                at += len(plain)
                continue
            for v in range(size):
                block = joint[at : at + stride * width]
                for c in range(width):
                    x = plain[v * width + c]
                    for s in range(stride):
                        block[s * width + c] += x
                at += stride * width


@expand.in_numpy
def _(members, table, out):
    for first, size, stride, start, repeats in members.tolist():
        block = out[start : start + repeats * size * stride]
        block = block.reshape(repeats, size, stride, -1)
        block += table[first : first + size, None]


@kernel(plain=NUMPY_CELLS)
def collapse(members, packed, out):
    """Transpose of ``expand``: packed (V', C), out (V, C) +=."""
    width = packed.shape[1]
    joint = packed.reshape(-1)
    for a in range(len(members)):
        first, size, stride = members[a, 0], members[a, 1], members[a, 2]
        plain = out[first : first + size].reshape(-1)
        at = members[a, 3] * width
        for _ in range(members[a, 4]):
            if stride == 1:
                block = joint[at : at + len(plain)]
                for e in range(len(plain)):
                    plain[e] += block[e]
                at += len(plain)
                continue
            for v in range(size):
                block = joint[at : at + stride * width]
                for c in range(width):
                    x = plain[v * width + c]
                    for s in range(stride):
                        x += block[s * width + c]
                    plain[v * width + c] = x
                at += stride * width


@collapse.in_numpy
def _(members, packed, out):
    for first, size, stride, start, repeats in members.tolist():
        block = packed[start : start + repeats * size * stride]
        block = block.reshape(repeats, size, stride, -1)
        for r, s in np.ndindex(repeats, stride):
            out[first : first + size] += block[r, :, s]


@kernel()
def count_pairs(first, others, weights, tables):
    """Add row weights by the codes of one column and some others: tables (g, A, B) +=.

    first (n,), others (g, n) unsigned, weights (n,) or None for ones. With one table,
    two rows of equal codes wait for each other: 0.42 ns per row and table, against 0.30
    ns with four at once.
    """
    if others.shape[0] == TABLES:
        for i in range(first.shape[0]):
            a = first[i]
            u = 1 if weights is None else weights[i]
            for g in range(TABLES):  # a constant, so that the loop is unrolled
                tables[g, a, others[g, i]] += u
        return
    for g in range(others.shape[0]):
        for i in range(first.shape[0]):
            u = 1 if weights is None else weights[i]
            tables[g, first[i], others[g, i]] += u


@kernel(inline="always")
def _entropy(counts, total):
    """Entropy in bits of counts (K,) with their total ()."""
    entropy = 0.0
    for c in range(counts.size):
        if counts[c] > 0:
            entropy -= counts[c] / total * math.log2(counts[c] / total)
    return entropy


@kernel()
def _add_up(table, rows, columns, out):
    """Write mutual information of rows and columns of counts, and their entropies.

    table (A, B) of counts or weights, rows (A,) and columns (B,) room for their sums,
    out (3,) in bits, 0 for an empty table.
    """
    rows[:] = 0.0
    columns[:] = 0.0
    out[:] = 0.0
    for a in range(rows.size):
        for b in range(columns.size):
            rows[a] += table[a, b]
            columns[b] += table[a, b]
    total = rows.sum()
    if total <= 0.0:
        return
    mutual = 0.0
    for a in range(rows.size):
        for b in range(columns.size):
            x = float(table[a, b])
            if x > 0.0:
                mutual += x / total * math.log2(x / rows[a] * (total / columns[b]))
    out[0] = max(mutual, 0.0)
    out[1] = max(_entropy(rows, total), 0.0)
    out[2] = max(_entropy(columns, total), 0.0)


@kernel()
def information(table):
    """Mutual information of rows and columns of counts, and their entropies, in bits.

    table (A, B) of counts or weights -> (3,), 0 for an empty table.
    """
    out = np.empty(3)
    _add_up(table, np.empty(table.shape[0]), np.empty(table.shape[1]), out)
    return out


@kernel()
def measure_pairs(first, others, weights, tables, out):
    """Count one column with each of some others, and write information of each table.

    first (n,), others (g, n) unsigned, weights (n,) or None for ones, tables (t, A, B)
    room for some tables at a time, out (g, 3) mutual information and entropies. The
    columns of a wide table are many and short: with a loop over them in Python it took
    five times as long.
    """
    rows, columns = np.empty(tables.shape[1] - 1), np.empty(tables.shape[2] - 1)
    for lo in range(0, others.shape[0], tables.shape[0]):
        hi = min(lo + tables.shape[0], others.shape[0])
        tables[:] = 0
        count_pairs(first, others[lo:hi], weights, tables)
        for g in range(lo, hi):
            _add_up(tables[g - lo, 1:, 1:], rows, columns, out[g])


@kernel()
def count_later_pairs(columns, offsets, first, y, weights, table):
    """Add rows to the joint table of one column with all later ones: table (V, V, K).

    columns (d, n) codes, offsets (d,) first table row of each column, ``first`` the
    position of the one, y (n,) classes, weights (n,) or None for ones. Columns write to
    different rows of the table, so that threads may share it.
    """
    d, n = columns.shape
    for i in range(n):
        c = y[i]
        u = 1.0 if weights is None else weights[i]
        row = table[offsets[first] + columns[first, i]]
        for k in range(first + 1, d):
            row[offsets[k] + columns[k, i], c] += u


@kernel()
def _add_one_class(first, others, left, start, stop, tables):
    """Add up one number per row: tables (4, A, B, 1) += for up to four columns."""
    if others.shape[0] == TABLES:
        for i in range(start, stop):
            a = first[i]
            z = left[i, 0]
            for g in range(TABLES):  # a constant, so that the loop is unrolled
                tables[g, a, others[g, i], 0] += z
        return
    for g in range(others.shape[0]):
        for i in range(start, stop):
            tables[g, first[i], others[g, i], 0] += left[i, 0]


@kernel()
def _add_classes(first, others, left, start, stop, tables):
    """Add up a number per row and class: tables (4, A, B, C) +=."""
    for g in range(others.shape[0]):
        for i in range(start, stop):
            cell = tables[g, first[i], others[g, i]]
            for c in range(left.shape[1]):
                cell[c] += left[i, c]


@kernel()
def score_interactions(first, others, n_first, n_others, left, ends, scores):
    """Score one column with each of some others, by sums over the cells of both.

    first (n,), others (p, n) coarse codes, 0 for unknown; n_first and n_others (p,) how
    many there are; left (n, C) residuals and curvatures as complex numbers; ends (f,)
    where each fold of the rows ends; scores (p, f + 1), the last for all rows, the
    others for all but one fold.

    The gain of a step against a ridge of one, less what noise would gain:
    sum G^2 / (H + 1) - sum H / (H + 1) over cells and classes.
    """
    n_folds = ends.shape[0]
    width = left.shape[1]
    most = n_others.max() if n_others.size else 1
    tables = np.empty((n_folds, TABLES, n_first, most, width), dtype=np.complex128)
    for low in range(0, others.shape[0], TABLES):
        some = others[low : low + TABLES]
        tables[:] = 0.0
        start = 0
        for f in range(n_folds):
            if width == 1:
                _add_one_class(first, some, left, start, ends[f], tables[f])
            else:
                _add_classes(first, some, left, start, ends[f], tables[f])
            start = ends[f]
        for g in range(some.shape[0]):
            _score(tables[:, g], n_others[low + g], scores[low + g])


@kernel()
def _score(tables, n_second, scores):
    """Score one interaction by tables of its folds (f, A, B, C): scores (f + 1,)."""
    n_folds, n_first, _, width = tables.shape
    scores[:] = 0.0
    for a in range(1, n_first):
        for b in range(1, n_second):
            for c in range(width):
                total = 0.0j
                for f in range(n_folds):
                    total += tables[f, a, b, c]
                scores[n_folds] += _gain(total)
                for f in range(n_folds):
                    scores[f] += _gain(total - tables[f, a, b, c])


@kernel(inline="always")
def _gain(left):
    return (left.real * left.real - left.imag) / (left.imag + 1.0)
