"""Fits of every method on small tables, to compare later ones with.

Run as a script to write them anew; only a change of what a method computes is a reason.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import steelyard as sy

HERE = Path(__file__).parent
FITS = HERE / "fits.json"

# Where a method draws random numbers or can be made to.
SEED = {"random_state": 0}

# Combinations of parts that no acronym names.
COMBINATIONS = {
    "joint": lambda: sy.JointWeightedNB(max_iter=50),
    "pairs": lambda: sy.WeightedNB(
        weighting="class-attribute", multiclass="one-vs-one", lam=1.0
    ),
    "mixture-pairs": lambda: sy.RegularizedNB(
        multiclass="one-vs-one", numeric="gaussian", lam=0.5
    ),
    "balanced": lambda: sy.WeightedNB(
        lam=0.5, class_weight="balanced", instances="discriminative"
    ),
    "hierarchy": lambda: sy.ShrinkageNB(
        strength=(2.5, 10.0, 2.5), class_weight="balanced", missing="value"
    ),
}

# What a fit has learned, as far as it is numbers.
LEARNED = (
    "attribute_weights_",
    "class_attribute_weights_",
    "value_weights_",
    "value_effects_",
    "intercept_",
    "prior_weight_",
    "alpha_",
    "instance_weights_",
    "votes_",
    "objective_",
    "scale_",
    "strength_",
    "class_log_prior_",
)


def mixed_table():
    """Return text, whole numbers and numbers, with missing cells, in three classes."""
    rng = np.random.default_rng(11)
    n = 48
    y = rng.integers(0, 3, n)
    size = np.round(rng.normal(y, 0.8), 2)
    heat = np.round(20 + 3 * rng.normal(size=n) * (1 + (y == 1)), 1)
    sky = np.where(rng.random(n) < 0.6, y, rng.integers(0, 3, n))
    frame = pd.DataFrame(
        {
            "sky": np.array(["sun", "rain", "snow ❄"], dtype=object)[sky],
            "size": size,
            "heat": heat,
            "kind": rng.choice(["a", "b"], n).astype(object),
        }
    )
    frame.loc[::9, "sky"] = None
    frame.loc[4::11, "size"] = np.nan
    return frame, np.array(["in", "maybe", "out"], dtype=object)[y]


def numeric_table():
    """Return numbers of two classes."""
    rng = np.random.default_rng(12)
    n = 60
    y = rng.integers(0, 2, n)
    X = np.round(rng.normal(size=(n, 5)) + y[:, None] * [1.2, 0.6, 0.0, -0.8, 0.2], 2)
    X[:, 4] = X[:, 0] + np.round(0.3 * rng.normal(size=n), 2)
    return pd.DataFrame(X, columns=list("abcde")), y


TABLES = {"mixed": mixed_table, "numeric": numeric_table}


def classifiers():
    """Return every method, and the combinations, by name, unfitted."""
    found = {}
    for entry in sy.methods():
        settings = SEED if "random_state" in entry.estimator().get_params() else {}
        for name in entry.names:
            found[name] = entry.create(**settings)
    return {**found, **{name: make() for name, make in COMBINATIONS.items()}}


def fitted(clf, table):
    """Fit without the warnings that small tables draw."""
    X, y = TABLES[table]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clf.fit(X, y)


def queries(table):
    """Return some training rows, and rows with unknown and extreme cells."""
    X, _ = TABLES[table]()
    X = X.iloc[:12].copy()
    if table == "mixed":
        X.loc[0, "sky"] = "hail"
        X.loc[1] = [None, np.nan, np.nan, None]
        X.loc[2, "size"] = 1e3
    else:
        X.loc[0] = np.nan
        X.loc[1, "b"] = -50.0
    return X


def predictions(clf, table):
    X = queries(table)
    if getattr(clf, "select_only", False):
        return {}
    return {
        "joint": clf.predict_joint_log_proba(X).tolist(),
        "proba": clf.predict_proba(X).tolist(),
        "labels": clf.predict(X).tolist(),
    }


def plain(value):
    """Return what was learned as lists of numbers, None for NaN."""
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    found = np.asarray(value, dtype=float)
    return np.where(np.isnan(found), None, found).tolist()


def record(clf, table):
    learned = {
        name: plain(getattr(clf, name)) for name in LEARNED if hasattr(clf, name)
    }
    return {"learned": learned, **predictions(clf, table)}


def main():
    fits = {}
    for name, clf in classifiers().items():
        for table in TABLES:
            try:
                fitted(clf, table)
            except sy.exceptions.ParameterError as error:
                raise SystemExit(f"{name} {table}: {error}") from error
            fits[f"{name} {table}"] = record(clf, table)
    FITS.write_text(json.dumps(fits) + "\n", "utf-8")


if __name__ == "__main__":
    main()
