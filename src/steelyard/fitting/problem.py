"""Problem: probabilities, and an objective within bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from steelyard._common import progress
from steelyard._common.arrays import Floats
from steelyard.exceptions import ParameterError, warn_user
from steelyard.fitting.fit import Fit
from steelyard.fitting.objective import MixtureObjective, Objective
from steelyard.fitting.recipe import Recipe, attribute_bounds
from steelyard.fitting.rows import prepare_rows
from steelyard.fitting.shapes import Shapes, shapes_of, turning_solution
from steelyard.instances import Learned
from steelyard.losses import Loss
from steelyard.model.base import Model, softmax
from steelyard.model.combined import MixtureModel, PairwiseModel
from steelyard.model.table_model import NBModel
from steelyard.model.training import TrainingSet
from steelyard.proba import GaussianTable, estimate_prior
from steelyard.proba.basis import EffectBasis
from steelyard.proba.counts import Counts
from steelyard.proba.encodings import Encodings
from steelyard.proba.smoothing import Estimation
from steelyard.solvers import Box, Cone, Solution, keeps_growing, resolve_solver
from steelyard.table.codes import FeatureTable
from steelyard.table.schema import TableSchema
from steelyard.weighting import (
    Effect,
    HierarchicalWeighting,
    LogProbs,
    Start,
    Weighting,
)

# Accuracy of a fit with a surrogate loss, which only has to lead close.
_SURROGATE_TOL = 1e-5


@dataclass(frozen=True)
class Problem:
    """Probabilities from counts, and the objective and bounds of the weights."""

    counts: Counts
    gaussian: GaussianTable
    objective: Objective
    box: Box
    """Bounds of the weights."""

    start: Floats
    """Weights that a solver starts from."""

    estimation: Estimation
    """How the probabilities come from counts."""

    classes: NDArray[Any]
    named: Mapping[str, Any] = field(default_factory=dict)
    """Fitted attributes that are known before weights are learned."""

    shapes: Shapes | None = None
    """Shapes that curves of columns must have."""

    @property
    def evidence(self) -> LogProbs:
        """Log-probabilities that the weights multiply."""
        return self.objective.evidence

    @property
    def size(self) -> int:
        """Number of weights."""
        return self.objective.size

    def start_solution(self) -> Solution:
        """Return the start as if it were a solution."""
        return Solution(self.box.clip(self.start), np.nan, "converged", 0)

    def with_counts(self, counts: Counts) -> Problem:
        """Return the same problem with other counts and the tables made from them."""
        by_encoding, basis = self.evidence.encodings.counts(counts), self.evidence.basis
        log_prior, table, gaussian = self.estimation.tables(by_encoding, basis)
        rows = self.objective.rows.with_densities(gaussian)
        evidence = LogProbs(basis, log_prior, table)
        objective = replace(self.objective, rows=rows, evidence=evidence)
        return replace(self, counts=counts, gaussian=gaussian, objective=objective)

    def solve(self, recipe: Recipe, start: Floats | None = None) -> Solution:
        """Minimise with the solver of a recipe, from a start or that of the problem."""
        objective, setting = self.objective, recipe.solver
        start = self.start if start is None else start
        if self.shapes is not None and not isinstance(self.box, Cone):
            return turning_solution(self, self.shapes, recipe, start)
        if progress.current is not None:
            progress.current.tol = recipe.tol
        how = recipe.tol, recipe.max_iter, self.box
        solver = resolve_solver(setting, objective, *how)
        surrogate = objective.loss.surrogate
        if surrogate is not None and setting in ("auto", "newton", "lbfgs"):
            near = replace(objective, loss=surrogate)
            tol = max(recipe.tol, _SURROGATE_TOL)
            quick = resolve_solver(setting, near, tol, *how[1:])
            start = quick.minimize(near, start, self.box).weights
        solution = solver.minimize(objective, start, self.box)
        if not solver.is_iterative or solution.status != "converged":
            return solution
        if keeps_growing(objective, solution, self.box):
            return replace(solution, status="separable")
        return solution

    def model(self, weights: Floats, link_scale: float = 1.0) -> Model:
        """Return the model with these weights."""
        alpha, effects = self.objective.weighting.mixed_effects(weights, self.evidence)
        given = self.gaussian, link_scale
        models = [
            weighted_model(self.counts.schema, self.classes, effect, *given)
            for effect in effects
        ]
        return models[0] if len(models) == 1 else MixtureModel(alpha, *models)


def weighted_model(
    schema: TableSchema,
    classes: NDArray[Any],
    effect: Effect,
    gaussian: GaussianTable,
    link_scale: float = 1.0,
) -> NBModel:
    """Return the model that adds up what weights do to the scores."""
    factors = np.ascontiguousarray(effect.multipliers)
    densities = replace(gaussian, weight=factors)
    table = np.ascontiguousarray(effect.table)
    return NBModel(schema, classes, effect.base, table, densities, link_scale)


def build_problem(
    recipe: Recipe,
    training: TrainingSet,
    learned: Floats | None = None,
    without_interactions: Problem | None = None,
) -> Problem:
    """Count the rows, and set up the objective of the weights, their start and bounds.

    Instance weights ``learned`` (n,) multiply those of the rows, in the counts alone.
    A problem of the same rows ``without_interactions`` saves estimating probabilities
    again.
    """
    weighting, loss = recipe.weighting, recipe.loss
    _check_loss(weighting, loss, training.n_classes)
    low, high = attribute_bounds(recipe.bounds, training.schema)
    counts = training.count(learned)
    estimation, evidence, gaussian, start = start_of(
        recipe, training, counts, without_interactions
    )
    missing = np.zeros(len(training.schema), dtype=bool)
    missing[training.schema.coded] = counts.by_code[training.schema.first_codes].any(1)
    rows = prepare_rows(training, missing, gaussian)
    box = Box(*weighting.bounds(evidence, low, high))
    penalty = recipe.penalty.resolve(weighting, evidence, box)
    kind = MixtureObjective if weighting.is_mixture else Objective
    return Problem(
        counts,
        gaussian,
        kind(rows, evidence, weighting, loss, penalty),
        box,
        start.weights,
        estimation,
        training.classes,
        start.named,
        shapes_of(recipe, training, box),
    )


def start_of(
    recipe: Recipe,
    training: TrainingSet,
    counts: Counts,
    without_interactions: Problem | None = None,
) -> tuple[Estimation, LogProbs, GaussianTable, Start]:
    """Turn counts into probabilities, and both into the start of the weights."""
    estimation, schema = training.estimation, training.schema
    has_levels = isinstance(recipe.weighting, HierarchicalWeighting)
    if without_interactions is None:
        kind = Encodings.separate if has_levels else Encodings.joint
        basis = EffectBasis(kind(schema), estimation.n_bins)
        by_encoding = basis.encodings.counts(counts)
        log_prior, table, gaussian = estimation.tables(by_encoding, basis)
    else:  # interactions have no evidence
        before, gaussian = without_interactions.evidence, without_interactions.gaussian
        basis = before.basis.with_interactions(schema)
        n_added = basis.schema.n_codes - before.schema.n_codes
        values = np.pad(before.table.values, ((0, n_added), (0, 0)))
        log_prior, table = before.log_prior, FeatureTable(values, basis.schema.offsets)
    evidence = LogProbs(basis, log_prior, table)
    start = recipe.weighting.start_from(training, evidence, gaussian)
    if start.count_factors is not None:
        estimation = replace(estimation, count_factors=start.count_factors)
        by_encoding = basis.encodings.counts(counts)
        evidence = replace(evidence, table=estimation.tables(by_encoding, basis)[1])
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


# ------------------------------------------------------------------------------- fits


def fit_weights(recipe: Recipe, training: TrainingSet) -> Fit:
    """Learn weights: of rows first, if the recipe asks for any, then of attributes."""
    weighed = weigh_rows(recipe, training)
    learned = None if weighed is None else weighed.weights
    if recipe.one_vs_one and training.n_classes > 2:
        fit = _fit_pairs(recipe, training, learned)
    else:
        problem = build_problem(recipe, training, learned)
        solution = problem.solve(recipe)
        warn_unsolved(solution, recipe)
        fit = solved_fit(problem, solution, recipe.link_scale)
    if weighed is None:
        return fit
    records = [*weighed.records, *fit.named["diagnostics_"]]
    named = {**fit.named, "diagnostics_": records}
    return replace(fit, named=named, instance_weights=weighed.weights)


def computed_fit(recipe: Recipe, training: TrainingSet) -> Fit:
    """Take the weights that a filter computes from counts; no row is read.

    So the value of the objective is not computed.
    """
    weighting = recipe.weighting
    _, evidence, gaussian, start = start_of(recipe, training, training.count())
    effect = weighting.apply(start.weights, evidence)
    model = weighted_model(training.schema, training.classes, effect, gaussian)
    named = weighting.fitted(start.weights, evidence)
    named = {"n_iter_": 1, "diagnostics_": [], **named, **start.named}
    return Fit(model, evidence.log_prior, named)


def weigh_rows(recipe: Recipe, training: TrainingSet) -> Learned | None:
    """Learn instance weights, if the recipe asks for any."""
    return None if recipe.instances is None else recipe.instances.weigh(training)


def solved_fit(problem: Problem, solution: Solution, link_scale: float = 1.0) -> Fit:
    """Return the fit of a solved problem."""
    model = problem.model(solution.weights, link_scale)
    if problem.shapes is not None and isinstance(model, NBModel):
        model = problem.shapes.settled(model)
    return Fit(
        model,
        problem.evidence.log_prior,
        {
            "objective_": solution.value,
            "n_iter_": max(1, solution.n_iter),
            "diagnostics_": solution.records,
            **problem.objective.weighting.fitted(solution.weights, problem.evidence),
            **problem.named,
        },
        solved=(problem, solution.weights),
    )


def _fit_pairs(recipe: Recipe, training: TrainingSet, learned: Floats | None) -> Fit:
    """Fit one two-class model for each pair of classes, on its rows alone."""
    estimation, classes = training.estimation, training.classes
    counts = training.count(learned)
    log_prior = estimate_prior(estimation.prior, counts, estimation.smoothing)
    pairs = tuple(combinations(range(len(classes)), 2))
    problems, solutions = [], []
    for a, b in pairs:
        pair_rows, pair_weights = training.pair(a, b), None
        if not isinstance(estimation.prior, str):
            prior = softmax(log_prior[None, [a, b]])[0]
            of_pair = replace(estimation, prior=prior)
            preparation = replace(training.preparation, estimation=of_pair)
            pair_rows = replace(pair_rows, preparation=preparation)
        if learned is not None:
            pair_weights = training.workspace.take(learned, training.rows_of(a, b))
        problem = build_problem(recipe, pair_rows, pair_weights)
        problems.append(problem)
        solutions.append(problem.solve(recipe))
    for status in ("stalled", "separable", "iterations"):
        worst = [solution for solution in solutions if solution.status == status]
        if worst:
            warn_unsolved(worst[0], recipe)
    fits = [
        solved_fit(problem, solution, recipe.link_scale)
        for problem, solution in zip(problems, solutions, strict=True)
    ]
    named: dict[str, Any] = {}
    for name in fits[0].named:
        values = [fit.named[name] for fit in fits]
        named[name] = values if isinstance(values[0], list) else np.array(values)
    named["objective_"] = sum(solution.value for solution in solutions)
    named["n_iter_"] = max(1, *(solution.n_iter for solution in solutions))
    named["diagnostics_"] = [
        {"pair": classes[list(pair)].tolist(), **record}
        for pair, solution in zip(pairs, solutions, strict=True)
        for record in solution.records
    ]
    models = tuple(fit.model for fit in fits)
    return Fit(PairwiseModel(classes, pairs, models, log_prior), log_prior, named)


def warn_unsolved(solution: Solution, recipe: Recipe) -> None:
    """Warn of a solution that is not the optimum, with advice."""
    is_capped = recipe.may_stop_early and solution.status == "iterations"
    if solution.status == "converged" or is_capped:
        return
    gradient = solution.records[-1]["gradient"] if solution.records else np.nan
    if solution.status == "separable":
        message = (
            "The training rows can be separated: the loss keeps falling as weights "
            f"grow, and was stopped at {solution.value:.3g} with a largest weight "
            f"of {np.abs(solution.weights).max():.3g}. The weights depend on where "
            "it stopped. Set bounds such as (0, 1), or a penalty with lam=1."
        )
    elif solution.status == "iterations" and recipe.solver == "published":
        message = (
            f"The published settings stop after {solution.n_iter} iterations, "
            "short of the optimum here. Use solver='auto' to run to the optimum."
        )
    elif solution.status == "iterations":
        message = (
            f"The weights did not converge in {solution.n_iter} iterations "
            f"(largest projected gradient {gradient:.2g}). Raise `max_iter`, or "
            "look at `diagnostics_`."
        )
    else:
        message = (
            "The solver could not lower the objective any further before it "
            f"converged (largest projected gradient {gradient:.2g}). Try the other "
            "of solver='newton' and solver='lbfgs', or look at `diagnostics_`."
        )
    warn_user(message, ConvergenceWarning)
