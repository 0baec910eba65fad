"""Standard deviations of weights, and of the evidence of rows, near a minimum."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from steelyard.exceptions import ParameterError
from steelyard.explain.by_class import ClassCovariance, is_by_class
from steelyard.explain.evidence import evidence_of
from steelyard.explain.posterior import (
    MAX_SYSTEM,
    FactoredCovariance,
    WeightMaps,
    cells_of,
)
from steelyard.explain.views import Floats, add_views, views_of
from steelyard.fitting.problem import Problem
from steelyard.table.codes import Codes
from steelyard.weighting import Effect, HierarchicalWeighting

# Beyond this many weights the inverse of the Hessian is not made.
_MAX_WEIGHTS = 3_000

# Weights times rows, columns and classes, for intervals of evidence.
_MAX_EVIDENCE_NUMBERS = 50_000_000

# Operations for intervals of evidence by a factored system: a minute or two.
_MAX_EVIDENCE_WORK = 4e12

# Weights that are laid out by value.
BY_VALUE = ("value_weights_", "value_effects_")


class Deviations(Protocol):
    """Standard deviations of what weights stand for, near the minimum."""

    def named(self) -> dict[str, Floats]:
        """Return deviations of the weights as they are named."""

    def evidence(self, codes: Codes) -> tuple[Floats, Floats]:
        """Return those of the evidence of rows: by column (n, d, K), and of its sum."""


class DenseDeviations:
    """Deviations by the inverse of a Hessian that was made in full."""

    def __init__(
        self, problem: Problem, weights: Floats, free: NDArray[np.bool_]
    ) -> None:
        self._problem, self._weights = problem, weights
        self._root = root_of_inverse(hessian_of(problem, weights), free)

    def named(self) -> dict[str, Floats]:
        """Return deviations of the weights as they are named."""
        return named_deviation(self._problem, self._weights, self._root)

    def evidence(self, codes: Codes) -> tuple[Floats, Floats]:
        """Return those of the evidence of rows: by column (n, d, K), and of its sum."""
        problem, n_weights = self._problem, len(self._weights)
        shape = (codes.n_rows, len(codes.schema) + 1, len(problem.classes))
        _refuse_many(
            n_weights * float(np.prod(shape)), _MAX_EVIDENCE_NUMBERS, codes.n_rows
        )
        weighting = problem.objective.weighting
        units = [weighting.direction(w, problem.evidence) for w in np.eye(n_weights)]
        maps = evidence_of(np.array([added(problem, unit, codes) for unit in units]))
        by_column, total = maps[:, :, 1:], maps.sum(axis=2)
        return _deviation(self._root, by_column), _deviation(self._root, total)


class FactoredDeviations:
    """Deviations by the smaller of two systems, for weights held by a ridge."""

    def __init__(self, problem: Problem, weights: Floats, codes: Codes) -> None:
        self._problem = problem
        self._covariance = covariance_of(problem, codes, weights)

    def named(self) -> dict[str, Floats]:
        """Return deviations of the weights as they are named."""
        evidence, maps = self._problem.evidence, self._covariance.maps
        d, k = evidence.n_features, evidence.n_classes
        deviation = self._covariance.deviation
        shared = np.where(evidence.schema.is_linear, 0.0, deviation(maps.shared))
        by_code = deviation(maps.value_effects).reshape(-1, k)
        return {
            "attribute_weights_": shared,
            "class_attribute_weights_": deviation(maps.by_class).reshape(d, k).T,
            "value_effects_": by_code[evidence.value_rows].T,
            "intercept_": deviation(maps.intercept),
        }

    def evidence(self, codes: Codes) -> tuple[Floats, Floats]:
        """Return those of the evidence of rows: by column (n, d, K), and of its sum."""
        views, k = views_of(codes.schema), len(self._problem.classes)
        shape = (codes.n_rows, len(views) + 1, k)
        work = float(np.prod(shape)) * self._covariance.work
        _refuse_many(work, _MAX_EVIDENCE_WORK, codes.n_rows)
        place = np.empty(len(codes.schema), dtype=np.int64)
        for part, positions in enumerate(views, start=1):
            place[positions] = part
        whole = self._deviation(codes, np.zeros_like(place))
        return self._deviation(codes, place)[:, 1:], whole[:, 0]

    def _deviation(self, codes: Codes, place: NDArray[np.int64]) -> Floats:
        """Return deviations of evidence by row, part and class."""
        k = len(self._problem.classes)
        cells = cells_of(self._problem, codes, slice(None), place)
        maps = csr_array(cells @ self._covariance.maps.effect)
        found = self._covariance.deviation(maps, evidence_of(np.eye(k)))
        return found.reshape(codes.n_rows, -1, k)


def covariance_of(
    problem: Problem, codes: Codes, weights: Floats
) -> FactoredCovariance | ClassCovariance:
    """Choose between one system and one for each class, by the time they take."""
    objective = problem.objective
    assert isinstance(objective.weighting, HierarchicalWeighting)
    maps = WeightMaps(problem.evidence, objective.weighting)
    n, k = objective.rows.n_rows, problem.evidence.n_classes
    size = FactoredCovariance.system_size(problem)
    curvature = objective.sample(n).curvature(weights, True)
    fits = (k + 2) * n**2 <= 2 * MAX_SYSTEM**2 and is_by_class(curvature)
    if fits and (3.0 * (k + 1) * n**3 < size**3 or size > MAX_SYSTEM):
        return ClassCovariance(problem, codes, maps, curvature)
    if size > MAX_SYSTEM:
        raise ParameterError(
            f"There are {problem.size} weights and {n} rows, too many for Laplace's "
            f"approximation: {size} equations, at most {MAX_SYSTEM}, or {n} for each "
            f"class, at most {int(MAX_SYSTEM * (2 / (k + 2)) ** 0.5)}. Fit with "
            "pairs=None, a smaller number of resolutions, or fewer rows; or use "
            "method='bootstrap' for weights of columns."
        )
    return FactoredCovariance(problem, codes, maps, curvature)


def deviations_of(
    problem: Problem, weights: Floats, free: NDArray[np.bool_], codes: Codes
) -> Deviations:
    """Find deviations in the way that suits a problem."""
    size = problem.size
    if is_factored(problem):
        return FactoredDeviations(problem, weights, codes)
    if size > _MAX_WEIGHTS:
        raise ParameterError(
            f"There are {size} weights, too many to invert their Hessian "
            f"(at most {_MAX_WEIGHTS}). Use method='bootstrap'."
        )
    return DenseDeviations(problem, weights, free)


def is_factored(problem: Problem) -> bool:
    """Whether the weights are a hierarchy, every one held by the ridge."""
    if not isinstance(problem.objective.weighting, HierarchicalWeighting):
        return False
    return bool((problem.objective.weighting.strengths(problem.evidence)[0] > 0).all())


def _refuse_many(work: float, most: float, n_rows: int) -> None:
    if work > most:
        raise ParameterError(
            f"Intervals of {n_rows} rows would take too long or too much memory. Ask "
            f"for fewer rows at a time: about {max(int(n_rows * most / work), 1)}."
        )


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


def added(problem: Problem, effect: Effect, codes: Codes) -> Floats:
    """Return what an effect adds to rows: base and columns, (n, 1 + d, K)."""
    model = problem.sum_model(effect)
    parts = add_views(model.contributions(codes), codes.schema, axis=1)
    base = np.broadcast_to(effect.base, (len(parts), 1, parts.shape[2]))
    return np.concatenate([base, parts], axis=1)


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


def named_weights(problem: Problem, weights: Floats) -> dict[str, Floats]:
    """Name a vector of weights; those of values are laid side by side."""
    named = problem.objective.weighting.fitted(weights, problem.evidence)
    return {name: side_by_side(name, value) for name, value in named.items()}


def side_by_side(name: str, value: Any) -> Floats:
    """Lay weights out in one array: those of values, attribute by attribute."""
    if name in BY_VALUE:
        return np.concatenate(value, axis=1)
    return np.asarray(value, dtype=np.float64)
