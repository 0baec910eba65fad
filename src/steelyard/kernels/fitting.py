"""One pass over the rows for a loss and its gradient.

Each kernel gathers the scores of a few rows, turns them into the gradient with respect
to the scores, and scatters that gradient into a table of soft counts, while the rows
are still in the cache. The soft counts contracted with log-probabilities give the
gradient of any kind of weight.

Shapes: ``values (n, b)`` unsigned codes in C order, ``starts (b,)`` uint64, ``y (n,)``
uint32, ``weights (n,)`` or empty for ones. ``kind`` and ``a`` choose the loss, one
of ``kernels.losses``; None is the deviance, for which nothing else is compiled.
"""

from __future__ import annotations

import math

import numpy as np

from steelyard.kernels.compiling import NUMPY_CELLS, PLAIN_CELLS, kernel
from steelyard.kernels.losses import deviance, odds_loss, posterior, scores_loss
from steelyard.kernels.scoring import _exp, add_row, gather_row

ROWS = 64
_TINY = 1e-6


@kernel(plain=PLAIN_CELLS, error_model="numpy")
def evaluate_two(values, starts, table, odds, y, weights, kind, a, slope, counts):
    """Loss of two classes: table (V,), odds (n,) -> slope (n,), counts (V,) +=.

    ``odds`` begin as contributions that do not come from codes, and end as sums of all.
    Returns the loss.
    """
    n, b = values.shape
    unweighted = weights.size == 0
    total = 0.0
    for lo in range(0, n, ROWS):
        hi = lo + ROWS if lo + ROWS < n else n
        for i in range(lo, hi):
            odds[i] = add_row(values[i], starts, table, odds[i])
        if kind is None:
            # log(1 + e^t) = max(t, 0) + log(1 + e^-|t|); the second logarithms of a
            # block are one logarithm of a product below 2**64.
            for i in range(lo, hi):
                slope[i] = _exp(-abs(a * odds[i]))
            product = 1.0
            for i in range(lo, hi):
                positive = y[i] == 1
                t = -a * odds[i] if positive else a * odds[i]
                e = slope[i]
                q = (1.0 if t > 0.0 else e) / (1.0 + e)
                d = -a * q if positive else a * q
                above = 0.0 if t < 0.0 else t
                if unweighted:
                    total += above
                    if e < _TINY:
                        # 1 + e would drop digits that matter when all losses are tiny.
                        total += e - 0.5 * e * e
                    else:
                        product *= 1.0 + e
                else:
                    u = weights[i]
                    total += u * (above + math.log1p(e))
                    d *= u
                slope[i] = d
            total += math.log(product)
        else:
            for i in range(lo, hi):
                u = 1.0 if unweighted else weights[i]
                value, d = odds_loss(odds[i], y[i] == 1, kind, a)
                total += u * value
                slope[i] = u * d
        for i in range(lo, hi):
            row = values[i]
            d = slope[i]
            for j in range(b):
                counts[starts[j] + row[j]] += d
    return total


@kernel(inline="always")
def _scatter_row(row, starts, s, counts, width):
    """Add a row's gradient to the rows of its codes: counts (V, C) +=."""
    for j in range(row.shape[0]):
        h = counts[starts[j] + row[j]]
        for c in range(width):
            h[c] += s[c]


@kernel(plain=PLAIN_CELLS, error_model="numpy")
def evaluate_many(
    values, starts, table, scores, y, weights, kind, a, counts, work, lanes
):
    """Loss of many classes: table (V, K), counts (V, K) +=; returns the loss.

    ``scores (n, K)`` begin as contributions that do not come from codes, and end as the
    gradient with respect to the scores; ``work (ROWS K,)`` is written to. ``lanes`` is
    a tuple of K numbers if the kernel is to be compiled for K classes, empty otherwise:
    loops of a known length are unrolled.
    """
    n = values.shape[0]
    n_classes = len(lanes) if len(lanes) > 0 else scores.shape[1]
    total = 0.0
    for lo in range(0, n, ROWS):
        hi = lo + ROWS if lo + ROWS < n else n
        for i in range(lo, hi):
            gather_row(values[i], starts, table, scores[i], n_classes)
        if kind is None:
            # Exponentials of all rows in a separate loop, which is vectorised.
            at = 0
            for i in range(lo, hi):
                s = scores[i]
                top = s[0]
                for c in range(1, n_classes):
                    top = s[c] if s[c] > top else top
                for c in range(n_classes):
                    work[at] = a * (s[c] - top)
                    at += 1
            for k in range(at):
                work[k] = _exp(work[k])
            at = 0
            for i in range(lo, hi):
                u = 1.0 if weights.size == 0 else weights[i]
                total = deviance(scores[i], work, at, y[i], u, a, n_classes, total)
                at += n_classes
        else:
            for i in range(lo, hi):
                u = 1.0 if weights.size == 0 else weights[i]
                total = scores_loss(scores[i], y[i], u, kind, a, total)
        for i in range(lo, hi):
            _scatter_row(values[i], starts, scores[i], counts, n_classes)
    return total


@kernel(inline="always")
def _mix(s, c_true, u, alpha, printed, k, total, d_alpha):
    """Turn the scores s (2 K,) of a row into their gradient.

    Returns the totals plus the loss of the row and its derivative by alpha.
    """
    posterior(s[:k], 1.0)
    posterior(s[k:], 1.0)
    inner_d = 0.0
    inner_i = 0.0
    for c in range(k):
        r = alpha * s[c] + (1.0 - alpha) * s[k + c]
        r -= 1.0 if c == c_true else 0.0
        total += 0.5 * u * r * r
        d_alpha += u * r * (s[c] - s[k + c])
        inner_d += r * s[c]
        inner_i += r * s[k + c]
    for c in range(k):
        p, q = s[c], s[k + c]
        r = alpha * p + (1.0 - alpha) * q
        r -= 1.0 if c == c_true else 0.0
        s[c] = u * alpha * p * (r * (1.0 - p) if printed else r - inner_d)
        s[k + c] = u * (1.0 - alpha) * q * (r - inner_i)
    return total, d_alpha


@kernel(error_model="numpy")
def evaluate_mixture(
    values, starts, table, scores, y, weights, alpha, printed, counts, lanes
):
    """Squared error of a mixture of two posteriors, for many classes.

    table, scores and counts have 2 K columns, those of the class-specific half first;
    ``lanes`` has as many numbers if the kernel is to be compiled for K classes.
    Returns the loss and its derivative with respect to alpha.
    """
    width = len(lanes) if len(lanes) > 0 else scores.shape[1]
    total = 0.0
    d_alpha = 0.0
    for i in range(values.shape[0]):
        s = scores[i]
        u = 1.0 if weights.size == 0 else weights[i]
        gather_row(values[i], starts, table, s, width)
        total, d_alpha = _mix(s, y[i], u, alpha, printed, width // 2, total, d_alpha)
        _scatter_row(values[i], starts, s, counts, width)
    return total, d_alpha


@kernel(error_model="numpy")
def evaluate_mixture_two(
    values, starts, table, odds, y, weights, alpha, printed, counts
):
    """Squared error of a mixture for two classes, in log-odds.

    table (V, 2), odds (n, 2) and counts (V, 2) have a column for the class-specific
    half and the shared one; ``odds`` end as the gradient. Returns loss and slope of
    alpha.
    """
    n, b = values.shape
    total = 0.0
    d_alpha = 0.0
    first = np.empty(ROWS)
    second = np.empty(ROWS)
    for lo in range(0, n, ROWS):
        rows = min(ROWS, n - lo)
        for r in range(rows):
            row = values[lo + r]
            x = odds[lo + r, 0]
            z = odds[lo + r, 1]
            for j in range(b):
                t = table[starts[j] + row[j]]
                x += t[0]
                z += t[1]
            odds[lo + r, 0] = x
            odds[lo + r, 1] = z
            first[r] = -abs(x)
            second[r] = -abs(z)
        for r in range(rows):
            first[r] = _exp(first[r])
        for r in range(rows):
            second[r] = _exp(second[r])
        for r in range(rows):
            i = lo + r
            p = (1.0 if odds[i, 0] > 0.0 else first[r]) / (1.0 + first[r])
            q = (1.0 if odds[i, 1] > 0.0 else second[r]) / (1.0 + second[r])
            u = 1.0 if weights.size == 0 else weights[i]
            e = alpha * p + (1.0 - alpha) * q - (1.0 if y[i] == 1 else 0.0)
            total += u * e * e
            d_alpha += 2.0 * u * e * (p - q)
            odds[i, 0] = (1.0 if printed else 2.0) * u * alpha * e * p * (1.0 - p)
            odds[i, 1] = 2.0 * u * (1.0 - alpha) * e * q * (1.0 - q)
        for r in range(rows):
            row = values[lo + r]
            x = odds[lo + r, 0]
            z = odds[lo + r, 1]
            for j in range(b):
                h = counts[starts[j] + row[j]]
                h[0] += x
                h[1] += z
    return total, d_alpha


@kernel(plain=NUMPY_CELLS)
def scatter(values, starts, gradient, counts):
    """Add rows to the tables of their codes: gradient (n, C), counts (V, C) +=."""
    for i in range(values.shape[0]):
        _scatter_row(values[i], starts, gradient[i], counts, gradient.shape[1])


@scatter.in_numpy
def _(values, starts, gradient, counts):
    where = (values + starts.astype(np.int64)).ravel()
    np.add.at(counts, where, np.repeat(gradient, values.shape[1], axis=0))


# ------------------------------------------------------------------ effects of values


@kernel(inline="always")
def _add_sparse(starts, columns, entries, i, values, out):
    """Add a row of a sparse matrix times values (m, C): out (C,) +=."""
    if out.shape[0] == 2:
        # In variables: what is written to out might change the values, for all that
        # the compiler knows.
        x, y = out[0], out[1]
        for e in range(starts[i], starts[i + 1]):
            row = values[columns[e]]
            x += entries[e] * row[0]
            y += entries[e] * row[1]
        out[0], out[1] = x, y
        return
    for e in range(starts[i], starts[i + 1]):
        row, entry = values[columns[e]], entries[e]
        for c in range(out.shape[0]):
            out[c] += entry * row[c]


@kernel(plain=NUMPY_CELLS)
def weigh_table(owners, weights, values, starts, columns, entries, effects, out):
    """Weigh values (V, K) by attribute, and add effects: out (V, K), zero at the start.

    owners (V,), weights (d, K); starts (V + 1,), columns and entries (z,) are a sparse
    matrix of shape (V, m), effects (m, K). Positions are unsigned: others might count
    from the end, and asking takes 58 µs in place of 34 for 36,000 entries.
    """
    for v in range(len(owners)):
        _add_sparse(starts, columns, entries, v, effects, out[v])
        weight, row = weights[owners[v]], values[v]
        for c in range(out.shape[1]):
            out[v, c] += weight[c] * row[c]


@weigh_table.in_numpy
def _(owners, weights, values, starts, columns, entries, effects, out):
    _add_products(starts, columns, entries, effects, out)
    out += weights[owners] * values


@kernel(plain=NUMPY_CELLS)
def collect_table(owners, values, starts, columns, entries, counts, by_feature, out):
    """Transpose of ``weigh_table``: counts (V, K) to by_feature (d, K) and out (m, K).

    Both are zero at the start; the sparse matrix is the transposed one, (m, V).
    """
    for v in range(len(owners)):
        total, row, count = by_feature[owners[v]], values[v], counts[v]
        for c in range(counts.shape[1]):
            total[c] += count[c] * row[c]
    for i in range(len(out)):
        _add_sparse(starts, columns, entries, i, counts, out[i])


@collect_table.in_numpy
def _(owners, values, starts, columns, entries, counts, by_feature, out):
    np.add.at(by_feature, owners, counts * values)
    _add_products(starts, columns, entries, counts, out)


def _add_products(starts, columns, entries, values, out):
    """Add a sparse matrix times values (m, C) in the order of its entries: out +=."""
    rows = np.repeat(np.arange(len(out)), np.diff(starts))
    np.add.at(out, rows, entries[:, None] * values[columns])


# ---------------------------------------------------------------- steps within bounds


@kernel(plain=PLAIN_CELLS)
def descend(matrix, low, high, d, slope, sweeps):
    """Minimise in each coordinate in turn; d (p,) and slope (p,) = g + H d in place.

    matrix (p, p) symmetric with a positive diagonal, low (p,), high (p,)
    """
    p = d.size
    for _ in range(sweeps):
        for k in range(p):
            new = d[k] - slope[k] / matrix[k, k]
            new = min(max(new, low[k]), high[k])
            change = new - d[k]
            if change != 0.0:
                d[k] = new
                row = matrix[k]
                for m in range(p):
                    slope[m] += change * row[m]


@descend.in_numpy
def _(matrix, low, high, d, slope, sweeps):
    for _ in range(sweeps):
        for k in range(d.size):
            new = min(max(d[k] - slope[k] / matrix[k, k], low[k]), high[k])
            if new != d[k]:
                slope += (new - d[k]) * matrix[k]
                d[k] = new
