"""One fit of weights: probabilities, the objective within its bounds, the solution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.exceptions import ParameterError
from steelyard.fitting.bounds import attribute_bounds
from steelyard.fitting.mixture import MixtureObjective
from steelyard.fitting.objective import Objective
from steelyard.fitting.recipe import Recipe
from steelyard.fitting.rows import prepare_rows
from steelyard.losses import Loss
from steelyard.model.base import Model
from steelyard.model.combined import MixtureModel
from steelyard.model.table_model import NBModel
from steelyard.model.training import TrainingSet
from steelyard.proba import GaussianTable
from steelyard.proba.counts import Counts
from steelyard.proba.estimation import Estimation
from steelyard.solvers import Box, Solution, keeps_growing, resolve_solver
from steelyard.table.codes import FeatureTable
from steelyard.table.schema import TableSchema
from steelyard.weighting import Effect, Evidence, Start, Weighting

# Accuracy of a fit with a surrogate loss, which only has to lead close.
_SURROGATE_TOL = 1e-5


@dataclass(frozen=True)
class Problem:
    """Probabilities from counts, and the objective and bounds of the weights."""

    counts: Counts
    evidence: Evidence
    gaussian: GaussianTable
    objective: Objective
    box: Box
    """Bounds of the weights."""

    start: NDArray[np.float64]
    """Weights that a solver starts from."""

    estimation: Estimation
    """How the probabilities come from counts."""

    classes: NDArray[Any]
    named: Mapping[str, Any] = field(default_factory=dict)
    """Fitted attributes that are known before weights are learned."""

    @property
    def size(self) -> int:
        """Number of weights."""
        return self.objective.size

    def start_solution(self) -> Solution:
        """Return the start as if it were a solution."""
        return Solution(self.box.clip(self.start), np.nan, "converged", 0)

    def with_counts(self, counts: Counts) -> Problem:
        """Return the same problem with other counts and the tables made from them."""
        log_prior, table, gaussian = self.estimation.tables(
            counts, self.evidence.resolutions
        )
        evidence = replace(self.evidence, log_prior=log_prior, table=table)
        rows = self.objective.rows.with_densities(gaussian)
        objective = replace(self.objective, rows=rows, evidence=evidence)
        return replace(
            self,
            counts=counts,
            evidence=evidence,
            gaussian=gaussian,
            objective=objective,
        )

    def tables_with_pairs(
        self, schema: TableSchema
    ) -> tuple[NDArray[np.float64], FeatureTable, GaussianTable]:
        """Return the same probabilities by a schema with pairs, which have none."""
        known = self.evidence.table.values
        values = np.zeros((schema.n_codes, known.shape[1]))
        values[: len(known)] = known
        table = FeatureTable(values, schema.offsets)
        return self.evidence.log_prior, table, self.gaussian

    def solve(
        self, recipe: Recipe, start: NDArray[np.float64] | None = None
    ) -> Solution:
        """Minimise as a recipe says, from its own start or another."""
        objective, setting = self.objective, recipe.solver
        solver = resolve_solver(setting, objective, recipe.tol, recipe.max_iter)
        start = self.start if start is None else start
        surrogate = objective.loss.surrogate
        if surrogate is not None and setting in ("auto", "newton", "lbfgs"):
            near = replace(objective, loss=surrogate)
            tol = max(recipe.tol, _SURROGATE_TOL)
            quick = resolve_solver(setting, near, tol, recipe.max_iter)
            start = quick.minimize(near, start, self.box).weights
        solution = solver.minimize(objective, start, self.box)
        if not solver.is_iterative or solution.status != "converged":
            return solution
        if keeps_growing(objective, solution, self.box):
            return replace(solution, status="separable")
        return solution

    def named_weights(self, weights: NDArray[np.float64]) -> dict[str, Any]:
        """Name weights as fitted attributes of a classifier."""
        return {
            **self.objective.weighting.fitted(weights, self.evidence),
            **self.named,
        }

    def model(self, weights: NDArray[np.float64], link_scale: float = 1.0) -> Model:
        """Return the model with these weights."""
        alpha, effects = self.objective.weighting.mixed_effects(weights, self.evidence)
        models = [self.sum_model(effect, link_scale) for effect in effects]
        return models[0] if len(models) == 1 else MixtureModel(alpha, *models)

    def sum_model(self, effect: Effect, link_scale: float = 1.0) -> NBModel:
        """Return the model that adds up what weights do to the scores."""
        return weighted_model(
            self.evidence.schema, self.classes, effect, self.gaussian, link_scale
        )


def weighted_model(
    schema: TableSchema,
    classes: NDArray[Any],
    effect: Effect,
    gaussian: GaussianTable,
    link_scale: float = 1.0,
) -> NBModel:
    """Return the model that adds up what weights do to the scores."""
    densities = gaussian.weighted(np.ascontiguousarray(effect.multipliers))
    table = np.ascontiguousarray(effect.table)
    return NBModel(schema, classes, effect.base, table, densities, link_scale)


def build_problem(
    recipe: Recipe,
    training: TrainingSet,
    learned: NDArray[np.float64] | None = None,
    without_pairs: Problem | None = None,
) -> Problem:
    """Count the rows, and set up the objective of the weights, their start and bounds.

    Instance weights ``learned`` (n,) multiply those of the rows, in the counts alone.
    A problem of the same rows ``without_pairs`` saves estimating probabilities again.
    """
    weighting, loss = recipe.weighting, recipe.loss
    _check_loss(weighting, loss, training.n_classes)
    low, high = attribute_bounds(recipe.bounds, training.schema)
    counts = training.count(learned)
    estimation, evidence, gaussian, start = start_of(
        recipe, training, counts, without_pairs
    )
    missing = np.zeros(len(training.schema), dtype=bool)
    missing[training.schema.coded] = counts.by_code[training.schema.first_codes].any(1)
    rows = prepare_rows(training, missing, gaussian)
    box = Box(*weighting.bounds(evidence, low, high))
    penalty = recipe.penalty.resolve(weighting, evidence, box)
    kind = MixtureObjective if weighting.is_mixture else Objective
    return Problem(
        counts,
        evidence,
        gaussian,
        kind(rows, evidence, weighting, loss, penalty, training.n_jobs),
        box,
        start.weights,
        estimation,
        training.classes,
        start.named,
    )


def start_of(
    recipe: Recipe,
    training: TrainingSet,
    counts: Counts,
    without_pairs: Problem | None = None,
) -> tuple[Estimation, Evidence, GaussianTable, Start]:
    """Turn counts into probabilities, and both into the start of the weights."""
    estimation = training.estimation
    resolutions = estimation.resolutions(training.schema)
    if without_pairs is None:
        log_prior, table, gaussian = estimation.tables(counts, resolutions)
    else:
        log_prior, table, gaussian = without_pairs.tables_with_pairs(training.schema)
    evidence = Evidence(training.schema, log_prior, table, resolutions)
    start = recipe.weighting.start_from(training, evidence, gaussian)
    if start.count_factors is not None:
        estimation = replace(estimation, count_factors=start.count_factors)
        evidence = replace(evidence, table=estimation.tables(counts, resolutions)[1])
    if not np.isfinite(evidence.log_prior).all():
        raise ParameterError(
            "`prior` gives a class probability 0, under which no weights can be "
            "learned. Use positive priors, or prior='smoothed'."
        )
    return estimation, evidence, gaussian, start


def _check_loss(weighting: Weighting, loss: Loss, n_classes: int) -> None:
    """Refuse a loss that a weighting or a number of classes does not allow."""
    if weighting.is_mixture and not loss.is_squared_error:
        raise ParameterError(
            "weighting='mixture' learns its share of two posteriors by the squared "
            f"error; {type(loss).__name__} cannot be used with it. Use loss='brier'."
        )
    if loss.two_classes_only and n_classes > 2:
        raise ParameterError(
            f"{type(loss).__name__} is defined for two classes, but there are "
            f"{n_classes}. Use multiclass='one-vs-one', or another loss."
        )
