"""What it costs to have no curves that run against their column.

``python studies/opposed_curves.py [SET ...] [--rows N]`` fits the default to data sets
of two classes of the folder ``STEELYARD_DATA``, the first two of five stratified folds
each. It counts numeric columns with an importance above 0.1, those whose curve has the
opposite trend of class rates, which the default reports, and the log-loss of held-out
rows: as it is, with all strengths 4 and 16 times as large, without those columns, and
without them unless the log-loss of the search rises by 1 %. ``--picture FILE`` draws
the trade.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import matplotlib
import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold

sys.path.insert(0, str(Path(__file__).resolve().parent))
import curves
import side_by_side

import steelyard as sy
from steelyard._common.text import text_table
from steelyard.classifiers import shrinkage
from steelyard.notices import curves as notices

FACTORS = (4.0, 16.0)
MAX_RISE = 0.01
MIN_VALUES, MIN_IMPORTANCE = 10, 0.1


class Measured(NamedTuple):
    """A fit: log-loss of held-out rows, opposed columns, important numbers."""

    loss: float
    opposed: list[str]
    important: int
    searched: float
    """Smallest log-loss of the search."""


def held_stronger(factor: float) -> Any:
    """Return a context in which the strengths that are chosen are multiplied."""
    first: Any = vars(shrinkage)["choose"]

    def choose(*arguments: Any) -> Any:
        choice = first(*arguments)
        chosen = choice.strengths
        levels = ("shared", "by_class", "by_value", "by_interaction")
        stronger = {level: factor * getattr(chosen, level) for level in levels}
        return replace(choice, strengths=replace(chosen, **stronger))

    return mock.patch.object(shrinkage, "choose", choose)


def measured(X: pd.DataFrame, y: NDArray[Any], rest: Any, fold: Any) -> Measured:
    """Fit some rows, and measure the others."""
    clf = sy.ShrinkageNB(uncertainty=False, n_jobs=1).fit(X.iloc[rest], y[rest])
    share = clf.predict_proba(X.iloc[fold])
    truth = share[np.arange(len(fold)), np.searchsorted(clf.classes_, y[fold])]
    loss = float(-np.log(np.maximum(truth, side_by_side.LEAST)).mean())
    importances = dict(zip(X.columns, clf.feature_importances_, strict=True))
    numbers = X.iloc[rest].select_dtypes("number").nunique()
    wide = numbers.index[numbers >= MIN_VALUES]
    important = sum(importances[name] > MIN_IMPORTANCE for name in wide)
    pairs = notices.opposed(clf.model_, clf.counts_)
    labels = clf.model_.schema.labels()
    opposed = [labels[j] for j, _ in pairs]
    path = clf.strength_path_
    return Measured(loss, opposed, important, min(p["log_loss"] for p in path))


def variants(X: pd.DataFrame, y: NDArray[Any], rest: Any, fold: Any) -> list[Measured]:
    """Return the default, and what has fewer opposed curves."""
    found = [measured(X, y, rest, fold)]
    for factor in FACTORS:
        with held_stronger(factor):
            found.append(measured(X, y, rest, fold))
    first = without = found[0]
    if first.opposed and len(first.opposed) < X.shape[1]:
        without = measured(X.drop(columns=first.opposed), y, rest, fold)
    rises = without.searched > (1.0 + MAX_RISE) * first.searched
    return [*found, without, first if rises else without]


def draw(names: Sequence[str], shares: Any, losses: Any, path: Path) -> None:
    """Draw log-loss against the share of opposed curves."""
    figure, ax = plt.subplots(figsize=(6, 3.2))
    ax.scatter(shares, losses, color="#1f5a94", zorder=3)
    for name, x, y in zip(names, shares, losses, strict=True):
        ax.annotate(name, (x, y), (6, 5), textcoords="offset points", fontsize=8)
    ax.set_xlim(0.0, 1.35 * max(shares))
    ax.set_xlabel("important numbers whose curve runs against their column (%)")
    ax.set_ylabel("mean log-loss")
    ax.spines[["top", "right"]].set_visible(False)
    with matplotlib.rc_context({"svg.hashsalt": "steelyard"}):
        figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each variant."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("sets", nargs="*", default=["small"])
    parser.add_argument("--rows", type=int, default=1_500)
    parser.add_argument("--picture", type=Path)
    asked = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # classes with fewer rows than folds
    found: list[list[Measured]] = []
    for name in side_by_side.sets_of(asked.sets):
        X, y = curves.drawn(name, asked.rows)
        if len(np.unique(y)) != 2:
            continue
        X = X.astype({c: float for c in X.select_dtypes(["number", "bool"])})
        splits = StratifiedKFold(5, shuffle=True, random_state=1).split(X, y)
        for _, (rest, fold) in zip(range(2), splits, strict=False):
            found.append(variants(X, y, rest, fold))
    stronger = [f"strengths × {factor:g}" for factor in FACTORS]
    names = ["as it is", *stronger, "without them", "unless it costs 1 %"]
    losses = np.array([[m.loss for m in fit] for fit in found])
    opposed = np.array([[len(m.opposed) for m in fit] for fit in found]).sum(axis=0)
    important = np.array([[m.important for m in fit] for fit in found]).sum(axis=0)
    means = losses.mean(axis=0)
    rows = []
    for i, name in enumerate(names):
        gains = losses[:, i] - losses[:, 0]
        tally = f"{(gains > 1e-4).sum()} : {(gains < -1e-4).sum()}"
        count = f"{opposed[i]} of {important[i]}"
        rows.append([name, count, f"{means[i]:.4f}", tally])
    headers = ["variant", "opposed", "log-loss", "default lower : higher"]
    print(text_table(headers, rows, [False, True, True, True]))
    if asked.picture:
        draw(names, 100.0 * opposed / important, means, asked.picture)


if __name__ == "__main__":
    main()
