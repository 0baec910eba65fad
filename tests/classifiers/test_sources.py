"""Fits of rows that are read in chunks, against fits of the same table in memory."""

import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import steelyard as sy
from steelyard.exceptions import ParameterError, TableError

NAMES = ["a", "b", "c", "x", "z", "y", "w"]


@pytest.fixture(scope="module")
def table(table_of_all_kinds):
    made = table_of_all_kinds.assign(w=(2 * table_of_all_kinds["w"]).astype(int))
    return pa.Table.from_pandas(made[NAMES], preserve_index=False)


@pytest.fixture
def rows(table, tmp_path):
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=350)
    return sy.scan(tmp_path / "t.parquet", columns=NAMES[:5], chunk_rows=170)


def made(name):
    clf = sy.method(name)
    if "random_state" in clf.get_params():
        clf.set_params(random_state=0)
    return clf


def quiet_fit(clf, *rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clf.fit(*rows)


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("name", [entry.acronym for entry in sy.methods()])
def test_every_method_learns_from_a_source_what_it_learns_in_memory(
    name, weight, table, rows
):
    X, y = table.select(NAMES[:5]), table["y"]
    u = None if weight is None else table[weight].to_numpy().astype(float)
    try:
        here = quiet_fit(made(name), X, y, u)
    except ValueError as error:
        with pytest.raises(type(error)):
            quiet_fit(made(name), rows, "y", weight)
        return
    there = quiet_fit(made(name), rows, "y", weight)
    p, q = here.predict_proba(X), there.predict_proba(X)
    np.testing.assert_allclose(q, p, rtol=0, atol=1e-10)


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("numeric", ["mdl", ("equal-width", "mdl")])
def test_folds_with_cut_points_of_their_own_read_their_rows_again(
    numeric, weight, table, rows, monkeypatch
):
    monkeypatch.setattr("steelyard.fitting.default.folds.MAX_ROWS", 300)
    X, y = table.select(NAMES[:5]), table["y"]
    u = None if weight is None else table[weight].to_numpy().astype(float)
    here = quiet_fit(sy.ShrinkageNB(numeric=numeric), X, y, u)
    there = quiet_fit(sy.ShrinkageNB(numeric=numeric), rows, "y", weight)
    assert there.strength_path_ == here.strength_path_
    np.testing.assert_allclose(
        there.predict_proba(X), here.predict_proba(X), rtol=0, atol=1e-10
    )


def test_folds_by_position_are_refused_of_a_source(rows):
    clf = sy.ShrinkageNB(cv=[([0, 1, 2], [3, 4])])
    with pytest.raises(ParameterError, match="rows have no order"):
        clf.fit(rows, "y")


def test_chunks_are_predicted_as_the_table_is(table, rows):
    clf = quiet_fit(sy.NaiveBayes(), rows, "y")
    X = table.select(NAMES[:5])
    parts = list(clf.predict_chunks(rows))
    assert len(parts) > 1
    np.testing.assert_array_equal(np.concatenate(parts), clf.predict_proba(X))
    labels = np.concatenate(list(clf.predict_chunks(rows, "predict")))
    np.testing.assert_array_equal(labels, clf.predict(X))


def test_a_source_in_place_of_a_table_is_refused_with_what_to_call(table, rows):
    clf = quiet_fit(sy.NaiveBayes(), rows, "y")
    with pytest.raises(TableError, match=r"predict by predict_chunks\(rows\)"):
        clf.predict(rows)
    with pytest.raises(TableError, match="this is a table in memory"):
        clf.predict_chunks(table)
    with pytest.raises(ParameterError, match="`method` must be one of"):
        clf.predict_chunks(rows, "score")
