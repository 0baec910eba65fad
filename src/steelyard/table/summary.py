"""Summary: what a schema needs to know of a table, from chunks of it. They add up."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard._common.checks import check_weights
from steelyard._common.settings import check_settings
from steelyard._common.threads import run, thread_count
from steelyard.exceptions import ColumnError, TableError
from steelyard.table.cells_by_value import Cells
from steelyard.table.column_summary import ColumnSummary
from steelyard.table.columns import Column
from steelyard.table.content import Needs, Rows
from steelyard.table.discretizers import Discretizer
from steelyard.table.encoder import TableEncoder
from steelyard.table.frames import Table
from steelyard.table.identifiers import warn_identifiers
from steelyard.table.labels import as_label_column, encode_labels, weighted_rows
from steelyard.table.rereading import Rereading
from steelyard.table.schema import FeatureSchema, TableSchema
from steelyard.table.summary_features import (
    category_feature,
    number_feature,
    number_range,
    suspect,
)
from steelyard.table.treatments import Treatment, numeric_treatments, treatments

_Floats = NDArray[np.float64]


class Summary:
    """What a schema needs to know of the rows of a table.

    The summary of a table is the same whatever chunks it comes in and in what order,
    up to the rounding of sums of numbers and of weights that are not whole. Rows of
    weight zero do not count.

    Parameters
    ----------
    encoder : TableEncoder
        Settings; it stays as it is.
    counts : bool, default=False
        Whether the weight of each category by class is kept; see ``counts_by_code``.

    Examples
    --------
    >>> import numpy as np
    >>> from steelyard.table.encoder import TableEncoder
    >>> from steelyard.table.frames import as_table
    >>> from steelyard.table.summary import Summary
    >>> X, y = np.array([[1.0], [2.0], [7.0], [8.0]]), np.array(["a", "a", "b", "b"])
    >>> summary = Summary(TableEncoder(numeric="equal-width"))
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
        self.columns: list[ColumnSummary] = []
        self.names: list[str] | None = None
        self.classes: NDArray[Any] = np.empty(0)
        """Sorted classes."""
        self.by_class: _Floats = np.empty(0)
        """Weight of each class, shape (K,)."""
        self.n_rows = 0
        """Rows of a weight above zero."""
        self.rereading: Rereading | None = None
        """What a second reading of some columns gave."""
        self._place = ""

    @classmethod
    def of(
        cls,
        table: Table,
        y: Any,
        weights: Any,
        encoder: TableEncoder,
        place: str = "the table",
    ) -> Summary:
        """Return the summary of one chunk; see `take_in`."""
        summary = cls(encoder)
        summary.take_in(table, y, weights, place)
        return summary

    def take_in(
        self, table: Table, y: Any, weights: Any = None, place: str = "the table"
    ) -> None:
        """Add the rows of a chunk.

        Parameters
        ----------
        table : Table
            The chunk. Columns are matched by name where there are names.
        y : array-like of shape (n,)
            Classes of any kind, none missing.
        weights : array-like of shape (n,), default=None
            Row weights, or None for ones. Rows of weight zero are left out.
        place : str, default="the table"
            Where the chunk came from; errors name it.
        """
        try:
            self._take_in(table, y, weights, place)
        except (ColumnError, TableError) as error:
            if place in str(error):
                raise
            raise type(error)(f"{place}: {error}") from error

    def _take_in(self, table: Table, y: Any, weights: Any, place: str) -> None:
        if weights is not None and not np.any(weights):
            return
        weights = check_weights(weights, table.n_rows)
        table, y, weights = weighted_rows(table, as_label_column(y), weights)
        classes, labels = encode_labels(y)
        positions = self._reclassify(classes, place)
        n_classes = len(self.classes)
        rows = Rows(positions.astype(np.uint32)[labels], weights, n_classes)
        columns = self._matched(table, place)
        by_column = treatments(
            self.encoder.categorical_features, self.encoder.numeric, columns, self.names
        )
        needs = self._needs()

        def take_in(j: int) -> None:
            is_category = by_column[j][0].kind == "categorical"
            self.columns[j].take_in(columns[j], is_category, rows, needs[j], place)
            columns[j].release()

        for _ in run(take_in, range(len(columns)), self._n_threads):
            pass
        self.by_class = self.by_class + rows.totals()
        self.n_rows += table.n_rows

    def __add__(self, other: Summary) -> Summary:
        """Return the summary of the rows of both."""
        if not self.columns or not other.columns:
            return other if not self.columns else self
        out = Summary(self.encoder, counts=self._counts)
        out._place, out.names = self._place, self.names
        out._check_names(other.names, len(other.columns), other._place)
        out.classes, a, b = _union(self, other, other._place)
        n_classes = len(out.classes)
        out.by_class = np.zeros(n_classes)
        np.add.at(out.by_class, a, self.by_class)
        np.add.at(out.by_class, b, other.by_class)
        out.n_rows = self.n_rows + other.n_rows
        out.columns = [column.with_classes(a, n_classes) for column in self.columns]
        needs = out._needs()
        order = list(range(len(out.columns)))
        if self.names is not None and other.names is not None:
            order = [other.names.index(name) for name in self.names]
        for mine, k, need in zip(out.columns, order, needs, strict=True):
            mine.merge(other.columns[k].with_classes(b, n_classes), need)
        return out

    def __eq__(self, other: object) -> bool:
        """Compare what both know, not where they found it."""
        if not isinstance(other, Summary):
            return NotImplemented
        return (
            self.names == other.names
            and self.n_rows == other.n_rows
            and self.classes.tolist() == other.classes.tolist()
            and np.array_equal(self.by_class, other.by_class)
            and self.columns == other.columns
        )

    __hash__ = None  # type: ignore[assignment]

    # ------------------------------------------------------------ the schema

    def fitted(self, class_factors: _Floats | None = None) -> TableEncoder:
        """Return an encoder that has learned the schema.

        Parameters
        ----------
        class_factors : ndarray of shape (K,), default=None
            Factor on the weights of each class, in the order of ``classes``.
        """
        encoder, views = copy(self.encoder), self._views()
        features = self._features(views, class_factors)
        encoder.schema_ = TableSchema(tuple(features))
        encoder.ranges_ = [number_range(c, class_factors) for c in self.columns]
        encoder.n_features_in_ = len(self.columns)
        if self.names is not None:
            encoder.feature_names_in_ = np.asarray(self.names, dtype=object)
        warn_identifiers(self, [suspect(c, self.n_rows) for c in self.columns])
        return encoder

    @property
    def cut_points_are_exact(self) -> bool:
        """Whether all cut points are those of the sorted numbers."""
        return not self._coarse_columns()

    def second_reading(self) -> Rereading | None:
        """Say what is to be read again before ``fitted``, None for nothing.

        Cells of numbers that hold much of the weight are split. ``take_in`` of what is
        returned gets the same chunks, of which it reads some columns; then it is given
        to ``rereading`` of this summary.
        """
        ranges = {}
        for j in self._coarse_columns():
            cells = self.cells(j)
            if cells is not None and len(cells.heavy()[0]):
                ranges[j] = cells.heavy()
        if not ranges:
            return None
        return Rereading(ranges, self.names, self.classes)

    def _coarse_columns(self) -> list[int]:
        """Columns that are cut by cells of more than one number."""
        read = {j for j, treatment in self._views() if _reads_numbers(treatment)}
        return sorted(
            j for j in read if (cells := self.cells(j)) and not cells.is_exact
        )

    def cells(self, j: int) -> Cells | None:
        """Return the cells of a column of numbers, those read again in finer ones."""
        numbers = self.columns[j].numbers
        if numbers is None or numbers.cells is None:
            return None
        cells = numbers.cells.cells()
        again = None if self.rereading is None else self.rereading.cells(j)
        return cells if again is None else cells.split(again)

    def _views(self) -> list[tuple[int, Treatment]]:
        if not self.columns:
            raise TableError(
                "There is no row to learn from: the source is empty, or all its "
                "weights are zero."
            )
        by_column = treatments(
            self.encoder.categorical_features,
            self.encoder.numeric,
            self.columns,
            self.names,
        )
        return [(j, t) for j, of_column in enumerate(by_column) for t in of_column]

    def _features(
        self, views: list[tuple[int, Treatment]], factors: _Floats | None
    ) -> list[FeatureSchema]:
        missing, cardinality = self.encoder.missing, self.encoder.cardinality
        several = len(views) > len(self.columns)

        def learn(view: tuple[int, Treatment]) -> FeatureSchema:
            j, treatment = view
            column = self.columns[j]
            if treatment.kind == "categorical":
                feature = category_feature(column, missing, cardinality, factors)
            else:
                weights = self.by_class - column.missing, factors
                cells = self.cells(j)
                feature = number_feature(column, treatment, missing, weights, cells)
            return replace(feature, column=j if several else None)

        return list(run(learn, views, self._n_threads))

    # ------------------------------------------------------------ chunk by chunk

    @property
    def _n_threads(self) -> int:
        return thread_count(self.encoder.n_jobs)

    def _needs(self) -> list[Needs]:
        """Say what is kept of each column."""
        by_column = numeric_treatments(
            self.encoder.numeric, len(self.columns), self.names
        )
        return [
            Needs(
                cells=any(map(_reads_numbers, views)),
                weights=self._counts or self.encoder.missing == "impute",
                declared=self.encoder.cardinality == "declared",
            )
            for views in by_column
        ]

    def _reclassify(self, classes: NDArray[Any], place: str) -> NDArray[np.int64]:
        """Make room for new classes, and say where the classes of a chunk are."""
        chunk = Summary(self.encoder)
        chunk.classes = classes
        union, mine, theirs = _union(self, chunk, place)
        if len(union) > len(self.classes):
            n_classes, by_class = len(union), np.zeros(len(union))
            by_class[mine] = self.by_class
            self.columns = [c.with_classes(mine, n_classes) for c in self.columns]
            self.by_class = by_class
        self.classes = union
        return theirs

    def _matched(self, table: Table, place: str) -> Sequence[Column]:
        """Return the columns of a chunk in the order of the first one."""
        if not self.columns:
            self._place, self.names = place, table.names
            names: Sequence[str | None] = table.names or [None] * table.n_columns
            self.columns = [
                ColumnSummary(j, name, len(self.classes))
                for j, name in enumerate(names)
            ]
        self._check_names(table.names, table.n_columns, place)
        if table.names == self.names or self.names is None or table.names is None:
            return table.columns
        by_name = dict(zip(table.names, table.columns, strict=True))
        columns = [copy(by_name[name]) for name in self.names]
        for position, column in enumerate(columns):
            column.position = position
        return columns

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


def _reads_numbers(treatment: Treatment) -> bool:
    """Whether a treatment looks at single numbers."""
    if isinstance(treatment, Discretizer):
        return treatment.reads in ("order", "numbers")
    return treatment.kind == "gaussian-weka"


def _union(
    a: Summary, b: Summary, place: str
) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64]]:
    """Return the classes of both, sorted, and where those of each are."""
    if not len(a.classes) or a.classes.tolist() == b.classes.tolist():
        positions = np.arange(len(b.classes))
        return b.classes, positions[: len(a.classes)], positions
    kinds = [isinstance(part.classes[0], str) for part in (a, b)]
    if kinds[0] != kinds[1]:
        first, second = (part.classes.tolist()[0] for part in (a, b))
        raise TableError(
            f"The target holds {first!r} in {a._place} and {second!r} in {place}. Give "
            "all its cells one type."
        )
    both = np.concatenate([a.classes, b.classes])
    values = sorted(set(both.tolist()))
    where = {value: k for k, value in enumerate(values)}
    mine, theirs = (
        np.array([where[v] for v in part.classes.tolist()], dtype=np.int64)
        for part in (a, b)
    )
    return np.array(values, dtype=both.dtype), mine, theirs
