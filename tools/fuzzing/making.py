"""Tables to fit, and rows of another distribution to score."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

EXTREMES = [0.0, -0.0, 1.0, -1.0, 2.0**31, 2.0**53, 1e30, 5e-324, 1e-300, 1e100, 1e155]
EXTREMES += [-1e300, 1.7e308, 1e308, -1.7e308, 0.1, 0.3]
TEXTS = ["", "a", "A", "ж", " b", "=c", "NA", "it's", 'b "', "\\n", "1", "'); --", "é☃"]
UNSEEN = ["unseen", "a ", "zz", "", "'", "\0x"]
NAMES = ["x", "y z", "it's", 'a "b"', "é", "p(a)", "prediction", "'); --", "1", "row"]
LABELS = ["no", "yes", "it's", 'a "b"', "é", "", "0", "B", "a"]
KINDS = "normal normal rounded rounded few text text text flag odd none category same"


@dataclass
class Made:
    """A table to fit and rows to score."""

    X: pd.DataFrame
    y: np.ndarray[Any, Any]
    weights: np.ndarray[Any, Any] | None
    queries: pd.DataFrame
    is_tame: bool
    """Whether sums of its numbers differ by rounding alone."""


def make_table(rng: random.Random) -> Made:
    """Return a table of a random shape, some of it related to the classes."""
    n = rng.choice([6, 12, 30, 30, 60, 60, 120, 300])
    d = rng.choice([1, 2, 3, 3, 4, 5, 7, 10])
    n_classes = rng.choice([2, 2, 2, 3, 3, 5])
    noise = np.random.default_rng(rng.randrange(2**32))
    codes = noise.integers(0, n_classes, n)
    codes[:n_classes] = np.arange(n_classes)
    words = KINDS.replace("odd", "normal") if rng.random() < 0.7 else KINDS
    kinds = [rng.choice(words.split()) for _ in range(d)]
    columns = [_column(kind, codes, noise, rng) for kind in kinds]
    names = _names(rng, d)
    X = pd.DataFrame(dict(zip(names, columns, strict=True)))
    for name in names:
        if rng.random() < 0.4:
            _make_gaps(X, name, noise.random(n) < rng.choice([0.1, 0.3, 0.8]))
    weights = None
    if rng.random() < 0.3:
        few = [0.0, 1.0, 2.0, 3.0, rng.choice([0.5, 0.25, 1e-15, 1e15])]
        weights = np.array([rng.choice(few) for _ in range(n)])
        weights[:n_classes] = 1.0
    is_tame = all(_is_tame(X[name]) for name in X)
    is_tame &= weights is None or bool(((weights == 0) | (weights > 0.2)).all())
    is_tame &= weights is None or bool((weights < 10).all())
    queries = make_queries(X, rng)
    return Made(X, _labels(rng, n_classes)[codes], weights, queries, is_tame)


def _names(rng: random.Random, d: int) -> list[str]:
    if rng.random() < 0.5:
        return [f"x{j}" for j in range(d)]
    return rng.sample(NAMES, d)


def _labels(rng: random.Random, n_classes: int) -> np.ndarray[Any, Any]:
    kind = rng.choice(["text", "text", "words", "numbers"])
    if kind == "numbers":
        return np.array(sorted(rng.sample(range(-3, 9), n_classes)))
    labels = LABELS if kind == "text" else ["ant", "bee", "cat", "dog", "eel"]
    return np.array(rng.sample(labels, n_classes), dtype=object)


def _column(
    kind: str, codes: Any, noise: np.random.Generator, rng: random.Random
) -> Any:
    """Return the cells of a column; about half of them follow the class."""
    n, signal = len(codes), rng.choice([0.0, 0.5, 0.9])
    shift = codes * rng.choice([0, 1, 3])
    if kind == "normal":
        scale = 10.0 ** rng.choice([0, 0, 0, 3, -3])
        return (noise.normal(size=n) + shift) * scale
    if kind == "rounded":
        return np.round(noise.normal(size=n) * 2 + shift, rng.choice([0, 1]))
    if kind == "few":
        return noise.integers(-2, 3, n) + codes * (noise.random(n) < signal)
    if kind in ("text", "category"):
        words = np.array(rng.sample(TEXTS, rng.choice([2, 3, 6, 10])), dtype=object)
        other = noise.integers(0, len(words), n)
        cells = words[np.where(noise.random(n) < signal, codes % len(words), other)]
        return pd.Categorical(cells) if kind == "category" else cells
    if kind == "flag":
        return (noise.random(n) < 0.2 + 0.6 * (codes % 2)).astype(object)
    if kind == "odd":
        return noise.choice(EXTREMES, n)
    return np.full(n, np.nan if kind == "none" else 4.5)


def _make_gaps(X: pd.DataFrame, name: str, gaps: Any) -> None:
    """Make cells missing; whole numbers become floats by that."""
    column = X[name]
    if pd.api.types.is_integer_dtype(column):
        column = column.astype(float)
    X[name] = column.mask(pd.Series(gaps), None)


def _is_tame(column: Any) -> bool:
    if not pd.api.types.is_numeric_dtype(column) or column.dtype == bool:
        return True
    known = column.dropna().abs()
    return bool(((known == 0) | ((known > 1e-6) & (known < 1e6))).all())


def make_queries(X: pd.DataFrame, rng: random.Random) -> pd.DataFrame:
    """Return rows to score: known, near, far, extreme, unseen and missing cells."""
    n = 24
    columns: dict[str, Any] = {}
    for name in X:
        columns[name] = pd.Series(_queried(X[name], n, rng), dtype=_dtype_of(X[name]))
    queries = pd.DataFrame(columns)
    for name in queries:  # a row without any cell, and others with few
        if queries[name].dtype != int:
            queries.loc[0, name] = None
            queries[name] = queries[name].mask([rng.random() < 0.15 for _ in range(n)])
    return queries


def _dtype_of(column: Any) -> Any:
    is_number = pd.api.types.is_numeric_dtype(column) and column.dtype != bool
    return column.dtype if is_number else object


def _queried(column: Any, n: int, rng: random.Random) -> list[Any]:
    """Return cells of the kind of a column, half of them its own."""
    known = column.dropna().astype(object).tolist()
    dtype = _dtype_of(column)
    if dtype is object:
        if known and isinstance(known[0], bool):
            return [rng.random() < 0.5 for _ in range(n)]
        if not known:
            return [None] * n
        return [
            rng.choice(known) if rng.random() < 0.6 else rng.choice(UNSEEN)
            for _ in range(n)
        ]
    if not known:
        return [np.nan] * n
    if not pd.api.types.is_float_dtype(dtype):
        return [rng.choice([*known, max(known) + 1, -99, 10**6]) for _ in range(n)]
    return [_number(sorted(known), rng) for _ in range(n)]


def _number(known: list[float], rng: random.Random) -> float:
    """Return a number of a column, between two, near to one, or far from all."""
    kind, x = (
        rng.choice("own own mean mean next far extreme".split()),
        rng.choice(known),
    )
    if kind == "mean":
        k = rng.randrange(len(known))
        above = next((v for v in known[k:] if v > known[k]), known[k])
        return (
            known[k] / 2 + above / 2 if abs(above) > 1e300 else (known[k] + above) / 2
        )
    if kind == "next":
        return float(np.nextafter(x, rng.choice([-np.inf, np.inf])))
    if kind == "far":
        far = x + rng.choice([-1, 1]) * rng.choice([3, 20, 500, 1e5]) * (
            np.ptp(known) if abs(known[0]) < 1e300 > abs(known[-1]) else 0.0
        )
        return float(far) if np.isfinite(far) else x
    return rng.choice(EXTREMES) if kind == "extreme" else x
