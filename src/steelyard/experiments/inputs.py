"""What a comparison takes: methods and data sets, in every form they may have."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from steelyard.classifiers.registry import _plain, method, methods
from steelyard.exceptions import ParameterError, TableError
from steelyard.experiments.baselines import BASELINES, baseline
from steelyard.experiments.data.sets import DataSet, expand_names, load_dataset

_MAX_SHOWN_CLASSES = 5


def resolve_methods(methods: Any) -> dict[str, Any]:
    """Return unfitted classifiers by name, of what ``compare`` takes as methods.

    Examples
    --------
    >>> resolve_methods(["nb", ("free", method("RNB", bounds=None)), "SVM"]).keys()
    dict_keys(['NB', 'free', 'SVM'])
    """
    remedy = "Give each a name of its own, as in ('my name', classifier)."
    return _by_unique_name(_pairs(methods), "method", remedy, "NB")


def resolve_datasets(
    datasets: Any, folder: str | PathLike[str] | None, target: str | None
) -> dict[str, DataSet]:
    """Read what ``compare`` takes as data sets, each fit to be learned from."""
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
            more = ", …" if len(small) > _MAX_SHOWN_CLASSES else ""
            warnings.warn(
                f"The data set {name!r} has {len(small)} {word} of fewer than {folds} "
                f"rows ({', '.join(small[:_MAX_SHOWN_CLASSES])}{more}): some folds "
                "lack them. The run goes on.",
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
    """Whether this is a tuple of a name and further parts, not several names."""
    if not (isinstance(entry, tuple) and len(entry) == size):
        return False
    return isinstance(entry[0], str) and not isinstance(entry[1], other)


def _is_pair(entry: Any) -> bool:
    return _is_named(entry, 2, str)


def _by_name(name: str) -> tuple[str, Any]:
    """Return a method or baseline, under the name that the tables use."""
    baselines = {_plain(known): known for known in BASELINES}
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
