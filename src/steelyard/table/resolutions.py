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
from scipy.sparse import csr_array

from steelyard.table.schema import FeatureSchema, TableSchema

# Finest bins of a column with several resolutions: most of their numbers divide it.
FINEST = 60

# Bins of the coarsest resolution of a column, and of the finest one.
_RANGE = (4, 20)

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
        features = self.schema.features
        n_groups = [side.n_groups - 1 for side in pair.sides]
        is_ordered = [features[side.feature].kind == "binned" for side in pair.sides]
        most = max(n * ordered for n, ordered in zip(n_groups, is_ordered, strict=True))
        numbers = [n for n in _PAIR_GROUPS if self.n_bins and n < most]
        out = []
        for number in [*numbers, max(n_groups)]:
            a, b = (
                np.array([0, *_merged(n, number if ordered else n)])
                for n, ordered in zip(n_groups, is_ordered, strict=True)
            )
            joint = np.add.outer((a - 1) * b.max(), b).ravel()
            out.append(np.where(pair.both_known, joint, 0))
        return out

    @cached_property
    def owners(self) -> NDArray[np.int64]:
        """Attribute that each effect belongs to, shape (effects,)."""
        sizes = [int(groups.max(initial=0)) for _, groups in self.views]
        return np.repeat([j for j, _ in self.views], sizes).astype(np.int64)

    @cached_property
    def basis(self) -> csr_array:
        r"""The map from effects at all resolutions to effects of codes.

        Shape (codes, effects). An entry is :math:`1 / \sqrt{R_j}` where a code of
        attribute j is in a group of one of its R_j resolutions, so that independent
        effects of variance one give every code that variance.
        """
        n_views = np.bincount([j for j, _ in self.views], minlength=len(self.schema))
        rows, columns, entries, width = [], [], [], 0
        for j, groups in self.views:
            known = np.flatnonzero(groups)
            rows.append(self.schema.offsets[j] + known)
            columns.append(width + groups[known] - 1)
            entries.append(np.full(len(known), 1.0 / np.sqrt(n_views[j])))
            width += int(groups.max(initial=0))
        return _sparse(entries, rows, columns, (self.schema.n_codes, width))

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
