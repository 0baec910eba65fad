"""Look for broken shapes in random small tables, in every output of a model.

``python studies/shape_violations.py 1000 --seed 5`` makes tables of 20 to 200 rows with
numbers, whole numbers and ordered categories, two to four classes, missing cells and
weights, from memory, from a source and in two chunks. Columns get random shapes; the
others may be joined in pairs. Every 25th table has strengths chosen as by default, the
others random ones. One row takes values of a shaped column at, around and between all
cut points and far beyond them. Scores and probabilities along them must keep the shape
to the last bit. So must DuckDB, onnxruntime, the scorer and the page's code in Node, of
every fifth table; onnxruntime to two units in the last place, since its softmax rounds
the last rows of a batch otherwise than equal ones before. Bent curves are compared by
slopes, to 1e-8 of log-odds (1e-6 of those of probabilities).
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import steelyard as sy
from steelyard._common.allowed import SHAPES
from steelyard.explain.page import page_data
from steelyard.export import SQLOptions, to_onnx
from steelyard.export.sql import sql_statements

WORDS = ["low", "middle", "high", "top", "upmost"]
CLASSES = np.array(["no", "yes", "ill", "well"])
_TABLES_A_PAGE = 40


@dataclass
class Sweep:
    """One row with all sorts of values of a column, in order."""

    column: str
    kind: str
    rows: pd.DataFrame
    places: np.ndarray
    """Where values are that stand for a bin or category each; of bent curves."""

    gaps: np.ndarray
    """How far these are apart."""


def made_table(rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a few columns and classes that depend on some of them."""
    n, n_classes = int(rng.integers(20, 201)), int(rng.integers(2, 5))
    grade, whole = rng.integers(0, 5, n), rng.integers(0, rng.integers(2, 12), n)
    plain = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "plain": plain * 10.0 ** rng.integers(-9, 9),
            "whole": whole,
            "skewed": np.exp(2.0 * rng.normal(size=n)),
            "rounded": np.round(rng.normal(size=n), 1),
            "grade": pd.Categorical.from_codes(grade, WORDS, ordered=True),
            "rank": rng.integers(1, 6, n),
            "colour": rng.choice(["red", "blue", "green"], n),
        }
    )
    score = rng.normal(size=(5, n_classes)) * rng.choice([0.3, 1.0, 4.0])
    terms = np.sin(2.0 * plain), 0.3 * whole, grade - 2.0, plain**2, rng.normal(size=n)
    logits = np.stack(terms, axis=1) @ score + rng.gumbel(size=(n, n_classes))
    y = np.argmax(logits, axis=1)
    y[:n_classes] = np.arange(n_classes)
    if rng.random() < 0.4:
        for name in ("plain", "rounded", "grade", "colour"):
            frame.loc[rng.random(n) < 0.15, name] = None
    kept = ["plain", "whole", "skewed", "rounded", "grade", "rank", "colour"]
    kept = [name for name in kept if rng.random() < 0.5] or ["plain", "colour"]
    return frame[kept], CLASSES[y]


def made_model(rng: np.random.Generator, is_chosen: bool) -> tuple[Any, pd.DataFrame]:
    """Return a model with shapes, fitted in one of several ways, and its table."""
    X, y = made_table(rng)
    able = [name for name in X if name != "colour"] or [X.columns[0]]
    if able == ["colour"]:
        X, able = X.assign(plain=rng.normal(size=len(X))), ["plain"]
    shaped = rng.permutation(able)[: rng.integers(1, 4)].tolist()
    target = str(rng.choice(np.unique(y)))
    wanted = {name: (str(rng.choice(list(SHAPES))), target) for name in shaped}
    free = [name for name in X if name not in wanted]
    settings: dict[str, Any] = {"constraints": wanted}
    if "rank" in X and rng.random() < 0.5:
        settings["categorical_features"] = [
            c for c in X if c in ("rank", "grade", "colour")
        ]
    if rng.random() < 0.3:
        settings["missing"] = "value"
    if not is_chosen:
        settings["strength"] = tuple(10.0 ** rng.uniform(-1.5, 1.5, 3))
        if len(free) > 1 and rng.random() < 0.5:
            settings["interactions"] = [tuple(free[:2])]
    weights = None
    if rng.random() < 0.3:
        weights = np.maximum(rng.random(len(y)) * 3.0 - 0.3, 0.0)
        for label in CLASSES:
            weights[np.flatnonzero(y == label)[:1]] = 1.0
    clf, way = sy.ShrinkageNB(**settings), rng.random()
    if way < 0.2:
        frame = X.assign(y=y, w=1.0 if weights is None else weights)
        half = len(frame) // 2
        parts = [frame[:half], frame[half:]]
        return clf.fit(sy.scan(parts, target="y", weight="w")), X
    if way < 0.4:
        half, u = len(X) // 2, np.ones(len(X)) if weights is None else weights
        clf.partial_fit(X[:half], y[:half], np.unique(y), u[:half])
        return clf.partial_fit(X[half:], y[half:], sample_weight=u[half:]), X
    return clf.fit(X, y, sample_weight=weights), X


def sweeps_of(clf: Any, X: pd.DataFrame, rng: np.random.Generator) -> Iterator[Sweep]:
    """Yield values of every shaped column, beside a row of the table."""
    schema = clf.encoder_.schema_
    for name, (kind, _) in clf.constraints.items():
        column = schema.names.index(name)
        feature = schema.features[column]
        gaps = np.ones(max(len(feature.values) - 1, 0))
        if feature.kind == "binned":
            cuts = feature.cuts[-1] if feature.cuts else range(len(feature.edges))
            edges = np.array([feature.edges[k] for k in cuts])
            ends = edges
            if len(edges) > 1:
                ends = np.array([2 * edges[0] - edges[1], *edges])
                ends = np.append(ends, 2 * edges[-1] - edges[-2])
                gaps = (ends[2:] - ends[:-2]) / 2.0
            inner = (ends[1:] + ends[:-1]) / 2.0
            cut_points = np.array(feature.edges)
            around = [np.nextafter(cut_points, way) for way in (-np.inf, np.inf)]
            present = X[name].dropna().to_numpy(dtype=float)
            low, high = (present.min(), present.max()) if len(present) else (0.0, 1.0)
            between = rng.uniform(low, high, 30)
            far = [low - 1e9, low - 1.0, high + 1.0, high + 1e9]
            all_places = [present[:60], cut_points, *around, between, far, inner]
            values: Any = np.unique(np.concatenate(all_places))
            places = np.searchsorted(values, inner)
        else:
            values = list(feature.values)
            places = np.arange(len(values))
            if name == "grade":
                values = pd.Categorical(values, WORDS, ordered=True)
        rows = X.iloc[np.full(len(values), rng.integers(len(X)))].reset_index(drop=True)
        yield Sweep(name, kind, rows.assign(**{name: values}), places, gaps)


def keeps(sweep: Sweep, heights: np.ndarray, slack: float, least: float) -> bool:
    """Whether one curve has the shape, by steps above the least or by slopes."""
    kind, sign = sweep.kind, 1.0
    if kind in ("decreasing", "valley", "concave"):
        sign = -1.0
    if kind in ("convex", "concave"):
        own = heights[sweep.places]
        if len(own) < 3:
            return True
        changes = np.diff(np.diff(own) / sweep.gaps) * sweep.gaps[1:]
        return bool((sign * changes >= -slack * (1.0 + np.abs(own).max())).all())
    steps = sign * np.diff(heights)
    steps = steps[np.abs(steps) > least]
    if kind in ("increasing", "decreasing"):
        return bool((steps > 0.0).all())
    falls = np.flatnonzero(steps < 0.0)
    return not len(falls) or bool((steps[falls[0] :] < 0.0).all())


def broken(
    sweep: Sweep, target: int, p: np.ndarray, scores: Any = None, least: float = 0.0
) -> list[str]:
    """Return what is wrong with scores, or with probabilities."""
    faults = []
    if scores is not None:
        odds = np.delete(scores[:, [target]] - scores, target, axis=1)
        if not all(keeps(sweep, curve, 1e-8, 0.0) for curve in odds.T):
            faults.append("scores")
    if sweep.kind not in ("convex", "concave"):
        if not keeps(sweep, p[:, target], 0.0, least):
            faults.append("probabilities")
    elif p.min() > 1e-4:
        logs = np.log(p)
        odds = np.delete(logs[:, [target]] - logs, target, axis=1)
        if not all(keeps(sweep, curve, 1e-6, 0.0) for curve in odds.T):
            faults.append("probabilities")
    return faults


# ----------------------------------------------------------------------------- engines


def as_objects(rows: pd.DataFrame) -> pd.DataFrame:
    """Return a frame without category types, None for what is missing in texts."""
    texts = [c for c in rows if not pd.api.types.is_numeric_dtype(rows[c])]
    out = rows.astype({c: object for c in texts})
    out[texts] = out[texts].where(out[texts].notna(), None)
    return out


def in_duckdb(clf: Any, rows: pd.DataFrame, base: Any) -> np.ndarray:
    """Return probabilities from one query."""
    base.register("t", as_objects(rows).assign(place=np.arange(len(rows))))
    answer: Any = None
    options = SQLOptions("duckdb", "t", keep=["place"])
    for statement in sql_statements(clf, options):
        answer = base.execute(statement)
    answers = answer.df().sort_values("place")
    return answers[[f"p({c})" for c in clf.classes_]].to_numpy(dtype=float)


def in_onnx(clf: Any, rows: pd.DataFrame) -> np.ndarray:
    """Return probabilities of onnxruntime."""
    onnxruntime = import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    model = to_onnx(clf).SerializeToString()
    session = onnxruntime.InferenceSession(model, options)
    cells = {}
    for entry in session.get_inputs():
        column = rows[entry.name]
        if "string" in entry.type:
            cells[entry.name] = column.astype(object).where(column.notna(), "")
            cells[entry.name] = cells[entry.name].to_numpy(dtype=object)[:, None]
        else:
            cells[entry.name] = column.to_numpy(dtype=np.float64)[:, None]
    return np.asarray(session.run(["probabilities"], cells)[0], dtype=np.float64)


def in_scorer(clf: Any, rows: pd.DataFrame) -> np.ndarray:
    """Return probabilities of the scorer of single rows."""
    score = clf.scorer()
    given = as_objects(rows).to_dict("records")
    return np.array([[score(row)[c] for c in clf.classes_] for row in given])


def in_pages(cases: list[tuple[Any, pd.DataFrame]]) -> list[np.ndarray]:
    """Return probabilities that the code of pages computes, in one call of Node."""
    given = []
    for clf, rows in cases:
        cells = as_objects(rows).astype(object).to_numpy().tolist()
        cells = [[None if c != c else _plain(c) for c in row] for row in cells]
        given.append({"model": page_data(clf)["model"], "rows": cells})
    scoring = files("steelyard.export") / "assets" / "scoring.js"
    code = (
        f"const scoring = require({json.dumps(str(scoring))});"
        "const given = JSON.parse(require('fs').readFileSync('in.json'));"
        "console.log(JSON.stringify(given.map((own) =>"
        " own.rows.map((row) => scoring.posterior(own.model, row)))));"
    )
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "in.json").write_text(json.dumps(given), encoding="utf-8")
        done = subprocess.run(
            ["node", "-e", code], cwd=folder, capture_output=True, check=True
        )
    return [np.array(found) for found in json.loads(done.stdout)]


def _plain(cell: Any) -> Any:
    return cell if cell is None or isinstance(cell, str) else float(cell)


# -------------------------------------------------------------------------------- runs


class Hunt:
    """Tables one after the other; what was looked at, and what was found."""

    def __init__(self, every: int) -> None:
        self.every, self.looked, self.faults = every, Counter[str](), list[str]()
        self._pages: list[tuple[int, Any, list[Sweep]]] = []
        self._base: Any = None
        if every:
            self._base = import_module("duckdb").connect(config={"threads": 1})

    def look(self, seed: int) -> None:
        """Fit one table and look at all that comes of it."""
        rng = np.random.default_rng([29, seed])
        clf, X = made_model(rng, is_chosen=seed % 25 == 0)
        sweeps = list(sweeps_of(clf, X, rng))
        rows = pd.concat([sweep.rows for sweep in sweeps], ignore_index=True)
        self.compare(
            seed,
            "python",
            clf,
            sweeps,
            clf.predict_proba(rows),
            clf.predict_joint_log_proba(rows),
        )
        if not self.every or seed % self.every:
            return
        probabilities = in_duckdb(clf, rows, self._base)
        self.compare(seed, "duckdb", clf, sweeps, probabilities)
        self.compare(seed, "onnx", clf, sweeps, in_onnx(clf, rows))
        self.compare(seed, "scorer", clf, sweeps, in_scorer(clf, rows))
        if shutil.which("node"):
            self._pages.append((seed, clf, sweeps))
        if len(self._pages) >= _TABLES_A_PAGE:
            self.pages()

    def pages(self) -> None:
        """Score what waits for the code of pages."""
        pages, self._pages = self._pages, []
        if not pages:
            return
        cases = [
            (clf, pd.concat([s.rows for s in sweeps], ignore_index=True))
            for _, clf, sweeps in pages
        ]
        for (seed, clf, sweeps), p in zip(pages, in_pages(cases), strict=True):
            self.compare(seed, "page", clf, sweeps, p)

    def compare(
        self,
        seed: int,
        name: str,
        clf: Any,
        sweeps: list[Sweep],
        p: Any,
        scores: Any = None,
    ) -> None:
        """Note what is wrong with the answers of one engine."""
        self.looked[name] += 1
        start = 0
        for sweep in sweeps:
            target = clf.classes_.tolist().index(clf.constraints[sweep.column][1])
            block = slice(start, start := start + len(sweep.rows))
            self.looked[f"rows in {name}"] += len(sweep.rows)
            least = 2.0 * np.finfo(float).eps if name == "onnx" else 0.0
            given = None if scores is None else scores[block]
            for fault in broken(sweep, target, p[block], given, least):
                self.faults.append(
                    f"seed {seed}: {fault} in {name}, {sweep.column} {sweep.kind}"
                )


def main(arguments: list[str] | None = None) -> int:
    """Print what was looked at and each violation; 1 where there is one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", type=int, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="of the first table")
    parser.add_argument("--every", type=int, default=5, help="0: Python alone")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    hunt = Hunt(options.every)
    for seed in range(options.seed, options.seed + options.tables):
        try:
            hunt.look(seed)
        except Exception as error:  # a fault as well
            hunt.faults.append(f"seed {seed}: {type(error).__name__}: {error}")
    hunt.pages()
    print(*hunt.faults, sep="\n")
    seen = ", ".join(f"{name} {n:,}" for name, n in hunt.looked.items())
    print(f"{options.tables:,} tables: {len(hunt.faults)} violations ({seen})")
    return 1 if hunt.faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
