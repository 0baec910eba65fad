"""Calibration: compare the probabilities of two methods.

Measurements of a tumour repeat each other. Naive Bayes counts each in full and is
overconfident; WANBIA learns smaller weights. Every tumour is predicted by a model that
has not seen it. A perfect method would lie on the diagonal.

    python examples/plot_reliability.py reliability.svg
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from sklearn.calibration import CalibrationDisplay
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_predict

import steelyard as sy

MALIGNANT = 0


def main(path="reliability.svg"):
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    # The same bytes at every run: no date, no random identifiers; letters stay text.
    plt.rcParams.update({"svg.hashsalt": "steelyard", "svg.fonttype": "none"})
    figure, places = plt.subplots(1, 2, figsize=(9.6, 4.8), layout="constrained")
    for ax, name in zip(places, ("NB", "WANBIA-CLL"), strict=True):
        proba = cross_val_predict(sy.method(name), X, y, cv=10, method="predict_proba")
        print(f"{name:11} log-loss {log_loss(y, proba):.3f}")
        CalibrationDisplay.from_predictions(
            y == MALIGNANT, proba[:, MALIGNANT], n_bins=12, strategy="quantile", ax=ax
        )
        ax.get_legend().remove()
        ax.set_title(name, loc="left")
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main(*sys.argv[1:])
