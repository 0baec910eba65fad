"""RowHashes: hashes of training rows, few enough for a model file.

The smallest hashes stand for all rows: of new rows whose hash is as small, those that
are among them were learned from, and their share is that of all (Bar-Yossef et al.,
2002, count distinct rows in the same way).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.agreed import HASH_BYTES, MOST_HASHES
from steelyard.table.by_schema import ColumnCells
from steelyard.table.codes import comparable
from steelyard.table.columns import TableColumn
from steelyard.table.schema import TableSchema

Hashes = NDArray[np.uint64]

_BITS = 8 * HASH_BYTES
# Odd numbers of 64 random bits, of the finaliser of MurmurHash3.
_FACTORS = np.array([0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53], np.uint64)
_HALF = np.uint64(33)
# Columns that are hashed.
_COLUMNS = 256
BY_CHANCE = 0.1
"""Such a share of rows may be equal to others without a word."""


@dataclass(frozen=True, eq=False)
class RowHashes:
    """The smallest hashes of rows, and of how many rows they are."""

    hashes: Hashes
    """Different ones, increasing; those of all rows where they are fewer than 256."""

    n_rows: int
    """Rows of the table."""

    n_hashed: int
    """Rows that were hashed: all of a table that is not long."""

    repeated: float
    """Share of those rows that occur more than once."""

    @property
    def limit(self) -> int:
        """Hashes below it are here if their rows are."""
        if len(self.hashes) < MOST_HASHES:
            return 1 << _BITS
        return int(self.hashes[-1]) + 1

    def count(self, hashes: Hashes) -> tuple[int, int]:
        """Return how many rows could be found here, and how many are."""
        below = hashes[hashes < np.uint64(self.limit)]
        return len(below), int(np.isin(below, self.hashes).sum())

    def seen_share(self, n_below: int, n_found: int) -> tuple[float, float]:
        """Return the share of rows that were learned from, and what chance gives.

        Other rows are equal to rows of training as often as those are to each other.
        Of a long table, of which some rows were hashed, that is taken off, and two
        standard errors of both shares are left to chance.
        """
        found, scale = n_found / n_below, self.n_rows / self.n_hashed
        if self.n_hashed == self.n_rows:
            return found, BY_CHANCE + self.repeated
        error = 2.0 * math.sqrt(found / n_below + self._error**2)
        share = min(1.0, scale * (found - self.repeated))
        return share, BY_CHANCE + scale * error

    def repeated_by_chance(self, n_rows: int) -> float:
        """Return the share of so many other rows that may occur more than once."""
        likely = min(self.repeated + 2.0 * self._error, 1.0 - 1e-9)
        n_others = max(n_rows / self.n_hashed, 1.0)
        return BY_CHANCE - math.expm1(n_others * math.log1p(-likely))

    @property
    def _error(self) -> float:
        """Standard error of ``repeated``, that of a number of pairs of rows."""
        n_pairs = self.repeated * self.n_hashed / 2.0
        return math.sqrt(n_pairs + 1.0) / self.n_hashed


def sketch_of(hashes: Hashes, n_rows: int) -> tuple[RowHashes, int]:
    """Return the sketch of rows, and how many of them occur more than once."""
    kept, counts = np.unique(hashes, return_counts=True)
    n_repeated = int(counts[counts > 1].sum())
    share = n_repeated / len(hashes)
    return RowHashes(kept[:MOST_HASHES], n_rows, len(hashes), share), n_repeated


def new_hashes(columns: Sequence[TableColumn], schema: TableSchema) -> Hashes:
    """Hash the rows of new columns, as those of training were."""

    def content(j: int, column: TableColumn) -> NDArray[Any]:
        cells, feature = ColumnCells(column), schema.by_column[j][0]
        if feature.kind == "categorical":
            return cells.encoded(feature)
        return cells.encoded(feature) if column.cells == "text" else cells.numbers

    return row_hashes(content(j, column) for j, column in enumerate(columns))


def row_hashes(contents: Iterable[NDArray[Any]]) -> Hashes:
    """Hash rows by what a model reads of each column, shape (n,); below 2^48.

    Of categories that is the code, of numbers the number: the hash is the same whatever
    library a table is of, and in whatever order its columns. Of a wide table the first
    columns tell rows apart.
    """
    keys: Any = None
    for content, factor in zip(contents, islice(_factors(), _COLUMNS), strict=False):
        if content.dtype.kind == "f":
            bits = comparable(content).view(np.uint64)
            # The last bits of most numbers are zero.
            bits ^= bits >> _HALF
            bits *= factor
        else:
            bits = content.astype(np.uint64) * factor
        keys = bits if keys is None else np.add(keys, bits, out=keys)
    for factor in _FACTORS:
        keys ^= keys >> _HALF
        keys *= factor
    return keys >> np.uint64(64 - _BITS)


def _factors() -> Iterator[np.uint64]:
    """Yield an odd number of 64 random bits for each column."""
    state = 0
    while True:
        # The sequence of SplitMix64.
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = state
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            z = (z ^ (z >> shift)) * factor % 2**64
        yield np.uint64((z ^ (z >> 31)) | 1)
