"""The fits of a comparison: one after another, or in several processes."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
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
from threadpoolctl import ThreadpoolController

from steelyard._common.files import WorkFolder
from steelyard._common.text import as_plain
from steelyard.evaluation.evaluate import split_rows
from steelyard.evaluation.metrics import score_predictions
from steelyard.io.dataset import DataSet
from steelyard.lab.protocols import PROTOCOLS, Prepared
from steelyard.lab.results import COLUMNS, KEY

# Smallest weight that counts as an attribute selected.
_MIN_SELECTED_WEIGHT = 1e-6
_MAX_ERROR_LENGTH = 500


@dataclass(frozen=True)
class Fit:
    """One method on one fold of one data set; the cost is relative to other fits."""

    dataset: str
    method: str
    protocol: str
    repeat: int
    fold: int
    cost: float = 1.0

    @property
    def key(self) -> tuple[Any, ...]:
        """The fields that identify the fit, in the order of ``KEY``."""
        return tuple(getattr(self, name) for name in KEY)

    @property
    def label(self) -> str:
        """The name that progress shows."""
        return f"{self.dataset} fold {self.fold + 1}"

    def row(self, **fields: Any) -> dict[str, Any]:
        """Return a row of this fit, with values of some fields."""
        row: dict[str, Any] = dict.fromkeys(COLUMNS)
        row |= zip(KEY, self.key, strict=True)
        return row | {"status": "ok", "warnings": 0, "extra": {}} | fields


@dataclass(frozen=True)
class WorkPlan:
    """Everything a worker needs; data sets of processes are files, pickled."""

    data: Mapping[str, DataSet | Path]
    estimators: Mapping[str, Any]
    folds: int
    seed: int


class Worker:
    """Runs one fit after another, and caches the last data set."""

    def __init__(self, plan: WorkPlan) -> None:
        self.plan = plan
        # Fits to one data set follow each other: caching the last one suffices.
        self._loaded = lru_cache(1)(self._load)
        self._prepared = lru_cache(1)(self._prepare)
        self._splits = lru_cache(1)(self._split)

    def run(self, fit: Fit) -> dict[str, Any]:
        """Fit, measure, and return the row."""
        _, classes, codes = self._loaded(fit.dataset)
        train, test = self._splits(fit.dataset, fit.repeat)[fit.fold]
        true = codes[test]
        seen = np.bincount(codes[train], minlength=len(classes)) > 0
        row = fit.row(n_train=len(train), n_test=len(test), n_classes=len(classes))
        row["n_unseen_class"] = int((~seen[true]).sum())
        with (
            _pools(len(sys.modules)).limit(limits=1),
            warnings.catch_warnings(record=True) as shown,
        ):
            warnings.simplefilter("always")
            try:
                prepared = self._prepared(fit.dataset, fit.protocol)
                protocol = PROTOCOLS[fit.protocol]
                estimator = self.plan.estimators[fit.method]
                estimator = protocol.adapt(estimator, len(classes))
                _pin(estimator, self.plan.seed)
                table = prepared.table_for(estimator)
                parts = table.iloc[train], prepared.target[train], table.iloc[test]
                row |= _measure(estimator, parts, classes, true, seen)
            except Exception as error:
                text = " ".join(f"{type(error).__name__}: {error}".split())
                row |= {"status": "error", "error": text[:_MAX_ERROR_LENGTH]}
        row["warnings"] = len(shown)
        return dict(as_plain(row))

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


@lru_cache(1)
def _pools(n_modules: int) -> ThreadpoolController:
    """Return the thread pools of loaded libraries, which come with modules.

    Looking for them takes as long as a fit to a small table.
    """
    return ThreadpoolController()


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

Done = Callable[[Fit, dict[str, Any]], None]


def run_fits(plan: WorkPlan, fits: Sequence[Fit], n_workers: int, done: Done) -> None:
    """Run fits in order, and call ``done`` with the row of each.

    A fit that kills its process gets a row with that error, and the others go on.
    """
    if n_workers > 1:
        _run_in_processes(plan, fits, n_workers, done)
        return
    worker = Worker(plan)
    for fit in fits:
        done(fit, worker.run(fit))


def _run_in_processes(
    plan: WorkPlan, fits: Sequence[Fit], n_workers: int, done: Done
) -> None:
    with WorkFolder() as folder:
        plan = _pickled(plan, folder.path)
        left = list(fits)
        while left:
            left = _until_broken(plan, left, n_workers, done)
            # A worker died: pending fits are run again, one at a time, to find the one
            # that killed it. The others continue as before.
            suspects, left = left[: n_workers + 1], left[n_workers + 1 :]
            while suspects:
                suspects = _until_broken(plan, suspects, 1, done)
                for deadly in suspects[:1]:
                    problem = "The process died, perhaps for lack of memory."
                    done(deadly, deadly.row(status="error", error=problem))
                suspects = suspects[1:]


def _until_broken(
    plan: WorkPlan, fits: Sequence[Fit], n_workers: int, done: Done
) -> list[Fit]:
    """Run fits in order until all are done or a worker dies; return what is left."""
    left = list(fits)
    waiting = iter(fits)
    start = (plan, os.getpid())
    pool = ProcessPoolExecutor(n_workers, initializer=_start, initargs=start)
    try:
        # One fit more than workers: none is idle, and few fits are pending when the
        # run ends early.
        pending = {
            pool.submit(_run, fit): fit for fit in islice(waiting, n_workers + 1)
        }
        while pending:
            ended = wait(pending, return_when=FIRST_COMPLETED).done
            # Rows first: fits that ended when a worker died are not run again.
            for future in sorted(ended, key=lambda f: f.exception() is not None):
                fit = pending.pop(future)
                done(fit, future.result())
                left.remove(fit)
                for new in islice(waiting, 1):
                    pending[pool.submit(_run, new)] = new
    except BrokenProcessPool:
        pass
    finally:
        # Workers are killed, even in the middle of a fit: an orderly exit takes a
        # second.
        _forget_waiting(pool)
        with warnings.catch_warnings():
            # Without `psutil` and `pgrep` workers' own children are not looked for.
            warnings.simplefilter("ignore", UserWarning)
            pool.shutdown(wait=True, kill_workers=True)
    return left


def _forget_waiting(pool: ProcessPoolExecutor) -> None:
    """Cancel fits that the pool's thread has not yet sent to a worker.

    A shutdown that kills drops the fits but not their numbers, on which that thread
    then fails with a traceback (loky of joblib 1.4 to 1.6).
    """
    with suppress(Empty):
        while True:
            pool._work_ids.get_nowait()


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


def _run(fit: Fit) -> dict[str, Any]:
    assert _worker is not None
    return _worker.run(fit)
