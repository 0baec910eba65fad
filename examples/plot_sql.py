"""SQL: score a table in its database, with reasons.

A model is a sum of look-ups, which a database can add up as well. The query below is
run by SQLite, of Python's standard library; other dialects are a word.
"""

import sqlite3
import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_wine

import steelyard as sy
from steelyard.export import to_sql

bunch = load_wine(as_frame=True)
X = bunch.data[["proline", "flavanoids", "hue"]]
y = np.array(["Barolo", "other"])[(bunch.target > 0).astype(int)]
clf = sy.method("WANBIA-CLL").fit(X, y)

query = to_sql(clf, "sqlite", "wines", keep=["bottle"], contributions=True)
print(query[:900], "...\n", sep="\n")
with sqlite3.connect(":memory:") as base:
    X.to_sql("wines", base, index_label="bottle")
    scored = pd.read_sql_query(query, base)
base.close()
print(scored.head(3).round(3).to_string(index=False))
difference = abs(scored["p(Barolo)"] - clf.predict_proba(X)[:, 0]).max()
print(f"\nlargest difference from predict_proba: {difference:.1g}")

names = [f"evidence({name}, {clf.classes_[1]})" for name in X]
order = np.argsort(scored["p(Barolo)"])[::6]
bottom = np.zeros((2, len(order)))
for name in names:
    values = -scored[name].to_numpy()[order]
    side = (values < 0).astype(int)
    here = bottom[side, range(len(order))]
    plt.bar(range(len(order)), values, bottom=here, label=name)
    bottom[side, range(len(order))] += values
plt.axhline(0, color="#333333", linewidth=0.8)
plt.gca().set(xlabel="wines, by their probability", ylabel="log-odds for Barolo")
plt.title("Reasons, as the database returns them")
plt.legend(frameon=False)
plt.savefig(sys.argv[1] if sys.argv[1:] else "sql.svg", metadata={"Date": None})
