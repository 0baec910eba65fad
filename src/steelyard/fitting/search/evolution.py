"""Differential evolution of attribute weights, and what a population gets right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from typing import Any

import numpy as np

from steelyard._common.arrays import Floats, Ints
from steelyard._common.threads import one_blas_thread
from steelyard.fitting.search.left_out import JudgedRows
from steelyard.kernels import searching as kernels

# Rows whose log-odds are made at a time: 512 x 100 doubles stay in the L2 cache.
_ROWS_AT_A_TIME = 512


class PopulationScorer:
    """What many weight vectors get right, in one pass over the rows.

    The differences of log-probabilities between each class and the first are looked up
    once per row and multiplied by all weight vectors: a matrix product.
    """

    def __init__(self, held: JudgedRows) -> None:
        self.held = held

    def weight_right(self, vectors: Floats) -> Floats:
        """Weight of the rows that each of the vectors (P, d) gets right, (P,)."""
        schema = self.held.schema
        order = np.concatenate([schema.coded, schema.gaussian])
        ordered = np.ascontiguousarray(vectors[:, order].T)
        two = self.held.base.shape[1] == 2
        weigh = kernels.right_by_vector_two if two else kernels.right_by_vector

        def work(rows: slice) -> Floats:
            right = np.zeros(len(vectors))
            for lo in range(rows.start, rows.stop, _ROWS_AT_A_TIME):
                part = slice(lo, min(lo + _ROWS_AT_A_TIME, rows.stop))
                rows_first = self._likelihoods(part).transpose(0, 2, 1)
                odds = np.matmul(rows_first, ordered)
                weigh(
                    odds,
                    # Differences must be numbers, even of classes without rows.
                    np.maximum(self.held.base[part], -1e300),
                    np.asarray(self.held.labels[part], dtype=np.uint32),
                    self.held.weights[part],
                    right,
                )
            return right

        with one_blas_thread():
            return reduce(add, self.held.by_block(work))

    @cached_property
    def _differences(self) -> Floats:
        """Log-probabilities less those of the first class, (K - 1, G, V)."""
        table = self.held.table
        return np.ascontiguousarray(np.moveaxis(table[..., 1:] - table[..., :1], 2, 0))

    @cached_property
    def _starts(self) -> Ints:
        return self.held.schema.offsets[self.held.schema.coded]

    def _likelihoods(self, rows: slice) -> Floats:
        """Differences of a few rows, (K - 1, d, rows), Gaussian attributes last."""
        held = self.held
        n_coded, n = len(held.schema.coded), rows.stop - rows.start
        shape = (len(self._differences), len(held.schema), n)
        out = np.empty(shape)
        kernels.look_up(
            held.columns[:, rows],
            self._starts,
            held.group[rows],
            self._differences,
            out[:, :n_coded],
        )
        for g, gaussian in enumerate(held.gaussian if held.numbers.shape[1] else ()):
            mine = np.flatnonzero(held.group[rows] == g)
            for piece, dens in gaussian.log_densities(held.numbers[rows][mine]):
                differences = np.moveaxis(dens[..., 1:] - dens[..., :1], (2, 1), (0, 1))
                out[:, n_coded:, mine[piece]] = differences
        return out


@dataclass
class Evolution:
    """Differential evolution, DE/rand/1/bin, of a population kept in a box."""

    fitness: Callable[[Floats], Floats]
    """From weight vectors (P, d) to their fitness (P,)."""

    most: float
    """Fitness that nothing exceeds."""

    lower: Floats
    upper: Floats
    mutation: float
    crossover: float
    rng: np.random.RandomState

    def __post_init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.best_fitness = -np.inf
        self.was_interrupted = False

    def run(self, size: int, generations: int, advance: Callable[[str], None]) -> None:
        """Evolve; keep the best vector and a record of each generation.

        An interruption ends it, once there is a best vector to keep.
        """
        d = len(self.lower)
        population = self.rng.uniform(self.lower, self.upper, size=(size, d))
        population[0] = np.clip(1.0, self.lower, self.upper)
        fitness = self.fitness(population)
        self._note(population, fitness, size)
        try:
            # Nothing is better than all right.
            while len(self.records) <= generations and self.best_fitness < self.most:
                trials = self._trials(population)
                trial_fitness = self.fitness(trials)
                taken = trial_fitness >= fitness
                population = np.where(taken[:, None], trials, population)
                fitness = np.where(taken, trial_fitness, fitness)
                self._note(population, fitness, int(taken.sum()))
                advance(f"accuracy {self.best_fitness / self.most:.4f}")
        except KeyboardInterrupt:
            self.was_interrupted = True

    def _trials(self, population: Floats) -> Floats:
        """Cross each vector with a mutant of three others, all different."""
        size, d = population.shape
        lots = self.rng.random_sample((size, size))
        np.fill_diagonal(lots, 2.0)
        first, second, third = np.argsort(lots, axis=1)[:, :3].T
        step = self.mutation * (population[second] - population[third])
        mutants = np.clip(population[first] + step, self.lower, self.upper)
        crossed = self.rng.random_sample((size, d)) < self.crossover
        crossed[np.arange(size), self.rng.randint(d, size=size)] = True
        return np.where(crossed, mutants, population)

    def _note(self, population: Floats, fitness: Floats, taken: int) -> None:
        best = int(np.argmax(fitness))
        if fitness[best] > self.best_fitness:
            self.best_fitness = float(fitness[best])
            self.best_vector = population[best].copy()
        self.records.append(
            {
                "generation": len(self.records),
                "accuracy": self.best_fitness / self.most,
                "mean": float(fitness.mean()) / self.most,
                "accepted": taken,
            }
        )
