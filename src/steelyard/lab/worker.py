"""The fits of a comparison: tasks of several methods on one fold, in processes."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from queue import Empty
from threading import Thread
from time import perf_counter
from typing import Any

import numpy as np
from joblib.externals.loky import ProcessPoolExecutor
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from steelyard._common.files import WorkFolder
from steelyard._common.text import as_plain
from steelyard.evaluation.evaluate import split_rows
from steelyard.evaluation.metrics import reliability_bins, score_predictions
from steelyard.io.dataset import DataSet
from steelyard.lab.journal import Journal, read_journal
from steelyard.lab.protocols import PROTOCOLS, Prepared
from steelyard.lab.results import COLUMNS, KEY

# Smallest weight that counts as an attribute selected.
_MIN_SELECTED_WEIGHT = 1e-6
_MAX_ERROR_LENGTH = 500


@dataclass(frozen=True)
class FoldTask:
    """Some methods, on one fold of one data set."""

    protocol: str
    dataset: str
    repeat: int
    fold: int
    methods: tuple[str, ...]
    cost: float = 1.0

    def key(self, method: str) -> tuple[Any, ...]:
        """Return the fields that identify the fit of a method."""
        return self.dataset, method, self.protocol, self.repeat, self.fold

    @property
    def label(self) -> str:
        """The name that progress shows."""
        return f"{self.dataset} fold {self.fold + 1}"


@dataclass(frozen=True)
class WorkPlan:
    """Everything a worker needs; data sets of processes are files, pickled."""

    data: Mapping[str, DataSet | Path]
    estimators: Mapping[str, Any]
    folds: int
    seed: int
    journal: Path | None


class Worker:
    """Runs one task after another, and caches the last data set."""

    def __init__(self, plan: WorkPlan) -> None:
        self.plan = plan
        self.journal = None if plan.journal is None else Journal(plan.journal)
        # Tasks of one data set follow each other: caching the last one suffices.
        self._loaded = lru_cache(1)(self._load)
        self._prepared = lru_cache(1)(self._prepare)
        self._splits = lru_cache(1)(self._split)

    def close(self) -> None:
        """Close the journal."""
        if self.journal is not None:
            self.journal.close()

    def run(self, task: FoldTask) -> list[dict[str, Any]]:
        """Fit each method, and return its rows, which are in the journal by then."""
        rows = []
        with threadpool_limits(limits=1):
            for name in task.methods:
                row = as_plain(self._fit(task, name))
                if self.journal is not None:
                    self.journal.append(row)
                rows.append(row)
        return rows

    def _fit(self, task: FoldTask, name: str) -> dict[str, Any]:
        _, classes, codes = self._loaded(task.dataset)
        train, test = self._splits(task.dataset, task.repeat)[task.fold]
        row = _empty_row(task, name)
        row |= {"n_train": len(train), "n_test": len(test), "n_classes": len(classes)}
        true = codes[test]
        seen = np.bincount(codes[train], minlength=len(classes)) > 0
        row["n_unseen_class"] = int((~seen[true]).sum())
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                prepared = self._prepared(task.dataset, task.protocol)
                protocol = PROTOCOLS[task.protocol]
                estimator = protocol.adapt(self.plan.estimators[name], len(classes))
                _pin(estimator, self.plan.seed)
                table = prepared.table_for(estimator)
                parts = table.iloc[train], prepared.target[train], table.iloc[test]
                row |= _measure(estimator, parts, classes, true, seen)
            except Exception as error:
                text = " ".join(f"{type(error).__name__}: {error}".split())
                row |= {"status": "error", "error": text[:_MAX_ERROR_LENGTH]}
        row["warnings"] = len(caught)
        return row

    def _load(self, name: str) -> tuple[DataSet, NDArray[Any], NDArray[np.intp]]:
        """Return a data set, its classes, and the class of each row as a position."""
        entry = self.plan.data[name]
        if isinstance(entry, Path):
            # Written by this run, in a new folder.
            entry = pickle.loads(entry.read_bytes())
        return entry, *np.unique(entry.target, return_inverse=True)

    def _prepare(self, name: str, protocol: str) -> Prepared:
        return PROTOCOLS[protocol].prepare(self._loaded(name)[0])

    def _split(self, name: str, repeat: int) -> list[tuple[Any, Any]]:
        target = self._loaded(name)[0].target
        return split_rows(target, self.plan.folds, self.plan.seed + repeat)


def failed_row(task: FoldTask, message: str) -> dict[str, Any]:
    """Return the row of a task's first fit, which failed without one."""
    return _empty_row(task, task.methods[0]) | {"status": "error", "error": message}


def _empty_row(task: FoldTask, name: str) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(COLUMNS)
    row |= zip(KEY, task.key(name), strict=True)
    return row | {"status": "ok", "warnings": 0, "extra": {}}


def _pin(estimator: Any, seed: int) -> None:
    """Give a classifier and its components one thread, and a seed if they have none."""
    chosen = {}
    for name, value in estimator.get_params(deep=True).items():
        word = name.rpartition("__")[2]
        if word == "n_jobs":
            chosen[name] = 1
        elif word == "random_state" and value is None:
            chosen[name] = seed
    estimator.set_params(**chosen)


def _measure(
    estimator: Any,
    parts: tuple[Any, NDArray[Any], Any],
    classes: NDArray[Any],
    true: NDArray[np.intp],
    seen: NDArray[np.bool_],
) -> dict[str, Any]:
    """Fit, predict and score one classifier."""
    train, labels, test = parts
    _reset_peak_memory()
    start = perf_counter()
    estimator.fit(train, labels)
    fitted = perf_counter()
    predicted, probabilities, scores = _predict(estimator, test, classes)
    end = perf_counter()
    row: dict[str, Any] = {
        "fit_seconds": fitted - start,
        "predict_seconds": end - fitted,
        "peak_memory_mb": _peak_memory(),
        "extra": _facts(estimator),
    }
    if probabilities is not None:
        confidence = probabilities.max(axis=1)
        row["extra"]["reliability"] = reliability_bins(true == predicted, confidence)
    return row | score_predictions(true, predicted, probabilities, seen, scores)


def _predict(
    estimator: Any, table: Any, classes: NDArray[Any]
) -> tuple[NDArray[np.intp], Any, Any]:
    """Return predictions, probabilities or None, and scores or None, by class."""
    place = np.searchsorted(classes, estimator.classes_)
    if hasattr(estimator, "predict_proba"):
        proba = _spread(estimator.predict_proba(table), place, len(classes), 0.0)
        if not np.isfinite(proba).all():
            raise ValueError("Some probabilities are not finite.")
        return place[proba[:, place].argmax(axis=1)], proba, None
    predicted = np.searchsorted(classes, estimator.predict(table))
    if not hasattr(estimator, "decision_function"):
        return predicted, None, None
    scores = estimator.decision_function(table)
    if scores.ndim == 1:
        scores = np.column_stack([-scores, scores])
    return predicted, None, _spread(scores, place, len(classes), scores.min())


def _spread(
    values: NDArray[Any], place: NDArray[np.intp], n_classes: int, rest: float
) -> NDArray[np.float64]:
    """Give columns to the classes that training did not see."""
    spread = np.full((len(values), n_classes), rest, dtype=np.float64)
    spread[:, place] = values
    return spread


def _facts(estimator: Any) -> dict[str, Any]:
    """Return what papers tabulate of fitted classifiers, if this one has it."""
    facts: dict[str, Any] = {}
    alpha = getattr(estimator, "alpha_", None)
    if alpha is not None and np.ndim(alpha) == 0:
        facts["alpha"] = float(alpha)
    weights = getattr(estimator, "attribute_weights_", None)
    selected = getattr(estimator, "selected_features_", None)
    if selected is not None:
        facts["selected"] = len(selected) / estimator.n_features_in_
    elif weights is not None and np.ndim(weights) == 1:
        facts["selected"] = float(np.mean(np.abs(weights) > _MIN_SELECTED_WEIGHT))
    for name, attribute in (("n_iter", "n_iter_"), ("rounds", "n_rounds_")):
        if hasattr(estimator, attribute):
            facts[name] = int(np.max(getattr(estimator, attribute)))
    return facts


def _reset_peak_memory() -> None:
    """Reset the peak memory of this process on Linux; do nothing elsewhere."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak_memory() -> float | None:
    """Return the peak memory of this process since the reset, in megabytes."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return None
    lines = (line.split() for line in status.splitlines())
    return next((int(line[1]) / 1024 for line in lines if line[0] == "VmHWM:"), None)


# ---------------------------------------------------------------------------- processes


# How often a worker checks that the process that started it is alive.
_PARENT_SECONDS = 0.25

Done = Callable[[FoldTask, list[dict[str, Any]]], None]


def run_tasks(
    plan: WorkPlan, tasks: Sequence[FoldTask], n_workers: int, done: Done
) -> None:
    """Run tasks in order, and call ``done`` with the rows of each.

    A fit that kills its process gets a row with that error, and the others go on.
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
            # A worker died: pending tasks are run again, one fit at a time, to find
            # the fit that killed it. The others continue as before.
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
        # One task more than workers: none is idle, and few tasks are pending when the
        # run ends early.
        pending = {
            pool.submit(_run, task): task for task in islice(waiting, n_workers + 1)
        }
        while pending:
            for future in wait(pending, return_when=FIRST_COMPLETED).done:
                task = pending.pop(future)
                done(task, future.result())
                left.remove(task)
                for new in islice(waiting, 1):
                    pending[pool.submit(_run, new)] = new
    except BrokenProcessPool:
        pass
    finally:
        # Workers are killed, even in the middle of a fit: rows of other fits are
        # written, and an orderly exit takes a worker a second.
        _forget_waiting(pool)
        with warnings.catch_warnings():
            # Without `psutil` and `pgrep` workers' own children are not looked for.
            warnings.simplefilter("ignore", UserWarning)
            pool.shutdown(wait=True, kill_workers=True)
    return left


def _forget_waiting(pool: ProcessPoolExecutor) -> None:
    """Cancel tasks that the pool's thread has not yet sent to a worker.

    A shutdown that kills drops the tasks but not their numbers, on which that thread
    then fails with a traceback (loky of joblib 1.4 to 1.6).
    """
    with suppress(Empty):
        while True:
            pool._work_ids.get_nowait()


def _run_one_by_one(plan: WorkPlan, tasks: Sequence[FoldTask], done: Done) -> None:
    """Run fits in one process; if it dies, its current fit failed.

    Fits that are in the journal by now are not run again.
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
    """Write data sets to files, which workers read when they need them."""
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
    """End this process when the one that started it is gone."""
    while os.getppid() == parent:
        time.sleep(_PARENT_SECONDS)
    for path in plan.data.values():
        if isinstance(path, Path):
            shutil.rmtree(path.parent, ignore_errors=True)
    os._exit(1)


def _run(task: FoldTask) -> list[dict[str, Any]]:
    assert _worker is not None
    return _worker.run(task)
