"""Measure what luck decides: another seed, or a few rows less, and the same table.

``python studies/seeds.py [SET ...] [--rows N] [--seeds S] [--forest]`` fits the default
to two thirds of each data set of the folder ``STEELYARD_DATA``, once for each of S
seeds, and as often without one row in a hundred, for each third held out. It prints how
far the probabilities of the rows held out differ between two seeds, and between all
rows and some less, on average and at most, their log-loss, and the processor time of a
fit. A single pair of seeds tells little: its figure is off by a third. ``--forest``
looks at a forest of 200 trees instead.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

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
    """The largest difference of two seeds, on average over pairs of them."""

    mean_by_rows: float
    most_by_rows: float
    log_loss: float
    seconds: float
    """Processor time of a fit."""


def forest(random_state: int) -> Any:
    """Return a forest that takes categories as numbers."""
    encode = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    texts = make_column_selector(dtype_exclude="number")
    columns = make_column_transformer((encode, texts), remainder="passthrough")
    return make_pipeline(
        columns, RandomForestClassifier(200, random_state=random_state)
    )


def luck_of(
    make: Callable[..., Any],
    X: pd.DataFrame,
    y: NDArray[Any],
    n_seeds: int,
    n_folds: int = 3,
) -> Luck:
    """Fit a table in each fold with several seeds, and without some of its rows."""
    by_seed, by_rows, losses, seconds = [], [], [], []
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=0)
    for rest, fold in folds.split(X, y):

        def proba(rows: NDArray[np.int64], seed: int, fold: Any = fold) -> Floats:
            start = time.process_time()
            clf = make(random_state=seed).fit(X.iloc[rows], y[rows])
            seconds.append(time.process_time() - start)
            predicted = np.asarray(clf.predict_proba(X.iloc[fold]))
            losses.append(log_loss(y[fold], predicted, labels=clf.classes_))
            return predicted

        of_seeds = [proba(rest, seed) for seed in range(n_seeds)]
        turn = np.arange(len(rest)) % LEFT_OUT
        of_rows = [proba(rest[turn != LEFT_OUT // 2 + k], 0) for k in range(n_seeds)]
        by_seed += [np.abs(one - other) for one, other in combinations(of_seeds, 2)]
        by_rows += [np.abs(of_seeds[0] - other) for other in of_rows]
    spans = [
        float(np.mean([measure(gaps) for gaps in moved]))
        for moved in (by_seed, by_rows)
        for measure in (np.mean, np.max)
    ]
    return Luck._make([*spans, float(np.mean(losses)), float(np.mean(seconds))])


def main(arguments: Sequence[str] | None = None) -> None:
    """Print how far probabilities move."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("sets", nargs="*", default=curves.DATASETS, help="data sets")
    parser.add_argument("--rows", type=int, default=2_000, help="rows at most")
    parser.add_argument("--seeds", type=int, default=5, help="seeds, at least two")
    parser.add_argument("--forest", action="store_true", help="a forest instead")
    parser.add_argument("--jobs", type=int, default=1, help="sets at a time")
    options = parser.parse_args(arguments)
    make = forest if options.forest else partial(sy.ShrinkageNB, n_jobs=1)
    tables = (curves.drawn(name, options.rows) for name in options.sets)
    measure = delayed(luck_of)
    lucks = Parallel(options.jobs)(measure(make, *own, options.seeds) for own in tables)
    by_name = dict(zip(options.sets, lucks, strict=True))
    by_name["mean"] = Luck._make(np.mean(lucks, axis=0))
    rows = [
        [name, *(f"{figure:.4f}" for figure in figures)]
        for name, figures in by_name.items()
    ]
    headers = ["data set", "seed: mean", "largest", "rows: mean", "largest"]
    headers += ["log-loss", "seconds"]
    print(text_table(headers, rows, [False] + [True] * (len(headers) - 1)))


if __name__ == "__main__":
    main()
