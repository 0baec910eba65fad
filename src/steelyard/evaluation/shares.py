"""Shares of rows: their intervals, costs of errors, and tests of a shift."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from steelyard._common.arrays import Floats
from steelyard.exceptions import ParameterError

LEVEL = 0.95

Costs = Any
"""A checked pair or matrix, or None."""

_MAX_GROUPS = 10
# Rows that a group has on average in the smaller of two samples.
_MIN_ROWS_PER_GROUP = 20


class Estimate(NamedTuple):
    """A number measured on some rows, and its interval; NaN without rows."""

    value: float
    low: float
    high: float


def share_estimate(n_hits: int, n_rows: int, level: float = LEVEL) -> Estimate:
    r"""Return a share of rows with Wilson's interval.

    .. math:: \frac{p + z^2/2n \pm z\sqrt{p(1-p)/n + z^2/4n^2}}{1 + z^2/n}

    >>> [round(number, 3) for number in share_estimate(8, 10)]
    [0.8, 0.49, 0.943]
    """
    if not n_rows:
        return Estimate(np.nan, np.nan, np.nan)
    z, p = _normal(level), n_hits / n_rows
    half = z * np.sqrt(p * (1 - p) / n_rows + z**2 / (4 * n_rows**2))
    middle = p + z**2 / (2 * n_rows)
    low, high = ((middle + s * half) / (1 + z**2 / n_rows) for s in (-1, 1))
    # Rounding must not put an end beyond the share itself.
    return Estimate(p, float(min(max(low, 0.0), p)), float(max(min(high, 1.0), p)))


def mean_estimate(values: Floats, level: float = LEVEL) -> Estimate:
    """Return a mean over rows with its normal interval, from 0 on if no row is below.

    >>> [round(number, 2) for number in mean_estimate(np.array([1.0, 2.0, 3.0]))]
    [2.0, 0.87, 3.13]
    """
    if not len(values):
        return Estimate(np.nan, np.nan, np.nan)
    mean = float(np.mean(values))
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else np.inf
    half = _normal(level) * spread / float(np.sqrt(len(values)))
    low_end = 0.0 if values.min() >= 0.0 else -np.inf
    return Estimate(mean, max(mean - half, low_end), mean + half)


def mean_cost(errors: Sequence[int], costs: Sequence[float], n_rows: int) -> Estimate:
    r"""Return the cost of errors per row, with its interval.

    .. math:: m = \sum_k c_k p_k, \quad
        \Bigl[m - \sqrt{\textstyle\sum_k c_k^2 (p_k - l_k)^2},\;
        m + \sqrt{\textstyle\sum_k c_k^2 (u_k - p_k)^2}\Bigr]

    Shares :math:`p_k` of the kinds of errors have Wilson's intervals :math:`[l_k,
    u_k]`, so that no error on few rows is not taken for no cost (Zou and Donner 2008).

    >>> [round(number, 3) for number in mean_cost([2, 0], [1.0, 5.0], 20)]
    [0.1, 0.028, 0.93]
    """
    shares = [share_estimate(int(n), n_rows) for n in errors]
    priced = list(zip(shares, map(float, costs), strict=True))
    mean = sum(c * p.value for p, c in priced)
    below = np.sqrt(sum((c * (p.value - p.low)) ** 2 for p, c in priced))
    above = np.sqrt(sum((c * (p.high - p.value)) ** 2 for p, c in priced))
    return Estimate(mean, float(max(mean - below, 0.0)), float(mean + above))


def _normal(level: float) -> Any:
    return NormalDist().inv_cdf((1.0 + level) / 2.0)


# ------------------------------------------------------------------------- costs


class Decision(NamedTuple):
    """The class of least expected cost of each row, and the cost per row."""

    decided: NDArray[np.intp]
    cost: Estimate


def check_costs(costs: Any) -> Costs:
    """Return costs of a false alarm and of a miss, or of all errors of several classes.

    >>> check_costs({"fp": 1, "fn": 5}), check_costs([1, 20])
    ((1.0, 5.0), (1.0, 20.0))
    >>> check_costs([[0, 1, 1], [5, 0, 1], [9, 1, 0]]).shape
    (3, 3)
    """
    if costs is None:
        return None
    given = costs
    if isinstance(costs, Mapping):
        given = [costs[key] for key in ("fp", "fn") if key in costs]
        given = given if len(given) == len(costs) else []
    try:
        array = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    is_matrix = array.ndim == 2 and array.shape[0] == array.shape[1] >= 2
    are_costs = (array >= 0.0).all() and 0.0 < array.sum() < np.inf
    if not (is_matrix or array.shape == (2,)) or not are_costs:
        raise ParameterError(
            "`costs` takes the cost of a false alarm and of a miss, such as 1,20 or "
            "fp=1,fn=20, or for several classes a matrix with a row for each true "
            f"class and a column for each decision. Got {costs!r}."
        )
    return array if is_matrix else (float(array[0]), float(array[1]))


def decide(
    proba: NDArray[np.float64] | None,
    true: NDArray[np.intp],
    costs: Costs,
    positive: int | None,
) -> Decision | None:
    r"""Decide for the class whose expected cost is least, :math:`\sum_c p_c C_{ck}`.

    Of two classes the positive one is decided for from a probability of :math:`c_{fp} /
    (c_{fp} + c_{fn})`. None without costs.
    """
    if costs is None:
        return None
    if proba is None:
        problem = "`costs` need probabilities, which this classifier does not have."
        raise ParameterError(problem)
    k, matrix = proba.shape[1], costs
    if isinstance(costs, tuple):
        if k != 2 or positive is None:
            raise ParameterError(
                "`costs` of a false alarm and of a miss are for two classes; there are "
                f"{k}. In Python give a matrix of {k} × {k}: "
                "evaluate(..., costs=matrix), rows the true classes."
            )
        matrix = np.zeros((2, 2))
        matrix[1 - positive, positive], matrix[positive, 1 - positive] = costs
    if matrix.shape != (k, k):
        size = f"{len(matrix)} × {len(matrix)}"
        raise ParameterError(f"`costs` are {size}, and there are {k} classes.")
    decided = (proba @ matrix).argmin(axis=1)
    if isinstance(costs, tuple) and positive is not None:
        # The same threshold, to the bit, as that of `thresholds`.
        chosen = proba[:, positive] >= costs[0] / sum(costs)
        decided = np.where(chosen, positive, 1 - positive)
    cells = np.bincount(true * k + decided, minlength=k * k)
    return Decision(decided, mean_cost(cells.tolist(), matrix.ravel(), len(true)))


# -------------------------------------------------------------------- histograms


def stability_index(expected: Any, actual: Any) -> float:
    r"""Return the population stability index of two histograms.

    .. math:: \mathrm{PSI} = \sum_b (a_b - e_b) \log \frac{a_b}{e_b}

    for shares :math:`e_b` and :math:`a_b`; a bin that is empty in one counts as half a
    row there. Bins that are empty in both are left out. Of two samples of m and n rows
    from the same distribution it has a mean of about :math:`(B - 1)(1/m + 1/n)`.

    >>> round(stability_index([50, 50], [30, 70]), 4)
    0.1695
    """
    before, now = (np.asarray(c, dtype=np.float64) for c in (expected, actual))
    used = (before > 0.0) | (now > 0.0)
    shares = [np.where(c > 0.0, c, 0.5)[used] / c.sum() for c in (before, now)]
    return float(((shares[1] - shares[0]) * np.log(shares[1] / shares[0])).sum())


class Comparison(NamedTuple):
    """Two histograms in few groups, and their population stability index."""

    psi: float
    by_chance: float
    """The mean of the index if nothing has changed."""

    limit: float
    """The quantile of the index if nothing has changed, at the given chance."""

    names: list[str]
    expected: list[float]
    """Share of each group before."""

    actual: list[float]


def compare_counts(
    expected: Sequence[float],
    actual: Sequence[float],
    names: Sequence[str] | Callable[[list[int]], str],
    chance: float,
    *,
    ordered: bool = True,
    missing: tuple[float, float] = (0.0, 0.0),
    n_before: float | None = None,
) -> Comparison | None:
    """Compare two histograms in at most ten groups, none without 20 rows or so.

    Names may be a function, from the positions in a group to its name. With ``ordered``
    neighbours are merged, otherwise the rarest values. ``missing`` has the rows without
    a value, a separate group. If nothing has changed ``limit`` is exceeded with
    probability ``chance``. ``n_before`` is the number of rows behind the expected
    shares, if that is not their sum. None if one of the two has no rows.

    >>> shift = compare_counts([60, 40], [30, 70], ["a", "b"], 0.05)
    >>> round(shift.psi, 2), round(shift.limit, 2), shift.actual
    (0.38, 0.08, [0.3, 0.7])
    """
    before, now = np.asarray(expected, dtype=float), np.asarray(actual, dtype=float)
    m, n = before.sum() + missing[0], now.sum() + missing[1]
    if not m > 0.0 or not n > 0.0:
        return None
    rows = min(m if n_before is None else n_before, n)
    groups = grouped_values(before, rows, ordered)
    kept = [group for group in groups if before[group].sum() + now[group].sum() > 0]
    counts = np.array([[before[g].sum(), now[g].sum()] for g in kept] + [missing])
    labels = [_named(names, group, ordered) for group in kept]
    labels.append("(missing)")
    if not any(missing):
        counts, labels = counts[:-1], labels[:-1]
    spread = float(1.0 / (m if n_before is None else n_before) + 1.0 / n)
    by_chance = (len(counts) - 1) * spread
    # The upper quantile of the chi-squared distribution.
    limit = float(chdtri(len(counts) - 1, chance)) * spread if len(counts) > 1 else 0.0
    psi = stability_index(counts[:, 0], counts[:, 1])
    shares = [(counts[:, 0] / m).tolist(), (counts[:, 1] / n).tolist()]
    return Comparison(psi, by_chance, limit, labels, *shares)


def grouped_values(
    before: Sequence[float] | Floats, rows: float, ordered: bool
) -> list[list[int]]:
    """Put values into at most ten groups, by their rows and those of a sample.

    >>> grouped_values([50, 1, 2, 47], 100, ordered=False)
    [[0], [3], [1, 2]]
    """
    most = int(np.clip(rows // _MIN_ROWS_PER_GROUP, 2, _MAX_GROUPS))
    weights = np.asarray(before, dtype=float)
    return _neighbours(weights, most) if ordered else _by_size(weights, most)


def _neighbours(before: Floats, most: int) -> list[list[int]]:
    """Merge neighbouring values into groups of about equally many rows."""
    share, groups, filled = before.sum() / most, [[]], 0.0  # type: ignore[var-annotated]
    for k, weight in enumerate(before.tolist()):
        if groups[-1] and filled >= share * (1.0 - 1e-9):
            groups.append([])
            filled = 0.0
        groups[-1].append(k)
        filled += weight
    if len(groups) > 1 and filled < share / 2.0:
        last = groups.pop()
        groups[-1] += last
    return groups


def _by_size(before: Floats, most: int) -> list[list[int]]:
    """Make a group of each frequent value, and one of all others."""
    order = np.argsort(-before, kind="stable")
    share = before.sum() / most / 2.0
    alone = [k for k in order[: most - 1].tolist() if before[k] >= share]
    others = [k for k in range(len(before)) if k not in set(alone)]
    return [*([k] for k in alone), others] if others else [[k] for k in alone]


def _named(
    names: Sequence[str] | Callable[[list[int]], str], group: list[int], ordered: bool
) -> str:
    if callable(names):
        return names(group)
    if len(group) == 1:
        return names[group[0]]
    both = f"{names[group[0]]} … {names[group[-1]]}"
    return both if ordered else f"{len(group)} others"
