"""How one prediction is made: curves, dots, a sum.

Each column has a curve: what its numbers say for "malignant", beside the average row.
A tumour is a dot on every curve. The heights of its dots add up to the answer, and to
nothing else: the model is what is drawn.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

import steelyard as sy

COLUMNS = ["worst area", "worst texture", "worst smoothness", "worst concave points"]

bunch = load_breast_cancer(as_frame=True)
X, y = bunch.data[COLUMNS], bunch.target_names[bunch.target]
clf = sy.ShrinkageNB().fit(X.drop(index=54), y[bunch.target.index != 54])
row = X.loc[[54]]
evidence = clf.explain_local(row).evidence(target="malignant")
print(evidence)

figure, axes = plt.subplots(1, 5, figsize=(11, 2.9), width_ratios=[1, 1, 1, 1, 1.5])
parts = {item.attribute: item.amount for item in evidence.items}
for ax, name in zip(axes, COLUMNS, strict=False):
    grid = np.linspace(*X[name].quantile([0.005, 0.995]), 300)
    # One column moves, the others stay; the others cancel in the difference.
    rows = row.loc[row.index.repeat(300)].assign(**{name: grid})
    scores = clf.predict_joint_log_proba(rows)
    curve = scores[:, 1] - scores[:, 0]
    own = np.interp(row[name].item(), grid, curve)
    ax.hist(X[name], 30, color="#dddddd", density=True)
    top = ax.twinx()
    top.axhline(0, color="#999999", linewidth=0.6)
    top.plot(grid, curve - own + parts[name], color="#2a7f62", linewidth=2)
    top.plot(row[name], parts[name], "o", color="#c0543c", markersize=8)
    top.set(ylim=(-4.5, 8.5), title=name)
    ax.set(yticks=[], xlim=(grid[0], grid[-1]))
    ax.spines[["left"]].set_visible(False)
    if name != COLUMNS[-1]:
        top.set_yticks([])
axes[3].set_xlabel("grey: training rows · right axis: log-odds", loc="right")

names = ["average row", *COLUMNS]
amounts = np.array([evidence.prior, *(parts[name] for name in COLUMNS)])
ends = amounts.cumsum()
colours = ["#777777", *np.where(amounts[1:] > 0, "#2a7f62", "#c0543c")]
axes[4].barh(names, amounts, left=ends - amounts, color=colours)
axes[4].invert_yaxis()
axes[4].yaxis.tick_right()
axes[4].spines[["left"]].set_visible(False)
axes[4].axvline(0, color="#999999", linewidth=0.6)
axes[4].set_title(
    f"together {ends[-1]:+.1f}: malignant {evidence.probability:.0%}", loc="left"
)
figure.savefig(sys.argv[1] if sys.argv[1:] else "curves.svg", metadata={"Date": None})
