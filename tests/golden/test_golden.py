"""Models of released versions predict what they predicted; presets fit what they did.

Bits are compared where STEELYARD_EXACT is set, which is meant for the machine that
wrote the files; elsewhere logarithms and exponentials may differ in the last place.
"""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path

import numpy as np
import pytest

import steelyard as sy

_spec = importlib.util.spec_from_file_location(
    "golden", Path(__file__).with_name("golden.py")
)
golden = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(golden)

# Methods that no released version has a model of.
SINCE_0_1 = {"TAN", "AODE", "WAODE"}

EXACT = bool(os.environ.get("STEELYARD_EXACT"))
EXPECTED = json.loads((golden.MODELS / "expected.json").read_text("utf-8"))
RECORDED = json.loads(golden.FITS.read_text("utf-8"))


def assert_same(value, expected, rtol):
    if isinstance(expected, list) and expected and isinstance(expected[0], list):
        assert len(value) == len(expected)
        for one, other in zip(value, expected, strict=True):
            assert_same(one, other, rtol)
        return
    value, expected = np.array(value, dtype=float), np.array(expected, dtype=float)
    if EXACT:
        np.testing.assert_array_equal(value, expected)
    else:
        np.testing.assert_allclose(value, expected, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_models_of_version_0_1_predict_what_they_predicted(name):
    clf = sy.load(golden.MODELS / f"{name}.json")
    found = golden.predictions(clf, "mixed")
    assert found["labels"] == EXPECTED[name]["labels"]
    for key in ("joint", "proba"):
        assert_same(found[key], EXPECTED[name][key], 1e-12)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["SHNB", "hierarchy"])
def test_files_of_0_1_mean_the_default_of_their_time(name):
    clf = sy.load(golden.MODELS / f"{name}.json")
    assert (clf.resolutions, clf.pairs) == (1, None)
    X, y = golden.mixed_table()
    # Models of that time did not begin at the base rate, to which a missing cell adds.
    whole = X[X.notna().all(axis=1)]
    before = centred_scores(clf, whole)
    # How rows are dealt to folds, by which strengths are chosen, has changed since.
    clf.set_params(strength=clf.strength_).fit(X, y)
    assert clf.pairs_ == []
    np.testing.assert_allclose(centred_scores(clf, whole), before, atol=0.05)


def centred_scores(clf, X):
    scores = clf.predict_joint_log_proba(X)
    return scores - scores.mean(axis=1, keepdims=True)


@pytest.mark.parametrize("case", sorted(RECORDED))
def test_every_method_fits_what_it_fitted(case):
    name, table = case.rsplit(" ", 1)
    clf = golden.fitted(golden.classifiers()[name], table)
    found = golden.record(clf, table)
    assert set(found["learned"]) >= set(RECORDED[case]["learned"])
    for key, value in RECORDED[case]["learned"].items():
        # Weights that hardly matter are only as sure as the solver's tolerance.
        assert_same(found["learned"][key], value, 1e-5)
    assert_same(found["proba"], RECORDED[case]["proba"], 1e-6)


def test_every_method_has_a_model_and_its_fits():
    names = {entry.acronym for entry in sy.methods()}
    assert names - SINCE_0_1 <= set(EXPECTED)
    assert {f"{name} numeric" for name in names} <= set(RECORDED)
