"""TableSummary: what a schema needs to know of a table, from chunks; they add up."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, Ints
from steelyard._common.one_cell import one_spelling
from steelyard._common.settings import check_settings
from steelyard._common.threads import run, thread_count
from steelyard.exceptions import ColumnError, TableError
from steelyard.table.columns import TableColumn
from steelyard.table.dates import is_idle
from steelyard.table.encoder import TableEncoder
from steelyard.table.frames import Table
from steelyard.table.labels import class_factors, class_places, encode_labels
from steelyard.table.learning import LabelledRows, LearnedColumn, learned_column
from steelyard.table.rows import chunk_rows
from steelyard.table.schema import TableSchema
from steelyard.table.summary.chunked_column import ChunkedColumn, spread
from steelyard.table.summary.number_cells import (
    NumberCells,
    Rereading,
    Spans,
    most_cells,
)
from steelyard.table.treatments import Treatment, numeric_treatments, treatments


class TableSummary:
    """What a schema needs to know of the rows of a table.

    The summary of a table is the same whatever chunks it comes in and in what order,
    up to the rounding of sums of numbers and of weights that are not whole. Rows of
    weight zero do not count.

    >>> import numpy as np
    >>> from steelyard.table.encoder import TableEncoder
    >>> from steelyard.table.frames import as_table
    >>> from steelyard.table.summary.table_summary import TableSummary
    >>> X, y = np.array([[1.0], [2.0], [7.0], [8.0]]), np.array(["a", "a", "b", "b"])
    >>> summary = TableSummary(TableEncoder(numeric="equal-width"))
    >>> for rows in (slice(2, 4), slice(0, 2)):
    ...     summary.take_in(as_table(X[rows]), y[rows])
    >>> summary.classes.tolist(), summary.by_class.tolist()
    (['a', 'b'], [2.0, 2.0])
    >>> summary.fitted().schema_.features[0].edges[:2]
    (1.7, 2.4)
    """

    def __init__(self, encoder: TableEncoder, *, counts: bool = False) -> None:
        check_settings(encoder)
        self.encoder, self._counts = encoder, counts
        self.columns: list[ChunkedColumn] = []
        self.names: list[str] | None = None
        self.classes: NDArray[Any] = np.empty(0)
        """Sorted classes."""
        self.by_class: Floats = np.empty(0)
        """Weight of each class, shape (K,)."""
        self.n_rows = 0
        """Rows of a weight above zero."""
        self._place = ""
        self._parts: set[str] = set()
        """Columns that are parts of dates."""

    def take_in(
        self, table: Table, y: Any, weights: Any = None, place: str = "the table"
    ) -> None:
        """Add the rows of a chunk; errors name the place that it came from."""
        try:
            self._take_in(table, y, weights, place)
        except (ColumnError, TableError) as error:
            if place in str(error):
                raise
            raise type(error)(f"{place}: {error}") from error

    def _take_in(self, table: Table, y: Any, weights: Any, place: str) -> None:
        kept = chunk_rows(table, y, weights)
        if kept is None:
            return
        table, y, weights = kept
        classes, labels = encode_labels(y)
        before, here = self._with_classes(classes, place)
        n_classes = len(self.classes)
        if len(before) < n_classes:
            self.by_class = spread(self.by_class, before, n_classes)
            self.columns = [c.with_classes(before, n_classes) for c in self.columns]
        labels = here.astype(np.uint32)[labels]
        rows = LabelledRows(table.n_rows, labels, weights, n_classes)
        columns = self._matched(table, place)
        self._parts.update(table.parts)
        by_column = self._treatments(columns)

        def take_in(j: int) -> None:
            is_category = by_column[j].kind == "categorical"
            self.columns[j].take_in(columns[j], rows, is_category, place)
            columns[j].release()

        for _ in run(take_in, range(len(columns)), self._n_threads):
            pass
        self.by_class = self.by_class + rows.totals()
        self.n_rows += table.n_rows

    def __add__(self, other: TableSummary) -> TableSummary:
        """Return the summary of the rows of both."""
        if not self.columns or not other.columns:
            return other if not self.columns else self
        out = copy(self)
        out._check_names(other.names, len(other.columns), other._place)
        places = out._with_classes(other.classes, other._place)
        n_classes = len(out.classes)
        a, b = map(spread, (self.by_class, other.by_class), places, [n_classes] * 2)
        out._parts = self._parts | other._parts
        out.by_class, out.n_rows = a + b, self.n_rows + other.n_rows
        out.columns, others = (
            [column.with_classes(at, n_classes) for column in summary.columns]
            for summary, at in zip((self, other), places, strict=True)
        )
        if self.names is not None and other.names is not None:
            others = [others[other.names.index(name)] for name in self.names]
        for column, of_other in zip(out.columns, others, strict=True):
            column.merge(of_other)
        return out

    # ------------------------------------------------------------ the schema

    def fitted(self, class_factors: Floats | None = None) -> TableEncoder:
        """Return an encoder that has learned the schema, classes weighted."""
        self._drop_idle_parts()
        encoder, by_column = copy(self.encoder), self._treatments(self.columns)

        def learn(left_out: Collection[int] | None) -> list[LearnedColumn]:
            def of_column(j: int) -> LearnedColumn:
                column = self.columns[j].weighed(self.by_class, class_factors)
                how = by_column[j], self.encoder, self.n_rows, left_out
                return learned_column(column, *how)

            return list(run(of_column, range(len(self.columns)), self._n_threads))

        columns = first = learn(None)
        if all(column.feature.left_out for column in first):
            columns = learn(())
        encoder.set_learned(columns, self.names, self.n_rows)
        if columns is not first:
            encoder.note_suspects(first, self.n_rows)
        return encoder

    def counts_by_code(self, schema: TableSchema) -> Floats | None:
        """Return the weight of each code within each class, shape (V, K), if known.

        The schema is that of the summary, whose rows were taken in with
        ``counts=True``: what a second reading would count is often known already.
        """
        masses = []
        for column, feature in zip(self.columns, schema.features, strict=True):
            mass = column.by_code(feature)
            if mass is None:
                return None
            # A missing cell may be filled in with the code of a value.
            mass[feature.missing_code] += column.missing
            masses.append(mass)
        return np.concatenate(masses)

    @property
    def cut_points_are_exact(self) -> bool:
        """Whether all cut points are those of the sorted numbers."""
        return not self._coarse_columns()

    def second_reading(self, class_weight: Any = None) -> Rereading | None:
        """Return what is to be read again before ``fitted``, None for nothing.

        Cells of numbers with much of the weight are split, and those next to where
        a first try cuts, so that cuts lie between two numbers. What is returned takes
        in the same chunks, of which it reads some columns, and is given to ``refine``.
        """
        self._drop_idle_parts()
        coarse, factors = self._coarse_columns(), None
        by_column = self._treatments(self.columns)
        if coarse and class_weight is not None:
            factors = class_factors(class_weight, self.classes, self.by_class)

        def spans_of(j: int) -> Spans:
            column = self.columns[j].weighed(self.by_class, factors)
            how = by_column[j], self.encoder, self.n_rows, None
            feature = learned_column(column, *how).feature
            cuts = feature.cuts or [range(len(feature.edges))]
            edges: dict[bool, list[float]] = {False: [], True: []}
            for places, discretizer in zip(
                cuts, by_column[j].discretizers, strict=False
            ):
                edges[discretizer.supervised] += [feature.edges[k] for k in places]
            return coarse[j].to_read_again(edges[False], edges[True], limit)

        limit = most_cells(len(self.classes), max(len(coarse), 1))
        spans = dict(zip(coarse, run(spans_of, coarse, self._n_threads), strict=True))
        spans = {j: (low, high) for j, (low, high) in spans.items() if len(low)}
        return Rereading(spans, self.names, self.classes) if spans else None

    def _drop_idle_parts(self) -> None:
        """Leave out parts of dates that are constant, as a table in memory does."""
        for name in [n for n in self.names or () if n in self._parts]:
            j = (self.names or []).index(name)
            numbers = self.columns[j].numbers
            ends = (0.0, 0.0) if numbers is None else (numbers.low, numbers.high)
            if is_idle(name, *ends):
                self.names = [n for n in self.names or () if n != name]
                del self.columns[j]
                for k, column in enumerate(self.columns):
                    column.position = k

    def refine(self, again: Rereading) -> None:
        """Take in a second reading."""
        for j, finer in again.tables.items():
            self.columns[j].refine(finer, again.spans[j][0])

    def _coarse_columns(self) -> dict[int, NumberCells]:
        """Columns that are cut by cells of more than one number, and those cells."""
        coarse = {}
        for j, treatment in enumerate(self._treatments(self.columns)):
            numbers = self.columns[j].numbers
            if numbers is not None and treatment.reads_numbers:
                cells = numbers.by_value()
                if cells is not None and not cells.is_exact:
                    coarse[j] = cells
        return coarse

    def _treatments(
        self, columns: Sequence[TableColumn] | Sequence[ChunkedColumn]
    ) -> list[Treatment]:
        if not self.columns:
            raise TableError(
                "There is no row to learn from: the source is empty, or all its "
                "weights are zero."
            )
        given = self.encoder.categorical_features, self.encoder.numeric
        return treatments(*given, columns, self.names)

    # ------------------------------------------------------------ chunk by chunk

    @property
    def _n_threads(self) -> int:
        return thread_count(self.encoder.n_jobs)

    def _with_classes(self, classes: NDArray[Any], place: str) -> tuple[Ints, Ints]:
        """Merge the classes of a chunk; return the new positions of both."""
        before, now = self.classes.tolist(), classes.tolist()
        if not before or before == now:
            self.classes = classes
            return np.arange(len(before)), np.arange(len(now))
        if isinstance(before[0], str) != isinstance(now[0], str):
            raise TableError(
                f"The target holds {before[0]!r} in {self._place} and {now[0]!r} in "
                f"{place}. Give all its cells one type."
            )
        dtype = np.result_type(self.classes, classes)
        earlier, names = self.classes, sorted(one_spelling({*before, *now}))
        self.classes = np.array(names, dtype=dtype)
        return class_places(earlier, self.classes), class_places(classes, self.classes)

    def _matched(self, table: Table, place: str) -> Sequence[TableColumn]:
        """Return the columns of a chunk in the order of the first one."""
        if not self.columns:
            self._place, self.names = place, table.names
            self.columns = list(self._new_columns(table))
        self._check_names(table.names, table.n_columns, place)
        if table.names == self.names or self.names is None or table.names is None:
            return table.columns
        by_name = dict(zip(table.names, table.columns, strict=True))
        columns = [copy(by_name[name]) for name in self.names]
        for position, column in enumerate(columns):
            column.position = position
        return columns

    def _new_columns(self, table: Table) -> Iterator[ChunkedColumn]:
        encoder, names = self.encoder, table.names
        by_column = numeric_treatments(encoder.numeric, table.n_columns, names)
        for j, treatment in enumerate(by_column):
            yield ChunkedColumn(
                j,
                None if names is None else names[j],
                len(self.classes),
                has_cells=treatment.reads_numbers,
                has_weights=self._counts or encoder.missing == "impute",
                has_declared=encoder.cardinality == "declared",
            )

    def _check_names(self, names: list[str] | None, n_columns: int, place: str) -> None:
        """Refuse other columns than those of the first chunk."""
        if (names is None) != (self.names is None):
            raise ColumnError(
                f"{place} has {'no ' if names is None else ''}column names, unlike "
                f"{self._place}."
            )
        if names is None or self.names is None:
            if self.columns and n_columns != len(self.columns):
                raise ColumnError(
                    f"{place} has {n_columns} columns, and {self._place} has "
                    f"{len(self.columns)}."
                )
            return
        for here, there, columns in (
            (place, self._place, [n for n in self.names if n not in names]),
            (self._place, place, [n for n in names if n not in self.names]),
        ):
            if columns:
                raise ColumnError(
                    f"{here} has no column {columns[0]!r} that {there} has."
                )
