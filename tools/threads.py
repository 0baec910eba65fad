"""How a fit and a prediction gain from threads: ``python tools/threads.py --help``.

Every job runs with 1, 2, 4, … threads in one process, taking turns. The serial share is
the processor time of the main thread with two threads and more, in which the others do
what is handed out, over that of the job on one thread. Models are compared bit by bit.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from time import perf_counter, thread_time
from typing import Any

import numpy as np

from steelyard import NaiveBayes, method


def make_jobs(n: int, d: int) -> dict[str, Callable[[int], Any]]:
    """Return what is timed: a function of the number of threads for each name."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    X = rng.integers(0, 10, (n, d), dtype=np.uint8)
    X[:, : d // 2][y == 1] //= 2
    settings: dict[str, Any] = {"categorical_features": "all"}
    model = NaiveBayes(**settings).fit(X, y)

    def fit(n_jobs: int) -> Any:
        return NaiveBayes(n_jobs=n_jobs, **settings).fit(X, y).predict_proba(X[:99])

    def weigh(n_jobs: int) -> Any:
        fitted = method("WANBIA-CLL", n_jobs=n_jobs, **settings).fit(X, y)
        return fitted.predict_proba(X[:99])

    def predict(n_jobs: int) -> Any:
        return model.set_params(n_jobs=n_jobs).predict_proba(X)

    return {"NaiveBayes.fit": fit, "WANBIA-CLL": weigh, "predict_proba": predict}


def measure(
    job: Callable[[int], Any], counts: list[int], rounds: int
) -> tuple[dict[int, float], dict[int, float]]:
    """Least wall time and least time of the main thread, by number of threads."""
    wall = dict.fromkeys(counts, np.inf)
    main = dict.fromkeys(counts, np.inf)
    expected = job(1)
    for _ in range(rounds):
        for count in counts:
            start, used = perf_counter(), thread_time()
            result = job(count)
            used, took = thread_time() - used, perf_counter() - start
            wall[count], main[count] = min(wall[count], took), min(main[count], used)
            if not np.array_equal(result, expected):
                raise AssertionError(f"{count} threads give other bits than one.")
    return wall, main


def main() -> None:
    """Print a line for each job and number of threads."""
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=8_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--threads", type=int, default=cores, help="the most threads")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    counts = [1 << k for k in range(options.threads.bit_length())]
    counts = sorted({*counts, options.threads})
    print(f"{options.rows:,} x {options.columns}, {cores} cores")
    print(f"{'job':<16}{'threads':>8}{'ms':>10}{'gain':>8}{'serial':>9}")
    for name, job in make_jobs(options.rows, options.columns).items():
        wall, of_main = measure(job, counts, options.rounds)
        for count in counts:
            serial = f"{of_main[count] / of_main[1]:9.1%}" if count > 1 else f"{'':>9}"
            gain = wall[1] / wall[count]
            print(f"{name:<16}{count:>8}{wall[count] * 1e3:>10.1f}{gain:>8.2f}{serial}")


if __name__ == "__main__":
    main()
