"""How often intervals of ShrinkageNB cover the truth, on simulated tables.

Run with ``python -m benchmarks.coverage``; the figures are in ``docs/user_guide.md``.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steelyard import ShrinkageNB
from steelyard.explain import explain_weights
from steelyard.explain.deviations import (
    hessian_of,
    named_deviation,
    named_weights,
    root_of_inverse,
)
from steelyard.fitting.problem import build_problem
from steelyard.model.posteriors import softmax

__all__ = ["coverage_of_log_odds", "coverage_of_weights", "simulate"]

N_ROWS, N_COLUMNS, N_VALUES = 500, 8, 3
_Z_90 = 1.6448536269514722


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


def coverage_of_log_odds(
    n_repeats: int, seed: int = 0, strength: Any = "auto"
) -> NDArray[np.float64]:
    """Share of 50 new rows whose true log-odds are in their 90 % interval, by table.

    Everything is learned from the 500 rows: probabilities, strengths and weights.
    """
    random = np.random.default_rng(seed)
    found = []
    for _ in range(n_repeats):
        X, y, effects = simulate(random)
        clf = ShrinkageNB(strength=strength, categorical_features="all").fit(X, y)
        new = _table(random, 50)
        truth = effects[np.arange(N_COLUMNS), new].sum(axis=1)
        own = explain_weights(clf, X, y, method="laplace", level=0.9, rows=new)
        low, high = own.evidence.total_low[:, 1], own.evidence.total_high[:, 1]
        found.append(np.mean((low <= truth) & (truth <= high)))
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
        root = root_of_inverse(
            hessian_of(own, weights), np.ones(len(weights), dtype=bool)
        )
        deviation = named_deviation(own, weights, root)
        wanted = named_weights(own, truth)
        for name, value in named_weights(own, weights).items():
            inside = np.abs(value - wanted[name]) <= _Z_90 * deviation[name]
            hits.setdefault(name, []).append(float(inside.mean()))
    return {name: float(np.mean(shares)) for name, shares in hits.items()}


def main() -> None:
    """Print the coverage of 90 % intervals."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--repeats", type=int, default=200)
    repeats = parser.parse_args().repeats
    print(f"{N_ROWS} rows, {N_COLUMNS} columns, {repeats} tables; nominal 90 %")
    for name, share in coverage_of_weights(repeats).items():
        print(f"{name:28} {100 * share:5.1f} %")
    shares = coverage_of_log_odds(repeats)
    error = shares.std(ddof=1) / np.sqrt(len(shares))
    print(
        f"{'log-odds of new rows':28} {100 * shares.mean():5.1f} % ± {100 * error:.1f}"
    )


if __name__ == "__main__":
    main()
