"""How often intervals of ShrinkageNB cover the truth, on simulated tables.

Run with ``python -m benchmarks.coverage``; the figures are in ``docs/user_guide.md``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from steelyard import ShrinkageNB
from steelyard.explain import explain_weights
from steelyard.explain.intervals.covariance import InverseHessian
from steelyard.explain.intervals.maps import named_weights
from steelyard.explain.views import evidence_of
from steelyard.fitting.problem import build_problem
from steelyard.model.base import softmax

__all__ = ["SETTINGS", "coverage_of_log_odds", "coverage_of_weights", "simulate"]

N_ROWS, N_COLUMNS, N_VALUES = 500, 8, 3
_Z_90 = 1.6448536269514722

# Draws n rows and their true scores, (n, K).
Draw = Callable[[int], tuple[pd.DataFrame, NDArray[np.float64]]]


def simulate(
    random: np.random.Generator, n: int = N_ROWS
) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.float64]]:
    """Draw a table whose log-odds are a sum over columns: X, y, true effects (d, v).

    Neighbouring columns depend on each other, so that naive Bayes is wrong.
    """
    effects = random.normal(0.0, 0.5, (N_COLUMNS, N_VALUES))
    X = _table(random, n)
    odds = effects[np.arange(N_COLUMNS), X].sum(axis=1)
    y = (random.random(n) < 1.0 / (1.0 + np.exp(-odds))).astype(np.int64)
    return X, y, effects


def _table(random: np.random.Generator, n: int) -> NDArray[np.int64]:
    X = random.integers(0, N_VALUES, (n, N_COLUMNS))
    same = random.random((n, N_COLUMNS)) < 0.4
    same[:, ::2] = False
    for j in range(1, N_COLUMNS, 2):
        X[same[:, j], j] = X[same[:, j], j - 1]
    return X


def categories(random: np.random.Generator, n_classes: int = 2) -> Draw:
    """Draw a truth over eight columns of three categories, dependent by twos."""
    effects = random.normal(0.0, 0.5, (N_COLUMNS, N_VALUES, n_classes))
    effects[:, :, 0] = 0.0

    def draw(n: int) -> tuple[pd.DataFrame, NDArray[np.float64]]:
        X = _table(random, n)
        scores = effects[np.arange(N_COLUMNS), X].sum(axis=1)
        return pd.DataFrame(X.astype(str).astype(object)), scores

    return draw


def numbers(random: np.random.Generator, n_classes: int = 2) -> Draw:
    """Draw a truth that is linear in eight normal columns."""
    slopes = random.normal(0.0, 0.6, (N_COLUMNS, n_classes))
    slopes[:, 0] = 0.0

    def draw(n: int) -> tuple[pd.DataFrame, NDArray[np.float64]]:
        Z = random.normal(size=(n, N_COLUMNS))
        return pd.DataFrame(Z), Z @ slopes

    return draw


def mixed(random: np.random.Generator, n_classes: int = 2) -> Draw:
    """Draw a truth over numbers (a line, a wave, a step, a parabola) and categories.

    A fifth number says nothing; two numbers, and the two categories, are dependent.
    """
    size = random.normal(0.0, 0.8, (4, n_classes))
    effects = random.normal(0.0, 0.5, (2, 4, n_classes))
    phase, cut = random.uniform(0.0, 6.0, n_classes), random.normal(0, 0.7, n_classes)

    def draw(n: int) -> tuple[pd.DataFrame, NDArray[np.float64]]:
        Z, C = random.normal(size=(n, 5)), random.integers(0, 4, (n, 2))
        Z[:, 1] = 0.6 * Z[:, 0] + 0.8 * Z[:, 1]
        C[:, 1] = np.where(random.random(n) < 0.4, C[:, 0], C[:, 1])
        line, wave = Z[:, [0]], np.sin(1.5 * Z[:, [1]] + phase)
        step, parabola = Z[:, [2]] > cut, (Z[:, [3]] ** 2 - 1.0) / 2.0
        scores = effects[0, C[:, 0]] + effects[1, C[:, 1]]
        for own, curve in zip(size, (line, wave, step, parabola), strict=True):
            scores = scores + own * curve
        X = pd.DataFrame(Z, columns=list("uvwxz"))
        return X.assign(a=C[:, 0].astype(str), b=C[:, 1].astype(str)), scores

    return draw


# What is simulated: the truth, rows, classes.
SETTINGS = {
    "8 categories, 500 rows": (categories, 500, 2),
    "8 numbers, linear, 500 rows": (numbers, 500, 2),
    "5 numbers, 2 categories, 300 rows": (mixed, 300, 2),
    "5 numbers, 2 categories, 1,000 rows": (mixed, 1_000, 2),
    "5 numbers, 2 categories, 2,000 rows": (mixed, 2_000, 2),
    "three classes, 600 rows": (mixed, 600, 3),
    "three classes, 1,500 rows": (mixed, 1_500, 3),
}


def coverage_of_log_odds(
    setting: str, n_repeats: int, seed: int = 0, n_new: int = 50, **settings: Any
) -> NDArray[np.float64]:
    """Share of new rows whose true log-odds are in their 90 % interval, by table.

    Everything is learned from the rows: probabilities, strengths, pairs and weights.
    With three classes it is each class against the mean of the others.
    """
    truth, n, n_classes = SETTINGS[setting]
    found = []
    for number in range(n_repeats):
        random = np.random.default_rng([seed, number])
        draw = truth(random, n_classes)
        X, scores = draw(n)
        share = softmax(scores).cumsum(axis=1)[:, :-1]
        y = (random.random((n, 1)) > share).sum(axis=1)
        new, wanted = draw(n_new)
        clf = ShrinkageNB(**settings).fit(X, y)
        own = explain_weights(clf, X, y, method="laplace", level=0.9, rows=new)
        assert own.evidence is not None
        low, high = own.evidence.total_low, own.evidence.total_high
        inside = (low <= evidence_of(wanted)) & (evidence_of(wanted) <= high)
        found.append(inside.mean())
    return np.array(found)


def coverage_of_weights(
    n_repeats: int, seed: int = 0, strength: tuple[float, float, float] = (2.5, 10, 2.5)
) -> dict[str, float]:
    """Share of weights in their 90 % interval, by the names of fitted attributes.

    Weights are drawn from what the penalty assumes, labels from the model with these
    weights, and the probabilities are held: this is about the Hessian alone.
    """
    random = np.random.default_rng(seed)
    X, y, _ = simulate(random)
    clf = ShrinkageNB(strength=strength, categorical_features="all", tol=1e-10)
    clf.fit(X, y)
    recipe = clf._recipe()
    problem = build_problem(recipe, recipe.encode(X, y))
    ridge, center = problem.objective.weighting.strengths(problem.evidence)
    hits: dict[str, list[float]] = {}
    for _ in range(n_repeats):
        truth = center + random.normal(size=len(center)) / np.sqrt(2.0 * ridge)
        effect = problem.objective.weighting.apply(truth, problem.evidence)
        share = softmax(problem.objective.rows.scores(effect))
        drawn = (random.random(len(share)) < share[:, 1]).astype(np.uint32)
        rows = replace(problem.objective.rows, y=drawn)
        own = replace(problem, objective=replace(problem.objective, rows=rows))
        weights = own.solve(recipe).weights
        free = np.ones(len(weights), dtype=bool)
        deviation = InverseHessian(own, weights, free).named()
        wanted = named_weights(own, truth)
        for name, value in named_weights(own, weights).items():
            inside = np.abs(value - wanted[name]) <= _Z_90 * deviation[name]
            hits.setdefault(name, []).append(float(inside.mean()))
    return {name: float(np.mean(shares)) for name, shares in hits.items()}


def main() -> None:
    """Print the coverage of 90 % intervals."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    print(f"{asked.repeats} tables each; nominal 90 %")
    for name, share in coverage_of_weights(asked.repeats, asked.seed).items():
        print(f"{name:40} {100 * share:5.1f} %", flush=True)
    for setting in SETTINGS:
        shares = coverage_of_log_odds(setting, asked.repeats, asked.seed)
        error = shares.std(ddof=1) / np.sqrt(len(shares))
        text = f"{100 * shares.mean():5.1f} ± {100 * error:.1f} %"
        print(f"{setting:40} {text}", flush=True)


if __name__ == "__main__":
    main()
