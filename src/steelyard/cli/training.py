"""What a model is trained on: a table, labels, weights, and the method."""

from __future__ import annotations

import argparse
import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steelyard.cli.options import names_of
from steelyard.cli.output import note
from steelyard.exceptions import ColumnError, ParameterError, TableError
from steelyard.experiments.data.files import Source, find_column, read_table

if TYPE_CHECKING:
    import pandas
    from numpy.typing import NDArray

__all__ = ["TrainingData", "default_method", "make_classifier", "read_training"]


@dataclass(frozen=True)
class TrainingData:
    """A table with labels, as the options of a command choose it."""

    source: Source
    table: pandas.DataFrame
    labels: NDArray[Any]
    target: str
    weights: NDArray[Any] | None


def read_training(path: str, arguments: argparse.Namespace) -> TrainingData:
    """Read a file, and take target, weights and columns out of it."""
    source = Source.of(path, arguments)
    text, numbers = names_of(arguments.categorical), names_of(arguments.numeric)
    both = sorted(set(text) & set(numbers))
    if both:
        raise ColumnError(f"Column {both[0]!r} is both in --categorical and --numeric.")
    frame = read_table(source, text, numbers)
    target, labels, frame = split_target(frame, arguments.target, source)
    weights = None
    if arguments.weights is not None:
        weights = _weights(frame, arguments.weights, source)
    table = _columns(frame, arguments, target, source.name)
    return TrainingData(source, table, labels, target, weights)


def split_target(
    frame: pandas.DataFrame, target: str | None, source: Source
) -> tuple[str, NDArray[Any], pandas.DataFrame]:
    """Return name and labels of the target, and the rows that have a label."""
    from steelyard.experiments.data.sets import _labels, _target_of

    if target is None:
        try:
            target = _target_of(frame, source.name, source.kind == "arff")
        except ParameterError as error:
            raise ColumnError(str(error).replace("`target`", "--target")) from None
    find_column(target, frame.columns, source.name)
    known = frame[target].notna()
    if not known.any():
        raise TableError(f"The target {target!r} of {source.name} is empty.")
    if not known.all():
        note(f"{int((~known).sum())} rows without {target!r} are left out")
        frame = frame[known].reset_index(drop=True)
    return target, _labels(frame[target]), frame


def default_method() -> str:
    """Name the method that is used when none is asked for."""
    import steelyard

    known = {entry.acronym for entry in steelyard.methods()}
    return "SHNB" if "SHNB" in known else "NB"


def make_classifier(arguments: argparse.Namespace) -> tuple[str, Any]:
    """Return the method's name and an unfitted classifier with its settings."""
    import steelyard

    name = arguments.method or default_method()
    settings = dict(_setting(text) for text in arguments.settings)
    return name, steelyard.method(name, **settings)


def _setting(text: str) -> tuple[str, Any]:
    """Read NAME=VALUE; a value that is no Python literal is text."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ParameterError(
            f"--set takes NAME=VALUE, as in max_iter=50. Got {text!r}."
        )
    try:
        return name.strip(), ast.literal_eval(value.strip())
    except (ValueError, SyntaxError):
        return name.strip(), value.strip()


def _weights(frame: pandas.DataFrame, name: str, source: Source) -> NDArray[Any]:
    import numpy as np
    import pandas as pd

    find_column(name, frame.columns, source.name)
    if not pd.api.types.is_numeric_dtype(frame[name]) or frame[name].isna().any():
        raise ColumnError(f"The weights in column {name!r} must be numbers, all known.")
    return np.asarray(frame[name], dtype=np.float64)


def _columns(
    frame: pandas.DataFrame, arguments: argparse.Namespace, target: str, where: str
) -> pandas.DataFrame:
    chosen = [
        find_column(name, frame.columns, where) for name in names_of(arguments.columns)
    ]
    dropped = {
        find_column(name, frame.columns, where) for name in names_of(arguments.drop)
    }
    if target in chosen:
        raise ColumnError(f"The target {target!r} cannot be learned from: --columns.")
    aside = {target, arguments.weights, *dropped}
    kept = [name for name in chosen or frame.columns if name not in aside]
    if not kept:
        raise TableError("No column is left to learn from.")
    return frame[kept]
