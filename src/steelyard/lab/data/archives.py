"""Fetching the papers' data sets from public archives into a folder of ARFF files.

The catalogue names a source for most of them: a file at a commit of a public GitHub
repository, a file of UCI's archive, or a number of OpenML. What comes is checked by its
counts, and its cells are compared with those of the copy behind the figures of the
documentation, by their digest.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError

import numpy as np
from sklearn.datasets import fetch_file

from steelyard.exceptions import TableError
from steelyard.io.dataset import DataSet, read_dataset
from steelyard.lab.data.datasets import load_dataset

if TYPE_CHECKING:
    import pandas


def download(url: str, path: Path, **options: Any) -> None:
    """Fetch a file unless it is there; ``options`` are those of ``fetch_file``.

    If there is no answer at all, the error is a ``ConnectionError``.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        fetch_file(url, path.parent, path.name, **options)
    except OSError as error:
        no_answer = isinstance(error, URLError) and not isinstance(error, HTTPError)
        kind = ConnectionError if no_answer else OSError
        raise kind(f"{url} could not be fetched: {error}") from error


def fetch_dataset(entry: Mapping[str, str], folder: Path, **options: Any) -> bool:
    """Fetch a data set of the catalogue into a folder, as ARFF.

    Options are those of ``download``. Returns whether its cells are those of the copy
    that figures were made with.
    """
    kind, _, where = entry["source"].partition(":")
    if kind == "openml":
        data = load_dataset(entry["source"], target=entry["target"] or None)
    else:
        url = entry["source"]
        if kind == "github":
            repository, _, path = where.partition("@")
            url = f"https://raw.githubusercontent.com/{repository}/{path}"
        is_arff = url.endswith(".arff")
        raw = folder / "downloads" / f"{entry['name']}{'.arff' if is_arff else '.csv'}"
        download(url, raw, **options)
        try:
            data = _read(entry, raw, {} if is_arff else {"format": "csv"})
        except (ValueError, OSError) as error:
            raw.unlink()
            problem = f"The reply of {url} is not a table of {entry['name']!r}"
            raise TableError(f"{problem}: {error}") from error
    data = _plain(data)
    counts = len(data), data.table.shape[1], len(data.classes)
    expected = tuple(int(entry[key]) for key in ("instances", "attributes", "classes"))
    if counts != expected:
        raise TableError(
            f"{entry['source']} has {counts} rows, attributes and classes, and "
            f"{entry['name']!r} has {expected}: it is not written."
        )
    write_arff(folder / f"{entry['name']}.arff", data)
    return content_digest(data) == entry["digest"]


def _read(entry: Mapping[str, str], raw: Path, reading: dict[str, Any]) -> DataSet:
    """Read what came; a target such as x5 says that there are no names."""
    if re.fullmatch(r"x\d+", entry["target"]):
        reading["no_header"] = True
    data = read_dataset(raw, target=entry["target"] or None, **reading)
    names = [name for name in entry["columns"].split() if name != "class"]
    if names and len(names) == data.table.shape[1]:
        data = replace(data, table=data.table.set_axis(names, axis=1))
    return data


def _plain(data: DataSet) -> DataSet:
    """Write names and values without blanks and quotes, as ARFF needs no marks then."""

    def plain(value: Any) -> str:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        text = re.sub(r"[\s,{}%]+", "_", re.sub(r"['\"\\]", "", str(value)).strip())
        return "-" if text == "?" else text  # a quoted mark is a value of its own

    table = data.table.rename(columns=plain)
    for name in table.columns.difference(table.select_dtypes("number").columns):
        column = table[name].astype("category")
        table[name] = column.cat.rename_categories(map(plain, column.cat.categories))
    target = np.array([plain(label) for label in data.target.tolist()])
    return replace(data, table=table, target=target)


def _cells(column: pandas.Series[Any], digits: str) -> list[str]:
    """Return the cells of a column as text."""
    if column.dtype.kind in "biuf":
        values = column.astype(float).tolist()
        return ["?" if v != v else format(v, digits) for v in values]
    return [
        "?" if missing else str(v)
        for v, missing in zip(column, column.isna(), strict=True)
    ]


def _rows(data: DataSet, digits: str) -> list[str]:
    columns = [_cells(data.table[name], digits) for name in data.table]
    labels = map(str, data.target.tolist())
    return [",".join(row) for row in zip(*columns, labels, strict=True)]


def content_digest(data: DataSet) -> str:
    """Return a digest of cells and labels in order, numbers with six digits.

    Names of columns are left out, since archives differ in them.

    >>> content_digest(load_dataset("wdbc"))
    '318de10b782e3af4'
    """
    lines = "".join(f"{row}\n" for row in _rows(data, ".6g"))
    return hashlib.sha256(lines.encode()).hexdigest()[:16]


def write_arff(path: Path, data: DataSet) -> None:
    """Write a data set without blanks and quotes as ARFF, the class last."""
    kinds = {
        name: "{" + ",".join(map(str, column.cat.categories)) + "}"
        if column.dtype == "category"
        else "NUMERIC"
        for name, column in data.table.items()
    }
    kinds["class"] = "{" + ",".join(map(str, data.classes.tolist())) + "}"
    lines = [f"@relation {data.name}", ""]
    lines += [f"@attribute {name} {kind}" for name, kind in kinds.items()]
    part = path.with_name(f"{path.name}.part")
    rows = _rows(data, ".17g")
    part.write_text("\n".join([*lines, "", "@data", *rows, ""]), encoding="utf-8")
    os.replace(part, path)
