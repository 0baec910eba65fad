"""Compare ways of treating numeric columns: where they cut, and how well they predict.

python examples/plot_discretizers.py discretizers.svg
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score

from steelyard import (
    EqualFrequencyDiscretizer,
    EqualWidthDiscretizer,
    MDLDiscretizer,
    NaiveBayes,
)

TREATMENTS = {
    "mdl": MDLDiscretizer(),
    "mdl, better encoding": MDLDiscretizer(better_encoding=True),
    "equal width": EqualWidthDiscretizer(),
    "equal frequency": EqualFrequencyDiscretizer(),
}
PETAL_LENGTH = 2


def compare(path):
    X, y = load_iris(return_X_y=True)
    figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
    for level, (name, discretizer) in enumerate(TREATMENTS.items()):
        edges = discretizer.fit(X, y).edges_[PETAL_LENGTH]
        accuracy = cross_val_score(NaiveBayes(numeric=discretizer), X, y).mean()
        print(f"{name:21} {len(edges)} cuts, accuracy {accuracy:.3f}")
        axes.scatter(X[:, PETAL_LENGTH], [level] * len(X), c=y, s=8, alpha=0.4)
        axes.vlines(edges, level - 0.35, level + 0.35, color="black", linewidth=1.2)
    axes.set_yticks(range(len(TREATMENTS)), list(TREATMENTS))
    axes.set_xlabel("petal length (cm); lines are cut points, colours are species")
    figure.savefig(path)
    plt.close(figure)


if __name__ == "__main__":
    compare(sys.argv[1] if len(sys.argv) > 1 else "discretizers.svg")
