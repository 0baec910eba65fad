"""Strengths of a hierarchy of weights, and its pairs, chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from steelyard._common import progress
from steelyard._common.arrays import Floats
from steelyard._common.threads import run, thread_count
from steelyard.fitting.default.folds import HeldOutFolds, Judgement
from steelyard.fitting.default.interactions import (
    ColumnPair,
    FoldFit,
    PairScores,
    RankedPairs,
    score_columns,
)
from steelyard.fitting.recipe import Recipe
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

    @classmethod
    def of(cls, value: Any) -> Strengths:
        """Return strengths; of three numbers the last holds for pairs too."""
        if isinstance(value, Strengths):
            return value
        shared, by_class, by_value = map(float, value)
        return cls(shared, by_class, by_value, by_value)

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

# Pairs of a model, by column and in all: of those that promise something alone, and of
# those that may together.
_MAX_PAIRS_PER_COLUMN, _MAX_PAIRS = 2, 30
_MORE_PAIRS_PER_COLUMN, _MORE_PAIRS = 3, 60

# Pairs with scores of so many times the noise are tried by themselves first.
_SURE = 3.0

# Standard errors, and log-loss, that the longest list must gain: it is tried several
# times, and nobody reads sixty pairs for next to nothing.
_LEAST_GAIN_OF_MORE = (2.0, 1e-3)

# Standard errors from the best at which the share of strengths has fallen to .6. With
# one, which rows are together in a fold decided more than the rows themselves.
_ERRORS_OF_SHARE = 2.0

# Differences of log-loss that are rounding, not more.
_NO_GAP = 1e-6

# What is worse than the best by so many standard errors on some folds, of at least so
# many rows, is not fitted in the others (O. Maron, A. W. Moore (1994), "Hoeffding
# races").
_GIVEN_UP, _LEAST_ROWS = 2.0, 100

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
        search.pairs(search.scores().best(int(pairs), -np.inf), least_gain=None)
    if recipe.constraints:
        search.shapes(recipe.constraints)
    return search.choice


class _StrengthSearch:
    """What is compared, one after the other, each with the best so far."""

    def __init__(
        self, recipe: Recipe, held: HeldOutFolds, excluded: Collection[int] = ()
    ) -> None:
        self._held, self._threads = held, thread_count(held.training.n_jobs)
        self._fits = list(run(partial(FoldFit, recipe), held.folds, self._threads))
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
        good as the best has a share in the strengths, which are then the mean, whether
        or not a single one did better on these folds: that would be luck again.
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
            self._best = self._walk(self._fits, (mean,))[0]

    def promising_pairs(self) -> None:
        """Join pairs that surely tell something, that may alone, that may together.

        The longer a list, the more of its pairs are noise on a table of many columns.
        They are ranked by all deals of the rows, and compared on the first ones.
        """
        scores, n = self.scores(), self._held.training.schema.n_columns
        whole = self._held, self._fits, self._best
        self._held = self._held.first_deals()
        self._fits = self._best_fits = self._fits[: len(self._held.folds)]
        some = self._best[1].log_proba[: len(self._held.rows)]
        self._best = self._best[0], self._held.judge(some)
        scores = scores.of_folds(len(self._fits))
        most = min(_MAX_PAIRS_PER_COLUMN * n, _MAX_PAIRS)
        sure, likely = scores.best(most, _SURE), scores.best(most)
        for ranked in (sure, likely) if sure != likely else (sure,):
            self.pairs(ranked)
        more = scores.best(min(_MORE_PAIRS_PER_COLUMN * n, _MORE_PAIRS), -np.inf)
        again = {self._best[0].by_pair} if self._pairs else set()
        tried = tuple(sorted({*again, *_OPEN}, reverse=True))
        self._try(self._joined(more), more, tried, _LEAST_GAIN_OF_MORE)
        if not self._pairs:
            self._held, self._fits, self._best = whole
            self._best_fits = self._fits

    def pairs(
        self,
        ranked: RankedPairs,
        least_gain: tuple[float, float] | None = (1.0, 0.0),
    ) -> None:
        """Join pairs where they gain that, as `is_better` says; None: in any case."""
        self._try(self._joined(ranked), ranked, _BY_PAIR, least_gain)

    def _joined(self, ranked: RankedPairs) -> list[FoldFit]:
        """Return the fits of main effects with pairs."""
        of_folds = zip(self._fits, ranked.by_fold, strict=True)
        return [fit.with_pairs(pairs) for fit, pairs in of_folds]

    def _try(
        self,
        fits: list[FoldFit],
        ranked: RankedPairs,
        tried: tuple[float, ...],
        least_gain: tuple[float, float] | None,
    ) -> None:
        """Take pairs, held by the best of some strengths, if they gain enough."""
        if not ranked.overall:
            return
        entries = tuple(replace(self._best[0], by_pair=own) for own in tried)
        rival = None if least_gain is None else self._best[1]
        judged = self._walk(fits, entries, has_pairs=True, rival=rival)
        if not judged:
            return
        found = _best(judged)
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
        fits: list[FoldFit],
        grid: tuple[Strengths, ...],
        judged: Sequence[_Judged] = (),
        has_pairs: bool = False,
        rival: Judgement | None = None,
    ) -> list[_Judged]:
        """Fit strengths in each fold, one after the other, until they get worse.

        What is surely worse than a rival, or than the best so far, is given up.
        """
        out = list(judged)
        for entry in grid:
            best = min(
                [*([rival] if rival else []), *(own for _, own in out)],
                key=lambda own: own.log_loss,
                default=None,
            )
            # Strengths of main effects have a share in the mean for longer.
            errors = _GIVEN_UP * (1.0 if has_pairs else _ERRORS_OF_SHARE)
            judgement, is_whole = self._judged(fits, entry, best, errors)
            by_pair = {"by_pair": entry.by_pair} if has_pairs else {}
            record = judgement.record()
            if is_whole:
                out.append((entry, judgement))
            else:
                # On the rows looked at, the difference from the best is what counts.
                assert best is not None
                record["log_loss"] += best.log_loss - judgement.beside(best).log_loss
            self._path.append({**_named(entry), **by_pair, **record})
            if progress.current is not None:
                least = min(own["log_loss"] for own in self._path)
                told = f"log-loss of held-out rows {least:.4f}"
                progress.current.step(told, max(self._most, len(self._path)) + 1)
            if not is_whole or _best(out)[1].is_better(judgement):
                break
        return out

    def _judged(
        self,
        fits: list[FoldFit],
        entry: Strengths,
        best: Judgement | None,
        errors: float,
    ) -> tuple[Judgement, bool]:
        """Fit strengths in some folds after the other; say whether in all."""
        one = partial(FoldFit.posteriors, entry=entry)
        posteriors: list[Floats] = []
        for stop in _stages([len(fold.rows) for fold in self._held.folds]):
            part = fits[len(posteriors) : stop]
            posteriors += run(one, part, self._threads)
            judgement = self._held.judge(np.concatenate(posteriors))
            if stop < len(fits) and best is not None:
                if judgement.beside(best).is_better(judgement, errors):
                    return judgement, False
        return judgement, True


def _stages(sizes: list[int]) -> list[int]:
    """Say after how many folds what is compared may be given up."""
    enough = 1 + int(np.searchsorted(np.cumsum(sizes), _LEAST_ROWS))
    first = max(enough, len(sizes) // 5)
    return sorted({min(n, len(sizes)) for n in (first, 3 * first, len(sizes))})


def _named(entry: Strengths) -> dict[str, float]:
    """Return the strengths of main effects by name."""
    named = asdict(entry)
    del named["by_pair"]
    return named


def _best(judged: Sequence[_Judged]) -> _Judged:
    return min(judged, key=lambda own: own[1].log_loss)


def _average(judged: Sequence[_Judged]) -> Strengths:
    r"""Return the geometric mean of strengths by how well they did, to two digits.

    The share of each is :math:`\exp(-\tfrac12 (d / 2 s)^2)`, with the difference d of
    its log-loss from the best, and the standard error s of that.
    """
    best = _best(judged)[1]
    gaps = [
        (own.log_loss - best.log_loss)
        / max(_ERRORS_OF_SHARE * own.standard_error(best), _NO_GAP)
        for _, own in judged
    ]
    share = np.exp(-0.5 * np.square(gaps))
    logs = np.log([list(asdict(entry).values()) for entry, _ in judged])
    return Strengths(*(float(f"{q:.2g}") for q in np.exp(share @ logs / share.sum())))
