"""Intervals of shares, means and costs."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from steelyard._common.arrays import Floats

__all__ = ["Estimate", "mean_cost", "mean_estimate", "share_estimate"]

LEVEL = 0.95


class Estimate(NamedTuple):
    """A number measured on some rows, and its interval; NaN without rows."""

    value: float
    low: float
    high: float


def share_estimate(part: int, whole: int, level: float = LEVEL) -> Estimate:
    r"""Return a share of rows with Wilson's interval.

    .. math:: \frac{p + z^2/2n \pm z\sqrt{p(1-p)/n + z^2/4n^2}}{1 + z^2/n}

    Examples
    --------
    >>> [round(number, 3) for number in share_estimate(8, 10)]
    [0.8, 0.49, 0.943]
    """
    if not whole:
        return Estimate(np.nan, np.nan, np.nan)
    z, p = _normal(level), part / whole
    half = z * np.sqrt(p * (1 - p) / whole + z**2 / (4 * whole**2))
    middle = p + z**2 / (2 * whole)
    low, high = ((middle + s * half) / (1 + z**2 / whole) for s in (-1, 1))
    # Rounding must not put an end beyond the share itself.
    return Estimate(p, float(min(max(low, 0.0), p)), float(max(min(high, 1.0), p)))


def mean_estimate(values: Floats, level: float = LEVEL) -> Estimate:
    """Return a mean over rows with its normal interval, from 0 on if no row is below.

    Examples
    --------
    >>> [round(number, 2) for number in mean_estimate(np.array([1.0, 2.0, 3.0]))]
    [2.0, 0.87, 3.13]
    """
    if not len(values):
        return Estimate(np.nan, np.nan, np.nan)
    mean = float(np.mean(values))
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else np.inf
    half = _normal(level) * spread / float(np.sqrt(len(values)))
    least = 0.0 if values.min() >= 0.0 else -np.inf
    return Estimate(mean, max(mean - half, least), mean + half)


def mean_cost(
    errors: Sequence[int], costs: Sequence[float], n_rows: int, level: float = LEVEL
) -> Estimate:
    r"""Return the cost of errors per row, with its interval.

    .. math:: m = \sum_k c_k p_k, \quad
        \Bigl[m - \sqrt{\textstyle\sum_k c_k^2 (p_k - l_k)^2},\;
        m + \sqrt{\textstyle\sum_k c_k^2 (u_k - p_k)^2}\Bigr]

    Shares :math:`p_k` of the kinds of errors have Wilson's intervals :math:`[l_k,
    u_k]`, so that no error on few rows is not taken for no cost (Zou and Donner 2008).

    Parameters
    ----------
    errors : sequence of int
        Rows with each kind of error.
    costs : sequence of float
        Cost of each.
    n_rows : int
        All rows.
    level : float, default=0.95
        Level of the interval.

    Examples
    --------
    >>> [round(number, 3) for number in mean_cost([2, 0], [1.0, 5.0], 20)]
    [0.1, 0.028, 0.93]
    """
    shares = [share_estimate(int(n), n_rows, level) for n in errors]
    priced = list(zip(shares, map(float, costs), strict=True))
    mean = sum(c * p.value for p, c in priced)
    below = np.sqrt(sum((c * (p.value - p.low)) ** 2 for p, c in priced))
    above = np.sqrt(sum((c * (p.high - p.value)) ** 2 for p, c in priced))
    return Estimate(mean, float(max(mean - below, 0.0)), float(mean + above))


def _normal(level: float) -> Any:
    return NormalDist().inv_cdf((1.0 + level) / 2.0)
