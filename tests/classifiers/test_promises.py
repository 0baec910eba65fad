"""What fits of rows larger than memory promise: equality, memory, nothing left."""

import dataclasses
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import steelyard as sy
from steelyard._common.files import PREFIX
from steelyard.io.scanning import Scan

IS_LINUX = sys.platform.startswith("linux")


# ---------------------------------------------------------------------------- equality


def files(extension):
    def make(parts, folder):
        for k, part in enumerate(parts):
            path = str(folder / f"{k:03d}.{extension}")
            if extension == "parquet":
                pq.write_table(part, path, row_group_size=7)
            elif extension == "csv":
                part.to_pandas().to_csv(path, index=False)
            else:
                pa.feather.write_feather(part, path)
        return sy.scan(folder)

    return make


def dataset(parts, folder):
    pq.write_table(pa.concat_tables(parts), folder / "a.parquet")
    return ds.dataset(folder, format="parquet")


def lazy_frame(parts, folder):
    polars = pytest.importorskip("polars")
    return polars.from_arrow(pa.concat_tables(parts)).lazy()


def query(parts, folder):
    duckdb = pytest.importorskip("duckdb")
    rows = pa.concat_tables(parts)  # noqa: F841 - DuckDB finds it by its name
    return duckdb.sql("select * from rows")


SOURCES = {
    "Parquet": files("parquet"),
    "CSV": files("csv"),
    "Feather": files("feather"),
    "dataset": dataset,
    "lazy frame": lazy_frame,
    "query": query,
    "stream": lambda parts, _: pa.concat_tables(parts).to_reader(max_chunksize=13),
    "frames": lambda parts, _: [part.to_pandas() for part in parts],
    "generator": lambda parts, _: (part for part in parts),
}


@st.composite
def tables(draw):
    """Draw a table with holes, late categories and weights, in parts of some order."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(40, 150))
    y = rng.permutation(np.arange(n) % 2)
    text = np.array([f"v{v}" for v in rng.integers(0, 4, n)], dtype=object)
    # A category that only the last rows hold.
    text[-2:] = "late"
    number = np.round(rng.normal(size=n) + y, draw(st.integers(0, 2)))
    holes = draw(st.sampled_from([0.0, 0.2, 0.7]))
    text[rng.random(n) < holes] = None
    # Something of each column is known, so that CSV files know what it holds.
    text[0], number[rng.random(n) < holes] = "v0", np.nan
    number[0] = 0.5
    table = pa.table(
        {
            "text": pa.array(text, pa.string()),
            "number": pa.array(number, from_pandas=True),
            "whole": pa.array(rng.integers(-3, 9, n)),
            "y": pa.array(np.array(["no", "yes"])[y]),
            "w": pa.array(rng.integers(0, 3, n) + (np.arange(n) < 4)),
        }
    )
    cuts = sorted(draw(st.lists(st.integers(1, n - 1), max_size=4, unique=True)))
    parts = [table.slice(a, b - a) for a, b in zip([0, *cuts], [*cuts, n], strict=True)]
    return draw(st.permutations(parts))


def assert_same(found, expected, exactly):
    assert found.classes_.tolist() == expected.classes_.tolist()
    for feature, same in zip(
        found.encoder_.schema_.features, expected.encoder_.schema_.features, strict=True
    ):
        if not exactly:
            # A mean that fills gaps is a sum in another order, and cut points lie
            # between it and numbers of the table.
            np.testing.assert_allclose(feature.edges, same.edges, rtol=0, atol=1e-12)
            feature = dataclasses.replace(feature, edges=same.edges)
        assert feature == same
    assert np.array_equal(found.counts_.by_code, expected.counts_.by_code)
    assert found.training_.cut_points_are_exact is True
    assert expected.training_.cut_points_are_exact is None
    table, same = found.model_.table, expected.model_.table
    if exactly:
        assert np.array_equal(table, same)
    else:
        np.testing.assert_allclose(table, same, rtol=0, atol=1e-10)


@pytest.mark.parametrize("kind", SOURCES)
@settings(
    max_examples=6,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    parts=tables(),
    weight=st.sampled_from([None, "w"]),
    class_weight=st.sampled_from([None, "balanced", {"no": 3.0}]),
    missing=st.sampled_from(["skip", "value", "impute"]),
    method=st.sampled_from(["NB", "WANBIA-CLL"]),
)
def test_every_source_gives_the_model_of_the_table_in_memory(
    kind, parts, weight, class_weight, missing, method
):
    whole = pa.concat_tables(parts)
    weights = None if weight is None else whole["w"].to_numpy().astype(float)
    X = whole.select(["text", "number", "whole"])
    with tempfile.TemporaryDirectory() as folder:
        source = SOURCES[kind](parts, Path(folder))
        if not isinstance(source, Scan):
            source = sy.scan(source)
        rows = Scan(source._reader, columns=X.column_names, chunk_rows=11)
        clf = sy.method(method, class_weight=class_weight, missing=missing)
        found = clf.fit(rows, "y", weight)
    expected = sy.method(method, class_weight=class_weight, missing=missing)
    assert_same(
        found, expected.fit(X, whole["y"], weights), exactly=missing != "impute"
    )


@pytest.mark.parametrize("numeric", ["mdl", "equal-frequency", "equal-width"])
def test_counts_are_those_of_memory_however_numbers_are_cut(numeric):
    rng = np.random.default_rng(0)
    n = 90_000
    y = rng.integers(0, 2, n)
    frame = pd.DataFrame(
        {
            "many": rng.normal(size=n) + y,
            "narrow": rng.integers(-5, 200, n) + 5 * y,
            "holes": pd.array(rng.integers(0, 9, n), "Int16"),
        }
    )
    frame.loc[::5, "holes"] = pd.NA
    rows = sy.scan(
        [frame[:50_000].assign(y=y[:50_000]), frame[50_000:].assign(y=y[50_000:])]
    )
    found = sy.NaiveBayes(numeric=numeric).fit(rows, "y")
    expected = sy.NaiveBayes(numeric=numeric).fit(frame, y)
    # Cuts by MDL ask for a second reading of all numbers near them: here of all.
    assert found.training_.cut_points_are_exact == (numeric != "equal-frequency")
    is_noticed = "cut-points" in {notice.kind for notice in found.notices_}
    assert is_noticed == (numeric == "equal-frequency")
    features = found.encoder_.schema_.features
    known = 0 if found.training_.cut_points_are_exact else 1
    assert features[known:] == expected.encoder_.schema_.features[known:]
    # Cut points may differ beyond 65,536 numbers, but what lies between them is exact.
    codes = found.encoder_.transform(frame)
    for j, feature in enumerate(features):
        for label in (0, 1):
            counted = np.bincount(codes[y == label, j], minlength=feature.n_codes)
            start = found.encoder_.schema_.offsets[j]
            stop = start + feature.n_codes
            assert np.array_equal(found.counts_.by_code[start:stop, label], counted)


def test_models_say_after_loading_whether_cut_points_are_exact(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0] * 9, "y": [0, 0, 1, 1] * 9})
    clf = sy.NaiveBayes().fit(sy.scan([frame]), "y")
    clf.save(tmp_path / "m.json")
    assert sy.load(tmp_path / "m.json").training_.cut_points_are_exact is True


# ------------------------------------------------------------- failures and interrupts


@pytest.mark.parametrize("method", ["NB", "WANBIA-CLL"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_a_fit_that_ends_early_leaves_the_classifier_and_no_file(
    method, error, tmp_path
):
    frame = pd.DataFrame({"a": list("xyz") * 40, "y": [0, 1, 1, 0] * 30})
    clf = sy.method(method).fit(frame[["a"]], frame["y"])
    before = dict(vars(clf))

    class Frames:
        def __iter__(self):
            yield frame
            raise error("enough")

    with pytest.raises((error, ValueError)):
        clf.fit(sy.scan(Frames(), work_folder=tmp_path), "y")
    assert vars(clf) == before
    assert not any(tmp_path.iterdir())


PHASES = {
    "copying": ("steelyard.io.copies.CopyWriter.write", "csv"),
    "reading": ("steelyard.table.summary.table_summary.TableSummary.take_in", "csv"),
    "reading again": ("steelyard.table.summary.number_cells.Rereading.take_in", "csv"),
    "encoding": ("steelyard.table.storage.Store.append", "parquet"),
    "fitting": ("steelyard.fitting.rows.PackedRows._pass", "parquet"),
}
"""A function that is called in each phase, and files that come to it."""

FIT = """
    import sys, time
    from pkgutil import resolve_name
    import steelyard as sy

    name, data, folder = sys.argv[1:]
    owner, _, attribute = name.rpartition(".")
    def wait(*_, **__):
        print("here", flush=True)
        time.sleep(600)
    if name != "none":
        setattr(resolve_name(owner.rpartition(".")[0] + ":" + owner.rpartition(".")[2]),
                attribute, wait)
    sy.method("WANBIA-CLL").fit(sy.scan(data, work_folder=folder), "y")
"""


def python(code, *arguments, **options):
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)]
    return subprocess.Popen(
        [*command, *map(str, arguments)], stdout=subprocess.PIPE, text=True, **options
    )


@pytest.fixture(scope="module")
def heavy(tmp_path_factory):
    """Files of a column whose numbers need a second reading, and of text."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    n = 150_000
    spread = 10.0 ** rng.uniform(-20, 20, n)
    near = 1e6 + rng.normal(size=n)
    y = rng.integers(0, 2, n)
    frame = pd.DataFrame(
        {"x": np.where(rng.random(n) < 0.33, near + y, spread), "t": "a", "y": y}
    )
    frame.to_csv(folder / "a.csv", index=False)
    frame.to_parquet(folder / "a.parquet")
    return folder


@pytest.mark.skipif(not IS_LINUX, reason="kill -9")
@pytest.mark.parametrize("phase", PHASES)
def test_after_a_kill_in_any_phase_the_next_start_leaves_no_file(
    phase, heavy, tmp_path
):
    name, extension = PHASES[phase]
    with python(FIT, name, heavy / f"a.{extension}", tmp_path) as process:
        assert process.stdout.readline() == "here\n"
        os.kill(process.pid, signal.SIGKILL)
    left = list(tmp_path.iterdir())
    assert len(left) == 1
    assert all(path.name.startswith(PREFIX) for path in left)
    frame = pd.DataFrame({"a": list("xyz") * 40, "y": [0, 1, 1, 0] * 30})
    sy.method("WANBIA-CLL").fit(sy.scan([frame], work_folder=tmp_path), "y")
    assert not any(tmp_path.iterdir())


# ------------------------------------------------------------------------------ memory


BOUNDED = """
    import resource, sys, threading, time
    resource.setrlimit(resource.RLIMIT_DATA, (10**9, 10**9))
    import steelyard as sy

    peak, done = 0, threading.Event()
    def watch():
        global peak
        while not done.wait(0.002):
            status = open("/proc/self/status").read()
            peak = max(peak, int(status.partition("RssAnon:")[2].split()[0]))
    threading.Thread(target=watch, daemon=True).start()
    rows = sy.scan(sys.argv[2], chunk_rows=30_000)
    sy.method(sys.argv[1]).fit(rows, "y")
    done.set()
    print(peak // 1000)
"""


@pytest.mark.skipif(not IS_LINUX, reason="limits and /proc of Linux")
@pytest.mark.parametrize("method", ["NB", "WANBIA-CLL"])
def test_eight_times_the_rows_take_the_same_private_memory(method, tmp_path):
    rng = np.random.default_rng(0)
    n = 300_000
    columns = {f"x{j}": rng.integers(0, 10, n).astype(np.int32) for j in range(12)}
    columns["t"] = pa.array(rng.choice(["one", "two", "three"], n)).dictionary_encode()
    table = pa.table({**columns, "y": rng.integers(0, 2, n)})
    peaks = []
    for times in (1, 8):
        path = tmp_path / f"{times}.parquet"
        with pq.ParquetWriter(path, table.schema) as writer:
            for _ in range(times):
                writer.write_table(table, row_group_size=100_000)
        with python(BOUNDED, method, path) as process:
            output, _ = process.communicate()
        assert process.returncode == 0
        peaks.append(int(output))
    # In MB: 8 times the rows as int64 in memory would take 250 more.
    assert peaks[1] < peaks[0] + 40, peaks
