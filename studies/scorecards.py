"""Compare cards of points with those of optbinning and FasterRisk, on held-out rows.

``python studies/scorecards.py`` takes ten data sets of people, of two classes and 250
rows and more, of the folder ``STEELYARD_DATA`` in three parts. Cards are made on two of
them: that of optbinning as it is by default, that of FasterRisk with ten yes-or-no
questions out of deciles and categories, and of the default model one with as many cells
as each of the others at most, and one as it is by default. It prints means of log-loss
and AUC on the third part, by points alone, and what rounding costs on the others.
Cells are intervals and categories of the columns on a card; a question cuts one in two.
Packages that are not installed are named and left out. FasterRisk 0.1.10 needs NumPy
below 2.3.
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from collections.abc import Iterator
from contextlib import redirect_stdout
from copy import copy
from importlib import import_module
from importlib.util import find_spec
from io import StringIO
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold

from steelyard import ShrinkageNB
from steelyard._common.text import text_table
from steelyard.control.scorecard import scorecard_of
from steelyard.lab.data.datasets import load_dataset

DATASETS = (
    "adult breast-cancer breast-w colic credit-a credit-g diabetes haberman heart-c "
    "mammographic"
).split()
PACKAGES = {"optbinning": "optbinning", "fasterrisk": "FasterRisk"}
N_QUESTIONS, N_CUTS, N_PARTS, MAX_ROWS = 10, 10, 3, 3000

Card = tuple[np.ndarray, int]
"""Probabilities of the second class in new rows, and the number of cells."""


def optbinning_card(X: pd.DataFrame, y: np.ndarray, new: pd.DataFrame) -> Card:
    """Return what optbinning's card says by its whole points."""
    package = import_module("optbinning")
    texts = [c for c in X if not pd.api.types.is_numeric_dtype(X[c])]
    process = package.BinningProcess(list(X.columns), categorical_variables=texts)
    scale = {"pdo": 20, "odds": 50, "scorecard_points": 600}
    card = package.Scorecard(
        process,
        LogisticRegression(max_iter=1000),
        scaling_method="pdo_odds",
        scaling_method_params=scale,
        rounding=True,
    ).fit(X, y)
    factor = 20.0 / np.log(2.0)
    odds = (card.score(new) - (600.0 - factor * np.log(50.0))) / factor
    rows = card.table()
    is_cell = ~rows["Bin"].astype(str).isin(["Special", "Missing"])
    # Points fall with the odds of the second class.
    return 1.0 / (1.0 + np.exp(odds)), int(is_cell.sum())


def questions(X: pd.DataFrame, new: pd.DataFrame) -> tuple[Any, Any, list[str]]:
    """Return cells as answers to yes-or-no questions, and the column of each."""
    old_parts, new_parts, owners = [], [], []
    for name in X:
        if pd.api.types.is_numeric_dtype(X[name]):
            cuts = np.unique(X[name].quantile(np.arange(1, N_CUTS) / N_CUTS).dropna())
            tests = [lambda column, cut=cut: column <= cut for cut in cuts]
        else:
            values = sorted(X[name].dropna().unique())
            tests = [lambda column, value=value: column == value for value in values]
        for test in tests:
            answers = test(X[name]).to_numpy(dtype=np.float64)
            if 0.0 < answers.mean() < 1.0:
                old_parts.append(answers)
                new_parts.append(test(new[name]).to_numpy(dtype=np.float64))
                owners.append(name)
    return np.stack(old_parts, axis=1), np.stack(new_parts, axis=1), owners


def fasterrisk_card(X: pd.DataFrame, y: np.ndarray, new: pd.DataFrame) -> Card:
    """Return what FasterRisk's best card says."""
    package = import_module("fasterrisk.fasterrisk")
    cells, new_cells, owners = questions(X, new)
    optimizer = package.RiskScoreOptimizer(cells, 2.0 * y - 1.0, N_QUESTIONS)
    optimizer.optimize()
    factor, start, points = optimizer.get_models(model_index=0)
    card = package.RiskScoreClassifier(factor, start, points)
    used = [owners[k] for k in np.flatnonzero(points)]
    return card.predict_prob(new_cells), len(used) + len(set(used))


def parts_of(name: str) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Yield rows and classes to learn from, and those that are held out."""
    data = load_dataset(name)
    X = data.table
    y = (np.asarray(data.target).astype(str) == sorted(data.classes)[1]).astype(int)
    texts = [c for c in X.columns if not pd.api.types.is_numeric_dtype(X[c])]
    X = X.astype({c: object for c in texts})
    if len(X) > MAX_ROWS:
        some = np.random.default_rng(0).choice(len(X), MAX_ROWS, replace=False)
        X, y = X.iloc[some].reset_index(drop=True), y[some]
    parts = StratifiedKFold(N_PARTS, shuffle=True, random_state=0).split(X, y)
    for old, new in parts:
        yield X.iloc[old], y[old], X.iloc[new], y[new]


def measured(name: str, packages: list[str]) -> dict[str, np.ndarray]:
    """Return log-loss, AUC, cells and the cost of rounding of every card."""
    figures: dict[str, list[Any]] = defaultdict(list)
    for both in parts_of(name):
        for card, row in one_part(*both, packages):
            figures[card].append(row)
    return {card: np.mean(rows, axis=0) for card, rows in figures.items()}


def hidden(name: str) -> list[list[str]]:
    """Return lines of log-loss with a share of the held-out cells hidden.

    Of points that are counted from 0 of the model, of the card, and of the model.
    """
    losses: dict[float, list[list[float]]] = defaultdict(list)
    for X, y, new_X, new_y in parts_of(name):
        clf = ShrinkageNB().fit(X, y)
        from_zero = scorecard_of(copy(clf).set_params(unknown="sum"), X, y)
        cards = from_zero, scorecard_of(clf, X, y), clf
        for share, seed in product((0.0, 0.2, 0.5), range(3)):
            drawn = np.random.default_rng(seed).random(new_X.shape)
            rows = new_X.mask(drawn < share, None)
            probabilities = (card.predict_proba(rows) for card in cards)
            losses[share].append([log_loss(new_y, p[:, 1]) for p in probabilities])
    return [
        [name, f"{share:.0%}", *(f"{x:.4f}" for x in np.mean(rows, axis=0))]
        for share, rows in losses.items()
    ]


def one_part(
    X: pd.DataFrame,
    y: np.ndarray,
    new: pd.DataFrame,
    truth: np.ndarray,
    packages: list[str],
) -> Iterator[tuple[str, list[float]]]:
    """Yield the figures of every card that is made on some rows, on others."""
    clf = ShrinkageNB().fit(X, y)

    def card_losses(**options: Any) -> list[float]:
        card = scorecard_of(clf, X, y, **options)
        row = _row(card.predict_proba(new)[:, 1], truth, card.n_cells)
        row[-1] = card.loss["points"] - card.loss["merged"]
        return row

    yield "model", _row(clf.predict_proba(new)[:, 1], truth, np.nan)
    for package in packages:
        with warnings.catch_warnings(), redirect_stdout(StringIO()):
            warnings.simplefilter("ignore")
            p, cells = CARDS[package](X, y, new)
        yield PACKAGES[package], _row(p, truth, cells)
        yield (
            f"as many as {PACKAGES[package]}",
            card_losses(max_cells=cells, max_loss=0.0),
        )
    yield "as it is", card_losses()


def _row(p: np.ndarray, truth: np.ndarray, cells: float) -> list[float]:
    loss = log_loss(truth, np.clip(p, 1e-6, 1.0 - 1e-6))
    return [loss, roc_auc_score(truth, p), cells, np.nan]


CARDS = {"optbinning": optbinning_card, "fasterrisk": fasterrisk_card}


def main(arguments: list[str] | None = None) -> None:
    """Print a table of the data sets, and the means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=DATASETS, help="data sets")
    about = "hide a share of the cells of held-out rows, and compare points"
    parser.add_argument("--hidden", action="store_true", help=about)
    given = parser.parse_args(arguments)
    names = given.names
    if given.hidden:
        lines = [line for name in names for line in hidden(name)]
        header = ["set", "hidden", "from 0", "card", "model"]
        print(text_table(header, lines, [False, True, True, True, True]))
        return
    packages = [name for name in PACKAGES if find_spec(name) is not None]
    for name in set(PACKAGES).difference(packages):
        print(f"{PACKAGES[name]} is not installed, and left out: pip install {name}")
    lines, all_rows = [], defaultdict(list)
    for name in names:
        for card, row in measured(name, packages).items():
            lines.append([name, card, *_texts(row.tolist())])
            all_rows[card].append(row)
    for card, found in all_rows.items():
        lines.append(["mean", card, *_texts(np.mean(found, axis=0).tolist())])
    header = ["set", "card", "log-loss", "AUC", "cells", "rounding"]
    print(text_table(header, lines, [False, False, True, True, True, True]))


def _texts(row: list[float]) -> list[str]:
    digits = ("{:.4f}", "{:.4f}", "{:.3g}", "{:+.5f}")
    both = zip(digits, row, strict=True)
    return ["" if np.isnan(value) else form.format(value) for form, value in both]


if __name__ == "__main__":
    main()
