"""WeightedNB: naive Bayes whose weights are learned by minimising a loss."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from steelyard._common.checks import check_choice, check_number, warn_user
from steelyard.classifiers.base import BaseNB
from steelyard.exceptions import ParameterError
from steelyard.fitting.objective import Objective
from steelyard.fitting.penalty import Penalty
from steelyard.fitting.problem import Problem, attribute_bounds, make_penalty
from steelyard.fitting.rows import prepare_rows
from steelyard.instances import HardRows, Learned, Task, resolve_instances
from steelyard.losses import BrierLoss, resolve_loss
from steelyard.model.combined import PairwiseModel
from steelyard.model.posteriors import softmax
from steelyard.model.training import Training
from steelyard.proba import estimate_prior, resolve_smoothing
from steelyard.proba.counts import Counts
from steelyard.solvers import Solution
from steelyard.weighting import Evidence, Weighting, resolve_weighting

__all__ = ["WeightedNB"]

MULTICLASS = ("native", "one-vs-one")
VARIANCES = ("population", "sample")

# Attributes that only some settings learn; those of an earlier fit are dropped.
_LEARNED = (
    "attribute_weights_",
    "class_attribute_weights_",
    "value_weights_",
    "value_effects_",
    "intercept_",
    "alpha_",
    "prior_weight_",
    "instance_weights_",
    "n_rounds_",
    "selected_features_",
)


class WeightedNB(HardRows, BaseNB):
    r"""Naive Bayes with learned weights: any weighting, loss, penalty and bounds.

    .. math:: \min_w \sum_i u_i\, \ell\bigl(z_i(w), y_i\bigr)
              + \lambda \sum_k (w_k - 1)^2, \qquad
       z_{ic}(w) = \log \pi_c + \sum_j \omega(c, j, x_{ij}) \log \theta_{j,x_{ij}|c}

    Probabilities are estimated from counts and stay as they are; weights say how much
    of each to use. With all weights one the model is naive Bayes.

    Parameters
    ----------
    weighting : str or Weighting, default="attribute"
        "attribute" (one weight per attribute), "class-attribute" (per class and
        attribute), "value" (per class, attribute and value) or "mixture" (RNB's mixture
        of the first two). Or one per attribute that starts from a filter: "correlation"
        (CFW), "gain-ratio" (GRAWNB), "subset" (DFWNB), "trees" (DTAWNB), "tree"
        (TreeNB) or "auc" (AUCNB).
    loss : str or Loss, default="log"
        "log" (conditional log-likelihood), "brier" (half the squared error),
        "exponential" (ENB) or "deviance" (multiplier 2, DNB).
    prior_weight : bool, default=False
        Whether the log prior has a weight of its own (GDNB).
    bounds : pair, None, array of shape (d, 2) or mapping, default=(0.0, 1.0)
        Lower and upper bound of all weights, none, or a pair for each attribute (by
        name or position in a mapping; attributes that it leaves out are unbounded).
    penalty : {"ridge", "l1", None}, default="ridge"
        Distance from ``center`` that is penalised. "l1" needs bounds that keep all
        weights on one side of the centre.
    lam : float, default=0.0
        Strength of the penalty; 0 is the published model.
    center : float, default=1.0
        Where the penalty pulls weights to; 1 is naive Bayes.
    multiclass : {"native", "one-vs-one"}, default="native"
        One model for all classes, or one for each pair with summed probabilities.
    calibrated : bool, default=False
        Whether probabilities use the factor that makes them calibrated for losses that
        estimate a fraction of the log-odds ("exponential": 2, "deviance": its
        multiplier).
    published_gradient : bool, default=False
        Use the truncated gradient of the squared error as printed for CAWNB and RNB.
    instances : str, InstanceWeighting or None, default=None
        Instance weights that the counts are made with, learned before attribute
        weights: "discriminative", "value-frequency", or none.
    solver : str or Solver, default="auto"
        "auto", "newton", "lbfgs", "published" (L-BFGS-B with the settings of published
        implementations, at most 100 iterations) or "fixed" (weights stay one, or what
        a filter says).
    tol : float, default=1e-8
        Relative accuracy of the objective.
    max_iter : int, default=1000
        Largest number of iterations.
    categorical_features, numeric, missing, cardinality
        How tables become codes; see ``NaiveBayes``.
    smoothing, prior, variance_floor
        How counts become probabilities; see ``NaiveBayes``.
    variance : {"population", "sample"}, default="population"
        Whether variances of Gaussian attributes divide by n or by n - 1.
    class_weight : dict or "balanced", default=None
        Factor on the weight of the rows of each class, in counts and loss.
    n_jobs : int, default=None
        Threads. Results do not depend on it.

    Attributes
    ----------
    attribute_weights_ : ndarray of shape (d,) or (pairs, d)
        Weight of each attribute ("attribute" and "mixture").
    class_attribute_weights_ : ndarray of shape (K, d)
        Weight of each attribute in each class ("class-attribute" and "mixture").
    value_weights_ : list of ndarray of shape (K, n_j)
        Weight of each value in each class ("value").
    alpha_ : float
        Share of the class-specific half ("mixture").
    instance_weights_ : ndarray of shape (n,)
        Learned weights of the training rows, with ``instances``.
    prior_weight_ : float
        Weight of the log prior, with ``prior_weight=True``.
    selected_features_ : list of str or int
        Attributes that the filter "subset" selects, in order of choice: names, or
        positions where there are none; one list per pair with "one-vs-one".
    objective_ : float
        Loss plus penalty at the solution, a sum over rows.
    n_iter_ : int
        Iterations of the solver.
    diagnostics_ : list of dict
        One record per iteration.
    classes_, class_log_prior_, class_count_, counts_, model_, encoder_
        As in ``NaiveBayes``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from steelyard import WeightedNB
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = WeightedNB(weighting="attribute", lam=1.0, bounds=(0, 2)).fit(X, y)
    >>> clf.attribute_weights_.round(2)
    array([0.13, 0.36, 0.67, 0.71])
    """

    counts_: Counts
    class_log_prior_: NDArray[np.float64]
    class_count_: NDArray[np.float64]
    objective_: float
    n_iter_: int
    diagnostics_: list[dict[str, Any]]

    def __init__(
        self,
        *,
        weighting: Any = "attribute",
        loss: Any = "log",
        prior_weight: bool = False,
        bounds: Any = (0.0, 1.0),
        penalty: str | None = "ridge",
        lam: float = 0.0,
        center: float = 1.0,
        multiclass: str = "native",
        calibrated: bool = False,
        published_gradient: bool = False,
        instances: Any = None,
        solver: Any = "auto",
        tol: float = 1e-8,
        max_iter: int = 1000,
        categorical_features: Any = "auto",
        numeric: Any = "mdl",
        missing: str = "skip",
        smoothing: Any = "m-estimate",
        cardinality: str = "observed",
        prior: Any = "smoothed",
        variance: str = "population",
        variance_floor: float = 1e-9,
        class_weight: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.weighting = weighting
        self.loss = loss
        self.prior_weight = prior_weight
        self.bounds = bounds
        self.penalty = penalty
        self.lam = lam
        self.center = center
        self.multiclass = multiclass
        self.calibrated = calibrated
        self.published_gradient = published_gradient
        self.instances = instances
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.categorical_features = categorical_features
        self.numeric = numeric
        self.missing = missing
        self.smoothing = smoothing
        self.cardinality = cardinality
        self.prior = prior
        self.variance = variance
        self.variance_floor = variance_floor
        self.class_weight = class_weight
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> WeightedNB:
        """Learn probabilities and weights from a table and its labels.

        Parameters
        ----------
        X : table of shape (n, d)
            NumPy array, pandas, polars or pyarrow table.
        y : array-like of shape (n,)
            Labels, none of them missing.
        sample_weight : array-like of shape (n,), default=None
            Row weights, in the counts and in the loss; a weight of 2 equals the row
            twice.

        Returns
        -------
        WeightedNB
            The fitted classifier.
        """
        self._check_settings()
        self._estimation()
        self._learn(self._prepare(X, y, sample_weight))
        return self

    # ------------------------------------------------------------------------ pieces

    def _learn(self, training: Training) -> None:
        """Learn from encoded rows, and keep what was learned."""
        task, classes = self._task(training), training.classes
        if self.multiclass == "one-vs-one" and len(classes) > 2:
            learned = self._fit_pairs(task, classes)
        else:
            learned = self._fit_all(task, classes)
        if "instance_weights_" in learned:
            learned["instance_weights_"] = training.all_rows(
                learned["instance_weights_"]
            )
        for name in _LEARNED:
            self.__dict__.pop(name, None)
        self._adopt(training)
        for name, value in learned.items():
            setattr(self, name, value)
        self.class_count_ = self.counts_.by_class

    def _fit_all(self, task: Task, classes: NDArray[Any]) -> dict[str, Any]:
        """Fit one model of all classes; return what it learned by name."""
        weighed = self._weigh(task)
        learned = None if weighed is None else weighed.weights
        problem = self._problem(task, learned, self.prior)
        solution = problem.solve(self.solver, float(self.tol), int(self.max_iter))
        self._warn(solution)
        found = self._found(problem, solution, classes)
        if weighed is not None:
            found["instance_weights_"] = weighed.weights
            found["diagnostics_"] = [*weighed.records, *solution.records]
        return found

    def _weigh(self, task: Task) -> Learned | None:
        """Learn instance weights, where they are asked for."""
        weighting = resolve_instances(self.instances)
        return None if weighting is None else weighting.weigh(task)

    def _found(
        self, problem: Problem, solution: Solution, classes: NDArray[Any]
    ) -> dict[str, Any]:
        """Name what a solved problem has learned."""
        return {
            "counts_": problem.counts,
            "class_log_prior_": problem.evidence.log_prior,
            "model_": problem.model(solution.weights, classes, self._link_scale()),
            "objective_": solution.value,
            "n_iter_": max(1, solution.n_iter),
            "diagnostics_": solution.records,
            **problem.named(solution.weights),
        }

    def _fit_pairs(self, task: Task, classes: NDArray[Any]) -> dict[str, Any]:
        """Fit one two-class model for each pair of classes, on its rows alone."""
        weighed = self._weigh(task)
        learned_rows = None if weighed is None else weighed.weights
        smoothing = resolve_smoothing(self.smoothing)
        counts = task.count(learned_rows)
        log_prior = estimate_prior(self.prior, counts, smoothing)
        pairs = tuple(combinations(range(len(classes)), 2))
        models, solutions, named = [], [], []
        for a, b in pairs:
            rows = np.flatnonzero((task.labels == a) | (task.labels == b))
            prior = self.prior
            if not isinstance(prior, str):
                prior = softmax(log_prior[None, [a, b]])[0]
            own = Task(
                task.codes.take(rows),
                (task.labels[rows] == b).astype(np.uint32),
                None if task.weights is None else task.weights[rows],
                2,
                task.estimate,
                task.n_jobs,
            )
            u = None if learned_rows is None else learned_rows[rows]
            problem = self._problem(own, u, prior)
            solution = problem.solve(self.solver, float(self.tol), int(self.max_iter))
            own_classes = classes[[a, b]]
            models.append(
                problem.model(solution.weights, own_classes, self._link_scale())
            )
            solutions.append(solution)
            named.append(problem.named(solution.weights))
        for status in ("stalled", "separable", "iterations"):
            worst = [solution for solution in solutions if solution.status == status]
            if worst:
                self._warn(worst[0])
        learned: dict[str, Any] = {
            "counts_": counts,
            "class_log_prior_": log_prior,
            "model_": PairwiseModel(classes, pairs, tuple(models), log_prior),
            "objective_": sum(solution.value for solution in solutions),
            "n_iter_": max(1, *(solution.n_iter for solution in solutions)),
            "diagnostics_": [
                {"pair": classes[list(pair)].tolist(), **record}
                for pair, solution in zip(pairs, solutions, strict=True)
                for record in solution.records
            ],
        }
        if weighed is not None:
            learned["instance_weights_"] = weighed.weights
            learned["diagnostics_"] = [*weighed.records, *learned["diagnostics_"]]
        for name in named[0]:
            values = [entry[name] for entry in named]
            learned[name] = values if isinstance(values[0], list) else np.array(values)
        return learned

    def _problem(
        self, task: Task, learned: NDArray[np.float64] | None, prior: Any
    ) -> Problem:
        """Estimate probabilities and set up the objective.

        Learned instance weights enter the counts; the loss knows the user's alone.
        """
        codes, n_classes = task.codes, task.n_classes
        weighting = self._weighting()
        loss = resolve_loss(self.loss, self.published_gradient)
        if weighting.is_mixture and not isinstance(loss, BrierLoss):
            raise ParameterError(
                "weighting='mixture' learns its share of two posteriors by the squared "
                f"error; {type(loss).__name__} cannot be used with it. Use "
                "loss='brier'."
            )
        if loss.two_classes_only and n_classes > 2:
            raise ParameterError(
                f"{type(loss).__name__} is defined for two classes, but there are "
                f"{n_classes}. Use multiclass='one-vs-one', or another loss."
            )
        low, high = attribute_bounds(self.bounds, codes.schema)
        counts = task.count(learned)
        estimation = replace(self._estimation(), prior=prior)
        log_prior, table, gaussian = estimation.tables(counts)
        evidence = Evidence(codes.schema, log_prior, table)
        start = weighting.start_from(task, evidence, gaussian)
        if start.count_factors is not None:
            estimation = replace(estimation, count_factors=start.count_factors)
            evidence = replace(evidence, table=estimation.tables(counts)[1])
        if not np.isfinite(evidence.log_prior).all():
            raise ParameterError(
                "`prior` gives a class probability 0, under which no weights can be "
                "learned. Use positive priors, or prior='smoothed'."
            )
        missing = np.zeros(len(codes.schema), dtype=bool)
        first = codes.schema.first_codes
        missing[codes.schema.coded] = counts.by_code[first].any(axis=1)
        rows = prepare_rows(
            codes,
            task.labels,
            task.weights,
            missing,
            gaussian,
            n_classes,
            self.n_jobs,
        )
        lower, upper = weighting.bounds(evidence, low, high)
        own = weighting.strengths(evidence)
        penalty = Penalty(*own) if own is not None else None
        if own is None:
            penalty = make_penalty(
                self.penalty,
                float(self.lam),
                float(self.center),
                weighting,
                lower,
                upper,
            )
        objective = Objective(rows, evidence, weighting, loss, penalty, self.n_jobs)
        return Problem(
            counts,
            evidence,
            gaussian,
            objective,
            lower,
            upper,
            start.weights,
            estimation,
            start.named,
        )

    def _weighting(self) -> Weighting:
        """Return the weighting that the settings ask for."""
        return resolve_weighting(self.weighting, self.prior_weight)

    def _has_class_weights(self) -> bool:
        return self._weighting().has_class_weights

    def _link_scale(self) -> float:
        if not self.calibrated:
            return 1.0
        return float(resolve_loss(self.loss, self.published_gradient).link_scale)

    def _check_settings(self) -> None:
        check_choice(self, "multiclass", MULTICLASS)
        check_choice(self, "variance", VARIANCES)
        if self.penalty is not None:
            check_choice(self, "penalty", ("ridge", "l1"))
        for name in ("prior_weight", "calibrated", "published_gradient"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise ParameterError(
                    f"The {name!r} parameter of {type(self).__name__} must be True or "
                    f"False. Got {getattr(self, name)!r} instead."
                )
        for name in ("lam", "tol"):
            check_number(self, name, np.inf)
        if not isinstance(self.center, Real) or not np.isfinite(float(self.center)):
            raise ParameterError(
                f"The 'center' parameter must be a finite number. Got {self.center!r} "
                "instead."
            )
        if not isinstance(self.max_iter, Integral) or self.max_iter < 1:
            raise ParameterError(
                f"The 'max_iter' parameter must be a whole number of at least 1. Got "
                f"{self.max_iter!r} instead."
            )

    def _warn(self, solution: Solution) -> None:
        if solution.status == "converged":
            return
        gradient = solution.records[-1]["gradient"] if solution.records else np.nan
        if solution.status == "separable":
            message = (
                "The training rows can be separated: the loss keeps falling as weights "
                f"grow, and was stopped at {solution.value:.3g} with a largest weight "
                f"of {np.abs(solution.weights).max():.3g}. The weights depend on where "
                "it stopped. Set bounds such as (0, 1), or a penalty with lam=1."
            )
        elif solution.status == "iterations" and self.solver == "published":
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
