"""Bins of equal weight."""

from __future__ import annotations

from typing import Any

import numpy as np

from steelyard._common.settings import setting, whole
from steelyard.kernels.cuts import midpoints
from steelyard.table.discretizers.base import THREADS, Array, Discretizer, Labels, Reads


class EqualFrequencyDiscretizer(Discretizer):
    r"""Divide a column into bins that hold about the same weight.

    Let :math:`U(v)` be the weight of the values up to :math:`v`, and :math:`U` the
    weight of all. For :math:`k = 1, \dots, B - 1` there is an edge half-way between the
    neighbouring distinct values :math:`v < v'` for which

    .. math:: \left| U(v) - \frac{k U}{B} \right|

    is least (the lower of equals). Equal values are never parted, and an edge chosen
    twice is given once, so a column with few distinct values has fewer bins.

    References
    ----------
    J. Dougherty, R. Kohavi, M. Sahami (1995). Supervised and unsupervised
    discretization of continuous features. Proceedings of the 12th International
    Conference on Machine Learning, 194-202.

    Examples
    --------
    >>> import numpy as np
    >>> from steelyard.table.discretizers import EqualFrequencyDiscretizer
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0], [np.nan], [50.0], [60.0]])
    >>> discretizer = EqualFrequencyDiscretizer(n_bins=3).fit(X)
    >>> discretizer.edges_
    [array([ 2.5, 27. ])]
    >>> discretizer.transform(X).ravel()
    array([ 0.,  0.,  1.,  1., nan,  2.,  2.])

    Equal values stay together:

    >>> EqualFrequencyDiscretizer(n_bins=3).fit([[0.0], [0.0], [0.0], [1.0]]).edges_
    [array([0.5])]
    """

    n_bins: int = setting(default=10, allowed=whole(1), about="Number of bins.")
    n_jobs: int | None = THREADS

    @property
    def reads(self) -> Reads:
        """The order of the numbers decides."""
        return "order"

    def column_edges(
        self, values: Array, y: Labels, n_classes: int, weights: Array | None, **_: Any
    ) -> Array:
        """Find the edges of one column; see `Discretizer.column_edges`."""
        if weights is None:
            ordered = np.sort(values)
            ends = np.flatnonzero(ordered[1:] > ordered[:-1])
            below, total = ends + 1.0, float(len(values))
        else:
            order = np.argsort(values)
            ordered, cumulated = values[order], np.cumsum(weights[order])
            ends = np.flatnonzero(ordered[1:] > ordered[:-1])
            below, total = cumulated[ends], float(cumulated[-1:].sum())
        if len(ends) == 0:
            return np.empty(0)

        # B U(v) against k U instead of U(v) against k U / B: exact for whole weights,
        # so that ties are ties.
        below = below * self.n_bins
        targets = np.arange(1, self.n_bins) * total
        after = np.searchsorted(below, targets).clip(0, len(ends) - 1)
        before = (after - 1).clip(0)
        nearer = targets - below[before] <= np.abs(below[after] - targets)
        chosen = ends[np.unique(np.where(nearer, before, after))]
        return midpoints(ordered[chosen], ordered[chosen + 1])
