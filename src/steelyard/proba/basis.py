"""The basis of effects: a factor of the prior covariance of the codes of each column.

The effects of bins have a Gaussian-process prior: the covariance of two bins is a mean
over several length scales, each given as a number of bins. Its main components are the
basis, so that a curve is still one table over the finest bins. Categories have the
identity, interactions the product of the covariances of their sides.

Evidence is smooth too: an average over tables that are cut at each length scale. That
is why the basis is here, where counts become probabilities, and not with the fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from steelyard._common.arrays import Floats, Ints
from steelyard.proba.encodings import Encodings
from steelyard.table.discretizers import EqualFrequencyDiscretizer
from steelyard.table.schema import FeatureSchema, Side, TableSchema

# Finest bins of a column with several length scales: most numbers of bins divide it.
FINEST = 60

# Numbers of bins of the longest and of the shortest length scale.
_BINS_RANGE = (4, 20)

# Width of the averages that make evidence smooth, in bins of each length scale.
_EVIDENCE_WIDTH = 0.5

# Share of the variance of effects that a basis keeps.
_EXPLAINED = 0.95

# Largest distance of a bin from the mean of a column in a trend, in standard
# deviations.
_MAX_TREND = 4.0

# Prior variance of the trend of a curve, as a multiple of that of other effects.
_TREND_VARIANCE = 1.0 / 0.3

# A sparse factor: rows (codes), columns (effects), entries, and number of effects.
_Factor = tuple[Ints, Ints, Floats, int]

# A sparse matrix by rows, for kernels: starts of rows, columns, and entries.
Entries = tuple[NDArray[np.uint32], NDArray[np.uint32], Floats]

# Length scales of the sides of interactions, besides their number of bins.
_INTERACTION_SCALES = (3, 6)


def bins_of_resolutions(n_resolutions: int) -> tuple[int, ...]:
    """Return numbers of bins, from few to many, none for a single resolution.

    >>> bins_of_resolutions(8)
    (4, 5, 6, 8, 10, 13, 16, 20)
    >>> bins_of_resolutions(1)
    ()
    """
    if n_resolutions <= 1:
        return ()
    return tuple(
        np.rint(np.geomspace(*_BINS_RANGE, n_resolutions)).astype(int).tolist()
    )


def with_finest_bins(numeric: Any) -> Any:
    """Put the finest bins in place of ten of equal frequency, in a setting of any form.

    >>> with_finest_bins(("mdl", "equal-frequency"))
    ('mdl', EqualFrequencyDiscretizer(n_bins=60))
    """
    if isinstance(numeric, str):
        is_ten = numeric == "equal-frequency"
        return EqualFrequencyDiscretizer(FINEST) if is_ten else numeric
    if isinstance(numeric, Mapping):
        return {
            column: with_finest_bins(setting) for column, setting in numeric.items()
        }
    if isinstance(numeric, (list, tuple)):
        return tuple(map(with_finest_bins, numeric))
    return numeric


# ------------------------------------------------------------------------ covariances

# What depends on numbers of bins alone is the same for most columns of a table, and of
# its folds.


def closeness(n: int, n_bins: tuple[int, ...], width: float = 1.0) -> Floats:
    r"""Return the prior covariance of the effects of n bins, shape (n, n).

    .. math:: C_{ab} = \frac1R \sum_r \exp\left(-\tfrac12
        \left(\frac{(a - b)\, r}{w n}\right)^2\right)

    over R length scales, given as numbers r of bins, with the width w in bins of each.
    """
    distance = np.subtract.outer(np.arange(n), np.arange(n)) / (width * n)
    near: Floats = np.exp(-0.5 * np.multiply.outer(n_bins, distance) ** 2).mean(axis=0)
    return near


@lru_cache(maxsize=1024)
def averages(n: int, n_bins: tuple[int, ...], width: float = 1.0) -> Floats:
    """Return the share of each bin in the average around every bin, shape (n, n)."""
    near = closeness(n, n_bins, width)
    return near / near.sum(axis=1, keepdims=True)


def _smooth(n: int, n_others: int, n_bins: tuple[int, ...]) -> Floats:
    """Factor the covariance of the effects of codes that make a smooth curve.

    Its largest components are kept, up to a share of the variance: what they leave out
    is steps between single bins. Codes after the bins, such as that of missing cells,
    have independent effects.
    """
    covariance = np.zeros((n + 1 + n_others,) * 2)
    covariance[1 : n + 1, 1 : n + 1] = closeness(n, n_bins)
    covariance[n + 1 :, n + 1 :] = np.eye(n_others)
    variances, vectors = np.linalg.eigh(covariance)
    explained = np.cumsum(variances[::-1]) / variances.sum()
    n_kept = 1 + int(np.searchsorted(explained, _EXPLAINED))
    kept = slice(None, -n_kept - 1, -1)
    return np.asarray(vectors[:, kept] * np.sqrt(variances[kept]))


def _sparse_factor(factor: Floats) -> _Factor:
    """Return the entries of a map from effects to codes."""
    codes, effects = np.nonzero(factor)
    return codes, effects, factor[codes, effects], factor.shape[1]


@lru_cache(maxsize=1024)
def _curve(n: int, n_others: int, n_bins: tuple[int, ...]) -> _Factor:
    """Return the factor of a smooth curve of n bins, and of codes after these."""
    return _sparse_factor(_smooth(n, n_others, n_bins))


@lru_cache(maxsize=1024)
def _interaction(
    n_bins: tuple[int, int], n_groups: tuple[int, int], is_smooth: bool
) -> _Factor:
    """Return the factor of the cells of an interaction: a product of its sides'.

    The first groups of a side are bins, and are smooth; categories are independent.
    """
    sides = [
        _smooth(n, size - 1 - n, (*(r for r in _INTERACTION_SCALES if r < n), n))
        if n and is_smooth
        else np.eye(size)[:, 1:]
        for n, size in zip(n_bins, n_groups, strict=True)
    ]
    return _sparse_factor(np.asarray(np.kron(*sides), dtype=np.float64))


def trend(edges: Floats) -> Floats:
    """Return standardised centres of bins, shape (n,).

    The outer bins reach half as far beyond their edge as their neighbours do.
    """
    even = np.linspace(-1.0, 1.0, len(edges) + 1)
    if len(edges) < 2:
        return even
    # So that nothing overflows.
    edges = edges / np.abs(edges).max()
    first, last = 2.0 * edges[0] - edges[1], 2.0 * edges[-1] - edges[-2]
    ends = np.concatenate([[first], edges, [last]])
    centres = (ends[1:] + ends[:-1]) / 2.0
    centres -= centres.mean()
    # Numbers that differ in their last digit only.
    deviation = centres.std()
    return (
        np.clip(centres / deviation, -_MAX_TREND, _MAX_TREND)
        if deviation > 0.0
        else even
    )


# The same columns come again with each list of interactions.
@lru_cache(maxsize=4096)
def _trend_entries(edges: tuple[float, ...]) -> Floats:
    return np.asarray(np.sqrt(_TREND_VARIANCE) * trend(np.array(edges)))


def _with_trend(factor: _Factor, edges: tuple[float, ...]) -> _Factor:
    """Add a trend of bins, as the last effect."""
    codes, effects, entries, n_effects = factor
    n = len(edges) + 1
    return (
        np.concatenate([codes, np.arange(1, n + 1)]),
        np.concatenate([effects, np.full(n, n_effects)]),
        np.concatenate([entries, _trend_entries(edges)]),
        n_effects + 1,
    )


# ------------------------------------------------------------------------------ basis


@lru_cache(maxsize=1024)
def grouped_bins(n: int, has_missing: bool, n_groups: int) -> Ints:
    """Merge n bins to groups of about equal size; missing cells are a separate one."""
    groups = 1 + np.arange(n) * n_groups // n
    return np.append([0, *groups.tolist()], [n_groups + 1] * has_missing).astype(int)


@lru_cache(maxsize=1024)
def _some_bins(n: int, has_missing: bool) -> FeatureSchema:
    """Return an attribute of n bins, with cut points that do not matter."""
    edges = tuple(map(float, range(1, n)))
    return FeatureSchema(
        None, "binned", "numbers", edges=edges, missing_is_value=has_missing
    )


@dataclass(frozen=True)
class EffectBasis:
    """The basis of effects of all coded attributes, each encoding of a column one.

    Cells of an interaction are as smooth as its sides; those with a missing side have
    no effect.
    """

    encodings: Encodings
    n_bins: tuple[int, ...] = ()
    """Length scales as numbers of bins, ascending; empty for independent bins."""

    of_columns: EffectBasis | None = None
    """The same without interactions, if these were added."""

    def with_interactions(self, joined: TableSchema) -> EffectBasis:
        """Return the basis of the same columns, and of the interactions of a schema."""
        return EffectBasis(self.encodings.with_interactions(joined), self.n_bins, self)

    @property
    def schema(self) -> TableSchema:
        """One attribute for each encoding."""
        return self.encodings.schema

    def _scales(self, feature: FeatureSchema) -> list[int]:
        """Return the length scales of an attribute, none if it is not smooth."""
        n = len(feature.edges) + 1
        numbers = sorted({min(number, n) for number in self.n_bins})
        return numbers if feature.kind == "binned" and len(numbers) > 1 else []

    @cached_property
    def length_scales(self) -> Encodings:
        """An encoding for each length scale; interactions, without evidence, have none.

        Attributes that are not smooth are as they are.
        """
        features, columns, codes = [], [], []
        for j in self.schema.without_interactions.coded.tolist():
            feature = self.schema.features[j]
            n, has_missing = len(feature.edges) + 1, feature.missing_is_value
            scales = self._scales(feature)
            columns += [j] * max(len(scales), 1)
            features += [_some_bins(number, has_missing) for number in scales]
            codes += [grouped_bins(n, has_missing, number) for number in scales]
            if not scales:
                features.append(feature)
                codes.append(np.arange(feature.n_codes))
        merged = TableSchema(tuple(features))
        return Encodings(self.schema, merged, np.array(columns, dtype=np.int64), codes)

    def smoothed(self, log_prob: Floats) -> Floats:
        """Return log-probabilities of codes (V, K) if curves of bins are smooth."""
        out = log_prob.copy()
        for j, feature in enumerate(self.schema.features):
            if self._scales(feature):
                n, first = len(feature.edges) + 1, self.schema.offsets[j] + 1
                shares = averages(n, self.n_bins, _EVIDENCE_WIDTH)
                out[first : first + n] = shares @ out[first : first + n]
        return out

    @cached_property
    def is_curve(self) -> NDArray[np.bool_]:
        """Whether each attribute is the finest bins of a number, with a trend.

        Only a column with coarser bins has one; others are mainly evidence.
        """
        of = self.encodings
        n_edges = np.array([len(feature.edges) for feature in of.schema.features])
        has_trend = ~of.is_first & ~of.is_coarser
        return has_trend & (n_edges > 0) & bool(self.n_bins)

    @cached_property
    def _factors(self) -> list[tuple[int, _Factor]]:
        """Coded attributes, each with its sparse factor."""
        known = [] if self.of_columns is None else self.of_columns._factors
        added = self.schema.coded[len(known) :].tolist()
        return [*known, *((j, self._factor(j)) for j in added)]

    def _factor(self, j: int) -> _Factor:
        feature = self.schema.features[j]
        if feature.sides:
            a, b = feature.sides
            n_bins = self.binned_groups(a), self.binned_groups(b)
            return _interaction(n_bins, (a.n_groups, b.n_groups), bool(self.n_bins))
        # Categories are independent; code 0 has no effect.
        codes = np.arange(1, feature.n_codes)
        factor = codes, codes - 1, np.ones(len(codes)), len(codes)
        if self._scales(feature):
            n, n_others = len(feature.edges) + 1, int(feature.missing_is_value)
            factor = _curve(n, n_others, self.n_bins)
        return _with_trend(factor, feature.edges) if self.is_curve[j] else factor

    def binned_groups(self, side: Side) -> int:
        """Return how many groups of a side are bins, not categories or missing."""
        feature = self.schema.features[side.feature]
        is_binned = feature.kind == "binned"
        return (side.n_groups - 1 - feature.missing_is_value) * is_binned

    @cached_property
    def owners(self) -> Ints:
        """Attribute that each effect belongs to, shape (effects,)."""
        sizes = [n_effects for _, (*_, n_effects) in self._factors]
        return np.repeat([j for j, _ in self._factors], sizes).astype(np.int64)

    @cached_property
    def matrix(self) -> csr_array:
        r"""The map from effects, all of the same variance, to effects of codes.

        Shape (codes, effects). Without length scales it is the identity. Bins have the
        covariance of a smooth curve, ``closeness``; its main components are the columns
        here, fewer than bins, and a trend. Cells of interactions have the product of
        the covariances of their sides.
        """
        rows, columns, entries = [np.arange(0)], [np.arange(0)], [np.empty(0)]
        n_effects = 0
        for j, (codes, effects, values, size) in self._factors:
            rows.append(self.schema.offsets[j] + codes)
            columns.append(n_effects + effects)
            entries.append(values)
            n_effects += size
        positions = np.concatenate(rows), np.concatenate(columns)
        shape = self.schema.n_codes, n_effects
        return csr_array((np.concatenate(entries), positions), shape=shape)

    @cached_property
    def entries(self) -> Entries:
        """The entries of ``matrix``, row by row."""
        return _entries(self.matrix)

    @cached_property
    def transposed_entries(self) -> Entries:
        """The entries of its transpose, row by row."""
        return _entries(self.matrix.T.tocsr())

    @cached_property
    def squared_entries(self) -> Entries:
        """The squares of these."""
        starts, columns, entries = self.transposed_entries
        return starts, columns, entries**2


def _entries(matrix: csr_array) -> Entries:
    """Return a sparse matrix with unsigned positions, which kernels read fast."""
    starts, columns = matrix.indptr.astype(np.uint32), matrix.indices.astype(np.uint32)
    return starts, columns, matrix.data
