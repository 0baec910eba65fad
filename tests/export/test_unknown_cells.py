"""SQL, ONNX and PMML of models that average over unknown cells: sums, and a count."""

import sqlite3
from contextlib import closing
from copy import copy
from functools import cache
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard import export
from steelyard.exceptions import ParameterError
from steelyard.export.check import Agreement, check, onnx_feed
from steelyard.export.sql_dialect import DIALECTS


def made(n=300, n_classes=2, seed=0):
    """Return a table; missing cells of one of its columns have a meaning."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    X = pd.DataFrame(
        {
            "size of it": y + rng.normal(size=n),
            "sky": np.array(["sun", "it's", "fog"])[(y + (rng.random(n) < 0.4)) % 3],
            "is new": rng.random(n) < 0.2 + 0.6 * (y > 0),
            "town": [f"t{k}" for k in rng.permutation(n) % 40],
            "asked": np.where(y > 0, np.nan, rng.normal(size=n)),
            "grade": rng.integers(0, 5, n) + (y > 0),
        }
    )
    X.loc[::7, "asked"] = rng.normal(size=len(X.loc[::7]))
    return X, np.array(["no", "yes", "maybe"])[y]


def gapped(n=400, n_classes=2, seed=1):
    """Return rows with missing cells and values never seen; the first are complete."""
    X, _ = made(n, n_classes, seed)
    rng = np.random.default_rng(seed)
    X = X.astype(object).mask(rng.random(X.shape) < 0.3, None)
    X.loc[rng.random(n) < 0.2, "sky"] = "mauve"
    X.loc[rng.random(n) < 0.2, "grade"] = 77
    X.iloc[:60] = made(60, n_classes, seed + 1)[0]
    X.iloc[60] = None
    return X.astype({"size of it": float, "asked": float, "grade": float})


PAIRS = [["size of it", "sky"], ["town", "grade"]]
CASES = {
    "two": (2, {}),
    "three": (3, {}),
    "value": (2, {"missing": "value"}),
    "impute": (3, {"missing": "impute"}),
    "pairs": (2, {"interactions": PAIRS}),
    "densities": (3, {"numeric": "gaussian"}),
    "constrained": (2, {"constraints": {"size of it": "increasing"}}),
    "WANBIA": (2, sy.AttributeWeightedNB),
    "CAWNB": (3, sy.ClassAttributeWeightedNB),
}


@cache
def fitted(name="two"):
    n_classes, settings = CASES[name]
    how = {"categorical_features": ["sky", "is new", "town", "grade"]}
    if isinstance(settings, dict):
        how |= {"interactions": None, "strength": (2.0, 8.0, 2.0), **settings}
        clf = sy.ShrinkageNB(**how)
    else:
        clf = settings(unknown="marginal", **how)
    return clf.fit(*made(n_classes=n_classes))


@pytest.fixture(scope="module", params=CASES)
def case(request):
    return fitted(request.param), gapped(n_classes=CASES[request.param][0])


def expected(clf, X):
    """Return what the formats answer: sums for rows with unknown cells, and a count."""
    codes = clf._encode(X)
    n_unknown = clf.model_.unknown_cells(codes)
    assert (n_unknown[:60] == 0).all() and (n_unknown[60:] > 0).any()
    proba, labels = clf.predict_proba(X), clf.predict(X)
    by_sum = copy(clf).set_params(unknown="sum")
    summed, labels_of_sum = by_sum.predict_proba(X), by_sum.predict(X)
    rows = n_unknown > 0
    assert not np.allclose(proba[rows], summed[rows], atol=1e-3)
    proba[rows], labels[rows] = summed[rows], labels_of_sum[rows]
    return labels, proba, n_unknown


def test_columns_of_the_count_are_those_of_the_model(case):
    clf, X = case
    moments, schema = clf.model_.marginal, clf.model_.schema
    n_averaged = 0
    counted = export.plan_of(clf).counted()
    for j in range(schema.n_columns):
        feature, is_averaged = schema.features[j], moments.value_odds[j] == 0.0
        takes = feature.missing_code == 0 if feature.is_coded else feature.fill is None
        if is_averaged and (takes or feature.kind == "categorical"):
            assert counted[j] == takes
            n_averaged += 1
    assert len(counted) == n_averaged > 0
    n_unknown = clf.model_.unknown_cells(clf._encode(X))
    names = [X.columns[j] for j in counted]
    unseen = {"sky": X["sky"] == "mauve", "grade": X["grade"] == 77}
    cells = [
        X[name].isna() * counted[j] | unseen.get(name, False)
        for j, name in zip(counted, names, strict=True)
    ]
    np.testing.assert_array_equal(n_unknown, np.sum(cells, axis=0))


@pytest.mark.parametrize(
    "kind", ["duckdb", "sqlite", "onnx", "py", "js", "r", "h", "xlsx"]
)
def test_engines_agree(case, kind, need_engine):
    clf, X = case
    need_engine(kind)
    # A workbook takes one row at a time, 0.03 s each.
    X = X[:: 8 if kind == "xlsx" else 1]
    if kind in DIALECTS:
        found = check(clf, X, "sql", dialect=kind)
    else:
        found = check(clf, X, kind)
    assert found.agrees, str(found)
    assert ('unknown="sum"' in str(found)) == (kind not in ("py", "js", "r"))


def test_a_wrong_count_is_seen():
    found = Agreement("DuckDB", 3, 0.0, 0, n_counts=2)
    assert not found.agrees and "2 rows differ in their number of unknown" in str(found)


def in_sqlite(text, X):
    with closing(sqlite3.connect(":memory:")) as base:
        X.to_sql("data", base, index_label="id")
        return pd.read_sql_query(text, base)


@pytest.mark.parametrize("probabilities", [True, False])
def test_the_count_follows_the_answers(probabilities):
    clf, X = fitted("pairs"), gapped()
    labels, proba, n_unknown = expected(clf, X)
    text = export.to_sql(
        clf, "sqlite", contributions=True, probabilities=probabilities, decimals=None
    )
    out = in_sqlite(text, X)
    names = ["prediction", *(["p(no)", "p(yes)"] if probabilities else ["score(yes)"])]
    assert [*out.columns[: len(names) + 1]] == [*names, "unknown_cells"]
    assert out["prediction"].tolist() == labels.tolist()
    np.testing.assert_array_equal(out["unknown_cells"], n_unknown)
    odds = np.log(proba[:, 1]) - np.log(proba[:, 0])
    shown = out["score(yes)"] if not probabilities else None
    if shown is not None:
        np.testing.assert_allclose(shown, odds, atol=1e-9)
    reasons = out.filter(like="evidence(").sum(axis=1)
    rest = odds - reasons
    np.testing.assert_allclose(rest, rest[0], atol=1e-9)


def test_views_and_functions_return_the_count():
    duckdb = pytest.importorskip("duckdb")
    clf, X = fitted(), gapped()
    _, _, n_unknown = expected(clf, X)
    view = export.to_sql(clf, "sqlite", as_view="v")
    with closing(sqlite3.connect(":memory:")) as base:
        X.to_sql("data", base, index_label="id")
        base.executescript(view)
        counts = [n for (n,) in base.execute("SELECT unknown_cells FROM v")]
    assert counts == n_unknown.tolist()
    with duckdb.connect() as base:
        base.execute(export.to_sql(clf, "duckdb", as_function="f"))
        cells = "1.5, 'mauve', NULL, 't1', NULL, 3"
        query = f"SELECT unknown_cells FROM f({cells})"
        asked = [j for j, name in enumerate(X) if name == "asked"]
        assert export.plan_of(clf).counted().get(asked[0]) is None
        assert base.execute(query).fetchone() == (2,)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("form", ["query", "view", "function", "dbt"])
def test_all_databases_and_forms_have_the_count(dialect, form):
    options = {"view": {"as_view": "v"}, "function": {"as_function": "f"}}
    if form == "function" and not DIALECTS[dialect].function:
        pytest.skip("has no functions")
    if form == "function" and dialect == "redshift":
        pytest.skip("a function returns one number")
    clf = fitted()
    text = export.to_sql(clf, dialect, dbt=form == "dbt", **options.get(form, {}))
    assert "unknown_cells" in text


@pytest.mark.engines
@pytest.mark.parametrize("form", ["query", "function"])
def test_postgres_counts(case, postgres, form):
    clf, X = case
    server, copy = postgres
    labels, proba, n_unknown = expected(clf, X)
    kinds = ["float8", "text", "boolean", "text", "float8", "bigint"]
    columns = ", ".join(f'"{n}" {k}' for n, k in zip(X, kinds, strict=True))
    cells = X.assign(grade=X["grade"].astype("Int64")).astype(object)
    rows = cells.where(cells.notna(), None).itertuples(name=None)
    text = ["DROP TABLE IF EXISTS t;", f"CREATE TABLE t (id bigint, {columns});"]
    text.append(copy("t", list(rows)))
    if form == "query":
        text.append(export.to_sql(clf, "postgres", "t", keep=["id"]))
    else:
        used = export.plan_of(clf).used()
        asked = ", ".join(f't."{X.columns[j]}"' for j in used)
        text.append("DROP FUNCTION IF EXISTS f;")
        text.append(export.to_sql(clf, "postgres", as_function="f"))
        text.append(f"SELECT id, a.* FROM t, f({asked}) a;")
    found = sorted(server.execute("\n".join(text)), key=lambda row: int(row[0]))
    assert [row[1] for row in found] == labels.tolist()
    answers = [[float(p) for p in row[2:-1]] for row in found]
    np.testing.assert_allclose(answers, proba, rtol=0, atol=1e-12)
    assert [int(row[-1]) for row in found] == n_unknown.tolist()


def test_onnx_has_an_output(case):
    runtime = pytest.importorskip("onnxruntime")
    clf, X = case
    labels, proba, n_unknown = expected(clf, X)
    model = export.to_onnx(clf, contributions=True)
    session = runtime.InferenceSession(model.SerializeToString())
    names = [output.name for output in session.get_outputs()]
    assert names == ["label", "probabilities", "unknown_cells", "contributions"]
    said, found, counts, reasons = session.run(None, onnx_feed(export.plan_of(clf), X))
    assert said.tolist() == labels.tolist() and counts.tolist() == n_unknown.tolist()
    np.testing.assert_allclose(found, proba, rtol=0, atol=1e-12)
    assert reasons.shape == (len(X), len(clf.model_.schema), len(clf.classes_))


def test_pmml_has_an_output(case):
    clf, _ = case
    root = ElementTree.fromstring(export.to_pmml(clf))
    space = {"p": "http://www.dmg.org/PMML-4_4"}
    field = root.find(".//p:OutputField[@name='unknown_cells']", space)
    assert field.get("feature") == "transformedValue"
    counted = [of.get("field") for of in field.findall(".//p:FieldRef", space)]
    derived = [of.get("name") for of in root.findall(".//p:DerivedField", space)]
    assert {*counted} <= {*derived} and len(counted) == len(
        export.plan_of(clf).counted()
    )


@pytest.mark.engines
def test_jpmml_counts(case):
    pytest.importorskip("jpmml_evaluator")
    clf, X = case
    found = check(clf, X, "pmml")
    assert found.agrees, str(found)


def test_models_that_add_up_have_no_count():
    clf, X = fitted(), gapped()
    plain = sy.ShrinkageNB(**{**clf.get_params(), "unknown": "sum"}).fit(*made())
    clf = copy(clf).set_params(unknown="sum")
    assert export.to_sql(clf, "sqlite") == export.to_sql(plain, "sqlite")
    assert "unknown" not in export.to_sql(clf, "sqlite")
    assert b"unknown" not in export.to_pmml(clf)
    assert len(export.to_onnx(clf).graph.output) == 2
    assert check(clf, X, "onnx").agrees


def test_a_column_of_that_name_is_not_kept_beside_it():
    with pytest.raises(ParameterError, match="'unknown_cells' in `keep`"):
        export.to_sql(fitted(), "sqlite", keep=["unknown_cells"])
