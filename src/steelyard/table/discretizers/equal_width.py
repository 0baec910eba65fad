"""Bins of equal width."""

from __future__ import annotations

from typing import Any

import numpy as np

from steelyard._common.settings import setting, whole, word
from steelyard.kernels.cuts import bin_codes, midpoints
from steelyard.table.discretizers.base import THREADS, Array, Discretizer, Labels, Reads


class EqualWidthDiscretizer(Discretizer):
    r"""Divide the range of a column into bins of equal width.

    With :math:`B` bins the edges are

    .. math:: e_k = \min x + \frac{k (\max x - \min x)}{B}, \qquad k = 1, \dots, B - 1.

    With `empty="merge"` each longest run of empty bins is removed, as the SPSS
    procedure NAIVEBAYES does: of all edges between two neighbouring occupied bins one
    remains, half-way between the right edge of the left bin and the left edge of the
    right bin.

    References
    ----------
    IBM Corporation. IBM SPSS Statistics Algorithms, chapter NAIVEBAYES.

    Examples
    --------
    >>> import numpy as np
    >>> from steelyard.table.discretizers import EqualWidthDiscretizer
    >>> X = np.array([[0.0], [1.0], [np.nan], [10.0]])
    >>> discretizer = EqualWidthDiscretizer(n_bins=5).fit(X)
    >>> discretizer.edges_
    [array([2., 4., 6., 8.])]
    >>> discretizer.transform(X).ravel()
    array([ 0.,  0., nan,  4.])

    Three bins between 2 and 8 are empty:

    >>> EqualWidthDiscretizer(n_bins=5, empty="merge").fit(X).edges_
    [array([5.])]

    A constant column has one bin:

    >>> EqualWidthDiscretizer().fit([[3.0], [3.0]]).n_bins_
    array([1])
    """

    n_bins: int = setting(default=10, allowed=whole(1), about="Number of bins.")
    empty: str = setting(
        default="keep",
        allowed=word("keep", "merge"),
        about="What happens to bins without a value.",
    )
    n_jobs: int | None = THREADS

    @property
    def reads(self) -> Reads:
        """The ends of the range decide, and where bins are merged all numbers."""
        return "range" if self.empty == "keep" else "numbers"

    def column_edges(
        self, values: Array, y: Labels, n_classes: int, weights: Array | None, **_: Any
    ) -> Array:
        """Find the edges of one column; see `Discretizer.column_edges`."""
        if len(values) == 0 or values.min() == values.max():
            return np.empty(0)
        edges = _equal_steps(float(values.min()), float(values.max()), self.n_bins)
        if self.empty == "merge":
            edges = _merge_empty(values, edges)
        return edges


def _equal_steps(low: float, high: float, n_bins: int) -> Array:
    """Return the inner edges of `n_bins` bins between two different numbers."""
    k = np.arange(1, n_bins)
    if max(-low, high) < np.finfo(float).max / (2 * n_bins):
        edges = low + k * (high - low) / n_bins
    else:
        # k (high - low) would overflow.
        edges = low * (1 - k / n_bins) + high * (k / n_bins)

    # In a range of a few floating-point numbers edges coincide, or round up to the
    # highest value, which would leave nothing on their right.
    edges = np.unique(edges)
    return edges[edges < high]


def _merge_empty(values: Array, edges: Array) -> Array:
    """Leave one edge between every two neighbouring bins that hold a value."""
    codes = np.empty(len(values), dtype=np.uint32)
    bin_codes(values, edges, codes, 0)
    occupied = np.flatnonzero(np.bincount(codes))
    return midpoints(edges[occupied[:-1]], edges[occupied[1:] - 1])
