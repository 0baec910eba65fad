"""Files that are read in chunks: the same models, bounded work, no files left."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import steelyard as sy
from steelyard._common.progress import progress
from steelyard.cli import inputs as streams


def table(people):
    """Return a table with what whole files and chunks could take for something else."""
    frame = people(400, seed=1)
    rng = np.random.default_rng(2)
    frame["code"] = [f"{k:03d}" for k in rng.integers(0, 40, 400)]
    frame["weight"] = rng.integers(0, 3, 400)
    frame["flag"] = rng.random(400) < 0.5
    frame.loc[::9, "ill"] = None
    frame.loc[::7, "smoker"] = None
    return frame


def content(path):
    """Return a model file without what whole tables and chunks alone have."""
    found = json.loads(Path(path).read_text())["content"]
    record = found["fitted"]["training_"]
    del record["cut_points_are_exact"], record["quality"]
    del record["summary"]["row_hashes"], record["summary"]["score_ranges"]
    for name in ("file", "sha256"):
        record["reading"].pop(name, None)
    found["classes"].pop("dtype")
    return found


OPTIONS = ["--target", "ill", "--method", "WANBIA-CLL", "--weights", "weight"]


@pytest.mark.parametrize("kinds", [[], ["--categorical", "code,zip"]])
@pytest.mark.parametrize("extension", ["csv", "csv.gz", "tsv", "parquet"])
def test_a_file_gives_the_same_model_whole_and_in_chunks(
    people, extension, kinds, tmp_path, run
):
    path, frame = tmp_path / f"data.{extension}", table(people)
    if extension == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if extension == "tsv" else ",")
    models = []
    for data in (path, f"{str(path)[:-1]}[{str(path)[-1]}]"):
        models.append(tmp_path / f"{len(models)}.json")
        done = run("fit", data, *OPTIONS, *kinds, "-o", models[-1])
        assert done.status == 0, done.err
        assert "355 rows" in done.out
        assert "dropped 45 rows without 'ill'" in done.err
    assert content(models[0]) == content(models[1])


@pytest.mark.parametrize("target", ["flag", "zip", "level"])
def test_classes_of_a_parquet_file_are_those_of_the_whole_file(
    people, target, tmp_path, run
):
    frame = table(people).assign(level=lambda f: f["zip"].astype(float))
    frame.loc[::9, "level"] = np.nan
    frame.to_parquet(tmp_path / "a.parquet")
    options = ["--method", "NB", "--target", target]
    run("fit", tmp_path / "a.parquet", *options, "-o", tmp_path / "0.json")
    run("fit", tmp_path / "a.parque[t]", *options, "-o", tmp_path / "1.json")
    assert content(tmp_path / "0.json") == content(tmp_path / "1.json")


def test_a_large_file_is_read_in_chunks_and_a_small_one_is_not(
    tmp_path, csv, run_json, monkeypatch
):
    options = ["--target", "ill", "--method", "NB", "-o"]
    whole = run_json("fit", csv, *options, tmp_path / "0.json", "--memory", "100MB")
    assert whole["check"]["accuracy"] > 0.5
    monkeypatch.setattr(streams, "_BYTES_A_BYTE", 10**6)
    parts = run_json("fit", csv, *options, tmp_path / "1.json", "--memory", "100MB")
    assert parts["check"] is None
    assert parts["rows"] == whole["rows"] and parts["classes"] == whole["classes"]
    assert content(tmp_path / "0.json") == content(tmp_path / "1.json")


def test_folders_and_several_files_are_one_table(people, tmp_path, run):
    frame = table(people)
    folder = tmp_path / "parts"
    folder.mkdir()
    for k, rows in enumerate((slice(0, 150), slice(150, 400))):
        frame[rows].to_parquet(folder / f"{k}.parquet")
    frame.to_parquet(tmp_path / "all.parquet")
    pair = sorted(folder.iterdir())
    for k, data in enumerate([[tmp_path / "all.parquet"], [folder], pair]):
        done = run("fit", *data, *OPTIONS, "-o", tmp_path / f"{k}.json")
        assert done.status == 0, done.err
    models = [content(tmp_path / f"{k}.json") for k in range(3)]
    assert models[0] == models[1] == models[2]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--target", "il"], ["no column 'il'", "'ill'"]),
        (["--drop", "agee"], ["no column 'agee'", "'age'"]),
        (["--weights", "smoker"], ["weights", "smoker", "numbers"]),
        (["--numeric", "smoker"], ["smoker", "row 2", "--missing-values"]),
        (["--numeric", "age", "--categorical", "age"], ["both"]),
        (["--target", "age"], ["fractions"]),
        (["--memory", "2 cats"], ["--memory", "500MB"]),
        (["--memory", "3MB"], ["--memory", "100MB"]),
        (["--work-folder", "nowhere"], ["nowhere", "--work-folder"]),
    ],
)
def test_errors_are_one_line(people, options, words, tmp_path, refused):
    table(people).to_csv(tmp_path / "a.csv", index=False)
    target = [] if "--target" in options else ["--target", "ill"]
    data = [tmp_path / "a.cs[v]", *target, "--method", "NB"]
    error = refused("fit", *data, *options, "-o", tmp_path / "m.json")
    assert all(word in error for word in words), error


def test_no_file_no_match_and_standard_input_among_others(tmp_path, csv, refused):
    for data, word in (
        ([tmp_path / "*.parquet"], "No file matches"),
        ([csv, tmp_path / "b.csv"], "b.csv"),
        ([csv, "-"], "Standard input"),
    ):
        assert word in refused("fit", *data, "--target", "ill", "-o", tmp_path / "m.j")


def test_predictions_of_several_files_are_written_as_parquet(
    people, tmp_path, model, run
):
    frame = people(70, seed=3)
    folder = tmp_path / "new"
    for zone, rows in (("1", slice(0, 30)), ("2", slice(30, 70))):
        (folder / f"zip={zone}").mkdir(parents=True)
        part = frame[rows].drop(columns="zip")
        part.to_parquet(folder / f"zip={zone}" / "part.parquet")
    frame["zip"] = [1] * 30 + [2] * 40
    out = tmp_path / "out.parquet"
    done = run("predict", model, folder, "--keep", "smoker", "-o", out)
    assert done.status == 0, done.err
    found = pd.read_parquet(out)
    clf = sy.load(model)
    expected = clf.predict_proba(frame[list(clf.feature_names_in_)])
    assert np.array_equal(found[["p_sick", "p_well"]].to_numpy(), expected)
    assert found["smoker"].tolist() == frame["smoker"].tolist()
    assert found["prediction"].tolist() == clf.predict(frame.iloc[:, :3]).tolist()
    pq.ParquetFile(out, page_checksum_verification=True).read()


def test_failed_predictions_leave_no_file(people, tmp_path, model, refused):
    people(30, seed=4).drop(columns="age").to_parquet(tmp_path / "new.parquet")
    out = tmp_path / "out.parquet"
    assert "age" in refused("predict", model, tmp_path / "new.parquet", "-o", out)


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_leaves_no_file_and_no_traceback(tmp_path):
    rng = np.random.default_rng(0)
    table = {f"x{j}": rng.integers(0, 9, 300_000) for j in range(30)}
    pd.DataFrame({**table, "y": rng.integers(0, 2, 300_000)}).to_csv(
        tmp_path / "a.csv", index=False
    )
    work = tmp_path / "work"
    work.mkdir()
    command = [sys.executable, "-m", "steelyard", "fit", str(tmp_path / "a.cs[v]")]
    command += ["--target", "y", "--work-folder", str(work), "-o", "m.json"]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
        # A shell that starts the tests in the background ignores it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while not any(work.rglob("*.parquet")) and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    error = process.communicate(timeout=120)[1]
    assert (process.returncode, error) == (130, "Interrupted.\n")
    assert not any(work.iterdir())
    assert not (tmp_path / "m.json").exists()


def test_dates_are_names_as_in_files_that_are_read_whole(tmp_path, frame, run):
    days = pd.Timestamp("2024-01-05") + pd.to_timedelta(np.arange(len(frame)) % 3, "D")
    times = days + pd.to_timedelta(10.5, "h")
    dated = frame.assign(day=days, time=times, date=days.date)
    path, csv = tmp_path / "d.parquet", tmp_path / "d.csv"
    dated.to_parquet(path)
    dated.to_csv(csv, index=False)
    found = []
    for k, data in enumerate([[csv], [path], [tmp_path / "*.parquet"]]):
        out = tmp_path / f"{k}.json"
        done = run("fit", *data, "--target", "ill", "--method", "NB", "-o", out)
        assert done.status == 0, done.err
        found.append(run("predict", out, csv).out)
    assert found[0] == found[1] == found[2]
    assert run("predict", out, path).out == found[0]


def test_a_bar_follows_the_readings(capsys):
    with progress("Looking", None, True) as advance:
        advance("500 rows", 1_000, 4_000)
        advance("1,000 rows", 3_000, 4_000)
    told = capsys.readouterr().err
    assert "Looking" in told and "100%" in told and "1,000 rows" in told
