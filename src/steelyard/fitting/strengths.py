"""Strengths of a hierarchy of weights, compared by cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp
from sklearn.utils import check_random_state

from steelyard.fitting.folds import deal
from steelyard.fitting.penalty import Penalty
from steelyard.fitting.problem import build_problem
from steelyard.fitting.recipe import Recipe
from steelyard.fitting.weights import weigh_rows
from steelyard.model.training import TrainingSet
from steelyard.solvers import LBFGS
from steelyard.table.codes import Codes
from steelyard.weighting import HierarchicalWeighting


@dataclass(frozen=True)
class Strengths:
    """How strongly each level of weights is drawn towards the one above it."""

    shared: float
    by_class: float
    by_value: float

    def weighting(self, intercept: float) -> HierarchicalWeighting:
        """Return the weighting with these strengths."""
        return HierarchicalWeighting(
            shared=self.shared,
            by_class=self.by_class,
            by_value=self.by_value,
            intercept=intercept,
            overall=np.inf,
        )


# From strong to weak: each fit starts from the one before it.
GRID = (
    Strengths(10.0, 40.0, 10.0),
    Strengths(2.5, 10.0, 2.5),
    Strengths(2.5, 10.0, 0.5),
    Strengths(0.5, 2.5, 0.5),
    Strengths(0.5, 1.0, 0.15),
)

# Strengths are compared on so many rows at most. They say how far weights differ from
# table to table, which does not depend on the number of rows.
_MAX_ROWS = 10_000

# Relative accuracy of the fits that are compared.
_ROUGH_TOL = 1e-4

# Pull of the scale of posteriors towards one, in rows, and the largest log posterior
# that is taken at its word.
_SCALE_ROWS = 2.0
_MAX_LOG_POSTERIOR = 100.0

# Kinds of views that keep the number itself.
_EXACT_KINDS = ("gaussian", "gaussian-relative", "linear")

# Positions of rows, and their weights.
_Share = tuple[NDArray[np.int64], NDArray[np.float64]]


def compare_strengths(
    recipe: Recipe,
    training: TrainingSet,
    grid: tuple[Strengths, ...],
    cv: Any,
    random_state: Any,
) -> list[dict[str, float]]:
    """Return cross-validated log-loss and error rate of each of the strengths.

    Everything is learned from scratch in each fold: encoding, counts, instance weights
    and weights. ``cv`` is a number of folds, or pairs of positions of training and test
    rows in the user's table. The records have the strengths, ``log_loss`` and its
    ``standard_error``, the ``error`` rate and the ``scale`` that was found.
    """
    by_fold: list[list[NDArray[np.float64]]] = []
    truths, weights = [], []
    for (rest, amount), (fold, fold_amount) in _folds(training, cv, random_state):
        # Rows of a class that the others lack tell nothing about strengths.
        is_known = np.isin(training.labels[fold], training.labels[rest])
        fold, fold_amount = fold[is_known], fold_amount[is_known]
        if not fold.size or len(np.unique(training.labels[rest])) < 2:
            continue
        with warnings.catch_warnings():
            # What there is to say of the table is said once, of the whole.
            warnings.simplefilter("ignore")
            all_one = (amount == 1.0).all()
            part = training.re_encoded(rest, None if all_one else amount)
            assert training.table is not None
            codes = part.encoder.encode(training.table.take(fold))
            by_fold.append(list(_posteriors(recipe, grid, part, codes)))
        truths.append(training.labels[fold])
        weights.append(fold_amount)
    if not weights:
        return [{**asdict(entry), "log_loss": np.nan, "scale": 1.0} for entry in grid]
    truth, u = np.concatenate(truths), np.concatenate(weights)
    return [
        {**asdict(entry), **_judged(np.concatenate(log_proba), truth, u)}
        for entry, log_proba in zip(grid, zip(*by_fold, strict=True), strict=True)
    ]


def _folds(
    training: TrainingSet, cv: Any, random_state: Any
) -> Iterator[tuple[_Share, _Share]]:
    """Yield rows to learn from and rows to predict, each with their weights."""
    if not isinstance(cv, Integral):
        u = training.sample_weight
        u = np.ones(training.n_rows) if u is None else u
        for split in cv:
            rest, fold = (_among_kept(training, rows) for rows in split)
            yield (rest, u[rest]), (fold, u[fold])
        return
    rng = check_random_state(random_state)
    some: NDArray[np.int64] = np.arange(training.n_rows)
    if len(some) > _MAX_ROWS:
        some = np.sort(rng.choice(len(some), _MAX_ROWS, replace=False))
    rows, fold_of, amount = deal(_with_numbers(training, some), int(cv), rng)
    rows = some[rows]
    for number in range(int(cv)):
        is_out = fold_of == number
        yield (rows[~is_out], amount[~is_out]), (rows[is_out], amount[is_out])


def _with_numbers(training: TrainingSet, rows: NDArray[np.int64]) -> TrainingSet:
    """Return some rows with the numbers of all numeric columns.

    Equal rows are merged when they are dealt to folds. Each fold learns cut points of
    its own, so that rows in the same bins are not equal.
    """
    taken = training.take(rows) if len(rows) < training.n_rows else training
    views = list(zip(training.schema.columns, training.schema.features, strict=True))
    nominal = ("categorical", "pair")
    numeric = {column for column, view in views if view.kind not in nominal}
    exact = {c for c, view in views if view.kind in _EXACT_KINDS and view.fill is None}
    if numeric <= exact:
        return taken
    densities = {column: "gaussian" for column in sorted(numeric)}
    encoding = replace(training.preparation.encoding, numeric=densities, missing="skip")
    encoder = encoding.encoder(training.n_jobs)
    table = training.table if taken is training else None
    if table is None:
        assert training.table is not None
        table = training.table.take(rows)
    with warnings.catch_warnings():
        # What there is to say of the table has been said.
        warnings.simplefilter("ignore")
        codes = encoder.learn(table, taken.labels, taken.n_classes, taken.sample_weight)
    return replace(taken, codes=codes, encoder=encoder)


def _posteriors(
    recipe: Recipe, grid: tuple[Strengths, ...], part: TrainingSet, codes: Codes
) -> Iterator[NDArray[np.float64]]:
    """Fit each of the strengths to some rows; yield log posteriors of others."""
    weighed = weigh_rows(recipe, part)
    problem = build_problem(recipe, part, None if weighed is None else weighed.weights)
    rough = replace(recipe, tol=_ROUGH_TOL)
    if isinstance(recipe.solver, str) and recipe.solver in ("auto", "lbfgs"):
        rough = replace(rough, solver=LBFGS(_ROUGH_TOL, recipe.max_iter))
    assert isinstance(recipe.weighting, HierarchicalWeighting)
    start, units = None, None
    for entry in grid:
        weighting = entry.weighting(recipe.weighting.intercept)
        ridge = Penalty(*weighting.strengths(problem.evidence))
        objective = replace(problem.objective, penalty=ridge, units=units)
        problem = replace(problem, objective=objective)
        solution = problem.solve(rough, start)
        start, units = solution.weights, solution.units
        yield problem.model(start).log_proba(codes, part.n_jobs)


def _among_kept(training: TrainingSet, rows: Any) -> NDArray[np.int64]:
    """Turn positions in the user's table into positions among the training rows."""
    rows = np.asarray(rows, dtype=np.int64)
    kept = np.arange(training.n_rows)
    if training.is_kept is not None:
        kept = np.flatnonzero(training.is_kept)
    position = np.minimum(np.searchsorted(kept, rows), len(kept) - 1)
    return np.asarray(position[kept[position] == rows])


def _judged(
    log_proba: NDArray[np.float64], truth: NDArray[Any], u: NDArray[np.float64]
) -> dict[str, float]:
    """Find the scale that makes held-out posteriors fit best, and how well they do.

    A model is overconfident about the rows that it was learned from; what it says of
    others tells by how much. The scale is drawn towards one by a few rows' worth.
    """
    total = u.sum()

    def losses(log_scale: float) -> NDArray[np.float64]:
        scores = np.exp(log_scale) * np.maximum(log_proba, -_MAX_LOG_POSTERIOR)
        of_truth = scores[np.arange(len(truth)), truth]
        return np.asarray(logsumexp(scores, axis=1) - of_truth)

    best = minimize_scalar(
        lambda t: u @ losses(t) + _SCALE_ROWS * t * t,
        bounds=(np.log(0.1), np.log(2.0)),
        method="bounded",
        options={"xatol": 1e-3},
    )
    loss = losses(float(best.x))
    mean = u @ loss / total
    spread = u @ (loss - mean) ** 2 / total
    return {
        "log_loss": float(mean),
        "standard_error": float(np.sqrt(spread / max(total - 1.0, 1.0))),
        "error": float(u @ (log_proba.argmax(axis=1) != truth) / total),
        "scale": float(np.exp(best.x)),
    }
