"""What holds for every classifier of the package, present and future."""

import numpy as np
import pytest
from sklearn.base import clone

import steelyard as sy
from steelyard._common.settings import check_settings
from steelyard.classifiers.base.estimator import BaseNB
from steelyard.classifiers.registry import classes
from steelyard.exceptions import ParameterError

CLASSIFIERS = [getattr(sy, name) for name in classes()]
WITH_FACTORS = [cls for cls in CLASSIFIERS if "class_weight" in cls._settings]
METHODS = [name for entry in sy.methods() for name in entry.names]

quietly = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def by_name(cls):
    return cls.__name__


def table(n=60, seed=0):
    """Three columns of categories that say something of three classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = np.where(rng.random((n, 3)) < 0.6, y[:, None], rng.integers(0, 3, (n, 3)))
    return X.astype(str), np.array(["ant", "bee", "cat"])[y]


def quick(cls, **settings):
    """Return a classifier with few rounds and a seed."""
    few = {"max_iter": 20, "generations": 2, "population_size": 4, "random_state": 0}
    known = {name: few[name] for name in few if name in cls._settings}
    return cls(**{**known, **settings})


def test_only_the_base_class_and_the_one_with_test_data_define_fit():
    bases = {base for cls in CLASSIFIERS for base in cls.__mro__}
    assert {cls for cls in bases if "fit" in vars(cls)} == {BaseNB, sy.SPSSNaiveBayes}


@pytest.mark.parametrize("cls", CLASSIFIERS, ids=by_name)
def test_defaults_pass_their_own_check(cls):
    check_settings(cls())
    recipe = cls()._recipe()
    assert recipe.n_jobs is None


@pytest.mark.parametrize("name", METHODS)
def test_settings_of_every_method_pass_the_check(name):
    check_settings(sy.method(name))


@quietly
@pytest.mark.parametrize("cls", CLASSIFIERS, ids=by_name)
def test_a_fitted_classifier_has_what_it_declares_and_nothing_else(cls, tmp_path):
    X, y = table()
    clf = quick(cls).fit(X, y)
    names = {name for name in vars(clf) if name.endswith("_")}
    always = {name for name, entry in cls._learned.items() if not entry.optional}
    assert always - names <= {"feature_names_in_"}
    assert names <= set(cls._learned)
    clf.save(tmp_path / "model.json")
    again = sy.load(tmp_path / "model.json")
    assert again.get_params() == clf.get_params()
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))


@quietly
@pytest.mark.parametrize("cls", WITH_FACTORS, ids=by_name)
@pytest.mark.parametrize("class_weight", [{"ant": 3.0, "cat": 0.5}, "balanced"])
def test_counts_are_weighted_by_sample_weight_alone(cls, class_weight):
    X, y = table()
    u = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    plain = sy.NaiveBayes().fit(X, y, u)
    clf = quick(cls, class_weight=class_weight).fit(X, y, u)
    np.testing.assert_allclose(clf.counts_.by_class, plain.counts_.by_class)
    of_columns = plain.counts_.by_code
    by_code, schema = clf.counts_.by_code, clf.counts_.schema
    np.testing.assert_allclose(by_code[: len(of_columns)], of_columns)
    for j in np.flatnonzero(
        schema.is_interaction
    ):  # every row has one code of an interaction
        of_interaction = by_code[schema.offsets[j] : schema.offsets[j + 1]].sum(axis=0)
        np.testing.assert_allclose(of_interaction, plain.counts_.by_class)
    totals = plain.counts_.by_class
    factors = np.array([3.0, 1.0, 0.5])
    if class_weight == "balanced":
        factors = totals.sum() / (3 * totals)
    np.testing.assert_allclose(clf.class_count_, factors * totals)


@quietly
@pytest.mark.parametrize("instances", ["discriminative", "value-frequency"])
@pytest.mark.parametrize(
    "cls", [cls for cls in CLASSIFIERS if "instances" in cls._settings], ids=by_name
)
def test_learned_instance_weights_are_in_no_count(cls, instances):
    X, y = table()
    clf = quick(cls, instances=instances)
    try:
        clf.fit(X, y)
    except ParameterError as error:
        assert "`instances`" in str(error)  # has instance weights of its own
        clf = quick(cls).fit(X, y)
    assert clf.instance_weights_.std() > 0
    plain = sy.NaiveBayes().fit(X, y)
    np.testing.assert_array_equal(clf.counts_.by_code, plain.counts_.by_code)
    np.testing.assert_array_equal(clf.class_count_, plain.class_count_)


@quietly
@pytest.mark.parametrize("cls", CLASSIFIERS, ids=by_name)
def test_a_refused_fit_leaves_the_earlier_model(cls):
    X, y = table()
    clf = quick(cls).fit(X, y)
    before = {name: vars(clf)[name] for name in vars(clf) if name.endswith("_")}
    clf.set_params(smoothing="none")
    with pytest.raises(
        ParameterError, match=f"The 'smoothing' parameter of {cls.__name__} must be"
    ):
        clf.fit(X[:, :2], y)
    after = {name: vars(clf)[name] for name in vars(clf) if name.endswith("_")}
    assert before.keys() == after.keys()
    assert all(before[name] is after[name] for name in before)
    assert not hasattr(clone(clf), "model_")
