"""Counts: everything naive Bayes learns from rows. They add up.

Counts of pairs give probabilities that depend on the value of another attribute.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, Ints
from steelyard._common.threads import pieces, row_blocks, run, thread_count
from steelyard.exceptions import ColumnError
from steelyard.kernels import counting, pairs
from steelyard.table.codes import CodeBlock, Codes
from steelyard.table.schema import Side, TableSchema

# Counts of one block of rows; half the width keeps the tables of ten classes in the L1
# cache (2.3 against 2.9 ms for 100,000 x 50).
_PLAIN_CELLS = 1 << 20
_NARROW = np.int32

LARGEST_NUMBER = 1e100
"""Means and deviations up to here can be squared and weighted without overflow."""

_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class Moments:
    """Weight, mean and squared deviations of numbers, by attribute and class.

    Two of them merge by the update of Chan, Golub and LeVeque (1983), which keeps the
    digits that sums of squares lose.
    """

    weight: Floats
    """Total weight of the observed cells, shape (g, K)."""

    mean: Floats
    """Weighted mean, shape (g, K); 0 if the weight is 0."""

    squares: Floats
    """Weighted sum of squared deviations from the mean, shape (g, K)."""

    @classmethod
    def zeros(cls, n_numbers: int, n_classes: int) -> Moments:
        """Return the moments of no rows."""
        shape = (n_numbers, n_classes)
        return cls(np.zeros(shape), np.zeros(shape), np.zeros(shape))

    def __add__(self, other: Moments) -> Moments:
        """Merge with the moments of other rows."""
        weight = self.weight + other.weight
        share = np.divide(
            other.weight, weight, out=np.zeros_like(weight), where=weight > 0
        )
        with np.errstate(over="ignore", invalid="ignore"):
            delta = other.mean - self.mean
        # An empty side carries mean 0, which must not be mistaken for a value.
        delta[(self.weight == 0) | (other.weight == 0)] = 0.0
        # Numbers that are too large are refused by their column's name, once counted.
        with np.errstate(over="ignore", invalid="ignore"):
            mean = np.where(self.weight == 0, other.mean, self.mean + share * delta)
            squares = self.squares + other.squares + delta**2 * share * self.weight
        return Moments(weight, mean, squares)

    def map(self, function: Callable[[Floats], Floats]) -> Moments:
        """Return what a function makes of weights, means and squares."""
        return Moments(*map(function, (self.weight, self.mean, self.squares)))

    def pooled(self) -> Moments:
        """Merge all classes into one, shape (g, 1)."""
        total = Moments.zeros(len(self.weight), 1)
        for c in range(self.weight.shape[1]):
            total += self.map(itemgetter(np.s_[:, c : c + 1]))
        return total


@dataclass(frozen=True)
class Counts:
    """Weighted frequencies of classes, and of codes and numbers within classes.

    Counts of the same schema and classes add up: ``a + b`` counts the rows of both,
    exactly for whole-number weights.
    """

    schema: TableSchema
    by_class: Floats
    """Total weight of each class, shape (K,)."""

    by_code: Floats
    """Weight of each code within each class, shape (V, K); code 0 is missing."""

    moments: Moments
    """Moments of the Gaussian attributes."""

    @classmethod
    def zeros(cls, schema: TableSchema, n_classes: int) -> Counts:
        """Return the counts of no rows."""
        return cls(
            schema,
            np.zeros(n_classes),
            np.zeros((schema.n_codes, n_classes)),
            Moments.zeros(len(schema.gaussian), n_classes),
        )

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.by_class)

    @property
    def total(self) -> float:
        """Total weight of all rows."""
        return float(self.by_class.sum())

    def __add__(self, other: Counts) -> Counts:
        """Count the rows of both."""
        if self.schema is not other.schema and self.schema != other.schema:
            raise ValueError("Only counts made with the same schema can be added.")
        return Counts(
            self.schema,
            self.by_class + other.by_class,
            self.by_code + other.by_code,
            self.moments + other.moments,
        )

    def scaled(self, factors: Floats) -> Counts:
        """Multiply the weight of all rows of each class by a factor, shape (K,)."""
        moments = Moments(
            self.moments.weight * factors,
            self.moments.mean,
            self.moments.squares * factors,
        )
        by_code = self.by_code * factors
        return Counts(self.schema, self.by_class * factors, by_code, moments)

    def of_classes(self, classes: tuple[int, ...]) -> Counts:
        """Return the counts of the rows of some classes, in that order."""
        if classes == tuple(range(self.n_classes)):
            return self
        chosen = np.s_[..., list(classes)]
        counted = self.by_class[chosen], self.by_code[chosen]
        return Counts(self.schema, *counted, self.moments.map(itemgetter(chosen)))

    def in_schema(self, grown: TableSchema) -> Counts:
        """Move the counts to a schema that has grown out of theirs."""
        if grown == self.schema:
            return self
        by_code = np.zeros((grown.n_codes, self.n_classes))
        by_code[rows_in(self.schema, grown)] = self.by_code
        numbers, before = places_in(grown, self.schema), self.schema.gaussian.tolist()
        order = [before.index(numbers[j]) for j in grown.gaussian]
        moments = self.moments.map(itemgetter(order))
        return Counts(grown, self.by_class, by_code, moments)

    def in_classes(self, places: Ints, n_classes: int) -> Counts:
        """Move the counts to ``n_classes`` classes, given the positions of theirs."""
        if n_classes == self.n_classes:
            return self

        def spread(array: Floats) -> Floats:
            out = np.zeros((*array.shape[:-1], n_classes))
            out[..., places] = array
            return out

        counted = spread(self.by_class), spread(self.by_code)
        return Counts(self.schema, *counted, self.moments.map(spread))


def rows_in(schema: TableSchema, grown: TableSchema) -> Ints:
    """Return the table row of each code of a schema in one that has grown from it."""
    rows = np.empty(schema.n_codes, dtype=np.int64)
    for j, place in enumerate(places_in(schema, grown)):
        old, new = schema.features[j], grown.features[place]
        if not old.is_coded:
            continue
        # Cells counted as missing move along if missing becomes a value.
        becomes = new.missing_is_value and not old.missing_is_value
        first = new.n_values if becomes else 0
        codes = [first, *(new.code_of[value] for value in old.values)]
        if old.kind == "binned":
            codes = [first, *range(1, len(old.edges) + 2)]
        if old.sides:  # their groups stay
            codes = list(range(old.n_codes))
        if old.missing_is_value:
            codes.append(new.n_values)
        rows[schema.offsets[j] : schema.offsets[j + 1]] = (
            np.array(codes, dtype=np.int64) + grown.offsets[place]
        )
    return rows


def with_interactions_of(before: TableSchema, grown: TableSchema) -> TableSchema:
    """Append interactions of a schema to one that has grown from it without them.

    New values are in no group: interactions add nothing for them.
    """
    if not before.is_interaction.any():
        return grown
    rows, interactions = rows_in(before.without_interactions, grown), []
    for feature in before.features[before.n_columns :]:
        sides = []
        for side in feature.sides:
            j = side.feature
            here = rows[before.offsets[j] : before.offsets[j + 1]]
            groups = np.zeros(grown.features[j].n_codes, dtype=np.int64)
            groups[here - grown.offsets[j]] = side.groups
            sides.append(Side(j, tuple(groups.tolist())))
        interactions.append((sides[0], sides[1]))
    return grown.with_interactions(interactions)


def places_in(schema: TableSchema, other: TableSchema) -> list[int]:
    """Return the positions of the attributes of a schema in another, by their names.

    Interactions have none, and are in the same order in both.
    """
    if schema.names == other.names:
        return list(range(len(schema)))
    places: dict[str | None, list[int]] = {}
    for j, feature in enumerate(other.features):
        places.setdefault(feature.name, []).append(j)
    return [places[feature.name].pop(0) for feature in schema.features]


def count(
    codes: Codes,
    y: NDArray[np.uint32],
    weights: Floats | None,
    n_classes: int,
    n_jobs: int | None = None,
) -> Counts:
    """Count an encoded table in one pass over its rows, by weights or by ones.

    Each thread works on a block of rows with separate tables, a piece at a time; the
    blocks depend on n alone and are added in order.
    """
    spread = [block.table_rows(codes.offsets) for block in codes.blocks]
    starts = [block.starts(codes.offsets) for block in codes.blocks]
    sizes = [block.sizes(codes.offsets) for block in codes.blocks]
    widths = [codes.schema.n_codes if rows is None else len(rows) for rows in spread]
    nothing = Moments.zeros(codes.n_numbers, n_classes)
    # Then a row adds one for each column. NumPy's count of classes has no threads: it
    # keeps the interpreter's lock.
    n_columns = len(codes.blocks[0].features) if codes.blocks else 0
    adds_ones = weights is None and n_columns > 0

    def count_block(block_rows: slice) -> _Part:
        is_narrow = weights is None and block_rows.stop - block_rows.start < 1 << 31
        integers: Any = _NARROW if is_narrow else np.int64
        kind = integers if weights is None else np.float64
        hists = [np.zeros((n_classes, width), dtype=kind) for width in widths]
        by_class, moments = np.zeros(n_classes), nothing
        for rows in pieces(block_rows):
            u = None if weights is None else weights[rows]
            labels = np.asarray(y[rows], dtype=np.uint32)
            if not adds_ones:
                by_class += np.bincount(labels, u, minlength=n_classes)
            for block, first, size, hist in zip(
                codes.blocks, starts, sizes, hists, strict=True
            ):
                _add_histogram(block, rows, first, size, labels, u, hist)
            if codes.n_numbers:
                given = codes.number_rows(rows), labels, np.empty(0) if u is None else u
                by_row = counting.moments(*given, n_classes)
                of_rows = Moments(*(np.ascontiguousarray(m.T) for m in by_row))
                moments = of_rows if moments is nothing else moments + of_rows
        if adds_ones:
            by_class = hists[0].sum(axis=1) / n_columns
        return _Part(by_class, hists, moments)

    total: _Part | None = None
    for part in run(count_block, row_blocks(codes.n_rows), thread_count(n_jobs)):
        total = part if total is None else total.add(part)
    if total is None:
        return Counts.zeros(codes.schema, n_classes)
    by_code = np.zeros((codes.schema.n_codes, n_classes))
    for spread_rows, hist in zip(spread, total.hists, strict=True):
        for c in range(n_classes):
            if spread_rows is None:
                by_code[:, c] += hist[c]
            else:
                by_code[:, c] += np.bincount(spread_rows, hist[c], len(by_code))
    refuse_large(codes.schema, total.moments)
    return Counts(codes.schema, total.by_class, by_code, total.moments)


def refuse_large(schema: TableSchema, moments: Moments) -> None:
    """Refuse numbers whose squares are not all finite, by the name of the column."""
    if not len(moments.weight):
        return
    overall = moments.pooled()
    mean = np.abs(overall.mean[:, 0])
    with np.errstate(invalid="ignore"):
        deviation = np.sqrt(overall.squares / np.maximum(overall.weight, 1e-300))[:, 0]
    wrong = ~((mean <= LARGEST_NUMBER) & (deviation <= LARGEST_NUMBER))
    if wrong.any():
        j = int(schema.gaussian[wrong][0])
        name = schema.features[j].name
        column = j if name is None else repr(name)
        raise ColumnError(
            f"Column {column} holds numbers that are too large for a density or a "
            f"slope: mean and deviation must be at most {LARGEST_NUMBER:g}. Divide it "
            "by a power of ten, replace marks of unknown cells by NaN, or cut it into "
            "bins, for example with numeric='mdl'."
        )


@dataclass(frozen=True)
class _Part:
    """Counts of a block of rows; histograms by byte are folded once, at the end."""

    by_class: Floats
    hists: list[NDArray[Any]]
    moments: Moments

    def add(self, other: _Part) -> _Part:
        hists = [
            hist.astype(np.int64) if hist.dtype == _NARROW else hist
            for hist in self.hists
        ]
        for hist, other_hist in zip(hists, other.hists, strict=True):
            hist += other_hist
        by_class = self.by_class + other.by_class
        some = len(self.moments.weight) > 0
        moments = self.moments + other.moments if some else self.moments
        return _Part(by_class, hists, moments)


def _add_histogram(
    block: CodeBlock,
    rows: slice,
    starts: NDArray[np.uint64],
    sizes: Ints,
    y: NDArray[np.uint32],
    weights: Floats | None,
    hist: NDArray[Any],
) -> None:
    """Count some columns and rows, into hist (K, V) or (K, bytes)."""
    values = block.values[rows]
    if block.values.flags.c_contiguous:
        counting.count_rows(values, starts, y, weights, hist)
    elif (
        hist.dtype == _NARROW
        and block.values.flags.f_contiguous
        and values.size > _PLAIN_CELLS
    ):
        # Fractions would be added in another order; ones may be in any. Few are counted
        # in less time than the joint tables take to compile.
        most = min(counting.MAX_JOINT, len(values))
        ends, columns = rows.indices(len(block.values))[:2], block.values.T
        counting.count_joint(columns, ends, starts, sizes, y, most, hist)
    else:
        counting.count_columns(values, starts, y, weights, hist)


def count_code_pairs(
    columns: NDArray[Any],
    offsets: Ints,
    labels: NDArray[Any],
    weights: Floats | None,
    n_classes: int,
    n_jobs: int | None = None,
) -> Floats:
    """Count rows by the codes of every two columns and by class, shape (V, V, K).

    columns (d, n) are codes, offsets (d + 1,) their first table rows and V. A column is
    not counted with itself.
    """
    n_codes = int(offsets[-1])
    table = np.zeros((n_codes, n_codes, n_classes))

    def with_later(j: int) -> None:
        for rows in pieces(slice(0, len(labels))):
            u = None if weights is None else weights[rows]
            y = np.asarray(labels[rows], dtype=np.uint32)
            pairs.count_later_pairs(columns[:, rows], offsets[:-1], j, y, u, table)
        codes_of_j = slice(offsets[j], offsets[j + 1])
        later = slice(offsets[j + 1], n_codes)
        table[later, codes_of_j] = table[codes_of_j, later].transpose(1, 0, 2)

    for _ in run(with_later, range(len(columns)), thread_count(n_jobs)):
        pass
    return table


def log_conditional(counts: Floats, log_prob: Floats, strength: float) -> Floats:
    r"""Logarithms of value probabilities, given a parent's value and the class.

    .. math:: \theta_{v|a,c} = \frac{N_{avc} + m\,\theta_{v|c}}{N_{a \cdot c} + m}

    An m-estimate towards the probability without the parent: a rare value of the parent
    changes little, and a missing one nothing. Counts (A, B, K) are by code of the
    parent, of the child, and class; logarithms (B, K) of the child's probabilities and
    the strength m, in rows, give (A, B, K), with 0 for the child's code 0.

    >>> counts = np.array([[[0.0], [0.0], [0.0]], [[0.0], [3.0], [0.0]]])
    >>> log_prob = np.log([[1.0], [0.5], [0.5]])
    >>> np.exp(log_conditional(counts, log_prob, 1.0))[:, :, 0]
    array([[1.   , 0.5  , 0.5  ],
           [1.   , 0.875, 0.125]])
    """
    observed = counts[:, 1:]
    totals = observed.sum(axis=1, keepdims=True) + strength
    out = np.zeros_like(counts)
    prob = (observed + strength * np.exp(log_prob[1:])) / totals
    np.log(np.maximum(prob, _TINY), out=out[:, 1:])
    return out
