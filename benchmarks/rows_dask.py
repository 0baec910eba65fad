"""Passes over rows on two worker processes, and what Dask adds to them."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.data import n_rows
from benchmarks.registry import Case, Seconds, at_most, no_target, row, within_seconds
from benchmarks.rows_chunks import needed

N_COLUMNS, N_VALUES, N_PARTITIONS = 50, 10, 20


@cache
def client() -> Any:
    """Start two worker processes, which end with this one."""
    distributed = needed("distributed")
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    )
    return distributed.Client(cluster)


def part_of_table(n: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    noise = rng.integers(0, N_VALUES, (n, N_COLUMNS), dtype=np.uint8)
    return np.where(rng.random((n, N_COLUMNS)) < 0.1, y[:, None], noise), y


def table(n: int) -> tuple[Any, Any]:
    """Return a table and its labels, which are made on the workers."""
    dask, array = needed("dask"), needed("dask.array")
    each = n // N_PARTITIONS
    parts = [
        dask.delayed(part_of_table, nout=2)(each, seed) for seed in range(N_PARTITIONS)
    ]
    cells = [array.from_delayed(X, (each, N_COLUMNS), np.int64) for X, _ in parts]
    labels = [array.from_delayed(y, (each,), np.int64) for _, y in parts]
    return array.concatenate(cells), array.concatenate(labels)


def prepared(scale: float) -> tuple[Any, Any, Any]:
    """Return rows for passes on the workers, a loss, and the effect of weights one."""
    from steelyard import WeightedNB
    from steelyard.fitting.problem import build_problem
    from steelyard.fitting.recipe import rows_of

    client()
    clf = WeightedNB(categorical_features="all")
    recipe = clf._recipe()
    X, y = table(n_rows(10_000_000, scale))
    training = rows_of(X).training(y, None, recipe, clf)
    objective = build_problem(recipe, training).objective
    ones = np.ones(objective.size)
    effect = objective.weighting.apply(ones, objective.evidence)
    return objective.rows, objective.loss, effect


class Timed:
    """Evaluates the rows of a partition; says for how long, and on which worker."""

    def __init__(self, loss: Any, effect: Any) -> None:
        self.loss, self.effect = loss, effect

    def __call__(self, rows: Any) -> tuple[str, float]:
        start = perf_counter()
        rows.evaluate(self.loss, self.effect)
        return needed("distributed").get_worker().address, perf_counter() - start


def nothing(rows: Any) -> None:
    return None


@row("Dask, a pass over 10,000,000 x 50, 2 workers", at_most(1.5), memory=False)
def _(scale: float) -> Case:
    rows, loss, effect = prepared(scale)

    def compute() -> Seconds:
        by_worker: dict[str, float] = defaultdict(float)
        for worker, seconds in rows.prepared.each(Timed(loss, effect)):
            by_worker[worker] += seconds
        return Seconds(max(by_worker.values()))

    return Case(lambda: rows.evaluate(loss, effect), {"its compute": compute})


@row("Dask, an empty pass, 2 workers", within_seconds(0.025), memory=False, rounds=20)
def _(scale: float) -> Case:
    rows, _, _ = prepared(0.01 * scale)
    return Case(lambda: rows.prepared.each(nothing))


def frame_of(n: int, seed: int) -> Any:
    X, y = part_of_table(n, seed)
    words = np.array([f"value {v}" for v in range(N_VALUES)], dtype=object)
    columns = {f"x{j}": words[X[:, j]] if j < 18 else X[:, j] for j in range(30)}
    return needed("pandas").DataFrame({**columns, "y": y})


@row("Dask, NB of 500 partitions, 250,000 x 30", no_target, memory=False, rounds=3)
def _(scale: float) -> Case:
    delayed, frames = needed("dask").delayed, needed("dask.dataframe")
    from steelyard import NaiveBayes

    connected, n = client(), n_rows(250_000, scale)
    tables = []
    for n_parts in (20, 500):
        parts = [delayed(frame_of)(n // n_parts, seed) for seed in range(n_parts)]
        made = frames.from_delayed(parts, meta=frame_of(1, 0))
        tables.append(connected.persist(made))
    needed("distributed").wait(tables)
    few, many = tables
    alone = {"Dask: len of 500 partitions": many.map_partitions(len).compute}
    peers = {"20 partitions": lambda: NaiveBayes().fit(few, "y"), **alone}
    return Case(lambda: NaiveBayes().fit(many, "y"), peers)


@row("dask-ml GaussianNB, 1,000,000 x 50, 2 workers", no_target, memory=False, rounds=3)
def _(scale: float) -> Case:
    naive_bayes = needed("dask_ml.naive_bayes")
    from steelyard import NaiveBayes

    connected = client()
    X, y = connected.persist(table(n_rows(1_000_000, scale)))
    X = connected.persist(X.astype(float))
    needed("distributed").wait([X, y])

    def theirs() -> Any:
        model = naive_bayes.GaussianNB(classes=[0, 1]).fit(X, y)
        # Its fit is lazy.
        return needed("dask").compute(model.theta_, model.sigma_, model.class_prior_)

    ours = NaiveBayes(numeric="gaussian")
    return Case(lambda: ours.fit(X, y), {"dask-ml": theirs})
