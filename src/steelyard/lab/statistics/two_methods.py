"""Tests of two methods: corrected t on one data set, Wilcoxon over several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.exceptions import ParameterError
from steelyard.lab.statistics.ranks import (
    Floats,
    check_alpha,
    check_scores,
    differences_of,
    holm,
    rank,
    tidy,
)

__all__ = [
    "PairedTTest",
    "WilcoxonMatrix",
    "WilcoxonTest",
    "WinTieLoss",
    "corrected_t_test",
    "wilcoxon_matrix",
    "wilcoxon_signed_rank",
    "win_tie_loss",
]

Zeros = Literal["split", "drop"]
ZEROS = ("split", "drop")
MAX_EXACT = 25
"""Largest number of differences for which Wilcoxon's test counts sign patterns."""


@dataclass(frozen=True)
class PairedTTest:
    """A paired t-test; its fields are numbers, or arrays where several were made.

    `mean` is that of the differences; p is two-tailed, NaN with fewer than two of them.
    """

    mean: Any
    statistic: Any
    p_value: Any


def corrected_t_test(differences: ArrayLike, ratio: ArrayLike) -> PairedTTest:
    r"""Test paired differences over the folds of repeated cross-validation.

    .. math:: t = \bar d \Big/ \sqrt{(1/J + n_{test}/n_{train}) \, s^2}

    with J - 1 degrees of freedom, two-tailed. Training sets of folds overlap, so that
    the variance of the usual test is too small; the ratio of sizes corrects that. Where
    s = 0, p is 1 if all differences are 0 and 0 otherwise, as in Weka.

    Parameters
    ----------
    differences : array-like of shape (..., J)
        Differences by fold, the same folds for both methods. NaN is left out.
    ratio : array-like of shape (...)
        Rows tested by rows trained on; 1/9 for ten folds.

    Returns
    -------
    PairedTTest
        Numbers, or arrays of shape (...).

    References
    ----------
    C. Nadeau, Y. Bengio (2003), Inference for the generalization error, Machine
    Learning 52. doi:10.1023/A:1024068626366

    Examples
    --------
    >>> test = corrected_t_test([0.02, 0.01, 0.03, 0.02], ratio=1 / 3)
    >>> round(test.statistic, 3), round(test.p_value, 3)
    (3.207, 0.049)
    >>> corrected_t_test([0.01, 0.01], ratio=1).p_value
    0.0
    """
    from scipy.special import stdtr

    values = tidy(np.atleast_1d(np.asarray(differences, dtype=np.float64)))
    ratios = np.asarray(ratio, dtype=np.float64)
    if np.any(ratios < 0):
        raise ParameterError(
            "The ratio of rows tested to rows trained on cannot be negative. "
            f"Got {ratios.min():g}."
        )
    finite = np.isfinite(values)
    n = finite.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(finite, values, 0.0).sum(axis=-1) / n
        residuals = np.where(finite, values - mean[..., None], 0.0)
        # Equal differences leave rounding errors of their mean behind.
        largest = np.where(finite, values, -np.inf).max(axis=-1)
        equal = largest == np.where(finite, values, np.inf).min(axis=-1)
        mean = np.where(equal, largest, mean)
        variance = np.where(equal, 0.0, (residuals**2).sum(axis=-1) / (n - 1))
        statistic = mean / np.sqrt((1.0 / n + ratios) * variance)
        statistic = np.where(equal & (mean == 0), 0.0, statistic)
        p_value = 2.0 * stdtr(n - 1, -np.abs(statistic))
    p_value = np.where(equal, np.where(mean == 0, 1.0, 0.0), p_value)
    p_value = np.where(n < 2, np.nan, p_value)
    if values.ndim == 1:
        return PairedTTest(float(mean), float(statistic), float(p_value))
    return PairedTTest(mean, statistic, p_value)


@dataclass(frozen=True)
class WinTieLoss:
    """On how many data sets the method of the row beats that of the column.

    Of shape (k, k): `wins` counts where it is significantly better, `ties` where not
    significantly different, `untested` data sets with fewer than two folds for both.
    """

    wins: NDArray[np.int64]
    ties: NDArray[np.int64]
    untested: NDArray[np.int64]
    alpha: float

    @property
    def losses(self) -> NDArray[np.int64]:
        """Where it is significantly worse: the transpose of `wins`."""
        return self.wins.T

    def lead(self, row: int, column: int) -> int:
        """Return wins less losses of the row."""
        return int(self.wins[row, column] - self.wins[column, row])

    def text(self, row: int, column: int) -> str:
        """Return a cell such as ``"3/10/1"``: wins, ties and losses of the row."""
        tables = (self.wins, self.ties, self.losses)
        return "/".join(str(table[row, column]) for table in tables)


def win_tie_loss(
    folds: ArrayLike,
    ratio: ArrayLike,
    *,
    alpha: float = 0.05,
    larger_is_better: bool = True,
) -> WinTieLoss:
    """Count significant differences by the corrected resampled t-test.

    Parameters
    ----------
    folds : array-like of shape (n_datasets, n_methods, J)
        Scores by data set, method and fold; NaN where there is none.
    ratio : array-like of shape (n_datasets,)
        Rows tested by rows trained on.
    alpha : float, default=0.05
        A difference counts where p is at most this.
    larger_is_better : bool, default=True
        False for losses and times.

    Returns
    -------
    WinTieLoss
        Counts for each pair of methods.

    Examples
    --------
    >>> folds = [[[0.9, 0.8, 0.9], [0.7, 0.6, 0.7]], [[0.5, 0.6, 0.7], [0.6, 0.5, 0.7]]]
    >>> win_tie_loss(folds, ratio=[0.5, 0.5]).text(0, 1)
    '1/1/0'
    """
    check_alpha(alpha)
    cube = np.asarray(folds, dtype=np.float64)
    if cube.ndim != 3:
        raise ParameterError(
            "folds must have three axes: data sets, methods, folds. "
            f"Got an array of shape {cube.shape}."
        )
    k = cube.shape[1]
    wins, ties, untested = (np.zeros((k, k), dtype=np.int64) for _ in range(3))
    sign = 1.0 if larger_is_better else -1.0
    for a in range(k):
        # All opponents of one method at a time: the cube may be large.
        differences = sign * (cube[:, a : a + 1] - cube)
        test = corrected_t_test(differences, np.asarray(ratio)[:, None])
        significant = test.p_value <= alpha
        wins[a] = (significant & (test.mean > 0)).sum(axis=0)
        untested[a] = np.isnan(test.p_value).sum(axis=0)
        ties[a] = (test.p_value > alpha).sum(axis=0)
    return WinTieLoss(wins, ties, untested, alpha)


@dataclass(frozen=True)
class WilcoxonTest:
    """Wilcoxon's signed-rank test of two methods.

    `r_plus` is the sum of ranks where the first method is larger; p is two-tailed. Of
    the differences `n` were ranked, and `n_zeros` are zero, ranked or not.
    """

    r_plus: float
    r_minus: float
    p_value: float
    n: int
    n_zeros: int
    exact: bool

    @property
    def statistic(self) -> float:
        """T, the smaller sum of ranks."""
        return min(self.r_plus, self.r_minus)


def wilcoxon_signed_rank(
    first: ArrayLike,
    second: ArrayLike | None = None,
    *,
    zeros: Zeros = "split",
    exact: bool | None = None,
) -> WilcoxonTest:
    r"""Compare two methods over data sets by signed ranks of their differences.

    .. math:: R^+ = \sum_{d_i > 0} rank(|d_i|) + \tfrac12 \sum_{d_i = 0} rank(|d_i|)

    and :math:`T = \min(R^+, R^-)`. Up to 25 differences, p is exact: the share of all
    sign patterns of the ranks with sums as far apart. Beyond, T is taken as normal with
    mean N(N + 1)/4 and variance :math:`\sum_i rank_i^2 / 4`, which is
    N(N + 1)(2N + 1)/24 where no ranks are tied.

    Parameters
    ----------
    first, second : array-like of shape (n_datasets,)
        Scores of both methods; without the second, the first holds differences.
    zeros : {"split", "drop"}, default="split"
        As Demsar treats differences of zero: their ranks are shared between both
        sums, and one is left out if their number is odd. ``"drop"``, Wilcoxon's own
        and most programs' default, leaves all of them out before ranking.
    exact : bool, default=None
        Whether to count sign patterns; by default up to 25 differences.

    Returns
    -------
    WilcoxonTest
        Sums of ranks and the two-tailed p.

    References
    ----------
    J. Demsar (2006), Statistical comparisons of classifiers over multiple data sets,
    JMLR 7, 1-30.

    Examples
    --------
    >>> test = wilcoxon_signed_rank([0.8, 0.9, 0.7, 0.6], [0.7, 0.6, 0.5, 0.6])
    >>> test.r_plus, test.r_minus, test.n
    (6.0, 0.0, 3)
    >>> test.p_value
    0.25
    """
    if zeros not in ZEROS:
        raise ParameterError(f"zeros must be 'split' or 'drop'. Got {zeros!r}.")
    d = differences_of(first, second)
    n_zeros = int(np.sum(d == 0))
    leave_out = n_zeros if zeros == "drop" else n_zeros % 2
    d = np.delete(d, np.flatnonzero(d == 0)[:leave_out])
    if len(d) == 0 or not d.any():
        half = len(d) * (len(d) + 1) / 4
        return WilcoxonTest(half, half, 1.0, len(d), n_zeros, True)
    ranks = rank(np.abs(d))
    total = float(ranks.sum())
    plus = float(ranks @ (np.sign(d) + 1) / 2)
    smaller = min(plus, total - plus)
    if exact is None:
        exact = len(d) <= MAX_EXACT
    p_value = _exact_p(ranks, smaller) if exact else _normal_p(ranks, smaller)
    return WilcoxonTest(plus, total - plus, p_value, len(d), n_zeros, exact)


@dataclass(frozen=True)
class WilcoxonMatrix:
    """Wilcoxon's test of every pair of methods.

    Of shape (k, k): `r_plus` has the sum of ranks in favour of the method of the row,
    `p_values` 1 on the diagonal, `adjusted` p after Holm's correction for all pairs.
    """

    r_plus: Floats
    p_values: Floats
    adjusted: Floats
    zeros: str


def wilcoxon_matrix(
    scores: ArrayLike, *, zeros: Zeros = "split", larger_is_better: bool = True
) -> WilcoxonMatrix:
    """Compare every two methods over data sets by Wilcoxon's signed ranks.

    Parameters
    ----------
    scores, larger_is_better
        See `average_ranks`.
    zeros : {"split", "drop"}, default="split"
        See `wilcoxon_signed_rank`.

    Returns
    -------
    WilcoxonMatrix
        Sums of ranks and p for each pair.

    Examples
    --------
    >>> tests = wilcoxon_matrix([[3, 2, 1], [6, 5, 3], [9, 7, 5]])
    >>> float(tests.r_plus[0, 2]), float(tests.p_values[0, 2])
    (6.0, 0.25)
    """
    values = check_scores(scores, larger_is_better)
    k = values.shape[1]
    r_plus, p_values, adjusted = np.zeros((k, k)), np.ones((k, k)), np.ones((k, k))
    upper = np.triu_indices(k, 1)
    for a, b in zip(*upper, strict=True):
        test = wilcoxon_signed_rank(values[:, a], values[:, b], zeros=zeros)
        r_plus[a, b], r_plus[b, a] = test.r_plus, test.r_minus
        p_values[a, b] = p_values[b, a] = test.p_value
    adjusted[upper] = holm(p_values[upper])
    adjusted.T[upper] = adjusted[upper]
    return WilcoxonMatrix(r_plus, p_values, adjusted, zeros)


def _exact_p(ranks: Floats, statistic: float) -> float:
    """Share of sign patterns with a sum of ranks as extreme on either side."""
    # SciPy counts patterns of untied ranks: up to 0.19 off for rounded differences.
    # Tied ranks are halves: sums in units of one half, no larger than the statistic.
    steps = np.rint(2 * ranks).astype(np.int64)
    shares = np.zeros(round(2 * statistic) + 1)
    shares[0] = 1.0
    for step in steps:
        # Halved each time, since counts of patterns would overflow.
        shares *= 0.5
        if step < len(shares):
            shares[step:] = shares[step:] + shares[:-step]
    return float(min(1.0, 2.0 * shares.sum()))


def _normal_p(ranks: Floats, statistic: float) -> float:
    from scipy.special import ndtr

    z = (statistic - ranks.sum() / 2) / np.sqrt((ranks**2).sum() / 4)
    return float(min(1.0, 2.0 * ndtr(z)))
