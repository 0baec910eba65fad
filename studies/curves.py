"""Measure how curves of the default turn and jump, beside those of EBM.

``python studies/curves.py [SET ...] [--rows N]`` fits data sets of two classes of the
folder ``STEELYARD_DATA``, moves one row along each numeric column with at least ten
values, from its 2 % to its 98 % quantile, all else as it is, and prints how often the
log-odds change direction a column, and their largest step between neighbouring values.
EBM stands beside where ``interpret`` is installed.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import steelyard as sy
from steelyard._common.text import text_table
from steelyard.lab.data.datasets import load_dataset

DATASETS = (
    "diabetes heart-statlog liver-disorders magic wdbc ionosphere vertebral-column-2c "
    "qsar-biodeg sonar credit-g"
).split()

# Steps of log-odds that count as going up or down.
MIN_STEP = 0.02

# Values that a column must have, and those at which its curve is read at most.
MIN_VALUES, MAX_VALUES = 10, 200

Floats = NDArray[np.float64]


class Shape(NamedTuple):
    """How the curves of a model look."""

    turns: float
    """Changes of direction a column."""

    step: float
    """Largest step of any column between neighbouring values."""


def turns(curve: Floats, least_step: float = MIN_STEP) -> int:
    """Count changes of direction, steps of next to nothing left out.

    Examples
    --------
    >>> turns(np.array([0.0, 1.0, 2.0, 1.0, 1.001, 0.5, 3.0]))
    2
    """
    steps = np.diff(curve)
    signs = np.sign(steps[np.abs(steps) > least_step])
    return int((signs[1:] != signs[:-1]).sum())


def grid_of(column: Floats) -> Floats:
    """Return the values of a column between its 2 % and its 98 % quantile."""
    known = column[~np.isnan(column)]
    low, high = np.quantile(known, [0.02, 0.98])
    values = np.unique(known[(known >= low) & (known <= high)])
    picked = np.linspace(0, len(values) - 1, min(len(values), MAX_VALUES))
    return values[np.rint(picked).astype(int)]


def curves(clf: Any, X: pd.DataFrame) -> list[Floats]:
    """Read the log-odds of the second class off along each numeric column."""
    log_odds = []
    for name in X.columns[[pd.api.types.is_numeric_dtype(X[c]) for c in X.columns]]:
        grid = grid_of(X[name].to_numpy(dtype=float))
        if X[name].nunique() < MIN_VALUES or len(grid) < 2:
            continue
        rows = X.iloc[[0] * len(grid)].reset_index(drop=True)
        share = clf.predict_proba(rows.assign(**{name: grid}))
        logs = np.log(np.maximum(share, 1e-300))
        log_odds.append(logs[:, 1] - logs[:, 0])
    return log_odds


def shape_of(clf: Any, X: pd.DataFrame) -> Shape:
    """Measure the curves of a fitted model."""
    log_odds = curves(clf, X)
    largest = max(
        (float(np.abs(np.diff(curve)).max()) for curve in log_odds), default=0.0
    )
    return Shape(float(np.mean([turns(curve) for curve in log_odds])), largest)


def models() -> dict[str, Any]:
    """Return unfitted classifiers by their names."""
    made: dict[str, Any] = {"SHNB": sy.ShrinkageNB()}
    if find_spec("interpret") is None:
        return made
    glassbox = import_module("interpret.glassbox")
    return {**made, "EBM": glassbox.ExplainableBoostingClassifier(random_state=0)}


def drawn(name: str, most: int) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Return so many rows of a data set at most."""
    data = load_dataset(name)
    X, y = pd.DataFrame(data.table), np.asarray(data.target)
    if len(X) <= most:
        return X.reset_index(drop=True), y
    rows = np.sort(np.random.default_rng(0).choice(len(X), most, replace=False))
    return X.iloc[rows].reset_index(drop=True), y[rows]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print turns and largest steps."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=DATASETS, help="data sets")
    parser.add_argument("--rows", type=int, default=2_000, help="rows at most")
    options = parser.parse_args(arguments)
    names, rows = list(models()), []
    if "EBM" not in names:
        print("interpret is not installed: EBM is left out\n")
    for name in options.sets:
        X, y = drawn(name, options.rows)
        shapes = [shape_of(clf.fit(X, y), X) for clf in models().values()]
        cells = [f"{number:.2f}" for shape in shapes for number in shape]
        rows.append([name, *cells])
    means = np.mean([[float(cell) for cell in row[1:]] for row in rows], axis=0)
    rows.append(["mean", *(f"{number:.2f}" for number in means)])
    headers = [
        "data set",
        *(f"{n} {what}" for n in names for what in ("turns", "step")),
    ]
    print(text_table(headers, rows, [False] + [True] * (len(headers) - 1)))


if __name__ == "__main__":
    main()
