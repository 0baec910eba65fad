"""Fit: what a method learned from a training set; and how weights are learned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from steelyard._common.checks import warn_user
from steelyard.fitting.problem import Problem, build_problem, start_of, weighted_model
from steelyard.fitting.recipe import Recipe
from steelyard.instances import Learned
from steelyard.model.base import Model
from steelyard.model.combined import PairwiseModel
from steelyard.model.posteriors import softmax
from steelyard.model.training import TrainingSet
from steelyard.proba import estimate_prior
from steelyard.proba.counts import Counts
from steelyard.solvers import Solution


@dataclass(frozen=True)
class Fit:
    """What a method learned, before a classifier publishes it."""

    model: Model
    log_prior: NDArray[np.float64]
    named: Mapping[str, Any] = field(default_factory=dict)
    """Further fitted attributes, by their names."""

    instance_weights: NDArray[np.float64] | None = None
    """Learned weights of the training rows, where the method learns any."""

    training: TrainingSet | None = None
    """The rows that were used, where those are not all."""

    counts: Counts | None = None
    """Their counts, where those are not the training set's own."""


def fit_weights(recipe: Recipe, training: TrainingSet) -> Fit:
    """Learn weights as a recipe says: of rows first, where it asks for any."""
    if recipe.one_vs_one and training.n_classes > 2:
        return _fit_pairs(recipe, training)
    weighed = weigh_rows(recipe, training)
    learned = None if weighed is None else weighed.weights
    problem = build_problem(recipe, training, learned)
    solution = problem.solve(recipe)
    warn_unsolved(solution, recipe)
    fit = solved_fit(problem, solution, recipe.link_scale)
    return fit if weighed is None else _with_rows(fit, weighed)


def computed_fit(recipe: Recipe, training: TrainingSet) -> Fit:
    """Take the weights that a filter computes of counts; no row is read.

    What depends on rows, the objective, is not known.
    """
    weighting = recipe.weighting
    _, evidence, gaussian, start = start_of(recipe, training, training.count())
    effect = weighting.apply(start.weights, evidence)
    model = weighted_model(training.schema, training.classes, effect, gaussian)
    named = weighting.fitted(start.weights, evidence)
    named = {"n_iter_": 1, "diagnostics_": [], **named, **start.named}
    return Fit(model, evidence.log_prior, named)


def weigh_rows(recipe: Recipe, training: TrainingSet) -> Learned | None:
    """Learn instance weights, where they are asked for."""
    return None if recipe.instances is None else recipe.instances.weigh(training)


def solved_fit(problem: Problem, solution: Solution, link_scale: float = 1.0) -> Fit:
    """Return what a solved problem has learned."""
    return Fit(
        problem.model(solution.weights, link_scale),
        problem.evidence.log_prior,
        {
            "objective_": solution.value,
            "n_iter_": max(1, solution.n_iter),
            "diagnostics_": solution.records,
            **problem.named_weights(solution.weights),
        },
    )


def _with_rows(fit: Fit, weighed: Learned) -> Fit:
    """Add learned instance weights, and the records of how they were learned."""
    records = [*weighed.records, *fit.named["diagnostics_"]]
    named = {**fit.named, "diagnostics_": records}
    return replace(fit, named=named, instance_weights=weighed.weights)


def _fit_pairs(recipe: Recipe, training: TrainingSet) -> Fit:
    """Fit one two-class model for each pair of classes, on its rows alone."""
    weighed = weigh_rows(recipe, training)
    learned = None if weighed is None else weighed.weights
    estimation, classes = training.estimation, training.classes
    counts = training.count(learned)
    log_prior = estimate_prior(estimation.prior, counts, estimation.smoothing)
    pairs = tuple(combinations(range(len(classes)), 2))
    problems, solutions = [], []
    for a, b in pairs:
        pair_rows = training.pair(a, b)
        if not isinstance(estimation.prior, str):
            prior = softmax(log_prior[None, [a, b]])[0]
            of_pair = replace(estimation, prior=prior)
            prepared = replace(training.preparation, estimation=of_pair)
            pair_rows = replace(pair_rows, preparation=prepared)
        of_rows = None
        if learned is not None:
            of_rows = training.workspace.take(learned, training.rows_of(a, b))
        problem = build_problem(recipe, pair_rows, of_rows)
        problems.append(problem)
        solutions.append(problem.solve(recipe))
    for status in ("stalled", "separable", "iterations"):
        worst = [solution for solution in solutions if solution.status == status]
        if worst:
            warn_unsolved(worst[0], recipe)
    solved = list(zip(problems, solutions, strict=True))
    models = tuple(
        problem.model(solution.weights, recipe.link_scale)
        for problem, solution in solved
    )
    named = [problem.named_weights(solution.weights) for problem, solution in solved]
    records = [
        {"pair": classes[list(pair)].tolist(), **record}
        for pair, solution in zip(pairs, solutions, strict=True)
        for record in solution.records
    ]
    fit = Fit(
        PairwiseModel(classes, pairs, models, log_prior),
        log_prior,
        {
            "objective_": sum(solution.value for solution in solutions),
            "n_iter_": max(1, *(solution.n_iter for solution in solutions)),
            "diagnostics_": records,
            **{name: _side_by_side([n[name] for n in named]) for name in named[0]},
        },
    )
    return fit if weighed is None else _with_rows(fit, weighed)


def _side_by_side(values: list[Any]) -> Any:
    """Put what each pair learned into one array, or a list of lists."""
    return values if isinstance(values[0], list) else np.array(values)


def warn_unsolved(solution: Solution, recipe: Recipe) -> None:
    """Warn of a solution that is not the optimum, and say what to try."""
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
