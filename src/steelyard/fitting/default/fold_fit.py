"""Fits to the rows of one fold, judged by those held out."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from steelyard._common.arrays import Floats
from steelyard.fitting.default.column_pairs import ColumnPair, joined
from steelyard.fitting.default.held_out import Fold
from steelyard.fitting.problem import build_problem, weigh_rows
from steelyard.fitting.recipe import Penalty, Recipe
from steelyard.fitting.shapes import resolve_shapes
from steelyard.solvers import LBFGS
from steelyard.weighting import HierarchicalWeighting

if TYPE_CHECKING:
    from steelyard.fitting.default.strengths import Strengths

# Relative accuracy of the fits that are compared.
_ROUGH_TOL = 3e-3


class FoldFit:
    """Fits of one strength after the other to some rows, each from the one before."""

    def __init__(self, recipe: Recipe, fold: Fold) -> None:
        self._fold, self._recipe = fold, replace(recipe, tol=_ROUGH_TOL)
        if isinstance(recipe.solver, str) and recipe.solver in ("auto", "lbfgs"):
            rough = LBFGS(_ROUGH_TOL, recipe.max_iter)
            self._recipe = replace(self._recipe, solver=rough)
        weighed = weigh_rows(recipe, fold.training)
        self._learned = None if weighed is None else weighed.weights
        self._problem = build_problem(recipe, fold.training, self._learned)
        self._waiting: list[ColumnPair] = []
        self._start: Floats | None = None

    def with_pairs(self, pairs: list[ColumnPair]) -> FoldFit:
        """Return fits with pairs of columns, which start from the last without.

        Pairs are joined by the first fit: there may be none.
        """
        out = copy(self)
        out._waiting = pairs
        return out

    def _join(self) -> None:
        """Join the pairs that wait for it."""
        pairs, self._waiting = self._waiting, []
        if not pairs:
            return
        before, part = self._problem, joined(self._fold.training, pairs)
        codes = self._fold.codes.with_pairs(part.schema, part.n_jobs)
        self._fold = replace(self._fold, training=part, codes=codes)
        self._problem = build_problem(self._recipe, part, self._learned, before)
        weighting = self._recipe.weighting
        assert isinstance(weighting, HierarchicalWeighting) and self._start is not None
        evidence = before.evidence, self._problem.evidence
        self._start = weighting.with_pairs(self._start, *evidence)

    def shaped(self, constraints: Any, classes: NDArray[Any]) -> FoldFit:
        """Return the same fits under constraints."""
        out, schema = copy(self), self._fold.training.schema
        shapes = resolve_shapes(constraints, schema, classes)
        out._problem = replace(self._problem, shapes=shapes)
        return out

    def posteriors(self, entry: Strengths) -> Floats:
        """Fit the strengths; return log posteriors of the rows held out."""
        assert isinstance(self._recipe.weighting, HierarchicalWeighting)
        self._join()
        problem = self._problem
        weighting = entry.weighting(self._recipe.weighting.intercept)
        ridge = Penalty(*weighting.strengths(problem.evidence))
        objective = replace(problem.objective, penalty=ridge)
        problem = replace(problem, objective=objective)
        self._start = problem.solve(self._recipe, self._start).weights
        return problem.model(self._start).log_proba(self._fold.codes)
