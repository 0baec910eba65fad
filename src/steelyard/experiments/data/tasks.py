"""Tasks of the exponential-loss paper: ``tasks.toml`` says what they are made of."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas

__all__ = ["MULTICLASS", "TASKS", "one_against_rest", "select_task", "standardize"]


@dataclass(frozen=True)
class Task:
    """One data set of the paper; the file of tasks has the meaning of the fields."""

    name: str
    file: str
    label: str | None = None
    columns: Sequence[str] | None = None
    numbers: Sequence[str] = ()
    without: Sequence[str] = ()
    small_classes: int = 0
    drawn: Mapping[str, int] = field(default_factory=dict)


_FILE = resources.files("steelyard.experiments.data").joinpath("tasks.toml")
_GROUPS = tomllib.loads(_FILE.read_text(encoding="utf-8"))
TASKS, MULTICLASS = (
    tuple(Task(**entry) for entry in _GROUPS[key]) for key in ("binary", "several")
)


def select_task(
    task: Task, X: pandas.DataFrame, y: NDArray[Any], seed: int = 1
) -> tuple[pandas.DataFrame, NDArray[Any]]:
    """Select the rows and columns of a task from the table and labels of its file.

    Numeric attributes get mean 0 and variance 1; labels of a binary task are 0 and 1.
    The seed is that of the rows that are drawn, where some are.
    """
    X = X[list(X if task.columns is None else task.columns)]
    X = X.drop(columns=list(task.without))
    X = X.assign(**{name: X[name].astype(str).astype(float) for name in task.numbers})
    _, places, counts = np.unique(y, return_inverse=True, return_counts=True)
    is_used = counts[places] >= task.small_classes
    rng = np.random.default_rng(seed)
    for label, number in task.drawn.items():
        rows = np.flatnonzero(y == label)
        is_used[rows] = False
        is_used[rng.choice(rows, number, replace=False)] = True
    X, y = X[is_used].reset_index(drop=True), y[is_used]
    return standardize(X), y if task.label is None else one_against_rest(y, task.label)


def one_against_rest(y: NDArray[Any], label: str) -> NDArray[Any]:
    """Return 1 where a label (n,) is this one, and 0 elsewhere."""
    chosen = y == label
    if not chosen.any():
        raise ValueError(f"No row has the label {label!r}.")
    return chosen.astype(np.int64)


def standardize(X: pandas.DataFrame) -> pandas.DataFrame:
    """Give every numeric column of a frame mean 0 and variance 1.

    Naive Bayes and its weighted forms are as before, but for the smallest variance
    allowed: it is relative to the largest, that of the column with the largest unit.
    """
    X = X.copy()
    for name in X.select_dtypes("number"):
        deviation = X[name].std(ddof=0)
        X[name] = (X[name] - X[name].mean()) / (deviation if deviation > 0 else 1.0)
    return X
