"""Naive Bayes with learned row weights: DWNB, AVFWNB, CWNB variants and boosting."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from steelyard._common.allowed import FORMS
from steelyard._common.settings import NONE, learned, part, setting, whole, word
from steelyard._common.threads import pieces
from steelyard.classifiers.base.estimator import StandardNB
from steelyard.classifiers.weighted import WeightedNB
from steelyard.exceptions import ParameterError
from steelyard.fitting.fit import Fit
from steelyard.fitting.problem import (
    Problem,
    build_problem,
    fit_weights,
    solved_fit,
    warn_unsolved,
)
from steelyard.fitting.recipe import Recipe
from steelyard.instances import (
    INSTANCES,
    DiscriminativeWeighting,
    InstanceWeighting,
    Learned,
    add_losses,
    hardest_rows,
    resolve_instances,
)
from steelyard.model.base import RowsNeeded
from steelyard.model.combined import BoostedModel
from steelyard.model.table_model import NBModel
from steelyard.model.training import TrainingSet
from steelyard.solvers import Solution

__all__ = [
    "BoostedNB",
    "CollaborativeNB",
    "InstanceWeightedNB",
]


class InstanceWeightedNB(StandardNB):
    r"""Naive Bayes whose counts are made with learned instance weights.

    .. math:: N_{jvc} = \sum_i u_i\, [x_{ij} = v]\, [y_i = c]

    Instance weights act through the counts alone. Smoothing is Laplace's rule by
    default, as in the papers, which also have ten bins of equal width and filled in
    missing cells: ``numeric="equal-width", missing="impute", cardinality="declared"``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from steelyard import InstanceWeightedNB
    >>> clf = InstanceWeightedNB().fit(*load_iris(return_X_y=True))
    >>> len(clf.diagnostics_)
    15
    >>> clf.hardest_rows(3)
    array([106,  70, 119])
    """

    _rows_needed: ClassVar[RowsNeeded] = "per-row"

    instances: Any = setting(
        default="discriminative",
        allowed=NONE | part(InstanceWeighting, INSTANCES),
        about='"discriminative" (DWNB: rows that the model gets wrong count more, 15 '
        'rounds), "value-frequency" (AVFWNB: rows with frequent values count more), or '
        "an object.",
    )
    smoothing: Any = setting(default="laplace")

    instance_weights_: NDArray[np.float64] = learned(
        "ndarray of shape (n,)",
        "What the method learned for each training row, without ``sample_weight``; NaN "
        "for rows of weight zero, which are as if absent.",
    )
    diagnostics_: list[dict[str, Any]] = learned(
        "list of dict", "One record per round."
    )

    hardest_rows = hardest_rows

    def _fit(self, recipe: Recipe, training: TrainingSet) -> Fit:
        weighed = Learned(training.workspace.full(training.n_rows, 1.0))
        if self.instances is not None:
            weighed = resolve_instances(self.instances).weigh(training)
        model = training.estimate(training.count(weighed.weights))
        named = {"diagnostics_": weighed.records}
        return Fit(model, model.log_prior, named, weighed.weights)


class CollaborativeNB(WeightedNB):
    r"""CWNB: instance weights by posterior loss, attribute weights by likelihood.

    "plain" (CWNB) learns instance weights with plain naive Bayes,
    :math:`u_i \leftarrow u_i + 1 - P_{i,y_i}`, and then attribute weights in [0, 1]
    that maximise the conditional log-likelihood, with the probabilities made from the
    weighted counts held fixed. "reversed" (CWNB-R) learns attribute weights first, and
    instance weights with the weighted posterior. "interactive" (CWNB-I) and
    "reversed-interactive" (CWNB-RI) alternate one round of each until the accuracy on
    the training rows no longer improves. The paper has ten bins of equal width and
    fills in missing cells: ``numeric="equal-width", missing="impute",
    cardinality="declared"``, with ``solver="published"``.

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
                f"{type(self).__name__} already has an instance weighting. Leave "
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
    return model.share(*rows, training.n_jobs)


# ----------------------------------------------------------------------------- boosting


# A model that misses the same rows as the one before has an error of one half, up to
# rounding; Weka's AdaBoostM1 allows as much.
_USELESS = 0.5 - 1e-6


class BoostedNB(StandardNB):
    r"""BNB: naive Bayes boosted by AdaBoost.M1, or by Elkan's two-class form.

    Each round fits naive Bayes to weighted rows and raises the weight of those that it
    gets wrong; the models vote. Priors are those of the first model.

    References
    ----------
    C. Elkan (1997), "Boosting and naive Bayesian learning", Technical report CS97-557,
    University of California, San Diego.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from steelyard import BoostedNB
    >>> clf = BoostedNB(rounds=5).fit(*load_breast_cancer(return_X_y=True))
    >>> len(clf.votes_) <= 5
    True
    """

    _rows_needed: ClassVar[RowsNeeded] = "per-row"
    _models: ClassVar[tuple[str, ...]] = ("votes",)

    rounds: int = setting(
        default=10, allowed=whole(1), about="Largest number of models."
    )
    form: str = setting(
        default="adaboost-m1",
        allowed=word(*FORMS),
        about="AdaBoost.M1 (Freund and Schapire, 1996; any number of classes), or "
        "boosting of probabilities as in Elkan (1997), for two classes.",
    )
    smoothing: Any = setting(default="laplace")

    votes_: NDArray[np.float64] = learned(
        "ndarray of shape (models,)", "Weight of each model's vote."
    )
    instance_weights_: NDArray[np.float64] = learned(
        "ndarray of shape (n,)",
        "Row weights after the last round, without ``sample_weight``.",
    )
    diagnostics_: list[dict[str, Any]] = learned(
        "list of dict", "One record per round, with its weighted error."
    )

    hardest_rows = hardest_rows

    def _fit(self, recipe: Recipe, training: TrainingSet) -> Fit:
        if self.form == "elkan" and training.n_classes > 2:
            raise ParameterError(
                f"form='elkan' is defined for two classes, but there are "
                f"{training.n_classes}. Use form='adaboost-m1'."
            )
        boosted = _boost(training, int(self.rounds), self.form == "elkan")
        models, votes, weights, records = boosted
        model = BoostedModel(tuple(models), np.array(votes), self.form)
        named = {"votes_": model.votes, "diagnostics_": records}
        return Fit(model, models[0].log_prior, named, weights)


def _boost(
    training: TrainingSet, rounds: int, by_proba: bool
) -> tuple[list[NBModel], list[float], NDArray[np.float64], list[dict[str, Any]]]:
    """Raise the weight of rows that are classified wrongly, as AdaBoost.M1 does.

    ``by_proba`` rows keep weight in proportion to their error, as in Elkan's form.
    """
    learned = training.workspace.full(training.n_rows, 1.0)
    given = training.weights
    given = training.workspace.copy(learned) if given is None else given
    total = given.sum()
    models: list[NBModel] = []
    votes: list[float] = []
    records = []
    for number in range(1, rounds + 1):
        model = training.estimate(training.count(learned))
        missed = _missed(model, training, by_proba)
        error = float(_weighted(given, learned, missed) / total)
        records.append({"round": number, "error": error})
        if error <= (1e-12 if by_proba else 0.0) or error >= _USELESS:
            # A perfect or useless model ends the boosting; kept only if it is first.
            if not models:
                models, votes = [model], [1.0]
            break
        models.append(model)
        beta = error / (1.0 - error)
        vote = -np.log(beta) if by_proba else np.log((1.0 - error) / error)
        votes.append(float(vote))
        for rows in pieces(slice(0, len(learned))):
            if by_proba:
                learned[rows] *= beta ** (1.0 - missed[rows])
            else:
                wrong = learned[rows][missed[rows]]
                learned[rows][missed[rows]] = wrong * (1.0 - error) / error
        # Counts are smoothed as for n rows: weights add up to the number of rows.
        learned *= total / _weighted(given, learned)
    return models, votes, learned, records


def _missed(model: NBModel, training: TrainingSet, by_proba: bool) -> NDArray[Any]:
    """Return which rows are misclassified, or how far each is from its class."""
    if not by_proba:
        return model.winners(training.codes, training.n_jobs) != training.labels
    miss = training.workspace.zeros(training.n_rows, np.float64)
    for rows in pieces(slice(0, len(miss))):
        share = model.proba(training.codes.part(rows), training.n_jobs)[:, 1]
        miss[rows] = np.abs(training.labels[rows].astype(np.float64) - share)
    return miss


def _weighted(
    given: NDArray[np.float64], learned: NDArray[np.float64], of_row: Any = None
) -> float:
    """Add up both weights of rows, or of some, or times a number for each."""
    total = 0.0
    for rows in pieces(slice(0, len(given))):
        both = given[rows] * learned[rows]
        if of_row is None:
            total += both.sum()
        elif of_row.dtype == bool:
            total += both[of_row[rows]].sum()
        else:
            total += (both * of_row[rows]).sum()
    return total
