"""Attack the library with made-up model files, tables and result files.

Whatever it is given, it may answer with an error of its own or with valid
probabilities, and with nothing else. Every case has a number and depends on the seed
and that number alone, so that one that fails is repeated by its name:

    python tools/fuzz.py --seed 1 --files 2000 --tables 200 --journals 2000
    python tools/fuzz.py --seed 1 --only tables:17
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import steelyard as sy
from steelyard import exceptions
from steelyard.experiments.journal import read_journal
from steelyard.experiments.results import COLUMNS, Results
from steelyard.persistence import files
from steelyard.persistence.content import content_of

OWN: tuple[type[Exception], ...] = (
    exceptions.TableError,
    exceptions.ParameterError,
    exceptions.ModelFileError,
)

# Between them they have every kind of model and of fitted attribute.
SAVED = ("NB GNB GNB-Weka CFW RNB CWNB SHNB LWNB AIWNB-L BNB SBC TAN AODE MSE").split()
PLAIN = ["NB", "NB-Laplace", "GNB", "GNB-Weka"]
# Beside them, whose results depend on the order of rows in the last digits alone.
FITTED = [*PLAIN, "CFW", "DWNB", "AVFWNB", "TreeNB", "AUCNB", "LWNB", "SBC", "SNB"]
LEARNED = ["RNB", "WANBIA-CLL", "SHNB", "TAN", "AODE", "BNB"]

NUMBERS = [0, 1, -1, 2**31, 2**53 + 1, 10**30, 10**400, 0.5, -0.0, 5e-324, 1e-300]
NUMBERS += [1e100, 1e155, -1e300, 1.7e308, 1e308, -1.7e308, float("nan"), float("inf")]
ODD: list[Any] = [*NUMBERS, None, True, "", "-inf", "x", "sum", "text", "gaussian"]
ODD += [[], [[]], {}, [0.0, 1.0], {"number": "inf"}, {"tuple": []}, {"mapping": []}]


class WrongError(Exception):
    """What was found is neither an error of the library's own nor a valid answer."""


def check_answers(clf: Any, X: Any) -> np.ndarray[Any, Any]:
    """Return probabilities, all of them checked."""
    p, logs = clf.predict_proba(X), clf.predict_log_proba(X)
    if not (np.isfinite(p).all() and (p >= 0).all()):
        raise WrongError(f"probabilities {p[~np.isfinite(p).all(axis=1)][:2]}")
    if not np.allclose(p.sum(axis=1), 1.0):
        raise WrongError("probabilities that do not add up to one")
    if np.isnan(logs).any() or (logs > 1e-9).any():
        raise WrongError("logarithms that are no logarithms of probabilities")
    if not np.isin(clf.predict(X), clf.classes_).all():
        raise WrongError("classes that there are not")
    return np.asarray(p)


def outcome(attempt: Callable[[], str]) -> str:
    """Return what came of a case; whatever is neither answer nor own error is raised.

    Some own errors are Python's or scikit-learn's, of the kind that `fit` documents.
    """
    try:
        return attempt()
    except OWN as error:
        return type(error).__name__


# -------------------------------------------------------------------------------- files


@cache
def saved_models() -> tuple[tuple[dict[str, Any], ...], pd.DataFrame]:
    """Contents of model files of many kinds, and rows to predict."""
    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    X = pd.DataFrame(
        {
            "word": np.array(["a", "b", "c"])[(y + (rng.random(30) < 0.3)) % 3],
            "size": rng.normal(size=30) + y,
            "level": rng.integers(0, 4, 30),
        }
    )
    X.loc[3, "size"] = np.nan
    contents = []
    for name in SAVED:
        for numeric in ("mdl", "gaussian"):
            clf = sy.method(name)
            if "numeric" in clf.get_params() and name != "SHNB":
                clf.set_params(numeric=numeric)
            rows = y < 2 if name in ("RNB", "BNB") else y < 3
            try:
                clf.fit(X[rows], y[rows])
            except OWN:
                continue
            contents.append(content_of(clf))
    queries = X.head(6).copy()
    queries.loc[0] = [None, np.nan, 9]
    return tuple(contents), queries


def mutate(content: Any, rng: random.Random) -> Any:
    """Change a document in one to three places."""
    content = copy.deepcopy(content)
    for _ in range(rng.choice([1, 1, 2, 3])):
        parent, key = descend(content, rng)
        kind = rng.choice(["replace", "replace", "scale", "delete", "copy", "swap"])
        if kind == "scale" and type(parent[key]) in (int, float):
            factor = rng.choice([-1, 0.5, 2, 1e10, 1e-10, 1e100, 1e-300, 1e300])
            parent[key] = 0 if abs(parent[key]) >= 10**400 else parent[key] * factor
        elif kind == "delete":
            del parent[key]
        elif kind == "copy" and isinstance(parent, list):
            parent.insert(key, copy.deepcopy(parent[key]))
        elif kind == "swap" and isinstance(parent, list):
            other = rng.randrange(len(parent))
            parent[key], parent[other] = parent[other], parent[key]
        else:
            parent[key] = copy.deepcopy(rng.choice(ODD))
    return content


def descend(value: Any, rng: random.Random) -> tuple[Any, Any]:
    """Choose a place: a container and a key, small sections as often as large ones."""
    while True:
        keys = sorted(value) if isinstance(value, dict) else range(len(value))
        key = rng.choice(keys)
        inner = value[key]
        if not (isinstance(inner, (dict, list)) and inner) or rng.random() < 0.15:
            return value, key
        value = inner


def attack_file(rng: random.Random, folder: Path) -> str:
    """Load a changed model file, its checksum recomputed, and predict with it."""
    contents, queries = saved_models()
    content = mutate(rng.choice(contents), rng)
    try:
        text = files._canonical(content)
    except ValueError:  # JSON knows no such number
        return "no document"
    document = {"format": files.FORMAT, "version": files.VERSION, "content": content}
    document["checksum"] = files._checksum(files.VERSION, text)
    path = folder / "model.json"
    path.write_text(json.dumps(document))
    clf = sy.load(path)
    check_answers(clf, queries)
    return "probabilities"


# ------------------------------------------------------------------------------- tables


def random_column(rng: random.Random, n: int) -> Any:
    """Return the cells of a column of some kind."""
    kind = rng.choice("normal normal few text text flag odd none".split())
    noise = np.random.default_rng(rng.randrange(2**32))
    cells: Any
    if kind == "normal":
        cells = noise.normal(size=n) * 10.0 ** rng.choice([0, 0, 3, -8, 90, 160, 300])
    elif kind == "few":
        cells = noise.integers(-2, 3, n).astype(float)
    elif kind == "text":
        cells = noise.choice(["", "a", "ж", " b", "=c", "NA"], n).astype(object)
    elif kind == "flag":
        cells = (noise.random(n) < 0.4).astype(object)
    elif kind == "odd":
        finite = [float(v) for v in NUMBERS[:-2] if v != 10**400]
        cells = noise.choice(finite, n)
    else:
        cells = np.full(n, np.nan)
    if rng.random() < 0.4:
        gaps = noise.random(n) < 0.2
        cells[gaps] = None if cells.dtype == object else np.nan
    return cells


def attack_table(rng: random.Random, folder: Path) -> str:
    """Fit a method to a random table, and compare answers that must be equal."""
    n, d = rng.choice([4, 9, 30, 30, 80]), rng.choice([1, 2, 3, 6])
    X = pd.DataFrame({f"x{j}": random_column(rng, n) for j in range(d)})
    y = np.array([rng.randrange(rng.choice([2, 2, 3])) for _ in range(n)])
    name = rng.choice([*FITTED, *FITTED, *LEARNED])
    weights = None
    if rng.random() < 0.3:
        few = [0.0, 1.0, 2.0, 3.0, rng.choice([0.5, 1e-15, 1e15, 1e-300])]
        weights = np.array([rng.choice(few) for _ in range(n)])
    clf = fitted(name, X, y, weights)
    p = check_answers(clf, X)
    alone = np.vstack([clf.predict_proba(X.iloc[[i]]) for i in range(min(n, 8))])
    same("row by row", p[: len(alone)], alone, 0.0)
    same("polars", p, fitted(name, to_polars(X), y, weights).predict_proba(X), 0.0)
    arrow = pa.Table.from_pandas(X, preserve_index=False)
    same("arrow", p, clf.predict_proba(arrow), 0.0)
    if name in PLAIN and all(small(X[c]) for c in X):
        invariances(rng, name, X, y, weights, p)
    return f"{name}: probabilities"


def small(column: Any) -> bool:
    """Whether sums of these numbers differ by rounding alone."""
    if not pd.api.types.is_numeric_dtype(column):
        return True
    known = column.dropna().abs()
    return bool(((known == 0) | ((known > 1e-6) & (known < 1e6))).all())


def invariances(
    rng: random.Random, name: str, X: Any, y: Any, weights: Any, p: Any
) -> None:
    """Compare with permuted rows, columns and classes, and with repeated rows."""
    order = np.array(rng.sample(range(len(y)), len(y)))
    u = None if weights is None else weights[order]
    rows = fitted(name, X.iloc[order], y[order], u).predict_proba(X)
    same("permuted rows", p, rows)
    columns = rng.sample(list(X), X.shape[1])
    same("permuted columns", p, fitted(name, X[columns], y, weights).predict_proba(X))
    present = np.unique(y if weights is None else y[weights > 0])
    turned = fitted(name, X, y.max() - y, weights).predict_proba(X)
    same("permuted classes", p, turned[:, ::-1])
    times = np.array([rng.choice([1, 1, 2, 3]) for _ in y])
    if weights is None and len(present) > 1:
        again = np.repeat(np.arange(len(y)), times)
        twice = fitted(name, X.iloc[again], y[again], None).predict_proba(X)
        weighted = fitted(name, X, y, times.astype(float)).predict_proba(X)
        same("duplicates", weighted, twice)


def fitted(name: str, X: Any, y: Any, weights: Any) -> Any:
    """Fit a method, those with random numbers by the same ones."""
    clf = sy.method(name)
    if "random_state" in clf.get_params():
        clf.set_params(random_state=0)
    return clf.fit(X, y, sample_weight=weights)


def to_polars(X: Any) -> pl.DataFrame:
    """Return the same table, null where a cell is missing."""
    cells = {name: [None if pd.isna(v) else v for v in X[name]] for name in X}
    return pl.DataFrame({name: pl.Series(of) for name, of in cells.items()})


def same(what: str, one: Any, other: Any, tolerance: float = 1e-6) -> None:
    """Refuse answers that differ."""
    if not np.allclose(one, other, rtol=tolerance, atol=tolerance):
        gap = np.abs(np.asarray(one) - np.asarray(other)).max()
        raise WrongError(f"{what}: probabilities differ by {gap:.3g}")


# ----------------------------------------------------------------------------- journals


def attack_journal(rng: random.Random, folder: Path) -> str:
    """Read a damaged result file."""
    header = {"steelyard": "results", "format": 1, "hash": "x", "settings": {"a": 1}}
    row = {**dict.fromkeys(COLUMNS), "dataset": "d", "method": "m", "status": "ok"}
    row |= {"protocol": "honest", "repeat": 0}
    documents: list[Any] = [{**header, "versions": {}}]
    documents += [{**row, "fold": k, "accuracy": 0.5} for k in range(3)]
    k = rng.randrange(len(documents))
    if rng.random() < 0.6:
        changed = rng.choice([mutate(documents[k], rng), rng.choice(ODD)])
        documents[k] = changed
    data = b"".join(json.dumps(line).encode() + b"\n" for line in documents)
    for _ in range(rng.choice([0, 0, 1, 3])):
        at = rng.randrange(len(data))
        data = data[:at] + bytes([rng.randrange(256)]) + data[at + rng.randrange(3) :]
    path = folder / "results.jsonl"
    path.write_bytes(data[: rng.choice([len(data), rng.randrange(len(data))])])
    rows = read_journal(path)[1]
    return f"{len(Results.from_journal(path).rows)} of {len(rows)} rows"


# ---------------------------------------------------------------------------------- run

ATTACKS: dict[str, Callable[[random.Random, Path], str]] = {
    "files": attack_file,
    "tables": attack_table,
    "journals": attack_journal,
}


def run_case(kind: str, number: int, seed: int, folder: Path) -> str:
    """Run one case, and return what came of it."""
    rng = random.Random(f"{seed} {kind} {number}")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return outcome(lambda: ATTACKS[kind](rng, folder))


def cases(arguments: argparse.Namespace) -> Iterator[tuple[str, int]]:
    """Yield kind and number of every case."""
    if arguments.only:
        kind, _, number = arguments.only.partition(":")
        yield kind, int(number)
        return
    for kind in ATTACKS:
        for number in range(getattr(arguments, kind)):
            yield kind, number


def main(argv: Sequence[str] | None = None) -> int:
    """Run cases; 1 where one failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    for kind, count in (("files", 2000), ("tables", 200), ("journals", 2000)):
        parser.add_argument(f"--{kind}", type=int, default=count)
    parser.add_argument("--only", metavar="KIND:NUMBER", help="one case")
    arguments = parser.parse_args(argv)
    found: dict[str, Counter[str]] = {kind: Counter() for kind in ATTACKS}
    failed, start = 0, time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for kind, number in cases(arguments):
            try:
                found[kind][run_case(kind, number, arguments.seed, Path(folder))] += 1
            except Exception:
                failed += 1
                print(f"--seed {arguments.seed} --only {kind}:{number}")
                print(traceback.format_exc(limit=-4), flush=True)
    for kind, outcomes in found.items():
        listed = ", ".join(f"{n} {what}" for what, n in outcomes.most_common(12))
        print(f"{kind}: {outcomes.total()} held ({listed})")
    print(f"{failed} failed, {time.perf_counter() - start:.0f} s")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
