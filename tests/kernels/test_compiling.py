"""Kernels run as plain Python on few cells, with the bits of the compiled ones."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array

from steelyard._common import progress
from steelyard.cli.run import main
from steelyard.kernels import (
    compiling,
    counting,
    cuts,
    fitting,
    pairs,
    scoring,
)

# NumPy would take it from the end.
OUTSIDE = np.array([-1, 3, -2])


def cases():
    """Every kernel that may run uncompiled, with arguments that are hard for it."""
    rng = np.random.default_rng(0)
    n, b, k = 60, 7, 3
    codes = rng.integers(0, 5, (n, b)).astype(np.uint8)
    by_column = np.asfortranarray(codes)
    starts, sizes = np.arange(0, 5 * b, 5, dtype=np.uint64), np.full(b, 5)
    y = rng.integers(0, k, n).astype(np.uint32)
    weights, none = rng.random(n), np.empty(0)
    table = rng.normal(size=(5 * b, k))
    scores = rng.normal(size=(n, k)) * 400
    odds = rng.normal(size=n) * 300
    odds[:3] = np.inf, -np.inf, np.nan
    numbers = rng.normal(size=(n, b)) * 10.0 ** rng.integers(-99, 99, b)
    numbers[rng.random((n, b)) < 0.1] = np.nan
    shape = rng.normal(size=(b, k)), rng.random((b, k)), rng.normal(size=(b, k))
    values = np.sort(rng.normal(size=n).round(1))
    edges = np.unique(values[::9])
    logs = np.zeros(256, dtype=np.int64)
    scale = 2.0**40
    yield cuts.fill_xlog2, (logs.copy(), scale)
    cuts.fill_xlog2.py_func(logs, scale)
    for criterion in (None, True):
        whole = rng.integers(0, 4, n)
        for u in (np.empty(0, dtype=np.int64), whole, weights * 9):
            work = np.empty((3, k), u.dtype), np.zeros((66, 2), np.int64), np.zeros(n)
            labels = (values > 0).astype(np.uint32) + (y == 2)
            settings = criterion, True, logs, scale
            yield cuts.mdl_cuts, (values, labels.astype(np.uint32), u, *settings, *work)
    yield cuts.bin_codes, (numbers[:, 0].copy(), edges, np.empty(n, np.uint8), 1)
    yield cuts.midpoint, (1e301, 1.7e308)
    yield cuts.split_columns, (numbers, np.empty((b, n)))
    for u in (None, weights):
        hist = np.zeros((k, 5 * b), np.int32 if u is None else np.float64)
        yield counting.count_rows, (codes, starts, y, u, hist.copy())
        yield counting.count_columns, (by_column, starts, y, u, hist)
    hist = np.zeros((k, 5 * b), np.int32)
    yield counting.count_joint, (by_column.T, (0, n), starts, sizes, y, 400, hist)
    yield counting.moments, (numbers, y, none, k)
    yield counting.moments, (numbers, y, weights, k)
    yield scoring.gather, (codes, starts, table, scores.copy())
    yield scoring.gather_difference, (codes, starts, table[:, 0].copy(), odds.copy())
    yield scoring.best, (scores, np.array([2, 0, 1], np.uint64), np.empty(n, np.int64))
    ties = scores.round(-3)
    yield scoring.best, (ties, np.array([2, 0, 1], np.uint64), np.empty(n, np.int64))
    yield scoring.logistic, (odds, np.empty((n, 2)))
    patterns, features = rng.integers(0, 2, n), np.arange(b)
    for width in (1, k):
        factors = rng.normal(size=(2, b, width, width))
        added = table[:, :width].copy(), scores[:, :width].copy()
        places = starts, features, patterns, factors
        yield scoring.gather_weighted, (codes, *places, *added)
    nodes = rng.normal(size=9) * 3, rng.random(9)
    for x in (odds, rng.normal(size=n)):
        yield scoring.mean_logistic, (x, weights * 5, *nodes, np.zeros((n, 2)))
    roots = rng.normal(size=(2, k, k)), patterns, rng.random((2, 2))
    for x in (scores, rng.normal(size=(n, k))):
        yield scoring.mean_softmax, (x, *roots, np.zeros((n, k)))
    yield scoring.softmax, (scores.copy(),)
    yield scoring.log_softmax, (scores.copy(),)
    yield scoring.add_densities, (numbers, *shape, scores.copy())
    # Intervals, densities relative to the largest, numbers themselves, plain ones.
    widths = np.array([0.5, 0.01, 0, 0, 0, 0, 0.0])
    depths, limits = np.eye(b)[2] * 20.0, np.eye(b)[3] * 4.0
    forms = (*shape, widths, 1e-75, depths, limits)
    yield scoring.density_block, (numbers, forms, np.empty((n, b, k)))
    yield scoring.add_weighted, (numbers, forms, table[:b], scores.copy())
    for index in (rng.integers(-1, 4, n).astype(np.int8), OUTSIDE):
        out = np.empty(len(index), np.uint8)
        yield counting.look_up, (index, np.arange(5, dtype=np.uint8), out)
        yield counting.tally, (index, np.zeros(5, np.int64))
        yield counting.tally_by_class, (index, y, weights, np.zeros((5, k)))
    ends = np.full(b, 255, np.uint8), np.zeros(b, np.uint8)
    yield counting.extremes, (codes, *ends, None)
    columns = numbers.shape[1]
    ends = np.full(columns, np.inf), np.full(columns, -np.inf)
    yield counting.extremes, (numbers, *ends, np.zeros(columns))
    parts = np.arange(5, dtype=np.uint8)
    yield (
        counting.join,
        (codes[:, 0], codes[:, 1], parts, parts * 5, np.empty(n, np.uint8)),
    )
    no_look_up, target = np.empty((0, 256), np.uint8), np.arange(b, dtype=np.uint64)
    yield counting.transpose, (codes, no_look_up, target, np.empty((b, n), np.uint8))
    spread = np.tile(np.arange(256, dtype=np.uint8) % 5, (b, 1))
    yield pairs.pack, (codes, spread, target // 2, np.zeros((n, 4), np.uint8))
    # Joint codes of three attributes of 2, 3 and 4 codes, and of one alone.
    layout = [[1, 2, 1, 0, 12], [3, 3, 2, 0, 4], [6, 4, 6, 0, 1], [10, 5, 1, 24, 1]]
    for width in (1, k):
        own, joint = table[:, :width].copy(), rng.normal(size=(29, width))
        yield pairs.expand, (np.array(layout), own, joint.copy())
        yield pairs.collapse, (np.array(layout), joint, own)
    # The same row of the table in several columns.
    yield fitting.scatter, (codes, starts // 2, scores, rng.normal(size=(5 * b, k)))
    yield from passes(codes, starts, table, scores / 400, y, weights)
    owners = np.repeat(np.arange(b, dtype=np.uint64), 5)
    basis = rng.normal(size=(5 * b, 20))
    basis[rng.random(basis.shape) < 0.8] = 0.0
    for width in (k, 2):
        own, effects = table[:, :width].copy(), rng.normal(size=(20, width))
        by_feature, out = np.ones((b, width)), np.zeros((5 * b, width))
        sparse = csr_array(basis)
        entries = sparse.indptr.view("u4"), sparse.indices.view("u4"), sparse.data
        yield fitting.weigh_table, (owners, by_feature, own, *entries, effects, out)
        sparse = csr_array(basis.T)
        entries = sparse.indptr.view("u4"), sparse.indices.view("u4"), sparse.data
        written = 0.0 * by_feature, np.zeros((20, width))
        yield fitting.collect_table, (owners, own, *entries, own + 1.0, *written)
    square = rng.normal(size=(b, b))
    box = -rng.random(b), rng.random(b), np.zeros(b), rng.normal(size=b)
    yield fitting.descend, (square @ square.T + np.eye(b), *box, 30)


def passes(codes, starts, table, scores, y, weights):
    """Losses of rows, by weights or ones, of three classes, or two."""
    every, binary = np.empty(0), (y == 1).astype(np.uint32)
    for kind in (None, 1, 2):
        for u, lanes in ((every, (0.0,) * 3), (weights, ())):
            written = np.zeros(table.shape), np.zeros(fitting.ROWS * 3)
            rows = codes, starts, table, scores, y, u
            yield fitting.evaluate_many, (*rows, kind, 1.0, *written, lanes)
            column, odds = table[:, 0].copy(), scores[:, 0].copy()
            written = np.zeros(len(y)), np.zeros(len(column))
            rows = codes, starts, column, odds, binary, u
            yield fitting.evaluate_two, (*rows, kind, 1.0, *written)


def copies(arguments):
    return [a.copy("K") if isinstance(a, np.ndarray) else a for a in arguments]


def bits(things):
    return [
        bits(thing) if isinstance(thing, tuple) else np.asarray(thing).tobytes()
        for thing in things
    ]


@pytest.mark.parametrize(("kernel", "arguments"), list(cases()))
def test_plain_python_has_the_bits_of_the_compiled_kernel(kernel, arguments):
    plain, compiled = copies(arguments), copies(arguments)
    done, result = kernel._try_plain(plain)
    if not done:  # nothing was written
        assert arguments[0] is OUTSIDE
        assert bits(plain) == bits(arguments)
        return
    expected = kernel.compiled(*compiled)
    assert bits(plain) == bits(compiled)
    as_tuple = result if isinstance(result, tuple) else (result,)
    assert bits(as_tuple) == bits(
        expected if isinstance(expected, tuple) else (expected,)
    )


def test_every_kernel_that_may_run_uncompiled_is_compared():
    compared = {id(kernel) for kernel, _ in cases()}
    for module in (counting, cuts, fitting, scoring):
        for name, thing in vars(module).items():
            if isinstance(thing, compiling.Kernel) and thing._plain:
                assert id(thing) in compared, name


def test_an_error_leaves_no_trace_and_comes_from_the_compiled_kernel():
    counts = np.zeros(3, dtype=np.int64)
    with pytest.raises(IndexError, match="outside of its table"):
        counting.tally(np.array([0, 1, 7]), counts)
    assert counts[1] <= 1  # the cells before the error were counted once, not twice


def test_many_cells_and_narrow_floats_are_compiled():
    assert not compiling._is_small(
        (np.empty(compiling.PLAIN_CELLS + 1),), compiling.PLAIN_CELLS
    )
    narrow = (np.empty(1, dtype=np.float32),)
    assert not compiling._is_small(narrow, compiling.PLAIN_CELLS)


FIRST = """
import sys
import numpy as np
from steelyard import NaiveBayes, WeightedNB
X = np.random.default_rng(0).normal(size=(50, 3))
for numeric in ("mdl", "gaussian"):
    NaiveBayes(numeric=numeric).fit(X, X[:, 0] > 0).predict_proba(X)
NaiveBayes(numeric="mdl").fit(np.tile(X, (400, 1)), np.tile(X[:, 0] > 0, 400))
WeightedNB().fit(X, X[:, 0] > 0)
print("numba" in sys.modules)
"""


def test_searching_cuts_in_numpy_has_the_bits_of_the_compiled_search():
    rng = np.random.default_rng(1)
    for n, k, whole in ((5000, 2, False), (3000, 30, False), (4000, 3, True)):
        values = np.sort(rng.normal(size=n).round(2))
        labels = (np.abs(values) * k / 3 + rng.random(n)).astype(np.uint32) % k
        u = rng.integers(0, 3, n) if whole else np.empty(0, dtype=np.int64)
        logs, scale = np.zeros(1 << 13, dtype=np.int64), 2.0**30
        cuts.fill_xlog2(logs, scale)
        work = np.empty((3, k), np.int64), np.zeros((66, 2), np.int64), np.zeros(n)
        arguments = values, labels.astype(np.uint32), u, None, False, logs, scale, *work
        plain, compiled = copies(arguments), copies(arguments)
        done, n_found = cuts.mdl_cuts._try_plain(plain)
        assert done
        assert n_found == cuts.mdl_cuts.compiled(*compiled)
        assert n_found > 2
        assert bits(plain) == bits(compiled)


def test_a_first_small_fit_loads_no_compiler():
    done = subprocess.run(
        [sys.executable, "-c", FIRST], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False"]


TELLING = """
from steelyard._common import progress
from steelyard.kernels.cuts import midpoint, fill_xlog2
progress.before_compiling = lambda: print("told")
midpoint(1.0, 2.0)
midpoint.compiled(1.0, 2.0)
midpoint.compiled(1, 2)
"""


def test_damaged_kernels_on_disk_are_compiled_again_with_a_warning(tmp_path):
    code = "from steelyard.kernels.scoring import _exp\nprint(_exp.compiled(-1.0))\n"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    environment.pop("NUMBA_DISABLE_JIT", None)

    def run():
        command = [sys.executable, "-c", code]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        )

    first = run()
    assert first.stderr == "" and run().stdout == first.stdout
    (index,) = tmp_path.rglob("*.nbi")
    (data,) = tmp_path.rglob("*.nbc")
    sound = index.read_bytes()
    for file, damaged in (
        (index, b""),
        (index, sound[:-9] + b"123456789"),
        (data, b""),
    ):
        index.write_bytes(sound)
        file.write_bytes(damaged)
        found = run()
        assert found.stdout == first.stdout
        assert f"in {index.parent} are damaged" in found.stderr
        assert "Delete the folder" in found.stderr


def test_compiling_is_announced_once_and_not_again(tmp_path):
    told = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", TELLING],
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        told.append(done.stdout.split())
    assert told == [["told"], []]


@pytest.mark.parametrize("terminal", [True, False])
def test_compiling_is_announced_on_a_terminal_only(monkeypatch, capsys, terminal):
    monkeypatch.setattr(progress, "before_compiling", None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    assert main(["completion", "bash"]) == 0
    assert (progress.before_compiling is not None) == terminal
    if terminal:
        progress.before_compiling()
        assert "once" in capsys.readouterr().err
