"""At a glance: from a table to a model, and to its uses.

A fit turns a table, with gaps, numbers and text, into one curve or a few bars for each
column. The page, the card, the query and the monitor are all computed from
these; each panel shows figures of this model.
"""

import re
import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import steelyard as sy
from steelyard import export

GREEN, RED, GREY = "#2a7f62", "#c0543c", "#777777"

rng = np.random.default_rng(3)
n = 1500
X = pd.DataFrame(
    {
        "tenure": rng.integers(0, 72, n).astype(float),
        "contract": rng.choice(["monthly", "yearly"], n, p=[0.6, 0.4]),
        "price": np.round(rng.uniform(20, 110, n)),
    }
)
odds = 1.2 - X["tenure"] / 14 + 1.4 * (X["contract"] == "monthly") + X["price"] / 60
y = np.where(rng.random(n) < 1 / (1 + np.exp(1.9 - odds)), "yes", "no")
X.loc[rng.random(n) < 0.1, "price"] = np.nan
train, new = np.arange(n) < 1000, np.arange(n) >= 1000
clf = sy.ShrinkageNB(interactions=None).fit(X[train], y[train])

figure = plt.figure(figsize=(11, 4.4))
table, model, *uses = figure.subfigures(
    1, 4, width_ratios=[2.2, 2.2, 2.2, 2.2], wspace=0.14
)


def panel(place, title, **options):
    """Return axes without a frame, under a title."""
    ax = place.subplots(**options) if not hasattr(place, "plot") else place
    ax.set_title(title, fontweight="bold", fontsize=10)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    return ax


def text(ax, lines, x=0.0, step=0.115, **options):
    """Write lines below each other."""
    for k, line in enumerate(lines):
        ax.text(x, 0.97 - k * step, line, va="top", transform=ax.transAxes, **options)


# A table, as it is.
ax = panel(table, "A table")
shown = X[train].assign(leaves=y[train]).iloc[:9]
cells = [[f"{v:g}" if isinstance(v, float) else v for v in row] for row in shown.values]
cells = [["" if cell == "nan" else cell for cell in row] for row in cells]
drawn = ax.table(cells, colLabels=list(shown), loc="upper left", edges="horizontal")
drawn.auto_set_font_size(False)
drawn.set_fontsize(8)
drawn.scale(1, 1.35)

# The model: what each column contributes to "yes".
top, middle, bottom = model.subplots(3, 1)
for ax, name in ((top, "tenure"), (bottom, "price")):
    grid = np.linspace(X[name].min(), X[name].max(), 200)
    rows = X[train].iloc[[0] * 200].assign(**{name: grid})
    curve = np.diff(clf.predict_joint_log_proba(rows))[:, 0]
    ax.plot(grid, curve - curve.mean(), color=GREEN, linewidth=2)
    ax.set_title(name, fontsize=9, loc="left", pad=2)
rows = X[train].iloc[[0, 0]].assign(contract=["monthly", "yearly"])
bars = np.diff(clf.predict_joint_log_proba(rows))[:, 0]
bars -= bars.mean()
middle.barh(["monthly", "yearly"], bars, color=[RED if b < 0 else GREEN for b in bars])
middle.set_title("contract", fontsize=9, loc="left", pad=2)
for ax in (top, bottom):
    ax.axhline(0, color=GREY, linewidth=0.6)
    ax.set(yticks=[0])
middle.axvline(0, color=GREY, linewidth=0.6)
middle.set(xticks=[])
model.suptitle("A model: one curve per column", fontweight="bold", fontsize=10, x=0.5)

left, right = (place.subplots(2, 1) for place in uses)

# The page: some values set, the rest averaged over.
ax = panel(left[0], "A page to try values in")
asked = pd.DataFrame({"tenure": [6.0], "contract": ["monthly"], "price": [np.nan]})
p = clf.predict_proba(asked)[0, 1]
ax.set(xlim=(0, 1), ylim=(0, 1))
for k, (name, value, at) in enumerate(
    [("tenure", "6", 6 / 72), ("contract", "monthly", None), ("price", "unknown", None)]
):
    height = 0.62 - k * 0.24
    ax.text(0, height, name, va="center", fontsize=8)
    if at is not None:
        ax.plot([0.3, 0.72], [height] * 2, color=GREY, linewidth=1)
        ax.plot(0.3 + 0.42 * at, height, "o", color=GREEN)
    colour = "black" if k < 2 else GREY
    ax.text(0.8, height, value, va="center", fontsize=8, color=colour)
ax.text(0, 0.9, f"leaves: {p:.0%}", fontsize=15, color=GREEN, va="center")

# The card: the same, in whole points.
ax = panel(left[1], "A card to sign")
card = clf.scorecard(X[train], y[train], target="yes", max_bins=3).to_frame()
card = card[~card["value"].isin(["(unknown)"])]
card["column"] = card["column"].where(card["column"] != card["column"].shift(), "")
text(ax, card["column"], fontsize=8)
text(ax, card["value"], 0.3, fontsize=8)
text(ax, card["points"], 0.9, fontsize=8, ha="right")

# A query: the same, where the rows are.
ax = panel(right[0], "SQL, ONNX, Excel, C, R, …")
query = export.to_sql(clf, "duckdb", "customers", decimals=2)
lines = re.findall(r"WHEN sy_0_(tenure <= \S+) THEN (-?\d\S+)", query.replace("e0", ""))
lines = [f"WHEN {condition} THEN {score}" for condition, score in lines[:6]]
text(ax, ["CASE", *lines, "…"], family="monospace", fontsize=7.5)

# The monitor: new rows beside those of training.
ax = panel(right[1], "A monitor")
later = X[new].assign(month=np.arange(500) * 4 // 500 + 1)
later.loc[later["month"] == 4, "price"] *= 1.5
psi = clf.drift(later, by="month").to_frame()
psi = psi[psi["column"] == "price"]["psi"]
ax.bar(range(1, 5), psi, color=[RED if value > 0.25 else GREEN for value in psi])
ax.axhline(0.25, color=GREY, linewidth=0.8, linestyle="--")
ax.set(xticks=range(1, 5))
ax.set_xlabel("month; drift of price, and its threshold", fontsize=8)
ax.tick_params(length=0, labelsize=8)

for x in (0.238, 0.492):
    figure.text(x, 0.5, "→", fontsize=20, color=GREY, ha="center", va="center")
figure.savefig(sys.argv[1] if sys.argv[1:] else "concept.svg", metadata={"Date": None})
