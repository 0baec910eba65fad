"""What shapes cost and gain: made tables whose true curves are monotone, or bent.

``python studies/shapes.py`` prints log-loss on new rows with and without constraints,
on how many tables it is lower with them, how many times longer a fit takes, and how
often intervals of 90 % have the true probability in them, by number of rows.
"""

from __future__ import annotations

import argparse
from time import process_time

import numpy as np
import pandas as pd

from steelyard import ShrinkageNB

_NEW_ROWS = 4_000


def made_table(
    seed: int, n_rows: int
) -> tuple[pd.DataFrame, np.ndarray, np.ndarray, dict[str, str]]:
    """Return columns, chances of "yes", classes and the true shapes of a table.

    Numbers of several kinds, an ordered category, and columns that say nothing; the
    first six have a shape, the others none that is told.
    """
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, 8))
    x[:, 1] = np.exp(x[:, 1])
    x[:, 2] = np.round(3.0 * x[:, 2])
    x[:, 3] = rng.random(n_rows)
    grade = rng.integers(0, 5, n_rows)
    size = 2.0 * rng.dirichlet(np.ones(6)) + 0.2
    level = np.sort(rng.normal(size=5))
    cut = rng.normal(scale=0.5)
    score = (
        size[0] * np.tanh(2.0 * x[:, 0])
        - size[1] * np.log(x[:, 1])
        + size[2] * (x[:, 2] > 3.0 * cut)
        + size[3] * 4.0 * (x[:, 3] - 0.5) ** 2
        - size[4] * x[:, 4] ** 2
        + size[5] * level[grade]
        + 0.3 * np.sin(2.0 * x[:, 5])
    )
    score -= np.median(score) + rng.normal(scale=0.5)
    frame = pd.DataFrame(x, columns=[f"x{j}" for j in range(8)])
    words = ["a", "b", "c", "d", "e"]
    frame["grade"] = pd.Categorical.from_codes(grade, words, ordered=True)
    chances = 1.0 / (1.0 + np.exp(-score))
    classes = np.where(rng.random(n_rows) < chances, "yes", "no")
    shapes = {
        "x0": "increasing",
        "x1": "decreasing",
        "x2": "increasing",
        "x3": "convex",
        "x4": "peak",
        "grade": "increasing",
    }
    return frame, chances, classes, shapes


def _measured(seed: int, n_rows: int, kinds: tuple[str, ...]) -> np.ndarray:
    """Return log-losses without and with shapes, the ratio of times, and coverages."""
    X, chances, y, shapes = made_table(seed, n_rows + _NEW_ROWS)
    wanted = {column: kind for column, kind in shapes.items() if kind in kinds}
    results = []
    for constraints in (None, wanted):
        start = process_time()
        clf = ShrinkageNB(constraints=constraints).fit(X[:n_rows], y[:n_rows])
        time = process_time() - start
        p = clf.predict_proba(X[n_rows:])
        truth = np.searchsorted(clf.classes_, y[n_rows:])
        loss = -np.log(p[np.arange(len(p)), truth]).mean()
        low, high = clf.predict_interval(X[n_rows:])[:, 1].T
        covered = (low <= chances[n_rows:]) & (chances[n_rows:] <= high)
        results.append((loss, time, covered.mean()))
    (free, before, by_free), (shaped, after, by_shaped) = results
    return np.array([free, shaped, after / before, by_free, by_shaped])


def main() -> None:
    """Print log-losses and times by number of rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--rows", type=int, nargs="+", default=[100, 200, 300, 1000])
    arguments = parser.parse_args()
    monotone = ("increasing", "decreasing")
    _measured(0, 100, (*monotone, "convex", "peak"))  # compiles
    print(f"{'shapes':22} {'rows':>6} {'free':>7} {'shaped':>7} better  time cover")
    for name, kinds in (
        ("monotone", monotone),
        ("with convex and peak", (*monotone, "convex", "peak")),
    ):
        for n_rows in arguments.rows:
            tables = range(arguments.tables)
            results = np.array([_measured(seed, n_rows, kinds) for seed in tables])
            free, shaped, time, *covers = results.mean(axis=0)
            better = int((results[:, 1] < results[:, 0]).sum())
            print(
                f"{name:22} {n_rows:6} {free:7.4f} {shaped:7.4f} "
                f"{better:3}/{len(tables)} {time:5.2f} {covers[0]:.3f} {covers[1]:.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
