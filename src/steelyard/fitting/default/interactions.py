"""Interactions of two columns: which are asked for, and a score test to rank them.

`FoldFit` fits candidates, with or without interactions, to the rows of one fold.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, Ints
from steelyard._common.threads import run, thread_count
from steelyard.exceptions import ParameterError
from steelyard.fitting.default.folds import Fold
from steelyard.fitting.problem import build_problem, weigh_rows
from steelyard.fitting.recipe import Penalty, Recipe
from steelyard.fitting.shapes import resolve_shapes
from steelyard.kernels.pairs import score_interactions
from steelyard.model.table_model import NBModel
from steelyard.model.training import TrainingSet
from steelyard.proba.encodings import finest_codes
from steelyard.solvers.lbfgs import RoughLBFGS
from steelyard.table.schema import Side, TableSchema, feature_labels
from steelyard.table.treatments import column_positions
from steelyard.weighting import HierarchicalWeighting

if TYPE_CHECKING:
    from steelyard.fitting.default.strengths import Strengths

# Groups of each side of an interaction.
_MIN_GROUPS, _MAX_GROUPS = 3, 12

# Rows of each class that a cell should have on average.
_ROWS_PER_CELL = 3

# Interactions are ranked among at most this number of columns, those with the largest
# residuals.
_MAX_COLUMNS = 300

ColumnPair = tuple[int, int]


def coded_columns(schema: TableSchema) -> list[int]:
    """Return the columns of at least two categories or bins."""
    coded = schema.without_interactions.coded.tolist()
    return [j for j in coded if schema.features[j].n_values > 1]


def asked_interactions(setting: Any, schema: TableSchema) -> tuple[Any, set[int]]:
    """Resolve the setting `interactions`, and the columns that are excluded.

    The first is a list of interactions, a number, None or "auto".
    """
    if isinstance(setting, Mapping):
        named, names = setting.get("exclude", ()), schema.names
        return "auto", set(
            column_positions(named, schema.n_columns, names, "interactions")
        )
    is_listed = isinstance(setting, (list, tuple))
    return listed_interactions(setting, schema) if is_listed else setting, set()


def listed_interactions(interactions: Any, schema: TableSchema) -> list[ColumnPair]:
    """Resolve interactions by name or position, each of them once."""
    flat = [column for interaction in interactions for column in interaction]
    names, coded = schema.names, coded_columns(schema)
    positions = list(column_positions(flat, schema.n_columns, names, "interactions"))
    for named, column in zip(flat, positions, strict=True):
        if column not in coded:
            raise ParameterError(
                f"`interactions` names column {named!r}, which has fewer than two "
                "categories or bins. Leave it out, or give it bins in `numeric`."
            )
    distinct: dict[frozenset[int], ColumnPair] = {}
    for a, b in zip(positions[::2], positions[1::2], strict=True):
        if a == b:
            shown = a if names is None else names[a]
            raise ParameterError(
                f"`interactions` joins column {shown!r} with itself. An interaction "
                "needs two columns."
            )
        distinct.setdefault(frozenset((a, b)), (a, b))
    return list(distinct.values())


def interaction_records(
    training: TrainingSet, model: NBModel, strength: float
) -> list[dict[str, Any]]:
    """Return columns, regularisation strength and importance of each interaction.

    The importance is the mean over rows and classes of its absolute contribution to a
    class against the others, centred by the mean over rows.
    """
    schema, counts = training.schema, training.given_counts
    k = len(model.classes)
    records = []
    for j in np.flatnonzero(schema.is_interaction):
        cells = slice(*schema.offsets[j : j + 2])
        share = counts.by_code[cells].sum(axis=1) / counts.total
        centred = model.table[cells] - share @ model.table[cells]
        against = (k * centred - centred.sum(axis=1, keepdims=True)) / (k - 1)
        size = model.link_scale * np.abs(against).mean(axis=1)
        columns = [side.feature for side in schema.features[j].sides]
        records.append(
            {
                "columns": feature_labels(schema, columns),
                "strength": strength,
                "importance": float(share @ size),
            }
        )
    return records


def sides(
    training: TrainingSet, interactions: list[ColumnPair]
) -> list[tuple[Side, Side]]:
    """Group both sides: numbers by about equal weight, rare categories as one."""
    by_code = training.given_counts.by_code.sum(axis=1)
    per_cell = _ROWS_PER_CELL * training.n_classes
    n_groups = np.sqrt(training.given_counts.total / per_cell)
    n_groups = int(np.clip(n_groups, _MIN_GROUPS, _MAX_GROUPS))

    @cache
    def side(column: int) -> Side:
        codes = slice(*training.schema.offsets[column : column + 2])
        feature, weight = training.schema.features[column], by_code[codes][1:]
        if feature.kind == "binned":
            bins = finest_codes(feature)[1 : len(feature.edges) + 2] - 1
            of_bins: Any = np.bincount(bins, weight[: len(bins)])
            groups = _even_groups(of_bins, n_groups)[bins].tolist()
        else:
            groups = _frequent_groups(weight, n_groups).tolist()
        # Missing cells that have a code are merged with no bin.
        last = [max(groups) + 1] * (feature.n_values - len(groups))
        return Side(column, (0, *groups, *last))

    return [(side(a), side(b)) for a, b in interactions]


def joined(training: TrainingSet, interactions: list[ColumnPair]) -> TrainingSet:
    """Return the same rows with interactions as further attributes.

    If cut points are learned in each fold, a column may have none there; its
    interactions are left out.
    """
    coded = {*coded_columns(training.schema)}
    kept = [(a, b) for a, b in interactions if a in coded and b in coded]
    return training.with_interactions(sides(training, kept)) if kept else training


def _even_groups(weight: Floats, n_groups: int) -> Ints:
    """Merge neighbouring bins to groups of about equal weight, numbered from 1."""
    total = max(float(weight.sum()), 1e-300)
    middle = (np.cumsum(weight) - weight / 2.0) / total
    groups = np.minimum((middle * n_groups).astype(np.int64), n_groups - 1)
    return np.unique(groups, return_inverse=True)[1].astype(np.int64) + 1


def _frequent_groups(weight: Floats, n_groups: int) -> Ints:
    """Give each of the most frequent values a group, and all others one."""
    order = np.argsort(-weight, kind="stable")
    rank = np.empty(len(weight), dtype=np.int64)
    rank[order] = np.arange(len(weight))
    return np.asarray(np.minimum(rank, n_groups - 1) + 1)


@dataclass(frozen=True)
class RankedInteractions:
    """Interactions in order of their score, for each fold and for all rows."""

    by_fold: list[list[ColumnPair]]
    """Ranking without the rows of each fold."""

    overall: list[ColumnPair]
    """Ranking on all rows."""

    def among(self, kept: Collection[ColumnPair]) -> RankedInteractions:
        """Return those of some interactions."""
        lists = [[own for own in ranked if own in kept] for ranked in self.by_fold]
        return RankedInteractions(lists, [own for own in self.overall if own in kept])


@dataclass(frozen=True)
class InteractionScores:
    """Scores of all interactions: squared residuals in their cells."""

    interactions: list[ColumnPair]
    scores: Floats
    """Shape (pairs, folds + 1): on all rows but those of each fold, and on all."""

    noise: Floats
    """Standard deviation of the score without an interaction, (interactions,)"""

    def of_folds(self, n_folds: int) -> InteractionScores:
        """Return the scores of the first folds, and those on all rows."""
        kept = [*range(n_folds), -1]
        return InteractionScores(self.interactions, self.scores[:, kept], self.noise)

    def best(self, limit: int, multiple: float = 0.0) -> RankedInteractions:
        """Return at most ``limit`` with scores above a multiple of the noise."""
        ranked = [self._best(scores, limit, multiple) for scores in self.scores.T]
        return RankedInteractions(ranked[:-1], ranked[-1])

    def _best(self, scores: Floats, limit: int, multiple: float) -> list[ColumnPair]:
        order = np.argsort(-scores, kind="stable")[:limit]
        return [
            self.interactions[k] for k in order if scores[k] > multiple * self.noise[k]
        ]


def score_columns(
    training: TrainingSet,
    residual: Floats,
    curvature: Floats,
    assignments: list[tuple[slice, Ints]],
    excluded: Collection[int] = (),
) -> InteractionScores:
    r"""Score all interactions by residuals of held-out rows.

    With :math:`r = u ([y = c] - p_c)` and :math:`h = u\, p_c (1 - p_c)` of the rows,
    shape (n, K), and G, H their sums in the cells of an interaction, the score is
    :math:`\sum (G^2 - H) / (H + 1)`: the gain of a step against a ridge of one, less
    its expectation under noise. Each fold assignment, given as its rows and the ends of
    its folds, is scored separately; scores on all rows are averaged.
    """
    codes, sizes, columns = _coarse_codes(training, residual, excluded)
    if residual.shape[1] == 2:  # the other class has the same with the opposite sign
        residual, curvature = residual[:, 1:], curvature[:, 1:]
    by_row = residual + 1j * curvature

    def score(k: int) -> Floats:
        own_size, sizes_after, by_assignment = int(sizes[k]), sizes[k + 1 :], []
        for rows, ends in assignments:
            scores = np.empty((len(columns) - k - 1, len(ends) + 1))
            after = np.ascontiguousarray(codes[k + 1 :, rows])
            given = codes[k, rows], after, own_size, sizes_after, by_row[rows], ends
            score_interactions(*given, scores)
            by_assignment.append(scores)
        overall = np.mean([scores[:, -1:] for scores in by_assignment], axis=0)
        by_fold = [scores[:, :-1] for scores in by_assignment]
        return np.concatenate([*by_fold, overall], axis=1)

    parts = list(run(score, range(len(columns) - 1), thread_count(training.n_jobs)))
    n_folds = sum(len(ends) for _, ends in assignments)
    scores = np.concatenate([np.empty((0, n_folds + 1)), *parts])
    first, second = np.triu_indices(len(columns), 1)
    n_cells = residual.shape[1] * sizes[first] * sizes[second]
    interactions = list(combinations(columns, 2))
    # Squares of residuals, each with a variance of two.
    return InteractionScores(interactions, scores, np.sqrt(2.0 * n_cells))


def _coarse_codes(
    training: TrainingSet, residual: Floats, excluded: Collection[int]
) -> tuple[NDArray[np.uint8], Ints, list[int]]:
    """Return coarse codes of columns (d, n), their number of codes, and the columns."""
    columns = sorted({*coded_columns(training.schema)} - set(excluded))
    merged = [side for side, _ in sides(training, [(j, j) for j in columns])]
    codes = np.empty((len(columns), training.n_rows), dtype=np.uint8)

    def merge(k: int) -> None:
        groups = np.array(merged[k].groups, dtype=np.uint8)
        np.take(groups, training.codes.column(columns[k]), out=codes[k], mode="clip")

    for _ in run(merge, range(len(columns)), thread_count(training.n_jobs)):
        pass
    sizes = np.array([side.n_groups for side in merged], dtype=np.int64)
    if len(columns) <= _MAX_COLUMNS:
        return codes, sizes, columns
    squares = [
        sum(
            float((np.bincount(of_column, residual[:, c]) ** 2).sum())
            for c in range(residual.shape[1])
        )
        for of_column in codes
    ]
    kept = np.sort(np.argsort(-np.asarray(squares), kind="stable")[:_MAX_COLUMNS])
    return codes[kept], sizes[kept], [columns[k] for k in kept]


# ----------------------------------------------------------------------- fits to a fold


# Relative accuracy of the fits that are compared.
_ROUGH_TOL = 3e-3


class FoldFit:
    """Fits of candidates to the rows of one fold, each started from the one before."""

    def __init__(self, recipe: Recipe, fold: Fold) -> None:
        self._fold, self._recipe = fold, replace(recipe, tol=_ROUGH_TOL)
        if isinstance(recipe.solver, str) and recipe.solver in ("auto", "lbfgs"):
            rough = RoughLBFGS(_ROUGH_TOL, recipe.max_iter)
            self._recipe = replace(self._recipe, solver=rough)
        weighed = weigh_rows(recipe, fold.training)
        self._learned = None if weighed is None else weighed.weights
        self._problem = build_problem(recipe, fold.training, self._learned)
        self._to_join: list[ColumnPair] = []
        self._start: Floats | None = None

    def with_interactions(self, interactions: list[ColumnPair]) -> FoldFit:
        """Return fits with interactions, which start from the last fit without.

        The attributes are made at the first fit: there may be none.
        """
        out = copy(self)
        out._to_join = interactions
        return out

    def _join(self) -> None:
        """Add the attributes of interactions, before the first fit with them."""
        interactions, self._to_join = self._to_join, []
        if not interactions:
            return
        before, training = self._problem, joined(self._fold.training, interactions)
        codes = self._fold.codes.with_interactions(training.schema, training.n_jobs)
        self._fold = replace(self._fold, training=training, codes=codes)
        self._problem = build_problem(self._recipe, training, self._learned, before)
        weighting = self._recipe.weighting
        assert isinstance(weighting, HierarchicalWeighting) and self._start is not None
        evidence = before.evidence, self._problem.evidence
        self._start = weighting.with_interactions(self._start, *evidence)

    def shaped(self, constraints: Any, classes: NDArray[Any]) -> FoldFit:
        """Return the same fits under constraints."""
        out = copy(self)
        shapes = resolve_shapes(constraints, self._fold.training.schema, classes)
        out._problem = replace(self._problem, shapes=shapes)
        return out

    def posteriors(self, entry: Strengths) -> Floats:
        """Fit a candidate; return log posteriors of the held-out rows."""
        assert isinstance(self._recipe.weighting, HierarchicalWeighting)
        self._join()
        problem = self._problem
        weighting = entry.weighting(self._recipe.weighting.intercept)
        ridge = Penalty(*weighting.strengths(problem.evidence))
        objective = replace(problem.objective, penalty=ridge)
        problem = replace(problem, objective=objective)
        self._start = problem.solve(self._recipe, self._start).weights
        return problem.model(self._start).log_proba(self._fold.codes)

    def with_effects(self) -> tuple[Floats, dict[ColumnPair, Floats]]:
        """Return log posteriors of held-out rows, and effects of each interaction.

        Both are of the last candidate that was fitted, with the shape (n, K).
        """
        assert self._start is not None
        model, codes = self._problem.model(self._start), self._fold.codes
        assert isinstance(model, NBModel)
        effects: dict[ColumnPair, Floats] = {}
        for j in np.flatnonzero(codes.schema.is_interaction).tolist():
            a, b = (side.feature for side in codes.schema.features[j].sides)
            cells = slice(*codes.schema.offsets[j : j + 2])
            effects[a, b] = model.table[cells][codes.column(j)]
        return model.log_proba(codes), effects
