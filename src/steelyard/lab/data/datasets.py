"""Data sets by name: bundled, in a folder, from OpenML, or a task of a paper."""

from __future__ import annotations

import csv
import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from steelyard.exceptions import ParameterError
from steelyard.io.dataset import DataSet, read_dataset, split_labels
from steelyard.io.paths import close_names, stem_and_format

if TYPE_CHECKING:
    import pandas

__all__ = ["BUNDLED", "data_folder", "dataset_group", "load_dataset"]


BUNDLED = ("iris", "wine", "breast_cancer", "digits")
"""Data sets that come with scikit-learn."""

_MANIFEST = "MANIFEST.csv"
_WDBC = "wdbc"
"""UCI's name of scikit-learn's breast_cancer, cell by cell the same."""

Folder = str | os.PathLike[str] | None


def cache_folder() -> Path:
    """Return the folder that ``steelyard datasets --fetch`` fills by default."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "steelyard" / "datasets"


def find_folder(path: Folder = None) -> Path | None:
    """Find the folder of data sets, None if there is none.

    It is the one named, else that of ``STEELYARD_DATA``, else that of fetched sets.
    """
    chosen = path if path is not None else os.environ.get("STEELYARD_DATA")
    if not chosen:
        return cache_folder() if cache_folder().is_dir() else None
    folder = Path(chosen)
    if not folder.is_dir():
        raise FileNotFoundError(f"The folder of data sets {str(folder)!r} is absent.")
    return folder


def data_folder(path: Folder = None) -> Path:
    """Find the folder of data sets as `find_folder`, or raise an error."""
    folder = find_folder(path)
    if folder is None:
        advice = "name one, set the environment variable STEELYARD_DATA, or run "
        advice += "'steelyard datasets --fetch'."
        raise FileNotFoundError(f"No folder of data sets: {advice}")
    return folder


def source_of(name: str, folder: Folder = None) -> str:
    """Return the source of a data set or task: folder, scikit-learn or missing."""
    if name.startswith("task:"):
        files = [task.file for task in (*TASKS, *MULTICLASS) if name[5:] == task.name]
        return source_of(files[0], folder) if files else "missing"
    path = find_folder(folder)
    if path is not None and name in _files(path):
        return "folder"
    return "scikit-learn" if name in (*BUNDLED, _WDBC) else "missing"


def has_dataset(name: str, folder: Folder = None) -> bool:
    """Return whether a data set, or that of a task, is in the folder or bundled."""
    return source_of(name, folder) != "missing"


@cache
def catalogue() -> tuple[Mapping[str, str], ...]:
    """Return the catalogue of the papers' data sets: counts, groups, sources."""
    file = resources.files("steelyard.lab.data").joinpath("catalogue.csv")
    return tuple(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))


def load_dataset(
    name: str | os.PathLike[str],
    folder: Folder = None,
    *,
    target: str | None = None,
    **reading: Any,
) -> DataSet:
    """Read a data set by its name, or from a file.

    Parameters
    ----------
    name : str or path
        A file as in ``read_dataset``, or the name of a data set in the folder or among
        ``BUNDLED``. ``"sklearn:iris"`` and ``"openml:credit-g"``
        (or ``"openml:credit-g@2"`` for a version, ``"openml:31"`` for an id) say where
        it comes from; ``"task:Car"`` is a task of the exponential-loss paper.
    folder : str or path, default=None
        Where data sets are looked up; ``STEELYARD_DATA`` if None.
    target : str, default=None
        The column to predict. By default the one named class, target or label in any
        case; in an ARFF file, failing that, the last.
    **reading
        How a file is read: options of ``read_dataset``.

    Returns
    -------
    DataSet
        Its table and labels. Rows without a label are left out.

    Examples
    --------
    >>> wine = load_dataset("sklearn:wine")
    >>> wine.table.shape, len(wine.classes)
    ((178, 13), 3)
    >>> load_dataset("sklearn:whine")
    Traceback (most recent call last):
    FileNotFoundError: There is no data set 'whine'. Looked among: iris, wine,
    breast_cancer, digits (scikit-learn). Close: 'wine'.
    """
    text = os.fspath(name)
    match text.partition(":"):
        case "sklearn", _, rest:
            return _bundled(rest)
        case "openml", _, rest:
            return _from_openml(rest, target)
        case "task", _, rest:
            return _task(rest, folder)
    path = Path(text)
    if path.is_file() or path.name != text:
        return read_dataset(path, target=target, **reading)
    where = find_folder(folder)
    files = _files(where) if where else {}
    if text in files:
        return read_dataset(files[text], name=text, target=target, **reading)
    if text in BUNDLED:
        return _bundled(text)
    if text == _WDBC:
        data = _bundled("breast_cancer")
        labels = np.where(data.target == "malignant", "M", "B")
        return replace(data, name=text, target=labels, target_name="class")
    raise FileNotFoundError(_unknown(text, where, files))


def dataset_group(group: str, folder: Folder = None) -> list[str]:
    """Name the data sets of a group, as the folder's manifest has them.

    Parameters
    ----------
    group : str
        A word of the column ``papers`` of the folder's ``MANIFEST.csv``, or of the
        catalogue if it has none, such as ``"rnb33"``; ``"tasks28"`` for the binary
        tasks of the exponential-loss paper.
    folder : str or path, default=None
        See ``load_dataset``.

    Returns
    -------
    list of str
        Names for ``load_dataset``.
    """
    if group == "tasks28":
        return [f"task:{task.name}" for task in TASKS]
    groups = _groups(find_folder(folder))
    if group not in groups:
        names = ", ".join(sorted([*groups, "tasks28"]))
        raise ParameterError(
            f"There is no group of data sets {group!r}. Groups: {names}."
        )
    return groups[group]


def expand_names(names: Iterable[Any], folder: Folder = None) -> list[Any]:
    """Replace ``"group:NAME"`` by the names of its data sets, each once."""
    expanded: list[Any] = []
    for name in names:
        new: list[Any] = [name]
        if isinstance(name, str) and name.startswith("group:"):
            new = list(dataset_group(name.removeprefix("group:"), folder))
        # Data sets compare by identity, names by their letters.
        expanded += [entry for entry in new if entry not in expanded]
    return expanded


# ---------------------------------------------------------------------------- sources


def _files(folder: Path) -> dict[str, Path]:
    """Return the files of a folder by name of data set, those of the manifest first."""
    files = {row["name"]: folder / row["file"] for row in _manifest(folder)}
    in_manifest = {_MANIFEST, *(path.name for path in files.values())}
    for path in sorted(folder.iterdir()):
        name, format = stem_and_format(path)
        if format is not None and path.name not in in_manifest:
            files.setdefault(name, path)
    return files


def _manifest(folder: Path) -> list[dict[str, str]]:
    path = folder / _MANIFEST
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _groups(folder: Path | None) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for row in (_manifest(folder) if folder else []) or catalogue():
        for word in row["papers"].split("|"):
            groups.setdefault(word, []).append(row["name"])
    return groups


def _bundled(name: str) -> DataSet:
    from sklearn import datasets

    if name not in BUNDLED:
        raise FileNotFoundError(
            f"There is no data set {name!r}. Looked among: {', '.join(BUNDLED)} "
            f"(scikit-learn).{close_names(name, BUNDLED)}"
        )
    bunch = getattr(datasets, f"load_{name}")(as_frame=True)
    labels = np.asarray(bunch.target_names)[np.asarray(bunch.target)]
    first = bunch.DESCR.strip().splitlines()
    title = next((line for line in first if line and not line.startswith("..")), "")
    return DataSet(name, bunch.data, labels, "target", title)


def _from_openml(spec: str, target: str | None) -> DataSet:
    """Fetch from OpenML; scikit-learn keeps a copy in its own cache."""
    from sklearn import datasets

    name, _, version = spec.partition("@")
    if name.isdigit():
        which: dict[str, Any] = {"data_id": int(name)}
    else:
        which = {"name": name, "version": int(version or 1)}
    column = target or "default-target"
    try:
        bunch = datasets.fetch_openml(**which, target_column=column, as_frame=True)
    except (OSError, ValueError) as error:
        raise FileNotFoundError(
            f"OpenML gave no data set {spec!r}: {error}. Check the name, the version "
            "after '@', and the network."
        ) from error
    # Names of the target come as a list when there are several.
    column = target or bunch.target_names[0]
    text = (bunch.DESCR or "").strip().splitlines()
    return split_labels(name, bunch.frame, column, text[0] if text else "")


def _task(name: str, folder: Folder) -> DataSet:
    """Read a task of the exponential-loss paper."""
    tasks = {task.name: task for task in (*TASKS, *MULTICLASS)}
    if name not in tasks:
        raise FileNotFoundError(
            f"There is no task {name!r}.{close_names(name, tasks)} Tasks: "
            f"{', '.join(tasks)}."
        )
    task = tasks[name]
    data = load_dataset(task.file, folder)
    table, labels = select_task(task, data.table, data.target)
    return DataSet(f"task:{name}", table, labels, "class", task.file)


def _unknown(name: str, folder: Path | None, files: dict[str, Path]) -> str:
    """Return an error on an unknown name, with places searched and close names."""
    if name in _groups(folder):
        problem = "is a group of data sets, not one of them."
        return f"{name!r} {problem} Say 'group:{name}'."
    place = "no folder (STEELYARD_DATA is not set)"
    if folder is not None:
        place = f"the folder {str(folder)!r} ({len(files)} data sets)"
    fetched = name in {row["name"] for row in catalogue() if row["source"]}
    advice = f" 'steelyard datasets --fetch {name}' fetches it." if fetched else ""
    return (
        f"There is no data set {name!r}. Looked in {place} and scikit-learn's "
        f"{', '.join(BUNDLED)}.{close_names(name, [*BUNDLED, *files])}{advice}"
    )


@dataclass(frozen=True)
class Task:
    """A task of the exponential-loss paper; ``tasks.toml`` explains the fields."""

    name: str
    file: str
    label: str | None = None
    columns: Sequence[str] | None = None
    numbers: Sequence[str] = ()
    without: Sequence[str] = ()
    small_classes: int = 0
    drawn: Mapping[str, int] = field(default_factory=dict)


_FILE = resources.files("steelyard.lab.data").joinpath("tasks.toml")
_GROUPS = tomllib.loads(_FILE.read_text(encoding="utf-8"))
TASKS, MULTICLASS = (
    tuple(Task(**entry) for entry in _GROUPS[key]) for key in ("binary", "several")
)


def select_task(
    task: Task, X: pandas.DataFrame, y: NDArray[Any]
) -> tuple[pandas.DataFrame, NDArray[Any]]:
    """Select the rows and columns of a task from the table and labels of its file.

    Numeric attributes get mean 0 and variance 1; labels of a binary task are 0 and 1.
    """
    X = X[list(X if task.columns is None else task.columns)]
    X = X.drop(columns=list(task.without))
    X = X.assign(**{name: X[name].astype(str).astype(float) for name in task.numbers})
    _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    is_used = counts[codes] >= task.small_classes
    rng = np.random.default_rng(1)
    for label, number in task.drawn.items():
        rows = np.flatnonzero(y == label)
        is_used[rows] = False
        is_used[rng.choice(rows, number, replace=False)] = True
    X, y = X[is_used].reset_index(drop=True), y[is_used]
    return standardize(X), y if task.label is None else one_against_rest(y, task.label)


def one_against_rest(y: NDArray[Any], label: str) -> NDArray[Any]:
    """Return 1 for rows with a label and 0 for others."""
    chosen = y == label
    if not chosen.any():
        raise ValueError(f"No row has the label {label!r}.")
    return chosen.astype(np.int64)


def standardize(X: pandas.DataFrame) -> pandas.DataFrame:
    """Give every numeric column of a frame mean 0 and variance 1.

    Naive Bayes and its weighted forms are as before, but for the smallest variance
    allowed: it is relative to the largest, that of the column with the largest unit.
    """
    X = X.copy()
    for name in X.select_dtypes("number"):
        deviation = X[name].std(ddof=0)
        X[name] = (X[name] - X[name].mean()) / (deviation if deviation > 0 else 1.0)
    return X
