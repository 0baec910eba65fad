"""What all discretizers share: the contract, the loop over columns, the transform.

The default is here too: cut points by minimum description length.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice, repeat
from typing import Any, ClassVar, Literal, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_is_fitted,
    validate_data,
)

from steelyard._common.arrays import Floats, Ints
from steelyard._common.settings import (
    FLAG,
    N_JOBS,
    DeclaredPart,
    check_settings,
    learned,
    setting,
    word,
)
from steelyard._common.threads import run, thread_count
from steelyard.kernels.cuts import bin_codes, fill_xlog2, mdl_cuts, split_columns
from steelyard.table.labels import check_weights
from steelyard.table.schema import Kind

ColumnId = tuple[int, str | None]
Array = Floats
Labels = NDArray[np.integer[Any]] | None
Reads = Literal["nothing", "range", "order", "numbers"]
Result = TypeVar("Result")

_COLUMNS_PER_COPY = 8

# The last setting of every discretizer.
THREADS: Any = setting(
    default=None,
    allowed=N_JOBS,
    about="Number of threads that work on the columns, as in scikit-learn. The result "
    "does not depend on it.",
)

# Single precision is widened column by column: no second copy of the whole table.
_NUMBERS: dict[str, Any] = {
    "dtype": [np.float64, np.float32],
    "ensure_all_finite": "allow-nan",
}

_NO_WEIGHTS = np.empty(0, dtype=np.int64)
_TABLE_BITS = 20


class Discretizer(OneToOneFeatureMixin, TransformerMixin, DeclaredPart):
    r"""Base class: learns increasing edges for every column and returns bin numbers.

    A subclass states in `supervised` whether it uses the classes, and returns the
    edges of one column in `column_edges`. Bins are closed on the right: with edges
    :math:`e_1 < \dots < e_B` the bin of `x` is the number of edges below `x`, so a
    value equal to an edge goes left. Missing values take no part in the search and
    stay missing.
    """

    kind: ClassVar[Kind] = "binned"
    supervised: ClassVar[bool] = False

    reads: ClassVar[Reads] = "numbers"
    """What of the numbers decides on the edges, besides classes and weights.

    Nothing; the smallest and the largest; their order, with edges half-way between
    neighbours; or the numbers themselves.
    """

    edges_: list[Array] = learned(
        "list of ndarray of shape (n_bins - 1,)",
        "Increasing edges of every column; empty where it is one bin.",
    )
    n_bins_: Ints = learned(
        "ndarray of shape (n_features,)", "Number of bins of every column."
    )
    n_features_in_: int = learned("int", "Number of columns seen in `fit`.")
    feature_names_in_: NDArray[Any] = learned(
        "ndarray of shape (n_features,)",
        "Names of the columns, where `fit` was given names.",
    )

    def column_edges(
        self,
        values: Array,
        y: Labels,
        n_classes: int,
        weights: Array | None,
        *,
        column: ColumnId | None = None,
    ) -> Array:
        """Return the increasing edges of one column, shape (n_bins - 1,).

        `values` (n,) are finite numbers in any order, contiguous; there may be none.
        `y` (n,) are class codes 0 .. `n_classes` - 1, which only a supervised
        discretizer needs, `weights` (n,) positive ones or None for ones, `column` the
        position and name.
        """
        raise NotImplementedError

    def known_edges(
        self, values: Array, y: Labels, n_classes: int, weights: Array | None, **of: Any
    ) -> Array:
        """Find the edges of a column with missing values (NaN) or weights of zero."""
        kept = ~np.isnan(values)
        if weights is not None:
            kept &= weights > 0
        if not kept.all():
            values = values[kept]
            y = None if y is None else y[kept]
            weights = None if weights is None else weights[kept]
        return self.column_edges(values, y, n_classes, weights, **of)

    @property
    def _threads(self) -> Any:
        # Every discretizer has the setting `n_jobs`, last of all.
        return getattr(self, "n_jobs", None)

    def check_parameters(self) -> None:
        """Raise a `ParameterError` if a parameter has a value that is not allowed."""
        check_settings(self)

    def check_columns(self, columns: Sequence[ColumnId]) -> None:
        """Raise a `ParameterError` if the parameters do not fit these columns."""

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Find the edges of all columns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers; NaN is a missing value.
        y : array-like of shape (n_samples,), default=None
            Classes. Ignored where `supervised` is false.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, not negative. A weight of two is the same as two equal rows, a
            weight of zero is the same as no row.

        Returns
        -------
        self
            The fitted discretizer.
        """
        self.check_parameters()
        codes, n_classes = None, 0
        if self.supervised:
            table, targets = validate_data(self, X, y, **_NUMBERS)
            check_classification_targets(targets)
            classes, codes = np.unique(targets, return_inverse=True)
            n_classes = len(classes)
            # In few bytes: they are sorted often.
            codes = codes.astype(np.uint8 if n_classes <= 256 else np.int64)
        else:
            table = validate_data(self, X, **_NUMBERS)
        weights = check_weights(sample_weight, len(table))
        names = getattr(self, "feature_names_in_", repeat(None, self.n_features_in_))
        ids = list(enumerate(names))
        self.check_columns(ids)

        def edges(column: Array, name: ColumnId) -> Array:
            return self.known_edges(column, codes, n_classes, weights, column=name)

        self.edges_ = map_columns(edges, float_columns(table), ids, self._threads)
        self.n_bins_ = np.array([len(edges) + 1 for edges in self.edges_])
        return self

    def transform(self, X: ArrayLike) -> Array:
        """Replace every number by the number of its bin, counted from 0.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers; NaN is a missing value.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Bin numbers, in Fortran order; NaN where the cell is missing.
        """
        check_is_fitted(self)
        table = validate_data(self, X, reset=False, **_NUMBERS)

        def bins(column: Array, j: int) -> None:
            codes = np.empty(len(column), dtype=np.uint32)
            bin_codes(column, self.edges_[j], codes, 1)
            np.subtract(codes, 1.0, out=out[j])
            out[j, codes == 0] = np.nan

        # One row per column, turned over at the end: each thread writes to its own
        # stretch of memory.
        out = np.empty(table.shape[::-1])
        map_columns(bins, float_columns(table), range(len(out)), self._threads)
        return out.T

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = self.supervised
        return tags


def float_columns(X: NDArray[np.floating[Any]]) -> Iterator[Array]:
    """Yield the columns of a matrix as contiguous float64 arrays.

    Columns that lie contiguous in memory are not copied. Otherwise eight columns at a
    time are copied: one pass over the rows per group, not per column, since a single
    strided copy fetches whole cache lines and uses one number of each. They are not to
    be written to.
    """
    if X.flags.f_contiguous:
        for j in range(X.shape[1]):
            yield X[:, j].astype(np.float64, copy=False)
        return
    for start in range(0, X.shape[1], _COLUMNS_PER_COPY):
        block = X[:, start : start + _COLUMNS_PER_COPY]
        columns = np.empty(block.shape[::-1])
        split_columns(block, columns)
        yield from columns


def map_columns(
    function: Callable[[Array, Any], Result],
    columns: Iterable[Array],
    extras: Iterable[Any],
    n_jobs: int | None,
) -> list[Result]:
    """Return `function(column, extra)` for all columns, in their order."""
    n_threads = thread_count(n_jobs)
    pairs = zip(columns, extras, strict=False)
    results: list[Result] = []
    # A few at a time, not the whole iterable at once: the columns may be copies.
    while batch := list(islice(pairs, 2 * n_threads)):
        results.extend(run(lambda pair: function(*pair), batch, n_threads))
    return results


class MDLDiscretizer(Discretizer):
    r"""Cut where it separates the classes, and only if the cut pays for itself.

    A range of :math:`N` values is cut half-way between two neighbouring distinct
    values such that the class entropy of the two parts :math:`S_1, S_2`,

    .. math:: E = \frac{N_1 H(S_1) + N_2 H(S_2)}{N},

    is least (in bits; the first of equals). With `criterion="fayyad-irani"` the cut is
    accepted if

    .. math::
        H(S) - E > \frac{\log_2 (N - 1) + \Delta}{N}, \qquad
        \Delta = \log_2 (3^k - 2) - [k H(S) - k_1 H(S_1) - k_2 H(S_2)],

    where :math:`k, k_1, k_2` are the numbers of classes present in the range and in its
    parts. With `criterion="kononenko"` it is accepted if

    .. math::
        D(S) > \log_2 (N - 1) + D(S_1) + D(S_2), \qquad
        D(S) = \log_2 \binom{N + k - 1}{k - 1} + \log_2 \frac{N!}{n_1! \cdots n_k!}.

    Both parts of an accepted cut are treated in the same way. :math:`N` and the class
    counts :math:`n_c` are sums of the sample weights; a range of total weight below
    two is not cut, so weights should be frequencies rather than shares.

    References
    ----------
    U. M. Fayyad, K. B. Irani (1993). Multi-interval discretization of continuous-valued
    attributes for classification learning. Proceedings of the 13th International Joint
    Conference on Artificial Intelligence, 1022-1027.

    I. Kononenko (1995). On biases in estimating multi-valued attributes. Proceedings of
    the 14th International Joint Conference on Artificial Intelligence, 1034-1040.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from steelyard.table.discretizers.base import MDLDiscretizer
    >>> X, y = load_iris(return_X_y=True)
    >>> discretizer = MDLDiscretizer().fit(X, y)
    >>> [edges.round(2).tolist() for edges in discretizer.edges_]
    [[5.55, 6.15], [2.95, 3.35], [2.45, 4.75], [0.8, 1.75]]

    A value equal to an edge goes left, a missing value stays missing:

    >>> discretizer.transform([[5.0, 2.95, np.nan, 9.0]])
    array([[ 0.,  0., nan,  2.]])

    A constant column is not cut, nor is one with missing values only:

    >>> X = [[1.0, np.nan], [1.0, np.nan], [1.0, np.nan]]
    >>> MDLDiscretizer().fit(X, ["a", "b", "b"]).n_bins_
    array([1, 1])
    """

    supervised: ClassVar[bool] = True
    reads: ClassVar[Reads] = "order"

    criterion: str = setting(
        default="fayyad-irani",
        allowed=word("fayyad-irani", "kononenko"),
        about="When a cut is accepted.",
    )
    better_encoding: bool = setting(
        default=False,
        allowed=FLAG,
        about="Replace :math:`N - 1` by the number of pairs of neighbouring distinct "
        "values in the range. More cuts are accepted.",
    )
    n_jobs: int | None = THREADS

    def column_edges(
        self, values: Array, y: Labels, n_classes: int, weights: Array | None, **_: Any
    ) -> Array:
        """Find the cut points of one column; see `Discretizer.column_edges`."""
        if y is None:
            raise ValueError("MDLDiscretizer needs the classes of the rows.")

        # One argsort and two gathers, because it is the simplest: for 1e6 values 27 + 3
        # ms where a plain np.sort takes 9 (AVX2; 76 + 3 and 53 with NumPy's AVX-512
        # code on Zen 4). Sorting each of two classes by itself takes 18 ms (58) before
        # any merging, and leaves no place for weights. The search adds about 6 ms for
        # each level of cuts.
        order = np.argsort(values)
        sorted_weights = _NO_WEIGHTS if weights is None else _counts(weights)[order]
        total = float(len(values) if weights is None else sorted_weights.sum())
        cuts = np.empty(len(values))  # pages that are never written take no memory
        n_found = mdl_cuts(
            values[order],
            y[order],
            sorted_weights,
            True if self.criterion == "kononenko" else None,
            bool(self.better_encoding),
            *_xlog2(total, n_classes),
            np.empty((3, n_classes), dtype=sorted_weights.dtype),
            np.empty((66, 2), dtype=np.int64),
            cuts,
        )
        return np.sort(cuts[:n_found])


def _counts(weights: Array) -> NDArray[Any]:
    """Return weights that add up exactly, so that no order of rows or classes matters.

    Whole weights as integers, which the search handles twice as fast. Others rounded to
    multiples of a power of two, of which their total has less than 2^53.
    """
    if weights.sum() < 2.0**62 and (weights == np.rint(weights)).all():
        return weights.astype(np.int64)
    shift = 52 - math.frexp(len(weights) * weights.max())[1]
    rounded: Array = np.ldexp(np.rint(np.ldexp(weights, shift)), -shift)
    return rounded


def _xlog2(total: float, n_classes: int) -> tuple[Ints, float]:
    """Return a table of i log2(i) as integers, and the size of their unit.

    The unit is as small as 64 bits allow. The sums of a search lie within
    2 (N log2 N + K), also when a count is below one and its term negative.
    """
    n_bits = max(math.frexp(total)[1], 1)
    exponent = 60 - math.frexp(math.ldexp(n_bits, n_bits) + n_classes)[1]
    return _shared_table(min(n_bits, _TABLE_BITS), exponent), math.ldexp(1.0, exponent)


# Two tables of at most 8 MB are kept: all columns of a fit use the same one, or one of
# two if many values are missing. Filling one takes 5 ms. Counts beyond its end are
# computed when they are met.
@lru_cache(maxsize=2)
def _shared_table(n_bits: int, exponent: int) -> Ints:
    """Return i log2(i) for i below 2^n_bits in units of 2^-exponent."""
    table = np.zeros(1 << n_bits, dtype=np.int64)
    fill_xlog2(table, math.ldexp(1.0, exponent))
    return table
