"""Instance and attribute weights that are learned in turn: CWNB and its variants."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.checks import check_choice
from steelyard.classifiers.published import preset
from steelyard.classifiers.weighted import WeightedNB
from steelyard.exceptions import ParameterError
from steelyard.fitting.problem import Problem
from steelyard.instances import DiscriminativeWeighting, Learned, Task
from steelyard.instances.discriminative import add_losses
from steelyard.solvers import Solution

__all__ = ["CollaborativeNB"]

VARIANTS = ("plain", "reversed", "interactive", "reversed-interactive")


@preset(
    smoothing="laplace",
    extra={"variant": "plain", "rounds": 15, "max_rounds": 100, "keep": "best"},
)
class CollaborativeNB(WeightedNB):
    r"""CWNB: instance weights by posterior loss, attribute weights by likelihood.

    "plain" (CWNB) learns instance weights with plain naive Bayes,
    :math:`u_i \leftarrow u_i + 1 - P_{i,y_i}`, and then attribute weights in [0, 1]
    that maximise the conditional log-likelihood, with the probabilities made from the
    weighted counts held fixed. "reversed" (CWNB-R) learns attribute weights first, and
    instance weights with the weighted posterior. "interactive" (CWNB-I) and
    "reversed-interactive" (CWNB-RI) alternate one round of each until the accuracy on
    the training rows no longer improves.

    Parameters
    ----------
    variant : {"plain", "reversed", "interactive", "reversed-interactive"}
        Order in which the two are learned, default="plain".
    rounds : int, default=15
        Rounds of instance weighting of "plain" and "reversed".
    max_rounds : int, default=100
        Largest number of rounds of the interactive variants.
    keep : {"best", "last"}, default="best"
        Whether an interactive variant returns the model before the round that did not
        improve, or the one after it.
    **settings
        All of ``WeightedNB``; smoothing is Laplace's rule.

    Attributes
    ----------
    instance_weights_ : ndarray of shape (n,)
        Learned weights of the training rows, without ``sample_weight``.
    attribute_weights_ : ndarray of shape (d,)
        Learned weights of the attributes.
    n_rounds_ : int
        Rounds that were made.
    diagnostics_ : list of dict
        One record per round; "plain" and "reversed" have those of the solver too.

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

    variant: str
    rounds: int
    max_rounds: int
    keep: str
    n_rounds_: int

    def _check_settings(self) -> None:
        super()._check_settings()
        check_choice(self, "variant", VARIANTS)
        check_choice(self, "keep", ("best", "last"))
        for name, least in (("rounds", 0), ("max_rounds", 1)):
            value = getattr(self, name)
            if not isinstance(value, Integral) or value < least:
                raise ParameterError(
                    f"The {name!r} parameter of {type(self).__name__} must be a whole "
                    f"number of at least {least}. Got {value!r} instead."
                )
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

    def _weigh(self, task: Task) -> Learned | None:
        return DiscriminativeWeighting(self.rounds).weigh(task)

    def _fit_all(self, task: Task, classes: NDArray[Any]) -> dict[str, Any]:
        if self.variant == "plain":
            found = super()._fit_all(task, classes)
            return {**found, "n_rounds_": int(self.rounds)}
        if self.variant == "reversed":
            return self._fit_reversed(task, classes)
        return self._fit_in_turn(task, classes)

    def _fit_reversed(self, task: Task, classes: NDArray[Any]) -> dict[str, Any]:
        """Attribute weights first; then rounds of instance weights with them fixed."""
        problem = self._problem(task, None, self.prior)
        solution = self._solve(problem, None)
        self._warn(solution)
        learned = np.ones(task.codes.n_rows)
        records = []
        for number in range(1, int(self.rounds) + 1):
            posterior = self._posterior(problem, solution, task, classes)
            records.append(add_losses(learned, posterior, task, number))
            problem = self._recount(problem, task, learned)
        found = self._found(problem, solution, classes)
        found["objective_"] = problem.objective(solution.weights)[0]
        found["instance_weights_"] = learned
        found["diagnostics_"] = [*solution.records, *records]
        found["n_rounds_"] = int(self.rounds)
        return found

    def _fit_in_turn(self, task: Task, classes: NDArray[Any]) -> dict[str, Any]:
        """One round of each in turn, until training accuracy no longer improves."""
        first = self.variant == "reversed-interactive"
        learned = np.ones(task.codes.n_rows)
        problem = self._problem(task, None, self.prior)
        solution = problem.start_solution()
        best: dict[str, Any] | None = None
        records: list[dict[str, Any]] = []
        accuracy = -1.0
        number = 0
        while number < self.max_rounds:
            number += 1
            if first:
                solution = self._solve(problem, solution)
            posterior = self._posterior(problem, solution, task, classes)
            learned = learned.copy()
            record = add_losses(learned, posterior, task, number)
            problem = self._recount(problem, task, learned)
            if not first:
                solution = self._solve(problem, solution)
            now = self._accuracy(problem, solution, task, classes)
            records.append({**record, "accuracy": now})
            improved = now > accuracy
            if improved or self.keep == "last":
                best = self._found(problem, solution, classes)
                best["objective_"] = problem.objective(solution.weights)[0]
                best["instance_weights_"] = learned
            if not improved:
                break
            accuracy = now
        assert best is not None
        self._warn(solution)
        return {**best, "diagnostics_": records, "n_rounds_": number}

    # ------------------------------------------------------------------------ pieces

    def _solve(self, problem: Problem, warm: Solution | None) -> Solution:
        start = None if warm is None else warm.weights
        return problem.solve(
            self.solver, float(self.tol), int(self.max_iter), start=start
        )

    def _recount(
        self, problem: Problem, task: Task, learned: NDArray[np.float64]
    ) -> Problem:
        return problem.with_counts(task.count(learned))

    def _posterior(
        self, problem: Problem, solution: Solution, task: Task, classes: NDArray[Any]
    ) -> NDArray[np.float64]:
        model: Any = problem.model(solution.weights, classes, 1.0)
        return task.true_posterior(model)

    def _accuracy(
        self, problem: Problem, solution: Solution, task: Task, classes: NDArray[Any]
    ) -> float:
        model = problem.model(solution.weights, classes, 1.0)
        right = model.predict(task.codes, task.n_jobs) == classes[task.labels]
        return float(np.average(right, weights=task.weights))
