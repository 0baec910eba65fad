"""NBModel: plain data from which a prediction is a sum of table rows.

The level of a column is arbitrary in a sum: a constant that is added to all its values
can be subtracted from those of another. So explanations are relative to the mean over
the training rows, the ``centre``, and their base is the mean score.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, Ints
from steelyard._common.threads import pieces, row_blocks, run, thread_count
from steelyard.kernels import scoring
from steelyard.model.base import MeanTerms, Model, SomeClasses, TwoArrays
from steelyard.model.marginal import (
    Marginal,
    PartialRows,
    observed_columns,
    unobserved_rows,
)
from steelyard.proba.counts import Counts
from steelyard.proba.gaussian import GaussianTable
from steelyard.table.codes import CodeBlock, Codes, FeatureTable
from steelyard.table.encoding import on_grid
from steelyard.table.schema import TableSchema

if TYPE_CHECKING:
    from steelyard.model.training import TrainingSet


@dataclass(frozen=True)
class NBModel(Model):
    r"""A fitted naive Bayes model: schema, classes, and numbers to add up.

    .. math:: z_c(x) = b_c + \sum_j T_{j,\,x_j,\,c} + \sum_g \log N(x_g;
        \mu_{gc}, \sigma_{gc}^2)
    """

    kind: ClassVar[str] = "sum"
    is_sum: ClassVar[bool] = True
    takes_prior: ClassVar[bool] = True

    schema: TableSchema
    classes: NDArray[Any]
    """Shape (K,), sorted."""

    log_prior: Floats
    """Shape (K,)."""

    table: Floats
    """Contribution of every code to the score of every class, shape (V, K)."""

    gaussian: GaussianTable
    """Densities of the attributes that have no codes."""

    link_scale: float = 1.0
    centre: Floats | None = None

    marginal: Marginal | None = None
    """Moments by which missing cells are averaged over; without, they add nothing."""

    @cached_property
    def tie_order(self) -> Ints:
        """Classes by falling prior, then position: the first best one wins a tie."""
        return np.argsort(-self.log_prior, kind="stable")

    def scores(self, codes: Codes, n_jobs: int | None = None) -> Floats:
        """Add up rows of the table: a score for each class, shape (n, K).

        Missing cells add nothing; without any, these are joint log-probabilities.
        """
        out = np.empty((codes.n_rows, self.n_classes))
        self.summed._by_piece(codes, n_jobs, lambda scores, rows: None, out=out)
        return out

    def log_proba(self, codes: Codes, n_jobs: int | None = None) -> Floats:
        """Log posterior probabilities, shape (n, K)."""
        out = np.empty((codes.n_rows, self.n_classes))
        rest = self._by_piece(
            codes,
            n_jobs,
            lambda scores, rows: scoring.log_softmax(self._scaled(scores)),
            out=out,
        )
        for rows, proba in rest:
            out[rows] = np.log(proba)
        return out

    def proba(self, codes: Codes, n_jobs: int | None = None) -> Floats:
        """Posterior probabilities, shape (n, K)."""
        out = np.empty((codes.n_rows, self.n_classes))
        rest = self._by_piece(
            codes,
            n_jobs,
            lambda scores, rows: scoring.softmax(self._scaled(scores)),
            lambda odds, rows: scoring.logistic(self._scaled(odds), out[rows]),
            out,
        )
        for rows, proba in rest:
            out[rows] = proba
        return out

    def true_proba(
        self, codes: Codes, y: NDArray[Any], n_jobs: int | None = None
    ) -> Floats:
        """Posterior probability of the true class of every row, shape (n,)."""
        if not self._has_odds(codes):
            return super().true_proba(codes, y, n_jobs)
        chosen = codes.workspace.zeros(codes.n_rows, np.float64)

        def by_odds(odds: Any, rows: slice) -> None:
            truth = np.asarray(y[rows], dtype=np.uint32)
            scoring.logistic_of(self._scaled(odds), truth, chosen[rows])

        for rows, proba in self._by_piece(codes, n_jobs, None, by_odds):
            truth = np.asarray(y[rows], dtype=np.int64)
            chosen[rows] = proba[np.arange(len(rows)), truth]
        return chosen

    def winners(self, codes: Codes, n_jobs: int | None = None) -> Ints:
        """Position of the most probable class of every row."""
        order = self.tie_order.astype(np.uint64)
        chosen = codes.workspace.zeros(codes.n_rows, np.int64)

        def by_scores(scores: Any, rows: slice) -> None:
            scoring.best(scores, order, chosen[rows])

        def by_odds(odds: Any, rows: slice) -> None:
            chosen[rows] = np.where(odds == 0.0, order[0], odds > 0.0)

        for rows, proba in self._by_piece(codes, n_jobs, by_scores, by_odds):
            chosen[rows] = self.tie_order[proba[:, self.tie_order].argmax(axis=1)]
        return chosen

    def contributions(self, codes: Codes) -> Floats:
        """Return the contribution of each attribute to each class score, (n, d, K).

        With the log prior these add up to ``scores``. Meant for few rows: the array has
        n * d * K entries.
        """
        out = np.zeros((codes.n_rows, len(self.schema), self.n_classes))
        offsets = self.schema.offsets
        for j in self.schema.coded.tolist():
            out[:, j] = self.table[offsets[j] + codes.column(j).astype(np.int64)]
        if codes.n_numbers:
            numbers = codes.number_rows(slice(None))
            for g, j in enumerate(self.schema.gaussian.tolist()):
                out[:, j] = self.density_scores(j, numbers[:, g])
        return out

    def density(self, j: int) -> GaussianTable:
        """Return the density of one attribute."""
        return self.gaussian.only(self.schema.gaussian.tolist().index(j))

    def density_scores(self, j: int, numbers: Floats) -> Floats:
        """Return contributions of numbers of one attribute, shape (n, K)."""
        scores = np.zeros((len(numbers), self.n_classes))
        self.density(j).add_scores(np.ascontiguousarray(numbers[:, None]), scores)
        return scores

    def terms(self, codes: Codes) -> TwoArrays:
        """Return the intercepts of rows and their contributions."""
        return np.tile(self.log_prior, (codes.n_rows, 1)), self.contributions(codes)

    def centred(self, mean: MeanTerms, classes: SomeClasses = None) -> NBModel:
        """Return the same sum with its centre."""
        return replace(self, centre=mean(self, classes))

    def note(self) -> str:
        """Return a sentence that describes the model."""
        return "The score of a class is its prior plus one contribution per column."

    def first_sum(self) -> NBModel:
        """Return itself."""
        return self

    def restricted(self, attributes: list[int]) -> NBModel:
        """Return a model to which only some attributes contribute."""
        is_kept = np.zeros(len(self.schema), dtype=bool)
        is_kept[attributes] = True
        rows = np.repeat(is_kept, np.diff(self.schema.offsets))
        model = replace(self, table=np.where(rows[:, None], self.table, 0.0))
        kept = is_kept[self.schema.gaussian]
        if kept.all():
            return model
        factors = np.where(kept[:, None], self.gaussian.factors, 0.0)
        return replace(model, gaussian=replace(self.gaussian, weight=factors))

    # Two classes need one number per code instead of two, and one exponential.

    def _has_odds(self, codes: Codes) -> bool:
        two = self.n_classes == 2 and not codes.n_numbers
        return two and bool(np.isfinite(self.log_prior).all())

    @cached_property
    def summed(self) -> NBModel:
        """The same model without moments: missing cells add nothing."""
        return self if self.marginal is None else replace(self, marginal=None)

    @cached_property
    def conditional(self) -> PartialRows:
        """What answers rows with cells that are averaged over."""
        assert self.marginal is not None
        return PartialRows(self, self.marginal)

    def unknown_cells(self, codes: Codes) -> Ints:
        """Return the number of cells of each row that are averaged over, shape (n,)."""
        if self.marginal is None:
            return np.zeros(codes.n_rows, dtype=np.int64)
        observed = observed_columns(codes, self.marginal.columns)
        return np.asarray((~observed).sum(axis=1))

    def partial_rows(self, codes: Codes) -> Ints:
        """Return the positions of rows with cells that are averaged over."""
        return np.flatnonzero(self.unknown_cells(codes))

    @cached_property
    def _marked(self) -> Floats:
        """The table, with NaN for cells that are averaged over."""
        if self.marginal is None:
            return self.table
        is_missing = unobserved_rows(self.schema, self.marginal.columns)
        return np.where(is_missing[:, None], np.nan, self.table)

    @cached_property
    def _differences(self) -> Floats:
        return np.ascontiguousarray(self._marked[:, 1] - self._marked[:, 0])

    def _odds(self, codes: Codes, tables: Any, rows: slice) -> Floats:
        """Log-odds of the second class in a block of rows."""
        n = len(range(*rows.indices(codes.n_rows)))
        odds = np.full(n, self.log_prior[1] - self.log_prior[0])
        for block, (starts, table) in zip(codes.blocks, tables, strict=True):
            scoring.gather_difference(block.values[rows], starts, table, odds)
        return odds

    def _scaled(self, scores: Floats) -> Floats:
        scores *= self.link_scale
        return scores

    def _by_piece(
        self,
        codes: Codes,
        n_jobs: int | None,
        by_scores: Any,
        by_odds: Any = None,
        out: Floats | None = None,
    ) -> list[tuple[Ints, Floats]]:
        """Pass on the scores of pieces of rows, or their odds if there are any.

        Scores are made in ``out`` (n, K), if it is given. Rows with cells that are
        averaged over are passed on as zeros; they are returned with their
        probabilities.
        """
        if codes.schema is not self.schema and codes.schema != self.schema:
            raise ValueError("The codes were made with another schema than the model.")
        has_odds = by_odds is not None and self._has_odds(codes)
        table = self._differences if has_odds else self._marked
        tables = [spread_table(block, codes, table) for block in codes.blocks]
        partly: list[Ints] = []

        def work(block: slice) -> None:
            for rows in pieces(block):
                if has_odds:
                    scores = self._odds(codes, tables, rows)
                else:
                    shape = (rows.stop - rows.start, self.n_classes)
                    scores = np.empty(shape) if out is None else out[rows]
                    self._score_block(codes, tables, rows, scores)
                if self.marginal is not None:
                    # A class without training rows has a score of -inf for all others.
                    is_partly = np.isnan(scores if has_odds else scores.min(axis=1))
                    if is_partly.any():
                        scores[is_partly] = 0.0
                        partly.append(rows.start + np.flatnonzero(is_partly))
                (by_odds if has_odds else by_scores)(scores, rows)

        for _ in run(work, row_blocks(codes.n_rows), thread_count(n_jobs)):
            pass
        if not partly or self.marginal is None:
            return []
        rows = np.sort(np.concatenate(partly))
        some = codes if len(rows) == codes.n_rows else codes.take(rows)
        return [(rows, self.conditional.proba(some))]

    def _score_block(self, codes: Codes, tables: Any, rows: slice, out: Floats) -> None:
        out[:] = self.log_prior
        for block, (starts, table) in zip(codes.blocks, tables, strict=True):
            scoring.gather(block.values[rows], starts, table, out)
        if codes.n_numbers:
            numbers = codes.number_rows(rows)
            self.gaussian.add_scores(numbers, out)
            if self.marginal is not None:
                averaged = self.marginal.columns[self.schema.gaussian]
                out[np.isnan(numbers[:, averaged]).any(axis=1)] = np.nan


def spread_table(
    block: CodeBlock, codes: Codes, table: Floats
) -> tuple[NDArray[np.uint64], Floats]:
    """Return starts and table of a block of columns, by byte if columns are packed."""
    rows = block.table_rows(codes.offsets)
    return block.starts(codes.offsets), table if rows is None else table[rows]


# Nodes of means under a normal distribution.
_HERMITE = 64

# Beyond these log-odds a row is as good as decided.
_MAX_ODDS = 12.0


def centred(model: Model, counts: Counts, training: TrainingSet | None = None) -> Model:
    """Return a model whose sums have the mean contributions of their attributes.

    Codes are averaged by their counts, by ``sample_weight`` alone, Gaussian densities
    by the moments of their numbers. Other numbers are averaged over the rows of a
    training set that has them all; without one, approximately by their moments.
    """
    if training is not None and training.earlier is not None:
        training = None
    mean = partial(_mean_terms, counts=counts, training=training)
    return model.centred(mean)


def _mean_terms(
    model: NBModel, classes: SomeClasses, counts: Counts, training: TrainingSet | None
) -> Floats | None:
    """Return the mean contributions of the attributes of a sum, None if unknown.

    Cells that are averaged over do not count.
    """
    if classes is not None:
        counts = counts.of_classes(classes)
    columns = None if model.marginal is None else model.marginal.columns
    schema = model.schema
    if counts.schema != schema or not counts.total > 0.0:
        return None
    rows = counts.by_code.sum(axis=1, keepdims=True)
    totals = np.full((len(schema), 1), counts.total)
    if columns is not None:
        rows = np.where(unobserved_rows(schema, columns)[:, None], 0.0, rows)
        totals = FeatureTable(rows, schema.offsets).collect(rows)
        totals[schema.gaussian] = np.where(
            columns[schema.gaussian], counts.moments.weight.sum(axis=1), counts.total
        )[:, None]
    added = np.where(rows > 0.0, rows * np.where(rows > 0.0, model.table, 0.0), 0.0)
    sums = FeatureTable(model.table, schema.offsets).collect(added)
    by_row = [
        j
        for j in schema.gaussian.tolist()
        if training is not None and not _is_quadratic(model.density(j))
    ]
    for j in np.setdiff1d(schema.gaussian, by_row).tolist():
        for weight, share, numbers in numbers_by_class(counts, j):
            sums[j] += weight * (share @ model.density_scores(j, numbers))
    if by_row and training is not None:
        of_part = partial(_number_sums, model=model, classes=classes, columns=by_row)
        sums[by_row] = training.place.sum(training, of_part)
    # Impossible values have no mean: their column is shown as it is.
    is_finite = np.isfinite(sums).all(axis=1, keepdims=True) & (totals > 0.0)
    return np.where(is_finite, sums / np.maximum(totals, 1e-300), 0.0)


def _is_quadratic(density: GaussianTable) -> bool:
    """Whether log-densities are quadratic, so that moments give their mean."""
    forms = (density.step, density.depth, density.limit)
    return not any(form is not None and form.any() for form in forms)


def _number_sums(
    training: TrainingSet,
    model: NBModel,
    classes: SomeClasses,
    columns: list[int],
) -> Floats:
    """Return sums over rows of the contributions of some numeric columns."""
    places = np.searchsorted(model.schema.gaussian, columns).tolist()
    sums = np.zeros((len(columns), model.n_classes))
    for rows in pieces(slice(0, training.n_rows)):
        kept: Any = slice(None)
        if classes is not None:
            kept = np.isin(training.labels[rows], classes)
        numbers = training.codes.number_rows(rows)[kept]
        weights = np.ones(len(numbers))
        if training.sample_weight is not None:
            weights = training.sample_weight[rows][kept]
        for k, (j, g) in enumerate(zip(columns, places, strict=True)):
            sums[k] += weights @ model.density_scores(j, numbers[:, g])
    return sums


def numbers_by_class(counts: Counts, j: int) -> Iterator[tuple[float, Floats, Floats]]:
    """Yield for each class its weight, and numbers that represent it with their shares.

    They are nodes of a normal distribution with mean and variance of the rows.
    """
    nodes, shares = _nodes()
    moments = counts.moments
    g, step = counts.schema.gaussian.tolist().index(j), counts.schema.features[j].step
    for c, weight in enumerate(moments.weight[g].tolist()):
        if weight > 0.0:
            deviation = np.sqrt(2.0 * moments.squares[g, c] / weight)
            numbers = moments.mean[g, c] + deviation * nodes
            yield weight, shares, on_grid(numbers, step)


@cache
def _nodes() -> tuple[Floats, Floats]:
    """Return nodes of a normal distribution, and their shares."""
    nodes, shares = np.polynomial.hermite.hermgauss(_HERMITE)
    return nodes, shares / shares.sum()


def log_odds(proba: Floats) -> Floats:
    r"""Return the log-odds of classes, :math:`\log p / (1 - p)`, within ±12, (n, S).

    For two classes those of the second, S = 1, else those of each, S = K.

    >>> log_odds(np.array([[0.5, 0.5], [0.0, 1.0]]))
    array([[ 0.],
           [12.]])
    """
    least = 1.0 / (1.0 + math.exp(_MAX_ODDS))
    chosen = proba[:, 1:] if proba.shape[1] == 2 else proba
    p = np.clip(chosen, least, 1.0 - least)
    return np.asarray(np.clip(np.log(p) - np.log1p(-p), -_MAX_ODDS, _MAX_ODDS))
