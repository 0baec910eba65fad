"""What each part of the default is worth: log-loss, accuracy and time without it.

``python studies/ablation.py [PART ...] [--sets small] [--rows N] [--jobs J]`` fits the
default to data sets of the folder ``STEELYARD_DATA``, the first two of five stratified
folds each, as it is and without one part after the other. It prints the mean log-loss
of held-out rows, on how many sets the default is lower and higher than without the
part, the p of Wilcoxon's test, accuracy, and the processor time of all fits. A part
that is worth less than .0005 of log-loss should go, unless it has another purpose.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from joblib import Parallel, delayed
from sklearn.model_selection import StratifiedKFold

sys.path.insert(0, str(Path(__file__).resolve().parent))
import curves
import side_by_side

import steelyard as sy
from steelyard._common.text import text_table
from steelyard.fitting.default import folds, strengths
from steelyard.lab.statistics import wilcoxon_signed_rank
from steelyard.proba import smoothing

LEAST = 1e-15

Change = Callable[[], Any]


def without(owner: Any, **values: Any) -> Change:
    """Return a context in which some constants of a module have other values."""
    return lambda: mock.patch.multiple(owner, **values)


def _winner(judged: Sequence[Any]) -> Any:
    return strengths._best(judged).strengths


# Each part by name, and the default without it: settings, or another constant.
PARTS: dict[str, tuple[dict[str, Any], Change]] = {
    "nothing left out": ({}, contextlib.nullcontext),
    "interactions": ({"interactions": None}, contextlib.nullcontext),
    "smooth curves": ({"resolutions": 1}, contextlib.nullcontext),
    "steps of MDL bins": ({"numeric": "equal-frequency"}, contextlib.nullcontext),
    "shrunk evidence": ({"smoothing": "laplace"}, contextlib.nullcontext),
    "search": ({}, without(strengths, _MOVES=())),
    "prior of strengths": ({}, without(strengths, _DEVIATION=1e6)),
    "mean of strengths": ({}, without(strengths, _average=_winner)),
    "steps held back": ({}, without(strengths, _STEP_FACTOR=1.001)),
    "temperature": ({}, without(folds, _LOG_SCALES=(-1e-9, 1e-9))),
    "longest list": ({}, without(strengths, _MIN_GAIN_OF_LONG=(1e9, 1e9))),
    "dropped interactions": ({}, without(strengths, _MIN_INTERACTION_GAIN=-1.0)),
    "several assignments": (
        {},
        without(folds, _ASSIGNMENTS=(), _MAIN_EFFECT_ASSIGNMENTS=()),
    ),
    "races": ({}, without(strengths, _RACE_ERRORS=1e9)),
    "least gain of evidence": ({}, without(smoothing, _GAIN_PER_CATEGORY=0.0)),
}


def measure(name: str, part: str, n_rows: int) -> list[float]:
    """Return log-loss, accuracy and processor time of the first two folds of a set."""
    settings, change = PARTS[part]
    X, y = curves.drawn(name, n_rows)
    X = X.astype({c: float for c in X.select_dtypes(["number", "bool"])})
    found = []
    with warnings.catch_warnings(), change():
        warnings.simplefilter("ignore")  # classes with fewer rows than folds
        splits = StratifiedKFold(5, shuffle=True, random_state=1).split(X, y)
        for _, (rest, fold) in zip(range(2), splits, strict=False):
            clf = sy.ShrinkageNB(uncertainty=False, n_jobs=1, **settings)
            start = time.process_time()
            clf.fit(X.iloc[rest], y[rest])
            seconds = time.process_time() - start
            share, known = clf.predict_proba(X.iloc[fold]), clf.classes_.tolist()
            at = [known.index(c) if c in known else -1 for c in y[fold].tolist()]
            truth = np.where(np.array(at) < 0, 0.0, share[np.arange(len(at)), at])
            loss = -np.log(np.maximum(truth, LEAST)).mean()
            found.append([loss, np.mean(share.argmax(axis=1) == at), seconds])
    return np.mean(found, axis=0).tolist()


def lines(
    parts: Sequence[str], names: Sequence[str], rows: int, jobs: int
) -> Iterator[list[str]]:
    """Yield a line for each part that is left out."""
    whole: Any = None
    for part in parts:
        tasks = (delayed(measure)(name, part, rows) for name in names)
        found = np.array(Parallel(jobs)(tasks))
        loss, accuracy, seconds = found.mean(axis=0)
        line = [part, f"{loss:.4f}"]
        if whole is None:
            whole, line = found[:, 0], [*line, "", ""]
        else:
            gains = found[:, 0] - whole
            lower, higher = int((gains > 1e-4).sum()), int((gains < -1e-4).sum())
            p = wilcoxon_signed_rank(whole, found[:, 0]).p_value
            line += [f"{lower} : {higher}", f"{p:.3f}"]
        yield [*line, f"{100 * accuracy:.2f}", f"{seconds * len(names):.0f} s"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", default=list(PARTS)[1:])
    parser.add_argument("--sets", nargs="+", default=["small"])
    parser.add_argument("--rows", type=int, default=1_500)
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args(arguments)
    for part in set(asked.parts) - set(PARTS):
        parser.error(f"no part {part!r}; there are {', '.join(PARTS)}")
    parts, names = [next(iter(PARTS)), *asked.parts], side_by_side.sets_of(asked.sets)
    headers = ["without", "log-loss", "default lower", "p", "accuracy", "time"]
    rows = list(lines(parts, names, asked.rows, asked.jobs))
    print(text_table(headers, rows, [False, *[True] * 5]))


if __name__ == "__main__":
    main()
