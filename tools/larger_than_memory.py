"""Measure how the cost of fits from Parquet grows with the number of rows.

    python tools/larger_than_memory.py                      # up to 20 million rows
    python tools/larger_than_memory.py --millions 1,10,100  # by hand: 100M needs 15 GB

A table has 25 columns of text by dictionary, 25 of int32 and 10 values each. Every fit
is a process of its own. Figures go to docs/larger_than_memory.json, and the picture to
docs/images/larger_than_memory.svg.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "docs/larger_than_memory.json"
PICTURE = ROOT / "docs/images/larger_than_memory.svg"
METHODS = ("NB", "WANBIA-CLL")
GROUP = 500_000

_FIT = """
import json, sys, threading, time
import pandas as pd
import steelyard as sy

method, path = sys.argv[1:]
few = pd.DataFrame({"a": ["x", "y"] * 9000, "b": [1, 2, 3] * 6000, "y": [0, 1] * 9000})
sy.method(method).fit(sy.scan([few]), "y")  # loads and compiles
peak, done = 0, threading.Event()

def watch():
    global peak
    while not done.wait(0.01):
        status = open("/proc/self/status").read()
        peak = max(peak, int(status.partition("RssAnon:")[2].split()[0]))

threading.Thread(target=watch, daemon=True).start()
wall, cpu = time.perf_counter(), time.process_time()
sy.method(method, n_jobs=2).fit(sy.scan(path), "y")
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
done.set()
print(json.dumps({"seconds": wall, "processor_seconds": cpu, "private_mb": peak / 1e3}))
"""


def write_table(path: Path, n_rows: int) -> None:
    """Write a table, the same half a million rows again and again."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    sys.path.insert(0, str(ROOT))
    from benchmarks.data import labelled_codes

    codes, y = labelled_codes(GROUP, 50, 2, 10)
    words = pa.array([f"value {v}" for v in range(10)])
    columns: dict[str, Any] = {}
    for j, column in enumerate(codes.T.astype(np.int32)):
        columns[f"x{j}"] = pa.array(column)
        if j < 25:
            columns[f"x{j}"] = pa.DictionaryArray.from_arrays(column, words)
    table = pa.table({**columns, "y": y.astype(np.int32)})
    with pq.ParquetWriter(path, table.schema, compression="zstd") as writer:
        for start in range(0, n_rows, GROUP):
            size = min(GROUP, n_rows - start)
            writer.write_table(table.slice(0, size), row_group_size=GROUP)


def measure(millions: float, folder: str | None) -> list[dict[str, Any]]:
    """Fit every method to a table of so many rows."""
    found = []
    with tempfile.TemporaryDirectory(dir=folder) as inside:
        path = Path(inside) / "rows.parquet"
        write_table(path, round(millions * 1e6))
        for method in METHODS:
            command = [sys.executable, "-W", "ignore", "-c", _FIT, method, str(path)]
            environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
            output = subprocess.run(
                command, env=environment, check=True, capture_output=True, text=True
            ).stdout
            figures = {"millions": millions, "method": method, **json.loads(output)}
            print(figures, flush=True)
            found.append(figures)
    return found


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
    parser.add_argument("--millions", default="1,2,5,10,20", help="numbers of rows")
    parser.add_argument("--folder", help="where tables are written")
    parser.add_argument("--draw", action="store_true", help="only draw again")
    arguments = parser.parse_args()
    if not arguments.draw:
        figures = []
        for millions in map(float, arguments.millions.split(",")):
            figures += measure(millions, arguments.folder)
            FIGURES.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    draw(json.loads(FIGURES.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
