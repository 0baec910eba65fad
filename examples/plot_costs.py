"""Costs: at which probability should you act?

Where a miss costs twenty times as much as a false alarm, one acts from 1 / 21 on. No
row is needed to find this threshold, if the model is calibrated; the rows say what it
costs, with an interval.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

import steelyard as sy

bunch = load_breast_cancer(as_frame=True)
X, y = bunch.data.filter(like="mean"), bunch.target_names[bunch.target]
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
clf = sy.ShrinkageNB().fit(X_train, y_train)
costs = {"fp": 1, "fn": 20}
result = sy.evaluate(clf, X_test, y_test, positive="malignant", costs=costs)

cost, cut = result.decision.cost, result.thresholds["by_cost"]["threshold"]
print(f"act from a probability of {cut:.3f} on")
print(f"cost of a row {cost.value:.3f} (95 %: {cost.low:.3f} to {cost.high:.3f})")

p = clf.predict_proba(X_test)[:, clf.classes_.tolist().index("malignant")]
ill = y_test == "malignant"
cuts = np.geomspace(0.002, 0.98, 200)
missed = np.array([np.mean(ill & (p < c)) for c in cuts])
alarms = np.array([np.mean(~ill & (p >= c)) for c in cuts])
for factor in (1, 5, 20):
    line = plt.semilogx(cuts, factor * missed + alarms, label=f"a miss costs {factor}")
    plt.axvline(1 / (1 + factor), color=line[0].get_color(), linestyle=":")
plt.axhspan(cost.low, cost.high, color="C2", alpha=0.1)
plt.xlabel("threshold; dotted: 1 / (1 + cost of a miss)")
plt.ylabel("mean cost of a row")
plt.title("What a decision costs on 285 held-out rows; band: interval at 1 / 21")
plt.legend(frameon=False)
plt.savefig(sys.argv[1] if sys.argv[1:] else "costs.svg", metadata={"Date": None})
