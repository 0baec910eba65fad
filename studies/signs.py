"""Compare signs and importances of the default with those of EBM, or of class rates.

``python studies/signs.py`` fits ``ShrinkageNB`` and, where ``interpret-core`` is
installed, an explainable boosting machine to ten data sets with categories of the
folder ``STEELYARD_DATA``. Of categories with 50 rows and more and evidence beyond 0.1
it counts how often both speak for the same side, and it prints the rank correlation of
the importances of columns. Without that package, signs are those of the rates of
classes among the rows of a category, and there is no correlation.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from steelyard import ShrinkageNB
from steelyard._common.text import text_table
from steelyard.explain.shared import evidence_of
from steelyard.lab.data.datasets import load_dataset

DATASETS = (
    "adult credit-g credit-a heart-c cmc vote breast-cancer colic car hepatitis"
).split()
MAX_ROWS, MIN_ROWS, MIN_EVIDENCE = 5000, 50, 0.1

Values = Iterator[tuple[str, str, np.ndarray]]


def own_values(clf: ShrinkageNB) -> Values:
    """Yield evidence of every frequent category for each class."""
    for table in clf.explain_global().tables:
        if table.kind == "categorical" and table.counts is not None:
            rows = table.counts.sum(axis=1)
            for k in np.flatnonzero(rows[1:] >= MIN_ROWS) + 1:
                yield table.name, table.labels[k], table.evidence[k]


def rate_values(X: pd.DataFrame, y: np.ndarray, classes: np.ndarray) -> dict[Any, Any]:
    """Return how far log-rates of classes are from those of all rows, by category."""
    truth = y[:, None] == classes
    rate = truth.mean(axis=0)
    by_value = {}
    for name in X.select_dtypes(object).columns:
        for value in X[name].dropna().unique():
            shares = truth[(X[name] == value).to_numpy()].mean(axis=0)
            odds = np.log((shares + 1e-9) / (rate + 1e-9))
            by_value[str(name), str(value)] = evidence_of(odds)
    return by_value


def ebm_values(ebm: Any, n_classes: int) -> dict[Any, Any]:
    """Return the evidence of an EBM for each class, by column and category."""
    by_value = {}
    for t, (j, *others) in enumerate(ebm.term_features_):
        bins = ebm.bins_[j][0]
        if others or not isinstance(bins, dict):
            continue
        for value, k in bins.items():
            scores = np.atleast_1d(ebm.term_scores_[t][k])
            two = evidence_of(np.array([-scores[0] / 2.0, scores[0] / 2.0]))
            by_class = two if n_classes == 2 else evidence_of(scores)
            by_value[str(ebm.feature_names_in_[j]), str(value)] = by_class
    return by_value


def ebm_importances(ebm: Any, n_columns: int) -> np.ndarray:
    """Return the importance of every column; of an interaction either side has half."""
    out = np.zeros(n_columns)
    for term, amount in zip(ebm.term_features_, ebm.term_importances(), strict=True):
        out[list(term)] += amount / len(term)
    return out


def measured(name: str, boosting: Any) -> dict[str, float]:
    """Return how far both agree on one data set."""
    data = load_dataset(name)
    X, y = data.table, np.asarray(data.target).astype(str)
    if len(X) > MAX_ROWS:
        rows = np.random.default_rng(0).choice(len(X), MAX_ROWS, replace=False)
        X, y = X.iloc[rows].reset_index(drop=True), y[rows]
    texts = [c for c in X.columns if not pd.api.types.is_numeric_dtype(X[c])]
    X = X.astype({c: object for c in texts})
    clf = ShrinkageNB().fit(X, y)
    correlation = np.nan
    if boosting is None:
        values = rate_values(X, y, clf.classes_)
    else:
        kinds = ["nominal" if c in texts else "continuous" for c in X.columns]
        ebm = boosting(feature_types=kinds, random_state=0, n_jobs=2)
        # It has no missing categories.
        ebm.fit(X.fillna({c: "?" for c in texts}), y)
        values = ebm_values(ebm, len(clf.classes_))
        both = clf.feature_importances_, ebm_importances(ebm, X.shape[1])
        correlation = float(spearmanr(*both)[0])
    same = total = 0
    for column, value, own in own_values(clf):
        other = values.get((column, value))
        if other is None:
            continue
        chosen = [1] if len(own) == 2 else range(len(own))
        for c in chosen:
            if min(abs(own[c]), abs(other[c])) > MIN_EVIDENCE:
                total, same = total + 1, same + int(own[c] * other[c] > 0.0)
    return {"values": total, "same": same, "correlation": correlation}


def main(arguments: list[str] | None = None) -> None:
    """Print a table of the data sets, and what they have in common."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=DATASETS, help="data sets")
    names = parser.parse_args(arguments).names
    boosting = None
    if find_spec("interpret") is not None:
        glassbox = import_module("interpret.glassbox")
        boosting = glassbox.ExplainableBoostingClassifier
    by_name = {name: measured(name, boosting) for name in names}
    rows = [
        [name, str(m["values"]), str(m["same"]), f"{m['correlation']:.2f}"]
        for name, m in by_name.items()
    ]
    against = "class rates" if boosting is None else "EBM"
    header = ["data set", "values", f"sign as {against}", "rank correlation"]
    print(text_table(header, rows, [False, True, True, True]))
    total = sum(m["values"] for m in by_name.values())
    same = sum(m["same"] for m in by_name.values())
    mean = np.mean([m["correlation"] for m in by_name.values()])
    print(f"\nsame sign: {same} of {total} ({100 * same / max(total, 1):.1f} %)")
    print(f"mean rank correlation of importances: {mean:.3f}")


if __name__ == "__main__":
    main()
