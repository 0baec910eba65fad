"""``monitor``: new rows beside what a model holds of those of training."""

import json
import sqlite3
from contextlib import closing

import numpy as np
import pandas as pd
import pytest

import steelyard as sy


@pytest.fixture
def watched(tmp_path, people):
    """Return a model of 300 people and a file of others, of whom the last have aged."""
    train, new = people(300), people(300, 1)
    clf = sy.NaiveBayes().fit(train[["age", "smoker", "zip"]], train["ill"])
    clf.save(tmp_path / "watched.json")
    new["month"] = np.repeat([1, 2, 3], 100)
    new.to_csv(tmp_path / "same.csv", index=False)
    new.loc[new["month"] == 3, "age"] += 30
    new.to_csv(tmp_path / "moved.csv", index=False)
    return tmp_path


def test_the_status_says_whether_a_threshold_is_passed(watched, run):
    model, same, moved = (
        watched / n for n in ("watched.json", "same.csv", "moved.csv")
    )
    done = run("monitor", model, same, "--by", "month")
    assert done.status == 0, done.err
    assert "No threshold is exceeded." in done.out
    assert "true classes are taken from column 'ill'" in done.err
    done = run("monitor", model, moved, "--by", "month")
    assert done.status == 3
    assert "3: age: PSI" in done.out and "AUC" in done.out
    assert run("monitor", model, moved, "--psi", "9", "--share", "0.9").status == 0


def test_json_and_the_report_say_what_python_says(watched, run):
    out = watched / "drift.html"
    files = watched / "watched.json", watched / "moved.csv"
    done = run("monitor", *files, "--by", "month", "-o", out, "--json")
    assert done.status == 3 and f"written: {out}" in done.err
    assert "<figure" in out.read_text("utf-8")
    found, frame = json.loads(done.out), pd.read_csv(watched / "moved.csv")
    clf = sy.load(watched / "watched.json")
    rows = frame[["age", "smoker", "zip"]]
    expected = clf.drift(rows, frame["ill"], by=frame["month"])
    assert found["alarms"] == expected.alarms
    assert "exists" in run("monitor", *files, "-o", out).err
    many = run(
        "monitor", files[0], watched / "same.csv", watched / "moved.csv", "--json"
    )
    assert json.loads(many.out)["periods"][0]["rows"] == 600


def test_a_query_says_of_a_table_what_is_said_of_a_file(watched, run):
    model, moved, out = (watched / n for n in ("watched.json", "moved.csv", "d.SQL"))
    how = ["--dialect", "sqlite", "--table", "new rows", "--by", "month"]
    done = run("monitor", model, "-o", out, *how)
    assert (done.status, done.out) == (0, "") and f"written: {out}" in done.err
    with closing(sqlite3.connect(":memory:")) as base:
        pd.read_csv(moved).to_sql("new rows", base)
        found = base.execute(out.read_text("utf-8")).fetchall()
    said = json.loads(run("monitor", model, moved, "--by", "month", "--json").out)
    expected = {(row["period"], row["column"]): row for row in said["columns"]}
    assert len(found) == 9
    for period, column, n_rows, _, *shares in found:
        row = expected[str(period), column]
        assert n_rows == row["rows"] == 100
        wanted = [row[what] for what in ("missing", "unseen", "out_of_range")]
        assert shares == pytest.approx(wanted)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["MODEL", "NEW", "--by", "mnth"], "Did you mean 'month'"),
        (["MODEL", "NEW", "--by", "ill"], "--by names the target"),
        (["MODEL", "NEW", "--target", "age"], "predicts from"),
        (["MODEL", "NEW", "--target", "il"], "Did you mean 'ill'"),
        (["MODEL", "NEW", "--psi", "0"], "--psi must be a number greater than 0"),
        (["MODEL", "NEW", "--share", "-1"], "--share must be a number"),
        (["MODEL", "NEW", "-o", "x.pdf"], ".html, or a query, .sql: not x.pdf"),
        (["MODEL"], "or write a query for a database with -o drift.sql"),
        (["MODEL", "NEW", "--table", "t"], "--table is for a query: -o drift.sql"),
        (["MODEL", "NEW", "-o", "x.sql"], "a file cannot be given with -o drift.sql"),
        (["MODEL", "-o", "x.sql", "--psi", "0"], "has no thresholds: --psi cannot"),
        (["MODEL", "-o", "x.sql", "--skip", "2"], "--skip cannot be given with"),
        (["MODEL", "-o", "x.sql", "--dialect", "postgre"], "Did you mean 'postgres'"),
        (["MODEL", "NEW", "-o", "MODEL"], "would be overwritten"),
        (["MODEL", "gone.csv"], "gone.csv"),
        (["gone.json", "NEW"], "There is no model file"),
        (["NEW", "NEW"], "not a model file"),
        (["MODEL", "OTHER"], "lacks 2 columns"),
        (["MODEL", "EMPTY"], "no rows"),
    ],
)
def test_monitor_refuses(watched, refused, arguments, message):
    frame = pd.read_csv(watched / "same.csv")
    frame[["age"]].to_csv(watched / "other.csv", index=False)
    frame[:0].to_csv(watched / "empty.csv", index=False)
    names = {"MODEL": "watched.json", "NEW": "same.csv"}
    names |= {"OTHER": "other.csv", "EMPTY": "empty.csv"}
    words = [watched / names[a] if a in names else a for a in arguments]
    assert message in refused("monitor", *words)
