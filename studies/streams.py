"""Compare learners that go on learning, on streams that drift and against a refit.

    pip install river
    python studies/streams.py            # ten chunks against one fit, and three streams
    python studies/streams.py refit      # the first of these alone; or drift
    python studies/streams.py drift --write    # put the table into docs/streams.md

A stream has 20,000 rows in chunks of 500. Each chunk is predicted before it is learned
from; log-losses are means over the second quarter of the stream, before the change, the
first 2,000 rows after it (a half-life) and the rest. "back after" is the number of
half-lives from the end of the change until the mean of the next half-life is within .05
of that before. River's learners take one row at a time. Elec2 is a file in a wheel of
scikit-multiflow, which pip downloads.
"""

from __future__ import annotations

import math
import re
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

import steelyard as sy
from steelyard.lab.data.datasets import load_dataset

N, SIZE, HALF_LIFE = 20_000, 500, 2_000
PAGE = Path(__file__).parents[1] / "docs" / "streams.md"
# Log-loss that is no worse than another, of streams and of refits.
NEAR, AS_GOOD = 0.05, 0.005
SPLITS = 4
_RIVER = ("compose", "naive_bayes", "tree")
_ELEC2 = "scikit-multiflow==0.3.0", "skmultiflow/data/datasets/elec.csv"
_COLUMNS = ["period", "price", "demand", "price_there", "demand_there", "transfer"]
# Where a neighbour begins to take part in the market of Elec2.
_OPENS = 17_424


def rows(n: int, turned: Any, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    """Make rows: numbers, categories and a pair; the signs may be turned."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({f"n{k}": rng.normal(size=n) for k in range(4)})
    for k in range(4):
        X[f"c{k}"] = rng.choice(list("abcde"), n)
    p = truth(X)
    return X, (rng.random(n) < np.where(turned, 1.0 - p, p)).astype(int)


def truth(X: pd.DataFrame) -> Any:
    """Return probabilities of made rows whose signs are not turned."""
    z = 1.2 * X["n0"] - np.abs(X["n1"]) + 1.5 * (X["c0"] == "a") - (X["c1"] == "b")
    z = z + 2.0 * ((X["c2"] == "a") == (X["n2"] > 0)) - 0.9
    return (1.0 / (1.0 + np.exp(-z))).to_numpy()


def streams() -> Iterator[tuple[str, pd.DataFrame, Any, int]]:
    """Yield streams that change in the middle, and the row at which that ends."""
    at, rng = np.arange(N), np.random.default_rng(1)
    slowly = rng.random(N) < np.clip((at - N / 2) / (N / 4), 0, 1)
    yield "turns at once", *rows(N, at >= N // 2), N // 2
    yield "turns slowly, over 5,000 rows", *rows(N, slowly), N // 2 + N // 4
    # Looked at after the rule of "auto" was settled.
    X, y = rows(N, False, 7)
    places = {"n0": "n3", "n3": "n0", "c0": "c3", "c3": "c0", "c1": "c2", "c2": "c1"}
    new = X[N // 2 :].rename(columns=places)[X.columns]
    yield "columns trade places", pd.concat([X[: N // 2], new]), y, N // 2
    elec2 = _elec2()
    if elec2 is not None:
        part = elec2[_OPENS - N // 2 : _OPENS + N // 2].reset_index(drop=True)
        y = part.pop("y").to_numpy()
        yield "Elec2, a market that opens", part, y, N // 2


def _elec2() -> pd.DataFrame | None:
    """Return half-hours of a market: whether the price is above that of the last day.

    M. Harries (1999), "Splice-2 comparative evaluation: electricity pricing".
    """
    (package, file), python = _ELEC2, "--python-version=3.6"
    how = ["--no-deps", "--only-binary=:all:", python, "--platform=manylinux1_x86_64"]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "-q", *how, "-d", folder]
        if subprocess.run([*command, package], check=False).returncode:
            print("Elec2 is left out: pip could not download its package.")
            return None
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive, archive.open(file) as stream:
            return pd.read_csv(stream, names=[*_COLUMNS, "y"], header=0)


def chunked(clf: Any, forget: Any) -> Callable[..., Any]:
    """Return a learner of ours: probabilities of a chunk, which is then learned."""

    def step(X: pd.DataFrame, y: Any) -> Any:
        proba = clf.predict_proba(X) if hasattr(clf, "classes_") else None
        clf.partial_fit(X, y, classes=[0, 1], forget=forget)
        return None if proba is None else proba[:, 1]

    return step


def by_row(model: Any) -> Callable[..., Any]:
    """Return a learner of river."""

    def step(X: pd.DataFrame, y: Any) -> Any:
        out, records = [], X.to_dict("records")
        for row in records:
            out.append(model.predict_proba_one(row).get(1, 0.5))
        for row, label in zip(records, y.tolist(), strict=True):
            model.learn_one(row, label)
        return np.clip(out, 1e-3, 1 - 1e-3)

    return step


def mixed_truth(X: pd.DataFrame, y: Any) -> Any:
    """Say what one who knows both truths says, if old rows fade by a half-life."""
    old = 0.5 ** (max(X.index[0] - N // 2, 0) / HALF_LIFE)
    p = truth(X)
    return old * p + (1.0 - old) * (1.0 - p)


def learners(name: str) -> dict[str, Callable[..., Any]]:
    """Return what is compared on a stream."""
    fading = 0.5 ** (SIZE / HALF_LIFE)
    out = {
        '`ShrinkageNB`, `forget="auto"`': chunked(sy.ShrinkageNB(), "auto"),
        "`ShrinkageNB`, half-life 2,000": chunked(sy.ShrinkageNB(), fading),
        '`NaiveBayes`, `forget="auto"`': chunked(sy.NaiveBayes(), "auto"),
        "`NaiveBayes`, half-life 2,000": chunked(sy.NaiveBayes(), fading),
        "`NaiveBayes`, all rows": chunked(sy.NaiveBayes(), 1.0),
    }
    if name == "turns at once":
        out["the truth, half-life 2,000"] = mixed_truth
    try:
        river = {n: import_module(f"river.{n}") for n in _RIVER}
    except ImportError:
        print("river is not installed: pip install river")
        return out
    numbers = river["compose"].SelectType(float) | river["naive_bayes"].GaussianNB()
    out["river `GaussianNB` (numbers)"] = by_row(numbers)
    out["river `HoeffdingTree`"] = by_row(river["tree"].HoeffdingTreeClassifier())
    out["river `HoeffdingAdaptiveTree`"] = by_row(
        river["tree"].HoeffdingAdaptiveTreeClassifier(seed=0)
    )
    return out


def drift() -> Iterator[list[str]]:
    """Yield log-losses before a change, within a half-life of it, and after."""
    yield ["stream and learner", "before", "half-life", "after", "back after", "CPU s"]
    for name, X, y, end_of_change in streams():
        yield [f"**{name}**", "", "", "", "", ""]
        for label, step in learners(name).items():
            start, losses = time.process_time(), []
            for first in range(0, N, SIZE):
                part = slice(first, first + SIZE)
                p = step(X[part], y[part])
                loss = math.nan if p is None else log_loss(y[part], p, labels=[0, 1])
                losses.append(loss)
            turn, end = N // 2 // SIZE, (N // 2 + HALF_LIFE) // SIZE
            parts = losses[turn // 2 : turn], losses[turn:end], losses[end:]
            shown = [f"{np.mean(part):.4f}" for part in parts]
            taken = f"{time.process_time() - start:.0f}"
            yield [label, *shown, _back(losses, end_of_change // SIZE), taken]


def _back(losses: list[float], end_of_change: int) -> str:
    """Say how many half-lives after a change the loss is near what it was before."""
    turn, per_half_life = N // 2 // SIZE, HALF_LIFE // SIZE
    before = np.mean(losses[turn // 2 : turn])
    for k in range(end_of_change, len(losses) - per_half_life + 1):
        if np.mean(losses[k : k + per_half_life]) < before + NEAR:
            return f"{(k - end_of_change) / per_half_life:.2f}"
    return "never"


def tables() -> Iterator[tuple[str, Any, Any, Any, Any]]:
    """Yield made tables and real ones, seven tenths of which are learned from."""
    for n in (50_000, 100_000):
        yield f"made, {n:,} rows", *rows(n, False), *rows(20_000, False, seed=9)
    for name in ("nursery", "magic", "adult", "shuttle"):
        try:
            data = load_dataset(name)
        except (OSError, ValueError):
            print("The folder STEELYARD_DATA has the other tables.")
            return
        X, y = data.table, data.target
        for seed in range(SPLITS):
            deal = {"train_size": 0.7, "random_state": seed, "stratify": y}
            train, test = train_test_split(np.arange(len(y)), **deal)
            parts = X.iloc[train], y[train], X.iloc[test], y[test]
            yield f"{name}, split {seed}", *parts


def _file_size(clf: Any) -> int:
    with tempfile.TemporaryDirectory() as folder:
        clf.save(Path(folder, "model.json"))
        return Path(folder, "model.json").stat().st_size


def refit() -> Iterator[list[str]]:
    """Yield the log-loss of ten chunks beside that of one fit of their rows in order.

    The order of rows alone moves a fit: it decides between rows that are in the same
    bins when strengths are compared.
    """
    of_time = ["s a chunk", "s of a fit"]
    yield ["table", "ten chunks", "one fit", "difference", *of_time, "file kB"]
    worst = []
    for name, X, y, new, truth in tables():
        clf, order = sy.ShrinkageNB(), np.random.default_rng(0).permutation(len(y))
        start = time.process_time()
        for part in np.array_split(order, 10):
            clf.partial_fit(X.iloc[part], y[part])
        middle = time.process_time()
        whole = sy.ShrinkageNB().fit(X.iloc[order], y[order])
        taken = (middle - start) / 10, time.process_time() - middle
        both = [
            log_loss(truth, model.predict_proba(new), labels=model.classes_)
            for model in (clf, whole)
        ]
        worst.append(abs(both[0] - both[1]))
        shown = *(f"{loss:.4f}" for loss in both), f"{both[0] - both[1]:+.4f}"
        times = (f"{seconds:.1f}" for seconds in taken)
        yield [name, *shown, *times, f"{_file_size(clf) / 1000:,.0f}"]
    good = sum(gap < AS_GOOD for gap in worst)
    yield [f"within .005: {good} of {len(worst)}", *[""] * 6]


def written(name: str, table: list[str]) -> None:
    """Put a table into the page, between its marks."""
    marks = rf"(?s)(<!-- {name} -->\n\n).*?(\n\n<!-- end -->)"
    page, lines = PAGE.read_text(encoding="utf-8"), "\n".join(table)
    page = re.sub(marks, lambda match: f"{match[1]}{lines}{match[2]}", page)
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    asked = {word for word in sys.argv[1:] if word != "--write"}
    for part in (refit, drift):
        if asked and part.__name__ not in asked:
            continue
        table: list[str] = []
        for cells in part():
            table.append(f"| {' | '.join(cells)} |")
            if len(table) == 1:
                table.append("| --- " * len(cells) + "|")
            print(table[0] if len(table) == 2 else table[-1], flush=True)
        if "--write" in sys.argv:
            written(part.__name__, table)
