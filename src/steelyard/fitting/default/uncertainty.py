r"""Posterior variance of the log-odds of each class, given a fitted hierarchy.

Log-odds of a class against the others are a penalised logistic regression, with the
prior deviations of the hierarchy. Centred columns are nearly independent, so each is
treated separately, by Laplace's approximation: in units of the prior deviations, with
its centred design A and :math:`H = \mathrm{diag}(u\, p_c (1 - p_c))`, the components
of :math:`A^T H A`, with eigenvalues g, have the posterior variances

.. math:: 1 / (1 + g)

Information that columns share is taken off on average, by a system in the weights of
all. A file keeps a variance of each code (`Uncertainty`). That has two further terms:
the noise of evidence, which comes from counts of the same rows, and slopes within bins
and beyond the data (`within_bins`).
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit, logit, ndtri

from steelyard._common.arrays import Floats, Ints
from steelyard.fitting.problem import Problem
from steelyard.model.base import softmax
from steelyard.model.uncertainty import Uncertainty
from steelyard.proba.basis import FINEST, averages, grouped_bins
from steelyard.table.schema import FeatureSchema, TableSchema
from steelyard.weighting import HierarchicalWeighting

# Bins of a column that evidence is taken to be counted in, and what is added to counts:
# it is an average over several length scales.
_BINS_OF_EVIDENCE, _ADDED = 10, 0.5

# How often curvatures are averaged over uncertain log-odds.
_MAX_AVERAGINGS = 2

# Products that are made for a system in the weights of all columns, and classes that
# have one.
_MAX_PRODUCTS, _MAX_SYSTEMS = 2e8, 3

# Classes that are computed together, in numbers by code.
_MAX_NUMBERS = 1e6

# Bits of the stored numbers, beside sign and exponent.
_MANTISSA_BITS = 4

# Cells of the sample that curvatures are computed from, and its smallest size.
_MAX_CELLS, _MIN_ROWS = 4e5, 1_000

# Smaller strengths are raised to this, so that deviations stay finite.
_MIN_STRENGTH = 1e-3

# Columns of more weights are treated as diagonal: categories.
_MAX_COUPLED_WEIGHTS = 200

# Rows for each weight beyond which shared information is neglected.
_ROWS_PER_WEIGHT = 50

# Window of a slope, as a share of all bins, and the outer bins whose steepest slope is
# extrapolated: steps of single bins come from cut points.
_SLOPE_WINDOW, _OUTER = 1.0 / 12.0, 0.3

# Largest share of the rows in a bin of several values: one of more is a value that is
# frequent, such as zero. The smallest one is a share of a mean bin, so that slopes are
# finite.
_MAX_SHARE = 2.0 / FINEST
_MIN_SHARE = 0.1


def uncertainty_of(
    problem: Problem, weights: Floats, scale: float
) -> Uncertainty | None:
    """Return the uncertainty of a solved problem, None without a likelihood.

    ``scale`` multiplies scores before they become probabilities.
    """
    evidence, loss = problem.evidence, problem.objective.loss
    is_possible = loss.is_likelihood and not len(evidence.gaussian)
    if not is_possible or not evidence.n_features:
        return None
    n_classes, total = evidence.n_classes, problem.counts.total
    columns = np.array([1]) if n_classes == 2 else np.arange(n_classes)
    prior = np.clip(problem.counts.by_class / total, 1e-6, 1.0 - 1e-6)
    base = 1.0 / (total * prior * (1.0 - prior))
    rows = _Sample(problem, weights, len(columns))
    n_parts = int(min(len(columns), 1 + rows.n_codes * len(columns) // _MAX_NUMBERS))
    variances = [
        _ClassOdds(rows, classes).variances(scale)
        for classes in np.array_split(columns, n_parts)
    ]
    by_code, of_means = (_rounded(np.hstack(v)) for v in zip(*variances, strict=True))
    encodings = evidence.encodings
    by_code, of_means = encodings.added(by_code), encodings.by_column(of_means)
    return Uncertainty(base[columns], by_code, of_means)


def _rounded(values: Floats) -> Floats:
    """Round numbers to a few bits, so that files stay small."""
    digits, exponent = np.frexp(values)
    return np.ldexp(np.rint(digits * 2.0**_MANTISSA_BITS), exponent - _MANTISSA_BITS)


def _effective(design: Floats) -> float:
    """Return the effective number of weights of a design by roots of curvatures."""
    system = design.T @ design if len(design) > design.shape[1] else design @ design.T
    system[np.diag_indices_from(system)] += 1.0
    return float(len(system) - np.trace(np.linalg.inv(system)))


def _merged_codes(schema: TableSchema) -> Ints:
    """Return where merged codes begin: bins of a column are merged to at most ten."""
    starts = []
    for first, feature in zip(schema.offsets, schema.features, strict=False):
        groups, n = np.arange(feature.n_codes), len(feature.edges) + 1
        if feature.kind == "binned" and n > _BINS_OF_EVIDENCE:
            groups = grouped_bins(n, feature.missing_is_value, _BINS_OF_EVIDENCE)
        starts.append(first + np.flatnonzero(np.diff(groups, prepend=-1)))
    return np.concatenate(starts)


class _ClassOdds:
    """The log-odds of some classes, each against the others; their axis is C."""

    def __init__(self, rows: _Sample, classes: Ints) -> None:
        self._rows, self._classes = rows, classes
        evidence, strength = rows.evidence, rows.strength
        prior = np.exp(evidence.log_prior)
        # Effects of the class, less the mean of those of the others.
        self._others = -prior[:, None] / (prior.sum() - prior[classes])
        self._others[classes, np.arange(len(classes))] = 1.0
        self._spread = (self._others**2).sum(axis=0) / 2.0
        values, spread = evidence.table.values, evidence.table.spread
        odds = values @ self._others
        by_class = self._spread / strength.by_class[:, :1]
        shared = 0.5 / strength.shared[:, None] + by_class / 4.0
        self._evidence_design = np.stack(
            [
                odds * spread(np.sqrt(shared)),
                (values[:, classes] - odds / 2.0) * spread(np.sqrt(by_class)),
            ]
        )
        """What the two weights of evidence do to codes, (2, V, C)."""
        self._odds = rows.effect @ self._others

    def variances(self, scale: float) -> tuple[Floats, Floats]:
        """Return variances of codes, (V, C), and of mean sizes of attributes, (d, C).

        A scale below 1 already reflects that scores are uncertain: the mean of
        probabilities is nearer to the middle than that of log-odds. So it makes no
        interval narrower.

        Curvatures are their mean over the uncertain log-odds of each row, not those at
        the estimate, which vanish where classes are separated (M. Opper, C. Archambeau
        (2009), "The variational Gaussian approximation revisited").
        """
        rows = self._rows
        share = np.clip(rows.share[:, self._classes], 1e-12, 1.0 - 1e-12)
        odds, ratio = logit(share), 0.0
        # With many rows the posterior variance is negligible here.
        of_rows, n_averagings = (0.0, 1) if rows.are_many else (1.0, _MAX_AVERAGINGS)
        for _ in range(n_averagings):
            shrink = 1.0 / np.sqrt(1.0 + np.pi / 8.0 * of_rows)
            mean = expit(odds * shrink)
            self._by_row = rows.weights[:, None] * shrink * mean * (1.0 - mean)
            self._curvature = rows.by_code(self._by_row)
            of_codes, prior, of_means = self._by_column()
            ratio = ratio or self._ratio(of_codes)
            of_rows = ratio * (rows.cells @ of_codes)
        unlearned = of_codes / np.where(prior > 0.0, prior, np.inf)
        alone = self._noise_of_evidence(unlearned) + self._within_bins(unlearned)
        shares = rows.counts.by_code.sum(axis=1) / rows.counts.total
        of_means *= ratio
        of_means += rows.evidence.table.collect(shares[:, None] ** 2 * alone)
        factor = max(scale, 1.0) ** 2
        return factor * (ratio * of_codes + alone), factor * of_means

    def _by_column(self) -> tuple[Floats, Floats, Floats]:
        """Return posterior and prior variances of centred codes, and of mean sizes.

        The mean absolute contribution of an attribute is linear in its codes, while no
        sign changes.
        """
        rows, counts = self._rows, self._rows.counts
        posterior, prior = np.zeros((2, *self._curvature.shape))
        of_means = np.zeros((len(rows.evidence.schema), len(self._classes)))
        for column in rows.columns:
            codes, (design, curvature) = column.codes, self._centred(column)
            has_design = design.any(axis=2)
            shares = counts.by_code[codes].sum(axis=1) * has_design
            odds = self._odds[column.rows].sum(axis=0).T
            total = np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
            middle = (shares * odds).sum(axis=1, keepdims=True) / total
            odds = np.where(has_design, odds - middle, 0.0)
            signs = np.sign(odds) * shares / counts.total
            if column.is_coupled:
                system = np.swapaxes(design, 1, 2) @ (curvature[..., None] * design)
                information, components = np.linalg.eigh(system)
                design = design @ components
                left = 1.0 / (1.0 + np.maximum(information, 0.0)[:, None])
                before = (design**2).sum(axis=2)
                after = (design**2 * left).sum(axis=2)
                of_mean = ((signs[:, None] @ design) ** 2 * left).sum(axis=(1, 2))
            else:
                squares, effects = design**2, self._spread[:, None] * column.squares
                shrunk = 1.0 / (1.0 + curvature[:, None] @ squares)
                after = (squares * shrunk).sum(axis=2)
                after += effects / (1.0 + effects * curvature)
                before = squares.sum(axis=2) + effects
                of_mean = (signs**2 * after).sum(axis=1)
            posterior[codes], prior[codes] = after.T, before.T
            of_means[column.j] = of_mean
        return posterior, prior, of_means

    def _centred(
        self, column: _Column, some: slice = slice(None)
    ) -> tuple[Floats, Floats]:
        """Return the centred design of weights by code, and curvatures.

        For some classes, in units of prior deviations: (C, m, q) and (C, m).
        """
        parts = [self._evidence_design[:, column.rows, some].transpose(3, 2, 0, 1)]
        if column.is_coupled:
            deviations = np.sqrt(self._spread[some])[:, None, None]
            parts.append(deviations * column.basis)
        shape = *parts[0].shape[:2], -1
        design = np.concatenate([part.reshape(shape) for part in parts], axis=2)
        has_design = design.any(axis=2)
        curvature = np.where(has_design, self._curvature[column.codes, some].T, 0.0)
        total = np.maximum(curvature.sum(axis=1), 1e-300)[:, None, None]
        design -= curvature[:, None] @ design / total
        design[~has_design] = 0.0
        return design, curvature

    def _ratio(self, of_codes: Floats) -> float:
        """Return the factor on variances for information that columns share.

        It is the effective number of all weights over the sum of those of single
        columns, for some classes. In few rows all columns seem to share something: the
        reduction, as odds, falls with the number of rows.
        """
        rows, size = self._rows, self._rows.n_coupled
        if rows.are_many:
            return 1.0
        most = int(max(_MAX_PRODUCTS / size**2, np.sqrt(_MAX_PRODUCTS / size)))
        picked = slice(None, None, -(-len(rows.codes) // most))
        some = slice(None, None, -(-len(self._classes) // _MAX_SYSTEMS))
        curvature = self._by_row[picked, some]
        curvature = np.sqrt(curvature * (len(rows.codes) / len(curvature)))
        effective, designs, alone = self._curvature * of_codes, [], 0.0
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
        excess = max(alone / joint - 1.0, 0.0)
        return 1.0 / (1.0 + excess * len(curvature) / rows.n_rows)

    def _noise_of_evidence(self, unlearned: Floats) -> Floats:
        """Return variances of evidence by code, with its covariance with effects.

        Effects are learned from the same rows as counts: chance errors of evidence are
        in these rows too, so effects do not correct them. Evidence follows counts as
        far as smoothing allows.
        """
        rows, evidence = self._rows, self._rows.evidence
        schema, table, counts = evidence.schema, evidence.table, rows.counts
        starts = _merged_codes(schema)
        sizes = np.diff(np.append(starts, schema.n_codes))
        merged = np.add.reduceat(counts.by_code, starts, axis=0)
        variance = np.repeat((1.0 / (merged + 1.0)) @ self._others**2, sizes, axis=0)
        prior = counts.by_class / counts.total
        drawn = np.log(_ADDED * len(prior) + merged / np.maximum(prior, 1e-300))
        drawn = np.repeat(drawn @ self._others, sizes, axis=0)
        observed = counts.by_code.sum(axis=1, keepdims=True)
        observed[schema.first_codes] = variance[schema.first_codes] = 0.0
        evidence_odds = evidence.table.values @ self._others
        top, bottom = (
            table.collect(observed * drawn * odds) for odds in (evidence_odds, drawn)
        )
        follows = np.clip(top / np.maximum(bottom, 1e-300), 0.0, 1.0)
        weight = np.maximum(rows.weight_of_evidence, 0.0).T @ abs(self._others) / 2.0
        alone, unlearned = table.spread(weight) * unlearned, np.minimum(unlearned, 1.0)
        share = alone * (alone + 2.0 * (1.0 - unlearned))
        return np.asarray(table.spread(follows) * share * variance)

    def _within_bins(self, unlearned: Floats) -> Floats:
        """Return variances of slopes within bins."""
        rows, basis = self._rows, self._rows.evidence.basis
        counts = rows.counts.by_code.sum(axis=1)
        out = np.zeros(self._curvature.shape)
        for column in rows.columns:
            n = len(column.feature.edges) + 1
            if column.feature.kind != "binned" or n < 3:
                continue
            bins = slice(column.codes.start + 1, column.codes.start + 1 + n)
            curve = self._odds[column.rows[:, 1 : n + 1]].sum(axis=0)
            of_bins = counts[bins], unlearned[bins], basis.n_bins
            out[bins] = within_bins(curve, *of_bins)
        return out


# ------------------------------------------------------------------------------ columns


class _Column:
    """The codes of a column, finest bins or categories, or of an interaction."""

    def __init__(self, rows: _Sample, j: int, coarser: list[int]) -> None:
        schema = rows.evidence.schema
        self.feature, self.j = schema.features[j], j
        self.codes = slice(int(schema.offsets[j]), int(schema.offsets[j + 1]))
        """Rows of the table."""
        merged = [_code_in(schema.features[i], self.feature) for i in coarser]
        codes = [np.arange(self.feature.n_codes), *merged]
        self.attributes = [j, *coarser]
        encodings = list(zip(self.attributes, codes, strict=True))
        self.rows = np.array([schema.offsets[i] + merged for i, merged in encodings])
        """The same by encoding and code, coarser bins included."""
        firsts, lasts = rows.ends[self.attributes].T
        self.size = int((lasts - firsts).sum()) + 2 * len(encodings)
        """Number of weights, two of evidence for each encoding."""
        self.is_coupled = self.size <= _MAX_COUPLED_WEIGHTS
        if self.is_coupled:
            bases = [rows.dense_basis(i)[merged] for i, merged in encodings]
            self.basis = np.hstack(bases)
        else:
            self.squares = rows.basis[self.codes].power(2).sum(axis=1)


class _Sample:
    """A sample of rows of a solved problem, and the design that classes share."""

    def __init__(self, problem: Problem, weights: Floats, n_columns: int) -> None:
        self.problem, self.evidence = problem, problem.evidence
        weighting = problem.objective.weighting
        assert isinstance(weighting, HierarchicalWeighting)
        evidence, schema = self.evidence, self.evidence.schema
        strength = np.maximum(weighting.strengths(evidence)[0], _MIN_STRENGTH)
        self.strength = weighting.levels(strength, evidence)
        self.effect = weighting.by_encoding(weights, evidence).table
        self.weight_of_evidence = weighting.totals(weights, evidence).T
        self.counts = evidence.encodings.counts(problem.counts)
        """Counts by the codes of encodings, as all tables here."""
        self.n_codes, owners = schema.n_codes, evidence.basis.owners
        first = np.searchsorted(owners, np.arange(len(schema) + 1))
        self.ends = np.stack([first[:-1], first[1:]], axis=1)
        """The first weight of effects of each attribute, and the one after its last."""
        deviations = 1.0 / np.sqrt(self.strength.by_value[:, 0])
        self.basis = csr_array(evidence.basis.matrix.multiply(deviations))
        most = int(_MAX_CELLS / (len(schema) * n_columns))
        sample = problem.objective.sample(max(most, _MIN_ROWS))
        self.share = softmax(sample.scores(weights))
        self.weights, self.is_all = sample.row_weights(), sample.is_all
        self.total: float = problem.counts.total
        """The weight of all rows: a row of weight two counts as two rows."""
        self.n_rows, self.codes = problem.objective.rows.n_rows, sample.table_rows()
        """Number of all rows; positions in tables of the rows of the sample, (s, d)."""
        self.cells = sample.indicators()
        """The same as ones, shape (s, V)."""

    def by_code(self, of_rows: Floats) -> Floats:
        """Sum values of rows by code, (s, C) to (V, C), estimated for all rows.

        Means of a sample are shrunk to the overall mean for codes of few rows.
        """
        sums = self.cells.T @ of_rows
        if self.is_all:
            return sums
        counts = self.counts.by_code.sum(axis=1)
        row, mean = self.weights.mean(), of_rows.sum(axis=0) / self.weights.sum()
        seen = self.cells.T @ self.weights
        return (counts / (seen + row))[:, None] * (sums + row * mean)

    def dense_basis(self, j: int) -> Floats:
        """Return the dense basis of an attribute, in prior deviations."""
        codes = slice(*self.evidence.schema.offsets[j : j + 2])
        return np.asarray(self.basis[codes, slice(*self.ends[j])].toarray())

    @cached_property
    def columns(self) -> list[_Column]:
        """All columns and interactions, each with its coarser bins."""
        encodings, coarser = self.evidence.encodings, defaultdict(list)
        for j in np.flatnonzero(encodings.is_coarser).tolist():
            coarser[encodings.columns[j]].append(j)
        finest = np.flatnonzero(~encodings.is_coarser).tolist()
        return [_Column(self, j, coarser[encodings.columns[j]]) for j in finest]

    @cached_property
    def n_coupled(self) -> int:
        """Number of weights that are coupled within columns."""
        return sum(column.size for column in self.columns if column.is_coupled)

    @property
    def are_many(self) -> bool:
        """Whether there are enough rows to neglect what columns share."""
        return self.total > _ROWS_PER_WEIGHT * self.n_coupled


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


# -------------------------------------------------------------------------- within bins


class Scores(NamedTuple):
    """Normal scores of the values of neighbouring bins, shape (n,)."""

    means: Floats
    variances: Floats

    @classmethod
    def of(cls, counts: Floats) -> Scores:
        """Take the moments of a normal distribution that is cut as bins cut rows.

        Equal values have no width, and do not keep their neighbours apart.
        """
        total = max(float(counts.sum()), 1e-300)
        capped = np.minimum(counts, _MAX_SHARE * total)
        share = capped + _MIN_SHARE * max(float(capped.mean()), 1e-300)
        share = share / share.sum()
        edges = ndtri(np.cumsum(share)[:-1])
        density = np.exp(-0.5 * edges**2) / np.sqrt(2.0 * np.pi)
        first = -np.diff(density, prepend=0.0, append=0.0) / share
        second = 1.0 - np.diff(edges * density, prepend=0.0, append=0.0) / share
        width = np.minimum(_MAX_SHARE * total / np.maximum(counts, 1e-300), 1.0)
        return cls(first, width**2 * np.maximum(second - first**2, 0.0))


def within_bins(
    curve: Floats, counts: Floats, unlearned: Floats, n_bins: tuple[int, ...]
) -> Floats:
    """Return variances within bins of a curve (n, C), and of bias at its ends.

    A table is level within a bin, where the truth has a slope. Distances are between
    normal scores of ranks, so that a number and its logarithm have the same intervals.
    At an end there are bins on one side alone, and a smooth average lags behind a trend
    as far as the prior dominates: ``unlearned`` is the posterior variance as a share of
    the prior one, and ``n_bins`` are the length scales of smooth curves.
    """
    n, scores = len(curve), Scores.of(counts)
    slope = np.gradient(curve, scores.means, axis=0)
    width = max(int(n * _SLOPE_WINDOW), 1)
    rise = (curve[width:] - curve[:-width]) ** 2
    rise /= (scores.means[width:] - scores.means[:-width])[:, None] ** 2
    outer = max(int(n * _OUTER) - width, 1)
    lag = np.zeros(n)
    if n_bins:
        lag = scores.means - averages(n, n_bins) @ scores.means
    lags = lag[:, None] ** 2 * np.clip(unlearned, 0.0, 1.0)
    out = scores.variances[:, None] * slope**2
    for end, steepest, half in (
        (0, rise[:outer].max(axis=0), slice(0, n // 2)),
        (n - 1, rise[-outer:].max(axis=0), slice(n - n // 2, n)),
    ):
        out[end] = scores.variances[end] * steepest
        out[half] += lags[half] * steepest
    return out
