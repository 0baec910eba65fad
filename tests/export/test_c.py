"""A header of C: its structures, what compilers say of it, errors."""

import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard.exceptions import ParameterError
from steelyard.export.c import c_text, row_fields, to_c
from steelyard.export.reading import plan_of

STRICT = ["-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror", "-O2"]


def table():
    X = pd.DataFrame(
        {
            "sky": ["sun", "rain", "*/ \N{GRINNING FACE} ??/", None] * 8,
            "class": [21.0, 12.0, 25.0, 9.5] * 8,
            "is new": [True, False, False, None] * 8,
            "is_new": pd.date_range("2024-01-01", periods=32, freq="9h"),
            "2nd */": ["a", "b"] * 16,
        }
    )
    return X, ["play", "stay", 'it\'s\n"odd"', "stay"] * 8


@pytest.fixture(scope="module")
def clf():
    X, y = table()
    return sy.NaiveBayes(categorical_features=["sky", "is new", "2nd */"]).fit(X, y)


def test_members_are_called_as_the_columns_are(clf):
    fields = row_fields(plan_of(clf))
    assert [(f.name, f.kind) for f in fields] == [
        ("sky", "text"),
        ("x1_class", "number"),
        ("is_new", "boolean"),
        ("x3_is_new", "date"),
        ("x4_2nd", "text"),
    ]


def test_a_strict_compiler_has_nothing_to_say(clf, run_c, tmp_path):
    (tmp_path / "model.h").write_text(to_c(clf), encoding="ascii")
    found = run_c(
        'model_row row = {"rain", 11.5, NAN, "2024-01-31T14:30", NULL};'
        "model_answer answer;"
        "const char *wrong = model_score(&row, &answer);"
        "if (wrong) return 1;"
        'printf("%s\\n", model_classes[answer.prediction]);'
        'for (int c = 0; c < 3; c++) printf("%a ", answer.probability[c]);',
        *STRICT,
    )
    row = {"sky": "rain", "class": 11.5, "is_new": "2024-01-31T14:30"}
    score = clf.scorer()
    *label, numbers = found.splitlines()
    assert "\n".join(label) == score.predict(row)
    np.testing.assert_allclose(
        [*map(float.fromhex, numbers.split())], [*score(row).values()], atol=1e-14
    )


@pytest.mark.parametrize(
    ("member", "message"),
    [
        ("x1_class = INFINITY", "Column 'class' takes finite numbers, or NAN for a"),
        ('x3_is_new = "today"', "Column 'is_new' takes dates such as 2024-01-31T14:30"),
    ],
)
def test_what_is_wrong_is_said(clf, member, message, run_c, tmp_path):
    (tmp_path / "model.h").write_text(to_c(clf), encoding="ascii")
    body = f"model_row row = {{0}}; model_answer a; row.{member};"
    assert message in run_c(f'{body} printf("%s", model_score(&row, &a));')


@pytest.mark.parametrize("method", ["NB", "BNB", "SHNB"])
def test_models_of_one_value_are_written(method, run_c, tmp_path):
    X = pd.DataFrame({"x": ["a"] * 12, "y": np.arange(12.0) % 2})
    clf = sy.method(method).fit(X, ["no", "yes", "no"] * 4)
    (tmp_path / "model.h").write_text(to_c(clf), encoding="ascii")
    body = "model_row row; model_answer a; memset(&row, 0, sizeof row);"
    body += ' if (model_score(&row, &a)) return 1; printf("%a", a.probability[0]);'
    expected = clf.predict_proba(pd.DataFrame({"x": [None], "y": [0.0]}))[0, 0]
    assert float.fromhex(run_c(body, *STRICT)) == pytest.approx(expected, abs=1e-12)


def test_large_whole_numbers_are_text_in_the_order_of_text(run_c, tmp_path):
    X = pd.DataFrame({"station": [5, 2**60, 2**60 + 1, 30] * 10})
    clf = sy.NaiveBayes(categorical_features=[0]).fit(X, [1, 2, 3, 4] * 10)
    (tmp_path / "model.h").write_text(to_c(clf), encoding="ascii")
    cells = ", ".join(f'{{"{n}"}}' for n in (5, 2**60, 2**60 + 1, 30))
    found = run_c(
        f"model_row rows[] = {{{cells}}}; model_answer a;"
        "for (int i = 0; i < 4; i++) { model_score(rows + i, &a);"
        ' printf("%s", model_classes[a.prediction]); }'
    )
    assert found == "1234"


def test_text_that_c_cannot_have_is_refused():
    X = pd.DataFrame({"x": ["a\0", "b"] * 10})
    clf = sy.NaiveBayes().fit(X, ["no", "yes"] * 10)
    with pytest.raises(ParameterError, match="ends at the character NUL"):
        to_c(clf)


def test_text_is_the_same_in_c(run_c, tmp_path):
    (tmp_path / "model.h").write_text("")
    text = 'a "b" ??/ \\ 7\N{LATIN SMALL LETTER E WITH ACUTE}8\n\x01' + "2"
    assert run_c(f'printf("%s", {c_text(text)});', "-trigraphs") == text
