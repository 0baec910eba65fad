"""Search for hyperparameters: regularisation strengths λ, and interactions.

Candidates are compared by the log-loss of held-out rows, each with the best so far:
steps of MDL bins, strengths of main effects one after the other, then lists of
interactions.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from steelyard._common import progress
from steelyard._common.arrays import Floats, Labels
from steelyard._common.threads import run, thread_count
from steelyard.fitting.default.folds import HeldOutFolds, Judgement
from steelyard.fitting.default.interactions import (
    ColumnPair,
    FoldFit,
    InteractionScores,
    RankedInteractions,
    score_columns,
)
from steelyard.fitting.recipe import Recipe
from steelyard.weighting import HierarchicalWeighting


@dataclass(frozen=True)
class Strengths:
    """Regularisation strengths λ: the factors of the ridge of each level of weights."""

    shared: float
    by_class: float
    by_value: float
    by_interaction: float = 2.5
    intervals: float = 1.0
    """Factor on the first three for the steps of coarse bins of a column with finer."""
    share: float = 0.25
    """Share of naive Bayes that the weights of categories are drawn to."""

    @classmethod
    def of(cls, value: Any) -> Strengths:
        """Return strengths; the last of three numbers is that of interactions too."""
        if isinstance(value, Strengths):
            return value
        shared, by_class, by_value = map(float, value)
        return cls(shared, by_class, by_value, by_value)

    def weighting(self, intercept: float) -> HierarchicalWeighting:
        """Return the weighting with these strengths."""
        return HierarchicalWeighting(
            **asdict(self), intercept=intercept, overall=np.inf
        )


# Where the search begins, and how it goes on: these strengths are moved together, in
# turn, by a factor down or up, as long as held-out log-loss falls by a share of itself.
START = Strengths(10.0, 40.0, 10.0)
_MOVES = (
    ("shared", "by_class", "by_value"),
    ("by_value",),
    ("shared", "by_class"),
)
_FACTOR, _MIN_GAIN = 4.0, 5e-4

# Strengths outside this range make no difference.
_RANGE = (1e-4, 1e4)

# The log-normal prior of strengths: medians of the first and the third, and standard
# deviation of their logarithms, so that a few rows do not decide everything.
_TYPICAL, _DEVIATION = (10.0, 3.0), 2.0

# Factor on the strengths of coarse bins if steps do not reduce the log-loss.
_STEP_FACTOR = 30.0

# Strengths of interactions: of those with a positive score, from strong to weak until
# the log-loss rises, and of the longest list, as some only matter together.
_BY_INTERACTION = (40.0, 10.0, 2.5, 0.6, 0.15)
_WEAK_BY_INTERACTION = (0.1, 0.02)

# Approximate number of candidates, for the progress bar.
_MAX_CANDIDATES = 10 + len(_BY_INTERACTION) + len(_WEAK_BY_INTERACTION) + 1

# Limits of interactions, by column and in total: of those with a positive score, and
# of the longest list; and rows for each.
_MAX_PER_COLUMN, _MAX_INTERACTIONS = 2, 30
_MAX_LONG_PER_COLUMN, _MAX_LONG = 3, 60
_ROWS_PER_INTERACTION = 8

# Smallest rise of held-out log-loss without an interaction, so that it is kept.
_MIN_INTERACTION_GAIN = 2e-4

# Interactions whose score is at least this multiple of the noise are tried first.
_SIGNIFICANT_SCORE = 3.0

# Standard errors, and log-loss, that the longest list must gain: it is tried several
# times, and sixty interactions are hard to read.
_MIN_GAIN_OF_LONG = (2.0, 1e-3)

# Standard errors from the best at which the share of a candidate in the mean is .6.
# With one, the fold assignment decided more than the rows.
_SHARE_ERRORS = 2.0

# Differences of log-loss up to this are rounding.
_ROUNDING = 1e-6

# A candidate that is worse than the best by this number of standard errors on some
# folds, with at least this number of rows, is not fitted in the others (O. Maron,
# A. W. Moore (1994), "Hoeffding races").
_RACE_ERRORS, _MIN_RACE_ROWS = 2.0, 100


class _Candidate(NamedTuple):
    """Strengths, and how well they predict held-out rows."""

    strengths: Strengths
    judgement: Judgement
    penalty: float
    """Minus the log prior of the strengths, by row."""

    @property
    def loss(self) -> float:
        """Log-loss of held-out rows, and what the prior adds to it."""
        return self.judgement.log_loss + self.penalty


class ShapeLosses(NamedTuple):
    """Log-loss of held-out rows without and with constraints."""

    free: float
    shaped: float
    standard_error: float
    """Standard error of the difference."""


@dataclass(frozen=True)
class Choice:
    """The hyperparameters: strengths, scale of posteriors and interactions."""

    strengths: Strengths
    scale: float = 1.0
    interactions: list[ColumnPair] = field(default_factory=list)
    path: list[dict[str, float]] = field(default_factory=list)
    """Records of all candidates."""

    held_out: tuple[Floats, Floats] | None = None
    """Posteriors of all rows when held out, and weights of the rows."""

    shape_losses: ShapeLosses | None = None
    """Log-loss without and with constraints."""

    def of_more_rows(self, share: float) -> Choice:
        """Return the choice for a table of which a share of the rows was compared.

        A model of more rows is less overconfident: its scale is nearer to one.
        """
        held_out = self.held_out if share == 1.0 else None
        return replace(self, scale=self.scale**share, held_out=held_out)


def choose(
    recipe: Recipe,
    held: HeldOutFolds,
    grid: tuple[Strengths, ...],
    interactions: str | int | list[ColumnPair] | None,
    excluded: Collection[int],
) -> Choice:
    """Choose strengths and interactions by cross-validated log-loss.

    Strengths are those of a grid, or without one the search finds them. Everything is
    learned from scratch in each fold: counts, instance weights, weights, and the
    ranking of interactions, which ``excluded`` columns are not in. Constraints come
    last, with a separate scale.
    """
    if not held.folds:
        entries = grid or (START,)
        path = [{**_named(e), "log_loss": np.nan, "scale": 1.0} for e in entries]
        listed = interactions if isinstance(interactions, list) else []
        return Choice(entries[0], interactions=listed, path=path)
    search = _StrengthSearch(replace(recipe, constraints=None), held, excluded)
    search.main_effects(grid)
    if interactions == "auto":
        search.interactions()
    elif isinstance(interactions, list):
        by_fold = [interactions] * len(held.folds)
        search.add(RankedInteractions(by_fold, interactions), min_gain=None)
    elif interactions:
        search.add(search.scores().best(int(interactions), -np.inf), min_gain=None)
    if recipe.constraints:
        search.shapes(recipe.constraints)
    return search.choice


class _StrengthSearch:
    """A greedy search: each candidate is compared with the best so far."""

    def __init__(
        self, recipe: Recipe, held: HeldOutFolds, excluded: Collection[int]
    ) -> None:
        self._held, self._threads = held, thread_count(held.training.n_jobs)
        self._fits = list(run(partial(FoldFit, recipe), held.folds, self._threads))
        self._best_fits, self._excluded = self._fits, excluded
        self._shape_losses: ShapeLosses | None = None
        self._ranked = RankedInteractions([], [])
        self._path: list[dict[str, float]] = []
        self._best: _Candidate

    @property
    def choice(self) -> Choice:
        """The best candidate."""
        entry, judgement, _ = self._best
        held_out = judgement.posteriors(), judgement.weights
        chosen = entry, judgement.scale, self._ranked.overall
        return Choice(*chosen, self._path, held_out, self._shape_losses)

    def shapes(self, constraints: Any) -> None:
        """Fit the best candidate again under constraints."""
        free, classes = self._best.judgement, self._held.training.classes
        fits = [fit.shaped(constraints, classes) for fit in self._best_fits]
        self._best = self._walk(fits, (self._best.strengths,))[0]
        shaped = self._best.judgement
        error = shaped.standard_error(free)
        self._shape_losses = ShapeLosses(free.log_loss, shaped.log_loss, error)

    def main_effects(self, grid: tuple[Strengths, ...]) -> None:
        """Walk along a grid, or without one move some strengths after the others.

        Steps of coarse bins are penalised more unless they reduce the log-loss. The
        result is a geometric mean of the candidates by how near they are to the best:
        a single winner would depend more on the fold assignment.
        """
        judged = self._walk(self._fits, grid or (START,))
        steps = [_best(judged)]
        if any(feature.cuts for feature in self._held.training.schema.features):
            without = replace(steps[0].strengths, intervals=_STEP_FACTOR)
            steps = self._walk(self._fits, (without,), steps)
            if _best(steps) is not steps[0]:
                judged.append(_best(steps))
        if not grid:
            for names in _MOVES:
                # The other way only if the first does not pay.
                if not self._moved(judged, names, 1.0 / _FACTOR):
                    self._moved(judged, names, _FACTOR)
        self._best = _best(judged)
        mean = replace(_average(judged), intervals=_average(steps).intervals)
        if mean != self._best.strengths:
            self._best = self._walk(self._fits, (mean,))[0]

    def _moved(
        self, judged: list[_Candidate], names: tuple[str, ...], factor: float
    ) -> bool:
        """Multiply strengths while held-out loss falls enough; return whether it did.

        New candidates are added to ``judged``.
        """
        is_moved, (low, high) = False, _RANGE
        while True:
            best = _best(judged)
            moved = {name: factor * getattr(best.strengths, name) for name in names}
            entry = replace(best.strengths, **moved)
            is_new = all(entry != candidate.strengths for candidate in judged)
            if not is_new or not all(low <= value <= high for value in moved.values()):
                return is_moved
            judged[:] = self._walk(self._fits, (entry,), judged)
            if _best(judged).loss > best.loss - _MIN_GAIN * best.judgement.log_loss:
                return is_moved
            is_moved = True

    def interactions(self) -> None:
        """Try three lists of interactions, each longer than the one before.

        These are significant ones, those with a positive score, and those that may
        matter together. The longer the list, the more of it is noise on a wide table.
        They are ranked on all fold assignments, and compared on the first ones.
        """
        scores, n = self.scores(), self._held.training.schema.n_columns
        of_all = self._held, self._fits, self._best
        self._held = self._held.first_assignments()
        self._fits = self._best_fits = self._fits[: len(self._held.folds)]
        log_proba = self._best.judgement.log_proba[: len(self._held.rows)]
        self._best = self._best._replace(judgement=self._held.judge(log_proba))
        scores = scores.of_folds(len(self._fits))
        by_rows = int(of_all[0].training.given_counts.total) // _ROWS_PER_INTERACTION
        limit = min(_MAX_PER_COLUMN * n, _MAX_INTERACTIONS, by_rows)
        significant = scores.best(limit, _SIGNIFICANT_SCORE)
        positive = scores.best(limit)
        self.add(significant)
        if positive != significant:
            self.add(positive)
        limit = min(_MAX_LONG_PER_COLUMN * n, _MAX_LONG, by_rows)
        longest = scores.best(limit, -np.inf)
        again = {self._best.strengths.by_interaction} if self._ranked.overall else set()
        strengths = sorted({*again, *_WEAK_BY_INTERACTION}, reverse=True)
        self.add(longest, _MIN_GAIN_OF_LONG, strengths)
        if self._ranked.overall:
            self._prune()
        else:
            self._held, self._fits, self._best = of_all
            self._best_fits = self._fits

    def _prune(self) -> None:
        """Drop interactions without which held-out rows are predicted as well.

        They are judged one by one, then the rest is fitted once more: of two that say
        the same, neither seems to be missed.
        """
        held, (chosen, best, _) = self._held, self._best
        u, gains = held.weights * held.factors, dict.fromkeys(self._ranked.overall, 0.0)
        first = 0
        for fold, fit in zip(held.folds, self._best_fits, strict=True):
            rows = slice(first, first := first + len(fold.rows))
            shares = u[rows] / u.sum()
            # Not those of the best candidate: effects and scores are of one fit.
            log_proba, effects = fit.with_effects()
            before = _mean_loss(best.scale * log_proba, held.labels[rows], shares)
            for interaction in gains.keys() & effects.keys():
                scores = best.scale * (log_proba - effects[interaction])
                loss = _mean_loss(scores, held.labels[rows], shares)
                gains[interaction] += loss - before
        kept = [pair for pair, gain in gains.items() if gain > _MIN_INTERACTION_GAIN]
        if not kept or len(kept) == len(gains):
            return
        all_of_them = self._best, self._ranked, self._best_fits
        self.add(self._ranked.among(kept), None, [chosen.by_interaction])
        allowed = _MIN_INTERACTION_GAIN * (len(gains) - len(kept))
        if self._best.loss > all_of_them[0].loss + allowed:
            self._best, self._ranked, self._best_fits = all_of_them

    def add(
        self,
        ranked: RankedInteractions,
        min_gain: tuple[float, float] | None = (1.0, 0.0),
        strengths: Sequence[float] = _BY_INTERACTION,
    ) -> None:
        """Add interactions, at the best of some strengths, if they gain enough.

        See `is_better` for ``min_gain``; with None they are added in any case.
        """
        if not ranked.overall:
            return
        of_folds = zip(self._fits, ranked.by_fold, strict=True)
        fits = [fit.with_interactions(interactions) for fit, interactions in of_folds]
        base, best = self._best.strengths, self._best.judgement
        entries = tuple(replace(base, by_interaction=s) for s in strengths)
        rival = None if min_gain is None else best
        judged = self._walk(fits, entries, has_interactions=True, rival=rival)
        if not judged:
            return
        candidate = _best(judged)
        if min_gain is None or candidate.judgement.is_better(best, *min_gain):
            self._best, self._ranked = candidate, ranked
            self._best_fits = fits

    def scores(self) -> InteractionScores:
        """Score interactions by the residuals of the best candidate."""
        held, share = self._held, self._best.judgement.posteriors()
        rows = replace(held.training.take(held.rows), sample_weight=held.weights)
        # Residuals of a row with a factor of 2 would have four times the variance.
        factors = held.factors / held.factors.max()
        u, residual = (held.n_assignments * held.weights * factors)[:, None], -share
        residual[np.arange(len(share)), held.labels] += 1.0
        curvature = u * share * (1.0 - share)
        assignments = held.by_assignment()
        return score_columns(rows, u * residual, curvature, assignments, self._excluded)

    def _walk(
        self,
        fits: list[FoldFit],
        grid: tuple[Strengths, ...],
        judged: Sequence[_Candidate] = (),
        has_interactions: bool = False,
        rival: Judgement | None = None,
    ) -> list[_Candidate]:
        """Fit one candidate after the other in each fold, until the log-loss rises.

        A candidate that is significantly worse than a rival, or than the best so far,
        is abandoned after some folds.
        """
        out = list(judged)
        for entry in grid:
            judgements = [candidate.judgement for candidate in out]
            rivals = judgements if rival is None else [rival, *judgements]
            best = min(rivals, key=attrgetter("log_loss"), default=None)
            # Candidates of main effects are in the mean, and so are abandoned later.
            errors = _RACE_ERRORS * (1.0 if has_interactions else _SHARE_ERRORS)
            judgement, is_whole = self._judged(fits, entry, best, errors)
            record = _named(entry)
            if has_interactions:
                record["by_interaction"] = entry.by_interaction
            record.update(judgement.record())
            if is_whole:
                out.append(_Candidate(entry, judgement, self._penalty(entry)))
            else:
                # On some rows only the difference from the best is comparable.
                assert best is not None
                record["log_loss"] += best.log_loss - judgement.beside(best).log_loss
            self._path.append(record)
            if progress.current is not None:
                lowest = min(earlier["log_loss"] for earlier in self._path)
                shown = f"log-loss of held-out rows {lowest:.4f}"
                n_steps = max(_MAX_CANDIDATES, len(self._path)) + 1
                progress.current.step(shown, n_steps)
            if not is_whole or _best(out).judgement.is_better(judgement):
                break
        return out

    def _penalty(self, entry: Strengths) -> float:
        """Minus the log of the prior density of strengths, by row."""
        logs = np.log([entry.shared, entry.by_value]) - np.log(_TYPICAL)
        n_rows = self._held.training.given_counts.total
        return float((logs / _DEVIATION) @ (logs / _DEVIATION)) / (2.0 * n_rows)

    def _judged(
        self,
        fits: list[FoldFit],
        entry: Strengths,
        best: Judgement | None,
        errors: float,
    ) -> tuple[Judgement, bool]:
        """Fit a candidate in more and more folds; return whether in all."""
        fit = partial(FoldFit.posteriors, entry=entry)
        posteriors: list[Floats] = []
        for stop in _stages([len(fold.rows) for fold in self._held.folds]):
            posteriors += run(fit, fits[len(posteriors) : stop], self._threads)
            judgement = self._held.judge(np.concatenate(posteriors))
            if stop < len(fits) and best is not None:
                if judgement.beside(best).is_better(judgement, errors):
                    return judgement, False
        return judgement, True


def _stages(sizes: list[int]) -> list[int]:
    """Return the numbers of folds after which a candidate may be abandoned."""
    enough = 1 + int(np.searchsorted(np.cumsum(sizes), _MIN_RACE_ROWS))
    first = max(enough, len(sizes) // 5)
    return sorted({min(n, len(sizes)) for n in (first, 3 * first, len(sizes))})


def _named(entry: Strengths) -> dict[str, float]:
    """Return the regularisation strengths of main effects by name."""
    named = asdict(entry)
    del named["by_interaction"]
    return named


def _mean_loss(scores: Floats, labels: Labels, shares: Floats) -> float:
    """Return the log-loss of rows by their scores, weighted by shares."""
    at_truth = scores[np.arange(len(labels)), labels]
    return float(shares @ (logsumexp(scores, axis=1) - at_truth))


def _best(judged: Sequence[_Candidate]) -> _Candidate:
    return min(judged, key=attrgetter("loss"))


def _average(judged: Sequence[_Candidate]) -> Strengths:
    r"""Return the weighted geometric mean of strengths, to two digits.

    The share of each is :math:`\exp(-\tfrac12 (d / 2 s)^2)`, with the difference d of
    its loss from the best, and the standard error s of that.
    """
    best = _best(judged)
    gaps = [
        (candidate.loss - best.loss)
        / max(
            _SHARE_ERRORS * candidate.judgement.standard_error(best.judgement),
            _ROUNDING,
        )
        for candidate in judged
    ]
    share = np.exp(-0.5 * np.square(gaps))
    entries = [asdict(candidate.strengths) for candidate in judged]
    mean = {
        name: np.exp(share @ np.log([e[name] for e in entries]) / share.sum())
        for name in entries[0]
    }
    return Strengths(**{name: float(f"{value:.2g}") for name, value in mean.items()})
