"""The attack of ``make fuzz``: a few cases of each kind, and that it finds bugs."""

import importlib
import random
import sys
from pathlib import Path

import numpy as np
import pytest

from steelyard.classifiers.base.estimator import BaseNB
from steelyard.export import Scorer

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))
fuzz = importlib.import_module("fuzz")
planted_bugs = importlib.import_module("planted_bugs")
answers = importlib.import_module("fuzzing.answers")
model_files = importlib.import_module("fuzzing.model_files")
texts = importlib.import_module("fuzzing.texts")

COUNTS = {"tables": 5, "files": 30, "texts": 10, "journals": 60, "chains": 10}


@pytest.mark.parametrize("kind", COUNTS)
def test_a_few_cases_hold(kind):
    done = [fuzz.run_case(kind, k, 1) for k in range(COUNTS[kind])]
    assert not {check for case in done for check in case.found}
    assert len({case.outcome for case in done} - {"refused"}) >= 1


@pytest.mark.parametrize("kind", ["files", "texts"])
def test_a_case_depends_on_seed_and_number_alone(kind):
    first, other = (fuzz.run_case(kind, 3, 2) for _ in "ab")
    assert first == other
    assert fuzz.run_case(kind, 4, 2) != first


def test_a_document_is_changed():
    content = {"a": [1.0, 2.0], "b": {"c": "d"}}
    changed = [model_files.mutate(content, random.Random(5)) for _ in "ab"]
    assert changed[0] == changed[1] != content


def test_kinds_take_turns():
    arguments = fuzz.parser().parse_args(["--tables", "2", "--files", "4"])
    first = [kind for kind, _ in fuzz.cases(arguments)][:400]
    assert {*first} == {*fuzz.ATTACKS}


class Wrong:
    classes_ = np.array([0, 1])

    def __init__(self, *rows):
        self.rows = np.array(rows)

    def predict_proba(self, X):
        return self.rows

    def predict_log_proba(self, X):
        return np.log(self.rows)

    def predict(self, X):
        return self.classes_[[0] * len(self.rows)]


@pytest.mark.parametrize(
    "row, what",
    [
        ([np.nan, 1.0], "probabilities"),
        ([0.3, 0.3], "add up"),
        ([0.2, 0.8], "likeliest"),
    ],
)
def test_a_wrong_answer_is_a_finding(row, what, capsys, monkeypatch):
    def attack(case, number):
        with case.check("answers"):
            answers.check_answers(Wrong(row), None)

    monkeypatch.setitem(fuzz.ATTACKS, "files", attack)
    assert fuzz.main(["--only", "files:3"]) == 1
    line = capsys.readouterr().out.splitlines()[0]
    assert line.startswith("--seed 0 --only files:3  answers: ")
    assert what in line


def test_a_case_that_hangs_is_a_finding(monkeypatch):
    def attack(case, number):
        while True:
            pass

    monkeypatch.setitem(fuzz.ATTACKS, "files", attack)
    monkeypatch.setattr(fuzz, "MAX_SECONDS", 1)
    assert "not done in 1 seconds" in fuzz.run_case("files", 0, 0).found["case"]


def test_nothing_found_is_success(capsys):
    assert fuzz.main(["--only", "journals:1"]) == 0
    assert "0 findings" in capsys.readouterr().out


def test_a_bug_in_an_engine_is_found_by_its_check(monkeypatch):
    right = Scorer.__call__

    def wrong(self, row):
        told = right(self, row)
        return dict(zip(told, reversed(list(told.values())), strict=True))

    monkeypatch.setattr(Scorer, "__call__", wrong)
    assert "scorer" in fuzz.run_case("tables", 0, 1).found


def test_an_edit_that_is_not_undone_ends_a_chain(monkeypatch):
    assert not fuzz.run_case("chains", 3, 1).found
    monkeypatch.setattr(BaseNB, "unedited", lambda clf: clf)
    done = fuzz.run_case("chains", 3, 1)
    assert "without edits" in done.found
    assert ", edited {" in done.about


def test_blocks_of_texts_are_small(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,class\n" + "1,yes\n2,no\n" * 100)
    whole, parts = texts.as_scan(path), texts.as_scan(path, 64)
    assert whole == parts
    assert len(whole[0]["a"]) == 200


@pytest.mark.parametrize("bug", planted_bugs.BUGS, ids=lambda bug: bug.name)
def test_planted_bugs_have_a_place(bug):
    having = [
        path for path in (ROOT / "src").rglob("*.py") if bug.old in path.read_text()
    ]
    assert len(having) == 1
    assert having[0].read_text().count(bug.old) == 1


def test_a_bug_is_planted_in_a_copy(tmp_path):
    bug = planted_bugs.Bug("one", "a < b", "a <= b")
    (tmp_path / "module.py").write_text("a < b")
    assert planted_bugs.plant(bug, tmp_path).read_text() == "a <= b"
    with pytest.raises(planted_bugs.GoneError, match="not there once"):
        planted_bugs.plant(bug, tmp_path)
