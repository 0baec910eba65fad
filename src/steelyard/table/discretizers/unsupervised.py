"""Cut points without labels: equal width, equal frequency, and edges that are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from steelyard._common.settings import required, setting, whole, word
from steelyard.exceptions import ParameterError
from steelyard.kernels.cuts import bin_codes, midpoints
from steelyard.table.discretizers.base import (
    THREADS,
    Array,
    ColumnId,
    Discretizer,
    Labels,
    Reads,
)

__all__ = [
    "EqualFrequencyDiscretizer",
    "EqualWidthDiscretizer",
    "FixedEdgesDiscretizer",
    "GridDiscretizer",
]

# Sums of weights that differ by less than this share of them all are equal.
_ROUNDING = 1e-12


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
    >>> from steelyard.table.discretizers.unsupervised import EqualWidthDiscretizer
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
    def reads(self) -> Reads:  # type: ignore[override]
        """The ends of the range decide, and all numbers if bins are merged."""
        return "range" if self.empty == "keep" else "numbers"

    def column_edges(
        self, values: Array, y: Labels, n_classes: int, weights: Array | None, **_: Any
    ) -> Array:
        """Find the edges of one column; see `Discretizer.column_edges`."""
        if len(values) == 0 or values.min() == values.max():
            return np.empty(0)
        edges = _equal_steps(float(values.min()), float(values.max()), self.n_bins)
        if self.empty == "merge":
            # One edge stays between every two neighbouring bins with a value.
            codes = np.empty(len(values), dtype=np.uint32)
            bin_codes(values, edges, codes, 0)
            occupied = np.flatnonzero(np.bincount(codes))
            return midpoints(edges[occupied[:-1]], edges[occupied[1:] - 1])
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


class EqualFrequencyDiscretizer(Discretizer):
    r"""Divide a column into bins of about equal weight.

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
    >>> from steelyard.table.discretizers.unsupervised import EqualFrequencyDiscretizer
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

    reads: ClassVar[Reads] = "order"

    n_bins: int = setting(default=10, allowed=whole(1), about="Number of bins.")
    n_jobs: int | None = THREADS

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
        # so that ties are ties. Of other weights they are ties up to rounding.
        below = below * self.n_bins
        targets = np.arange(1, self.n_bins) * total
        after = np.searchsorted(below, targets).clip(0, len(ends) - 1)
        before = (after - 1).clip(0)
        slack = _ROUNDING * below[-1]
        nearer = targets - below[before] <= np.abs(below[after] - targets) + slack
        chosen = ends[np.unique(np.where(nearer, before, after))]
        return midpoints(ordered[chosen], ordered[chosen + 1])


class GridDiscretizer(Discretizer):
    r"""Round numbers to a grid as fine as the column, for kernel densities.

    The step is the mean distance between neighbouring distinct numbers, as Weka's
    ``NaiveBayes`` has it, and the edges are half-way between the multiples of it,

    .. math:: p = \frac{\max x - \min x}{n_{distinct} - 1}, \qquad
              e_k = \left(k + \tfrac12\right) p .

    Examples
    --------
    >>> from steelyard.table.discretizers.unsupervised import GridDiscretizer
    >>> GridDiscretizer().fit([[1.0], [2.0], [2.0], [5.0]]).edges_
    [array([1., 3.])]
    """

    max_bins: int = setting(
        default=1000,
        allowed=whole(2),
        about="Largest number of steps; the grid of a longer column is coarser.",
    )
    n_jobs: int | None = THREADS

    def column_edges(
        self, values: Array, y: Labels, n_classes: int, weights: Array | None, **_: Any
    ) -> Array:
        """Find the edges of one column; see `Discretizer.column_edges`."""
        distinct = np.unique(values)
        if len(distinct) < 2:
            return np.empty(0)
        # Halves do not overflow.
        n_steps = min(len(distinct), self.max_bins) - 1
        step = 2.0 * ((distinct[-1] / 2.0 - distinct[0] / 2.0) / n_steps)
        low, high = np.rint(distinct[[0, -1]] / step)
        edges = np.unique((np.arange(low, high) + 0.5) * step)
        return edges[(edges >= distinct[0]) & (edges < distinct[-1])]


class FixedEdgesDiscretizer(Discretizer):
    r"""Use edges that are known beforehand.

    The bin of :math:`x` is the number of edges below it,

    .. math:: b(x) = |\{k : e_k < x\}|.

    Examples
    --------
    >>> import numpy as np
    >>> from steelyard.table.discretizers.unsupervised import FixedEdgesDiscretizer
    >>> X = np.array([[17.0, 1.0], [18.0, 2.0], [np.nan, 3.0]])
    >>> FixedEdgesDiscretizer([[17.5, 65.0], [2.0]]).fit_transform(X)
    array([[ 0.,  0.],
           [ 1.,  0.],
           [nan,  1.]])
    """

    reads: ClassVar[Reads] = "nothing"

    edges: Any = required(
        about="Increasing finite numbers, used for all columns; or one such sequence "
        "per column; or a mapping from column names to such sequences. An empty "
        "sequence puts all values into one bin."
    )
    n_jobs: int | None = THREADS

    def check_parameters(self) -> None:
        """Raise a `ParameterError` if the edges are not increasing numbers."""
        if self._one_for_all():
            self._checked(self.edges, "")
            return
        is_named = isinstance(self.edges, Mapping)
        for key, edges in self.edges.items() if is_named else enumerate(self.edges):
            self._checked(edges, f" for column {key!r}")

    def check_columns(self, columns: Sequence[ColumnId]) -> None:
        """Raise a `ParameterError` unless every column has edges and the reverse."""
        if isinstance(self.edges, Mapping):
            unknown = set(self.edges).difference(name for _, name in columns)
            if unknown:
                raise ParameterError(
                    "The 'edges' parameter of FixedEdgesDiscretizer names columns that "
                    f"the table does not have: {sorted(unknown, key=str)}."
                )
        elif not self._one_for_all() and len(self.edges) != len(columns):
            raise ParameterError(
                "The 'edges' parameter of FixedEdgesDiscretizer must hold one sequence "
                f"per column. Got {len(self.edges)} for {len(columns)} columns."
            )

    def column_edges(self, *_: Any, column: ColumnId | None = None, **__: Any) -> Array:
        """Return the edges of one column; see `Discretizer.column_edges`."""
        if self._one_for_all():
            return self._checked(self.edges, "")
        position, name = (None, None) if column is None else column
        key = name if isinstance(self.edges, Mapping) else position
        try:
            edges: Any = self.edges[key]
        except (KeyError, IndexError, TypeError):
            raise ParameterError(
                "The 'edges' parameter of FixedEdgesDiscretizer has no edges for "
                f"column {key!r}. Add them; an empty list makes one bin."
            ) from None
        return self._checked(edges, f" for column {key!r}")

    def _one_for_all(self) -> bool:
        """Whether the edges are a single sequence of numbers."""
        if isinstance(self.edges, Mapping):
            return False
        try:
            return all(isinstance(edge, Real) for edge in self.edges)
        except TypeError:
            return True

    def _checked(self, edges: Any, where: str) -> Array:
        """Return a copy of the edges as an array, or raise."""
        try:
            array = np.array(edges, dtype=np.float64)
        except (TypeError, ValueError):
            array = np.empty((0, 0))
        increasing = array.ndim == 1 and np.isfinite(array).all()
        if not increasing or not (array[1:] > array[:-1]).all():
            raise ParameterError(
                "The 'edges' parameter of FixedEdgesDiscretizer must be increasing "
                f"finite numbers{where}. Got {edges!r} instead."
            )
        return array
