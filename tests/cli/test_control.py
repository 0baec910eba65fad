"""steelyard scorecard and steelyard edit: cards and changes from the shell."""

import json
import sqlite3

import pandas as pd
import pytest

import steelyard


@pytest.fixture
def model(run, csv, tmp_path):
    path = tmp_path / "model.json"
    done = run("fit", csv, "--target", "ill", "--method", "NB", "-o", path)
    assert done.status == 0
    return path


def test_a_card_is_printed(run, model):
    done = run("scorecard", model)
    assert done.status == 0, done.err
    assert "Scorecard: ill = well" in done.out and "smoker   yes" in done.out


def test_rows_without_their_option_are_an_error_that_names_it(run, model):
    done = run("scorecard", model, "new-rows.csv")
    assert done.status == 2 and "Did you mean '--data new-rows.csv'?" in done.err


@pytest.mark.parametrize("ending", ["html", "xlsx", "csv", "md", "py", "js"])
def test_a_card_is_written(ending, run, model, csv, tmp_path):
    card = tmp_path / f"card.{ending}"
    done = run("scorecard", model, "-o", card, "--data", csv, "--target", "ill")
    assert (done.status, done.out) == (0, ""), done.err
    assert f"written: {card}" in done.err
    assert card.stat().st_size > 100


def test_a_card_is_a_query(run, model, frame, tmp_path):
    card = tmp_path / "card.sql"
    options = ["--dialect", "sqlite", "--table", "people", "--keep", "zip"]
    options += ["--for", "sick", "--points-to-double", "10", "--base-points", "0"]
    done = run("scorecard", model, "-o", card, *options, "--base-odds", "1")
    assert done.status == 0, done.err
    with sqlite3.connect(":memory:") as base:
        frame.to_sql("people", base)
        found = pd.read_sql_query(card.read_text(encoding="utf-8"), base)
    assert list(found) == ["zip", "prediction", "p(well)", "p(sick)", "points"]
    expected = 1.0 / (1.0 + 2.0 ** (-found["points"] / 10.0))
    assert found["p(sick)"].tolist() == pytest.approx(expected.tolist(), abs=1e-12)


def test_edits_are_applied_listed_and_undone(run, model, csv, frame, tmp_path):
    edits, edited = tmp_path / "edits.json", tmp_path / "edited.json"
    asked = [
        {"column": "smoker", "values": ["yes"], "set": -0.3},
        {"column": "zip", "remove": True, "reason": "not allowed"},
    ]
    edits.write_text(json.dumps(asked))
    rows = ["--recalibrate", csv]
    done = run("edit", model, edits, "-o", edited, "--reason", "board", *rows)
    assert done.status == 0, done.err
    assert f"written: {edited}" in done.err
    lines = done.out.splitlines()
    assert lines[0].startswith("set smoker yes to -0.3 for well (board), 20")
    assert lines[1].startswith("remove zip (not allowed), 20")
    assert lines[2].startswith("intercept recalibrated on 60 rows (board), 20")
    assert run("edit", edited).out.splitlines() == lines
    none = run("edit", model)
    assert none.out == "" and f"{model} has no edits." in none.err
    X = frame.drop(columns="ill")
    one, other = (steelyard.load(path) for path in (model, edited))
    assert (one.predict_proba(X) != other.predict_proba(X)).any()
    assert "smoker (edited)" in run("explain", edited).out
    back = tmp_path / "back.json"
    done = run("edit", edited, "--undo", "-o", back)
    assert done.status == 0 and f"written: {back}" in done.err
    assert back.read_bytes() == model.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["scorecard", "no.json"], "There is no model file no.json"),
        (["scorecard", "MODEL", "-o", "card.doc"], "Known: html, xlsx, csv, md, sql"),
        (["scorecard", "MODEL", "--for", "dead"], "one of the classes sick, well"),
        (
            ["scorecard", "MODEL", "--target", "ill"],
            "--target names a column",
        ),
        (["scorecard", "MODEL", "--max-bins", "1"], "--max-bins must be"),
        (["scorecard", "MODEL", "--interactions", "-1"], "--interactions must be"),
        (["scorecard", "MODEL", "--dialect", "sqlite"], "--dialect is for SQL"),
        (["scorecard", "MODEL", "--data", "CSV", "--target", "zip"], "none of the cl"),
        (["scorecard", "MODEL", "-o", "c.sql", "--dialect", "q"], "dialect"),
        (["edit", "no.json"], "There is no model file no.json"),
        (["edit", "MODEL", "EDITS"], "Name the model file to write with -o"),
        (["edit", "MODEL", "-o", "x.json"], "nothing to do"),
        (["edit", "MODEL", "EDITS", "--undo", "-o", "x.json"], "takes no edits"),
        (["edit", "MODEL", "CSV", "-o", "x.json"], "is not JSON"),
        (["edit", "MODEL", "EDITS", "-o", "x.json"], "no column 'aeg'"),
        (["edit", "MODEL", "EDITS", "-o", "MODEL"], "would be overwritten"),
    ],
)
def test_bad_input_is_one_line(
    arguments, message, run, model, csv, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    edits = tmp_path / "edits.json"
    edits.write_text('[{"column": "aeg", "remove": true}]')
    places = {"MODEL": model, "CSV": csv, "EDITS": edits}
    done = run(*(places.get(argument, argument) for argument in arguments))
    assert done.status == 2 and message in done.err
    assert len(done.err.splitlines()) == 1
    assert not (tmp_path / "x.json").exists()


def test_shapes_are_options_of_fit(run, csv, tmp_path):
    model = tmp_path / "shaped.json"
    fit = ["fit", csv, "--target", "ill", "-o", model, "--no-check"]
    done = run(*fit, "--set", "strength=(2.0, 8.0, 1.0)", "--increasing", "age:sick")
    assert done.status == 0, done.err
    assert steelyard.load(model).constraints == {"age": ("increasing", "sick")}
    for options, said in (
        (["--increasing", "age", "--peak", "age"], "already has another shape"),
        (["--valley", "smoker"], "no order"),
        (["--valley", "agge"], "Did you mean 'age'"),
        (["--convex", "age:ill"], "names class 'ill'"),
        (["--convex", "age", "--method", "NB"], "constraints"),
    ):
        done = run(*fit, "--force", *options)
        assert done.status != 0 and said in done.err, (options, done.err)
        assert "Traceback" not in done.err
