r"""How uncertain a fitted hierarchy of weights leaves the log-odds of each class.

Log-odds of a class against the others are a penalised logistic regression of their own,
with the prior deviations of the hierarchy: Laplace's approximation gives its weights
the covariance :math:`(I + A^T H A)^{-1}`, in units of these deviations, with the design
A of the rows and :math:`H = \mathrm{diag}(u\, p_c (1 - p_c))`. A file keeps of it what
rows need (`Uncertainty`): the largest components of the scores of training rows, and of
what they leave over the variance of each code. That has three further parts, which the
covariance knows nothing of: the noise of evidence, which comes from counts of the same
rows; steps of single bins, which smooth curves leave out; and the slope within a bin.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.linalg.lapack import get_lapack_funcs
from scipy.sparse import csr_array, diags_array, hstack, issparse
from scipy.sparse.linalg import LinearOperator, eigsh
from scipy.special import expit, logit

from steelyard._common.arrays import Floats, Ints
from steelyard.fitting.objective import Sample
from steelyard.fitting.problem import Problem
from steelyard.model import softmax
from steelyard.model.beside import Uncertainty
from steelyard.table.codes import FeatureTable
from steelyard.table.schema import FeatureSchema
from steelyard.weighting import HierarchicalWeighting

# Tables of what codes share.
_RANK = 12

# How many times wider than in the fit effects may be: strengths are an estimate too.
_OPEN = 2.5

# Share of the variance of a curve that its basis leaves out, as `table/resolutions`
# does: steps of single bins.
_LEFT_OUT = 0.05

# Variance within a bin, in squares of the step to its neighbours; in the outermost
# bins, where the truth goes on, so many times the largest of some steps at that end.
_WITHIN, _OUTER, _STEPS_AT_END = 1.0 / 12.0, (8.0, 5.0, 3.0), 6

# Resolution of evidence of bins, which is an average over several.
_BINS_OF_EVIDENCE = 10.0

# Products that are made for the covariances of all classes, rows at least, and rows on
# which components are found.
_WORK, _LEAST_ROWS, _ROWS_OF_COMPONENTS = 4e9, 1_000, 1_000

# How often curvatures are averaged over uncertain log-odds.
_TURNS = 2

# Strengths below are as good as none, and still numbers to compute with.
_LEAST_STRENGTH = 1e-3

# Weights that are coupled at most; where there are more, pairs are not, and beyond that
# a system in few rows is solved.
_MOST_WEIGHTS, _FEW_ROWS = 1_500, 300

# Information about a weight up to which single precision is enough: with 100 million
# rows its rounding outweighs the prior.
_MOST_SINGLE = 1e4

# Functions of weights that are looked at together.
_AT_ONCE = 2_048

# Bits of the numbers that are kept.
_BITS = 10


def uncertainty_of(
    problem: Problem, weights: Floats, scale: float, shares: Floats | None
) -> Uncertainty | None:
    """Return the uncertainty of a solved problem, None where it is not known.

    ``scale`` multiplies scores before they become probabilities, and ``shares`` (V, K)
    says what the codes of a row are given of the intercept.
    """
    evidence, objective = problem.evidence, problem.objective
    is_known = objective.loss.is_likelihood and not len(evidence.gaussian)
    if not is_known or not evidence.n_features or shares is None:
        return None
    n_columns = 1 if evidence.n_classes == 2 else evidence.n_classes
    rows = _Rows(problem, weights, n_columns)
    prior = problem.counts.by_class / problem.counts.total
    prior = np.clip(prior, 1e-6, 1.0 - 1e-6)
    columns = [1] if n_columns == 1 else range(n_columns)
    tables = np.empty((1 + _RANK, evidence.schema.n_codes, n_columns))
    for place, c in enumerate(columns):
        tables[..., place] = _OneClass(rows, c).tables(shares[:, c])
    tables[0] *= scale**2
    tables[1:] *= scale
    base = 1.0 / (problem.counts.total * prior * (1.0 - prior))
    tables = _rounded(tables)
    return Uncertainty(base[list(columns)], tables[0], tables[1:])


def _rounded(values: Floats) -> Floats:
    """Round numbers to a few bits, so that files stay small."""
    digits, exponent = np.frexp(values)
    return np.ldexp(np.rint(digits * 2.0**_BITS), exponent - _BITS)


class _Rows:
    """Some rows of a solved problem, and what all classes share of their design."""

    def __init__(self, problem: Problem, weights: Floats, n_columns: int) -> None:
        self.problem, self.evidence = problem, problem.evidence
        weighting = problem.objective.weighting
        assert isinstance(weighting, HierarchicalWeighting)
        evidence = self.evidence
        strength = np.maximum(weighting.strengths(evidence)[0], _LEAST_STRENGTH)
        self.strength = weighting.levels(strength, evidence)
        self.effect = weighting.apply(weights, evidence).table
        fitted = weighting.fitted(weights, evidence)
        self.weight_of_evidence: Floats = fitted["class_attribute_weights_"]
        schema, owners = evidence.schema, evidence.resolutions.owners
        self.is_coupled = np.ones(len(schema), dtype=bool)
        if 2 * len(schema) + len(owners) > _MOST_WEIGHTS:
            self.is_coupled = ~schema.is_pair
        kept = self.is_coupled[owners]
        self.basis = csr_array(evidence.resolutions.basis[:, kept])
        self.by_value = self.strength.by_value[kept, 0]
        self.size = 1 + 2 * len(schema) + int(kept.sum())
        self.is_wide = self.size > _MOST_WEIGHTS
        most = max(int(_WORK / (n_columns * self.size**2)), _LEAST_ROWS)
        if self.is_wide:
            most = _FEW_ROWS
        self._sample: Sample = problem.objective.sample(most)
        self.share = softmax(self._sample.scores(weights))
        self.weights = self._sample.row_weights()

    @cached_property
    def cells(self) -> csr_array:
        """Where rows read tables, shape (s, V)."""
        rows = self._sample.table_rows()
        starts = rows.shape[1] * np.arange(len(rows) + 1)
        shape = len(rows), self.evidence.schema.n_codes
        return csr_array((np.ones(rows.size), rows.ravel(), starts), shape=shape)

    @cached_property
    def finest(self) -> list[tuple[int, Ints, Ints]]:
        """Binned attributes that have none finer: codes, and rows of coarser ones.

        The last have shape (coarser attributes, codes).
        """
        schema, out = self.evidence.schema, []
        for j, feature in enumerate(schema.features):
            if feature.kind == "binned" and not schema.is_coarser[j]:
                coarser = [
                    schema.offsets[i] + _code_in(schema.features[i], feature)
                    for i in np.flatnonzero(schema.is_coarser).tolist()
                    if schema.columns[i] == schema.columns[j]
                ]
                own = schema.offsets[j] + np.arange(feature.n_codes)
                out.append((j, own, np.array(coarser).reshape(-1, len(own))))
        return [(j, own, others.astype(np.int64)) for j, own, others in out]

    def by_column(self, codes: csr_array) -> csr_array:
        """Add what coarser bins have (V, q) to the finest ones, and leave them none."""
        schema = self.evidence.schema
        coarse = FeatureTable(self.effect, schema.offsets).spread(schema.is_coarser)
        rows, columns = [np.flatnonzero(~coarse)] * 2
        for _, own, coarser in self.finest:
            rows = np.concatenate([rows, np.tile(own, len(coarser))])
            columns = np.concatenate([columns, coarser.ravel()])
        joined = csr_array((np.ones(len(rows)), (rows, columns)), [len(coarse)] * 2)
        return csr_array(joined @ codes)


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


class _OneClass:
    """The log-odds of one class against the others."""

    def __init__(self, rows: _Rows, c: int) -> None:
        self._rows, self._c = rows, c
        evidence = rows.evidence
        prior = np.exp(evidence.log_prior)
        self._others = -prior / (prior.sum() - prior[c])
        self._others[c] = 1.0
        # Effects of the class, less the mean of those of the others.
        self._spread = _OPEN * float((self._others**2).sum()) / 2.0
        self._start = np.sqrt(self._spread / rows.strength.intercept[0])
        self._codes = self._design()

    def _design(self) -> csr_array:
        """Return what weights in units of their deviations do to codes, (V, q)."""
        rows, evidence = self._rows, self._rows.evidence
        values, d = evidence.table.values, evidence.n_features
        apart = values @ self._others
        middle = values[:, self._c] - apart / 2.0
        by_class = self._spread / rows.strength.by_class[:, 0]
        shared = _OPEN * 0.5 / rows.strength.shared
        owner = evidence.table.spread(np.arange(d))
        parts = [
            csr_array((entry, (np.arange(len(owner)), owner)), shape=(len(owner), d))
            for entry in (
                apart * np.sqrt(shared + by_class / 4.0)[owner],
                middle * np.sqrt(by_class)[owner],
            )
        ]
        deviations = diags_array(np.sqrt(self._spread / rows.by_value))
        return csr_array(hstack([*parts, rows.basis @ deviations]))

    def tables(self, shares: Floats) -> Floats:
        """Return variances of codes and factors of what they share, (1 + R, V)."""
        rows, codes = self._rows, self._codes
        start = csr_array((codes.shape[0], 1))
        whole = rows.by_column(csr_array(hstack([start, codes])))
        scores = (rows.cells @ codes).toarray()
        scores = np.column_stack([np.full(len(scores), self._start), scores])
        covariance = self._solve(scores)
        step = max(1, len(scores) // _ROWS_OF_COMPONENTS)
        some = scores[::step]
        main, exact = covariance.components(some)
        factors = main[1:].T @ codes.T + self._start * np.outer(main[0], shares)
        prior = whole.power(2).sum(axis=1)
        # Few rows tell next to nothing of a single code among many.
        variance = prior
        if isinstance(covariance, _Coupled):
            variance = covariance.of_codes(whole, rows.evidence.schema.offsets)
        left = np.maximum(variance - ((whole @ main) ** 2).sum(axis=1), 0.0)
        # What codes share beyond the components is negative on the whole.
        exact -= ((some @ main) ** 2).sum()
        left *= max(exact, 0.0) / max((rows.cells[::step] @ left).sum(), 1e-300)
        unlearned = variance / np.where(prior > 0.0, prior, np.inf)
        left += self._noise_of_evidence(unlearned) + self._within_bins()
        out = np.zeros((1 + _RANK, len(left)))
        out[0], out[1 : 1 + len(factors)] = left, factors
        return out

    def _solve(self, scores: Floats) -> _Coupled | _Few:
        """Return the covariance of the weights.

        Curvatures are their mean over the uncertain log-odds of each row, not those at
        the estimate, which vanish where classes are separated (M. Opper, C. Archambeau
        (2009), "The variational Gaussian approximation revisited").
        """
        share = self._rows.share[:, self._c]
        odds = logit(np.clip(share, 1e-12, 1.0 - 1e-12))
        solve = _Few if self._rows.is_wide else _Coupled
        variance, covariance = np.ones(len(odds)), None
        for _ in range(_TURNS):
            if covariance is not None:
                variance = covariance.variances(scores)
            shrink = 1.0 / np.sqrt(1.0 + np.pi / 8.0 * variance)
            mean = expit(odds * shrink)
            self._curvature = self._rows.weights * shrink * mean * (1.0 - mean)
            covariance = solve(scores, self._curvature)
        assert covariance is not None
        return covariance

    def _noise_of_evidence(self, unlearned: Floats) -> Floats:
        """Return variances of evidence by code, as far as effects do not make up."""
        rows, evidence = self._rows, self._rows.evidence
        counts = rows.problem.counts.by_code
        schema = evidence.schema
        merged = [
            f.n_values / _BINS_OF_EVIDENCE if f.kind == "binned" else 1.0
            for f in schema.features
        ]
        spread = evidence.table.spread
        counts = counts * np.maximum(spread(np.array(merged)), 1.0)[:, None]
        variance = (1.0 / (counts + 1.0)) @ self._others**2
        variance[schema.first_codes] = 0.0
        weight = spread(rows.weight_of_evidence[self._c])
        return np.asarray((weight * unlearned) ** 2 * variance)

    def _within_bins(self) -> Floats:
        """Return variances of steps of single bins, and of slopes within bins."""
        rows, evidence = self._rows, self._rows.evidence
        schema, curves = evidence.schema, evidence.resolutions.is_curve
        curvature = rows.cells.T @ self._curvature
        odds = rows.effect @ self._others
        strength = np.zeros(len(schema))
        strength[evidence.resolutions.owners] = rows.strength.by_value[:, 0]
        out = np.zeros(schema.n_codes)
        for j, codes, coarser in rows.finest:
            n = len(schema.features[j].edges) + 1
            bins = codes[1 : n + 1]
            if curves[j]:
                held = strength[j] / (_LEFT_OUT * self._spread)
                out[bins] += 1.0 / (held + curvature[bins])
            curve = odds[bins] + odds[coarser[:, 1 : n + 1]].sum(axis=0)
            if n > 2:
                steps = np.abs(np.diff(curve))
                near = np.zeros(n)
                near[1:-1] = (steps[1:] + steps[:-1]) / 2.0
                for own, others in ((near, steps), (near[::-1], steps[::-1])):
                    outer = np.array(_OUTER[: 1 if n <= 2 * len(_OUTER) else None])
                    at_end = outer * others[:_STEPS_AT_END].max()
                    own[: len(outer)] = np.maximum(own[: len(outer)], at_end)
                out[bins] += _WITHIN * near**2
        # Pairs of which there are too many to couple.
        for j in np.flatnonzero(~rows.is_coupled).tolist():
            part = slice(schema.offsets[j], schema.offsets[j + 1])
            held = strength[j] / self._spread
            known = schema.features[j].both_known
            out[part] += known / (held + curvature[part])
        return out


def _weighted(scores: Floats, curvature: Floats) -> Any:
    """Return the design by roots of curvatures, (s, q).

    Single precision is enough while its rounding is small beside the prior's 1.
    """
    design = scores * np.sqrt(curvature)[:, None]
    squares = design**2
    largest = max(squares.sum(axis=0).max(), squares.sum(axis=1).max())
    return design.astype(np.float32) if largest < _MOST_SINGLE else design


def _factor(system: Any) -> Floats:
    """Return the Cholesky factor of a system and the prior's 1."""
    system = system.astype(np.float64)
    places = np.diag_indices_from(system)
    rounding = len(system) * np.finfo(np.float64).eps * system[places].max()
    system[places] += 1.0 + rounding
    return np.asarray(cholesky(system, True, overwrite_a=True, check_finite=False))


class _Coupled:
    """The covariance of weights, by a system in the weights."""

    def __init__(self, scores: Floats, curvature: Floats) -> None:
        scaled = _weighted(scores, curvature)
        self._lower = _factor(scaled.T @ scaled)
        self._rough = self._lower.astype(scaled.dtype)

    def _roots(self, functions: Any) -> Any:
        dense = functions.toarray() if issparse(functions) else functions
        right = dense.T.astype(self._rough.dtype)
        return solve_triangular(self._rough, right, lower=True, check_finite=False)

    def variances(self, functions: Any) -> Floats:
        """Return variances of functions of the weights, (m, q) to (m,)."""
        parts = [
            (self._roots(functions[part]) ** 2).sum(axis=0, dtype=np.float64)
            for part in _parts(functions)
        ]
        return np.concatenate(parts)

    def of_codes(self, codes: csr_array, offsets: Ints) -> Floats:
        """Return variances of what codes do, (V, q) to (V,), attribute by attribute.

        Those of one attribute share few weights, whose covariance is enough.
        """
        (trtri,) = get_lapack_funcs(("trtri",), (self._rough,))
        inverse, out = trtri(self._rough, lower=1)[0], np.zeros(codes.shape[0])
        for low, high in pairwise(offsets.tolist()):
            ends = codes.indptr[low : high + 1]
            used, place = np.unique(codes.indices[ends[0] : ends[-1]], False, True)
            if not len(used):
                continue
            own = np.zeros((high - low, len(used)), dtype=inverse.dtype)
            at = np.repeat(np.arange(high - low), np.diff(ends))
            own[at, place] = codes.data[ends[0] : ends[-1]]
            half = own @ inverse[used[0] :, used].T
            out[low:high] = (half**2).sum(axis=1, dtype=np.float64)
        return out

    def components(self, scores: Floats) -> tuple[Floats, float]:
        """Return the largest components of the scores of rows, (q, R), and of all.

        The last is the sum of the variances of the rows.
        """
        roots = self._roots(scores).astype(np.float64)
        main = _largest(lambda v: roots @ (roots.T @ v), len(roots))
        main = solve_triangular(self._lower, main, trans=1, lower=True)
        return main, float(np.vdot(roots, roots))


class _Few:
    r"""The same by a system in few rows, of more weights.

    .. math:: (I + A^T H A)^{-1} = I - A^T H^{1/2} (I + H^{1/2} A A^T H^{1/2})^{-1}
              H^{1/2} A
    """

    def __init__(self, scores: Floats, curvature: Floats) -> None:
        self._design = _weighted(scores, curvature)
        self._lower = _factor(self._design @ self._design.T)
        self._rough = self._lower.astype(self._design.dtype)

    def variances(self, functions: Any) -> Floats:
        """Return variances of functions of the weights, (m, q) to (m,)."""
        out = []
        for part in _parts(functions):
            own = functions[part]
            prior = own.power(2).sum(axis=1) if issparse(own) else (own**2).sum(axis=1)
            right = (own @ self._design.T).T
            known = solve_triangular(self._rough, right, lower=True)
            out.append(prior - (known**2).sum(axis=0, dtype=np.float64))
        return np.maximum(np.concatenate(out), 0.0)

    def _product(self, functions: Floats) -> Floats:
        """Multiply by the covariance: (q, m) to (q, m)."""
        known = cho_solve((self._lower, True), self._design @ functions)
        return functions - self._design.T @ known

    def components(self, scores: Floats) -> tuple[Floats, float]:
        """Return the same components and sum."""
        of_rows = scores @ self._product(scores.T)
        main = _largest(lambda v: of_rows @ v, len(scores))
        found = self._product(scores.T @ main)
        size = np.sqrt(np.maximum((main * (of_rows @ main)).sum(axis=0), 1e-300))
        return np.asarray(found / size), float(np.trace(of_rows))


def _parts(functions: Any) -> list[slice]:
    firsts = range(0, functions.shape[0], _AT_ONCE)
    return [slice(first, first + _AT_ONCE) for first in firsts]


def _largest(product: Callable[[Floats], Floats], n: int) -> Floats:
    """Return the largest eigenvectors of a symmetric matrix, by its products."""
    if n <= 4 * _RANK:
        return np.linalg.eigh(product(np.eye(n)))[1][:, -_RANK:]
    start = np.random.default_rng(0).normal(size=n)
    matrix = LinearOperator((n, n), product, dtype=np.float64)
    return np.asarray(eigsh(matrix, _RANK, v0=start, tol=1e-3)[1])
