"""Draw a model as a nomogram, and write it as an interactive page.

Naive Bayes tells benign from malignant tumours. Every value of nine measurements
is a dot at the points that it adds; one tumour's values are ringed, and their total
has a probability.

    python examples/plot_nomogram.py nomogram.svg nomogram.html
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from steelyard import NaiveBayes
from steelyard.displays import NomogramDisplay

MEASURES = [
    "mean texture",
    "mean smoothness",
    "mean compactness",
    "mean concavity",
    "mean symmetry",
    "radius error",
    "worst area",
    "worst texture",
    "worst concave points",
]


def main(picture="nomogram.svg", page=None):
    bunch = load_breast_cancer(as_frame=True)
    X, y = bunch.data[MEASURES], bunch.target_names[bunch.target]
    clf = NaiveBayes().fit(X, y)

    # The same bytes at every run: no date, no random identifiers; letters stay text.
    plt.rcParams.update({"svg.hashsalt": "steelyard", "svg.fonttype": "none"})
    display = NomogramDisplay.from_estimator(clf, target="malignant", row=X[54:55])
    display.figure_.savefig(picture, metadata={"Date": None})
    if page is not None:
        clf.to_html(page, title="Benign or malignant?")


if __name__ == "__main__":
    main(*sys.argv[1:])
