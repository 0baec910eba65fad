"""Checks of settings, weights and priors, with messages that say what is allowed."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.exceptions import ParameterError, TableError

__all__ = [
    "check_choice",
    "check_n_jobs",
    "check_number",
    "check_weights",
    "check_whole",
    "warn_user",
]

# Frames of these packages are between the user's line and a warning.
_OWN = ("steelyard", "sklearn")


def check_choice(owner: object, name: str, allowed: Sequence[str]) -> str:
    """Return a setting of ``owner`` if it is one of the allowed words."""
    value = getattr(owner, name)
    if isinstance(value, str) and value in allowed:
        return value
    words = ", ".join(repr(word) for word in allowed)
    raise ParameterError(
        f"The {name!r} parameter of {type(owner).__name__} must be one of {words}. "
        f"Got {value!r} instead."
    )


def check_n_jobs(owner: object, n_jobs: Any) -> None:
    """Refuse a number of threads that means nothing."""
    if n_jobs is None:
        return
    if isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool) and n_jobs != 0:
        return
    raise ParameterError(
        f"The 'n_jobs' parameter of {type(owner).__name__} must be None, a number of "
        f"threads, or -1 for all cores. Got {n_jobs!r} instead."
    )


def check_whole(owner: object, name: str, least: int) -> int:
    """Return a setting that must be a whole number of at least ``least``."""
    value = getattr(owner, name)
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if whole and int(value) >= least:
        return int(value)
    raise ParameterError(
        f"The {name!r} parameter of {type(owner).__name__} must be a whole number of "
        f"at least {least}. Got {value!r} instead."
    )


def check_number(owner: object, name: str, most: float) -> float:
    """Return a setting that must be a finite number from 0 to ``most``."""
    value = getattr(owner, name)
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if is_number and 0.0 <= float(value) <= most and np.isfinite(float(value)):
        return float(value)
    end = "inf)" if np.isinf(most) else f"{most:g}]"
    raise ParameterError(
        f"The {name!r} parameter of {type(owner).__name__} must be a float in the "
        f"range [0, {end}. Got {value!r} instead."
    )


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the line that called the package, however deep the call."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None:
        module = frame.f_globals.get("__name__", "")
        if module.partition(".")[0] not in _OWN:
            break
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


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
    if not weights.any():
        raise TableError("All sample weights are zero: no row is left to learn from.")
    return weights
