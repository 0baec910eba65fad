"""Classifiers with learned weights come back to the last bit, whatever they learned."""

from __future__ import annotations

import inspect
import json

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

import steelyard as sy
from steelyard._common.settings import check_settings
from steelyard.classifiers.base.estimator import BaseNB
from steelyard.classifiers.registry import classes, homes
from steelyard.exceptions import ParameterError
from steelyard.losses import BrierLoss, DevianceLoss, ExponentialLoss, LogLoss
from steelyard.persistence.content import (
    PARTS,
    content_of,
    describe_settings,
    estimator_class,
    estimator_from,
    with_parts,
)
from steelyard.persistence.declarations import declaration, read_settings
from steelyard.persistence.fitted import ATTRIBUTES
from steelyard.persistence.reader import ObjectReader
from steelyard.solvers import LBFGS, Fixed, Newton
from steelyard.weighting import (
    AttributeWeighting,
    ClassAttributeWeighting,
    MixtureWeighting,
)

pytestmark = pytest.mark.plain

CATEGORICAL = ["text", "flag", "level"]
METHODS = {name: entry for entry in sy.methods() for name in entry.names}
# Parts with a setting that has no default.
PARTS_THAT_NEED = {
    "FixedEdgesDiscretizer": lambda: sy.FixedEdgesDiscretizer([0.5, 1.5])
}
PAIRED = [
    name
    for name, entry in METHODS.items()
    if "multiclass" in entry.estimator._get_param_names()
    and entry.estimator is not sy.CollaborativeNB  # refuses pairs
]


@pytest.fixture(scope="module")
def labels(learned_models, frame):
    """Return labels of three classes."""
    return learned_models("plain").predict(frame)


def in_memory(clf):
    """Describe a model as text and build it again, without a file."""
    return estimator_from(json.loads(json.dumps(content_of(clf), allow_nan=False)))


def same_settings(a, b):
    if isinstance(a, BaseEstimator):
        mine, its = a.get_params(deep=False), b.get_params(deep=False)
        same = all(same_settings(value, its[name]) for name, value in mine.items())
        return type(a) is type(b) and same
    if isinstance(a, dict):
        same = all(same_settings(value, b[name]) for name, value in a.items())
        return type(b) is dict and list(a) == list(b) and same
    return type(a) is type(b) and a == b


def comes_back(clf, X, assert_same_models):
    again = in_memory(clf)
    assert same_settings(clf, again)
    assert_same_models(clf, again)
    for name in ("predict_proba", "predict_log_proba", "predict_joint_log_proba"):
        mine, its = getattr(clf, name)(X), getattr(again, name)(X)
        assert mine.tobytes() == its.tobytes()
    assert clf.predict(X).tolist() == again.predict(X).tolist()


def test_every_public_classifier_can_be_saved():
    public = [getattr(sy, name) for name in homes()]
    classifiers = {c for c in public if isinstance(c, type) and issubclass(c, BaseNB)}
    assert classifiers == {estimator_class(name) for name in classes()}
    assert {entry.estimator for entry in METHODS.values()} <= classifiers


@pytest.mark.parametrize("name", list(classes()))
def test_every_setting_of_a_classifier_is_checked(name):
    cls = estimator_class(name)
    assert set(declaration(name).attributes) <= set(ATTRIBUTES)
    assert set(cls._get_param_names()) == set(cls._settings)
    for entry in cls._settings.values():
        assert entry.allowed is not None and entry.allowed.accepts(entry.default)


@pytest.mark.parametrize("name", list(PARTS))
def test_every_setting_of_a_part_is_checked(name):
    part = PARTS[name]
    assert set(part._get_param_names()) == set(part._settings)
    for entry in part._settings.values():
        if entry.default is not inspect.Parameter.empty:
            assert entry.allowed is not None and entry.allowed.accepts(entry.default)
    check_settings(PARTS_THAT_NEED.get(name, part)())


@pytest.mark.parametrize("name", [*classes(), *PARTS])
def test_every_default_comes_back_from_a_file(name):
    cls = PARTS[name] if name in PARTS else estimator_class(name)
    owner = PARTS_THAT_NEED.get(name, cls)()
    text = json.dumps(describe_settings(owner), allow_nan=False)
    reader = ObjectReader(json.loads(text), "content.settings")
    again = cls(**with_parts(read_settings(reader, name)))
    assert same_settings(owner, again)


@pytest.mark.parametrize("name", list(METHODS))
def test_every_method_comes_back(name, frame, labels, fit_quietly, assert_same_models):
    clf = METHODS[name].create(categorical_features=CATEGORICAL)
    comes_back(fit_quietly(clf, frame, labels), frame, assert_same_models)


@pytest.mark.parametrize("name", PAIRED)
def test_every_method_comes_back_by_pairs_of_classes(
    name, frame, labels, fit_quietly, assert_same_models
):
    clf = METHODS[name].create(
        categorical_features=CATEGORICAL, multiclass="one-vs-one", class_weight=None
    )
    clf = fit_quietly(clf, frame, labels, sample_weight=np.arange(len(frame)) % 3 + 0.5)
    assert clf.model_.pairs == ((0, 1), (0, 2), (1, 2))
    comes_back(clf, frame, assert_same_models)


@pytest.mark.parametrize("kind", ["attribute", "mixture", "pairs", "pairs of mixtures"])
def test_learned_models_come_back_through_files(
    kind, learned_models, frame, through_a_file, assert_same_models
):
    clf = learned_models(kind)
    again = through_a_file(clf)
    assert_same_models(clf, again)
    assert clf.predict_proba(frame).tobytes() == again.predict_proba(frame).tobytes()
    assert not hasattr(again, "partial_fit")


@pytest.mark.parametrize(
    "settings",
    [
        {"loss": "exponential", "calibrated": True},
        {"loss": DevianceLoss(3.5), "calibrated": True, "multiclass": "one-vs-one"},
        {"loss": LogLoss(), "weighting": AttributeWeighting()},
        {
            "loss": BrierLoss(published_gradient=True),
            "solver": LBFGS(memory=3),
        },
        {"loss": ExponentialLoss(), "weighting": ClassAttributeWeighting()},
        {"weighting": AttributeWeighting(prior_weight=True), "solver": Newton(1e-3, 2)},
        {"weighting": MixtureWeighting(prior_weight=True), "loss": BrierLoss()},
        {"weighting": "mixture", "loss": "brier", "prior_weight": True},
        {"weighting": "value", "prior_weight": True, "multiclass": "one-vs-one"},
        {"weighting": "class-attribute", "prior_weight": True, "missing": "value"},
        {"solver": Fixed(), "missing": "impute"},
        {"solver": "published", "numeric": "gaussian-weka"},
        {"solver": LBFGS(gradient_tol=1e-3), "numeric": "gaussian-weka"},
        {"numeric": "gaussian-weka", "weighting": "value"},
        {"numeric": "gaussian-weka", "weighting": "mixture", "loss": "brier"},
        {"numeric": "gaussian-weka", "multiclass": "one-vs-one", "calibrated": True},
        {"numeric": "gaussian", "variance": "sample", "weighting": "class-attribute"},
        {"penalty": None, "lam": 3, "center": 0, "tol": 0},
        {"penalty": "l1", "lam": 0.5, "class_weight": "balanced"},
        {"prior": (0.5, 0.25, 0.25), "smoothing": 0.1},
        {"prior": [0.5, 0.25, 0.25], "multiclass": "one-vs-one"},
        {"numeric": {"cut": sy.FixedEdgesDiscretizer({"cut": (0.0, 1.0)})}},
    ],
    ids=str,
)
def test_every_kind_of_learning_comes_back(
    settings, frame, labels, fit_quietly, assert_same_models
):
    clf = sy.WeightedNB(categorical_features=CATEGORICAL, **settings)
    comes_back(fit_quietly(clf, frame, labels), frame, assert_same_models)


@pytest.mark.parametrize("weighting", ["attribute", "class-attribute", "value"])
def test_two_classes_and_empty_columns_come_back(
    weighting, fit_quietly, assert_same_models
):
    X = np.array([["a", None, "u"], ["b", None, "u"], ["a", None, "u"]] * 3, object)
    clf = sy.WeightedNB(weighting=weighting, multiclass="one-vs-one")
    clf = fit_quietly(clf, X, [True, False, False] * 3)
    comes_back(clf, X, assert_same_models)


@pytest.mark.parametrize("classes", [[1, 2, 3], [1.0, 2.0, 3.0], list("abc")])
@pytest.mark.parametrize("dtype", [None, object])
def test_every_kind_of_class_comes_back_in_pairs(
    classes, dtype, fit_quietly, assert_same_models
):
    X = np.array([["u"], ["v"], ["w"], ["u"]] * 3)
    clf = sy.WeightedNB(multiclass="one-vs-one")
    clf = fit_quietly(clf, X, np.array(classes * 4, dtype=dtype))
    comes_back(clf, X, assert_same_models)


def bounds_that_come_back(bounds):
    X = np.array([[0.5, 1.0], [1.5, 2.0], [0.5, 3.0], [2.5, 1.0]] * 2)
    clf = sy.WeightedNB(bounds=bounds, numeric="gaussian", solver="fixed")
    return in_memory(clf.fit(X, [0, 1] * 4)).bounds


@pytest.mark.parametrize(
    "bounds",
    [
        None,
        (0.0, 1.0),
        (0, 1),
        [0.0, 2.0],
        (0.0, None),
        [None, None],
        (0, np.inf),
        (-np.inf, np.inf),
        [(0.0, 1.0), (0.5, 0.5)],
        ([0.0, 1.0], [0.5, np.inf]),
        {0: (0.0, 1.0)},
        {-1: [None, 2.5], 0: (0, np.inf)},
        {},
    ],
    ids=str,
)
def test_bounds_come_back_as_they_were(bounds):
    again = bounds_that_come_back(bounds)
    assert again == bounds
    assert repr(again) == repr(bounds)


def test_bounds_in_arrays_come_back_as_lists():
    assert bounds_that_come_back(np.array([0.0, 1.0])) == [0.0, 1.0]
    pairs = np.array([[0.0, 1.0], [-np.inf, np.inf]])
    assert bounds_that_come_back(pairs) == pairs.tolist()
    again = bounds_that_come_back({np.int64(1): np.array([0.0, np.inf])})
    assert again == {1: [0.0, np.inf]}
    assert [type(key) for key in again] == [int]


def test_text_that_reads_like_a_number_stays_text(frame, labels):
    table = frame[["text", "level"]].set_axis(["inf", "-inf"], axis=1)
    clf = sy.WeightedNB(
        categorical_features=["inf", "-inf"],
        bounds={"inf": (0.0, np.inf), "-inf": (-np.inf, 1.0)},
        solver="fixed",
    ).fit(table, labels)
    again = in_memory(clf)
    assert again.categorical_features == ["inf", "-inf"]
    assert again.bounds == {"inf": (0.0, np.inf), "-inf": (-np.inf, 1.0)}


def test_a_loaded_model_can_be_fitted_again(
    learned_models, frame, labels, fit_quietly, assert_same_models
):
    for kind in ("value", "pairs of mixtures"):
        clf = learned_models(kind)
        mine = fit_quietly(clone(clf), frame, labels)
        its = fit_quietly(clone(in_memory(clf)), frame, labels)
        assert_same_models(mine, its)


def test_settings_that_changed_after_fitting_do_not_hinder_saving(
    learned_models, frame, assert_same_models
):
    clf = in_memory(learned_models("mixture"))
    clf.set_params(weighting="value", loss="log", multiclass="one-vs-one")
    comes_back(clf, frame, assert_same_models)


def test_records_of_any_shape_come_back(learned_models, assert_same_models):
    clf = in_memory(learned_models("attribute"))
    clf.diagnostics_ = [
        {"iteration": 1, "step": None, "gradient": np.inf},
        {"iteration": 2, "step": 0.5, "gradient": float("nan")},
        {"step": -0.0, "iteration": 3},
        {"pair": ["a", "inf"], "done": True, "note": "inf"},
        {},
    ]
    assert_same_models(clf, in_memory(clf))
    clf.diagnostics_ = [{"objective": np.float64(0.1), "step": np.float32(0.5)}]
    assert in_memory(clf).diagnostics_ == [{"objective": 0.1, "step": 0.5}]
    clf.diagnostics_ = []
    assert in_memory(clf).diagnostics_ == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bounds", (0.0, np.nan)),
        ("bounds", ("0", "1")),
        ("bounds", (0.0, 1.0, 2.0)),
        ("bounds", 1.0),
        ("lam", np.inf),
        ("lam", -1.0),
        ("tol", np.nan),
        ("max_iter", 0),
        ("max_iter", 1.5),
        ("prior_weight", 1),
        ("penalty", "ridges"),
        ("loss", DevianceLoss(-1.0)),
        ("loss", "hinge"),
        ("weighting", LogLoss()),
        ("solver", "fast"),
        ("solver", LBFGS(tol="small")),
        ("multiclass", None),
    ],
    ids=str,
)
def test_a_model_that_could_not_be_loaded_is_not_saved(
    name, value, learned_models, tmp_path
):
    clf = in_memory(learned_models("attribute")).set_params(**{name: value})
    with pytest.raises(ParameterError):
        clf.save(tmp_path / "model.json")
    assert list(tmp_path.iterdir()) == []


def test_parts_models_and_classes_of_the_users_own_cannot_be_saved(
    learned_models, tmp_path
):
    class LogLoss(DevianceLoss):
        pass

    class WeightedNB(sy.WeightedNB):
        pass

    clf = in_memory(learned_models("attribute")).set_params(loss=LogLoss())
    with pytest.raises(ParameterError, match=r"'loss' holds a .*LogLoss"):
        clf.save(tmp_path / "model.json")
    clf = in_memory(learned_models("attribute"))
    clf.model_ = object()
    with pytest.raises((ParameterError, AttributeError)):
        clf.save(tmp_path / "model.json")
    X = np.array([["u"], ["v"]] * 2)
    with pytest.raises(ParameterError, match=r"cannot be saved.*pickle"):
        WeightedNB(solver="fixed").fit(X, [0, 1] * 2).save(tmp_path / "model.json")
    assert list(tmp_path.iterdir()) == []
