"""What commands read: training data and the method, or a model and its rows.

Several files, and what would take much memory, are read in chunks.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard._common.allowed import SHAPES
from steelyard._common.text import did_you_mean, listed
from steelyard.cli.options import READING, names_of, reading_of
from steelyard.cli.output import note
from steelyard.exceptions import ColumnError, ModelFileError, ParameterError, TableError
from steelyard.io.paths import close_names, find_column, stem_and_format
from steelyard.table.dates import date_of_part

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from steelyard.io.dataset import DataSet
    from steelyard.io.kinds import Recast
    from steelyard.io.reader import Reader
    from steelyard.io.scanning import Scan

_MAX_CLASSES = 200


def read_training(
    path: str, arguments: argparse.Namespace
) -> tuple[DataSet, NDArray[Any] | None, Any]:
    """Read a file: the columns to learn from with labels, weights, other columns."""
    from steelyard.io.dataset import read_dataset

    data = read_dataset(
        path,
        target=arguments.target,
        categorical=arguments.categorical,
        numeric=arguments.numeric,
        bins=arguments.bins,
        **reading_of(arguments),
    )
    data.check_target()
    if (n_classes := len(data.classes)) > _MAX_CLASSES and not arguments.yes:
        raise TableError(
            f"The target {data.target_name!r} has {n_classes} classes in {len(data)} "
            "rows, which takes long and is of little use. If it is the right column, "
            "add `yes`; otherwise choose another with `target`."
        )
    if arguments.positive is not None:
        class_named(data.classes, arguments.positive, "--positive")
    weights, where = None, f"The data set {data.name}"
    if arguments.weights is not None:
        weights = _weights(data.table, arguments.weights, where)
    names = [*data.table.columns, data.target_name]
    kept = chosen_columns(arguments, names, data.target_name, where)
    if arguments.order:
        data = replace(data, table=_ordered(data.table, arguments.order, where))
    others = data.table.drop(columns=kept)
    aside = tuple(f"{name}: " for name in others.columns if name != arguments.weights)
    note(*(text for text in data.notes if not text.startswith(aside)))
    return replace(data, table=data.table[kept]), weights, others


def _ordered(table: Any, orders: Sequence[str], where: str) -> Any:
    """Return a table whose columns in --order are ordered categories."""
    import pandas as pd

    columns = {}
    for text in orders:
        name, _, values = text.partition("=")
        name, order = find_column(name.strip(), table.columns, where), names_of(values)
        cells = table[name]
        texts = cells.map(lambda x: f"{x:.15g}" if isinstance(x, float) else str(x))
        texts = texts.where(cells.notna())
        if absent := sorted({*texts.dropna()} - {*order}):
            raise ColumnError(
                f"--order {name} lacks {listed(map(repr, absent), 5)}. Name all values "
                f"of the column, the lowest first: --order {name}=A,B,C."
            )
        columns[name] = pd.Categorical(texts, order, ordered=True)
    return table.assign(**columns)


def class_named(labels: Any, name: str, option: str) -> Any:
    """Return the class of an array of classes that an option names."""
    classes = {str(label): label for label in labels.tolist()}
    if name not in classes:
        hint = did_you_mean(name, classes)
        raise ParameterError(
            f"{option} must be one of the classes {listed(classes, 8)}. Got {name!r}."
            f"{hint}"
        )
    return classes[name]


def make_classifier(arguments: argparse.Namespace) -> tuple[str, Any]:
    """Return the method's name and an unfitted classifier, its settings checked."""
    from steelyard._common.settings import check_settings
    from steelyard.classifiers.registry import DEFAULT, method

    if both := sorted({*arguments.categorical} & {*arguments.numeric}):
        raise ColumnError(f"Column {both[0]!r} is both in --categorical and --numeric.")
    name = arguments.method or DEFAULT
    settings = dict(map(_setting, arguments.settings))
    if getattr(arguments, "keep_identifiers", False):
        settings["keep_identifiers"] = True
    if shapes := _shapes(arguments):
        settings["constraints"] = shapes
    clf: Any = method(name, **settings)
    if hasattr(clf, "_settings"):
        _read_names(clf, settings)
        # Before a file is read. Baselines declare nothing.
        check_settings(clf)
    return name, clf


def _shapes(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the constraints that options set, by column."""
    constraints: dict[str, Any] = {}
    for kind in SHAPES:
        for text in getattr(arguments, kind, ()):
            name, colon, label = text.rpartition(":")
            column = name if colon else text
            if column in constraints:
                raise ParameterError(
                    f"--{kind} names {column!r}, which already has another shape."
                )
            constraints[column] = (kind, label) if colon else kind
    return constraints


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
    """Split the text of settings that take a list of names."""
    for name, value in settings.items():
        declared = clf._settings.get(name)
        allowed = None if declared is None else declared.allowed
        if allowed is None or not isinstance(value, str) or allowed.accepts(value):
            continue
        if allowed.accepts(names_of(value)):
            clf.set_params(**{name: names_of(value)})


def _weights(table: Any, name: str, where: str) -> NDArray[Any]:
    import numpy as np
    import pandas as pd

    column = table[find_column(name, table.columns, where)]
    if not pd.api.types.is_numeric_dtype(column) or column.isna().any():
        raise ColumnError(
            f"The weights in column {name!r} must be numbers, none missing."
        )
    return np.asarray(column, dtype=np.float64)


def chosen_columns(
    arguments: argparse.Namespace, names: Sequence[str], target: str, where: str
) -> list[str]:
    """Return the columns to learn from, by --columns and --drop."""
    chosen = [find_column(name, names, where) for name in arguments.columns]
    dropped = [find_column(name, names, where) for name in arguments.drop]
    if target in chosen:
        raise ColumnError(f"The target {target!r} cannot be learned from: --columns.")
    aside = {arguments.weights, target, *dropped}
    kept = [name for name in chosen or names if name not in aside]
    if not kept:
        raise TableError("No column is left to learn from.")
    return kept


def check_model_file(path: str) -> None:
    """Refuse a model file that does not exist, and suggest similar names."""
    place = Path(path)
    if not place.is_file():
        beside = (file.name for file in place.parent.glob("*.json"))
        close = close_names(place.name, beside)
        raise FileNotFoundError(f"There is no model file {path}.{close}")


def load_model(path: str) -> Any:
    """Read a model file; a model without column names is refused."""
    from steelyard.persistence.files import load_fitted

    check_model_file(path)
    try:
        clf = load_fitted(path)
    except ModelFileError:
        if stem_and_format(path)[1] in (None, "json"):
            raise
        raise ModelFileError(
            f"{path} is a table, not a model file. Did you swap them? The model comes "
            "first."
        ) from None
    if clf.encoder_.schema_.names is None:
        raise ModelFileError(
            f"The model in {path} was fitted without column names, so the columns of a "
            "file cannot be matched to it. Fit it to a table with column names."
        )
    return clf


def rows_for(
    clf: Any,
    paths: str | Sequence[str],
    arguments: argparse.Namespace,
    also: Sequence[str] = (),
    rows: int = 50_000,
    advance: Callable[..., None] = lambda *_: None,
) -> Iterator[tuple[Any, Any]]:
    """Yield chunks of rows: the columns of a model, and further columns.

    ``advance`` is called with the rows and bytes read so far, and all bytes.
    """
    from steelyard.io.chunks import regroup
    from steelyard.io.kinds import Recast
    from steelyard.io.recognise import open_files

    like = clf.training_.reading
    reader = open_files(paths, once=True, like=like, **reading_of(arguments))
    schema = clf.encoder_.schema_
    expected = _expected(schema, reader.names)
    others = [name for name in also if name not in expected]
    _check_lacking(expected, others, reader)
    extra = [n for n in reader.names if n not in {*expected, *also, *schema.names}]
    if extra:
        shown = listed(extra)
        note(f"columns that the model does not use are ignored: {shown}")
    recast = Recast(reader, text=others, expected=expected, like=like)
    n_rows = 0
    try:
        for chunk in regroup(recast.read([*expected, *others], rows), rows):
            yield chunk.cells.select(list(expected)), chunk.cells.select(list(also))
            n_rows += chunk.cells.num_rows
            advance(f"{n_rows:,} rows", chunk.n_bytes, reader.n_bytes)
        if not n_rows:
            raise TableError(f"There are no rows in {reader.name}.")
    finally:
        # Even if the caller takes the first rows only.
        note(*recast.notes)


def rows_and_labels(clf: Any, path: str, target: str | None) -> tuple[Any, Any]:
    """Return the first 20,000 rows of a file, and labels if their column is named."""
    plain = argparse.Namespace(**dict.fromkeys(READING))
    also = [] if target is None else [target]
    table, others = next(rows_for(clf, path, plain, also, rows=20_000))
    if target is None:
        return table, None
    classes = {str(label): label for label in clf.classes_.tolist()}
    cells = others.column(target).to_pylist()
    labels = [classes.get(str(cell), classes.get(str(cell).strip())) for cell in cells]
    if None in labels:
        raise ColumnError(
            f"Column {target!r} of {path} has {cells[labels.index(None)]!r}, which is "
            f"none of the classes {listed(classes)}."
        )
    return table, labels


def _expected(schema: Any, names: Sequence[str]) -> dict[str, str]:
    """Map the columns to read for a model to their kinds of cells.

    A column of dates in the file replaces the columns derived from it in the model.
    """
    cells = {feature.name: feature.cells for feature in schema.features}
    expected: dict[str, str] = {}
    # Columns that are left out may be lacking, and contain anything.
    for j, name in enumerate(schema.names):
        if j in schema.left_out:
            continue
        whole = name if name in names else date_of_part(name)
        if whole in names and whole != name:
            expected[whole] = "dates"
        else:
            expected.setdefault(name, cells[name])
    return expected


def _check_lacking(expected: Iterable[str], also: list[str], reader: Reader) -> None:
    lacking = [name for name in expected if name not in reader.names]
    if len(lacking) > 1:
        from steelyard.notices.notice import column_notices

        notices, _ = column_notices(reader.names, lacking, "")
        renamed = [str(n) for n in notices if n.kind == "renamed-column"]
        hint = f" {listed(renamed, 3)}." if renamed else ""
        raise ColumnError(
            f"{reader.name} lacks {len(lacking)} columns that the model needs: "
            f"{listed(map(repr, lacking), 5)}.{hint}{reader.hint}"
        )
    for name in (*lacking, *also):
        find_column(name, reader.names, reader.name, reader.hint)
    reader.check_names([*expected, *also])


_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([kmgt]?)(i?)b?", re.IGNORECASE)
_MIN_MEMORY_BYTES = 10**8

# Estimated memory of a fit: bytes per cell of a Parquet file, bytes per byte of a text
# file, and the factor by which compressed text grows.
_BYTES_A_CELL = 16
_BYTES_A_BYTE = 4
_UNPACKED = 5

# A chunk, its codes and the chunk that is read ahead, in shares of the memory.
_CHUNK_SHARE = 1 / 16


def size_of(text: str) -> int:
    """Read a size such as 500MB, 2GB or 1.5 GiB.

    >>> size_of("2GB"), size_of("1.5 GiB"), size_of("300000000")
    (2000000000, 1610612736, 300000000)
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        problem = f"must be a size such as 500MB or 2GB, not {text!r}"
        raise argparse.ArgumentTypeError(problem)
    unit = match[2].lower()
    factor = 1024 ** " kmgt".index(unit) if match[3] and unit else _UNITS[unit]
    size = int(float(match[1]) * factor)
    if size < _MIN_MEMORY_BYTES:
        raise argparse.ArgumentTypeError(f"must be at least 100MB, not {text!r}")
    return size


def default_memory() -> int:
    """Return half of the memory of this machine, or of its container."""
    sizes = [2 * 10**9]
    with contextlib.suppress(AttributeError, ValueError, OSError):
        sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    with contextlib.suppress(OSError, ValueError):
        with open("/sys/fs/cgroup/memory.max", encoding="ascii") as file:
            sizes.append(int(file.read()))
    return max(min(sizes) // 2, _MIN_MEMORY_BYTES)


def is_streamed(arguments: argparse.Namespace) -> bool:
    """Whether the data are read in chunks: several files, or a large one."""
    from steelyard.io.paths import is_several

    paths = arguments.data
    if is_several(paths):
        return True
    path, memory = paths[0], arguments.memory or default_memory()
    # Standard input cannot be read twice, and other files are read whole.
    return os.path.isfile(path) and _size_in_memory(path, arguments.format) > memory


def _size_in_memory(path: str, format: str | None) -> int:
    """Estimate how many bytes a file takes in memory, 0 if it cannot be streamed."""
    from steelyard.io.paths import TEXT, packing_of, stem_and_format

    format, size = format or stem_and_format(path)[1], os.path.getsize(path)
    if format in TEXT:
        return size * _BYTES_A_BYTE * (_UNPACKED if packing_of(path) else 1)
    if format != "parquet":
        return size * _BYTES_A_BYTE if format == "arrow" else 0
    from pyarrow import ArrowException
    from pyarrow.parquet import read_metadata

    try:
        metadata = read_metadata(path)
    except ArrowException as error:
        raise TableError(f"{path} is not a Parquet file: {error}") from None
    return int(metadata.num_rows * metadata.num_columns * _BYTES_A_CELL)


# ------------------------------------------------------------------------------ fitting


def open_rows(arguments: argparse.Namespace) -> tuple[Scan, Recast]:
    """Open the files to learn from, chunk by chunk."""
    from steelyard.io.chunks import MAX_ROWS
    from steelyard.io.dataset import open_table
    from steelyard.io.scanning import Scan

    if arguments.bins is not None:
        raise ParameterError("`bins` are for files that fit into memory.")
    if arguments.order:
        raise ParameterError("`order` is for one file that fits into memory.")
    reader, target = open_table(
        arguments.data,
        arguments.target,
        arguments.categorical,
        arguments.numeric,
        **reading_of(arguments),
    )
    columns = chosen_columns(arguments, reader.names, target, reader.name)
    memory = arguments.memory or default_memory()
    max_rows = max(int(memory * _CHUNK_SHARE / (8 * len(columns))), 1000)
    reader.target = target
    rows = Scan(
        reader,
        target=target,
        weight=arguments.weights,
        columns=columns,
        chunk_rows=min(max_rows, MAX_ROWS),
        drop_missing_target=True,
        work_folder=arguments.work_folder,
    )
    return rows, reader


def check_target(target: str | None, clf: Any, arguments: argparse.Namespace) -> None:
    """Refuse a target that the model predicts from, or that --by names as well."""
    if target is not None and target in clf.encoder_.schema_.names:
        raise ParameterError(f"The column {target!r} is one the model predicts from.")
    if target is not None and target == arguments.by:
        raise ParameterError(f"--by names the target, {target!r}. Name another column.")
