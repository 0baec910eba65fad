"""Hash tables: approximate counts of equal rows, and cells for numbers.

A cell is a prefix of the bits of its numbers. The bits of a float64, flipped so that
they sort like the number, are its key; a cell is all keys with the same bits above
``shift``. Shapes: ``slots (2^b,)`` int32, the cell at each place of the hash table or
-1; ``bounds (m, 2)`` uint64, smallest and largest key of each cell; ``mass (m, K)`` its
weight by class. Only the first ``n_cells`` are in use.
"""

from __future__ import annotations

import numpy as np

from steelyard.kernels.compiling import kernel

# Rows at a time: their hashes stay in the first-level cache.
_ROWS = 1024

_SIGN = np.uint64(1 << 63)
_ZERO = np.uint64(0)

# 2^64 over the golden ratio: its product spreads neighbours over the whole table.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@kernel()
def add_hashes(values, starts, table, keys):
    """Add the hash of every code to that of its row: keys (n,) uint64 +=.

    values (n, b) unsigned codes, starts (b,) first table row of each column, table (V,)
    uint64
    """
    n, b = values.shape
    for lo in range(0, n, _ROWS):
        hi = min(lo + _ROWS, n)
        for j in range(b):
            start = starts[j]
            for i in range(lo, hi):
                keys[i] += table[start + values[i, j]]


@kernel()
def add_to_sketch(keys, sketch):
    """Count keys (n,) uint64 in two places each: sketch (2, 2^b) uint32 +=."""
    mask = np.uint64(sketch.shape[1] - 1)
    for i in range(keys.size):
        sketch[0, keys[i] & mask] += np.uint32(1)
        sketch[1, (keys[i] >> np.uint64(32)) & mask] += np.uint32(1)


@kernel()
def most_in_sketch(keys, sketch):
    """Return an upper bound of each key's count: (n,) float64."""
    mask = np.uint64(sketch.shape[1] - 1)
    out = np.empty(keys.size)
    for i in range(keys.size):
        one = sketch[0, keys[i] & mask]
        other = sketch[1, (keys[i] >> np.uint64(32)) & mask]
        out[i] = min(one, other)
    return out


@kernel()
def _unused_bits(slots):
    """Return by how many bits a hash is shifted to a place of slots (2^b,)."""
    n_bits = 0
    while 1 << n_bits < slots.size:
        n_bits += 1
    return np.uint64(64 - n_bits)


@kernel()
def _first_slot(prefix, unused):
    """Return the position at which the search for a prefix begins."""
    # The highest bits: the lowest of whole numbers are all zero.
    return np.int64((prefix * _GOLDEN) >> unused)


@kernel()
def add_numbers(bits, labels, weights, start, shift, slots, bounds, mass, n_cells):
    """Add the weight of numbers to their cells, from row ``start`` on.

    bits (n,) uint64 of float64 numbers, NaN left out; labels (n,); weights (n,) or (0,)
    for ones -> the first row that was not added, and the number of cells. It ends early
    if a new cell has no room in ``bounds``.
    """
    nan = np.uint64(0x7FF << 52)
    shift, unused = np.uint64(shift), _unused_bits(slots)
    for i in range(start, bits.size):
        b = bits[i]
        if b & ~_SIGN > nan:
            continue
        # Zeros of either sign are one number.
        if b == _SIGN:
            b = _ZERO
        key = ~b if b & _SIGN else b | _SIGN
        prefix = key >> shift
        slot = _first_slot(prefix, unused)
        cell = slots[slot]
        while cell >= 0 and bounds[cell, 0] >> shift != prefix:
            slot = (slot + 1) & (slots.size - 1)
            cell = slots[slot]
        if cell < 0:
            if n_cells == bounds.shape[0]:
                return i, n_cells
            cell = n_cells
            slots[slot] = cell
            bounds[cell, 0] = key
            bounds[cell, 1] = key
            mass[cell] = 0.0
            n_cells += 1
        elif key < bounds[cell, 0]:
            bounds[cell, 0] = key
        elif key > bounds[cell, 1]:
            bounds[cell, 1] = key
        mass[cell, labels[i]] += weights[i] if weights.size > 0 else 1.0
    return bits.size, n_cells


@kernel()
def place_cells(bounds, n_cells, shift, slots):
    """Enter all cells into an empty hash table: slots overwritten."""
    slots[:] = -1
    shift, unused = np.uint64(shift), _unused_bits(slots)
    for cell in range(n_cells):
        slot = _first_slot(bounds[cell, 0] >> shift, unused)
        while slots[slot] >= 0:
            slot = (slot + 1) & (slots.size - 1)
        slots[slot] = cell


def numbers_of_keys(keys):
    """Return the numbers behind keys: (n,) uint64 -> (n,) float64."""
    return np.where(keys & _SIGN, keys & ~_SIGN, ~keys).view(np.float64)


@kernel()
def measure(numbers, labels, weights, missing, sums):
    """Return the smallest and the largest number, and add up numbers by class.

    numbers (n,) NaN where missing, labels (n,), weights (n,) or (0,) for ones; by class
    (K,): the weight of missing cells and the weighted sum of the others, to which is
    added.
    """
    added = np.zeros_like(sums)
    low, high = np.inf, -np.inf
    for i in range(numbers.size):
        x, c = numbers[i], labels[i]
        weight = weights[i] if weights.size > 0 else 1.0
        if x != x:
            missing[c] += weight
            continue
        low, high = min(low, x), max(high, x)
        added[c] += weight * x
    # Sums of chunks are added to sums of chunks: fewer digits are lost.
    sums += added
    return low, high
