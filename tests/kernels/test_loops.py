"""Kernels that score and fit, in every form they have, beside formulas in NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, log_softmax, softmax
from scipy.stats import norm

from steelyard.kernels import fitting, losses, pairs, scoring

pytestmark = pytest.mark.plain

# More rows than two blocks of any kernel, the last of which is not full.
N = 550
WIDTHS = [1, 4, 6, 9]
# Kinds of losses, None for the deviance, and their parameter.
LOSSES = [(None, 1.0), (None, 0.4), (losses.EXPONENTIAL, 60.0)]
LOSSES += [(losses.EXPONENTIAL, 1.5), (losses.SQUARED, 0.0), (losses.SQUARED, 1.0)]


def ways(kernel):
    """The loop, and the form in NumPy that few cells take, if there is one."""
    other = kernel._form
    return [kernel.compiled, *([] if other is kernel.py_func else [other])]


def coded(b, seed=0):
    """Codes (n, b) of up to five values, where each column starts, and how many."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 6, b)
    starts = np.concatenate([[0], np.cumsum(sizes)])[:-1].astype(np.uint64)
    values = rng.integers(0, sizes, (N, b)).astype(np.uint8)
    return rng, values, starts, int(sizes.sum())


def one_hot(values, starts, n_codes):
    """The codes of rows as zeros and ones: scores are its product with a table."""
    design = np.zeros((len(values), n_codes))
    for j, start in enumerate(starts.tolist()):
        design[np.arange(len(values)), start + values[:, j]] = 1.0
    return design


# ------------------------------------------------------------------------------- scores


@pytest.mark.parametrize("b", WIDTHS)
def test_scores_are_sums_of_table_rows(b):
    rng, values, starts, n_codes = coded(b)
    table, base = rng.normal(size=(n_codes, 3)), rng.normal(size=(N, 3))
    expected = base + one_hot(values, starts, n_codes) @ table
    for gather in ways(scoring.gather):
        scores = base.copy()
        gather(values, starts, table, scores)
        assert_allclose(scores, expected, atol=1e-12)
    for gather in ways(scoring.gather_difference):
        odds = base[:, 0].copy()
        gather(values, starts, np.ascontiguousarray(table[:, 0]), odds)
        assert_allclose(odds, expected[:, 0], atol=1e-12)


def test_the_first_of_the_best_wins():
    scores = np.random.default_rng(0).integers(0, 3, (N, 4)).astype(float)
    order = np.array([2, 0, 3, 1], dtype=np.uint64)
    for best in ways(scoring.best):
        out = np.empty(N, dtype=np.int64)
        best(scores, order, out)
        ranked = scores[:, order.astype(int)].argmax(axis=1)
        assert_array_equal(out, order[ranked])


def test_posteriors_of_more_rows_than_a_buffer_holds():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(N, 2)) * 20
    odds, y = scores[:, 1] - scores[:, 0], rng.integers(0, 2, N).astype(np.uint32)
    expected = np.stack([expit(-odds), expit(odds)], axis=1)
    for logistic in ways(scoring.logistic):
        proba = np.empty((N, 2))
        logistic(odds, proba)
        assert_allclose(proba, expected, rtol=1e-13)
    for logistic_of in ways(scoring.logistic_of):
        chosen = np.empty(N)
        logistic_of(odds, y, chosen)
        assert_allclose(chosen, expected[np.arange(N), y], rtol=1e-13)
    for soft, same in ((scoring.softmax, softmax), (scoring.log_softmax, log_softmax)):
        for way in ways(soft):
            found = rng.normal(size=(N, 3)) * 20
            known = same(found, axis=1)
            way(found)
            assert_allclose(found, known, rtol=1e-12)


def test_densities_of_every_form():
    rng = np.random.default_rng(0)
    numbers, weight = rng.normal(size=(N, 4)) * 3, rng.normal(size=(4, 3))
    numbers[rng.random((N, 4)) < 0.1] = np.nan
    mean, deviation = rng.normal(size=(4, 3)), rng.uniform(0.5, 2.0, (4, 3))
    step, depth, limit = np.array(
        [[0.0, 0.5, 0.0, 0.0], [0.0, 0.0, 0.7, 0.0], [0.0, 0.0, 0.0, 2.0]]
    )
    x = numbers[:, :, None]
    plain = norm.logpdf(x, mean, deviation)
    half = step[:, None] / 2
    interval = norm.cdf(x + half, mean, deviation) - norm.cdf(x - half, mean, deviation)
    told = plain.copy()
    told[:, 1] = np.log(np.maximum(interval[:, 1], 1e-4))
    told[:, 2] = np.maximum(plain[:, 2] - plain[:, 2].max(axis=1, keepdims=True), -0.7)
    told[:, 3] = np.clip((x[:, 3] - mean[3]) / deviation[3], -2.0, 2.0)
    told[np.isnan(numbers)] = 0.0
    constant = -0.5 * np.log(2 * np.pi) - np.log(deviation)
    forms = (mean, 1.0 / deviation, constant, step / 2, 1e-4, depth, limit)
    for block in ways(scoring.density_block):
        out = np.full((N, 4, 3), np.nan)
        block(numbers, forms, out)
        assert_allclose(out, told, atol=1e-9)
    base = rng.normal(size=(N, 3))
    for add in ways(scoring.add_weighted):
        scores = base.copy()
        add(numbers, forms, weight, scores)
        assert_allclose(scores, base + (told * weight).sum(axis=1), atol=1e-8)
    for add in ways(scoring.add_densities):
        scores = base.copy()
        add(numbers, mean, 1.0 / deviation, constant, scores)
        assert_allclose(scores, base + np.nansum(plain, axis=1), atol=1e-9)
    wide, none = np.full(4, 0.25), np.zeros(4)
    forms = (mean, 1.0 / deviation, constant, wide, 1e-4, none, none)
    for add in ways(scoring.add_weighted):
        scores = base.copy()
        add(numbers, forms, np.ones_like(mean), scores)
        z = norm.cdf(x + 0.25, mean, deviation) - norm.cdf(x - 0.25, mean, deviation)
        expected = np.where(np.isnan(x), 0.0, np.log(np.maximum(z, 1e-4)))
        assert_allclose(scores, base + expected.sum(axis=1), atol=1e-8)


# ------------------------------------------------------------------ losses, two classes


def exponential(t, a):
    """The exponential up to a, and its expansion of second order at a beyond it."""
    e, over = np.exp(np.minimum(t, a)), np.maximum(t - a, 0.0)
    return e * (1.0 + over + over**2 / 2), e * (1.0 + over)


def two(x, y, kind, a):
    """Loss of each row and its slope, of log-odds x."""
    s = np.where(y == 1, 1.0, -1.0)
    if kind is None:
        return np.logaddexp(0.0, -s * a * x), -s * a * expit(-s * a * x)
    if kind == losses.EXPONENTIAL:
        value, slope = exponential(-s * x, a)
        return value, -s * slope
    p = expit(x)
    r = p - (y == 1)
    return r * r, (1.0 if a > 0.5 else 2.0) * r * p * (1.0 - p)


@pytest.mark.parametrize("b", WIDTHS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind, a", LOSSES)
def test_loss_and_gradient_of_two_classes(b, weighted, kind, a):
    rng, values, starts, n_codes = coded(b)
    table, base = rng.normal(size=n_codes), rng.normal(size=N)
    y = rng.integers(0, 2, N).astype(np.uint32)
    u = rng.uniform(0.5, 2.0, N) if weighted else np.ones(N)
    design = one_hot(values, starts, n_codes)
    x = base + design @ table
    loss, slope = two(x, y, kind, a)
    for evaluate in ways(fitting.evaluate_two):
        odds, out, counts = base.copy(), np.empty(N), np.ones(n_codes)
        given = u if weighted else np.empty(0)
        total = evaluate(values, starts, table, odds, y, given, kind, a, out, counts)
        assert_allclose(total, (u * loss).sum(), rtol=1e-11)
        assert_allclose(odds, x, atol=1e-12)
        assert_allclose(out, u * slope, atol=1e-11)
        assert_allclose(counts, 1.0 + design.T @ (u * slope), atol=1e-9)


def test_tiny_losses_keep_their_digits():
    values, starts = np.zeros((N, 1), dtype=np.uint8), np.zeros(1, dtype=np.uint64)
    y = (np.arange(N) % 2).astype(np.uint32)
    margin = np.linspace(14.0, 30.0, N)
    for evaluate in ways(fitting.evaluate_two):
        odds, nothing = np.where(y == 1, margin, -margin), np.empty(0)
        total = evaluate(
            values,
            starts,
            np.zeros(1),
            odds,
            y,
            nothing,
            None,
            1.0,
            np.empty(N),
            np.zeros(1),
        )
        assert_allclose(total, np.log1p(np.exp(-margin)).sum(), rtol=1e-12)


# ----------------------------------------------------------------- losses, many classes


def many(z, y, kind, a):
    """Loss of each row and its gradient, of scores z."""
    rows, truth = np.arange(len(z)), np.eye(z.shape[1])[y]
    if kind is None:
        loss = -log_softmax(a * z, axis=1)[rows, y]
        return loss, a * (softmax(a * z, axis=1) - truth)
    if kind == losses.EXPONENTIAL:
        value, e = (x * (1 - truth) for x in exponential(z - z[rows, y][:, None], a))
        return value.sum(axis=1), e - truth * e.sum(axis=1, keepdims=True)
    p = softmax(z, axis=1)
    r = p - truth
    if a > 0.5:
        return 0.5 * (r * r).sum(axis=1), p * r * (1 - p)
    inner = (r * p).sum(axis=1, keepdims=True)
    return 0.5 * (r * r).sum(axis=1), p * (r - inner)


@pytest.mark.parametrize("b", [3, 9])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k, fixed", [(3, True), (3, False), (4, True), (5, False)])
@pytest.mark.parametrize("kind, a", LOSSES)
def test_loss_and_gradient_of_many_classes(b, weighted, k, fixed, kind, a):
    rng, values, starts, n_codes = coded(b)
    values, n = values[:150], 150
    table, base = rng.normal(size=(n_codes, k)), rng.normal(size=(n, k))
    y = rng.integers(0, k, n).astype(np.uint32)
    u = rng.uniform(0.5, 2.0, n) if weighted else np.ones(n)
    design = one_hot(values, starts, n_codes)
    loss, gradient = many(base + design @ table, y, kind, a)
    lanes = (0,) * k if fixed else ()
    for evaluate in ways(fitting.evaluate_many):
        scores, counts = base.copy(), np.ones((n_codes, k))
        given = u if weighted else np.empty(0)
        work = np.empty(fitting.ROWS * k)
        total = evaluate(
            values, starts, table, scores, y, given, kind, a, counts, work, lanes
        )
        assert_allclose(total, (u * loss).sum(), rtol=1e-11)
        assert_allclose(scores, u[:, None] * gradient, atol=1e-11)
        assert_allclose(counts, 1.0 + design.T @ (u[:, None] * gradient), atol=1e-9)


# ----------------------------------------------------------------------------- mixtures


def mixture(z, y, alpha, printed):
    """Loss, slope by alpha, and gradient of a mixture of two posteriors."""
    k = z.shape[1] // 2
    p, q = softmax(z[:, :k], axis=1), softmax(z[:, k:], axis=1)
    r = alpha * p + (1 - alpha) * q - np.eye(k)[y]
    d, i = ((r * part).sum(axis=1, keepdims=True) for part in (p, q))
    first = alpha * p * (r * (1 - p) if printed else r - d)
    gradient = np.hstack([first, (1 - alpha) * q * (r - i)])
    return 0.5 * (r * r).sum(axis=1), (r * (p - q)).sum(axis=1), gradient


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("printed", [False, True])
@pytest.mark.parametrize("k, fixed", [(3, False), (3, True)])
def test_loss_and_gradient_of_mixtures(weighted, printed, k, fixed):
    rng, values, starts, n_codes = coded(6)
    values, n, alpha = values[:150], 150, 0.3
    y = rng.integers(0, k, n).astype(np.uint32)
    u = rng.uniform(0.5, 2.0, n) if weighted else np.ones(n)
    given = u if weighted else np.empty(0)
    design = one_hot(values, starts, n_codes)
    table, base = rng.normal(size=(n_codes, 2 * k)), rng.normal(size=(n, 2 * k))
    loss, slope, gradient = mixture(base + design @ table, y, alpha, printed)
    for evaluate in ways(fitting.evaluate_mixture):
        scores, counts = base.copy(), np.ones((n_codes, 2 * k))
        lanes = (0,) * (2 * k) if fixed else ()
        found = evaluate(
            values, starts, table, scores, y, given, alpha, printed, counts, lanes
        )
        assert_allclose(found, [(u * loss).sum(), (u * slope).sum()], rtol=1e-11)
        assert_allclose(scores, u[:, None] * gradient, atol=1e-11)
        assert_allclose(counts, 1.0 + design.T @ (u[:, None] * gradient), atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("printed", [False, True])
def test_loss_and_gradient_of_mixtures_of_two_classes(weighted, printed):
    rng, values, starts, n_codes = coded(6)
    values, n, alpha = values[:150], 150, 0.3
    y = rng.integers(0, 2, n).astype(np.uint32)
    u = rng.uniform(0.5, 2.0, n) if weighted else np.ones(n)
    given = u if weighted else np.empty(0)
    design = one_hot(values, starts, n_codes)
    table, base = rng.normal(size=(n_codes, 2)), rng.normal(size=(n, 2))
    x = base + design @ table
    p, q = expit(x).T
    e = alpha * p + (1 - alpha) * q - y
    factor = 1.0 if printed else 2.0
    gradient = np.stack(
        [factor * alpha * e * p * (1 - p), 2 * (1 - alpha) * e * q * (1 - q)], axis=1
    )
    for evaluate in ways(fitting.evaluate_mixture_two):
        odds, counts = base.copy(), np.ones((n_codes, 2))
        found = evaluate(values, starts, table, odds, y, given, alpha, printed, counts)
        expected = [(u * e * e).sum(), (2 * u * e * (p - q)).sum()]
        assert_allclose(found, expected, rtol=1e-11)
        assert_allclose(odds, u[:, None] * gradient, atol=1e-11)
        assert_allclose(counts, 1.0 + design.T @ (u[:, None] * gradient), atol=1e-9)


# ----------------------------------------------------------------------------- the rest


def test_codes_are_joined_and_rows_scattered():
    rng, values, starts, n_codes = coded(4)
    parts = rng.integers(0, 9, (4, 256)).astype(np.uint8)
    groups = np.array([1, 0, 1, 2], dtype=np.uint64)
    expected = np.zeros((N, 3), dtype=np.uint8)
    for j, group in enumerate(groups.tolist()):
        expected[:, group] += parts[j, values[:, j]]
    for pack in ways(pairs.pack):
        out = np.zeros((N, 3), dtype=np.uint8)
        pack(values, parts, groups, out)
        assert_array_equal(out, expected)
    gradient = rng.normal(size=(N, 2))
    for scatter in ways(fitting.scatter):
        counts = np.ones((n_codes, 2))
        scatter(values, starts, gradient, counts)
        total = 1.0 + one_hot(values, starts, n_codes).T @ gradient
        assert_allclose(counts, total, atol=1e-10)


def test_coordinates_descend_to_the_minimum_within_bounds():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(4, 4))
    matrix, g = root @ root.T + np.eye(4), rng.normal(size=4) * 5
    low, high = np.full(4, -0.5), np.full(4, 0.7)
    for descend in ways(fitting.descend):
        d, slope = np.zeros(4), g.copy()
        descend(matrix, low, high, d, slope, 1)
        # One sweep: every coordinate once, each with the slope that the others left.
        by_hand = np.zeros(4)
        for k in range(4):
            step = (g + matrix @ by_hand)[k] / matrix[k, k]
            by_hand[k] = np.clip(by_hand[k] - step, -0.5, 0.7)
        assert_allclose(d, by_hand, atol=1e-12)
        descend(matrix, low, high, d, slope, 200)
        assert_allclose(slope, g + matrix @ d, atol=1e-9)
        inside = (d > low) & (d < high)
        assert_allclose(slope[inside], 0.0, atol=1e-9)
        assert (slope[d == low] >= 0).all()
        assert (slope[d == high] <= 0).all()
