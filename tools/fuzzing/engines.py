"""A model outside of the library: engines give its probabilities."""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import Any

import numpy as np

from fuzzing.case import Case, WrongError, own_error, same
from steelyard.export.check import ENGINES

NAMES = ("py", "sqlite", "duckdb", "onnx")
OPTIONS = {
    "sqlite": {"dialect": "sqlite"},
    "duckdb": {"dialect": "duckdb"},
    "onnx": {"missing_text": "(none)"},
}
TOLERANCE = 1e-9
MAX_DISTANCE = 1e5


def check_engines(case: Case, clf: Any, queries: Any, p: Any) -> None:
    """Score rows by the scorer and by every engine, where these take the model."""
    near = has_small_scores(clf, queries)
    queries, p = queries[near], p[near]
    if not len(p):
        return
    with case.check("scorer"):
        score, _ = own_error(clf.scorer)
        if score is not None:
            rows = queries.astype(object).where(queries.notna(), None)
            rows = rows.to_dict("records")
            classes = clf.classes_.tolist()
            scored = [[one[c] for c in classes] for one in map(score, rows)]
            same("scorer", p, scored, TOLERANCE)
            _check_labels(clf, p, [score.predict(row) for row in rows])
    sums = p
    if "unknown" in clf.get_params():
        sums = copy(clf).set_params(unknown="sum").predict_proba(queries)
    for name in NAMES:
        with case.check(name):
            score_all = partial(ENGINES[name][1], clf, queries, OPTIONS.get(name, {}))
            scored, error = own_error(score_all)
            if error is None:
                labels, proba = scored
                # Databases and ONNX add up the known cells, and count the others.
                expected = p if name in ("py", "js") else sums
                proba = np.array(proba, dtype=float)[:, : p.shape[1]]
                same(name, expected, proba, TOLERANCE)
                _check_labels(clf, expected, labels)


def has_small_scores(clf: Any, queries: Any) -> Any:
    """Return which rows are near enough to the training rows to be compared.

    Sums of very large scores in another order differ by more than probabilities can.
    """
    scores = np.abs(clf.predict_joint_log_proba(queries)).max(axis=1)
    return scores < MAX_DISTANCE


def _check_labels(clf: Any, p: Any, labels: Any) -> None:
    """Of classes that only rounding tells apart, either is right."""
    place = {label: k for k, label in enumerate(clf.classes_.tolist())}
    if not {*labels} <= {*place}:
        raise WrongError("classes that there are not")
    chosen = p[np.arange(len(p)), [place[label] for label in labels]]
    if not (chosen >= p.max(axis=1) - TOLERANCE).all():
        raise WrongError("a class that is not the likeliest")
