"""steelyard export: files for other programs, checked by their engines."""

import json
import sqlite3
import sys

import pandas as pd
import pytest

import steelyard
from steelyard.export import check as checking
from steelyard.export.sql_dialect import DIALECTS


@pytest.fixture
def model(run, csv, tmp_path):
    path = tmp_path / "model.json"
    done = run("fit", csv, "--target", "ill", "--method", "NB", "-o", path)
    assert done.status == 0
    return path


def test_a_query_that_scores_a_table(run, model, csv, frame, tmp_path):
    target = tmp_path / "score.sql"
    options = ["--dialect", "sqlite", "--table", "people", "--keep", "zip,age"]
    done = run("export", model, "-o", target, *options)
    assert (done.status, done.out) == (0, "")
    with sqlite3.connect(":memory:") as base:
        frame.to_sql("people", base)
        found = pd.read_sql_query(target.read_text(encoding="utf-8"), base)
    assert list(found.columns) == ["zip", "age", "prediction", "p(sick)", "p(well)"]
    expected = steelyard.load(model).predict(frame.drop(columns="ill"))
    assert found["prediction"].tolist() == expected.tolist()


@pytest.mark.parametrize(
    "ending",
    ["js", "py", "sql", "onnx", pytest.param("pmml", marks=pytest.mark.engines)],
)
def test_a_sample_is_scored_by_the_engine(ending, run, model, csv, tmp_path):
    done = run("export", model, "-o", tmp_path / f"model.{ending}", "--check", csv)
    assert done.status == 0, done.err
    assert "60 rows, largest difference in probability" in done.out


@pytest.mark.parametrize(
    ("ending", "engine"), [("onnx", "onnxruntime"), ("pmml", "jpmml-evaluator")]
)
def test_without_an_engine_a_file_is_written_and_not_checked(
    ending, engine, run, model, csv, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, engine.replace("-", "_"), None)
    target = tmp_path / f"model.{ending}"
    done = run("export", model, "-o", target, "--check", csv)
    assert done.status == 1 and f"pip install {engine}" in done.err
    assert "not checked: The check needs an engine" in done.err
    done = run("export", model, "-o", tmp_path / f"other.{ending}")
    assert done.status == 0
    assert target.read_bytes() == (tmp_path / f"other.{ending}").read_bytes()


def test_a_difference_is_status_1(run, model, csv, tmp_path, monkeypatch):
    wrong = ("SQLite", lambda clf, X, options: (["sick"] * 60, [[1.0, 0.0]] * 60))
    monkeypatch.setitem(checking.ENGINES, "sqlite", wrong)
    target = tmp_path / "score.sql"
    done = run("export", model, "-o", target, "--dialect", "sqlite", "--check", csv)
    assert done.status == 1
    assert "differs from the model" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "model.txt"], "does not end in a known format"),
        (["-o", "model.py", "--table", "t"], "has no option 'table'"),
        (["-o", "nowhere/model.py"], "there is no folder"),
        (["-o", "model.sql", "--decimals", "0"], "decimals must be a whole number"),
        (["-o", "model.sql", "--table", ""], "table must be a name"),
    ],
)
def test_wrong_options_are_one_line(
    arguments, message, run, model, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    done = run("export", model, *arguments)
    assert done.status == 2 and message in done.err
    assert len(done.err.splitlines()) == 1


def test_a_file_is_replaced_only_by_force(run, model, tmp_path):
    target = tmp_path / "model.js"
    target.write_text("before")
    assert run("export", model, "-o", target).status == 2
    assert target.read_text() == "before"
    assert run("export", model, "-o", target, "--force").status == 0
    assert target.read_text() != "before"


def test_the_command_offers_all_databases(run):
    done = run("export", "--help")
    shown = "".join(done.out.split())
    assert done.status == 0 and ",".join(DIALECTS) in shown
    assert (
        "invalid choice: 'duck'"
        in run("export", "m", "-o", "f", "--dialect", "duck").err
    )


def test_the_schema_of_a_row_is_printed(run, model):
    done = run("schema", model)
    assert done.status == 0, done.err
    columns = json.loads(done.out)["properties"]
    assert list(columns) == ["age", "smoker", "zip"]
    assert columns["smoker"]["type"] == ["string", "null"]
