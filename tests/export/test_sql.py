"""SQL: joins, options, names and texts that try to break out, sizes, refusals."""

import os
import sqlite3
import time
from copy import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard import export
from steelyard.exceptions import ParameterError
from steelyard.export import SQLOptions
from steelyard.export.check import check
from steelyard.export.sql import sql_statements
from steelyard.export.sql_dialect import DIALECTS
from steelyard.lab.data.datasets import load_dataset

duckdb = pytest.importorskip("duckdb")


def run_sqlite(clf, X, **options):
    """Score a frame in SQLite, and return the rows by name of column."""
    with sqlite3.connect(":memory:") as base:
        cells = X.astype(object).where(X.notna(), None)
        names = ", ".join('"{}"'.format(c.replace('"', '""')) for c in X.columns)
        base.execute(f"CREATE TABLE t ({names})")
        marks = ", ".join("?" * X.shape[1])
        base.executemany(f"INSERT INTO t VALUES ({marks})", cells.to_numpy().tolist())
        *before, query = sql_statements(clf, SQLOptions("sqlite", "t", **options))
        for statement in before:
            base.execute(statement)
        found = base.execute(query)
        names = [entry[0] for entry in found.description]
        return pd.DataFrame(found.fetchall(), columns=names)


def run_duckdb(clf, X, **options):
    with duckdb.connect(config={"threads": 1}) as base:
        base.register("t", X)
        found = None
        for statement in sql_statements(clf, SQLOptions("duckdb", "t", **options)):
            found = base.execute(statement)
        names = [entry[0] for entry in found.description]
        return pd.DataFrame(found.fetchall(), columns=names)


ENGINES = [run_sqlite, run_duckdb]


def many_values(n_values, n=3000, seed=0):
    """A column of text with many values, and one of numbers with many bins."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    code = np.where(rng.random(n) < 0.5, y, rng.integers(0, n_values, n))
    code[:n_values] = np.arange(min(n, n_values))
    X = pd.DataFrame(
        {
            "id": np.arange(n),
            "place": [f"place '{c}'" for c in code],
            "whole": code * 7,
            "x": rng.normal(size=n) + y,
        }
    )
    X.loc[::50, "place"] = None
    return X, np.array(["a", "b", "c"])[y]


@pytest.mark.parametrize("run", ENGINES)
@pytest.mark.parametrize("n_values", [10, 300, 2500])
@pytest.mark.parametrize("missing", ["skip", "value"])
def test_many_values_are_joined(run, n_values, missing, monkeypatch):
    for name in ("duckdb", "sqlite"):
        few = replace(DIALECTS[name], most_inline=1000)
        monkeypatch.setitem(DIALECTS, name, few)
    X, y = many_values(n_values)
    clf = sy.NaiveBayes(
        categorical_features=["place", "whole"],
        numeric=sy.EqualFrequencyDiscretizer(200),
        missing=missing,
    )
    clf.fit(X[["place", "whole", "x"]], y)
    X = pd.concat([X, X[:1].assign(place="nowhere", id=-1)])
    text = export.to_sql(clf, "duckdb")
    assert text.count("JOIN") == (1 if n_values == 10 else 3)
    assert text.count("CREATE TEMPORARY TABLE") == (2 if n_values == 2500 else 0)
    found = run(clf, X, keep=["id"]).set_index("id").loc[X["id"]]
    expected = clf.predict_proba(X[["place", "whole", "x"]])
    proba = found[["p(a)", "p(b)", "p(c)"]]
    np.testing.assert_allclose(proba, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("run", ENGINES)
@pytest.mark.parametrize("method", ["NB", "SHNB", "TAN"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_contributions_are_those_of_explanations(
    run, method, n_classes, fitted, hostile_table
):
    clf = fitted(method, "skip", n_classes)
    X, _ = hostile_table(30, n_classes, seed=3)
    X.insert(0, "id", range(30))
    found = run(clf, X, keep=["id"], contributions=True).sort_values("id")
    counted = ["unknown_cells"] if export.plan_of(clf).counted() else []
    if counted:
        clf = copy(clf).set_params(unknown="sum")
    local = clf.explain_local(X.drop(columns="id"))
    parts = local.contributions * clf.model_.link_scale
    names = local.attributes
    if n_classes == 2:
        columns = [f"evidence({name}, {clf.classes_[1]})" for name in names]
        expected = parts[:, :, 1] - parts[:, :, 0]
    else:
        columns = [f"evidence({n}, {c})" for n in names for c in clf.classes_]
        expected = parts.reshape(30, -1)
    assert list(found.columns[2 + n_classes :]) == [*counted, *columns]
    np.testing.assert_allclose(found[columns].astype(float), expected, atol=1e-12)
    proba = found.iloc[:, 2 : 2 + n_classes].astype(float)
    X = X.drop(columns="id")
    np.testing.assert_allclose(proba, clf.predict_proba(X), atol=1e-12)
    assert found["prediction"].tolist() == clf.predict(X).tolist()


@pytest.mark.parametrize("run", ENGINES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_without_exponentials(run, n_classes, fitted, hostile_table):
    clf = fitted("NB", "skip", n_classes)
    X, _ = hostile_table(30, n_classes, seed=3)
    X.insert(0, "id", range(30))
    assert "exp(" not in export.to_sql(clf, probabilities=False)
    found = run(clf, X, keep=["id"], probabilities=False).sort_values("id")
    X = X.drop(columns="id")
    assert found["prediction"].tolist() == clf.predict(X).tolist()
    scores = clf.predict_joint_log_proba(X)
    if n_classes == 2:
        scores = scores[:, 1:] - scores[:, :1]
    np.testing.assert_allclose(found.iloc[:, 2:].astype(float), scores, atol=1e-9)


def test_a_class_of_prior_0_has_no_score():
    X = pd.DataFrame({"a": ["u", "v", "u", "w"] * 5, "id": range(20)})
    clf = sy.NaiveBayes(prior=[0.5, 0.5, 0.0]).fit(X[["a"]], ["x", "y", "x", "z"] * 5)
    for run in ENGINES:
        found = run(clf, X, keep=["id"]).sort_values("id")
        assert (found["p(z)"] == 0).all()
        np.testing.assert_allclose(
            found[["p(x)", "p(y)"]], clf.predict_proba(X[["a"]])[:, :2], atol=1e-12
        )


@pytest.mark.parametrize("labels", [[0, 1], [False, True], ["0", "1"]])
@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
def test_classes_keep_their_types(labels, dialect):
    X = pd.DataFrame({"a": ["u", "v"] * 10})
    clf = sy.NaiveBayes().fit(X, labels * 10)
    assert check(clf, X, "sql", dialect=dialect).agrees


def test_generated_names_are_unlike_those_of_the_table():
    X = pd.DataFrame({"sy_0": ["u", "v"] * 10, "sy_1": [1.0, 2.0] * 10, "sy__": 0})
    clf = sy.NaiveBayes().fit(X[["sy_0", "sy_1"]], [0, 1] * 10)
    for run in ENGINES:
        found = run(clf, X, keep=["sy__"])
        assert sorted(found["prediction"]) == [0] * 10 + [1] * 10


# ------------------------------------------------------------------- breaking out


HOSTILE = "'); DROP TABLE t; --"
NASTY = [HOSTILE, '"; DROP TABLE t; --', "\\'; DROP TABLE t; --", "a''b", "/* x", "$$"]


@pytest.mark.parametrize("run", ENGINES)
@pytest.mark.parametrize("n_values", [6, 60])
def test_names_values_and_classes_cannot_break_out(run, n_values):
    values = (NASTY * 10)[:n_values]
    values = [f"{v}{'' if k < 6 else k}" for k, v in enumerate(values)]
    X = pd.DataFrame({name: values * 4 for name in NASTY})
    y = np.resize(NASTY[:3], len(X))
    clf = sy.NaiveBayes().fit(X, y)
    rows = X.assign(id=range(len(X)))
    found = run(clf, rows, keep=["id"]).sort_values("id")
    np.testing.assert_allclose(
        found.iloc[:, 2:].astype(float), clf.predict_proba(X), atol=1e-12
    )
    assert found["prediction"].tolist() == clf.predict(X).tolist()
    assert list(found.columns[2:]) == [f"p({c})" for c in clf.classes_]


def test_backslashes_cannot_break_out_of_postgres():
    X = pd.DataFrame({"a": ["\\'; DROP TABLE t; --", "b"] * 5})
    text = export.to_sql(sy.NaiveBayes().fit(X, [0, 1] * 5), "postgres")
    assert r"= E'\\''; DROP TABLE t; --'" in text


@pytest.mark.parametrize("value", ["a\0b", "\ud800"])
@pytest.mark.parametrize("dialect", ["sqlite", "duckdb", "postgres"])
def test_characters_that_sql_cannot_hold_are_refused(value, dialect):
    clf = sy.NaiveBayes().fit(np.array([["a"], [value]] * 5, object), [0, 1] * 5)
    with pytest.raises(ParameterError, match="SQL text cannot hold"):
        export.to_sql(clf, dialect)


# ---------------------------------------------------------------------- refusals


@pytest.fixture(scope="module")
def small():
    X = pd.DataFrame({"a": ["u", "v"] * 10, "A": [1.0, 2.0] * 10})
    return sy.NaiveBayes().fit(X, ["no", "yes"] * 10)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dialect": "my_sql"}, r"no dialect 'my_sql'. Did you mean 'mysql'.*duckdb"),
        ({"dialect": "sqlite"}, r"'a' and 'A' differ only in case"),
        ({"dialect": "duckdb"}, r"'a' and 'A' differ only in case"),
        ({"dialect": "postgres", "keep": ["i", "i"]}, r"'i' .* returned twice"),
        ({"dialect": "postgres", "keep": ["prediction"]}, r"returned twice"),
        ({"dialect": "postgres", "keep": ["ä" * 40]}, r"more than 63 bytes"),
        ({"dialect": "postgres", "keep": ["p(yes)"]}, r"'p\(yes\)' .* returned twice"),
        ({"dialect": "postgres", "keep": [""]}, r"has no name, and postgres takes"),
        ({"dialect": "postgres", "keep": [3]}, r"keep must be names.*\[3\]"),
        ({"dialect": "postgres", "table": ""}, r"table must be a name.*Got ''"),
        ({"dialect": "postgres", "table": []}, r"table must be a name.*Got \[\]"),
        ({"dialect": "postgres", "as_view": True}, r"as_view must be a name.*True"),
    ],
)
def test_wrong_options_are_refused(options, message, small):
    with pytest.raises(ParameterError, match=message):
        export.to_sql(small, **options)


def test_tables_have_a_limited_number_of_columns(weather_model, monkeypatch):
    clf, _ = weather_model
    for most, keep in ((104, []), (105, ["id"])):
        dialect = replace(DIALECTS["sqlite"], max_columns=most)
        monkeypatch.setitem(DIALECTS, "sqlite", dialect)
        export.to_sql(clf, "sqlite", keep=keep)
        with pytest.raises(ParameterError, match=f"4 columns, .* at most {most}"):
            export.to_sql(clf, "sqlite", keep=[*keep, "more"])


@pytest.mark.parametrize("run", ENGINES)
@pytest.mark.parametrize("form", ["elkan", "adaboost-m1"])
def test_votes(run, form):
    X, y = many_values(20, n=200)
    y = np.where(y == "a", "yes", "no")
    clf = sy.method("BNB", form=form, rounds=4).fit(X.drop(columns="id"), y)
    assert len(clf.votes_) > 1
    found = run(clf, X, keep=["id"]).sort_values("id")
    expected = clf.predict_proba(X.drop(columns="id"))
    proba = found[["p(no)", "p(yes)"]].astype(float)
    np.testing.assert_allclose(proba, expected, atol=1e-12)


def test_a_scale_of_one_is_not_written(weather_model):
    clf, _ = weather_model
    assert "1.0e0 * " not in export.to_sql(clf, probabilities=False)


def test_models_that_are_not_one_sum_have_no_contributions(fitted):
    clf = fitted("RNB", "skip", 3)
    for option in ({"contributions": True}, {"probabilities": False}):
        with pytest.raises(ParameterError, match=r"not one sum"):
            export.to_sql(clf, **option)


# ------------------------------------------------------------- tables that do not fit


@pytest.fixture(scope="module")
def weather_model():
    X = pd.DataFrame(
        {
            "sky": ["sun", "rain"] * 10,
            "degrees": [21.0, 12.0] * 10,
            "dry": [True, False] * 10,
            "code": [7, 30] * 10,
        }
    )
    clf = sy.NaiveBayes(categorical_features=["sky", "dry", "code"])
    return clf.fit(X, ["play", "stay"] * 10), X[:2]


@pytest.mark.parametrize("run", ENGINES)
def test_a_column_that_the_table_lacks_is_an_error(run, weather_model):
    clf, X = weather_model
    with pytest.raises((sqlite3.OperationalError, duckdb.BinderException), match="deg"):
        run(clf, X.rename(columns={"degrees": "temp"}))
    with pytest.raises((sqlite3.OperationalError, duckdb.BinderException), match="ky"):
        run(clf, X, keep=["ky"])


@pytest.mark.parametrize("column", ["degrees", "dry", "code"])
@pytest.mark.parametrize("text", ["warm", "NA", "?", "12 g", "1e", b"12"])
def test_text_in_a_column_of_numbers_is_an_error_in_sqlite(column, text, weather_model):
    clf, X = weather_model
    X = X.astype(object)
    X.loc[1, column] = text
    said = r"not a number in column {}: {}".format(
        column, text.decode() if isinstance(text, bytes) else text.replace("?", r"\?")
    )
    with pytest.raises(sqlite3.OperationalError, match=said):
        run_sqlite(clf, X)
    if isinstance(text, str):
        with pytest.raises(sy.exceptions.ColumnError):
            clf.scorer()(X.loc[1].to_dict())


def test_text_that_states_a_number_is_one_in_sqlite(weather_model):
    clf, X = weather_model
    expected = run_sqlite(clf, X)
    # As a file is imported: all cells are text.
    found = run_sqlite(clf, X.astype(str))
    assert found.equals(expected)
    named = zip(clf.classes_, clf.predict_proba(X).T, strict=True)
    for label, p in named:
        np.testing.assert_allclose(found[f"p({label})"], p)
    gaps = X.astype(object)
    gaps["degrees"], gaps["dry"], gaps["code"] = "", "", ""
    alone = run_sqlite(clf, gaps)
    score = clf.scorer()
    for sky, p in zip(X["sky"], alone["p(play)"], strict=True):
        assert p == pytest.approx(score({"sky": sky})["play"])


def test_a_column_without_a_name():
    X = pd.DataFrame({"": ["u", "v"] * 10})
    clf = sy.NaiveBayes().fit(X, ["no", "yes"] * 10)
    assert run_sqlite(clf, X)["prediction"].tolist() == ["no", "yes"] * 10
    for dialect in ("duckdb", "postgres"):
        with pytest.raises(ParameterError, match=f"no name, and {dialect} takes none"):
            export.to_sql(clf, dialect)


@pytest.mark.parametrize("run", ENGINES)
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_an_exact_tie_goes_to_the_larger_prior(n_classes, first, run):
    # Prior and evidence of v are the same two numbers, the other way round.
    prior = np.full(n_classes, 0.25)
    prior[first] = 1.0 - 0.25 * (n_classes - 1)
    others = 5 if n_classes == 2 else 3
    cells = [
        "vwwwww" if c == first else "v" * others + "w" * (6 - others)
        for c in range(n_classes)
    ]
    X = pd.DataFrame({"x": list("".join(cells))})
    y = np.repeat(np.array(["a", "b", "c"])[:n_classes], 6)
    clf = sy.NaiveBayes(prior=prior, smoothing="laplace").fit(X, y)
    joint = clf.predict_joint_log_proba(X)
    tied = joint[:, first] == np.delete(joint, first, axis=1).max(axis=1)
    assert tied.any()
    expected = clf.predict(X)
    assert (expected[tied] == "abc"[first]).all()
    assert run(clf, X)["prediction"].tolist() == expected.tolist()
    score = clf.scorer()
    assert [score.predict(row) for row in X.to_dict("records")] == expected.tolist()


# -------------------------------------------------------------------------- sizes


def test_three_thousand_columns():
    rng = np.random.default_rng(0)
    codes, y = rng.integers(0, 3, (20, 3000)), np.arange(20) % 2
    X = pd.DataFrame(codes.astype(str), columns=[f"c{j}" for j in range(3000)])
    X = X.astype(object).copy()
    clf = sy.NaiveBayes().fit(X, y)
    rows = pd.concat([X, pd.Series(range(20), name="id")], axis=1)
    found = run_duckdb(clf, rows, keep=["id"]).sort_values("id")
    np.testing.assert_allclose(found.iloc[:, 2:], clf.predict_proba(X), atol=1e-12)
    for dialect in ("sqlite", "postgres"):
        with pytest.raises(ParameterError, match="reads 3000 columns"):
            export.to_sql(clf, dialect)
    few = X.columns[:1500]
    clf = sy.NaiveBayes().fit(X[few], y)
    found = run_sqlite(clf, rows[[*few, "id"]], keep=["id"])
    found = found.sort_values("id").iloc[:, 2:].astype(float)
    np.testing.assert_allclose(found, clf.predict_proba(X[few]), atol=1e-12)


@pytest.mark.filterwarnings("ignore::steelyard.exceptions.IdentifierWarning")
def test_a_hundred_thousand_values():
    n = 100_000
    X = pd.DataFrame({"key": [f"k{i}" for i in range(n)]})
    clf = sy.NaiveBayes().fit(X, np.arange(n) % 2)
    start = time.process_time()
    rows = X[::97].assign(id=range(len(X[::97])))
    for run in ENGINES:
        found = run(clf, rows, keep=["id"]).sort_values("id").iloc[:, 2:]
        expected = clf.predict_proba(rows[["key"]])
        np.testing.assert_allclose(found.astype(float), expected, atol=1e-12)
    assert time.process_time() - start < 60


def test_two_hundred_classes():
    y = np.arange(2000) % 200
    X = pd.DataFrame({"a": (y % 7).astype(str)})
    clf = sy.NaiveBayes().fit(X, y)
    for run in ENGINES:
        found = run(clf, X[:50].assign(id=range(50)), keep=["id"]).sort_values("id")
        proba = found.iloc[:, 2:].astype(float)
        np.testing.assert_allclose(proba, clf.predict_proba(X[:50]), atol=1e-12)


@pytest.mark.engines
@pytest.mark.skipif(
    not os.environ.get("STEELYARD_DATA"),
    reason="STEELYARD_DATA names no folder of data sets",
)
def test_postgres_scores_26_classes_with_interactions_as_it_is_set_up(postgres):
    # With its default jit = on this takes minutes and gigabytes, and does not end.
    server, copy = postgres
    letters = load_dataset("letter")
    clf = sy.ShrinkageNB().fit(letters.table, letters.target)
    X = pd.concat([letters.table] * 10, ignore_index=True)
    columns = ", ".join(f'"{name}" float8' for name in X.columns)
    rows = ((i, *row) for i, row in enumerate(X.to_numpy().tolist()))
    text = [
        "SET statement_timeout = '600s';",
        "SELECT 1 / (current_setting('jit') = 'on')::int;",
        f"CREATE TABLE letters (id bigint, {columns});",
        copy("letters", rows),
        export.to_sql(clf, "postgres", "letters", keep=["id"]),
    ]
    found = server.execute("\n".join(text))[-len(X) :]
    found = sorted((int(i), label, list(map(float, p))) for i, label, *p in found)
    some = slice(0, len(letters))
    expected = clf.predict_proba(letters.table)
    p = np.array([row[2] for row in found])
    np.testing.assert_allclose(p[some], expected, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(p, np.tile(p[some], (10, 1)))
    labels = np.array([row[1] for row in found])[some]
    assert (labels == clf.predict(letters.table)).all()


@pytest.mark.filterwarnings("ignore::steelyard.exceptions.IdentifierWarning")
def test_models_of_a_million_numbers_are_refused():
    n = 20_000
    X = pd.DataFrame({"key": [f"k{i}" for i in range(n)]})
    clf = sy.NaiveBayes().fit(X, np.arange(n) % 60)
    with pytest.raises(ParameterError, match=r"1,200,060 numbers.*ONNX"):
        export.to_sql(clf)
