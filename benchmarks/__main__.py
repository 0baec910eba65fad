"""Print the table of benchmarks: ``python -m benchmarks --help``."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.measure import measure, summary, touch_memory
from benchmarks.registry import Row, Skip, all_rows, select

QUICK = 0.1
TOUCHED_BYTES = 2e9
PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "pandas", "pyarrow")
HEADER = ("ours ms", "peer ms", "ratio", "target", "verdict", "ours MB", "peer MB")
WIDTHS = (10, 10, 8, 9, 8, 8, 8)


def main(argv: list[str] | None = None) -> int:
    options = _parser().parse_args(argv)
    if options.gpu:
        from benchmarks import gpu

        return gpu.run(options.scale or (QUICK if options.quick else 1.0))
    rows = select(all_rows(), options.rows)
    if options.list:
        print("\n".join(row.name for row in rows))
        return 0
    if not rows:
        print(f"No row is called {options.rows!r}; --list shows them.", file=sys.stderr)
        return 2
    scale = options.scale or (QUICK if options.quick else 1.0)
    rounds = options.rounds or (1 if scale < 1.0 else None)
    machine = machine_facts()
    print(machine_line(machine))
    if scale != 1.0:
        print(f"Not the full benchmark: data at {scale:g} of their size.")
    print()
    name_width = max(len(row.name) for row in rows)
    print(table_line("", HEADER, name_width) + "  peer", flush=True)

    touch_memory(TOUCHED_BYTES * min(scale, 1.0))
    results = []
    for row in rows:
        start = perf_counter()
        result = run_row(row, scale, rounds)
        result["took"] = perf_counter() - start
        results.append(result)
        print(result_line(result, name_width).rstrip(), flush=True)
    if options.json:
        report = {"machine": machine, "scale": scale, "rows": results}
        Path(options.json).write_text(json.dumps(report, indent=1), encoding="utf-8")
    if options.store:
        store(results, Path(options.store))
    if options.against and scale == 1.0:
        stored = json.loads(Path(options.against).read_text("utf-8"))
        print(*slower(results, stored), sep="\n")
    elif options.against:
        print("Not compared: stored ratios are of the full data.")
    failed = [result for result in results if "failed" in result]
    for result in failed:
        print(f"\n{result['name']}\n{result['failed']}", file=sys.stderr)
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of the data, one round"
    )
    parser.add_argument("--rows", metavar="PATTERN", help="part of a name, or a glob")
    parser.add_argument("--json", metavar="FILE", help="write every figure here")
    parser.add_argument("--against", metavar="FILE", help="compare with stored ratios")
    parser.add_argument("--store", metavar="FILE", help="put ratios into such a file")
    parser.add_argument("--list", action="store_true", help="name the rows and stop")
    parser.add_argument("--scale", type=float, help="share of the data to take")
    parser.add_argument("--gpu", action="store_true", help="what a GPU does")
    parser.add_argument("--rounds", type=int, help="turns of every candidate")
    return parser


def slower(results: list[dict[str, Any]], before: dict[str, float]) -> list[str]:
    """Name the rows that lost a quarter of their ratio to the peer, and some that won.

    Ratios are of times that are taken in turns, so that they hold on other machines.
    """
    lines, n_compared = [], 0
    for result in results:
        old, new = before.get(result["name"]), result.get("ratio")
        if not old or not new:
            continue
        n_compared += 1
        factor = old / new if result["target"].startswith("<=") else new / old
        if not 0.75 < factor < 1.5:
            word = "slower" if factor < 1 else "quicker"
            lines.append(
                f"{word}: {result['name']}, ratio {old:.2f} before, {new:.2f} now"
            )
    text = f"{n_compared} of {len(results)} rows compared with stored ratios."
    if not any(line.startswith("slower") for line in lines):
        text += " No regression: none has lost a quarter of its ratio."
    return [*lines, text]


def store(results: list[dict[str, Any]], path: Path) -> None:
    """Put the ratios of a run into a file, in the place of those of the same rows."""
    before = json.loads(path.read_text("utf-8")) if path.exists() else {}
    ratios = {r["name"]: round(r["ratio"], 2) for r in results if r.get("ratio")}
    path.write_text(json.dumps({**before, **ratios}, indent=1) + "\n", encoding="utf-8")


# -------------------------------------------------------------------------------- rows


def run_row(row: Row, scale: float, rounds: int | None) -> dict[str, Any]:
    """Measure a row and judge it; a row that fails says so and stops no other."""
    result: dict[str, Any] = {"name": row.name, "target": row.target.text(None)}
    try:
        measured = measure(row, scale, rounds)
    except Skip as reason:
        return result | {"verdict": "skipped", "skipped": str(reason)}
    except Exception as error:
        return result | {"verdict": "FAILED", "failed": str(error)}
    seconds = {name: summary(times) for name, times in measured["times"].items()}
    medians = {name: summarised["median"] for name, summarised in seconds.items()}
    ours = medians.pop("ours")
    peer = min(medians, key=medians.__getitem__, default=None)
    ratio = row.target.ratio(ours, None if peer is None else medians[peer])
    memory, allowed = measured["memory_mb"], measured["allowed_mb"]
    met = row.target.met(ours, ratio, memory.get("ours"), allowed)
    verdict = {None: "-", True: "ok", False: "MISSED"}[met]
    return result | {
        "target": row.target.text(allowed),
        "verdict": verdict if scale == 1.0 or met is None else "quick",
        "ratio": ratio,
        "peer": peer,
        "seconds": seconds,
        "memory_mb": memory,
        "allowed_mb": allowed,
        "ns_per": {unit: ours * 1e9 / n for unit, n in measured["units"].items()},
    }


def result_line(result: dict[str, Any], name_width: int) -> str:
    if "seconds" not in result:
        cells = ("", "", "", result["target"], result["verdict"], "", "")
        note = result.get("skipped", "")
        return table_line(result["name"], cells, name_width) + f"  {note}"
    seconds, memory, peer = result["seconds"], result["memory_mb"], result["peer"]
    cells = (
        _figure(seconds["ours"]["median"] * 1e3),
        _figure(seconds[peer]["median"] * 1e3) if peer else "",
        _figure(result["ratio"]),
        result["target"],
        result["verdict"],
        _megabytes(memory.get("ours")),
        _megabytes(memory.get(peer)),
    )
    per = result["ns_per"].items()
    note = peer or ", ".join(f"{_figure(ns)} ns per {unit}" for unit, ns in per)
    return table_line(result["name"], cells, name_width) + f"  {note}"


def table_line(name: str, cells: tuple[str, ...], name_width: int) -> str:
    padded = (f"{cell:>{width}}" for cell, width in zip(cells, WIDTHS, strict=True))
    return f"{name:<{name_width}} " + " ".join(padded)


def _figure(value: float | None) -> str:
    """Three digits: more would be noise."""
    if value is None:
        return ""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _megabytes(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


# ----------------------------------------------------------------------------- machine


def machine_facts() -> dict[str, Any]:
    facts: dict[str, Any] = {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }
    for package in PACKAGES:
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            facts[package] = "absent"
    if hasattr(os, "getloadavg"):
        facts["load before"] = round(os.getloadavg()[0], 2)
    return facts


def machine_line(facts: dict[str, Any]) -> str:
    first = f"{facts['processor']}, {facts['cores']} cores"
    rest = [f"{k} {v}" for k, v in facts.items() if k not in ("processor", "cores")]
    return ", ".join([first, *rest])


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


if __name__ == "__main__":
    sys.exit(main())
