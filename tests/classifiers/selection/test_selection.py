"""A classifier that selects attributes is a transformer too."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

import steelyard as sy
from steelyard._common import progress as _progress
from steelyard.classifiers.base.selection import RecordTable
from steelyard.exceptions import ColumnError

pytestmark = pytest.mark.plain


@pytest.fixture
def fitted(weather):
    return sy.SPSSNaiveBayes().fit(*weather)


def as_arrow(table):
    return pa.table({name: table[name].to_list() for name in table})


def as_batch(table):
    return as_arrow(table).to_batches()[0]


def test_support_is_a_mask_or_positions_in_the_order_of_the_table(fitted):
    assert fitted.get_support().tolist() == [True, False, True, False]
    assert fitted.get_support(indices=True).tolist() == [0, 2]


def test_support_follows_the_table_and_selected_features_the_choice(weather):
    X, y = weather
    turned = X[["humidity", "windy", "outlook"]]
    clf = sy.SPSSNaiveBayes().fit(turned, y)
    assert clf.selected_features_ == ["outlook", "humidity"]
    assert clf.get_support(indices=True).tolist() == [0, 2]
    assert clf.transform(turned).columns.tolist() == ["humidity", "outlook"]


@pytest.mark.parametrize("convert", [pl.from_pandas, as_arrow, as_batch])
def test_transform_keeps_the_library_of_the_table(weather, fitted, convert):
    kept = fitted.transform(convert(weather[0]))
    names = kept.columns if isinstance(kept, pl.DataFrame) else kept.column_names
    assert names == ["outlook", "humidity"]
    assert isinstance(kept, (pl.DataFrame, pa.Table))


def test_transform_of_pandas_keeps_index_types_and_finds_columns_by_name(
    weather, fitted
):
    X = weather[0].astype({"humidity": "category"}).set_axis(range(5, 19))
    kept = fitted.transform(X[["windy", "humidity", "temperature", "outlook"]])
    pd.testing.assert_frame_equal(kept, X[["outlook", "humidity"]])


def test_transform_of_arrays_and_lists_gives_arrays(weather):
    X, y = weather
    clf = sy.SPSSNaiveBayes().fit(X.to_numpy(), y)
    expected = X.to_numpy()[:, [0, 2]]
    np.testing.assert_array_equal(clf.transform(X.to_numpy()), expected)
    np.testing.assert_array_equal(clf.transform(X.to_numpy().tolist()), expected)
    assert clf.selected_features_ == [0, 2]


def test_transform_checks_the_columns(weather, fitted):
    with pytest.raises(ColumnError, match="outlook"):
        fitted.transform(weather[0].drop(columns="outlook"))


def test_nothing_selected_gives_an_empty_table_and_a_warning(weather):
    X, y = weather
    clf = sy.SPSSNaiveBayes(max_size=0).fit(X, y)
    with pytest.warns(UserWarning, match="No features were selected"):
        kept = clf.transform(X)
    assert kept.shape == (14, 0)
    with pytest.warns(UserWarning, match="No features were selected"):
        assert clf.transform(pl.from_pandas(X)).width == 0


def test_names_out_are_those_of_the_table_or_made_up(weather, fitted):
    X, y = weather
    assert fitted.get_feature_names_out().tolist() == ["outlook", "humidity"]
    assert fitted.get_feature_names_out(list(X)).tolist() == ["outlook", "humidity"]
    with pytest.raises(ValueError, match="not equal to feature_names_in_"):
        fitted.get_feature_names_out(list("abcd"))
    nameless = sy.SPSSNaiveBayes().fit(X.to_numpy(), y)
    assert nameless.get_feature_names_out().tolist() == ["x0", "x2"]
    assert nameless.get_feature_names_out(list("abcd")).tolist() == ["a", "c"]
    with pytest.raises(ValueError, match="number of features"):
        nameless.get_feature_names_out(list("abc"))


def test_selection_works_in_a_pipeline(weather):
    X, y = weather
    selector = sy.SPSSNaiveBayes(select_only=True)
    pipeline = make_pipeline(selector, sy.NaiveBayes()).fit(X, y)
    assert pipeline[-1].feature_names_in_.tolist() == ["outlook", "humidity"]
    alone = sy.NaiveBayes().fit(X[["outlook", "humidity"]], y)
    expected = alone.predict_proba(X[["outlook", "humidity"]])
    np.testing.assert_array_equal(pipeline.predict_proba(X), expected)
    assert pipeline[:-1].get_feature_names_out().tolist() == ["outlook", "humidity"]


def test_output_can_be_set_as_for_any_transformer(weather):
    X, y = weather
    clf = sy.SPSSNaiveBayes().set_output(transform="pandas").fit(X.to_numpy(), y)
    assert clf.transform(X.to_numpy()).columns.tolist() == ["x0", "x2"]


def test_unfitted_selector_says_so(weather):
    clf = clone(sy.SPSSNaiveBayes())
    for call in (clf.get_support, clf.get_feature_names_out):
        with pytest.raises(NotFittedError):
            call()
    with pytest.raises(NotFittedError):
        clf.transform(weather[0])


def test_path_is_a_sequence_of_records_and_prints_as_a_table():
    path = RecordTable(
        [
            {"size": 0, "added": None, "loss": 0.5, "chosen": False},
            {"size": 2, "added": ["a", "b"], "loss": -10.25, "chosen": True},
        ]
    )
    assert len(path) == 2
    assert path[-1]["added"] == ["a", "b"]
    assert [record["size"] for record in path] == [0, 2]
    assert repr(path).splitlines() == [
        "Size  Added        Loss  Chosen",
        "   0           0.500000",
        "   2  a, b   -10.250000  *",
    ]
    assert path == RecordTable(list(path))
    assert path != RecordTable(path[:1])
    assert repr(RecordTable([])) == "(no steps)"


@pytest.mark.parametrize("has_rich", [True, False])
def test_progress_is_shown_on_standard_error_when_asked_for(
    weather, capsys, monkeypatch, has_rich
):
    if not has_rich:
        monkeypatch.setitem(__import__("sys").modules, "rich.console", None)
    sy.SPSSNaiveBayes(verbose=True).fit(*weather)
    shown = capsys.readouterr()
    assert "Forward selection" in shown.err
    assert shown.out == ""
    if not has_rich:
        assert shown.err.splitlines()[1].startswith("Forward selection 2/4 log")
    sy.SPSSNaiveBayes().fit(*weather)
    assert capsys.readouterr() == ("", "")


def test_progress_without_a_known_end_counts_steps(capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "rich.console", None)
    with _progress.progress("Searching", None, enabled=True) as advance:
        advance("")
        advance("found")
    assert capsys.readouterr().err == "Searching 1\nSearching 2 found\n"
