"""A scorecard: integer points that people add up by hand.

A made-up clinic wants a card, not a formula. `clf.scorecard` rounds evidence to whole
points, fitted to the model, and says how much that costs. The bars are the card.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import steelyard as sy

rng = np.random.default_rng(0)
n = 1200
age = rng.uniform(18, 90, n).round()
pressure = rng.normal(120 + 0.3 * (age - 50), 15).round()
smoker = rng.choice(["never", "former", "now"], n, p=[0.5, 0.3, 0.2])
odds = 0.05 * (age - 60) + 0.03 * (pressure - 125) + 1.2 * (smoker == "now") - 0.8
y = np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), "ill", "well")
X = pd.DataFrame({"age": age, "pressure": pressure, "smoker": smoker})
X.loc[rng.random(n) < 0.1, "pressure"] = np.nan

clf = sy.ShrinkageNB().fit(X, y)
card = clf.scorecard(X, y, target="ill", base_points=0, base_odds=1, max_bins=5)
print(card)

frame = card.to_frame().query("column != '(start)'")
figure, axes = plt.subplots(1, 3, sharey=True, figsize=(9, 3))
for ax, (name, rows) in zip(axes, frame.groupby("column", sort=False), strict=True):
    values = rows["value"].astype(str)
    bars = ax.bar(
        values, rows["points"], color=np.where(rows["points"] > 0, "C1", "C0")
    )
    ax.bar_label(bars, padding=2)
    ax.axhline(0, color="#333333", linewidth=0.8)
    ax.tick_params(axis="x", rotation=35)
    ax.set_title(name)
axes[0].set_ylabel("points for ill")
figure.savefig(sys.argv[1] if sys.argv[1:] else "card.svg", metadata={"Date": None})
