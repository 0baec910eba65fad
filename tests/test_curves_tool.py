"""The tool that measures curves counts turns and steps."""

import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import steelyard as sy

TOOL = Path(__file__).resolve().parents[1] / "studies" / "curves.py"


@pytest.fixture(scope="module")
def tool():
    return runpy.run_path(str(TOOL))


def test_turns_are_changes_of_direction_that_are_seen(tool):
    assert tool["turns"](np.array([0.0, 1.0, 0.99, 2.0, 3.0])) == 0
    assert tool["turns"](np.array([0.0, 1.0, 0.0, 1.0])) == 2
    assert tool["turns"](np.zeros(5)) == 0


def test_a_line_does_not_turn_and_a_wave_does(tool):
    random = np.random.default_rng(0)
    X = pd.DataFrame(
        {"x": random.uniform(-3, 3, 1500), "few": random.integers(0, 4, 1500)}
    )
    y = random.random(1500) < 1 / (1 + np.exp(-2 * X.x))
    clf = sy.ShrinkageNB(interactions=None).fit(X, y)
    assert len(tool["curves"](clf, X)) == 1
    shape = tool["shape_of"](clf, X)
    assert shape.turns == 0 and 0.0 < shape.step < 2.0
    shape = tool["shape_of"](Wave(), X)
    # Within 96 % of six units of x.
    assert shape.turns == 4 and 0.0 < shape.step < 1.0


class Wave:
    """A classifier whose log-odds are a wave."""

    def predict_proba(self, X):
        odds = np.exp(3 * np.sin(2 * X["x"].to_numpy()))
        return np.column_stack([1 / (1 + odds), odds / (1 + odds)])
