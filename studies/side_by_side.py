"""Log-loss of the default by table, beside plain naive Bayes or another source tree.

``python studies/side_by_side.py [SET ...] [--before TREE] [--known 20 50] [--seed S]``
fits data sets of the folder ``STEELYARD_DATA`` in stratified folds. It prints the
log-loss of the rows held out for each set, the mean, on how many sets the first is
lower, with the p of Wilcoxon's test, accuracy, and the processor time of all fits.
Beside it stands plain naive Bayes, or with ``--before`` the default of a checkout of
another commit. ``--known 20`` hides all but one in five cells of the rows held out.
With ``--copy 50`` the default also learns from a copy of its rows with half of their
cells hidden. ``--jobs 8`` works on eight sets at a time.

``small`` are 69 sets: the leader board's and the half of the others that choices are
made on, without those of the most columns times classes. ``all`` are all of the folder.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

sys.path.insert(0, str(Path(__file__).resolve().parent))
import curves

import steelyard as sy
from steelyard._common.text import text_table
from steelyard.lab.data.datasets import data_folder, dataset_group
from steelyard.lab.statistics import wilcoxon_signed_rank

# The half of the sets beside the leader board's that choices are made on.
CHOOSING = (
    "ann-thyroid cardiotocography-nsp dermatology eucalyptus grub-damage hayes-roth "
    "liver-disorders mammographic monks-1 monks-1-train monks-2 monks-2-train monks-3 "
    "monks-3-train musk1 optdigits postoperative satimage spambase squash-stored "
    "squash-unstored vertebral-column-2c vertebral-column-3c wine"
).split()

# Columns times classes that a small set has at most.
MAX_CELLS = 205

# Probabilities are no smaller than this in a log-loss.
LEAST = 1e-15

FIGURES = ("log-loss", "accuracy", "seconds")


class Asked(NamedTuple):
    """What is run on each set."""

    rows: int
    folds: int
    known: list[float]
    """Percent of the cells of held-out rows that are known, one run or several."""

    seed: int
    jobs: int
    """Sets at a time."""

    copy: float = 0.0
    """Percent of the cells that a copy of the training rows has; 0 for no copy."""


def sets_of(names: Sequence[str]) -> list[str]:
    """Return data sets by name; ``small`` and ``all`` stand for several."""
    found: list[str] = []
    for name in names:
        if name == "small":
            board = {*dataset_group("rnb33"), *dataset_group("exp28"), *CHOOSING}
            found += [own for own, cells in _sizes() if own in board and cells]
        elif name == "all":
            found += [own for own, _ in _sizes()]
        else:
            found.append(name)
    return found


def _sizes() -> Iterator[tuple[str, bool]]:
    """Yield all sets of the folder, and whether each has few columns and classes."""
    for row in pd.read_csv(data_folder() / "MANIFEST.csv").itertuples():
        yield str(row.name), int(row.attributes) * int(row.classes) <= MAX_CELLS


def hidden(X: pd.DataFrame, known: float, seed: int) -> pd.DataFrame:
    """Hide all but so many percent of the cells."""
    is_known = np.random.default_rng(seed).random(X.shape) < known / 100.0
    return X if known >= 100.0 else X.where(is_known)


def measure(clf: Any, name: str, asked: Asked) -> list[list[float]]:
    """Return log-loss and accuracy of held-out rows, and processor time of the fits.

    There is one list for each share of known cells.
    """
    X, y = curves.drawn(name, asked.rows)
    X = X.astype({c: float for c in X.select_dtypes(["number", "bool"])})
    found = np.zeros((len(asked.known), 3))
    folds = StratifiedKFold(asked.folds, shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes with fewer rows than folds
        for rest, fold in folds.split(X, y):
            own_X, own_y = X.iloc[rest], y[rest]
            if asked.copy:
                own_X = pd.concat([own_X, hidden(own_X, asked.copy, len(X) + 1)])
                own_y = np.concatenate([own_y, own_y])
                # A row and its copy are in one fold.
                together = np.tile(np.arange(len(rest)), 2)
                groups = StratifiedGroupKFold(5, shuffle=True, random_state=0)
                clf.set_params(cv=list(groups.split(own_X, own_y, together)))
            start = time.process_time()
            clf.fit(own_X, own_y)
            found[:, 2] += time.process_time() - start
            for own, known in zip(found, asked.known, strict=True):
                share = clf.predict_proba(hidden(X.iloc[fold], known, len(X)))
                of_truth = (share * (clf.classes_ == y[fold][:, None])).sum(axis=1)
                own[0] -= np.log(np.maximum(of_truth, LEAST)).sum()
                own[1] += 100.0 * (clf.classes_[share.argmax(axis=1)] == y[fold]).sum()
    found[:, :2] /= len(X)
    figures: list[list[float]] = found.tolist()
    return figures


Figures = dict[str, list[list[float]]]


def of_sets(clf: Any, sets: Sequence[str], asked: Asked) -> Figures:
    """Measure a classifier on data sets."""
    run = Parallel(asked.jobs, batch_size=1)
    figures = run(delayed(measure)(clf, name, asked) for name in sets)
    return dict(zip(sets, figures, strict=True))


def of_tree(tree: Path, sets: Sequence[str], asked: Asked) -> Figures:
    """Measure the default of another source tree, in a process of its own."""
    paths = os.pathsep.join(filter(None, [str(tree / "src"), os.getenv("PYTHONPATH")]))
    command = [sys.executable, __file__, *sets, "--json"]
    for option, value in asked._asdict().items():
        values = value if isinstance(value, list) else [value]
        command += [f"--{option}", *map(str, values)]
    environment = os.environ | {"PYTHONPATH": paths}
    ran = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    figures: Figures = json.loads(ran.stdout)
    return figures


def shown(
    first: dict[str, list[float]], second: dict[str, list[float]], names: Sequence[str]
) -> str:
    """Return the table, the largest differences last, and what it comes to."""
    both = {name: np.array([first[name], second[name]]) for name in first}
    order = sorted(both, key=lambda name: both[name][0, 0] - both[name][1, 0])
    losses = np.array([both[name][:, 0] for name in order])
    rows = [
        [name, f"{own:.4f}", f"{other:.4f}", f"{own - other:+.4f}"]
        for name, (own, other) in zip(order, losses, strict=True)
    ]
    parts = [text_table(["data set", *names, "difference"], rows, [False] + [True] * 3)]
    mean = np.mean(list(both.values()), axis=0)
    for k, name in enumerate(names):
        told = zip(FIGURES, (*mean[k, :2], mean[k, 2] * len(both)), strict=True)
        parts.append(f"{name}: " + ", ".join(f"{what} {q:.4f}" for what, q in told))
    gap = losses[:, 0] - losses[:, 1]
    p = wilcoxon_signed_rank(losses[:, 0], losses[:, 1]).p_value
    parts.append(
        f"{len(gap)} sets: {names[0]} is lower on {(gap < 0).sum()}, higher on "
        f"{(gap > 0).sum()}, by more than .01 on {(gap > 0.01).sum()} (p = {p:.3f})"
    )
    return "\n".join(parts)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print log-losses side by side."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("sets", nargs="*", default=["small"], help="data sets")
    parser.add_argument("--rows", type=int, default=1_000, help="rows at most")
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--known", nargs="+", type=float, default=[100.0])
    parser.add_argument("--seed", type=int, default=0, help="random_state")
    parser.add_argument("--before", type=Path, metavar="TREE", help="a source tree")
    parser.add_argument("--jobs", type=int, default=1, help="sets at a time")
    parser.add_argument("--copy", type=float, default=0.0, metavar="PERCENT")
    parser.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    sets, clf = sets_of(options.sets), sy.ShrinkageNB(random_state=options.seed)
    asked = Asked(*(getattr(options, field) for field in Asked._fields))
    first = of_sets(clf, sets, asked)
    if options.json:
        print(json.dumps(first))
        return
    if options.before is None:
        second = of_sets(sy.NaiveBayes(), sets, asked._replace(copy=0.0))
    else:
        second = of_tree(options.before, sets, asked)
    for k, known in enumerate(options.known):
        if len(options.known) > 1:
            print(f"\n{known:g} % of the cells known")
        own, other = ({name: of[name][k] for name in sets} for of in (first, second))
        print(shown(own, other, ["SHNB", "before" if options.before else "NB"]))


if __name__ == "__main__":
    main()
