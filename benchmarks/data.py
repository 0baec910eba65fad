"""Synthetic data: benign, balanced, seeded."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["frame", "labelled_codes", "labelled_numbers", "n_rows"]

_SEED = 20240607

# Enough for two blocks of rows, so that little data take the same way as much.
_MIN_ROWS = 20_000


def n_rows(full: int, scale: float) -> int:
    """Return the number of rows at a share of the full size, 20,000 at least."""
    return max(_MIN_ROWS, round(full * scale))


def labelled_codes(
    n: int, d: int, n_classes: int, n_values: int = 10
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Row-major codes 0, 1, … and labels.

    Every class has a table of near-uniform probabilities for each attribute. The second
    half of the attributes copies the first half with probability one half, so that
    attributes depend on each other as naive Bayes believes they do not.
    """
    rng = np.random.default_rng(_SEED)
    y = rng.integers(n_classes, size=n)
    X = np.empty((n, d), dtype=np.uint8)
    half = d // 2
    for j in range(d):
        weights = np.exp(0.15 * rng.standard_normal((n_classes, n_values)))
        shares = weights / weights.sum(axis=1, keepdims=True)
        # Value of every 16-bit random number, by class: a look-up instead of a search.
        ends = np.rint(np.cumsum(shares, axis=1) * (1 << 16)).astype(int)
        sizes = np.diff(ends, axis=1, prepend=0)
        values = np.arange(n_values, dtype=np.uint8)
        drawn_by = np.stack([np.repeat(values, size) for size in sizes])
        drawn = drawn_by[y, rng.integers(1 << 16, size=n, dtype=np.uint16)]
        if j >= d - half:
            copied = rng.random(n, dtype=np.float32) < 0.5
            drawn = np.where(copied, X[:, j - (d - half)], drawn)
        X[:, j] = drawn
    # All values occur, in however few rows: the peers want to know their number.
    X[:n_values] = np.arange(n_values, dtype=np.uint8)[:, None]
    return X, y


def labelled_numbers(
    n: int, d: int, n_classes: int = 2
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Row-major normal numbers whose means depend a little on the class, and labels."""
    rng = np.random.default_rng(_SEED)
    y = rng.integers(n_classes, size=n)
    means = 0.3 * rng.standard_normal((n_classes, d))
    X = rng.standard_normal((n, d))
    X += means[y]
    return X, y


def frame(n: int, text_type: str) -> tuple[Any, NDArray[np.int64]]:
    """Build a pandas frame of 30 text and 20 float columns, and labels.

    ``text_type`` is "object" or "str", the type of pandas 3.
    """
    import pandas as pd

    codes, y = labelled_codes(n, 30, 2)
    rng = np.random.default_rng(_SEED + 1)
    columns: dict[str, Any] = {}
    for j in range(codes.shape[1]):
        names = np.array([f"value {v} of {j}" for v in range(10)], dtype=object)
        columns[f"text{j}"] = pd.Series(names[codes[:, j]], dtype=text_type)
    for j in range(20):
        shift = 0.3 * rng.standard_normal(2)
        columns[f"number{j}"] = rng.standard_normal(n) + shift[y]
    return pd.DataFrame(columns), y
