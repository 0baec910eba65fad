"""Rows of the learned weights: fits, solvers, growth of one pass, memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.data import labelled_codes, n_rows
from benchmarks.registry import (
    MB,
    Case,
    Skip,
    Target,
    at_least,
    at_most,
    no_target,
    row,
    within_memory,
)
from steelyard import WeightedNB, method
from steelyard.fitting.objective import Objective
from steelyard.solvers import LBFGS, Solution, Solver

# How near the least possible loss a timed fit has to come, and what stands for that.
NEAR = 1e-7
EXACT = 1e-12


def weights_nb(**settings: Any) -> WeightedNB:
    """Conditional log-likelihood without bounds: WANBIA-CLL's loss, set free."""
    chosen = {"loss": "log", "bounds": None, "tol": NEAR, "n_jobs": 2, **settings}
    return WeightedNB(categorical_features="all", **chosen)


def one_hot(X: np.ndarray, n_values: int) -> csr_matrix:
    """Indicator matrix of codes, ready for a linear model."""
    n, d = X.shape
    columns = X + np.arange(d, dtype=np.int32) * np.int32(n_values)
    ends = np.arange(n + 1, dtype=np.int32) * np.int32(d)
    return csr_matrix((np.ones(n * d), columns.ravel(), ends), shape=(n, d * n_values))


def logistic() -> LogisticRegression:
    # Its default of 100 iterations is not always enough.
    return LogisticRegression(max_iter=1000)


def assert_near(objective: float, best: float) -> None:
    """A fit that stopped early is no fast fit."""
    gap = (objective - best) / best
    assert gap <= NEAR, f"stopped at {gap:.2g} above the least loss"


# ----------------------------------------------- fits against linear models on one-hot


def against_one_hot(
    n: int, d: int, n_classes: int, n_values: int = 10, **settings: Any
) -> Case:
    X, y = labelled_codes(n, d, n_classes, n_values)
    matrix = one_hot(X, n_values)

    def confirm() -> None:
        best = weights_nb(tol=EXACT, **settings).fit(X, y)
        assert_near(weights_nb(**settings).fit(X, y).objective_, best.objective_)

    return Case(
        lambda: weights_nb(**settings).fit(X, y),
        {"LogisticRegression one-hot": lambda: logistic().fit(matrix, y)},
        confirm=confirm,
    )


@row("WANBIA-CLL 100,000 x 50, 2 classes", at_least(3))
def _(scale: float) -> Case:
    return against_one_hot(n_rows(100_000, scale), 50, 2)


@row("WANBIA-CLL 1,000,000 x 50, 2 classes", at_least(5), rounds=3)
def _(scale: float) -> Case:
    return against_one_hot(n_rows(1_000_000, scale), 50, 2)


@row("WANBIA-CLL 100,000 x 50, 10 classes", at_least(8), rounds=3)
def _(scale: float) -> Case:
    return against_one_hot(n_rows(100_000, scale), 50, 10)


@row("WANBIA-CLL 20,000 x 16, 26 classes", at_least(8))
def _(scale: float) -> Case:
    return against_one_hot(n_rows(20_000, scale), 16, 26, 16)


@row("CAWNB-CLL 100,000 x 50, 10 classes", at_least(3), rounds=3)
def _(scale: float) -> Case:
    n = n_rows(100_000, scale)
    return against_one_hot(n, 50, 10, weighting="class-attribute")


@row("CAWNB-CLL 20,000 x 16, 26 classes", at_least(3))
def _(scale: float) -> Case:
    n = n_rows(20_000, scale)
    return against_one_hot(n, 16, 26, 16, weighting="class-attribute")


# ---------------------------------------------------------------------------- solvers


class _Reached(Exception):  # noqa: N818 - not an error
    pass


class _Watched:
    """An objective that interrupts as soon as it is low enough."""

    def __init__(self, objective: Objective, target: float) -> None:
        self._objective = objective
        self._target = target

    def __getattr__(self, name: str) -> Any:
        return getattr(self._objective, name)

    def __call__(self, weights: Any) -> Any:
        value, gradient = self._objective(weights)
        if value <= self._target:
            raise _Reached(weights, value)
        return value, gradient


class UntilReached(Solver):
    """L-BFGS-B that knows how low it can get, and stops there: no tail to pay for."""

    def __init__(self, target: float) -> None:
        self.target = target

    def minimize(self, objective: Any, start: Any, box: Any) -> Solution:
        watched: Any = _Watched(objective, self.target)
        try:
            return LBFGS(tol=EXACT).minimize(watched, start, box)
        except _Reached as reached:
            return Solution(*reached.args, "converged", 1)


# The quicker peer is stopped by someone who knows the least loss, as no user does.
@row("Newton against our L-BFGS-B, 1,000,000 x 50", at_least(2), rounds=3)
def _(scale: float) -> Case:
    X, y = labelled_codes(n_rows(1_000_000, scale), 50, 2)
    best = weights_nb(tol=EXACT).fit(X, y).objective_
    stops_in_time = UntilReached(best * (1.0 + NEAR))

    def same_loss(fitted: dict[str, WeightedNB]) -> None:
        for clf in fitted.values():
            assert_near(clf.objective_, best)

    return Case(
        lambda: weights_nb(solver="newton").fit(X, y),
        {
            "lbfgs to its own tolerance": lambda: weights_nb(solver="lbfgs").fit(X, y),
            "lbfgs until 1e-7": lambda: weights_nb(solver=stops_in_time).fit(X, y),
        },
        check=same_loss,
    )


def bounded(n: int, n_classes: int) -> Case:
    X, y = labelled_codes(n, 50, n_classes)

    def confirm() -> None:
        best = weights_nb(bounds=(0, 1), tol=EXACT).fit(X, y)
        assert_near(weights_nb(bounds=(0, 1)).fit(X, y).objective_, best.objective_)

    return Case(
        lambda: weights_nb(bounds=(0, 1)).fit(X, y),
        {"no bounds": lambda: weights_nb().fit(X, y)},
        confirm=confirm,
    )


@row("WANBIA-CLL in [0, 1] against no bounds, 1,000,000 x 50", at_most(2), rounds=3)
def _(scale: float) -> Case:
    return bounded(n_rows(1_000_000, scale), 2)


@row("WANBIA-CLL in [0, 1] against no bounds, 10 classes", at_most(2), rounds=3)
def _(scale: float) -> Case:
    return bounded(n_rows(100_000, scale), 10)


# ------------------------------------------------------------------ RNB against trees


def against_trees(n: int, n_classes: int) -> Case:
    X, y = labelled_codes(n, 50, n_classes)
    trees = HistGradientBoostingClassifier(categorical_features=[True] * 50)

    def ours() -> Any:
        return method("RNB", categorical_features="all", n_jobs=2).fit(X, y)

    def confirm() -> None:
        often = np.bincount(y).max() / len(y)
        assert ours().score(X, y) > often, "no better than the most frequent class"

    return Case(
        ours, {"HistGradientBoosting": lambda: trees.fit(X, y)}, confirm=confirm
    )


# The trees take half a minute and more: no run of theirs is wasted.
@row("RNB 100,000 x 50, 2 classes", at_least(10), rounds=2, memory=False, warm_up=False)
def _(scale: float) -> Case:
    return against_trees(n_rows(100_000, scale), 2)


@row(
    "RNB 100,000 x 50, 10 classes", at_least(10), rounds=1, memory=False, warm_up=False
)
def _(scale: float) -> Case:
    return against_trees(n_rows(100_000, scale), 10)


# --------------------------------------------------------------------- Gaussian, MAGIC


def magic() -> tuple[Any, Any]:
    """Ten numbers of each of 19,020 rows, as measured."""
    folder = os.environ.get("STEELYARD_DATA")
    if not folder:
        raise Skip("STEELYARD_DATA is not set")
    path = Path(folder) / "magic.arff.gz"
    if not path.is_file():
        raise Skip("there is no magic.arff.gz in STEELYARD_DATA")
    from steelyard.io.dataset import read_dataset

    data = read_dataset(path)
    return data.table.to_numpy(np.float64), data.target


def gdnb(name: str, peer: Callable[[], Any], target: Target) -> None:
    @row(f"GDNB, MAGIC 19,020 x 10, {name}", target, rounds=3)
    def _(scale: float) -> Case:
        X, y = magic()
        return Case(
            lambda: method("GDNB", n_jobs=2).fit(X, y),
            {f"LogisticRegression {name}": lambda: peer().fit(X, y)},
        )


gdnb("raw columns", logistic, at_least(1))
gdnb("scaled", lambda: make_pipeline(StandardScaler(), logistic()), no_target)


# ------------------------------------------------------------------ growth of one pass


class Keep(Solver):
    """Take no step; keep the objective, to evaluate it elsewhere."""

    objective: Objective

    def minimize(self, objective: Any, start: Any, box: Any) -> Solution:
        self.objective = objective
        return Solution(start, 0.0, "converged", 0)


def one_pass(
    n: int, d: int, n_classes: int, weighting: str = "attribute", loss: str = "log"
) -> Case:
    X, y = labelled_codes(n, d, n_classes)
    keep = Keep()
    settings = {"weighting": weighting, "loss": loss, "n_jobs": 1}
    weights_nb(solver=keep, **settings).fit(X, y)
    start = np.full(keep.objective.size, 0.5)
    units = {"cell": n * d}
    if n_classes > 2:
        units["cell and class"] = n * d * n_classes
    return Case(lambda: keep.objective(start), units=units)


def growth(name: str, n: int, d: int, n_classes: int, **parts: str) -> None:
    @row(f"one pass, {name}", no_target, rounds=3, memory=False)
    def _(scale: float) -> Case:
        return one_pass(max(10_000, round(n * scale)), d, n_classes, **parts)


for rows in (10_000, 100_000, 1_000_000, 3_000_000):
    growth(f"{rows:,} x 50, 2 classes", rows, 50, 2)
for attributes in (10, 100, 200):
    growth(f"100,000 x {attributes}, 2 classes", 100_000, attributes, 2)
for classes in (3, 5, 10, 26):
    growth(f"100,000 x 50, {classes} classes", 100_000, 50, classes)
for weighting in ("class-attribute", "value"):
    growth(f"{weighting}, 10 classes", 100_000, 50, 10, weighting=weighting)
growth("squared error, 10 classes", 100_000, 50, 10, loss="brier")
growth("RNB, 10 classes", 100_000, 50, 10, weighting="mixture", loss="brier")


# ----------------------------------------------------------------------------- memory

# What a fit may need besides the codes, in columns of eight bytes a row: one per class,
# and a few. An array of rows by attributes by classes would take hundreds.
BUFFER_COLUMNS = 5


def memory_of_fit(scale: float, n_classes: int, **settings: Any) -> Case:
    n, d = n_rows(1_000_000, scale), 50
    X, y = labelled_codes(n, d, n_classes)
    return Case(
        lambda: weights_nb(**settings).fit(X, y),
        allowed_mb=n * (d + 8 * (n_classes + BUFFER_COLUMNS)) / MB,
    )


@row(
    "memory of WANBIA-CLL, 1,000,000 x 50, 2 classes",
    within_memory,
    rounds=1,
    warm_up=False,
)
def _(scale: float) -> Case:
    return memory_of_fit(scale, 2)


@row(
    "memory of WANBIA-CLL, 1,000,000 x 50, 10 classes",
    within_memory,
    rounds=1,
    warm_up=False,
)
def _(scale: float) -> Case:
    return memory_of_fit(scale, 10)


@row(
    "memory of CAWNB-CLL, 1,000,000 x 50, 10 classes",
    within_memory,
    rounds=1,
    warm_up=False,
)
def _(scale: float) -> Case:
    return memory_of_fit(scale, 10, weighting="class-attribute")
