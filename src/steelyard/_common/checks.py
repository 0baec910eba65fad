"""Checks of fits, of row weights and of where rows are; warnings at the user's line."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.exceptions import TableError

# Weights of rows and of classes, and sums of their products, stay finite in single
# precision, which preconditioners have.
LEAST_WEIGHT, LARGEST_WEIGHT = 1e-15, 1e15

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


def check_weights(sample_weight: Any, n_rows: int) -> NDArray[np.float64] | None:
    """Return row weights as float64, or None where all are one."""
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TableError(f"sample_weight must hold numbers: {error}.") from None
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.ndim != 1:
        raise TableError(
            f"Sample weights must be 1D array or scalar, got {weights.ndim}D array."
        )
    if weights.shape[0] != n_rows:
        raise TableError(
            f"sample_weight.shape == {weights.shape}, expected {(n_rows,)}: one weight "
            "for each row."
        )
    if not np.isfinite(weights).all():
        row = int(np.flatnonzero(~np.isfinite(weights))[0])
        raise TableError(
            f"sample_weight contains NaN or infinity (row {row}). Weights must be "
            "finite; use 0 to leave a row out."
        )
    if (weights < 0).any():
        row = int(np.flatnonzero(weights < 0)[0])
        raise TableError(
            f"Negative values in data passed to `sample_weight` (row {row}: "
            f"{weights[row]:g}). Weights must be 0 or more."
        )
    outside = (weights > LARGEST_WEIGHT) | (weights < LEAST_WEIGHT) & (weights > 0)
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        raise TableError(
            f"sample_weight holds {weights[row]:g} (row {row}). Weights must be 0, or "
            f"from {LEAST_WEIGHT:g} to {LARGEST_WEIGHT:g}. Divide all of them by a "
            "power of ten; use 0 to leave a row out."
        )
    if not weights.any():
        raise TableError("All sample weights are zero: no row is left to learn from.")
    return weights


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
