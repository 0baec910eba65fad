"""What a GPU does: ``python -m benchmarks --gpu``.

Tables are made on the device and stay there. Times are medians of several runs between
two events of the device for kernels, wall clock for calls. ``--scale`` takes a share of
the 100,000,000 rows.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

ROWS = 100_000_000
COLUMNS, VALUES = 50, 10
CPU_ROWS = 4_000_000
TARGETS = {
    "counts, 2 classes": 3.5,
    "pass, 2 classes": 6.0,
    "WANBIA-CLL to 1e-7": 150.0,
    "predict_proba, 2 classes": 6.0,
    "counts, 10 classes": 8.0,
    "pass, 10 classes": 40.0,
    "ShrinkageNB, given strengths": 3000.0,
}


def run(scale: float) -> int:
    """Print one line for each figure."""
    import cupy
    from numba import cuda

    n_rows = int(ROWS * scale)
    name = cuda.get_current_device().name
    name = name.decode() if isinstance(name, bytes) else name
    print(f"{name}, {platform.processor() or 'CPU'} with {os.cpu_count()} threads")
    print(f"{n_rows:,} x {COLUMNS} bytes of {VALUES} values, resident\n")
    copied = cupy.empty(min(n_rows, 10**8) * 16, cupy.uint8)
    half = copied.size // 2
    ends = copied.data.ptr, copied.data.ptr + half
    bandwidth = copied.size / kernel_ms(
        lambda: cupy.cuda.runtime.memcpyAsync(*ends, half, 3, 0)
    )
    del copied
    print(f"a copy moves {bandwidth / 1e9:.2f} TB/s\n")
    for n_classes in (2, 10):
        two(n_rows, n_classes, bandwidth)
    numbers(n_rows, bandwidth)
    return 0


def two(n_rows: int, n_classes: int, bandwidth: float) -> None:
    """Measure counts, passes, fits and predictions of one table."""
    import steelyard as sy
    from steelyard.gpu import arrays

    X, y = table(n_rows, n_classes)
    kernels(X, y, n_classes, bandwidth)
    settings = {"categorical_features": "all", "device": "cuda"}
    clf = sy.NaiveBayes(**settings)
    took = wall_ms(lambda: clf.fit(X, y))
    print(line(f"NaiveBayes.fit, {n_classes} classes", took))
    took = wall_ms(lambda: clf.predict_proba(X), done=True)
    if n_classes > 2:
        print(line(f"predict_proba, {n_classes} classes", took))
        return
    alone = kernel_of_call_ms(lambda: clf.predict_proba(X), arrays, "logistic")
    print(line("predict_proba, 2 classes", alone))
    print(line("  its call, with the way to the device", took))
    beside(X, y)
    fit = sy.method("WANBIA-CLL", **settings, tol=1e-7)
    took = wall_ms(lambda: fit.fit(X, y), 3)
    print(line("WANBIA-CLL to 1e-7", took) + f"  {fit.n_iter_} iterations")
    cpu_ratio(took / n_rows, X, y)
    strengths = {"strength": (10.0, 40.0, 10.0), "interactions": None}
    shrunk = sy.ShrinkageNB(**settings, **strengths)
    took = wall_ms(lambda: shrunk.fit(X, y), 1)
    print(line("ShrinkageNB, given strengths", took))
    torch_fit(X, y)


def kernels(X: Any, y: Any, n_classes: int, bandwidth: float) -> None:
    """Time the kernels alone: counting and one pass."""
    from steelyard import WeightedNB
    from steelyard.fitting.problem import build_problem
    from steelyard.fitting.recipe import rows_of
    from steelyard.gpu import device_counts, device_rows
    from steelyard.losses import LogLoss

    clf = WeightedNB(categorical_features="all", device="cuda")
    recipe = clf._recipe()
    training = rows_of(X).training(y, None, recipe, clf)
    codes, labels = training.place.copied(training)  # type: ignore[attr-defined]
    weights = device_counts.DeviceWeights(None)

    def count() -> None:
        device_counts.count_on_device(codes, labels, weights, n_classes)

    took = kernel_of_call_ms(count, device_counts, "count")
    share = (COLUMNS + 1) * len(X) / took / bandwidth
    print(line(f"counts, {n_classes} classes", took) + f"  {share:4.0%} of a copy")
    problem = build_problem(recipe, training)
    objective = problem.objective
    effect = objective.weighting.apply(problem.start, problem.evidence)
    rows: Any = objective.rows

    def evaluate() -> None:
        rows.evaluate(LogLoss(), effect)

    took = call = wall_ms(evaluate)
    if n_classes == 2:
        took = kernel_of_call_ms(evaluate, device_rows, "evaluate_two")
    share = (rows.words.size * 4 + len(X)) / took / bandwidth
    print(line(f"pass, {n_classes} classes", took) + f"  {share:4.0%} of a copy")
    print(line("  its call, with the way to the device", call))


def numbers(n_rows: int, bandwidth: float, n_columns: int = 10) -> None:
    """Time moments, and what slopes of numbers add to a pass, of two classes."""
    import cupy
    from numba import cuda

    from steelyard.gpu import device_counts
    from steelyard.proba.gaussian import GaussianTable

    cupy.get_default_memory_pool().free_all_blocks()
    n_rows = n_rows // 16 * 16
    columns = cupy.empty((n_columns, n_rows))
    for column in columns:
        column[:] = cupy.random.standard_normal(n_rows, dtype=cupy.float32)
    y = cupy.random.randint(0, 2, n_rows, dtype=cupy.uint8).view(cupy.uint32)
    values, labels = cuda.as_cuda_array(columns), cuda.as_cuda_array(y)
    none = cuda.to_device(np.zeros(0))

    def moments() -> None:
        device_counts.moments_on_device(values, labels, none, n_rows, 2)

    took = kernel_of_call_ms(moments, device_counts, "moments")
    share = columns.nbytes / took / bandwidth
    print(line("moments of ten numbers", took) + f"  {share:4.0%} of a copy")
    shape = (n_columns, 2)
    table = GaussianTable(
        np.zeros(shape),
        np.ones(shape),
        np.zeros(n_columns),
        limit=np.full(n_columns, 4.0),
    )
    there = device_counts.DeviceNumbers(values, table)
    scores = cuda.as_cuda_array(cupy.zeros((2, n_rows)))
    factors, sums = cuda.to_device(np.ones(shape)), there.sums(2)
    took = kernel_ms(lambda: there.add(factors, 0, n_rows, scores))
    print(line("slopes of ten numbers into scores", took))
    units = scores.view(np.int64)
    took = kernel_ms(lambda: there.collect(0, n_rows, units, sums))
    print(line("gradients of ten slopes", took))


def beside(X: Any, y: Any) -> None:
    """Print the memory that rows take on the device beside the table itself."""
    from numba import cuda

    from steelyard import WeightedNB
    from steelyard.fitting.problem import build_problem
    from steelyard.fitting.recipe import rows_of
    from steelyard.losses import LogLoss

    cuda.current_context().deallocations.clear()
    before = cuda.current_context().get_memory_info()[0]
    clf = WeightedNB(categorical_features="all", device="cuda")
    recipe = clf._recipe()
    training = rows_of(X).training(y, None, recipe, clf)
    problem = build_problem(recipe, training)
    effect = problem.objective.weighting.apply(problem.start, problem.evidence)
    problem.objective.rows.evaluate(LogLoss(), effect)
    used = before - cuda.current_context().get_memory_info()[0]
    print(f"{'memory beside the table':<40}{used / len(X):10.1f} bytes a row")


def cpu_ratio(per_row: float, X: Any, y: Any) -> None:
    """Compare a fit with one on the CPU, by row."""
    import steelyard as sy

    few = X[:CPU_ROWS].get(), y[:CPU_ROWS].get()
    for n_jobs in (2, 16):
        settings = {"categorical_features": "all", "tol": 1e-7, "n_jobs": n_jobs}
        fit = sy.method("WANBIA-CLL", **settings)
        fit.fit(few[0][:1000], few[1][:1000])
        took = wall_ms(lambda fit=fit: fit.fit(*few), 1) / len(few[0])
        print(f"{f'  CPU, {n_jobs} threads, by row':<40}{took / per_row:10.0f} times")


def torch_fit(X: Any, y: Any, epochs: int = 1) -> None:
    """Fit a logistic regression on one-hot columns by PyTorch, as a bag of weights."""
    import torch

    features = torch.as_tensor(X, device="cuda")
    labels = torch.as_tensor(y, device="cuda").float()
    shift = torch.arange(COLUMNS, device="cuda") * VALUES
    bag = torch.nn.EmbeddingBag(COLUMNS * VALUES, 1, mode="sum").cuda()
    optimizer = torch.optim.Adam(bag.parameters(), lr=0.01)
    batch = 1 << 20

    def epoch() -> None:
        for lo in range(0, len(features), batch):
            codes = features[lo : lo + batch].long() + shift
            loss = torch.nn.functional.binary_cross_entropy_with_logits(
                bag(codes)[:, 0], labels[lo : lo + batch]
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    epoch()
    torch.cuda.synchronize()
    start = perf_counter()
    for _ in range(epochs):
        epoch()
    torch.cuda.synchronize()
    took = 1e3 * (perf_counter() - start)
    print(line("PyTorch, one epoch of one-hot", took))


def table(n_rows: int, n_classes: int) -> tuple[Any, Any]:
    """Return whole numbers by column and classes that some of them tell of."""
    import cupy

    cupy.random.seed(0)
    columns = cupy.empty((COLUMNS, n_rows), cupy.uint8)
    for column in columns:
        column[:] = cupy.random.randint(0, VALUES, n_rows, dtype=cupy.uint8)
    # Columns that repeat others, so that there are weights to learn.
    for j in range(2, 12):
        repeats = cupy.random.randint(0, 2, n_rows, dtype=cupy.uint8)
        columns[j] = cupy.where(repeats == 1, columns[j % 2], columns[j])
    noise = cupy.random.randint(0, 8, n_rows, dtype=cupy.uint8)
    y = (columns[0] + columns[1] + noise).astype(cupy.uint16) * n_classes // 26
    cupy.get_default_memory_pool().free_all_blocks()
    return columns.T, y.astype(cupy.uint8)


def kernel_ms(work: Callable[[], object], rounds: int = 7) -> float:
    """Median time between two events of the device, in milliseconds."""
    from numba import cuda

    took = []
    for _ in range(rounds + 1):
        start, end = cuda.event(), cuda.event()
        start.record()
        work()
        end.record()
        end.synchronize()
        took.append(start.elapsed_time(end))
    return float(np.median(took[1:]))


def kernel_of_call_ms(work: Callable[[], object], module: Any, name: str) -> float:
    """Median time of one kernel that a call launches from a module."""
    times: list[float] = []
    plain = module.launch

    def timed(kernel: Any, *given: Any, **options: Any) -> None:
        if kernel.py_func.__name__ == name:
            times.append(kernel_ms(lambda: plain(kernel, *given, **options)))
        else:
            plain(kernel, *given, **options)

    module.launch = timed
    try:
        work()
    finally:
        module.launch = plain
    return times[-1]


def wall_ms(work: Callable[[], object], rounds: int = 5, done: bool = False) -> float:
    """Median time of a call after a first one, in milliseconds."""
    from numba import cuda

    took = []
    for _ in range(rounds + 1):
        cuda.synchronize()
        start = perf_counter()
        result = work()
        if done:
            cuda.synchronize()
        took.append(perf_counter() - start)
        del result
    return 1e3 * float(np.median(took[1:]))


def line(name: str, took: float) -> str:
    """Return a line of the table: what, its time, its target."""
    target = TARGETS.get(name)
    verdict = "" if target is None else f"  target {target:g}"
    if target is not None:
        verdict += " ok" if took <= target else " MISSED"
    return f"{name:<40}{took:10.2f} ms{verdict}"
