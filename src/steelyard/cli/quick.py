"""Predict small files without loading what large ones need.

Whatever is unusual in a model, a file or the options is left to the ordinary path,
before anything is written: results and messages are the same.
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import re
from typing import Any

from steelyard._common.missing import MISSING_VALUES
from steelyard._common.text import listed
from steelyard.cli import options
from steelyard.cli.output import note

_MOST_BYTES = 250_000
_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,25})?([eE][-+]?[0-9]{1,2})?", re.ASCII)
_TRUTH = {"true": True, "1": True, "false": False, "0": False}

Answer = tuple[list[Any], list[Any]]
"""Classes, and columns of predictions."""


class _UnusualError(Exception):
    """Something that the ordinary path knows better."""


def quick_predictions(arguments: argparse.Namespace) -> Answer | None:
    """Return classes and columns of predictions, None for the ordinary path."""
    try:
        return _predictions(arguments)
    except Exception:
        # Of whatever kind: the ordinary path says what is wrong, if anything is.
        return None


def _predictions(arguments: argparse.Namespace) -> Answer:
    from steelyard.export.quick import QuickModel

    (path,), keep = arguments.data, arguments.keep
    is_parquet = (arguments.output or "").lower().endswith((".parquet", ".pq"))
    reading = options.reading_of(arguments).values()
    _need(all(choice is None for choice in reading))
    _need(not arguments.reasons and not is_parquet)
    _need(path.lower().endswith((".csv", ".tsv")))
    _need(0 < os.path.getsize(path) <= _MOST_BYTES)
    model = QuickModel(arguments.model)
    header, rows = _table(path)
    _need(set(keep).isdisjoint(model.cells) and {*keep, *model.cells} <= {*header})
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    read = {name: _cells(columns[name], kind) for name, kind in model.cells.items()}
    kept = [_cells(columns[name], "text") for name in keep]
    by_row = zip(*read.values(), strict=True)
    answers = [model.predict(dict(zip(read, row, strict=True))) for row in by_row]
    labels, probabilities = zip(*answers, strict=True)
    extra = [name for name in header if name not in model.cells and name not in keep]
    if extra:
        shown = listed(extra)
        note(f"columns that the model does not use are ignored: {shown}")
    return model.classes, [*kept, labels, *zip(*probabilities, strict=True)]


def _table(path: str) -> tuple[list[str], list[list[str]]]:
    """Read the cells of a file in which every line has as many."""
    from steelyard._common.spelling import Spelling, find_spelling

    with open(path, "rb") as file:
        data = file.read()
    separator = "\t" if path.lower().endswith(".tsv") else ","
    _need(find_spelling(data, "utf-8", expected=separator) == Spelling(separator))
    text = data.decode("utf-8-sig").replace("\r\n", "\n")
    _need("\0" not in text and "\r" not in text)
    lines = csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True)
    header, *rows = lines
    rows = [row for row in rows if row]
    header = [name.strip() for name in header]
    _need(all(header) and len(set(header)) == len(header) and bool(rows))
    _need(all(len(row) == len(header) for row in rows))
    # In one column, a line of spaces is a cell here and nothing there.
    _need(len(header) > 1)
    _need(not any("\n" in cell for row in rows for cell in row))
    return header, rows


def _cells(column: tuple[str, ...], kind: str) -> list[Any]:
    """Return the cells of a column as a model expects them, missing ones as None."""
    known = [None if cell in ("", *MISSING_VALUES) else cell for cell in column]
    if kind == "text":
        return known
    if kind == "booleans":
        return [None if cell is None else _TRUTH[cell.lower()] for cell in known]
    _need(kind == "numbers" or not any(known))
    _need(all(c is None or _NUMBER.fullmatch(c) is not None for c in known))
    return [None if c is None else float(c) for c in known]


def _need(condition: bool) -> None:
    if not condition:
        raise _UnusualError
