r"""How uncertain linear functions of weights are near the minimum of an objective.

The objective of a hierarchy is a penalised regression: its weights have the covariance
:math:`(\Lambda + J^T C J)^{-1}` with the ridge :math:`\Lambda`, the scores as a linear
map :math:`J` of the weights, and the curvature :math:`C` of the loss in them. There are
often more weights than rows; the system to solve is in the weights, or in the rows of
each class. Other weights, which may have bounds or nothing that holds them, have the
inverse of a Hessian that is made in full.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.linalg.lapack import dpotri
from scipy.sparse import csr_array, diags_array, eye_array, kron, vstack

from steelyard._common.arrays import Floats, Ints
from steelyard.exceptions import ParameterError
from steelyard.explain.intervals.maps import LevelMaps, WeightMaps
from steelyard.explain.views import evidence_of, views_of
from steelyard.fitting.problem import Problem
from steelyard.model import Curvature
from steelyard.table.codes import Codes
from steelyard.weighting import HierarchicalWeighting

# Beyond this many weights the inverse of the Hessian is not made.
_MAX_WEIGHTS = 3_000

# Equations in the weights: 512 MB. Systems of classes may have four times as many
# numbers in all.
MAX_SYSTEM = 8_000

# So many weights for each row, from which systems of classes take less time than one in
# the weights: with two and three classes three, with more fewer.
_WEIGHTS_PER_ROW = 3

# Numbers that are held at a time, beside the system.
_NUMBERS_AT_ONCE = 20_000_000

# Operations for intervals of evidence: a minute or two.
_MAX_EVIDENCE_WORK = 4e12

# Share of the largest factor below which a weight has no part in a function.
_ROUNDING = 1e-12


class Covariance:
    """The covariance of weights near a minimum, as deviations of functions of them."""

    maps: WeightMaps
    size: int
    """Numbers that a function has on the way."""

    work: float
    """Operations for one function, about."""

    def named(self) -> dict[str, Floats]:
        """Return standard deviations of the weights as they are named."""
        return {
            name: self.deviation(functions).reshape(shape)
            for name, (functions, shape) in self.maps.named.items()
        }

    def evidence(self, codes: Codes) -> tuple[Floats, Floats]:
        """Return those of the evidence of rows: by column (n, d, K), and of its sum."""
        views, n = views_of(codes.schema), codes.n_rows
        work = n * (len(views) + 1) * self.maps.evidence.n_classes * self.work
        if work > _MAX_EVIDENCE_WORK:
            fewer = max(int(n * _MAX_EVIDENCE_WORK / work), 1)
            raise ParameterError(
                f"Intervals of {n} rows would take too long or too much memory. Ask "
                f"for fewer rows at a time: about {fewer}."
            )
        place = np.empty(len(codes.schema), dtype=np.int64)
        for part, positions in enumerate(views, start=1):
            place[positions] = part
        whole = self._evidence(codes, np.zeros_like(place))
        return self._evidence(codes, place)[:, 1:], whole[:, 0]

    def _evidence(self, codes: Codes, place: Ints) -> Floats:
        """Return deviations of evidence by row, part and class."""
        k = self.maps.evidence.n_classes
        cells = self.maps.cells(codes, slice(None), place)
        functions = csr_array(cells @ self.maps.effect)
        found = self.deviation(functions, evidence_of(np.eye(k)))
        return found.reshape(codes.n_rows, -1, k)

    def deviation(self, functions: csr_array, against: Floats | None = None) -> Floats:
        """Return standard deviations of functions (m, p) of the weights, shape (m,).

        With a matrix ``against`` (K, K), of its product with each K functions in turn.
        """
        mix = np.eye(1) if against is None else against
        n, k = functions.shape[0] // len(mix), len(mix)
        out = np.empty((n, k))
        for part in _pieces(n, _NUMBERS_AT_ONCE // (2 * k * self.size)):
            out[part] = self._variances(functions[k * part.start : k * part.stop], mix)
        return np.sqrt(np.maximum(out, 0.0)).ravel()

    def _variances(self, functions: csr_array, mix: Floats) -> Floats:
        """Return variances of a matrix times each K functions, shape (m / K, K)."""
        each = eye_array(functions.shape[0] // len(mix))
        mixed = csr_array(csr_array(kron(each, mix)) @ functions)
        return self._variance(mixed).reshape(-1, len(mix))

    def _variance(self, functions: csr_array) -> Floats:
        """Return variances of functions (m, p), shape (m,)."""
        raise NotImplementedError


class LaplaceCovariance(Covariance):
    """By the inverse of a Hessian that was made in full, for any weights."""

    def __init__(
        self, problem: Problem, weights: Floats, free: NDArray[np.bool_]
    ) -> None:
        self.maps, self.size = WeightMaps(problem), problem.size
        self.work = float(self.size) ** 2
        root = root_of_inverse(hessian_of(problem, weights), free)
        self._is_open = np.isinf(root).any(axis=1)
        self._root = np.where(np.isinf(root), 0.0, root)

    def _variance(self, functions: csr_array) -> Floats:
        least = _ROUNDING * np.abs(functions.data).max(initial=0.0)
        is_open = abs(functions[:, self._is_open]).sum(axis=1) > least
        return np.where(is_open, np.inf, ((functions @ self._root) ** 2).sum(axis=1))


class WeightCovariance(Covariance):
    """By one system in the weights, without what rows cannot tell of."""

    def __init__(self, maps: LevelMaps, codes: Codes, curvature: Curvature) -> None:
        self.maps = maps
        self._units, self._common = (maps.prior_units @ basis for basis in maps.turned)
        self.size = self._units.shape[1]
        self.work = float(self.size) ** 2
        effect = maps.effect @ self._units
        values, vectors = np.linalg.eigh(curvature.matrices())
        # What is common to all classes has no curvature.
        roots = vectors[:, :, 1:] * np.sqrt(np.maximum(values[:, None, 1:], 0.0))
        n, k, m = roots.shape
        system = np.eye(self.size)
        for part in _pieces(n, _NUMBERS_AT_ONCE // (self.size * m)):
            scores = maps.scores(codes, part, effect)
            by_root = np.moveaxis(roots[part], 2, 0)
            where = np.arange(scores.shape[0]), np.arange(0, scores.shape[0] + 1, k)
            picked = [csr_array((root.ravel(), *where)) for root in by_root]
            dense = (csr_array(vstack(picked)) @ scores).toarray()
            system += dense.T @ dense
        self._factor = _lower(system)

    def _variance(self, functions: csr_array) -> Floats:
        right = (functions @ self._units).T.toarray()
        solved = solve_triangular(
            self._factor, right, lower=True, overwrite_b=True, check_finite=False
        )
        # No row says anything about what is common: it is as uncertain as before.
        common = (functions @ self._common).power(2).sum(axis=1)
        return np.asarray((solved**2).sum(axis=0) + common)


class ClassCovariance(Covariance):
    r"""One class at a time, for functions of one class and of shared weights.

    A class has weights of its own, and few are shared by all. With softmax curvature
    :math:`D - D R (R^T D R)^{-1} R^T D`, where :math:`D` is the diagonal of the
    posteriors of a class and :math:`R` adds up classes, scores of class c with the
    prior covariance :math:`M_c` need one system of n rows each, and one for what
    classes have in common:

    .. math:: (C^{-1} + M)^{-1} = E - E R \Bigl(\sum_c E_c\Bigr)^{-1} R^T E, \qquad
              E_c = (D_c^{-1} + M_c)^{-1}

    (C. Rasmussen and C. Williams (2006), Gaussian Processes for Machine Learning, 3.5).
    That is exact. What classes have in common cannot be left out: on five data sets
    intervals of sums would be 8 to 24 % too short at the median.
    """

    def __init__(self, maps: LevelMaps, codes: Codes, curvature: Curvature) -> None:
        self.maps, self._units, self._owners = maps, maps.prior_units, maps.owners
        scores = maps.scores(codes, slice(None), maps.effect @ self._units)
        diagonal = curvature.diagonal
        assert diagonal is not None
        # Rows of weight zero say nothing.
        known = np.flatnonzero(diagonal.sum(axis=1) > 0.0)
        k, self._n = diagonal.shape[1], len(known)
        by_class = [scores[known * k + c].tocsc() for c in range(k)]
        self._own = [
            csr_array(own[:, self._owners == c]) for c, own in enumerate(by_class)
        ]
        shared = [own[:, self._owners < 0].toarray() for own in by_class]
        self._inner = [
            _inverse(self._own[c], np.sqrt(diagonal[known, c])) for c in range(k)
        ]
        self._common = _lower(np.sum(self._inner, axis=0))
        self._shared = self._projected(shared)
        grams = [a.T @ b for a, b in zip(shared, self._shared, strict=True)]
        self._shared_root = _lower(np.eye(shared[0].shape[1]) + np.sum(grams, axis=0))
        self.size, self.work = self._n + len(self._shared_root), 3.0 * self._n**2

    def _projected(self, shared: list[Floats]) -> list[Floats]:
        """Multiply scores of shared weights by the inverse in the module's formula."""
        solved = [e @ own for e, own in zip(self._inner, shared, strict=True)]
        common = cho_solve((self._common, True), np.sum(solved, axis=0))
        return [own - e @ common for e, own in zip(self._inner, solved, strict=True)]

    def _variances(self, functions: csr_array, mix: Floats) -> Floats:
        own, common = self._parts(functions)
        mixed = mix @ common.reshape(-1, len(mix), self.size)
        alone = own.reshape(-1, len(mix)) @ (mix**2).T
        return np.asarray(alone + (mixed**2).sum(axis=2))

    def _parts(self, functions: csr_array) -> tuple[Floats, Floats]:
        """Divide variances into what classes do not share, and roots of the rest.

        Shapes are (m,) and (m, n + shared weights).
        """
        in_units, owners = csr_array(functions @ self._units).tocsc(), self._owners
        own = np.zeros(functions.shape[0])
        common = np.zeros((len(own), self._n))
        shared = in_units[:, owners < 0].toarray()
        for c, design in enumerate(self._own):
            of_class = csr_array(in_units[:, owners == c])
            rows = np.flatnonzero(np.diff(of_class.indptr))
            weights = of_class[rows]
            # Most functions have few weights.
            scores = (design @ weights.T).toarray()
            solved = self._inner[c] @ scores
            own[rows] += weights.power(2).sum(axis=1) - (scores * solved).sum(axis=0)
            common[rows] += solve_triangular(
                self._common, solved, lower=True, check_finite=False
            ).T
            shared[rows] -= scores.T @ self._shared[c]
        shared = solve_triangular(self._shared_root, shared.T, lower=True).T
        return own, np.hstack([common, shared])


def is_by_class(curvature: Curvature) -> bool:
    """Whether a curvature is that of a softmax, as the formula needs."""
    if curvature.full is not None:
        return False
    diagonal, vector = curvature.diagonal, curvature.vector
    assert diagonal is not None and vector is not None
    total = diagonal.sum(axis=1, keepdims=True)
    return bool(np.allclose(vector * np.sqrt(total), diagonal, rtol=1e-9, atol=1e-12))


def _inverse(design: csr_array, root: Floats) -> Floats:
    """Return the inverse of 1 / D + M, with the root of D and M = X Xᵀ."""
    scaled = csr_array(diags_array(root) @ design)
    system = scaled @ scaled.T.toarray()
    system[np.diag_indices_from(system)] += 1.0
    # In place: a symmetric matrix is its own transpose, laid out as LAPACK wants it.
    lower, _ = dpotri(_lower(system.T), lower=True, overwrite_c=True)
    inverse = np.tril(lower)
    inverse += np.tril(inverse, -1).T
    return np.asarray(root[:, None] * inverse * root)


def _lower(system: Floats) -> Floats:
    factor, _ = cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
    return np.asarray(factor)


def _pieces(n: int, at_once: int) -> list[slice]:
    """Cut n things into runs of so many at most."""
    step = max(at_once, 1)
    return [slice(low, min(low + step, n)) for low in range(0, n, step)]


def covariance_of(
    problem: Problem, weights: Floats, free: NDArray[np.bool_], codes: Codes
) -> Covariance:
    """Choose the covariance that suits a problem, by the time it takes."""
    objective, k = problem.objective, problem.evidence.n_classes
    ridge = objective.weighting.strengths(problem.evidence)
    is_held = isinstance(objective.weighting, HierarchicalWeighting)
    if not is_held or ridge is None or not (ridge[0] > 0.0).all():
        if problem.size > _MAX_WEIGHTS:
            raise ParameterError(
                f"There are {problem.size} weights, too many to invert their Hessian "
                f"(at most {_MAX_WEIGHTS}). Use method='bootstrap'."
            )
        return LaplaceCovariance(problem, weights, free)
    maps, n = LevelMaps(problem), objective.n_rows
    size = problem.size - 1 - len(problem.evidence.resolutions.owners)
    most_rows = int(MAX_SYSTEM * (4 / (k + 2)) ** 0.5)
    curvature = objective.sample(n).curvature(weights, True)
    fits = n <= most_rows and is_by_class(curvature)
    if fits and size > min(_WEIGHTS_PER_ROW * n, MAX_SYSTEM):
        return ClassCovariance(maps, codes, curvature)
    if size > MAX_SYSTEM:
        raise ParameterError(
            f"There are {problem.size} weights and {n} rows, too many for Laplace's "
            f"approximation: {size} equations, at most {MAX_SYSTEM}, or {n} for each "
            f"class, at most {most_rows}. Fit with pairs=None, a smaller number of "
            "resolutions, or fewer rows; or use method='bootstrap' for weights of "
            "columns."
        )
    return WeightCovariance(maps, codes, curvature)


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
