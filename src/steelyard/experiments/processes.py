"""The fits of a comparison, in processes that may die, and how far they are."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from queue import Empty
from threading import Thread
from typing import Any

from joblib.externals.loky import ProcessPoolExecutor

from steelyard._common.files import WorkFolder
from steelyard.experiments.data.dataset import DataSet
from steelyard.experiments.journal import Journal, read_journal
from steelyard.experiments.results import KEY
from steelyard.experiments.work import FoldTask, Worker, WorkPlan, failed_row

# How often a worker looks whether the process that started it is there.
_PARENT_SECONDS = 0.25

Done = Callable[[FoldTask, list[dict[str, Any]]], None]


def run_tasks(
    plan: WorkPlan, tasks: Sequence[FoldTask], n_workers: int, done: Done
) -> None:
    """Run tasks in order, and hand the rows of each to ``done``.

    A fit that ends its process is a row with that error, and the others go on.
    """
    if n_workers > 1:
        _run_in_processes(plan, tasks, n_workers, done)
        return
    with closing(Worker(plan)) as worker:
        for task in tasks:
            done(task, worker.run(task))


def _run_in_processes(
    plan: WorkPlan, tasks: Sequence[FoldTask], n_workers: int, done: Done
) -> None:
    with WorkFolder() as folder:
        plan = _pickled(plan, folder.path)
        left = list(tasks)
        while left:
            left = _until_broken(plan, left, n_workers, done)
            # A worker died: the tasks at hand are run again, one fit after the other,
            # to find out which fit it was. The rest goes on as before.
            suspects, left = left[: n_workers + 1], left[n_workers + 1 :]
            _run_one_by_one(plan, suspects, done)


def _until_broken(
    plan: WorkPlan, tasks: Sequence[FoldTask], n_workers: int, done: Done
) -> list[FoldTask]:
    """Run tasks in order until all are done or a worker dies; return what is left."""
    left = list(tasks)
    waiting = iter(tasks)
    start = (plan, os.getpid())
    pool = ProcessPoolExecutor(n_workers, initializer=_start, initargs=start)
    try:
        # One task more than there are workers: none waits for work, and few tasks are
        # at hand when the run ends early.
        at_hand = {
            pool.submit(_run, task): task for task in islice(waiting, n_workers + 1)
        }
        while at_hand:
            for future in wait(at_hand, return_when=FIRST_COMPLETED).done:
                task = at_hand.pop(future)
                done(task, future.result())
                left.remove(task)
                for new in islice(waiting, 1):
                    at_hand[pool.submit(_run, new)] = new
    except BrokenProcessPool:
        pass
    finally:
        # All end at once, also in the middle of a fit: rows of other fits are written,
        # and to leave in good order takes a worker a second.
        _forget_waiting(pool)
        with warnings.catch_warnings():
            # Without `psutil` and `pgrep` workers' own children are not looked for.
            warnings.simplefilter("ignore", UserWarning)
            pool.shutdown(wait=True, kill_workers=True)
    return left


def _forget_waiting(pool: ProcessPoolExecutor) -> None:
    """Take back tasks that the pool's thread has not yet handed to a worker.

    A shutdown that kills drops the tasks but not their numbers, on which that thread
    then fails with a traceback (loky of joblib 1.4 to 1.6).
    """
    with suppress(Empty):
        while True:
            pool._work_ids.get_nowait()


def _run_one_by_one(plan: WorkPlan, tasks: Sequence[FoldTask], done: Done) -> None:
    """Run fits in one process; if it dies, that is the error of the fit it was at.

    Fits that the journal has by now are not run again.
    """
    rows = [] if plan.journal is None else read_journal(plan.journal)[1]
    fits = {tuple(row[field] for field in KEY): row for row in rows}
    left = []
    for task in tasks:
        for name in task.methods:
            fit = replace(task, methods=(name,), cost=task.cost / len(task.methods))
            row = fits.get(task.key(name))
            if row is None or row["error"] is not None:
                left.append(fit)
            else:
                done(fit, [row])
    while left:
        left = _until_broken(plan, left, 1, done)
        for deadly in left[:1]:
            row = failed_row(deadly, "The process died, perhaps for lack of memory.")
            if plan.journal is not None:
                with Journal(plan.journal) as file:
                    file.append(row)
            done(deadly, [row])
        left = left[1:]


def _pickled(plan: WorkPlan, folder: Path) -> WorkPlan:
    """Write data sets to files, which workers read when they come to them."""
    paths: dict[str, DataSet | Path] = {}
    for i, (name, entry) in enumerate(plan.data.items()):
        path = folder / f"{i}.pickle"
        path.write_bytes(pickle.dumps(entry, protocol=pickle.HIGHEST_PROTOCOL))
        paths[name] = path
    return replace(plan, data=paths)


_worker: Worker | None = None


def _start(plan: WorkPlan, parent: int) -> None:
    """Make the worker of this process."""
    global _worker
    # Ctrl-C reaches all processes; the first of them ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_leave_with_parent, args=(parent, plan), daemon=True).start()
    _worker = Worker(plan)


def _leave_with_parent(parent: int, plan: WorkPlan) -> None:
    """End this process when the one that started it was killed."""
    while os.getppid() == parent:
        time.sleep(_PARENT_SECONDS)
    for path in plan.data.values():
        if isinstance(path, Path):
            shutil.rmtree(path.parent, ignore_errors=True)
    os._exit(1)


def _run(task: FoldTask) -> list[dict[str, Any]]:
    assert _worker is not None
    return _worker.run(task)


class Progress:
    """How far a run is: fits that are done, that failed, and those that run.

    Tasks come in the order in which they start; `n_jobs` run at once.
    """

    def __init__(self, tasks: Sequence[FoldTask], n_jobs: int) -> None:
        # Workers take tasks in order: the first that are not done are those that run. A
        # task that is run fit by fit is gone with the first of them.
        self._open = {task.key(""): task for task in tasks}
        self._n_jobs = n_jobs
        self._fits = sum(len(task.methods) for task in tasks)
        self._fits_done = self._failed = 0

    def done(self, task: FoldTask, rows: Sequence[dict[str, Any]]) -> str:
        """Count a task as done, and say how far the run is."""
        self._open.pop(task.key(""), None)
        self._fits_done += len(rows)
        self._failed += sum(row["status"] != "ok" for row in rows)
        return self.text()

    def text(self) -> str:
        """Say how far the run is."""
        parts = [f"{self._fits_done} of {self._fits} fits"]
        if self._failed:
            parts.append(f"{self._failed} failed")
        running = [task.label for task in self._open.values()][: self._n_jobs]
        if running:
            parts.append(f"running {', '.join(running)}")
        return " · ".join(parts)
