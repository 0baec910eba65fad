"""Predict small files without loading what large ones need.

Unusual models, files and options are left to the ordinary path before anything is
written: results and messages are the same.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from math import isfinite
from typing import TYPE_CHECKING, Any

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
from steelyard.notices.notice import ColumnCheck, Notice, all_notices, column_checks

if TYPE_CHECKING:
    from steelyard.export.scorer import Scorer

_MAX_FILE_BYTES = 250_000
_EXACT_KINDS = {"categorical", "binned", "linear", "interaction"}
_TRUTH = {"true": True, "1": True, "false": False, "0": False}

Answer = tuple[list[Any], list[Any], list[Notice]]
"""Classes, columns of predictions, and what was noticed."""


class _UnusualFileError(Exception):
    """The ordinary path is needed."""


def quick_predictions(arguments: argparse.Namespace) -> Answer | None:
    """Return classes, predictions and notices; None if the ordinary path is needed."""
    try:
        return _predictions(arguments)
    except Exception:
        # Of whatever kind: the ordinary path reports what is wrong, if anything is.
        return None


def _predictions(arguments: argparse.Namespace) -> Answer:
    (path,), keep = arguments.data, arguments.keep
    is_parquet = (arguments.output or "").lower().endswith((".parquet", ".pq"))
    _need(not (arguments.reasons or arguments.intervals or is_parquet))
    _need(not any("=" in word for word in arguments.missing_values or ()))
    _need(0 < os.path.getsize(path) <= _MAX_FILE_BYTES)
    score, like, checks = _scorer(arguments.model)
    _need(not like.get("missing_by_column"))
    # Columns that are left out may be lacking, and contain anything.
    used = {check.name for check in checks}
    columns = [column for column in score.data["columns"] if column["name"] in used]
    expected = {column["name"]: column["cells"] for column in columns}
    table = _Small(path, options.reading_of(arguments), like)
    _need({*keep, *expected} <= {*table.columns} and bool(table.n_rows))
    read = [table.cells(name, kind) for name, kind in expected.items()]
    kept = [table.cells(name, expected.get(name, "text")) for name in keep]
    rows = [dict(zip(expected, r, strict=True)) for r in zip(*read, strict=True)]
    # Of averages over missing cells the last digit may differ.
    _need(not any(map(score.is_partial, rows)))
    answers = list(map(score.answer, rows))
    labels, probabilities = zip(*answers, strict=True)
    expected_names = {*score.columns, *keep}
    extra = [name for name in table.columns if name not in expected_names]
    if extra:
        shown = listed(extra)
        note(f"columns that the model does not use are ignored: {shown}")
    note(*table.notes)
    for check, cells in zip(checks, read, strict=True):
        _add_cells(check, cells)
    columns = [*kept, labels, *zip(*probabilities, strict=True)]
    return score.classes, columns, all_notices(checks)


def _add_cells(check: ColumnCheck, cells: list[Any]) -> None:
    """Compare the cells of a column with those of training."""
    present = [cell for cell in cells if cell is not None]
    n_missing = len(cells) - len(present)
    if check.feature.kind == "categorical":
        codes = check.feature.codes(present)
        unseen = Counter(
            cell for cell, code in zip(present, codes, strict=True) if not code
        )
        check.add_values(len(cells), n_missing, unseen)
    elif present and check.feature.cells != "nothing":
        low, high = check.ends or (min(present), max(present))
        n_beyond = sum(not low <= number <= high for number in present)
        ends = min(present), max(present)
        check.add_numbers(len(cells), n_missing, *ends, n_beyond)
    else:
        check.add_values(len(cells), n_missing, {})


def _scorer(path: str) -> tuple[Scorer, dict[str, Any], list[ColumnCheck]]:
    """Return the scorer of a model file, if its answers are exact and its cells plain.

    The file is read with all the checks of ``load``. Further results are how the
    training file was read, and the checks of new cells by column.
    """
    from steelyard.export.reading import scorer_of_model
    from steelyard.persistence.files import read

    checked = read(path)
    model, classes = checked.model, checked.classes
    # Of other sums the last digit may differ, and SPSS reads cells differently.
    _need(model.kind == "sum" and checked.estimator != "SPSSNaiveBayes")
    _need({feature.kind for feature in model.schema.features} <= _EXACT_KINDS)
    # Other numbers are printed as NumPy has them.
    is_text = all(isinstance(label, str) for label in classes)
    _need(is_text or classes.dtype in ("bool", "int64", "int32"))
    _need(model.schema.names is not None)
    training, counts = checked.attributes["training_"], checked.attributes["counts_"]
    like, ranges = training.reading, training.ranges
    tables = counts.by_class.flat, counts.by_code.flat
    checks = column_checks(model.schema, ranges, *tables)
    checks = [check for check in checks if not check.feature.left_out]
    return scorer_of_model(checked.estimator, model), like, checks


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
        # The ordinary path reports cells that are no numbers.
        _need(
            len(numbers) == len(texts)
            and all(isfinite(x.value) for x in numbers.values())
        )
        return [None if cell is None else numbers[cell].value for cell in read]


def _need(condition: bool) -> None:
    if not condition:
        raise _UnusualFileError
