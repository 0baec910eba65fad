"""Whoever reads a model file comes to the same verdict, and to the same answers.

A changed file with a fitting checksum is given to ``load`` and ``read``, to ``steelyard
predict`` with small and with other files, to the scorer and to an export: all refuse it
with one message, or all answer with the same numbers.
"""

from __future__ import annotations

import copy
import importlib
import json
import random
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard.cli import small
from steelyard.cli.run import main
from steelyard.exceptions import ModelFileError, ParameterError
from steelyard.persistence import files
from steelyard.persistence.content import content_of
from steelyard.persistence.files import read

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
mutate = importlib.import_module("fuzzing.model_files").mutate

# Sums of codes and slopes, and models of every other kind.
SUMS = ["NB", "SHNB", "WANBIA-CLL", "TAN", "CFW", "SNB"]
OTHERS = ["GNB", "RNB", "BNB", "LWNB", "AIWNB-L", "AODE", "ENB", "SPSS"]


def table(n_classes):
    rng = np.random.default_rng(n_classes)
    y = np.arange(48) % n_classes
    X = pd.DataFrame(
        {
            "word": np.array(["a", "b", "c"])[(y + (rng.random(48) < 0.3)) % 3],
            "size": np.round(rng.normal(size=48) + 2 * y, 2),
            "level": rng.integers(0, 4, 48).astype(float),
        }
    )
    X.loc[3, "size"] = np.nan
    return X, np.array(["no", "yes", "so"])[y]


@pytest.fixture(scope="module")
def contents():
    """Return a function that fits a method, and describes it."""
    known = {}

    def get(method, n_classes=2):
        if (method, n_classes) not in known:
            clf = sy.method(method)
            if method == "ENB":
                clf.set_params(multiclass="one-vs-one", penalty="ridge", lam=1.0)
            if "max_iter" in clf.get_params():
                clf.set_params(max_iter=30, tol=1e-2)
            clf.fit(*table(n_classes))
            known[method, n_classes] = content_of(clf)
        return known[method, n_classes]

    return get


@pytest.fixture
def verdicts(tmp_path, capsys, monkeypatch):
    """Return a function that asks all readers, and says whether they answered."""
    rows = table(3)[0].head(6)
    rows.loc[0] = ["never", np.nan, 9.0]
    model, data = tmp_path / "model.json", tmp_path / "new.csv"
    rows.to_csv(data, index=False)
    argv = ["predict", str(model), str(data), "--digits", "17"]

    small_rows = small.small_rows

    def command(reader):
        monkeypatch.setattr(small, "small_rows", reader)
        status = main(argv)
        return status, *capsys.readouterr()

    def ask(content):
        write(content, model)
        status, text, message = command(small_rows)
        assert (status, text, message) == command(lambda *arguments: None)
        try:
            clf = sy.load(model)
        except ModelFileError as error:
            refused = f"steelyard: {error}".split()
            assert status == 2 and message.split() == refused
            with pytest.raises(ModelFileError) as caught:
                read(model)
            assert str(caught.value) == str(error)
            return False
        assert read(model).estimator == type(clf).__name__
        if not status:  # otherwise the file lacks columns
            same_answers(clf, rows, text, tmp_path)
        return True

    return ask


def write(content, path):
    text = files._canonical(content)
    document = {"format": files.FORMAT, "version": files.VERSION, "content": content}
    document["checksum"] = files._checksum(files.VERSION, text)
    path.write_text(json.dumps(document))


def same_answers(clf, rows, text, folder):
    """Compare predictions, those of the command line, of a scorer and of an export."""
    proba, labels = clf.predict_proba(rows), clf.predict(rows).tolist()
    lines = [line.split(",") for line in text.splitlines()[1:]]
    assert [line[0] for line in lines] == list(map(str, labels))
    printed = np.array([line[1:] for line in lines], dtype=float)
    assert printed.tobytes() == proba.tobytes()
    try:
        score = clf.scorer()
    except ParameterError as error:
        with pytest.raises(ParameterError) as caught:
            clf.export(folder / "model.js")
        assert str(caught.value) == str(error)
        return
    clf.export(folder / "model.py")
    exported = {}
    exec((folder / "model.py").read_text(encoding="utf-8"), exported)
    cells = rows.astype(object).where(rows.notna(), None).to_dict("records")
    assert [score.predict(row) for row in cells] == labels
    scored = np.array([list(score(row).values()) for row in cells])
    again = np.array([list(exported["score"](row).values()) for row in cells])
    assert again.tobytes() == scored.tobytes()
    np.testing.assert_allclose(scored, proba, rtol=0.0, atol=1e-12)


def mutated(content, seed):
    """Return a changed document that JSON can hold."""
    rng = random.Random(seed)
    while True:
        changed = mutate(content, rng)
        try:
            files._canonical(changed)
        except ValueError:
            continue
        return changed


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("method", SUMS)
def test_changed_files_have_one_verdict(method, n_classes, contents, verdicts):
    content = contents(method, n_classes)
    assert verdicts(content)
    seeds = [f"{method} {n_classes} {k}" for k in range(25)]
    accepted = [verdicts(mutated(content, seed)) for seed in seeds]
    assert not all(accepted)


@pytest.mark.parametrize("method", OTHERS)
def test_changed_files_of_other_models_have_one_verdict(method, contents, verdicts):
    content = contents(method, 3 if method == "ENB" else 2)
    assert verdicts(content)
    seeds = [f"{method} {k}" for k in range(12)]
    assert not all(verdicts(mutated(content, seed)) for seed in seeds)


def forged(content, where, value):
    changed = copy.deepcopy(content)
    parent = changed
    for key in where[:-1]:
        parent = parent[key]
    parent[where[-1]] = value
    return changed


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("more",), 1),
        (("features", 1, "edges"), [2.0, 1.0]),
        (("features", 0, "values"), ["a", "a", "c"]),
        (("features", 0, "more"), None),
        (("model", "link_scale"), -3.0),
        (("model", "more"), []),
        (("model", "log_prior"), [1e101, 0.0]),
        (("estimator",), "Oracle"),
        (("estimator",), "LocallyWeightedNB"),
        (("settings", "missing"), "sometimes"),
        (("settings", "numeric"), {"part": "LBFGS", "settings": {}}),
        (("settings", "more"), 1),
        (("library",), None),
        (("fitted", "counts_", "by_class"), [-1.0, 1.0]),
        (("fitted", "more"), 1),
        (("classes", "dtype"), "int8"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_forged_files_are_refused_by_all(where, value, contents, verdicts):
    assert not verdicts(forged(contents("NB"), where, value))


def test_evidence_of_unknown_values_is_for_no_scorer(contents, verdicts):
    content = forged(contents("NB"), ("model", "table", 0, 0), 0.5)
    assert verdicts(content)
    content["features"][0]["values"] = ["a", "b", "z"]
    assert verdicts(content)
