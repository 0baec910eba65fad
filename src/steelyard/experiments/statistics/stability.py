"""Whether rows are distributed as those of training were."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from steelyard._common.arrays import Floats

__all__ = ["Comparison", "compare_counts", "stability_index"]

_MOST_GROUPS = 10
# Rows that a group has on average in the smaller of two samples.
_ROWS_OF_GROUP = 20


def stability_index(expected: Any, actual: Any) -> float:
    r"""Return the population stability index of two histograms.

    .. math:: \mathrm{PSI} = \sum_b (a_b - e_b) \log \frac{a_b}{e_b}

    for shares :math:`e_b` and :math:`a_b`; a bin that is empty in one counts as half a
    row there. Bins that are empty in both are left out. Of two samples of m and n rows
    from the same distribution it has a mean of about :math:`(B - 1)(1/m + 1/n)`.

    Parameters
    ----------
    expected, actual : array-like of shape (B,)
        Rows in each bin, before and now.

    Examples
    --------
    >>> round(stability_index([50, 50], [30, 70]), 4)
    0.1695
    """
    before, now = (np.asarray(c, dtype=np.float64) for c in (expected, actual))
    used = (before > 0.0) | (now > 0.0)
    shares = [np.where(c > 0.0, c, 0.5)[used] / c.sum() for c in (before, now)]
    return float(((shares[1] - shares[0]) * np.log(shares[1] / shares[0])).sum())


class Comparison(NamedTuple):
    """Two histograms in few groups, and how far apart they are."""

    psi: float
    by_chance: float
    """Its mean where nothing has changed."""

    limit: float
    """What it exceeds where nothing has changed, as rarely as was asked for."""

    names: list[str]
    expected: list[float]
    """Share of each group before."""

    actual: list[float]


def compare_counts(
    expected: Sequence[float],
    actual: Sequence[float],
    names: Sequence[str],
    chance: float,
    *,
    ordered: bool = True,
    missing: tuple[float, float] = (0.0, 0.0),
    n_before: float | None = None,
) -> Comparison | None:
    """Compare two histograms in at most ten groups, none without 20 rows or so.

    Parameters
    ----------
    expected, actual : sequence of float
        Rows by value, before and now.
    names : sequence of str
        Names of the values.
    chance : float
        How often ``limit`` may be exceeded where nothing has changed.
    ordered : bool, default=True
        Whether neighbours are put together; otherwise the rarest values are.
    missing : pair of float, default=(0, 0)
        Rows without a value, a group of their own.
    n_before : float, default=None
        Rows behind the expected shares, where they are not the sum.

    Returns
    -------
    Comparison or None
        None where there are no rows in one of the two.

    Examples
    --------
    >>> found = compare_counts([60, 40], [30, 70], ["a", "b"], 0.05)
    >>> round(found.psi, 2), round(found.limit, 2), found.actual
    (0.38, 0.08, [0.3, 0.7])
    """
    before, now = np.asarray(expected, dtype=float), np.asarray(actual, dtype=float)
    m, n = before.sum() + missing[0], now.sum() + missing[1]
    if not m > 0.0 or not n > 0.0:
        return None
    rows = min(m if n_before is None else n_before, n)
    most = int(np.clip(rows // _ROWS_OF_GROUP, 2, _MOST_GROUPS))
    groups = _neighbours(before, most) if ordered else _by_size(before, most)
    kept = [group for group in groups if before[group].sum() + now[group].sum() > 0]
    counts = np.array([[before[g].sum(), now[g].sum()] for g in kept] + [missing])
    labels = [_named([names[k] for k in group], ordered) for group in kept]
    labels.append("(missing)")
    if not any(missing):
        counts, labels = counts[:-1], labels[:-1]
    spread = float(1.0 / (m if n_before is None else n_before) + 1.0 / n)
    by_chance = (len(counts) - 1) * spread
    limit = _quantile(len(counts) - 1, chance) * spread
    psi = stability_index(counts[:, 0], counts[:, 1])
    shares = [(counts[:, 0] / m).tolist(), (counts[:, 1] / n).tolist()]
    return Comparison(psi, by_chance, limit, labels, *shares)


def _neighbours(before: Floats, most: int) -> list[list[int]]:
    """Put neighbouring values together until each group has its share of the rows."""
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
    """Give frequent values a group each, and put the others together."""
    order = np.argsort(-before, kind="stable")
    share = before.sum() / most / 2.0
    alone = [k for k in order[: most - 1].tolist() if before[k] >= share]
    others = [k for k in range(len(before)) if k not in set(alone)]
    return [*([k] for k in alone), others] if others else [[k] for k in alone]


def _named(names: list[str], ordered: bool) -> str:
    if len(names) == 1:
        return names[0]
    return f"{names[0]} … {names[-1]}" if ordered else f"{len(names)} others"


def _quantile(freedom: int, chance: float) -> float:
    """Return what a chi-squared number exceeds with a chance."""
    from scipy.special import chdtri

    return float(chdtri(freedom, chance)) if freedom else 0.0
