"""SQL of all databases: what parses, forms of a query, names, lines, refusals."""

import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard import export
from steelyard.exceptions import ParameterError
from steelyard.export.check import ENGINES, check
from steelyard.export.sql import sql_statements
from steelyard.export.sql_dialect import DIALECTS, dialect_of

PARSED = {name: name for name in DIALECTS if name != "mariadb"}
PARSED["sqlserver"] = "tsql"
PARSED["athena"] = "trino"
FUNCTIONS = [name for name, dialect in DIALECTS.items() if dialect.function]


def many_classes(n_classes, n=600, seed=0):
    """Text with quotes, backslashes and braces, numbers, booleans, whole numbers."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    texts = np.array(["it's", "back\\slash", "{{ x }}", "a\nb", "é", "Red", "red"])
    X = pd.DataFrame(
        {
            "the colour's name": texts[(y + rng.integers(0, 3, n)) % 7].astype(object),
            "size": np.round(y + rng.normal(size=n), 2),
            "is new": rng.random(n) < 0.3 + 0.4 * (y % 2),
            "code": rng.integers(0, 30, n) + y,
        }
    )
    X.loc[::11, "size"] = np.nan
    return X, np.array([f"class '{c}'" for c in range(n_classes)])[y]


@pytest.fixture(scope="module", params=[2, 3, 12])
def model(request):
    X, y = many_classes(request.param)
    return sy.NaiveBayes(categorical_features=[0, 2, 3]).fit(X, y), X


@pytest.mark.parametrize("dialect", DIALECTS)
def test_queries_of_all_dialects_have_short_lines_and_names_of_columns(dialect, model):
    clf, _ = model
    text = export.to_sql(clf, dialect, "shop.goods", keep=["id"])
    assert max(map(len, text.splitlines())) < 120
    for name in ("the_colour_s_name", "size", "is_new", "code"):
        assert f"_{name}" in text
    assert f"For {DIALECTS[dialect].engine}." in text.splitlines()[0]


def test_the_table_of_databases_in_the_guide_is_up_to_date(tool):
    module = tool("dialects")
    page = module.PAGE.read_text(encoding="utf-8")
    assert module.filled(page) == page, "run `python tools/dialects.py`"
    # What is said to be run is run: as an engine of a check, or by a server.
    assert {*module.RUN} == {*ENGINES} & {*DIALECTS} | {"postgres", "mariadb"}


@pytest.mark.parametrize("dialect", PARSED)
@pytest.mark.parametrize("form", [{}, {"as_view": "v"}, {"as_function": "f"}])
def test_queries_of_all_dialects_parse(dialect, form, model):
    sqlglot = pytest.importorskip("sqlglot")
    if "as_function" in form and dialect not in FUNCTIONS:
        pytest.skip("the database has no such functions")
    if "as_function" in form and dialect == "redshift" and len(model[0].classes_) > 2:
        pytest.skip("functions are of two classes")
    text = export.to_sql(model[0], dialect, "shop.goods", **form)
    if dialect == "oracle":
        text = re.sub(r"(?<=\d)d\b", "", text)  # 1.5d, which the parser does not know
    text = text.replace("(VARCHAR(65535)", "(VARCHAR")  # nor parameters without names
    found = sqlglot.parse(text, dialect=PARSED[dialect])
    unknown = [tree.sql()[:200] for tree in found if tree.key == "command"]
    assert not unknown or dialect in ("snowflake", "spark", "postgres", "clickhouse")


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_many_classes_are_joined_and_agree(dialect, model):
    clf, X = model
    assert check(clf, X, "sql", dialect=dialect).agrees
    n_joins = export.to_sql(clf, dialect).count("LEFT JOIN")
    assert n_joins == {2: 1, 3: 1, 12: 3}[len(clf.classes_)]


def test_fewer_decimals_are_shorter_and_nearly_the_same(model):
    clf, X = model
    short = check(clf, X, "sql", decimals=10)
    assert short.difference < 1e-9 and not short.n_labels
    assert len(export.to_sql(clf, decimals=10)) < len(export.to_sql(clf))


def test_many_joins_are_put_into_stages(monkeypatch):
    rng = np.random.default_rng(0)
    y = np.arange(400) % 5
    columns = {f"c{j}": (y + rng.integers(0, 9, 400)).astype(str) for j in range(40)}
    X = pd.DataFrame(columns).astype(object)
    monkeypatch.setattr("steelyard.export.sql_query._MAX_TESTS", 10)
    clf = sy.NaiveBayes().fit(X, y)
    text = export.to_sql(clf, "sqlite")
    assert text.count("LEFT JOIN") == 40
    assert max(stage.count("LEFT JOIN") for stage in text.split("_stage")) <= 16
    for dialect in ("duckdb", "sqlite"):
        assert check(clf, X, "sql", dialect=dialect).agrees


# ------------------------------------------------------------------------------- forms


def test_a_view_returns_what_the_query_does(model):
    clf, X = model
    with sqlite3.connect(":memory:") as base:
        X.to_sql("goods", base, index_label="id")
        options = export.SQLOptions("sqlite", "goods", ["id"], as_view="v")
        for statement in sql_statements(clf, options):
            base.execute(statement)
        query = export.to_sql(clf, "sqlite", "goods", keep=["id"])
        assert base.execute("SELECT * FROM v").fetchall() == (
            base.execute(query).fetchall()
        )


def test_a_function_scores_single_rows_in_duckdb(model):
    duckdb = pytest.importorskip("duckdb")
    clf, X = model
    with duckdb.connect() as base:
        base.execute(export.to_sql(clf, as_function="score"))
        base.register("goods", X[:5].reset_index(names="id"))
        cells = ", ".join(f'g."{name}"' for name in X.columns)
        found = base.execute(f"SELECT g.id, s.* FROM goods g, score({cells}) s")
        rows = [row[2:] for row in sorted(found.fetchall())]
    np.testing.assert_allclose(rows, clf.predict_proba(X[:5]), atol=1e-12)


@pytest.mark.parametrize("dialect", FUNCTIONS)
def test_parameters_of_functions_are_names_of_columns(dialect):
    X = pd.DataFrame({name: ["u", "v"] * 10 for name in ("select", "is new", "AGE")})
    X["prediction"], X["2nd"] = [1.0, 2.0] * 10, [3.0, 4.0] * 10
    clf = sy.NaiveBayes().fit(X, ["no", "yes"] * 10)
    text = export.to_sql(clf, dialect, as_function="score")
    names = ["select", "is_new", "AGE", "sy_p3_prediction", "sy_p4_2nd"]
    head = text.partition("FUNCTION" if "FUNCTION" in text else "MACRO")[2]
    if dialect == "redshift":  # parameters have numbers there
        names, write = list(X), "-- ${1} is {0!r}\n".format
    else:
        write = DIALECTS[dialect].parameter_of
    places = [head.index(write(name, i)) for i, name in enumerate(names, 1)]
    assert places == sorted(places)
    if dialect == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        with duckdb.connect() as base:
            base.execute(text)
            given = "\"select\" := 'u', is_new := 'v', age := 'u'"
            given += ", sy_p3_prediction := 1.0, sy_p4_2nd := 3.0"
            found = base.execute(f"SELECT * FROM score({given})").fetchone()
        row = dict(zip(X.columns, ("u", "v", "u", 1.0, 3.0), strict=True))
        np.testing.assert_allclose(found[1:], [*clf.scorer()(row).values()], atol=1e-12)


def test_a_function_of_bigquery_returns_a_structure(model):
    text = export.to_sql(model[0], "bigquery", as_function="shop.score")
    # A table function cannot be called with columns of a table.
    assert "CREATE OR REPLACE FUNCTION `shop`.`score`(" in text
    assert "AS ((\nSELECT AS STRUCT * FROM (" in text and "TABLE FUNCTION" not in text


def test_a_function_of_clickhouse_is_an_expression_without_joins(model):
    text = export.to_sql(model[0], "clickhouse", as_function="score")
    assert "AS (`the_colour_s_name`, `size`, `is_new`, `code`) -> CAST(" in text
    assert "Tuple(`prediction` Nullable(String), `p(class " in text
    assert "JOIN" not in text and " FROM " not in text


@pytest.mark.engines
def test_a_function_of_redshift_runs_in_postgres(postgres):
    server, copy = postgres
    X, y = many_classes(2)
    clf = sy.ShrinkageNB(categorical_features=[0, 2, 3], interactions=[(1, 3)])
    X, clf = X.astype({"code": object}), clf.fit(X, y)
    X.loc[5::7, "the colour's name"], X.loc[6::9, "code"] = "never", None
    text = export.to_sql(clf, "redshift", as_function="f_score")
    text = text.replace("VARCHAR(65535)", "text")
    columns = '"the colour\'s name" text, size float8, "is new" boolean, code bigint'
    cells = X.where(X.notna(), None)
    found = server.execute(
        f"DROP TABLE IF EXISTS t; CREATE TABLE t (id bigint, {columns});\n"
        f"{copy('t', list(cells.itertuples(name=None)))}\n"
        "SET standard_conforming_strings = off; SET escape_string_warning = off;\n"
        f"{text}\n"
        'SELECT f_score("the colour\'s name", size, "is new", code) FROM t ORDER BY id;'
    )
    expected = clf.set_params(unknown="sum").predict_proba(X)[:, 1]
    np.testing.assert_allclose([float(p) for (p,) in found], expected, atol=1e-12)


def test_a_function_of_redshift_is_one_number(model):
    clf, _ = model
    if len(clf.classes_) == 2:
        text = export.to_sql(clf, "redshift", as_function="shop.f_score")
        head = 'FUNCTION "shop"."f_score"(VARCHAR(65535), float8, BOOLEAN, BIGINT)\n'
        assert head in text and " FROM " not in text
        refused = {"contributions": True}
    else:
        refused = {}
    with pytest.raises(ParameterError, match=r"returns one number, .*Use as_view"):
        export.to_sql(clf, "redshift", as_function="f_score", **refused)


@pytest.mark.engines
def test_functions_and_views_run_in_postgres(model, postgres):
    clf, _ = model
    server, _ = postgres
    row = {"the colour's name": "it's", "size": 1.5, "is new": True, "code": 7}
    text = export.to_sql(clf, "postgres", as_function="score")
    call = "SELECT * FROM score(code => 7, size => 1.5, is_new => true, "
    call += "the_colour_s_name => 'it''s');"
    label, *p = server.execute(f"DROP FUNCTION IF EXISTS score;\n{text}\n{call}")[0]
    np.testing.assert_allclose(
        list(map(float, p)), list(clf.scorer()(row).values()), atol=1e-12
    )
    assert label == clf.scorer().predict(row)


@pytest.mark.parametrize("table", ["goods", "shop.goods"])
def test_a_model_of_dbt_is_a_template_of_the_query(table, model):
    jinja2 = pytest.importorskip("jinja2")
    duckdb = pytest.importorskip("duckdb")
    clf, X = model
    text = export.to_sql(clf, table=table, keep=["id"], dbt=True)
    assert "materialized='view'" in text
    tables = {"ref": lambda name: name, "source": lambda of, name: name}
    query = jinja2.Template(text).render(config=lambda **_: "", **tables)
    with duckdb.connect() as base:
        base.register("goods", X.reset_index(names="id"))
        found = base.execute(query).df().sort_values("id").iloc[:, 2:]
    np.testing.assert_allclose(found, clf.predict_proba(X), atol=1e-12)


def test_settings_of_a_database_are_hooks_in_dbt(model):
    text = export.to_sql(model[0], "postgres", dbt=True)
    assert "pre_hook=['SET jit = off']" in text


# ---------------------------------------------------------------------- names and text


def test_names_of_results_have_no_characters_that_a_database_refuses(model):
    clf, _ = model
    spark = export.to_sql(clf, "spark", contributions=True)
    assert "`p_class_'0'`" in spark and "`evidence_size" in spark
    assert "`p_class '0'`" in export.to_sql(clf, "bigquery")
    y = np.array(["a(b", "a,b"] * 10)
    odd = sy.NaiveBayes().fit(pd.DataFrame({"x": ["u", "v"] * 10}), y)
    assert "AS `p_a_b_`" in export.to_sql(odd, "bigquery")


def test_text_is_compared_byte_by_byte_where_databases_fold_it(model):
    server = export.to_sql(model[0], "sqlserver")
    assert "COLLATE Latin1_General_100_BIN2" in server and "|'" in server
    assert "AS BINARY)" in export.to_sql(model[0], "mysql")


def test_sqlite_reads_every_number_as_it_is():
    rng = np.random.default_rng(0)
    drawn = rng.normal(size=20_000) * 10.0 ** rng.integers(-5, 8, 20_000)
    numbers = [1.593183548362891, -0.00040262362, 0.0, 5e-324, *drawn.tolist()]
    numbers += [float(f"{x:.6g}") for x in numbers]
    written = [DIALECTS["sqlite"].number(x) for x in numbers]
    with closing(sqlite3.connect(":memory:")) as base:
        found = [base.execute(f"SELECT {text}").fetchone()[0] for text in written]
    assert found == numbers
    assert written[numbers.index(0.0)] == "0.0" and max(map(len, written)) < 400


def test_the_first_row_of_a_union_says_the_types():
    X, y = many_classes(12)
    text = export.to_sql(
        sy.NaiveBayes(categorical_features=[0, 2, 3]).fit(X, y), "redshift"
    )
    assert " AS VARCHAR(65535)) AS sy_k" in text and " AS float8) AS sy_n11" in text


@pytest.mark.parametrize("dialect", ["redshift", "oracle"])
def test_a_union_of_many_values_is_no_deep_tree(dialect):
    sqlglot = pytest.importorskip("sqlglot")
    X = pd.DataFrame({"city": [f"c{i:04}" for i in range(3_000)] * 2})
    y = np.where(np.arange(6_000) % 7 < 3, "a", "b")
    text = export.to_sql(sy.NaiveBayes(keep_identifiers=True).fit(X, y), dialect)
    table = re.search(r"LEFT JOIN (\(.*\)) sy_\w+\s+ON", text, re.DOTALL)[1]
    assert table.count("UNION ALL") == 2_999
    (tree,) = sqlglot.parse(re.sub(r"(?<=\d)d\b", "", table), dialect=PARSED[dialect])
    depth, level = 0, [tree]
    while level := [child for node in level for child in node.iter_expressions()]:
        depth += 1
    assert depth < 200
    # Rows are what they were: DuckDB reads them as Redshift does.
    if dialect == "redshift":
        duckdb = pytest.importorskip("duckdb")
        rows = duckdb.sql(f"SELECT sy_k FROM {table.replace('(MAX)', '')} t").fetchall()
        assert sorted(rows) == sorted({(f"{cell}|",) for cell in X["city"]})


def test_escapes(model):
    written = {
        "duckdb": "'it''s'",
        "spark": r"'it\'s'",
        "bigquery": r"'a\nb'",
        "mysql": r"'back\\slash'",
        "postgres": r"E'back\\slash'",
        "oracle": r"'back\slash'",
        "redshift": r"'back\\slash|'",
    }
    for dialect, text in written.items():
        assert text in export.to_sql(model[0], dialect), dialect


# ---------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"dialect": "snowflakes"},
            r"no dialect 'snowflakes'. Did you mean 'snowflake",
        ),
        ({"dialect": "mysql", "as_function": "f"}, r"mysql has no functions .*duckdb"),
        ({"as_view": "v", "dbt": True}, r"three forms of a query: choose one"),
        ({"as_function": "f", "keep": ["id"]}, r"leave out `keep`"),
        ({"decimals": 0}, r"decimals must be a whole number from 1 to 17, got 0"),
    ],
)
def test_wrong_forms_are_refused(options, message, model):
    with pytest.raises(ParameterError, match=message):
        export.to_sql(model[0], **options)


def test_other_names_of_databases_are_known():
    assert dialect_of("databricks").name == "spark"
    assert dialect_of("mssql").name == "sqlserver"


def test_what_a_database_cannot_distinguish_is_refused():
    X = pd.DataFrame(
        {"x": ["", "v"] * 10, 'a "b"': ["u", "v"] * 10, "`": [1.0, 2] * 10}
    )
    clf = sy.NaiveBayes().fit(X[["x"]], ["no", "yes"] * 10)
    with pytest.raises(ParameterError, match=r"'' is a value .* oracle takes it for"):
        export.to_sql(clf, "oracle")
    clf = sy.NaiveBayes().fit(X[['a "b"', "`"]], ["no", "yes"] * 10)
    for dialect in ("oracle", "bigquery"):
        with pytest.raises(ParameterError, match=r"which names in .* cannot have"):
            export.to_sql(clf, dialect)
    X = pd.DataFrame({"x": [2**60, 2**60 + 1] * 10})
    clf = sy.NaiveBayes(categorical_features=[0]).fit(X, ["no", "yes"] * 10)
    with pytest.raises(ParameterError, match=r"clickhouse takes numbers as doubles"):
        export.to_sql(clf, "clickhouse")
    X = pd.DataFrame({"x": ["$$", "v"] * 10})
    clf = sy.NaiveBayes().fit(X, ["no", "yes"] * 10)
    with pytest.raises(ParameterError, match=r"holds \$\$"):
        export.to_sql(clf, "snowflake", as_function="f")


@pytest.mark.parametrize("dialect", ["mysql", "mariadb"])
def test_names_with_emoji_are_refused_where_a_database_does(dialect):
    X = pd.DataFrame({"x": ["u", "v"] * 10})
    clf = sy.NaiveBayes().fit(X, ["sad", "\N{GRINNING FACE}"] * 10)
    with pytest.raises(ParameterError, match=r"beyond U\+FFFF.*Rename the column or"):
        export.to_sql(clf, dialect)
    assert "p(\N{GRINNING FACE})" in export.to_sql(clf, "postgres")


@pytest.mark.parametrize("dialect", ["athena", "bigquery", "redshift"])
def test_statements_that_are_too_long_for_a_database_are_refused(dialect, monkeypatch):
    X, y = many_classes(26, 3000)
    X["many"] = np.char.add("value number ", (np.arange(3000) % 600).astype(str))
    clf = sy.NaiveBayes(categorical_features=[0, 2, 3, 4]).fit(X, y)
    assert len(export.to_sql(clf, "trino").encode()) > 2**18
    if dialect != "athena":  # as short, for a model that is quickly fitted
        assert DIALECTS[dialect].max_bytes > 2**18
        short = replace(DIALECTS[dialect], max_bytes=2**18)
        monkeypatch.setitem(DIALECTS, dialect, short)
    for form in ({}, {"as_view": "v"}, {"dbt": True}):
        with pytest.raises(
            ParameterError, match=rf"{dialect} takes at most 262,144.*deci"
        ):
            export.to_sql(clf, dialect, **form)
    head = f"For {DIALECTS[dialect].engine}."
    assert head in export.to_sql(clf, dialect, decimals=1)


def test_both_sides_of_a_join_of_text_have_one_collation():
    X, y = many_classes(12)
    clf = sy.NaiveBayes(categorical_features=[0, 2, 3]).fit(X, y)
    text = " ".join(export.to_sql(clf, "sqlserver").split())
    # The key of a table of literals has the collation of the database.
    assert re.search(r"ON (\S+_colour_s_name)\.sy_k COLLATE Latin1\S+ = sy_", text)
    assert re.search(r"ON (\S+_code)\.sy_k = sy_", text)


def test_an_error_of_an_old_engine_names_what_the_query_needs(model, monkeypatch):
    def old(clf, X, options):
        raise sqlite3.OperationalError("no such function: exp")

    monkeypatch.setitem(ENGINES, "sqlite", ("SQLite", old))
    said = (
        r"SQLite does not run the query.* SQLite 3.35 or later: no such function: exp"
    )
    with pytest.raises(ParameterError, match=said):
        check(*model, "sql", dialect="sqlite")


def test_databases_that_are_programs_of_their_own_are_not_checked(model):
    with pytest.raises(ParameterError, match=r"oracle cannot be run from here"):
        check(*model, "sql", dialect="oracle")


@pytest.mark.parametrize(("kind", "module"), [("sql", "pyspark"), ("pmml", "jpype")])
def test_a_check_without_java_says_so(model, kind, module, monkeypatch):
    pytest.importorskip(module)
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    options = {"dialect": "spark"} if kind == "sql" else {}
    with pytest.raises(ParameterError, match=r"needs a Java runtime.*OpenJDK"):
        check(*model, kind, **options)


@pytest.mark.skipif(find_spec("chdb") is not None, reason="chdb is installed")
def test_engines_that_are_not_installed_are_named(model):
    with pytest.raises(ParameterError, match=r"pip install chdb"):
        check(*model, "sql", dialect="clickhouse")
