"""TrainingSet: encoded rows, their classes, their weights, and where they are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Floats, Ints
from steelyard._common.threads import pieces
from steelyard.exceptions import ParameterError
from steelyard.model.base import HERE, RowPlace
from steelyard.model.table_model import NBModel
from steelyard.proba.counts import Counts
from steelyard.proba.smoothing import Estimation
from steelyard.table.codes import Codes, Workspace
from steelyard.table.encoder import TableEncoder
from steelyard.table.frames import Table
from steelyard.table.labels import class_factors, class_places, class_totals
from steelyard.table.ranges import evenly
from steelyard.table.schema import Side, TableSchema

# Tables with at most this many cells may be copied and kept until their summary is
# needed, and of a longer matrix a sample with at most this many.
_MAX_KEPT_CELLS, _MAX_SAMPLED_CELLS = 200_000, 1_000_000
SAMPLE = 4_096
"""Rows of a long table that represent all of them when they are counted."""


@dataclass(frozen=True)
class Encoding:
    """How tables become codes."""

    categorical_features: Any = "auto"
    numeric: Any = "mdl"
    missing: str = "skip"
    cardinality: str = "observed"
    skips_unlabelled: bool = False
    """Whether rows without a label are left out instead of refused."""

    keep_identifiers: bool = True

    def encoder(self, n_jobs: int | None) -> TableEncoder:
        """Return an encoder that has learned nothing yet."""
        settings = dict(vars(self))
        del settings["skips_unlabelled"]
        return TableEncoder(**settings, n_jobs=n_jobs)


@dataclass(frozen=True)
class Preparation:
    """How rows become codes, counts and probabilities."""

    encoding: Encoding
    estimation: Estimation
    class_weight: Any = None
    n_jobs: int | None = None


class Columns(Protocol):
    """The columns behind codes: a table in memory, or one that can be read again."""

    def take(self, rows: Ints) -> Table:
        """Return the rows at some positions, in that order."""


@dataclass(frozen=True)
class TrainingSet:
    """Encoded training rows, and how their counts become probabilities.

    Codes, labels and weights are in memory or in memory maps. Whatever is made for each
    row is made in ``workspace``, a piece at a time. Of rows in another place these are
    empty: they are counted, joined, taken and passed over where they are.
    """

    table: Columns | None
    """The columns behind the codes; None for rows taken from another set."""

    encoder: TableEncoder
    codes: Codes
    classes: NDArray[Any]
    labels: NDArray[Any]
    """Positions among the classes: uint32, or narrower in a memory map."""

    sample_weight: Floats | None
    """Weights that the user gave, without those of classes; None if all are one."""

    preparation: Preparation
    class_factors: Floats | None = None
    """Factor of each class that ``class_weight`` asks for, None without one."""

    is_kept: NDArray[np.bool_] | None = None
    """Which rows of the user's table these are; None for all."""

    earlier: Counts | None = None
    """Counts of rows before these, if they come in chunks."""

    cut_points_are_exact: bool | None = None
    """Whether cut points are those of the sorted numbers, None if they always are:
    of a table in memory."""

    place: RowPlace = HERE
    """Where the rows are."""

    target_name: str | None = None
    """Name of the target, if labels were a named series or a column of a source."""

    joined: str = ""
    """Which labels differed from another class in blanks only, in words."""

    reading: Mapping[str, Any] = field(default_factory=dict)
    """How files of text were read."""

    column_labels: Mapping[str, str] = field(default_factory=dict)
    """What columns are called in words."""

    n_unlabelled: int = 0
    """How many rows were left out because they had no label."""

    @property
    def workspace(self) -> Workspace:
        """Where arrays as long as the table are put."""
        return self.codes.workspace

    @property
    def estimation(self) -> Estimation:
        """How counts become probabilities."""
        return self.preparation.estimation

    @property
    def n_jobs(self) -> int | None:
        """Threads."""
        return self.preparation.n_jobs

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.codes.n_rows

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def schema(self) -> TableSchema:
        """The attributes."""
        return self.codes.schema

    @property
    def weight_here(self) -> float:
        """Weight of the rows in arrays here, without those before them."""
        weights = self.sample_weight
        return float(self.n_rows) if weights is None else float(weights.sum())

    def row_factors(self) -> Floats:
        """Return the factor that ``class_weight`` puts on each row, shape (n,)."""
        if self.class_factors is None:
            return self.workspace.full(self.n_rows, 1.0)
        return self.workspace.take(self.class_factors, self.labels)

    @cached_property
    def weights(self) -> Floats | None:
        """Weights of the rows, those of their classes included; None for ones."""
        if self.class_factors is None:
            return self.sample_weight
        factors, given = self.row_factors(), self.sample_weight
        return factors if given is None else self._product(factors, given)

    @cached_property
    def given_counts(self) -> Counts:
        """Counts by ``sample_weight`` alone, of the rows and those before them."""
        counts: Counts = self.place.sum(self, TrainingSet.counted)
        return counts if self.earlier is None else self.earlier + counts

    def counted(self) -> Counts:
        """Count rows in arrays here by ``sample_weight`` alone."""
        return self.place.count(self, self.sample_weight)

    def count(self, learned: Floats | None = None) -> Counts:
        """Count the rows by their weights, times learned ones."""
        if learned is not None:
            return self.place.count(self, self.combined(learned))
        if self.class_factors is None:
            return self.given_counts
        return self.given_counts.scaled(self.class_factors)

    def combined(self, learned: Floats | None) -> Floats | None:
        """Return the weights of the rows times learned ones."""
        if learned is not None and learned.shape != (self.n_rows,):
            raise ParameterError(
                "An instance weighting must return one weight for each of the "
                f"{self.n_rows} rows. Got {len(learned)}."
            )
        if learned is None or self.weights is None:
            return self.weights if learned is None else learned
        return self._product(learned, self.weights)

    def _product(self, a: Floats, b: Floats) -> Floats:
        """Multiply two numbers of each row, a piece of the rows at a time."""
        out = self.workspace.zeros(self.n_rows, np.float64)
        for rows in pieces(slice(0, self.n_rows)):
            np.multiply(a[rows], b[rows], out=out[rows])
        return out

    def estimate(self, counts: Counts) -> NBModel:
        """Return the naive Bayes model of some counts."""
        log_prior, table, gaussian = self.estimation.tables(counts)
        return NBModel(counts.schema, self.classes, log_prior, table.values, gaussian)

    def take(self, rows: NDArray[Any]) -> TrainingSet:
        """Return some rows, encoded as they are, with the factors of all."""
        return self.place.take(self, rows)

    @cached_property
    def sample(self) -> TrainingSet:
        """All rows, or of a long table some, evenly spaced."""
        return self.take(evenly(self.n_rows, SAMPLE))

    def taken(self, rows: NDArray[Any]) -> TrainingSet:
        """Return some of the rows in arrays here."""
        return replace(self._without_codes(rows), codes=self.codes.take(rows))

    def _without_codes(self, rows: NDArray[Any]) -> TrainingSet:
        """Return some rows that still have the codes of all."""
        weights, take = self.sample_weight, self.workspace.take
        return replace(
            self,
            table=None,
            labels=take(self.labels, rows),
            sample_weight=None if weights is None else take(weights, rows),
            is_kept=None,
        )

    def with_interactions(
        self, interactions: Iterable[tuple[Side, Side]]
    ) -> TrainingSet:
        """Return the same rows with interactions, as their encoder makes them."""
        joined = partial(
            TrainingSet._with_interactions, interactions=list(interactions)
        )
        return self.place.map(self, joined)

    def _with_interactions(self, interactions: list[tuple[Side, Side]]) -> TrainingSet:
        encoder = copy(self.encoder)
        encoder.schema_ = self.schema.with_interactions(interactions)
        codes = self.codes.with_interactions(encoder.schema_, self.n_jobs)
        return replace(self, encoder=encoder, codes=codes)

    def rows_of(self, *classes: int) -> Ints:
        """Return the positions of the rows of some classes."""
        return self.workspace.rows_where(
            self.n_rows, lambda rows: np.isin(self.labels[rows], classes)
        )

    def pair(self, a: int, b: int) -> TrainingSet:
        """Return the rows of two classes, which become the classes 0 and 1."""
        return self.place.map(self, partial(TrainingSet._pair, a=a, b=b))

    def _pair(self, a: int, b: int) -> TrainingSet:
        assert self.class_factors is None or len(self.class_factors) == self.n_classes
        taken = self.taken(self.rows_of(a, b))
        labels = self.workspace.zeros(taken.n_rows, self.labels.dtype)
        for rows in pieces(slice(0, taken.n_rows)):
            labels[rows] = taken.labels[rows] == b
        return taken._in_classes(np.array([a, b]), labels)

    def _in_classes(self, kept: Ints, labels: NDArray[Any]) -> TrainingSet:
        """Return the same rows with some of the classes, and labels among these."""
        classes, factors = self.classes[kept], self.class_factors
        factors = None if factors is None else factors[kept]
        return replace(self, classes=classes, labels=labels, class_factors=factors)

    def re_encoded(self, rows: Ints, weights: Floats | None) -> TrainingSet:
        """Return some rows with other weights, the encoding learned from them alone."""
        assert self.table is not None, "the columns behind these rows are not there"
        table, labels = self.table.take(rows), self.labels[rows]
        return encode_table(
            table,
            self.classes,
            labels,
            weights,
            self.preparation,
            self.encoder.schema_.left_out,
        )

    def in_classes(self, classes: NDArray[Any]) -> TrainingSet:
        """Return the same rows among more classes."""
        places, k = class_places(self.classes, classes), len(classes)
        if k == self.n_classes:
            return self
        earlier, factors = self.earlier, None
        if earlier is not None:
            earlier = earlier.in_classes(places, k)
        if self.class_factors is not None:
            totals = class_totals(self.labels, self.sample_weight, self.n_classes)
            spread = np.zeros(k)
            spread[places] = totals
            factors = class_factors(self.preparation.class_weight, classes, spread)
        labels = self.workspace.take(places.astype(np.uint32), self.labels)
        return replace(
            self, classes=classes, labels=labels, class_factors=factors, earlier=earlier
        )

    def without_empty_classes(self) -> TrainingSet:
        """Return the same rows with the classes that they have."""
        present = np.flatnonzero(class_totals(self.labels, None, self.n_classes))
        number = np.zeros(self.n_classes, dtype=self.labels.dtype)
        number[present] = np.arange(len(present))
        return self._in_classes(present, self.workspace.take(number, self.labels))

    def all_rows(self, learned: Floats) -> Floats:
        """Spread what was learned of rows over the user's table, NaN where left out."""
        if self.is_kept is None:
            return learned
        out = self.workspace.full(len(self.is_kept), np.nan)
        start = 0
        for rows in pieces(slice(0, len(out))):
            kept = self.is_kept[rows]
            stop = start + int(np.count_nonzero(kept))
            out[rows][kept] = learned[start:stop]
            start = stop
        return out

    def small_copy(self) -> TrainingSet | None:
        """Return rows that no user changes, None where they are many or elsewhere.

        Codes and columns of a frame are copies already. Of a long matrix, whose columns
        are read in place, it is some rows.
        """
        table = self.table
        if not isinstance(table, Table) or not self.place.is_here:
            return None
        if self.n_rows * table.n_columns > _MAX_KEPT_CELLS:
            if table.matrix is None or SAMPLE * table.n_columns > _MAX_SAMPLED_CELLS:
                return None
            rows: Any = evenly(self.n_rows, SAMPLE)
            few = self._without_codes(rows)
        elif table.matrix is None:
            return self
        else:
            rows, few = np.arange(self.n_rows), self
        copied = table.take(rows)
        # Codes may be the array of the user, which is copied once.
        codes = self.codes.take_with(rows, table.matrix, copied.matrix)
        return replace(few, table=copied, codes=codes)

    def in_memory(self, rows: Ints, with_columns: bool) -> TrainingSet:
        """Return some rows in memory, with the columns behind them if asked for."""
        if isinstance(self.table, Table) and len(rows) == self.n_rows:
            return self
        taken = self.take(rows)
        if with_columns:
            assert self.table is not None, "these rows were taken from another set"
            taken = replace(taken, table=self.table.take(rows))
        return taken


def encode_table(
    table: Table,
    classes: NDArray[Any],
    labels: NDArray[np.uint32],
    weights: Floats | None,
    preparation: Preparation,
    left_out: Collection[int] | None = None,
) -> TrainingSet:
    """Return the training set of rows that all have a label and a weight.

    ``left_out`` are the ignored columns, if that is decided already: these are rows of
    a table that was learned before, whose ranges are not needed again.
    """
    factors, row_weights = None, weights
    if preparation.class_weight is not None:
        totals = class_totals(labels, weights, len(classes))
        factors = class_factors(preparation.class_weight, classes, totals)
        row_weights = factors[labels] if weights is None else factors[labels] * weights
    encoder = preparation.encoding.encoder(preparation.n_jobs)
    rows, is_whole = (table, labels, len(classes), row_weights), left_out is None
    codes = encoder.learn(*rows, left_out, with_ranges=is_whole)
    return TrainingSet(
        table, encoder, codes, classes, labels, weights, preparation, factors
    )
