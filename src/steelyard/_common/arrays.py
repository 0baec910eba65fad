"""Names of arrays, for annotations, and numbers whose bits can be compared."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Labels = NDArray[np.uint32]
"""Positions of classes."""


def comparable(numbers: Floats) -> Floats:
    """Return numbers that are equal where their bits are: one zero, one missing value.

    Examples
    --------
    >>> zeros = comparable(np.array([0.0, -0.0]))
    >>> len(set(zeros.view(np.uint64).tolist()))
    1
    """
    out: Floats = numbers + 0.0
    out[np.isnan(out)] = np.nan
    return out


def evenly(n_rows: int, most: int) -> Ints:
    """Return positions of rows, no more than so many."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.linspace(0, n_rows - 1, most).astype(np.int64)
