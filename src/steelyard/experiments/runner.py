"""Compare methods on data sets: the same folds for all, in several processes."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from itertools import product
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any

from joblib import effective_n_jobs

from steelyard.exceptions import ParameterError
from steelyard.experiments.data.sets import DataSet
from steelyard.experiments.inputs import check_folds, resolve_datasets, resolve_methods
from steelyard.experiments.journal import Journal, open_journal, read_journal
from steelyard.experiments.processes import run_tasks
from steelyard.experiments.progress import Progress
from steelyard.experiments.protocols import find_protocol
from steelyard.experiments.results import KEY, Results
from steelyard.experiments.work import Plan, Task

_LIBRARIES = ("steelyard", "numpy", "scipy", "scikit-learn", "numba", "pandas")


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
        Acronyms such as ``"RNB"``, or ``"all"``; scikit-learn's baselines ``"SVM"``,
        ``"LogisticRegression"``, ``"RandomForest"`` and ``"HistGradientBoosting"``;
        ``"EBM"`` and ``"Khiops"`` where they are installed; classifiers, or pairs of a
        name and a classifier.
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
        A result file. Rows are added as fits end; the same call with the same file
        resumes where an interrupted one stopped.
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
    data = resolve_datasets(datasets, folder, target)
    check_folds(data, folds)
    settings = {
        "methods": {name: _describe(clf) for name, clf in estimators.items()},
        "datasets": {name: _facts(entry) for name, entry in data.items()},
        "protocols": protocols,
        "folds": folds,
        "repeats": repeats,
        "seed": seed,
    }
    path = None if journal is None else Path(journal).resolve()
    versions = {"python": platform.python_version()}
    versions |= {library: version(library) for library in _LIBRARIES}
    rows = [] if path is None else open_journal(path, settings, versions)
    if retry_errors:
        rows = [row for row in rows if row["status"] == "ok"]
    tasks = _tasks(settings, data, rows)
    n_workers = min(int(effective_n_jobs(n_jobs)), len(tasks))
    with Progress(tasks, n_workers, progress) as shown:

        def done(task: Task, new: list[dict[str, Any]]) -> None:
            rows.extend(new)
            shown.done(task, new)

        run_tasks(Plan(data, estimators, folds, seed, path), tasks, n_workers, done)
    if path is not None:
        # Workers left without seeing to it that their rows are on the disk.
        Journal(path).close()
        rows = read_journal(path)[1]
    return Results(rows, settings)


def _facts(data: DataSet) -> dict[str, Any]:
    """Return what tells a data set from another of the same name."""
    return {
        "rows": len(data),
        "columns": len(data.table.columns),
        "classes": len(data.classes),
        "fingerprint": data.fingerprint,
    }


def _describe(value: Any) -> str:
    """Describe a classifier, without the addresses that change from run to run."""
    if hasattr(value, "get_params"):
        # Unlike `repr`, which shortens what is long.
        inner = value.get_params(deep=False)
        parts = (f"{key}={_describe(inner[key])}" for key in sorted(inner))
        return f"{type(value).__name__}({', '.join(parts)})"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_describe, value))}]"
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def _check_count(name: str, value: Any, least: int) -> None:
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < least:
        raise ParameterError(
            f"{name!r} must be a whole number of at least {least}. Got {value!r}."
        )


def _tasks(
    settings: Mapping[str, Any],
    data: Mapping[str, DataSet],
    rows: Sequence[Mapping[str, Any]],
) -> list[Task]:
    """Return what is left to do, longest tasks first."""
    finished = {tuple(row[field] for field in KEY) for row in rows}
    sizes = {name: d.table.size * len(d.classes) for name, d in data.items()}
    tasks = []
    repeats, folds = range(settings["repeats"]), range(settings["folds"])
    for place in product(settings["protocols"], settings["datasets"], repeats, folds):
        whole = Task(*place, tuple(settings["methods"]))
        left = tuple(name for name in whole.methods if whole.key(name) not in finished)
        if left:
            cost = float(sizes[whole.dataset] * len(left))
            tasks.append(replace(whole, methods=left, cost=cost))
    # Tasks of one data set stay together: a worker keeps the one it is at.
    tasks.sort(key=lambda task: -sizes[task.dataset])
    return tasks
