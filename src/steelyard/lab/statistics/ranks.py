"""Tests on average ranks of many methods: Friedman, Nemenyi, Bonferroni-Dunn, Holm.

What all tests share is at the end: checks of scores, one row per data set and one
column per method, and rounding. Equal is meant up to twelve digits: means of folds that
are equal on paper may differ in the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.exceptions import ParameterError

__all__ = [
    "Friedman",
    "RankComparison",
    "average_ranks",
    "compare_ranks",
    "critical_difference",
    "friedman",
    "holm",
]

Floats = NDArray[np.float64]


def average_ranks(scores: ArrayLike, *, larger_is_better: bool = True) -> Floats:
    """Rank the methods on each data set, 1 for the best, and average.

    Parameters
    ----------
    scores : array-like of shape (n_datasets, n_methods)
        One score per data set and method.
    larger_is_better : bool, default=True
        False for losses and times.

    Returns
    -------
    array of shape (n_methods,)
        Mean ranks; equal scores share the mean of their ranks.

    Examples
    --------
    >>> average_ranks([[0.9, 0.8, 0.8], [0.7, 0.6, 0.5]])
    array([1.  , 2.25, 2.75])
    """
    return _dataset_ranks(check_scores(scores, larger_is_better)).mean(axis=0)


@dataclass(frozen=True)
class Friedman:
    """Friedman's test that all methods are alike.

    `ranks` has the average rank of each method, shape (k,); `chi2` is Friedman's
    statistic, of k - 1 degrees of freedom, `f_statistic` Iman and Davenport's, of k - 1
    and (k - 1)(N - 1).
    """

    ranks: Floats
    chi2: float
    p_value: float
    f_statistic: float
    f_p_value: float
    n_datasets: int


def friedman(
    scores: ArrayLike, *, larger_is_better: bool = True, ties: bool = False
) -> Friedman:
    r"""Test whether any method differs from the others over data sets.

    .. math::

        \chi^2_F = \frac{12N}{k(k+1)} \Big[\sum_j R_j^2 - \frac{k(k+1)^2}{4}\Big],
        \qquad F_F = \frac{(N-1)\chi^2_F}{N(k-1) - \chi^2_F}

    Parameters
    ----------
    scores, larger_is_better
        See `average_ranks`.
    ties : bool, default=False
        Whether to correct the statistic for tied ranks, as SciPy does and the formula
        above does not.

    Returns
    -------
    Friedman
        Both statistics with their p.

    References
    ----------
    J. Demsar (2006), JMLR 7, 1-30. R. L. Iman, J. M. Davenport (1980), Communications
    in Statistics 9, 571-595.

    Examples
    --------
    >>> test = friedman([[3, 2, 1], [3, 1, 2], [3, 2, 1], [2, 3, 1]])
    >>> test.chi2, round(test.f_statistic, 2)
    (4.5, 3.86)
    """
    from scipy.stats import chi2, f

    values = check_scores(scores, larger_is_better)
    n, k = values.shape
    if n < 2 or k < 2:
        raise ParameterError(
            "Friedman's test needs two data sets and two methods at least. "
            f"Got {n} and {k}."
        )
    by_dataset = _dataset_ranks(values)
    ranks = by_dataset.mean(axis=0)
    spread = float(((ranks - (k + 1) / 2) ** 2).sum())
    statistic = 12.0 * n / (k * (k + 1)) * spread
    if ties:
        # Var of tied ranks over that of untied ones; all tied is no evidence at all.
        share = float(by_dataset.var(axis=1).mean() * 12 / (k * k - 1))
        statistic = statistic / share if share > 0 else 0.0
    left = n * (k - 1) - statistic
    agree = left <= 1e-9 * n * k
    f_statistic = np.inf if agree else (n - 1) * statistic / left
    p_value = float(chi2.sf(statistic, k - 1))
    f_p_value = float(f.sf(f_statistic, k - 1, (k - 1) * (n - 1)))
    return Friedman(ranks, statistic, p_value, float(f_statistic), f_p_value, n)


def critical_difference(
    n_methods: int,
    n_datasets: int,
    *,
    alpha: float = 0.05,
    test: Literal["nemenyi", "bonferroni-dunn"] = "nemenyi",
) -> float:
    r"""Return by how much average ranks have to differ to be significant.

    .. math:: CD = q_\alpha \sqrt{k(k+1)/(6N)}

    Parameters
    ----------
    n_methods, n_datasets : int
        k and N.
    alpha : float, default=0.05
        Level of the whole family of comparisons.
    test : {"nemenyi", "bonferroni-dunn"}, default="nemenyi"
        All pairs, with the studentized range by the square root of 2; or all against
        one control, with the normal quantile at 1 - alpha / (2(k - 1)).

    Returns
    -------
    float
        The critical difference.

    Examples
    --------
    >>> round(critical_difference(4, 14), 3)
    1.254
    >>> round(critical_difference(4, 14, test="bonferroni-dunn"), 3)
    1.168
    """
    check_alpha(alpha)
    if n_methods < 2 or n_datasets < 1:
        raise ParameterError(
            "A critical difference needs two methods and one data set at least. "
            f"Got {n_methods} and {n_datasets}."
        )
    if test == "nemenyi":
        quantile = _nemenyi_quantile(n_methods, alpha)
    elif test == "bonferroni-dunn":
        from scipy.special import ndtri

        quantile = float(-ndtri(alpha / (2 * (n_methods - 1))))
    else:
        raise ParameterError(
            f"test must be 'nemenyi' or 'bonferroni-dunn'. Got {test!r}."
        )
    return quantile * _rank_error(n_methods, n_datasets)


@dataclass(frozen=True)
class RankComparison:
    """Differences of average ranks, tested together.

    `pairs` are the columns of the methods compared, shape (m, 2). The others have shape
    (m,): `z` is negative where the first of the pair has the better rank, `p_values`
    are each by itself, two-tailed, `adjusted` corrected for the whole family.
    """

    pairs: NDArray[np.int64]
    z: Floats
    p_values: Floats
    adjusted: Floats
    correction: str


def compare_ranks(
    scores: ArrayLike,
    *,
    control: int | None = None,
    correction: Literal["holm", "bonferroni-dunn", "nemenyi"] = "holm",
    larger_is_better: bool = True,
) -> RankComparison:
    r"""Compare average ranks, all pairs or all against a control.

    .. math:: z = (R_a - R_b) \Big/ \sqrt{k(k+1)/(6N)}

    Parameters
    ----------
    scores, larger_is_better
        See `average_ranks`.
    control : int, default=None
        Column of the method that all others are compared with; all pairs if None.
    correction : {"holm", "bonferroni-dunn", "nemenyi"}, default="holm"
        How p is corrected for many comparisons. Nemenyi's is for all pairs.

    Returns
    -------
    RankComparison
        One entry for each comparison.

    Examples
    --------
    >>> scores = [[3, 2, 1], [3, 1, 2], [3, 2, 1], [2, 3, 1]]
    >>> compare_ranks(scores, control=0).adjusted.round(3)
    array([0.289, 0.068])
    """
    values = check_scores(scores, larger_is_better)
    n, k = values.shape
    if k < 2:
        raise ParameterError(f"Ranks of two methods at least are needed. Got {k}.")
    if control is None:
        pairs = np.column_stack(np.triu_indices(k, 1))
    else:
        check_control(control, k)
        others = np.delete(np.arange(k), control)
        pairs = np.column_stack([np.full(k - 1, control), others])
    from scipy.special import ndtr

    ranks = average_ranks(values)
    z = (ranks[pairs[:, 0]] - ranks[pairs[:, 1]]) / _rank_error(k, n)
    p_values = 2.0 * ndtr(-np.abs(z))
    if correction == "holm":
        adjusted = holm(p_values)
    elif correction == "bonferroni-dunn":
        adjusted = np.minimum(1.0, p_values * len(pairs))
    elif correction == "nemenyi" and control is None:
        from scipy.stats import studentized_range

        adjusted = studentized_range.sf(np.abs(z) * np.sqrt(2.0), k, np.inf)
    else:
        raise ParameterError(
            "correction must be 'holm', 'bonferroni-dunn', or, without a control, "
            f"'nemenyi'. Got {correction!r}."
        )
    return RankComparison(pairs, z, p_values, adjusted, correction)


def holm(p_values: ArrayLike) -> Floats:
    r"""Correct p for many comparisons by Holm's step-down procedure.

    .. math:: \tilde p_{(i)} = \max_{j \le i} \min(1, (m - j + 1) \, p_{(j)})

    Parameters
    ----------
    p_values : array-like of shape (m,)
        p of each comparison by itself.

    Returns
    -------
    array of shape (m,)
        A comparison is significant at alpha where its corrected p is at most alpha.

    Examples
    --------
    >>> holm([0.03, 0.01, 0.04])
    array([0.06, 0.03, 0.06])
    """
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1 or not np.all((p >= 0) & (p <= 1)):
        raise ParameterError("p_values must be numbers from 0 to 1 in one dimension.")
    order = np.argsort(p, kind="stable")
    steps = np.minimum(1.0, p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(steps)
    return adjusted


def _dataset_ranks(scores: Floats) -> Floats:
    return rank(-tidy(scores), axis=1)


def _rank_error(n_methods: int, n_datasets: int) -> float:
    return float(np.sqrt(n_methods * (n_methods + 1) / (6.0 * n_datasets)))


@lru_cache(maxsize=256)
def _nemenyi_quantile(n_methods: int, alpha: float) -> float:
    from scipy.stats import studentized_range

    return float(studentized_range.ppf(1 - alpha, n_methods, np.inf) / np.sqrt(2.0))


# ------------------------------------------------------- what tests of scores share


def tidy(values: Floats) -> Floats:
    """Round to twelve digits of the largest value."""
    sizes = np.abs(values[np.isfinite(values)])
    largest = float(sizes.max()) if sizes.size else 0.0
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
