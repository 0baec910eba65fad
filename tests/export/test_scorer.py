"""A scorer of one row computes what predict_proba does, and needs no NumPy."""

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard import export
from steelyard.exceptions import ColumnError, ParameterError
from steelyard.explain.reasons import reasons
from steelyard.export import scorer
from steelyard.export.check import check
from steelyard.export.plan import Bins, Lookup


@pytest.fixture(scope="module")
def weather():
    """Text, numbers, booleans and whole numbers as categories."""
    X = pd.DataFrame(
        {
            "sky": ["sun", "rain", "sun", None] * 8,
            "degrees": [21.0, 12.0, 25.0, 9.5] * 8,
            "windy": [True, False, False, None] * 8,
            "station": [1, 2, 2**60, 2**60 + 1] * 8,
        }
    )
    y = ["play", "stay", "play", "stay"] * 8
    clf = sy.NaiveBayes(categorical_features=["sky", "windy", "station"])
    return clf.fit(X, y), X


def test_cells_of_any_type_that_a_column_may_hold(weather):
    clf, X = weather
    score = clf.scorer()
    frame = X[:2]
    expected = clf.predict_proba(frame)[:, 0].tolist()
    rows = frame.astype(object).to_dict("records")
    assert [score(row)["play"] for row in rows] == pytest.approx(expected, abs=1e-15)
    typed = [
        {"sky": np.str_("sun"), "degrees": Decimal("21"), "station": 1.0, "windy": 1},
        {"sky": "rain", "degrees": np.int32(12), "station": np.int64(2), "windy": 0.0},
    ]
    assert [score(row) for row in typed] == [score(row) for row in rows]


@pytest.mark.parametrize("x", [1e308, -1.7e308, 1e17, 2.5, -0.0, 5e-324])
def test_wekas_intervals_far_away(x):
    X = pd.DataFrame({"x": [0.1, 0.2, 0.3, 0.4] * 5})
    clf = sy.method("GNB-Weka").fit(X, [0, 1] * 10)
    expected = clf.predict_proba(pd.DataFrame({"x": [x]}))[0]
    module = {}
    exec(export.to_python(clf), module)
    for score in (clf.scorer(), module["score"]):
        assert list(score({"x": x}).values()) == pytest.approx(expected, abs=1e-12)


def test_whole_numbers_that_floats_cannot_distinguish(weather):
    clf, _ = weather
    score = clf.scorer()
    assert score.predict({"station": 2**60}) == "play"
    assert score.predict({"station": 2**60 + 1}) == "stay"
    assert score({"station": 2**60 + 2}) == score({})


@pytest.mark.parametrize("cell", [None, float("nan"), np.nan, pd.NA, pd.NaT])
def test_missing_cells_are_those_of_frames_and_absent_keys(cell, weather):
    clf, _ = weather
    score = clf.scorer()
    row = {"sky": cell, "degrees": cell, "windy": cell, "station": cell}
    assert score(row) == score({})


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"sky": 3}, r"Column 'sky' takes text, got 3 \(int\)"),
        ({"sky": ["sun"]}, r"Column 'sky' takes text"),
        ({"degrees": "warm"}, r"Column 'degrees' takes numbers, got 'warm'"),
        ({"degrees": "21"}, r"Column 'degrees' takes numbers"),
        ({"degrees": float("inf")}, r"Column 'degrees' takes finite numbers"),
        ({"degrees": 10**400}, r"Column 'degrees' takes finite numbers"),
        ({"station": "one"}, r"Column 'station' takes numbers"),
        ({"windy": b"1"}, r"Column 'windy' takes numbers"),
        ({"Sky": "sun"}, r"no column 'Sky'. Did you mean 'sky'\?"),
        ({"sky": "sun", 3: 1}, r"no column 3"),
        (["sun"], r"must be a mapping from column names to cells, got a list"),
    ],
)
def test_what_is_no_cell_is_an_error_that_names_the_column(row, message, weather):
    score = weather[0].scorer()
    for question in (score, score.predict, score.reasons):
        with pytest.raises(ColumnError, match=message):
            question(row)


def test_columns_without_names_are_numbered():
    clf = sy.NaiveBayes().fit([["a", 1.0], ["b", 2.0]] * 5, [0, 1] * 5)
    score = clf.scorer()
    assert score.columns == ["x0", "x1"]
    assert score.predict({"x0": "b"}) == 1


def test_a_pickled_scorer_needs_the_standard_library_alone(weather):
    clf, X = weather
    row = X.astype(object).to_dict("records")[1]
    code = (
        "import pickle, sys\n"
        "for name in ('numpy', 'scipy', 'sklearn', 'numba', 'narwhals', 'pandas'):\n"
        "    sys.modules[name] = None\n"
        "score, row = pickle.loads(sys.stdin.buffer.read())\n"
        "print(repr(score(row)), repr(score.predict(row)), repr(score.reasons(row)))"
    )
    score = clf.scorer()
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=pickle.dumps((score, row)),
        capture_output=True,
        check=True,
    )
    expected = f"{score(row)!r} {score.predict(row)!r} {score.reasons(row)!r}"
    assert done.stdout.decode().strip() == expected


def test_threads_may_share_a_scorer(weather):
    clf, X = weather
    score, rows = clf.scorer(), X.astype(object).to_dict("records") * 20
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(score, rows)) == list(map(score, rows))


@pytest.mark.parametrize(
    ("method", "n_classes"),
    [("NB", 2), ("NB", 3), ("SHNB", 2), ("TAN", 3), ("RNB", 3), ("ENB", 3), ("BNB", 2)],
)
def test_reasons_are_those_of_explanations(method, n_classes, fitted, hostile_table):
    clf = fitted(method, "skip", n_classes)
    X, _ = hostile_table(12, n_classes, seed=5)
    score = clf.scorer()
    for row, wanted in zip(
        X.astype(object).to_dict("records"), reasons(clf, X, most=99), strict=True
    ):
        found = score.reasons(row)
        expected = {reason.attribute: reason.amount for reason in wanted}
        kept = {name: a for name, a in expected.items() if abs(a) > 1e-12}
        for name in kept.keys() | found.keys():
            amount = found.get(name, 0.0)
            assert amount == pytest.approx(expected.get(name, 0.0), abs=1e-9), name
        sizes = [abs(amount) for amount in found.values()]
        assert sizes == sorted(sizes, reverse=True)
    assert len(score.reasons(row, most=2)) <= 2


@pytest.mark.parametrize("most_names", [10_000, 0], ids=["lines", "loops"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("method", ["NB", "SHNB", "TAN", "WANBIA-CLL", "SNB", "RNB"])
def test_the_last_bit_is_that_of_predict_proba(
    method, n_classes, most_names, fitted, hostile_table, monkeypatch
):
    monkeypatch.setattr(scorer, "_MAX_NAMES", most_names)
    clf = fitted(method, "skip", n_classes)
    X, _ = hostile_table(60, n_classes, seed=6)
    score, rows = clf.scorer(), X.astype(object).to_dict("records")
    proba, labels = clf.predict_proba(X), clf.predict(X).tolist()
    answers = [score.answer(row) for row in rows]
    assert [list(score(row).values()) for row in rows] == [p for _, p in answers]
    # Rows with cells that are averaged over are solved by other programs.
    partly = clf.model_.partial_rows(clf._encode(X)) if method == "SHNB" else []
    for i in partly:
        np.testing.assert_allclose(answers[i][1], proba[i], rtol=0, atol=1e-12)
        proba[i] = answers[i][1]
    assert answers == list(zip(labels, proba.tolist(), strict=True))


def test_a_row_of_as_many_cells_with_another_name_is_refused(weather):
    score = weather[0].scorer()
    row = {"sky": "sun", "degrees": 21.0, "windy": True, "stations": 1}
    with pytest.raises(ColumnError, match="no column 'stations'"):
        score(row)


# ------------------------------------------------------------------------- the plan


def test_equal_neighbouring_bins_become_one():
    x = np.arange(100.0)
    y = (x > 30).astype(int)
    clf = sy.NaiveBayes(numeric=("mdl", "equal-frequency")).fit(
        pd.DataFrame({"x": x}), y
    )
    (term,) = export.plan_of(clf).root.terms
    assert isinstance(term, Bins)
    schema = clf.model_.schema
    assert set(term.edges) <= {e for f in schema.features for e in f.edges}
    assert len(term.rows) == len(term.edges) + 1
    assert all(a != b for a, b in zip(term.rows, term.rows[1:], strict=False))


def test_columns_that_say_nothing_have_no_term(weather):
    X = pd.DataFrame({"used": ["a", "b"] * 10, "other": ["c", "c", "d", "d"] * 5})
    clf = sy.SelectiveNB().fit(X, [0, 1] * 10)
    plan = export.plan_of(clf)
    assert [type(term) for term in plan.root.terms] == [Lookup]
    assert plan.used() == [0] and len(plan.columns) == 2
    assert clf.scorer()({"used": "a", "other": "c"}) == clf.scorer()({"used": "a"})


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("LWNB", r"keeps its 20 training rows.*no formula to export.*WANBIA-CLL"),
        ("AIWNB-L", r"keeps its 20 training rows"),
        ("AODE", r"averages joint probabilities.*TreeAugmentedNB"),
    ],
)
def test_models_without_a_plan_are_refused(method, message):
    X = pd.DataFrame({"a": ["u", "v"] * 10})
    clf = sy.method(method).fit(X, [0, 1] * 10)
    with pytest.raises(ParameterError, match=message):
        clf.scorer()


def test_a_model_of_ones_own_and_one_that_only_selects_are_refused():
    X, y = pd.DataFrame({"a": ["u", "v"] * 10}), [0, 1] * 10
    clf = sy.NaiveBayes().fit(X, y)

    class Own(type(clf.model_)):
        pass

    clf.model_ = Own(**vars(clf.model_))
    with pytest.raises(ParameterError, match=r"type Own cannot be exported"):
        clf.scorer()
    clf = sy.SPSSNaiveBayes(select_only=True).fit(X, y)
    with pytest.raises(ParameterError, match=r"no final model to export"):
        clf.scorer()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "numeric", ["gaussian", "gaussian-relative", "gaussian-weka", "linear"]
)
def test_densities_and_slopes_score_alike_in_every_program(numeric, n_classes):
    rng = np.random.default_rng(3)
    y = np.arange(90) % n_classes
    X = pd.DataFrame({"a": y + rng.normal(size=90), "b": rng.normal(size=90).round(1)})
    X.loc[::7, "a"] = np.nan
    is_linear = numeric == "linear"
    weighted = sy.WeightedNB(weighting="class-attribute", numeric=numeric, lam=1.0)
    clf = (weighted if is_linear else sy.NaiveBayes(numeric=numeric)).fit(X, y)
    score, expected = clf.scorer(), clf.predict_proba(X)
    rows = X.astype(object).where(X.notna(), None).to_dict("records")
    found = np.array([list(score(row).values()) for row in rows])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    for kind, options in (("py", {}), ("sql", {"dialect": "sqlite"}), ("onnx", {})):
        # SQL and ONNX have no error function.
        if numeric != "gaussian-weka" or kind == "py":
            if kind == "onnx":
                pytest.importorskip("onnxruntime")
            assert check(clf, X, kind, **options).agrees, kind
