"""Rare classes: move the threshold instead of balancing.

One row in fifty is a fraud. Class imbalance needs no resampling and no weights where
probabilities are right. With `class_weight="balanced"` they are several times too
large, and nothing is gained in exchange. Keep the probabilities, and move the threshold
to where the costs say.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import log_loss, roc_auc_score

import steelyard as sy

rng = np.random.default_rng(0)


def transfers(n):
    """Made-up transfers: an amount, an hour, a country, and whether they are frauds."""
    fraud = rng.random(n) < 0.02
    amount = np.exp(rng.normal(4 + 1.3 * fraud, 1)).round(2)
    hour = np.where(fraud, rng.integers(0, 24, n), rng.normal(14, 4, n).round() % 24)
    at_home = rng.random(n) < np.where(fraud, 0.5, 0.9)
    rows = zip(amount, hour, np.where(at_home, "home", "abroad"), strict=True)
    return [list(row) for row in rows], fraud


X, y = transfers(6000)
new, is_fraud = transfers(6000)
models = {
    "as it is": sy.ShrinkageNB(),
    'class_weight="balanced"': sy.ShrinkageNB(class_weight="balanced"),
}
figure, (left, right) = plt.subplots(1, 2)
for name, clf in models.items():
    p = clf.fit(X, y).predict_proba(new)[:, 1]
    figures = p.mean(), roc_auc_score(is_fraud, p), log_loss(is_fraud, p)
    text = "mean probability {:.3f}, AUC {:.3f}, log-loss {:.3f}"
    print(f"{name:24}", text.format(*figures))
    groups = np.array_split(np.argsort(p), 12)
    means = [p[group].mean() for group in groups]
    left.loglog(means, [is_fraud[g].mean() + 1e-4 for g in groups], "o-", label=name)
    cuts = np.geomspace(0.002, 0.95, 60)
    # A missed fraud costs 30, a transfer that is stopped for nothing 1.
    cost = [
        30 * np.mean(is_fraud & (p < c)) + np.mean(~is_fraud & (p >= c)) for c in cuts
    ]
    right.semilogx(cuts, cost, label=name)
print(f"share of frauds {is_fraud.mean():.3f}")
left.plot([1e-3, 1], [1e-3, 1], color="#999999", linewidth=0.8)
left.set(xlabel="probability", ylabel="share of frauds", title="Calibration")
right.axvline(1 / 31, color="#999999", linestyle=":")
right.set(xlabel="threshold (dotted: 1 / 31)", title="Mean cost: 30 a miss, 1 an alarm")
left.legend(frameon=False)
figure.savefig(sys.argv[1] if sys.argv[1:] else "rare.svg", metadata={"Date": None})
