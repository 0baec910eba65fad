"""Solvers: from an objective and bounds to weights and a record of the way there."""

from __future__ import annotations

from steelyard.solvers.base import (
    SOLVERS,
    Box,
    Fixed,
    LowRankPreconditioner,
    Preconditioner,
    Solution,
    Solver,
    keeps_growing,
    resolve_solver,
)
from steelyard.solvers.constrained import (
    Cone,
    ConstrainedNewton,
    GradientDescent,
    SpectralGradient,
)
from steelyard.solvers.lbfgs import LBFGS
from steelyard.solvers.newton import Newton

__all__ = [
    "LBFGS",
    "SOLVERS",
    "Box",
    "Cone",
    "ConstrainedNewton",
    "Fixed",
    "GradientDescent",
    "LowRankPreconditioner",
    "Newton",
    "Preconditioner",
    "Solution",
    "Solver",
    "SpectralGradient",
    "keeps_growing",
    "resolve_solver",
]
