"""The SPSS manual's procedure, worked through on sample data."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from steelyard.classifiers.spss import SPSSNaiveBayes
from steelyard.experiments.data.sets import load_dataset
from steelyard.experiments.papers.engine import Paper, Run, Scale
from steelyard.experiments.papers.report import SEED, Section, Verdict
from steelyard.experiments.papers.tables import table

__all__ = ["PAPER", "weather"]

_WEATHER = (
    "shhF n|shhT n|ohhF y|rmhF y|rcnF y|rcnT n|ocnT y|smhF n|scnF y|rmnF y|smnT y|"
    "omhT y|ohnF y|rmhT n"
)
"""Outlook, temperature, humidity, windy, and whether to play; 14 days."""

# The manual prints formulas and no example: these figures were worked out by hand.
_BY_HAND = {
    "l(0)": -0.651761,
    "Q(0)": 0.651761,
    "A(1)": -1.579048,
    "B(1)": 1.093392,
    "l(1)": -0.485656,
    "Q(1)": 0.579908,
    "A(2)": -2.167037,
    "B(2)": 1.796904,
    "l(2)": -0.370133,
    "Q(2)": 0.558637,
    "Q(3)": 0.597200,
    "Q(4)": 0.691132,
}
_ORDER = ["outlook", "humidity", "windy", "temperature"]
_KEYS = {"l": "average_log_likelihood", "Q": "criterion", "A": "a", "B": "b"}
_SETS = ("sklearn:iris", "sklearn:wine", "sklearn:breast_cancer", "sklearn:digits")


def weather() -> tuple[Any, list[str]]:
    """Return the weather data as a table and labels."""
    import pandas as pd

    rows = [day.split() for day in _WEATHER.split("|")]
    names = ["outlook", "temperature", "humidity", "windy"]
    days = pd.DataFrame([list(cells) for cells, _ in rows], columns=names)
    return days, [label for _, label in rows]


def _worked(run: Run) -> Section:
    """Put the path on the weather data beside figures worked out by hand."""
    fitted = SPSSNaiveBayes().fit(*weather())
    path = fitted.selection_path_
    measured = {key: path[int(key[2])][_KEYS[key[0]]] for key in _BY_HAND}
    rows = [f"{k} | {x:.6f} | {measured[k]:.6f}" for k, x in _BY_HAND.items()]
    largest = max(abs(measured[key] - value) for key, value in _BY_HAND.items())
    order = [record["added"] for record in path[1:]]
    texts = f"{len(_BY_HAND)} figures by hand", f"largest difference {largest:.1e}"
    verdicts = [Verdict("weather", "all figures to 5 digits", *texts, largest < 1e-5)]
    for what, theirs, ours in (
        ("order of predictors", _ORDER, order),
        ("final subset", _ORDER[:2], fitted.selected_features_),
    ):
        texts = ", ".join(theirs), ", ".join(ours)
        verdicts.append(Verdict("weather", what, *texts, theirs == ours))
    return Section.of(
        "Weather data",
        "The manual has formulas and no example; these were worked out by hand on the "
        "14 days of the weather data. Criterion: pseudo-BIC.",
        _block(path),
        table("quantity | by hand | measured", rows),
        verdicts=verdicts,
    )


def _sample(name: str, run: Run) -> Section:
    """Follow the path on a data set, by the pseudo-BIC and by test rows."""
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
        f"{title} | {len(fitted.selected_features_)} | "
        f"{100 * np.mean(fitted.predict(train) != labels):.2f} | "
        f"{100 * np.mean(fitted.predict(test) != truth):.2f}"
        for title, fitted in models.items()
    ]
    return Section.of(
        f"Sample data: {data.name}",
        f"{len(train)} rows to train on, {len(test)} to test; errors in percent. "
        "Test rows that chose the subset flatter its test error.",
        table("criterion | predictors | training error | test error", rows),
        "By test rows:",
        _block(tested.selection_path_),
    )


def _block(path: Any) -> str:
    return f"```text\n{path!r}\n```"


_SAMPLES = tuple(partial(_sample, name) for name in _SETS)
PAPER = Paper(
    name="spss",
    title="SPSS manual: the path of subsets",
    minutes=0.2,
    scope="The weather data and iris.",
    sections=Scale(full=(_worked, *_SAMPLES), quick=(_worked, _SAMPLES[0])),
)
