"""Rows of wide tables, many classes and many categories: fits, and sizes of files."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.data import labelled_codes
from benchmarks.registry import MB, Case, Seconds, row, within_seconds
from steelyard import ShrinkageNB, method

# With intervals, and moments for rows of which only some cells are known.
LARGEST_FILE_MB = 7.0

Table = tuple[Any, Any]


def two_values(n: int, d: int, n_classes: int = 2) -> Table:
    """Columns of two values, fifty of which say a little about the classes."""
    random = np.random.default_rng(0)
    y = random.integers(0, n_classes, n)
    share = np.full((n_classes, d), 0.5)
    share[:, :50] += random.normal(0.0, 0.1, (n_classes, 50))
    return (random.random((n, d)) < share[y]).astype(np.uint8), y


def numbers(n: int, d: int, n_classes: int) -> Table:
    """Numbers around a mean of each class; two columns say more together."""
    random = np.random.default_rng(0)
    y = random.integers(0, n_classes, n)
    X = random.normal(size=(n, d)) + random.normal(0.0, 0.6, (n_classes, d))[y]
    X[:, 1] *= np.where(y % 2, 1.0, -1.0) * np.sign(X[:, 0])
    return X, y


def many_categories(n: int, n_values: int) -> Table:
    """A column with all of so many categories beside five of ten each."""
    X, y = labelled_codes(n, 6, 2)
    X = X.astype(np.int32)
    X[:, 0] = np.random.default_rng(0).permutation(np.arange(n) % n_values)
    return X, y


def megabytes(fitted: Any) -> float:
    """Return the size of the model file of a classifier."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        fitted.save(path)
        return path.stat().st_size / MB


def fit_row(
    name: str,
    seconds: float,
    data: Callable[[], Table],
    method_name: str = "SHNB",
    **settings: Any,
) -> None:
    """Register a fit that is judged by its time, and fails if its file is too large."""

    # Too long to be repeated, and its shape is what is measured.
    @row(
        f"{method_name} {name}",
        within_seconds(seconds),
        rounds=1,
        memory=False,
        warm_up=False,
    )
    def _(scale: float) -> Case:
        X, y = data() if scale else labelled_codes(200, 4, 3)

        def ours() -> Seconds:
            kind = ShrinkageNB() if method_name == "SHNB" else method(method_name)
            clf = kind.set_params(n_jobs=2, **settings)
            start = perf_counter()
            clf.fit(X, y)
            took = perf_counter() - start
            size = megabytes(clf)
            assert size <= LARGEST_FILE_MB, f"a file of {size:.1f} MB"
            return Seconds(took)

        return Case(ours, check=lambda answers: None)


CODES: dict[str, Any] = {"categorical_features": "all"}

for n_classes in (2, 3):
    for name, limit in (("RNB", 19.0), ("CAWNB", 15.0)):
        fit_row(
            f"5,000 x 2,000, {n_classes} classes",
            limit,
            partial(two_values, 5_000, 2_000, n_classes),
            name,
            **CODES,
        )
fit_row(
    "200 x 5,000, 2 classes",
    35.0,
    lambda: labelled_codes(200, 5_000, 2, 5),
    "CFW",
    **CODES,
)
fit_row(
    "20,000 x 20, 1,000 classes",
    34.0,
    lambda: labelled_codes(20_000, 20, 1_000),
    **CODES,
)
fit_row(
    "200,000 x 6, 2 classes, one column of 100,000 categories",
    19.0,
    lambda: many_categories(200_000, 100_000),
    **CODES,
)
fit_row("3,376 x 40 numbers, 57 classes", 8.4, lambda: numbers(3_376, 40, 57))
