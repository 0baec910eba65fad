"""A file of R: data frames as users of R have them, texts of dates, errors."""

import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard import export
from steelyard.exceptions import ParameterError
from steelyard.export.check import check
from steelyard.export.r import r_vector, to_r

HEAD = "source('model.R')\n"


@pytest.fixture(scope="module")
def clf():
    X = pd.DataFrame(
        {
            "sky": ["sun", "rain", "Ärger \N{GRINNING FACE}", None] * 8,
            "degrees": [21.0, 12.0, 25.0, 9.5] * 8,
            "windy": [True, False, False, None] * 8,
            "code": ["1", "2", "1", "2"] * 8,
        }
    )
    clf = sy.NaiveBayes(categorical_features=["sky", "windy", "code"])
    return clf.fit(X, ["play", "stay", "it's\nodd", "stay"] * 8)


def numbers(text):
    return [float.fromhex(word) for word in text.split()]


def test_data_frames_of_r_are_read_as_frames_are(clf, run_r, tmp_path):
    (tmp_path / "model.R").write_text(to_r(clf), encoding="ascii")
    # Factors, whole numbers, columns of NA, a number for its text, other columns.
    found = run_r(
        f"{HEAD}rows <- data.frame(id = 7:9, sky = factor(c('rain', NA, 'mauve')), "
        "windy = NA, code = 1L, degrees = c(12L, 13L, NA), row.names = letters[1:3])\n"
        "out <- score(rows)\nstopifnot(identical(row.names(out), row.names(rows)))\n"
        "stopifnot(nrow(score(rows[0, ])) == 0)\n"
        "cat(sprintf('%a', t(as.matrix(out[-1]))))"
    )
    X = pd.DataFrame({"sky": ["rain", None, "mauve"], "degrees": [12.0, 13.0, np.nan]})
    X = X.assign(windy=None, code=1)[list(clf.feature_names_in_)]
    np.testing.assert_allclose(
        numbers(found), clf.predict_proba(X).ravel(), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("sky = 3", 'Column "sky" takes text; row 1 has "3" (numeric).'),
        ("degrees = '3'", 'Column "degrees" takes numbers; row 1 has "3" (character).'),
        ("degrees = factor(3)", 'Column "degrees" takes numbers; row 1 has "3"'),
        ("degrees = Inf", 'Column "degrees" takes finite numbers; row 1 has "Inf"'),
        ("degrees = as.Date('2024-01-01')", 'takes numbers; row 1 has "2024-01-01"'),
        ("windy = 'maybe'", 'Column "windy" takes booleans; row 1 has "maybe"'),
        ("windy = NULL", 'no column "windy". Add it, with NA where it is unknown.'),
    ],
)
def test_what_is_wrong_is_said(clf, change, message, run_r, tmp_path):
    (tmp_path / "model.R").write_text(to_r(clf), encoding="ascii")
    rows = "data.frame(sky = 'sun', degrees = 1, windy = TRUE, code = '1')"
    program = f"rows <- {rows}\nrows${change.replace('=', '<-', 1)}\n"
    caught = "tryCatch(score(rows), error = function(e) cat(conditionMessage(e)))"
    assert message in run_r(f"{HEAD}{program}{caught}")


def test_text_that_r_cannot_have_is_refused():
    X = pd.DataFrame({"x": ["a\0", "b"] * 10})
    clf = sy.NaiveBayes().fit(X, ["no", "yes"] * 10)
    with pytest.raises(ParameterError, match="R has no text with the character NUL"):
        to_r(clf)


@pytest.mark.parametrize("kind", ["r", "h"])
def test_a_sample_with_text_that_a_language_cannot_have_is_refused(clf, kind):
    row = {"sky": "sun\0", "degrees": 1.0, "windy": True, "code": "1"}
    with pytest.raises(ParameterError, match=r"'sky' of the sample.*NUL, which (R|C) "):
        check(clf, pd.DataFrame([row]), kind)


def test_r_reads_every_bit_of_numbers(run_r):
    rng = np.random.default_rng(0)
    drawn = rng.normal(size=5_000) * 10.0 ** rng.integers(-300, 300, 5_000)
    drawn = [*drawn.tolist(), 0.1, -0.0, 5e-324, 18524.440000000002, 1e22, 2.5]
    printed = run_r(f"x <- {r_vector(drawn)}\ncat(sprintf('%a', x), fill = 1)")
    assert [x.hex() for x in numbers(printed)] == [x.hex() for x in drawn]


def test_models_of_arrays_and_large_whole_numbers_are_written(run_r, tmp_path):
    X = pd.DataFrame({"station": [2**60, 2**60 + 1] * 10})
    clf = sy.NaiveBayes(categorical_features=[0]).fit(X, [1, 2] * 10)
    (tmp_path / "model.R").write_text(export.formats.content_of(clf, "r").decode())
    found = run_r(
        f"{HEAD}rows <- data.frame(station = c('{2**60}', '{2**60 + 1}'))\n"
        "cat(score(rows)$prediction)"
    )
    assert found == "1 2"
