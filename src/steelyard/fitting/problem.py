"""One fit: probabilities, the objective within its bounds, and the solution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.exceptions import ParameterError
from steelyard.fitting.objective import Objective
from steelyard.fitting.penalty import Penalty
from steelyard.losses import DevianceLoss, ExponentialLoss
from steelyard.model.combined import MixtureModel
from steelyard.model.table_model import NBModel
from steelyard.proba import GaussianTable
from steelyard.proba.counts import Counts
from steelyard.proba.estimation import Estimation
from steelyard.solvers import Fixed, Solution, keeps_growing, resolve_solver
from steelyard.table.schema import TableSchema
from steelyard.weighting import Effect, Evidence, MixtureWeighting, Weighting

__all__ = ["Problem", "attribute_bounds", "make_penalty"]


@dataclass(frozen=True)
class Problem:
    """Probabilities from counts, and the objective and bounds of the weights."""

    counts: Counts
    evidence: Evidence
    gaussian: GaussianTable
    objective: Objective
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    start: NDArray[np.float64]
    """Weights that a solver starts from."""

    estimation: Estimation
    """How the probabilities come from counts."""

    found: Mapping[str, Any] = field(default_factory=dict)
    """Fitted attributes that are known before weights are learned."""

    def start_solution(self) -> Solution:
        """Return the start as if it were a solution."""
        weights = np.clip(self.start, self.lower, self.upper)
        return Solution(weights, np.nan, "converged", 0)

    def with_counts(self, counts: Counts) -> Problem:
        """Return the same problem with other counts and the tables made from them."""
        log_prior, table, gaussian = self.estimation.tables(counts)
        evidence = replace(self.evidence, log_prior=log_prior, table=table)
        rows = replace(self.objective.rows, gaussian=gaussian)
        objective = replace(self.objective, rows=rows, evidence=evidence)
        return replace(
            self,
            counts=counts,
            evidence=evidence,
            gaussian=gaussian,
            objective=objective,
        )

    def solve(
        self,
        setting: Any,
        tol: float,
        max_iter: int,
        start: NDArray[np.float64] | None = None,
    ) -> Solution:
        """Minimise by the solver that a setting names."""
        objective = self.objective
        solver = resolve_solver(setting, objective, tol, max_iter)
        start = self.start if start is None else start
        if isinstance(objective.loss, ExponentialLoss) and setting in (
            "auto",
            "newton",
            "lbfgs",
        ):
            # Newton's method lowers a large exponential by one unit of its exponent per
            # step; the deviance with multiplier 2 has nearly the same minimiser and
            # leads there in a few steps.
            near = Objective(
                objective.rows,
                self.evidence,
                objective.weighting,
                DevianceLoss(2.0),
                objective.penalty,
                objective.n_jobs,
            )
            quick = resolve_solver(setting, near, max(tol, 1e-5), max_iter)
            start = quick.minimize(near, start, self.lower, self.upper).weights
        solution = solver.minimize(objective, start, self.lower, self.upper)
        if isinstance(solver, Fixed):
            return solution
        if solution.status == "converged" and keeps_growing(
            objective, solution.weights, solution.value, self.lower, self.upper
        ):
            return replace(solution, status="separable")
        return solution

    def named(self, weights: NDArray[np.float64]) -> dict[str, Any]:
        """Name weights as fitted attributes of a classifier."""
        return {
            **self.objective.weighting.fitted(weights, self.evidence),
            **self.found,
        }

    def model(
        self, weights: NDArray[np.float64], classes: NDArray[Any], link_scale: float
    ) -> NBModel | MixtureModel:
        """Return the model with these weights."""
        weighting = self.objective.weighting
        if isinstance(weighting, MixtureWeighting):
            alpha, specific, shared = weighting.apply_halves(weights, self.evidence)
            return MixtureModel(
                alpha,
                self._plain(specific, classes, link_scale),
                self._plain(shared, classes, link_scale),
            )
        effect = weighting.apply(weights, self.evidence)
        return self._plain(effect, classes, link_scale)

    def _plain(
        self, effect: Effect, classes: NDArray[Any], link_scale: float
    ) -> NBModel:
        multipliers = np.ascontiguousarray(effect.multipliers)
        gaussian = self.gaussian.weighted(multipliers)
        return NBModel(
            self.evidence.schema,
            classes,
            effect.base,
            np.ascontiguousarray(effect.table),
            gaussian,
            link_scale,
        )


def attribute_bounds(
    setting: Any, schema: TableSchema
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return lower and upper bounds per attribute, each of shape (d,).

    Parameters
    ----------
    setting : None, pair, array of shape (d, 2) or mapping
        No bounds, the same for all, one pair for each attribute, or a mapping from name
        or position to pair.
    schema : TableSchema
        The attributes.

    Returns
    -------
    tuple of ndarray
        Lower and upper bounds.
    """
    d = len(schema)
    pairs = np.tile([-np.inf, np.inf], (d, 1))
    if isinstance(setting, Mapping):
        names = schema.labels()
        for key, pair in setting.items():
            if isinstance(key, str) and key in names:
                pairs[names.index(key)] = _pair(pair)
            elif isinstance(key, Integral) and -d <= int(key) < d:
                pairs[int(key)] = _pair(pair)
            else:
                raise ParameterError(
                    f"`bounds` names {key!r}, which is no column. Columns: "
                    f"{', '.join(names)}; or give positions from 0 to {d - 1}."
                )
    elif setting is not None:
        given = np.asarray(setting, dtype=object)
        if given.shape == (2,):
            pairs[:] = _pair(setting)
        elif given.shape == (d, 2):
            pairs[:] = [_pair(pair) for pair in given.tolist()]
        else:
            raise ParameterError(
                "The 'bounds' parameter must be None, a pair (low, high), one pair for "
                f"each of the {d} attributes, or a mapping from attribute to pair. Got "
                f"{setting!r} instead."
            )
    return pairs[:, 0], pairs[:, 1]


def _pair(pair: Any) -> tuple[float, float]:
    """Return one pair of bounds as numbers, checked."""
    try:
        low, high = pair
        low = -np.inf if low is None else float(low)
        high = np.inf if high is None else float(high)
    except (TypeError, ValueError):
        raise ParameterError(
            f"Each of `bounds` must be a pair (low, high) of numbers, with None for "
            f"none. Got {pair!r} instead."
        ) from None
    if low > high:
        raise ParameterError(
            f"`bounds` has a lower bound above the upper one ({low:g} > {high:g}). "
            "Give them as (low, high)."
        )
    if not (low < np.inf and high > -np.inf):
        raise ParameterError(
            f"`bounds` leaves no finite weight between {low:g} and {high:g}. Use "
            "numbers, with None for no bound."
        )
    return low, high


def make_penalty(
    kind: str | None,
    strength: float,
    center: float,
    weighting: Weighting,
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
) -> Penalty | None:
    """Return the penalty on the weights, None without one.

    Parameters
    ----------
    kind : {"ridge", "l1", None}
        Which distance is penalised.
    strength, center : float
        Factor, and where weights are pulled to.
    weighting : Weighting
        What the weights are; the share of a mixture is not penalised.
    lower, upper : ndarray of shape (p,)
        Bounds of the weights.

    Returns
    -------
    Penalty or None
        The penalty.
    """
    if kind is None or strength == 0.0:
        return None
    free = 1 if weighting.is_mixture else 0
    if kind == "ridge":
        return Penalty(strength, center, None, free)
    sign = np.where(lower >= center, 1.0, np.where(upper <= center, -1.0, 0.0))
    if not sign[free:].all():
        raise ParameterError(
            f"penalty='l1' towards {center:g} needs bounds that keep every weight on "
            "one side of it, where it is smooth: for example bounds=(0, 1) for "
            "center=1, or bounds=(0, inf) for center=0. Or use penalty='ridge'."
        )
    return Penalty(strength, center, sign, free)
