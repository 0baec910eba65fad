"""What workers do to partitions: read, summarise, encode, prepare. Knows no Dask."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import reduce
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
from steelyard.table.labels import as_label_column, check_weights, known_labels
from steelyard.table.summary.number_cells import Rereading
from steelyard.table.summary.table_summary import TableSummary
from steelyard.weighting.base import Effect


class Partition(NamedTuple):
    """A partition as Dask has it: a frame or array, its labels and weights, if apart.

    Labels and weights that are columns of the frame are None here.
    """

    cells: Any
    labels: Any
    weights: Any
    number: int


@dataclass(frozen=True)
class Roles:
    """What the columns of partitions are."""

    features: list[Any] | None
    """Columns to learn from; None for arrays, and where all are."""

    target: str | None
    weight: str | None
    skips_unlabelled: bool = False


class PartRows(NamedTuple):
    """Rows of a partition with their labels and weights, as they are."""

    cells: Any
    labels: Any
    weights: Floats | None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.cells)

    @property
    def table(self) -> Table:
        """The rows as a table."""
        return as_table(self.cells, is_whole=False)


def read(part: Partition, roles: Roles) -> PartRows:
    """Return the rows of a partition, those without a label left out if asked for."""
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
    known = np.flatnonzero(as_series(labels).factor().indices >= 0)
    some = None if weights is None else weights[known]
    return PartRows(_taken(cells, known), _taken(labels, known), some)


def _taken(values: Any, rows: Ints) -> Any:
    return values.iloc[rows] if hasattr(values, "iloc") else values[rows]


def is_empty(rows: PartRows) -> bool:
    """Whether there is no row of a weight above zero."""
    return not rows.n_rows or (rows.weights is not None and not rows.weights.any())


# --------------------------------------------------------------------- the schema


def summarise(
    part: Partition, roles: Roles, encoder: TableEncoder, counts: bool
) -> TableSummary:
    """Return what a schema needs to know of a partition, with its counts or not."""
    summary, rows = TableSummary(encoder, counts=counts), read(part, roles)
    if is_empty(rows):
        return summary
    with quietly():
        place = f"partition {part.number}"
        summary.take_in(rows.table, rows.labels, rows.weights, place)
    return summary


def read_again(part: Partition, roles: Roles, again: Rereading) -> Rereading:
    """Split heavy cells of numbers by the rows of a partition."""
    rows, out = read(part, roles), deepcopy(again)
    if not is_empty(rows):
        out.take_in(rows.table, rows.labels, rows.weights)
    return out


# ------------------------------------------------------------------------- codes


def encode(
    part: Partition, roles: Roles, coding: Coding, n_threads: int = 1
) -> TrainingSet:
    """Return the rows of a partition as codes by column, those of weight 0 left out.

    Partitions are encoded side by side, passes over them run in all threads.
    """
    rows = read(part, roles)
    has_weights = rows.weights is not None
    if is_empty(rows):
        is_kept = np.zeros(rows.n_rows, dtype=bool)
        stored = replace(coding.no_rows(has_weights), is_kept=is_kept)
    else:
        store = coding.store(MEMORY, rows.n_rows, has_weights)
        store.append(*_encoded(rows, coding, part.number))
        stored = store.finish()
    preparation = replace(coding.preparation, n_jobs=n_threads)
    return replace(coding, preparation=preparation).training(stored)


def count_part(part: Partition, roles: Roles, coding: Coding) -> Counts:
    """Count the rows of a partition; nothing of them is kept."""
    rows, n_classes = read(part, roles), len(coding.classes)
    if is_empty(rows):
        return Counts.zeros(coding.schema, n_classes)
    codes, labels, weights = _encoded(rows, coding, part.number)
    return count(codes, labels, weights, n_classes)


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


def n_kept(part: Partition, roles: Roles) -> int:
    """Say how many rows of a partition are kept."""
    rows = read(part, roles)
    return len(rows.cells if rows.weights is None else np.flatnonzero(rows.weights))


def take_cells(part: Partition, picked: Ints, roles: Roles) -> Any:
    """Return some rows of a partition as they are, by position among those kept."""
    if not len(picked):
        return None
    rows = read(part, roles)
    if rows.weights is not None:
        picked = np.flatnonzero(rows.weights)[picked]
    return _taken(rows.cells, picked)


rows_of = attrgetter("codes", "labels", "sample_weight")


def take_rows(part: TrainingSet, picked: Ints) -> Any:
    """Return codes, labels and weights of some rows, None for none."""
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
    """Return what a method says of the rows of a partition, None if it has none."""
    return None if rows is None else getattr(rows, method)(*given)


def n_bytes(held: TrainingSet | PackedRows) -> int:
    """Return how much memory a part takes."""
    blocks = held.codes.blocks if isinstance(held, TrainingSet) else held.wide
    arrays = [block.values for block in blocks]
    if isinstance(held, TrainingSet):
        weights, numbers = held.sample_weight, held.codes.numbers
        arrays += [held.labels, *([] if weights is None else [weights]), *numbers]
    else:
        arrays += [held.packed]
    return 1000 + sum(array.nbytes for array in arrays)


def over_parts(
    function: Callable[..., Any],
    parts: Sequence[Any],
    given: Sequence[Any] | None,
    together: bool,
) -> list[Any]:
    """Return a function of each part of a worker, or their sum in a list of one."""
    arguments = zip(parts) if given is None else zip(parts, given, strict=True)
    results = (function(*argument) for argument in arguments)
    return [reduce(add, results)] if together else list(results)


def add(a: Any, b: Any) -> Any:
    """Add results of two parts, entry by entry; None is nothing."""
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, tuple):
        return tuple(add(x, y) for x, y in zip(a, b, strict=True))
    return a + b


def quietly() -> Any:
    """Keep warnings of one partition back: what there is to say is said of all."""
    return warnings.catch_warnings(action="ignore")
