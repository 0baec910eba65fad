"""clf.export: the format by the ending, whole files or none, the same bytes."""

import datetime as dt
import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard import export
from steelyard.exceptions import ColumnError, ParameterError
from steelyard.export import check as checking
from steelyard.export.check import check
from steelyard.export.formats import FORMATS
from steelyard.export.sql import to_sql
from steelyard.export.sql_dialect import DIALECTS

GOLDEN = Path(__file__).parent / "golden"


def weather(n_classes):
    """A small table with a column of each kind."""
    n = 24
    X = pd.DataFrame(
        {
            "sky": np.resize(["sun", "rain", "it's fog", None], n),
            "degrees": np.resize([21.0, 12.5, 25.0, 9.5, np.nan], n),
            "windy": np.resize([True, False, False, None], n),
        }
    )
    return X, np.resize(["play", "stay", "read"][:n_classes], n)


# Small models: one sum of two classes, one of three, a vote, interactions.
MODELS = {
    "two": lambda: sy.NaiveBayes(missing="value").fit(*weather(2)),
    "three": lambda: sy.NaiveBayes(numeric="gaussian").fit(*weather(3)),
    "vote": lambda: sy.BoostedNB(rounds=3).fit(*weather(2)),
    "interactions": lambda: sy.TreeAugmentedNB(numeric="equal-width").fit(*weather(2)),
}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return request.param, MODELS[request.param]()


def normal(text):
    """Text with floats of 12 digits: the last ones may differ between machines."""
    return re.sub(r"-?\d+\.\d+(?:e-?\d+)?", lambda m: f"{float(m[0]):.12g}", text)


def nodes_of(model):
    """Constants and nodes of ONNX as text."""
    from onnx import numpy_helper

    lines = [
        f"{tensor.name} = {numpy_helper.to_array(tensor).tolist()}"
        for tensor in model.graph.initializer
    ]
    for node in model.graph.node:
        of = {a.name: list(a.strings or a.ints) or a.i for a in node.attribute}
        given = "".join(f", {name}={value}" for name, value in sorted(of.items()))
        inputs = ", ".join(node.input)
        lines.append(f"{node.output[0]} = {node.op_type}({inputs}{given})")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    "name", ["duckdb.sql", "sqlite.sql", "postgres.sql", "js", "py", "onnx", "pmml"]
)
def test_texts_are_those_of_the_last_release_that_changed_them(model, name):
    of, clf = model
    dialect, _, kind = name.rpartition(".")
    if kind == "sql":
        text = export.to_sql(clf, dialect, table="days", keep=["day"])
        text = text.partition("\n")[2]  # the first line has the version
    elif kind == "onnx":
        text = nodes_of(export.to_onnx(clf))
    elif kind == "pmml":
        text = export.to_pmml(clf).decode().replace(sy.__version__, "VERSION")
    else:
        write = export.to_javascript if kind == "js" else export.to_python
        # The data alone: the code is in files of its own.
        text = write(clf)
        mark = "const plan" if kind == "js" else "MODEL = "
        text = text[text.index(mark) :].partition("\n\n")[0] + "\n"
    golden = GOLDEN / f"{of}.{name}.txt"
    if os.environ.get("STEELYARD_RECORD"):
        golden.write_text(text, encoding="utf-8")
    assert normal(text) == normal(golden.read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", FORMATS)
def test_a_loaded_model_gives_the_same_bytes(kind, model, tmp_path):
    _, clf = model
    clf.save(tmp_path / "model.json")
    if kind == "xlsx":
        pytest.importorskip("openpyxl")
    clf.export(tmp_path / f"a.{kind}")
    sy.load(tmp_path / "model.json").export(tmp_path / "b", format=kind)
    first = (tmp_path / f"a.{kind}").read_bytes()
    assert first == (tmp_path / "b").read_bytes() and len(first) > 500


@pytest.mark.parametrize(
    "kind", ["js", "py", "r", "h", "xlsx", "duckdb", "sqlite", "onnx"]
)
def test_engines_agree_and_a_difference_is_seen(kind, model, monkeypatch, need_engine):
    _, clf = model
    need_engine(kind)
    X, _ = weather(2)
    options = {} if kind in FORMATS else {"dialect": kind}
    kind = kind if kind in FORMATS else "sql"
    assert check(clf, X, kind, **options).agrees
    engine = options.get("dialect", kind)
    name, score = checking.ENGINES[engine]

    def wrong(*of):
        labels, proba = score(*of)
        return labels, [[p + 1e-9 for p in row] for row in proba]

    monkeypatch.setitem(checking.ENGINES, engine, (name, wrong))
    found = check(clf, X, kind, **options)
    assert not found.agrees and "1.0e-09" in str(found)


def test_what_cannot_be_written_leaves_a_file_as_it_was(tmp_path):
    X, y = weather(2)
    target = tmp_path / "model.sql"
    target.write_text("before")
    weka = sy.NaiveBayes(numeric="gaussian-weka").fit(X, y)
    lazy = sy.LocallyWeightedNB().fit(X, y)
    for clf, message in [(weka, "Weka's intervals"), (lazy, "no formula to export")]:
        with pytest.raises(ParameterError, match=message):
            clf.export(target)
    clf = sy.NaiveBayes().fit(X, y)
    with pytest.raises(ParameterError, match=r"no option 'dialekt'. Did you mean"):
        clf.export(target, dialekt="sqlite")
    with pytest.raises(ParameterError, match=r"no option 'table'. It has none"):
        clf.export(target, "py", table="t")
    assert target.read_text() == "before" and len(list(tmp_path.iterdir())) == 1


def test_the_format_is_that_of_the_ending(tmp_path):
    clf = sy.NaiveBayes().fit(*weather(2))
    with pytest.raises(
        ParameterError, match=r"does not end in a known format.*\.sql, \.onnx"
    ):
        clf.export(tmp_path / "model.txt")
    with pytest.raises(ParameterError, match=r"no format 'sq'. Did you mean 'sql'"):
        clf.export(tmp_path / "model.txt", "sq")


@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/export.md"])
def test_pages_name_each_format(page):
    text = (Path(__file__).parents[2] / page).read_text(encoding="utf-8")
    assert [ending for ending in FORMATS if f".{ending}" not in text] == []
    assert [of.name for of in FORMATS.values() if of.name not in text] == []


def test_a_server_is_not_checked():
    clf = sy.NaiveBayes().fit(*weather(2))
    with pytest.raises(ParameterError, match="postgres cannot be run from here"):
        check(clf, weather(2)[0], "sql", dialect="postgres")


@pytest.fixture(scope="module")
def dated():
    """Return rows with moments of a year and a half, to the millisecond."""
    rng = np.random.default_rng(0)
    moments = pd.Timestamp("1969-06-01") + pd.to_timedelta(
        rng.integers(0, 47_000_000_000, 80), "ms"
    )
    X = pd.DataFrame({"when": moments, "a": np.arange(80) % 7})
    # Not all months are seen.
    moments = moments.where(moments.month < 10, moments + pd.DateOffset(months=-5))
    X = X.assign(when=moments)
    X.loc[3, "when"] = pd.NaT
    return X, sy.NaiveBayes().fit(X, np.where(moments.hour < 8, "night", "day"))


@pytest.mark.parametrize(
    "kind", ["py", "js", "r", "h", "xlsx", "duckdb", "sqlite", "onnx"]
)
def test_models_of_dates_take_dates(dated, kind, need_engine):
    X, clf = dated
    need_engine(kind)
    dialect = {"dialect": kind} if kind in DIALECTS else {}
    found = check(clf, X, "sql" if dialect else kind, **dialect)
    assert found.agrees, found


@pytest.mark.parametrize("kind", ["py", "h", "duckdb", "sqlite", "onnx"])
def test_a_sample_of_numbers_is_checked_as_the_text_that_was_fitted(kind, need_engine):
    need_engine(kind)
    texts = pd.DataFrame({"flag": ["True", "False", None], "code": ["07", "2", "b"]})
    texts = pd.concat([texts] * 20, ignore_index=True)
    clf = sy.NaiveBayes(missing="value").fit(texts, ["no", "yes", "no"] * 20)
    X = pd.DataFrame({"flag": [True, False, None], "code": [7.0, 2.0, 5.0]})
    dialect = {"dialect": kind} if kind in DIALECTS else {}
    found = check(clf, X, "sql" if dialect else kind, **dialect)
    assert found.agrees, found


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "sqlite"])
def test_sql_reads_the_column_of_dates_alone(dated, dialect):
    text = to_sql(dated[1], dialect)
    assert '."when"' in text and "when." not in text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_dates_are_written_for_all_databases(dated, dialect):
    sqlglot = pytest.importorskip("sqlglot")
    names = {"mariadb": "mysql", "sqlserver": "tsql", "athena": "trino"}
    text = to_sql(dated[1], dialect)
    if dialect == "oracle":
        text = re.sub(r"(?<=\d)d\b", "", text)  # 1.5d, which the parser does not know
    parsed = sqlglot.parse(text, dialect=names.get(dialect, dialect))
    assert not [tree for tree in parsed if tree.key == "command"][1:]


@pytest.mark.engines
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("dialect", "module"), [("clickhouse", "chdb"), ("spark", "pyspark")]
)
def test_clickhouse_and_spark_read_dates(dated, dialect, module):
    pytest.importorskip(module)
    assert check(dated[1], dated[0], "sql", dialect=dialect).agrees


@pytest.mark.engines
@pytest.mark.parametrize("kind", ["DATETIME(6)", "VARCHAR(40)"])
def test_mariadb_reads_dates(dated, mariadb, kind):
    (X, clf), (server, insert) = dated, mariadb
    rows = [(i, *row.values()) for i, row in enumerate(checking.cells_of(X))]
    text = [
        "DROP TABLE IF EXISTS t;",
        f"CREATE TABLE t (id INT, `when` {kind}, a INT);",
    ]
    query = export.to_sql(clf, "mariadb", "t", keep=["id"])
    found = server.execute("\n".join([*text, insert("t", rows), query]))
    proba = [
        [float(p) for p in row[2:4]] for row in sorted(found, key=lambda r: int(r[0]))
    ]
    np.testing.assert_allclose(proba, clf.predict_proba(X), rtol=0, atol=1e-12)


def test_a_scorer_takes_dates_of_python_and_their_text(dated):
    X, clf = dated
    score, moment = clf.scorer(), X["when"][0].to_pydatetime()
    expected = dict(zip(clf.classes_, clf.predict_proba(X[:1])[0], strict=True))
    zone = dt.timezone(dt.timedelta(hours=9))
    for cell in (moment, moment.isoformat(), str(moment), moment.replace(tzinfo=zone)):
        assert score({"when": cell, "a": 0}) == expected
    day = pd.DataFrame({"when": [pd.Timestamp("1970-02-03")], "a": 0})
    proba = clf.predict_proba(day)[0].tolist()
    assert [*score({"when": dt.date(1970, 2, 3), "a": 0}).values()] == proba
    row = {"when": None, "a": 3, "when.month": 2, "when.weekday": 1, "when.hour": 3}
    assert score.predict(row) == "night"
    with pytest.raises(ColumnError, match=r"'when' takes dates such as"):
        score({"when": "3.2.1970"})


def test_a_cell_that_is_no_date_ends_a_query(dated):
    with closing(sqlite3.connect(":memory:")) as base:
        base.execute('CREATE TABLE data ("when", a)')
        base.execute("INSERT INTO data VALUES ('3.2.1970', 1)")
        with pytest.raises(sqlite3.OperationalError, match="not a date in column when"):
            base.execute(to_sql(dated[1], "sqlite")).fetchall()
