"""Processor time of the default: by stage, and beside a forest of 200 trees.

``python studies/cost.py diabetes vehicle`` fits data sets of ``STEELYARD_DATA``, whole,
on one thread, the second time round, and prints seconds of ``ShrinkageNB``, of the
forest, and their ratio; ``--stages`` where the default spent them. ``wide`` is 252 rows
x 751 numbers, ``mixed:N`` a made table of N rows with 12 columns of text and 8 numbers,
``board`` the 57 sets of the leader board.
``--source FOLDER`` has the ``src`` of another tree, such as an earlier edition
(``git archive TAG src | tar x -C FOLDER``), fitted in place of this one's.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import defaultdict
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

# Functions by stage: module, name, and what is printed.
STAGES = (
    ("fitting.recipe", "encode_training", "schema and codes"),
    ("fitting.default.folds", "HeldOutFolds.of", "folds: rows and codes"),
    ("fitting.default.strengths", "_StrengthSearch.__init__", "folds: problems"),
    ("fitting.default.strengths", "_StrengthSearch.main_effects", "strengths"),
    ("fitting.default.strengths", "_StrengthSearch.scores", "scores of interactions"),
    ("fitting.default.strengths", "_StrengthSearch.interactions", "interactions"),
    ("classifiers.shrinkage", "fit_weights", "final fit"),
    ("classifiers.shrinkage", "uncertainty_of", "uncertainty"),
    ("classifiers.base", "row_summary", "notices"),
)


def table(name: str) -> tuple[Any, Any]:
    """Return a data set, or a made table."""
    random = np.random.default_rng(0)
    if name == "wide":
        X = random.normal(size=(252, 751))
        return X, (X[:, :5].sum(axis=1) + random.logistic(size=252) > 0.0).astype(int)
    if name.startswith("mixed:"):
        made = import_module("benchmarks.rows_shrinkage").mixed_table
        X, y = made(int(name.partition(":")[2]))
        return X, y
    from steelyard.lab.data.datasets import load_dataset

    data = load_dataset(name)
    return data.table, data.target


def sets_of(name: str) -> list[str]:
    """Return the name of a table, or of all of the leader board."""
    if name != "board":
        return [name]
    from steelyard.lab.data.datasets import dataset_group

    return sorted({*dataset_group("rnb33"), *dataset_group("exp28")})


def forest(X: Any) -> Any:
    """Return a forest of 200 trees that reads the table."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    trees = RandomForestClassifier(200, n_jobs=1, random_state=0)
    if isinstance(X, np.ndarray):
        return trees
    numbers = [name for name in X.columns if X[name].dtype.kind in "fiu"]
    text = [name for name in X.columns if name not in numbers]
    reading = make_column_transformer(
        (SimpleImputer(keep_empty_features=True), numbers),
        (OneHotEncoder(handle_unknown="ignore"), text),
    )
    return make_pipeline(reading, trees)


def processor_time(model: Any, X: Any, y: Any) -> float:
    """Return the seconds that a fit takes on its processor."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        start = time.process_time()
        model.fit(X, y)
        return time.process_time() - start


def timed(spent: dict[str, float], within: list[float], label: str, work: Any) -> Any:
    """Return a function that notes its processor time, less that of inner stages."""

    def wrapped(*args: Any, **options: Any) -> Any:
        start = time.process_time()
        within.append(0.0)
        try:
            return work(*args, **options)
        finally:
            took = time.process_time() - start
            spent[label] += took - within.pop()
            if within:
                within[-1] += took

    return wrapped


def note_stages() -> dict[str, float]:
    """Have the stages of a fit note their time, by label."""
    spent: dict[str, float] = defaultdict(float)
    within: list[float] = []
    for module, path, label in STAGES:
        owner, *inner = import_module(f"steelyard.{module}"), *path.split(".")
        for part in inner[:-1]:
            owner = getattr(owner, part)
        work = timed(spent, within, label, getattr(owner, inner[-1]))
        is_bound = isinstance(vars(owner).get(inner[-1]), classmethod)
        setattr(owner, inner[-1], staticmethod(work) if is_bound else work)
    return spent


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tables", nargs="+")
    parser.add_argument("--stages", action="store_true")
    parser.add_argument("--source", type=Path, metavar="FOLDER")
    chosen = parser.parse_args()
    root = Path(__file__).resolve().parents[1]
    sys.path[:0] = [str(chosen.source / "src")] if chosen.source else []
    sys.path.append(str(root))
    warnings.simplefilter("ignore")
    from steelyard import ShrinkageNB

    print("| table | rows | columns | SHNB, s | forest, s | ratio |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    spent = note_stages() if chosen.stages else {}
    total = np.zeros(2)
    tables = [own for name in chosen.tables for own in sets_of(name)]
    for name in tables:
        X, y = table(name)
        clf = ShrinkageNB(n_jobs=1).fit(X, y)
        spent.clear()
        ours, theirs = (processor_time(own, X, y) for own in (clf, forest(X)))
        total += ours, theirs
        shape = f"{X.shape[0]:,} | {X.shape[1]}"
        ratio = ours / theirs
        line = f"| {name} | {shape} | {ours:.2f} | {theirs:.2f} | {ratio:.1f} |"
        print(line, flush=True)
        rest = {**spent, "other": ours - sum(spent.values())} if spent else {}
        for label, own in sorted(rest.items(), key=lambda pair: -pair[1]):
            print(f"|   {label} | | | {own:.3f} | | {own / ours:.0%} |")
    print(f"| all | | | {total[0]:.2f} | {total[1]:.2f} | {total[0] / total[1]:.1f} |")


if __name__ == "__main__":
    main()
