"""Processor time of the default, beside a forest of 200 trees.

``python studies/cost.py diabetes vehicle`` fits data sets of ``STEELYARD_DATA``, whole,
on one thread, the second time round, and prints seconds of ``ShrinkageNB``, of the
forest, and their ratio. ``wide`` is 252 rows x 751 numbers, ``mixed:N`` a made table of
N rows with 12 columns of text and 8 numbers, ``board`` the 57 sets of the leader board.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np


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


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("tables", nargs="+")
    chosen = parser.parse_args()
    # Made tables are those of the benchmarks.
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    warnings.simplefilter("ignore")
    from steelyard import ShrinkageNB

    print("| table | rows | columns | SHNB, s | forest, s | ratio |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    total = np.zeros(2)
    for name in chain.from_iterable(map(sets_of, chosen.tables)):
        X, y = table(name)
        clf = ShrinkageNB(n_jobs=1).fit(X, y)
        ours, theirs = (processor_time(model, X, y) for model in (clf, forest(X)))
        total += ours, theirs
        shape = f"{X.shape[0]:,} | {X.shape[1]}"
        ratio = ours / theirs
        line = f"| {name} | {shape} | {ours:.2f} | {theirs:.2f} | {ratio:.1f} |"
        print(line, flush=True)
    print(f"| all | | | {total[0]:.2f} | {total[1]:.2f} | {total[0] / total[1]:.1f} |")


if __name__ == "__main__":
    main()
