"""Scores of training rows by counts that leave them out, without ever refitting.

Leaving a row out changes the counts of its class alone, by a known amount. So two
tables serve all rows: one of full counts for the other classes, one with a count less
for the true class. Folds of a cross-validation have separate tables, from counts
that add up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from operator import add, itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, Labels
from steelyard._common.threads import pieces, row_blocks, run, thread_count
from steelyard.fitting.default.folds import assign_folds, distinct_rows
from steelyard.kernels import searching as kernels
from steelyard.model.training import TrainingSet
from steelyard.proba import GaussianTable, estimate_prior
from steelyard.proba.counts import Counts, Moments, count
from steelyard.proba.gaussian import mean_and_deviation
from steelyard.proba.smoothing import Estimation
from steelyard.table.codes import FeatureTable
from steelyard.table.schema import FeatureSchema, TableSchema

# With more different amounts than this, logarithms are taken row by row: tables for
# each would cost more.
_MAX_TABLES = 16

# What is left of a sum of squares below this share of it is rounding, and taken for 0.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class JudgedRows:
    """Training rows, and the tables that score each of them."""

    schema: TableSchema
    columns: NDArray[Any]
    """Codes, shape (coded, n), one attribute after the other."""

    labels: NDArray[Any]
    weights: Floats
    base: Floats
    """Log priors of each row, shape (n, K)."""

    group: Labels
    """Which tables each row reads, shape (n,)."""

    table: Floats
    """Log-probabilities, shape (G, V, K)."""

    true_class: Floats
    """The same for the true class of a row, shape (G, V, K)."""

    numbers: Floats
    """Cells of the Gaussian attributes, shape (n, g)."""

    gaussian: tuple[GaussianTable, ...] = ()
    """Densities of each group."""

    removal: _Removal | None = None
    """How to compute terms if there are no tables."""

    left_out: _RemovedNumbers | None = None
    """Densities without each row, in place of those of groups."""

    n_jobs: int | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.labels)

    @property
    def total(self) -> float:
        """Total weight of the rows."""
        return float(self.weights.sum())

    def terms(self, feature: int, rows: slice) -> Floats:
        """Return what an attribute adds to the scores of a block of rows, (rows, K)."""
        if not self.schema.features[feature].is_coded:
            g = int(np.searchsorted(self.schema.gaussian, feature))
            return self._density_terms(g, rows)
        k = int(np.searchsorted(self.schema.coded, feature))
        codes, y = self.columns[k, rows], self._truth(rows)
        if self.removal is not None:
            return self.removal.terms(feature, codes, y, rows)
        out = np.empty((len(codes), self.base.shape[1]))
        start = int(self.schema.offsets[feature])
        kernels.held_out_terms(
            codes, start, self.group[rows], self.table, self.true_class, y, out
        )
        return out

    def _density_terms(self, g: int, rows: slice) -> Floats:
        numbers, group = self.numbers[rows, g], self.group[rows]
        if self.left_out is not None:
            return self.left_out.terms(g, numbers, self._truth(rows), rows)
        out = np.empty((len(numbers), self.base.shape[1]))
        for f in np.unique(group).tolist():
            of_fold = np.flatnonzero(group == f)
            cells = numbers[of_fold, None]
            for piece, terms in self.gaussian[f].only(g).log_densities(cells):
                out[of_fold[piece]] = terms[:, 0]
        return out

    def _truth(self, rows: slice) -> Labels:
        return np.asarray(self.labels[rows], dtype=np.uint32)

    def add(self, features: Iterable[int], scores: Floats) -> None:
        """Add some attributes to the scores (n, K) of all rows, in place."""
        features = list(features)

        def work(rows: slice) -> int:
            for j in features:
                scores[rows] += self.terms(j, rows)
            return len(features)

        for _ in self.by_block(work):
            pass

    def prefix_losses(self, order: Iterable[int]) -> Floats:
        """Sum squared and 0-1 errors with the first 0, 1, ... attributes: (m + 1, 2).

        One pass over the rows, whose scores grow by one attribute at a time.
        """
        order = list(order)
        two = self.base.shape[1] == 2
        judge = kernels.add_and_judge_two if two else kernels.add_and_judge

        def work(rows: slice) -> Floats:
            base, y, u = self.base[rows], self._truth(rows), self.weights[rows]
            scores, losses = base.copy(), np.zeros((len(order) + 1, 2))
            terms = np.zeros_like(base)
            judge(terms, scores, base, y, u, losses[0])
            for a, j in enumerate(order, 1):
                judge(self.terms(j, rows), scores, base, y, u, losses[a])
            return losses

        return reduce(add, self.by_block(work))

    def accuracies(self, scores: Floats, candidates: Iterable[int]) -> Floats:
        """Accuracy when each of some attributes is added to scores (n, K)."""
        candidates = list(candidates)

        def work(rows: slice) -> Floats:
            rest = self.base[rows], self._truth(rows), self.weights[rows]
            return np.array(
                [
                    kernels.weight_right(self.terms(j, rows), scores[rows], *rest)
                    for j in candidates
                ]
            )

        return reduce(add, self.by_block(work)) / self.total

    def accuracy(self, scores: Floats) -> float:
        """Accuracy of scores (n, K) as they are."""

        def work(rows: slice) -> float:
            now, rest = scores[rows], (self._truth(rows), self.weights[rows])
            terms = np.zeros_like(now)
            return float(kernels.weight_right(terms, now, self.base[rows], *rest))

        return sum(self.by_block(work)) / self.total

    def by_block(self, work: Callable[[slice], Any]) -> Iterator[Any]:
        """Yield what ``work`` returns for each block of rows, in order.

        A block is worked on a piece at a time, and what it returns is added up.
        """

        def by_piece(block: slice) -> Any:
            return reduce(add, map(work, pieces(block)))

        return run(by_piece, row_blocks(self.n_rows), thread_count(self.n_jobs))


@dataclass(frozen=True)
class _Removal:
    """Counts from which each row is taken out."""

    schema: TableSchema
    counts_of_codes: Floats
    """Counts by code, zero for code 0, shape (V, K)."""

    totals: Floats
    """Counts of the known cells by attribute, shape (d, K)."""

    added: Floats
    """Pseudo-counts of a value by attribute, shape (d,)."""

    removed: Floats
    """What each row takes out, shape (n,) or (G,)."""

    factor: Floats
    """Factor on the pseudo-counts when that is gone, same shape."""

    @classmethod
    def of(cls, counts: Counts, estimation: Estimation, removed: Floats) -> _Removal:
        counts_of_codes = counts.by_code.copy()
        counts_of_codes[counts.schema.first_codes] = 0.0
        totals = FeatureTable(counts_of_codes, counts.schema.offsets).collect(
            counts_of_codes
        )
        smoothing = estimation.smoothing
        return cls(
            counts.schema,
            counts_of_codes,
            totals,
            smoothing.value_counts(counts),
            removed,
            smoothing.factor_without(counts, removed),
        )

    def terms(
        self, feature: int, codes: NDArray[Any], y: Labels, rows: slice
    ) -> Floats:
        """Log-probabilities of an attribute's codes in a block of rows, (rows, K)."""
        first = int(self.schema.offsets[feature])
        constant = (self.added[feature] * self.factor[rows])[:, None]
        top = self.counts_of_codes[first + codes.astype(np.int64)]
        bottom = np.tile(self.totals[feature], (len(codes), 1))
        rows_here = np.arange(len(codes))
        for part in (top, bottom):
            part[rows_here, y] = np.maximum(
                part[rows_here, y] - self.removed[rows], 0.0
            )
        out = _log_ratio(top, bottom, constant, int(self.schema.n_values[feature]))
        out[codes == 0] = 0.0
        return out

    def tables(self) -> tuple[Floats, Floats]:
        """Tables for other classes and for the true one, each (G, V, K)."""
        spread = FeatureTable(self.counts_of_codes, self.schema.offsets).spread
        size = spread(self.schema.n_values)[:, None]
        bottom = spread(self.totals)
        pairs = []
        for removed, factor in zip(self.removed, self.factor, strict=True):
            constant = spread(self.added)[:, None] * factor
            pair = [
                _log_ratio(
                    np.maximum(self.counts_of_codes - gone, 0.0),
                    np.maximum(bottom - gone, 0.0),
                    constant,
                    size,
                )
                for gone in (0.0, removed)
            ]
            for table in pair:
                table[self.schema.first_codes] = 0.0
            pairs.append(pair)
        table, true_class = map(np.ascontiguousarray, zip(*pairs, strict=True))
        return table, true_class


@dataclass(frozen=True)
class _RemovedNumbers:
    """Moments from which each row is taken out.

    A row is taken out of mean and sum of squares by the reverse of Welford's update.
    """

    features: list[FeatureSchema]
    """The Gaussian attributes."""

    moments: Moments
    """Moments by attribute and class, shape (g, K)."""

    overall: Moments
    """The same of all classes, shape (g, 1)."""

    removed: Floats
    """What each row takes out, shape (n,)."""

    floor: float
    """Smallest variance within a class, as a share of that of all rows."""

    unbiased: bool

    @classmethod
    def of(
        cls, training: TrainingSet, counts: Counts, removed: Floats
    ) -> _RemovedNumbers:
        features = [counts.schema.features[j] for j in counts.schema.gaussian]
        moments, how = counts.moments, training.estimation
        options = how.variance_floor, how.unbiased
        return cls(features, moments, moments.pooled(), removed, *options)

    def terms(self, g: int, numbers: Floats, y: Labels, rows: slice) -> Floats:
        """Log-densities of some numbers of an attribute under each class, (rows, K)."""
        all_rows, removed = np.arange(len(numbers)), self.removed[rows]
        true_class = all_rows, y
        moments = self.moments.map(lambda part: np.tile(part[g], (len(numbers), 1)))
        left = _without(moments.map(itemgetter(true_class)), numbers, removed)
        moments.weight[true_class], moments.mean[true_class] = left.weight, left.mean
        moments.squares[true_class] = left.squares
        overall = _without(self.overall.map(itemgetter(g)), numbers, removed)
        overall = overall.map(itemgetter(np.s_[:, None]))
        feature = self.features[g : g + 1]
        mean, deviation = mean_and_deviation(
            feature, moments, overall, self.floor, self.unbiased
        )
        # One row of as many attributes as there are rows, each with a separate table.
        table = GaussianTable.of(feature, mean, deviation).repeated(len(numbers))
        ((_, out),) = table.log_densities(numbers[None, :])
        return np.ascontiguousarray(out[0])


def _without(moments: Moments, x: Floats, removed: Floats) -> Moments:
    """Take numbers (n,), each of some weight, out of moments (n,) or of one."""
    left = moments.weight - removed
    left = np.where(left > _ROUNDING * moments.weight, left, 0.0)
    some = left > 0.0
    delta = x - moments.mean
    mean = moments.mean - removed * delta / np.where(some, left, 1.0)
    squares = moments.squares - removed * delta * (x - mean)
    squares = np.where(squares > _ROUNDING * moments.squares, squares, 0.0)
    missing = np.isnan(x)
    return Moments(
        np.where(missing, moments.weight, left),
        np.where(missing, moments.mean, np.where(some, mean, 0.0)),
        np.where(missing, moments.squares, np.where(some, squares, 0.0)),
    )


def _log_ratio(top: Floats, bottom: Floats, constant: Floats, size: Any) -> Floats:
    """Logarithms of smoothed probabilities, none of them zero."""
    prob = (top + constant) / (bottom + size * constant)
    return np.log(np.maximum(prob, np.finfo(np.float64).tiny))


def left_out(training: TrainingSet) -> JudgedRows:
    """Score every row by the counts of all others: leave-one-out.

    A row of weight u represents u rows of which one is left out: it takes min(1, u)
    from the counts of its class and is judged with weight u. Factors of classes
    multiply both.
    """
    counts, estimation = training.count(), training.estimation
    factor = training.row_factors()
    sample_weight = training.sample_weight
    removed = factor
    if sample_weight is not None:
        removed = factor * np.minimum(sample_weight, 1.0)
    amounts, group = np.unique(removed, return_inverse=True)
    few = len(amounts) <= _MAX_TABLES
    removal = _Removal.of(counts, estimation, amounts if few else removed)
    nothing = np.zeros((0, 0, counts.n_classes))
    table, true_class = removal.tables() if few else (nothing, nothing)
    numbers = np.ascontiguousarray(training.codes.number_rows(slice(None)))
    return JudgedRows(
        counts.schema,
        training.codes.by_column(),
        training.labels,
        factor if sample_weight is None else factor * sample_weight,
        _log_prior_without(training, counts, removed),
        group.astype(np.uint32) if few else np.zeros(len(group), np.uint32),
        table,
        true_class,
        numbers,
        removal=None if few else removal,
        left_out=_RemovedNumbers.of(training, counts, removed),
        n_jobs=training.n_jobs,
    )


def resubstituted(training: TrainingSet) -> JudgedRows:
    """Score every row by the counts of all, itself among them.

    Equal rows of a class are merged, in an order that depends on their content alone.
    """
    rows, unit = distinct_rows(training.codes, training.labels)
    merged = np.bincount(unit, training.weights).astype(np.float64)
    fold = np.zeros(len(rows), dtype=np.uint32)
    return _by_fold(training.take(rows), merged, fold, [training.count()])


def cross_validated(
    training: TrainingSet, n_folds: int, rng: np.random.RandomState
) -> JudgedRows:
    """Score every row by the counts of the folds that it is not in.

    Folds are stratified. Equal rows are interchangeable: a row of weight 2 counts
    like the row twice, and the order of rows does not matter.
    """
    rows, fold, shares = assign_folds(training, n_folds, rng)
    shuffled = training.take(rows)
    # Factors of classes are those of all rows, not of those in a fold.
    weights = shares * training.row_factors()[rows]
    parts = []
    for f in range(n_folds):
        in_fold = np.flatnonzero(fold == f)
        parts.append(
            count(
                shuffled.codes.take(in_fold),
                shuffled.labels[in_fold],
                weights[in_fold],
                training.n_classes,
                training.n_jobs,
            )
        )
    nothing = Counts.zeros(training.schema, training.n_classes)
    before = list(accumulate(parts, initial=nothing))
    after = list(accumulate(reversed(parts), initial=nothing))[::-1]
    others = [before[f] + after[f + 1] for f in range(n_folds)]
    return _by_fold(shuffled, weights, fold, others)


def _by_fold(
    training: TrainingSet, weights: Floats, fold: Labels, counts: list[Counts]
) -> JudgedRows:
    """Score the rows of each fold by that fold's counts."""
    tables = [training.estimation.tables(part) for part in counts]
    table = np.stack([table.values for _, table, _ in tables])
    prior = np.stack([log_prior for log_prior, _, _ in tables])
    numbers = training.codes.number_rows(slice(None))
    return JudgedRows(
        training.schema,
        training.codes.by_column(),
        training.labels,
        weights,
        training.workspace.take(prior, fold),
        fold,
        table,
        table,
        np.ascontiguousarray(numbers),
        tuple(gaussian for _, _, gaussian in tables),
        n_jobs=training.n_jobs,
    )


def _log_prior_without(
    training: TrainingSet, counts: Counts, removed: Floats
) -> Floats:
    """Log priors with each row's weight taken out of its class, shape (n, K)."""
    estimation, shape = training.estimation, (training.n_rows, training.n_classes)
    out = training.workspace.zeros(shape, np.float64)
    if not isinstance(estimation.prior, str):
        out[:] = estimate_prior(estimation.prior, counts, estimation.smoothing)
        return out
    smoothing = estimation.smoothing
    for rows in pieces(slice(0, training.n_rows)):
        labels, of_rows = training.labels[rows], removed[rows]
        true_class = np.arange(len(labels)), labels
        smoothed = np.tile(counts.by_class, (len(labels), 1))
        smoothed[true_class] = np.maximum(smoothed[true_class] - of_rows, 0.0)
        if estimation.prior == "smoothed":
            factor = smoothing.factor_without(counts, of_rows)
            smoothed += factor[:, None] * smoothing.prior_counts(counts)
        with np.errstate(divide="ignore"):
            out[rows] = np.log(smoothed / smoothed.sum(axis=1, keepdims=True))
    return out
