"""The model as a whole: value tables, importance, parts."""

import json

import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard.exceptions import ParameterError

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("acronym", ["NB", "WANBIA-CLL", "CAVWNB", "RNB"])
def test_importance_from_counts_is_that_over_the_training_rows(acronym, mixed):
    X, y = mixed
    clf = sy.method(acronym).fit(X, y)
    from_counts, from_rows = clf.explain_global(), clf.explain_global(X)
    np.testing.assert_allclose(from_counts.importance, from_rows.importance, rtol=1e-10)


def test_importance_of_two_classes_is_the_mean_absolute_log_odds(two):
    X, y = two
    clf = sy.NaiveBayes().fit(X, y)
    parts = clf.explain_local(X).contributions
    expected = np.abs(parts[:, :, 1] - parts[:, :, 0]).mean(axis=0)
    np.testing.assert_allclose(clf.explain_global().importance, expected, rtol=1e-10)


def test_importance_by_densities_is_near_that_over_rows(mixed):
    X, y = mixed
    clf = sy.NaiveBayes(numeric="gaussian", missing="skip").fit(X, y)
    found = clf.explain_global()
    assert "densities" in found.source
    np.testing.assert_allclose(
        found.importance, clf.explain_global(X).importance, rtol=0.1
    )


def test_value_tables_hold_the_models_own_numbers(mixed):
    X, y = mixed
    clf = sy.NaiveBayes().fit(X, y)
    found = clf.explain_global()
    table = found.table("colour")
    assert table.labels == ["(missing or unseen)", "blue", "green", "red"]
    assert table.counts[:, :].sum() == len(y)
    assert table.counts[0].sum() == X["colour"].isna().sum()
    start = clf.model_.schema.offsets[0]
    np.testing.assert_allclose(
        table.contributions + table.mean, clf.model_.table[start : start + 4]
    )
    rows = table.counts.sum(axis=1)
    np.testing.assert_allclose(rows @ table.contributions, 0.0, atol=1e-12)
    assert "colour (categorical)" in repr(table)


def test_gaussian_tables_are_curves(mixed):
    X, y = mixed
    table = sy.NaiveBayes(numeric="gaussian").fit(X, y).explain_global().table("width")
    assert table.counts is None and len(table.points) == len(table.labels)
    assert (np.diff(table.points) > 0).all()


def test_models_that_are_not_one_sum_show_their_parts(mixed):
    X, y = mixed
    mixture = sy.method("RNB").fit(X, y).explain_global()
    assert [part.name for part in mixture.parts] == [
        "class-specific half",
        "shared half",
    ]
    assert mixture.base is None and "Not one sum" in repr(mixture)
    with pytest.raises(ParameterError, match="in its parts"):
        mixture.table("colour")
    assert mixture.parts[0].explanation.table("colour").counts is not None
    lazy = sy.method("LWNB").fit(X, y)
    assert lazy.explain_global().importance is None
    assert lazy.explain_global(X[:30]).importance.shape == (4,)
    assert "nearest" in repr(lazy.explain_global())


def test_pairs_have_the_counts_of_their_own_classes(mixed):
    X, y = mixed
    clf = sy.method("ENB", multiclass="one-vs-one", numeric="mdl").fit(X, y)
    found = clf.explain_global()
    assert len(found.parts) == 3
    own = found.parts[0].explanation.table("colour")
    assert own.counts.sum() == np.isin(y, ["ant", "bee"]).sum()
    assert found.importance.shape == (4,)


def test_weights_are_part_of_it(mixed):
    X, y = mixed
    clf = sy.method("WANBIA-CLL").fit(X, y)
    found = clf.explain_global()
    np.testing.assert_array_equal(
        found.weights["attribute_weights_"], clf.attribute_weights_
    )
    assert "weight" in repr(found)


def test_it_is_plain_data_for_json(case):
    clf, _ = case
    data = json.loads(json.dumps(clf.explain_global().to_dict(), allow_nan=False))
    assert data["attributes"][:4] == ["colour", "length", "width", "striped"]


def test_a_loaded_model_is_explained_like_the_saved_one(mixed, tmp_path):
    X, y = mixed
    clf = sy.method("WANBIA-CLL").fit(X, y)
    clf.save(tmp_path / "model.json")
    again = sy.load(tmp_path / "model.json")
    assert again.explain_global().to_dict() == clf.explain_global().to_dict()


def test_unknown_columns_and_unfitted_models_are_refused(mixed):
    X, y = mixed
    with pytest.raises(ParameterError, match="no column 'size'"):
        sy.NaiveBayes().fit(X, y).explain_global().table("size")
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        sy.NaiveBayes().explain_global()


@pytest.mark.parametrize("make", [sy.NaiveBayes, sy.WeightedNB])
@pytest.mark.parametrize("numeric", ["mdl", "gaussian"])
def test_a_constant_column_has_no_importance(make, numeric):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 80)
    X = pd.DataFrame({"x": rng.normal(size=80) + 3 * y, "one": 7.0, "sky": "sun"})
    X.loc[::5, "one"] = np.nan
    importance = make(numeric=numeric).fit(X, y).explain_global().importance
    assert importance[0] > 0.0
    assert importance[1:].tolist() == [0.0, 0.0]


def test_rows_are_those_whose_cell_is_known():
    X = pd.DataFrame({"a": [1.0, 2.0, None, 4.0] * 5, "b": ["x", None, None, "y"] * 5})
    for missing in ("skip", "value"):
        clf = sy.NaiveBayes(missing=missing).fit(X, [0, 1, 0, 1] * 5)
        assert clf.explain_global().rows.tolist() == [15.0, 10.0]
