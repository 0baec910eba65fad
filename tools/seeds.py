"""Measure what luck decides: another seed, or a few rows less, and the same table.

``python tools/seeds.py [SET ...] [--rows N]`` fits the default to two thirds of each
data set of the folder ``STEELYARD_DATA``, once more with ``random_state=1``, and once
more without one row in a hundred, for each third held out. It prints how far the
probabilities of the rows held out differ on average and at most, their log-loss, and
the processor time of a fit.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

sys.path.insert(0, str(Path(__file__).resolve().parent))
import curves

import steelyard as sy
from steelyard._common.text import text_table

# One row in so many is left out.
LEFT_OUT = 100

Floats = NDArray[np.float64]


class Luck(NamedTuple):
    """How far probabilities of rows held out move, and how good they are."""

    mean_by_seed: float
    most_by_seed: float
    mean_by_rows: float
    most_by_rows: float
    first_loss: float
    second_loss: float
    seconds: float
    """Processor time of a fit."""


def luck_of(X: pd.DataFrame, y: NDArray[Any], n_folds: int = 3) -> Luck:
    """Fit a table in each fold with two seeds, and without some of its rows."""
    by_seed, by_rows, losses, seconds = [], [], [], []
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=0)
    for rest, fold in folds.split(X, y):
        is_left_out = np.arange(len(rest)) % LEFT_OUT == LEFT_OUT // 2
        found = []
        for rows, seed in ((rest, 0), (rest, 1), (rest[~is_left_out], 0)):
            start = time.process_time()
            clf = sy.ShrinkageNB(random_state=seed).fit(X.iloc[rows], y[rows])
            seconds.append(time.process_time() - start)
            found.append(clf.predict_proba(X.iloc[fold]))
        by_seed.append(np.abs(found[0] - found[1]))
        by_rows.append(np.abs(found[0] - found[2]))
        labels = clf.classes_
        losses.append([log_loss(y[fold], own, labels=labels) for own in found[:2]])
    moved = [np.concatenate(own) for own in (by_seed, by_rows)]
    spans = [figure for own in moved for figure in (own.mean(), own.max())]
    return Luck._make([*spans, *np.mean(losses, axis=0), np.mean(seconds)])


def main(arguments: Sequence[str] | None = None) -> None:
    """Print how far probabilities move."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("sets", nargs="*", default=curves.DATASETS, help="data sets")
    parser.add_argument("--rows", type=int, default=2_000, help="rows at most")
    options = parser.parse_args(arguments)
    found = {name: luck_of(*curves.drawn(name, options.rows)) for name in options.sets}
    found["mean"] = Luck._make(np.mean(list(found.values()), axis=0))
    rows = [[name, *(f"{figure:.4f}" for figure in own)] for name, own in found.items()]
    headers = ["data set", "seed: mean", "largest", "rows: mean", "largest"]
    headers += ["log-loss", "seed 1", "seconds"]
    print(text_table(headers, rows, [False] + [True] * (len(headers) - 1)))


if __name__ == "__main__":
    main()
