"""Names of arrays, for annotations, and where rows are."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Labels = NDArray[np.uint32]
"""Positions of classes."""


def is_elsewhere(X: Any) -> bool:
    """Whether rows are not in the memory of this process, nor files."""
    return is_dask(X) or is_spark(X) or is_on_device(X)


def is_dask(X: Any) -> bool:
    """Whether an object is a collection of Dask, which nothing here has loaded."""
    return "dask" in sys.modules and hasattr(type(X), "__dask_graph__")


def is_spark(X: Any) -> bool:
    """Whether an object is a Spark frame, of Spark Connect or not."""
    kind = type(X)
    return kind.__name__ == "DataFrame" and kind.__module__.startswith("pyspark.sql")


def is_on_device(array: Any) -> bool:
    """Whether something is an array in the memory of a GPU: of CuPy, PyTorch, numba."""
    # PyTorch has the attribute for all tensors, and raises for those on the CPU.
    try:
        return isinstance(getattr(array, "__cuda_array_interface__", None), dict)
    except (AttributeError, RuntimeError, TypeError):
        return False
