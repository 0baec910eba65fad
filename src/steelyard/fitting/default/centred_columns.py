"""Columns of a solved problem with their bins and weights, and rows that tell of them.

What is the same for all classes in how uncertain a hierarchy of weights is.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array

from steelyard._common.arrays import Floats, Ints
from steelyard.fitting.problem import Problem
from steelyard.model.base import softmax
from steelyard.table.schema import FeatureSchema
from steelyard.weighting import HierarchicalWeighting

# Cells of the rows that curvatures are taken from, and rows at least.
_CELLS, _LEAST_ROWS = 4e5, 1_000

# Strengths below are as good as none, and still numbers to compute with.
_LEAST_STRENGTH = 1e-3

# Weights of a column up to which they are coupled; categories beyond are not.
_MOST_COUPLED = 200

# Rows for each weight beyond which columns share next to nothing.
_ROWS_OF_A_WEIGHT = 50


class CentredColumn:
    """Codes that a column has of its own: the finest bins, categories, or a pair."""

    def __init__(self, rows: CentredRows, j: int, coarser: list[int]) -> None:
        schema = rows.evidence.schema
        self.feature, self.j = schema.features[j], j
        self.codes = slice(int(schema.offsets[j]), int(schema.offsets[j + 1]))
        """Rows of the table."""
        merged = [_code_in(schema.features[i], self.feature) for i in coarser]
        codes = [np.arange(self.feature.n_codes), *merged]
        self.attributes = [j, *coarser]
        views = list(zip(self.attributes, codes, strict=True))
        self.views = np.array([schema.offsets[i] + own for i, own in views])
        """The same by view and code: coarser bins are views too."""
        firsts, lasts = rows.ends[self.attributes].T
        self.size = int((lasts - firsts).sum()) + 2 * len(views)
        """How many weights there are, two of evidence in each view."""
        self.is_coupled = self.size <= _MOST_COUPLED
        if self.is_coupled:
            self.basis = np.hstack([rows.dense_basis(i)[own] for i, own in views])
        else:
            self.squares = rows.basis[self.codes].power(2).sum(axis=1)


class CentredRows:
    """Some rows of a solved problem, and what classes share of their design."""

    def __init__(self, problem: Problem, weights: Floats, n_columns: int) -> None:
        self.problem, self.evidence = problem, problem.evidence
        weighting = problem.objective.weighting
        assert isinstance(weighting, HierarchicalWeighting)
        evidence, schema = self.evidence, self.evidence.schema
        strength = np.maximum(weighting.strengths(evidence)[0], _LEAST_STRENGTH)
        self.strength = weighting.levels(strength, evidence)
        self.effect = weighting.apply(weights, evidence).table
        self.level = weighting.levels(weights, evidence)
        named = weighting.fitted(weights, evidence)
        self.weight_of_evidence: Floats = named["class_attribute_weights_"]
        self.n_codes, owners = schema.n_codes, evidence.resolutions.owners
        first = np.searchsorted(owners, np.arange(len(schema) + 1))
        self.ends = np.stack([first[:-1], first[1:]], axis=1)
        """The first weight of effects of each attribute, and the one after its last."""
        deviations = 1.0 / np.sqrt(self.strength.by_value[:, 0])
        self.basis = csr_array(evidence.resolutions.basis.multiply(deviations))
        most = int(_CELLS / (len(schema) * n_columns))
        sample = problem.objective.sample(max(most, _LEAST_ROWS))
        self.share = softmax(sample.scores(weights))
        self.weights, self.is_all = sample.row_weights(), sample.is_all
        self.total: float = problem.counts.total
        """The weight of all rows: a row of weight two counts as two rows."""
        self.n_rows, self.codes = problem.objective.rows.n_rows, sample.table_rows()
        """How many rows there are; where those of the sample read tables, (s, d)."""
        starts = self.codes.shape[1] * np.arange(len(self.codes) + 1)
        entries = np.ones(self.codes.size), self.codes.ravel(), starts
        self.cells = csr_array(entries, (len(self.codes), self.n_codes))
        """The same as ones, shape (s, V)."""

    def by_code(self, of_rows: Floats) -> Floats:
        """Add up what rows have by code, (s, C) to (V, C), for all rows.

        Of some rows the mean is taken, which few rows of a code share with all.
        """
        sums = self.cells.T @ of_rows
        if self.is_all:
            return sums
        counts = self.problem.counts.by_code.sum(axis=1)
        row, mean = self.weights.mean(), of_rows.sum(axis=0) / self.weights.sum()
        seen = self.cells.T @ self.weights
        return (counts / (seen + row))[:, None] * (sums + row * mean)

    def dense_basis(self, j: int) -> Floats:
        """Return what effects of an attribute do to its codes, in their deviations."""
        codes, (first, last) = self.evidence.schema.offsets[j : j + 2], self.ends[j]
        starts = self.basis.indptr[codes[0] : codes[1] + 1]
        part = slice(starts[0], starts[-1])
        out = np.zeros((len(starts) - 1, last - first))
        own = np.repeat(np.arange(len(out)), np.diff(starts))
        out[own, self.basis.indices[part] - first] = self.basis.data[part]
        return out

    @cached_property
    def columns(self) -> list[CentredColumn]:
        """All columns and pairs, each with its coarser bins."""
        schema, coarser = self.evidence.schema, defaultdict(list)
        for j in np.flatnonzero(schema.is_coarser).tolist():
            coarser[schema.columns[j]].append(j)
        own = np.flatnonzero(~schema.is_coarser).tolist()
        return [CentredColumn(self, j, coarser[schema.columns[j]]) for j in own]

    @cached_property
    def n_coupled(self) -> int:
        """How many weights are coupled within columns."""
        return sum(column.size for column in self.columns if column.is_coupled)

    @property
    def are_many(self) -> bool:
        """Whether there are so many rows that columns share next to nothing."""
        return self.total > _ROWS_OF_A_WEIGHT * self.n_coupled


def _code_in(coarse: FeatureSchema, fine: FeatureSchema) -> Ints:
    """Return the code that each code of finer bins has in coarser ones."""
    edges = np.array(fine.edges)
    inside = np.concatenate([edges, edges[-1:]])
    inside[1:-1] = (edges[1:] + edges[:-1]) / 2.0
    if len(edges):
        inside[-1] = np.inf
    codes = np.zeros(fine.n_codes, dtype=np.int64)
    codes[1 : len(inside) + 1] = 1 + np.searchsorted(coarse.edges, inside)
    if fine.missing_is_value:
        codes[-1] = coarse.missing_code
    return codes
