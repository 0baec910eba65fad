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

from steelyard._common.text import MISSING_NUMBERS
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
    chosen = (arguments.format, arguments.separator, arguments.reasons)
    _need(not any(chosen) and not arguments.missing_values and not is_parquet)
    _need(arguments.encoding == "utf-8" and path.lower().endswith((".csv", ".tsv")))
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
        shown = ", ".join(extra[:8]) + (", …" if len(extra) > 8 else "")
        note(f"columns that the model does not use are ignored: {shown}")
    return model.classes, [*kept, labels, *zip(*probabilities, strict=True)]


def _table(path: str) -> tuple[list[str], list[list[str]]]:
    """Read the cells of a file in which every line has as many."""
    with open(path, "rb") as file:
        text = file.read().decode("utf-8-sig").replace("\r\n", "\n")
    _need("\0" not in text and "\r" not in text)
    separator = "\t" if path.lower().endswith(".tsv") else ","
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
    if kind == "text":
        return [cell or None for cell in column]
    if kind == "booleans":
        return [_TRUTH[cell.lower()] if cell else None for cell in column]
    _need(kind == "numbers" or not any(column))
    known = [None if c in ("", *MISSING_NUMBERS) else c for c in column]
    _need(all(c is None or _NUMBER.fullmatch(c) is not None for c in known))
    return [None if c is None else float(c) for c in known]


def _need(condition: bool) -> None:
    if not condition:
        raise _UnusualError
