"""Models of several encodings in files, and files that say what cannot be."""

import copy
import json
import pickle

import numpy as np
import pytest

import steelyard as sy
from steelyard.exceptions import ParameterError
from steelyard.persistence.content import content_of, estimator_from
from steelyard.persistence.reader import InvalidContentError
from steelyard.weighting import HierarchicalWeighting

BOTH = ("mdl", "equal-frequency")
CASES = {
    "automatic": sy.ShrinkageNB(),
    "given": sy.ShrinkageNB(strength=(1.0, 4.0, 0.5), intercept=2, numeric=BOTH),
    "trends": sy.WeightedNB(weighting="class-attribute", numeric="linear", lam=1.0),
    "grid": sy.ShrinkageNB(grid=[(1.0, 4.0, 0.5), (2, 8, 1)], cv=3, random_state=7),
    "folds": sy.ShrinkageNB(cv=[(np.arange(80), np.arange(80, 160))]),
    "instances": sy.ShrinkageNB(instances="discriminative"),
    "missing": sy.ShrinkageNB(missing="value", numeric={"width": BOTH}),
    "discretizer": sy.ShrinkageNB(
        numeric=(sy.EqualFrequencyDiscretizer(4), "mdl", "equal-width")
    ),
    "weighted": sy.WeightedNB(numeric=BOTH),
    "hierarchy": sy.WeightedNB(
        weighting=HierarchicalWeighting(overall=np.inf), bounds=None, numeric=BOTH
    ),
    "pairs": sy.WeightedNB(
        weighting="hierarchy", bounds=None, numeric=BOTH, multiclass="one-vs-one"
    ),
    "plain": sy.NaiveBayes(numeric=BOTH),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", CASES)
def test_a_saved_model_comes_back_to_the_last_bit(name, mixed, tmp_path):
    X, y = mixed
    clf = copy.deepcopy(CASES[name]).fit(X, y)
    clf.save(tmp_path / "model.json")
    back = sy.load(tmp_path / "model.json")
    # Rows are kept in memory alone.
    assert set(vars(back)) == set(vars(clf)) - {"_rows_at_hand"}
    np.testing.assert_array_equal(back.predict_proba(X), clf.predict_proba(X))
    assert back.encoder_.schema_ == clf.encoder_.schema_
    for key in ("strength_", "strength_path_", "scale_", "diagnostics_"):
        if hasattr(clf, key):
            assert getattr(back, key) == getattr(clf, key)
    for key in ("attribute_weights_", "class_attribute_weights_", "intercept_"):
        if hasattr(clf, key):
            np.testing.assert_array_equal(getattr(back, key), getattr(clf, key))
    if hasattr(clf, "value_effects_") and name != "pairs":
        for one, other in zip(back.value_effects_, clf.value_effects_, strict=True):
            assert one.shape == other.shape
            np.testing.assert_array_equal(one, other)
    found = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(found.predict_proba(X), clf.predict_proba(X))
    back.fit(X, y)
    np.testing.assert_allclose(back.predict_proba(X), clf.predict_proba(X), atol=1e-9)


def test_settings_come_back_as_they_were(mixed, tmp_path):
    X, y = mixed
    clf = copy.deepcopy(CASES["given"]).fit(X, y)
    clf.save(tmp_path / "model.json")
    back = sy.load(tmp_path / "model.json")
    assert back.get_params(deep=False) == clf.get_params(deep=False)
    assert back.numeric == BOTH
    assert isinstance(back.strength, tuple)


@pytest.fixture(scope="module")
def content(mixed):
    clf = sy.ShrinkageNB(numeric=BOTH).fit(*mixed)
    return json.loads(json.dumps(content_of(clf)))


def change(content, path, value):
    changed = copy.deepcopy(content)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    if value is KeyError:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return changed


FIRST = ("features", 1)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((*FIRST, "cuts"), KeyError),
        ((*FIRST, "cuts"), None),
        ((*FIRST, "cuts"), [0, 1]),
        ((*FIRST, "cuts"), [[0], [1]]),
        ((*FIRST, "cuts", 0), 0),
        ((*FIRST, "cuts", 0), [-1]),
        ((*FIRST, "cuts", 0), [1.0]),
        ((*FIRST, "cuts", 0), [True]),
        ((*FIRST, "cuts", 0), [1, 0]),
        ((*FIRST, "cuts", 0), [1, 1]),
        ((*FIRST, "cuts", 0), [10**30]),
        ((*FIRST, "cuts", 1), []),
        ((*FIRST, "kind"), "categorical"),
        (("features", 0, "cuts"), [[], []]),
        ((*FIRST, "name"), None),
        (("features", 2, "kind"), "gaussian-absolute"),
        (("features", 2, "step"), 0.5),
        (("features", 2, "edges"), [0.0]),
        (("settings", "strength"), [1.0, 2.0]),
        (("settings", "strength"), "weak"),
        (("settings", "strength"), [1.0, 2.0, 0.0]),
        (("settings", "strength"), {"number": "inf"}),
        (("settings", "grid"), [[1.0, 2.0]]),
        (("settings", "grid"), "all"),
        (("settings", "cv"), 0),
        (("settings", "cv"), "five"),
        (("settings", "cv"), [[[0], [-1]]]),
        (("settings", "overall"), {"number": "nan"}),
        (("settings", "overalls"), 1.0),
        (("settings", "intercept"), {"number": "inf"}),
        (("settings", "numeric"), {"tuple": []}),
        (("settings", "numeric"), {"tuple": [3]}),
        (("settings", "numeric"), {"tuple": [{"tuple": ["mdl"]}]}),
        (("fitted", "strength_"), [1.0, 2.0]),
        (("fitted", "strength_"), [1.0, 2.0, 0.0]),
        (("fitted", "strength_"), [1.0, 2.0, "3"]),
        (("fitted", "scale_"), 0.0),
        (("fitted", "scale_"), [1.0]),
        (("fitted", "strength_path_"), [{"columns": ["a"], "rows": [[1, 2]]}]),
        (("fitted", "term_names_"), ["colour"]),
        (("fitted", "term_names_"), [1, 2, 3, 4]),
        (("fitted", "value_effects_"), []),
        (("fitted", "value_effects_", 2), [[0.0], [0.0], [0.0]]),
        (("fitted", "value_effects_", 0), [[], [], []]),
        (("fitted", "intercept_"), [0.0]),
        (("fitted", "intercept_"), [0.0, 0.0, 1e60]),
        (("fitted", "attribute_weights_"), [1.0, 1.0, 1.0]),
        (("model", "gaussian", "depth"), [20.0, 20.0]),
    ],
)
def test_files_that_say_what_cannot_be_are_refused(path, value, content):
    assert estimator_from(content) is not None
    with pytest.raises(InvalidContentError):
        estimator_from(change(content, path, value))


def test_a_generator_of_random_numbers_is_refused_with_the_way_out(mixed, tmp_path):
    clf = sy.ShrinkageNB(random_state=np.random.RandomState(0)).fit(*mixed)
    with pytest.raises(ParameterError, match="pickle"):
        clf.save(tmp_path / "model.json")
    assert list(tmp_path.iterdir()) == []
