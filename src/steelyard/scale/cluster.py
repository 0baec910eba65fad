"""Partitions on the workers of a cluster: one task for each worker and pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
from dask.delayed import delayed
from dask.sizeof import sizeof
from distributed import Client, Future, KilledWorker, get_worker, wait

from steelyard.exceptions import TableError
from steelyard.fitting.rows import PackedRows
from steelyard.model.training import TrainingSet
from steelyard.scale import parts as work
from steelyard.scale.spread import MAX_PARTS

# Dask would take them for a few bytes, move them, and not spill them to disk.
sizeof.register(TrainingSet, work.n_bytes)
sizeof.register(PackedRows, work.n_bytes)

# Bytes of partitions that are taken together.
_MAX_BYTES = 1 << 28

# Partitions that are sent here at once.
_MAX_SENT = 2


class DaskParts:
    """Objects on workers, one for each partition or some, in the order of partitions.

    Nothing is scattered: each is the result of a task, which the scheduler runs again
    if a worker is lost.
    """

    def __init__(self, client: Client, futures: list[Future[Any]]) -> None:
        self.client, self.futures = client, futures
        self._groups: list[tuple[str, list[int]]] | None = None

    def then(self, function: Callable[..., Any], *arguments: Any) -> DaskParts:
        """Apply a function to each partition, and keep the results on their workers."""
        submit = partial(self.client.submit, function, pure=False)
        futures = [submit(future, *arguments) for future in self.futures]
        return DaskParts(self.client, futures)

    def each(
        self,
        function: Callable[..., Any],
        given: Sequence[Any] | None = None,
        together: bool = False,
    ) -> list[Any]:
        """Apply a function to each partition; return results, or sums by worker."""
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

    @classmethod
    def of(cls, client: Client, cells: list[Any], *rest: list[Any]) -> DaskParts:
        """Return partitions in lists, several in each if there are many.

        All are delayed: cells, labels and weights by partition, or nothing. A pass over
        a partition costs more than its rows if these are few. Sizes are estimated from
        three partitions.
        """
        size = max(1, len(cells) // MAX_PARTS)
        if size > 1:
            some = client.compute([cells[k] for k in (0, len(cells) // 2, -1)])
            wait(some)
            if any(future.status == "error" for future in some):
                raise failure(some)
            sizes = client.nbytes([future.key for future in some], summary=False)
            size = max(1, min(size, _MAX_BYTES // max(1, *sizes.values())))
        group = delayed(work.grouped, pure=False)
        grouped = []
        for first in range(0, len(cells), size):
            columns = [column[first : first + size] for column in (cells, *rest)]
            grouped.append(group(first, *columns))
        return cls(client, client.compute(grouped))

    def one_by_one(self, function: Callable[..., Any]) -> Iterator[Any]:
        """Yield a function of each, in order, of which few are in memory at once."""
        futures = self.then(function).futures
        for first in range(0, len(futures), _MAX_SENT):
            some = futures[first : first + _MAX_SENT]
            yield from gathered(self.client, some, self.futures)

    def shared(self, value: Any) -> Any:
        """Return a task, so that each worker gets it once, and again if it is lost."""
        return self.client.submit(work.same, value, pure=False)

    def encode(self, roles: work.Roles, coding: Any) -> DaskParts:
        """Return rows as codes, for passes in all threads of a worker."""
        return self.then(_encode, roles, coding)

    def tree_sum(self) -> Any:
        """Return the sum of all, added on the workers two by two."""
        futures = self.futures
        while len(futures) > 1:
            pairs = zip(futures[::2], futures[1::2], strict=False)
            last = futures[len(futures) & ~1 :]
            summed = [self.client.submit(work.add, a, b, pure=False) for a, b in pairs]
            futures = summed + last
        return gathered(self.client, futures, self.futures)[0]

    def _by_worker(self) -> list[tuple[str, list[int]]]:
        """Return the workers, each with the positions of its partitions."""
        wait(self.futures)
        if any(future.status == "error" for future in self.futures):
            raise failure(self.futures)
        holders = self.client.who_has(self.futures)
        groups: dict[str, list[int]] = {}
        for k, future in enumerate(self.futures):
            # Several workers may have it, or nobody just after one was lost.
            workers = sorted(holders.get(future.key, ()))
            groups.setdefault(workers[0] if workers else "", []).append(k)
        lost = groups.pop("", [])
        workers = list(groups) or list(self.client.scheduler_info()["workers"])
        for turn, k in enumerate(lost):
            groups.setdefault(workers[turn % len(workers)], []).append(k)
        return sorted(groups.items(), key=lambda group: group[1][0])


def _encode(group: list[work.Partition], roles: work.Roles, coding: Any) -> Any:
    return work.encode(group, roles, coding, int(get_worker().state.nthreads))


def _run(
    function: Callable[..., Any],
    parts: Sequence[Any],
    given: Sequence[Any] | None,
    together: bool,
) -> tuple[str, list[Any]]:
    """Apply a function to all partitions of a worker; return its address as well.

    Results are a list, of their sum alone if ``together``.
    """
    arguments = zip(parts) if given is None else zip(parts, given, strict=True)
    results = (function(*argument) for argument in arguments)
    total = [reduce(work.add, results)] if together else list(results)
    return get_worker().address, total


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
    """Return the error of the first partition with one, or of a task that needs them.

    If workers die of a partition, the error says what to do.
    """
    wait(partitions)
    failed = [k for k, f in enumerate(partitions) if f.status == "error"]
    first = partitions[failed[0]].exception() if failed else error
    if first is not None and not isinstance(first, KilledWorker):
        return first
    failing = f"partition {failed[0]}" if failed else "the partitions"
    return TableError(
        f"Workers died over {failing} of {len(partitions)}, most likely for lack of "
        "memory. Cut the frame into smaller parts, for example by "
        "repartition(partition_size='64MB'), or give workers more memory."
    )
