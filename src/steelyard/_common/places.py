"""Where rows are: in this process, in Dask, or in the memory of a GPU."""

from __future__ import annotations

import sys
from typing import Any


def is_elsewhere(X: Any) -> bool:
    """Whether rows are not in the memory of this process, nor files."""
    return is_dask(X) or is_on_device(X)


def is_dask(X: Any) -> bool:
    """Whether an object is a collection of Dask, which nothing here has loaded."""
    return "dask" in sys.modules and hasattr(type(X), "__dask_graph__")


def is_on_device(array: Any) -> bool:
    """Whether something is an array in the memory of a GPU: of CuPy, PyTorch, numba."""
    # PyTorch has the attribute for all tensors, and raises for those on the CPU.
    try:
        return isinstance(getattr(array, "__cuda_array_interface__", None), dict)
    except (AttributeError, RuntimeError, TypeError):
        return False
