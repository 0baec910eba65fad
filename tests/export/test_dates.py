"""Dates in exports: which texts are dates, and the SQL of every database."""

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard import export
from steelyard.export.c import c_text, to_c
from steelyard.export.plan import Column
from steelyard.export.r import r_vector, to_r
from steelyard.export.sql_dialect import DIALECTS

# A text and the moment that it is; None for one that is no date.
TEXTS = {
    "2024-01-31": "2024-01-31",
    "2024-01-31T02:30": "2024-01-31T02:30",
    " 2024-01-31 02:30:05 ": "2024-01-31T02:30:05",
    "2024-01-31T23:59:59.9996": "2024-01-31T23:59:59.9996",
    "2024-01-31T02:30:05.123456789": "2024-01-31T02:30:05.123456",
    "1883-11-18 12:03:58.000001": "1883-11-18T12:03:58.000001",
    "0001-01-01": "0001-01-01",
    "9999-12-31T23:00": "9999-12-31T23:00",
    "2024-02-29": "2024-02-29",
    # Times are those of the clock.
    "2024-01-31T02:30Z": "2024-01-31T02:30",
    "2024-01-31T02:30:00+05:00": "2024-01-31T02:30",
    "2024-01-31T02:30:00.5-0530": "2024-01-31T02:30:00.5",
    "2024-01-31 02:30+05": "2024-01-31T02:30",
    "2024-01-31-05:00": "2024-01-31",
} | dict.fromkeys(
    [
        *("now", "today", "epoch", "infinity", "12:00", "2460341.5", "NaT", "x"),
        *("2024", "2024-01", "20240131", "2024-W05-3", "2024-1-5", "31.01.2024"),
        *("2023-02-29", "2024-02-30", "2024-04-31", "2024-13-01", "2024-00-10"),
        *("0000-01-01", "-2024-01-01", "10000-01-01", "2024-01-31T24:00"),
        *("2024-01-31T23:60", "2024-01-31T23:59:60", "2024-01-31T02", "2024-01-31T"),
        *("2024-01-31T2:30", "2024-01-31  02:30", "2024-01-31t02:30"),
        *("2024-01-31T02:30:05,5", "2024-01-31T02:30:05.", "2024-01-31T02:30 UTC"),
        *(
            "2024-01-31T02:30 +05:00",
            "2024-01-31T02:30+25:00",
            "\N{FULLWIDTH DIGIT TWO}024-01-31",
        ),
    ]
)


@pytest.fixture(scope="module")
def clf():
    """A model that reads every part of a date."""
    rng = np.random.default_rng(0)
    when = pd.Timestamp("1990-01-01") + pd.to_timedelta(
        rng.integers(0, 2_000_000_000, 600), "s"
    )
    return sy.NaiveBayes().fit(pd.DataFrame({"when": when}), np.arange(600) % 3)


@pytest.fixture(scope="module")
def expected(clf):
    """What the model says of each text; None where it is no date."""
    found = {}
    for text, moment in TEXTS.items():
        if moment is not None:
            frame = pd.DataFrame({"when": [np.datetime64(moment, "us")]})
            found[text] = clf.predict_proba(frame)[0].tolist()
    return found


def agree(found, expected):
    refused = {text for text in TEXTS if found[text] is None}
    assert refused == TEXTS.keys() - expected.keys()
    for text, proba in expected.items():
        np.testing.assert_allclose(found[text], proba, rtol=0, atol=1e-12, err_msg=text)


@pytest.mark.parametrize("kind", ["scorer", "py"])
def test_python_reads_one_form_of_dates(clf, expected, kind):
    module = {}
    exec(export.to_python(clf), module)
    score = clf.scorer() if kind == "scorer" else module["score"]

    def of(text):
        try:
            return [*score({"when": text}).values()]
        except ValueError as error:
            assert "'when' takes dates such as" in str(error)
            return None

    agree({text: of(text) for text in TEXTS}, expected)


def test_javascript_reads_one_form_of_dates(clf, expected, run_node, tmp_path):
    (tmp_path / "model.js").write_text(export.to_javascript(clf), encoding="utf-8")
    program = (
        "const { posterior } = require('./model.js');"
        "const of = (when) => { try { return posterior({ when }); } catch (error) {"
        " return error.message.includes('takes dates such as') ? null : error.message;"
        " } }; answer(data.map(of));"
    )
    found = run_node(program, [*TEXTS])
    agree(dict(zip(TEXTS, found, strict=True)), expected)


def test_r_reads_one_form_of_dates(clf, expected, run_r, tmp_path):
    (tmp_path / "model.R").write_text(to_r(clf), encoding="ascii")
    found = run_r(
        f"source('model.R')\nfor (text in {r_vector([*TEXTS])}) tryCatch({{\n"
        "p <- score(data.frame(when = text))[-1]\n"
        "cat(sprintf('%a', unlist(p)), '\\n') }, error = function(e) {\n"
        "stopifnot(grepl('takes dates such as', conditionMessage(e))); cat('-\\n') })"
    )
    lines = [line.split() for line in found.splitlines()]
    proba = [None if "-" in of else [*map(float.fromhex, of)] for of in lines]
    agree(dict(zip(TEXTS, proba, strict=True)), expected)
    for kind in ("as.Date", "as.POSIXct"):
        moment = "'2024-01-31 00:00:00', tz = 'Asia/Tokyo'"
        program = f"p <- score(data.frame(when = {kind}({moment})))[-1]\n"
        found = run_r(f"source('model.R')\n{program}cat(sprintf('%a', unlist(p)))")
        proba = [*map(float.fromhex, found.split())]
        np.testing.assert_allclose(proba, expected["2024-01-31"], rtol=0, atol=1e-12)


def test_c_reads_one_form_of_dates(clf, expected, run_c, tmp_path):
    (tmp_path / "model.h").write_text(to_c(clf), encoding="ascii")
    rows = ", ".join(f"{{{c_text(text)}}}" for text in TEXTS)
    found = run_c(
        f"model_row rows[] = {{{rows}}};"
        f"for (int i = 0; i < {len(TEXTS)}; i++) {{ model_answer a;"
        " const char *wrong = model_score(rows + i, &a);"
        ' if (wrong) printf(strstr(wrong, "takes dates such as") ? "-\\n" : wrong);'
        ' else printf("%a %a %a\\n", a.probability[0], a.probability[1],'
        " a.probability[2]); }"
    )
    lines = [line.split() for line in found.splitlines()]
    proba = [None if of == ["-"] else [*map(float.fromhex, of)] for of in lines]
    agree(dict(zip(TEXTS, proba, strict=True)), expected)


def test_databases_read_one_form_of_dates(clf, expected):
    def of(base, query, error, text):
        base.execute("DELETE FROM data")
        base.execute("INSERT INTO data VALUES (?)", [text])
        try:
            return [*base.execute(query).fetchall()[0][1:]]
        except error as problem:
            assert f"not a date in column when: {text}" in str(problem)
            return None

    with closing(sqlite3.connect(":memory:")) as lite, duckdb.connect() as duck:
        for base, dialect, error in (
            (lite, "sqlite", sqlite3.OperationalError),
            (duck, "duckdb", duckdb.Error),
        ):
            base.execute('CREATE TABLE data ("when" VARCHAR)')
            query = export.to_sql(clf, dialect)
            agree({t: of(base, query, error, t) for t in TEXTS}, expected)
            missing = clf.predict_proba(pd.DataFrame({"when": [pd.NaT]}))[0]
            found = of(base, query, error, None)
            np.testing.assert_allclose(found, missing, rtol=0, atol=1e-12)


@pytest.mark.engines
@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamptz", "text"])
def test_postgres_reads_dates_and_no_text(clf, postgres, kind):
    server, _ = postgres
    query = export.to_sql(clf, "postgres", "dated")
    insert = "INSERT INTO dated VALUES ('2024-01-31');"
    table = f'DROP TABLE IF EXISTS dated;CREATE TABLE dated ("when" {kind});{insert}'
    if kind == "text":
        with pytest.raises(AssertionError, match="operator does not exist"):
            server.execute(table + query)
        return
    found = list(map(float, server.execute(table + query)[0][1:]))
    frame = pd.DataFrame({"when": [pd.Timestamp("2024-01-31")]})
    np.testing.assert_allclose(found, clf.predict_proba(frame)[0], atol=1e-12)


def test_dates_in_all_databases_are_written_as_before():
    # Most of these databases are not run in tests; their text was read by hand.
    def named(text, about):
        return f"<{about}>"

    said = {}
    for name, dialect in DIALECTS.items():
        said[name] = {"moment": dialect.moment("when", "t", named)}
        for part in ("", ".year", ".month", ".weekday", ".hour"):
            column = Column(f"when{part}", "number", "numbers", (), "when")
            said[name][column.part] = dialect.part_of_date(column.part, "<moment>")
        said[name]["type"] = dialect.date_type
    text = json.dumps(said, indent=2, ensure_ascii=False) + "\n"
    golden = Path(__file__).parent / "golden" / "dates.json"
    if os.environ.get("STEELYARD_RECORD"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")
