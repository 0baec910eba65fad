"""Models outside of Python, and single rows: the scorer, ONNX, writing files."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

import numpy as np
from numpy.testing import assert_allclose

from benchmarks.data import n_rows
from benchmarks.registry import Case, Seconds, Skip, at_least, at_most, row
from benchmarks.registry import within_seconds as within
from steelyard import export, method
from steelyard.export.check import onnx_feed

TRAINING_ROWS = 5_000
TIMES = 100


def needed(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise Skip(f"{name} is not installed") from None


def table(n: int, n_columns: int, n_classes: int) -> tuple[Any, Any]:
    """Text and numbers by turns, with missing cells."""
    pd = needed("pandas")
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, n)
    columns: dict[str, Any] = {}
    for j in range(n_columns):
        signal = np.where(rng.random(n) < 0.5, y, rng.integers(0, 10, n))
        texts = np.array([f"value {v}" for v in range(10)], dtype=object)[signal]
        cells = texts if j % 2 else rng.normal(size=n) + y
        columns[f"x{j}"] = cells
    return pd.DataFrame(columns), y


@cache
def fitted(name: str, n_columns: int, n_classes: int = 3) -> Any:
    return method(name).fit(*table(TRAINING_ROWS, n_columns, n_classes))


def repeated(function: Callable[[], Any]) -> Callable[[], Any]:
    def run() -> Any:
        for _ in range(TIMES):
            found = function()
        return found

    return run


def same(results: dict[str, Any]) -> None:
    first, *others = results.values()
    for other in others:
        assert_allclose(other, first, rtol=0, atol=1e-12)


# -------------------------------------------------------------------------- single rows


def one_row(name: str, n_columns: int) -> tuple[Any, Any]:
    clf = fitted(name, n_columns)
    return clf, table(1, n_columns, 3)[0]


def scorer_case(name: str, n_columns: int) -> Case:
    clf, X = one_row(name, n_columns)
    score, cells = clf.scorer(), X.iloc[0].to_dict()
    return Case(
        repeated(lambda: [list(score(cells).values())]),
        {"by arrays": repeated(partial(clf.predict_proba, X))},
        check=same,
    )


@row("scorer of one row, SHNB, 8 columns", at_least(80), memory=False)
def _(scale: float) -> Case:
    return scorer_case("SHNB", 8)


@row("scorer of one row, NB, 32 columns", at_least(300), memory=False)
def _(scale: float) -> Case:
    return scorer_case("NB", 32)


# -------------------------------------------------------------------------------- files


# A general engine against our own kernel: 7.2 before a column had one table, 8.1 since.
@row("ONNX, 200,000 rows, SHNB, 8 columns, 1 thread", at_most(10), memory=False)
def _(scale: float) -> Case:
    needed("onnx")
    runtime = needed("onnxruntime")
    clf = fitted("SHNB", 8).set_params(n_jobs=1)
    X, _ = table(n_rows(200_000, scale), 8, 3)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    model = export.to_onnx(clf).SerializeToString()
    session = runtime.InferenceSession(model, options)
    feed = onnx_feed(export.plan_of(clf), X)
    return Case(
        lambda: session.run(["probabilities"], feed)[0],
        {"predict_proba": lambda: clf.predict_proba(X)},
        check=same,
    )


def writing(kind: str, write: Callable[[Any], Any], n_columns: int = 50) -> Case:
    if kind == "onnx":
        needed("onnx")
    clf = fitted("SHNB", n_columns)
    return Case(lambda: write(clf))


@row("write SQL, SHNB, 50 columns", within(0.2), memory=False)
def _(scale: float) -> Case:
    return writing("sql", export.to_sql)


@row("write ONNX, SHNB, 50 columns", within(0.2), memory=False)
def _(scale: float) -> Case:
    return writing("onnx", export.to_onnx)


@row("write PMML, SHNB, 50 columns", within(0.2), memory=False)
def _(scale: float) -> Case:
    return writing("pmml", export.to_pmml)


# ----------------------------------------------------------------------------- start-up


@row("steelyard predict, 20 rows, processor time", within(1.0), rounds=3, memory=False)
def _(scale: float) -> Case:
    folder = Path(tempfile.mkdtemp())
    fitted("NB", 8).save(folder / "model.json")
    table(20, 8, 3)[0].to_csv(folder / "new.csv", index=False)
    command = [sys.executable, "-m", "steelyard", "predict", "model.json", "new.csv"]

    def run() -> Seconds:
        before = getrusage(RUSAGE_CHILDREN)
        path = os.pathsep.join(filter(None, sys.path))
        environment = {**os.environ, "PYTHONPATH": path}
        subprocess.run(
            command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL
        )
        after = getrusage(RUSAGE_CHILDREN)
        used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        return Seconds(used)

    return Case(run)
