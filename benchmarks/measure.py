"""Wall time and peak memory of the candidates of a row."""

from __future__ import annotations

import ctypes
import gc
import math
import os
import pickle
import statistics
import sys
import traceback
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.registry import MB, Row, Seconds, Skip
from steelyard.kernels import compiling

__all__ = ["in_child", "measure", "touch_memory"]

# A quick candidate has several turns in a round, up to this time or this number.
_TURN_SECONDS = 0.25
_MAX_TURNS = 10


def measure(row: Row, scale: float, rounds: int | None) -> dict[str, Any]:
    """Measure a row in a process of its own, so that no row affects another."""
    return in_child(lambda: _measure_here(row, scale, rounds))


def in_child(function: Callable[[], Any]) -> Any:
    """Call a function in a forked process and return what it returns."""
    if not hasattr(os, "fork"):  # Windows: everything in one process
        return function()
    sys.stdout.flush()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reader)
            try:
                answer: tuple[str, Any] = ("returned", function())
            except Skip as reason:
                answer = ("skipped", str(reason))
            except BaseException:
                answer = ("failed", traceback.format_exc())
            with os.fdopen(writer, "wb") as pipe:
                pickle.dump(answer, pipe)
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        content = pipe.read()
    _, status = os.waitpid(child, 0)
    if not content:
        raise RuntimeError(f"The process of a benchmark ended with status {status}.")
    how, value = pickle.loads(content)
    if how == "skipped":
        raise Skip(value)
    if how == "failed":
        raise RuntimeError(value)
    return value


def _measure_here(row: Row, scale: float, rounds: int | None) -> dict[str, Any]:
    # On little data first: modules are loaded, kernels are compiled or read from the
    # disk, also those that a first fit would do without, and the answers of the
    # candidates are compared.
    compiling.SECONDS = -1.0
    trial = row.build(0.0)
    if trial.check is not None:
        trial.check({name: run() for name, run in trial.candidates.items()})
    elif row.measures_memory:
        for run in trial.candidates.values():
            run()
    if trial.confirm is not None:
        trial.confirm()
    del trial

    case = row.build(scale)
    if case.confirm is not None:
        case.confirm()
    memory = {}
    if row.measures_memory:
        memory = {name: _peak_mb(run) for name, run in case.candidates.items()}
    times = _interleaved(case.candidates, rounds or row.rounds, row.warm_up)
    return {
        "times": times,
        "memory_mb": memory,
        "allowed_mb": case.allowed_mb,
        "units": dict(case.units),
    }


# ------------------------------------------------------------------------------- time


def _interleaved(
    candidates: dict[str, Callable[[], Any]], rounds: int, warm_up: bool
) -> dict[str, list[float]]:
    """Wall times in seconds of all candidates, which take turns."""
    # What lives already is left alone by the collector: its sweeps before every run
    # would take longer than many of the runs.
    gc.collect()
    gc.freeze()
    turns = dict.fromkeys(candidates, 1)
    if warm_up:
        for name, run in candidates.items():
            start = perf_counter()
            run()
            first = perf_counter() - start
            turns[name] = max(1, min(_MAX_TURNS, math.floor(_TURN_SECONDS / first)))
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, run in candidates.items():
            times[name] += [_timed(run) for _ in range(turns[name])]
    return times


def _timed(run: Callable[[], Any]) -> float:
    gc.collect()
    gc.disable()
    try:
        start = perf_counter()
        result = run()
        took = perf_counter() - start
    finally:
        gc.enable()
    return float(result) if isinstance(result, Seconds) else took


def summary(times: list[float]) -> dict[str, float]:
    """Median, least and number of the times of one candidate."""
    return {
        "median": statistics.median(times),
        "least": min(times),
        "runs": len(times),
    }


# ----------------------------------------------------------------------------- memory


def _peak_mb(run: Callable[[], Any]) -> float | None:
    """Peak resident memory of one call above what was there before it.

    The call is made in a forked process, a second time: pages of libraries, which a
    forked process maps when it first needs them, are no part of the cost.
    """
    gc.collect()
    _return_free_memory()

    def above_before() -> float | None:
        run()
        gc.collect()
        _return_free_memory()
        if not _reset_peak():
            return None
        before = _status_kb("VmRSS")
        # The result is kept until the peak is read: it is part of the cost.
        result = run()
        after = _status_kb("VmHWM")
        del result
        return (after - before) * 1024 / MB

    extra = in_child(above_before)
    return None if extra is None else float(extra)


def _reset_peak() -> bool:
    """Reset the high-water mark of this process, where the system has one."""
    try:
        with open("/proc/self/clear_refs", "w") as switch:
            switch.write("5")
    except OSError:
        return False
    return True


def _status_kb(name: str) -> float:
    with open("/proc/self/status") as lines:
        return next(float(line.split()[1]) for line in lines if line.startswith(name))


def _return_free_memory() -> None:
    """Give freed pages back, lest a call finds its buffers already resident."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):  # not the GNU library
        pass


def touch_memory(n_bytes: float) -> None:
    """Write to much memory once and free it.

    A virtual machine may be given its memory only when it first writes to it, which
    takes about thirty times as long as writing to it again.
    """

    def touch() -> None:
        np.ones(int(n_bytes), dtype=np.uint8)

    in_child(touch)
