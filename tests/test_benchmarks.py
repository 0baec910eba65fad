"""The benchmarks run; how fast is for `make bench` to say, on a quiet machine."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def bench(*arguments):
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@pytest.fixture(scope="module")
def registry():
    sys.path.insert(0, str(ROOT))
    try:
        from benchmarks import registry
    finally:
        sys.path.remove(str(ROOT))
    return registry


def test_rows_run_on_little_data(tmp_path):
    pytest.importorskip("pandas")
    report = tmp_path / "report.json"
    options = ["--scale", "0.001", "--rounds", "1", "--json", str(report)]
    done = bench("--rows", "fit 1*00,000 x 50*", *options)
    assert done.returncode == 0, done.stderr
    written = json.loads(report.read_text(encoding="utf-8"))
    assert written["machine"]["cores"] >= 1
    assert len(written["rows"]) == 2
    for row in written["rows"]:
        assert row["name"] in done.stdout
        assert row["peer"].startswith("CategoricalNB")
        assert row["verdict"] == "quick"
        assert row["ratio"] > 0
        assert set(row["memory_mb"]) == set(row["seconds"]) >= {"ours", row["peer"]}


def test_rows_of_learned_weights_reach_the_optimum_they_are_timed_for(tmp_path):
    report = tmp_path / "report.json"
    options = ["--scale", "0.001", "--rounds", "1", "--json", str(report)]
    done = bench("--rows", "WANBIA-CLL 20,000*", *options)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(report.read_text(encoding="utf-8"))["rows"]
    assert row["peer"] == "LogisticRegression one-hot"
    assert row["ratio"] > 0


def test_ratios_are_compared_with_stored_ones_in_the_direction_of_their_target():
    stored = json.loads((ROOT / "benchmarks/baseline.json").read_text(encoding="utf-8"))
    assert len(stored) > 50
    sys.path.insert(0, str(ROOT))
    from benchmarks.__main__ import slower

    rows = [
        {"name": "a", "target": ">= 2 x", "ratio": 2.0},
        {"name": "b", "target": "<= 2 x", "ratio": 2.0},
        {"name": "c", "target": ">= 2 x", "ratio": 2.0},
        {"name": "new", "target": ">= 2 x", "ratio": 2.0},
    ]
    found = slower(rows, {"a": 4.0, "b": 4.0, "c": 2.1})
    assert found == [
        "slower: a, ratio 4.00 before, 2.00 now",
        "quicker: b, ratio 4.00 before, 2.00 now",
        "3 of 4 rows compared with stored ratios.",
    ]
    (line,) = slower(rows[2:], {"c": 2.1})
    assert line.startswith("1 of 2 rows") and "No regression" in line


def test_ratios_are_stored_beside_those_of_other_rows(tmp_path):
    sys.path.insert(0, str(ROOT))
    from benchmarks.__main__ import store

    path = tmp_path / "ratios.json"
    store([{"name": "a", "ratio": 2.004}, {"name": "b", "ratio": None}], path)
    store([{"name": "c", "ratio": 3.0}, {"name": "a", "ratio": 1.0}], path)
    assert json.loads(path.read_text(encoding="utf-8")) == {"a": 1.0, "c": 3.0}


def test_a_pass_is_reported_per_cell(tmp_path):
    report = tmp_path / "report.json"
    options = ["--scale", "0.001", "--rounds", "1", "--json", str(report)]
    done = bench("--rows", "one pass, 100,000 x 50, 3 classes", *options)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(report.read_text(encoding="utf-8"))["rows"]
    per = row["ns_per"]
    assert per["cell"] == pytest.approx(3 * per["cell and class"])
    assert "ns per cell and class" in done.stdout


def test_a_row_without_its_data_says_so(monkeypatch):
    monkeypatch.delenv("STEELYARD_DATA", raising=False)
    done = bench("--rows", "*MAGIC*raw*", "--scale", "0.001", "--rounds", "1")
    assert done.returncode == 0, done.stderr
    assert "STEELYARD_DATA is not set" in done.stdout


def test_a_fit_that_stopped_early_is_not_timed(registry):
    from benchmarks import measure

    def stopped_early():
        raise AssertionError("stopped early")

    row = registry.Row(
        "early",
        registry.no_target,
        lambda scale: registry.Case(lambda: None, confirm=stopped_early),
        rounds=1,
        measures_memory=False,
        warm_up=False,
    )
    with pytest.raises(RuntimeError, match="stopped early"):
        measure.measure(row, 1.0, None)


def test_an_unknown_row_is_refused():
    done = bench("--rows", "no such row")
    assert done.returncode == 2
    assert "--list" in done.stderr


def test_targets_judge_in_the_right_direction(registry):
    faster = registry.at_least(4)
    assert faster.ratio(ours=1.0, peer=5.0) == 5.0
    assert faster.met(1.0, 5.0, None, None) is True
    assert faster.met(1.0, 3.0, None, None) is False
    slower = registry.at_most(4)
    assert slower.ratio(ours=5.0, peer=1.0) == 5.0
    assert slower.met(5.0, 5.0, None, None) is False
    assert slower.met(5.0, 3.0, None, None) is True
    assert registry.within_seconds(1).met(2.0, None, None, None) is False
    assert registry.within_memory.met(1.0, None, 3.0, 2.0) is False
    assert registry.within_memory.met(1.0, None, 3.0, 4.0) is True
    assert registry.no_target.met(1.0, 5.0, None, None) is None


def test_rows_of_parquet_compare_with_a_plain_read(tmp_path):
    pytest.importorskip("pyarrow")
    report = tmp_path / "report.json"
    options = ["--scale", "0.001", "--rounds", "1", "--json", str(report)]
    done = bench("--rows", "partial_fit by row groups*", *options)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(report.read_text(encoding="utf-8"))["rows"]
    assert row["verdict"] in ("quick", "skipped")
    if row["verdict"] == "quick":
        assert row["peer"] == "pyarrow reads"
        assert row["ratio"] > 0
