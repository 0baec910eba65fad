"""Methods by acronym."""

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.datasets import load_iris

import steelyard as sy
from steelyard import NaiveBayes
from steelyard.exceptions import ParameterError


def test_table_of_methods_is_a_sequence_that_prints_as_a_table():
    table = sy.methods()
    acronyms = [entry.acronym for entry in table]
    assert acronyms[:4] == ["NB", "NB-Laplace", "GNB", "GNB-Weka"]
    assert len(table) == len(set(acronyms))
    assert table[0].estimator is NaiveBayes
    header, *rows = repr(table).splitlines()
    assert header.split()[:3] == ["acronym", "class", "family"]
    names = [", ".join(entry.names) for entry in table]
    assert all(row.startswith(name) for row, name in zip(rows, names, strict=True))
    assert all(row["paper"] and row["learns"] for row in table.rows())


@pytest.mark.parametrize("entry", sy.methods(), ids=lambda entry: entry.acronym)
def test_every_method_is_an_unfitted_classifier_that_learns(entry):
    clf = sy.method(entry.acronym)
    assert is_classifier(clf)
    assert not hasattr(clf, "classes_")
    assert {k: clf.get_params()[k] for k in entry.settings} == dict(entry.settings)
    X, y = load_iris(return_X_y=True)
    assert clf.fit(X, y).score(X, y) > 0.93


@pytest.mark.parametrize(
    "name", ["NB-Laplace", "nb-laplace", "NB_LAPLACE", "nblaplace", " Nb  Laplace "]
)
def test_acronyms_are_matched_without_case_dashes_and_blanks(name):
    assert sy.method(name).smoothing == "laplace"


def test_settings_are_changed_one_by_one():
    clf = sy.method("GNB", smoothing=0.5, n_jobs=2)
    assert (clf.numeric, clf.smoothing, clf.n_jobs) == ("gaussian", 0.5, 2)


def test_two_calls_give_two_objects():
    assert sy.method("NB") is not sy.method("NB")


@pytest.mark.parametrize(
    "name, nearest",
    [
        ("GNB-Veka", "GNB-Weka"),
        ("NBB", "NB"),
        ("laplace", "NB-Laplace"),
        ("klnbb", "KLNB"),
    ],
)
def test_unknown_acronym_names_the_nearest_and_all_known(name, nearest):
    with pytest.raises(ParameterError, match=f"Did you mean '{nearest}'\\?") as error:
        sy.method(name)
    assert "Known: NB, NB-Laplace, GNB, GNB-Weka" in str(error.value)


@pytest.mark.parametrize("name", ["random forest", "xyz"])
def test_a_name_that_is_near_to_none_gets_no_suggestion(name):
    with pytest.raises(ParameterError, match=rf"no method '{name}'\. Known: NB,"):
        sy.method(name)


@pytest.mark.parametrize("name", ["", 3, None])
def test_what_is_no_acronym_is_refused_in_the_same_way(name):
    with pytest.raises(ParameterError, match="There is no method"):
        sy.method(name)


def test_unknown_setting_names_the_nearest_and_all_settings():
    with pytest.raises(ParameterError, match="no setting 'smothing'") as error:
        sy.method("NB", smothing=1.0)
    assert "Did you mean 'smoothing'?" in str(error.value)
    assert "variance_floor" in str(error.value)
    with pytest.raises(ParameterError, match=r"no setting 'q'\. Settings:"):
        sy.method("NB", q=1)


def test_preset_equals_the_class_with_the_same_settings():
    X, y = load_iris(return_X_y=True)
    preset = sy.method("GNB-Weka").fit(X, y)
    clf = NaiveBayes(numeric="gaussian-weka", smoothing="laplace").fit(X, y)
    np.testing.assert_array_equal(preset.predict_proba(X), clf.predict_proba(X))
