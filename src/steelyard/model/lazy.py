"""Models of lazy classifiers: training rows, and what a query makes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, Ints
from steelyard._common.threads import run, thread_count
from steelyard.kernels import counting
from steelyard.kernels import lazy as kernels
from steelyard.model.base import ScoredModel, TwoArrays
from steelyard.proba.counts import count_code_pairs
from steelyard.table.codes import Codes
from steelyard.table.schema import TableSchema

# Counts of pairs of codes by class that are kept: 128 MB.
_MAX_PAIR_COUNTS = 1 << 24

# Queries that one thread takes at a time.
_QUERIES_PER_BLOCK = 64


@dataclass(frozen=True)
class LazyModel(ScoredModel):
    """A model of training rows, whose codes it keeps: each query is a separate fit."""

    is_lazy: ClassVar[bool] = True
    _rows: ClassVar[str]
    """Description of the training rows to which a query's model is fitted."""

    schema: TableSchema
    classes: NDArray[Any]
    columns: NDArray[Any]
    """Codes of the training rows, shape (d, n)."""

    y: NDArray[np.uint32]
    weights: Floats
    """Row weights, empty if all are one."""

    log_prior: Floats
    """Priors that were given; empty if they come from the weighted rows."""

    value_added: Floats
    prior_added: Floats
    tie_order: Ints

    def scores(self, codes: Codes, n_jobs: int | None = None) -> Floats:
        """Joint log-probabilities under the model of each query, shape (n, K)."""
        out, score = np.empty((codes.n_rows, 1, self.n_classes)), self._scorer(codes)
        step = _QUERIES_PER_BLOCK
        blocks = (slice(at, at + step) for at in range(0, codes.n_rows, step))
        for _ in run(lambda b: score(b, out[b]), blocks, thread_count(n_jobs)):
            pass
        return out[:, 0]

    def note(self) -> str:
        """Return a sentence that describes the model."""
        rows = self._rows.format(model=self, n=len(self.y))
        return (
            f"Not one sum: each query has a separate model, fitted to {rows}. For "
            "one query that model is a sum."
        )

    def terms(self, codes: Codes) -> TwoArrays:
        """Return the intercepts of queries and their contributions."""
        terms = np.zeros((codes.n_rows, len(self.schema) + 1, self.n_classes))
        self._scorer(codes)(slice(None), terms)
        order = np.argsort([*self.schema.coded, *self.schema.gaussian])
        return terms[:, -1], terms[:, order]

    def row_weights(self, query: Codes) -> TwoArrays:
        """Return distances of training rows from a query, and their weights, (n,)."""
        raise NotImplementedError

    def _matches(self, query: Codes) -> Ints:
        """Count the observed cells that each training row shares with a query."""
        cells = query.to_array()[0][:, None]
        return ((self.columns == cells) & (cells != 0)).sum(axis=0)

    def _smoothing(self, exponents: Floats) -> tuple[Any, ...]:
        """Return the arguments of kernels by which counts become scores."""
        n_values = self.schema.n_values[self.schema.coded].astype(np.float64)
        added = (self.value_added, n_values, exponents, self.prior_added)
        return self.log_prior, *added

    def _scorer(self, codes: Codes) -> Callable[[slice, Floats], None]:
        """Return a function that writes scores of some queries, or their terms."""
        raise NotImplementedError


@dataclass(frozen=True)
class MatchingModel(LazyModel):
    """Every row counts one plus the number of cells that it shares with a query.

    All that a query asks of the rows is in the counts of pairs of codes; where those
    are not too many, no row is touched again (20,000 queries on 20,000 x 16: 0.6 s
    instead of 6 s).
    """

    kind: ClassVar[str] = "matches"
    _rows: ClassVar[str] = "all {n} training rows, weighted by the cells they share"

    exponents: Floats
    """Attribute weights, shape (d,)."""

    def row_weights(self, query: Codes) -> TwoArrays:
        """Return distances of training rows from a query, and their weights, (n,)."""
        matches = self._matches(query)
        distance = (len(self.columns) - matches).astype(np.float64)
        mass = 1.0 + matches.astype(np.float64)
        return distance, mass * self.weights if self.weights.size else mass

    @cached_property
    def _pairs(self) -> tuple[NDArray[Any], ...] | None:
        """Counts of pairs, of single codes and of classes; None if they are many."""
        widths = [self.schema.features[j].n_codes for j in self.schema.coded]
        offsets = np.concatenate([[0], np.cumsum(widths)])
        v, k, d = int(offsets[-1]), len(self.classes), len(widths)
        if v * v * k > _MAX_PAIR_COUNTS:
            return None
        u = self.weights if self.weights.size else None
        table = count_code_pairs(self.columns, offsets, self.y, u, k)
        by_class = np.zeros((k, v))
        first = offsets[:-1].astype(np.uint64)
        counting.count_columns(self.columns.T, first, self.y, u, by_class)
        singles = by_class.T.copy()
        # A code occurs together with itself.
        table[np.arange(v), np.arange(v)] = singles
        observed, observed_singles = (
            np.stack([c[offsets[j] + 1 : offsets[j + 1]].sum(axis=0) for j in range(d)])
            for c in (table, singles)
        )
        mass = np.bincount(self.y, u, minlength=k).astype(np.float64)
        return first, table, observed, singles, observed_singles, mass

    def _scorer(self, codes: Codes) -> Callable[[slice, Floats], None]:
        queries, smoothing = codes.to_array(), self._smoothing(self.exponents)
        score: Any = kernels.pair_scores
        data = self._pairs
        if data is None:
            score, data = kernels.match_scores, (self.columns, self.y, self.weights)
        return lambda rows, out: score(queries[rows], data, smoothing, out)


@dataclass(frozen=True)
class LocalModel(LazyModel):
    """The nearest rows of a query count, by a kernel of their distance."""

    kind: ClassVar[str] = "neighbours"
    _rows: ClassVar[str] = "its {model.neighbours} nearest of {n} training rows"

    numbers: Floats
    """Numbers of the Gaussian attributes, shape (g, n)."""

    floors: Floats
    """Smallest variances of the Gaussian attributes, shape (g,)."""

    neighbours: int
    kernel: int
    """Position in ``allowed.KERNELS``."""

    def row_weights(self, query: Codes) -> TwoArrays:
        """Return distances of training rows from a query, and their weights, (n,)."""
        d, n = self.columns.shape
        squares, kept, mass = np.empty(n), np.empty(n, np.int64), np.empty(n)
        radius = kernels.distances(
            self._matches(query).astype(np.uint16),
            d,
            self._scaled(query.number_rows(slice(None)))[0],
            self._scaled_numbers,
            min(self.neighbours, n),
            np.empty(d + 1, np.int64),
            squares,
        )
        n_kept = kernels.keep_nearest(
            squares, radius, self.weights, self.kernel, kept, mass
        )
        counted = np.zeros(n)
        counted[kept[:n_kept]] = mass[:n_kept]
        return np.sqrt(squares), counted

    @cached_property
    def _scale(self) -> TwoArrays:
        """Smallest value and range of every Gaussian attribute.

        The range of a constant attribute is infinite: no number is far from another.
        """
        missing = np.isnan(self.numbers)
        low = np.where(missing, np.inf, self.numbers).min(axis=1, initial=np.inf)
        high = np.where(missing, -np.inf, self.numbers).max(axis=1, initial=-np.inf)
        varies = high > low
        span = np.where(varies, high, np.inf) - np.where(varies, low, 0.0)
        return np.where(np.isfinite(low), low, 0.0), span

    def _scaled(self, numbers: Floats) -> Floats:
        """Return numbers (m, g) as shares of the ranges of the training rows."""
        low, span = self._scale
        with np.errstate(over="ignore"):
            shares = (numbers - low) / span
        return np.clip(shares, -kernels.MAX_DISTANCE, kernels.MAX_DISTANCE)

    @cached_property
    def _scaled_numbers(self) -> Floats:
        return np.ascontiguousarray(self._scaled(self.numbers.T).T)

    def _scorer(self, codes: Codes) -> Callable[[slice, Floats], None]:
        queries, ones = codes.to_array(), np.ones(len(self.columns))

        def score(rows: slice, scores: Floats) -> None:
            # A copy: kernels are compiled for arrays of one kind.
            numbers = np.zeros((len(scores), 0))
            if codes.n_numbers:
                numbers = np.array(codes.number_rows(rows), order="C")
            kernels.local_scores(
                (queries[rows], numbers, self._scaled(numbers)),
                (self.columns, self.y, self.weights),
                (self.numbers, self._scaled_numbers),
                min(self.neighbours, len(self.y)),
                self.kernel,
                self._smoothing(ones),
                self.floors,
                scores,
            )

        return score
