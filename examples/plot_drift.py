"""Drift: is the model still valid, month by month?

A model file knows what its training rows looked like. New months are compared with it
by population stability indices (PSI), by missing and unseen cells, and by calibration
once labels are known. Here a sensor is replaced in July; nothing else changes.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import steelyard as sy

rng = np.random.default_rng(0)


def parts(n):
    heat, load = rng.normal(60, 8, n), rng.gamma(4, 10, n)
    site = rng.choice(["north", "south"], n)
    odds = 0.15 * (heat - 62) + 0.03 * (load - 40)
    fails = np.where(rng.random(n) < 1 / (1 + np.exp(2 - odds)), "fails", "holds")
    return pd.DataFrame({"heat": heat, "load": load, "site": site}), fails


clf = sy.ShrinkageNB().fit(*parts(3000))
new, y = parts(6000)
new["month"] = np.repeat(np.arange(1, 13), 500)
new.loc[new["month"] >= 7, "heat"] += 6  # the new sensor reads six degrees more
report = clf.drift(new, y, by="month")
print(*report.alarms[:6], "...", sep="\n")

frame = report.to_frame()
for column, rows in frame.groupby("column", sort=False):
    plt.plot(rows["period"].astype(int), rows["psi"], "o-", label=column)
plt.axhline(0.25, color="#999999", linestyle=":")
plt.gca().set(xlabel="month", ylabel="population stability index", yscale="log")
plt.title("A sensor is replaced in July. Dotted: where an alarm is given")
plt.legend(frameon=False)
plt.savefig(sys.argv[1] if sys.argv[1:] else "drift.svg", metadata={"Date": None})
