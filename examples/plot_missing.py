"""Missing values: predict from the known cells, without imputation.

The default averages over what a missing cell may be, given the known ones. As more
cells of new rows go missing, it loses less than a forest with medians in their place,
and is not overtaken by plain naive Bayes, which leaves missing cells out. Where cells
are missing for a reason, `missing="value"` makes a value of their absence.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

import steelyard as sy

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
rng = np.random.default_rng(0)
X_train = X_train.mask(rng.random(X_train.shape) < 0.2)  # a fifth is missing at fit

forest = make_pipeline(
    SimpleImputer(strategy="median"), RandomForestClassifier(random_state=0)
)
models = {
    "ShrinkageNB": sy.ShrinkageNB(),
    "NaiveBayes": sy.NaiveBayes(),
    "medians and a forest": forest,
}
shares = np.linspace(0, 0.9, 7)
print("share missing       ", *(f"{share:6.2f}" for share in shares))
for name, clf in models.items():
    clf.fit(X_train, y_train)
    losses = []
    for share in shares:
        # Ten draws of the cells that are missing, the same for all.
        draws = [np.random.default_rng(k).random(X_test.shape) for k in range(10)]
        some = [clf.predict_proba(X_test.mask(draw < share)) for draw in draws]
        losses.append(np.mean([log_loss(y_test, p) for p in some]))
    print(f"{name:20}", *(f"{loss:6.3f}" for loss in losses))
    plt.plot(shares, losses, "o-", label=name)
plt.axhline(log_loss(y_test, [y_train.mean()] * len(y_test)), color="#999999", ls=":")
plt.gca().set(xlabel="share of cells of new rows that are missing", ylabel="log-loss")
plt.title("A fifth of the training cells is missing; dotted: the base rate alone")
plt.yscale("log")
plt.legend(frameon=False)
plt.savefig(sys.argv[1] if sys.argv[1:] else "missing.svg", metadata={"Date": None})
