"""The attack of ``make fuzz``: a few cases of each kind, and that it can fail."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

SPEC = importlib.util.spec_from_file_location(
    "fuzz", Path(__file__).parents[1] / "tools" / "fuzz.py"
)
fuzz = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(fuzz)


@pytest.mark.parametrize("kind", ["files", "tables", "journals"])
def test_a_few_cases_hold(kind, tmp_path):
    number = {"files": 120, "tables": 6, "journals": 100}[kind]
    found = [fuzz.run_case(kind, k, 1, tmp_path) for k in range(number)]
    assert any("probabilities" in f or "rows" in f for f in found)


def test_a_case_depends_on_seed_and_number_alone(tmp_path):
    content = fuzz.saved_models()[0][0]
    changed = [fuzz.mutate(content, fuzz.random.Random("1 files 2")) for _ in "ab"]
    assert changed[0] == changed[1] != content


def test_an_answer_that_is_no_probability_fails(capsys, monkeypatch):
    class Wrong:
        classes_ = np.array([0, 1])

        def predict_proba(self, X):
            return np.array([[np.nan, 1.0]])

        predict_log_proba = predict_proba

    wrong = lambda rng, folder: fuzz.check_answers(Wrong(), None)  # noqa: E731
    monkeypatch.setitem(fuzz.ATTACKS, "files", wrong)
    assert fuzz.main(["--only", "files:3"]) == 1
    assert "--seed 0 --only files:3" in capsys.readouterr().out
