"""Compare methods on data sets: the same folds for all, in several processes."""

from __future__ import annotations

import platform
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from importlib.metadata import version
from importlib.util import find_spec
from itertools import product
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import is_classifier

from steelyard._common.progress import progress as show_progress
from steelyard.classifiers.registry import _plain, method, methods
from steelyard.exceptions import ParameterError, TableError
from steelyard.io.dataset import DataSet
from steelyard.lab.baselines import BASELINES, baseline
from steelyard.lab.data.datasets import expand_names, load_dataset
from steelyard.lab.journal import Journal, open_journal
from steelyard.lab.protocols import find_protocol
from steelyard.lab.results import KEY, Results
from steelyard.lab.worker import Fit, WorkPlan, run_fits

_LIBRARIES = ("steelyard", "numpy", "scipy", "scikit-learn", "numba", "pandas")

_MAX_SHOWN_CLASSES = 5


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
        ``"EBM"``, ``"CatBoost"``, ``"LightGBM"`` and ``"Khiops"`` if installed;
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
        Whether to show a progress bar, if standard error is a terminal and ``rich`` is
        installed.

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
    fits = _unfinished(settings, data, rows)
    n_workers = min(int(effective_n_jobs(n_jobs)), len(fits))
    counts: Counter[str] = Counter()
    cost = sum(fit.cost for fit in fits)
    is_shown = progress and bool(fits) and sys.stderr.isatty()
    is_shown = is_shown and find_spec("rich") is not None
    with (
        nullcontext() if path is None else Journal(path) as file,
        show_progress("Comparing", cost, is_shown, stays=False) as advance,
    ):

        def done(fit: Fit, row: dict[str, Any]) -> None:
            if file is not None:
                file.append(row)
            rows.append(row)
            counts[row["status"]] += 1
            failed = f", {counts['error']} failed" if counts["error"] else ""
            text = f"{counts.total()} of {len(fits)} fits{failed}, {fit.label}"
            advance(text, fit.cost)

        run_fits(WorkPlan(data, estimators, folds, seed), fits, n_workers, done)
    return Results(rows, settings)


def _facts(data: DataSet) -> dict[str, Any]:
    """Return what distinguishes a data set from another of the same name."""
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


def _unfinished(
    settings: Mapping[str, Any],
    data: Mapping[str, DataSet],
    rows: Sequence[Mapping[str, Any]],
) -> list[Fit]:
    """Return the fits that have no row, those to large data sets first."""
    finished = {tuple(row[field] for field in KEY) for row in rows}
    sizes = {name: float(d.table.size * len(d.classes)) for name, d in data.items()}
    # Fits to one data set stay together: a worker caches the last one.
    names = sorted(settings["datasets"], key=lambda name: -sizes[name])
    repeats, folds = range(settings["repeats"]), range(settings["folds"])
    fits = [
        Fit(name, method, protocol, repeat, fold, sizes[name])
        for name in names
        for protocol in settings["protocols"]
        for repeat, fold, method in product(repeats, folds, settings["methods"])
    ]
    return [fit for fit in fits if fit.key not in finished]


def resolve_methods(methods: Any) -> dict[str, Any]:
    """Return unfitted classifiers by name, given what ``compare`` takes as methods.

    >>> resolve_methods(["nb", ("free", method("RNB", bounds=None)), "SVM"]).keys()
    dict_keys(['NB', 'free', 'SVM'])
    """
    remedy = "Give each a separate name, as in ('my name', classifier)."
    return _by_unique_name(_pairs(methods), "method", remedy, "NB")


def resolve_datasets(
    datasets: Any, folder: str | PathLike[str] | None, target: str | None
) -> dict[str, DataSet]:
    """Return data sets by name, given what ``compare`` takes as data sets."""
    single = isinstance(datasets, (str, PathLike, DataSet)) or _is_triple(datasets)
    entries = expand_names([datasets] if single else datasets, folder)
    pairs = ((data.name, data) for data in (_load(e, folder, target) for e in entries))
    remedy = "Rename one: dataclasses.replace(data, name=...)."
    return _by_unique_name(pairs, "data set", remedy, "iris")


def _by_unique_name(
    pairs: Iterable[tuple[str, Any]], kind: str, remedy: str, example: str
) -> dict[str, Any]:
    by_name: dict[str, Any] = {}
    for name, entry in pairs:
        if name in by_name:
            raise ParameterError(f"Two {kind}s are named {name!r}. {remedy}")
        by_name[name] = entry
    if not by_name:
        raise ParameterError(
            f"No {kind} is given. Name at least one, such as {example!r}."
        )
    return by_name


def check_folds(data: Mapping[str, DataSet], folds: int) -> None:
    """Refuse data sets with fewer rows than folds, and warn of small classes."""
    for name, entry in data.items():
        if len(entry) < folds:
            raise TableError(
                f"The data set {name!r} has {len(entry)} rows, fewer than {folds} "
                "folds. Lower `folds`."
            )
        classes, counts = np.unique(entry.target, return_counts=True)
        small = [str(label) for label in classes[counts < folds]]
        if small:
            word = "class" if len(small) == 1 else "classes"
            dots = ", …" if len(small) > _MAX_SHOWN_CLASSES else ""
            warnings.warn(
                f"The data set {name!r} has {len(small)} {word} of fewer than {folds} "
                f"rows ({', '.join(small[:_MAX_SHOWN_CLASSES])}{dots}): some folds "
                "lack them. The run continues.",
                UserWarning,
                stacklevel=3,
            )


# ------------------------------------------------------------------------------ methods


def _pairs(chosen: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(chosen, Mapping):
        chosen = list(chosen.items())
    elif _is_pair(chosen) or not isinstance(chosen, (list, tuple)):
        chosen = [chosen]
    for entry in chosen:
        if isinstance(entry, str):
            names = [m.acronym for m in methods()] if entry == "all" else [entry]
            yield from map(_by_name, names)
            continue
        name, classifier = entry if _is_pair(entry) else (type(entry).__name__, entry)
        if not (hasattr(classifier, "fit") and is_classifier(classifier)):
            raise ParameterError(
                f"{classifier!r} is not a classifier. Give acronyms, classifiers, or "
                "pairs of a name and a classifier."
            )
        yield name, classifier


def _is_named(entry: Any, size: int, other: type | tuple[type, ...]) -> bool:
    """Return whether this is a tuple that begins with a name, not several names."""
    if not (isinstance(entry, tuple) and len(entry) == size):
        return False
    return isinstance(entry[0], str) and not isinstance(entry[1], other)


def _is_pair(entry: Any) -> bool:
    return _is_named(entry, 2, str)


def _by_name(name: str) -> tuple[str, Any]:
    """Return a method or baseline, under the name that the tables use."""
    baselines = {_plain(key): key for key in BASELINES}
    if (plain := _plain(name)) in baselines:
        return baselines[plain], baseline(name)
    try:
        classifier = method(name)
    except ParameterError as error:
        raise ParameterError(f"{error} Baselines: {', '.join(BASELINES)}.") from None
    # An alias stays as it was written: papers know the method by it.
    acronyms = {_plain(entry.acronym): entry.acronym for entry in methods()}
    return acronyms.get(plain, name), classifier


# --------------------------------------------------------------------------------- data


def _load(
    entry: Any, folder: str | PathLike[str] | None, target: str | None
) -> DataSet:
    """Read one data set, and check that it can be learned from."""
    if _is_triple(entry):
        import pandas as pd

        name, table, labels = entry
        table = table.to_pandas() if hasattr(table, "to_pandas") else table
        frame = pd.DataFrame(table).reset_index(drop=True)
        entry = DataSet(name, frame, np.asarray(labels))
    elif not isinstance(entry, DataSet):
        is_file = Path(entry).is_file()
        entry = load_dataset(entry, folder, target=target if is_file else None)
    entry.check()
    return entry


def _is_triple(entry: Any) -> bool:
    return _is_named(entry, 3, (str, PathLike, DataSet))
