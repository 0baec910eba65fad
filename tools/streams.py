"""Compare learners that go on learning, on streams that drift and against a refit.

    pip install river
    python tools/streams.py            # ten chunks against one fit, and three streams
    python tools/streams.py refit      # the first of these alone; or drift

A stream has 20,000 rows in chunks of 500. Each chunk is predicted before it is learned
from; log-losses are means over the chunks before the change, the first 2,000 rows after
it (a half-life) and the rest. "back after" is the number of half-lives after which the
mean of the next half-life is within .05 of that before. River's learners take one row
at a time.
"""

from __future__ import annotations

import math
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

import steelyard as sy
from steelyard.experiments.data import load_dataset

N, SIZE, HALF_LIFE = 20_000, 500, 2_000
# Log-loss that is no worse than another.
NEAR = 0.05
_RIVER = ("compose", "naive_bayes", "tree")


def rows(n: int, turned: Any, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    """Make rows: numbers, categories and a pair; the signs may be turned."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({f"n{k}": rng.normal(size=n) for k in range(4)})
    for k in range(4):
        X[f"c{k}"] = rng.choice(list("abcde"), n)
    z = 1.2 * X["n0"] - np.abs(X["n1"]) + 1.5 * (X["c0"] == "a") - (X["c1"] == "b")
    z = z + 2.0 * ((X["c2"] == "a") == (X["n2"] > 0)) - 0.9
    z = np.where(turned, -z, z)
    return X, (rng.random(n) < 1.0 / (1.0 + np.exp(-z))).astype(int)


def streams() -> Iterator[tuple[str, pd.DataFrame, Any]]:
    """Yield streams that change in the middle: at once, slowly, and as a market."""
    at, rng = np.arange(N), np.random.default_rng(1)
    slowly = rng.random(N) < np.clip((at - N / 2) / (N / 4), 0, 1)
    yield "turns at once", *rows(N, at >= N // 2)
    yield "turns slowly", *rows(N, slowly)
    yield "a market that opens", *market(N)


def market(n: int) -> tuple[pd.DataFrame, Any]:
    """Make half-hours of a market, as those of the stream Elec2.

    Whether the price is above that of the last day; demand has days, weeks and seasons,
    the price wanders, and from the middle on a neighbour takes part in it.
    """
    rng, at = np.random.default_rng(2), np.arange(n)
    day, week, is_open = 2 * np.pi * at / 48, at // 48 % 7, at >= n // 2

    def wandering(keeps: float) -> Any:
        steps = pd.Series(rng.normal(size=n))
        return steps.ewm(alpha=1 - keeps, adjust=False).mean() / np.sqrt(1 - keeps)

    demand = np.sin(day - 2) + 0.6 * (week < 5) + 0.4 * np.sin(day / 365)
    demand = demand + 0.3 * wandering(0.9)
    other = np.sin(day - 1) + 0.3 * (week < 5) + 0.3 * wandering(0.9)
    transfer = np.where(is_open, demand - other + 0.2 * rng.normal(size=n), 0.0)
    level = 0.8 * wandering(0.999)
    price = level + np.where(is_open, 0.4 * demand + 0.8 * other, demand)
    price = price + 0.4 * rng.normal(size=n)
    X = pd.DataFrame({"demand": demand, "other": other, "transfer": transfer})
    X["period"], X["weekday"] = at % 48 / 48, week.astype(str)
    return X, (price > price.rolling(48, min_periods=1).mean()).to_numpy().astype(int)


def chunked(clf: Any, forget: float) -> Callable[..., Any]:
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


def learners() -> dict[str, Callable[..., Any]]:
    """Return what is compared."""
    fading = 0.5 ** (SIZE / HALF_LIFE)
    out = {
        "ShrinkageNB, half-life 2,000": chunked(sy.ShrinkageNB(), fading),
        "ShrinkageNB": chunked(sy.ShrinkageNB(), 1.0),
        "NaiveBayes, half-life 2,000": chunked(sy.NaiveBayes(), fading),
        "NaiveBayes": chunked(sy.NaiveBayes(), 1.0),
    }
    try:
        river = {n: import_module(f"river.{n}") for n in _RIVER}
    except ImportError:
        print("river is not installed: pip install river")
        return out
    numbers = river["compose"].SelectType(float) | river["naive_bayes"].GaussianNB()
    out["river GaussianNB (numbers)"] = by_row(numbers)
    out["river HoeffdingTree"] = by_row(river["tree"].HoeffdingTreeClassifier())
    out["river HoeffdingAdaptiveTree"] = by_row(
        river["tree"].HoeffdingAdaptiveTreeClassifier(seed=0)
    )
    return out


def drift() -> None:
    """Print log-losses before a change, within a half-life of it, and after."""
    for name, X, y in streams():
        print(f"\n{name:38}  before  half-life  after   back after   CPU s")
        for label, step in learners().items():
            start, losses = time.process_time(), []
            for first in range(0, N, SIZE):
                part = slice(first, first + SIZE)
                p = step(X[part], y[part])
                losses.append(math.nan if p is None else log_loss(y[part], p))
            turn, end = N // 2 // SIZE, (N // 2 + HALF_LIFE) // SIZE
            parts = losses[turn // 2 : turn], losses[turn:end], losses[end:]
            shown = "   ".join(f"{np.mean(part):.4f}" for part in parts)
            taken = time.process_time() - start
            print(
                f"  {label:36}  {shown}  {_back(losses):>10}  {taken:6.1f}", flush=True
            )


def _back(losses: list[float]) -> str:
    """Say how many half-lives after a change the loss is near what it was before."""
    turn, per_half_life = N // 2 // SIZE, HALF_LIFE // SIZE
    before = np.mean(losses[turn // 2 : turn])
    for k in range(turn, len(losses) - per_half_life + 1):
        if np.mean(losses[k : k + per_half_life]) < before + NEAR:
            return f"{(k - turn) / per_half_life:.2f}"
    return "never"


def tables() -> Iterator[tuple[str, Any, Any, Any, Any]]:
    """Yield made tables and real ones, seven tenths of which are learned from."""
    for n in (10_000, 50_000):
        yield f"made, {n:,} rows", *rows(n, False), *rows(20_000, False, seed=9)
    for name in ("nursery", "magic", "adult"):
        try:
            data = load_dataset(name)
        except (OSError, ValueError):
            print("The folder STEELYARD_DATA has the other tables.")
            return
        X, y = data.table, data.target
        for seed in range(2):
            deal = {"train_size": 0.7, "random_state": seed, "stratify": y}
            train, test = train_test_split(np.arange(len(y)), **deal)
            parts = X.iloc[train], y[train], X.iloc[test], y[test]
            yield f"{name}, split {seed}", *parts


def _file_size(clf: Any) -> int:
    with tempfile.TemporaryDirectory() as folder:
        clf.save(Path(folder, "model.json"))
        return Path(folder, "model.json").stat().st_size


def refit() -> None:
    """Print the log-loss of ten chunks beside that of one fit of all their rows."""
    print("\nten chunks against one fit   chunks  one fit  file kB   without rows")
    for name, X, y, new, truth in tables():
        clf = sy.ShrinkageNB()
        for part in np.array_split(np.random.default_rng(0).permutation(len(y)), 10):
            clf.partial_fit(X.iloc[part], y[part])
        whole = sy.ShrinkageNB().fit(X, y)
        both = [
            log_loss(truth, own.predict_proba(new), labels=own.classes_)
            for own in (clf, whole)
        ]
        sizes = [_file_size(own) / 1000 for own in (clf, whole)]
        print(
            f"  {name:24}   {both[0]:.4f}   {both[1]:.4f}  {sizes[0]:7,.0f}"
            f"  {sizes[1]:12,.0f}",
            flush=True,
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for part in (refit, drift):
        if not sys.argv[1:] or part.__name__ in sys.argv:
            part()
