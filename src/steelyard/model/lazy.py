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
from steelyard.kernels import lazy as kernels
from steelyard.kernels import pairs
from steelyard.model.base import ScoredModel, TwoArrays
from steelyard.model.table_model import NBModel
from steelyard.proba.gaussian import GaussianTable
from steelyard.table.codes import Codes
from steelyard.table.schema import TableSchema

# Counts of pairs of codes by class that are kept at the most: 128 MB.
_MAX_PAIR_COUNTS = 1 << 24

# Queries that one thread takes at a time.
_QUERIES_PER_BLOCK = 64

_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class LazyModel(ScoredModel):
    """Training rows, and how a query is predicted from them.

    Unlike other models this one needs its training rows; it keeps their codes.
    """

    is_lazy: ClassVar[bool] = True
    _rows: ClassVar[str]
    """Which training rows a query's model is fitted to."""

    schema: TableSchema
    classes: NDArray[Any]
    columns: NDArray[Any]
    """Codes of the training rows, shape (d, n)."""

    y: NDArray[np.uint32]
    weights: Floats
    """Row weights, empty where all are one."""

    log_prior: Floats
    """Priors that were given; empty where they come from the weighted rows."""

    value_added: Floats
    prior_added: Floats
    tie_order: Ints

    def scores(self, codes: Codes, n_jobs: int | None = None) -> Floats:
        """Joint log-probabilities under the model of each query, shape (n, K)."""
        out = np.empty((codes.n_rows, len(self.classes)))
        step = _QUERIES_PER_BLOCK
        blocks = [
            slice(lo, min(lo + step, codes.n_rows))
            for lo in range(0, codes.n_rows, step)
        ]
        for _ in run(self._worker(codes, out), blocks, thread_count(n_jobs)):
            pass
        return out

    def note(self) -> str:
        """Say in a sentence what the model is."""
        rows = self._rows.format(model=self, n=len(self.y))
        return (
            f"Not one sum: each query has a model of its own, fitted to {rows}. For "
            "one query that model is a sum."
        )

    def terms(self, codes: Codes) -> TwoArrays:
        """Say where the scores of queries start, and what each attribute adds."""
        base = np.empty((codes.n_rows, self.n_classes))
        added = np.empty((codes.n_rows, len(self.schema), self.n_classes))
        for i in range(codes.n_rows):
            query = codes.take(np.array([i]))
            base[i : i + 1], added[i : i + 1] = self.query_model(query).terms(query)
        return base, added

    def query_model(self, query: Codes) -> NBModel:
        """Make the model of one query: naive Bayes on weighted training rows."""
        mass = self.row_weights(query)[1]
        total = np.bincount(self.y, mass, minlength=self.n_classes).astype(np.float64)
        log_prior = self.log_prior
        if not log_prior.size:
            share = total + self.prior_added
            with np.errstate(divide="ignore"):
                log_prior = np.asarray(np.log(share / share.sum()))
        table, gaussian = self._value_table(mass), self._densities(mass, query)
        return NBModel(self.schema, self.classes, log_prior, table, gaussian)

    def row_weights(self, query: Codes) -> TwoArrays:
        """Distances of the training rows from a query, and what each counts, (n,)."""
        raise NotImplementedError

    @property
    def _user_weights(self) -> Floats:
        return self.weights if self.weights.size else np.ones(len(self.y))

    def _matches(self, query: Codes) -> Ints:
        """Count the known cells that each training row shares with a query."""
        cells = query.to_array()[0][:, None]
        return ((self.columns == cells) & (cells != 0)).sum(axis=0)

    def _value_table(self, mass: Floats) -> Floats:
        """Log-probabilities of the values in weighted rows, shape (V, K)."""
        schema, k = self.schema, self.n_classes
        table = np.zeros((schema.n_codes, k))
        for position, j in enumerate(schema.coded.tolist()):
            n_codes = schema.features[j].n_codes
            both = self.columns[position].astype(np.int64) * k + self.y
            counts = np.bincount(both, mass, minlength=n_codes * k).reshape(n_codes, k)
            added = self.value_added[position]
            known = counts[1:].sum(axis=0)
            p = (counts[1:] + added) / (known + (n_codes - 1) * added)
            first = schema.offsets[j]
            table[first + 1 : first + n_codes] = np.log(np.maximum(p, _TINY))
        return table

    def _densities(self, mass: Floats, query: Codes) -> GaussianTable:
        """Densities of the numbers in weighted rows."""
        return GaussianTable.empty(self.n_classes)

    def _smoothing(self, exponents: Floats) -> tuple[Any, ...]:
        """Return what turns counts into scores, as the kernels take it."""
        n_values = self.schema.n_values[self.schema.coded].astype(np.float64)
        added = (self.value_added, n_values, exponents, self.prior_added)
        return self.log_prior, *added

    def _worker(self, codes: Codes, out: Any) -> Callable[[slice], None]:
        """Return what scores some of the queries."""
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
        """Distances of the training rows from a query, and what each counts, (n,)."""
        matches = self._matches(query)
        distance = (len(self.columns) - matches).astype(np.float64)
        return distance, (1.0 + matches) * self._user_weights

    def _value_table(self, mass: Floats) -> Floats:
        by_code = np.repeat(self.exponents, np.diff(self.schema.offsets))
        return by_code[:, None] * super()._value_table(mass)

    @cached_property
    def _pairs(self) -> tuple[NDArray[Any], ...] | None:
        """Counts of pairs, of single codes and of classes; None if they are many."""
        widths = [self.schema.features[j].n_codes for j in self.schema.coded]
        offsets = np.concatenate([[0], np.cumsum(widths)]).astype(np.uint64)
        v, k, d = int(offsets[-1]), len(self.classes), len(widths)
        if v * v * k > _MAX_PAIR_COUNTS:
            return None
        table = np.zeros((v, v, k))
        pairs.count_all_pairs(self.columns, offsets[:-1], self.y, self.weights, table)
        singles = table[np.arange(v), np.arange(v)]
        bounds = offsets.astype(np.int64)
        known = np.stack(
            [table[bounds[j] + 1 : bounds[j + 1]].sum(0) for j in range(d)]
        )
        known_singles = np.stack(
            [singles[bounds[j] + 1 : bounds[j + 1]].sum(0) for j in range(d)]
        )
        u = self.weights if self.weights.size else None
        mass = np.bincount(self.y, u, minlength=k).astype(np.float64)
        return offsets[:-1], table, known, singles, known_singles, mass

    def _worker(self, codes: Codes, out: Any) -> Callable[[slice], None]:
        queries, smoothing = codes.to_array(), self._smoothing(self.exponents)
        score: Any = kernels.pair_scores
        data = self._pairs
        if data is None:
            score, data = kernels.match_scores, (self.columns, self.y, self.weights)
        return lambda rows: score(queries[rows], data, smoothing, out[rows])


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
    """Position in ``agreed.KERNELS``."""

    def row_weights(self, query: Codes) -> TwoArrays:
        """Distances of the training rows from a query, and what each counts, (n,)."""
        squares = (len(self.columns) - self._matches(query)).astype(np.float64)
        low, span = self._scale
        for g, x in enumerate(self._scaled(query.number_rows(slice(None)))[0]):
            t = (self.numbers[g] - low[g]) / span[g]
            # A missing number is as far away as it can be.
            far = np.maximum(x, 1.0 - x) if not np.isnan(x) else 1.0
            gap = np.abs(x - t) if not np.isnan(x) else np.maximum(t, 1.0 - t)
            squares += np.where(np.isnan(t), far, gap) ** 2
        return np.sqrt(squares), self._kernel_weights(squares)

    def _kernel_weights(self, squares: Floats) -> Floats:
        """Weights of the nearest rows and those tied with the last of them."""
        user = self._user_weights
        k = min(self.neighbours, len(squares))
        radius = np.partition(squares, k - 1)[k - 1]
        kept = squares <= radius
        by_kernel = np.zeros(len(squares))
        by_kernel[kept] = 1.0
        if radius > 0.0:
            by_kernel[kept] = [
                kernels._kernel(self.kernel, s) for s in np.sqrt(squares[kept] / radius)
            ]
        mass = by_kernel * user
        return np.asarray(mass * (user[kept].sum() / mass.sum()))

    def _densities(self, mass: Floats, query: Codes) -> GaussianTable:
        """Means and deviations of the weighted rows.

        A class without a known number has those of all rows, a class without a row a
        density that is as low as the kernels' at the query. An attribute without a
        known number is standard normal in every class.
        """
        mean = np.zeros((len(self.numbers), self.n_classes))
        deviation = np.ones_like(mean)
        present = np.bincount(self.y, mass, minlength=self.n_classes) > 0.0
        cells = np.nan_to_num(query.number_rows(slice(None))[0])
        for g, column in enumerate(self.numbers):
            known = ~np.isnan(column) & (mass > 0.0)
            if not known.any():
                continue
            for c in np.flatnonzero(present):
                in_class = known & (self.y == c)
                rows = in_class if in_class.any() else known
                mean[g, c] = np.average(column[rows], weights=mass[rows])
                square = (column[rows] - mean[g, c]) ** 2
                variance = float(np.average(square, weights=mass[rows]))
                deviation[g, c] = np.sqrt(max(variance, self.floors[g]))
            with np.errstate(over="ignore"):
                steps = np.abs(cells[g] - mean[g, present]) / deviation[g, present]
            squares = np.minimum(steps, kernels.FARTHEST) ** 2
            logs = -0.5 * squares - np.log(deviation[g, present])
            least = float((logs - 0.5 * np.log(2.0 * np.pi)).min(initial=np.inf))
            # So wide that it is level, and so far away that it is no higher.
            wide = np.exp(-kernels.ABSENT) / np.sqrt(2.0 * np.pi)
            away = np.sqrt(2.0 * max(kernels.ABSENT - least, 0.0))
            deviation[g, ~present] = wide
            mean[g, ~present] = cells[g] + away * wide
        return GaussianTable(mean, deviation, np.zeros(len(self.numbers)))

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
        return np.clip(shares, -kernels.FARTHEST, kernels.FARTHEST)

    def _worker(self, codes: Codes, out: Any) -> Callable[[slice], None]:
        queries, smoothing = (
            codes.to_array(),
            self._smoothing(np.ones(len(self.columns))),
        )
        scaled = np.ascontiguousarray(self._scaled(self.numbers.T).T)

        def work(rows: slice) -> None:
            # A copy: kernels are compiled for arrays of one kind.
            numbers = np.zeros((len(out[rows]), 0))
            if codes.n_numbers:
                numbers = np.array(codes.number_rows(rows), order="C")
            kernels.local_scores(
                (queries[rows], numbers, self._scaled(numbers)),
                (self.columns, self.y, self.weights),
                (self.numbers, scaled),
                min(self.neighbours, len(self.y)),
                self.kernel,
                smoothing,
                self.floors,
                out[rows],
            )

        return work
