"""Statistical tests of methods over data sets: what SciPy does not have.

- On one data set: the corrected resampled t-test; `win_tie_loss` counts it over many.
- Two methods over data sets: Wilcoxon's signed ranks as Demsar treats ties and zeros.
- Many methods: average ranks, Friedman's test with Iman and Davenport's F, Nemenyi's
  critical difference, and Holm's correction.

Tests are functions of arrays with one row per data set and one column per method, in
which larger scores are better; negate losses and times. Scores are compared up to
twelve digits, since means of folds that are equal on paper may differ in the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard.exceptions import ParameterError

__all__ = [
    "Friedman",
    "PairedTTest",
    "WilcoxonMatrix",
    "WilcoxonTest",
    "WinTieLoss",
    "average_ranks",
    "corrected_t_test",
    "critical_difference",
    "friedman",
    "holm",
    "wilcoxon_matrix",
    "wilcoxon_signed_rank",
    "win_tie_loss",
]

Floats = NDArray[np.float64]
Zeros = Literal["split", "drop"]

MAX_EXACT = 25
"""Largest number of differences for which Wilcoxon's test counts sign patterns."""


# --------------------------------------------------------------------- one data set


@dataclass(frozen=True)
class PairedTTest:
    """A paired t-test; its fields are numbers, or arrays for several tests.

    `mean` is that of the differences; p is two-tailed, NaN with fewer than two of them.
    """

    mean: Any
    statistic: Any
    p_value: Any


def corrected_t_test(differences: ArrayLike, ratio: ArrayLike) -> PairedTTest:
    r"""Test paired differences over the folds of repeated cross-validation.

    .. math:: t = \bar d \Big/ \sqrt{(1/J + n_{test}/n_{train}) \, s^2}

    with J - 1 degrees of freedom, two-tailed. Training sets of folds overlap, so that
    the variance of the usual test is too small; the ratio of sizes corrects that. If
    s = 0, p is 1 for differences of 0 and 0 for others, as in Weka.

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

    values = _rounded(np.atleast_1d(np.asarray(differences, dtype=np.float64)))
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

    Of shape (k, k): `wins` counts data sets on which it is significantly better, `ties`
    those on which the two do not differ significantly, `untested` those with fewer than
    two folds of both.
    """

    wins: NDArray[np.int64]
    ties: NDArray[np.int64]
    untested: NDArray[np.int64]

    @property
    def losses(self) -> NDArray[np.int64]:
        """Data sets on which it is significantly worse: the transpose of `wins`."""
        return self.wins.T

    def lead(self, row: int, column: int) -> int:
        """Return wins less losses of the row."""
        return int(self.wins[row, column] - self.wins[column, row])

    def text(self, row: int, column: int) -> str:
        """Return a cell such as ``"3/10/1"``: wins, ties and losses of the row."""
        tables = (self.wins, self.ties, self.losses)
        return "/".join(str(table[row, column]) for table in tables)


def win_tie_loss(
    folds: ArrayLike, ratio: ArrayLike, *, alpha: float = 0.05
) -> WinTieLoss:
    """Count significant differences by the corrected resampled t-test.

    Parameters
    ----------
    folds : array-like of shape (n_datasets, n_methods, J)
        Scores by data set, method and fold; NaN if missing.
    ratio : array-like of shape (n_datasets,)
        Rows tested by rows trained on.
    alpha : float, default=0.05
        A difference counts if p is at most this.

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
    _check_alpha(alpha)
    cube = np.asarray(folds, dtype=np.float64)
    if cube.ndim != 3:
        raise ParameterError(
            "folds must have three axes: data sets, methods, folds. "
            f"Got an array of shape {cube.shape}."
        )
    k = cube.shape[1]
    wins, ties, untested = (np.zeros((k, k), dtype=np.int64) for _ in range(3))
    for a in range(k):
        # All opponents of one method at a time: the cube may be large.
        differences = cube[:, a : a + 1] - cube
        test = corrected_t_test(differences, np.asarray(ratio)[:, None])
        wins[a] = ((test.p_value <= alpha) & (test.mean > 0)).sum(axis=0)
        untested[a] = np.isnan(test.p_value).sum(axis=0)
        ties[a] = (test.p_value > alpha).sum(axis=0)
    return WinTieLoss(wins, ties, untested)


# ------------------------------------------------------- two methods over data sets


@dataclass(frozen=True)
class WilcoxonTest:
    """Wilcoxon's signed-rank test of two methods.

    `r_plus` is the sum of ranks of data sets on which the first method is better; p is
    two-tailed. `n` is how many differences were ranked, `n_zeros` how many are zero.
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
    sign patterns of the ranks with sums as far apart. SciPy's exact p is that of untied
    ranks, up to 0.19 off for rounded scores. Beyond 25, T is taken as normal with mean
    N(N + 1)/4 and variance :math:`\sum_i rank_i^2 / 4`, which is N(N + 1)(2N + 1)/24
    without ties.

    Parameters
    ----------
    first, second : array-like of shape (n_datasets,)
        Scores of both methods; without the second, the first contains differences.
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
    if zeros not in ("split", "drop"):
        raise ParameterError(f"zeros must be 'split' or 'drop'. Got {zeros!r}.")
    from scipy.special import ndtr
    from scipy.stats import rankdata

    d = _differences(first, second)
    n_zeros = int(np.sum(d == 0))
    left_out = n_zeros if zeros == "drop" else n_zeros % 2
    d = np.delete(d, np.flatnonzero(d == 0)[:left_out])
    if not d.any():
        half = len(d) * (len(d) + 1) / 4
        return WilcoxonTest(half, half, 1.0, len(d), n_zeros, True)
    ranks = rankdata(np.abs(d))
    total = float(ranks.sum())
    plus = float(ranks @ (np.sign(d) + 1) / 2)
    smaller = min(plus, total - plus)
    if exact is None:
        exact = len(d) <= MAX_EXACT
    if exact:
        p_value = _exact_p(ranks, smaller)
    else:
        z = (smaller - total / 2) / np.sqrt((ranks**2).sum() / 4)
        p_value = float(min(1.0, 2.0 * ndtr(z)))
    return WilcoxonTest(plus, total - plus, p_value, len(d), n_zeros, exact)


def _exact_p(ranks: Floats, statistic: float) -> float:
    """Return the share of sign patterns with a sum of ranks as extreme."""
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


@dataclass(frozen=True)
class WilcoxonMatrix:
    """Wilcoxon's test of each pair of methods, zeros split.

    Of shape (k, k): `r_plus` has the sum of ranks in favour of the method of the row,
    `p_values` 1 on the diagonal, `adjusted` p after Holm's correction for all pairs.
    """

    r_plus: Floats
    p_values: Floats
    adjusted: Floats


def wilcoxon_matrix(scores: ArrayLike) -> WilcoxonMatrix:
    """Compare each pair of methods over data sets by Wilcoxon's signed ranks.

    Parameters
    ----------
    scores : array-like of shape (n_datasets, n_methods)
        One score per data set and method.

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
    values = _checked(scores)
    k = values.shape[1]
    r_plus, p_values, adjusted = np.zeros((k, k)), np.ones((k, k)), np.ones((k, k))
    upper = np.triu_indices(k, 1)
    for a, b in zip(*upper, strict=True):
        test = wilcoxon_signed_rank(values[:, a], values[:, b])
        r_plus[a, b], r_plus[b, a] = test.r_plus, test.r_minus
        p_values[a, b] = p_values[b, a] = test.p_value
    adjusted[upper] = holm(p_values[upper])
    adjusted.T[upper] = adjusted[upper]
    return WilcoxonMatrix(r_plus, p_values, adjusted)


# ------------------------------------------------------ many methods over data sets


def average_ranks(scores: ArrayLike) -> Floats:
    """Rank the methods on each data set, 1 for the best, and average.

    Parameters
    ----------
    scores : array-like of shape (n_datasets, n_methods)
        One score per data set and method.

    Returns
    -------
    array of shape (n_methods,)
        Mean ranks; equal scores share the mean of their ranks.

    Examples
    --------
    >>> average_ranks([[0.9, 0.8, 0.8], [0.7, 0.6, 0.5]])
    array([1.  , 2.25, 2.75])
    """
    from scipy.stats import rankdata

    ranks: Floats = rankdata(-_rounded(_checked(scores)), axis=1).mean(axis=0)
    return ranks


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


def friedman(scores: ArrayLike) -> Friedman:
    r"""Test whether any method differs from the others over data sets.

    .. math::

        \chi^2_F = \frac{12N}{k(k+1)} \Big[\sum_j R_j^2 - \frac{k(k+1)^2}{4}\Big],
        \qquad F_F = \frac{(N-1)\chi^2_F}{N(k-1) - \chi^2_F}

    ``scipy.stats.friedmanchisquare`` divides by a correction for tied ranks, which
    Demsar's formula does not have; without ties the two are the same.

    Parameters
    ----------
    scores : array-like of shape (n_datasets, n_methods)
        One score per data set and method.

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

    values = _checked(scores)
    n, k = values.shape
    if n < 2 or k < 2:
        raise ParameterError(
            "Friedman's test needs two data sets and two methods at least. "
            f"Got {n} and {k}."
        )
    ranks = average_ranks(values)
    spread = float(((ranks - (k + 1) / 2) ** 2).sum())
    statistic = 12.0 * n / (k * (k + 1)) * spread
    rest = n * (k - 1) - statistic
    same_order = rest <= 1e-9 * n * k
    f_statistic = np.inf if same_order else (n - 1) * statistic / rest
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
        Level of all comparisons together.
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
    _check_alpha(alpha)
    if test not in ("nemenyi", "bonferroni-dunn"):
        raise ParameterError(
            f"test must be 'nemenyi' or 'bonferroni-dunn'. Got {test!r}."
        )
    if n_methods < 2 or n_datasets < 1:
        raise ParameterError(
            "A critical difference needs two methods and one data set at least. "
            f"Got {n_methods} and {n_datasets}."
        )
    rank_error = np.sqrt(n_methods * (n_methods + 1) / (6.0 * n_datasets))
    if test == "bonferroni-dunn":
        from scipy.special import ndtri

        return float(-ndtri(alpha / (2 * (n_methods - 1))) * rank_error)
    return _nemenyi_quantile(n_methods, alpha) * float(rank_error)


@lru_cache(maxsize=256)
def _nemenyi_quantile(n_methods: int, alpha: float) -> float:
    from scipy.stats import studentized_range

    return float(studentized_range.ppf(1 - alpha, n_methods, np.inf) / np.sqrt(2.0))


def holm(p_values: ArrayLike) -> Floats:
    r"""Correct p for many comparisons by Holm's step-down procedure.

    .. math:: \tilde p_{(i)} = \max_{j \le i} \min(1, (m - j + 1) \, p_{(j)})

    Parameters
    ----------
    p_values : array-like of shape (m,)
        Uncorrected p of each comparison.

    Returns
    -------
    array of shape (m,)
        A comparison is significant at alpha if its corrected p is at most alpha.

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


# ----------------------------------------------------------------- checks, rounding


def _rounded(values: Floats) -> Floats:
    """Round to twelve digits of the largest value."""
    sizes = np.abs(values[np.isfinite(values)])
    largest = float(sizes.max()) if sizes.size else 0.0
    if largest == 0.0:
        return values
    return np.round(values, 12 - int(np.ceil(np.log10(largest))))


def _differences(first: ArrayLike, second: ArrayLike | None) -> Floats:
    """Return first minus second, rounded; the first itself without a second."""
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
    return _rounded(np.append(a - b, largest))[:-1]


def _checked(scores: ArrayLike) -> Floats:
    """Return scores as an array with a row per data set."""
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 2 or 0 in values.shape:
        raise ParameterError(
            "Scores must have a row for each data set and a column for each method. "
            f"Got an array of shape {values.shape}."
        )
    _check_finite(values)
    return values


def _check_finite(values: Floats) -> None:
    if not np.all(np.isfinite(values)):
        raise ParameterError(
            "Scores hold NaN or infinity. Leave out data sets on which a method has "
            "no score."
        )


def _check_alpha(alpha: float) -> None:
    if not 0 < alpha < 1:
        raise ParameterError(f"alpha must lie between 0 and 1. Got {alpha}.")
