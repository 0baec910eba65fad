"""Models of weighted, voting and kept rows come back; made-up ones are refused."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest

import steelyard as sy
from steelyard.classifiers.lazy import KERNELS
from steelyard.exceptions import ParameterError
from steelyard.instances import (
    DiscriminativeWeighting,
    InstanceWeighting,
    ValueFrequencyWeighting,
)
from steelyard.persistence.content import content_of, estimator_from
from steelyard.persistence.reader import InvalidContentError
from steelyard.weighting import CorrelationWeighting

pytestmark = pytest.mark.plain

CATEGORICAL = ["text", "flag", "level"]
DENSITIES = {"density": "gaussian", "grid": "gaussian"}


@pytest.fixture(scope="module")
def labels(learned_models, frame):
    return learned_models("plain").predict(frame)


def in_memory(clf):
    return estimator_from(json.loads(json.dumps(content_of(clf), allow_nan=False)))


def some(clf):
    """Fit on a few rows of two columns, one of which holds numbers."""
    X = np.array([["a", 1.0], ["b", 2.0], [None, 4.0], ["a", None]] * 2, object)
    return clf.fit(X, [0, 1, 1, 0] * 2)


CASES = {
    "weights of rows": lambda: sy.InstanceWeightedNB(
        instances=DiscriminativeWeighting(2)
    ),
    "frequencies": lambda: sy.InstanceWeightedNB(instances=ValueFrequencyWeighting()),
    "no instances": lambda: sy.InstanceWeightedNB(instances=None),
    "votes": lambda: sy.BoostedNB(rounds=np.int64(3)),
    "given prior": lambda: sy.LocallyWeightedNB(prior=[0.5, 0.25, 0.25]),
    "zero prior": lambda: sy.LazyAttributeInstanceNB(prior=[0.5, 0.5, 0.0]),
    "frequency": lambda: sy.LocallyWeightedNB(prior="frequency", n_neighbors=None),
    "matches": lambda: sy.LazyAttributeInstanceNB(attribute_weights=False),
    "kept": lambda: sy.CollaborativeNB(variant="interactive", keep="last"),
    "mixture": lambda: sy.CollaborativeNB(weighting="mixture", loss="brier", rounds=2),
    "joint": lambda: sy.JointWeightedNB(weighting="value", instance_lam=2),
    "both": lambda: sy.WeightedNB(
        instances=DiscriminativeWeighting(2), weighting=CorrelationWeighting()
    ),
    **{
        f"{kernel} kernel": lambda kernel=kernel: sy.LocallyWeightedNB(
            kernel=kernel, n_neighbors=7, numeric=DENSITIES
        )
        for kernel in KERNELS
    },
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_models_come_back(
    name, weighted, frame, labels, fit_quietly, assert_same_models
):
    clf = CASES[name]().set_params(categorical_features=CATEGORICAL)
    # Rows of weight zero have no learned weight.
    weights = np.arange(len(frame)) % 4 * 0.5 if weighted else None
    clf = fit_quietly(clf, frame, labels, sample_weight=weights)
    again = in_memory(clf)
    assert_same_models(clf, again)
    for method in ("predict_proba", "predict_log_proba", "predict_joint_log_proba"):
        mine, its = getattr(clf, method)(frame), getattr(again, method)(frame)
        assert mine.tobytes() == its.tobytes()
    assert clf.predict(frame).tolist() == again.predict(frame).tolist()
    if hasattr(clf, "hardest_rows"):
        assert clf.hardest_rows(5).tolist() == again.hardest_rows(5).tolist()


def test_two_classes_by_elkans_form_come_back(frame, labels, assert_same_models):
    clf = sy.BoostedNB(form="elkan", rounds=3, categorical_features=CATEGORICAL)
    clf.fit(frame, labels == "yes")
    again = in_memory(clf)
    assert_same_models(clf, again)
    assert clf.predict_proba(frame).tobytes() == again.predict_proba(frame).tobytes()


def test_kept_rows_come_back_through_files(frame, labels, through_a_file):
    for cls in (sy.LocallyWeightedNB, sy.LazyAttributeInstanceNB):
        clf = cls(categorical_features=CATEGORICAL).fit(frame, labels)
        again = through_a_file(clf)
        assert again.model_.columns.dtype == clf.model_.columns.dtype
        assert (
            clf.predict_proba(frame).tobytes() == again.predict_proba(frame).tobytes()
        )


def test_an_instance_weighting_of_the_users_own_cannot_be_saved(tmp_path):
    class Own(ValueFrequencyWeighting):
        pass

    assert issubclass(Own, InstanceWeighting)
    clf = some(sy.InstanceWeightedNB(instances=Own()))
    with pytest.raises(ParameterError, match=r"'instances' holds a .*Own"):
        clf.save(tmp_path / "model.json")


HOSTILE = {
    "rows": lambda: sy.InstanceWeightedNB(),
    "votes": lambda: sy.BoostedNB(rounds=2),
    "local": lambda: sy.LocallyWeightedNB(numeric="gaussian"),
    "matches": lambda: sy.LazyAttributeInstanceNB(),
    "rounds": lambda: sy.CollaborativeNB(rounds=1),
}


@pytest.mark.parametrize(
    ("kind", "where", "value"),
    [
        ("rows", ("fitted", "instance_weights_"), []),
        ("rows", ("fitted", "instance_weights_"), None),
        ("rows", ("fitted", "instance_weights_"), [[1.0]]),
        ("rows", ("fitted", "instance_weights_", 0), -1.0),
        ("rows", ("fitted", "instance_weights_", 0), 1e51),
        ("rows", ("fitted", "instance_weights_", 0), "nan"),
        ("rows", ("fitted", "instance_weights_", 0), True),
        ("rows", ("model", "kind"), "votes"),
        ("rows", ("settings", "instances"), "hard"),
        ("rows", ("settings", "instances"), {"part": "LogLoss", "settings": {}}),
        ("votes", ("model", "form"), "samme"),
        ("votes", ("model", "models"), []),
        ("votes", ("model", "models"), {}),
        ("votes", ("model", "models", 0), None),
        ("votes", ("model", "models", 0, "kind"), "votes"),
        ("votes", ("model", "votes"), []),
        ("votes", ("model", "votes", 0), -1.0),
        ("votes", ("model", "votes", 0), 1e51),
        ("votes", ("fitted", "votes_"), [1.0] * 9),
        ("votes", ("settings", "rounds"), -1),
        ("votes", ("settings", "form"), 1),
        ("local", ("model", "kind"), "matches"),
        ("local", ("model", "columns"), []),
        ("local", ("model", "columns", 0), []),
        ("local", ("model", "columns", 0, 0), 3),
        ("local", ("model", "columns", 0, 0), -1),
        ("local", ("model", "columns", 0, 0), 1.0),
        ("local", ("model", "columns", 0, 0), True),
        ("local", ("model", "columns", 0, 0), 10**400),
        ("local", ("model", "columns", 0, 0), None),
        ("local", ("model", "y"), []),
        ("local", ("model", "y", 0), 2),
        ("local", ("model", "y", 0), "0"),
        ("local", ("model", "weights"), [1.0]),
        ("local", ("model", "weights"), [0.0] * 8),
        ("local", ("model", "log_prior"), ["-inf", "-inf"]),
        ("local", ("model", "log_prior"), [0.0]),
        ("local", ("model", "value_added"), [0.0]),
        ("local", ("model", "value_added"), [1.0, 1.0]),
        ("local", ("model", "prior_added"), [-1.0, 1.0]),
        ("local", ("model", "tie_order"), [0, 0]),
        ("local", ("model", "tie_order"), [0, 2]),
        ("local", ("model", "tie_order"), [0]),
        ("local", ("model", "numbers"), []),
        ("local", ("model", "numbers", 0, 0), 1e200),
        ("local", ("model", "numbers", 0, 0), "nan"),
        ("local", ("model", "numbers", 0), [1.0]),
        ("local", ("model", "floors"), [0.0]),
        ("local", ("model", "floors"), [1.7e308]),
        ("local", ("model", "neighbours"), 0),
        ("local", ("model", "neighbours"), 1.5),
        ("local", ("model", "kernel"), "box"),
        ("local", ("model", "kernel"), 0),
        ("local", ("model", "exponents"), [1.0, 1.0]),
        ("local", ("settings", "n_neighbors"), 0),
        ("local", ("settings", "kernel"), None),
        ("matches", ("model", "exponents"), [1.0]),
        ("matches", ("model", "exponents", 0), 1e51),
        ("matches", ("model", "exponents"), None),
        ("matches", ("fitted", "attribute_weights_"), [1.0]),
        ("matches", ("settings", "attribute_weights"), 1),
        ("rounds", ("fitted", "n_rounds_"), -1),
        ("rounds", ("fitted", "n_rounds_"), 1.0),
        ("rounds", ("settings", "variant"), "reverse"),
        ("rounds", ("settings", "keep"), "first"),
        ("rounds", ("settings", "max_rounds"), 0),
        ("rounds", ("model", "kind"), "pairs"),
    ],
    ids=repr,
)
def test_what_cannot_have_been_learned_is_refused(kind, where, value):
    content = copy.deepcopy(content_of(some(HOSTILE[kind]())))
    parent = content
    for key in where[:-1]:
        parent = parent[key]
    parent[where[-1]] = value
    with pytest.raises(InvalidContentError, match=rf"content\.{where[0]}"):
        estimator_from(content)


def test_matches_have_no_gaussian_attributes():
    content = content_of(some(sy.LazyAttributeInstanceNB()))
    local = content_of(some(sy.LocallyWeightedNB(numeric="gaussian")))
    content["features"] = local["features"]
    with pytest.raises(InvalidContentError, match=r"content\.model\.columns"):
        estimator_from(content)
