"""Checks of fits and of where rows are, and warnings at the line of the user."""

from __future__ import annotations

import sys
import warnings
from typing import Any

# Frames of these packages are between the user's line and a warning.
_OWN = ("steelyard", "sklearn")


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line that called the package, however deep the call."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None:
        module = frame.f_globals.get("__name__", "")
        if module.partition(".")[0] not in _OWN:
            break
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def check_fitted(estimator: Any) -> None:
    """Raise scikit-learn's error where a classifier is not fitted."""
    if not hasattr(estimator, "model_"):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(estimator)


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
