"""Numbers and their text are the same category, whichever a model was fitted to."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import steelyard as sy
from steelyard._common.one_cell import number_in, texts_by_number
from steelyard.exceptions import ColumnError

NUMBERS = [1, 2, 3, 2, 1, 3, 3, 1, 10, 2, 1, 3]
Y = ["a", "b", "c", "b", "a", "c", "c", "a", "a", "b", "b", "a"]
FRAMES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "category": lambda of: pd.DataFrame(of).astype("category"),
    "objects": lambda of: pd.DataFrame(of, dtype=object),
    "floats": lambda of: pd.DataFrame(of).map(
        lambda v: v if isinstance(v, str) else float(v)
    ),
}


def fitted(cells, method=sy.NaiveBayes):
    X = pd.DataFrame({"zip": cells, "size": np.arange(len(cells)) % 4.0})
    return method(categorical_features=["zip"]).fit(X, Y)


def asked(clf, cells, frame="pandas"):
    """Probabilities of rows of one size."""
    X = FRAMES[frame]({"zip": cells})
    if frame == "polars":
        X = X.with_columns(size=pl.lit(1.0))
    elif frame == "pyarrow":
        X = X.append_column("size", pa.array([1.0] * len(cells)))
    else:
        X = X.assign(size=1.0)
    return clf.predict_proba(X)


@pytest.mark.parametrize("method", [sy.NaiveBayes, sy.ShrinkageNB])
@pytest.mark.parametrize("n", [3, 12], ids=["few rows", "rows"])
@pytest.mark.parametrize("frame", FRAMES)
def test_a_model_of_texts_takes_numbers_and_the_other_way_round(method, frame, n):
    texts = list(map(str, NUMBERS))
    by_text, by_number = fitted(texts, method), fitted(NUMBERS, method)
    expected = asked(by_text, texts[:n])
    assert np.array_equal(asked(by_text, NUMBERS[:n], frame), expected)
    if frame != "floats":
        found = asked(by_number, texts[:n], frame)
        assert np.array_equal(found, asked(by_number, NUMBERS[:n]))


def test_a_matrix_of_whole_numbers_is_read_by_a_model_of_texts():
    texts = np.array([NUMBERS, NUMBERS[::-1]]).T.astype(str)
    clf = sy.NaiveBayes().fit(texts, Y)
    for kind in (np.uint8, np.int64, np.float64):
        found = clf.predict_proba(texts.astype(kind))
        assert np.array_equal(found, clf.predict_proba(texts))


def test_zeros_in_front_are_matched_where_it_is_clear_which():
    texts = ["01", "02", "003"] * 4
    clf = fitted(texts)
    assert np.array_equal(asked(clf, [1, 2, 3]), asked(clf, ["01", "02", "003"]))
    assert np.array_equal(asked(clf, [4]), asked(clf, ["4"]))
    assert texts_by_number(["1", "01", "05", "005", "x"]) == {1: "1"}


def test_truth_values_are_matched_as_files_spell_them():
    clf = fitted(["TRUE", "FALSE", "TRUE"] * 4)
    assert np.array_equal(asked(clf, [True, False]), asked(clf, ["TRUE", "FALSE"]))
    clf = fitted([True, False, True] * 4)
    assert np.array_equal(asked(clf, ["true", "False"]), asked(clf, [True, False]))


def test_what_is_no_number_is_refused_where_categories_are_numbers():
    clf = fitted(NUMBERS)
    with pytest.raises(ColumnError, match=r"'zip' contained numbers .* text \('one'\)"):
        asked(clf, ["1", "one"])
    with pytest.raises(
        ColumnError, match=r"'zip' contained text .* now contains numbers"
    ):
        asked(fitted(["a", "b", "c"] * 4), [1, 2])


@pytest.mark.parametrize(
    ("text", "number"),
    [("1", 1), (" +1.50 ", 1.5), ("1e3", 1000.0), ("-.5", -0.5), ("false", False)]
    + [(text, None) for text in ("", "1,5", "nan", "inf", "1e999", "0x1", "1_0", "٣")]
    + [("9" * 308, int("9" * 308)), ("9" * 309, None), ("1" * 5000, None)],
)
def test_which_texts_are_numbers(text, number):
    assert number_in(text) == number


def test_text_of_thousands_of_digits_is_text():
    long = "1" * 5000
    clf = fitted([long, "a", "b"] * 4)
    assert clf.scorer()({"zip": long}) == clf.scorer()({"zip": "1" * 5000})
    module = {}
    exec(sy.export.to_python(clf), module)
    assert module["score"]({"zip": long}) == clf.scorer()({"zip": long})
    numbers = fitted(NUMBERS)
    with pytest.raises(ColumnError, match=r"'zip' contained numbers .* text \('1111"):
        asked(numbers, ["1", long])
    with pytest.raises(ColumnError, match=r"'zip' takes numbers, got '1111"):
        numbers.scorer()({"zip": long})
