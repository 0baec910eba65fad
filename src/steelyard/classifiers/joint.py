"""Instance and attribute weights that minimise one objective together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from steelyard._common.arrays import Floats
from steelyard._common.settings import learned, number, setting
from steelyard._common.threads import pieces
from steelyard.classifiers.weighted import WeightedNB
from steelyard.exceptions import ParameterError
from steelyard.fitting.fit import Fit
from steelyard.fitting.problem import (
    Problem,
    build_problem,
    solved_fit,
    warn_unsolved,
)
from steelyard.fitting.recipe import Recipe
from steelyard.kernels import scoring
from steelyard.model.base import RowsNeeded
from steelyard.model.table_model import spread_table
from steelyard.model.training import TrainingSet
from steelyard.solvers import LBFGS, Box, Solution
from steelyard.table.codes import FeatureTable

__all__ = ["JointWeightedNB"]


class JointWeightedNB(WeightedNB):
    r"""Instance and attribute weights that minimise one objective together.

    .. math:: \min_{u, w} \sum_i \ell\bigl(z_i(w, \theta(u)), y_i\bigr)
              + \rho \sum_i (u_i - 1)^2 + \lambda \sum_k (w_k - 1)^2,
              \qquad 0 \le u_i \le b

    The probabilities are functions of the instance weights through the counts, so that
    one gradient moves both. With T the log-probability table, G the gradient with
    respect to it and f the smoothing,

    .. math:: \frac{\partial F}{\partial u_k} = \sum_j \Bigl(
        \frac{G_{j,x_{kj},y_k}}{N_{j,x_{kj},y_k} + f_j} -
        \frac{\sum_v G_{j,v,y_k}}{N^{(j)}_{y_k} + n_j f_j}\Bigr)
        + \frac{g_{y_k}}{N_{y_k} + f} + 2 \rho (u_k - 1)

    which is a gather of one small table. Not convex in u and w together.

    Any weighting but "mixture" will do; Gaussian attributes have to be binned.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from steelyard import JointWeightedNB
    >>> clf = JointWeightedNB().fit(*load_iris(return_X_y=True))
    >>> bool((clf.instance_weights_ >= 0).all())
    True
    """

    _rows_needed: ClassVar[RowsNeeded] = "per-row"
    _models: ClassVar[tuple[str, ...]] = ("sum",)

    instance_lam: float = setting(
        default=1.0,
        allowed=number(0.0, ends="()"),
        about=r"Strength :math:`\rho` that keeps instance weights near one; infinitely "
        "large gives attribute weights alone.",
    )
    instance_bound: float = setting(
        default=16.0,
        allowed=number(0.0, ends="()"),
        about="Largest instance weight; 16 is what 15 rounds of DWNB can reach.",
    )
    smoothing: Any = setting(default="laplace")

    instance_weights_: Floats = learned(
        "ndarray of shape (n,)",
        "Learned weights of the training rows, without ``sample_weight``.",
    )

    def _recipe(self) -> Recipe:
        recipe = super()._recipe()
        name = type(self).__name__
        if self.solver not in ("auto", "lbfgs"):
            raise ParameterError(
                f"{name} learns all weights by one run of L-BFGS-B. Leave `solver` at "
                f"'auto'. Got {self.solver!r} instead."
            )
        smoothing = recipe.estimation.smoothing
        if smoothing.depends_on_total or smoothing.leaves_zeros:
            raise ParameterError(
                "smoothing='kohavi' changes with the weights, and without any some "
                "probabilities are 0: neither can be optimised jointly with them. Use "
                "'laplace', 'm-estimate' or a number above 0."
            )
        if self.instances is not None or self.multiclass != "native":
            raise ParameterError(
                f"{name} learns its instance weights for all classes at once: "
                "leave `instances` and `multiclass` at their defaults."
            )
        if not isinstance(self.prior, str) or self.prior != "smoothed":
            raise ParameterError(
                f"{name} learns priors with the instance weights. Use prior='smoothed'."
            )
        return recipe

    def _solved(self, recipe: Recipe, training: TrainingSet) -> Fit:
        problem = build_problem(recipe, training)
        self._check_problem(problem)
        strength, bound = float(self.instance_lam), float(self.instance_bound)
        solution = _minimise(problem, training, strength, bound, recipe)
        if solution.status == "iterations":
            warn_unsolved(solution, recipe)
        row_weights, weights = np.split(solution.weights, [training.n_rows])
        learned = problem.with_counts(training.count(row_weights))
        fit = solved_fit(learned, replace(solution, weights=weights))
        return replace(fit, instance_weights=row_weights)

    def _check_problem(self, problem: Problem) -> None:
        name = type(self).__name__
        weighting = problem.objective.weighting
        if weighting.is_mixture or len(problem.evidence.gaussian):
            raise ParameterError(
                f"{name} needs one sum of binned attributes: use another `weighting` "
                "than 'mixture', and a discretizer for `numeric`."
            )
        if problem.estimation.count_factors is not None:
            raise ParameterError(
                f"{name} learns from counts as they are; the weighting "
                f"{self.weighting!r} multiplies them. Use another `weighting`."
            )


class JointObjective:
    """Loss of instance weights u and attribute weights w: value and gradient.

    The vector of both is weights times ``unit``.
    """

    has_penalty: ClassVar[bool] = True

    def __init__(
        self, problem: Problem, training: TrainingSet, strength: float, unit: Any = 1.0
    ) -> None:
        self._problem, self._training = problem, training
        self._strength, self._unit = strength, unit
        self.n_evaluations = 0

    def __call__(self, vector: Floats) -> tuple[float, Floats]:
        """Return the objective and its gradient at (u, w)."""
        self.n_evaluations += 1
        training, vector = self._training, vector / self._unit
        learned, weights = np.split(vector, [training.n_rows])
        problem = self._problem.with_counts(training.count(learned))
        value, d_weights, d_table, d_prior = problem.objective.with_tables(weights)
        row_weights = 1.0 if training.weights is None else training.weights
        d_rows = row_weights * self._by_row(problem, d_table, d_prior)
        away = learned - 1.0
        value += self._strength * float((row_weights * away * away).sum())
        d_rows += 2.0 * self._strength * row_weights * away
        return value, np.concatenate([d_rows, d_weights]) / self._unit

    def _by_row(self, problem: Problem, d_table: Floats, d_prior: Floats) -> Floats:
        """Return the derivative with respect to each row's weight in the counts."""
        training, counts = self._training, problem.counts
        schema, smoothing = counts.schema, training.estimation.smoothing
        table = FeatureTable(counts.by_code, schema.offsets)
        added = smoothing.value_counts(counts)
        observed = counts.by_code.copy()
        observed[schema.first_codes] = 0.0
        gradient = d_table.copy()
        gradient[schema.first_codes] = 0.0
        totals = table.collect(observed) + (added * schema.n_values)[:, None]
        per_class = table.collect(gradient) / np.where(totals > 0, totals, 1.0)
        smoothed = observed + table.spread(added)[:, None]
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


def _minimise(
    problem: Problem,
    training: TrainingSet,
    strength: float,
    bound: float,
    recipe: Recipe,
) -> Solution:
    """Minimise over instance weights and attribute weights, one after the other."""
    n = training.n_rows
    start = np.concatenate([np.ones(n), problem.start_solution().weights])
    box = Box(
        np.concatenate([np.zeros(n), problem.box.lower]),
        np.concatenate([np.full(n, bound), problem.box.upper]),
    )
    # Scaled by the root of its weight, a row counts like that many copies of it.
    unit = np.ones(len(start))
    if training.weights is not None:
        unit[:n] = np.sqrt(np.where(training.weights > 0, training.weights, 1.0))
    start = box.clip(start) * unit
    joint: Any = JointObjective(problem, training, strength, unit)
    solver = LBFGS(
        1e-2 * recipe.tol,
        recipe.max_iter,
        gradient_tol=1e-8 * max(1.0, joint(start)[0]),
    )
    scaled = Box(box.lower * unit, box.upper * unit)
    solution = solver.minimize(joint, start, scaled)
    return replace(solution, weights=box.clip(solution.weights / unit))
