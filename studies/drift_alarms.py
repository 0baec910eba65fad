"""Count alarms of ``clf.drift`` where nothing has changed, and where something has.

``python studies/drift_alarms.py [--tables N]`` draws tables of numbers and categories,
fits the default to 600 rows of each, and watches 500 others: as they are, in two
periods, and after made shifts: a number times 1.5, half of a number missing, a category
that is new in a fifth of the rows, and a class that is twice as frequent.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from steelyard import ShrinkageNB

ROWS, NEW_ROWS = 600, 500

Rows = tuple[pd.DataFrame, NDArray[Any]]


def made_rows(seed: int, n_rows: int, share: float = 0.3) -> Rows:
    """Return columns and classes of a table, in which a share of the rows is ill."""
    rng = np.random.default_rng(seed)
    ill = rng.random(n_rows) < share
    X = pd.DataFrame(
        {
            "age": rng.normal(50.0 + 6.0 * ill, 10.0),
            "dose": rng.lognormal(0.4 * ill, 0.5),
            "visits": rng.poisson(2.0 + ill),
            "town": rng.choice(["a", "b", "c", "d"], n_rows),
            "smoker": np.where(rng.random(n_rows) < 0.3 + 0.3 * ill, "yes", "no"),
        }
    )
    return X, np.where(ill, "ill", "well")


def _shifts(seed: int) -> dict[str, Rows]:
    """Return rows after each made shift."""
    X, y = made_rows(seed, NEW_ROWS)
    rng = np.random.default_rng(seed)
    moved = rng.permutation(NEW_ROWS)
    town = X["town"].where(moved % 5 > 0, "e")
    return {
        "dose times 1.5": (X.assign(dose=1.5 * X["dose"]), y),
        "half of age missing": (X.assign(age=X["age"].where(moved % 2 == 0)), y),
        "a fifth in a new town": (X.assign(town=town), y),
        "twice as many ill": made_rows(seed, NEW_ROWS, 0.6),
    }


def counted_alarms(n_tables: int) -> dict[str, int]:
    """Return in how many tables there was an alarm, by what was done to the rows."""
    watched: dict[str, Callable[[Any, Rows], Any]] = {
        "nothing, columns": lambda clf, rows: clf.drift(rows[0]),
        "nothing, with labels": lambda clf, rows: clf.drift(*rows),
        "nothing, two periods": lambda clf, rows: clf.drift(
            *rows, by=np.arange(NEW_ROWS) % 2
        ),
    }
    alarms: dict[str, int] = {}
    for table in range(n_tables):
        clf = ShrinkageNB(strength=(10.0, 40.0, 10.0), interactions=None)
        clf.fit(*made_rows(3 * table, ROWS))
        same = made_rows(3 * table + 1, NEW_ROWS)
        for name, watch in watched.items():
            alarms[name] = alarms.get(name, 0) + watch(clf, same).is_alarm
        for name, rows in _shifts(3 * table + 2).items():
            alarms[name] = alarms.get(name, 0) + clf.drift(*rows).is_alarm
    return alarms


def main() -> None:
    """Print how many tables had an alarm."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=200)
    n_tables = parser.parse_args().tables
    for name, alarms in counted_alarms(n_tables).items():
        print(f"{name:24} {alarms:4} of {n_tables}")


if __name__ == "__main__":
    main()
