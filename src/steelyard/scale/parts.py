"""Work on partitions at their location: read, summarise, encode, prepare."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, Ints
from steelyard.exceptions import ColumnError, TableError
from steelyard.fitting.rows import PackedRows, join_rows
from steelyard.losses import LogLoss
from steelyard.model.streamed import Coding
from steelyard.model.training import TrainingSet
from steelyard.proba.counts import Counts, count
from steelyard.proba.gaussian import GaussianTable
from steelyard.table.codes import MEMORY, Codes
from steelyard.table.encoder import TableEncoder
from steelyard.table.frames import Table, as_series, as_table
from steelyard.table.labels import as_label_column, known_labels
from steelyard.table.rows import check_weights
from steelyard.table.summary.number_cells import Rereading
from steelyard.table.summary.table_summary import TableSummary
from steelyard.weighting.base import Effect

# Partitions with fewer rows each are made one, as long as they are neighbours.
_FEW_ROWS = 1 << 14


class Partition(NamedTuple):
    """A partition as given: a frame or array, labels and weights if separate.

    Labels and weights that are columns of the frame are None here. Of several that were
    joined the number is that of the first.
    """

    cells: Any
    labels: Any
    weights: Any
    number: int


Group = Sequence[Partition]
"""Partitions that are worked on together, in order."""


@dataclass(frozen=True)
class Roles:
    """What the columns of partitions are."""

    features: list[Any] | None
    """Columns to learn from; None for arrays, and for all columns."""

    target: str | None
    weight: str | None
    skips_unlabelled: bool = False


class PartRows(NamedTuple):
    """Rows of a partition with their labels and weights, not encoded."""

    cells: Any
    labels: Any
    weights: Floats | None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.cells)

    @property
    def is_empty(self) -> bool:
        """Whether there is no row of a weight above zero."""
        return not self.n_rows or (self.weights is not None and not self.weights.any())

    @property
    def table(self) -> Table:
        """The rows as a table."""
        return as_table(self.cells, is_whole=False)


def read(part: Partition, roles: Roles) -> PartRows:
    """Return the rows of a partition; those without a label are dropped if asked."""
    cells, labels, weights = part.cells, part.labels, part.weights
    if roles.target is not None:
        labels = cells[roles.target]
    if roles.weight is not None:
        weights = cells[roles.weight]
    for what, values in (("y", labels), ("sample_weight", weights)):
        if values is not None and len(values) != len(cells):
            raise TableError(
                f"Partition {part.number}: X has {len(cells)} rows and {what} "
                f"{len(values)}. Make both from one frame, so that partitions match."
            )
    if roles.features is not None:
        cells = cells[roles.features]
    if weights is not None:
        weights = np.asarray(weights, dtype=np.float64)
    labels = as_label_column(labels)
    if not roles.skips_unlabelled or not len(cells):
        return PartRows(cells, labels, weights)
    labelled = np.flatnonzero(as_series(labels).factor().indices >= 0)
    some = None if weights is None else weights[labelled]
    return PartRows(_taken(cells, labelled), _taken(labels, labelled), some)


def _taken(values: Any, rows: Ints) -> Any:
    return values.iloc[rows] if hasattr(values, "iloc") else values[rows]


# --------------------------------------------------------------------- the schema


def summarise(
    group: Group, roles: Roles, encoder: TableEncoder, counts: bool
) -> TableSummary:
    """Return a summary of some partitions for a schema, with counts or not."""
    summary = TableSummary(encoder, counts=counts)
    # Warnings are raised for all partitions together.
    with warnings.catch_warnings(action="ignore"):
        for number, rows in _with_weight(group, roles):
            place = f"partition {number}"
            summary.take_in(rows.table, rows.labels, rows.weights, place)
    return summary


def read_again(group: Group, roles: Roles, again: Rereading) -> Rereading:
    """Split heavy cells of numbers by the rows of some partitions."""
    out = deepcopy(again)
    for _, rows in _with_weight(group, roles):
        out.take_in(rows.table, rows.labels, rows.weights)
    return out


def grouped(first: int, *columns: Sequence[Any]) -> list[Partition]:
    """Return numbered partitions; neighbours with few rows of equal types are joined.

    ``columns`` are cells, labels and weights by partition, or nothing. Work on a column
    takes a millisecond, however few its rows are.
    """
    some = [column or [None] * len(columns[0]) for column in columns]
    numbered = enumerate(zip(*some, strict=True), first)
    partitions = [Partition._make((*cells, number)) for number, cells in numbered]
    out: list[Partition] = []
    for _, run in groupby(partitions, _types):
        parts = list(run)
        values = zip(*(part[:3] for part in parts), strict=True)
        if len(parts) == 1 or sum(len(p.cells) for p in parts) > _FEW_ROWS * len(parts):
            out += parts
        else:
            joined = map(concatenated, values)
            out.append(Partition._make((*joined, parts[0].number)))
    return out


def _types(part: Partition) -> list[Any]:
    """Return the column types of a partition, or its number if it stays separate."""
    kinds: list[Any] = []
    for values in part[:3]:
        if values is not None and len(values) != len(part.cells):
            return [part.number]
        # Types of categories are equal if their values are.
        is_frame = hasattr(values, "columns")
        kinds += [*values.columns, *values.dtypes] if is_frame else [type(values)]
        kinds.append(getattr(values, "dtype", None))
    return kinds


def concatenated(parts: Sequence[Any]) -> Any:
    """Concatenate arrays, frames or series; None of nothing."""
    if parts[0] is None:
        return None
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    import pandas as pd

    return pd.concat(parts, ignore_index=True)


def _with_weight(group: Group, roles: Roles) -> Iterator[tuple[int, PartRows]]:
    """Yield the rows of partitions that have any, by number."""
    for part in group:
        rows = read(part, roles)
        if not rows.is_empty:
            yield part.number, rows


# ------------------------------------------------------------------------- codes


def encode(
    group: Group, roles: Roles, coding: Coding, n_threads: int = 1
) -> TrainingSet:
    """Encode the rows of partitions by column; rows of weight 0 are dropped.

    Partitions are encoded side by side, passes over them run in all threads.
    """
    partitions = [read(part, roles) for part in group]
    n_rows = sum(rows.n_rows for rows in partitions)
    store = coding.store(MEMORY, n_rows, partitions[0].weights is not None)
    for part, rows in zip(group, partitions, strict=True):
        if rows.is_empty:
            store.leave_out(rows.n_rows)
        else:
            store.append(*_encoded(rows, coding, part.number))
    preparation = replace(coding.preparation, n_jobs=n_threads)
    return replace(coding, preparation=preparation).training(store.finish())


def count_part(group: Group, roles: Roles, coding: Coding) -> Counts:
    """Count the rows of partitions; nothing of them is kept."""
    n_classes = len(coding.classes)
    total = Counts.zeros(coding.schema, n_classes)
    for number, rows in _with_weight(group, roles):
        total += count(*_encoded(rows, coding, number), n_classes)
    return total


def _encoded(
    rows: PartRows, coding: Coding, number: int
) -> tuple[Codes, NDArray[np.uint32], Floats | None]:
    try:
        weights = check_weights(rows.weights, rows.n_rows)
        labels = known_labels(rows.labels, coding.classes)
        return coding.encoder.encode(rows.table), labels, weights
    except (TableError, ColumnError) as error:
        raise TableError(
            f"Partition {number} changed between two readings: its graph gives other "
            f"rows each time. Call persist() on the frame before the fit. ({error})"
        ) from error


def _kept(rows: PartRows) -> Ints:
    """Return the positions of rows that are kept."""
    if rows.weights is None:
        return np.arange(rows.n_rows)
    return np.flatnonzero(rows.weights)


def n_kept(group: Group, roles: Roles) -> int:
    """Return how many rows of some partitions are kept."""
    return sum(len(_kept(read(part, roles))) for part in group)


def take_cells(group: Group, picked: Ints, roles: Roles) -> list[Any]:
    """Return some rows of partitions, not encoded, by position among those kept."""
    taken, first = [], 0
    for part in group:
        rows = read(part, roles)
        kept = _kept(rows)
        some = picked[(picked >= first) & (picked < first + len(kept))]
        if len(some):
            taken.append(_taken(rows.cells, kept[some - first]))
        first += len(kept)
    return taken


rows_of = attrgetter("codes", "labels", "sample_weight")


def take_rows(part: TrainingSet, picked: Ints) -> Any:
    """Return codes, labels and weights of some rows; None of no rows."""
    return rows_of(part.taken(picked)) if len(picked) else None


# ------------------------------------------------------------------------ passes


def prepare(
    part: TrainingSet, missing: NDArray[np.bool_], gaussian: GaussianTable
) -> PackedRows | None:
    """Prepare the rows of a partition for passes, None if it has none.

    A first pass over a row loads the kernels, so that no later one waits for them.
    """
    if not part.n_rows:
        return None
    rows = join_rows(part, missing, gaussian)
    k = rows.n_classes
    table = np.zeros((rows.schema.n_codes, k))
    nothing = Effect(np.zeros(k), table, np.zeros((len(gaussian.mean), k)))
    rows.take(np.arange(1)).evaluate(LogLoss(), nothing)
    return rows


def ask(rows: PackedRows | None, method: str, given: tuple[Any, ...]) -> Any:
    """Return the result of a method for the rows of a partition, None without rows."""
    return None if rows is None else getattr(rows, method)(*given)


def n_bytes(rows: TrainingSet | PackedRows) -> int:
    """Return how much memory encoded rows take."""
    if isinstance(rows, TrainingSet):
        arrays = [rows.labels, *rows.codes.numbers]
        arrays += [] if rows.sample_weight is None else [rows.sample_weight]
        blocks = rows.codes.blocks
    else:
        arrays, blocks = [rows.packed], rows.wide
    arrays += [block.values for block in blocks]
    return 1000 + sum(array.nbytes for array in arrays)


def add(a: Any, b: Any) -> Any:
    """Add results of two parts, entry by entry; None is nothing."""
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, tuple):
        return tuple(add(x, y) for x, y in zip(a, b, strict=True))
    return a + b


def same(value: Any) -> Any:
    """Return a value: a function that can be pickled."""
    return value
