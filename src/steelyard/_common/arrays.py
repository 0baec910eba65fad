"""Names of arrays, for annotations, and rows that stand for all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Labels = NDArray[np.uint32]
"""Positions of classes."""


def evenly(n_rows: int, most: int) -> Ints:
    """Return positions of rows, no more than so many."""
    if n_rows <= most:
        return np.arange(n_rows)
    return np.linspace(0, n_rows - 1, most).astype(np.int64)
