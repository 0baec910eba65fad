"""Strengths of a hierarchy of weights, and its pairs, chosen by cross-validation."""

from __future__ import annotations

from copy import copy
from dataclasses import asdict, dataclass, field, replace
from functools import partial

import numpy as np

from steelyard._common.arrays import Floats
from steelyard._common.threads import run, thread_count
from steelyard.fitting.default.column_pairs import (
    ColumnPair,
    RankedPairs,
    joined,
    rank_pairs,
)
from steelyard.fitting.default.held_out import Fold, HeldOutFolds, Judgement
from steelyard.fitting.problem import build_problem, weigh_rows
from steelyard.fitting.recipe import Penalty, Recipe
from steelyard.solvers import LBFGS
from steelyard.weighting import HierarchicalWeighting


@dataclass(frozen=True)
class Strengths:
    """How strongly each level of weights is drawn towards the one above it."""

    shared: float
    by_class: float
    by_value: float
    by_pair: float = 2.5

    def weighting(self, intercept: float) -> HierarchicalWeighting:
        """Return the weighting with these strengths."""
        return HierarchicalWeighting(
            **asdict(self), intercept=intercept, overall=np.inf
        )


# From strong to weak: each fit starts from the one before it.
GRID = (
    Strengths(10.0, 40.0, 10.0),
    Strengths(2.5, 10.0, 2.5),
    Strengths(2.5, 10.0, 0.5),
    Strengths(0.5, 2.5, 0.5),
    Strengths(0.5, 1.0, 0.15),
)

# Strengths of pairs that are tried, as shares of that of value effects.
_SHARES = (4.0, 1.0, 0.3)

# Relative accuracy of the fits that are compared.
_ROUGH_TOL = 3e-3

# Pairs of a model, by column and in all.
_MAX_PAIRS_PER_COLUMN = 2
_MAX_PAIRS = 30


@dataclass(frozen=True)
class Choice:
    """Strengths, the scale of posteriors and pairs of columns."""

    strengths: Strengths
    scale: float = 1.0
    pairs: list[ColumnPair] = field(default_factory=list)
    path: list[dict[str, float]] = field(default_factory=list)
    """Records of all that was compared."""


def choose(
    recipe: Recipe,
    held: HeldOutFolds,
    grid: tuple[Strengths, ...],
    pairs: str | int | list[ColumnPair] | None,
) -> Choice:
    """Choose strengths by cross-validated log-loss, and whether pairs pay.

    Everything is learned from scratch in each fold: counts, instance weights, weights,
    and the ranking of pairs.
    """
    if not held.folds:
        path = [{**_named(entry), "log_loss": np.nan, "scale": 1.0} for entry in grid]
        listed = pairs if isinstance(pairs, list) else []
        return Choice(grid[0], pairs=listed, path=path)
    threads = thread_count(held.training.n_jobs)
    fits = list(run(partial(_FoldFit, recipe), held.folds, threads))
    judged = _judged(held, fits, grid)
    best = _best(judged)
    path = [{**_named(entry), **judgement.record()} for entry, judgement in judged]
    choice = Choice(judged[best][0], judged[best][1].scale, [], path)
    ranked = _ranked(held, judged[best][1], pairs)
    if not ranked.overall:
        return choice
    pairs_of_fits = list(zip(fits, ranked.by_fold, strict=True))
    fits = list(run(lambda fit: fit[0].with_pairs(fit[1]), pairs_of_fits, threads))
    with_pairs = _with_pairs(held, fits, grid[: best + 1])
    path = path + [
        {**_named(e), "by_pair": e.by_pair, **j.record()} for e, j in with_pairs
    ]
    entry, judgement = with_pairs[_best(with_pairs)]
    gain = judged[best][1].log_loss - judgement.log_loss
    if pairs == "auto" and gain <= judgement.standard_error(judged[best][1]):
        return replace(choice, path=path)
    return Choice(entry, judgement.scale, ranked.overall, path)


def _named(entry: Strengths) -> dict[str, float]:
    """Return the strengths of main effects by name."""
    named = asdict(entry)
    del named["by_pair"]
    return named


def _best(judged: list[tuple[Strengths, Judgement]]) -> int:
    return int(np.argmin([judgement.log_loss for _, judgement in judged]))


def _ranked(
    held: HeldOutFolds, judgement: Judgement, pairs: str | int | list[ColumnPair] | None
) -> RankedPairs:
    """Rank pairs by the residuals of main effects, or take those that are listed."""
    if pairs is None or isinstance(pairs, list):
        listed = pairs or []
        return RankedPairs([listed] * len(held.folds), listed)
    share, u = judgement.posteriors(), held.weights[:, None]
    residual = -share
    residual[np.arange(len(share)), held.labels] += 1.0
    most = min(_MAX_PAIRS_PER_COLUMN * held.training.schema.n_columns, _MAX_PAIRS)
    most = most if pairs == "auto" else int(pairs)
    curvature = u * share * (1.0 - share)
    rows = replace(held.training.take(held.rows), sample_weight=held.weights)
    return rank_pairs(rows, u * residual, curvature, held.ends, most)


def _with_pairs(
    held: HeldOutFolds, fits: list[_FoldFit], grid: tuple[Strengths, ...]
) -> list[tuple[Strengths, Judgement]]:
    """Judge strengths with pairs.

    Every share of the last of the grid, which is best without pairs; then the next
    stronger one with the best share.
    """
    entries = tuple(replace(grid[-1], by_pair=s * grid[-1].by_value) for s in _SHARES)
    judged = _judged(held, fits, entries)
    share = _SHARES[_best(judged)]
    stronger = tuple(replace(e, by_pair=share * e.by_value) for e in grid[-2:-1])
    return judged + _judged(held, fits, stronger)


def _judged(
    held: HeldOutFolds, fits: list[_FoldFit], grid: tuple[Strengths, ...]
) -> list[tuple[Strengths, Judgement]]:
    """Fit strengths in each fold, from strong to weak, until they get worse."""
    threads = thread_count(held.training.n_jobs)
    judged: list[tuple[Strengths, Judgement]] = []
    for entry in grid:
        posteriors = run(partial(_FoldFit.posteriors, entry=entry), fits, threads)
        judgement = held.judge(np.concatenate(list(posteriors)))
        judged.append((entry, judgement))
        best = judged[_best(judged)][1]
        if judgement.log_loss - best.log_loss > judgement.standard_error(best):
            break
    return judged


class _FoldFit:
    """Fits of one strength after the other to some rows, each from the one before."""

    def __init__(self, recipe: Recipe, fold: Fold) -> None:
        self._fold, self._recipe = fold, replace(recipe, tol=_ROUGH_TOL)
        if isinstance(recipe.solver, str) and recipe.solver in ("auto", "lbfgs"):
            rough = LBFGS(_ROUGH_TOL, recipe.max_iter)
            self._recipe = replace(self._recipe, solver=rough)
        weighed = weigh_rows(recipe, fold.training)
        self._learned = None if weighed is None else weighed.weights
        self._problem = build_problem(recipe, fold.training, self._learned)
        self._start: Floats | None = None

    def with_pairs(self, pairs: list[ColumnPair]) -> _FoldFit:
        """Return fits with pairs of columns, which start from the last without."""
        if not pairs:
            return self
        out, part = copy(self), joined(self._fold.training, pairs)
        codes = self._fold.codes.with_pairs(part.schema, part.n_jobs)
        out._fold = replace(self._fold, training=part, codes=codes)
        out._problem = build_problem(self._recipe, part, self._learned, self._problem)
        weighting = self._recipe.weighting
        assert isinstance(weighting, HierarchicalWeighting) and self._start is not None
        evidence = self._problem.evidence, out._problem.evidence
        out._start = weighting.with_pairs(self._start, *evidence)
        return out

    def posteriors(self, entry: Strengths) -> Floats:
        """Fit the strengths; return log posteriors of the rows held out."""
        assert isinstance(self._recipe.weighting, HierarchicalWeighting)
        problem = self._problem
        weighting = entry.weighting(self._recipe.weighting.intercept)
        ridge = Penalty(*weighting.strengths(problem.evidence))
        objective = replace(problem.objective, penalty=ridge)
        problem = replace(problem, objective=objective)
        self._start = problem.solve(self._recipe, self._start).weights
        return problem.model(self._start).log_proba(self._fold.codes)
