"""Drift as SQL: the numbers of ``clf.drift``, in databases."""

import sqlite3
from contextlib import closing

import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard.exceptions import ParameterError
from steelyard.export import DIALECTS
from steelyard.monitoring import drift_sql

duckdb = pytest.importorskip("duckdb")


def people(n=900, seed=0, shift=0.0):
    """Return numbers, categories, booleans, dates, missing cells, labels, months."""
    rng = np.random.default_rng(seed)
    towns = np.array(["Ur", "it's", "Red", "red", *(f"t{k}" for k in range(30))])
    X = pd.DataFrame(
        {
            "age": rng.normal(50 + shift, 12, n).round(),
            "size of it": rng.normal(shift / 5, 1, n),
            "town": towns[np.minimum(rng.geometric(0.15, n), 33)].astype(object),
            "is new": rng.random(n) < 0.3 + shift / 50,
            "grade": rng.integers(0, 6, n),
            "when": pd.Timestamp("2024-01-01")
            + pd.to_timedelta(rng.integers(0, 5_000_000, n), "s"),
        }
    )
    X.loc[rng.random(n) < 0.1 + shift / 90, "size of it"] = np.nan
    X["town"] = X["town"].where(rng.random(n) > 0.05, None)
    y = np.where(X["age"] + 8 * (X["grade"] > 2) + rng.normal(0, 5, n) > 52, "a", "b")
    return X, y


def moved(seed=1):
    """Return later rows in two months, with values that training did not have."""
    X = pd.concat([people(700, seed)[0], people(500, seed + 1, 6.0)[0]])
    X = X.reset_index(drop=True).assign(month=["2024-05"] * 700 + ["2024-06"] * 500)
    X.loc[X.index[::17], "town"] = "nowhere"
    X.loc[X.index[::31], "grade"] = 9
    X.loc[X.index[::41], "age"] = 300.0
    return X


MODELS = {
    "default": {},
    "value": {"method": "NB", "missing": "value"},
    "impute": {"method": "NB", "missing": "impute"},
    "gaussian": {"method": "NB", "numeric": "gaussian"},
}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    settings = dict(MODELS[request.param])
    method = settings.pop("method", "SHNB")
    if method == "SHNB":
        settings |= {"interactions": None, "strength": (2.0, 8.0, 2.0)}
    X, y = people()
    return (
        sy.method(method, categorical_features=["town", "is new", "grade"])
        .set_params(**settings)
        .fit(X, y)
    )


def expected(clf, X):
    """What drift says, as rows of the query."""
    found = clf.drift(X.drop(columns="month"), by=X["month"])
    for period in found.periods:
        for column in period.columns:
            if not column.is_score and column.missing.value == column.missing.value:
                psi = None if column.compared is None else column.compared.psi
                shares = (column.missing, column.unseen, column.beyond)
                yield (
                    (period.name, column.name),
                    [period.rows, psi, *(of.value for of in shares)],
                )


def compare(model, X, found):
    """Compare rows of the query with what drift says."""
    rows, wanted = {tuple(row[:2]): row[2:] for row in found}, dict(expected(model, X))
    assert rows.keys() == wanted.keys() and len(rows) == len(found)
    for key, numbers in wanted.items():
        assert (rows[key][1] is None) == (numbers[1] is None), key
        got, want = ([x or 0.0 for x in of] for of in (rows[key], numbers))
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-12, err_msg=str(key))
    assert any(numbers[1] and numbers[1] > 0.1 for numbers in wanted.values())


@pytest.mark.engines
def test_postgres_has_the_numbers_of_drift(model, postgres):
    server, copy = postgres
    X = moved()
    kinds = {"f": "float8", "b": "boolean", "i": "bigint", "M": "timestamp"}
    columns = ", ".join(
        f'"{name}" {kinds.get(cells.dtype.kind, "text")}' for name, cells in X.items()
    )
    plain = X.astype({"when": str}).astype(object)
    rows = plain.where(X.notna(), None).to_numpy().tolist()
    table = [f'DROP TABLE IF EXISTS "new rows"; CREATE TABLE "new rows" ({columns});']
    query = drift_sql(model, "postgres", "new rows", by="month")
    found = server.execute("\n".join([*table, copy("new rows", rows), query]))
    numbers = ([float(x) if x else None for x in row[2:]] for row in found)
    compare(model, X, [[*row[:2], *of] for row, of in zip(found, numbers, strict=True)])


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_a_query_has_the_numbers_of_drift(model, dialect):
    X = moved()
    query = drift_sql(model, dialect, "new rows", by="month")
    if dialect == "duckdb":
        with duckdb.connect() as base:
            base.register("new rows", X)
            found = base.execute(query).fetchall()
    else:
        with closing(sqlite3.connect(":memory:")) as base:
            X.astype({"when": str}).to_sql("new rows", base)
            found = base.execute(query).fetchall()
    compare(model, X, found)


def test_all_rows_are_one_period_without_a_column_of_periods(model):
    X = moved()
    with duckdb.connect() as base:
        base.register("data", X)
        found = base.execute(drift_sql(model)).fetchall()
    assert {row[0] for row in found} == {"all rows"} and {row[2] for row in found} == {
        1200
    }


@pytest.mark.parametrize("dialect", DIALECTS)
def test_queries_of_all_databases_parse(model, dialect):
    sqlglot = pytest.importorskip("sqlglot")
    names = {"sqlserver": "tsql", "athena": "trino"}
    text = drift_sql(model, dialect, "shop.days", by="month")
    if dialect in ("oracle", "mariadb"):
        pytest.skip("the parser does not know numbers such as 1.5d, or WITH VALUES")
    (tree,) = sqlglot.parse(text, dialect=names.get(dialect, dialect))
    assert tree.key != "command"


def test_what_a_database_cannot_run_is_refused():
    X = pd.DataFrame(np.arange(400 * 200.0).reshape(400, 200) % 13)
    clf = sy.NaiveBayes().fit(X, np.arange(400) % 2)
    with pytest.raises(ParameterError, match=r"adds up \d+ numbers of each period"):
        drift_sql(clf, "sqlserver")
    with pytest.raises(ParameterError, match="athena takes at most"):
        drift_sql(clf, "athena")
