"""Rows of the engine: encoding, counting, plain naive Bayes, start-up."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from typing import Any

import numpy as np
from numba import njit
from sklearn.compose import make_column_transformer
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OrdinalEncoder

from benchmarks.data import frame, labelled_codes, labelled_numbers, n_rows
from benchmarks.registry import (
    MB,
    Case,
    Seconds,
    at_least,
    at_most,
    no_target,
    row,
    within_memory,
    within_seconds,
)
from steelyard import MDLDiscretizer, NaiveBayes, TableEncoder
from steelyard.proba.counts import count
from steelyard.table.codes import CodeBlock, Codes
from steelyard.table.frames import as_table

# Buffers that a fit may need besides the codes, in columns of eight bytes a row: each
# of two threads has a column in work, its order, and it in that order.
BUFFER_COLUMNS = 10


def categorical() -> NaiveBayes:
    return NaiveBayes(categorical_features="all", n_jobs=2)


def gaussian() -> NaiveBayes:
    return NaiveBayes(numeric="gaussian", n_jobs=2)


def allowed_mb(n: int, d: int) -> float:
    """One byte a cell and a few columns of buffer."""
    return n * (d + 8 * BUFFER_COLUMNS) / MB


# ------------------------------------------------------------------ categorical codes


def fit_codes(n: int, d: int, n_classes: int, n_values: int = 10) -> Case:
    X, y = labelled_codes(n, d, n_classes, n_values)
    wide = X.astype(np.int64)

    def same_counts(fitted: dict[str, Any]) -> None:
        counts = fitted["ours"].counts_
        for name in ("CategoricalNB int64", "CategoricalNB uint8"):
            theirs = np.hstack(fitted[name].category_count_).T
            # Ours have one row more per attribute: code 0, for missing cells.
            mine = np.delete(counts.by_code, counts.schema.offsets[:-1], axis=0)
            np.testing.assert_array_equal(mine, theirs)

    return Case(
        lambda: categorical().fit(X, y),
        {
            "CategoricalNB int64": lambda: CategoricalNB().fit(wide, y),
            "CategoricalNB uint8": lambda: CategoricalNB().fit(X, y),
        },
        same_counts,
        allowed_mb(n, d),
    )


def predict_codes(n: int, d: int, n_classes: int, n_values: int = 10) -> Case:
    X, y = labelled_codes(n, d, n_classes, n_values)
    wide = X.astype(np.int64)
    # The same smoothing and prior, so that the probabilities can be compared.
    ours = categorical().set_params(smoothing=1.0, prior="frequency").fit(X, y)
    peer = CategoricalNB().fit(X, y)
    return Case(
        lambda: ours.predict_proba(X),
        {
            "CategoricalNB int64": lambda: peer.predict_proba(wide),
            "CategoricalNB uint8": lambda: peer.predict_proba(X),
        },
        same_probabilities,
    )


def same_probabilities(answers: dict[str, Any]) -> None:
    for name, theirs in answers.items():
        np.testing.assert_allclose(answers["ours"], theirs, atol=1e-9, err_msg=name)


@row("fit 1,000,000 x 50 codes, 2 classes", at_least(40))
def _(scale: float) -> Case:
    return fit_codes(n_rows(1_000_000, scale), 50, 2)


# A third of these three milliseconds is what a fit of 200 rows takes, and does not get
# shorter where scikit-learn's loops do.
@row("fit 100,000 x 50 codes, 10 classes", at_least(40))
def _(scale: float) -> Case:
    return fit_codes(n_rows(100_000, scale), 50, 10)


@row("predict_proba 1,000,000 x 50 codes, 2 classes", at_least(15))
def _(scale: float) -> Case:
    return predict_codes(n_rows(1_000_000, scale), 50, 2)


@row("predict_proba 100,000 x 50 codes, 10 classes", at_least(4))
def _(scale: float) -> Case:
    return predict_codes(n_rows(100_000, scale), 50, 10)


@row("predict_proba 20,000 x 16 codes, 26 classes", at_least(4))
def _(scale: float) -> Case:
    return predict_codes(n_rows(20_000, scale), 16, 26, 16)


# --------------------------------------------------------------------------- counting


@njit(nogil=True)
def _add_up(words: Any) -> Any:
    total = np.uint64(0)
    for i in range(words.size):
        total += words[i]
    return total


def reading(X: np.ndarray) -> dict[str, Any]:
    """Two ways to read all bytes of an array once, on one thread."""
    words = X.ravel(order="K")[: X.size // 8 * 8].view(np.uint64)
    return {
        "reading, numba": lambda: _add_up(words),
        "reading, numpy": lambda: words.sum(),
    }


def counting(scale: float, order: Any, n_jobs: int) -> Case:
    X, y = labelled_codes(n_rows(1_000_000, scale), 50, 2)
    labels = y.astype(np.uint32)
    encoder = TableEncoder(categorical_features="all").fit(X)
    codes = encoder.encode(as_table(X))
    if order == "F":
        # As they come from a frame: codes, not the user's bytes, column by column.
        values = np.asfortranarray(codes.to_array())
        block = CodeBlock(values, np.arange(X.shape[1]))
        codes = Codes(codes.schema, codes.n_rows, (block,))
        X = values
    return Case(lambda: count(codes, labels, None, 2, n_jobs), reading(X))


@row("count 1,000,000 x 50 bytes by rows, 1 thread", no_target)
def _(scale: float) -> Case:
    return counting(scale, "C", 1)


@row("count 1,000,000 x 50 bytes by rows, 2 threads", at_most(15))
def _(scale: float) -> Case:
    return counting(scale, "C", 2)


@row("count 1,000,000 x 50 bytes by columns, 2 threads", at_most(15))
def _(scale: float) -> Case:
    return counting(scale, "F", 2)


# ----------------------------------------------------------------------------- frames


def from_frame(scale: float, text_type: str, numeric: str) -> Case:
    X, y = frame(n_rows(200_000, scale), text_type)
    text = [name for name in X.columns if name.startswith("text")]
    numbers = [name for name in X.columns if name.startswith("number")]

    def ours() -> Any:
        return NaiveBayes(numeric=numeric, n_jobs=2).fit(X, y).predict_proba(X)

    def peer() -> Any:
        encoder = make_column_transformer(
            (OrdinalEncoder(), text),
            (
                KBinsDiscretizer(
                    n_bins=10,
                    encode="ordinal",
                    strategy="quantile",
                    quantile_method="averaged_inverted_cdf",
                ),
                numbers,
            ),
        )
        return make_pipeline(encoder, CategoricalNB()).fit(X, y).predict_proba(X)

    return Case(ours, {"scikit-learn pipeline": peer})


@row("frame 200,000 x (30 text + 20 float), all steps, object", at_least(5))
def _(scale: float) -> Case:
    return from_frame(scale, "object", "mdl")


@row("frame 200,000 x (30 text + 20 float), all steps, str", at_least(5))
def _(scale: float) -> Case:
    return from_frame(scale, "str", "mdl")


@row("frame 200,000 x 50, all steps, str, equal frequency", at_least(5))
def _(scale: float) -> Case:
    return from_frame(scale, "str", "equal-frequency")


# --------------------------------------------------------------------------- Gaussian


def same_moments(fitted: dict[str, Any]) -> None:
    table = fitted["ours"].model_.gaussian
    for name in ("GaussianNB by rows", "GaussianNB by columns"):
        peer = fitted[name]
        np.testing.assert_allclose(table.mean.T, peer.theta_, rtol=1e-9)
        np.testing.assert_allclose(table.deviation.T**2, peer.var_, rtol=1e-6)


@row("Gaussian fit 500,000 x 50", at_least(5))
def _(scale: float) -> Case:
    X, y = labelled_numbers(n_rows(500_000, scale), 50)
    by_columns = np.asfortranarray(X)
    return Case(
        lambda: gaussian().fit(X, y),
        {
            "GaussianNB by rows": lambda: GaussianNB().fit(X, y),
            "GaussianNB by columns": lambda: GaussianNB().fit(by_columns, y),
        },
        same_moments,
    )


@row("Gaussian predict_proba 500,000 x 50", at_least(2))
def _(scale: float) -> Case:
    X, y = labelled_numbers(n_rows(500_000, scale), 50)
    by_columns = np.asfortranarray(X)
    # Equal priors: the two differ in how they estimate them.
    ours = gaussian().set_params(prior="frequency").fit(X, y)
    peer = GaussianNB().fit(X, y)

    def close(answers: dict[str, Any]) -> None:
        for name, theirs in answers.items():
            np.testing.assert_allclose(answers["ours"], theirs, atol=1e-5, err_msg=name)

    return Case(
        lambda: ours.predict_proba(X),
        {
            "GaussianNB by rows": lambda: peer.predict_proba(X),
            "GaussianNB by columns": lambda: peer.predict_proba(by_columns),
        },
        close,
    )


# ----------------------------------------------------------------------------- memory


@row("memory of fit, 1,000,000 x 50 bytes", within_memory, rounds=1)
def _(scale: float) -> Case:
    n = n_rows(1_000_000, scale)
    X, y = labelled_codes(n, 50, 2)
    return Case(lambda: categorical().fit(X, y), allowed_mb=allowed_mb(n, 50))


def frame_memory(scale: float, text_type: str) -> Case:
    n = n_rows(200_000, scale)
    X, y = frame(n, text_type)
    ours = NaiveBayes(n_jobs=2)
    return Case(lambda: ours.fit(X, y), allowed_mb=allowed_mb(n, 50))


@row("memory of fit, frame of 200,000 x 50, object", within_memory, rounds=1)
def _(scale: float) -> Case:
    return frame_memory(scale, "object")


@row("memory of fit, frame of 200,000 x 50, str", within_memory, rounds=1)
def _(scale: float) -> Case:
    return frame_memory(scale, "str")


# --------------------------------------------------------------------------- start-up


def in_new_process(code: str, **environment: str) -> Seconds:
    """Run Python code that prints how long its interesting part took."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return Seconds(done.stdout)


def importing(statement: str) -> Seconds:
    return in_new_process(
        "from time import perf_counter\n"
        "start = perf_counter()\n"
        f"{statement}\n"
        "print(perf_counter() - start)\n"
    )


SKLEARN = {"sklearn.naive_bayes": lambda: importing("import sklearn.naive_bayes")}


@row("import steelyard", at_most(1.5), rounds=7, memory=False)
def _(scale: float) -> Case:
    return Case(lambda: importing("import steelyard"), SKLEARN)


@row("from steelyard import NaiveBayes", at_most(1.5), rounds=7, memory=False)
def _(scale: float) -> Case:
    return Case(lambda: importing("from steelyard import NaiveBayes"), SKLEARN)


# All that a process has to do before its first fit is outside the time.
_FIRST_FIT = """
from time import perf_counter
import numpy as np
import pandas as pd
from steelyard import NaiveBayes
rng = np.random.default_rng(0)
y = rng.integers(2, size=1000)
codes = rng.integers(5, size=(1000, 10)).astype(np.uint8)
frame = pd.DataFrame({"text": np.array(["a", "b", "c"])[codes[:, 0] % 3]})
frame["number"] = rng.standard_normal(1000) + y
X, settings = INPUT
start = perf_counter()
NaiveBayes(n_jobs=2, **settings).fit(X, y)
print(perf_counter() - start)
"""
_FIRST_INPUT = {
    "codes": 'codes, {"categorical_features": "all"}',
    "frame": "frame, {}",
}


# Compiling takes long, and no less the second time.
NOT_AGAIN = {"rounds": 2, "memory": False, "warm_up": False}


def first_fit(what: str, compiled: bool) -> Case:
    code = _FIRST_FIT.replace("INPUT", _FIRST_INPUT[what])

    def never_compiled() -> Seconds:
        with tempfile.TemporaryDirectory() as empty:
            return in_new_process(code, NUMBA_CACHE_DIR=empty)

    return Case((lambda: in_new_process(code)) if compiled else never_compiled)


@row("first fit of codes, kernels cached", within_seconds(1), memory=False)
def _(scale: float) -> Case:
    return first_fit("codes", True)


@row("first fit of a frame, kernels cached", within_seconds(1), memory=False)
def _(scale: float) -> Case:
    return first_fit("frame", True)


@row("first fit of codes, never compiled", within_seconds(15), **NOT_AGAIN)
def _(scale: float) -> Case:
    return first_fit("codes", False)


@row("first fit of a frame, never compiled", within_seconds(15), **NOT_AGAIN)
def _(scale: float) -> Case:
    return first_fit("frame", False)


# ------------------------------------------------------------------------ discretizing


@row("MDLDiscretizer fit 1,000,000 x 20, against np.sort", at_most(8))
def _(scale: float) -> Case:
    X, y = labelled_numbers(n_rows(1_000_000, scale), 20)
    by_columns = np.asfortranarray(X)
    return Case(
        lambda: MDLDiscretizer(n_jobs=2).fit(X, y),
        {
            "np.sort by rows": lambda: np.sort(X, axis=0),
            "np.sort by columns": lambda: np.sort(by_columns, axis=0),
        },
    )
