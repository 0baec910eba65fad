"""Quadratic models within bounds: their minimum, and steps that lower them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from steelyard.solvers.constrained import box_minimum
from steelyard.solvers.newton import bfgs


def value(H, g, d):
    return float(g @ d + 0.5 * d @ H @ d)


def model(seed, size, rank, kind, scale=1.0):
    """A quadratic and bounds around zero; ``rank`` below the size makes it singular."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(rank, size)) * 10.0 ** rng.uniform(-1, 1, size)
    H = A.T @ A
    g = A.T @ rng.normal(size=rank) * 3.0 + 0.1 * rng.normal(size=size)
    low, high = -rng.uniform(0, 1, size), rng.uniform(0, 1, size)
    low[rng.random(size) < 0.3] = 0.0
    high[rng.random(size) < 0.3] = 0.0
    if kind == "one-sided":
        high[:] = np.inf
    if kind == "free":
        low[:], high[:] = -np.inf, np.inf
    damping = 1e-6 * np.trace(H) / size
    return scale * (H + damping * np.eye(size)), scale * g, low, high


def assert_first_order(H, g, low, high, d, relative=1e-6):
    slope = g + H @ d
    size = relative * (1.0 + np.abs(g).max() + np.abs(H).max())
    at_low, at_high = d <= low, d >= high
    assert (np.abs(slope[~at_low & ~at_high]) <= size).all()
    assert (slope[at_low & ~at_high] >= -size).all()
    assert (slope[at_high & ~at_low] <= size).all()


@pytest.mark.plain
@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    size=st.integers(1, 12),
    missing=st.integers(0, 6),
    kind=st.sampled_from(["both", "one-sided", "free"]),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
)
def test_box_minimum_satisfies_bounds_and_first_order_conditions(
    seed, size, missing, kind, scale
):
    H, g, low, high = model(seed, size, max(1, size - missing), kind, scale)
    d = box_minimum(H, g, low, high)
    assert (low <= d).all() and (d <= high).all()
    assert value(H, g, d) <= 0.0
    assert_first_order(H / scale, g / scale, low, high, d)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), size=st.integers(1, 8))
def test_box_minimum_agrees_with_bounded_least_squares(seed, size):
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(size + 3, size)), rng.normal(size=size + 3)
    low, high = -rng.uniform(0.01, 1, size), rng.uniform(0.01, 1, size)
    expected = lsq_linear(A, b, (low, high), method="bvls", tol=1e-14).x
    found = box_minimum(A.T @ A, -A.T @ b, low, high)
    np.testing.assert_allclose(found, expected, atol=1e-7)


def test_box_minimum_of_a_point_is_that_point():
    H = np.eye(3)
    zero = np.zeros(3)
    d = box_minimum(H, np.array([1.0, -1.0, 0.0]), zero, zero)
    assert d.tolist() == [0.0, 0.0, 0.0]


def test_box_minimum_of_a_flat_model_goes_to_the_bounds():
    low, high = np.full(3, -1.0), np.full(3, 2.0)
    g = np.array([1.0, -1.0, 0.0])
    d = box_minimum(1e-12 * np.eye(3), g, low, high)
    np.testing.assert_allclose(d, [-1.0, 2.0, 0.0])


@pytest.mark.plain
@pytest.mark.parametrize("bend", [1.0, -1.0])
def test_a_mended_hessian_stays_definite_and_explains_the_step(bend):
    rng = np.random.default_rng(3)
    root = rng.standard_normal((5, 5))
    hessian = root @ root.T + np.eye(5)
    moved = rng.standard_normal(5)
    turned = bend * (moved + 0.1 * rng.standard_normal(5))
    mended = bfgs(hessian, moved, turned)
    assert np.linalg.eigvalsh(mended).min() > 0
    if bend > 0 and moved @ turned > 0.2 * moved @ hessian @ moved:
        np.testing.assert_allclose(mended @ moved, turned, rtol=1e-9, atol=1e-12)
    else:
        assert moved @ mended @ moved < moved @ hessian @ moved
