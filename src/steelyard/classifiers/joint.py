"""Instance and attribute weights from one objective."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.classifiers.published import preset
from steelyard.classifiers.weighted import WeightedNB
from steelyard.exceptions import ParameterError
from steelyard.fitting.problem import Problem
from steelyard.instances import Task
from steelyard.kernels import scoring
from steelyard.model.table_model import spread_table
from steelyard.proba import Lidstone, resolve_smoothing
from steelyard.solvers import Solution
from steelyard.solvers.base import projected_gradient
from steelyard.table.codes import FeatureTable

__all__ = ["JointWeightedNB"]


@preset(smoothing="laplace", extra={"instance_lam": 1.0, "instance_bound": 16.0})
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

    Parameters
    ----------
    instance_lam : float, default=1.0
        Strength :math:`\rho` that keeps instance weights near one; infinitely large
        gives attribute weights alone.
    instance_bound : float, default=16.0
        Largest instance weight; 16 is what 15 rounds of DWNB can reach.
    **settings
        All of ``WeightedNB`` but "mixture"; Gaussian attributes have to be binned.

    Attributes
    ----------
    instance_weights_ : ndarray of shape (n,)
        Learned weights of the training rows, without ``sample_weight``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from steelyard import JointWeightedNB
    >>> clf = JointWeightedNB().fit(*load_iris(return_X_y=True))
    >>> bool((clf.instance_weights_ >= 0).all())
    True
    """

    instance_lam: float
    instance_bound: float

    def _check_settings(self) -> None:
        super()._check_settings()
        for name in ("instance_lam", "instance_bound"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Real):
                value = -1.0
            if not 0.0 < float(value) < np.inf:
                raise ParameterError(
                    f"The {name!r} parameter of {type(self).__name__} must be a float "
                    f"in the range (0, inf). Got {getattr(self, name)!r} instead."
                )
        if self.solver not in ("auto", "lbfgs"):
            raise ParameterError(
                f"{type(self).__name__} learns all weights by one run of L-BFGS-B. "
                f"Leave `solver` at 'auto'. Got {self.solver!r} instead."
            )
        smoothing = resolve_smoothing(self.smoothing)
        if isinstance(smoothing, Lidstone) and smoothing.f is None:
            raise ParameterError(
                "smoothing='kohavi' changes with the weights and cannot be optimised "
                "jointly with them. Use 'laplace', 'm-estimate' or a number."
            )
        if self.instances is not None or self.multiclass != "native":
            raise ParameterError(
                f"{type(self).__name__} learns instance weights of its own, for all "
                "classes at once: leave `instances` and `multiclass` at their defaults."
            )
        if not isinstance(self.prior, str) or self.prior != "smoothed":
            raise ParameterError(
                f"{type(self).__name__} learns priors with the instance weights. Use "
                "prior='smoothed'."
            )

    def _fit_all(self, task: Task, classes: NDArray[Any]) -> dict[str, Any]:
        from scipy.optimize import Bounds, minimize

        problem = self._problem(task, None, self.prior)
        if problem.objective.weighting.is_mixture or len(task.codes.schema.gaussian):
            raise ParameterError(
                f"{type(self).__name__} needs one sum of binned attributes: use "
                "another `weighting` than 'mixture', and a discretizer for `numeric`."
            )
        if problem.estimation.count_factors is not None:
            raise ParameterError(
                f"{type(self).__name__} learns from counts as they are; the weighting "
                f"{self.weighting!r} multiplies them. Use another `weighting`."
            )
        joint = JointObjective(problem, task, self, float(self.instance_lam))
        n = task.codes.n_rows
        start = np.concatenate([np.ones(n), problem.start_solution().weights])
        lower = np.concatenate([np.zeros(n), problem.lower])
        upper = np.concatenate([np.full(n, float(self.instance_bound)), problem.upper])
        records: list[dict[str, Any]] = []

        def note(intermediate_result: Any) -> None:
            records.append(
                {
                    "iteration": len(records) + 1,
                    "objective": float(intermediate_result.fun),
                    "gradient": joint.slope(lower, upper),
                }
            )

        # In units of the root of its weight a row counts like so many copies of it.
        unit = np.ones(len(start))
        if task.weights is not None:
            unit[:n] = np.sqrt(np.where(task.weights > 0, task.weights, 1.0))

        def scaled(vector: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            value, gradient = joint(vector / unit)
            return value, gradient / unit

        start = np.clip(start, lower, upper)
        result = minimize(
            scaled,
            start * unit,
            jac=True,
            method="L-BFGS-B",
            bounds=Bounds(lower * unit, upper * unit),
            callback=note,
            options={
                "maxcor": 20,
                "maxiter": int(self.max_iter),
                "maxfun": 20 * int(self.max_iter),
                "ftol": 1e-2 * float(self.tol),
                "gtol": 1e-8 * max(1.0, joint(start)[0]),
            },
        )
        reached = np.clip(result.x / unit, lower, upper)
        learned, weights = reached[:n], reached[n:]
        last = joint.at(learned)
        solution = problem.start_solution()
        found = self._found(last, solution.moved(weights, float(result.fun)), classes)
        found["instance_weights_"] = learned
        found["diagnostics_"] = records
        found["n_iter_"] = max(1, int(result.nit))
        if result.status == 1:
            self._warn(
                Solution(
                    weights, float(result.fun), "iterations", int(result.nit), records
                )
            )
        return found


class JointObjective:
    """Loss of instance weights u and attribute weights w: value and gradient."""

    def __init__(
        self, problem: Problem, task: Task, owner: WeightedNB, strength: float
    ) -> None:
        self._problem = problem
        self._task = task
        self._estimation = owner._estimation()
        self._strength = strength
        self._last: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None

    def slope(self, lower: NDArray[np.float64], upper: NDArray[np.float64]) -> float:
        """Return the largest projected gradient where it was last asked for."""
        if self._last is None:
            return float("nan")
        step = projected_gradient(*self._last, lower, upper)
        return float(np.abs(step).max(initial=0.0))

    def at(self, learned: NDArray[np.float64]) -> Problem:
        """Return the problem of attribute weights under some instance weights."""
        return self._problem.with_counts(self._task.count(learned))

    def __call__(
        self, vector: NDArray[np.float64]
    ) -> tuple[float, NDArray[np.float64]]:
        """Return the objective and its gradient at (u, w)."""
        task = self._task
        n = task.codes.n_rows
        learned, weights = vector[:n], vector[n:]
        problem = self.at(learned)
        value, d_weights, d_table, d_prior = problem.objective.with_tables(weights)
        own = 1.0 if task.weights is None else task.weights
        d_rows = own * self._by_row(problem, d_table, d_prior)
        away = learned - 1.0
        value += self._strength * float((own * away * away).sum())
        d_rows += 2.0 * self._strength * own * away
        gradient = np.concatenate([d_rows, d_weights])
        self._last = vector.copy(), gradient
        return value, gradient

    def _by_row(
        self,
        problem: Problem,
        d_table: NDArray[np.float64],
        d_prior: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Return the derivative with respect to each row's weight in the counts."""
        task, counts = self._task, problem.counts
        schema, smoothing = counts.schema, self._estimation.smoothing
        table = FeatureTable(counts.by_code, schema.offsets)
        added = smoothing.value_counts(counts)
        known = counts.by_code.copy()
        known[schema.first_codes] = 0.0
        gradient = d_table.copy()
        gradient[schema.first_codes] = 0.0
        totals = table.collect(known) + (added * schema.n_values)[:, None]
        per_class = table.collect(gradient) / np.where(totals > 0, totals, 1.0)
        smoothed = known + table.spread(added)[:, None]
        slope = gradient / smoothed - table.spread(per_class)
        slope[schema.first_codes] = 0.0
        prior = counts.by_class + smoothing.prior_counts(counts)
        base = d_prior / prior - d_prior.sum() / prior.sum()
        scores = np.tile(base, (task.codes.n_rows, 1))
        for block in task.codes.blocks:
            starts, values = spread_table(block, task.codes, slope)
            scoring.gather(block.values, starts, values, scores)
        return np.take_along_axis(scores, task.labels[:, None].astype(np.int64), 1)[
            :, 0
        ]
