"""TrainingSet: encoded rows, their classes and their weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from steelyard._common.checks import LARGEST_WEIGHT, LEAST_WEIGHT
from steelyard._common.threads import pieces
from steelyard.exceptions import ParameterError, TableError
from steelyard.model.place import HERE, RowPlace
from steelyard.model.table_model import NBModel
from steelyard.proba.counts import Counts
from steelyard.proba.estimation import Estimation
from steelyard.table.codes import Codes
from steelyard.table.encoder import TableEncoder
from steelyard.table.frames import Table
from steelyard.table.labels import (
    encode_labels,
    labelled_rows,
    read_rows,
    weighted_rows,
)
from steelyard.table.schema import Side, TableSchema
from steelyard.table.workspace import Workspace


@dataclass(frozen=True)
class Encoding:
    """How tables become codes."""

    categorical_features: Any = "auto"
    numeric: Any = "mdl"
    missing: str = "skip"
    cardinality: str = "observed"
    skips_unlabelled: bool = False
    """Whether rows without a label are left out instead of refused."""

    def encoder(self, n_jobs: int | None) -> TableEncoder:
        """Return an encoder that has learned nothing yet."""
        return TableEncoder(
            self.categorical_features,
            self.numeric,
            self.missing,
            self.cardinality,
            n_jobs,
        )


@dataclass(frozen=True)
class Preparation:
    """How rows become codes, counts and probabilities."""

    encoding: Encoding
    estimation: Estimation
    class_weight: Any = None
    n_jobs: int | None = None


class Columns(Protocol):
    """The columns behind codes: a table in memory, or one that can be read again."""

    def take(self, rows: NDArray[np.int64]) -> Table:
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

    sample_weight: NDArray[np.float64] | None
    """Weights that the user gave, without those of classes; None where all are one."""

    preparation: Preparation
    class_factors: NDArray[np.float64] | None = None
    """Factor of each class that ``class_weight`` asks for, None without one."""

    is_kept: NDArray[np.bool_] | None = None
    """Which rows of the user's table these are; None for all."""

    earlier: Counts | None = None
    """Counts of rows before these, where they come in chunks."""

    cut_points_are_exact: bool | None = None
    """Whether cut points are those of the sorted numbers, None where they always are:
    of a table in memory."""

    place: RowPlace = HERE
    """Where the rows are."""

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
        """What is known of the attributes."""
        return self.codes.schema

    def row_factors(self) -> NDArray[np.float64]:
        """Return the factor that ``class_weight`` puts on each row, shape (n,)."""
        if self.class_factors is None:
            return self.workspace.full(self.n_rows, 1.0)
        return self.workspace.take(self.class_factors, self.labels)

    @cached_property
    def weights(self) -> NDArray[np.float64] | None:
        """Weights of the rows, those of their classes included; None for ones."""
        if self.class_factors is None:
            return self.sample_weight
        weights = self.workspace.zeros(self.n_rows, np.float64)
        for rows in pieces(slice(0, self.n_rows)):
            weights[rows] = self.class_factors[self.labels[rows]]
            if self.sample_weight is not None:
                weights[rows] *= self.sample_weight[rows]
        return weights

    @cached_property
    def given_counts(self) -> Counts:
        """Counts by ``sample_weight`` alone, of the rows and those before them."""
        own: Counts = self.place.sum(self, TrainingSet.counted)
        return own if self.earlier is None else self.earlier + own

    def counted(self) -> Counts:
        """Count rows in arrays here by ``sample_weight`` alone."""
        return self._count(self.sample_weight)

    def count(self, learned: NDArray[np.float64] | None = None) -> Counts:
        """Count the rows by their weights, times learned ones."""
        if learned is not None:
            return self._count(self.combined(learned))
        if self.class_factors is None:
            return self.given_counts
        return self.given_counts.scaled(self.class_factors)

    def _count(self, weights: NDArray[np.float64] | None) -> Counts:
        return self.place.count(self, weights)

    def combined(
        self, learned: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        """Return the weights of the rows times learned ones."""
        if learned is not None and learned.shape != (self.n_rows,):
            raise ParameterError(
                "An instance weighting must return one weight for each of the "
                f"{self.n_rows} rows. Got {len(learned)}."
            )
        if learned is None or self.weights is None:
            return self.weights if learned is None else learned
        combined = self.workspace.zeros(self.n_rows, np.float64)
        for rows in pieces(slice(0, self.n_rows)):
            np.multiply(learned[rows], self.weights[rows], out=combined[rows])
        return combined

    def estimate(self, counts: Counts) -> NBModel:
        """Return the naive Bayes model of some counts."""
        return estimate_model(self.estimation, counts, self.classes)

    def take(self, rows: NDArray[Any]) -> TrainingSet:
        """Return some rows, encoded as they are, with the factors of all."""
        return self.place.take(self, rows)

    def taken(self, rows: NDArray[Any]) -> TrainingSet:
        """Return some of the rows in arrays here."""
        weights, take = self.sample_weight, self.workspace.take
        return replace(
            self,
            table=None,
            codes=self.codes.take(rows),
            labels=take(self.labels, rows),
            sample_weight=None if weights is None else take(weights, rows),
            is_kept=None,
        )

    def with_pairs(self, pairs: Iterable[tuple[Side, Side]]) -> TrainingSet:
        """Return the same rows with pairs of attributes, as its encoder makes them."""
        joined = partial(TrainingSet._with_pairs, pairs=list(pairs))
        return self.place.map(self, joined)

    def _with_pairs(self, pairs: list[tuple[Side, Side]]) -> TrainingSet:
        encoder = copy(self.encoder)
        encoder.schema_ = self.schema.with_pairs(pairs)
        codes = self.codes.with_pairs(encoder.schema_, self.n_jobs)
        return replace(self, encoder=encoder, codes=codes)

    def rows_of(self, *classes: int) -> NDArray[np.int64]:
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
        factors = self.class_factors
        return replace(
            taken,
            classes=self.classes[[a, b]],
            labels=labels,
            class_factors=None if factors is None else factors[[a, b]],
        )

    def re_encoded(
        self, rows: NDArray[np.int64], weights: NDArray[np.float64] | None
    ) -> TrainingSet:
        """Return some rows with other weights, the encoding learned from them alone."""
        assert self.table is not None, "the columns behind these rows are not there"
        table, labels = self.table.take(rows), self.labels[rows]
        return encode_table(table, self.classes, labels, weights, self.preparation)

    def without_empty_classes(self) -> TrainingSet:
        """Return the same rows with the classes that they have."""
        present = np.flatnonzero(class_totals(self.labels, None, self.n_classes))
        number = np.zeros(self.n_classes, dtype=self.labels.dtype)
        number[present] = np.arange(len(present))
        factors = self.class_factors
        return replace(
            self,
            classes=self.classes[present],
            labels=self.workspace.take(number, self.labels),
            class_factors=None if factors is None else factors[present],
        )

    def all_rows(self, learned: NDArray[np.float64]) -> NDArray[np.float64]:
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

    def in_memory(self, rows: NDArray[np.int64], with_columns: bool) -> TrainingSet:
        """Return some rows in memory, with the columns behind them where asked for."""
        if isinstance(self.table, Table) and len(rows) == self.n_rows:
            return self
        taken = self.take(rows)
        if with_columns:
            assert self.table is not None, "these rows were taken from another set"
            taken = replace(taken, table=self.table.take(rows))
        return taken


def encode_training(
    X: Any, y: Any, sample_weight: Any, preparation: Preparation, owner: object = None
) -> TrainingSet:
    """Check a table, its labels and weights, and learn how it is encoded.

    Rows of weight zero are left out. ``owner`` is the one whose class messages name.
    """
    refuse_no_labels(y, owner)
    table, y, weights = read_rows(X, y, sample_weight, owner)
    if preparation.encoding.skips_unlabelled:
        table, y, weights = labelled_rows(table, y, weights)
    is_kept = None if weights is None or weights.all() else weights != 0
    table, y, weights = weighted_rows(table, y, weights)
    classes, labels = encode_labels(y, preparation.n_jobs)
    check_two_classes(classes)
    training = encode_table(table, classes, labels, weights, preparation)
    return replace(training, is_kept=is_kept)


def encode_table(
    table: Table,
    classes: NDArray[Any],
    labels: NDArray[np.uint32],
    weights: NDArray[np.float64] | None,
    preparation: Preparation,
) -> TrainingSet:
    """Learn how a table is encoded, from rows that all have a label and a weight."""
    factors, row_weights = None, weights
    if preparation.class_weight is not None:
        totals = class_totals(labels, weights, len(classes))
        factors = class_factors(preparation.class_weight, classes, totals)
        row_weights = factors[labels] if weights is None else factors[labels] * weights
    encoder = preparation.encoding.encoder(preparation.n_jobs)
    codes = encoder.learn(table, labels, len(classes), row_weights)
    return TrainingSet(
        table, encoder, codes, classes, labels, weights, preparation, factors
    )


def class_totals(
    labels: NDArray[Any], weights: NDArray[np.float64] | None, n_classes: int
) -> NDArray[np.float64]:
    """Total weight of each class, shape (K,)."""
    totals = np.zeros(n_classes)
    for rows in pieces(slice(0, len(labels))):
        u = None if weights is None else weights[rows]
        totals += np.bincount(labels[rows], u, minlength=n_classes)
    return totals


def estimate_model(
    estimation: Estimation, counts: Counts, classes: NDArray[Any]
) -> NBModel:
    """Return the naive Bayes model of some counts."""
    log_prior, table, gaussian = estimation.tables(counts)
    return NBModel(counts.schema, classes, log_prior, table.values, gaussian)


def refuse_no_labels(y: Any, owner: object) -> None:
    """Refuse a fit without labels, in scikit-learn's words."""
    if y is None:
        raise TableError(
            f"{type(owner).__name__} requires y to be passed, but the target y is "
            "None. Pass the labels as fit(X, y)."
        )


def check_two_classes(classes: NDArray[Any]) -> None:
    """Refuse labels that are all the same."""
    if len(classes) < 2:
        raise TableError(
            "Classifier can't train when only one class is present: every label is "
            f"{classes.tolist()[0]!r}. At least two classes are needed."
        )


def class_factors(
    class_weight: Any, classes: NDArray[Any], totals: NDArray[np.float64]
) -> NDArray[np.float64]:
    r"""Return the factor on each class that ``class_weight`` asks for, shape (K,).

    "balanced" is :math:`U / (q N_c)` over the classes that have rows.
    """
    if isinstance(class_weight, Mapping):
        known = classes.tolist()
        unknown = [c for c in class_weight if c not in known]
        if unknown:
            raise ParameterError(
                f"`class_weight` names {unknown}, which are not among the classes "
                f"{known}."
            )
        factors = np.array([float(class_weight.get(c, 1.0)) for c in known])
        if factors.max() > LARGEST_WEIGHT or factors.min() < LEAST_WEIGHT:
            raise ParameterError(
                f"`class_weight` must hold numbers from {LEAST_WEIGHT:g} to "
                f"{LARGEST_WEIGHT:g}. Got {class_weight!r}."
            )
        return factors
    present = totals > 0
    balanced = totals.sum() / (present.sum() * np.where(present, totals, 1.0))
    return np.where(present, balanced, 1.0)
