"""Laplace's approximation: the Hessian of a fit, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from steelyard._common.text import signed, text_table
from steelyard.classifiers.base import BaseNB
from steelyard.classifiers.weighted import SolvedNB
from steelyard.exceptions import ParameterError
from steelyard.explain.evidence import evidence_of
from steelyard.explain.parts import PlainData
from steelyard.explain.views import Floats, add_views, column_labels
from steelyard.fitting.problem import Problem, build_problem
from steelyard.fitting.weights import weigh_rows
from steelyard.solvers import Solution
from steelyard.table.schema import TableSchema
from steelyard.weighting.base import Effect

# Beyond this many weights the inverse of the Hessian is not made.
_MAX_WEIGHTS = 3_000

# Weights times rows, columns and classes, for intervals of evidence.
_MAX_EVIDENCE_NUMBERS = 50_000_000

# Weights that are laid out by value.
BY_VALUE = ("value_weights_", "value_effects_")


@dataclass(frozen=True, repr=False)
class EvidenceIntervals(PlainData):
    r"""Evidence of rows with intervals, for each class against the mean of the others.

    With two classes that is log-odds. Attributes are arrays: ``estimate``, ``low`` and
    ``high`` of shape (n, d, K) by column, ``total``, ``total_low`` and ``total_high``
    of shape (n, K) for the sum of prior and all columns.
    """

    level: float
    classes: NDArray[Any]
    attributes: list[str]
    estimate: Floats
    low: Floats
    high: Floats
    total: Floats
    total_low: Floats
    total_high: Floats

    def __repr__(self) -> str:
        """List the evidence of up to three rows for their likeliest classes."""
        lines = []
        for i in range(min(len(self.total), 3)):
            c = int(np.argmax(self.total[i]))
            order = np.argsort(-np.abs(self.estimate[i, :, c]), kind="stable")
            columns = np.stack([self.estimate, self.low, self.high])[:, i, order, c].T
            sums = [self.total[i, c], self.total_low[i, c], self.total_high[i, c]]
            names = [*(self.attributes[j] for j in order), "sum, with the prior"]
            rows = [
                [name, *map(signed, numbers)]
                for name, numbers in zip(names, [*columns, sums], strict=True)
            ]
            title = f"row {i}: evidence for {self.classes[c]}"
            headers = [title, "evidence", "low", "high"]
            lines.append(text_table(headers, rows, [False, True, True, True]))
        return f"{100 * self.level:g} % intervals\n\n" + "\n\n".join(lines)


def hessian_of(problem: Problem, weights: Floats) -> Floats:
    """Second derivatives of the objective on all rows, shape (p, p)."""
    objective = problem.objective
    sample = objective.sample(objective.rows.n_rows)
    if objective.weighting.has_hessian:
        return sample.hessian(weights)
    curvature = sample.curvature(weights, True)
    units = np.eye(len(weights))
    return np.array([sample.product(curvature, unit) for unit in units])


def root_of_inverse(hessian: Floats, free: NDArray[np.bool_]) -> Floats:
    """Return R with R R' the inverse Hessian of the free weights, shape (p, r).

    Directions that the data do not determine have an infinite deviation.
    """
    p = len(hessian)
    root = np.zeros((p, int(free.sum())))
    if not free.any():
        return root
    inner = hessian[np.ix_(free, free)]
    # Each weight in its own unit, however different their penalties are.
    unit = np.sqrt(np.maximum(np.diag(inner), 1e-300))
    scaled = (inner + inner.T) / (2.0 * np.outer(unit, unit))
    values, vectors = np.linalg.eigh(scaled)
    flat = values <= 1e-12 * max(float(values.max(initial=0.0)), 1e-300)
    inverse = np.where(flat, 0.0, 1.0 / np.sqrt(np.where(flat, 1.0, values)))
    is_open = (np.abs(vectors) > 1e-4) & flat
    root[free] = np.where(is_open, np.inf, vectors * inverse / unit[:, None])
    return root


def _deviation(root: Floats, map_: Floats) -> Floats:
    """Return standard deviations of linear functions of weights, (p, ...) to (...)."""
    flat = map_.reshape(len(root), -1)
    spread = np.where(np.isinf(root), 0.0, root)
    out = np.sqrt(((spread.T @ flat) ** 2).sum(axis=0))
    endless = np.isinf(root).any(axis=1)
    out = np.where((flat[endless] != 0.0).any(axis=0), np.inf, out)
    return out.reshape(map_.shape[1:])


def named_deviation(
    problem: Problem, weights: Floats, root: Floats
) -> dict[str, Floats]:
    """Return standard deviations of the weights as they are named."""
    # Names stand for linear functions of the weights.
    units = [named_weights(problem, unit) for unit in np.eye(len(weights))]
    return {
        name: _deviation(root, np.array([unit[name] for unit in units]))
        for name in named_weights(problem, weights)
    }


def evidence_intervals(
    clf: BaseNB,
    problem: Problem,
    weights: Floats,
    root: Floats,
    asked: Any,
    level: float,
) -> EvidenceIntervals:
    """Give the evidence of some rows intervals: it is linear in the weights."""
    codes = clf._encode(asked)
    schema = clf.encoder_.schema_
    size = len(weights) * codes.n_rows * (len(schema) + 1) * len(clf.classes_)
    if size > _MAX_EVIDENCE_NUMBERS:
        raise ParameterError(
            f"Intervals of {codes.n_rows} rows need {size:,} numbers, too many. Ask "
            "for fewer rows at a time."
        )
    scale = float(clf.model_.link_scale)
    weighting = problem.objective.weighting

    def added(effect: Effect) -> Floats:
        """Return what an effect adds to rows: base and columns, (n, 1 + d, K)."""
        model = problem.sum_model(effect)
        parts = add_views(model.contributions(codes), schema, axis=1)
        base = np.broadcast_to(effect.base, (len(parts), 1, parts.shape[2]))
        return np.concatenate([base, parts], axis=1)

    units = [weighting.direction(w, problem.evidence) for w in np.eye(len(weights))]
    by_unit = evidence_of(np.array([added(effect) for effect in units])) * scale
    whole = added(weighting.apply(weights, problem.evidence))
    arrays = []
    for scores, by_weight in (
        (whole[:, 1:], by_unit[:, :, 1:]),
        (whole[:, 0] + whole[:, 1:].sum(axis=1), by_unit.sum(axis=2)),
    ):
        estimate = evidence_of(scores) * scale
        half = float(ndtri(0.5 + level / 2.0)) * _deviation(root, by_weight)
        arrays += [estimate, estimate - half, estimate + half]
    return EvidenceIntervals(level, clf.classes_, column_labels(schema), *arrays)


def solved(clf: BaseNB, X: Any, y: Any, sample_weight: Any) -> tuple[Problem, Solution]:
    """Set the training problem of a classifier up again, and solve it."""
    if not isinstance(clf, SolvedNB) or not clf._has_one_objective:
        raise ParameterError(
            f"{type(clf).__name__} does not learn its weights from one objective, so "
            "there is no Hessian. Use method='bootstrap'."
        )
    recipe = clf._fitted_recipe()
    training = clf._fitted_training(recipe, X, y, sample_weight)
    if recipe.one_vs_one and training.n_classes > 2:
        raise ParameterError(
            "One-vs-one fits a model for each pair of classes. Use "
            "method='bootstrap' for its weights."
        )
    weighed = weigh_rows(recipe, training)
    rows = None if weighed is None else weighed.weights
    problem = build_problem(recipe, training, rows)
    if not recipe.loss.is_likelihood or recipe.weighting.is_mixture:
        raise ParameterError(
            "Laplace's approximation needs a loss that is a negative log-likelihood: "
            "'log' or 'deviance', and no mixture. Use method='bootstrap'."
        )
    if problem.size > _MAX_WEIGHTS:
        raise ParameterError(
            f"There are {problem.size} weights, too many to invert their Hessian "
            f"(at most {_MAX_WEIGHTS}). Use method='bootstrap'."
        )
    return problem, problem.solve(recipe)


def named_bounds(
    problem: Problem, named: dict[str, Floats]
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Bounds of the weights as they are named; none where no weight has any."""
    if problem.box.is_everywhere:
        none = {name: np.full(value.shape, np.inf) for name, value in named.items()}
        return {name: -value for name, value in none.items()}, none
    box = problem.box
    return named_weights(problem, box.lower), named_weights(problem, box.upper)


def named_weights(problem: Problem, weights: Floats) -> dict[str, Floats]:
    """Name a vector of weights; those of values are laid side by side."""
    named = problem.objective.weighting.fitted(weights, problem.evidence)
    return {name: side_by_side(name, value) for name, value in named.items()}


def side_by_side(name: str, value: Any) -> Floats:
    """Lay weights out in one array: those of values, attribute by attribute."""
    if name in BY_VALUE:
        return np.concatenate(value, axis=1)
    return np.asarray(value, dtype=np.float64)


def value_names(schema: TableSchema, classes: NDArray[Any], name: str) -> list[str]:
    """Name weights by class, attribute and value; a density has at most one."""
    if name == "intercept_":
        return [str(c) for c in classes]
    names = []
    for j, (label, feature) in enumerate(
        zip(schema.labels(), schema.features, strict=True)
    ):
        if feature.is_coded:
            values = (schema.describe(j, v) for v in range(1, feature.n_codes))
            names += [f"{label} = {value}" for value in values]
        elif name == "value_weights_":
            names.append(label)
    return [f"{entry} in {c}" for c in classes for entry in names]
