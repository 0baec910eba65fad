"""Many weight vectors scored at once.

Shapes: ``columns (d, r)`` codes of a few rows, ``starts (d,)`` int64, ``group (r,)``
which tables a row reads, ``differences (K - 1, G, V)`` log-probabilities less those of
the first class, ``odds (K - 1, r, P)`` their weighted sums for P weight vectors,
``base (r, K)`` log priors, which also decide ties.
"""

from __future__ import annotations

from steelyard.kernels.compiling import kernel


@kernel
def look_up(columns, starts, group, differences, out):
    """Fill the difference of every class, attribute and row: out (K - 1, d, r)."""
    n_others, n_groups, _ = differences.shape
    d, r = columns.shape
    for c in range(n_others):
        for j in range(d):
            codes, filled, start = columns[j], out[c, j], starts[j]
            if n_groups == 1:
                table = differences[c, 0, start:]
                for i in range(r):
                    filled[i] = table[codes[i]]
            else:
                for i in range(r):
                    filled[i] = differences[c, group[i], start + codes[i]]


@kernel
def weight_right(odds, base, y, u, right):
    """Add the weight of the rows that each weight vector gets right to right (P,)."""
    n_others, r, n_vectors = odds.shape
    for i in range(r):
        for p in range(n_vectors):
            best, top = 0, 0.0
            for c in range(n_others):
                now = odds[c, i, p] + (base[i, c + 1] - base[i, 0])
                if now > top or (now == top and base[i, c + 1] > base[i, best]):
                    best, top = c + 1, now
            if best == y[i]:
                right[p] += u[i]


@kernel
def weight_right_two(odds, base, y, u, right):
    """Do as ``weight_right`` for two classes; vectors innermost, to be vectorised."""
    _, r, n_vectors = odds.shape
    for i in range(r):
        shift = base[i, 1] - base[i, 0]
        second, weight = y[i] == 1, u[i]
        # A tie goes to the class with the larger prior.
        ties_count = (shift > 0.0) == second
        row = odds[0, i]
        for p in range(n_vectors):
            margin = row[p] + shift if second else -(row[p] + shift)
            is_right = margin >= 0.0 if ties_count else margin > 0.0
            right[p] += weight if is_right else 0.0
