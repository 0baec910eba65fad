"""Parts of a table on the workers of a cluster: one task for each worker and pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from itertools import pairwise
from operator import attrgetter
from typing import Any

import numpy as np
from dask.sizeof import sizeof
from distributed import Client, Future, KilledWorker, get_worker, wait
from numpy.typing import NDArray

from steelyard._common.arrays import Ints
from steelyard._common.files import WorkFolder
from steelyard.exceptions import TableError
from steelyard.fitting.rows import PackedRows, Passes, join_rows
from steelyard.losses import Loss
from steelyard.model.training import RowPlace, TrainingSet
from steelyard.proba.gaussian import GaussianTable
from steelyard.scale import parts as work
from steelyard.table.codes import MEMORY, Codes, Workspace
from steelyard.table.storage import DiskWorkspace, Store
from steelyard.weighting.base import Effect

# What Dask would take for a few bytes, it would move and forget to spill.
sizeof.register(TrainingSet, work.n_bytes)
sizeof.register(PackedRows, work.n_bytes)

# Effects of more numbers are added on each worker first: then they need not travel
# for each partition. Sums then depend on which worker has which partition, in the last
# digits.
_MOST_BY_PART = 1_000_000

# So many partitions are on their way here at once.
_AHEAD = 2


class Parts:
    """Objects on workers, one for each partition, in the order of partitions.

    Nothing is scattered: each is the result of a task, which the scheduler runs again
    where a worker is lost.
    """

    def __init__(self, client: Client, futures: list[Future[Any]]) -> None:
        self.client, self.futures = client, futures
        self._groups: list[tuple[str, list[int]]] | None = None

    def then(self, function: Callable[..., Any], *arguments: Any) -> Parts:
        """Return what a function makes of each, kept where that is."""
        submit = partial(self.client.submit, function, pure=False)
        return Parts(
            self.client, [submit(future, *arguments) for future in self.futures]
        )

    def each(
        self,
        function: Callable[..., Any],
        given: Sequence[Any] | None = None,
        together: bool = False,
    ) -> list[Any]:
        """Return a function of each, in order, or sums by worker if ``together``."""
        if self._groups is None:
            self._groups = self._by_worker()
        tasks = [
            self.client.submit(
                _run,
                function,
                [self.futures[k] for k in members],
                None if given is None else [given[k] for k in members],
                together,
                workers=[address],
                allow_other_workers=True,
                pure=False,
            )
            for address, members in self._groups
        ]
        done = gathered(self.client, tasks, self.futures)
        members = [k for _, of_worker in self._groups for k in of_worker]
        if [ran for ran, _ in done] != [address for address, _ in self._groups]:
            # A worker was lost: its partitions are elsewhere now.
            self._groups = None
        results = [result for _, of_worker in done for result in of_worker]
        if together:
            return results
        return [results[k] for k in np.argsort(members)]

    def sum(self, function: Callable[..., Any], together: bool = False) -> Any:
        """Return the sum of a function of each, in the order of partitions."""
        return reduce(work.add, self.each(function, together=together))

    def tree_sum(self) -> Any:
        """Return the sum of what is there, added on the workers two by two."""
        futures = self.futures
        while len(futures) > 1:
            pairs = zip(futures[::2], futures[1::2], strict=False)
            last = futures[len(futures) & ~1 :]
            summed = [self.client.submit(work.add, a, b, pure=False) for a, b in pairs]
            futures = summed + last
        return gathered(self.client, futures, self.futures)[0]

    def _by_worker(self) -> list[tuple[str, list[int]]]:
        """Return the workers, each with the positions of what it holds."""
        wait(self.futures)
        if any(future.status == "error" for future in self.futures):
            raise failure(self.futures)
        holders = self.client.who_has(self.futures)
        groups: dict[str, list[int]] = {}
        for k, future in enumerate(self.futures):
            # Several may hold it; none does just after one was lost.
            where = sorted(holders.get(future.key, ()))
            groups.setdefault(where[0] if where else "", []).append(k)
        lost = groups.pop("", [])
        known = list(groups) or list(self.client.scheduler_info()["workers"])
        for turn, k in enumerate(lost):
            groups.setdefault(known[turn % len(known)], []).append(k)
        return sorted(groups.items(), key=lambda group: group[1][0])


def _run(
    function: Callable[..., Any],
    held: Sequence[Any],
    given: Sequence[Any] | None,
    together: bool,
) -> tuple[str, list[Any]]:
    """Work on all partitions of a worker; say which worker it was."""
    return get_worker().address, work.over_parts(function, held, given, together)


def n_threads() -> int:
    """Return how many threads the worker has that runs this."""
    return int(get_worker().state.nthreads)


def gathered(
    client: Client, tasks: list[Future[Any]], partitions: list[Future[Any]]
) -> Any:
    """Return the results of tasks that depend on partitions."""
    try:
        return client.gather(tasks)
    except Exception as error:
        raise failure(partitions, error) from error


def failure(
    partitions: list[Future[Any]], error: BaseException | None = None
) -> BaseException:
    """Return the error of the first partition that has one, or of what depends on them.

    Where workers die over a partition, it says what to do.
    """
    wait(partitions)
    failed = [k for k, f in enumerate(partitions) if f.status == "error"]
    first = partitions[failed[0]].exception() if failed else error
    if first is not None and not isinstance(first, KilledWorker):
        return first
    where = f"partition {failed[0]}" if failed else "the partitions"
    return TableError(
        f"Workers died over {where} of {len(partitions)}, most likely for lack of "
        "memory. Cut the frame into smaller parts, for example by "
        "repartition(partition_size='64MB'), or give workers more memory."
    )


@dataclass(frozen=True)
class DaskPlace(RowPlace):
    """Rows that stay on the workers, encoded, a training set for each partition."""

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
        """Return a function of each part, in their order."""
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
        """Return the training set of parts that a function makes of these."""
        made = function(replace(training, codes=self.empty))
        return DaskPlace(self.parts.then(function), made.codes).training(made)

    def training(self, made: TrainingSet) -> TrainingSet:
        """Return a training set of the parts, with all else from one without rows."""
        codes = Codes(self.empty.schema, sum(self.sizes), ())
        return replace(made, codes=codes, place=self)

    def take(self, training: TrainingSet, rows: Ints) -> TrainingSet:
        """Return some rows in memory, in the order of the table."""
        given = by_partition(rows, self.sizes)
        found = [part for part in self.parts.each(work.take_rows, given) if part]
        store = self._store(training, MEMORY, len(rows))
        for part in found:
            store.append(*part)
        return self._stored(replace(training, table=None), store)

    def here(self, training: TrainingSet) -> TrainingSet:
        """Return all rows in files of this machine, a byte for each cell."""
        folder, n_rows = WorkFolder(None), training.n_rows
        size = Store.bytes_per_row(training.schema, training.n_classes, True)
        folder.ensure_space(n_rows * size)
        store = self._store(training, DiskWorkspace(folder), n_rows)
        futures = self.parts.then(work.rows_of).futures
        for first in range(0, len(futures), _AHEAD):
            some = futures[first : first + _AHEAD]
            for part in gathered(self.parts.client, some, self.parts.futures):
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
        """Return the rows prepared for passes, on the workers."""
        prepared = self.parts.then(work.prepare, missing, gaussian)
        return DaskRows(prepared, training, missing, gaussian)

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
class DaskRows:
    """Training rows on workers, as passes read them."""

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
        return self.prepared.sum(function, together=size > _MOST_BY_PART)

    def with_densities(self, gaussian: GaussianTable) -> DaskRows:
        """Return the same rows with other densities of Gaussian attributes."""
        prepared = self.prepared.then(work.ask, "with_densities", (gaussian,))
        return replace(self, prepared=prepared, gaussian=gaussian)

    def take(self, picked: Ints | None) -> PackedRows:
        """Return some rows in memory, or all, for second derivatives."""
        rows = np.arange(self.n_rows) if picked is None else picked
        return join_rows(self.training.take(rows), self.missing, self.gaussian)


def _total_weight(rows: PackedRows | None) -> float:
    return 0.0 if rows is None else rows.total_weight
