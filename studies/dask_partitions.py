"""What partitions cost: ``python studies/dask_partitions.py``, in processor time.

Fits 250,000 rows of 30 columns in 20 and in 500 partitions on two workers, beside
``map_partitions(len)``, which does nothing. Needs psutil.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import steelyard as sy

N_ROWS = 250_000


def used() -> float:
    """Return the processor seconds of this process and of those it started."""
    here = psutil.Process()
    times = [process.cpu_times() for process in (here, *here.children(recursive=True))]
    return float(sum(own.user + own.system for own in times))


def seconds(run: Callable[[], Any]) -> float:
    """Return the processor time of the second of two runs."""
    run()
    before = used()
    run()
    return used() - before


def main() -> None:
    """Print a line for each number of partitions."""
    import dask.dataframe as dd
    from dask.delayed import delayed
    from distributed import wait

    rows = import_module("benchmarks.rows_dask")

    print(
        "| partitions | an empty map | `NaiveBayes` | `WANBIA-CLL` |\n"
        + "| ---: " * 4
        + "|"
    )
    for n_parts in (20, 500):
        parts = [delayed(rows.frame_of)(N_ROWS // n_parts, k) for k in range(n_parts)]
        frame = rows.client().persist(dd.from_delayed(parts, meta=rows.frame_of(1, 0)))
        wait(frame)
        fits = [
            partial(sy.method(name).fit, frame, "y") for name in ("NB", "WANBIA-CLL")
        ]
        work = [frame.map_partitions(len).compute, *fits]
        print(f"| {n_parts} | {' | '.join(f'{seconds(w):.1f} s' for w in work)} |")
    rows.client().shutdown()


if __name__ == "__main__":
    main()
