"""Dates and times: one column of dates becomes days, month, weekday and hour.

Sales of a made-up shop rise over the years, in winter and at weekends. The column goes
in as dates; the model looks at its parts, and each part has evidence of its own. Split
by time, not at random: the last months are what a model has to answer for.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.dates import YearLocator
from sklearn.metrics import log_loss

import steelyard as sy

rng = np.random.default_rng(0)
when = pd.Timestamp("2022-01-01") + pd.to_timedelta(rng.uniform(0, 1095, 6000), "D")
when = when.sort_values()
odds = 0.0008 * (when - when[0]).days + 1.2 * (when.day_of_week >= 5) - 1.5
odds = odds + 0.9 * np.cos(2 * np.pi * when.day_of_year / 365)
odds = odds - 2.5 * ((when.hour < 8) | (when.hour > 20))
busy = np.where(rng.random(6000) < 1 / (1 + np.exp(-odds)), "busy", "quiet")
X = pd.DataFrame({"when": when})

clf = sy.ShrinkageNB().fit(X[:5000], busy[:5000])
print("columns:", *clf.feature_names_in_)
print(clf.explain_local(X[-1:]).evidence())
for name, rows in {
    "months seen": slice(0, 5000),
    "months to come": slice(5000, None),
}.items():
    p = clf.predict_proba(X[rows])
    base = np.full(len(p), (busy[:5000] == "quiet").mean())
    figures = log_loss(busy[rows], p), log_loss(busy[rows], base)
    print("{}: log-loss {:.3f}, base rate alone {:.3f}".format(name, *figures))

explained = clf.explain_local(X[:5000])
parts = explained.contributions[:, :, 0] - explained.contributions[:, :, 1]
figure, axes = plt.subplots(1, 4, sharey=True, figsize=(9, 2.8))
cells = {
    "when": when[:5000],
    "when.month": when[:5000].month,
    "when.weekday": when[:5000].day_of_week + 1,
    "when.hour": when[:5000].hour,
}
for ax, (name, values) in zip(axes, cells.items(), strict=True):
    k = clf.feature_names_in_.tolist().index(name)
    ax.plot(values, parts[:, k], ".", markersize=2)
    ax.axhline(0, color="#999999", linewidth=0.6)
    ax.set_title(name)
axes[0].xaxis.set_major_locator(YearLocator())
axes[0].tick_params(axis="x", rotation=45)
axes[0].set_ylabel("evidence for busy, log-odds")
figure.savefig(sys.argv[1] if sys.argv[1:] else "dates.svg", metadata={"Date": None})
