"""Strengths of a hierarchy of weights, and its pairs, chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard._common import progress
from steelyard._common.arrays import Floats
from steelyard._common.threads import run, thread_count
from steelyard.fitting.default.column_pairs import (
    ColumnPair,
    PairScores,
    RankedPairs,
    joined,
    score_columns,
)
from steelyard.fitting.default.held_out import Fold, HeldOutFolds, Judgement
from steelyard.fitting.problem import build_problem, weigh_rows
from steelyard.fitting.recipe import Penalty, Recipe
from steelyard.fitting.shapes import resolve_shapes
from steelyard.solvers import LBFGS
from steelyard.weighting import HierarchicalWeighting


@dataclass(frozen=True)
class Strengths:
    """How strongly each level of weights is drawn towards the one above it."""

    shared: float
    by_class: float
    by_value: float
    by_pair: float = 2.5
    intervals: float = 1.0
    """Factor on the first three for coarse bins beside finer ones, which make steps."""

    def weighting(self, intercept: float) -> HierarchicalWeighting:
        """Return the weighting with these strengths."""
        return HierarchicalWeighting(
            **asdict(self), intercept=intercept, overall=np.inf
        )


# From strong to weak. The search begins in the middle: most tables are near it.
GRID = (
    Strengths(160.0, 640.0, 160.0),
    Strengths(40.0, 160.0, 40.0),
    Strengths(10.0, 40.0, 10.0),
    Strengths(2.5, 10.0, 2.5),
    Strengths(2.5, 10.0, 0.5),
    Strengths(0.5, 2.5, 0.5),
    Strengths(0.5, 1.0, 0.15),
)
_MIDDLE = 2

# How many times more strongly coarse bins are held where steps do not pay.
_NO_STEPS = 30.0

# Strengths of pairs that are tried: of those that promise something alone, from strong
# to weak until they get worse, and of all, since some only tell together.
_BY_PAIR = (40.0, 10.0, 2.5, 0.6, 0.15)
_OPEN = (0.1, 0.02)

# Relative accuracy of the fits that are compared.
_ROUGH_TOL = 3e-3

# Pairs of a model, by column and in all: of those that promise something alone, and of
# those that may together.
_MAX_PAIRS_PER_COLUMN, _MAX_PAIRS = 2, 30
_MORE_PAIRS_PER_COLUMN, _MORE_PAIRS = 3, 60

# Pairs with scores of so many times the noise are tried by themselves first.
_SURE = 3.0

# Standard errors, and log-loss, that the longest list must gain: it is tried several
# times, and nobody reads sixty pairs for next to nothing.
_LEAST_GAIN_OF_MORE = (2.0, 1e-3)

# Differences of log-loss that are rounding, not more.
_NO_GAP = 1e-6

_Judged = tuple[Strengths, Judgement]


class ShapeLosses(NamedTuple):
    """What shapes of curves cost on held-out rows."""

    free: float
    shaped: float
    standard_error: float
    """That of the difference."""


@dataclass(frozen=True)
class Choice:
    """Strengths, the scale of posteriors and pairs of columns."""

    strengths: Strengths
    scale: float = 1.0
    pairs: list[ColumnPair] = field(default_factory=list)
    path: list[dict[str, float]] = field(default_factory=list)
    """Records of all that was compared."""

    held_out: tuple[Floats, Floats] | None = None
    """Posteriors of all rows while they were held out, and weights of the rows."""

    shape_losses: ShapeLosses | None = None
    """Log-loss without and with shapes, and the standard error of the difference."""

    def of_more_rows(self, share: float) -> Choice:
        """Return the choice for a table of which a share of the rows was compared.

        What a model of some rows is too sure of, one of more rows is less.
        """
        held_out = self.held_out if share == 1.0 else None
        return replace(self, scale=self.scale**share, held_out=held_out)


def choose(
    recipe: Recipe,
    held: HeldOutFolds,
    grid: tuple[Strengths, ...],
    pairs: str | int | list[ColumnPair] | None,
    excluded: Collection[int] = (),
) -> Choice:
    """Choose strengths by cross-validated log-loss, and whether pairs pay.

    Everything is learned from scratch in each fold: counts, instance weights, weights,
    and the ranking of pairs, which ``excluded`` columns have no part in. Shapes of
    curves come last, with a scale of their own.
    """
    if not held.folds:
        path = [{**_named(entry), "log_loss": np.nan, "scale": 1.0} for entry in grid]
        listed = pairs if isinstance(pairs, list) else []
        return Choice(grid[0], pairs=listed, path=path)
    search = _StrengthSearch(replace(recipe, constraints=None), held, excluded)
    search.main_effects(grid)
    if isinstance(pairs, list):
        search.pairs(RankedPairs([pairs] * len(held.folds), pairs), least_gain=None)
    elif pairs == "auto":
        search.promising_pairs()
    elif pairs:
        search.pairs(search.scores().best(int(pairs)), least_gain=None)
    if recipe.constraints:
        search.shapes(recipe.constraints)
    return search.choice


class _StrengthSearch:
    """What is compared, one after the other, each with the best so far."""

    def __init__(
        self, recipe: Recipe, held: HeldOutFolds, excluded: Collection[int] = ()
    ) -> None:
        self._held, self._threads = held, thread_count(held.training.n_jobs)
        self._fits = list(run(partial(_FoldFit, recipe), held.folds, self._threads))
        self._best_fits, self._excluded = self._fits, excluded
        self._shape_losses: ShapeLosses | None = None
        self._pairs: list[ColumnPair] = []
        self._path: list[dict[str, float]] = []
        self._best: _Judged
        self._most = len(GRID) + 1 + len(_BY_PAIR) + len(_OPEN) + 1
        """About how many are compared at most, for who waits."""

    @property
    def choice(self) -> Choice:
        """What is best."""
        entry, judgement = self._best
        held_out = judgement.posteriors(), judgement.weights
        return Choice(
            *(entry, judgement.scale, self._pairs, self._path, held_out),
            self._shape_losses,
        )

    def shapes(self, constraints: Any) -> None:
        """Fit what is best again with shapes of curves."""
        (entry, free), classes = self._best, self._held.training.classes
        fits = [fit.shaped(constraints, classes) for fit in self._best_fits]
        self._best = entry, shaped = self._walk(fits, (entry,))[0]
        error = shaped.standard_error(free)
        self._shape_losses = ShapeLosses(free.log_loss, shaped.log_loss, error)

    def main_effects(self, grid: tuple[Strengths, ...]) -> None:
        """Walk along the grid, its own default both ways from the middle.

        Coarse bins, which make steps, are held back unless they pay. What is about as
        good as the best has a share in the strengths.
        """
        first = _MIDDLE if grid == GRID else 0
        judged = self._walk(self._fits, grid[first:])
        if judged[0] is _best(judged):
            judged = self._walk(self._fits, grid[:first][::-1], judged)
        steps = [_best(judged)]
        if self._held.training.schema.is_coarser.any():
            without = replace(steps[0][0], intervals=_NO_STEPS)
            steps = self._walk(self._fits, (without,), steps)
        self._best = _best(steps)
        mean = replace(_average(judged), intervals=_average(steps).intervals)
        if mean != self._best[0]:
            found = self._walk(self._fits, (mean,))[0]
            if not self._best[1].is_better(found[1]):
                self._best = found

    def promising_pairs(self) -> None:
        """Join pairs that surely tell something, that may alone, that may together.

        The longer a list, the more of its pairs are noise on a table of many columns.
        """
        scores, n = self.scores(), self._held.training.schema.n_columns
        for least in (_SURE, 0.0):
            self.pairs(scores.best(min(_MAX_PAIRS_PER_COLUMN * n, _MAX_PAIRS), least))
        more = scores.best(min(_MORE_PAIRS_PER_COLUMN * n, _MORE_PAIRS), -np.inf)
        again = {self._best[0].by_pair} if self._pairs else set()
        fits = self._joined(more)
        for by_pair in sorted({*again, *_OPEN}, reverse=True):
            # Each starts from the main effects.
            self._try(map(copy, fits), more, (by_pair,), _LEAST_GAIN_OF_MORE)

    def pairs(
        self,
        ranked: RankedPairs,
        least_gain: tuple[float, float] | None = (1.0, 0.0),
    ) -> None:
        """Join pairs where they gain that, as `is_better` says; None: in any case."""
        self._try(self._joined(ranked), ranked, _BY_PAIR, least_gain)

    def _joined(self, ranked: RankedPairs) -> list[_FoldFit]:
        """Return the fits of main effects with pairs."""
        of_folds = list(zip(self._fits, ranked.by_fold, strict=True))
        return list(run(lambda own: own[0].with_pairs(own[1]), of_folds, self._threads))

    def _try(
        self,
        fits: Iterable[_FoldFit],
        ranked: RankedPairs,
        tried: tuple[float, ...],
        least_gain: tuple[float, float] | None,
    ) -> None:
        """Take pairs, held by the best of some strengths, if they gain enough."""
        if not ranked.overall:
            return
        fits = list(fits)
        entries = tuple(replace(self._best[0], by_pair=own) for own in tried)
        found = _best(self._walk(fits, entries, has_pairs=True))
        if least_gain is None or found[1].is_better(self._best[1], *least_gain):
            self._best, self._pairs = found, ranked.overall
            self._best_fits = fits

    def scores(self) -> PairScores:
        """Score pairs by the residuals of what is best."""
        held, share = self._held, self._best[1].posteriors()
        rows = replace(held.training.take(held.rows), sample_weight=held.weights)
        # Residuals of a row with a factor of 2 would have four times the variance.
        factors = held.factors / held.factors.max()
        u, residual = (held.n_deals * held.weights * factors)[:, None], -share
        residual[np.arange(len(share)), held.labels] += 1.0
        curvature = u * share * (1.0 - share)
        deals = held.by_deal()
        return score_columns(rows, u * residual, curvature, deals, self._excluded)

    def _walk(
        self,
        fits: list[_FoldFit],
        grid: tuple[Strengths, ...],
        judged: Sequence[_Judged] = (),
        has_pairs: bool = False,
    ) -> list[_Judged]:
        """Fit strengths in each fold, one after the other, until they get worse."""
        out = list(judged)
        for entry in grid:
            one = partial(_FoldFit.posteriors, entry=entry)
            posteriors = np.concatenate(list(run(one, fits, self._threads)))
            judgement = self._held.judge(posteriors)
            out.append((entry, judgement))
            by_pair = {"by_pair": entry.by_pair} if has_pairs else {}
            self._path.append({**_named(entry), **by_pair, **judgement.record()})
            if progress.watch is not None:
                told = f"log-loss of held-out rows {_best(out)[1].log_loss:.4f}"
                progress.watch.step(told, max(self._most, len(self._path)) + 1)
            if _best(out)[1].is_better(judgement):
                break
        return out


def _named(entry: Strengths) -> dict[str, float]:
    """Return the strengths of main effects by name."""
    named = asdict(entry)
    del named["by_pair"]
    return named


def _best(judged: Sequence[_Judged]) -> _Judged:
    return min(judged, key=lambda own: own[1].log_loss)


def _average(judged: Sequence[_Judged]) -> Strengths:
    r"""Return the geometric mean of strengths by how well they did, to two digits.

    The share of each is :math:`\exp(-\tfrac12 (d / s)^2)`, with the difference d of its
    log-loss from the best, and the standard error s of that.
    """
    best = _best(judged)[1]
    gaps = [
        (own.log_loss - best.log_loss) / max(own.standard_error(best), _NO_GAP)
        for _, own in judged
    ]
    share = np.exp(-0.5 * np.square(gaps))
    logs = np.log([list(asdict(entry).values()) for entry, _ in judged])
    return Strengths(*(float(f"{q:.2g}") for q in np.exp(share @ logs / share.sum())))


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

    def shaped(self, constraints: Any, classes: NDArray[Any]) -> _FoldFit:
        """Return the same fits under constraints."""
        out, schema = copy(self), self._fold.training.schema
        shapes = resolve_shapes(constraints, schema, classes)
        out._problem = replace(self._problem, shapes=shapes)
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
