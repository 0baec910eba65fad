"""Workbooks: what a person sees and types, and what is refused."""

import io

import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard.exceptions import ParameterError
from steelyard.export.excel import to_excel

openpyxl = pytest.importorskip("openpyxl")


@pytest.fixture(scope="module")
def clf():
    X = pd.DataFrame(
        {
            "=sky": ["sun", "rain", "=1+1", None] * 8,
            "degrees": [21.0, 12.0, 25.0, 9.5] * 8,
            "windy": [True, False, False, None] * 8,
            "when": pd.date_range("2024-01-01", periods=32, freq="9h"),
        }
    )
    clf = sy.NaiveBayes(categorical_features=["=sky", "windy"])
    return clf.fit(X, ["play", "stay", "=odd", "stay"] * 8)


@pytest.fixture(scope="module")
def filled(clf, tmp_path_factory):
    """Return a function from inputs to what the sheet of answers shows."""
    formulas = pytest.importorskip("formulas")
    path = tmp_path_factory.mktemp("book") / "model.xlsx"
    path.write_bytes(to_excel(clf))
    sheet = openpyxl.load_workbook(path)["answer"]
    rows = {cell.value: cell.row for cell in sheet["A"] if cell.value}
    book = formulas.ExcelModel().loads(str(path)).finish()

    def fill(**inputs):
        at = "'[model.xlsx]ANSWER'!"
        cells = {f"{at}B{rows[name]}": value for name, value in inputs.items()}
        found = book.calculate(inputs=cells)
        return lambda name, letter: found[f"{at}{letter}{rows[name]}"].value[0, 0]

    return fill


def test_a_person_sees_inputs_and_what_they_take(clf):
    sheet = openpyxl.load_workbook(io.BytesIO(to_excel(clf)))["answer"]
    rows = [[cell.value for cell in row] for row in sheet.iter_rows()]
    first = [row[0] for row in rows].index("column") + 1
    assert [row[0] for row in rows[first:]] == ["=sky", "degrees", "windy", "when"]
    assert [row[1] for row in rows[first:]] == [None] * 4
    assert [row[4] for row in rows[first:]] == [
        "text, one of the list, or another value",
        "a number",
        "1 for true, 0 for false",
        "a date, from 1900 on",
    ]
    # Names and classes are no formulas.
    assert sheet.cell(first + 1, 1).data_type == "s"
    checks = {check.type for check in sheet.data_validations.dataValidation}
    assert checks == {"list", "decimal"}


def test_answers_and_reasons_are_those_of_the_model(clf, filled):
    day = pd.Timestamp("2024-01-31 15:00")
    serial = (day - pd.Timestamp("1899-12-30")) / pd.Timedelta(days=1)
    found = filled(**{"=sky": "=1+1", "degrees": 24, "windy": 0, "when": serial})
    row = {"=sky": "=1+1", "degrees": 24.0, "windy": False, "when": str(day)}
    score = clf.scorer()
    assert found("prediction", "B") == score.predict(row) == "=odd"
    for label, p in score(row).items():
        assert found(f"p({label})", "B") == pytest.approx(p, abs=1e-12)
    reasons = score.reasons(row)
    of_date = sum(reasons.pop(n) for n in [*reasons] if n.startswith("when"))
    for name, reason in {**reasons, "when": of_date}.items():
        assert found(name, "C") == pytest.approx(reason, abs=1e-12)
        runner_up = sorted(score(row), key=score(row).get)[-2]
        assert found(name, "D") == ("=odd" if reason > 0 else runner_up)


def test_text_where_a_number_should_be_is_said(filled):
    found = filled(degrees="warm")
    assert found("prediction", "B") == "text stands where a number should be"


def test_cut_points_have_all_their_digits(clf):
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    clf = sy.NaiveBayes().fit(pd.DataFrame({"x": x}), np.where(x > 0.3, "a", "b"))
    sheet = openpyxl.load_workbook(io.BytesIO(to_excel(clf)))["tables"]
    (edge,) = clf.encoder_.schema_.features[0].edges
    assert sheet["B3"].value == edge


@pytest.mark.parametrize(
    ("settings", "labels", "message"),
    [
        ({"method": "BNB"}, "ab", "is not one sum here, and a workbook has one"),
        ({"method": "NB", "numeric": "gaussian-weka"}, "ab", "Weka's intervals"),
        ({"method": "NB"}, ["a\x01", "b"], "a cell of Excel has no control characters"),
    ],
)
def test_what_cannot_be_written_is_refused(settings, labels, message):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=80), "y": rng.normal(size=80)})
    is_a = X["x"] + X["y"] + rng.normal(size=80) > 0
    name = settings["method"]
    clf = sy.method(name, **{k: v for k, v in settings.items() if k != "method"})
    clf.fit(X, np.where(is_a, *labels))
    with pytest.raises(ParameterError, match=message):
        to_excel(clf)
