"""Training sets of sources, read chunk by chunk: counts, or codes in files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, Ints
from steelyard._common.files import WorkFolder
from steelyard.exceptions import ColumnError, TableError
from steelyard.model.base import RowsNeeded
from steelyard.model.training import Preparation, TrainingSet
from steelyard.proba.counts import Counts, Moments, count
from steelyard.table.codes import MEMORY, Codes
from steelyard.table.encoder import TableEncoder
from steelyard.table.frames import Table, as_table
from steelyard.table.labels import check_two_classes, class_factors, known_labels
from steelyard.table.schema import TableSchema
from steelyard.table.storage import DiskWorkspace, Store, StoredRows
from steelyard.table.summary.table_summary import TableSummary

if TYPE_CHECKING:
    from steelyard.io.scanning import Scan


class _Rows(NamedTuple):
    """A chunk of a source: its table, labels as they are, weights, and its place."""

    table: Table
    labels: Any
    weights: Floats | None
    place: str


class SourceTable(NamedTuple):
    """The columns of a source, from which some rows can be read."""

    source: Scan
    is_kept: NDArray[np.bool_] | None
    """Which rows are meant; None for all. Those of weight zero are not."""

    def take(self, rows: Ints) -> Table:
        """Read the rows at some positions, in that order; none may repeat."""
        import pyarrow as pa

        order, parts, first = np.argsort(rows), [], 0
        wanted = rows[order]
        for chunk in self.source.chunks(self.source.features):
            kept = np.arange(chunk.n_rows)
            if self.is_kept is not None:
                stop = chunk.first_row + chunk.n_rows
                kept = np.flatnonzero(self.is_kept[chunk.first_row : stop])
            lo, hi = np.searchsorted(wanted, [first, first + len(kept)])
            if lo < hi:
                here = pa.array(kept[wanted[lo:hi] - first])
                parts.append(chunk.cells.take(here))
            first += len(kept)
        found = pa.concat_tables(parts).unify_dictionaries()
        return as_table(found.take(pa.array(np.argsort(order))))


def encode_source(
    source: Scan, preparation: Preparation, needed: RowsNeeded
) -> TrainingSet:
    """Learn how the rows of a source are encoded, and encode them.

    Where counts suffice for a method, they are all that is kept. Otherwise codes are
    written to files, which a fit reads as often as it needs to.
    """
    if preparation.encoding.skips_unlabelled:
        source.drops_unlabelled = True
    summary = _summary(source, preparation, needed == "counts")
    classes = summary.classes
    encoder, factors = learned_encoding(summary, preparation)
    if needed == "counts":
        counts = known_counts(summary, encoder.schema_)
        if counts is None:
            counts = _counted(source, encoder, classes, preparation)
        training = counted_training(counts, encoder, classes, preparation, factors)
    else:
        training = _stored(source, encoder, classes, preparation, factors)
    return replace(
        training,
        cut_points_are_exact=summary.cut_points_are_exact,
        target_name=source.target,
    )


def learned_encoding(
    summary: TableSummary, preparation: Preparation
) -> tuple[TableEncoder, Floats | None]:
    """Return the encoder of all rows, and the factors of classes, if there are any."""
    factors = None
    check_two_classes(summary.classes)
    if preparation.class_weight is not None:
        known = summary.classes, summary.by_class
        factors = class_factors(preparation.class_weight, *known)
    return summary.fitted(factors), factors


def _summary(source: Scan, preparation: Preparation, counts: bool) -> TableSummary:
    """Read all rows for what a schema needs to know, heavy cells of numbers twice."""
    encoder = preparation.encoding.encoder(preparation.n_jobs)
    summary = TableSummary(encoder, counts=counts)
    for rows in _read(source, source.features):
        summary.take_in(rows.table, rows.labels, rows.weights, rows.place)
    again = summary.second_reading()
    if again is not None:
        for rows in _read(source, again.columns):
            again.take_in(rows.table, rows.labels, rows.weights)
        summary.refine(again)
    return summary


def known_counts(summary: TableSummary, schema: TableSchema) -> Counts | None:
    """Return the counts of all rows where the summary knows them."""
    by_code = summary.counts_by_code(schema)
    if by_code is None:
        return None
    nothing = Moments.zeros(0, len(summary.classes))
    return Counts(schema, summary.by_class, by_code, nothing)


def _counted(
    source: Scan,
    encoder: TableEncoder,
    classes: NDArray[Any],
    preparation: Preparation,
) -> Counts:
    """Read all rows, and count them."""
    total = Counts.zeros(encoder.schema_, len(classes))
    for codes, labels, weights in _encoded(source, encoder, classes):
        total += count(codes, labels, weights, len(classes), preparation.n_jobs)
    return total


def counted_training(
    counts: Counts,
    encoder: TableEncoder,
    classes: NDArray[Any],
    preparation: Preparation,
    factors: Floats | None,
) -> TrainingSet:
    """Return the training set of counts alone, without rows."""
    rows = empty_rows(encoder.schema_, len(classes))
    training = stored_training(rows, encoder, classes, preparation, factors)
    return replace(training, earlier=counts)


def stored_training(
    rows: StoredRows,
    encoder: TableEncoder,
    classes: NDArray[Any],
    preparation: Preparation,
    factors: Floats | None,
) -> TrainingSet:
    """Return the training set of rows that were encoded chunk by chunk.

    The encoder is that of the rows; ``factors`` are those of classes, known from a
    summary of all rows.
    """
    return TrainingSet(
        None,
        encoder,
        rows.codes,
        classes,
        rows.labels,
        rows.weights,
        preparation,
        factors,
        rows.is_kept,
    )


def empty_rows(
    schema: TableSchema, n_classes: int, has_weights: bool = False
) -> StoredRows:
    """Return no rows, encoded by a schema."""
    return Store(MEMORY, schema, 0, n_classes, has_weights=has_weights).finish()


def _stored(
    source: Scan,
    encoder: TableEncoder,
    classes: NDArray[Any],
    preparation: Preparation,
    factors: Floats | None,
) -> TrainingSet:
    """Read all rows, and write their codes to files."""
    folder = WorkFolder(source.work_folder)
    n_rows, schema = source.n_rows, encoder.schema_
    assert n_rows is not None, "the source has been read"
    has_weights = source.weight is not None
    size = Store.bytes_per_row(schema, len(classes), has_weights)
    folder.ensure_space(n_rows * size)
    store = Store(
        DiskWorkspace(folder), schema, n_rows, len(classes), has_weights=has_weights
    )
    for codes, labels, weights in _encoded(source, encoder, classes):
        store.append(codes, labels, weights)
    rows = store.finish()
    training = stored_training(rows, encoder, classes, preparation, factors)
    return replace(training, table=SourceTable(source, training.is_kept))


def _encoded(
    source: Scan, encoder: TableEncoder, classes: NDArray[Any]
) -> Iterator[tuple[Codes, NDArray[np.uint32], Floats | None]]:
    """Read all rows, and yield them as codes."""
    for rows in _read(source, source.features):
        try:
            labels = known_labels(rows.labels, classes)
            yield encoder.encode(rows.table), labels, rows.weights
        except (TableError, ColumnError) as error:
            raise TableError(
                f"{rows.place}: the source changed between two readings. Fit again "
                f"when nothing writes to it. ({error})"
            ) from error


def _read(source: Scan, columns: list[str]) -> Iterator[_Rows]:
    roles = [name for name in (source.target, source.weight) if name is not None]
    for chunk in source.chunks([*columns, *roles]):
        weights = None
        if source.weight is not None:
            column = chunk.column(source.weight)
            weights = np.asarray(column.to_numpy(), dtype=np.float64)
        labels = chunk.column(str(source.target))
        yield _Rows(chunk.table(columns), labels, weights, chunk.place())
