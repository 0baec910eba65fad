"""Rows of what people wait for: a first fit, a fresh process, a few classes.

What other processes take is their processor time, which other work on the machine
changes less than the time on the wall.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.data import labelled_codes, n_rows
from benchmarks.registry import Case, Seconds, at_most, row, within_seconds
from benchmarks.rows_weights import Keep, weights_nb

_TABLE = """
import time
import numpy as np
rng = np.random.default_rng(0)
X, y = rng.normal(size=({n}, 6)), rng.integers(0, {k}, {n})
"""

_FIT = (
    _TABLE
    + """
from steelyard import {name}
start = time.process_time()
{name}().fit(X, y)
print(time.process_time() - start)
"""
)

_OURS = (
    _TABLE
    + """
from steelyard import NaiveBayes
print(NaiveBayes(numeric="gaussian").fit(X, y).predict(X)[0])
"""
)

_THEIRS = (
    _TABLE
    + """
from sklearn.naive_bayes import GaussianNB
print(GaussianNB().fit(X, y).predict(X)[0])
"""
)


def run_code(code: str, **environment: str) -> str:
    # Modules are compiled to bytecode once, as after an installation.
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**kept, **environment},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


# ---------------------------------------------------------------------- the first fit


def cold_fit(name: str, n: int, n_classes: int) -> Seconds:
    """Processor time of a fit in a process whose kernels were never compiled."""
    code = _FIT.format(name=name, n=n, k=n_classes)
    with TemporaryDirectory() as empty:
        return Seconds(run_code(code, NUMBA_CACHE_DIR=empty))


def first_fit(name: str, n: int, n_classes: int) -> None:
    @row(
        f"first fit, nothing compiled, {name} {n:,} x 6, {n_classes} classes",
        within_seconds(3),
        rounds=3,
        memory=False,
        warm_up=False,
    )
    def _(scale: float) -> Case:
        return Case(lambda: cold_fit(name, n, n_classes))


first_fit("NaiveBayes", 200, 2)
first_fit("NaiveBayes", 20_000, 2)
first_fit("WeightedNB", 200, 2)
first_fit("WeightedNB", 20_000, 3)


# ------------------------------------------------------- from nothing to a prediction


def processor_time(code: str) -> Seconds:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run_code(code.format(n=200, k=2))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Seconds(used)


# What is above 1 is the import of a hundred small modules of ours.
@row(
    "fresh process to first prediction, 200 x 6",
    at_most(1.25),
    rounds=5,
    memory=False,
)
def _(scale: float) -> Case:
    return Case(
        lambda: processor_time(_OURS), {"GaussianNB": lambda: processor_time(_THEIRS)}
    )


# ------------------------------------------------------------------------ few classes


def over_two_classes(n_classes: int, target: float) -> None:
    @row(
        f"pass over {n_classes} classes against 2, 100,000 x 50",
        at_most(target),
        rounds=5,
        memory=False,
    )
    def _(scale: float) -> Case:
        def one_pass(n_classes: int) -> Callable[[], Any]:
            X, y = labelled_codes(n_rows(100_000, scale), 50, n_classes)
            keep = Keep()
            weights_nb(solver=keep, n_jobs=1).fit(X, y)
            start = np.full(keep.objective.size, 0.5)
            return lambda: keep.objective(start)

        return Case(one_pass(n_classes), {"2 classes": one_pass(2)})


# Three classes have three scores a cell and two have one, their difference: thrice the
# additions, and the same codes to load.
over_two_classes(3, 3.0)
over_two_classes(5, 4.0)
