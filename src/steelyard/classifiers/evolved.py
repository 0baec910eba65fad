"""Attribute weights by wrappers: an evolved population, and an adjusted filter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from steelyard._common.checks import (
    check_choice,
    check_number,
    check_whole,
    warn_user,
)
from steelyard._common.progress import progress
from steelyard._common.threads import one_blas_thread
from steelyard.classifiers.base import BaseNB
from steelyard.classifiers.published import preset
from steelyard.classifiers.weighted import WeightedNB
from steelyard.exceptions import ParameterError
from steelyard.fitting.leave_one_out import HeldOut, cross_validated, resubstituted
from steelyard.fitting.problem import attribute_bounds
from steelyard.kernels import population as kernels
from steelyard.model.table_model import NBModel
from steelyard.model.training import Training
from steelyard.proba.counts import Counts
from steelyard.proba.estimation import Estimation
from steelyard.solvers import Solution
from steelyard.weighting import AttributeWeighting, Evidence

__all__ = [
    "CorrelationAdjustedNB",
    "EvolvedWeightsNB",
    "PopulationScorer",
    "weighted_model",
]

FITNESSES = ("training", "cross-validation")

# Rows whose log-odds are made at a time: 512 x 100 doubles stay in the L2 cache.
_ROWS = 512


@preset(weighting="correlation", loss="brier", solver="lbfgs", max_iter=50)
class CorrelationAdjustedNB(WeightedNB):
    r"""CWANB: weights of the filter CFW, adjusted by a few steps on the squared error.

    .. math:: w^{(0)} = \mathrm{CFW}, \qquad
              \min_{0 \le w \le 1} \tfrac12 \sum_i \sum_c (P_{ic}(w) - Y_{ic})^2

    by at most ``max_iter`` = 50 iterations of L-BFGS-B: the cap belongs to the method,
    so that reaching it draws no warning. ``loss="log"`` adjusts by the conditional
    log-likelihood, whose optimum does not depend on the start.

    References
    ----------
    L. Yu, S. Gan, Y. Chen, M. He (2020), "Correlation-based weight adjusted naive
    Bayes", IEEE Access 8, 51377-51387. Its rule of adjustment could not be read.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from steelyard import CorrelationAdjustedNB
    >>> clf = CorrelationAdjustedNB().fit(*load_iris(return_X_y=True))
    >>> clf.n_iter_ <= 50
    True
    """

    def _warn(self, solution: Solution) -> None:
        if solution.status != "iterations":
            super()._warn(solution)


class EvolvedWeightsNB(BaseNB):
    r"""DEAWNB: attribute weights evolved for accuracy by differential evolution.

    .. math:: \max_{w \in [0, 1]^d} \sum_i u_i \bigl[\arg\max_c z_c(x_i; w) =
              y_i\bigr], \qquad
              z_c(x; w) = \log \pi_c + \sum_j w_j \log \theta_{j,x_j|c}

    DE/rand/1/bin: for each vector a of the population three others are drawn, the
    mutant :math:`x_1 + F (x_2 - x_3)` is clipped to the bounds and crossed with a, and
    the trial takes a's place if it is at least as fit. The first population is random,
    with naive Bayes (all weights one) among it; the best vector ever seen is returned.
    All trials of a generation are made from the generation before, and scored together
    in one pass over the rows.

    Parameters
    ----------
    population_size : int, default=50
        Weight vectors, at least 4.
    generations : int, default=100
        Generations after the first; fewer where all rows are right before.
    mutation : float, default=0.5
        Factor F on differences, in [0, 2].
    crossover : float, default=0.9
        Probability that a weight comes from the mutant, in [0, 1].
    bounds : pair, array of shape (d, 2) or mapping, default=(0.0, 1.0)
        Finite lower and upper bounds of the weights, as in ``WeightedNB``.
    fitness : {"training", "cross-validation"}, default="training"
        Whether accuracy is measured on the training rows themselves, or by stratified
        cross-validation among them.
    folds : int, default=5
        Folds of the cross-validation.
    random_state : int, RandomState or None, default=None
        Seed of the evolution and of the folds.
    verbose : bool, default=False
        Whether to show progress.
    categorical_features, numeric, missing, cardinality
        How tables become codes; see ``NaiveBayes``.
    smoothing, prior, variance_floor
        How counts become probabilities; see ``NaiveBayes``.
    class_weight : dict or "balanced", default=None
        Factor on the weight of the rows of each class.
    n_jobs : int, default=None
        Threads. Results do not depend on it.

    Attributes
    ----------
    attribute_weights_ : ndarray of shape (d,)
        The fittest weights.
    objective_ : float
        Weight of the rows that they get wrong, as ``fitness`` measures it.
    n_iter_ : int
        Generations.
    diagnostics_ : list of dict
        One record per generation, the first population included.
    classes_, class_log_prior_, class_count_, counts_, model_, encoder_
        As in ``NaiveBayes``.

    References
    ----------
    J. Wu, Z. Cai (2011), "Attribute weighting via differential evolution algorithm for
    attribute weighted naive Bayes", J. Computational Information Systems 7(5),
    1672-1679. Its settings could not be read; these are common ones.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from steelyard import EvolvedWeightsNB
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = EvolvedWeightsNB(generations=20, random_state=0).fit(X, y)
    >>> clf.objective_ <= 9.0  # what naive Bayes gets wrong
    True
    """

    counts_: Counts
    class_log_prior_: NDArray[np.float64]
    class_count_: NDArray[np.float64]
    attribute_weights_: NDArray[np.float64]
    objective_: float
    n_iter_: int
    diagnostics_: list[dict[str, Any]]

    def __init__(
        self,
        *,
        population_size: int = 50,
        generations: int = 100,
        mutation: float = 0.5,
        crossover: float = 0.9,
        bounds: Any = (0.0, 1.0),
        fitness: str = "training",
        folds: int = 5,
        random_state: Any = None,
        verbose: bool = False,
        categorical_features: Any = "auto",
        numeric: Any = "mdl",
        missing: str = "skip",
        smoothing: Any = "m-estimate",
        cardinality: str = "observed",
        prior: Any = "smoothed",
        variance_floor: float = 1e-9,
        class_weight: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.population_size = population_size
        self.generations = generations
        self.mutation = mutation
        self.crossover = crossover
        self.bounds = bounds
        self.fitness = fitness
        self.folds = folds
        self.random_state = random_state
        self.verbose = verbose
        self.categorical_features = categorical_features
        self.numeric = numeric
        self.missing = missing
        self.smoothing = smoothing
        self.cardinality = cardinality
        self.prior = prior
        self.variance_floor = variance_floor
        self.class_weight = class_weight
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> EvolvedWeightsNB:
        """Learn probabilities and evolve weights from a table and its labels.

        Parameters
        ----------
        X : table of shape (n, d)
            NumPy array, pandas, polars or pyarrow table.
        y : array-like of shape (n,)
            Labels, none of them missing.
        sample_weight : array-like of shape (n,), default=None
            Row weights, in the counts and in the accuracy; a weight of 2 equals the
            row twice.

        Returns
        -------
        EvolvedWeightsNB
            The fitted classifier.
        """
        self._check_settings()
        estimation = self._estimation()
        training = self._prepare(X, y, sample_weight)
        lower, upper = self._box(training)
        counts = training.count(self.n_jobs, self.class_weight)
        rng = check_random_state(self.random_state)
        held = self._judged_rows(training, counts, estimation, rng)
        evolution = Evolution(
            PopulationScorer(held).weight_right,
            held.total,
            lower,
            upper,
            float(self.mutation),
            float(self.crossover),
            rng,
        )
        with progress("generations", int(self.generations), bool(self.verbose)) as step:
            evolution.run(int(self.population_size), int(self.generations), step)
        if evolution.was_interrupted:
            warn_user(
                f"{type(self).__name__} was interrupted after "
                f"{len(evolution.records) - 1} generations; the best weights so far "
                "are kept.",
                ConvergenceWarning,
            )
        model = weighted_model(
            estimation, counts, training.classes, evolution.best_vector
        )
        self._adopt(training)
        self.attribute_weights_ = evolution.best_vector
        self.objective_ = held.total - evolution.best_fitness
        self.n_iter_ = max(1, len(evolution.records) - 1)
        self.diagnostics_ = evolution.records
        self.counts_ = counts
        self.class_count_ = counts.by_class
        self.class_log_prior_ = model.log_prior
        self.model_ = model
        return self

    def _check_settings(self) -> None:
        check_whole(self, "population_size", 4)
        check_whole(self, "generations", 1)
        check_whole(self, "folds", 2)
        check_number(self, "mutation", 2.0)
        check_number(self, "crossover", 1.0)
        check_choice(self, "fitness", FITNESSES)

    def _box(
        self, training: Training
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        lower, upper = attribute_bounds(self.bounds, training.codes.schema)
        if not np.isfinite([lower, upper]).all():
            raise ParameterError(
                f"{type(self).__name__} draws weights between its bounds: all of "
                f"`bounds` must be finite. Got {self.bounds!r}; use for example (0, 1)."
            )
        return lower, upper

    def _judged_rows(
        self,
        training: Training,
        counts: Counts,
        estimation: Estimation,
        rng: np.random.RandomState,
    ) -> HeldOut:
        if self.fitness == "training":
            return resubstituted(
                training, counts, estimation, self.class_weight, self.n_jobs
            )
        return cross_validated(
            training, int(self.folds), estimation, rng, self.class_weight, self.n_jobs
        )


class PopulationScorer:
    """What many weight vectors get right, in one pass over the rows.

    The differences of log-probabilities between each class and the first are looked up
    once per row and multiplied by all weight vectors: a matrix product.

    Parameters
    ----------
    held : HeldOut
        Rows, and the tables that score them.
    """

    def __init__(self, held: HeldOut) -> None:
        self.held = held

    def weight_right(self, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weight of the rows that each of the vectors (P, d) gets right, (P,)."""
        schema = self.held.schema
        order = np.concatenate([schema.coded, schema.gaussian])
        ordered = np.ascontiguousarray(vectors[:, order].T)
        two = self.held.base.shape[1] == 2
        weigh = kernels.weight_right_two if two else kernels.weight_right

        def work(rows: slice) -> NDArray[np.float64]:
            right = np.zeros(len(vectors))
            for lo in range(rows.start, rows.stop, _ROWS):
                part = slice(lo, min(lo + _ROWS, rows.stop))
                rows_first = self._likelihoods(part).transpose(0, 2, 1)
                odds = np.matmul(rows_first, ordered)
                weigh(
                    odds,
                    self._base[part],
                    self.held.labels[part],
                    self.held.weights[part],
                    right,
                )
            return right

        with one_blas_thread():
            return reduce(add, self.held.by_block(work))

    @cached_property
    def _base(self) -> NDArray[np.float64]:
        # Differences of log priors must be numbers, even of classes without rows.
        return np.maximum(self.held.base, -1e300)

    @cached_property
    def _differences(self) -> NDArray[np.float64]:
        """Log-probabilities less those of the first class, (K - 1, G, V)."""
        table = self.held.table
        return np.ascontiguousarray(np.moveaxis(table[..., 1:] - table[..., :1], 2, 0))

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        return self.held.schema.offsets[self.held.schema.coded]

    def _likelihoods(self, rows: slice) -> NDArray[np.float64]:
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
                found = np.moveaxis(dens[..., 1:] - dens[..., :1], (2, 1), (0, 1))
                out[:, n_coded:, mine[piece]] = found
        return out


@dataclass
class Evolution:
    """Differential evolution, DE/rand/1/bin, of a population kept in a box."""

    fitness: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    """From weight vectors (P, d) to their fitness (P,)."""

    most: float
    """Fitness that nothing exceeds."""

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
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
                found = self.fitness(trials)
                taken = found >= fitness
                population = np.where(taken[:, None], trials, population)
                fitness = np.where(taken, found, fitness)
                self._note(population, fitness, int(taken.sum()))
                advance(f"accuracy {self.best_fitness / self.most:.4f}")
        except KeyboardInterrupt:
            self.was_interrupted = True

    def _trials(self, population: NDArray[np.float64]) -> NDArray[np.float64]:
        """Cross each vector with a mutant of three others, all different."""
        size, d = population.shape
        lots = self.rng.random_sample((size, size))
        np.fill_diagonal(lots, 2.0)
        one, two, three = np.argsort(lots, axis=1)[:, :3].T
        step = self.mutation * (population[two] - population[three])
        mutants = np.clip(population[one] + step, self.lower, self.upper)
        crossed = self.rng.random_sample((size, d)) < self.crossover
        crossed[np.arange(size), self.rng.randint(d, size=size)] = True
        return np.where(crossed, mutants, population)

    def _note(
        self, population: NDArray[np.float64], fitness: NDArray[np.float64], taken: int
    ) -> None:
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


def weighted_model(
    estimation: Estimation,
    counts: Counts,
    classes: NDArray[Any],
    weights: NDArray[np.float64],
) -> NBModel:
    """Return the model of some counts with attribute weights."""
    log_prior, table, gaussian = estimation.tables(counts)
    evidence = Evidence(counts.schema, log_prior, table)
    effect = AttributeWeighting().apply(weights, evidence)
    factors = np.ascontiguousarray(effect.multipliers)
    densities = gaussian.weighted(factors)
    return NBModel(counts.schema, classes, log_prior, effect.table, densities)
