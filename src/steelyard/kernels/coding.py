"""Cells become codes by tables, and codes of two columns joint codes."""

from __future__ import annotations

import numpy as np

from steelyard.kernels.compiling import FEW, MANY, kernel

_BUFFER_ROWS = 256


@kernel(plain=MANY)
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


@kernel(plain=MANY)
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


@kernel(plain=MANY)
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


@kernel(plain=MANY)
def extremes(values, low, high, known):
    """Lower low (b,) and raise high (b,) to the cells of each column of values (n, b).

    known (b,), or None for whole numbers, counts the cells that are not NaN. Both ends
    in one pass: 25 million numbers take as long as their sum does.
    """
    n, b = values.shape
    for i in range(n):
        for j in range(b):
            x = values[i, j]
            low[j] = x if x < low[j] else low[j]
            high[j] = x if x > high[j] else high[j]
            if known is not None:
                known[j] += 1.0 if x == x else 0.0


@extremes.in_numpy
def _(values, low, high, known):
    if len(values):
        np.fmin(low, np.fmin.reduce(values, axis=0), out=low)
        np.fmax(high, np.fmax.reduce(values, axis=0), out=high)
    if known is not None:
        known += np.count_nonzero(values == values, axis=0)


@kernel(plain=FEW)
def join(a, b, parts_a, parts_b, out):
    """Write what two codes of every row add up to: out[i] = parts_a[a] + parts_b[b].

    a, b (n,) unsigned codes, parts by code, out (n,) unsigned.
    """
    for i in range(out.shape[0]):
        out[i] = parts_a[a[i]] + parts_b[b[i]]


@kernel(plain=FEW)
def transpose(values, look_up, target, out):
    """Store row-major codes by column: values (n, b) -> rows target (b,) of out (d, n).

    With a look_up (b, 256), empty without, values are bytes that stand for codes. A few
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
