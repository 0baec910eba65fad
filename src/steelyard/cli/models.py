"""Model files, and rows as their models expect them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.cli.options import reading_of
from steelyard.cli.output import note
from steelyard.exceptions import ModelFileError

if TYPE_CHECKING:
    import pandas

__all__ = ["load_model", "rows_for"]


def load_model(path: str) -> Any:
    """Read a model file whose columns have names."""
    import steelyard

    if not Path(path).is_file():
        raise FileNotFoundError(f"The model file {path} is not there.")
    clf = steelyard.load(path)
    if clf.encoder_.schema_.names is None:
        raise ModelFileError(
            f"{path} holds a model that was fitted without column names, so that the "
            "columns of a file cannot be matched. Fit it to a table with names."
        )
    return clf


def rows_for(
    clf: Any,
    path: str,
    arguments: argparse.Namespace,
    also: Sequence[str] = (),
    rows: int = 50_000,
) -> Iterator[tuple[pandas.DataFrame, pandas.DataFrame]]:
    """Yield what a model predicts from, and further columns, some rows at a time."""
    from steelyard.experiments.data import files
    from steelyard.experiments.data.source import Source, listed

    schema = clf.encoder_.schema_
    cells = {feature.name: feature.cells for feature in schema.features}
    expected = {name: cells[name] for name in schema.names}
    source = Source.of(path, **reading_of(arguments))
    chunks = files.read_chunks(source, expected, also, rows)
    for k, (frame, extra) in enumerate(chunks):
        if k == 0:
            note(*source.notes)
            if extra:
                shown = listed(extra)
                note(f"columns that the model does not use are ignored: {shown}")
        yield frame[list(expected)], frame[list(also)]
