"""An interaction of two columns as a map.

A medicine helps the young in small doses and the old in large ones. Neither age nor
dose says much alone. The model adds what their cells say beyond that, and stays a sum:
a map shows what each cell adds, hatched where no patient was.

    python examples/plot_interactions.py interactions.svg
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import steelyard as sy
from steelyard.displays import InteractionHeatmapDisplay


def patients(n=600, seed=0):
    random = np.random.default_rng(seed)
    age = random.uniform(18, 90, n).round()
    dose = random.gamma(4.0, 25.0, n).round(-1)
    helped = (age > 50) == (dose > 90)
    recovered = random.random(n) < np.where(helped, 0.85, 0.2)
    season = random.choice(["spring", "summer", "autumn", "winter"], n)
    X = pd.DataFrame({"age": age, "dose": dose, "season": season})
    return X, np.where(recovered, "recovered", "ill")


def main(picture="interactions.svg"):
    X, y = patients()
    alone = sy.ShrinkageNB(interactions=None).fit(X[:400], y[:400])
    clf = sy.ShrinkageNB(interactions=[("age", "dose")]).fit(X[:400], y[:400])
    for name, model in (("columns alone", alone), ("with the interaction", clf)):
        print(f"{name}: {model.score(X[400:], y[400:]):.0%} of new patients are right")
    print(clf.explain_local(X[400:401]).evidence())

    # The same bytes at every run: no date, no random identifiers; letters stay text.
    plt.rcParams.update({"svg.hashsalt": "steelyard", "svg.fonttype": "none"})
    display = InteractionHeatmapDisplay.from_estimator(clf, ("age", "dose"))
    display.figure_.savefig(picture, metadata={"Date": None})


if __name__ == "__main__":
    main(*sys.argv[1:])
