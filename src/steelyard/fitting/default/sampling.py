r"""Rows drawn by their content, from chunks of any size and in any order.

Equal rows have the same key, a hash of cells, class and weight. Names and positions of
columns and classes are not in it: columns with the same values are distinguished by how
often they have each, and classes by their size and counts. A key that occurs :math:`m`
times is drawn at the times :math:`G_1 < G_2 < \dots` of a Poisson process that starts
from the key, divided by :math:`m`; the earliest draws win. So rows that occur once are
drawn with equal probability, and others in proportion. How often a key occurs is
counted exactly, but only for keys that may be drawn at all by a sketch of all keys;
memory does not grow with the table.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, Ints
from steelyard._common.threads import pieces
from steelyard.kernels import hashing
from steelyard.model.training import TrainingSet
from steelyard.proba.counts import Counts
from steelyard.table.codes import Codes, comparable
from steelyard.table.schema import FeatureSchema

Keys = NDArray[np.uint64]
Sketch = NDArray[np.uint32]

# Counters in each of the two rows of a sketch.
_SKETCH_SIZE = 1 << 21

# Up to this number of rows every key is counted; above, each pass hashes rows again.
_MAX_COUNTED_ROWS = 1 << 21

# Rows are compared with the keys that are drawn if they begin with the same bits.
_FIRST_BITS = 20
_REST_BITS = np.uint64(64 - _FIRST_BITS)

# Counts are compared as integers, as multiples of their total over this.
_COUNT_RESOLUTION = 1e9


def sample_rows(training: TrainingSet, limit: int, rng: np.random.RandomState) -> Ints:
    """Draw at most ``limit`` rows, independently of their order.

    Whatever the order of the table, as many of a set of equal rows are drawn, at equal
    distances. Partitions are read where they are, in the order of the table.
    """
    n_rows, place, sketch = training.n_rows, training.place, None
    if n_rows <= limit:
        return np.arange(n_rows)
    row_hash = RowHash.of(training.given_counts, drawing_seed(rng))
    if n_rows > _MAX_COUNTED_ROWS:
        sketching = partial(_sketch_part, row_hash=row_hash)
        sketch = place.sum(training, sketching, is_exact=True)
    drawn, share = None, expected_share(n_rows, limit)
    while drawn is None:
        count = partial(_count_part, row_hash=row_hash, share=share, sketch=sketch)
        drawn = place.sum(training, count, is_exact=True).drawn(limit)
        share = 2 * share
    find = partial(_find_part, row_hash=row_hash, drawn=drawn)
    parts = place.each(training, find)
    if len(parts) > 1:
        earlier = np.cumsum([seen for seen, _, _ in parts], axis=0)[:-1]
        parts = place.each(training, find, [np.zeros_like(earlier[0]), *earlier])
    first = np.cumsum([0, *(size for _, size, _ in parts)])
    return np.concatenate(
        [start + rows for start, (_, _, rows) in zip(first[:-1], parts, strict=True)]
    )


def _part_keys(part: TrainingSet, row_hash: RowHash) -> Iterator[Keys]:
    for rows in pieces(slice(0, part.n_rows)):
        u = None if part.sample_weight is None else part.sample_weight[rows]
        yield row_hash.keys(part.codes.part(rows), part.labels[rows], u)


def _sketch_part(part: TrainingSet, row_hash: RowHash) -> Sketch:
    return sketch_of(_part_keys(part, row_hash))


def _count_part(
    part: TrainingSet, row_hash: RowHash, share: float, sketch: Sketch | None
) -> RowCounts:
    return RowCounts.of(_part_keys(part, row_hash), share, sketch)


def _find_part(
    part: TrainingSet,
    before: Ints | None = None,
    *,
    row_hash: RowHash,
    drawn: DrawnRows,
) -> tuple[Ints, int, Ints]:
    """Count the rows of drawn keys and all rows, and find those that are drawn.

    ``before`` are the numbers of rows of each drawn key in earlier parts.
    """
    seen = np.zeros(len(drawn.keys), np.int64) if before is None else before
    positions, start = [np.empty(0, dtype=np.int64)], 0
    for keys in _part_keys(part, row_hash):
        in_chunk, seen = drawn.positions(keys, seen)
        positions.append(start + in_chunk)
        start += len(keys)
    return seen, start, np.concatenate(positions)


def drawing_seed(rng: np.random.RandomState) -> np.uint64:
    """Return the number by which the hashes of a drawing start."""
    return np.uint64(rng.randint(1 << 31))


def expected_share(n_rows: int, limit: int) -> float:
    """Return a share of rows that has more than ``limit`` of them, nearly always."""
    return (limit + 8.0 * np.sqrt(limit) + 8.0) / n_rows


@dataclass(frozen=True)
class RowHash:
    """Keys of rows by content, whatever the names of columns and classes."""

    seed: np.uint64
    by_code: Keys
    """What a code adds to the key, by row of a table by code."""

    by_class: Keys

    has_numbers: NDArray[np.bool_]
    """Which columns of numbers have observed cells."""

    @classmethod
    def of(cls, counts: Counts, seed: np.uint64) -> RowHash:
        """Distinguish columns and classes of a table by its counts."""
        schema, total = counts.schema, counts.total
        # Sums of weights that are not whole depend on the order of rows, a little.
        shares, sizes = (
            np.rint(_COUNT_RESOLUTION * weights / total).astype(np.int64)
            for weights in (counts.by_code, counts.by_class)
        )
        by_code, contents = np.zeros(schema.n_codes, np.uint64), {}
        for j, feature in enumerate(schema.features):
            rows = slice(schema.offsets[j], schema.offsets[j + 1])
            of_code = shares[rows].sum(axis=1)
            # Columns of one value, or none, are ignored.
            if np.count_nonzero(of_code) > 1:
                by_code[rows] = code_hashes(feature)
                contents[j] = feature.edges, sortable_bytes(by_code[rows], of_code)
        salts = mixed(np.uint64(1), ranks([*contents.values()]))
        for j, salt in zip(contents, salts, strict=True):
            rows = slice(schema.offsets[j], schema.offsets[j + 1])
            by_code[rows] = mixed(salt, by_code[rows])
        of_classes = [
            (size, sortable_bytes(np.sort(column)))
            for size, column in zip(sizes.tolist(), shares.T, strict=True)
        ]
        by_class = mixed(np.uint64(2), ranks(of_classes))
        return cls(seed, by_code, by_class, counts.moments.weight.sum(axis=1) > 0.0)

    def keys(self, codes: Codes, labels: NDArray[Any], weights: Floats | None) -> Keys:
        """Return the key of every row, whatever blocks its codes are in."""
        schema = codes.schema
        keys = self.by_class[labels]
        for block in codes.blocks:
            spread = block.table_rows(schema.offsets)
            of_block = self.by_code if spread is None else self.by_code[spread]
            starts = block.starts(schema.offsets)
            hashing.add_hashes(block.values, starts, of_block, keys)
        for g in np.flatnonzero(self.has_numbers).tolist():
            keys += number_hashes(codes.number_column(g))
        if weights is not None:
            bits = np.ascontiguousarray(weights).view(np.uint64)
            keys += mixed(np.uint64(3), bits)
        return mixed(self.seed, keys)


def code_hashes(feature: FeatureSchema) -> Keys:
    """Return a hash of each code: of the value of a category, of the place of a bin."""
    codes = mixed(np.uint64(4), np.arange(feature.n_codes))
    if feature.kind == "categorical":
        numbers = [
            float(zlib.crc32(v.encode(errors="surrogatepass")))
            if isinstance(v, str)
            else float(v)
            for v in feature.values
        ]
        codes[1 : 1 + len(numbers)] = number_hashes(np.array(numbers, np.float64))
        if feature.missing_is_value:
            codes[-1:] = mixed(np.uint64(5), np.zeros(1))
    return codes


def number_hashes(numbers: Floats) -> Keys:
    """Return a hash of each number; equal numbers have the same."""
    return mixed(np.uint64(6), comparable(numbers).view(np.uint64))


def sortable_bytes(*parts: NDArray[Any]) -> bytes:
    """Return bytes that sort like numbers do: those of the first part come first.

    Entries of further parts follow the number beside them.
    """
    order = np.argsort(parts[0], kind="stable")
    sorted_parts = [part[order].astype(part.dtype.newbyteorder(">")) for part in parts]
    return np.column_stack([part.view("V8") for part in sorted_parts]).tobytes()


def ranks(contents: Sequence[Any]) -> Ints:
    """Return the position of each content among the distinct ones, sorted."""
    position = {content: k for k, content in enumerate(sorted(set(contents)))}
    return np.array([position[content] for content in contents], dtype=np.int64)


def sketch_of(chunks: Iterable[Keys]) -> Sketch:
    """Count keys in two rows of counters; sketches of parts of the rows add up.

    Neither of the two counters of a key is ever too small.
    """
    sketch = np.zeros((2, _SKETCH_SIZE), dtype=np.uint32)
    for keys in chunks:
        hashing.add_to_sketch(keys, sketch)
    return sketch


@dataclass(frozen=True)
class RowCounts:
    """How often each key occurs that may be drawn; counts of parts add up."""

    share: float
    """Draws up to this time, in draws per row, are counted; see `expected_share`."""

    keys: Keys
    counts: Ints

    @classmethod
    def of(
        cls, chunks: Iterable[Keys], share: float, sketch: Sketch | None = None
    ) -> RowCounts:
        """Count the keys of chunks; with a sketch, those that may be drawn at all."""
        keys, counts = [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
        for chunk in chunks:
            if sketch is not None:
                at_most = hashing.most_in_sketch(chunk, sketch)
                chunk = chunk[_waiting(chunk, 0) <= share * at_most]
            distinct, n_rows = np.unique(chunk, return_counts=True)
            keys.append(distinct)
            counts.append(n_rows)
        return cls(share, *_totals(np.concatenate(keys), np.concatenate(counts)))

    def __add__(self, other: RowCounts) -> RowCounts:
        """Return the counts of the rows of both."""
        keys = np.concatenate([self.keys, other.keys])
        counts = np.concatenate([self.counts, other.counts])
        return RowCounts(self.share, *_totals(keys, counts))

    def drawn(self, limit: int) -> DrawnRows | None:
        """Return the rows that are drawn, None if the share was too small."""
        active, arrival = np.arange(len(self.keys)), np.zeros(len(self.keys))
        drawn, times, n_draws = [active[:0]], [arrival[:0]], 0
        while len(active):
            arrival = arrival + _waiting(self.keys[active], n_draws)
            in_time = arrival <= self.share * self.counts[active]
            active, arrival = active[in_time], arrival[in_time]
            drawn.append(active)
            times.append(arrival / self.counts[active])
            n_draws += 1
            has_more = self.counts[active] > n_draws
            active, arrival = active[has_more], arrival[has_more]
        all_drawn = np.concatenate(drawn)
        if len(all_drawn) < limit:
            return None
        earliest = np.argsort(np.concatenate(times), kind="stable")[:limit]
        of_key, n_drawn = np.unique(all_drawn[earliest], return_counts=True)
        return DrawnRows.spread(self.keys[of_key], self.counts[of_key], n_drawn)


@dataclass(frozen=True)
class DrawnRows:
    """Which rows are drawn: of each key those that have certain numbers."""

    keys: Keys
    """Keys of which rows are drawn, sorted."""

    which: Ints
    """Position of the key of each row drawn, and 2^40 times less its number among equal
    rows; sorted."""

    @classmethod
    def spread(cls, keys: Keys, counts: Ints, n_drawn: Ints) -> DrawnRows:
        """Draw ``n_drawn`` rows of each key, at equal distances."""
        key = np.repeat(np.arange(len(keys)), n_drawn)
        draw = np.arange(len(key)) - np.repeat(np.cumsum(n_drawn) - n_drawn, n_drawn)
        number = (2 * draw + 1) * counts[key] // (2 * n_drawn[key])
        return cls(keys, _together(key, number))

    @cached_property
    def _beginnings(self) -> NDArray[np.bool_]:
        """Which bits keys begin with: few rows have those of a key by chance."""
        begins = np.zeros(1 << _FIRST_BITS, dtype=bool)
        begins[self.keys >> _REST_BITS] = True
        return begins

    def positions(self, keys: Keys, before: Ints) -> tuple[Ints, Ints]:
        """Find the rows drawn among those of a chunk.

        ``before`` are the numbers of rows of each drawn key in earlier chunks; those
        for the next chunk are returned with the positions.
        """
        rows = np.flatnonzero(self._beginnings[keys >> _REST_BITS])
        likely = keys[rows]
        key = np.minimum(np.searchsorted(self.keys, likely), len(self.keys) - 1)
        is_key = self.keys[key] == likely
        rows, key = rows[is_key], key[is_key]
        order = np.argsort(key, kind="stable")
        rows, key = rows[order], key[order]
        in_chunk = np.bincount(key, minlength=len(self.keys))
        first = np.cumsum(in_chunk) - in_chunk
        number = np.arange(len(rows)) - first[key] + before[key]
        is_drawn = np.isin(_together(key, number), self.which)
        return np.sort(rows[is_drawn]), before + in_chunk


def _together(key: Ints, number: Ints) -> Ints:
    return (key << np.int64(40)) + number


def _totals(keys: Keys, counts: Ints) -> tuple[Keys, Ints]:
    """Add up the counts of equal keys."""
    order = np.argsort(keys, kind="stable")
    keys, counts = keys[order], counts[order]
    is_new = np.ones(len(keys), dtype=bool)
    is_new[1:] = keys[1:] != keys[:-1]
    first = np.flatnonzero(is_new)
    if not len(first):
        return keys, counts
    return keys[first], np.add.reduceat(counts, first)


def _waiting(keys: Keys, n_draws: int) -> Floats:
    """Return how long each key waits for its next draw: exponential, mean one."""
    hashes = mixed(keys, np.uint64(n_draws + 1))
    uniform = ((hashes >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return np.asarray(-np.log(uniform))


def mixed(key: Any, values: Any) -> Keys:
    """Mix values into hashes, by the finaliser of MurmurHash3."""
    key = key ^ np.asarray(values).astype(np.uint64)
    key = (key ^ (key >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    key = (key ^ (key >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return np.asarray(key ^ (key >> np.uint64(33)))
