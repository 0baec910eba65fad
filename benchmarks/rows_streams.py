"""Fits from files: codes written and read again, cells of numbers, whole fits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.testing import assert_array_equal

import steelyard as sy
from benchmarks.data import labelled_codes, n_rows
from benchmarks.registry import Case, at_least, at_most, no_target, row
from benchmarks.rows_chunks import (
    N_COLUMNS,
    N_VALUES,
    ROWS,
    learn,
    on_cpu,
    read,
    row_groups,
    table_file,
)
from steelyard._common.files import WorkFolder
from steelyard.table.discretizers.mdl import MDLDiscretizer
from steelyard.table.frames import as_table
from steelyard.table.storage import DiskWorkspace, Store, StoredRows
from steelyard.table.summary.number_cells import CellsByValue

# --------------------------------------------------------------------------- the store


@row("read, encode, write codes 2,000,000 x 50, 1 thread", at_most(2), memory=False)
def _(scale: float) -> Case:
    n = n_rows(ROWS, scale)
    path = table_file(n)
    encoder = learn(path, 1).encoder_

    def write() -> StoredRows:
        workspace = DiskWorkspace(WorkFolder())
        store = Store(workspace, encoder.schema_, n, 2)
        for chunk in row_groups(path, 1):
            codes = encoder.encode(as_table(chunk.drop_columns(["y"])))
            store.append(codes, chunk["y"].to_numpy())
        return store.finish()

    return Case(write, {"pyarrow reads": lambda: read(path, 1)})


def from_disk(clf: Any, scale: float) -> Case:
    """Compare a fit of codes in memory maps with one of the same codes in memory."""
    n = n_rows(ROWS // 2, scale)
    X, y = labelled_codes(n, N_COLUMNS, 2, N_VALUES)
    recipe = clf._recipe()
    here = recipe.encode(X, y, None, clf)
    workspace = DiskWorkspace(WorkFolder())
    store = Store(workspace, here.schema, n, 2)
    store.append(here.codes, here.labels)
    rows = store.finish()
    there = replace(here, codes=rows.codes, labels=rows.labels)

    def confirm() -> None:
        tables = (clf._fit(recipe, rows).model.table for rows in (here, there))
        assert_array_equal(*tables)

    ours = on_cpu(lambda: clf._fit(recipe, there))
    peer = on_cpu(lambda: clf._fit(recipe, here))
    return Case(ours, {"the same in memory": peer}, confirm=confirm)


# Two tenths of a second, in which 50 MB of codes are mapped, and half as much of joint
# codes written, once. The default goes over them more often and has 1.0.
@row("WANBIA-CLL from disk, 1,000,000 x 50, processor time", at_most(1.2), memory=False)
def _(scale: float) -> Case:
    settings = {"categorical_features": "all", "n_jobs": 2}
    return from_disk(sy.method("WANBIA-CLL", **settings), scale)


@row("SHNB from disk, 1,000,000 x 50, processor time", at_most(1.1), memory=False)
def _(scale: float) -> Case:
    clf = sy.ShrinkageNB(
        categorical_features="all", strength=(1.0, 1.0, 1.0), interactions=0, n_jobs=2
    )
    return from_disk(clf, scale)


# --------------------------------------------------------------------------- cut points


@row("cells and cuts of a column, 4,000,000 numbers", at_least(3), memory=False)
def _(scale: float) -> Case:
    rng = np.random.default_rng(0)
    n = n_rows(4_000_000, scale)
    y = rng.integers(0, 2, n).astype(np.uint32)
    numbers = rng.normal(size=n) + 0.5 * y
    discretizer = MDLDiscretizer()

    def in_cells() -> Any:
        cells = CellsByValue(2)
        for lo in range(0, n, 1 << 17):
            cells.add(numbers[lo : lo + (1 << 17)], y[lo : lo + (1 << 17)], None)
        return cells.cells().edges(discretizer, (0, None))

    def by_sorting() -> Any:
        return discretizer.known_edges(numbers, y, 2, None, column=(0, None))

    return Case(in_cells, {"sorted": by_sorting})


# --------------------------------------------------------------------------- whole fits


def from_parquet(method: str, scale: float) -> Case:
    path = table_file(n_rows(ROWS, scale))

    def fit() -> Any:
        return sy.method(method, n_jobs=2).fit(_rows(path), "y")

    return Case(on_cpu(fit), {"pyarrow reads": on_cpu(lambda: read(path, 2))})


def _rows(path: str) -> Any:
    import pyarrow.dataset as ds

    # A file without a name has no extension either.
    return ds.dataset(path, format="parquet")


@row("fit NB from Parquet 2,000,000 x 50, processor time", no_target, memory=False)
def _(scale: float) -> Case:
    return from_parquet("NB", scale)


@row(
    "fit WANBIA-CLL from Parquet 2,000,000 x 50, processor time",
    no_target,
    memory=False,
)
def _(scale: float) -> Case:
    return from_parquet("WANBIA-CLL", scale)
