"""Units for the weights of a hierarchy, in which their curvature is nearly one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.linalg.lapack import dtrtri

from steelyard._common.threads import run, thread_count
from steelyard.fitting.objective import Objective
from steelyard.kernels.coupling import couple
from steelyard.kernels.fitting import scatter
from steelyard.model.posteriors import softmax
from steelyard.weighting import Evidence, HierarchicalWeighting

# Rows from which curvatures are made.
_LEAST_ROWS = 2_000
_ROWS_PER_CODE = 5

# Weights of one class that are coupled with each other, and entries of all such blocks.
# The effects of further values, those of attributes with most, have units of their own.
_MOST_COUPLED = 1_000
_MOST_ENTRIES = 20_000_000

# Naive Bayes is sure of too many rows, whose curvature would vanish: shares of classes
# are drawn together a little.
_EVEN = 0.003


class ClassUnits:
    r"""A linear change of variables: one block for shared weights, one per class.

    The block of a class holds its intercept, its deviations from the shared weights and
    its value effects. Within it the Hessian, taken at some weights, has all couplings
    between attributes, which is where naive Bayes is ill-conditioned; couplings between
    classes are left out. A vector of weights is :math:`x = L^{-\top} y` with
    :math:`L L^\top` the block.
    """

    def __init__(self, objective: Objective, weights: NDArray[np.float64]) -> None:
        evidence = objective.evidence
        assert objective.penalty is not None
        k, d = evidence.n_classes, evidence.n_features
        self._shape = (k, d, len(evidence.value_rows))
        kept = _coupled(evidence)
        n_codes = int(kept.sum())
        size = max(_LEAST_ROWS, _ROWS_PER_CODE * n_codes)
        sample = objective.sample(min(size, objective.rows.n_rows))
        share = (1.0 - _EVEN) * softmax(sample.scores(weights)) + _EVEN / k
        u = sample.row_weights()
        ridge = self._split(objective.penalty.curvature(len(weights)))
        entries = sample.entries()
        # Positions among the table rows that are coupled; -1 for others.
        compact = np.where(kept, np.cumsum(kept) - 1, -1)
        places = compact[sample.table_rows()]
        # Rows of one attribute are all coupled or all not.
        places = places[:, (places[:1] >= 0).all(axis=0)].astype(np.uint64)
        values = compact[evidence.value_rows]
        self._inside = np.concatenate([np.ones(1 + d, dtype=bool), values >= 0])
        values = values[values >= 0]
        owner = evidence.table.spread(np.arange(d))[kept]
        curvatures = u[:, None] * share * (1.0 - share)
        both = _coupling(places, curvatures[:, 0], n_codes) if k == 2 else None

        def one_class(c: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            curvature = np.ascontiguousarray(curvatures[:, c])
            # Two classes have one curvature.
            codes = _coupling(places, curvature, n_codes) if both is None else both
            levels = np.zeros((n_codes, d))
            levels[np.arange(n_codes), owner] = evidence.table.values[kept, c]
            dens = np.ascontiguousarray(entries[c, evidence.gaussian].T)
            by_code = np.zeros((n_codes, len(evidence.gaussian)))
            none = np.zeros(places.shape[1], dtype=np.uint64)
            scatter(places, none, dens * curvature[:, None], by_code)
            block = _block(codes, levels, dens, by_code, curvature, evidence, values)
            pull = ridge[1][c]
            diagonal = np.maximum(pull[~self._inside], 1e-6 * curvature.sum())
            return _inverse_factor(block, pull[self._inside]), 1.0 / np.sqrt(diagonal)

        by_class = run(one_class, range(k), thread_count(objective.n_jobs))
        inverses, outside = zip(*by_class, strict=True)
        self._inverses, self._outside = np.stack(inverses), np.stack(outside)
        centers = HierarchicalWeighting.centers(evidence)
        overall = np.einsum("cds,d->cs", entries, centers)[:, None]
        entries = np.concatenate([overall, entries], axis=1)
        shared = _shared(entries, share, u)
        self._common = _inverse_factor(shared, ridge[0])

    def weights(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Turn a vector in these units into weights."""
        shared, by_class = self._split(y)
        out = np.empty_like(by_class)
        inside = np.ascontiguousarray(by_class[:, None, self._inside])
        out[:, self._inside] = np.matmul(inside, self._inverses)[:, 0]
        out[:, ~self._inside] = by_class[:, ~self._inside] * self._outside
        return self._join(shared @ self._common, out)

    def vector(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Turn weights into a vector in these units."""
        shared, by_class = self._split(weights)
        out = np.empty_like(by_class)
        out[:, ~self._inside] = by_class[:, ~self._inside] / self._outside
        for c, inverse in enumerate(self._inverses):
            out[c, self._inside] = solve_triangular(
                inverse.T, by_class[c, self._inside]
            )
        return self._join(solve_triangular(self._common.T, shared), out)

    def gradient(self, gradient: NDArray[np.float64]) -> NDArray[np.float64]:
        """Turn a gradient by weights into one in these units."""
        shared, by_class = self._split(gradient)
        out = np.empty_like(by_class)
        inside = np.ascontiguousarray(by_class[:, self._inside, None])
        out[:, self._inside] = np.matmul(self._inverses, inside)[:, :, 0]
        out[:, ~self._inside] = by_class[:, ~self._inside] * self._outside
        return self._join(self._common @ shared, out)

    def _split(
        self, weights: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Take a vector apart: shared weights (1 + d,), those of classes (K, ·)."""
        k, d, _ = self._shape
        intercept, shared, by_class, by_value = np.split(
            weights, np.cumsum([k, 1 + d, d * k])
        )
        rows = (intercept[None], by_class.reshape(d, k), by_value.reshape(-1, k))
        return shared, np.ascontiguousarray(np.concatenate(rows).T)

    def _join(
        self, shared: NDArray[np.float64], by_class: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        d = self._shape[1]
        rows = by_class.T
        return np.concatenate(
            [rows[0], shared, rows[1 : 1 + d].ravel(), rows[1 + d :].ravel()]
        )


def _coupled(evidence: Evidence) -> NDArray[np.bool_]:
    """Say which table rows are coupled: attributes with few values first."""
    schema, d = evidence.schema, evidence.n_features
    most = min(_MOST_COUPLED, int(np.sqrt(_MOST_ENTRIES / evidence.n_classes)))
    sizes = np.array([feature.n_codes for feature in schema.features])
    order = np.argsort(sizes, kind="stable")
    fits = np.cumsum(sizes[order]) <= max(most - d, 0)
    chosen = np.zeros(d, dtype=bool)
    chosen[order[fits]] = True
    return evidence.table.spread(chosen)


def _block(
    codes: NDArray[np.float64],
    levels: NDArray[np.float64],
    dens: NDArray[np.float64],
    by_code: NDArray[np.float64],
    curvature: NDArray[np.float64],
    evidence: Evidence,
    values: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Hessian of intercept, deviations and effects of one class.

    codes (V, V) curvature shared by two codes, levels (V, d) log-probabilities by
    attribute, dens (s, g), by_code (V, g) curvature shared by code and density.
    """
    d, gaussian = levels.shape[1], evidence.gaussian
    totals = np.diag(codes)
    cross = codes @ levels
    cross[:, gaussian] = by_code
    inner = levels.T @ cross
    between = by_code.T @ levels
    inner[gaussian] = between
    inner[np.ix_(gaussian, gaussian)] = (dens * curvature[:, None]).T @ dens
    first = totals @ levels
    first[gaussian] = curvature @ dens
    size = 1 + d + len(values)
    out = np.zeros((size, size))
    out[0, 0] = curvature.sum()
    out[1 : 1 + d, 0] = first
    out[1 + d :, 0] = totals[values]
    out[1 : 1 + d, 1 : 1 + d] = inner
    out[1 + d :, 1 : 1 + d] = cross[values]
    out[1 + d :, 1 + d :] = codes[np.ix_(values, values)]
    # Only the lower half is read from here on.
    return out


def _shared(
    entries: NDArray[np.float64],
    share: NDArray[np.float64],
    u: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Hessian of the shared weights: covariances over classes, added up."""
    mean = np.einsum("cds,sc->ds", entries, share)
    out = np.zeros((entries.shape[1], entries.shape[1]))
    for c in range(len(entries)):
        deviation = entries[c] - mean
        out += (deviation * (u * share[:, c])) @ deviation.T
    return out


def _coupling(
    places: NDArray[np.uint64], curvature: NDArray[np.float64], n_codes: int
) -> NDArray[np.float64]:
    """Curvature that every two codes share, shape (V, V)."""
    codes = np.zeros((n_codes, n_codes))
    couple(places, np.ascontiguousarray(curvature), codes)
    codes += np.tril(codes, -1).T
    return codes


def _inverse_factor(
    block: NDArray[np.float64], ridge: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Inverse of the Cholesky factor of a matrix with a ridge, shape (p, p)."""
    diagonal = np.einsum("ii->i", block)
    diagonal += ridge + 1e-10 * (diagonal + diagonal.mean())
    factor = cholesky(block, lower=True, overwrite_a=True, check_finite=False)
    return np.asarray(dtrtri(factor, lower=1, overwrite_c=1)[0])
