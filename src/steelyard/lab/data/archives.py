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
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import numpy as np

from steelyard._common.text import counted
from steelyard.exceptions import TableError
from steelyard.io.dataset import DataSet, read_dataset
from steelyard.lab.data.datasets import load_dataset

if TYPE_CHECKING:
    import pandas

Progress = Callable[[int, int | None], None]
"""Called with the number of bytes that are there, and of all, if that is known."""

_BLOCK = 1 << 16
_TRY_AGAIN = (408, 416, 429)


def download(
    url: str,
    path: Path,
    *,
    attempts: int = 5,
    pause: float = 1.0,
    timeout: float = 30.0,
    progress: Progress | None = None,
) -> Path:
    """Fetch a file, going on from what an interrupted attempt has left.

    A failed attempt is followed by another after a pause, each twice as long as the one
    before; an answer such as "not found" ends it at once. If no attempt has reached the
    server, the error is a ``ConnectionError``.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    for attempt in range(attempts):
        try:
            _go_on(url, part, timeout, progress)
        except (OSError, HTTPException) as error:
            code = getattr(error, "code", None)
            if code == 416:  # the part is no beginning of what is there now
                part.unlink(missing_ok=True)
            final = code is not None and code < 500 and code not in _TRY_AGAIN
            if final or attempt == attempts - 1:
                problem, kind = str(error) or type(error).__name__, OSError
                if code is None and isinstance(error, URLError):
                    problem, kind = str(error.reason), ConnectionError
                tried = f"after {counted(attempt + 1, 'attempt')}: {problem}"
                raise kind(f"{url} could not be fetched, {tried}") from error
            time.sleep(pause * 2**attempt)
        else:
            break
    os.replace(part, path)
    return path


def _go_on(url: str, part: Path, timeout: float, progress: Progress | None) -> None:
    """Fetch what is missing of a part, or all of it if the server must begin again."""
    done = part.stat().st_size if part.exists() else 0
    request = Request(url, headers={"Range": f"bytes={done}-"} if done else {})
    with urlopen(request, timeout=timeout) as answer:
        if f"bytes {done}-" not in answer.headers.get("Content-Range", ""):
            done = 0
        length = answer.headers.get("Content-Length")
        total = None if length is None else done + int(length)
        with part.open("ab" if done else "wb") as file:
            while block := answer.read1(_BLOCK):
                file.write(block)
                done += len(block)
                if progress is not None:
                    progress(done, total)
    if total is not None and done != total:
        raise OSError(f"the answer was cut after {done:,} of {total:,} bytes")


def fetch_dataset(
    entry: Mapping[str, str],
    folder: Path,
    *,
    progress: Progress | None = None,
    **options: Any,
) -> bool:
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
        if not raw.exists():
            download(url, raw, progress=progress, **options)
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
