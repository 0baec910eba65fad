"""Run fourteen models in all engines that are here, on 2,000 hostile rows each.

    python studies/exports.py                        # all engines that are installed
    python studies/exports.py xlsx libreoffice --models dates edited --rows 200

Rows have missing cells, values never seen, cut points, their neighbours and numbers of
all sizes. Prints for each engine how many models ran, and the largest difference of a
probability from ``predict_proba``, or from the sum where a format adds up.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import steelyard as sy
from steelyard.exceptions import ParameterError
from steelyard.export.check import ENGINES, EngineMissingError, check
from steelyard.export.sql_dialect import DIALECTS

ODD = ["it's", 'a "b"', "x; --c", "{{x}}", "$$", "/*x*/", "NULL", "nan", " a ", "a\nb"]
ODD += [
    "\u65e5\u672c",
    "\u00c4rger",
    "\u00e4rger",
    "'; DROP TABLE t; --",
    "\u00e9" * 300,
]
N_TRAIN = 1_500
Model = tuple[Any, pd.DataFrame, list[str]]
"""A fitted classifier, its rows of training, and its columns of categories."""


def table(
    n: int = N_TRAIN, n_classes: int = 2, seed: int = 0, n_values: int = 0
) -> Any:
    """Return rows of all kinds, with labels; of many values if asked for."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    words = np.array(ODD, dtype=object)
    X = pd.DataFrame(
        {
            "R\u00e9gion": words[(y + rng.integers(0, 9, n)) % len(words)],
            "is new": rng.random(n) < 0.2 + 0.6 * (y % 2),
            "select": (y % 5 + rng.normal(size=n)).round(2),
            'a "b".c': rng.normal(size=n) * 10.0 ** rng.integers(-3, 4, n),
            "grade": rng.integers(0, 6, n) + y % 3,
        }
    )
    for name in ("R\u00e9gion", "select"):
        X.loc[rng.random(n) < 0.1, name] = None
    if n_values:
        X["town"] = [f"town {k}" for k in rng.integers(0, n_values, n)]
        X["street"] = [f"street {k}" for k in rng.integers(0, n_values // 6, n)]
    return X, np.array([f"class '{k}'" for k in range(n_classes)])[y]


CATEGORIES = ["R\u00e9gion", "is new", "grade"]
PAIRS = [["R\u00e9gion", "grade"], ["select", 'a "b".c'], ["select", "is new"]]


def fit(
    method: str = "SHNB", n_classes: int = 2, seed: int = 0, **settings: Any
) -> Model:
    """Fit a method to rows of all kinds."""
    clf = sy.method(method, categorical_features=CATEGORIES, **settings)
    X, y = table(n_classes=n_classes, seed=seed)
    return clf.fit(X, y), X, CATEGORIES


def dates() -> Model:
    """Fit rows with moments from 1965 on, to the microsecond."""
    X, y = table(seed=3)
    seconds = np.random.default_rng(3).integers(-(10**8), 17 * 10**8, len(X))
    moments = pd.Timestamp("1970-01-01") + pd.to_timedelta(seconds * 10**6 + 7, "us")
    X = X.assign(when=moments)
    clf = sy.ShrinkageNB(categorical_features=CATEGORIES)
    return clf.fit(X, np.where(moments.dayofweek > 3, y, y[::-1])), X, CATEGORIES


def edited() -> Model:
    """Change a model three times by hand."""
    clf, X, names = fit("WANBIA-CLL", seed=4)
    edits: list[dict[str, Any]] = [
        {"column": "is new", "values": [True], "set": 0.5},
        {"column": "select", "to": 1.0, "set": -0.25},
        {"column": "grade", "scale": 0.5},
    ]
    for edit in edits:
        clf = clf.edited(edit)
    return clf, X, names


def prior() -> Model:
    """Give a model other shares of classes."""
    clf, X, names = fit("NB")
    return clf.with_prior([0.9, 0.1]), X, names


def chunks() -> Model:
    """Learn three chunks one after the other."""
    X, y = table(seed=5)
    clf = sy.ShrinkageNB(categorical_features=CATEGORIES)
    for part in np.array_split(np.arange(len(X)), 3):
        clf.partial_fit(X.iloc[part], y[part])
    return clf, X, CATEGORIES


def many_values() -> Model:
    """Fit columns of 3,000 and 500 values."""
    X, y = table(12_000, seed=6, n_values=3_000)
    names = [*CATEGORIES, "town", "street"]
    return sy.ShrinkageNB(categorical_features=names).fit(X, y), X, names


def array() -> Model:
    """Fit an array of numbers, with three classes."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(N_TRAIN, 5)).round(3)
    y = (X[:, 0] * X[:, 1] > 0) + (X[:, 2] + X[:, 3] > 1)
    clf = sy.ShrinkageNB(interactions=6).fit(X, y)
    return clf, pd.DataFrame(X, columns=[f"x{j}" for j in range(5)]), []


MODELS: dict[str, Callable[[], Model]] = {
    "two classes": fit,
    "three classes": lambda: fit(n_classes=3, seed=1),
    "26 classes": lambda: fit(n_classes=26, seed=2, interactions=None),
    "26 classes, interactions": lambda: fit(n_classes=26, seed=2, interactions=PAIRS),
    "interactions": lambda: fit(interactions=PAIRS),
    "dates": dates,
    "missing as value": lambda: fit(missing="value"),
    "constrained": lambda: fit(constraints={"select": "increasing"}),
    "edited": edited,
    "prior": prior,
    "chunks": chunks,
    "array": array,
    "3,500 values": many_values,
    "densities": lambda: fit("NB", numeric="gaussian", seed=8),
}


@cache
def model(name: str, n_rows: int) -> tuple[Any, pd.DataFrame]:
    """Return a classifier and hostile rows of it."""
    clf, X, names = MODELS[name]()
    rng = np.random.default_rng(len(name))
    rows = X.iloc[rng.integers(0, len(X), n_rows)].reset_index(drop=True)
    features = dict(zip(X, clf.encoder_.schema_.features, strict=False))
    for column in X:
        gone, odd = rng.random(n_rows) < 0.05, rng.random(n_rows) < 0.3
        if column not in names and rows[column].dtype.kind != "M":
            edges = np.array(getattr(features[column], "edges", ())[:40])
            near = [np.nextafter(edges, s * np.inf) for s in (1, -1)]
            far = [0.0, -0.0, 1e300, -1e300, 5e-324, 1e6]
            cells = np.concatenate([edges, *near, far])
            rows.loc[odd, column] = rng.choice(cells, odd.sum())
            rows.loc[gone, column] = np.nan
        elif rows[column].dtype == object or rows[column].dtype == "str":
            unseen = ["never", "red ", "\u00c4RGER", ODD[0].upper()]
            rows[column] = rows[column].astype(object)
            rows.loc[odd & (rng.random(n_rows) < 0.3), column] = rng.choice(unseen)
            rows.loc[gone, column] = None
    return clf, rows


def engines(stack: ExitStack, asked: list[str]) -> dict[str, tuple[str, Any]]:
    """Return what checks with each engine: a format, and options or a server."""
    found: dict[str, tuple[str, Any]] = {
        name: ("sql", {"dialect": name}) if name in DIALECTS else (name, {})
        for name in ENGINES
    }
    if not asked or "libreoffice" in asked:
        with suppress(FileNotFoundError):
            found["libreoffice"] = ("xlsx", stack.enter_context(office().Server()))
    return {name: by for name, by in found.items() if not asked or name in asked}


def office() -> Any:
    """Load the tool that asks LibreOffice."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
    return import_module("libreoffice")


def compared(kind: str, by: Any, clf: Any, X: pd.DataFrame) -> Any:
    """Return the agreement of an engine, None where the format refuses a model."""
    before = ENGINES.get(kind)
    try:
        if isinstance(by, dict):
            return check(clf, X, kind, **by)
        ENGINES[kind] = ("LibreOffice", by.score)
        return check(clf, office().as_typed(clf, X), kind)
    except EngineMissingError:
        raise
    except ParameterError as error:
        print(f"    {error}", file=sys.stderr)
        return None
    finally:
        if before is not None:
            ENGINES[kind] = before


def main() -> None:
    """Print a line for each engine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engines", nargs="*", help="some of them (default: all)")
    parser.add_argument("--models", nargs="+", default=[*MODELS])
    parser.add_argument("--rows", type=int, default=2_000, metavar="N")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print(
        "| engine | models | largest difference | other classes |\n"
        + "| --- " * 4
        + "|"
    )
    with ExitStack() as stack:
        for name, (kind, by) in engines(stack, arguments.engines).items():
            done = []
            for which in arguments.models:
                start = time.process_time()
                try:
                    found = compared(kind, by, *model(which, arguments.rows))
                except EngineMissingError as error:
                    print(f"{name}: {error}", file=sys.stderr)
                    break
                seconds = time.process_time() - start
                print(f"  {name}, {which}: {found} {seconds:.0f} s", file=sys.stderr)
                done += [] if found is None else [found]
            if done:
                worst = max(of.difference for of in done)
                others = sum(of.n_labels + of.n_counts for of in done)
                print(
                    f"| {done[0].engine} | {len(done)} | {worst:.1e} | {others} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
