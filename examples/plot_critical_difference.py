"""Compare methods over data sets, and draw their ranks.

Methods are ranked by log-loss on each data set, and the ranks averaged. A bar joins
methods whose ranks do not differ by Nemenyi's test; with six small data sets the test
sees little.

    python examples/plot_critical_difference.py ranks.svg
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer, load_wine

import steelyard as sy
from steelyard.lab.displays import CriticalDifferenceDisplay

METHODS = ["NB", "GNB", "WANBIA-CLL", "CFW", "DWNB"]


def data_sets():
    """Scikit-learn's small data sets, and parts of two of them."""
    wine, tumours = load_wine(as_frame=True), load_breast_cancer(as_frame=True)
    for word in ("mean", "error", "worst"):
        columns = [name for name in tumours.data if word in name]
        yield word, tumours.data[columns], tumours.target
    yield "two wines", wine.data[wine.target > 0], wine.target[wine.target > 0]
    yield "iris"
    yield "wine"


def main(path="ranks.svg"):
    results = sy.compare(METHODS, list(data_sets()), folds=5, n_jobs=1, progress=False)
    print(results.table("log_loss"))

    # The same bytes at every run: no date, no random identifiers; letters stay text.
    plt.rcParams.update({"svg.hashsalt": "steelyard", "svg.fonttype": "none"})
    display = CriticalDifferenceDisplay.from_results(results, "log_loss")
    display.figure_.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main(*sys.argv[1:])
