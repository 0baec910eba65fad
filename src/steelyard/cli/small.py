"""Rows of small text files, read without the libraries that large ones need.

Unusual files and options are left to the readers of ``steelyard.io`` before anything is
noted: cells and messages are the same.
"""

from __future__ import annotations

import argparse
import os
from math import isfinite, nan
from typing import Any

import numpy as np

from steelyard._common.text import listed
from steelyard.cli import options
from steelyard.cli.output import note
from steelyard.io.dialect import (
    HEAD,
    USUAL,
    asked_dialect,
    decimal_in,
    find_dialect,
)
from steelyard.io.lines import CsvLines
from steelyard.io.numbers import read_numbers
from steelyard.io.paths import TEXT, find_files
from steelyard.table.columns import array_column
from steelyard.table.frames import Table

_MAX_FILE_BYTES = 250_000
_TRUTH = {"true": True, "1": True, "false": False, "0": False}

Rows = tuple[Table, list[list[Any]]]
"""The columns of a model, and the cells of the columns to copy."""


class _UnusualFileError(Exception):
    """Another reader is needed."""


def small_rows(clf: Any, arguments: argparse.Namespace) -> Rows | None:
    """Return the rows to predict; None if another reader is needed."""
    try:
        return _rows(clf, arguments)
    except Exception:
        # Of whatever kind: the other reader reports what is wrong, if anything is.
        return None


def _rows(clf: Any, arguments: argparse.Namespace) -> Rows:
    (path,), keep = arguments.data, arguments.keep
    is_parquet = (arguments.output or "").lower().endswith((".parquet", ".pq"))
    _need(not (arguments.reasons or arguments.intervals or is_parquet))
    _need(arguments.chunk_rows is None)
    _need(not any("=" in word for word in arguments.missing_values or ()))
    _need(0 < os.path.getsize(path) <= _MAX_FILE_BYTES)
    schema, like = clf.encoder_.schema_, clf.training_.reading
    _need(not like.get("missing_by_column") and type(clf).__name__ != "SPSSNaiveBayes")
    # Columns that are left out may be lacking, and contain anything.
    columns = schema.without_interactions.features
    used = {f.name: f.cells for f in columns if not f.left_out}
    file = _Small(path, options.reading_of(arguments), like)
    _need({*keep, *used} <= {*file.columns} and bool(file.n_rows))
    made = []
    for j, (name, kind) in enumerate(used.items()):
        cells = file.cells(name, kind)
        if kind in ("numbers", "nothing"):
            numbers = [nan if cell is None else cell for cell in cells]
            made.append(array_column(j, name, np.array(numbers, dtype=np.float64)))
        else:
            made.append(array_column(j, name, np.array(cells, dtype=object)))
    kept = [file.cells(name, used.get(name, "text")) for name in keep]
    expected = {*schema.names, *keep}
    extra = [name for name in file.columns if name not in expected]
    if extra:
        note(f"columns that the model does not use are ignored: {listed(extra)}")
    note(*file.notes)
    return Table(made, file.n_rows, list(used), None), kept


class _Small:
    """The cells of a small text file, by the rules of all text files."""

    def __init__(
        self, path: str, reading: dict[str, Any], like: dict[str, Any]
    ) -> None:
        format = reading.pop("format")
        (file,) = find_files(path, format)
        _need(file.format in TEXT)
        asked, usual = asked_dialect(**reading), USUAL[file.format]
        self._dialect = find_dialect(file.head(HEAD), asked, usual, like)
        self._like = like
        lines = CsvLines(file, self._dialect, asked["encoding"] is None)
        with file.open() as raw:
            rows = list(lines.rows(raw))
        words = self._dialect.in_words(asked, usual, like)
        self.notes = [f"{file.name}: {words}"] if words else []
        self.notes += lines.left_out()
        self.n_rows = len(rows)
        columns = dict(zip(lines.header, zip(*rows, strict=True), strict=False))
        self.columns = {name: columns[name] for name in lines.names}

    def cells(self, name: str, kind: str) -> list[Any]:
        """Return the cells of a column as a model expects them, missing ones None."""
        empty, stripped = self._dialect.empty, map(str.strip, self.columns[name])
        read = [None if cell in empty else cell for cell in stripped]
        if kind == "text":
            return read
        if kind == "booleans":
            return [None if cell is None else _TRUTH[cell.lower()] for cell in read]
        _need(kind == "numbers" or not any(read))
        texts = {cell for cell in read if cell is not None}
        marks = decimal_in(name, self._dialect, self._like), self._dialect.thousands
        unit = self._like.get("units", {}).get(name, "")
        numbers = read_numbers(texts, *marks, unit)
        # The other reader reports cells that are no numbers.
        _need(
            len(numbers) == len(texts)
            and all(isfinite(x.value) for x in numbers.values())
        )
        return [None if cell is None else numbers[cell].value for cell in read]


def _need(condition: bool) -> None:
    if not condition:
        raise _UnusualFileError
