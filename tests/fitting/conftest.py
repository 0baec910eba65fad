"""Small tables of every kind, and the objective that a classifier would minimise."""

import numpy as np
import pytest

from steelyard import WeightedNB
from steelyard.fitting.problem import build_problem


def _text(rng, n, n_values):
    return np.array([f"v{code:04d}" for code in rng.integers(0, n_values, n)], object)


def _labels(rng, n, n_classes):
    """Labels of every class, not all equally frequent."""
    shares = np.arange(1.0, n_classes + 1)
    y = rng.choice(n_classes, n, p=shares / shares.sum())
    y[:n_classes] = np.arange(n_classes)
    return y


def _informative(column, y, rng):
    """Let half the rows of a column say something about the class."""
    told = rng.random(len(y)) < 0.5
    values = np.unique(column)
    column[told] = values[y[told] % len(values)]
    return column


def _categories(rng, y, sizes=(2, 3, 5, 2, 2, 2, 2, 2, 2, 2)):
    columns = [_informative(_text(rng, len(y), size), y, rng) for size in sizes]
    columns.append(np.full(len(y), "same", object))
    return np.stack(columns, axis=1)


def _numbers(rng, y):
    center = rng.normal(0.0, 0.7, (y.max() + 1, 3))
    X = center[y] + rng.normal(0.0, (1.0, 2.0, 0.5), (len(y), 3))
    return X.round(2)


def _holes(rng, X):
    X = np.array(X, object)
    X[rng.random(X.shape) < 0.1] = None
    return X


def _table(kind, n_classes, n=60, seed=0):
    rng = np.random.default_rng(seed)
    y = _labels(rng, n, n_classes)
    if kind == "categories":
        return {}, _categories(rng, y), y
    if kind == "categories with gaps":
        return {}, _holes(rng, _categories(rng, y)), y
    if kind == "gaps as values":
        return {"missing": "value"}, _holes(rng, _categories(rng, y)), y
    if kind == "gaussian":
        return {"numeric": "gaussian"}, _numbers(rng, y), y
    if kind == "gaussian with gaps":
        X = _numbers(rng, y)
        X[rng.random(X.shape) < 0.1] = np.nan
        return {"numeric": "gaussian"}, X, y
    if kind == "intervals":
        return {"numeric": "gaussian-weka"}, _numbers(rng, y), y
    if kind == "mixed with gaps":
        X = np.concatenate([_categories(rng, y), _numbers(rng, y)], axis=1)
        return {"numeric": {11: "gaussian", 12: "gaussian-weka"}}, _holes(rng, X), y
    if kind == "wide":
        n = max(n, 700)
        y = _labels(rng, n, n_classes)
        columns = [_text(rng, n, 320), _text(rng, n, 3), _text(rng, n, 2)]
        columns = [_informative(column, y, rng) for column in columns]
        columns[0][:320] = [f"v{code:04d}" for code in range(320)]
        return {}, np.stack(columns, axis=1), y
    raise ValueError(kind)


@pytest.fixture(scope="session")
def make_table():
    """Return a function: kind, classes -> settings that the table needs, table, y."""
    return _table


@pytest.fixture(scope="session")
def problem_of():
    """Return a function: settings, table -> objective, start, lower, upper bounds."""

    def build(settings, X, y, sample_weight=None):
        recipe = WeightedNB(**settings)._recipe()
        problem = build_problem(recipe, recipe.encode(X, y, sample_weight))
        return problem.objective, problem.start, problem.box.lower, problem.box.upper

    return build


@pytest.fixture(scope="session")
def differences():
    """Return a function: central differences of a function of a vector."""

    def central(function, x, step=1e-5):
        columns = []
        for k in range(len(x)):
            up, down = x.copy(), x.copy()
            up[k] += step
            down[k] -= step
            columns.append((function(up) - function(down)) / (2.0 * step))
        return np.array(columns)

    return central
