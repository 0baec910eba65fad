"""The basis of effects: a factor of the prior covariance of the codes of each column.

The effects of bins have a Gaussian-process prior: the covariance of two bins is a mean
over several length scales, each given as a number of bins. Its main components are the
basis, so that a curve is still one table over the finest bins. Categories have the
identity, interactions the product of the covariances of their sides.
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
from steelyard.table.discretizers.unsupervised import EqualFrequencyDiscretizer
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

# Length scales of the sides of interactions, beside their own number of bins.
_INTERACTION_SCALES = (3, 6)


def bins_of_resolutions(n_resolutions: int) -> tuple[int, ...]:
    """Return numbers of bins, from few to many, none for a single resolution.

    Examples
    --------
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

    Examples
    --------
    >>> with_finest_bins(("mdl", "equal-frequency"))
    ('mdl', EqualFrequencyDiscretizer(n_bins=60))
    """
    if isinstance(numeric, str):
        is_ten = numeric == "equal-frequency"
        return EqualFrequencyDiscretizer(FINEST) if is_ten else numeric
    if isinstance(numeric, Mapping):
        return {column: with_finest_bins(own) for column, own in numeric.items()}
    if isinstance(numeric, (list, tuple)):
        return tuple(map(with_finest_bins, numeric))
    return numeric


@lru_cache(maxsize=4096)
def _merged(n_bins: int, n_groups: int) -> tuple[int, ...]:
    """Return the group of every bin, from 1 on: groups of about equal size."""
    if n_groups >= n_bins:
        return tuple(range(1, n_bins + 1))
    return tuple((1 + np.arange(n_bins) * n_groups // n_bins).tolist())


# What only depends on numbers of bins and groups is the same for most attributes of a
# table, and of its folds.
@lru_cache(maxsize=1024)
def _bin_groupings(
    n: int, missing_is_value: bool, n_bins: tuple[int, ...]
) -> list[Ints]:
    """Group bins by each number; missing cells are merged with no bin."""
    numbers = sorted({min(number, n) for number in n_bins})
    return [
        np.array([0, *_merged(n, number), *[number + 1] * missing_is_value])
        for number in numbers
    ]


@lru_cache(maxsize=1024)
def _some_bins(n: int, missing_is_value: bool) -> FeatureSchema:
    """Return an attribute of n bins, with cut points that do not matter."""
    edges = tuple(map(float, range(1, n)))
    return FeatureSchema(
        None, "binned", "numbers", edges=edges, missing_is_value=missing_is_value
    )


def closeness(n: int, n_bins: tuple[int, ...], width: float = 1.0) -> Floats:
    r"""Return the prior covariance of the effects of n bins, shape (n, n).

    .. math:: C_{ab} = \frac1R \sum_r \exp\left(-\tfrac12
        \left(\frac{(a - b)\, r}{w n}\right)^2\right)

    over R length scales, given as numbers r of bins, with the width w in bins of each.
    """
    apart = np.subtract.outer(np.arange(n), np.arange(n)) / (width * n)
    near: Floats = np.exp(-0.5 * np.multiply.outer(n_bins, apart) ** 2).mean(axis=0)
    return near


@lru_cache(maxsize=1024)
def _average(n: int, n_bins: tuple[int, ...]) -> Floats:
    """Return the share of each bin in the average around every bin."""
    near = closeness(n, n_bins, _EVIDENCE_WIDTH)
    return near / near.sum(axis=1, keepdims=True)


@lru_cache(maxsize=1024)
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


@lru_cache(maxsize=1024)
def _smooth_interaction(
    n_bins: tuple[int, int], n_groups: tuple[int, int], is_smooth: bool
) -> _Factor:
    """Factor the covariance of cells of an interaction: a product of its sides'.

    The first groups of a side are bins, and are smooth; categories are independent.
    """
    of_sides = [
        _smooth(n, size - 1 - n, (*(r for r in _INTERACTION_SCALES if r < n), n))
        if n and is_smooth
        else np.eye(size)[:, 1:]
        for n, size in zip(n_bins, n_groups, strict=True)
    ]
    return _positions(np.asarray(np.kron(*of_sides), dtype=np.float64))


def _positions(factor: Floats) -> _Factor:
    """Return where a map from effects to codes has entries."""
    codes, effects = np.nonzero(factor)
    return codes, effects, factor[codes, effects], factor.shape[1]


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
    n, own = len(edges) + 1, _trend_entries(edges)
    return (
        np.concatenate([codes, np.arange(1, n + 1)]),
        np.concatenate([effects, np.full(n, n_effects)]),
        np.concatenate([entries, own]),
        n_effects + 1,
    )


def _independent(groups: Ints) -> _Factor:
    """Give each group an independent effect."""
    known = np.flatnonzero(groups)
    return known, groups[known] - 1, np.ones(len(known)), int(groups.max(initial=0))


@dataclass(frozen=True)
class EffectBasis:
    """The basis of effects of all coded attributes, each encoding of a column one.

    Cells of an interaction are as smooth as its sides; those with a missing side have
    no effect.
    """

    encodings: Encodings
    n_bins: tuple[int, ...] = ()
    """Length scales as numbers of bins, ascending; empty for independent bins."""

    @property
    def schema(self) -> TableSchema:
        """One attribute for each encoding."""
        return self.encodings.schema

    @cached_property
    def groupings(self) -> list[tuple[int, Ints]]:
        """Attributes of single columns, and the group of each code, 0 for none.

        There is one entry for each length scale; interactions have no evidence.
        """
        return [
            (j, groups)
            for j in self.schema.without_interactions.coded.tolist()
            for groups in self._groupings(self.schema.features[j])
        ]

    def _groupings(self, feature: FeatureSchema) -> list[Ints]:
        if feature.kind != "binned" or not self.n_bins:
            return [np.arange(feature.n_codes)]
        n = len(feature.edges) + 1
        return _bin_groupings(n, feature.missing_is_value, self.n_bins)

    def _ordered_groups(self, side: Side) -> int:
        """Return how many groups of a side are bins, not categories or missing."""
        feature = self.schema.features[side.feature]
        is_binned = feature.kind == "binned"
        return (side.n_groups - 1 - feature.missing_is_value) * is_binned

    @cached_property
    def _factors(self) -> list[tuple[int, _Factor]]:
        """Coded attributes, each with its sparse factor."""
        return [(j, self._factor(j)) for j in self.schema.coded.tolist()]

    def with_interactions(self, encodings: Encodings) -> EffectBasis:
        """Return the basis of a schema with interactions, reusing what is computed."""
        out = EffectBasis(encodings, self.n_bins)
        more = [j for j in out.schema.coded.tolist() if j >= len(self.schema)]
        vars(out)["_factors"] = [*self._factors, *((j, out._factor(j)) for j in more)]
        return out

    def _factor(self, j: int) -> _Factor:
        feature = self.schema.features[j]
        if feature.sides:
            a, b = feature.sides
            n_bins = self._ordered_groups(a), self._ordered_groups(b)
            return _smooth_interaction(
                n_bins, (a.n_groups, b.n_groups), bool(self.n_bins)
            )
        groupings = self._groupings(feature)
        if feature.kind == "binned" and len(groupings) > 1:
            n = len(feature.edges) + 1
            smooth = _smooth(n, int(feature.missing_is_value), self.n_bins)
            factor = _positions(smooth)
        else:
            factor = _independent(groupings[0])
        return _with_trend(factor, feature.edges) if self.is_curve[j] else factor

    def smoothed(self, log_prob: Floats) -> Floats:
        """Return log-probabilities of codes (V, K) where curves of bins are smooth."""
        out = log_prob.copy()
        for j, feature in enumerate(self.schema.features):
            if feature.kind == "binned" and len(self._groupings(feature)) > 1:
                n, first = len(feature.edges) + 1, self.schema.offsets[j] + 1
                out[first : first + n] = _average(n, self.n_bins) @ out[first:][:n]
        return out

    @cached_property
    def owners(self) -> Ints:
        """Attribute that each effect belongs to, shape (effects,)."""
        sizes = [n_effects for _, (*_, n_effects) in self._factors]
        return np.repeat([j for j, _ in self._factors], sizes).astype(np.int64)

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
    def matrix(self) -> csr_array:
        r"""The map from effects, all of the same variance, to effects of codes.

        Shape (codes, effects). Without length scales it is the identity. Bins have the
        covariance of a smooth curve, ``closeness``; its main components are the columns
        here, fewer than bins, and a trend. Cells of
        interactions have the product of the covariances of their sides.
        """
        rows, columns, entries, first = [], [], [], 0
        for j, (codes, effects, values, n_effects) in self._factors:
            rows.append(self.schema.offsets[j] + codes)
            columns.append(first + effects)
            entries.append(values)
            first += n_effects
        return _sparse(entries, rows, columns, (self.schema.n_codes, first))

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

    @cached_property
    def tables(self) -> tuple[TableSchema, csr_array]:
        """A separate table at each length scale, without interactions.

        With it comes a matrix of ones, shape (codes there, codes here), which adds up
        counts of codes to those of groups.
        """
        groupings = self.groupings
        features = [self._merged(self.schema.features[j], own) for j, own in groupings]
        merged, schema = TableSchema(tuple(features)), self.schema
        firsts = zip(groupings, merged.offsets[:-1].tolist(), strict=True)
        rows = [first + own for (_, own), first in firsts]
        offsets = schema.offsets.tolist()
        columns = [np.arange(offsets[j], offsets[j] + len(own)) for j, own in groupings]
        ones = [np.ones(sum(map(len, rows)))]
        return merged, _sparse(ones, rows, columns, (merged.n_codes, schema.n_codes))

    @staticmethod
    def _merged(feature: FeatureSchema, groups: Ints) -> FeatureSchema:
        """Return an attribute of groups; only the number of bins matters."""
        if feature.kind != "binned":
            return feature
        missing = feature.missing_is_value
        return _some_bins(int(groups[len(feature.edges) + 1]), missing)


def _entries(matrix: csr_array) -> Entries:
    """Return a sparse matrix with unsigned positions, which kernels read fast."""
    starts, columns = (own.astype(np.uint32) for own in (matrix.indptr, matrix.indices))
    return starts, columns, matrix.data


def _sparse(
    entries: list[Floats],
    rows: list[Ints],
    columns: list[Ints],
    shape: tuple[int, int],
) -> csr_array:
    if not rows:
        return csr_array(shape)
    where = np.concatenate(rows), np.concatenate(columns)
    return csr_array((np.concatenate(entries), where), shape=shape)
