r"""Measure how the cost of fits from Parquet grows with the number of rows.

    python studies/larger_than_memory.py              # up to 20 million rows
    python studies/larger_than_memory.py --millions 100 --jobs 16 --to figures.json

A table has 25 columns of text by dictionary, 25 of int32 and 10 values each, and every
row is drawn by itself. Every fit is a process of its own. Of the default, interactions
and weights are printed too; ``--interactions 60`` asks for 60 of them. Figures go to
docs/larger_than_memory.json, and the picture to docs/images/larger_than_memory.svg;
with ``--to`` figures to that file, and no picture.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache, partial
from pathlib import Path
from time import perf_counter
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "docs/larger_than_memory.json"
PICTURE = ROOT / "docs/images/larger_than_memory.svg"
METHODS = ("NB", "WANBIA-CLL", "SHNB")
GROUP = 500_000
_PATHS = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]

_FIT = """
import json, sys, threading, time
import numpy as np
import pandas as pd
import steelyard as sy

method, path, n_jobs, interactions = sys.argv[1:]
given = {"interactions": int(interactions)} if interactions and method == "SHNB" else {}
few = pd.DataFrame({"a": ["x", "y"] * 9000, "b": [1, 2, 3] * 6000, "y": [0, 1] * 9000})
sy.method(method).fit(sy.scan([few]), "y")  # loads and compiles
peak, done, passes = 0, threading.Event(), 0

def watch():
    global peak
    while not done.wait(0.01):
        status = open("/proc/self/status").read()
        peak = max(peak, int(status.partition("RssAnon:")[2].split()[0]))

def follow(at):
    global passes
    passes = max(passes, at.n_passes if at.step == "fit" else 0)

threading.Thread(target=watch, daemon=True).start()
wall, cpu = time.perf_counter(), time.process_time()
with sy.watch(follow):
    clf = sy.method(method, n_jobs=int(n_jobs), **given).fit(sy.scan(path), "y")
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
done.set()
resident = open("/proc/self/status").read().partition("VmHWM:")[2].split()[0]
figures = {"seconds": wall, "processor_seconds": cpu, "private_mb": peak / 1e3}
figures |= {"resident_mb": int(resident) / 1e3, "passes": passes}
if getattr(clf, "interactions_", None) is not None:
    figures["interactions"] = len(clf.interactions_)
    figures["weights"] = sum(map(np.size, clf.value_effects_))
print(json.dumps(figures))
"""


@lru_cache(1)
def rows(part: int) -> Any:
    """Return half a million rows: those of other parts are others, drawn alike.

    Each column has a table of near-uniform shares by class, and the second half of
    them copy the first half every other time.
    """
    import numpy as np
    import pyarrow as pa

    tables, rng = np.random.default_rng(0), np.random.default_rng([1, part])
    y = rng.integers(2, size=GROUP)
    words = pa.array([f"value {v}" for v in range(10)])
    columns: dict[str, Any] = {}
    cells: list[Any] = []
    for j in range(50):
        weights = np.exp(0.15 * tables.standard_normal((2, 10)))
        ends = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)[:, :-1]
        lot = rng.random(GROUP)
        column = np.where(y, *(np.searchsorted(own, lot) for own in ends[::-1]))
        if j >= 25:
            column = np.where(rng.random(GROUP) < 0.5, cells[j - 25], column)
        cells.append(column.astype(np.int32))
        columns[f"x{j}"] = pa.array(cells[j])
        if j < 25:
            columns[f"x{j}"] = pa.DictionaryArray.from_arrays(cells[j], words)
    return pa.table({**columns, "y": y.astype(np.int32)})


def write_part(folder: str, n_rows: int, first: int) -> None:
    """Write the rows from one on, as many as there are in a file."""
    import pyarrow.parquet as pq

    path = Path(folder) / f"{first:012d}.parquet"
    with pq.ParquetWriter(path, rows(0).schema, compression="zstd") as writer:
        for start in range(first, min(first + 4 * GROUP, n_rows), GROUP):
            size = min(GROUP, n_rows - start)
            part = rows(start // GROUP).slice(0, size)
            writer.write_table(part, row_group_size=GROUP)


def measure(
    millions: float,
    folder: str | None,
    methods: Sequence[str],
    n_jobs: int,
    interactions: str = "",
) -> list[dict[str, Any]]:
    """Fit every method to a table of that many million rows."""
    measured = []
    with tempfile.TemporaryDirectory(dir=folder) as inside:
        start, n_rows = perf_counter(), round(millions * 1e6)
        with ProcessPoolExecutor(n_jobs) as pool:
            parts = range(0, n_rows, 4 * GROUP)
            list(pool.map(partial(write_part, inside, n_rows), parts))
        size = sum(path.stat().st_size for path in Path(inside).iterdir())
        print(f"{size / 1e6:,.0f} MB in {perf_counter() - start:.0f} s", flush=True)
        for method in methods:
            given = [method, inside, str(n_jobs), interactions]
            output = subprocess.run(
                [sys.executable, "-W", "ignore", "-c", _FIT, *given],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(_PATHS)},
                check=True,
                stdout=subprocess.PIPE,
                text=True,
            ).stdout
            figures = {"millions": millions, "method": method, **json.loads(output)}
            print(figures, flush=True)
            measured.append(figures)
    return measured


def draw(figures: list[dict[str, Any]]) -> None:
    """Draw processor time and private memory by number of rows."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "steelyard"
    from matplotlib import pyplot as plt

    parts = (
        ("processor_seconds", "seconds of processor time"),
        ("private_mb", "MB of private memory"),
    )
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    for axis, (key, title) in zip(axes, parts, strict=True):
        for method in METHODS:
            chosen = [entry for entry in figures if entry["method"] == method]
            rows = [entry["millions"] for entry in chosen]
            axis.plot(rows, [entry[key] for entry in chosen], "o-", label=method)
        axis.set(xscale="log", xlabel="million rows", title=title)
        axis.grid(alpha=0.3)
    axes[0].set(yscale="log")
    axes[1].set(ylim=(0, None))
    axes[0].legend()
    figure.savefig(PICTURE, metadata={"Date": None})


def main() -> None:
    """Measure, write the figures, and draw them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--millions", default="1,5,20", help="numbers of rows")
    parser.add_argument("--folder", help="where tables are written")
    parser.add_argument("--methods", default=",".join(METHODS), help="what is fitted")
    parser.add_argument("--jobs", type=int, default=2, help="threads, and processes")
    parser.add_argument(
        "--interactions", default="", help="number of interactions of SHNB"
    )
    parser.add_argument("--to", type=Path, default=FIGURES, help="where figures go")
    parser.add_argument("--draw", action="store_true", help="only draw again")
    given = parser.parse_args()
    if not given.draw:
        figures: list[dict[str, Any]] = []
        for millions in map(float, given.millions.split(",")):
            methods = given.methods.split(",")
            of = given.folder, methods, given.jobs, given.interactions
            figures += measure(millions, *of)
            given.to.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    if given.to == FIGURES:
        draw(json.loads(FIGURES.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
