"""Stored files load, and predict what they predicted when they were written.

Run as a script to write them anew, after the format has changed.
"""

from __future__ import annotations

import json
import re
import runpy
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

import steelyard as sy
from steelyard.classifiers.registry import classes
from steelyard.persistence.content import PARTS, content_of
from steelyard.persistence.fitted import ATTRIBUTES
from steelyard.persistence.models import MODELS
from steelyard.proba import MEstimate

DATA = Path(__file__).parent / "data"

COLUMNS = ["weather", "windy", "level", "cut", "heat", "grid"]
ROWS = [
    ["sun", True, 1, 0.5, 20.25, 1.0],
    ["sun", False, 2, None, 21.5, 2.0],
    ["rain", True, 1, 2.5, 11.125, 2.0],
    ["rain", True, 3, -1.0, 9.0, None],
    ["snow ❄", False, 2, 0.0, None, 5.0],
    [None, False, 3, 1.75, -3.5, 8.0],
    ["", True, 1, 3.0, 0.1, 8.5],
    ["sun", False, 1, 0.75, 18.0, 3.0],
]
NEW_ROWS = [
    ["hail", None, 9, None, None, None],
    ["sun", True, 2, 1e6, 15.0, 4.0],
    ["", False, 3, -7.0, 1e3, -4.0],
]
LABELS = ["out", "out", "in", "in", "in", "in", "maybe", "out"]


def frame(rows):
    table = pd.DataFrame(rows, columns=COLUMNS).astype({"windy": "boolean"})
    numbers = ["level", "cut", "heat", "grid"]
    return table.astype(dict.fromkeys(numbers, "float64"))


def pairs_model():
    """Return a mixture for each pair of classes, with infinite bounds."""
    clf = sy.RegularizedNB(
        categorical_features=["weather"],
        numeric="gaussian",
        multiclass="one-vs-one",
        bounds={"weather": (0.0, np.inf), "heat": [0, None]},
        max_iter=2,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clf.fit(frame(ROWS)[["weather", "heat"]], LABELS)


def golden_model():
    return sy.NaiveBayes(
        categorical_features=["weather", "windy", "level"],
        numeric={
            "cut": sy.FixedEdgesDiscretizer({"cut": [0.25, 1.5]}),
            "heat": "gaussian",
            "grid": "gaussian-weka",
        },
        missing="value",
        smoothing=MEstimate(m=1.5),
        class_weight={"maybe": 0.5},
    ).fit(frame(ROWS), LABELS, sample_weight=np.arange(1, 9) / 4)


def joint_model():
    """Return a hierarchy with an interaction, several resolutions and a slope."""
    clf = sy.ShrinkageNB(
        categorical_features=["weather", "windy", "level"],
        strength=(2.5, 10.0, 2.5),
        interactions=[("weather", "windy"), ("level", "cut")],
        missing="value",
    )
    return clf.fit(frame(ROWS), LABELS)


STORED = {"mixed": golden_model, "pairs": pairs_model, "joint": joint_model}


@pytest.mark.plain
@pytest.mark.parametrize("name", STORED)
def test_a_saved_model_has_the_keys_of_the_stored_file(name, tmp_path):
    STORED[name]().save(tmp_path / "model.json")
    texts = (tmp_path / "model.json").read_text(), (DATA / f"{name}.json").read_text()
    new, stored = map(json.loads, texts)
    assert new["version"] == stored["version"] == 1
    assert shape_of(new["content"]) == shape_of(stored["content"])


def shape_of(value):
    """Return nested keys of a content, of lists those of the first item."""
    if isinstance(value, dict):
        return {key: shape_of(item) for key, item in value.items()}
    return [shape_of(value[0])] if isinstance(value, list) and value else None


@pytest.mark.plain
@pytest.mark.parametrize("name", STORED)
def test_stored_models_load_and_predict_the_same(name):
    clf = sy.load(DATA / f"{name}.json")
    expected = json.loads((DATA / f"{name}_expected.json").read_text("utf-8"))
    table = frame(expected["rows"])[clf.feature_names_in_]
    np.testing.assert_allclose(
        clf.predict_proba(table), expected["proba"], rtol=1e-12, atol=1e-300
    )
    np.testing.assert_allclose(
        clf.predict_joint_log_proba(table), expected["joint"], rtol=1e-12
    )
    assert clf.predict(table).tolist() == expected["labels"]


@pytest.mark.plain
def test_the_stored_model_is_fitted_again():
    stored, fitted = sy.load(DATA / "mixed.json"), golden_model()
    assert stored.model_.schema == fitted.model_.schema
    np.testing.assert_allclose(stored.model_.table, fitted.model_.table, rtol=1e-12)
    np.testing.assert_array_equal(stored.counts_.by_code, fitted.counts_.by_code)
    assert stored.get_params()["class_weight"] == {"maybe": 0.5}
    assert stored.smoothing.m == 1.5


@pytest.mark.plain
def test_the_example_in_the_documentation_is_a_model(tmp_path):
    page = Path(__file__).parents[2] / "docs" / "model_file.md"
    (example,) = re.findall(r"```json\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    (tmp_path / "model.json").write_text(example, "utf-8")
    clf = sy.load(tmp_path / "model.json")
    table = pd.DataFrame({"sky": ["rain"], "heat": [11.0]})
    assert clf.predict(table).tolist() == ["in"]


@pytest.mark.plain
def test_stored_models_keep_what_they_learned():
    stored = sy.load(DATA / "pairs.json")
    assert isinstance(stored, sy.RegularizedNB)
    assert stored.bounds == {"weather": (0.0, np.inf), "heat": [0, None]}
    assert stored.alpha_.shape == (3,)
    assert stored.attribute_weights_.shape == (3, 2)
    assert stored.class_attribute_weights_.shape == (3, 2, 2)
    assert stored.diagnostics_[0]["pair"] == ["in", "maybe"]
    assert stored.objective_ > 0
    assert [model.alpha for model in stored.model_.models] == stored.alpha_.tolist()


@pytest.mark.plain
def test_the_documentation_names_every_key_and_part(learned_models):
    page = Path(__file__).parents[2] / "docs" / "model_file.md"
    builder = runpy.run_path(str(page.parents[1] / "tools" / "build_docs.py"))
    text = builder["with_tables"](page.read_text("utf-8"))
    named = set(re.findall(r"`\"?([\w.-]+)\"?`", text))
    keys = set(ATTRIBUTES) | set(PARTS) | set(classes()) | set(MODELS)
    for kind in ("plain", "value", "mixture", "pairs"):
        content = content_of(learned_models(kind))
        keys |= set(content) | set(content["features"][0]) | set(content["model"])
        keys |= {f"counts_.{key}" for key in content["fitted"]["counts_"]}
        keys |= {f"gaussian.{key}" for key in content["model"].get("gaussian", ())}
    assert keys - {"gaussian"} <= named


def main():
    """Write the files and what they predict."""
    for name, make in STORED.items():
        clf = make()
        clf.save(DATA / f"{name}.json")
        table = frame(ROWS + NEW_ROWS)[clf.feature_names_in_]
        expected = {
            "rows": ROWS + NEW_ROWS,
            "proba": clf.predict_proba(table).tolist(),
            "joint": clf.predict_joint_log_proba(table).tolist(),
            "labels": clf.predict(table).tolist(),
        }
        text = json.dumps(expected, indent=1, ensure_ascii=False)
        (DATA / f"{name}_expected.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
