"""Made-up weights, mixtures and pairs are refused where they make no sense."""

from __future__ import annotations

import copy

import pytest

import steelyard as sy
from steelyard.exceptions import ModelFileError
from steelyard.persistence.content import content_of, estimator_from
from steelyard.persistence.reader import InvalidContentError

pytestmark = pytest.mark.plain

SIX = [1.0] * 6


@pytest.mark.parametrize(
    ("kind", "where", "value"),
    [
        ("attribute", ("fitted", "attribute_weights_"), [1.0] * 5),
        ("attribute", ("fitted", "attribute_weights_"), [[1.0]] * 6),
        ("attribute", ("fitted", "attribute_weights_"), [*SIX[:5], 1e51]),
        ("attribute", ("fitted", "attribute_weights_"), [*SIX[:5], None]),
        ("attribute", ("fitted", "attribute_weights_"), 1.0),
        ("attribute", ("fitted", "attribute_weights_"), None),
        ("attribute", ("fitted", "prior_weight_"), [1.0]),
        ("attribute", ("fitted", "prior_weight_"), "inf"),
        ("attribute", ("fitted", "prior_weight_"), -1e60),
        ("attribute", ("fitted", "class_attribute_weights_"), [SIX] * 2),
        ("attribute", ("fitted", "alpha_"), 1.5),
        ("attribute", ("fitted", "objective_"), {"number": "inf"}),
        ("attribute", ("fitted", "objective_"), 10**400),
        ("attribute", ("fitted", "objective_"), 1e308),
        ("attribute", ("fitted", "n_iter_"), 0),
        ("attribute", ("fitted", "n_iter_"), 1.0),
        ("attribute", ("fitted", "n_iter_"), True),
        ("attribute", ("fitted", "n_iter_"), 10**400),
        ("attribute", ("fitted", "unheard_of_"), 1.0),
        ("attribute", ("fitted", "model_"), {}),
        ("attribute", ("fitted", "diagnostics_"), {}),
        ("attribute", ("fitted", "diagnostics_"), [1]),
        ("attribute", ("fitted", "diagnostics_", 0, "columns"), ["a", "a"]),
        ("attribute", ("fitted", "diagnostics_", 0, "columns", 0), 1),
        ("attribute", ("fitted", "diagnostics_", 0, "columns"), []),
        ("attribute", ("fitted", "diagnostics_", 0, "rows", 0), []),
        ("attribute", ("fitted", "diagnostics_", 0, "rows", 0), {}),
        ("attribute", ("fitted", "diagnostics_", 0, "rows", 0, 0), [[1]]),
        ("attribute", ("fitted", "diagnostics_", 0, "rows", 0, 0), 10**400),
        ("attribute", ("fitted", "diagnostics_", 0, "rows", 0, 0), float("inf")),
        ("attribute", ("fitted", "diagnostics_", 0, "rows", 0, 0), {"part": "Fixed"}),
        ("attribute", ("fitted", "diagnostics_", 0, "rows", 0, 0), {"number": "x"}),
        ("value", ("fitted", "value_weights_"), [[SIX] * 3] * 5),
        ("value", ("fitted", "value_weights_", 1), [[1.0, 1.0]] * 2),
        ("value", ("fitted", "value_weights_", 1), [[1.0]] * 3),
        ("value", ("fitted", "value_weights_", 1, 0, 0), 1e99),
        ("value", ("fitted", "value_weights_", 4, 0), []),
        ("mixture", ("model", "alpha"), -1e-300),
        ("mixture", ("model", "alpha"), 1.0000000000000002),
        ("mixture", ("model", "alpha"), [0.5]),
        ("mixture", ("model", "alpha"), True),
        ("mixture", ("model", "shared"), None),
        ("mixture", ("model", "shared", "kind"), "mixture"),
        ("mixture", ("model", "specific", "table"), []),
        ("mixture", ("model", "specific", "gaussian", "weight", 0, 0), -2e50),
        ("mixture", ("model", "specific", "link_scale"), 0),
        ("mixture", ("fitted", "alpha_"), [0.5]),
        ("mixture", ("fitted", "alpha_"), -0.5),
        ("mixture", ("fitted", "class_attribute_weights_"), [SIX] * 2),
        ("pairs", ("model", "pairs"), []),
        ("pairs", ("model", "pairs"), [[0, 1], [0, 2]]),
        ("pairs", ("model", "pairs"), [[0, 1], [0, 2], [2, 1]]),
        ("pairs", ("model", "pairs"), [[0, 1], [0, 2], [1, 3]]),
        ("pairs", ("model", "pairs"), [[0, 1], [0, 2], [1, -1]]),
        ("pairs", ("model", "pairs"), [[0, 1], [0, 1], [1, 2]]),
        ("pairs", ("model", "pairs"), [[0, 1], [0, 2], [1, 2, 0]]),
        ("pairs", ("model", "pairs"), [[0, 1], [0, 2], [1, 2], [1, 2]]),
        ("pairs", ("model", "pairs"), 3),
        ("pairs", ("model", "models"), []),
        ("pairs", ("model", "models", 0), None),
        ("pairs", ("model", "models", 0, "kind"), "pairs"),
        ("pairs", ("model", "models", 0, "log_prior"), [0.0, 0.0, 0.0]),
        ("pairs", ("model", "models", 0, "table", 0), [0.0, 0.0, 0.0]),
        ("pairs", ("model", "log_prior"), [0.0, 0.0]),
        ("pairs", ("model", "log_prior"), ["-inf"] * 3),
        ("pairs", ("fitted", "attribute_weights_"), SIX),
        ("pairs", ("fitted", "attribute_weights_"), [SIX] * 2),
        ("pairs", ("fitted", "counts_", "by_class"), [1.0, 1.0]),
        ("pairs of mixtures", ("fitted", "alpha_"), 0.5),
        ("pairs of mixtures", ("fitted", "alpha_"), [0.5, 0.5, 2.0]),
        ("pairs of mixtures", ("fitted", "class_attribute_weights_"), [SIX] * 3),
        ("pairs of mixtures", ("model", "models", 2, "alpha"), 2),
    ],
    ids=repr,
)
def test_what_was_not_learned_is_refused(kind, where, value, learned_models):
    content = copy.deepcopy(content_of(learned_models(kind)))
    parent = content
    for key in where[:-1]:
        parent = parent[key]
    parent[where[-1]] = value
    with pytest.raises(InvalidContentError, match=rf"content\.{where[0]}"):
        estimator_from(content)


@pytest.mark.parametrize(
    "where",
    [
        *(("fitted", key) for key in ("objective_", "n_iter_", "diagnostics_")),
        *(("fitted", key) for key in ("counts_", "training_")),
        ("fitted", "training_", "ranges"),
        ("model", "centre"),
        *(("features", 0, key) for key in ("cuts", "ordered", "left_out", "sides")),
        *(("settings", key) for key in ("instances", "device", "verbose")),
    ],
    ids=repr,
)
def test_what_every_such_model_has_must_be_there(where, learned_models):
    content = copy.deepcopy(content_of(learned_models("attribute")))
    parent = content
    for key in where[:-1]:
        parent = parent[key]
    del parent[where[-1]]
    with pytest.raises(InvalidContentError, match=f"{where[-1]} is missing"):
        estimator_from(content)


@pytest.mark.parametrize("kind", ["mixture", "pairs"])
def test_plain_naive_bayes_has_one_sum(kind, learned_models):
    content = content_of(learned_models("plain"))
    content["model"] = content_of(learned_models(kind))["model"]
    with pytest.raises(InvalidContentError, match=r"content\.model\.kind"):
        estimator_from(content)


def test_the_pairs_of_many_classes_are_not_made_before_they_are_counted(
    learned_models, write_content
):
    content = content_of(learned_models("pairs"))
    # Five times ten to the eleventh pairs.
    content["classes"] = {"dtype": "int64", "values": list(range(1_000_000))}
    with pytest.raises(ModelFileError, match=r"content\.model\.pairs"):
        sy.load(write_content(content))


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("bounds", {"number": "inf"}),
        ("bounds", {"tuple": [0, {"number": "nan"}]}),
        ("bounds", {"tuple": [0, "inf"]}),
        ("bounds", {"tuple": [0, {"number": "inf", "x": 1}]}),
        ("bounds", {"tuple": [0, float("inf")]}),
        ("bounds", {"tuple": [0]}),
        ("bounds", {"tuple": [0, True, 1]}),
        ("bounds", {"tuple": {"0": 0, "1": 1}}),
        ("bounds", {"mapping": [["text", 1]]}),
        ("bounds", {"mapping": [[{"tuple": []}, {"tuple": [0, 1]}]]}),
        ("bounds", [[0, 10**400]]),
        ("lam", {"number": "inf"}),
        ("tol", "1e-10"),
        ("max_iter", 10**400),
        ("loss", {"part": "LogLoss", "settings": {"multiplier": 2.0}}),
        ("loss", {"part": "DevianceLoss", "settings": {}}),
        ("loss", {"part": "DevianceLoss", "settings": {"multiplier": [2.0]}}),
        ("loss", {"part": "Newton", "settings": {"tol": 1e-3, "max_iter": 5}}),
        ("loss", {"part": "Loss", "settings": {}}),
        ("solver", {"part": "Newton", "settings": {"tol": None, "max_iter": 5}}),
        ("solver", {"part": "Newton", "settings": {"tol": 1e-3, "max_iter": -5}}),
        ("solver", {"part": "Solver", "settings": {}}),
        ("solver", {"part": "WeightedNB", "settings": {}}),
        ("weighting", {"part": "MixtureWeighting", "settings": {"prior_weight": 0}}),
        ("weighting", {"part": "Weighting", "settings": {"prior_weight": False}}),
        ("weighting", ["attribute"]),
        ("calibrated", 1),
    ],
    ids=repr,
)
def test_settings_that_cannot_be_are_refused(setting, value, learned_models):
    content = content_of(learned_models("attribute"))
    content["settings"][setting] = value
    with pytest.raises(InvalidContentError, match=r"content\.settings"):
        estimator_from(content)
