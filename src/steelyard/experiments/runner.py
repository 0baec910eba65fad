"""Compare methods on data sets: the same folds for all, in several processes."""

from __future__ import annotations

import os
import pickle
import platform
import re
import shutil
import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import replace
from importlib.metadata import version
from itertools import islice, product
from os import PathLike
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from joblib.externals.loky import ProcessPoolExecutor
from sklearn.base import is_classifier

from steelyard.classifiers.registry import _plain, method, methods
from steelyard.exceptions import ParameterError, TableError
from steelyard.experiments.baselines import YARDSTICKS, yardstick
from steelyard.experiments.data.sets import DataSet, expand_names, load_dataset
from steelyard.experiments.journal import Journal, open_journal, read_journal
from steelyard.experiments.progress import Progress
from steelyard.experiments.protocols import find_protocol
from steelyard.experiments.results import KEY, Results
from steelyard.experiments.work import Plan, Task, Worker, failed_row

__all__ = ["compare", "resolve_methods"]

_LIBRARIES = ("steelyard", "numpy", "scipy", "scikit-learn", "numba", "pandas")

Done = Callable[[Task, list[dict[str, Any]]], None]


def compare(
    methods: Any,
    datasets: Any,
    *,
    protocol: str | Sequence[str] = "honest",
    folds: int = 10,
    repeats: int = 1,
    seed: int = 1,
    journal: str | PathLike[str] | None = None,
    retry_errors: bool = False,
    folder: str | PathLike[str] | None = None,
    target: str | None = None,
    n_jobs: int | None = 2,
    progress: bool = True,
) -> Results:
    """Cross-validate methods on data sets, all of them on the same folds.

    Repeat r splits by ``StratifiedKFold(folds, shuffle=True, random_state=seed + r)``.
    A fit that fails is a row with its error; the others go on.

    Parameters
    ----------
    methods : str, classifier, pair, mapping, or a list of these
        Acronyms such as ``"RNB"``, or ``"all"``; scikit-learn's yardsticks ``"SVM"``,
        ``"LogisticRegression"``, ``"RandomForest"`` and ``"HistGradientBoosting"``;
        classifiers, or pairs of a name and a classifier.
    datasets : str, path, DataSet, triple, or a list of these
        Names or files as in ``load_dataset``; ``"group:rnb33"`` for a group of the
        folder's manifest; triples of a name, a table and labels.
    protocol : str or list of str, default="honest"
        ``"honest"``: the table as it is, everything is learned inside each training
        part. ``"published-rnb"``, ``"published-cwnb"`` and ``"published-exponential"``
        prepare the whole data set first, as those papers did.
    folds, repeats : int, default=10 and 1
        Repeated stratified cross-validation.
    seed : int, default=1
        Seed of the folds, and of classifiers whose ``random_state`` is None.
    journal : str or path, default=None
        A result file. Rows are added as fits end; the same call with the same file goes
        on where an interrupted one stopped.
    retry_errors : bool, default=False
        Whether fits that failed in an earlier run are run again.
    folder : str or path, default=None
        Folder of data sets; the environment variable ``STEELYARD_DATA`` if None.
    target : str, default=None
        Column to predict in data sets that are files.
    n_jobs : int, default=2
        Processes, as in scikit-learn. Each works with one thread. Results do not depend
        on it.
    progress : bool, default=True
        Whether to show what runs and what is left, where standard error is a terminal.

    Returns
    -------
    Results
        One row per fit.

    Examples
    --------
    >>> import steelyard as sy
    >>> results = sy.compare(["NB", "WANBIA-CLL"], "sklearn:iris", folds=3, n_jobs=1)
    >>> results
    <Results: 6 fits of 2 methods on 1 data set, honest>
    >>> results.matrix("accuracy").shape
    (1, 2)
    """
    _check_count("folds", folds, 2)
    _check_count("repeats", repeats, 1)
    _check_count("seed", seed, 0)
    estimators = resolve_methods(methods)
    protocols = [protocol] if isinstance(protocol, str) else list(protocol)
    for name in protocols:
        find_protocol(name)
    data = _load_all(datasets, folder, target)
    _check_folds(data, folds)
    settings = {
        "methods": {name: _text(clf) for name, clf in estimators.items()},
        "datasets": {
            name: {
                "rows": len(entry),
                "columns": len(entry.table.columns),
                "classes": len(entry.classes),
                "fingerprint": entry.fingerprint,
            }
            for name, entry in data.items()
        },
        "protocols": protocols,
        "folds": folds,
        "repeats": repeats,
        "seed": seed,
    }
    rows: list[dict[str, Any]] = []
    path = None
    if journal is not None:
        path = Path(journal).resolve()
        rows = open_journal(path, settings, _versions())
    if retry_errors:
        rows = [row for row in rows if row["status"] == "ok"]
    tasks = _tasks(settings, data, rows)
    plan = Plan(data, estimators, folds, seed, path)
    workers = min(int(effective_n_jobs(n_jobs)), len(tasks))
    with Progress(tasks, workers, progress) as shown:

        def done(task: Task, new: list[dict[str, Any]]) -> None:
            rows.extend(new)
            shown.done(task, new)

        if workers > 1:
            _run_in_processes(plan, tasks, workers, done)
        else:
            _run_here(plan, tasks, done)
    if path is not None:
        # Workers left without seeing to it that their rows are on the disk.
        Journal(path).close()
        rows = read_journal(path)[1]
    return Results(rows, settings)


def resolve_methods(methods: Any) -> dict[str, Any]:
    """Return unfitted classifiers by name.

    Parameters
    ----------
    methods : str, classifier, pair, mapping, or a list of these
        See ``compare``.

    Returns
    -------
    dict of str to classifier
        In the order given.

    Examples
    --------
    >>> resolve_methods(["nb", ("free", method("RNB", bounds=None)), "SVM"]).keys()
    dict_keys(['NB', 'free', 'SVM'])
    """
    found: dict[str, Any] = {}
    for name, classifier in _pairs(methods):
        if name in found:
            raise ParameterError(
                f"Two methods are named {name!r}. Give each a name of its own, as in "
                "('my name', classifier)."
            )
        found[name] = classifier
    if not found:
        raise ParameterError("No method is given. Name at least one, such as 'NB'.")
    return found


# ----------------------------------------------------------------------------- settings


def _pairs(chosen: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(chosen, Mapping):
        chosen = list(chosen.items())
    elif _is_pair(chosen) or not isinstance(chosen, (list, tuple)):
        chosen = [chosen]
    every = [entry.acronym for entry in methods()]
    for entry in chosen:
        if isinstance(entry, str) and entry == "all":
            yield from map(_by_name, every)
            continue
        if isinstance(entry, str):
            yield _by_name(entry)
            continue
        name, classifier = entry if _is_pair(entry) else (type(entry).__name__, entry)
        if not (hasattr(classifier, "fit") and is_classifier(classifier)):
            raise ParameterError(
                f"{_text(classifier)} is no classifier. Give acronyms, classifiers, or "
                "pairs of a name and a classifier."
            )
        yield name, classifier


def _is_pair(entry: Any) -> bool:
    return (
        isinstance(entry, tuple)
        and len(entry) == 2
        and isinstance(entry[0], str)
        and not isinstance(entry[1], str)
    )


def _by_name(name: str) -> tuple[str, Any]:
    """Return a method or yardstick, under the name that the tables use."""
    plain = _plain(name)
    for known in YARDSTICKS:
        if _plain(known) == plain:
            return known, yardstick(known)
    try:
        classifier = method(name)
    except ParameterError as error:
        raise ParameterError(f"{error} Yardsticks: {', '.join(YARDSTICKS)}.") from None
    for entry in methods():
        if _plain(entry.acronym) == plain:
            return entry.acronym, classifier
    # An alias stays as it was written: papers know the method by it.
    return name, classifier


def _text(value: Any) -> str:
    """Describe a classifier, without the addresses that change from run to run."""
    if hasattr(value, "get_params"):
        # Unlike `repr`, which shortens what is long.
        inner = value.get_params(deep=False)
        parts = (f"{key}={_text(inner[key])}" for key in sorted(inner))
        return f"{type(value).__name__}({', '.join(parts)})"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_text, value))}]"
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for library in _LIBRARIES:
        found[library] = version(library)
    return found


def _check_count(name: str, value: Any, least: int) -> None:
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < least:
        raise ParameterError(
            f"{name!r} must be a whole number of at least {least}. Got {value!r}."
        )


# --------------------------------------------------------------------------------- data


def _load_all(
    chosen: Any, folder: str | PathLike[str] | None, target: str | None
) -> dict[str, DataSet]:
    one = isinstance(chosen, (str, PathLike, DataSet)) or _is_triple(chosen)
    names = expand_names([chosen] if one else chosen, folder)
    found: dict[str, DataSet] = {}
    for entry in names:
        if _is_triple(entry):
            data = _from_triple(*entry)
        elif isinstance(entry, DataSet):
            data = entry
        else:
            is_file = Path(entry).is_file()
            data = load_dataset(entry, folder, target=target if is_file else None)
        data.check()
        if data.name in found:
            raise ParameterError(
                f"Two data sets are named {data.name!r}. Rename one: "
                "dataclasses.replace(data, name=...)."
            )
        found[data.name] = data
    if not found:
        raise ParameterError("No data set is given. Name at least one, such as 'iris'.")
    return found


def _is_triple(entry: Any) -> bool:
    return (
        isinstance(entry, tuple)
        and len(entry) == 3
        and isinstance(entry[0], str)
        and not isinstance(entry[1], (str, PathLike, DataSet))
    )


def _from_triple(name: str, table: Any, labels: Any) -> DataSet:
    import pandas as pd

    if hasattr(table, "to_pandas"):
        table = table.to_pandas()
    frame = pd.DataFrame(table).reset_index(drop=True)
    return DataSet(name, frame, np.asarray(labels))


def _check_folds(data: Mapping[str, DataSet], folds: int) -> None:
    """Refuse data sets with fewer rows than folds, and warn of small classes."""
    for name, entry in data.items():
        if len(entry) < folds:
            raise TableError(
                f"The data set {name!r} has {len(entry)} rows, fewer than {folds} "
                "folds. Lower `folds`."
            )
        classes, counts = np.unique(entry.target, return_counts=True)
        small = [str(c) for c, n in zip(classes, counts, strict=True) if n < folds]
        if small:
            word = "class" if len(small) == 1 else "classes"
            warnings.warn(
                f"The data set {name!r} has {len(small)} {word} of fewer than {folds} "
                f"rows ({', '.join(small[:5])}{', …' if len(small) > 5 else ''}): some "
                "folds lack them. The run goes on.",
                UserWarning,
                stacklevel=3,
            )


# ------------------------------------------------------------------------------ running


def _tasks(
    settings: Mapping[str, Any],
    data: Mapping[str, DataSet],
    rows: Sequence[Mapping[str, Any]],
) -> list[Task]:
    """Return what is left to do, longest tasks first."""
    finished = {tuple(row[field] for field in KEY) for row in rows}
    sizes = {name: d.table.size * len(d.classes) for name, d in data.items()}
    tasks = []
    for protocol, dataset, repeat, fold in product(
        settings["protocols"],
        settings["datasets"],
        range(settings["repeats"]),
        range(settings["folds"]),
    ):
        left = tuple(
            name
            for name in settings["methods"]
            if (dataset, name, protocol, repeat, fold) not in finished
        )
        if left:
            cost = float(sizes[dataset] * len(left))
            tasks.append(Task(protocol, dataset, repeat, fold, left, cost))
    # Tasks of one data set stay together: a worker keeps the one it is at.
    tasks.sort(key=lambda task: -sizes[task.dataset])
    return tasks


def _run_here(plan: Plan, tasks: Sequence[Task], done: Done) -> None:
    with closing(Worker(plan)) as worker:
        for task in tasks:
            done(task, worker.run(task))


def _run_in_processes(
    plan: Plan, tasks: Sequence[Task], n_workers: int, done: Done
) -> None:
    with tempfile.TemporaryDirectory(prefix="steelyard-") as folder:
        plan = _pickled(plan, Path(folder))
        left = list(tasks)
        while left:
            left = _until_broken(plan, left, n_workers, done)
            # A worker died: the tasks at hand are run again, one fit after the other,
            # to find out which fit it was. The rest goes on as before.
            suspects, left = left[: n_workers + 1], left[n_workers + 1 :]
            _run_one_by_one(plan, suspects, done)


def _until_broken(
    plan: Plan, tasks: Sequence[Task], n_workers: int, done: Done
) -> list[Task]:
    """Run tasks in order until all are done or a worker dies; return what is left."""
    left = list(tasks)
    waiting = iter(tasks)
    pool = ProcessPoolExecutor(n_workers, initializer=_start, initargs=(plan,))
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
        _stop(pool)
    return left


def _stop(pool: ProcessPoolExecutor) -> None:
    """End all workers at once, also in the middle of a fit.

    Rows of other fits are written. To leave in good order takes a worker a second.
    """
    with warnings.catch_warnings():
        # Without `psutil` and `pgrep` workers' own children are not looked for.
        warnings.simplefilter("ignore", UserWarning)
        pool.shutdown(wait=True, kill_workers=True)


def _run_one_by_one(plan: Plan, tasks: Sequence[Task], done: Done) -> None:
    """Run fits in one process; if it dies, that is the error of the fit it was at.

    Fits that the journal has by now are not run again.
    """
    rows = [] if plan.journal is None else read_journal(plan.journal)[1]
    fits = {tuple(row[field] for field in KEY): row for row in rows}
    left = []
    for task in tasks:
        for name in task.methods:
            fit = replace(task, methods=(name,), cost=task.cost / len(task.methods))
            key = (task.dataset, name, task.protocol, task.repeat, task.fold)
            row = fits.get(key)
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


def _pickled(plan: Plan, folder: Path) -> Plan:
    """Write data sets to files, which workers read when they come to them."""
    paths: dict[str, DataSet | Path] = {}
    for i, (name, entry) in enumerate(plan.data.items()):
        path = folder / f"{i}.pickle"
        path.write_bytes(pickle.dumps(entry, protocol=pickle.HIGHEST_PROTOCOL))
        paths[name] = path
    return replace(plan, data=paths)


_worker: Worker | None = None


def _start(plan: Plan) -> None:
    """Make the worker of this process."""
    global _worker
    # Ctrl-C reaches all processes; the first of them ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_leave_with_parent, args=(os.getppid(), plan), daemon=True).start()
    _worker = Worker(plan)


def _leave_with_parent(parent: int, plan: Plan) -> None:
    """End this process when the one that started it was killed."""
    while os.getppid() == parent:
        time.sleep(0.5)
    for path in plan.data.values():
        if isinstance(path, Path):
            shutil.rmtree(path.parent, ignore_errors=True)
    os._exit(1)


def _run(task: Task) -> list[dict[str, Any]]:
    assert _worker is not None
    return _worker.run(task)
