"""A model that is loaded without its class answers as its classifier does."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import steelyard as sy
from steelyard.classifiers.fitted import LoadedModel
from steelyard.cli.run import main
from steelyard.explain.reasons import reasons
from steelyard.persistence.content import content_of
from steelyard.persistence.files import load_fitted

METHODS = sorted({entry.class_name: entry.acronym for entry in sy.methods()}.values())


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(4)
    y = np.arange(80) % 2
    X = pd.DataFrame(
        {
            "word": np.array(["a", "b", "c"])[(y + rng.integers(0, 2, 80)) % 3],
            "size": np.round(rng.normal(size=80) + y, 2),
            "level": rng.integers(0, 4, 80).astype(float),
        }
    )
    X.loc[3, "size"] = np.nan
    return X, pd.Series(np.array(["no", "yes"])[y], name="truth")


def fitted(method, X, y):
    clf = sy.method(method)
    settings = clf.get_params()
    given = {"max_iter": 5, "tol": 0.5, "generations": 3, "random_state": 0}
    clf.set_params(**{name: v for name, v in given.items() if name in settings})
    return clf.fit(X, y)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", METHODS)
def test_answers_are_those_of_the_classifier(method, table, tmp_path):
    X, y = table
    fitted(method, X, y).save(tmp_path / "model.json")
    clf, model = sy.load(tmp_path / "model.json"), load_fitted(tmp_path / "model.json")
    assert type(model).__name__ == type(clf).__name__
    assert isinstance(model, LoadedModel) == (method != "SPSS")
    for name in ("predict", "predict_proba", "predict_log_proba"):
        for rows in (X, X[:1]):
            found, expected = (getattr(m, name)(rows) for m in (model, clf))
            assert found.tolist() == expected.tolist()
    assert model.explain_local(X[:5]).to_dict() == clf.explain_local(X[:5]).to_dict()
    assert model.explain_global().to_dict() == clf.explain_global().to_dict()
    assert reasons(model, X[:9]) == reasons(clf, X[:9])
    for name in content_of(clf)["fitted"]:
        assert type(getattr(model, name)) is type(getattr(clf, name))
    with pytest.raises(AttributeError, match="no attribute 'nothing_'"):
        model.nothing_  # noqa: B018


COMMANDS = [
    ["explain", "model.json"],
    ["explain", "model.json", "new.csv", "--json"],
    ["predict", "model.json", "new.csv", "--reasons", "3"],
    ["evaluate", "model.json", "new.csv", "--json"],
    ["export", "model.json", "-o", "model.sql"],
    ["methods"],
]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["SHNB", "GNB", "RNB"])
def test_commands_need_neither_scikit_learn_nor_numba(
    method, table, tmp_path, monkeypatch, capsys
):
    X, y = table
    monkeypatch.setenv("COLUMNS", "100")
    fitted(method, X, y).save(tmp_path / "model.json")
    pd.concat([X, y], axis=1).to_csv(tmp_path / "new.csv", index=False)
    code = (
        "import contextlib, io, json, sys\n"
        "for name in ('sklearn', 'numba'):\n"
        "    sys.modules[name] = None\n"
        "from steelyard.cli import main\n"
        "answers = []\n"
        "for argv in json.load(sys.stdin):\n"
        "    with contextlib.redirect_stdout(io.StringIO()) as out:\n"
        "        assert main(argv) == 0, argv\n"
        "    answers.append(out.getvalue())\n"
        "print(json.dumps(answers))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        input=json.dumps(COMMANDS),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    monkeypatch.chdir(tmp_path)
    for argv, answer in zip(COMMANDS, json.loads(done.stdout), strict=True):
        assert main([*argv, *(["--force"] if argv[0] == "export" else [])]) == 0
        assert capsys.readouterr().out == answer
