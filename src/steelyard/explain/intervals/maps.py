"""What a vector of weights stands for, as sparse matrices with a column each.

Functions of weights are linear: weights by their names, their effect on scores, the
evidence of rows. Arrays of shape (a, K) are laid out row by row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array, diags_array, eye_array, hstack, kron, vstack

from steelyard._common.arrays import Floats, Ints
from steelyard.fitting.default.preconditioner import contrasts
from steelyard.fitting.problem import Problem
from steelyard.table.codes import Codes
from steelyard.weighting import LogProbs

# Weights that are laid out by value.
BY_VALUE = ("value_weights_", "value_effects_")


@dataclass(frozen=True)
class WeightMaps:
    """Maps of any weighting, which is asked for each weight in turn."""

    problem: Problem

    @property
    def evidence(self) -> LogProbs:
        """What the weights multiply."""
        return self.problem.evidence

    @property
    def _k(self) -> int:
        return self.evidence.n_classes

    @cached_property
    def effect(self) -> csr_array:
        """What weights do to scores: table, multipliers, base; (V K + g K + K, p)."""
        weighting = self.problem.objective.weighting
        columns = []
        for unit in np.eye(self.problem.size):
            effect = weighting.direction(unit, self.evidence)
            parts = effect.table, effect.multipliers, effect.base
            columns.append(np.concatenate([part.ravel() for part in parts]))
        return _side_by_side(columns)

    @cached_property
    def named(self) -> dict[str, tuple[csr_array, tuple[int, ...]]]:
        """Maps to the weights as they are named, and the shapes of these."""
        every = np.eye(self.problem.size)
        units = [named_weights(self.problem, unit) for unit in every]
        return {
            name: (_side_by_side([unit[name].ravel() for unit in units]), value.shape)
            for name, value in units[0].items()
        }

    def cells(self, codes: Codes, rows: slice, place: Ints) -> csr_array:
        """Return where rows read an effect: shape (n m K, V K + g K + K).

        Attribute j is added to part ``place[j]`` of m parts; the base to part 0.
        """
        schema, k = codes.schema, self._k
        n, m = len(range(*rows.indices(codes.n_rows))), int(place.max(initial=0)) + 1
        where = np.arange(n * m * k).reshape(n, m, k)
        width, n_gaussian = schema.n_codes, len(schema.gaussian)
        # Part, row of the effect, factor: each for all rows and classes.
        read = [(0, np.full(n, width + n_gaussian), np.ones((n, k)))]
        for j in schema.coded.tolist():
            code = schema.offsets[j] + codes.column(j)[rows].astype(np.int64)
            read.append((place[j], code, np.ones((n, k))))
        if n_gaussian:
            numbers = np.ascontiguousarray(codes.number_rows(rows))
            pieces = [dens for _, dens in self.problem.gaussian.log_densities(numbers)]
            densities = np.concatenate(pieces)
            for g, j in enumerate(schema.gaussian.tolist()):
                read.append((place[j], np.full(n, width + g), densities[:, g]))
        i = np.concatenate([where[:, part].ravel() for part, _, _ in read])
        columns = [(row[:, None] * k + np.arange(k)).ravel() for _, row, _ in read]
        entries = np.concatenate([factor.ravel() for _, _, factor in read])
        shape = (n * m * k, (width + n_gaussian + 1) * k)
        return csr_array((entries, (i, np.concatenate(columns))), shape=shape)

    def scores(self, codes: Codes, rows: slice, effect: csr_array) -> csr_array:
        """Return scores of rows as functions of what an effect is made of, (n K, q)."""
        place = np.zeros(len(codes.schema), dtype=np.int64)
        return csr_array(self.cells(codes, rows, place) @ effect)


def _side_by_side(columns: list[Floats]) -> csr_array:
    return csr_array(vstack([csr_array(column[None, :]) for column in columns]).T)


class LevelMaps(WeightMaps):
    """Maps of a hierarchy, which may have thousands of weights."""

    @cached_property
    def _levels(self) -> list[csr_array]:
        """Pick each level out of the weights."""
        k, d, size = self._k, self.evidence.n_features, self.problem.size
        ends = np.cumsum([k, 1, d, d * k])
        units = eye_array(size, format="csr")
        cuts = zip([0, *ends], [*ends, size], strict=True)
        return [units[low:high] for low, high in cuts]

    @cached_property
    def intercept(self) -> csr_array:
        """Corrections of the log priors, shape (K, p)."""
        return self._levels[0]

    @cached_property
    def shared(self) -> csr_array:
        """Shared weights, shape (d, p)."""
        _, overall, shared, _, _ = self._levels
        centers = self.evidence.centers
        return csr_array(csr_array(centers[:, None]) @ overall + shared)

    @cached_property
    def by_class(self) -> csr_array:
        """Weights of each attribute and class, shape (d K, p)."""
        ones = np.ones((self._k, 1))
        return csr_array(kron(self.shared, ones) + self._levels[3])

    @cached_property
    def value_effects(self) -> csr_array:
        """Effects of codes, shape (V K, p)."""
        spread = kron(self.evidence.resolutions.basis, eye_array(self._k))
        return csr_array(csr_array(spread) @ self._levels[4])

    @cached_property
    def effect(self) -> csr_array:
        """What weights do to scores: table, multipliers, base; (V K + g K + K, p)."""
        evidence, k = self.evidence, self._k
        rows = np.arange(evidence.n_features * k).reshape(-1, k)
        by_code = self.by_class[evidence.table.spread(rows).ravel()]
        table = diags_array(evidence.table.values.ravel()) @ by_code
        multipliers = self.by_class[rows[evidence.gaussian].ravel()]
        parts = [table + self.value_effects, multipliers, self.intercept]
        return csr_array(vstack(parts))

    @cached_property
    def named(self) -> dict[str, tuple[csr_array, tuple[int, ...]]]:
        """Maps to the weights as they are named, and the shapes of these."""
        evidence, k, d = self.evidence, self._k, self.evidence.n_features
        by_class = np.arange(d * k).reshape(d, k).T
        by_value = (evidence.value_rows[:, None] * k + np.arange(k)).T
        # What all classes share of a slope has no effect.
        is_shared = diags_array(np.where(evidence.schema.is_linear, 0.0, 1.0))
        return {
            "attribute_weights_": (csr_array(is_shared @ self.shared), (d,)),
            "class_attribute_weights_": (self.by_class[by_class.ravel()], (k, d)),
            "value_effects_": (self.value_effects[by_value.ravel()], by_value.shape),
            "intercept_": (self.intercept, (k,)),
        }

    @cached_property
    def turned(self) -> tuple[csr_array, csr_array]:
        """Directions of weights: all that rows may tell of, and those they cannot.

        What an intercept or an effect adds to all classes alike changes no posterior.
        Both are orthonormal, of shapes (p, q) and (p, p - q).
        """
        even, uneven = np.full((self._k, 1), self._k**-0.5), contrasts(self._k)
        alike, apart = [], []
        for number, level in enumerate(self._levels):
            if number not in (0, 4):
                apart.append(level.T)
                continue
            each = eye_array(level.shape[0] // self._k)
            alike.append(level.T @ csr_array(kron(each, even)))
            apart.append(level.T @ csr_array(kron(each, uneven)))
        return csr_array(hstack(apart)), csr_array(hstack(alike))

    @cached_property
    def owners(self) -> Ints:
        """Class that each weight belongs to, -1 where all share it, shape (p,)."""
        shared = np.full(1 + self.evidence.n_features, -1)
        rest = self.problem.size - self._k - len(shared)
        # Intercepts come first; then what is shared; then weights class by class.
        return np.r_[np.arange(self._k), shared, np.arange(rest) % self._k]

    @cached_property
    def prior_units(self) -> csr_array:
        """Give weights in units of their prior deviations, shape (p, p)."""
        penalty = self.problem.objective.penalty
        assert penalty is not None
        ridge = penalty.curvature(self.problem.size)
        return csr_array(diags_array(1.0 / np.sqrt(ridge)))


def named_weights(problem: Problem, weights: Floats) -> dict[str, Floats]:
    """Name a vector of weights; those of values are laid side by side."""
    named = problem.objective.weighting.fitted(weights, problem.evidence)
    return {name: side_by_side(name, value) for name, value in named.items()}


def side_by_side(name: str, value: Any) -> Floats:
    """Lay weights out in one array: those of values, attribute by attribute."""
    if name in BY_VALUE:
        return np.concatenate(value, axis=1)
    return np.asarray(value, dtype=np.float64)
