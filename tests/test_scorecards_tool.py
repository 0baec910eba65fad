"""The tool that compares cards with those of other packages."""

import runpy
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[1]


def people(n=120):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    kind = np.array(["a", "b", "c"])[np.where(rng.random(n) < 0.6, y, 2)]
    return pd.DataFrame({"size": y + rng.normal(size=n), "kind": kind}), y


def test_cards_are_measured_without_other_packages():
    tool = runpy.run_path(str(ROOT / "studies/scorecards.py"))
    X, y = people()
    found = dict(tool["one_part"](X[:80], y[:80], X[80:], y[80:], []))
    assert list(found) == ["model", "as it is"]
    assert abs(found["as it is"][0] - found["model"][0]) < 0.05
    assert found["as it is"][2] >= 2 and abs(found["as it is"][3]) < 0.005


def test_questions_cut_columns_at_deciles_and_by_category():
    tool = runpy.run_path(str(ROOT / "studies/scorecards.py"))
    X, _ = people()
    own, other, owners = tool["questions"](X, X[:5])
    assert owners == ["size"] * 9 + ["kind"] * 3
    assert own.shape == (120, 12) and (own[:5] == other).all()
