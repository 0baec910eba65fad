"""The Bayesian signed-rank test, with a region of practical equivalence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from steelyard.exceptions import ParameterError
from steelyard.lab.statistics.ranks import (
    Floats,
    check_control,
    check_scores,
    differences_of,
)

__all__ = ["BayesianSignedRank", "bayesian_against", "bayesian_signed_rank"]


@dataclass(frozen=True)
class BayesianSignedRank:
    """Probabilities that one method is better than another, or practically equal.

    `first` and `second` are of that method being better by more than the region, `rope`
    of a difference within the region.
    """

    first: float
    rope: float
    second: float


def bayesian_signed_rank(
    first: ArrayLike,
    second: ArrayLike | None = None,
    *,
    rope: float = 0.01,
    prior: float = 0.5,
    n_samples: int = 50_000,
    random_state: int = 0,
) -> BayesianSignedRank:
    r"""Compare two methods over data sets by the Bayesian signed-rank test.

    Differences have a Dirichlet process as prior, with strength s at zero. Given
    weights :math:`w \sim Dir(s, 1, \dots, 1)` of zero and the differences,

    .. math:: \theta_{first} = \sum_{i,j} w_i w_j [z_i + z_j > 2r]

    and likewise within and below the region; each probability is the share of draws in
    which its theta is the largest. Draws depend on `random_state` alone.

    Parameters
    ----------
    first, second : array-like of shape (n_datasets,)
        Scores of both methods, larger is better; without the second, differences.
    rope : float, default=0.01
        r, half the width of the region of practical equivalence. With 0 there are two
        probabilities only.
    prior : float, default=0.5
        s, the weight of the prior in data sets.
    n_samples : int, default=50_000
        Draws.
    random_state : int, default=0
        Seed; 0, so that the report of the same results always comes out the same.

    Returns
    -------
    BayesianSignedRank
        Three probabilities that add up to 1.

    References
    ----------
    A. Benavoli, G. Corani, J. Demsar, M. Zaffalon (2017), Time for a change: a tutorial
    for comparing multiple classifiers through Bayesian analysis, JMLR 18(77).

    Examples
    --------
    >>> test = bayesian_signed_rank([0.05, 0.07, 0.02, 0.04, 0.06, -0.01], rope=0.01)
    >>> test.first > 0.9, test.second < 0.01
    (True, True)
    """
    d = differences_of(first, second)
    (test,) = _compare(d[:, None], rope, prior, n_samples, random_state)
    return test


def bayesian_against(
    scores: ArrayLike,
    control: int,
    *,
    rope: float = 0.01,
    prior: float = 0.5,
    n_samples: int = 50_000,
    random_state: int = 0,
    larger_is_better: bool = True,
) -> list[BayesianSignedRank]:
    """Compare one method with each by the Bayesian signed-rank test.

    Parameters
    ----------
    scores, larger_is_better
        See `average_ranks`.
    control : int
        Column of the method that is `first` in each comparison.
    rope, prior, n_samples, random_state
        See `bayesian_signed_rank`; the draws are shared.

    Returns
    -------
    list of BayesianSignedRank
        One for each method; that of the control with itself is meaningless.

    Examples
    --------
    >>> scores = [[0.9, 0.8], [0.8, 0.7], [0.7, 0.5], [0.9, 0.7]]
    >>> bayesian_against(scores, 1)[0].second > 0.9
    True
    """
    values = check_scores(scores, larger_is_better)
    check_control(control, values.shape[1])
    pairs = [differences_of(values[:, control], other) for other in values.T]
    return _compare(np.column_stack(pairs), rope, prior, n_samples, random_state)


def _compare(
    differences: Floats, rope: float, prior: float, n_samples: int, seed: int
) -> list[BayesianSignedRank]:
    """Compare with the same draws for each column of differences."""
    if rope < 0 or prior <= 0 or n_samples < 1:
        raise ParameterError(
            "rope must not be negative, prior and n_samples must be positive. "
            f"Got {rope}, {prior} and {n_samples}."
        )
    shape = np.concatenate([[prior], np.ones(len(differences))])
    weights = np.random.default_rng(seed).dirichlet(shape, size=n_samples)
    return [_shares(d, rope, weights) for d in differences.T]


def _shares(d: Floats, rope: float, weights: Floats) -> BayesianSignedRank:
    z = np.concatenate([[0.0], d])
    sums = z[:, None] + z[None, :]
    # A sum at the edge of the region belongs to it, whatever its last bit.
    edge = 2 * rope * (1 + 1e-12)
    above = np.einsum("si,si->s", weights @ (sums > edge), weights)
    below = np.einsum("si,si->s", weights @ (sums < -edge), weights)
    thetas = np.column_stack([above, 1.0 - above - below, below])
    if rope == 0:
        thetas[:, 1] = -np.inf
    largest = thetas >= thetas.max(axis=1, keepdims=True)
    shares = (largest / largest.sum(axis=1, keepdims=True)).mean(axis=0)
    return BayesianSignedRank(*(float(share) for share in shares))
