"""Data sets by name or by file: a folder, scikit-learn's own, OpenML, and tasks."""

from __future__ import annotations

import csv
import difflib
import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target

from steelyard.exceptions import ParameterError, TableError
from steelyard.experiments.data.arff import read_arff
from steelyard.experiments.data.tasks import MULTICLASS, TASKS, select_task

if TYPE_CHECKING:
    import pandas

__all__ = [
    "BUNDLED",
    "DataSet",
    "data_folder",
    "dataset_group",
    "expand_names",
    "load_dataset",
    "read_from_folder",
]

BUNDLED = ("iris", "wine", "breast_cancer", "digits")
"""Data sets that come with scikit-learn."""

_ARFF = (".arff", ".arff.gz")
_SEPARATORS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
_SUFFIXES = (*_ARFF, *_SEPARATORS, ".parquet")
_TARGETS = ("class", "target", "label")
_MANIFEST = "MANIFEST.csv"


@dataclass(frozen=True, eq=False)
class DataSet:
    """A table, the labels to predict, and where they come from.

    Examples
    --------
    >>> iris = load_dataset("sklearn:iris")
    >>> iris.name, len(iris), iris.classes.tolist()
    ('iris', 150, ['setosa', 'versicolor', 'virginica'])
    >>> set(iris.kinds.values())
    {'numeric'}
    """

    name: str
    table: pandas.DataFrame
    """The attributes; nominal ones are categories with all declared values."""

    target: NDArray[Any]
    """The labels, one per row, none missing."""

    target_name: str = "class"
    description: str = ""

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.target)

    @property
    def classes(self) -> NDArray[Any]:
        """The classes that occur, sorted."""
        return np.unique(self.target)

    @property
    def kinds(self) -> dict[str, str]:
        """Whether each column is ``"numeric"`` or ``"categorical"``."""
        numbers = set(self.table.select_dtypes("number"))
        return {
            name: "numeric" if name in numbers else "categorical"
            for name in self.table.columns
        }

    @property
    def declared(self) -> dict[str, tuple[Any, ...]]:
        """The values that each column of categories declares."""
        chosen = self.table.select_dtypes("category")
        return {name: tuple(chosen[name].cat.categories) for name in chosen}

    @property
    def fingerprint(self) -> str:
        """A hash of names, cells and labels, the same in every process."""
        import pandas as pd

        digest = hashlib.sha256(repr(list(self.table.columns)).encode())
        for column in (*(self.table[name] for name in self.table), self.target):
            series = pd.Series(np.asarray(column))
            digest.update(pd.util.hash_pandas_object(series, index=False).to_numpy())
        return digest.hexdigest()[:16]

    def check(self) -> None:
        """Refuse a table that cannot be learned from."""
        if len(self.table) != len(self.target):
            raise TableError(
                f"The data set {self.name!r} has {len(self.table)} rows and "
                f"{len(self.target)} labels. Each row needs a label."
            )
        if not len(self.table.columns):
            raise TableError(
                f"The data set {self.name!r} has no column besides its labels."
            )
        found = self.classes
        if len(found) < 2:
            raise TableError(
                f"The data set {self.name!r} has {len(found)} class in column "
                f"{self.target_name!r}. Two are needed to tell them apart."
            )
        if type_of_target(self.target) == "continuous":
            raise TableError(
                f"The labels of {self.name!r}, column {self.target_name!r}, are "
                "numbers with fractions. Choose a column of classes with `target`, or "
                "cut the numbers into classes first."
            )


def data_folder(path: str | os.PathLike[str] | None = None) -> Path:
    """Find the folder of data sets.

    Parameters
    ----------
    path : str or path, default=None
        The folder; the environment variable ``STEELYARD_DATA`` if None.

    Returns
    -------
    Path
        An existing folder.
    """
    chosen = path if path is not None else os.environ.get("STEELYARD_DATA")
    if not chosen:
        raise FileNotFoundError(
            "No folder of data sets is given: name one with --data, or in the "
            "environment variable STEELYARD_DATA."
        )
    folder = Path(chosen)
    if not folder.is_dir():
        raise FileNotFoundError(f"The folder of data sets {str(folder)!r} is absent.")
    return folder


def load_dataset(
    name: str | os.PathLike[str],
    folder: str | os.PathLike[str] | None = None,
    *,
    target: str | None = None,
) -> DataSet:
    """Read a data set by its name, or from a file.

    Parameters
    ----------
    name : str or path
        A file (ARFF, also gzipped; CSV, TSV or Parquet), or the name of a data set in
        the folder or among ``BUNDLED``. ``"sklearn:iris"`` and ``"openml:credit-g"``
        (or ``"openml:credit-g@2"`` for a version, ``"openml:31"`` for an id) say where
        it comes from; ``"task:Car"`` is a task of the exponential-loss paper.
    folder : str or path, default=None
        Where data sets are looked up; ``STEELYARD_DATA`` if None.
    target : str, default=None
        The column to predict. By default the one named class, target or label in any
        case; in an ARFF file, failing that, the last.

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
    kind, _, rest = text.partition(":")
    if kind == "sklearn":
        return _bundled(rest)
    if kind == "openml":
        return _from_openml(rest, target)
    if kind == "task":
        return _task(rest, folder)
    path = Path(text)
    if path.is_file():
        return _read_file(path, target)
    if path.name != text:
        raise FileNotFoundError(_no_file(path))
    if folder is not None or os.environ.get("STEELYARD_DATA"):
        found = _files(data_folder(folder)).get(text)
        if found is not None:
            return _read_file(found, target, text)
    if text in BUNDLED:
        return _bundled(text)
    raise FileNotFoundError(_unknown(text, folder))


def read_from_folder(
    name: str, folder: str | os.PathLike[str] | None = None
) -> DataSet:
    """Read a data set by its name from the folder and nowhere else."""
    where = data_folder(folder)
    found = _files(where).get(name)
    if found is None:
        raise FileNotFoundError(
            f"The folder {str(where)!r} holds no data set {name!r}."
            f"{_close(name, _files(where))}"
        )
    return _read_file(found, None, name)


def dataset_group(
    group: str, folder: str | os.PathLike[str] | None = None
) -> list[str]:
    """Name the data sets of a group, as the folder's manifest has them.

    Parameters
    ----------
    group : str
        A word of the column ``papers`` of ``MANIFEST.csv``, such as ``"rnb33"``;
        ``"tasks28"`` for the binary tasks of the exponential-loss paper.
    folder : str or path, default=None
        See ``load_dataset``.

    Returns
    -------
    list of str
        Names for ``load_dataset``.
    """
    if group == "tasks28":
        return [f"task:{task.name}" for task in TASKS]
    where = data_folder(folder)
    groups = _groups(where)
    if group not in groups:
        known = ", ".join(sorted([*groups, "tasks28"]))
        raise ParameterError(
            f"There is no group of data sets {group!r} in "
            f"{str(where / _MANIFEST)!r}. Groups: {known}."
        )
    return groups[group]


def expand_names(
    names: Iterable[Any], folder: str | os.PathLike[str] | None = None
) -> list[Any]:
    """Replace ``"group:NAME"`` by the names of its data sets, each once."""
    found: list[Any] = []
    for name in names:
        if isinstance(name, str) and name.startswith("group:"):
            new: list[Any] = list(dataset_group(name.removeprefix("group:"), folder))
        else:
            new = [name]
        # Data sets compare by identity, names by their letters.
        found += [entry for entry in new if entry not in found]
    return found


# ---------------------------------------------------------------------------- sources


def _suffix(path: Path) -> str | None:
    """Return the known suffix of a file name, or None."""
    fits = [suffix for suffix in _SUFFIXES if path.name.lower().endswith(suffix)]
    return max(fits, key=len, default=None)


def _files(folder: Path) -> dict[str, Path]:
    """Return the files of a folder by name of data set, those of the manifest first."""
    found: dict[str, Path] = {
        row["name"]: folder / row["file"] for row in _manifest(folder)
    }
    listed = {_MANIFEST, *(path.name for path in found.values())}
    for path in sorted(folder.iterdir()):
        suffix = _suffix(path)
        if suffix is not None and path.name not in listed:
            found.setdefault(path.name[: -len(suffix)], path)
    return found


def _manifest(folder: Path) -> list[dict[str, str]]:
    path = folder / _MANIFEST
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _groups(folder: Path) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for row in _manifest(folder):
        for word in row["papers"].split("|"):
            groups.setdefault(word, []).append(row["name"])
    return groups


def _read_file(path: Path, target: str | None, name: str | None = None) -> DataSet:
    import pandas as pd

    suffix = _suffix(path)
    if suffix is None:
        raise ParameterError(
            f"The file {str(path)!r} is of no known kind. Known: "
            f"{', '.join(_SUFFIXES)}."
        )
    name = name or path.name[: -len(suffix)]
    last_is_target = suffix in _ARFF
    if suffix in _ARFF:
        data = read_arff(path)
        frame, description = data.to_pandas(), data.relation
    elif suffix == ".parquet":
        frame, description = pd.read_parquet(path), ""
    else:
        frame, description = pd.read_csv(path, sep=_SEPARATORS[suffix]), ""
    if target is None:
        target = _target_of(frame, str(path), last_is_target)
    return _split(name, frame, target, description)


def _target_of(frame: pandas.DataFrame, path: str, last: bool) -> str:
    for word in _TARGETS[:1] if last else _TARGETS:
        fits = [column for column in frame.columns if str(column).lower() == word]
        if fits:
            return word if word in fits else fits[0]
    if last:
        return str(frame.columns[-1])
    raise ParameterError(
        f"The file {path!r} has no column named {', '.join(_TARGETS[:-1])} or "
        f"{_TARGETS[-1]}: say which to predict with `target`. Columns: "
        f"{_few(frame.columns)}."
    )


def _split(
    name: str, frame: pandas.DataFrame, target: str, description: str
) -> DataSet:
    """Take the labels out of a frame, and leave out rows without one."""
    if target not in frame.columns:
        raise ParameterError(
            f"The data set {name!r} has no column {target!r} to predict."
            f"{_close(target, map(str, frame.columns))} Columns: {_few(frame.columns)}."
        )
    frame = frame[frame[target].notna()].reset_index(drop=True)
    return DataSet(
        name,
        frame.drop(columns=target),
        _labels(frame[target]),
        target,
        description,
    )


def _labels(column: pandas.Series) -> NDArray[Any]:
    """Return whole numbers as integers, and everything but numbers as text."""
    if column.dtype.kind in "iu":
        return np.asarray(column, dtype=np.int64)
    if column.dtype.kind == "f":
        values = np.asarray(column, dtype=np.float64)
        whole = values.astype(np.int64)
        return whole if np.array_equal(whole, values) else values
    return np.asarray(column, dtype=str)


def _bundled(name: str) -> DataSet:
    from sklearn import datasets

    if name not in BUNDLED:
        raise FileNotFoundError(
            f"There is no data set {name!r}. Looked among: {', '.join(BUNDLED)} "
            f"(scikit-learn).{_close(name, BUNDLED)}"
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
        which = {"name": name, "version": int(version) if version else 1}
    try:
        bunch = datasets.fetch_openml(
            **which, target_column=target or "default-target", as_frame=True
        )
    except (OSError, ValueError) as error:
        raise FileNotFoundError(
            f"OpenML gave no data set {spec!r}: {error}. Check the name, the version "
            "after '@', and the network."
        ) from error
    # Names of the target come as a list when there are several.
    column = target or bunch.target_names[0]
    text = (bunch.DESCR or "").strip().splitlines()
    return _split(name, bunch.frame, column, text[0] if text else "")


def _task(name: str, folder: str | os.PathLike[str] | None) -> DataSet:
    """Read a task of the exponential-loss paper."""
    tasks = {task.name: task for task in (*TASKS, *MULTICLASS)}
    if name not in tasks:
        raise FileNotFoundError(
            f"There is no task {name!r}.{_close(name, tasks)} Tasks: "
            f"{', '.join(tasks)}."
        )
    task = tasks[name]
    data = read_from_folder(task.file, folder)
    table, labels = select_task(task, data.table, data.target)
    return DataSet(f"task:{name}", table, labels, "class", task.file)


# ---------------------------------------------------------------------------- messages


def _unknown(name: str, folder: str | os.PathLike[str] | None) -> str:
    """Say that a name is unknown, where it was looked up, and what is close."""
    places, known = [], list(BUNDLED)
    if folder is not None or os.environ.get("STEELYARD_DATA"):
        where = data_folder(folder)
        files = _files(where)
        known += list(files)
        places.append(f"the folder {str(where)!r} ({len(files)} data sets)")
        if name in _groups(where):
            return (
                f"{name!r} is a group of data sets, not one of them. "
                f"Say 'group:{name}'."
            )
    else:
        places.append("no folder (STEELYARD_DATA is not set)")
    places.append(f"scikit-learn's {', '.join(BUNDLED)}")
    return (
        f"There is no data set {name!r}. Looked in {' and '.join(places)}."
        f"{_close(name, known)}"
    )


def _no_file(path: Path) -> str:
    if not path.parent.is_dir():
        return f"There is no file {str(path)!r}: its folder does not exist."
    beside = [entry.name for entry in path.parent.iterdir() if _suffix(entry)]
    return f"There is no file {str(path)!r}.{_close(path.name, beside)}"


def _close(name: str, known: Iterable[str]) -> str:
    found = difflib.get_close_matches(name, list(dict.fromkeys(known)), 3, 0.5)
    return f" Close: {', '.join(map(repr, found))}." if found else ""


def _few(names: Iterable[Any], most: int = 12) -> str:
    listed = [str(name) for name in names]
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more
