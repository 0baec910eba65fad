r"""KeptRows: a few rows that stand for all earlier ones, where learning goes on.

Counts of earlier rows are known, their loss is not. It is taken to be that of a sample,
by priority (Duffield, Lund and Thorup, 2007), plus a linear term that makes its
gradient that of all earlier rows where the last fit ended:

.. math:: L(T) \approx \sum_{i \in S} \hat u_i\, \ell(T, x_i, y_i) +
          \langle R, T \rangle

as in surrogate likelihoods (Jordan, Lee and Yang, 2019). The sample is responsible for
curvature alone, so that a few thousand rows do for any number.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from steelyard._common.allowed import LEAST_OF_WIDE, MOST_KEPT, MOST_KEPT_CELLS
from steelyard._common.arrays import Floats, Ints
from steelyard._common.threads import pieces
from steelyard.fitting.problem import Problem
from steelyard.fitting.rows import Passes, PassesOf, join_rows
from steelyard.losses import Loss
from steelyard.model import RowPlace
from steelyard.model.training import TrainingSet
from steelyard.proba.counts import Counts, rows_in
from steelyard.proba.gaussian import GaussianTable
from steelyard.table.by_schema import ColumnCells
from steelyard.table.codes import MEMORY, CodeBlock, Codes, code_dtype
from steelyard.table.frames import as_table
from steelyard.table.schema import TableSchema
from steelyard.table.storage import Store, StoredRows
from steelyard.weighting.base import Effect

# Rows whose weight has faded to this share of the largest are sampled.
_FADED = 1.0 / 16.0

Numbers = tuple[Floats | None, ...]
"""Numbers of some rows, by column; None for categories.

Empty where they are not known: earlier files have codes alone.
"""


@dataclass(frozen=True, eq=False)
class KeptRows:
    """A sample of earlier rows, and what it lacks of their gradient."""

    codes: Codes
    """Without pairs of columns."""

    numbers: Numbers
    """Numbers of the rows, by which cut points are found again."""

    labels: NDArray[Any]
    weights: Floats
    """Their own, faded."""

    priorities: Floats
    """Their weights over numbers drawn from 0 to 1: the largest are kept."""

    threshold: float
    """The largest priority of a row that is not kept, 0 where all are."""

    since_choice: float
    """Weight of the rows that have come since strengths and pairs were chosen."""

    rest: Effect
    r""":math:`R`, by the codes of the model, pairs included."""

    @property
    def amounts(self) -> Floats:
        """How much weight each row stands for."""
        return np.maximum(self.weights, self.threshold)

    def faded(self, factor: float) -> KeptRows:
        """Return the same rows with weights times a factor."""
        if factor == 1.0:
            return self
        return replace(
            self,
            weights=self.weights * factor,
            priorities=self.priorities * factor,
            threshold=self.threshold * factor,
            rest=self.rest.each(lambda array: array * factor),
        )

    def moved(
        self, before: TableSchema, schema: TableSchema, places: Ints, n_classes: int
    ) -> KeptRows:
        """Return the same rows by a schema that has grown, among more classes."""

        def spread(array: Floats) -> Floats:
            out = np.zeros((*array.shape[:-1], n_classes))
            out[..., places] = array
            return out

        rest = self.rest.each(spread)
        table = np.zeros((schema.n_codes, n_classes))
        table[rows_in(before, schema)] = rest.table
        plain = schema.without_pairs
        return replace(
            self,
            codes=moved_codes(self.codes, plain),
            labels=places[self.labels].astype(np.uint32),
            rest=replace(rest, table=table),
        )

    def with_rows(self, chunk: TrainingSet) -> TrainingSet:
        """Return the kept rows and a chunk, which stand for all rows so far."""
        schema = chunk.schema
        size = (len(self.labels) + chunk.n_rows, chunk.n_classes)
        store = Store(MEMORY, schema.without_pairs, *size, has_weights=True)
        store.append(self.codes, self.labels, self.amounts)
        plain = moved_codes(chunk.codes, schema.without_pairs)
        store.append(plain, chunk.labels, chunk.sample_weight)
        new = numbers_of_rows(chunk, np.arange(chunk.n_rows))
        numbers = tuple(
            None if a is None or b is None else np.concatenate([a, b])
            for a, b in zip(self.numbers, new, strict=False)
        )
        place = Continued(chunk.given_counts, self.rest, numbers)
        return _of_rows(chunk, store.finish(), place)

    @classmethod
    def of(
        cls,
        draw: RowDraw,
        training: TrainingSet,
        problem: Problem,
        weights: Floats,
        since_choice: float,
    ) -> KeptRows:
        """Keep rows that were drawn of a training set.

        ``problem`` is that of all rows, at whose solution ``weights`` are.
        """
        taken = training.taken(draw.picked)
        k, schema = training.n_classes, training.schema
        shapes = (k,), (schema.n_codes, k), (len(schema.gaussian), k)
        sample = cls(
            moved_codes(taken.codes, schema.without_pairs),
            numbers_of_rows(training, draw.picked),
            np.asarray(taken.labels, dtype=np.uint32),
            draw.weights,
            draw.priorities,
            draw.threshold,
            since_choice,
            Effect(*map(np.zeros, shapes)),
        )
        if not draw.threshold:
            return sample
        return replace(sample, rest=sample._missed(training, problem, weights))

    def _missed(
        self, training: TrainingSet, problem: Problem, weights: Floats
    ) -> Effect:
        """Return the gradient of all rows less that of these, at a solution."""
        objective = problem.objective
        effect = objective.weighting.apply(weights, problem.evidence)
        _, of_all = objective.rows.evaluate(objective.loss, effect)
        rows = StoredRows(self.codes, self.labels, self.amounts, None)
        some = _of_rows(training, rows, RowPlace())
        missing = np.ones(len(some.schema), dtype=bool)
        packed = join_rows(some, missing, problem.gaussian)
        _, of_these = packed.evaluate(objective.loss, effect)
        return of_all.each(np.subtract, of_these)


@dataclass(frozen=True)
class RowDraw:
    """Which rows of a training set are kept."""

    picked: Ints
    weights: Floats
    priorities: Floats
    threshold: float

    @classmethod
    def of(
        cls,
        training: TrainingSet,
        random_state: Any,
        before: KeptRows | None = None,
        fades: bool = False,
    ) -> RowDraw:
        """Draw rows of a training set, of which those kept ``before`` are the first."""
        own, picked, threshold = training.sample_weight, np.arange(0), 0.0
        most = most_kept(training.schema)
        weights = priorities = np.empty(0)
        if before is not None:
            picked, threshold = np.arange(len(before.labels)), before.threshold
            weights, priorities = before.weights, before.priorities
        seed = check_random_state(random_state).randint(2**31)
        rng = np.random.default_rng([seed, int(training.given_counts.total)])
        for rows in pieces(slice(len(picked), training.n_rows)):
            n_rows = rows.stop - rows.start
            u = np.ones(n_rows) if own is None else own[rows]
            weights = np.concatenate([weights, u])
            priorities = np.concatenate([priorities, u / (1.0 - rng.random(n_rows))])
            picked = np.concatenate([picked, np.arange(rows.start, rows.stop)])
            if len(picked) > most:
                order = np.argsort(-priorities, kind="stable")
                threshold = max(threshold, float(priorities[order[most]]))
                kept = np.sort(order[:most])
                weights, priorities = weights[kept], priorities[kept]
                picked = picked[kept]
        faded = _FADED * weights.max() if fades else 0.0
        if (priorities < faded).any():
            kept = np.flatnonzero(priorities >= faded)
            threshold = max(threshold, faded)
            weights, priorities = weights[kept], priorities[kept]
            picked = picked[kept]
        return cls(picked, weights, priorities, threshold)

    def sample(self, training: TrainingSet) -> TrainingSet:
        """Return the rows, with columns made of their codes, to choose by."""
        taken = training.taken(self.picked)
        codes = moved_codes(taken.codes, training.schema.without_pairs)
        encoder = copy(training.encoder)
        encoder.schema_ = codes.schema
        # A row is no more evidence than its own weight, whatever it stands for.
        weights = np.maximum(self.weights, self.threshold)
        weights = weights / max(1.0, self.threshold / self.weights.max())
        table = as_table(_columns(codes, numbers_of_rows(training, self.picked)))
        return replace(
            taken,
            table=replace(table, names=codes.schema.names),
            encoder=encoder,
            codes=codes,
            # Rows of weight one are drawn and dealt as those of a fit are.
            sample_weight=None if (weights == 1.0).all() else weights,
            earlier=None,
            place=RowPlace(),
        )


class Continued(RowPlace):
    """Where kept rows and a chunk stand for all rows, whose counts are known."""

    def __init__(self, counts: Counts, rest: Effect, numbers: Numbers) -> None:
        self.counts, self.rest, self.numbers = counts, rest, numbers

    def count(self, training: TrainingSet, weights: Floats | None) -> Counts:
        """Return the counts of all rows."""
        return self.counts

    def passes(
        self, training: TrainingSet, missing: Any, gaussian: GaussianTable
    ) -> Passes:
        """Return passes over the rows, with the linear term."""
        return _TiltedRows(join_rows(training, missing, gaussian), self.rest)


@dataclass(frozen=True)
class _TiltedRows(PassesOf):
    """Rows whose loss has a linear term."""

    rest: Effect

    def evaluate(self, loss: Loss, effect: Effect) -> tuple[float, Effect]:
        """Return a loss and its gradient with respect to the effect of weights."""
        value, slope = self.rows.evaluate(loss, effect)
        terms = self.rest.each(np.vdot, effect)
        value += float(terms.base + terms.table + terms.multipliers)
        return value, slope + self.rest

    def evaluate_mixture(self, *_: Any) -> Any:
        """Refuse a mixture, which the default is not."""
        raise NotImplementedError

    def with_densities(self, gaussian: GaussianTable) -> _TiltedRows:
        """Return the same rows with other densities of Gaussian attributes."""
        return replace(self, rows=self.rows.with_densities(gaussian))


def most_kept(schema: TableSchema) -> int:
    """Say how many rows are kept at most."""
    return min(MOST_KEPT, max(LEAST_OF_WIDE, MOST_KEPT_CELLS // schema.n_columns))


def numbers_of_rows(training: TrainingSet, rows: Ints) -> Numbers:
    """Return the numbers of some rows, by column."""
    place, schema = training.place, training.schema.without_pairs
    if isinstance(place, Continued):
        return tuple(None if own is None else own[rows] for own in place.numbers)
    if training.table is None:
        return ()
    columns = training.encoder.match(training.table.take(rows))
    is_number = [
        views[0].kind != "categorical" and not views[0].left_out
        for views in schema.by_column
    ]
    both = zip(columns, is_number, strict=True)
    return tuple(
        ColumnCells(column).numbers if is_one else None for column, is_one in both
    )


def _columns(codes: Codes, numbers: Numbers) -> dict[str, Any]:
    """Return columns whose cells stand for codes: a value, or a number in a bin."""
    import pandas as pd

    schema, columns = codes.schema, dict[str, Any]()
    for column in range(schema.n_columns):
        views = [j for j, own in enumerate(schema.columns) if own == column]
        features = [schema.features[j] for j in views]
        name = features[0].name or f"x{column}"
        if features[0].kind == "categorical":
            values = features[0].values
            cells = np.array([None, *values, None], dtype=object)
            columns[name] = cells[codes.column(views[0])]
            if features[0].ordered:
                columns[name] = pd.Categorical(columns[name], values, ordered=True)
            continue
        if numbers and numbers[column] is not None:
            columns[name] = numbers[column]
            continue
        exact = [j for j in views if not schema.features[j].is_coded]
        if exact:
            place = schema.gaussian.tolist().index(exact[0])
            columns[name] = codes.number_column(place)
            continue
        low, missing = np.full(codes.n_rows, -np.inf), np.zeros(codes.n_rows, bool)
        high = -low
        for j, feature in zip(views, features, strict=True):
            code, edges = codes.column(j).astype(np.int64), np.array(feature.edges)
            ends = np.concatenate([[-np.inf], edges, [np.inf]])
            missing |= (code == 0) | (code > len(edges) + 1)
            first = np.clip(code, 1, len(edges) + 1)
            low = np.maximum(low, ends[first - 1])
            high = np.minimum(high, ends[first])
        # Intervals are closed on the right.
        number = np.where(np.isfinite(high), high, np.nextafter(low, np.inf))
        number = np.where(np.isfinite(number), number, 0.0)
        columns[name] = np.where(missing, np.nan, number)
    return pd.DataFrame(columns)


def _of_rows(like: TrainingSet, rows: StoredRows, place: RowPlace) -> TrainingSet:
    """Return a training set of rows without pairs, which are joined as in another."""
    codes = rows.codes
    if like.schema.is_pair.any():
        codes = codes.with_pairs(like.schema, like.n_jobs)
    return replace(
        like,
        table=None,
        codes=codes,
        labels=rows.labels,
        sample_weight=rows.weights,
        is_kept=None,
        earlier=None,
        place=place,
    )


def moved_codes(codes: Codes, schema: TableSchema) -> Codes:
    """Return rows by a schema that has grown, without pairs."""
    before = codes.schema.without_pairs
    rows, columns = rows_in(before, schema), []
    for j in schema.coded.tolist():
        new = rows[before.offsets[j] : before.offsets[j + 1]] - schema.offsets[j]
        columns.append(new[codes.column(j)])
    numbers = [codes.number_column(g) for g in range(codes.n_numbers)]
    return codes_of(schema, codes.n_rows, columns, numbers)


def codes_of(
    schema: TableSchema, n_rows: int, columns: Iterable[Ints], numbers: Iterable[Floats]
) -> Codes:
    """Return rows by their codes, and by their numbers, column by column."""
    blocks = []
    for j, column in zip(schema.coded.tolist(), columns, strict=True):
        values = np.asarray(column, code_dtype(schema.features[j].n_codes))
        blocks.append(CodeBlock(values[:, None], np.array([j], dtype=np.int64)))
    return Codes(schema, n_rows, tuple(blocks), tuple(map(np.asarray, numbers)))
