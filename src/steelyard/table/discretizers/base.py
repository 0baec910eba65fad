"""What all discretizers share: the contract, the loop over columns, the transform."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
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
    N_JOBS,
    DeclaredPart,
    check_settings,
    learned,
    setting,
)
from steelyard._common.threads import run, thread_count
from steelyard.kernels.cuts import bin_codes, split_columns
from steelyard.table.rows import check_weights

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


class Discretizer(OneToOneFeatureMixin, TransformerMixin, DeclaredPart):
    r"""Base class: learns increasing edges for every column and returns bin numbers.

    A subclass states in `supervised` whether it uses the classes, and returns the
    edges of one column in `column_edges`. Bins are closed on the right: with edges
    :math:`e_1 < \dots < e_B` the bin of `x` is the number of edges below `x`, so a
    value equal to an edge goes left. Missing values take no part in the search and
    stay missing.
    """

    supervised: ClassVar[bool] = False

    reads: ClassVar[Reads] = "numbers"
    """What of the numbers decides on the edges, besides classes and weights.

    Nothing; the smallest and the largest; their order, with edges half-way between
    neighbours; or the numbers themselves.
    """

    edges_: list[Array] = learned(
        "list of ndarray of shape (n_bins - 1,)",
        "Increasing edges of every column; empty if it is one bin.",
    )
    n_bins_: Ints = learned(
        "ndarray of shape (n_features,)", "Number of bins of every column."
    )
    n_features_in_: int = learned("int", "Number of columns seen in `fit`.")
    feature_names_in_: NDArray[Any] = learned(
        "ndarray of shape (n_features,)",
        "Names of the columns, if `fit` was given names.",
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
            Classes. Ignored if `supervised` is false.
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
            values, y, w = without_missing(column, codes, weights)
            return self.column_edges(values, y, n_classes, w, column=name)

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
            Bin numbers, in Fortran order; NaN if the cell is missing.
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


def without_missing(
    values: Array, y: Labels, weights: Array | None
) -> tuple[Array, Labels, Array | None]:
    """Leave out missing values (NaN) and weights of zero."""
    kept = ~np.isnan(values)
    if weights is not None:
        kept &= weights > 0
    if kept.all():
        return values, y, weights
    y = None if y is None else y[kept]
    return values[kept], y, None if weights is None else weights[kept]


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
    arguments = zip(columns, extras, strict=False)
    results: list[Result] = []
    # A few at a time, not the whole iterable at once: the columns may be copies.
    while batch := list(islice(arguments, 2 * n_threads)):
        results.extend(run(lambda pair: function(*pair), batch, n_threads))
    return results
