"""Fit any method to any table: answers that must be equal are compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import steelyard as sy
from fuzzing.answers import check_answers
from fuzzing.case import Case, WrongError, own_error, same
from fuzzing.engines import check_engines, has_small_scores
from fuzzing.making import Made, make_table

METHODS = [entry.acronym for entry in sy.methods()]

# They draw random numbers for rows or columns by position; votes of BNB are for one
# class, whichever rounding says where two are as likely.
UNSTEADY = {"DTAWNB", "DEAWNB", "CWANB", "BNB"}
# They choose among columns, first come first served where several are as good.
CHOOSING = {"TreeNB", "SPSS", "SBC", "SNB", "DFWNB", "TCSFS-NB", "TAN"}
# Squared errors of posteriors have several minima; rounding decides which is reached.
SEVERAL_MINIMA = {name for name in METHODS if name.endswith("-MSE")} | {"RNB"}
UNSTEADY |= SEVERAL_MINIMA
# What else a method does not promise, by check.
UNFOLLOWED = {
    # The first column is the root of the tree.
    "permuted columns": {*UNSTEADY, "TAN"},
    "permuted classes": UNSTEADY,
    "permuted rows": UNSTEADY,
    "rows of weight zero": UNSTEADY,
    # Neighbours are so many rows, whatever their weight.
    "repeated rows": {*UNSTEADY, "LWNB"},
    "fitted in chunks": UNSTEADY,
}
# Rows are dealt to folds by chance: strengths that are given need no folds.
STEADY = {"SHNB": {"strength": (1.0, 1.0, 1.0), "interactions": None}}

# Of answers by counts, and by optimisation, which ends where it is near enough.
CLOSE, NEAR = 1e-6, 1e-2
ROUNDED = 1e-12
# Where classes can be told apart without error, weights have no optimum and grow.
RUN_AWAY = 20.0


def attack_table(case: Case, number: int) -> None:
    """Fit a method, the next one for each case, and compare."""
    made = make_table(case.rng)
    name = METHODS[number % len(METHODS)]
    clf, settings = _first_fit(case, name, made)
    if clf is None:
        return
    _put_edges(case, clf, made.queries)
    shape = f"{made.X.shape[0]}x{made.X.shape[1]}, {len(clf.classes_)} classes"
    case.about = f"{name} {settings or ''} {shape}"
    case.outcome = "probabilities"
    p = None
    with case.check("answers"):
        p = check_answers(clf, made.queries)
        check_answers(clf, made.X)
    if p is None:
        return

    def fit(X: Any, y: Any, weights: Any) -> Any:
        return fitted(name, settings, X, y, weights)

    check_ways(case, clf, made, p, fit)
    check_engines(case, clf, made.queries, p)
    if made.is_tame:
        check_invariances(case, name, settings, made)
    check_counting(case, made)


def _first_fit(case: Case, name: str, made: Made) -> tuple[Any, dict[str, Any]]:
    """Fit with random settings, or with none where these do not suit."""
    known, rng = sy.method(name).get_params(), case.rng
    offered = {
        "missing": rng.choice(["skip", "skip", "value", "impute"]),
        "numeric": rng.choice(["mdl", "equal-width", "equal-frequency", "gaussian"]),
        "smoothing": rng.choice(["laplace", "m-estimate", "kohavi", 0.1]),
        "class_weight": rng.choice([None, "balanced"]),
        "prior": rng.choice(["smoothed", "frequency"]),
    }
    settings = {
        key: value
        for key, value in offered.items()
        if key in known and rng.random() < 0.3
    }
    for tried in (settings, {}):
        clf, error = own_error(partial(fitted, name, tried, *_training(made)))
        if error is None:
            return clf, tried
    return None, {}


def _training(made: Made) -> tuple[Any, Any, Any]:
    return made.X, made.y, made.weights


def fitted(name: str, settings: Any, X: Any, y: Any, weights: Any) -> Any:
    """Fit a method, those with random numbers by the same ones."""
    clf = sy.method(name, **settings)
    if "random_state" in clf.get_params():
        clf.set_params(random_state=0)
    return clf.fit(X, y, sample_weight=weights)


def _put_edges(case: Case, clf: Any, queries: pd.DataFrame) -> None:
    """Have some rows lie on a cut point, where < and <= differ."""
    for feature in clf.encoder_.schema_.features:
        if feature.cells == "nothing" and feature.name in queries:
            queries[feature.name] = None
        edges = list(getattr(feature, "edges", ()))
        if edges and feature.name in queries and queries[feature.name].dtype == float:
            for row in case.rng.sample(range(1, len(queries)), 3):
                queries.loc[row, feature.name] = case.rng.choice(edges)


# ------------------------------------------------------------------ the same, otherwise


def check_ways(
    case: Case, clf: Any, made: Made, p: Any, fit: Callable[..., Any]
) -> None:
    """Compare ways to give the same rows, and to keep the same model."""
    queries = made.queries
    with case.check("rows alone"):
        alone = [clf.predict_proba(queries.iloc[[i]]) for i in range(10)]
        same("row by row", p[:10], np.vstack(alone))
    with case.check("rows in another order"):
        order = case.rng.sample(range(len(queries)), len(queries))
        same("rows in another order", p[order], clf.predict_proba(queries.iloc[order]))
    with case.check("columns of queries"):
        names = case.rng.sample(list(queries), queries.shape[1])
        same("columns by name", p, clf.predict_proba(queries[names]))
    with case.check("frames"):
        same("polars", p, clf.predict_proba(to_polars(queries)))
        arrow = pa.Table.from_pandas(_plain(queries), preserve_index=False)
        same("arrow", p, clf.predict_proba(arrow))
    with case.check("frames that are fitted"):
        other = fit(to_polars(made.X), made.y, made.weights)
        # Categories that no row has may be known to one library and not to the other:
        # sums over codes are then rounded otherwise, and an optimum may be reached one
        # step later.
        tolerance = CLOSE if hasattr(clf, "max_iter") else ROUNDED
        same("polars", p, other.predict_proba(queries), tolerance)
    with case.check("fitted again"):
        same("again", p, fit(*_training(made)).predict_proba(queries))
    with case.check("saved and loaded"):
        path = case.folder / "model.json"
        _, refusal = own_error(lambda: clf.save(path))
        if refusal is None:
            same("loaded", p, sy.load(path).predict_proba(queries))
        elif made.is_tame and not _ran_away(clf):
            raise WrongError(refusal)
    with case.check("chunks"):
        _check_chunks(case, clf, made, p)


def _plain(X: pd.DataFrame) -> pd.DataFrame:
    return X.astype({c: object for c in X if X[c].dtype == "category"})


def to_polars(X: pd.DataFrame) -> pl.DataFrame:
    """Return the same table, null where a cell is missing."""
    cells = {name: [None if pd.isna(v) else v for v in X[name]] for name in X}
    numbers = {n for n in X if pd.api.types.is_float_dtype(X[n])}
    return pl.DataFrame(
        {
            name: pl.Series(of, dtype=pl.Float64 if name in numbers else None)
            for name, of in cells.items()
        }
    )


def _check_chunks(case: Case, clf: Any, made: Made, p: Any) -> None:
    """Predict rows some at a time, and fit a source of some rows at a time."""
    queries = [made.queries.iloc[k : k + 7] for k in range(0, len(made.queries), 7)]
    found = list(clf.predict_chunks(sy.scan(queries, chunk_rows=5)))
    same("predicted in chunks", p, np.vstack(found))


# ------------------------------------------------------------------------- invariances


@dataclass
class Followed:
    """Fits of changed tables, and what their answers must be."""

    case: Case
    name: str
    settings: dict[str, Any]
    queries: Any
    tolerance: float

    def fit(self, X: Any, y: Any, weights: Any) -> Any:
        """Fit the method, with nothing left to chance."""
        settings = {**self.settings, **STEADY.get(self.name, {})}
        return fitted(self.name, settings, X, y, weights)

    def follows(
        self, check: str, one: Any, change: Callable[[], Any], classes: Any = None
    ) -> None:
        """Refuse a changed fit whose answers are not those of the first."""
        if self.name in UNFOLLOWED[check]:
            return
        with self.case.check(check):
            other = change()
            if other is None or _ran_away(other) or _ran_away(one):
                return
            if self.name in CHOOSING and _chosen(one) != _chosen(other):
                return
            queries = self.queries[has_small_scores(one, self.queries)]
            if not len(queries):
                return
            found = other.predict_proba(queries)
            if classes is not None:
                found = found[:, [other.classes_.tolist().index(c) for c in classes]]
            same(check, one.predict_proba(queries), found, self.tolerance)


def _in_chunks(to: Followed, made: Made) -> Any:
    """Fit rows some at a time, None where the method or a column cannot be."""
    label, weight = "the class", "the weight"
    rows = made.X.assign(**{label: made.y})
    if made.weights is not None:
        rows[weight] = made.weights
    step = to.case.rng.choice([5, 17, 1000])
    parts = [rows.iloc[k : k + step] for k in range(0, len(rows), step)]
    source = sy.scan(parts, chunk_rows=to.case.rng.choice([4, 10, 50]))
    given = None if made.weights is None else weight
    return own_error(lambda: to.fit(source, label, given))[0]


def _ran_away(clf: Any) -> bool:
    names = ("attribute_weights_", "class_attribute_weights_")
    weights = [np.ravel(getattr(clf, name)) for name in names if hasattr(clf, name)]
    return any(np.abs(w).max(initial=0.0) > RUN_AWAY for w in weights)


def _chosen(clf: Any) -> dict[str, Any]:
    """Return what a method chose, by the name of a column."""
    found = {name: 0 for name in getattr(clf, "selected_features_", ())}
    weights = np.ravel(getattr(clf, "attribute_weights_", ()))
    named = zip(clf.feature_names_in_, weights.round(6), strict=False)
    return {**found, **dict(named), "": list(getattr(clf, "parents_", ()))}


def check_invariances(case: Case, name: str, settings: Any, made: Made) -> None:
    """Compare with permuted columns, classes and rows, and with repeated rows."""
    rng, n = case.rng, len(made.y)
    X, y, weights = _training(made)
    # Weights that are near enough differ by much where numbers are far.
    if hasattr(sy.method(name), "max_iter"):
        to = Followed(case, name, settings, X, NEAR)
    elif settings.get("missing") == "impute":
        # A mean is rounded, and so are cut points beside it: no rows that lie on these.
        to = Followed(case, name, settings, X, CLOSE)
    else:
        to = Followed(case, name, settings, made.queries, CLOSE)
    with case.check("fitted for comparison"):
        one = to.fit(X, y, weights)
        columns = rng.sample(list(X), X.shape[1])
        to.follows("permuted columns", one, lambda: to.fit(X[columns], y, weights))
        labels = np.unique(y)
        renamed = dict(zip(labels, rng.sample(range(99), len(labels)), strict=True))
        other = np.array([renamed[label] for label in y])
        classes = [renamed[label] for label in one.classes_]
        change = lambda: to.fit(X, other, weights)  # noqa: E731
        to.follows("permuted classes", one, change, classes)
        order = np.array(rng.sample(range(n), n))
        u = None if weights is None else weights[order]
        to.follows("permuted rows", one, lambda: to.fit(X.iloc[order], y[order], u))
        change = lambda: _in_chunks(to, made)  # noqa: E731
        to.follows("fitted in chunks", one, change)
    with case.check("fitted with weights"):
        times = np.array([rng.choice([0, 1, 1, 1, 1]) for _ in y], dtype=float)
        times[np.unique(y, return_index=True)[1]] = 1.0
        one = to.fit(X, y, times)
        kept = times > 0
        change = lambda: to.fit(X[kept], y[kept], None)  # noqa: E731
        to.follows("rows of weight zero", one, change)
        twos = np.array([rng.choice([1, 1, 2, 3]) for _ in y])
        one = to.fit(X, y, twos.astype(float))
        again = np.repeat(np.arange(n), twos)
        to.follows("repeated rows", one, lambda: to.fit(X.iloc[again], y[again], None))


# ------------------------------------------------------------------------- by hand


def check_counting(case: Case, made: Made) -> None:
    """Compare naive Bayes of the categories with counting by hand."""
    chosen = [name for name in made.X if _is_text(made.X[name])]
    if not chosen or not made.is_tame:
        return
    X, queries = made.X[chosen], made.queries[chosen]
    with case.check("counted by hand"):
        clf, _ = own_error(
            lambda: sy.NaiveBayes(smoothing="laplace").fit(X, made.y, made.weights)
        )
        if clf is not None:
            same(
                "by hand",
                counted(clf.classes_, X, made, queries),
                clf.predict_proba(queries),
                1e-9,
            )


def _is_text(column: Any) -> bool:
    return any(isinstance(cell, str) for cell in column)


def counted(classes: Any, X: Any, made: Made, queries: Any) -> Any:
    """Return probabilities of naive Bayes with Laplace's correction."""
    u = np.ones(len(X)) if made.weights is None else made.weights
    of_class = {c: u[made.y == c].sum() for c in classes}
    total = sum(of_class.values())
    logs = np.array(
        [[np.log((of_class[c] + 1) / (total + len(classes))) for c in classes]]
        * len(queries)
    )
    for name in X:
        seen: Counter[Any] = Counter()
        known: Counter[Any] = Counter()
        for cell, label, weight in zip(X[name], made.y, u, strict=True):
            if not pd.isna(cell) and weight > 0:
                seen[cell, label] += weight
                known[label] += weight
        values = {cell for cell, _ in seen}
        for i, cell in enumerate(queries[name]):
            if not pd.isna(cell) and cell in values:
                for k, c in enumerate(classes):
                    share = (seen[cell, c] + 1) / (known[c] + len(values))
                    logs[i, k] += np.log(share)
    p = np.exp(logs - logs.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)
