"""Every method, missing mode and number of classes, in every engine."""

import os
import sqlite3
from copy import copy

import numpy as np
import pytest

import steelyard as sy
from steelyard import export
from steelyard.exceptions import ParameterError
from steelyard.export.check import ENGINES, onnx_feed
from steelyard.export.check import check as check_engine
from steelyard.export.excel import to_excel
from steelyard.export.plan import Sum
from steelyard.export.sql import fields_of, sql_statements
from steelyard.export.sql_dialect import DIALECTS

NO_PLAN = {"LWNB", "AIWNB-L", "AODE", "WAODE"}
METHODS = [m.acronym for m in sy.methods() if m.acronym not in NO_PLAN]
# `make test-engines` takes 2,000 rows of each.
N_ROWS = int(os.environ.get("STEELYARD_MATRIX_ROWS", "400"))


@pytest.fixture(
    scope="module",
    params=[
        (method, missing, n_classes)
        for method in METHODS
        for missing in ("skip", "value", "impute")
        for n_classes in (2, 3, 7)
    ],
    ids=lambda case: "-".join(map(str, case)),
)
def case(request, fitted, hostile_rows):
    """A model, rows, and what it predicts of them."""
    clf = fitted(*request.param)
    X = hostile_rows(clf, N_ROWS, request.param[-1])
    return clf, X, clf.predict_proba(X), clf.predict(X)


def test_python(case):
    clf, X, proba, labels = case
    score = clf.scorer()
    rows = X.astype(object).to_dict("records")
    found = [list(score(row).values()) for row in rows]
    np.testing.assert_allclose(found, proba, rtol=0, atol=1e-12)
    assert [score.predict(row) for row in rows] == labels.tolist()


def cells_of(X):
    """Rows as plain Python objects, numbered; None for missing cells."""
    cells = X.astype(object).where(X.notna(), None)
    return [(i, *row) for i, row in enumerate(cells.to_numpy().tolist())]


def in_sums(case):
    """Return a case with what formats answer that add up, and count unknown cells.

    That is what ``predict_proba`` answers where there are none, and the sum otherwise.
    """
    clf, X, proba, labels = case
    if not export.plan_of(clf).counted():
        return case
    n_unknown = clf.model_.unknown_cells(clf._encode(X))
    by_sum = copy(clf).set_params(unknown="sum")
    rows = n_unknown > 0
    proba, labels = proba.copy(), labels.copy()
    proba[rows], labels[rows] = by_sum.predict_proba(X[rows]), by_sum.predict(X[rows])
    return clf, X, np.column_stack([proba, n_unknown]), labels


def refuse_weka(clf, write=export.to_sql):
    if clf.get_params()["numeric"] == "gaussian-weka":
        with pytest.raises(ParameterError, match="Weka's intervals"):
            write(clf)
        pytest.skip("refused")


def check(rows, proba, labels):
    rows = sorted(rows)
    assert len(rows) == len(labels)
    found = [row[2:] for row in rows]
    np.testing.assert_allclose(found, proba, rtol=0, atol=1e-12)
    assert [row[1] for row in rows] == labels.tolist()


TYPES = ["BIGINT", "TEXT", *["DOUBLE PRECISION"] * 3, "BOOLEAN", "BIGINT"]
TYPES += ["DOUBLE PRECISION"] * 2
TABLE = "'); DROP TABLE t; --"


def create(X):
    names = ["id", *(name.replace('"', '""') for name in X.columns)]
    columns = ", ".join(
        f'"{name}" {kind}' for name, kind in zip(names, TYPES, strict=True)
    )
    return f'CREATE TABLE "{TABLE}" ({columns})'


def test_sqlite(case):
    clf, X, proba, labels = in_sums(case)
    refuse_weka(clf)
    with sqlite3.connect(":memory:") as base:
        base.execute(create(X))
        marks = ", ".join("?" * len(TYPES))
        base.executemany(f'INSERT INTO "{TABLE}" VALUES ({marks})', cells_of(X))
        query = export.to_sql(clf, "sqlite", [TABLE], keep=["id"])
        check(base.execute(query).fetchall(), proba, labels)


@pytest.fixture(scope="session")
def duck():
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(config={"threads": 1}) as base:
        yield base


def test_duckdb(case, duck):
    clf, X, proba, labels = in_sums(case)
    refuse_weka(clf)
    duck.execute(f'DROP TABLE IF EXISTS "{TABLE}"')
    duck.execute(create(X))
    duck.register("numbered", X.reset_index(names="id"))
    duck.execute(f'INSERT INTO "{TABLE}" SELECT * FROM numbered')
    query = export.to_sql(clf, "duckdb", [TABLE], keep=["id"])
    check(duck.execute(query).fetchall(), proba, labels)


@pytest.mark.engines
def test_postgres(case, postgres):
    clf, X, proba, labels = in_sums(case)
    refuse_weka(clf)
    server, copy = postgres
    query = export.to_sql(clf, "postgres", [TABLE], keep=["id"])
    text = [f'DROP TABLE IF EXISTS "{TABLE}";', f"{create(X)};"]
    rows = server.execute("\n".join([*text, copy(TABLE, cells_of(X)), query]))
    found = [(int(i), label, *map(float, p)) for i, label, *p in rows]
    check(found, proba, labels)


@pytest.mark.engines
def test_mariadb(case, mariadb):
    clf, X, proba, labels = in_sums(case)
    refuse_weka(clf)
    server, insert = mariadb
    quoted = DIALECTS["mariadb"].identifier
    names = map(quoted, ["id", *X.columns])
    columns = ", ".join(map(" ".join, zip(names, TYPES, strict=True)))
    view = export.to_sql(clf, "mariadb", "t", keep=["id"], as_view="v")
    names = [f"p({c})" for c in clf.classes_]
    names += ["unknown_cells"] if export.plan_of(clf).counted() else []
    shares = ", ".join(map(quoted, names))
    text = ["DROP TABLE IF EXISTS t;", f"CREATE TABLE t ({columns});"]
    text += [insert("t", cells_of(X)), view]
    text.append(f"SELECT id, hex(prediction), {shares} FROM v;")
    rows = server.execute("\n".join(text))
    found = [
        (int(i), bytes.fromhex(label).decode(), *map(float, p)) for i, label, *p in rows
    ]
    check(found, proba, labels)


@pytest.mark.engines
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("dialect", "module"), [("clickhouse", "chdb"), ("spark", "pyspark")]
)
def test_clickhouse_and_spark(case, dialect, module):
    pytest.importorskip(module)
    clf, X, _, _ = case
    refuse_weka(clf)
    found = check_engine(clf, X, "sql", dialect=dialect)
    assert found.agrees, str(found)


@pytest.mark.engines
@pytest.mark.filterwarnings("ignore")
def test_functions_of_clickhouse(case, monkeypatch):
    pytest.importorskip("chdb")
    clf, X, proba, _ = case
    if proba.shape[1] != 3:
        pytest.skip("three classes are enough")
    refuse_weka(clf)
    ways = DIALECTS["clickhouse"]
    used = fields_of(export.plan_of(clf), ways, used=True)
    cells = ", ".join(ways.identifier(name) for name, _ in used)

    def statements(clf, _):
        text = sql_statements(clf, export.SQLOptions("clickhouse", as_function="f"))
        query = f"SELECT steelyard_row, untuple(f({cells})) FROM steelyard_sample"
        return [*text, query]

    monkeypatch.setattr("steelyard.export.check._statements", statements)
    found = check_engine(clf, X, "sql", dialect="clickhouse")
    assert found.agrees, str(found)


def test_node(case, run_node, tmp_path):
    clf, X, proba, labels = case
    (tmp_path / "model.js").write_text(export.to_javascript(clf), encoding="ascii")
    rows = X.astype(object).where(X.notna(), None).to_dict("records")
    code = (
        "const { score, predict } = require('./model.js');"
        "answer([data.map((row) => Object.values(score(row))), data.map(predict)]);"
    )
    found, said = run_node(code, rows)
    assert said == labels.tolist()
    # Objects in JavaScript have names that are numbers first.
    classes = sorted(clf.classes_.tolist(), key=lambda name: name != "0")
    order = [clf.classes_.tolist().index(name) for name in classes]
    np.testing.assert_allclose(found, proba[:, order], rtol=0, atol=1e-12)


def test_onnxruntime(case):
    runtime = pytest.importorskip("onnxruntime")
    clf, X, proba, labels = in_sums(case)
    refuse_weka(clf, export.to_onnx)
    # "" is a value of a column.
    model = export.to_onnx(clf, missing_text="(none)").SerializeToString()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(model, options)
    feed = onnx_feed(export.plan_of(clf), X, missing_text="(none)")
    said, found, *counts = session.run(None, feed)
    found = np.column_stack([found, *counts])
    np.testing.assert_allclose(found, proba, rtol=0, atol=1e-12)
    assert said.tolist() == labels.tolist()


@pytest.mark.engines
@pytest.mark.parametrize("kind", ["r", "h", "xlsx"])
def test_programs(case, kind, need_engine):
    clf, X, _, _ = case
    need_engine(kind)
    if kind == "xlsx" and not isinstance(export.plan_of(clf).root, Sum):
        pytest.skip("is not one sum")
    if kind == "xlsx":
        refuse_weka(clf, to_excel)
        X = X[: len(X) // 10]  # 0.03 s a row
    found = check_engine(clf, X, kind)
    assert found.agrees, str(found)


@pytest.mark.engines
def test_libreoffice(case, libreoffice, monkeypatch):
    server, module = libreoffice
    clf, X, _, _ = case
    if not isinstance(export.plan_of(clf).root, Sum):
        pytest.skip("is not one sum")
    refuse_weka(clf, to_excel)
    monkeypatch.setitem(ENGINES, "xlsx", ("LibreOffice", server.score))
    found = check_engine(clf, module.as_typed(clf, X), "xlsx")
    assert found.agrees, str(found)


@pytest.mark.engines
def test_jpmml(case):
    pytest.importorskip("jpmml_evaluator")
    clf, X, _, _ = case
    refuse_weka(clf, export.to_pmml)
    found = check_engine(clf, X, "pmml")
    assert found.agrees, str(found)
