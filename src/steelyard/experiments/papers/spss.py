"""The SPSS manual's procedure, worked through on sample data."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from steelyard.classifiers.registry import method
from steelyard.experiments.data.sets import load_dataset
from steelyard.experiments.papers.report import (
    SEED,
    Run,
    Section,
    Verdict,
    figure,
    markdown_table,
)

__all__ = ["WEATHER", "reproduce_spss", "weather"]

TITLE = "SPSS manual: the path of subsets"
MINUTES = 0.2
SCOPE = "The weather data and iris."

WEATHER = (
    "shhF n|shhT n|ohhF y|rmhF y|rcnF y|rcnT n|ocnT y|smhF n|scnF y|rmnF y|smnT y|"
    "omhT y|ohnF y|rmhT n"
)
"""Outlook, temperature, humidity, windy, and whether to play; 14 days."""

_NAMES = ("outlook", "temperature", "humidity", "windy")

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

    rows = [day.split() for day in WEATHER.split("|")]
    table = pd.DataFrame([list(cells) for cells, _ in rows], columns=list(_NAMES))
    return table, [label for _, label in rows]


def reproduce_spss(run: Run) -> tuple[Section, ...]:
    """Follow the forward selection on the weather data and on sample data.

    Parameters
    ----------
    run : Run
        How thoroughly.

    Returns
    -------
    tuple of Section
        The path on the weather data beside figures worked by hand, and other paths.
    """
    names = _SETS[:1] if run.quick else _SETS
    return (_worked(), *(_sample(name) for name in names))


def _worked() -> Section:
    fitted = method("SPSS").fit(*weather())
    path = fitted.selection_path_
    found = {key: path[int(key[2])][_KEYS[key[0]]] for key in _BY_HAND}
    rows = [
        [key, figure(by_hand, digits=6), figure(found[key], digits=6)]
        for key, by_hand in _BY_HAND.items()
    ]
    largest = max(abs(found[key] - value) for key, value in _BY_HAND.items())
    order = [record["added"] for record in path[1:]]
    verdicts = (
        Verdict(
            "weather",
            "all figures to 5 digits",
            f"{len(_BY_HAND)} figures by hand",
            f"largest difference {largest:.1e}",
            largest < 1e-5,
        ),
        Verdict(
            "weather",
            "order of predictors",
            ", ".join(_ORDER),
            ", ".join(order),
            order == _ORDER,
        ),
        Verdict(
            "weather",
            "final subset",
            ", ".join(_ORDER[:2]),
            ", ".join(fitted.selected_features_),
            fitted.selected_features_ == _ORDER[:2],
        ),
    )
    text = "\n\n".join(
        [
            "The manual has formulas and no example; these were worked out by hand on "
            "the 14 days of the weather data. Criterion: pseudo-BIC.",
            _block(path),
            markdown_table(["quantity", "by hand", "measured"], rows),
        ]
    )
    return Section("Weather data", text, verdicts)


def _sample(name: str) -> Section:
    """Follow the path on a data set, by the pseudo-BIC and by test rows."""
    data = load_dataset(name)
    parts = train_test_split(
        data.table,
        data.target,
        test_size=0.3,
        random_state=SEED,
        stratify=data.target,
    )
    train, test, labels, truth = parts
    plain = method("SPSS").fit(train, labels)
    tested = method("SPSS").fit(train, labels, X_test=test, y_test=truth)
    drawn = method("SPSS", b_method="simulate", random_state=SEED).fit(train, labels)
    everything = method("SPSS", selection="none").fit(train, labels)
    rows = [
        [
            title,
            str(len(fitted.selected_features_)),
            figure(100 * float(np.mean(fitted.predict(train) != labels))),
            figure(100 * float(np.mean(fitted.predict(test) != truth))),
        ]
        for title, fitted in (
            ("pseudo-BIC", plain),
            ("test rows", tested),
            ("pseudo-BIC, B(J) of 1,000 drawn rows", drawn),
            ("all predictors", everything),
        )
    ]
    text = "\n\n".join(
        [
            f"{len(train)} rows to train on, {len(test)} to test; errors in percent. "
            "Test rows that chose the subset flatter its test error.",
            markdown_table(
                ["criterion", "predictors", "training error", "test error"], rows
            ),
            "By test rows:",
            _block(tested.selection_path_),
        ]
    )
    return Section(f"Sample data: {data.name}", text)


def _block(path: Any) -> str:
    return f"```text\n{path!r}\n```"
