"""What commands read: training data and the method, or a model and its rows."""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard._common.text import listed
from steelyard.cli.options import names_of, reading_of
from steelyard.cli.output import note
from steelyard.exceptions import ColumnError, ModelFileError, ParameterError, TableError

if TYPE_CHECKING:
    import pandas
    from numpy.typing import NDArray

    from steelyard.experiments.data import DataSet
    from steelyard.experiments.data.source import Source

_MANY_CLASSES = 200


def read_training(
    path: str, arguments: argparse.Namespace
) -> tuple[DataSet, NDArray[Any] | None]:
    """Read a file, and return the columns to learn from with labels, and weights."""
    from steelyard.experiments.data import read_dataset

    check_kinds(arguments)
    data = read_dataset(
        path,
        target=arguments.target,
        categorical=arguments.categorical,
        numeric=arguments.numeric,
        bins=arguments.bins,
        **reading_of(arguments),
    )
    data.check_target()
    _check_classes(data, arguments.yes)
    note(*data.notes)
    weights = None
    if arguments.weights is not None:
        weights = _weights(data, arguments.weights)
    return replace(data, table=_columns(data, arguments)), weights


def _check_classes(data: DataSet, is_wanted: bool) -> None:
    if (n_classes := len(data.classes)) > _MANY_CLASSES and not is_wanted:
        raise TableError(
            f"The target {data.target_name!r} has {n_classes} classes in {len(data)} "
            "rows, which may take long and say little. If it is the right column, add "
            "`yes`; otherwise choose another with `target`."
        )


def check_kinds(arguments: argparse.Namespace) -> None:
    """Refuse columns that are to hold both names and numbers."""
    both = sorted(set(arguments.categorical) & set(arguments.numeric))
    if both:
        raise ColumnError(f"Column {both[0]!r} is both in --categorical and --numeric.")


def make_classifier(arguments: argparse.Namespace) -> tuple[str, Any]:
    """Return the method's name and an unfitted classifier, its settings checked."""
    from steelyard._common.settings import check_settings
    from steelyard.classifiers.registry import DEFAULT, method

    name = arguments.method or DEFAULT
    settings = dict(map(_setting, arguments.settings))
    clf: Any = method(name, **settings)
    if hasattr(clf, "_settings"):
        _read_names(clf, settings)
        # Before a file is read. Baselines declare nothing.
        check_settings(clf)
    return name, clf


def _setting(text: str) -> tuple[str, Any]:
    """Read NAME=VALUE; a value that is no Python literal is text."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        problem = f"--set takes NAME=VALUE, as in max_iter=50. Got {text!r}."
        raise ParameterError(problem)
    try:
        return name.strip(), ast.literal_eval(value.strip())
    except (ValueError, SyntaxError):
        return name.strip(), value.strip()


def _read_names(clf: Any, settings: dict[str, Any]) -> None:
    """Read text as a list of names where a setting takes lists and no such text."""
    for name, value in settings.items():
        declared = clf._settings.get(name)
        allowed = None if declared is None else declared.allowed
        if allowed is None or not isinstance(value, str) or allowed.accepts(value):
            continue
        if allowed.accepts(names_of(value)):
            clf.set_params(**{name: names_of(value)})


def _weights(data: DataSet, name: str) -> NDArray[Any]:
    import numpy as np
    import pandas as pd

    column = data.table[_find(name, data.table.columns, data)]
    if not pd.api.types.is_numeric_dtype(column) or column.isna().any():
        raise ColumnError(f"The weights in column {name!r} must be numbers, all known.")
    return np.asarray(column, dtype=np.float64)


def _columns(data: DataSet, arguments: argparse.Namespace) -> pandas.DataFrame:
    known = [*data.table.columns, data.target_name]
    chosen = [_find(name, known, data) for name in arguments.columns]
    dropped = [_find(name, known, data) for name in arguments.drop]
    if data.target_name in chosen:
        problem = f"The target {data.target_name!r} cannot be learned from: --columns."
        raise ColumnError(problem)
    aside = {arguments.weights, *dropped}
    kept = [name for name in chosen or data.table.columns if name not in aside]
    if not kept:
        raise TableError("No column is left to learn from.")
    return data.table[kept]


def _find(name: str, known: Iterable[str], data: DataSet) -> str:
    from steelyard.experiments.data.source import find_column

    return find_column(name, known, f"The data set {data.name}")


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
    from steelyard.experiments.data.source import Source

    source = Source.of(path, **reading_of(arguments))
    yield from rows_of_source(clf, source, also, rows)


def rows_of_source(
    clf: Any,
    source: Source,
    also: Sequence[str],
    rows: int,
    given: Mapping[str, str | None] | None = None,
) -> Iterator[tuple[pandas.DataFrame, pandas.DataFrame]]:
    """Yield what a model predicts from, where some columns have one cell for all."""
    from steelyard.experiments.data import files, kinds

    schema, given = clf.encoder_.schema_, given or {}
    cells = {feature.name: feature.cells for feature in schema.features}
    expected = {name: cells[name] for name in schema.names}
    chunks = files.read_chunks(
        source,
        {name: kind for name, kind in expected.items() if name not in given},
        [name for name in also if name not in given],
        rows,
    )
    n_read = 0
    for frame, extra in chunks:
        if not n_read and extra:
            shown = listed(extra)
            note(f"columns that the model does not use are ignored: {shown}")
        for name in given:
            column = frame.index.to_series().map(lambda _, n=name: given[n])
            kind = expected.get(name, "text")
            frame[name] = kinds.conform(column, name, kind, source, n_read)
        n_read += len(frame)
        yield frame[list(expected)], frame[list(also)]
    note(*source.notes)
