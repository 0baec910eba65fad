"""The SPSS manual's procedure, worked through on sample data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from steelyard.classifiers.spss import SPSSNaiveBayes
from steelyard.experiments.data.sets import load_dataset
from steelyard.experiments.papers.engine import Run
from steelyard.experiments.papers.layout import Values
from steelyard.experiments.papers.report import SEED

__all__ = ["samples", "worked_by_hand"]

_KEYS = {"l": "average_log_likelihood", "Q": "criterion", "A": "a", "B": "b"}


def worked_by_hand(
    run: Run,
    columns: Sequence[str],
    days: Sequence[str],
    order: Sequence[str],
    n_selected: int,
    figures: Mapping[str, float],
) -> Values:
    """Put the path on the weather data beside figures worked out by hand.

    A day is a letter for the value of each column, and one for the label.
    """
    import pandas as pd

    cells = [day.split() for day in days]
    table = pd.DataFrame([list(values) for values, _ in cells], columns=columns)
    fitted = SPSSNaiveBayes().fit(table, [label for _, label in cells])
    path = fitted.selection_path_
    rows = [
        {"key": key, "theirs": value, "ours": path[int(key[2])][_KEYS[key[0]]]}
        for key, value in figures.items()
    ]
    largest = max(abs(row["ours"] - row["theirs"]) for row in rows)
    ours = [record["added"] for record in path[1:]]
    subset, selected = order[:n_selected], fitted.selected_features_
    return {
        "path": path,
        "rows": rows,
        "n": len(rows),
        "largest": largest,
        "close": largest < 1e-5,
        "orders": [", ".join(names) for names in (order, ours)],
        "same_order": list(order) == ours,
        "subsets": [", ".join(names) for names in (subset, selected)],
        "same_subset": list(subset) == selected,
    }


def samples(run: Run, names: Sequence[str]) -> list[Values]:
    """Follow the path on data sets, by the pseudo-BIC and by test rows."""
    return [_sample(name) for name in names]


def _sample(name: str) -> dict[str, Any]:
    data = load_dataset(name)
    train, test, labels, truth = train_test_split(
        data.table, data.target, test_size=0.3, random_state=SEED, stratify=data.target
    )
    tested = SPSSNaiveBayes().fit(train, labels, X_test=test, y_test=truth)
    drawn = SPSSNaiveBayes(b_method="simulate", random_state=SEED)
    models = {
        "pseudo-BIC": SPSSNaiveBayes().fit(train, labels),
        "test rows": tested,
        "pseudo-BIC, B(J) of 1,000 drawn rows": drawn.fit(train, labels),
        "all predictors": SPSSNaiveBayes(selection="none").fit(train, labels),
    }
    rows = [
        {
            "title": title,
            "n": len(fitted.selected_features_),
            "train_error": 100 * np.mean(fitted.predict(train) != labels),
            "test_error": 100 * np.mean(fitted.predict(test) != truth),
        }
        for title, fitted in models.items()
    ]
    values = {"name": data.name, "rows": rows, "path": tested.selection_path_}
    return {**values, "n_train": len(train), "n_test": len(test)}
