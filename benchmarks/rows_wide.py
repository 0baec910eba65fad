"""Rows of wide tables, many classes and many categories: fits, and sizes of files."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.data import labelled_codes
from benchmarks.registry import MB, Case, row, within_seconds
from steelyard import ShrinkageNB, method

LARGEST_FILE = 5 * MB


def numbers_of_classes(n: int, d: int, n_classes: int) -> tuple[Any, Any]:
    """Numbers around a mean of each class; a product of two columns tells more."""
    random = np.random.default_rng(0)
    y = random.integers(0, n_classes, n)
    X = random.normal(size=(n, d)) + random.normal(0.0, 0.6, (n_classes, d))[y]
    X[:, 1] *= np.where(y % 2, 1.0, -1.0) * np.sign(X[:, 0])
    return X, y


def one_column_of_many_categories(n: int, n_values: int) -> tuple[Any, Any]:
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


def fit_row(name: str, seconds: float, data: Any, build: Any) -> None:
    """A fit that is judged by its time and by the size of its model file."""

    # Too long to be repeated, and none gets shorter by fewer rows.
    @row(name, within_seconds(seconds), rounds=1, memory=False, warm_up=False)
    def _(scale: float) -> Case:
        X, y = data() if scale else labelled_codes(200, 4, 3)

        def confirm() -> None:
            size = megabytes(build().fit(X, y)) * MB
            assert size <= LARGEST_FILE, f"a file of {size / MB:.1f} MB"

        return Case(lambda: build().fit(X, y), confirm=confirm)


def published(name: str) -> Any:
    return method(name).set_params(categorical_features="all", n_jobs=2)


def default() -> Any:
    return ShrinkageNB(n_jobs=2)


def default_of_codes() -> Any:
    return ShrinkageNB(categorical_features="all", n_jobs=2)


for method_name, limit in (("RNB", 19.0), ("CAWNB", 15.0)):
    fit_row(
        f"{method_name} 1,000 x 2,000, 2 classes",
        limit,
        lambda: labelled_codes(1_000, 2_000, 2, 5),
        lambda method_name=method_name: published(method_name),
    )
fit_row(
    "CFW 200 x 5,000, 2 classes",
    35.0,
    lambda: labelled_codes(200, 5_000, 2, 5),
    lambda: published("CFW"),
)
fit_row(
    "SHNB 20,000 x 20, 1,000 classes",
    34.0,
    lambda: labelled_codes(20_000, 20, 1_000),
    default_of_codes,
)
fit_row(
    "SHNB 200,000 x 6, one column of 100,000 categories, 2 classes",
    19.0,
    lambda: one_column_of_many_categories(200_000, 100_000),
    default_of_codes,
)
fit_row(
    "SHNB 3,376 x 20 numbers, 57 classes",
    8.4,
    lambda: numbers_of_classes(3_376, 20, 57),
    default,
)
