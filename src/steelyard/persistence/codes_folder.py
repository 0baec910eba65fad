"""Codes of rows that are kept in a folder: written by a first fit, read by others.

Beside the Parquet files of the rows there is a folder for each way to encode them, with
arrays in NumPy's own format and what is known of the columns in JSON. It appears whole
or not at all, and nothing in it is ever changed.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import steelyard
from steelyard._common.files import WorkFolder, atomic_write
from steelyard._common.threads import pieces
from steelyard.exceptions import TableError, warn_user
from steelyard.fitting.pass_journal import PassJournal
from steelyard.fitting.recipe import Recipe, RowsHere
from steelyard.io import as_source
from steelyard.io.copies import CODES
from steelyard.model.streamed import SourceTable, encode_source
from steelyard.model.training import TrainingSet
from steelyard.persistence.codec import Sizes
from steelyard.persistence.reader import InvalidContentError, ObjectReader
from steelyard.persistence.records import RANGES
from steelyard.persistence.table import (
    describe_classes,
    describe_schema,
    read_classes,
    read_schema,
)
from steelyard.table.storage import DiskWorkspace, StoredRows

if TYPE_CHECKING:
    from steelyard.io.scanning import Scan

_ABOUT = "codes.json"
_VERSION = 1


class FolderRows(RowsHere):
    """Rows in a folder, with their codes where a fit has kept them."""

    _journal: PassJournal | None = None

    def training(
        self, y: Any, sample_weight: Any, recipe: Recipe, owner: object
    ) -> TrainingSet:
        """Take codes from the folder, or encode the rows and put them there."""
        if recipe.rows_needed == "counts":
            return super().training(y, sample_weight, recipe, owner)
        self._source = source = as_source(self.X, y, sample_weight, needs_target=True)
        assert source is not None and source.kept is not None
        if recipe.encoding.skips_unlabelled:
            source.drops_unlabelled = True
        path = source.kept / CODES / _key(source, recipe)
        if path.is_dir():
            training = _read(path, source, recipe)
        else:
            training = encode_source(source, recipe, recipe.rows_needed)
            try:
                _write(path, training)
            except OSError as error:
                reason = (error.strerror or str(error)).lower()
                problem = f"Codes cannot be kept in {path.parent}: {reason}."
                warn_user(
                    f"{problem} The next fit encodes the rows again.", UserWarning
                )
                return training
        if os.access(path, os.W_OK):
            self._journal = PassJournal(path / f"passes-{_digest(_settings(owner))}")
        return replace(training, journal=self._journal)

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        if self._journal is not None:
            self._journal.close(done=error[0] is None)


rows_of = FolderRows


def _key(source: Scan, recipe: Recipe) -> str:
    """Name a way to encode the rows: all that codes depend on beside these."""
    types = [str(kind) for kind in source.schema.types]
    roles = source.target, source.weight, source.drops_unlabelled
    how = repr(recipe.encoding), repr(recipe.class_weight), source.reading
    said = [_VERSION, steelyard.__version__, source.names, types, roles, how]
    return _digest(said)


def _settings(owner: Any) -> list[Any]:
    """Return what a fit that goes on has in common with the one that ended."""
    known = owner.get_params(deep=False)
    aside = ("n_jobs", "verbose")
    return [type(owner).__name__, {k: v for k, v in known.items() if k not in aside}]


def _digest(said: Any) -> str:
    return hashlib.sha256(json.dumps(said, default=repr).encode()).hexdigest()[:16]


# -------------------------------------------------------------------------- writing


def _write(path: Path, training: TrainingSet) -> None:
    encoder, codes = training.encoder, training.codes
    arrays = {f"codes-{k}": block.values for k, block in enumerate(codes.blocks)}
    numbers = (codes.number_column(g) for g in range(codes.n_numbers))
    arrays |= {f"numbers-{g}": column for g, column in enumerate(numbers)}
    also = {"labels": training.labels, "weights": training.sample_weight}
    also["is_kept"] = training.is_kept
    arrays |= {name: array for name, array in also.items() if array is not None}
    path.parent.mkdir(exist_ok=True)
    factors = training.class_factors
    with WorkFolder(path.parent) as work:
        made = work.path / "codes"
        made.mkdir()
        content = {
            "version": _VERSION,
            "rows": training.n_rows,
            "classes": describe_classes(training.classes),
            "features": describe_schema(training.schema),
            "ranges": RANGES.describe(encoder.ranges_),
            "suspects": sorted(encoder.suspects.items()),
            "factors": None if factors is None else factors.tolist(),
            "cut_points_are_exact": training.cut_points_are_exact,
            "arrays": {
                name: _write_array(made / f"{name}.npy", array)
                for name, array in arrays.items()
            },
        }
        atomic_write(made / _ABOUT, json.dumps(content).encode())
        try:
            os.rename(made, path)
        except OSError:
            # Another fit was quicker.
            if not path.is_dir():
                raise


def _parts(array: NDArray[Any]) -> Iterator[memoryview]:
    """Yield the bytes of an array column by column, a piece at a time."""
    for column in array.T if array.ndim == 2 else [array]:
        for rows in pieces(slice(0, len(column))):
            yield np.ascontiguousarray(column[rows]).data


def _write_array(path: Path, array: NDArray[Any]) -> int:
    """Write an array to a file, and return its checksum."""
    about = {
        "descr": np.lib.format.dtype_to_descr(array.dtype),
        "fortran_order": array.ndim == 2,
        "shape": array.shape,
    }
    checksum = 0
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, about)
        for part in _parts(array):
            checksum = zlib.crc32(part, checksum)
            file.write(part)
        file.flush()
        os.fsync(file.fileno())
    return checksum


# -------------------------------------------------------------------------- reading


def _read(path: Path, source: Scan, recipe: Recipe) -> TrainingSet:
    """Return a training set of memory maps; refuse what was not written like this."""
    try:
        content = json.loads((path / _ABOUT).read_bytes())
        reader = ObjectReader(content, "codes")
        classes = read_classes(reader.inner("classes")).to_array()
        schema = read_schema(content["features"])
        sizes = Sizes(schema, classes)
        ranges = RANGES.build(RANGES.read(reader, "ranges", sizes), sizes)
        arrays = {
            name: _read_array(path / f"{name}.npy", checksum)
            for name, checksum in content["arrays"].items()
        }
        workspace = DiskWorkspace(WorkFolder(source.work_folder))
        rows = StoredRows.of(schema, len(classes), arrays, workspace)
        suspects = {int(j): str(text) for j, text in content["suspects"]}
        factors, exact = content["factors"], content["cut_points_are_exact"]
    except (OSError, ValueError, KeyError, TypeError, InvalidContentError) as error:
        raise TableError(
            f"The codes in {path} are damaged or were changed: {error}. Remove that "
            "folder, and the next fit makes them again."
        ) from None
    encoder = recipe.encoding.encoder(recipe.n_jobs)
    encoder.schema_, encoder.ranges_ = schema, ranges
    encoder.n_features_in_ = schema.n_columns
    names = schema.names or ()
    if names:
        encoder.feature_names_in_ = np.asarray(names, dtype=object)
    columns: Any = [
        SimpleNamespace(label=f"Column {name!r}", suspect=suspects.get(j))
        for j, name in enumerate(names)
    ]
    encoder.note_suspects(columns, len(rows.labels))
    return TrainingSet(
        SourceTable(source, rows.is_kept),
        encoder,
        rows.codes,
        classes,
        rows.labels,
        rows.weights,
        recipe,
        None if factors is None else np.array(factors),
        rows.is_kept,
        cut_points_are_exact=exact,
        target_name=source.target,
        reading=source.reading,
        column_labels=source.labels,
    )


def _read_array(path: Path, checksum: int) -> NDArray[Any]:
    # Kernels are compiled for arrays that may be written to, which nobody does.
    mode: Any = "r+" if os.access(path, os.W_OK) else "r"
    array = np.load(path, mmap_mode=mode, allow_pickle=False).view(np.ndarray)
    found = 0
    for part in _parts(array):
        found = zlib.crc32(part, found)
    if found != checksum:
        raise ValueError(f"{path.name} has another checksum")
    return array
