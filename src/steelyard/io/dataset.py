"""A table with labels, read from a file, and numbers cut into classes."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from steelyard._common.text import listed, unlabelled
from steelyard.exceptions import ParameterError, TableError
from steelyard.io.paths import find_column, stem_and_format
from steelyard.table.labels import MAX_NUMBERS

if TYPE_CHECKING:
    import pandas

    from steelyard.io.kinds import Recast
    from steelyard.io.reader import Reader

_TARGETS = ("class", "target", "label")
# The name of a class of a target that was cut.
_LABEL = re.compile(r"\d+: (?:≤ (?P<low>\S+)|> (?P<high>\S+)|\S+ to (?P<up_to>\S+))")


@dataclass(frozen=True, eq=False)
class DataSet:
    """A table, the labels to predict, and where they come from.

    >>> from steelyard.lab.data.datasets import load_dataset
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
    notes: tuple[str, ...] = ()
    """Notes on what was left out in reading, a sentence each."""

    reading: Mapping[str, Any] = field(default_factory=dict)
    """How a text file was read, for files to predict."""

    labels: Mapping[str, str] = field(default_factory=dict)
    """Titles of columns, from files of SPSS and Stata."""

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.target)

    @property
    def classes(self) -> NDArray[Any]:
        """The classes that occur, sorted."""
        return np.unique(self.target)

    @property
    def kinds(self) -> dict[str, str]:
        """Whether each column is ``"numeric"``, ``"categorical"`` or ``"dates"``."""
        kinds = dict.fromkeys(self.table.columns, "categorical")
        kinds |= dict.fromkeys(self.table.select_dtypes("number"), "numeric")
        return kinds | dict.fromkeys(self.table.select_dtypes("datetime"), "dates")

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
            problem = "has no column besides its labels."
            raise TableError(f"The data set {self.name!r} {problem}")
        if len(self.classes) < 2:
            raise TableError(
                f"The data set {self.name!r} has {len(self.classes)} class in column "
                f"{self.target_name!r}. At least two are needed."
            )
        self.check_target()

    def check_target(self) -> None:
        """Refuse measurements as labels: each value would be a class."""
        if self.target.dtype.kind not in "iuf":
            return
        from sklearn.utils.multiclass import type_of_target

        n_values = len(self.classes)
        has_fractions = type_of_target(self.target) == "continuous"
        if has_fractions or n_values > MAX_NUMBERS:
            what = "with fractions " if has_fractions else ""
            raise TableError(
                f"The target {self.target_name!r} of {self.name} has numbers {what}"
                f"({n_values} values from {self.target.min()} to {self.target.max()}), "
                "and a classifier needs classes. Cut it into 5 classes of about equal "
                "size with `bins=5`, choose another column with `target`, or, if its "
                "numbers are names, list it in `categorical`."
            )


def read_dataset(
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    target: str | None = None,
    categorical: Sequence[str] = (),
    numeric: Sequence[str] = (),
    bins: int | None = None,
    **reading: Any,
) -> DataSet:
    r"""Read a data set from a file, as the command line does.

    Columns of numbers are numbers, and all others are text as it is written. Encoding,
    separator, decimal mark and marks of thousands are found out from the file. An empty
    cell is missing, and so is ``NA``, ``N/A``, ``NaN``, ``NULL`` or ``?``. A few other
    cells in a column of numbers are treated as missing, and named in ``notes``. Values
    with labels in SPSS and Stata are categories, and dates are dates in every format.

    Parameters
    ----------
    path : str or path
        A CSV, TSV, text, JSON, Parquet, Arrow or ARFF file, the text formats also
        compressed (``.gz``, ``.bz2``, ``.xz``, ``.zst``, or ``.zip`` of one file), or
        one of Excel (``.xlsx``), SPSS (``.sav``) or Stata (``.dta``); ``-`` is standard
        input. ``steelyard[formats]`` reads Excel and SPSS.
    name : str, default=None
        How the data set is called; as the file if None.
    target : str, default=None
        The column to predict, as in ``load_dataset``.
    categorical, numeric : list of str
        Columns whose cells are names or numbers, whatever they look like.
    bins : int, default=None
        In how many classes to cut a target of numbers, of about as many rows each.
    **reading
        ``format``, ``separator``, ``decimal``, ``thousands``, ``encoding``,
        ``missing_values``, a list of cells that mean a missing value in place of
        the usual ones (``"age=-999"`` for one column, besides them), ``skip``,
        ``comment``, ``no_header`` and ``sheet``, as in ``sy.scan``.

    Returns
    -------
    DataSet
        Its table and labels; what was decided and left out is in ``notes``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "people.csv"
    ...     _ = file.write_text("age;dose;ill\n31;0,5;no\n?;1,5;yes\n44;2,5;NA\n")
    ...     data = read_dataset(file, target="ill")
    >>> data.table["age"].tolist(), data.table["dose"].tolist(), data.target.tolist()
    ([31.0, nan], [0.5, 1.5], ['no', 'yes'])
    >>> print(data.notes[0].partition(": ")[2], data.notes[1], sep="; ")
    cells between semicolons, decimal commas; dropped 1 row without 'ill'
    """
    from steelyard.io.reader import whole_frame

    reader, target = open_table(path, target, categorical, numeric, **reading)
    name = name or (reader.name if str(path) == "-" else stem_and_format(path)[0])
    frame, about = whole_frame(reader, reader.names), reader.about.get("relation", "")
    data = split_labels(name, frame, target, about, reader.notes)
    data = replace(data, reading=reader.reading, labels=reader.labels)
    if bins is None:
        return data
    if data.target.dtype.kind not in "iuf":
        raise ParameterError(
            f"`bins` are for numbers, and the target {data.target_name!r} contains "
            f"text, such as {str(data.target[0])!r}."
        )
    return replace(data, target=cut(data.target, bins))


# Under this name it is in ``steelyard``, beside ``load`` and ``scan``.
read = read_dataset


def open_table(
    source: Any,
    target: str | None,
    categorical: Sequence[str],
    numeric: Sequence[str],
    **reading: Any,
) -> tuple[Recast, str]:
    """Open files to learn from, whole or in chunks, and find the column to predict."""
    from steelyard.io.kinds import Recast
    from steelyard.io.recognise import open_files

    reader = open_files(source, **reading)
    if target is None:
        target = reader.about.get("target") or _target_of(reader)
    for name in (target, *categorical, *numeric):
        find_column(name, reader.names, reader.name, reader.hint)
    return Recast(reader, categorical, numeric), target


def _target_of(reader: Reader) -> str:
    """Find the column to predict by its name."""
    for word in _TARGETS:
        fits = [name for name in reader.names if name.lower() == word]
        if fits:
            return word if word in fits else fits[0]
    raise ParameterError(
        f"The file {reader.name!r} has no column named {', '.join(_TARGETS[:-1])} or "
        f"{_TARGETS[-1]}: name the one to predict with `target`. Columns: "
        f"{listed(reader.names, 12)}.{reader.hint}"
    )


def split_labels(
    name: str,
    frame: pandas.DataFrame,
    target: str,
    description: str,
    notes: Sequence[str] = (),
) -> DataSet:
    """Take the labels out of a frame, and leave out rows without one."""
    has_label = frame[target].notna()
    n_missing = int((~has_label).sum())
    if n_missing == len(frame):
        raise TableError(f"The target {target!r} of {name} is empty.")
    if n_missing:
        notes = [*notes, unlabelled(n_missing, target)]
    frame = frame[has_label].reset_index(drop=True)
    table, labels = frame.drop(columns=target), _labels(frame[target])
    return DataSet(name, table, labels, target, description, tuple(notes))


def _labels(column: pandas.Series) -> NDArray[Any]:
    """Return whole numbers as integers, and everything but numbers as plain text."""
    if column.dtype.kind in "iu":
        return np.asarray(column, dtype=np.int64)
    if column.dtype.kind == "M":
        has_time = (column != column.dt.normalize()).any()
        column = column.dt.strftime("%Y-%m-%d %H:%M:%S" if has_time else "%Y-%m-%d")
    if column.dtype.kind == "f":
        values = np.asarray(column, dtype=np.float64)
        whole = values.astype(np.int64)
        return whole if np.array_equal(whole, values) else values
    return np.char.strip(np.asarray(column, dtype=str))


def cut(numbers: ArrayLike, n_bins: int) -> NDArray[Any]:
    """Cut numbers into classes of about as many rows each, named by their bounds.

    Bounds have four digits if that keeps them distinct.

    >>> cut([1.5, 2.25, 3.125, 40.0], 2).tolist()
    ['1: ≤ 2.25', '1: ≤ 2.25', '2: > 2.25', '2: > 2.25']
    """
    if n_bins < 2:
        raise ParameterError(f"`bins` must be 2 or more. Got {n_bins}.")
    values = np.asarray(numbers, dtype=np.float64)
    # A quantile that occurs, so that rounding is the exception.
    shares = np.arange(1, n_bins) / n_bins
    exact = np.unique(np.quantile(values, shares, method="lower"))
    for digits in (4, 6, 17):
        bounds = [f"{bound:.{digits}g}" for bound in exact]
        if len({*map(float, bounds)}) == len(exact):
            break
    edges = np.array([float(bound) for bound in bounds if float(bound) < values.max()])
    if not len(edges):
        raise ParameterError(
            f"The numbers cannot be cut into {n_bins} classes: most of them are equal. "
            "Try more `bins`, or another target."
        )
    return _named(edges)[np.searchsorted(edges, values)]


def cut_as(numbers: ArrayLike, classes: Sequence[Any]) -> NDArray[Any] | None:
    """Return the class of each number, None if classes are no ranges of numbers.

    >>> cut_as([1, 5], ["1: ≤ 2.25", "2: > 2.25"]).tolist()
    ['1: ≤ 2.25', '2: > 2.25']
    >>> cut_as([1, 5], ["no", "yes"])
    """
    matches = [_LABEL.fullmatch(str(name)) for name in classes]
    bounds = [float(m["low"] or m["up_to"]) for m in matches if m and not m["high"]]
    if not all(matches) or len(bounds) != len(classes) - 1:
        return None
    edges = np.sort(bounds)
    return _named(edges)[np.searchsorted(edges, np.asarray(numbers, dtype=float))]


def _named(edges: NDArray[np.float64]) -> NDArray[Any]:
    """Return names of the ranges between bounds, which sort in their order."""
    texts = [
        f"{edge:.17g}" if float(f"{edge:.6g}") != edge else f"{edge:.6g}"
        for edge in edges
    ]
    width = len(str(len(edges) + 1))
    ranges = [f"≤ {texts[0]}"]
    ranges += [f"{a} to {b}" for a, b in pairwise(texts)]
    ranges.append(f"> {texts[-1]}")
    return np.array([f"{k:0{width}}: {name}" for k, name in enumerate(ranges, 1)])
