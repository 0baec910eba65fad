"""One attribute at several resolutions: neighbouring bins merged, more or less.

An average over ways to cut a number is again one table over the finest bins. What is
learned at each resolution is spread over those bins and added up; nothing else of the
engine knows of resolutions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, hstack

from steelyard.table.schema import FeatureSchema, Side, TableSchema

# Finest bins of a column with several resolutions: most of their numbers divide it.
FINEST = 60

# Bins of the coarsest resolution of a column, and of the finest one.
_RANGE = (4, 20)

# Share of the variance of effects that a basis keeps.
_EXPLAINED = 0.95

_Factor = NDArray[np.float64]

# Groups of each side of a pair that are merged further, at resolutions of its own.
_PAIR_GROUPS = (3, 6)


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
    return tuple(np.rint(np.geomspace(*_RANGE, n_resolutions)).astype(int).tolist())


@lru_cache(maxsize=4096)
def _merged(n_bins: int, n_groups: int) -> tuple[int, ...]:
    """Return the group of every bin, from 1 on: groups of about equal size."""
    if n_groups >= n_bins:
        return tuple(range(1, n_bins + 1))
    return tuple((1 + np.arange(n_bins) * n_groups // n_bins).tolist())


def _beyond(n_merged: int, n_bins: int, side: Side) -> range:
    """Return the groups of a side after those that are merged."""
    return range(n_merged + 1, n_merged + side.n_groups - n_bins)


@lru_cache(maxsize=1024)
def _smooth(groupings: tuple[tuple[int, ...], ...]) -> _Factor:
    """Factor the covariance that effects at several resolutions give to codes.

    Its largest components are kept, up to a share of the variance: what they leave out
    is steps between single bins.
    """
    groups = np.array(groupings)
    together = (groups[:, :, None] == groups[:, None, :]) & (groups[:, :, None] > 0)
    variances, vectors = np.linalg.eigh(together.mean(axis=0))
    explained = np.cumsum(variances[::-1]) / variances.sum()
    n_kept = 1 + int(np.searchsorted(explained, _EXPLAINED))
    factor = vectors[:, : -n_kept - 1 : -1] * np.sqrt(variances[: -n_kept - 1 : -1])
    return np.ascontiguousarray(factor)


@dataclass(frozen=True)
class Resolutions:
    """The coded attributes of a schema, each at several resolutions.

    Categories are never merged. A pair is seen in its own groups and, with several
    resolutions, in merged ones; codes with an unknown side are in no group.
    """

    schema: TableSchema
    n_bins: tuple[int, ...] = ()
    """Numbers of bins, from few to many; empty for bins as they are."""

    @cached_property
    def views(self) -> list[tuple[int, NDArray[np.int64]]]:
        """Attributes and the group of every code of theirs, from 1 on, 0 for none."""
        return [
            (j, groups)
            for j in self.schema.coded.tolist()
            for groups in self._groupings(self.schema.features[j])
        ]

    def _groupings(self, feature: FeatureSchema) -> list[NDArray[np.int64]]:
        if feature.sides:
            return self._pair_groupings(feature)
        if feature.kind != "binned" or not self.n_bins:
            return [np.arange(feature.n_codes)]
        n = len(feature.edges) + 1
        numbers = sorted({min(number, n) for number in self.n_bins})
        # A missing cell with a code of its own is merged with no bin.
        return [
            np.array([0, *_merged(n, number), *[number + 1] * feature.missing_is_value])
            for number in numbers
        ]

    def _pair_groupings(self, pair: FeatureSchema) -> list[NDArray[np.int64]]:
        n_bins = [self._ordered_groups(side) for side in pair.sides]
        numbers = [n for n in _PAIR_GROUPS if self.n_bins and n < max(n_bins)]
        out = []
        for number in [*numbers, max(n_bins)]:
            a, b = (
                np.array([0, *_merged(n, number), *_beyond(min(n, number), n, side)])
                for n, side in zip(n_bins, pair.sides, strict=True)
            )
            joint = np.add.outer((a - 1) * b.max(), b).ravel()
            out.append(np.where(pair.both_known, joint, 0))
        return out

    def _ordered_groups(self, side: Side) -> int:
        """How many groups of a side may be merged: bins, not categories or missing."""
        feature = self.schema.features[side.feature]
        is_binned = feature.kind == "binned"
        return (side.n_groups - 1 - feature.missing_is_value) * is_binned

    @cached_property
    def _factors(self) -> list[tuple[int, _Factor | csr_array]]:
        """Coded attributes, and the map from their effects to those of their codes."""
        by_feature: dict[int, list[NDArray[np.int64]]] = {}
        for j, groups in self.views:
            by_feature.setdefault(j, []).append(groups)
        return [
            (j, self._factor(self.schema.features[j], groupings))
            for j, groupings in by_feature.items()
        ]

    def _factor(
        self, feature: FeatureSchema, groupings: list[NDArray[np.int64]]
    ) -> _Factor | csr_array:
        if feature.kind == "binned" and len(groupings) > 1:
            keys = tuple(tuple(groups.tolist()) for groups in groupings)
            return _smooth(keys)
        scale = 1.0 / np.sqrt(len(groupings))
        blocks = []
        for groups in groupings:
            known = np.flatnonzero(groups)
            shape = (len(groups), int(groups.max(initial=0)))
            where = known, groups[known] - 1
            blocks.append(csr_array((np.full(len(known), scale), where), shape=shape))
        return blocks[0] if len(blocks) == 1 else hstack(blocks, format="csr")

    @cached_property
    def owners(self) -> NDArray[np.int64]:
        """Attribute that each effect belongs to, shape (effects,)."""
        sizes = [factor.shape[1] for _, factor in self._factors]
        return np.repeat([j for j, _ in self._factors], sizes).astype(np.int64)

    @cached_property
    def basis(self) -> csr_array:
        r"""The map from effects, all of the same variance, to effects of codes.

        Shape (codes, effects). For attributes of a single resolution it is the
        identity. Effects of R resolutions of bins would give codes the covariance
        :math:`\frac1R \sum_r [\text{same group at } r]`; its main components are the
        columns here, fewer than groups. Pairs keep an effect for each group.
        """
        if not self._factors:
            return csr_array((self.schema.n_codes, 0))
        rows, columns, entries, first = [], [], [], 0
        for j, factor in self._factors:
            part = coo_array(factor)
            rows.append(self.schema.offsets[j] + part.coords[0])
            columns.append(first + part.coords[1])
            entries.append(part.data)
            first += factor.shape[1]
        return _sparse(entries, rows, columns, (self.schema.n_codes, first))

    @cached_property
    def tables(self) -> tuple[TableSchema, csr_array]:
        """The attributes at each resolution as a table of their own, without pairs.

        With it comes a matrix of ones, shape (codes there, codes here), which adds up
        counts of codes to those of groups.
        """
        features, rows, columns, first = [], [], [], 0
        for j, groups in self.views:
            feature = self.schema.features[j]
            if feature.sides:
                continue
            if feature.kind == "binned":
                # A bin ends where the group changes.
                plain = groups[1 : len(feature.edges) + 2]
                ends = np.flatnonzero(np.diff(plain))
                edges = tuple(np.asarray(feature.edges)[ends].tolist())
                feature = replace(feature, edges=edges, fill=None)
            features.append(feature)
            rows.append(first + groups)
            columns.append(self.schema.offsets[j] + np.arange(len(groups)))
            first += feature.n_codes
        ones = [np.ones(len(row)) for row in rows]
        matrix = _sparse(ones, rows, columns, (first, self.schema.n_codes))
        return TableSchema(tuple(features)), matrix


def _sparse(
    entries: list[NDArray[np.float64]],
    rows: list[NDArray[np.int64]],
    columns: list[NDArray[np.int64]],
    shape: tuple[int, int],
) -> csr_array:
    if not rows:
        return csr_array(shape)
    where = np.concatenate(rows), np.concatenate(columns)
    return csr_array((np.concatenate(entries), where), shape=shape)
