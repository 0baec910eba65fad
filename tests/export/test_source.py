"""Files of Python and JavaScript: what they are, and that they run on their own."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard import export


@pytest.fixture(scope="module")
def clf():
    X = pd.DataFrame(
        {
            "sky": ["sun", "rain", "</script>", None] * 8,
            "degrees": [21.0, 12.0, 25.0, 9.5] * 8,
            "windy": [True, False, False, None] * 8,
            "station": [1, 2, 2**60, 2**60 + 1] * 8,
            "__proto__": ["a", "b"] * 16,
        }
    )
    clf = sy.NaiveBayes(categorical_features=["sky", "windy", "station", "__proto__"])
    return clf.fit(X, ["play", "stay", "__proto__", "stay"] * 8)


ROW = {"sky": "rain", "degrees": 11.5, "windy": None, "__proto__": "b"}


def test_a_python_file_needs_the_standard_library_alone(clf, tmp_path):
    (tmp_path / "model.py").write_text(export.to_python(clf), encoding="ascii")
    code = (
        "import json, sys\n"
        "from model import score\n"
        "row = json.load(sys.stdin)\n"
        "print(json.dumps([score(row), score.predict(row), score.reasons(row)]))\n"
        "try:\n    score({'sky': 3})\nexcept ValueError as e:\n    print(e)"
    )
    # Without packages: the file is all there is.
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        cwd=tmp_path,
        env={},
        input=json.dumps(ROW),
        capture_output=True,
        text=True,
        check=True,
    )
    answer, message = done.stdout.splitlines()
    score = clf.scorer()
    assert json.loads(answer) == [score(ROW), score.predict(ROW), score.reasons(ROW)]
    assert message.startswith("Column 'sky' takes text")


def test_a_javascript_file_scores_and_says_what_is_wrong(clf, run_node, tmp_path):
    (tmp_path / "model.js").write_text(export.to_javascript(clf), encoding="ascii")
    wrong = [{"Sky": "a"}, {"sky": 3}, {"degrees": "warm"}, {"windy": []}]
    code = (
        "const { score, predict, contributions, plan } = require('./model.js');"
        "const said = data.wrong.map((row) => {"
        " try { return score(row); } catch (e) { return e.message; } });"
        "const stations = ['1', String(2n ** 60n), String(2n ** 60n + 1n)];"
        "answer({p: Object.entries(score(data.row)), label: predict(data.row),"
        " parts: Object.entries(contributions(data.row)), said,"
        " stations: stations.map((s) => predict({station: s}))});"
    )
    # JSON keeps the name __proto__ as a name of its own.
    found = run_node(code, {"row": ROW, "wrong": wrong})
    score = clf.scorer()
    for name, p in found["p"]:
        assert p == pytest.approx(score(ROW)[name], abs=1e-14)
    assert found["label"] == score.predict(ROW)
    frame = pd.DataFrame([{"station": None, **ROW}])[list(clf.feature_names_in_)]
    parts = clf.explain_local(frame.astype({"station": float})).contributions[0]
    np.testing.assert_allclose([part for _, part in found["parts"]], parts, atol=1e-12)
    assert found["said"] == [
        'The model has no column "Sky".',
        'Column "sky" takes text, got a number.',
        'Column "degrees" takes numbers, got a string.',
        'Column "windy" takes booleans, got a object.',
    ]
    assert found["stations"] == [
        score.predict({"station": s}) for s in (1, 2**60, 2**60 + 1)
    ]


@pytest.mark.parametrize("kind", [str, int], ids=["texts", "numbers"])
def test_numbers_and_their_text_are_the_same_category(kind, run_node, tmp_path):
    codes = [kind(k % 4) for k in range(40)]
    X = pd.DataFrame({"code": codes, "other": [kind(k // 20) for k in range(40)]})
    labels = ["no" if k % 4 < 2 or k % 7 == 0 else "yes" for k in range(40)]
    clf = sy.ShrinkageNB(categorical_features="all", interactions=1).fit(X, labels)
    cells = [1, 2.0, "3", "1", True, "true", 77, "77", "02"]
    expected = [
        clf.predict_proba(pd.DataFrame({"code": [cell], "other": [1]}))[0, 1]
        for cell in cells
    ]
    if kind is str:
        assert expected[-1] == expected[-2] != expected[1]  # text is matched as text
    else:
        assert expected[-1] == expected[1]
    score, module = clf.scorer(), {}
    exec(export.to_python(clf), module)
    for other in (1, "1"):
        rows = [{"code": cell, "other": other} for cell in cells]
        found = [score(row)["yes"] for row in rows]
        assert found == pytest.approx(expected, abs=1e-12)
        assert [module["score"](row)["yes"] for row in rows] == found
        (tmp_path / "model.js").write_text(export.to_javascript(clf), encoding="ascii")
        code = "const { score } = require('./model.js'); answer(data.map(score));"
        in_script = [answer["yes"] for answer in run_node(code, rows)]
        assert in_script == pytest.approx(expected, abs=1e-9)


def test_text_cannot_end_the_script_around_it(clf):
    text = export.to_javascript(clf)
    assert "</script>" not in text and "\\u003c/script\\u003e" in text


@pytest.mark.parametrize("write", [export.to_python, export.to_javascript])
def test_the_same_model_gives_the_same_bytes_also_after_loading(write, clf, tmp_path):
    clf.save(tmp_path / "model.json")
    assert write(sy.load(tmp_path / "model.json")) == write(clf)
