"""Instance and attribute weights that are learned in turn: CWNB and its variants."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from steelyard._common.settings import learned, setting, whole, word
from steelyard.classifiers.weighted import WeightedNB
from steelyard.exceptions import ParameterError
from steelyard.fitting.problem import (
    Fit,
    Problem,
    build_problem,
    fit_weights,
    solved_fit,
    warn_unsolved,
)
from steelyard.fitting.recipe import Recipe
from steelyard.instances import DiscriminativeWeighting, add_losses
from steelyard.model.base import RowsNeeded
from steelyard.model.training import TrainingSet
from steelyard.solvers import Solution

__all__ = ["CollaborativeNB"]


class CollaborativeNB(WeightedNB):
    r"""CWNB: instance weights by posterior loss, attribute weights by likelihood.

    "plain" (CWNB) learns instance weights with plain naive Bayes,
    :math:`u_i \leftarrow u_i + 1 - P_{i,y_i}`, and then attribute weights in [0, 1]
    that maximise the conditional log-likelihood, with the probabilities made from the
    weighted counts held fixed. "reversed" (CWNB-R) learns attribute weights first, and
    instance weights with the weighted posterior. "interactive" (CWNB-I) and
    "reversed-interactive" (CWNB-RI) alternate one round of each until the accuracy on
    the training rows no longer improves.

    References
    ----------
    H. Zhang, L. Jiang, C. Li (2021), "Collaboratively weighted naive Bayes", Knowledge
    and Information Systems 63.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from steelyard import CollaborativeNB
    >>> clf = CollaborativeNB(variant="interactive").fit(*load_iris(return_X_y=True))
    >>> clf.n_rounds_ >= 1
    True
    """

    _rows_needed: ClassVar[RowsNeeded] = "per-row"
    _has_one_objective: ClassVar[bool] = False
    _models: ClassVar[tuple[str, ...]] = ("sum", "mixture")

    variant: str = setting(
        default="plain",
        allowed=word("plain", "reversed", "interactive", "reversed-interactive"),
        about="Order in which the two are learned.",
    )
    rounds: int = setting(
        default=15,
        allowed=whole(0),
        about='Rounds of instance weighting of "plain" and "reversed".',
    )
    max_rounds: int = setting(
        default=100,
        allowed=whole(1),
        about="Largest number of rounds of the interactive variants.",
    )
    keep: str = setting(
        default="best",
        allowed=word("best", "last"),
        about="Whether an interactive variant returns the model before the round that "
        "did not improve, or the one after it.",
    )
    smoothing: Any = setting(default="laplace")

    instance_weights_: NDArray[np.float64] = learned(
        "ndarray of shape (n,)",
        "Learned weights of the training rows, without ``sample_weight``.",
    )
    n_rounds_: int = learned("int", "Rounds that were made.")
    diagnostics_: list[dict[str, Any]] = learned(
        "list of dict",
        'One record per round; "plain" and "reversed" have those of the solver too.',
    )

    def _recipe(self) -> Recipe:
        recipe = super()._recipe()
        if self.instances is not None:
            raise ParameterError(
                f"{type(self).__name__} has an instance weighting of its own. Leave "
                "`instances` at None, or use WeightedNB."
            )
        if self.multiclass != "native":
            raise ParameterError(
                f"{type(self).__name__} learns instance weights for all classes at "
                "once. Use multiclass='native'."
            )
        return replace(recipe, instances=DiscriminativeWeighting(int(self.rounds)))

    def _solved(self, recipe: Recipe, training: TrainingSet) -> Fit:
        if self.variant == "plain":
            fit = fit_weights(recipe, training)
            n_rounds = int(self.rounds)
        elif self.variant == "reversed":
            fit = _fit_reversed(recipe, training, int(self.rounds))
            n_rounds = int(self.rounds)
        else:
            fit, n_rounds = self._fit_in_turn(recipe, training)
        return replace(fit, named={**fit.named, "n_rounds_": n_rounds})

    def _fit_in_turn(self, recipe: Recipe, training: TrainingSet) -> tuple[Fit, int]:
        """One round of each in turn, until training accuracy no longer improves."""
        weights_first = self.variant == "reversed-interactive"
        learned_weights = training.workspace.full(training.n_rows, 1.0)
        problem = build_problem(recipe, training)
        solution = problem.start_solution()
        best: Fit | None = None
        records: list[dict[str, Any]] = []
        accuracy = -1.0
        while len(records) < self.max_rounds:
            if weights_first:
                solution = problem.solve(recipe, solution.weights)
            model = problem.model(solution.weights)
            learned_weights = training.workspace.copy(learned_weights)
            n_rounds = len(records) + 1
            record = add_losses(learned_weights, model, training, n_rounds)
            problem = problem.with_counts(training.count(learned_weights))
            if not weights_first:
                solution = problem.solve(recipe, solution.weights)
            new_accuracy = _accuracy(problem, solution, training)
            records.append({**record, "accuracy": new_accuracy})
            has_improved = new_accuracy > accuracy
            if has_improved or self.keep == "last":
                best = _fit_at(problem, solution, learned_weights, recipe)
            if not has_improved:
                break
            accuracy = new_accuracy
        assert best is not None
        warn_unsolved(solution, recipe)
        named = {**best.named, "diagnostics_": records}
        return replace(best, named=named), len(records)


def _fit_reversed(recipe: Recipe, training: TrainingSet, rounds: int) -> Fit:
    """Attribute weights first; then rounds of instance weights with them fixed."""
    problem = build_problem(recipe, training)
    solution = problem.solve(recipe)
    warn_unsolved(solution, recipe)
    learned_weights = training.workspace.full(training.n_rows, 1.0)
    records = []
    for number in range(1, rounds + 1):
        model = problem.model(solution.weights)
        records.append(add_losses(learned_weights, model, training, number))
        problem = problem.with_counts(training.count(learned_weights))
    fit = _fit_at(problem, solution, learned_weights, recipe)
    named = {**fit.named, "diagnostics_": [*solution.records, *records]}
    return replace(fit, named=named)


def _fit_at(
    problem: Problem,
    solution: Solution,
    learned_weights: NDArray[np.float64],
    recipe: Recipe,
) -> Fit:
    """Return a fit with the objective under the counts of the last round."""
    fit = solved_fit(problem, solution, recipe.link_scale)
    value = problem.objective(solution.weights)[0]
    return replace(
        fit,
        named={**fit.named, "objective_": value},
        instance_weights=learned_weights,
    )


def _accuracy(problem: Problem, solution: Solution, training: TrainingSet) -> float:
    model = problem.model(solution.weights)
    rows = training.codes, training.labels, training.weights
    return model.share(*rows, True, training.n_jobs)
