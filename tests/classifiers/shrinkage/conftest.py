"""Tables with categories, numbers and missing values, and a hierarchy's problem."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from steelyard import ShrinkageNB, WeightedNB
from steelyard.classifiers import shrinkage
from steelyard.fitting.problem import build_problem
from steelyard.weighting import HierarchicalWeighting


def _mixed(n=160, n_classes=3, seed=3):
    random = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    told = np.where(random.random(n) < 0.5, y, random.integers(0, n_classes, n))
    colours = ["red", "green", "blue", "black", "white", "grey"]
    colour = np.array(colours, dtype=object)[told]
    colour[random.random(n) < 0.05] = None
    X = pd.DataFrame(
        {
            "colour": colour,
            "length": np.round(1.5 * y + random.normal(size=n), 2),
            "width": np.where(
                random.random(n) < 0.1, np.nan, random.normal(size=n) * (1 + y)
            ),
            "striped": random.random(n) < 0.3 + 0.3 * (y == 1),
        }
    )
    return X, np.array(["ant", "bee", "cat", "dog", "eel", "fox"])[y]


@pytest.fixture(scope="session")
def make_mixed():
    """Return a function: rows, classes -> table and labels."""
    return _mixed


@pytest.fixture(scope="session")
def mixed():
    return _mixed()


@pytest.fixture(scope="session")
def two():
    return _mixed(n_classes=2)


@pytest.fixture
def as_solved(monkeypatch):
    """Leave models as their problem was solved, wherever they begin."""
    monkeypatch.setattr(shrinkage, "with_base_rate", lambda model, *rest: model)


@pytest.fixture(scope="session")
def coverage():
    """Return the module that simulates how often intervals cover."""
    root = str(Path(__file__).resolve().parents[3] / "studies")
    sys.path.insert(0, root)
    try:
        import interval_coverage
    finally:
        sys.path.remove(root)
    return interval_coverage


@pytest.fixture(scope="session")
def problem_of():
    """Return a function: classifier, table, labels -> the problem of its final fit."""

    def build(clf, X, y, sample_weight=None):
        recipe = clf._recipe()
        return build_problem(recipe, recipe.encode(X, y, sample_weight))

    return build


@pytest.fixture(scope="session")
def fixed():
    """Return a function: a classifier with strengths that need no choice."""

    def make(strength=(1.0, 4.0, 0.7), **settings):
        return ShrinkageNB(strength=strength, **{"numeric": "mdl", **settings})

    return make


@pytest.fixture(scope="session")
def levels():
    """Return a function: the same model with an overall weight of some strength."""

    def make(strength, overall, **settings):
        own = {"numeric": "mdl", "smoothing": "laplace"}
        weighting = HierarchicalWeighting(*strength, overall=overall)
        return WeightedNB(weighting=weighting, bounds=None, **{**own, **settings})

    return make
