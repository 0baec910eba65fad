"""ONNX: inputs and outputs, texts, numbers as categories, sizes, refusals."""

import json
import sys
from copy import copy

import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard import export
from steelyard.exceptions import IdentifierWarning, ParameterError
from steelyard.export.check import check, onnx_feed
from steelyard.export.onnx import missing_texts
from steelyard.export.reading import plan_of

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")


def session_of(clf, **options):
    return runtime.InferenceSession(export.to_onnx(clf, **options).SerializeToString())


@pytest.fixture(scope="module")
def weather():
    X = pd.DataFrame(
        {
            "sky": ["sun", "rain", "sun", None] * 8,
            "degrees": [21.0, 12.0, 25.0, 9.5] * 8,
            "windy": [True, False, False, None] * 8,
            "always": [np.nan] * 32,
        }
    )
    clf = sy.NaiveBayes(categorical_features=["sky", "windy"], missing="value")
    return clf.fit(X, ["play", "stay", "play", "stay"] * 8)


def test_an_input_for_every_column_and_two_outputs(weather):
    session = session_of(weather)
    assert [(i.name, i.type, i.shape) for i in session.get_inputs()] == [
        ("sky", "tensor(string)", ["n", 1]),
        ("degrees", "tensor(double)", ["n", 1]),
        ("windy", "tensor(double)", ["n", 1]),
    ]
    assert [(o.name, o.type, o.shape) for o in session.get_outputs()] == [
        ("label", "tensor(string)", ["n"]),
        ("probabilities", "tensor(double)", ["n", 2]),
    ]
    about = session.get_modelmeta().custom_metadata_map
    assert about["estimator"] == "NaiveBayes"
    assert json.loads(about["classes"]) == ["play", "stay"]
    assert about["missing_text"] == ""


def test_nothing_is_written_twice_or_unused(weather, capfd):
    model = export.to_onnx(weather)
    used = {name for node in model.graph.node for name in node.input}
    assert {tensor.name for tensor in model.graph.initializer} <= used
    nodes = [(n.op_type, *n.input, str(n.attribute)) for n in model.graph.node]
    assert len(set(nodes)) == len(nodes)
    runtime.InferenceSession(model.SerializeToString())
    assert "warn" not in "".join(capfd.readouterr()).lower()


def test_the_text_of_missing_cells_is_asked_for_where_it_is_a_value():
    X = pd.DataFrame({"note": ["", "late", None, "x"] * 10})
    y = ["no", "yes", "yes", "no"] * 10
    clf = sy.NaiveBayes(missing="value").fit(X, y)
    with pytest.raises(ParameterError, match="'' is a value of column 'note'"):
        export.to_onnx(clf)
    assert check(clf, X, "onnx", missing_text="?").agrees
    with pytest.raises(ParameterError, match="'late' is a value"):
        export.to_onnx(clf, missing_text="late")


@pytest.mark.parametrize("labels", [[0, 1], [False, True], ["0", "1"]])
def test_classes_keep_their_types(labels):
    X = pd.DataFrame({"a": ["u", "v"] * 10})
    clf = sy.NaiveBayes().fit(X, labels * 10)
    assert check(clf, X, "onnx").agrees
    said = session_of(clf).run(["label"], onnx_feed(export.plan_of(clf), X))[0]
    assert [type(label) for label in said.tolist()] == [type(v) for v in labels] * 10


@pytest.mark.parametrize("n_values", [900, 1500])
@pytest.mark.parametrize("factor", [3, 0.5])
@pytest.mark.parametrize("missing", ["skip", "value"])
def test_numbers_as_categories(n_values, factor, missing):
    rng = np.random.default_rng(0)
    code = rng.permutation(np.repeat(np.arange(n_values) - 40, 2))
    X = pd.DataFrame({"code": code * factor, "x": rng.normal(size=len(code))})
    X.loc[::7, "code"] = None
    clf = sy.NaiveBayes(categorical_features=["code"], missing=missing)
    clf.fit(X, (code % 3 + (X["x"] > 0)).astype(str))
    odd = [1.5, -0.0, 1e300, -1e300, 2.0**53, 2.0**63, np.nan, 3.0000000001, -120.0]
    rows = pd.DataFrame({"code": odd, "x": 0.3})
    assert check(clf, pd.concat([X, rows]), "onnx").agrees
    ops = {node.op_type for node in export.to_onnx(clf).graph.node}
    assert ("LabelEncoder" in ops) == (n_values > 1000 and factor == 3)


def test_whole_numbers_that_doubles_cannot_distinguish_are_refused():
    X = pd.DataFrame({"station": [1, 2**53] * 10})
    clf = sy.NaiveBayes(categorical_features=["station"]).fit(X, ["a", "b"] * 10)
    with pytest.raises(ParameterError, match="'station' has the category 9007199"):
        export.to_onnx(clf)


def test_half_of_a_surrogate_pair_is_refused():
    X = pd.DataFrame({"sky": ["sun", "\ud800"] * 5}, dtype=object)
    clf = sy.NaiveBayes().fit(X, ["no", "yes"] * 5)
    with pytest.raises(ParameterError, match="a character that text in ONNX cannot"):
        export.to_onnx(clf)


def test_names_of_columns_and_outputs_differ():
    X = pd.DataFrame({"label": ["u", "v"] * 10, "steelyard_Gather_3": [1.0, 2.0] * 10})
    clf = sy.NaiveBayes().fit(X, [0, 1] * 10)
    assert check(clf, X, "onnx").agrees
    names = [output.name for output in session_of(clf).get_outputs()]
    assert names == ["label_", "probabilities_"]
    clf = sy.NaiveBayes().fit(X.set_axis(["", "b"], axis=1), [0, 1] * 10)
    with pytest.raises(ParameterError, match="name the column"):
        export.to_onnx(clf)


def test_a_class_of_prior_0_and_a_model_without_terms():
    X = pd.DataFrame({"a": ["u", "v", "u", "w"] * 5, "g": [9.0, 1.0, 2.0, 4.0] * 5})
    y = ["x", "y", "x", "z"] * 5
    for numeric in ("mdl", "gaussian"):
        clf = sy.NaiveBayes(prior=[0.5, 0.5, 0.0], numeric=numeric).fit(X, y)
        far = X.assign(g=1e200)
        assert check(clf, pd.concat([X, far]), "onnx").agrees
    clf = sy.NaiveBayes().fit(pd.DataFrame({"a": ["u"] * 6}), ["p", "q", "q"] * 2)
    assert not list(export.plan_of(clf).terms())
    assert check(clf, pd.DataFrame({"a": ["u", None, "w"]}), "onnx").agrees


def test_elkans_votes(hostile_table, hostile_rows):
    X, y = hostile_table(200, 2)
    clf = sy.BoostedNB(form="elkan", categorical_features=["colour", "yes", "code"])
    clf.fit(X, y)
    rows = hostile_rows(clf, 300, 2)
    assert isinstance(export.plan_of(clf).root, export.plan.Vote)
    assert check(clf, rows, "onnx", missing_text="(none)").agrees


@pytest.mark.parametrize("method", ["NB", "SHNB", "RNB", "ENB", "BNB"])
def test_the_same_model_gives_the_same_bytes_also_after_loading(
    method, fitted, tmp_path
):
    clf = fitted(method, "skip", 3)
    clf.export(tmp_path / "first.onnx", missing_text="?")
    clf.save(tmp_path / "model.json")
    loaded = sy.load(tmp_path / "model.json")
    loaded.export(tmp_path / "second.onnx", missing_text="?")
    first, second = ((tmp_path / f"{n}.onnx").read_bytes() for n in ("first", "second"))
    assert first == second


def test_wide_tables_many_values_and_many_classes():
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.integers(0, 3, (60, 1000)).astype(str)).add_prefix("c")
    clf = sy.NaiveBayes().fit(wide, rng.integers(0, 2, 60))
    assert check(clf, wide, "onnx").agrees
    names = np.repeat([f"name {i}" for i in range(10_000)], 2)
    X = pd.DataFrame({"name": rng.permutation(names)})
    clf = sy.NaiveBayes().fit(X, rng.integers(0, 200, len(X)))
    assert check(clf, X[:100], "onnx").agrees


def test_a_check_says_which_engine_is_lacking(weather, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ParameterError, match="pip install onnxruntime"):
        check(weather, pd.DataFrame(), "onnx")


def test_refusals_come_before_a_file_is_touched(weather, tmp_path, monkeypatch):
    file = tmp_path / "model.onnx"
    file.write_text("as it was")
    lazy = sy.LocallyWeightedNB().fit([[1.0], [2.0]] * 10, [0, 1] * 10)
    with pytest.raises(ParameterError, match="training rows"):
        lazy.export(file)
    with pytest.raises(ParameterError, match="missing_text must be text, got 3"):
        weather.export(file, missing_text=3)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'steelyard\[onnx\]'"):
        weather.export(file)
    assert file.read_text() == "as it was"


# ------------------------------------------------------------------- inputs and outputs


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(0)
    y = np.arange(200) % 3
    X = rng.normal(size=(200, 4)) + y[:, None]
    X[:, 3] = rng.integers(0, 9, 200) + y
    return sy.ShrinkageNB().fit(X, y), X


@pytest.mark.parametrize("inputs", ["columns", "matrix"])
def test_arrays_in_all_forms(inputs, numbers):
    clf, X = numbers
    session = session_of(clf, inputs=inputs)
    feed = {f"x{j}": X[:, [j]] for j in range(4)} if inputs == "columns" else {"X": X}
    assert {i.name for i in session.get_inputs()} == {*feed}
    label, proba = session.run(["label", "probabilities"], feed)
    np.testing.assert_allclose(proba, clf.predict_proba(X), rtol=0, atol=1e-12)
    assert label.tolist() == clf.predict(X).tolist()


def test_a_matrix_has_one_type(weather):
    with pytest.raises(ParameterError, match=r"'sky' holds text .* inputs='columns'"):
        export.to_onnx(weather, inputs="matrix")
    X = np.array([["a", "u"], ["b", "v"]] * 10, dtype=object)
    clf = sy.NaiveBayes().fit(X, ["no", "yes"] * 10)
    label, _ = session_of(clf, inputs="matrix").run(None, {"X": X[:2]})
    assert label.tolist() == ["no", "yes"]


def test_the_text_nan_counts_as_missing_and_a_check_says_so():
    X = pd.DataFrame({"sky": ["sun", "rain", None, "fog"] * 10, "n": [1.0, 2] * 20})
    y = np.arange(40) % 4 % 3 > 0
    odd = X.assign(sky=["nan", "None", "sun", None] * 10)
    for missing, note in (("value", "sky"), ("skip", "")):
        clf = sy.NaiveBayes(missing=missing).fit(X, y)
        assert missing_texts(plan_of(clf)) == (
            {"sky": ["", "None", "nan"]} if note else {}
        )
        found = check(clf, odd, "onnx")
        assert found.agrees and note in found.note
        assert str(found).endswith(
            "taken as such: 20 of sky" if note else "0 rows differ in class"
        )


def test_columns_that_are_left_out_are_no_inputs():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"id": [f"k{i}" for i in range(300)], "empty": [None] * 300})
    X["kind"] = rng.choice(list("ab"), 300)
    y = (X["kind"] == "a") ^ (rng.random(300) < 0.2)
    with pytest.warns(IdentifierWarning):
        clf = sy.ShrinkageNB().fit(X, y)
    model = export.to_onnx(clf)
    assert [value.name for value in model.graph.input] == ["kind"]
    assert check(clf, X, "onnx").agrees
    # Of a model without any other, one says how many rows there are.
    alone = sy.NaiveBayes().fit(X[["empty"]], y)
    assert [v.name for v in export.to_onnx(alone).graph.input] == ["empty"]
    assert check(alone, X[["empty"]], "onnx").agrees


def test_none_and_nan_among_text_are_missing(weather):
    session = session_of(weather)
    feed = {
        "sky": np.array([[""], [None], [np.nan]], dtype=object),
        "degrees": np.array([[21.0]] * 3),
        "windy": np.array([[1.0]] * 3),
    }
    p = session.run(["probabilities"], feed)[0]
    assert p[0].tolist() == p[1].tolist() == p[2].tolist()
    # A value of that name is a value.
    X = pd.DataFrame({"x": ["None", "v", None, "v"] * 8})
    clf = sy.NaiveBayes(missing="value").fit(X, ["no", "yes", "yes", "yes"] * 8)
    cells = np.array([["None"], [""]], dtype=object)
    p = session_of(clf).run(["probabilities"], {"x": cells})[0]
    np.testing.assert_allclose(p, clf.predict_proba(X.iloc[[0, 2]]), atol=1e-12)


@pytest.mark.parametrize("method", ["NB", "SHNB", "TAN"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_contributions_are_those_of_explanations(
    method, n_classes, fitted, hostile_table
):
    clf = fitted(method, "skip", n_classes)
    X, _ = hostile_table(30, n_classes, seed=3)
    session = session_of(clf, missing_text="(none)", contributions=True)
    feed = onnx_feed(export.plan_of(clf), X, missing_text="(none)")
    found = session.run(["contributions"], feed)[0]
    if export.plan_of(clf).counted():
        clf = copy(clf).set_params(unknown="sum")
    local = clf.explain_local(X)
    expected = local.contributions * clf.model_.link_scale
    odds = np.diff(expected) if n_classes == 2 else expected
    found = np.diff(found) if n_classes == 2 else found
    np.testing.assert_allclose(found, odds, atol=1e-12)
    told = session.get_modelmeta().custom_metadata_map["attributes"]
    assert json.loads(told) == list(local.attributes)


def test_wrong_forms_of_inputs_are_refused(weather):
    with pytest.raises(ParameterError, match=r"columns, matrix.*Did you mean 'matrix'"):
        export.to_onnx(weather, inputs="matrx")


def test_a_vote_has_no_contributions(fitted):
    with pytest.raises(ParameterError, match=r"not one sum"):
        clf = fitted("BNB", "skip", 3)
        export.to_onnx(clf, missing_text="(none)", contributions=True)
