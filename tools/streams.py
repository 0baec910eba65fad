"""Compare learners that go on learning, on streams that drift and against a refit.

    pip install river
    python tools/streams.py            # ten chunks against one fit, and four streams
    python tools/streams.py refit      # the first of these alone

A stream has 20,000 rows in chunks of 500. Each chunk is predicted before it is learned
from; log-losses are means over the chunks before the change, the first 2,000 rows after
it (a half-life) and the rest. Rivers' learners take one row at a time.
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
    """Yield streams that change in the middle: at once, slowly, and for a while."""
    at, rng = np.arange(N), np.random.default_rng(1)
    slowly = rng.random(N) < np.clip((at - N / 2) / (N / 4), 0, 1)
    yield "turns at once", *rows(N, at >= N // 2)
    yield "turns slowly", *rows(N, slowly)
    yield "turns, and turns back", *rows(N, (at >= N // 2) & (at < 3 * N // 4))


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
        print(f"\n{name:38}  before  half-life  after   CPU s")
        for label, step in learners().items():
            start, losses = time.process_time(), []
            for first in range(0, N, SIZE):
                part = slice(first, first + SIZE)
                p = step(X[part], y[part])
                losses.append(math.nan if p is None else log_loss(y[part], p))
            turn, end = N // 2 // SIZE, (N // 2 + HALF_LIFE) // SIZE
            parts = losses[turn // 2 : turn], losses[turn:end], losses[end:]
            shown = "   ".join(f"{np.mean(part):.4f}" for part in parts)
            print(f"  {label:36}  {shown}  {time.process_time() - start:6.1f}")


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
        for seed in range(3):
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
    refit()
    if "refit" not in sys.argv:
        drift()
