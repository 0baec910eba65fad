"""Incremental fit of the default: a reservoir of rows, and the counts of all rows.

The reservoir is a sample by priority (N. Duffield, C. Lund, M. Thorup (2007), "Priority
sampling for estimation of arbitrary subset sums", JACM 54(6)): a row of weight u has
the priority u over a number drawn from 0 to 1, and the rows with the largest priorities
are kept. Those represent all rows with the larger of their weight and a threshold, the
largest priority of a row that was not kept.

It contains cells as they were given, dates as dates, so that each refit learns from
them what a fit would learn.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from steelyard._common.allowed import MAX_KEPT, MAX_KEPT_CELLS, MIN_OF_WIDE
from steelyard._common.arrays import Floats, Ints
from steelyard._common.threads import pieces
from steelyard.model.base import RowPlace
from steelyard.model.training import TrainingSet, encode_table
from steelyard.proba.counts import Counts, count, rows_in
from steelyard.table.columns import (
    ArrayColumn,
    DayColumn,
    FactorColumn,
    PartColumn,
    TableColumn,
)
from steelyard.table.factors import EXACT, Factor
from steelyard.table.frames import Table, with_date_parts
from steelyard.table.labels import class_factors
from steelyard.table.learning import with_values
from steelyard.table.schema import FeatureSchema, TableSchema

# A model is fitted anew when the weight has grown by this share since the last time.
_REFIT_SHARE = 0.1

# Rows whose weight has faded to this share of the largest are sampled.
_FADED = 1.0 / 16.0


@dataclass(frozen=True, eq=False)
class Reservoir:
    """A weighted sample of all rows so far, cells as they were given."""

    columns: tuple[TableColumn, ...]
    """Columns of the user's table; parts of dates are not among them."""

    labels: NDArray[Any]
    weights: Floats
    """Weights of the rows, faded."""

    priorities: Floats
    threshold: float
    """The largest priority of a row that is not kept, 0 if all are."""

    n_drawn_from: int
    """Number of rows so far."""

    new_weight: float = 0.0
    """Weight of the rows that came after the last refit."""

    @property
    def amounts(self) -> Floats:
        """Weight of the rows that each row represents."""
        return np.maximum(self.weights, self.threshold)

    @classmethod
    def of(cls, training: TrainingSet, random_state: Any) -> Reservoir:
        """Draw rows of a first chunk."""
        limit = max_rows(training.schema.n_columns)
        picked, drawn = _draw(training, limit, random_state)
        assert training.table is not None
        table, labels = training.table, training.labels
        if len(picked) < training.n_rows or not isinstance(table, Table):
            table, labels = table.take(picked), labels[picked]
        columns = tuple(map(_stored, _given_columns(table)))
        labels = np.array(labels, dtype=np.uint32)
        return cls(columns, labels, *drawn, training.n_rows)

    def faded(self, factor: float) -> Reservoir:
        """Return the same rows with weights times a factor."""
        if factor == 1.0:
            return self
        return replace(
            self,
            weights=self.weights * factor,
            priorities=self.priorities * factor,
            threshold=self.threshold * factor,
            new_weight=self.new_weight * factor,
        )

    def with_rows(
        self, chunk: TrainingSet, places: Ints, random_state: Any, fades: bool
    ) -> Reservoir:
        """Draw from these rows and those of a chunk.

        ``places`` are the positions of the classes so far among those of the chunk.
        """
        assert isinstance(chunk.table, Table)
        limit = max_rows(len(self.columns))
        picked, drawn = _draw(chunk, limit, random_state, self, fades)
        columns = _joined(self.columns, chunk.table)
        labels = [places.astype(np.uint32)[self.labels], chunk.labels]
        return Reservoir(
            tuple(_stored(column.take(picked)) for column in columns),
            np.concatenate(labels).astype(np.uint32)[picked],
            *drawn,
            self.n_drawn_from + chunk.n_rows,
            self.new_weight + chunk.weight_here,
        )

    def is_refit_due(self, total: float) -> bool:
        """Whether enough of the weight of all rows is new."""
        return self.new_weight >= _REFIT_SHARE * (total - self.new_weight)

    def encoded(self, chunk: TrainingSet) -> TrainingSet:
        """Return these rows as the chunk is encoded, with the counts of all rows."""
        codes = chunk.encoder.encode(self._table(chunk.schema))
        rows = replace(chunk, codes=codes, labels=self.labels, is_kept=None)
        return self._for_all(rows, chunk.given_counts)

    def learned(self, chunk: TrainingSet) -> TrainingSet:
        """Return these rows as a fit encodes them, with the classes of a chunk.

        A row counts by its weight, whatever the weight of the rows that it represents.
        """
        table = self._table(chunk.schema)
        amounts = self.amounts / max(1.0, self.threshold / self.weights.max())
        weights = None if (amounts == 1.0).all() else amounts
        given = table, chunk.classes, self.labels, weights, chunk.preparation
        with warnings.catch_warnings():
            # Warnings about columns were given for the first chunk.
            warnings.simplefilter("ignore")
            learned = encode_table(*given)
        left_out = {*learned.schema.left_out}
        if absent := _absent(chunk.schema, self.columns) - left_out:
            encoder = learned.encoder
            learned = encode_table(*given, left_out=left_out | absent)
            learned.encoder.ranges_ = encoder.ranges_
            learned.encoder.suspects = encoder.suspects
        if self.threshold:
            encoder = copy(learned.encoder)
            encoder.schema_ = _with_values_of(learned.schema, chunk.schema)
            encoder.ranges_ = _ranges(learned, chunk)
            learned = replace(learned, encoder=encoder, codes=encoder.encode(table))
        return learned

    def for_all_rows(self, learned: TrainingSet, chunk: TrainingSet) -> TrainingSet:
        """Return rows that were learned anew with the weight and counts of all rows."""
        if not self.threshold:
            return learned
        given = learned.codes, self.labels, self.amounts
        sample = count(*given, learned.n_classes, learned.n_jobs)
        counts = _counts_of_all(sample, chunk.given_counts)
        return self._for_all(learned, counts)

    def _for_all(self, rows: TrainingSet, counts: Counts) -> TrainingSet:
        how, factors = rows.preparation.class_weight, None
        if how is not None:
            factors = class_factors(how, rows.classes, counts.by_class)
        return replace(
            rows,
            table=None,
            sample_weight=self.amounts,
            class_factors=factors,
            earlier=None,
            place=_CountedPlace(counts),
        )

    def _table(self, schema: TableSchema) -> Table:
        """Return the rows as a table; parts of dates that a model has stay there."""
        columns, n_rows = list(map(copy, self.columns)), len(self.labels)
        if columns[0].name is None:
            return Table(columns, n_rows, None)
        return with_date_parts(columns, n_rows, schema.names or ())


@dataclass(frozen=True)
class _CountedPlace(RowPlace):
    """Rows in memory that represent more rows, which have been counted."""

    counts: Counts

    def count(self, training: TrainingSet, weights: Floats | None) -> Counts:
        """Return the counts of all rows."""
        return self.counts


def _draw(
    new: TrainingSet,
    limit: int,
    random_state: Any,
    before: Reservoir | None = None,
    fades: bool = False,
) -> tuple[Ints, tuple[Floats, Floats, float]]:
    """Draw from the rows of a reservoir and new ones, whose positions follow.

    Return the positions of the rows that are kept, their weights and priorities, and
    the threshold.
    """
    weights, priorities, threshold, n_before = np.empty(0), np.empty(0), 0.0, 0
    if before is not None:
        weights, priorities = before.weights, before.priorities
        threshold, n_before = before.threshold, before.n_drawn_from
    picked = np.arange(len(weights))
    n_kept = len(picked)
    seed = check_random_state(random_state).randint(2**31)
    rng = np.random.default_rng([seed, n_before])
    for rows in pieces(slice(0, new.n_rows)):
        n_rows, first = rows.stop - rows.start, n_kept + rows.start
        u = np.ones(n_rows) if new.sample_weight is None else new.sample_weight[rows]
        weights = np.concatenate([weights, u])
        priorities = np.concatenate([priorities, u / (1.0 - rng.random(n_rows))])
        picked = np.concatenate([picked, np.arange(first, first + n_rows)])
        if len(picked) > limit:
            order = np.argsort(-priorities, kind="stable")
            threshold = max(threshold, float(priorities[order[limit]]))
            kept = np.sort(order[:limit])
            picked, weights, priorities = picked[kept], weights[kept], priorities[kept]
    if fades:
        # Rows whose weight has faded are kept by priority, so that they are few.
        least = _FADED * weights.max()
        kept = np.flatnonzero(priorities >= least)
        if len(kept) < len(picked):
            threshold = max(threshold, least)
            picked, weights, priorities = picked[kept], weights[kept], priorities[kept]
    return picked, (weights, priorities, threshold)


def max_rows(n_columns: int) -> int:
    """Return the largest number of rows that are kept of a table."""
    return min(MAX_KEPT, max(MIN_OF_WIDE, MAX_KEPT_CELLS // n_columns))


# ----------------------------------------------------------------------------- columns


def _given_columns(table: Table) -> list[TableColumn]:
    """Return the columns that the user gave; parts of dates are made of them."""
    return [column for column in table.columns if not isinstance(column, PartColumn)]


def _stored(column: TableColumn) -> TableColumn:
    """Return a column of cells that nobody else changes: dates, floats or a factor."""
    if isinstance(column, DayColumn):
        return DayColumn(column.position, column.name, column.dates.copy())
    is_category = column.declared is not None
    if column.storage == "numbers" and not is_category and not column.is_integer:
        numbers = np.array(column.finite_numbers)
        if not (np.abs(numbers) >= EXACT).any():
            return ArrayColumn(column.position, column.name, numbers)
    factor, is_ordered = column.finite_factor, column.order is not None
    values, positions = _merged_values(factor.values)
    # The entry added last is the one that index -1 picks.
    indices = np.append(positions, -1)[factor.indices]
    if not is_category:
        used, indices = np.unique(np.append(-1, indices), return_inverse=True)
        values, indices = [values[k] for k in used[1:]], indices[1:] - 1
    return FactorColumn(
        *(column.position, column.name),
        Factor(indices.astype(np.int32), values),
        column.storage,
        is_category=is_category,
        is_ordered=is_ordered,
        is_integer=column.is_integer,
    )


def _merged_values(
    values: Sequence[Any], earlier: Sequence[Any] = ()
) -> tuple[list[Any], Ints]:
    """Return distinct values, earlier ones first, and the position of each value."""
    position = {value: k for k, value in enumerate(earlier)}
    positions = [position.setdefault(value, len(position)) for value in values]
    return list(position), np.array(positions, dtype=np.int64)


def _joined(columns: Sequence[TableColumn], table: Table) -> list[TableColumn]:
    """Append the rows of a table, which a model has encoded, to stored columns."""
    chunk, n_rows = _given_columns(table), table.n_rows
    by_name: dict[Any, TableColumn] = dict(enumerate(chunk))
    keys: Sequence[Any] = range(len(columns))
    if columns[0].name is not None and table.names is not None:
        by_name = {column.name: column for column in chunk}
        keys = [column.name for column in columns]
    out = []
    for key, column in zip(keys, columns, strict=True):
        new = by_name.get(key)
        if new is None:
            # It was left out as an identifier, and is not given any more.
            new, column = _nothing(n_rows), _nothing(len(column), column)
        out.append(_appended(column, new))
    return out


def _absent(schema: TableSchema, columns: Sequence[TableColumn]) -> set[int]:
    """Return the columns that were left out as identifiers, and are not given now."""
    n = len(columns)
    return {j for j in schema.left_out if j < n and columns[j].cells == "nothing"}


def _nothing(n_rows: int, like: TableColumn | None = None) -> TableColumn:
    """Return a column of missing cells, in the place of another one."""
    place = (0, None) if like is None else (like.position, like.name)
    return FactorColumn(*place, Factor(np.full(n_rows, -1, np.int32), []), "nothing")


def _appended(column: TableColumn, new: TableColumn) -> TableColumn:
    """Return a stored column with the cells of another one appended."""
    place = column.position, column.name
    both, kinds = (column, new), {column.cells, new.cells} - {"nothing"}
    if any(isinstance(c, DayColumn) for c in both):
        nat = np.datetime64("NaT", "us")
        dates = [c.dates if isinstance(c, DayColumn) else [nat] * len(c) for c in both]
        return DayColumn(*place, np.concatenate(dates).astype("datetime64[us]"))
    new = _stored(new)
    if isinstance(column, ArrayColumn) and isinstance(new, ArrayColumn):
        return ArrayColumn(*place, np.concatenate([column.numbers(), new.numbers()]))
    factors = [c.factor() for c in both]
    if len(kinds) > 1 and "text" in kinds:
        # Only of a column that was left out, which nobody checks.
        factors = [Factor(f.indices, list(map(str, f.values))) for f in factors]
    values, positions = _merged_values(factors[1].values, factors[0].values)
    appended = np.append(positions, -1)[factors[1].indices]
    observed = [c for c in both if c.cells != "nothing"] or both
    storages = [c.storage for c in both if c.storage != "nothing"]
    return FactorColumn(
        *place,
        Factor(np.concatenate([factors[0].indices, appended]).astype(np.int32), values),
        max(storages, default="nothing"),
        is_category=any(c.declared is not None for c in both),
        is_ordered=all(c.order is not None for c in observed)
        and len({c.order for c in observed}) == 1,
        is_integer=all(c.is_integer for c in observed),
    )


# ------------------------------------------------------------------------------ counts


def _positions(schema: TableSchema) -> dict[Any, int]:
    """Return the position of each column by its name, or by itself without names."""
    names: Sequence[Any] = schema.names or range(schema.n_columns)
    return {name: j for j, name in enumerate(names)}


def _with_values_of(schema: TableSchema, before: TableSchema) -> TableSchema:
    """Return a schema with the categories of an earlier one, which rows may lack."""
    features, positions = list(schema.features), _positions(schema)
    for name, i in _positions(before).items():
        old = before.features[i]
        if name not in positions or old.kind != "categorical" or old.left_out:
            continue
        new = features[positions[name]]
        is_alike = "nothing" in (new.cells, old.cells) or new.cells == old.cells
        if new.kind == "categorical" and not new.left_out and is_alike:
            cells = new.cells if new.cells != "nothing" else old.cells
            has_code = new.missing_is_value or old.missing_is_value
            new = replace(new, cells=cells, missing_is_value=has_code)
            new = with_values(new, old.values, partial(list, old.values))
            features[positions[name]] = new
    return TableSchema(tuple(features))


def _counts_of_all(sample: Counts, before: Counts) -> Counts:
    """Return the counts of all rows by the schema of a sample of them.

    Those of categories, and of bins that stayed, are taken from ``before``. Others are
    those of the sample, in proportion to the weight of each class.
    """
    in_sample = sample.by_class > 0
    ratio = np.where(in_sample, before.by_class, 0.0)
    ratio = ratio / np.where(in_sample, sample.by_class, 1.0)
    counts, schema = sample.scaled(ratio), sample.schema
    by_code, moments = counts.by_code, counts.moments
    # A class that the sample lacks has rows, of which nothing else is known.
    by_code[schema.first_codes] += np.where(in_sample, 0.0, before.by_class)
    positions = _positions(schema)
    numbers, earlier = schema.gaussian.tolist(), before.schema.gaussian.tolist()
    for name, i in _positions(before.schema).items():
        j, old = positions.get(name), before.schema.features[i]
        if j is None or not _has_all_codes(schema.features[j], old):
            continue
        if not old.is_coded:
            g, h = numbers.index(j), earlier.index(i)
            moments.weight[g] = before.moments.weight[h]
            moments.mean[g] = before.moments.mean[h]
            moments.squares[g] = before.moments.squares[h]
            continue
        both = (TableSchema((feature,)) for feature in (old, schema.features[j]))
        of_column = by_code[slice(*schema.offsets[j : j + 2])]
        of_column[:] = 0.0
        codes_before = slice(*before.schema.offsets[i : i + 2])
        of_column[rows_in(*both)] = before.by_code[codes_before]
    return Counts(schema, before.by_class, by_code, moments)


def _has_all_codes(new: FeatureSchema, old: FeatureSchema) -> bool:
    """Whether an attribute has all codes of another, and missing cells go as there."""
    if new.kind != old.kind or new.left_out or old.left_out:
        return False
    if old.missing_is_value > new.missing_is_value or _fill(old) != _fill(new):
        return False
    if new.kind == "categorical":
        return {*old.values} <= {*new.values}
    return (new.edges, new.cuts, new.step) == (old.edges, old.cuts, old.step)


def _fill(feature: FeatureSchema) -> Any:
    """Return what replaces a missing cell: a category, or a number or bin."""
    if feature.fill is None or feature.kind != "categorical":
        return feature.fill
    return feature.values[int(feature.fill) - 1]


def _ranges(learned: TrainingSet, chunk: TrainingSet) -> list[Any]:
    """Return the ranges of numbers of all rows, of the sample for other columns."""
    names, before = learned.schema.names, chunk.schema.names
    of_sample, of_all = learned.encoder.ranges_, chunk.encoder.ranges_
    by_name = dict(zip(before or range(len(of_all)), of_all, strict=True))
    keys: Sequence[Any] = names or range(len(of_sample))
    both = zip(keys, of_sample, strict=True)
    return [by_name.get(key) or of_column for key, of_column in both]
