r"""How uncertain a fitted hierarchy of weights leaves the log-odds of each class.

Log-odds of a class against the others are a penalised logistic regression of their own,
with the prior deviations of the hierarchy. A column that is centred tells next to
nothing of the others: Laplace's approximation gives the weights of each the covariance
:math:`(I + A^T H A)^{-1}`, in units of these deviations, with its centred design A and
:math:`H = \mathrm{diag}(u\, p_c (1 - p_c))`. What columns share of their information is
taken off on average, by a system in the weights of all. A file keeps a variance of each
code (`Uncertainty`). That has three further parts, which the covariance knows nothing
of: the noise of evidence, which comes from counts of the same rows; steps of single
bins, which smooth curves leave out; and the slope within a bin.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit, logit

from steelyard._common.arrays import Floats, Ints
from steelyard.fitting.problem import Problem
from steelyard.model import softmax
from steelyard.model.beside import Uncertainty
from steelyard.table.schema import FeatureSchema
from steelyard.weighting import HierarchicalWeighting

# How many times wider than in the fit effects may be: strengths are an estimate too.
_OPEN = 2.5

# Share of the variance of a curve that its basis leaves out, as `table/resolutions`
# does: steps of single bins. It falls with rows beyond some: strengths that many rows
# have chosen tell how rough curves are.
_LEFT_OUT, _FEW_ROWS = 0.05, 200

# Variance within a bin, in squares of the step to its neighbours; in the outermost
# bins, where the truth goes on, so many times the largest of some steps at that end.
_WITHIN, _OUTER, _STEPS_AT_END = 1.0 / 12.0, (8.0, 5.0, 3.0), 6

# Resolution of evidence of bins, which is an average over several.
_BINS_OF_EVIDENCE = 10.0

# Cells of the rows that curvatures are taken from, and rows at least.
_CELLS, _LEAST_ROWS = 4e5, 1_000

# How often curvatures are averaged over uncertain log-odds.
_TURNS = 2

# Strengths below are as good as none, and still numbers to compute with.
_LEAST_STRENGTH = 1e-3

# Weights of a column up to which they are coupled; categories beyond are not.
_MOST_COUPLED = 200

# Products that are made for a system in the weights of all columns, and classes that
# have one.
_WORK, _CLASSES_OF_ALL = 2e8, 3

# Rows for each weight beyond which columns share next to nothing.
_ROWS_OF_A_WEIGHT = 50

# Classes that are looked at together, in numbers by code.
_AT_ONCE = 1e6

# Bits of the numbers that are kept, beside sign and exponent.
_BITS = 4


def uncertainty_of(
    problem: Problem, weights: Floats, scale: float
) -> Uncertainty | None:
    """Return the uncertainty of a solved problem, None where it is not known.

    ``scale`` multiplies scores before they become probabilities.
    """
    evidence = problem.evidence
    is_known = problem.objective.loss.is_likelihood and not len(evidence.gaussian)
    if not is_known or not evidence.n_features:
        return None
    n_classes = evidence.n_classes
    columns = np.array([1]) if n_classes == 2 else np.arange(n_classes)
    prior = problem.counts.by_class / problem.counts.total
    prior = np.clip(prior, 1e-6, 1.0 - 1e-6)
    base = 1.0 / (problem.counts.total * prior * (1.0 - prior))
    rows = _Rows(problem, weights, len(columns))
    n_parts = int(min(len(columns), 1 + rows.n_codes * len(columns) // _AT_ONCE))
    parts = [_Classes(rows, own) for own in np.array_split(columns, n_parts)]
    found = [
        np.hstack(own) for own in zip(*map(_Classes.variances, parts), strict=True)
    ]
    by_code, of_means = (_rounded(scale**2 * own) for own in found)
    none = np.zeros((0, *by_code.shape))
    return Uncertainty(base[columns], by_code, none, of_means)


def _rounded(values: Floats) -> Floats:
    """Round numbers to a few bits, so that files stay small."""
    digits, exponent = np.frexp(values)
    return np.ldexp(np.rint(digits * 2.0**_BITS), exponent - _BITS)


def _effective(design: Floats) -> float:
    """Return the effective number of weights of a design by roots of curvatures."""
    system = design.T @ design if len(design) > design.shape[1] else design @ design.T
    system[np.diag_indices_from(system)] += 1.0
    return float(len(system) - np.trace(np.linalg.inv(system)))


class _Column:
    """Codes that a column has of its own: the finest bins, categories, or a pair."""

    def __init__(self, rows: _Rows, j: int, coarser: list[int]) -> None:
        schema = rows.evidence.schema
        self.feature, self.j = schema.features[j], j
        self.codes = slice(int(schema.offsets[j]), int(schema.offsets[j + 1]))
        """Rows of the table."""
        merged = [_code_in(schema.features[i], self.feature) for i in coarser]
        codes = [np.arange(self.feature.n_codes), *merged]
        views = list(zip([j, *coarser], codes, strict=True))
        self.views = np.array([schema.offsets[i] + own for i, own in views])
        """The same by view and code: coarser bins are views too."""
        firsts, lasts = rows.ends[[i for i, _ in views]].T
        self.size = int((lasts - firsts).sum()) + 2 * len(views)
        """How many weights there are, two of evidence in each view."""
        self.is_coupled = self.size <= _MOST_COUPLED
        if self.is_coupled:
            self.basis = np.hstack([rows.dense_basis(i)[own] for i, own in views])
        else:
            self.squares = rows.basis[self.codes].power(2).sum(axis=1)


class _Rows:
    """Some rows of a solved problem, and what classes share of their design."""

    def __init__(self, problem: Problem, weights: Floats, n_columns: int) -> None:
        self.problem, self.evidence = problem, problem.evidence
        weighting = problem.objective.weighting
        assert isinstance(weighting, HierarchicalWeighting)
        evidence, schema = self.evidence, self.evidence.schema
        strength = np.maximum(weighting.strengths(evidence)[0], _LEAST_STRENGTH)
        self.strength = weighting.levels(strength, evidence)
        self.effect = weighting.apply(weights, evidence).table
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
    def columns(self) -> list[_Column]:
        """All columns and pairs, each with its coarser bins."""
        schema, coarser = self.evidence.schema, defaultdict(list)
        for j in np.flatnonzero(schema.is_coarser).tolist():
            coarser[schema.columns[j]].append(j)
        own = np.flatnonzero(~schema.is_coarser).tolist()
        return [_Column(self, j, coarser[schema.columns[j]]) for j in own]

    @cached_property
    def n_coupled(self) -> int:
        """How many weights are coupled within columns."""
        return sum(column.size for column in self.columns if column.is_coupled)

    @property
    def are_many(self) -> bool:
        """Whether there are so many rows that columns share next to nothing."""
        return self.n_rows > _ROWS_OF_A_WEIGHT * self.n_coupled


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


class _Classes:
    """The log-odds of some classes, each against the others; their axis is C."""

    def __init__(self, rows: _Rows, classes: Ints) -> None:
        self._rows, self._classes = rows, classes
        evidence, strength = rows.evidence, rows.strength
        prior = np.exp(evidence.log_prior)
        # Effects of the class, less the mean of those of the others.
        self._others = -prior[:, None] / (prior.sum() - prior[classes])
        self._others[classes, np.arange(len(classes))] = 1.0
        self._spread = _OPEN * (self._others**2).sum(axis=0) / 2.0
        values, spread = evidence.table.values, evidence.table.spread
        apart = values @ self._others
        by_class = self._spread / strength.by_class[:, :1]
        shared = _OPEN * 0.5 / strength.shared[:, None]
        self._of_evidence = np.stack(
            [
                apart * spread(np.sqrt(shared + by_class / 4.0)),
                (values[:, classes] - apart / 2.0) * spread(np.sqrt(by_class)),
            ]
        )
        """What the two weights of evidence do to codes, (2, V, C)."""
        self._odds = rows.effect @ self._others

    def variances(self) -> tuple[Floats, Floats]:
        """Return variances of codes, (V, C), and of mean sizes of attributes, (d, C).

        Curvatures are their mean over the uncertain log-odds of each row, not those at
        the estimate, which vanish where classes are separated (M. Opper, C. Archambeau
        (2009), "The variational Gaussian approximation revisited").
        """
        rows = self._rows
        share = np.clip(rows.share[:, self._classes], 1e-12, 1.0 - 1e-12)
        odds, ratio = logit(share), 0.0
        # Many rows leave next to nothing open.
        of_rows, n_turns = (0.0, 1) if rows.are_many else (1.0, _TURNS)
        for _ in range(n_turns):
            shrink = 1.0 / np.sqrt(1.0 + np.pi / 8.0 * of_rows)
            mean = expit(odds * shrink)
            self._by_row = rows.weights[:, None] * shrink * mean * (1.0 - mean)
            self._curvature = rows.by_code(self._by_row)
            known, prior, of_means = self._by_column()
            ratio = ratio or self._ratio(known)
            of_rows = ratio * (rows.cells @ known)
        unlearned = known / np.where(prior > 0.0, prior, np.inf)
        alone = self._noise_of_evidence(unlearned) + self._within_bins()
        shares = rows.problem.counts.by_code.sum(axis=1) / rows.problem.counts.total
        of_means *= ratio
        of_means += rows.evidence.table.collect(shares[:, None] ** 2 * alone)
        return ratio * known + alone, of_means

    def _by_column(self) -> tuple[Floats, Floats, Floats]:
        """Return variances of centred codes, those before any row, and of mean sizes.

        The mean size of what an attribute adds is linear in it, while no sign changes.
        """
        rows, counts = self._rows, self._rows.problem.counts
        known, prior = np.zeros((2, *self._curvature.shape))
        of_means = np.zeros((len(rows.evidence.schema), len(self._classes)))
        for column in rows.columns:
            design, curvature = self._centred(column)
            shares = counts.by_code[column.codes].sum(axis=1) * design.any(axis=2)
            odds = self._odds[column.views].sum(axis=0).T
            total = np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
            middle = (shares * odds).sum(axis=1, keepdims=True) / total
            signs = np.sign(odds - middle) * shares / counts.total
            squares = design**2
            before = squares.sum(axis=2)
            if column.is_coupled:
                turned = np.swapaxes(design, 1, 2)
                system = turned @ (curvature[..., None] * design)
                system += np.eye(design.shape[2])
                solved = np.linalg.solve(system, turned)
                own = (turned * solved).sum(axis=1)
                signs = signs[..., None]
                of_mean = ((turned @ signs) * (solved @ signs)).sum(axis=(1, 2))
            else:
                effects = self._spread[:, None] * column.squares
                alone = 1.0 / (1.0 + curvature[:, None] @ squares)
                own = (squares * alone).sum(axis=2)
                own += effects / (1.0 + effects * curvature)
                before += effects
                of_mean = (signs**2 * own).sum(axis=1)
            known[column.codes], prior[column.codes] = own.T, before.T
            of_means[column.j] = of_mean
        return known, prior, of_means

    def _centred(
        self, column: _Column, some: slice = slice(None)
    ) -> tuple[Floats, Floats]:
        """Return what weights do to codes beyond their mean, and curvatures.

        For some classes, in units of prior deviations: (C, m, q) and (C, m).
        """
        parts = [self._of_evidence[:, column.views, some].transpose(3, 2, 0, 1)]
        if column.is_coupled:
            deviations = np.sqrt(self._spread[some])[:, None, None]
            parts.append(deviations * column.basis)
        shape = *parts[0].shape[:2], -1
        design = np.concatenate([part.reshape(shape) for part in parts], axis=2)
        is_known = design.any(axis=2)
        curvature = np.where(is_known, self._curvature[column.codes, some].T, 0.0)
        total = np.maximum(curvature.sum(axis=1), 1e-300)[:, None, None]
        design -= curvature[:, None] @ design / total
        design[~is_known] = 0.0
        return design, curvature

    def _ratio(self, known: Floats) -> float:
        """Return the share of variances that is left by what columns share.

        It is that of the effective number of all weights in the sum of those of single
        columns, for some classes. In few rows all columns seem to share something:
        what that takes off, as odds, falls with the number of rows.
        """
        rows, size = self._rows, self._rows.n_coupled
        if rows.are_many:
            return 1.0
        most = int(max(_WORK / size**2, np.sqrt(_WORK / size)))
        picked = slice(None, None, -(-len(rows.codes) // most))
        some = slice(None, None, -(-len(self._classes) // _CLASSES_OF_ALL))
        curvature = self._by_row[picked, some]
        curvature = np.sqrt(curvature * (len(rows.codes) / len(curvature)))
        effective, designs, alone = self._curvature * known, [], 0.0
        for column in rows.columns:
            if not column.is_coupled:
                continue
            codes = rows.codes[picked, column.j] - column.codes.start
            designs.append(self._centred(column, some)[0][:, codes])
            alone += float(effective[column.codes, some].sum())
        whole = np.concatenate(designs, axis=2) * curvature.T[:, :, None]
        joint = sum(_effective(design) for design in whole)
        if joint < 1.0:
            return 1.0
        taken = max(alone / joint - 1.0, 0.0)
        return 1.0 / (1.0 + taken * len(curvature) / rows.n_rows)

    def _noise_of_evidence(self, unlearned: Floats) -> Floats:
        """Return variances of evidence by code, as far as effects do not make up."""
        rows, evidence = self._rows, self._rows.evidence
        schema, spread = evidence.schema, evidence.table.spread
        merged = [
            f.n_values / _BINS_OF_EVIDENCE if f.kind == "binned" else 1.0
            for f in schema.features
        ]
        counts = rows.problem.counts.by_code
        counts = counts * np.maximum(spread(np.array(merged)), 1.0)[:, None]
        variance = (1.0 / (counts + 1.0)) @ self._others**2
        variance[schema.first_codes] = 0.0
        weight = spread(rows.weight_of_evidence[self._classes].T)
        return np.asarray((weight * unlearned) ** 2 * variance)

    def _within_bins(self) -> Floats:
        """Return variances of steps of single bins, and of slopes within bins."""
        rows, resolutions = self._rows, self._rows.evidence.resolutions
        left_out = _LEFT_OUT * min(1.0, _FEW_ROWS / rows.n_rows) * self._spread
        out = np.zeros(self._curvature.shape)
        for column in rows.columns:
            if column.feature.kind != "binned":
                continue
            n = len(column.feature.edges) + 1
            bins = slice(column.codes.start + 1, column.codes.start + 1 + n)
            if resolutions.is_curve[column.j]:
                strength = rows.strength.by_value[rows.ends[column.j, 0], 0]
                out[bins] += 1.0 / (strength / left_out + self._curvature[bins])
            if n > 2:
                curve = self._odds[column.views[:, 1 : n + 1]].sum(axis=0)
                steps = np.abs(np.diff(curve, axis=0))
                near = np.zeros((n, len(self._classes)))
                near[1:-1] = (steps[1:] + steps[:-1]) / 2.0
                outer = np.array(_OUTER[: 1 if n <= 2 * len(_OUTER) else None])
                for own, others in ((near, steps), (near[::-1], steps[::-1])):
                    at_end = outer[:, None] * others[:_STEPS_AT_END].max(axis=0)
                    own[: len(outer)] = np.maximum(own[: len(outer)], at_end)
                out[bins] += _WITHIN * near**2
        return out
