"""Rows in parts on other machines: one training, one place, one kind of passes.

Dask and Spark implement ``Parts`` and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from operator import attrgetter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from steelyard._common.arrays import Ints
from steelyard._common.files import WorkFolder
from steelyard.exceptions import TableError
from steelyard.fitting.recipe import Recipe
from steelyard.fitting.rows import PackedRows, Passes, join_rows
from steelyard.losses import Loss
from steelyard.model.base import RowPlace, RowsNeeded
from steelyard.model.streamed import Coding
from steelyard.model.training import Preparation, TrainingSet
from steelyard.proba.gaussian import GaussianTable
from steelyard.scale import parts as work
from steelyard.table.codes import MEMORY, Codes, Workspace
from steelyard.table.frames import Table, as_table
from steelyard.table.storage import DiskWorkspace, Store
from steelyard.weighting.base import Effect

MAX_PARTS = 24
"""Neighbouring partitions are taken together if there are twice as many or more."""

# Effects of more numbers are first added on each worker: then they need not travel for
# each part. The last digits of sums then depend on which worker has which part.
_MAX_BY_PART = 1_000_000


class Parts(Protocol):
    """Objects on other machines, one for each part of a table, in order."""

    def then(self, function: Callable[..., Any], *arguments: Any) -> Parts:
        """Apply a function to each, and keep the results on their machines."""

    def each(
        self, function: Callable[..., Any], given: Sequence[Any] | None = None
    ) -> list[Any]:
        """Apply a function to each, and to what is given for it; return a list."""

    def sum(self, function: Callable[..., Any], together: bool = False) -> Any:
        """Return the sum of a function over all, in any order if ``together``.

        None if there are no parts.
        """

    def tree_sum(self) -> Any:
        """Return the sum of all, in any order; None of nothing."""

    def one_by_one(self, function: Callable[..., Any]) -> Iterable[Any]:
        """Yield a function of each, in order, of which few are in memory at once."""

    def shared(self, value: Any) -> Any:
        """Return a value as an argument that travels once to each machine."""

    def encode(self, roles: work.Roles, coding: Any) -> Parts:
        """Return encoded rows; these are rows as given."""


@dataclass(frozen=True)
class SpreadColumns:
    """The columns of rows on other machines, from which some rows can be read."""

    partitions: Callable[[], Parts]
    roles: work.Roles

    def take(self, rows: Ints) -> Table:
        """Read the rows at some sorted positions."""
        parts = self.partitions()
        sizes = parts.each(partial(work.n_kept, roles=self.roles))
        picked = by_partition(rows, sizes)
        results = parts.each(partial(work.take_cells, roles=self.roles), picked)
        return as_table(
            work.concatenated([cells for some in results for cells in some])
        )


def refuse_all_rows(recipe: Recipe, owner: object, frame: str) -> None:
    """Refuse a method whose model is all rows, before anything is read."""
    if recipe.rows_needed == "all":
        raise TableError(
            f"{type(owner).__name__} needs all rows on one machine; it cannot learn "
            f"from {frame}. Write Parquet files and use sy.scan, or a method that is a "
            "sum, such as WANBIA-CLL."
        )


def spread_training(
    columns: SpreadColumns,
    preparation: Preparation,
    needed: RowsNeeded,
    has_weights: bool,
) -> TrainingSet:
    """Return a training set of rows that stay on their machines, if they can."""
    roles = columns.roles
    # Kept until they are encoded.
    raw = columns.partitions()
    encoder = preparation.encoding.encoder(None)
    how = roles, encoder, needed == "counts"
    summary = raw.then(work.summarise, *how).tree_sum()
    if summary is None or not summary.columns:
        raise TableError(
            "There is no row to learn from: all partitions are empty, or all weights "
            "are zero."
        )
    again = summary.second_reading(preparation.class_weight)
    if again is not None:
        summary.refine(raw.then(work.read_again, roles, again).tree_sum())
    coding = Coding.of(summary, preparation)
    of_workers = Preparation(preparation.encoding, preparation.estimation)
    there = replace(coding, encoder=copy(coding.encoder), preparation=of_workers)
    coding.encoder.n_jobs = preparation.n_jobs
    shared = raw.shared(there)
    if needed == "counts":
        training = coding.counted(
            summary, lambda: raw.then(work.count_part, roles, shared).tree_sum()
        )
    else:
        empty = coding.no_rows(has_weights)
        place = SpreadPlace(raw.encode(roles, shared), empty.codes)
        training = replace(place.training(coding.training(empty)), table=columns)
    exact, target = summary.cut_points_are_exact, roles.target
    training = replace(training, cut_points_are_exact=exact, target_name=target)
    if needed in ("per-row", "codes"):
        return training.place.here(training)
    return training


@dataclass(frozen=True)
class SpreadPlace(RowPlace):
    """Encoded rows that stay on their machines, a training set for each part."""

    parts: Parts
    empty: Codes
    """Codes of no rows in the schema of the parts."""

    is_here = False

    @cached_property
    def sizes(self) -> list[int]:
        """Number of rows of each part."""
        return self.parts.each(attrgetter("n_rows"))

    def each(
        self,
        training: TrainingSet,
        function: Callable[..., Any],
        given: Sequence[Any] | None = None,
    ) -> list[Any]:
        """Apply a function to each part; return a list."""
        return self.parts.each(function, given)

    def sum(
        self,
        training: TrainingSet,
        function: Callable[[TrainingSet], Any],
        is_exact: bool = False,
    ) -> Any:
        """Return the sum of a function over parts."""
        return self.parts.sum(function, together=is_exact)

    def map(
        self, training: TrainingSet, function: Callable[[TrainingSet], TrainingSet]
    ) -> TrainingSet:
        """Apply a function to each part; return the training set of the results."""
        made = function(replace(training, codes=self.empty))
        return SpreadPlace(self.parts.then(function), made.codes).training(made)

    def training(self, made: TrainingSet) -> TrainingSet:
        """Return a training set of the parts, with all else from one without rows."""
        codes = Codes(self.empty.schema, sum(self.sizes), ())
        return replace(made, codes=codes, place=self)

    def take(self, training: TrainingSet, rows: Ints) -> TrainingSet:
        """Return some rows in memory, in the order of the table."""
        given = by_partition(rows, self.sizes)
        store = self._store(training, MEMORY, len(rows))
        for some in filter(None, self.parts.each(work.take_rows, given)):
            store.append(*some)
        return self._stored(replace(training, table=None), store)

    def here(self, training: TrainingSet) -> TrainingSet:
        """Return all rows in files of this machine, a byte for each cell."""
        folder, n_rows = WorkFolder(None), training.n_rows
        size = Store.bytes_per_row(training.schema, training.n_classes, True)
        folder.ensure_space(n_rows * size)
        store = self._store(training, DiskWorkspace(folder), n_rows)
        for part in self.parts.one_by_one(work.rows_of):
            store.append(*part)
        kept = self.parts.each(attrgetter("is_kept", "n_rows"))
        is_kept = None
        if any(mask is not None for mask, _ in kept):
            is_kept = np.concatenate(
                [np.ones(n, dtype=bool) if mask is None else mask for mask, n in kept]
            )
        return replace(self._stored(training, store), is_kept=is_kept)

    def passes(
        self, training: TrainingSet, missing: Any, gaussian: GaussianTable
    ) -> Passes:
        """Return the rows prepared for passes, on their machines."""
        prepared = self.parts.then(work.prepare, missing, gaussian)
        return SpreadPasses(prepared, training, missing, gaussian)

    def _store(self, training: TrainingSet, workspace: Workspace, n_rows: int) -> Store:
        has_weights = training.sample_weight is not None
        n_classes = training.n_classes
        return Store(
            workspace, training.schema, n_rows, n_classes, has_weights=has_weights
        )

    def _stored(self, training: TrainingSet, store: Store) -> TrainingSet:
        rows = store.finish()
        return replace(
            training,
            codes=rows.codes,
            labels=rows.labels,
            sample_weight=rows.weights,
            is_kept=None,
            place=RowPlace(),
        )


def by_partition(rows: Ints, sizes: Sequence[int]) -> list[Ints]:
    """Cut sorted positions by partition, counted from its first row."""
    first = np.cumsum([0, *sizes])
    ends = np.searchsorted(rows, first)
    cuts = zip(pairwise(ends), first[:-1], strict=True)
    return [rows[lo:hi] - start for (lo, hi), start in cuts]


@dataclass(frozen=True)
class SpreadPasses:
    """Training rows on other machines, as passes read them."""

    prepared: Parts
    training: TrainingSet
    missing: NDArray[np.bool_]
    gaussian: GaussianTable

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.training.n_rows

    @cached_property
    def total_weight(self) -> float:
        """Sum of the row weights."""
        return float(self.prepared.sum(_total_weight))

    def evaluate(self, loss: Loss, effect: Effect) -> tuple[float, Effect]:
        """Return a loss and its gradient with respect to the effect of weights."""
        return self._sum(effect.table.size, "evaluate", loss, effect)

    def evaluate_mixture(
        self, alpha: float, halves: tuple[Effect, Effect], printed: bool
    ) -> tuple[float, float, Effect, Effect]:
        """Return the squared error of a mixture, and its three gradients."""
        size = 2 * halves[0].table.size
        return self._sum(size, "evaluate_mixture", alpha, halves, printed)

    def _sum(self, size: int, method: str, *given: Any) -> Any:
        function = partial(work.ask, method=method, given=given)
        return self.prepared.sum(function, together=size > _MAX_BY_PART)

    def with_densities(self, gaussian: GaussianTable) -> SpreadPasses:
        """Return the same rows with other densities of Gaussian attributes."""
        prepared = self.prepared.then(work.ask, "with_densities", (gaussian,))
        return replace(self, prepared=prepared, gaussian=gaussian)

    def take(self, picked: Ints | None) -> PackedRows:
        """Return some rows in memory, or all, for second derivatives."""
        rows = np.arange(self.n_rows) if picked is None else picked
        return join_rows(self.training.take(rows), self.missing, self.gaussian)


def _total_weight(rows: PackedRows | None) -> float:
    return 0.0 if rows is None else rows.total_weight
