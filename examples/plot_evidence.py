"""Draw the evidence behind one prediction as horizontal bars.

A held-out wine is classified, and what each measurement says for the most probable
kind of wine against the runner-up is drawn. The bars add up to the log-odds.

    python examples/plot_evidence.py evidence.svg
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

import steelyard as sy

FOR, AGAINST, INK = "#2a7f62", "#c0543c", "#333333"


def explain_one():
    """Evidence for the kind of one wine that the classifier was not fitted to."""
    X, y = load_wine(return_X_y=True, as_frame=True)
    X.columns = X.columns.str.replace("_", " ")
    labels = np.array(["Barolo", "Grignolino", "Barbera"])[y]
    X_train, X_test, y_train, _ = train_test_split(
        X, labels, test_size=0.3, random_state=0, stratify=labels
    )
    clf = sy.ShrinkageNB().fit(X_train, y_train)
    return clf.explain_local(X_test[:1], interactions="split").evidence()


def draw(evidence, path):
    lines = [(item.attribute, item.value, item.amount) for item in evidence.items]
    lines.append((*evidence.start, evidence.prior))
    lines.sort(key=lambda line: line[2])
    labels = [f"{name}  {value}".strip() for name, value, _ in lines]
    amounts = [amount for _, _, amount in lines]

    figure, axes = plt.subplots(figsize=(8.2, 4.6), layout="constrained")
    bars = axes.barh(
        labels, amounts, color=[FOR if amount >= 0 else AGAINST for amount in amounts]
    )
    axes.bar_label(bars, [f"{amount:+.2f}" for amount in amounts], padding=3, color=INK)
    axes.axvline(0.0, color=INK, linewidth=0.8)
    axes.margins(x=0.12, y=0.02)
    axes.set_xlabel(
        f"← for {evidence.against} · evidence in log-odds · for {evidence.target} →"
    )
    axes.set_title(
        f"One wine: {evidence.target}, probability {evidence.probability:.3f}.  "
        f"The bars add up to {evidence.total:+.2f}",
        fontsize=11,
        loc="left",
    )
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    # The same bytes at every run: no date, no random identifiers; letters stay text,
    # which keeps the file small.
    plt.rcParams.update({"svg.hashsalt": "steelyard", "svg.fonttype": "none"})
    plt.rcParams.update({"font.size": 9, "font.family": "sans-serif"})
    draw(explain_one(), sys.argv[1] if len(sys.argv) > 1 else "evidence.svg")
