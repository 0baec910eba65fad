"""Draw learned attribute weights as bars: WANBIA and RNB.

Thirty measurements of a tumour repeat each other, and naive Bayes counts each of them
in full. WANBIA learns one weight per measurement; RNB mixes such weights with others
that differ between the classes.

    python examples/plot_weights.py weights.svg
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_validate

import steelyard as sy

SHARED, FIRST, SECOND, INK = "#4c6a92", "#c0543c", "#2a7f62", "#333333"


def compare(names, X, y):
    for name in names:
        scores = cross_validate(
            sy.method(name), X, y, scoring=("accuracy", "neg_log_loss")
        )
        accuracy = scores["test_accuracy"].mean()
        loss = -scores["test_neg_log_loss"].mean()
        print(f"{name:11} accuracy {accuracy:.3f}   log-loss {loss:.3f}")


def draw(path):
    data = load_breast_cancer(as_frame=True)
    X, y = data.data, data.target_names[data.target]
    compare(("NB", "WANBIA-CLL", "WANBIA-MSE", "RNB"), X, y)

    wanbia = sy.method("WANBIA-CLL").fit(X, y)
    rnb = sy.method("RNB").fit(X, y)
    # A column in which no cut was worth making says nothing, and keeps the weight 1.
    speaks = [feature.n_values > 1 for feature in wanbia.encoder_.schema_.features]
    order = np.argsort(wanbia.attribute_weights_, kind="stable")
    order = order[np.array(speaks)[order]]
    kept = (wanbia.attribute_weights_[order] > 0).mean()
    places = np.arange(len(order))

    figure, (left, right) = plt.subplots(
        1, 2, figsize=(9, 6.5), sharey=True, layout="constrained"
    )
    left.barh(places, wanbia.attribute_weights_[order], color=SHARED)
    left.set_title(f"WANBIA-CLL: {kept:.0%} of the attributes in use", loc="left")
    left.set_yticks(places, X.columns[order])

    # Weights of a half without a share in the mixture are as good as any others.
    groups = []
    if rnb.alpha_ < 0.995:
        groups.append(("both classes", rnb.attribute_weights_, SHARED))
    if rnb.alpha_ > 0.005:
        by_class = zip(rnb.classes_, rnb.class_attribute_weights_, strict=True)
        groups += [
            (label, weights, colour)
            for (label, weights), colour in zip(by_class, (FIRST, SECOND), strict=True)
        ]
    height = 0.8 / len(groups)
    for k, (label, weights, colour) in enumerate(groups):
        middle = places + 0.4 - (k + 0.5) * height
        right.barh(middle, weights[order], height, color=colour, label=label)
    right.set_title(
        f"RNB: {rnb.alpha_:.2f} by class + {1 - rnb.alpha_:.2f} shared", loc="left"
    )
    right.legend(frameon=False, loc="lower right", fontsize=8)
    for axes in (left, right):
        axes.axvline(1.0, color=INK, linewidth=0.8, linestyle=":")
        axes.set_xlabel("weight (1 is naive Bayes, 0 leaves the attribute out)")
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.margins(y=0.01)
    figure.savefig(path)
    plt.close(figure)


if __name__ == "__main__":
    plt.rcParams.update({"svg.hashsalt": "steelyard", "font.size": 9})
    draw(sys.argv[1] if len(sys.argv) > 1 else "weights.svg")
