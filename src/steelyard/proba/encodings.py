"""Encodings: bins by several discretizers, each as an attribute with separate evidence.

A column has one code, by the union of all cut points. A fit may weigh its bins by each
discretizer separately: tables by the codes of encodings add up to one for each column.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_diag, csr_array, eye_array

from steelyard._common.arrays import Floats, Ints
from steelyard.proba.counts import Counts
from steelyard.table.schema import FeatureSchema, TableSchema


@lru_cache(maxsize=4096)
def _merged_bins(cuts: tuple[int, ...], n_bins: int) -> Ints:
    """Return the bin of an encoding that each bin of a column is in, from 1 on."""
    return 1 + np.searchsorted(cuts, np.arange(n_bins)).astype(np.int64)


def encoding_codes(feature: FeatureSchema, cuts: tuple[int, ...]) -> Ints:
    """Return the code in an encoding of each code of a column.

    >>> feature = FeatureSchema("age", "binned", "numbers", missing_is_value=True)
    >>> encoding_codes(feature.cut_at([[30.0], [20.0, 40.0]]), (1,))
    array([0, 1, 1, 2, 2, 3])
    """
    bins = _merged_bins(cuts, len(feature.edges) + 1)
    last = [len(cuts) + 2] * feature.missing_is_value
    return np.concatenate([[0], bins, last]).astype(np.int64)


def finest_codes(feature: FeatureSchema) -> Ints:
    """Return the code of each code of a column in its last, finest encoding."""
    with_cuts = [cuts for cuts in feature.cuts if cuts]
    if not with_cuts:
        return np.arange(feature.n_codes)
    return encoding_codes(feature, with_cuts[-1])


@dataclass(frozen=True)
class Encodings:
    """The encodings of the columns of a schema, and interactions."""

    joined: TableSchema
    """One attribute for each column."""

    schema: TableSchema
    """One attribute for each encoding."""

    columns: Ints
    """Column or interaction of each encoding."""

    codes: list[Ints]
    """Code of each encoding by the code of its column."""

    of_columns: Encodings | None = None
    """The same without interactions, if these were added."""

    @classmethod
    def joint(cls, schema: TableSchema) -> Encodings:
        """Return columns as they are, with one encoding each."""
        codes = [np.arange(feature.n_codes) for feature in schema.features]
        return cls(schema, schema, np.arange(len(schema)), codes)

    @classmethod
    def separate(cls, schema: TableSchema) -> Encodings:
        """Return an attribute for each discretizer of a column."""
        if not any(feature.cuts for feature in schema.features):
            return cls.joint(schema)
        features: list[FeatureSchema] = []
        columns: list[int] = []
        codes: list[Ints] = []
        plain = schema.without_interactions
        for j, feature in enumerate(plain.features):
            for cuts in feature.cuts:
                codes.append(encoding_codes(feature, cuts))
                edges, fill = tuple(feature.edges[k] for k in cuts), feature.fill
                fill = None if fill is None else int(codes[-1][int(fill)])
                features.append(replace(feature, edges=edges, cuts=(), fill=fill))
            if not feature.cuts:
                codes.append(np.arange(feature.n_codes))
                features.append(feature)
            columns += [j] * (len(features) - len(columns))
        out = cls(plain, TableSchema(tuple(features)), np.array(columns), codes)
        return out if plain is schema else out.with_interactions(schema)

    def with_interactions(self, joined: TableSchema) -> Encodings:
        """Return encodings of the same columns, and of the interactions of a schema."""
        if self.is_joint:
            return Encodings.joint(joined)
        n, finest = len(self.joined), np.flatnonzero(~self.is_coarser)
        added = []
        for feature in joined.features[n:]:
            sides = [replace(s, feature=int(finest[s.feature])) for s in feature.sides]
            added.append(replace(feature, sides=tuple(sides)))
        return Encodings(
            joined,
            TableSchema((*self.schema.features, *added)),
            np.append(self.columns, np.arange(n, len(joined))),
            [*self.codes, *(np.arange(feature.n_codes) for feature in added)],
            self,
        )

    @property
    def is_joint(self) -> bool:
        """Whether each column has one encoding."""
        return self.joined is self.schema

    @cached_property
    def is_first(self) -> NDArray[np.bool_]:
        """Whether each encoding is the first of its column."""
        return np.diff(self.columns, prepend=-1) > 0

    @cached_property
    def is_coarser(self) -> NDArray[np.bool_]:
        """Whether each encoding has another, finer one of its column after it."""
        return np.diff(self.columns, append=len(self.joined)) == 0

    @cached_property
    def matrix(self) -> csr_array:
        """Ones that add up tables of encodings, shape (codes of columns, codes)."""
        if self.of_columns is not None:
            n_added = self.joined.n_codes - self.of_columns.joined.n_codes
            both = self.of_columns.matrix, eye_array(n_added)
            return csr_array(block_diag(both, format="csr"))
        rows, columns = [np.arange(0)], [np.arange(0)]
        for k, (j, codes) in enumerate(zip(self.columns, self.codes, strict=True)):
            rows.append(self.joined.offsets[j] + np.arange(len(codes)))
            columns.append(self.schema.offsets[k] + codes)
        positions = np.concatenate(rows), np.concatenate(columns)
        shape = self.joined.n_codes, self.schema.n_codes
        return csr_array((np.ones(len(positions[0])), positions), shape=shape)

    @cached_property
    def _transposed(self) -> Any:
        # Making it takes as long as a product, and there is one in each pass.
        return self.matrix.T

    def added(self, table: Floats) -> Floats:
        """Add up what the encodings of a column have for each of its codes."""
        return table if self.is_joint else self.matrix @ table

    def collected(self, table: Floats) -> Floats:
        """Add up what codes of columns have by the codes of encodings."""
        return table if self.is_joint else self._transposed @ table

    def by_column(self, values: Floats) -> Floats:
        """Add up what the encodings of each column have, along the first axis."""
        if self.is_joint:
            return values
        return np.asarray(np.add.reduceat(values, np.flatnonzero(self.is_first)))

    def counts(self, counts: Counts) -> Counts:
        """Return counts by the codes of encodings."""
        by_code = self.collected(counts.by_code)
        return replace(counts, schema=self.schema, by_code=by_code)

    def table_rows(self, cells: Ints) -> Ints:
        """Return table rows of encodings, given those of columns, (n, d) to (n, d')."""
        if self.is_joint:
            return cells
        out = [
            self.schema.offsets[k] + self.codes[k][cells[:, c] - self.joined.offsets[j]]
            for c, j in enumerate(self.joined.coded.tolist())
            for k in np.flatnonzero(self.columns == j).tolist()
        ]
        return np.stack(out, axis=1)
