"""Monotone curves: enforce what is known in every prediction.

Risk does not fall with age, and a dose that is right has more effect than one that is
too low or too high. With 250 rows a free curve wiggles; with `constraints` it keeps the
shape that experts know, and what that costs on held-out rows is reported.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import log_loss

import steelyard as sy

rng = np.random.default_rng(3)


def patients(n):
    age, dose = rng.uniform(20, 90, n).round(), rng.uniform(0, 100, n).round()
    odds = 2 / (1 + np.exp(-(age - 60) / 5)) + 1.5 * np.exp(-(((dose - 45) / 20) ** 2))
    y = np.where(rng.random(n) < 1 / (1 + np.exp(1.8 - odds)), "yes", "no")
    return pd.DataFrame({"age": age, "dose": dose}), y


X, y = patients(250)
new, truth = patients(5000)
shapes = {"age": "increasing", "dose": "peak"}
figure, axes = plt.subplots(1, 2, sharey=True)
for name, clf in {
    "free": sy.ShrinkageNB(interactions=None),
    "with constraints": sy.ShrinkageNB(interactions=None, constraints=shapes),
}.items():
    clf.fit(X, y)
    loss = log_loss(truth, clf.predict_proba(new))
    print(f"{name:17} log-loss on new rows {loss:.4f}")
    for ax, column in zip(axes, X, strict=True):
        grid = np.linspace(X[column].min(), X[column].max(), 300)
        rows = pd.DataFrame({"age": 55.0, "dose": 45.0} | {column: grid})
        p = clf.predict_proba(rows)[:, 1]
        turns = np.count_nonzero(np.diff(np.sign(np.diff(p)[abs(np.diff(p)) > 1e-9])))
        print(f"{'':17} {column} changes direction {turns} times")
        ax.plot(grid, p, label=name)
        ax.set(xlabel=column, title=f"{column}: {shapes[column]}")
axes[0].set_ylabel("probability of yes")
axes[0].legend(frameon=False)
figure.savefig(sys.argv[1] if sys.argv[1:] else "shapes.svg", metadata={"Date": None})
