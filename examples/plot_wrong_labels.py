"""Find wrong labels among the rows that a model finds hardest.

One label in twenty is turned round. DWNB raises the weight of rows that naive Bayes
gets wrong, so that rows of large weight are the ones to look at first.

    python examples/plot_wrong_labels.py wrong_labels.svg
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

import steelyard as sy

WRONG, RIGHT, INK = "#c0543c", "#9aa7b5", "#333333"


def main(path="wrong_labels.svg"):
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    noisy = y.to_numpy().copy()
    turned = np.random.default_rng(0).choice(len(noisy), len(noisy) // 20, False)
    noisy[turned] = 1 - noisy[turned]

    clf = sy.method("DWNB").fit(X, noisy)
    order = clf.hardest_rows(len(noisy))
    wrong = np.isin(order, turned)
    n = len(turned)
    print(f"{wrong[:n].sum()} of {n} wrong labels are among the {n} hardest rows,")
    print(f"{wrong[: 2 * n].sum()} among the {2 * n} hardest.")

    # The same bytes at every run: no date, no random identifiers; letters stay text.
    plt.rcParams.update({"svg.hashsalt": "steelyard", "svg.fonttype": "none"})
    figure, ax = plt.subplots(figsize=(8, 3.4), layout="constrained")
    shown = 4 * n
    weights = clf.instance_weights_[order[:shown]]
    colors = np.where(wrong[:shown], WRONG, RIGHT)
    ax.bar(np.arange(1, shown + 1), weights, width=1.0, color=colors)
    for color, label in ((WRONG, "label turned round"), (RIGHT, "label as it was")):
        ax.bar(0, 0, color=color, label=label)
    ax.axvline(n + 0.5, color=INK, linewidth=0.8)
    ax.text(n + 2, weights[0], f"{n} labels are wrong", va="top", color=INK)
    ax.set_xlabel(f"the {shown} rows of largest weight, of {len(noisy)}")
    ax.set_ylabel("weight")
    ax.legend(frameon=False, loc="upper right")
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main(*sys.argv[1:])
