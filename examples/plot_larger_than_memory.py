"""Larger than memory: fit files chunk by chunk.

`sy.scan` reads the names and types of columns, not the rows. The fit goes through them
chunk by chunk, and the model is that of the same rows in memory. Here the files are
small, so that the example is quick; the memory of the fit would not grow with them.
"""

import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import steelyard as sy

rng = np.random.default_rng(0)


def rides(n):
    zone = rng.choice(
        ["airport", "centre", "north", "south"], n, p=[0.1, 0.5, 0.2, 0.2]
    )
    km = (rng.gamma(2, 3, n) + 12 * (zone == "airport")).round(1)
    paid = rng.choice(["card", "cash"], n, p=[0.7, 0.3])
    likely = 0.15 + 0.5 * (paid == "card") + 0.02 * np.minimum(km, 15)
    tip = np.where(rng.random(n) < likely, "yes", "no")
    return pd.DataFrame({"zone": zone, "km": km, "paid": paid, "tip": tip})


with tempfile.TemporaryDirectory() as folder:
    months = [rides(4000) for _ in range(12)]
    for k, month in enumerate(months):
        month.to_parquet(f"{folder}/{k:02d}.parquet")
    rows = sy.scan(f"{folder}/*.parquet")
    print(rows)
    clf = sy.ShrinkageNB().fit(rows, "tip")
    p = np.concatenate(list(clf.predict_chunks(rows)))
    size = sum(path.stat().st_size for path in Path(folder).iterdir())
    print(f"{len(p):,} predictions from {size / 1e6:.1f} MB of files, by chunks")

table = pd.concat(months)
same = sy.ShrinkageNB().fit(table[["zone", "km", "paid"]], table["tip"])
difference = abs(same.predict_proba(table[["zone", "km", "paid"]]) - p).max()
print(f"the same rows in memory: probabilities differ by {difference:.1g} at most")

groups = np.array_split(np.argsort(p[:, 1]), 20)
tip = (table["tip"] == "yes").to_numpy()
plt.axline((0, 0), slope=1, color="#999999", linewidth=0.8)
plt.plot([p[g, 1].mean() for g in groups], [tip[g].mean() for g in groups], "o")
plt.gca().set(xlabel="predicted probability of a tip", ylabel="share with a tip")
plt.title("48,000 rides of twelve files, in groups by their prediction")
plt.savefig(sys.argv[1] if sys.argv[1:] else "rides.svg", metadata={"Date": None})
