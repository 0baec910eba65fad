r"""How uncertain linear functions of a hierarchy's weights are, without their inverse.

The objective of a hierarchy is a penalised regression: near its minimum, weights have
the covariance :math:`(\Lambda + J^T C J)^{-1}` with the ridge :math:`\Lambda`, the
scores as a linear map :math:`J` of the weights, and the curvature :math:`C` of the loss
in them. There are often more weights than rows; the smaller of two systems is solved,
in the weights or in the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, solve_triangular
from scipy.sparse import csr_array, diags_array, eye_array, hstack, kron, vstack

from steelyard.explain.views import Floats
from steelyard.fitting.problem import Problem
from steelyard.model.posteriors import Curvature
from steelyard.table.codes import Codes
from steelyard.weighting import Evidence, HierarchicalWeighting

# Rows of the smaller system: 512 MB.
MAX_SYSTEM = 8_000

# Numbers that are held at a time, beside the system.
NUMBERS_AT_ONCE = 20_000_000


@dataclass(frozen=True)
class WeightMaps:
    """What a vector of weights stands for, as sparse matrices with a column each.

    Arrays of shape (a, K) are laid out row by row.
    """

    evidence: Evidence
    weighting: HierarchicalWeighting

    @cached_property
    def _levels(self) -> list[csr_array]:
        """Pick each level out of the weights."""
        k, d = self.evidence.n_classes, self.evidence.n_features
        size = self.weighting.size(self.evidence)
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
        centers = self.weighting.centers(self.evidence)
        return csr_array(csr_array(centers[:, None]) @ overall + shared)

    @cached_property
    def by_class(self) -> csr_array:
        """Weights of each attribute and class, shape (d K, p)."""
        ones = np.ones((self.evidence.n_classes, 1))
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
    def turned(self) -> tuple[csr_array, csr_array]:
        """Directions of weights: all that rows may tell of, and those they cannot.

        What an intercept or an effect adds to all classes alike changes no posterior.
        Both are orthonormal, of shapes (p, q) and (p, p - q).
        """
        basis = np.linalg.qr(np.c_[np.ones(self._k), np.eye(self._k)[:, 1:]])[0]
        alike, apart = [], []
        for number, level in enumerate(self._levels):
            if number not in (0, 4):
                apart.append(level.T)
                continue
            each = eye_array(level.shape[0] // self._k)
            alike.append(level.T @ csr_array(kron(each, basis[:, :1])))
            apart.append(level.T @ csr_array(kron(each, basis[:, 1:])))
        return csr_array(hstack(apart)), csr_array(hstack(alike))

    @cached_property
    def owners(self) -> NDArray[np.int64]:
        """Class that each weight belongs to, -1 where all share it, shape (p,)."""
        shared = np.full(1 + self.evidence.n_features, -1)
        rest = self.weighting.size(self.evidence) - self._k - len(shared)
        # Intercepts come first; then what is shared; then weights class by class.
        return np.r_[np.arange(self._k), shared, np.arange(rest) % self._k]

    def prior_units(self, problem: Problem) -> csr_array:
        """Give weights in units of their prior deviations, shape (p, p)."""
        penalty = problem.objective.penalty
        assert penalty is not None
        size = self.weighting.size(self.evidence)
        return csr_array(diags_array(1.0 / np.sqrt(penalty.curvature(size))))

    @property
    def _k(self) -> int:
        return self.evidence.n_classes


def cells_of(
    problem: Problem, codes: Codes, rows: slice, place: NDArray[np.int64]
) -> csr_array:
    """Return where rows read an effect: a matrix of shape (n m K, V K + g K + K).

    Attribute j is added to part ``place[j]`` of m parts; the base to part 0.
    """
    schema, k = codes.schema, problem.evidence.n_classes
    which = np.arange(*rows.indices(codes.n_rows))
    n, m, width = len(which), int(place.max(initial=0)) + 1, schema.n_codes
    where = np.arange(n * m * k).reshape(n, m, k)
    one = np.arange(k)
    n_gaussian = len(schema.gaussian)
    # By part: rows of the matrix, its columns, entries; each of shape (n, K).
    base = (width + n_gaussian) * k + one
    parts = [(where[:, 0], np.broadcast_to(base, (n, k)), np.ones((n, k)))]
    for j in schema.coded.tolist():
        code = schema.offsets[j] + codes.column(j)[rows].astype(np.int64)
        column = code[:, None] * k + one
        parts.append((where[:, place[j]], column, np.ones((n, k))))
    if n_gaussian:
        densities = _densities(problem, codes, rows)
        for g, j in enumerate(schema.gaussian.tolist()):
            column = np.broadcast_to((width + g) * k + one, (n, k))
            parts.append((where[:, place[j]], column, densities[:, g]))
    i, columns, entries = (
        np.concatenate([part[a].ravel() for part in parts]) for a in range(3)
    )
    shape = (n * m * k, (width + n_gaussian + 1) * k)
    return csr_array((entries, (i, columns)), shape=shape)


def scores_of(
    problem: Problem, codes: Codes, rows: slice, effect: csr_array
) -> csr_array:
    """Return scores of rows as functions of what an effect is made of, (n K, p)."""
    place = np.zeros(len(codes.schema), dtype=np.int64)
    return csr_array(cells_of(problem, codes, rows, place) @ effect)


def _densities(problem: Problem, codes: Codes, rows: slice) -> Floats:
    numbers = np.ascontiguousarray(codes.number_rows(rows))
    pieces = [dens for _, dens in problem.gaussian.log_densities(numbers)]
    return np.concatenate(pieces)


class FactoredCovariance:
    """The covariance of weights near the minimum, as deviations of linear functions."""

    def __init__(
        self, problem: Problem, codes: Codes, maps: WeightMaps, curvature: Curvature
    ) -> None:
        self.maps = maps
        n_equations, n_weights = _sizes(problem)
        self._in_rows = n_equations < n_weights
        unit = maps.prior_units(problem)
        if self._in_rows:
            self._units, self._common = unit, None
        else:
            contrasts, common = maps.turned
            self._units, self._common = unit @ contrasts, unit @ common
        self._effect = csr_array(maps.effect @ self._units)
        self._problem, self._codes = problem, codes
        values, vectors = np.linalg.eigh(curvature.matrices())
        # What is common to all classes has no curvature.
        self._roots = vectors[:, :, 1:] * np.sqrt(np.maximum(values[:, None, 1:], 0.0))
        self._design = self._equations(slice(None)) if self._in_rows else None
        self._factor = self._factored()

    @property
    def work(self) -> float:
        """Operations for one function, about."""
        return float(len(self._factor)) ** 2

    @staticmethod
    def system_size(problem: Problem) -> int:
        """Return the number of equations to solve."""
        return min(_sizes(problem))

    def _equations(self, rows: slice) -> csr_array:
        """Return root curvature times scores of rows, shape ((K - 1) n, p)."""
        roots = self._roots[rows]
        n, k, _ = roots.shape
        where = np.arange(n * k), np.arange(0, n * k + 1, k)
        parts = [
            csr_array((np.ascontiguousarray(root).ravel(), *where), shape=(n, n * k))
            for root in np.moveaxis(roots, 2, 0)
        ]
        return csr_array(vstack(parts) @ self._scores(rows))

    def _scores(self, rows: slice) -> csr_array:
        return scores_of(self._problem, self._codes, rows, self._effect)

    def _factored(self) -> Floats:
        """Return the Cholesky factor of one plus the squared design."""
        if self._in_rows:
            system = self._squared_in_rows()
        else:
            n_weights = self._units.shape[1]
            system = np.eye(n_weights)
            per_row = n_weights * self._roots.shape[2]
            for part in pieces(len(self._roots), NUMBERS_AT_ONCE // per_row):
                dense = self._equations(part).toarray()
                system += dense.T @ dense
        factor, _ = cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
        return np.asarray(factor)

    def _squared_in_rows(self) -> Floats:
        """Return one plus the design times its transpose, class by class.

        Classes share few weights, so that most of the product is within a class.
        """
        n, k, m = self._roots.shape
        scores = self._scores(slice(None))
        by_class = [scores[c::k].tocsc() for c in range(k)]
        is_used = [np.diff(own.indptr) > 0 for own in by_class]
        system = np.eye(n * m)
        blocks = system.reshape(m, n, m, n)
        for c, e in combinations_with_replacement(range(k), 2):
            common = np.flatnonzero(is_used[c] & is_used[e])
            left, right = (by_class[x][:, common].toarray() for x in (c, e))
            inner = left @ right.T
            for a, b in np.ndindex(m, m):
                own = self._roots[:, c, a, None] * inner * self._roots[:, e, b]
                blocks[a, :, b] += own
                if c != e:
                    blocks[b, :, a] += own.T
        return system

    def deviation(self, functions: csr_array, against: Floats | None = None) -> Floats:
        """Return standard deviations of functions (m, p) of the weights, shape (m,).

        With a matrix ``against`` (K, K), of its product with each K functions in turn.
        """
        if against is not None:
            each = eye_array(functions.shape[0] // len(against))
            functions = csr_array(csr_array(kron(each, against)) @ functions)
        in_units = csr_array(functions @ self._units)
        out = np.zeros(functions.shape[0])
        if self._common is not None:
            # No row says anything about these: they are as uncertain as before.
            out += (functions @ self._common).power(2).sum(axis=1)
        for part in pieces(len(out), NUMBERS_AT_ONCE // len(self._factor)):
            own = in_units[part]
            if self._design is None:
                out[part] += self._solved(own.T.toarray())
            else:
                prior = own.power(2).sum(axis=1)
                out[part] += prior - self._solved((self._design @ own.T).toarray())
        return np.sqrt(np.maximum(out, 0.0))

    def _solved(self, right: Floats) -> NDArray[np.float64]:
        """Return squared lengths of the columns of L^-1 B."""
        solved = solve_triangular(
            self._factor, right, lower=True, overwrite_b=True, check_finite=False
        )
        return np.asarray((solved**2).sum(axis=0))


def _sizes(problem: Problem) -> tuple[int, int]:
    """Return the numbers of equations in the rows, and in the weights."""
    n, k = problem.objective.rows.n_rows, problem.evidence.n_classes
    alike = 1 + len(problem.evidence.resolutions.owners)
    return n * (k - 1), problem.size - alike


def pieces(n: int, at_once: int) -> list[slice]:
    """Cut n things into runs of so many at most."""
    step = max(at_once, 1)
    return [slice(low, min(low + step, n)) for low in range(0, n, step)]
