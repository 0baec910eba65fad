"""Models made for one query at a time, from its nearest training rows.

Training codes are column by column, ``columns (d, n)``: comparing a query with one
column is then a loop over neighbouring bytes, which the compiler vectorises. No array
is larger than the training rows.

What travels together is one tuple. ``rows`` are columns (d, n), y (n,) and weights (n,)
or empty; ``smoothing`` is base (K,) log priors that were given, empty if they come
from the rows, added (d,) pseudo-counts of values, sizes (d,) numbers of values,
exponents (d,) attribute weights, and prior_added (K,). ``scores (m, r, K)`` have one
row for a query, or, zero at the start, one for what each attribute adds, those with
densities last, and after these one for the log priors.
"""

from __future__ import annotations

import math

import numpy as np

from steelyard.kernels.compiling import kernel

# No probability is zero.
_TINY = np.finfo(np.float64).tiny

# Log-density of a number in a class without a neighbour: Weka's least probability.
_ABSENT = math.log(1e-75)

# Largest distance, in ranges of a column: squares stay finite.
MAX_DISTANCE = 1e100

_LINEAR, _EPANECHNIKOV, _TRICUBE, _INVERSE, _GAUSS, _CONSTANT = range(6)


@kernel()
def _count_matches(query, columns, matches):
    """Count equal observed cells of a query and every row: matches (n,) uint16."""
    d, n = columns.shape
    for i in range(n):
        matches[i] = 0
    for j in range(d):
        value = query[j]
        if value == 0:
            continue
        column = columns[j]
        for i in range(n):
            matches[i] += np.uint16(column[i] == value)


@kernel()
def match_scores(queries, rows, smoothing, scores):
    """Scores of queries when every row counts one plus its number of equal cells.

    queries (m, d)
    """
    columns, y, weights = rows
    base, added, sizes, exponents, prior_added = smoothing
    m, d = queries.shape
    n = columns.shape[1]
    last, n_classes = scores.shape[1] - 1, scores.shape[2]
    matches = np.empty(n, dtype=np.uint16)
    mass = np.empty(n)
    total = np.empty(n_classes)
    hit = np.empty(n_classes)
    observed = np.empty(n_classes)
    some_missing = np.zeros(d, dtype=np.bool_)
    for j in range(d):
        some_missing[j] = (columns[j] == 0).any()
    for q in range(m):
        query = queries[q]
        _count_matches(query, columns, matches)
        total[:] = 0.0
        for i in range(n):
            u = 1.0 + matches[i]
            mass[i] = u if weights.size == 0 else u * weights[i]
            total[y[i]] += mass[i]
        _log_prior(total, base, prior_added, scores[q, last])
        for j in range(d):
            value = query[j]
            if value == 0:
                continue
            column = columns[j]
            hit[:] = 0.0
            for i in range(n):
                if column[i] == value:
                    hit[y[i]] += mass[i]
            if some_missing[j]:
                # Added up, not taken away from the total: that would leave rounding
                # where nothing is observed.
                observed[:] = 0.0
                for i in range(n):
                    if column[i] != 0:
                        observed[y[i]] += mass[i]
            else:
                observed[:] = total
            into = scores[q, min(j, last)]
            _add_log_share(hit, observed, added[j], sizes[j], exponents[j], into)


@kernel()
def pair_scores(queries, counts, smoothing, scores):
    """Scores of queries as in ``match_scores``, from counts of pairs of codes.

    A row that counts one plus its matches counts once for itself and once for each
    shared cell, so that all sums over rows are sums of pair counts: offsets (d,), pairs
    (V, V, K), observed_pairs (d, V, K) the same added up over the observed values of
    the first column, singles (V, K), observed_singles (d, K), class_mass (K,).
    """
    offsets, pairs, observed_pairs, singles, observed_singles, class_mass = counts
    base, added, sizes, exponents, prior_added = smoothing
    m, d = queries.shape
    last, n_classes = scores.shape[1] - 1, scores.shape[2]
    total = np.empty(n_classes)
    hit = np.empty(n_classes)
    observed = np.empty(n_classes)
    for q in range(m):
        query = queries[q]
        total[:] = class_mass
        for k in range(d):
            if query[k] != 0:
                total += singles[offsets[k] + query[k]]
        _log_prior(total, base, prior_added, scores[q, last])
        for j in range(d):
            if query[j] == 0:
                continue
            row = offsets[j] + query[j]
            hit[:] = singles[row]
            observed[:] = observed_singles[j]
            for k in range(d):
                if query[k] != 0:
                    other = offsets[k] + query[k]
                    for c in range(n_classes):
                        hit[c] += pairs[row, other, c]
                        observed[c] += observed_pairs[j, other, c]
            into = scores[q, min(j, last)]
            _add_log_share(hit, observed, added[j], sizes[j], exponents[j], into)


@kernel()
def _add_log_share(hit, observed, added, size, exponent, scores):
    """Add the smoothed log-probability of a value to the scores (K,)."""
    for c in range(scores.shape[0]):
        p = (hit[c] + added) / (observed[c] + size * added)
        scores[c] += exponent * math.log(max(p, _TINY))


@kernel()
def _log_prior(total, base, prior_added, out):
    """Log priors from class weights, or the given ones; a class may be impossible."""
    if base.size > 0:
        out[:] = base
        return
    mass = 0.0
    for c in range(total.shape[0]):
        mass += total[c] + prior_added[c]
    for c in range(total.shape[0]):
        share = (total[c] + prior_added[c]) / mass
        out[c] = math.log(share) if share > 0.0 else -np.inf


@kernel()
def _kernel(kind, s):
    """Weight of a row at s times the distance of the k-th neighbour, as in Weka."""
    if kind == _LINEAR:
        return 1.0001 - s
    if kind == _EPANECHNIKOV:
        return 0.75 * (1.0001 - s * s)
    if kind == _TRICUBE:
        return (1.0001 - s**3) ** 3
    if kind == _INVERSE:
        return 1.0 / (1.0 + s)
    if kind == _GAUSS:
        return math.exp(-s * s)
    return 1.0


@kernel()
def _difference(x, t):
    """Difference of two numbers on [0, 1]; a missing one has the largest."""
    if x != x and t != t:
        return 1.0
    if x != x:
        return max(t, 1.0 - t)
    if t != t:
        return max(x, 1.0 - x)
    return abs(x - t)


@kernel()
def distances(matches, d, query, scaled, k, counts, distance):
    """Fill squared distances (n,) of all rows from a query; return that of the k-th.

    matches (n,) equal cells among d, query (g,) and scaled (g, n) numbers on [0, 1].
    """
    g, n = scaled.shape[0], distance.shape[0]
    for i in range(n):
        distance[i] = float(d - matches[i])
    if g > 0:
        for j in range(g):
            column = scaled[j]
            for i in range(n):
                difference = _difference(query[j], column[i])
                distance[i] += difference * difference
        return np.partition(distance, k - 1)[k - 1]
    # Squared distances are whole numbers: the k-th is found by counting.
    counts[:] = 0
    for i in range(n):
        counts[d - matches[i]] += 1
    reached = counts[0]
    nearest = 0
    while reached < k and nearest < d:
        nearest += 1
        reached += counts[nearest]
    return float(nearest)


@kernel()
def keep_nearest(distance, radius, weights, kind, kept, mass):
    """Fill the rows within a squared radius and their weights; return their number.

    The weights fall with the distance and add up to those of the rows.
    """
    n_kept = 0
    rows_mass = 0.0
    kernel_mass = 0.0
    for i in range(distance.shape[0]):
        if distance[i] <= radius:
            s = math.sqrt(distance[i] / radius) if radius > 0.0 else 1.0
            a = _kernel(kind, s) if radius > 0.0 else 1.0
            u = 1.0 if weights.size == 0 else weights[i]
            kept[n_kept] = i
            mass[n_kept] = a * u
            rows_mass += u
            kernel_mass += a * u
            n_kept += 1
    rescale = rows_mass / kernel_mass
    for r in range(n_kept):
        mass[r] *= rescale
    return n_kept


@kernel()
def local_scores(query_cells, rows, row_numbers, k, kind, smoothing, floors, scores):
    """Scores of queries by naive Bayes on their k nearest rows, weighted by distance.

    query_cells are codes (m, d), numbers (m, g) of Gaussian attributes, and these on
    [0, 1] for distances; row_numbers (g, n), twice as well; floors (g,) smallest
    variances. Rows tied with the k-th are kept.
    """
    queries, query_numbers, scaled_queries = query_cells
    columns, y, weights = rows
    numbers, scaled = row_numbers
    base, added, sizes, exponents, prior_added = smoothing
    m, d = queries.shape
    g, n = numbers.shape
    last, n_classes = scores.shape[1] - 1, scores.shape[2]
    matches = np.empty(n, dtype=np.uint16)
    distance = np.empty(n)
    kept = np.empty(n, dtype=np.int64)
    mass = np.empty(n)
    total = np.empty(n_classes)
    hit = np.empty(n_classes)
    observed = np.empty(n_classes)
    counts = np.empty(d + 1, dtype=np.int64)
    for q in range(m):
        query = queries[q]
        _count_matches(query, columns, matches)
        radius = distances(matches, d, scaled_queries[q], scaled, k, counts, distance)
        n_kept = keep_nearest(distance, radius, weights, kind, kept, mass)
        total[:] = 0.0
        for r in range(n_kept):
            total[y[kept[r]]] += mass[r]
        _log_prior(total, base, prior_added, scores[q, last])
        for j in range(d):
            value = query[j]
            if value == 0:
                continue
            column = columns[j]
            hit[:] = 0.0
            observed[:] = 0.0
            for r in range(n_kept):
                code = column[kept[r]]
                if code != 0:
                    observed[y[kept[r]]] += mass[r]
                    if code == value:
                        hit[y[kept[r]]] += mass[r]
            into = scores[q, min(j, last)]
            _add_log_share(hit, observed, added[j], sizes[j], exponents[j], into)
        for j in range(g):
            x = query_numbers[q, j]
            if x == x:
                rows, masses = kept[:n_kept], mass[:n_kept]
                of_nearest = (y, rows, masses, total)
                into = scores[q, min(d + j, last)]
                _local_density(x, numbers[j], of_nearest, floors[j], into)


@kernel()
def _local_density(x, column, of_nearest, floor, scores):
    """Add the log-density of x under each class of the kept rows.

    A class without an observed cell takes the mean and variance of all kept rows. A
    class without a kept row is at most as likely as any other.
    """
    y, kept, mass, total = of_nearest
    n_classes = scores.shape[0]
    observed, mean = np.zeros(n_classes), np.zeros(n_classes)
    square = np.zeros(n_classes)
    all_observed = 0.0
    all_mean = 0.0
    for r in range(kept.size):
        t = column[kept[r]]
        if t == t:
            c = y[kept[r]]
            observed[c] += mass[r]
            mean[c] += mass[r] * t
            all_observed += mass[r]
            all_mean += mass[r] * t
    if all_observed <= 0.0:
        return
    all_mean /= all_observed
    for c in range(n_classes):
        mean[c] = mean[c] / observed[c] if observed[c] > 0.0 else all_mean
    all_square = 0.0
    for r in range(kept.size):
        t = column[kept[r]]
        if t == t:
            c = y[kept[r]]
            square[c] += mass[r] * (t - mean[c]) ** 2
            all_square += mass[r] * (t - all_mean) ** 2
    lowest = _ABSENT
    for c in range(n_classes):
        if total[c] > 0.0:
            has_rows = observed[c] > 0.0
            variance = (
                square[c] / observed[c] if has_rows else all_square / all_observed
            )
            variance = max(variance, floor)
            step = min(abs(x - mean[c]) / math.sqrt(variance), MAX_DISTANCE)
            added = 0.5 * (math.log(2.0 * math.pi * variance) + step * step)
            scores[c] -= added
            lowest = min(lowest, -added)
    for c in range(n_classes):
        if total[c] <= 0.0:
            scores[c] += lowest
