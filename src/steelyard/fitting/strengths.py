"""Strengths of a hierarchy of weights, and its pairs, chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard.fitting.held_out import Fold, HeldOut, Judgement
from steelyard.fitting.pairs import ColumnPair, RankedPairs, rank_pairs, sides
from steelyard.fitting.penalty import Penalty
from steelyard.fitting.problem import build_problem
from steelyard.fitting.recipe import Recipe
from steelyard.fitting.weights import weigh_rows
from steelyard.model.training import TrainingSet
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
_PAIR_SHARES = (4.0, 1.0, 0.3)

# Relative accuracy of the fits that are compared.
_ROUGH_TOL = 1e-4

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

    pair_scores: dict[ColumnPair, float] = field(default_factory=dict)
    """What main effects leave over in the cells of each pair."""


def choose(
    recipe: Recipe,
    held: HeldOut,
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
    none: list[list[ColumnPair]] = [[] for _ in held.folds]
    judged = list(_judged(recipe, held, grid, none))
    best = int(np.argmin([judgement.log_loss for judgement in judged]))
    path = [
        {**_named(entry), **judgement.record()}
        for entry, judgement in zip(grid, judged, strict=True)
    ]
    choice = Choice(grid[best], judged[best].scale, [], path)
    if pairs is None:
        return choice
    ranked = _ranked(held, judged[best], pairs)
    if not ranked.overall:
        return choice
    tried = _with_pairs(recipe, held, grid[: best + 1][-2:], ranked)
    with_pairs = [(entry, judgement) for entry, judgement in tried]
    entry, judgement = min(with_pairs, key=lambda pair: pair[1].log_loss)
    path = path + [
        {**_named(e), "by_pair": e.by_pair, **j.record()} for e, j in with_pairs
    ]
    gain = judged[best].log_loss - judgement.log_loss
    if pairs == "auto" and not gain > judgement.standard_error(judged[best]):
        return replace(choice, path=path)
    return Choice(entry, judgement.scale, ranked.overall, path, ranked.scores)


def _named(entry: Strengths) -> dict[str, float]:
    """Return the strengths of main effects by name."""
    named = asdict(entry)
    del named["by_pair"]
    return named


def _ranked(
    held: HeldOut, judgement: Judgement, pairs: str | int | list[ColumnPair]
) -> RankedPairs:
    """Rank pairs by the residuals of main effects, or take those that are listed."""
    if isinstance(pairs, list):
        return RankedPairs([pairs] * len(held.folds), pairs, {})
    share, u = judgement.posteriors(), held.weights[:, None]
    residual = -share
    residual[np.arange(len(share)), held.labels] += 1.0
    most = min(_MAX_PAIRS_PER_COLUMN * held.training.schema.n_columns, _MAX_PAIRS)
    rows = held.training.take(held.rows)
    return rank_pairs(
        rows,
        u * residual,
        u * share * (1.0 - share),
        held.ends,
        most if pairs == "auto" else int(pairs),
    )


def _with_pairs(
    recipe: Recipe, held: HeldOut, grid: tuple[Strengths, ...], ranked: RankedPairs
) -> Iterator[tuple[Strengths, Judgement]]:
    """Yield strengths with pairs and how they do: all shares at the best of main
    effects, then the next stronger with the best share.
    """
    *stronger, best = grid
    entries = [replace(best, by_pair=s * best.by_value) for s in _PAIR_SHARES]
    judged = list(_judged(recipe, held, entries, ranked.by_fold))
    yield from zip(entries, judged, strict=True)
    share = _PAIR_SHARES[int(np.argmin([j.log_loss for j in judged]))]
    entries = [replace(entry, by_pair=share * entry.by_value) for entry in stronger]
    judged = list(_judged(recipe, held, entries, ranked.by_fold))
    yield from zip(entries, judged, strict=True)


def _judged(
    recipe: Recipe,
    held: HeldOut,
    grid: Iterable[Strengths],
    pairs: list[list[ColumnPair]],
) -> Iterator[Judgement]:
    """Fit each of the strengths in each fold; yield how they do."""
    grid = list(grid)
    by_fold = [
        list(_posteriors(recipe, grid, fold, of_fold))
        for fold, of_fold in zip(held.folds, pairs, strict=True)
    ]
    for log_proba in zip(*by_fold, strict=True):
        yield held.judge(np.concatenate(log_proba))


def _posteriors(
    recipe: Recipe, grid: list[Strengths], fold: Fold, pairs: list[ColumnPair]
) -> Iterator[NDArray[np.float64]]:
    """Fit each of the strengths to some rows; yield log posteriors of others."""
    part, codes = fold.training, fold.codes
    weighed = weigh_rows(recipe, part)
    if pairs:
        part = joined(part, pairs)
        codes = codes.with_pairs(part.schema, part.n_jobs)
    problem = build_problem(recipe, part, None if weighed is None else weighed.weights)
    rough = replace(recipe, tol=_ROUGH_TOL)
    if isinstance(recipe.solver, str) and recipe.solver in ("auto", "lbfgs"):
        rough = replace(rough, solver=LBFGS(_ROUGH_TOL, recipe.max_iter))
    assert isinstance(recipe.weighting, HierarchicalWeighting)
    start: Any = None
    for entry in grid:
        weighting = entry.weighting(recipe.weighting.intercept)
        ridge = Penalty(*weighting.strengths(problem.evidence))
        objective = replace(problem.objective, penalty=ridge)
        problem = replace(problem, objective=objective)
        start = problem.solve(rough, start).weights
        yield problem.model(start).log_proba(codes, part.n_jobs)


def joined(training: TrainingSet, pairs: list[ColumnPair]) -> TrainingSet:
    """Return the same rows with pairs of columns as further attributes."""
    return training.with_pairs(sides(training, pairs)) if pairs else training
