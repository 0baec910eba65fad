"""Solvers: from an objective and bounds to weights and a record of the way there."""

from __future__ import annotations

from typing import Any

from steelyard.exceptions import ParameterError
from steelyard.solvers.base import (
    AnyObjective,
    Box,
    Fixed,
    Metric,
    Solution,
    Solver,
    Units,
    keeps_growing,
)
from steelyard.solvers.constrained import Cone, ConstrainedNewton
from steelyard.solvers.lbfgs import LBFGS, SpectralGradient, published_lbfgs
from steelyard.solvers.newton import MAX_ASSEMBLED, Newton

__all__ = [
    "LBFGS",
    "SOLVERS",
    "Box",
    "Cone",
    "ConstrainedNewton",
    "Fixed",
    "Metric",
    "Newton",
    "Solution",
    "Solver",
    "SpectralGradient",
    "Units",
    "keeps_growing",
    "resolve_solver",
]

SOLVERS = ("auto", "newton", "lbfgs", "published", "fixed")


def resolve_solver(
    setting: Any,
    objective: AnyObjective,
    tol: float,
    max_iter: int,
    box: Box | None = None,
) -> Solver:
    """Return the solver that a setting names, after checking that it can do the job.

    Linear constraints have one solver, whatever the setting.
    """
    if isinstance(box, Cone):
        return ConstrainedNewton(tol=tol, max_iter=max_iter)
    if isinstance(setting, Solver):
        solver = setting
    elif not isinstance(setting, str) or setting not in SOLVERS:
        words = ", ".join(repr(name) for name in SOLVERS)
        raise ParameterError(
            f"The 'solver' parameter must be one of {words}, or a Solver object. Got "
            f"{setting!r} instead."
        )
    elif setting == "fixed":
        solver = Fixed()
    elif setting == "published":
        solver = published_lbfgs()
    elif setting == "lbfgs":
        solver = LBFGS(tol=tol, max_iter=max_iter)
    elif setting == "newton" or _newton_pays(objective):
        solver = Newton(tol=tol, max_iter=max_iter)
    elif setting == "auto" and _is_wide(objective):
        solver = SpectralGradient(tol=tol, max_iter=max_iter)
    else:
        solver = LBFGS(tol=tol, max_iter=max_iter)
    reason = solver.refuses(objective)
    if reason:
        raise ParameterError(
            f"solver={setting!r} cannot be used here: {reason} Use solver='lbfgs' or "
            "solver='auto'."
        )
    return solver


def _is_wide(objective: AnyObjective) -> bool:
    # Not weights per value, which rows often determine but barely: on digits L-BFGS-B
    # ended at a quarter of the squared error after as many passes.
    return objective.has_hessian and objective.size > MAX_ASSEMBLED


def _newton_pays(objective: AnyObjective) -> bool:
    # With Hessian-vector products alone it pays sometimes (CAVWNB-CLL on breast cancer:
    # 1.6 s against 4.0 s of L-BFGS-B) and sometimes not at all (digits: 153 s against
    # 10 s).
    return (
        objective.has_hessian
        and objective.size <= MAX_ASSEMBLED
        and not Newton().refuses(objective)
    )
