"""Rows of Parquet in chunks: reading, encoding, counting, and partial_fit."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from time import process_time
from typing import Any

import numpy as np
from numpy.testing import assert_array_equal

from benchmarks.data import labelled_codes, n_rows
from benchmarks.registry import Case, Seconds, Skip, at_least, at_most, row
from steelyard import NaiveBayes
from steelyard.proba.counts import Counts, count
from steelyard.table.frames import as_table

# A tenth of the table that the targets were set for.
ROWS = 2_000_000
GROUP = 500_000
N_TEXT, N_COLUMNS, N_VALUES = 25, 50, 10
NAMES = [f"x{j}" for j in range(N_COLUMNS)]


def needed(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise Skip(f"{name} is not installed") from None


@cache
def table_file(n: int) -> str:
    """Write 25 columns of text by dictionary, 25 of int32 and labels; 10 values each.

    The file has no name and goes with the process, which a benchmark ends abruptly.
    """
    pa, pq = needed("pyarrow"), needed("pyarrow.parquet")
    if not sys.platform.startswith("linux"):
        raise Skip("the table is a file without a name, which only Linux has")
    codes, y = labelled_codes(n, N_COLUMNS, 2, N_VALUES)
    words = pa.array([f"value {v}" for v in range(N_VALUES)])
    columns = {}
    for name, column in zip(NAMES, codes.T.astype(np.int32), strict=True):
        columns[name] = pa.array(column)
        if len(columns) <= N_TEXT:
            columns[name] = pa.DictionaryArray.from_arrays(columns[name], words)
    table = pa.table({**columns, "y": pa.array(y.astype(np.int32))})
    descriptor, path = tempfile.mkstemp(suffix=".parquet")
    pq.write_table(table, path, row_group_size=GROUP, compression="zstd")
    os.unlink(path)
    return f"/proc/self/fd/{descriptor}"


def row_groups(path: str, threads: int) -> Iterator[Any]:
    pa, pq = needed("pyarrow"), needed("pyarrow.parquet")
    pa.set_cpu_count(threads)
    file = pq.ParquetFile(path)
    for group in range(file.num_row_groups):
        yield file.read_row_group(group, use_threads=threads > 1)


def read(path: str, threads: int) -> None:
    for _ in row_groups(path, threads):
        pass


def learn(path: str, threads: int) -> NaiveBayes:
    clf = NaiveBayes(categorical_features="all", n_jobs=threads)
    for chunk in row_groups(path, threads):
        labels = chunk["y"].to_numpy()
        clf.partial_fit(chunk.drop_columns(["y"]), labels, classes=[0, 1])
    return clf


def counter(path: str, threads: int) -> Callable[[], Counts]:
    """Return what reads, encodes and counts by a schema that is known."""
    encoder = learn(path, threads).encoder_

    def count_all() -> Counts:
        total = Counts.zeros(encoder.schema_, 2)
        for chunk in row_groups(path, threads):
            codes = encoder.encode(as_table(chunk.drop_columns(["y"])))
            labels = chunk["y"].to_numpy().astype(np.uint32)
            total += count(codes, labels, None, 2, threads)
        return total

    return count_all


def known(counts: Counts) -> Any:
    """Counts without those of missing cells, a row for each column and value."""
    return np.delete(counts.by_code, counts.schema.offsets[:-1], axis=0)


def on_cpu(function: Callable[[], Any]) -> Callable[[], Seconds]:
    """Time on all threads: how busy the machine is matters less."""

    def timed() -> Seconds:
        start = process_time()
        function()
        return Seconds(process_time() - start)

    return timed


# --------------------------------------------------------------- against plain reading


def against_reading(work: Callable[[], Any], path: str, threads: int) -> Case:
    return Case(work, {"pyarrow reads": lambda: read(path, threads)})


# Two threads cannot have a smaller ratio than one, which has 1.39 here, unless encoding
# gains more by the second thread than reading does.
@row("read, encode, count 2,000,000 x 50, 2 threads", at_most(1.6), memory=False)
def _(scale: float) -> Case:
    path = table_file(n_rows(ROWS, scale))
    return against_reading(counter(path, 2), path, 2)


@row("read, encode, count 2,000,000 x 50, 1 thread", at_most(1.5), memory=False)
def _(scale: float) -> Case:
    path = table_file(n_rows(ROWS, scale))
    return against_reading(counter(path, 1), path, 1)


@row("partial_fit by row groups, 2,000,000 x 50, 1 thread", at_most(1.6), memory=False)
def _(scale: float) -> Case:
    path = table_file(n_rows(ROWS, scale))
    return against_reading(lambda: learn(path, 1), path, 1)


# ------------------------------------------------------------- others that count tables


# pyarrow's reading alone is seven tenths of our time: were encoding and counting free,
# the ratios would be 3 for DuckDB and 4.3 for polars.
@row("DuckDB counts 2,000,000 x 50, processor time", at_least(2), memory=False)
def _(scale: float) -> Case:
    duckdb = needed("duckdb")
    path = table_file(n_rows(ROWS, scale))
    sets = ", ".join(f"(y, {name})" for name in NAMES)
    query = (
        f"select y, {', '.join(NAMES)}, count(*) as n from read_parquet('{path}') "
        f"group by grouping sets ({sets})"
    )
    connection = duckdb.connect()
    connection.execute("set threads = 2")
    ours = counter(path, 2)

    def theirs() -> Any:
        return connection.execute(query).fetchall()

    def confirm() -> None:
        counted = sorted(found[-1] for found in theirs())
        assert_array_equal(counted, np.sort(known(ours()).ravel()))

    return Case(on_cpu(ours), {"DuckDB": on_cpu(theirs)}, confirm=confirm)


@row("polars counts 2,000,000 x 50, processor time", at_least(2.5), memory=False)
def _(scale: float) -> Case:
    polars = needed("polars")
    path = table_file(n_rows(ROWS, scale))
    ours = counter(path, 2)

    def theirs() -> Any:
        rows = polars.scan_parquet(path)
        counted = [rows.group_by("y", name).len() for name in NAMES]
        return polars.collect_all(counted, engine="streaming")

    def confirm() -> None:
        counted = np.concatenate([found["len"].to_numpy() for found in theirs()])
        assert_array_equal(np.sort(counted), np.sort(known(ours()).ravel()))

    return Case(on_cpu(ours), {"polars": on_cpu(theirs)}, confirm=confirm)


@row(
    "dask-ml Incremental(CategoricalNB), 2,000,000 x 50, processor time",
    at_least(50),
    rounds=1,
    memory=False,
    warm_up=False,
)
def _(scale: float) -> Case:
    needed("dask_ml")
    from dask_ml.wrappers import Incremental
    from sklearn.naive_bayes import CategoricalNB

    import_module("dask").config.set(scheduler="threads", num_workers=2)
    array = needed("dask.array")
    X, y = labelled_codes(n_rows(ROWS, scale), N_COLUMNS, 2, N_VALUES)
    dX = array.from_array(X, chunks=(GROUP, N_COLUMNS))
    dy = array.from_array(y, chunks=GROUP)

    def ours() -> NaiveBayes:
        clf = NaiveBayes(categorical_features="all", n_jobs=2)
        for lo in range(0, len(X), GROUP):
            rows = slice(lo, lo + GROUP)
            clf.partial_fit(X[rows], y[rows], classes=[0, 1])
        return clf

    def theirs() -> Any:
        model = Incremental(CategoricalNB(min_categories=N_VALUES))
        return model.fit(dX, dy, classes=[0, 1])

    def confirm() -> None:
        counted = np.hstack(theirs().estimator_.category_count_).T
        assert_array_equal(known(ours().counts_), counted)

    return Case(on_cpu(ours), {"dask-ml": on_cpu(theirs)}, confirm=confirm)
