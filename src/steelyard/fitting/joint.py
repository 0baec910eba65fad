"""One objective of instance weights and attribute weights together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from steelyard._common.threads import pieces
from steelyard.fitting.problem import Problem
from steelyard.kernels import scoring
from steelyard.model.table_model import spread_table
from steelyard.model.training import TrainingSet
from steelyard.solvers import Box
from steelyard.table.codes import FeatureTable


class JointObjective:
    """Loss of instance weights u and attribute weights w: value and gradient."""

    def __init__(
        self, problem: Problem, training: TrainingSet, strength: float
    ) -> None:
        self._problem = problem
        self._training = training
        self._strength = strength
        self._last: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None

    def slope(self, box: Box) -> float:
        """Return the largest projected gradient where it was last asked for."""
        if self._last is None:
            return float("nan")
        step = box.projected(*self._last)
        return float(np.abs(step).max(initial=0.0))

    def at(self, learned: NDArray[np.float64]) -> Problem:
        """Return the problem of attribute weights under some instance weights."""
        return self._problem.with_counts(self._training.count(learned))

    def __call__(
        self, vector: NDArray[np.float64]
    ) -> tuple[float, NDArray[np.float64]]:
        """Return the objective and its gradient at (u, w)."""
        training = self._training
        n = training.n_rows
        learned, weights = vector[:n], vector[n:]
        problem = self.at(learned)
        value, d_weights, d_table, d_prior = problem.objective.with_tables(weights)
        row_weights = 1.0 if training.weights is None else training.weights
        d_rows = row_weights * self._by_row(problem, d_table, d_prior)
        away = learned - 1.0
        value += self._strength * float((row_weights * away * away).sum())
        d_rows += 2.0 * self._strength * row_weights * away
        gradient = np.concatenate([d_rows, d_weights])
        self._last = vector.copy(), gradient
        return value, gradient

    def _by_row(
        self,
        problem: Problem,
        d_table: NDArray[np.float64],
        d_prior: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Return the derivative with respect to each row's weight in the counts."""
        training, counts = self._training, problem.counts
        schema, smoothing = counts.schema, training.estimation.smoothing
        table = FeatureTable(counts.by_code, schema.offsets)
        added = smoothing.value_counts(counts)
        known = counts.by_code.copy()
        known[schema.first_codes] = 0.0
        gradient = d_table.copy()
        gradient[schema.first_codes] = 0.0
        totals = table.collect(known) + (added * schema.n_values)[:, None]
        per_class = table.collect(gradient) / np.where(totals > 0, totals, 1.0)
        smoothed = known + table.spread(added)[:, None]
        slope = gradient / smoothed - table.spread(per_class)
        slope[schema.first_codes] = 0.0
        prior = counts.by_class + smoothing.prior_counts(counts)
        base = d_prior / prior - d_prior.sum() / prior.sum()
        codes, out = training.codes, np.empty(training.n_rows)
        tables = [spread_table(block, codes, slope) for block in codes.blocks]
        for rows in pieces(slice(0, training.n_rows)):
            scores = np.tile(base, (rows.stop - rows.start, 1))
            for block, (starts, values) in zip(codes.blocks, tables, strict=True):
                scoring.gather(block.values[rows], starts, values, scores)
            out[rows] = scores[np.arange(len(scores)), training.labels[rows]]
        return out
