"""Pairs of columns: joint frequencies of two codes, and what they tell."""

from __future__ import annotations

import math

import numpy as np

from steelyard.kernels.compiling import kernel
from steelyard.kernels.cuts import _entropy

TABLES = 4
"""How many pair tables are best counted at a time."""


@kernel
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


@kernel
def information(table):
    """Mutual information of rows and columns of counts, and their entropies, in bits.

    table (A, B) of counts or weights -> three numbers, 0 for an empty table.
    """
    n_rows, n_columns = table.shape
    rows, columns = np.zeros(n_rows), np.zeros(n_columns)
    for a in range(n_rows):
        for b in range(n_columns):
            rows[a] += table[a, b]
            columns[b] += table[a, b]
    total = rows.sum()
    if total <= 0.0:
        return 0.0, 0.0, 0.0
    mutual = 0.0
    for a in range(n_rows):
        for b in range(n_columns):
            x = float(table[a, b])
            if x > 0.0:
                mutual += x / total * math.log2(x / rows[a] * (total / columns[b]))
    entropies = max(_entropy(rows, total), 0.0), max(_entropy(columns, total), 0.0)
    return max(mutual, 0.0), entropies[0], entropies[1]


@kernel
def count_all_pairs(columns, offsets, y, weights, table):
    """Add rows to the joint table of all pairs of codes by class: table (V, V, K) +=.

    columns (d, n) codes, offsets (d,) first table row of each column; a column is also
    paired with itself.
    """
    d, n = columns.shape
    every = weights.size == 0
    for i in range(n):
        c = y[i]
        u = 1.0 if every else weights[i]
        for j in range(d):
            row = table[offsets[j] + columns[j, i]]
            for k in range(d):
                row[offsets[k] + columns[k, i], c] += u


@kernel
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
