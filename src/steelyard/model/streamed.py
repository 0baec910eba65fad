"""Training sets of sources, read chunk by chunk: counts, or codes in files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, Ints
from steelyard._common.files import WorkFolder
from steelyard.exceptions import ColumnError, TableError
from steelyard.model.base import RowsNeeded
from steelyard.model.training import Preparation, TrainingSet
from steelyard.proba.counts import Counts, Moments, count
from steelyard.table.codes import MEMORY, Codes, Workspace
from steelyard.table.encoder import TableEncoder
from steelyard.table.frames import Table, as_table
from steelyard.table.labels import check_two_classes, class_factors, known_labels
from steelyard.table.schema import TableSchema
from steelyard.table.storage import DiskWorkspace, Store, StoredRows
from steelyard.table.summary.table_summary import TableSummary

if TYPE_CHECKING:
    from steelyard.io.scanning import Scan


class _SourceRows(NamedTuple):
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
        sorted_rows = pa.concat_tables(parts).unify_dictionaries()
        return as_table(sorted_rows.take(pa.array(np.argsort(order))))


@dataclass(frozen=True)
class Coding:
    """How rows become codes, the same for all chunks of them."""

    encoder: TableEncoder
    classes: NDArray[Any]
    factors: Floats | None
    """Factors of classes, None without any."""

    preparation: Preparation

    @classmethod
    def of(cls, summary: TableSummary, preparation: Preparation) -> Coding:
        """Return the coding that a summary of all rows gives."""
        classes, factors = summary.classes, None
        check_two_classes(classes)
        if preparation.class_weight is not None:
            weight = preparation.class_weight
            factors = class_factors(weight, classes, summary.by_class)
        return cls(summary.fitted(factors), classes, factors, preparation)

    @property
    def schema(self) -> TableSchema:
        """The attributes."""
        return self.encoder.schema_

    def store(self, workspace: Workspace, n_rows: int, has_weights: bool) -> Store:
        """Return an empty store for ``n_rows`` rows."""
        n_classes = len(self.classes)
        return Store(workspace, self.schema, n_rows, n_classes, has_weights=has_weights)

    def no_rows(self, has_weights: bool = False) -> StoredRows:
        """Return an empty set of rows."""
        return self.store(MEMORY, 0, has_weights).finish()

    def training(self, rows: StoredRows) -> TrainingSet:
        """Return the training set of rows that were encoded chunk by chunk."""
        given = rows.codes, self.classes, rows.labels, rows.weights
        how = self.preparation, self.factors
        return TrainingSet(None, self.encoder, *given, *how, rows.is_kept)

    def counted(
        self, summary: TableSummary, count: Callable[[], Counts]
    ) -> TrainingSet:
        """Return the training set of counts alone, which the summary may know."""
        by_code, by_class = summary.counts_by_code(self.schema), summary.by_class
        if by_code is None:
            counts = count()
        else:
            nothing = Moments.zeros(0, len(by_class))
            counts = Counts(self.schema, by_class, by_code, nothing)
        return replace(self.training(self.no_rows()), earlier=counts)


def encode_source(
    source: Scan, preparation: Preparation, needed: RowsNeeded
) -> TrainingSet:
    """Return the training set of a source.

    If counts suffice for a method, they are all that is kept. Otherwise codes are
    written to files, which a fit reads as often as it needs to.
    """
    if preparation.encoding.skips_unlabelled:
        source.drops_unlabelled = True
    summary = _summary(source, preparation, needed == "counts")
    coding = Coding.of(summary, preparation)
    if needed == "counts":
        training = coding.counted(summary, lambda: _counted(source, coding))
    else:
        training = _stored(source, coding)
    return replace(
        training,
        cut_points_are_exact=summary.cut_points_are_exact,
        target_name=source.target,
        reading=source.reading,
        column_labels=source.labels,
        n_unlabelled=source.n_dropped,
    )


def _summary(source: Scan, preparation: Preparation, counts: bool) -> TableSummary:
    """Read all rows for what a schema needs to know, heavy cells of numbers twice."""
    encoder = preparation.encoding.encoder(preparation.n_jobs)
    summary = TableSummary(encoder, counts=counts)
    for rows in read_source(source, source.features):
        summary.take_in(rows.table, rows.labels, rows.weights, rows.place)
    again = summary.second_reading(preparation.class_weight)
    if again is not None:
        for rows in read_source(source, again.columns):
            again.take_in(rows.table, rows.labels, rows.weights)
        summary.refine(again)
    return summary


def _counted(source: Scan, coding: Coding) -> Counts:
    """Read all rows, and count them."""
    n_classes, n_jobs = len(coding.classes), coding.preparation.n_jobs
    total = Counts.zeros(coding.schema, n_classes)
    for rows in _encoded(source, coding):
        total += count(*rows, n_classes, n_jobs)
    return total


def _stored(source: Scan, coding: Coding) -> TrainingSet:
    """Read all rows, and write their codes to files."""
    folder, n_rows = WorkFolder(source.work_folder), source.n_rows
    assert n_rows is not None, "the source has been read"
    has_weights = source.weight is not None
    size = Store.bytes_per_row(coding.schema, len(coding.classes), has_weights)
    folder.ensure_space(n_rows * size)
    store = coding.store(DiskWorkspace(folder), n_rows, has_weights)
    for rows in _encoded(source, coding):
        store.append(*rows)
    training = coding.training(store.finish())
    return replace(training, table=SourceTable(source, training.is_kept))


def _encoded(
    source: Scan, coding: Coding
) -> Iterator[tuple[Codes, NDArray[np.uint32], Floats | None]]:
    """Read all rows, and yield them as codes."""
    for rows in read_source(source, source.features):
        try:
            labels = known_labels(rows.labels, coding.classes)
            yield coding.encoder.encode(rows.table), labels, rows.weights
        except (TableError, ColumnError) as error:
            raise TableError(
                f"{rows.place}: the source changed between two readings. Fit again "
                f"when nothing writes to it. ({error})"
            ) from error


def read_source(source: Scan, columns: list[str]) -> Iterator[_SourceRows]:
    """Read some columns chunk by chunk, with labels and weights."""
    roles = [name for name in (source.target, source.weight) if name is not None]
    for chunk in source.chunks([*columns, *roles]):
        weights = None
        if source.weight is not None:
            column = chunk.column(source.weight)
            weights = np.asarray(column.to_numpy(), dtype=np.float64)
        labels = chunk.column(str(source.target))
        yield _SourceRows(chunk.table(columns), labels, weights, chunk.place())
