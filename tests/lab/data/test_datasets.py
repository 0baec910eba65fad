"""Real tables, as a new user would meet them: none fails with the default settings."""

import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from steelyard import NaiveBayes, load
from steelyard.exceptions import IdentifierWarning
from steelyard.io.dataset import read_dataset

FOLDER = os.environ.get("STEELYARD_DATA")
FILES = (
    sorted(path for path in Path(FOLDER).iterdir() if ".arff" in path.name)
    if FOLDER
    else []
)

# Typed by hand: text, numbers and holes.
PASSENGERS = [
    ["male", "third", 22, 7.25, "S", False],
    ["female", "first", 38, 71.28, "C", False],
    ["female", "third", 26, 7.92, "S", True],
    ["female", "first", 35, 53.1, "S", False],
    ["male", "third", 35, 8.05, "S", True],
    ["male", "third", None, 8.46, "Q", None],
    ["male", "first", 54, 51.86, "S", True],
    ["male", None, 2, 21.07, None, False],
    ["female", "third", 27, 11.13, "S", False],
    ["female", "second", 14, 30.07, "C", False],
    ["female", "third", 4, 16.7, "S", None],
    ["male", "second", None, 13, "S", True],
]
SURVIVED = ["no", "yes", "yes", "yes", "no", "no", "no", "no", "yes", "yes", "yes"]
SURVIVED = [*SURVIVED, "no"]
NAMES = ["sex", "class", "age", "fare", "port", "alone"]


def by_column():
    return {name: [row[j] for row in PASSENGERS] for j, name in enumerate(NAMES)}


def typed(library):
    """Return the hand-typed table as a user of a library would type it."""
    if library == "lists":
        return PASSENGERS
    if library == "tuples":
        return [tuple(row) for row in PASSENGERS]
    if library == "numpy":
        return np.array(PASSENGERS, dtype=object)
    if library == "pandas":
        return pd.DataFrame(by_column())
    if library == "pandas rows":
        return pd.DataFrame(PASSENGERS, columns=NAMES)
    return pl.DataFrame(by_column(), strict=False)


LIBRARIES = ["lists", "tuples", "numpy", "pandas", "pandas rows", "polars"]


@pytest.mark.plain
@pytest.mark.parametrize("library", LIBRARIES)
def test_hand_typed_table_gives_the_same_model_from_every_library(library):
    clf = NaiveBayes().fit(typed(library), SURVIVED)
    expected = NaiveBayes().fit(typed("numpy"), SURVIVED)
    kinds = [feature.kind for feature in clf.model_.schema.features]
    assert kinds == [f.kind for f in expected.model_.schema.features]
    assert kinds[2:4] == ["binned", "binned"]
    assert clf.classes_.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(
        clf.predict_proba(typed(library)), expected.predict_proba(typed("numpy"))
    )
    assert clf.score(typed(library), SURVIVED) > 0.9


@pytest.mark.plain
def test_one_new_row_may_be_typed_as_a_list():
    clf = NaiveBayes().fit(PASSENGERS, SURVIVED)
    whole = ["female", "third", 30, 10.0, "S", True]
    assert clf.predict([whole]).tolist() == ["yes"]
    np.testing.assert_array_equal(
        clf.predict_proba([whole]),
        clf.predict_proba(np.array([whole], dtype=object)),
    )
    holes = ["female", None, None, 10.0, "Z", True]
    assert clf.predict([holes]).tolist() == ["yes"]


@pytest.mark.plain
@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("column", NAMES)
def test_one_new_row_may_lack_any_cell(library, column):
    clf = NaiveBayes().fit(library(by_column()), SURVIVED)
    row = {"sex": "female", "class": "third", "age": 30.0, "fare": 10.0, "port": "S"}
    row["alone"] = True
    row[column] = None
    j = NAMES.index(column)
    found = clf.predict_joint_log_proba(library({k: [v] for k, v in row.items()}))[0]
    schema, table = clf.model_.schema, clf.model_.table
    expected = clf.class_log_prior_.copy()
    for k, feature in enumerate(schema.features):
        if k == j:
            continue
        if feature.kind == "categorical":
            code = feature.code_of[row[feature.name]]
        else:
            code = 1 + int(np.searchsorted(feature.edges, row[feature.name]))
        expected += table[schema.offsets[k] + code]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("missing", ["skip", "impute", "value"])
@pytest.mark.parametrize("numeric", ["mdl", "gaussian", "equal-frequency"])
def test_hand_typed_table_under_every_treatment_saves_and_loads(
    missing, numeric, tmp_path
):
    X = pd.DataFrame(by_column())
    clf = NaiveBayes(missing=missing, numeric=numeric).fit(X, SURVIVED)
    proba = clf.predict_proba(X)
    assert clf.score(X, SURVIVED) > 0.8
    clf.save(tmp_path / "model.json")
    np.testing.assert_array_equal(load(tmp_path / "model.json").predict_proba(X), proba)


@pytest.mark.skipif(not FILES, reason="STEELYARD_DATA names no folder of ARFF files")
@pytest.mark.parametrize(
    "path", FILES or [None], ids=lambda path: getattr(path, "name", None)
)
def test_every_data_set_fits_and_predicts_with_the_defaults(path):
    data = read_dataset(path)
    X, y = data.table, pd.Series(data.target)
    with warnings.catch_warnings():
        # Some of these tables do hold identifiers.
        warnings.simplefilter("ignore", IdentifierWarning)
        clf = NaiveBayes().fit(X, y)
    proba = clf.predict_proba(X)
    assert np.isfinite(proba).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    assert np.isfinite(clf.predict_joint_log_proba(X)).all()
    # About as good as always saying the most frequent class, or better: where one
    # class has nearly all rows, naive Bayes is known to overstate the evidence.
    majority = y.value_counts(normalize=True).iloc[0]
    assert (clf.predict(X) == y.to_numpy()).mean() > majority - 0.05
