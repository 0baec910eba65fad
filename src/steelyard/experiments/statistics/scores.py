"""Scores of methods over data sets, and their differences: checked and rounded.

Scores come as one row per data set and one column per method. Equal is meant up to
twelve digits: means of folds that are equal on paper may differ in the last bit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.exceptions import ParameterError

__all__ = [
    "Floats",
    "check_alpha",
    "check_control",
    "check_scores",
    "differences_of",
    "rank",
    "tidy",
]

Floats = NDArray[np.float64]


def tidy(values: Floats) -> Floats:
    """Round to twelve digits of the largest value."""
    known = np.abs(values[np.isfinite(values)])
    largest = float(known.max()) if known.size else 0.0
    if largest == 0.0:
        return values
    return np.round(values, 12 - int(np.ceil(np.log10(largest))))


def rank(values: Floats, axis: int | None = None) -> Floats:
    """Rank values from 1 for the smallest; equal ones share the mean of their ranks."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(values, axis=axis), dtype=np.float64)


def check_scores(scores: ArrayLike, larger_is_better: bool = True) -> Floats:
    """Return scores of which more is better, one row per data set."""
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 2 or 0 in values.shape:
        raise ParameterError(
            "Scores must have a row for each data set and a column for each method. "
            f"Got an array of shape {values.shape}."
        )
    _check_finite(values)
    return values if larger_is_better else -values


def check_alpha(alpha: float) -> None:
    """Refuse a level that is no probability."""
    if not 0 < alpha < 1:
        raise ParameterError(f"alpha must lie between 0 and 1. Got {alpha}.")


def check_control(control: int, n_methods: int) -> None:
    """Refuse a control that is no column of the scores."""
    if not 0 <= control < n_methods:
        raise ParameterError(
            "control must be the column of a method, from 0 to "
            f"{n_methods - 1}. Got {control}."
        )


def differences_of(first: ArrayLike, second: ArrayLike | None) -> Floats:
    """Return differences of two methods; without the second, the first holds them."""
    a = np.asarray(first, dtype=np.float64)
    b = np.zeros_like(a) if second is None else np.asarray(second, dtype=np.float64)
    if a.ndim != 1 or a.shape != b.shape or len(a) == 0:
        raise ParameterError(
            "Both methods need one score for each data set. "
            f"Got arrays of shapes {a.shape} and {b.shape}."
        )
    _check_finite(a - b)
    # Rounded as scores are, or 0.9 - 0.8 would not tie with 0.4 - 0.3.
    largest = max(np.abs(a).max(), np.abs(b).max())
    return tidy(np.append(a - b, largest))[:-1]


def _check_finite(values: Floats) -> None:
    if not np.all(np.isfinite(values)):
        raise ParameterError(
            "Scores hold NaN or infinity. Leave out data sets on which a method has "
            "no score."
        )
