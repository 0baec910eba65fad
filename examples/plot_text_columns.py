"""Text columns with many values: postcodes go in as they are.

Three hundred postcodes, most of them in few rows. One-hot encoding needs a penalty that
is tuned, and a mean of the target by postcode leaks the answer. The default draws what
a rare value says to what its column says in general: a value seen twice hardly counts,
a value seen a hundred times does. A postcode never seen is left out of the sum.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import steelyard as sy

rng = np.random.default_rng(1)
codes = np.array([f"{code:05d}" for code in rng.choice(90_000, 300, replace=False)])
truth = pd.Series(rng.normal(0, 1, 300), codes)
share = rng.dirichlet(np.full(300, 0.4))


def customers(n):
    postcode = rng.choice(codes, n, p=share)
    plan = rng.choice(["basic", "plus", "pro"], n, p=[0.6, 0.3, 0.1])
    odds = truth[postcode].to_numpy() + 0.8 * (plan == "basic") - 1
    leaves = rng.random(n) < 1 / (1 + np.exp(-odds))
    return pd.DataFrame({"postcode": postcode, "plan": plan}), leaves


X, y = customers(3000)
new, leaves = customers(3000)
models = {
    "ShrinkageNB": sy.ShrinkageNB(),
    "NaiveBayes": sy.NaiveBayes(),
    "one-hot, logistic": make_pipeline(
        OneHotEncoder(handle_unknown="ignore"), LogisticRegression()
    ),
}
for name, clf in models.items():
    p = clf.fit(X, y).predict_proba(new)
    print(f"{name:20} log-loss on new rows {log_loss(leaves, p):.4f}")
print("base rate alone     ", f"{log_loss(leaves, np.full(3000, y.mean())):25.4f}")

seen = X["postcode"].value_counts()
probe = pd.DataFrame({"postcode": seen.index, "plan": "basic"})
scores = models["ShrinkageNB"].predict_joint_log_proba(probe)
learned = scores[:, 1] - scores[:, 0]
plt.scatter(truth[seen.index], learned - learned.mean(), s=4 + 3 * seen, alpha=0.4)
plt.axline((0, 0), slope=1, color="#999999", linewidth=0.8)
plt.gca().set(xlabel="true effect of a postcode", ylabel="learned, less the mean")
plt.title("Dots: postcodes, larger with more rows. Rare ones are drawn to 0")
plt.savefig(sys.argv[1] if sys.argv[1:] else "text.svg", metadata={"Date": None})
