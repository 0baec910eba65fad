"""Compare cut points of a stream with those of the same rows in memory.

    python studies/streamed_cuts.py
    python studies/streamed_cuts.py --rows 1000000 --columns 12

Columns are normal numbers with five decimals, the classes a little apart. Prints
how many cut points by MDL are equal, whether that was certain, and the largest
difference of a probability of ``NaiveBayes`` in 20,000 rows.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings

import numpy as np
import pandas as pd

import steelyard as sy

N_COMPARED = 20_000


def compared(n: int, n_columns: int, path: str) -> str:
    """Fit a file and the rows in it, and return a line of the table."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    X = pd.DataFrame(
        {
            f"x{k}": (rng.normal(size=n) + (0.05 + 0.1 * (k % 6)) * y).round(5)
            for k in range(n_columns)
        }
    )
    X.assign(y=y).to_parquet(path)
    here = sy.NaiveBayes().fit(X, y)
    streamed = sy.NaiveBayes().fit(sy.scan(path), "y")
    edges = [
        [set(feature.edges) for feature in clf.encoder_.schema_.features]
        for clf in (here, streamed)
    ]
    n_equal = sum(len(a & b) for a, b in zip(*edges, strict=True))
    proba = [clf.predict_proba(X[:N_COMPARED]) for clf in (here, streamed)]
    is_exact = "yes" if streamed.training_.cut_points_are_exact else "no"
    gap = np.abs(proba[0] - proba[1]).max()
    return (
        f"| {n:,} | {int(X.nunique().max()):,} | {n_equal} of {sum(map(len, edges[0]))}"
        f" | {is_exact} | {gap:.2g} |"
    )


def main() -> None:
    """Print a line for each number of rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    counts = [200_000, 500_000, 1_000_000, 2_000_000]
    parser.add_argument("--rows", type=int, nargs="+", default=counts, metavar="N")
    parser.add_argument("--columns", type=int, default=6, metavar="N")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| rows | different numbers | equal cut points | certain | probabilities |")
    print("| ---: | ---: | ---: | --- | ---: |")
    with tempfile.NamedTemporaryFile(suffix=".parquet") as file:
        for n in arguments.rows:
            print(compared(n, arguments.columns, file.name), flush=True)


if __name__ == "__main__":
    main()
